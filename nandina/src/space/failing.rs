//! Blocks that fail: given up at once, marked as bad once they are empty. Nothing is moved here.

use super::{Kind, Space, room_to_fail};
use crate::error::Fault;
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError};

/// Blocks that may always fail one after another without a page being programmed in between.
const FAILURES_MIN: u32 = 8;

impl<F: Flash, K: Kind> Space<'_, F, K> {
    /// Blocks that are kept for ones that become bad.
    pub(crate) fn reserve_blocks(&self) -> u32 {
        self.capabilities().bad_blocks_max(self.geometry().blocks)
    }

    /// Pages kept free for the blocks that may still fail.
    #[inline(never)]
    pub(crate) fn room_to_fail(&self) -> u32 {
        room_to_fail(self.blocks.bad_blocks(), self.reserve_blocks(), self.block_pages())
    }

    /// Why nothing more can be written.
    pub(crate) fn no_room(&self, limit_pages: u32) -> Fault<F::Error> {
        let bad_blocks = self.blocks.bad_blocks();
        if bad_blocks > self.reserve_blocks() {
            return Fault::WornOut { bad_blocks };
        }
        Fault::NoRoom { limit_pages }
    }

    /// Asks the chip which blocks are bad. One that was given up and not marked yet stays so.
    pub(crate) fn find_bad_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        for block in self.blocks.all() {
            if self.flash.is_bad(block).map_err(Fault::Device)? {
                self.blocks.set_bad(block);
            }
        }
        Ok(())
    }

    /// Whether a failure is laid to its block. Where more than a quarter of all blocks fail one after another,
    /// it is not they that are bad but the way to the chip, and the device's error is handed on.
    pub(super) fn may_fail(&mut self) -> bool {
        self.failures += 1;
        self.failures <= FAILURES_MIN.max(self.geometry().blocks / 4)
    }

    pub(super) fn give_up(&mut self, block: BlockNumber) {
        self.blocks.set_bad(block);
        self.unmarked = true;
    }

    /// Tells the chip of blocks that were given up and hold nothing valid any more.
    pub(crate) fn mark_bad_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        if !self.unmarked {
            return Ok(());
        }
        self.unmarked = false;
        for block in self.blocks.all() {
            if !self.blocks.is_bad(block) || self.flash.is_bad(block).map_err(Fault::Device)? {
                continue;
            }
            if self.blocks.valid_in(block) > 0 {
                self.unmarked = true;
                continue;
            }
            self.operations += 1;
            match self.flash.mark_bad(block) {
                Ok(()) => {}
                // A mark that fails is found out again by the next mount.
                Err(error) if error.kind() != ErrorKind::Other => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Ok(())
    }
}
