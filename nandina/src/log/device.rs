//! What a device with an FTL wants to know: pages that nobody needs, and rest.
//!
//! Nothing is programmed or erased here, and no later read relies on what a discarded page holds.

use super::Log;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber, Upkeep};

impl<F: Flash> Log<'_, F> {
    /// Says that nobody needs the content of `page` any longer.
    pub fn discard(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        self.chip.discard(page).map_err(Fault::Device)
    }

    /// Lets the device do work that is due, with at most `budget` of its operations.
    pub fn let_device_work(&mut self, budget: u32) -> Result<Upkeep, Fault<F::Error>> {
        self.chip.idle(budget).map_err(Fault::Device)
    }

    /// The least budget with which the device makes progress.
    pub fn device_work_least(&self) -> u32 {
        self.chip.idle_least()
    }
}
