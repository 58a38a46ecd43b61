//! Garbage collection in steps, while the device is idle.

use super::Index;
use super::Placement;
use crate::error::{Fault, WriteError};
use crate::flash::Flash;
use crate::gc::{self, Idle};

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// The least budget with which [`gc_step`](Self::gc_step) makes progress.
    ///
    /// It counts the chip operations to move one page. If power was cut during collection, it
    /// includes the pages that ride with that page.
    pub fn gc_step_least(&self) -> u32 {
        gc::least(self)
    }

    /// Does part of the work that is due anyway, with at most `budget` chip operations.
    ///
    /// It rewrites pages that the ECC found weak and pages on bad blocks, collects garbage until
    /// the next block's worth of changes need none, and erases the block that is opened next. Where
    /// the chip [reports corrections](Flash::reports_corrections), it also reads through the valid
    /// pages to check how well they can be read.
    ///
    /// Pending changes stay in the write buffer.
    ///
    /// A program or erase that the chip reports as failed, the mount after a device's error, and
    /// the content of the write cache come on top. With a budget below
    /// [`gc_step_least`](Self::gc_step_least) it does nothing. Each page is moved durably, so power
    /// may be cut between and inside steps. As long as no change is made in between, the work comes
    /// to an end: blocks that gain no room are not collected.
    pub fn gc_step(&mut self, budget: u32) -> Result<Idle, WriteError<F::Error>> {
        Ok(self.step(budget)?)
    }

    fn step(&mut self, budget: u32) -> Result<Idle, Fault<F::Error>> {
        self.settle()?;
        self.write_out()?;
        gc::step(self, budget)
    }
}
