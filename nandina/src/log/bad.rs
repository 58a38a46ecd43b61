//! Blocks that were given up, and are to be marked as bad on the chip.

use super::Log;
use crate::error::Fault;
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError};

impl<F: Flash> Log<'_, F> {
    /// Asks the chip to mark a block that was given up.
    ///
    /// If marking fails, the block fails again after the next mount.
    #[inline(always)]
    pub fn mark_bad(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        match self.chip.mark_bad(block) {
            Err(error) if error.kind() == ErrorKind::Other => Err(Fault::Device(error)),
            _ => Ok(()),
        }
    }
}
