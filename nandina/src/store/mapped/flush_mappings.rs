//! When a parent is written to flush the mappings of its children.
//!
//! Only a change that lacks room writes here: it frees logical addresses.
//!
//! A parent frees as many places in the table as it has mapped children, and takes one for itself.
//! So the best time to write it is when it has as many as it will ever have: every parent gains
//! mappings at the same pace, and if each is written at *t* of them, the table holds *t*/2 for each
//! parent on the mean. The table is full at *t* = 2 *c*/*n* for *c* places and *n* parents. Writing
//! whichever parent comes along when the table is full (VMTree paper, section 4.2) frees about half
//! as many.

use crate::engine::Folds;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::space::{Maps, Memory};
use crate::tree::{Limits, Path, Placement, TreeIndex, node_in};

/// Places that leaves leave free in addition, because a split adds an inner node.
const SPARE: usize = 4;

/// Fill of the table, in eighths, from which parents are written to flush it.
const FULL_EIGHTHS: usize = 6;

/// Smallest block, in pages, for which moving a leaf counts as two pages.
///
/// The leaf is counted with its parent, and not with its path.
const COUNTED_PAGES: u32 = 16;

/// Places of a table of `capacity` that only inner nodes may take.
///
/// So each inner node can always be mapped: a moved leaf then makes its parent be written and no
/// node above. 0 if there are too many inner nodes.
pub(crate) const fn kept_for_parents(capacity: usize, inner_nodes: u32) -> u32 {
    if 2 * inner_nodes as usize <= capacity { inner_nodes } else { 0 }
}

/// Pages that are written when a page is moved, its own included.
pub(super) fn moved_path(path_pages: u32, of: &Limits<'_>) -> u32 {
    // A block of few pages gains one at least: too little to count on that.
    if of.extent.block_pages >= COUNTED_PAGES && kept_for_parents(of.mappings, of.inner_nodes) > 0 {
        path_pages.min(2)
    } else {
        path_pages
    }
}

/// How a change that lacks room frees the pages of logical addresses.
///
/// It goes through the table once, in ascending order. The collection that makes room meanwhile
/// must not take as many pages again: it maps no leaf as long as the change does not fit. It may
/// map inner nodes, whose places are kept and count already.
pub struct Reclaiming {
    /// No node of the running operation is mapped.
    maps_nothing: bool,
    /// Taken pages from which no leaf is mapped: its parent is written.
    limit_pages: u32,
    /// The least logical address that was not looked at.
    ///
    /// Those below it are of inner nodes. 0 unless the change lacked room.
    next: u32,
    /// All logical addresses are of inner nodes whose places are kept.
    of_parents: bool,
}

impl Default for Reclaiming {
    fn default() -> Self {
        Self { maps_nothing: false, limit_pages: u32::MAX, next: 0, of_parents: false }
    }
}

impl Reclaiming {
    fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Memory for Reclaiming {}

impl<F: Flash, S: Placement<Kind = Maps>> TreeIndex<'_, F, S> {
    /// A change begins: what an earlier one lacked is forgotten.
    pub(super) fn forget_refusal(&mut self) {
        self.space.memory.forget();
    }

    /// The most places kept for parents while the tree grows to `inner_nodes`.
    pub(super) fn kept_until(&self, inner_nodes: u32) -> u32 {
        let most = (self.space.mappings.capacity() / 2) as u32;
        if self.state.inner_nodes() > most { 0 } else { inner_nodes.min(most) }
    }

    /// Places of the table that only this many inner nodes may take.
    pub(super) fn kept_for_parents(&self, inner_nodes: u32) -> u32 {
        kept_for_parents(self.space.mappings.capacity(), inner_nodes)
    }

    /// Whether leaves may use the places kept for parents as well.
    ///
    /// On a chip whose blocks have few pages, no limit relies on these places. They are missed only
    /// near the limit, where cuts have used up the reserve.
    fn lends_places(&self) -> bool {
        let limit = self.limit_pages();
        self.space.log.block_pages() < COUNTED_PAGES && self.space.taken_pages() < limit - limit / 8
    }

