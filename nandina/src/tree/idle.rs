//! Garbage collection in steps, while the device is idle.

use super::Index;
use super::Placement;
use crate::error::{Fault, WriteError};
use crate::flash::Flash;
use crate::gc::{self, Idle};

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// The least budget with which [`gc_step`](Self::gc_step) gets on: chip operations to move one
    /// page, and with it, where power was cut during collection, the pages that ride with it.
    pub fn gc_step_least(&self) -> u32 {
        gc::least(self)
    }

    /// Does part of the work that is due anyway, with at most `budget` chip operations: saves pages
    /// that the ECC found weak and pages on bad blocks, collects garbage until the next block's
    /// worth of changes need none, erases the block that is opened next, and, where the chip can
    /// [tell](Flash::reports_corrections), reads on through the valid pages to see how well they
    /// can be read.
    ///
    /// What waits in the write buffer goes on waiting.
    ///
    /// A program or erase that the chip reports as failed, and the mount after a device's error,
    /// come on top, and what the write cache holds. With less than
    /// [`gc_step_least`](Self::gc_step_least) it does nothing. Each page is moved durably, so power
    /// may be cut between and inside steps. As long as nothing is changed in between, there is an
    /// end to it: blocks that gain nothing are not collected.
    pub fn gc_step(&mut self, budget: u32) -> Result<Idle, WriteError<F::Error>> {
        Ok(self.step(budget)?)
    }

    fn step(&mut self, budget: u32) -> Result<Idle, Fault<F::Error>> {
        self.settle()?;
        self.write_out()?;
        gc::step(self, budget)
    }
}
