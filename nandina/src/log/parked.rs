//! A second open block, for owners that keep pages apart by how long they live.
//!
//! Pages that garbage collection moves outlive those that are written now. If each sort has a block
//! of its own, blocks become garbage as a whole, or stay valid as a whole, and collection moves
//! less. One of the two blocks is active, the other one is parked; [`Log::turn`] exchanges them.
//!
//! Sequence numbers go through both. So after a cut, either may end in a torn page, and of two
//! blocks the one that was opened first may have newer pages. An owner whose mount relies on the
//! order of blocks must not turn.

use super::Log;
use crate::blocks::NO_BLOCK;
use crate::flash::{BlockNumber, Flash};

/// The block that is open and not written now.
pub(super) struct Parked {
    /// The block, or [`NO_BLOCK`].
    block: BlockNumber,
    /// The place of its next page.
    place: u32,
    /// The owner's tag of its pages.
    tag: u8,
}

impl Parked {
    /// No block is parked.
    pub const NONE: Self = Self { block: NO_BLOCK, place: 0, tag: 0 };
}

impl<F: Flash> Log<'_, F> {
    /// Turns to the block whose pages carry the owner's `tag`.
    ///
    /// Parks the active block if its pages carry another one. Cost: none.
    pub fn turn(&mut self, tag: u8) {
        if self.tag == tag {
            return;
        }
        let (block, place) = self.active;
        let parked = Parked { block, place, tag: self.tag };
        let Parked { block, place, tag: parked_tag } = core::mem::replace(&mut self.parked, parked);
        debug_assert!(block == NO_BLOCK || parked_tag == tag, "a third sort of pages");
        (self.active, self.tag) = ((block, place), tag);
        self.blocks.set_beside(self.parked_block());
    }

    /// The parked block, if there is one.
    fn parked_block(&self) -> Option<BlockNumber> {
        Some(self.parked.block).filter(|&block| block != NO_BLOCK)
    }

    /// Pages that are left in the parked block.
    pub(super) fn parked_room(&self) -> u32 {
        self.parked_block().map_or(0, |_| self.block_pages() - self.parked.place)
    }

    /// Closes the parked block.
    ///
    /// What is left of it is not written before its next erase.
    pub fn close_parked(&mut self) {
        self.parked = Parked::NONE;
        self.blocks.set_beside(None);
    }

    /// Closes both open blocks: the next page begins another one.
    pub fn close_blocks(&mut self) {
        self.close_block();
        self.close_parked();
    }

    /// Makes the parked block the active one if no block is free.
    ///
    /// Returns whether it did.
    pub fn fill_parked(&mut self, filled: Option<BlockNumber>) -> bool {
        if self.parked_room() == 0 || self.blocks.free_blocks(filled) > 0 {
            return false;
        }
        self.active = (self.parked.block, self.parked.place);
        self.close_parked();
        true
    }
}
