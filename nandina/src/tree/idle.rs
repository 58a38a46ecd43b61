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

/// Why a page is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The next change has no room.
    Gain,
    /// The ECC found it weak.
    Weak,
    /// Its block is bad, or is to be erased ahead of need.
    Ahead,
}

enum Due {
    Nothing,
    /// Something that does not fit into a step.
    Later,
    Move(PageNumber, Cause),
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
    /// The least budget with which [`gc_step`](Self::gc_step) gets on: chip operations to move one page,
    /// and with it, where power was cut during collection, the pages that ride with it.
    pub fn gc_step_least(&self) -> u32 {
        let gains = self.space.room() < self.floor() && self.moves == Moves::Together;
        self.move_cost(if gains { RIDERS } else { 0 })
    }

    fn move_cost(&self, riders: u32) -> u32 {
        let path = S::path_pages(self.height);
        move_cost(self.height, path, riders, self.space.verifies(), self.space.block_pages())
            + self.space.checkpoint_cost()
    }

    /// Does part of the work that is due anyway, with at most `budget` chip operations: saves pages that
    /// the ECC found weak and pages on bad blocks, collects garbage until the next block's worth of
    /// changes need none, and reads on through the valid pages to see how well they can be read.
    ///
    /// A program or erase that the chip reports as failed, and the mount after a device's error, come on
    /// top, and what the write cache holds. With less than [`gc_step_least`](Self::gc_step_least) it does nothing. Each page is moved
    /// durably, so power may be cut between and inside steps. Where cuts have used up part of the reserve and
    /// the victim is found by reading, that is left to the next change, and `more` stays true.
    pub fn gc_step(&mut self, budget: u32) -> Result<Idle, WriteError<F::Error>> {
        self.settle()?;
        self.write_out()?;
        let start = self.space.operations();
        let spent = |index: &Self| (index.space.operations() - start) as u32;
        loop {
            let left = budget.saturating_sub(spent(self));
            let (page, cause) = match self.due() {
                Due::Nothing => {
                    self.patrol(left)?;
                    return Ok(Idle { operations: spent(self), more: false });
                }
                Due::Later => return Ok(Idle { operations: spent(self), more: true }),
                Due::Move(page, cause) => (page, cause),
            };
            // A page that is to gain room and is moved alone may gain none.
            let least = if cause == Cause::Gain { self.gc_step_least() } else { self.move_cost(0) };
            if left < least {
                if cause == Cause::Weak {
                    self.space.note_weak(page);
                }
                return Ok(Idle { operations: spent(self), more: true });
            }
            let together = cause != Cause::Weak
                && self.moves == Moves::Together
                && left >= self.move_cost(RIDERS)
                && (cause == Cause::Gain || self.space.room() >= self.floor() + RIDERS);
            let victim = together.then(|| self.space.geometry.block_of(page));
            self.refreshed_pages += u64::from(cause == Cause::Weak);
            self.save(page, victim)?;
            self.reserve_touched &= self.space.room() < self.kept();
            self.space.mark_bad_blocks()?;
        }
    }

    /// The next page to move.
    fn due(&mut self) -> Due {
        let room = self.space.room();
        let active = self.space.active_block();
        if room < self.floor() {
            // As the next change would: the same victim, and no other work before it.
            if self.reserve_touched && S::path_pages(self.height) > 1 {
                return Due::Later;
            }
            let victim = self.space.blocks.victim(active);
            return match victim.and_then(|block| self.first_valid(block)) {
                Some(page) if room >= S::path_pages(self.height) => Due::Move(page, Cause::Gain),
                _ => Due::Nothing,
            };
        }
        if let Some(weak) = self.space.take_weak() {
            return Due::Move(weak, Cause::Weak);
        }
        let block = self.space.blocks.failing().or_else(|| {
            let target = self.floor() + self.space.block_pages();
            (room < target).then(|| self.space.blocks.victim(active)).flatten()
        });
        match block.and_then(|block| self.first_valid(block)) {
            Some(page) => Due::Move(page, Cause::Ahead),
            None => Due::Nothing,
        }
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
