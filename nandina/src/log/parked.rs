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
use crate::flash::{BlockNumber, Flash};

impl<F: Flash> Log<'_, F> {
    /// Closes the parked block.
    ///
    /// What is left of it is not written before its next erase.
    pub fn close_parked(&mut self) {
        self.open.close_parked();
        #[cfg(feature = "second-block")]
        self.blocks.set_beside(None);
    }

    /// Makes the parked block the active one if no block is free.
    ///
    /// Returns whether it did.
    pub fn fill_parked(&mut self, filled: Option<BlockNumber>) -> bool {
        let parked = self.open.parked().filter(|&(_, place)| place < self.block_pages());
        let Some(parked) = parked.filter(|_| self.blocks.free_blocks(filled) == 0) else {
            return false;
        };
        self.open.fill_parked(parked);
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
        if self.open.tag() == tag {
            return;
        }
        self.open.exchange(tag);
        self.blocks.set_beside(self.open.parked().map(|(block, _)| block));
    }

    /// Uses `block` for something else if it was erased ahead of need.
    ///
    /// Returns whether it was. If so, it is still erased.
    pub fn take_ready(&mut self, block: BlockNumber) -> bool {
        let is_ready = self.open.ready() == block;
        if is_ready {
            self.open.take_ready();
        }
        is_ready
    }

    /// Notes the next place of a block that the owner itself writes.
    ///
    /// A debug build remembers few blocks. The owner knows that only its own pages were programmed
    /// into this one since its erase.
    pub fn note_next(&mut self, block: BlockNumber, place: u32) {
        #[cfg(debug_assertions)]
        self.watch_next(block, place);
        let _ = (block, place);
    }

    /// Closes both open blocks, and forgets the one that was erased ahead of need.
    ///
    /// The next page begins a block that is chosen then.
    pub fn close_blocks(&mut self) {
        self.close_block();
        self.close_parked();
        self.open.take_ready();
    }
}
