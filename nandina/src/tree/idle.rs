//! What an index does while its device is idle: garbage is collected before it has to be, in steps of
//! bounded length, and pages that nobody reads are read, so that rot is found while the ECC can mend it.

use super::Index;
use crate::error::WriteError;
use crate::flash::{Flash, PageNumber};
use crate::place::Placement;
use crate::space::{Moves, RIDERS};

/// What [`Index::gc_step`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// Chip operations used.
    pub operations: u32,
    /// There is more to collect: call again when there is time.
    pub more: bool,
}

/// Chip operations to move one page of which `riders` others are carried along.
pub(crate) fn move_cost(
    height: u8,
    path_pages: u32,
    riders: u32,
    verify: bool,
    block_pages: u32,
) -> u32 {
    // The page, its way down, nodes displaced from their buffers, and the riders; then erases, and the
    // mark on a bad block.
    let reads = 1 + 2 * u32::from(height) + riders;
    let programs = path_pages + riders;
    reads + programs * (1 + u32::from(verify)) + programs / block_pages + 2
}

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// The least budget with which [`gc_step`](Self::gc_step) gets on: chip operations to move one page.
    pub fn gc_step_least(&self) -> u32 {
        self.move_cost(0)
    }

    fn move_cost(&self, riders: u32) -> u32 {
        let path = S::path_pages(self.height);
        move_cost(self.height, path, riders, self.space.verifies(), self.space.block_pages())
    }

    /// Does part of the work that is due anyway, with at most `budget` chip operations: saves pages that
    /// the ECC found weak and pages on bad blocks, collects garbage until the next block's worth of
    /// changes need none, and reads on through the valid pages to see how well they can be read.
    ///
    /// A program or erase that the chip reports as failed, and the mount after a device's error, come on
    /// top. With less than [`gc_step_least`](Self::gc_step_least) it does nothing. Each page is moved
    /// durably, so power may be cut between and inside steps.
    pub fn gc_step(&mut self, budget: u32) -> Result<Idle, WriteError<F::Error>> {
        self.settle()?;
        let start = self.space.operations();
        let spent = |index: &Self| (index.space.operations() - start) as u32;
        loop {
            let left = budget.saturating_sub(spent(self));
            let Some((page, in_victim)) = self.due() else {
                self.patrol(left)?;
                return Ok(Idle { operations: spent(self), more: false });
            };
            if left < self.move_cost(0) {
                if !in_victim {
                    self.space.note_weak(page);
                }
                return Ok(Idle { operations: spent(self), more: true });
            }
            let together = in_victim
                && self.moves == Moves::Together
                && left >= self.move_cost(RIDERS)
                && self.space.room() >= self.floor() + RIDERS;
            let victim = together.then(|| self.space.geometry.block_of(page));
            self.refreshed_pages += u64::from(!in_victim);
            self.save(page, victim)?;
            self.space.mark_bad_blocks()?;
        }
    }

    /// The next page to move, and whether its block is to be emptied.
    fn due(&mut self) -> Option<(PageNumber, bool)> {
        let room = self.space.room();
        if room < self.floor() {
            return None;
        }
        if let Some(weak) = self.space.take_weak() {
            return Some((weak, false));
        }
        let block = self.space.blocks.failing().or_else(|| {
            let target = self.floor() + self.space.block_pages();
            let active = self.space.active_block();
            (room < target).then(|| self.space.blocks.victim(active)).flatten()
        })?;
        Some((self.first_valid(block)?, true))
    }

    /// Reads at most `reads` valid pages, going on where the last call ended.
    fn patrol(&mut self, mut reads: u32) -> Result<(), WriteError<F::Error>> {
        let pages = self.space.geometry.pages();
        for _ in 0..pages {
            if reads == 0 {
                break;
            }
            let page = PageNumber(self.patrol);
            self.patrol = (self.patrol + 1) % pages;
            if self.space.blocks.is_valid(page) {
                // A page that cannot be read is reported when its records are asked for.
                let _ = self.space.read_raw(page, 0)?;
                reads -= 1;
            }
        }
        Ok(())
    }
}
