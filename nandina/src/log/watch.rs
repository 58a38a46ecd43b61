//! How far blocks were programmed since their erase: checks of debug builds.
//!
//! A block is programmed only after an erase since the last mount, in order, and not after the end
//! of a session. Only the blocks that are being written matter: the active one, one that was erased
//! ahead of need, an anchor, and the blocks of a checkpoint.

use super::checkpoint::AREA_MAX;
use super::{Label, Log};
use crate::blocks::NO_BLOCK;
use crate::flash::{BlockNumber, Flash};
use crate::node::SESSION_END;

/// Blocks that are remembered.
///
/// They are those above, and some that were erased and not written since.
const WATCHED: usize = AREA_MAX + 8;

/// The blocks that may be programmed, and the place of their next page.
///
/// The block that was used last comes first.
pub(super) struct Watch {
    blocks: [u32; WATCHED],
    places: [u16; WATCHED],
    len: u8,
}

impl Default for Watch {
    fn default() -> Self {
        Self { blocks: [0; WATCHED], places: [0; WATCHED], len: 0 }
    }
}

impl Watch {
    /// Notes that the next page of `block` is at `place`.
    ///
    /// After an erase that is the first place.
    pub fn expect(&mut self, block: BlockNumber, place: u32) {
        self.forget(block);
        let len = usize::from(self.len).min(WATCHED - 1);
        self.blocks.copy_within(..len, 1);
        self.places.copy_within(..len, 1);
        (self.blocks[0], self.places[0]) = (block.0, place as u16);
        self.len = len as u8 + 1;
    }

    /// Remembers `block` for longer than the others, if it may be programmed.
    pub fn touch(&mut self, block: BlockNumber) {
        let known = self.blocks[..self.len.into()].iter().position(|&known| known == block.0);
        if let Some(at) = known {
            self.blocks[..=at].rotate_right(1);
            self.places[..=at].rotate_right(1);
        }
    }

    /// Whether the next page of `block` is at `place`.
    pub fn expects(&self, block: BlockNumber, place: u32) -> bool {
        let mut known = self.blocks.iter().zip(&self.places).take(self.len.into());
        known.any(|(&known, &next)| known == block.0 && u32::from(next) == place)
    }

    /// Notes that nothing more may be programmed into `block` before its next erase.
    pub fn forget(&mut self, block: BlockNumber) {
        self.keep(|known, _| known != block.0);
    }

    /// Notes a mount: blocks that were begun before it are not written any further.
    pub fn forget_begun(&mut self) {
        self.keep(|_, place| place == 0);
    }

    fn keep(&mut self, is_kept: impl Fn(u32, u16) -> bool) {
        let mut kept = 0;
        for at in 0..usize::from(self.len) {
            if is_kept(self.blocks[at], self.places[at]) {
                (self.blocks[kept], self.places[kept]) = (self.blocks[at], self.places[at]);
                kept += 1;
            }
        }
        self.len = kept as u8;
    }
}

impl<F: Flash> Log<'_, F> {
    /// Panics unless `block` is free.
    ///
    /// The root is written last: a block that the last commit needs, or that the running operation
    /// emptied, is not free.
    pub(super) fn check_open(&self, block: BlockNumber) {
        let is_free = self.blocks.is_empty(block);
        assert!(is_free, "block {} is opened, and not free", block.0);
    }

    /// Panics if a bad block is erased, or one with valid pages.
    ///
    /// Superseded pages count as valid until the commit, or their block as held. (A damaged anchor
    /// may name any block.)
    pub(super) fn check_erase(&mut self, block: BlockNumber) {
        let is_free = !self.blocks.is_bad(block) && self.blocks.valid_in(block) == 0;
        let is_right = self.medium.checkpoints || is_free;
        assert!(is_right, "block {} is erased: it is bad, or has valid pages", block.0);
        self.watch.forget(block);
    }

    /// Panics unless the next page of the open block may be programmed.
    ///
    /// A mount decides once about torn pages: the first page that it programs commits nothing.
    pub(super) fn check_append(&self, label: Label) {
        assert!(self.begun || label.height == 0, "the first page after a mount commits");
        let (block, place) = self.open.active();
        let knows = !self.medium.checkpoints && !self.blocks.searches();
        let is_valid = knows && self.blocks.is_valid(self.page_at(block, place));
        assert!(!is_valid, "page {place} of block {} is programmed, and valid", block.0);
    }

    /// Panics unless the safe page at `place` is the next of `block` since its erase.
    pub(super) fn check_program(&mut self, block: BlockNumber, place: u32) {
        assert!(place < self.block_pages(), "block {} has no safe page {place}", block.0);
        let is_next = self.watch.expects(block, place);
        assert!(is_next, "page {place} of block {} is not the next after an erase", block.0);
        self.watch.forget(block);
    }

    /// Notes that a block was erased.
    ///
    /// Checkpoints may erase many blocks while the open one waits.
    pub(super) fn watch_erase(&mut self, block: BlockNumber) {
        self.watch_next(block, 0);
    }

    /// Notes that the next page of `block` is at `place`.
    ///
    /// The blocks that are open are remembered for longer.
    pub(super) fn watch_next(&mut self, block: BlockNumber, place: u32) {
        let parked = self.open.parked().map_or(NO_BLOCK, |(parked, _)| parked);
        for open in [self.open.ready(), parked, self.open.active().0] {
            self.watch.touch(open);
        }
        self.watch.expect(block, place);
    }

    /// Notes that a page was programmed, or failed.
    ///
    /// Nothing follows the end of a session in its block.
    pub(super) fn watch_program(
        &mut self,
        programmed: bool,
        block: BlockNumber,
        place: u32,
        Label { height, records, .. }: Label,
    ) {
        let ends_session = height == 0 && records == SESSION_END;
        if programmed && place + 1 < self.block_pages() && !ends_session {
            self.watch.expect(block, place + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_programmed_in_order_and_not_after_a_mount() {
        let (mut watch, one, two) = (Watch::default(), BlockNumber(1), BlockNumber(2));
        assert!(!watch.expects(one, 0), "it was not erased");
        watch.expect(one, 0);
        watch.expect(two, 0);
        watch.expect(one, 1);
        assert!(watch.expects(one, 1) && watch.expects(two, 0));
        assert!(!watch.expects(one, 0) && !watch.expects(one, 2));
        watch.forget_begun();
        assert!(!watch.expects(one, 1) && watch.expects(two, 0));
        watch.forget(two);
        assert!(!watch.expects(two, 0));
    }

    #[test]
    fn the_block_that_was_used_least_recently_is_forgotten_first() {
        let mut watch = Watch::default();
        (0..=WATCHED as u32).for_each(|block| watch.expect(BlockNumber(block), 0));
        let known = (0..=WATCHED as u32).filter(|&block| watch.expects(BlockNumber(block), 0));
        assert!(known.eq(1..=WATCHED as u32));
    }
}
