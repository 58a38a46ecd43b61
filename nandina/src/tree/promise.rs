//! Whether a change may wait in the write buffer. Nothing that was taken in is lost: a put waits
//! only if all pages that the waiting puts can take are allowed, whatever nodes they divide.

use super::Index;
use super::Placement;
use crate::flash::Flash;

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Whether the pages are allowed that all puts can take which wait, and one of `key`.
    pub(super) fn may_wait(&mut self, key: &[u8]) -> bool {
        let puts = self.batch.puts_with(key);
        if puts > self.batch.granted() {
            // Most of the time a whole buffer has room, and no other put asks again.
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

    /// Whether the pages are allowed that so many puts can take, if every node that they reach is
    /// as full as it may be, but for the root: what that holds is known.
    fn has_room_for(&self, puts: u32) -> bool {
        let form = self.form();
        let (mut height, mut inner_nodes, mut pages) = (self.height, self.inner_nodes, 0);
        let mut root_records = if height == 1 { self.records } else { self.batch.root_records() };
        // Records that the nodes of a level get: each put, and one for each node divided below.
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
            // Each node may be full, and then its halves have room for half as many; a root's
            // halves, and what is left at the right edge, may be full as well.
            let nodes = match level {
                _ if level == height => 1,
                1 => self.space.valid_pages(),
                _ => self.inner_nodes,
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
        // Names are given up for it if need be.
        let (limit_pages, beside) = self.limit_and_beside(height, inner_nodes);
        self.space.valid_pages().saturating_add(pages + beside) <= limit_pages
    }
}
