//! Whether a change may be buffered.
//!
//! No buffered change is lost: an upsert is buffered only if the limit allows all pages that the
//! pending upserts can take, whatever nodes they split.

use super::Placement;
use super::TreeIndex;
use super::WritePolicy;
use crate::flash::Flash;

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Whether the limit allows the pages of all pending upserts and one of `key`.
    pub(super) fn may_wait(&mut self, key: &[u8]) -> bool {
        let puts = self.batch.puts_with(key);
        if puts > self.batch.granted() {
            // Usually there is room for a whole buffer, and then no further upsert needs this
            // check.
            let all = self.batch.capacity() as u32;
            let granted = if self.has_room_for(all) {
                all
            } else if self.has_room_for(puts) {
                puts
            } else {
                0
            };
            self.batch.grant(granted);
        }
        puts <= self.batch.granted()
    }

    /// Whether the limit allows the pages that this number of upserts can take.
    ///
    /// Every node that they reach is assumed to be full, except the root, whose count is known.
    fn has_room_for(&self, puts: u32) -> bool {
        let form = self.form();
        let (mut height, mut inner_nodes, mut pages) =
            (self.state.height(), self.state.inner_nodes(), 0);
        let mut root_records =
            if height == 1 { self.state.records() } else { self.batch.root_records() };
        // Records added to the nodes of a level: one for each upsert, or one for each node split
        // below.
        let mut added = puts;
        let mut level = 1;
        while level <= height {
            if level == height {
                if root_records.saturating_add(added) as usize <= form.capacity::<S>(level, height)
                {
                    break;
                }
                if !form.can_grow::<S>(height) {
                    return false;
                }
            }
            // Each node may be full, and then its halves have room for half as many; the halves of
            // a root, and nodes left behind at the right edge, may be full as well.
            let nodes = match level {
                _ if level == height => 1,
                // The halves of a leaf that was too large for its path may be full again.
                1 if S::SHARING.packs() => added,
                1 => self.space.valid_pages(),
                _ => self.state.inner_nodes(),
            };
            let capacity = form.capacity::<S>(level, height.max(level + 1)).max(1) as u32;
            let divided = added.min(nodes.saturating_add(4 + added.saturating_mul(3) / capacity));
            pages += divided;
            inner_nodes += if level > 1 { divided } else { 0 };
            if level == height {
                height += 1;
                inner_nodes += 1;
                root_records = 1;
            }
            added = divided;
            level += 1;
        }
        pages += self.pages_to_grow(height);
        // If need be, logical addresses are given up to make room.
        let (limit_pages, beside) = self.limit_and_beside(height, inner_nodes);
        // A merge before the flush may leave fewer inner nodes, and then more places of the table
        // are kept for those that are left.
        let mappings = self.space.mappings.capacity();
        let beside = beside.max(S::Kind::planned_beside::<S>(height, inner_nodes, mappings));
        // Each change may leave one more inner node in a page of its own.
        let apart = if S::SHARING.packs() { inner_nodes } else { 0 };
        self.space.valid_pages().saturating_add(pages + beside + apart) <= limit_pages
    }
}