    /// After a `refusal` for lack of room: frees the page of a logical address.
    ///
    /// A parent takes the current page of a child that has moved. The logical addresses of inner
    /// nodes stay if places are kept for them, and then they no longer count beside these places.
    /// Returns the refusal as the error if that was not enough.
    #[inline(never)]
    pub(super) fn reclaim_address(
        &mut self,
        refusal: Fault<F::Error>,
    ) -> Result<(), Fault<F::Error>> {
        let &Fault::NoRoom { limit_pages } = &refusal else {
            return Err(refusal);
        };
        // The nodes that the change adds, and the address that each of its levels may take.
        let adds = 2 * u32::from(self.state.height()) + 2;
        self.space.memory.limit_pages = limit_pages.saturating_sub(adds);
        let are_kept = self.kept_for_parents(self.state.inner_nodes()) > 0;
        while let Some(name) = self.space.mappings.first_from(self.space.memory.next) {
            self.space.memory.next = name + 1;
            let place = PageNumber(self.space.current_page(name));
            if are_kept && matches!(self.keep_first_key(place), Ok(level) if level > 1) {
                continue;
            }
            self.space.memory.maps_nothing = !are_kept;
            let saved = crate::gc::save(self, PageNumber(name), None);
            self.space.memory.maps_nothing = false;
            // A parent that cannot be read keeps the logical addresses of its children.
            return if saved? { Ok(()) } else { Err(refusal) };
        }
        let was_known = core::mem::replace(&mut self.space.memory.of_parents, are_kept);
        if are_kept && !was_known { Ok(()) } else { Err(refusal) }
    }

    /// Taken pages, without mapped inner nodes once no leaf is mapped.
    pub(super) fn pages_beside_parents(&self) -> u32 {
        if self.space.memory.of_parents {
            self.space.valid_pages()
        } else {
            self.space.taken_pages()
        }
    }

    /// Whether a changed child makes the node of `level` on `path` be written.
    #[inline(never)]
    pub(super) fn flushes_mappings(
        &mut self,
        path: &Path,
        level: u8,
    ) -> Result<bool, Fault<F::Error>> {
        if self.space.memory.maps_nothing {
            return Ok(true);
        }
        let mappings = &self.space.mappings;
        let kept =
            if self.lends_places() { 0 } else { self.kept_for_parents(self.state.inner_nodes()) };
        if level > 2 && kept > 0 {
            return Ok(false);
        }
        // Each mapping keeps a page from being programmed, and these pages count as taken.
        let is_mapped = mappings.get(path.page(level - 1)).is_some();
        let Reclaiming { next, limit_pages, .. } = self.space.memory;
        let limit_pages = self.limit_pages().min(limit_pages);
        // A change that lacked room counts the places of inner nodes even where they are lent.
        let counted = if next > 0 { self.kept_for_parents(self.state.inner_nodes()) } else { kept };
        if self.space.taken_pages() + counted >= limit_pages
            || (!is_mapped
                && kept > 0
                && mappings.len() + kept as usize + SPARE >= mappings.capacity())
        {
            return Ok(true);
        }
        let parents = self.state.inner_nodes().max(1) as usize;
        let enough = match self.folding.built() {
            Folds::Full => return Ok(false),
            Folds::Children(children) => children.into(),
            Folds::Share if mappings.len() * 8 < mappings.capacity() * FULL_EIGHTHS => {
                return Ok(false);
            }
            Folds::Share => (2 * mappings.capacity() / parents).max(2),
        };
        // A parent that was displaced from its page buffer is not worth a read.
        let page = PageNumber(self.space.current_page(path.page(level)));
        let Some(frame) = self.space.log.frames.holding(page) else {
            return Ok(false);
        };
        let Some(node) = node_in::<S, F>(&self.space, frame, self.level(level)) else {
            return Ok(false);
        };
        let mapped = (0..node.count())
            .filter(|&slot| self.space.mappings.get(node.pointer(slot)).is_some())
            .count();
        Ok(mapped >= enough)
    }
}
