//! A second open block, for owners that keep pages apart by how long they live.
//!
//! Pages that garbage collection moves outlive those that are written now. If each sort has a block
//! of its own, blocks become garbage as a whole, or stay valid as a whole, and collection moves
//! less. One of the two blocks is active, the other one is parked; [`Log::turn`] exchanges them.
//!
//! Sequence numbers go through both. So after a cut, either may end in a torn page, and of two
//! blocks the one that was opened first may have newer pages. An owner whose mount relies on the
//! order of blocks must not turn. Without the feature `second-block` no owner can.

use super::Log;
#[cfg(feature = "second-block")]
use crate::blocks::NO_BLOCK;
use crate::flash::{BlockNumber, Flash};

/// The block that is open and not written now.
///
/// Without the feature this takes no RAM.
pub(super) struct Parked {
    /// The block, or [`NO_BLOCK`], and the place of its next page.
    #[cfg(feature = "second-block")]
    open: (BlockNumber, u32),
    /// The owner's tag of its pages.
    #[cfg(feature = "second-block")]
    tag: u8,
}

impl Parked {
    /// No block is parked.
    pub const NONE: Self = Self {
        #[cfg(feature = "second-block")]
        open: (NO_BLOCK, 0),
        #[cfg(feature = "second-block")]
        tag: 0,
    };

    /// The block, if there is one, and the place of its next page.
    fn open(&self) -> Option<(BlockNumber, u32)> {
        #[cfg(feature = "second-block")]
        return Some(self.open).filter(|&(block, _)| block != NO_BLOCK);
        #[cfg(not(feature = "second-block"))]
        None
    }
}

impl<F: Flash> Log<'_, F> {
    /// Pages that are left in the parked block.
    pub(super) fn parked_room(&self) -> u32 {
        self.parked.open().map_or(0, |(_, place)| self.block_pages() - place)
    }

    /// Closes the parked block.
    ///
    /// What is left of it is not written before its next erase.
    pub fn close_parked(&mut self) {
        self.parked = Parked::NONE;
        #[cfg(feature = "second-block")]
        self.blocks.set_beside(None);
    }

    /// Makes the parked block the active one if no block is free.
    ///
    /// Returns whether it did.
    pub fn fill_parked(&mut self, filled: Option<BlockNumber>) -> bool {
        let parked = self.parked.open().filter(|&(_, place)| place < self.block_pages());
        let Some(parked) = parked.filter(|_| self.blocks.free_blocks(filled) == 0) else {
            return false;
        };
        self.active = parked;
        self.close_parked();
        true
    }
}

#[cfg(feature = "second-block")]
impl<F: Flash> Log<'_, F> {
    /// Turns to the block whose pages carry the owner's `tag`.
    ///
    /// Parks the active block if its pages carry another one. Cost: none.
    pub fn turn(&mut self, tag: u8) {
        if self.tag == tag {
            return;
        }
        let active = Parked { open: self.active, tag: self.tag };
        let parked = core::mem::replace(&mut self.parked, active);
        let is_known = parked.open.0 == NO_BLOCK || parked.tag == tag;
        debug_assert!(is_known, "a third sort of pages");
        (self.active, self.tag) = (parked.open, tag);
        self.blocks.set_beside(self.parked.open().map(|(block, _)| block));
    }

    /// Closes both open blocks, and forgets the one that was erased ahead of need.
    ///
    /// The next page begins a block that is chosen then.
    pub fn close_blocks(&mut self) {
        self.close_block();
        self.close_parked();
        self.ready = NO_BLOCK;
    }
}
