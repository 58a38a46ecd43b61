//! What stands between an index and the simulated chip under torture: the chip itself, or a wrapper that
//! is broken on purpose so that the torture can be seen to catch it.

use nandina::flash::Flash;
use nandina_sim::{Chip, ChipError};

/// A device with a simulated chip in it.
pub trait Device: Flash<Error = ChipError> + Clone + Send + Sync {
    /// The chip, to look at.
    fn chip(&self) -> &Chip;

    /// The chip, to tamper with.
    fn chip_mut(&mut self) -> &mut Chip;

    /// Power comes back: what was in RAM is lost.
    fn restore_power(&mut self) {
        self.chip_mut().restore_power();
    }
}

impl Device for Chip {
    fn chip(&self) -> &Chip {
        self
    }

    fn chip_mut(&mut self) -> &mut Chip {
        self
    }
}
