//! What an index does while its device is idle: garbage is collected before it has to be, in steps of
//! bounded length, and pages that nobody reads are read, so that rot is found while the ECC can mend it.

use super::Index;
use crate::blocks::Wear;
use crate::error::{Fault, WriteError};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::place::Placement;
use crate::space::{Moves, RIDERS};

/// What [`Index::gc_step`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// Chip operations used.
    pub operations: u32,
    /// There is more that such steps can do: call again when there is time.
    pub more: bool,
    /// Cuts have used up part of the reserve, and the victim has to be found by reading: that is left to the next
    /// change.
    pub left_to_change: bool,
}

/// Why a page is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The next change has no room.
    Gain,
    /// The ECC found it weak.
    Weak,
    /// Its block is bad.
    Bad,
    /// Its block is to be erased ahead of need.
    Ahead,
    /// Its block has rested while others wore out.
    Rested,
}

enum Due {
    Nothing,
    /// What only a change can do.
    Change,
    Move(PageNumber, Cause),
}

/// Chip operations to move one page of which `riders` others are carried along.
pub(crate) fn move_cost(
    height: u8,
    path_pages: u32,
    riders: u32,
    verify: bool,
    wear: Wear,
    block_pages: u32,
) -> u32 {
    // The page, its way down, nodes displaced from their buffers, and the riders; then erases, and the
    // mark on a bad block.
    let reads = 1 + 2 * u32::from(height) + riders;
    let programs = path_pages + riders;
    let erases = programs / block_pages + 2;
    reads + programs * (1 + u32::from(verify)) + erases * (1 + wear.reads_by_erase())
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
        let (verify, wear) = (self.space.verifies(), self.space.blocks.wear());
        move_cost(self.height, path, riders, verify, wear, self.space.block_pages())
            + self.space.checkpoint_cost()
    }

    /// Does part of the work that is due anyway, with at most `budget` chip operations: saves pages
    /// that the ECC found weak and pages on bad blocks, collects garbage until the next block's
    /// worth of changes need none, erases the block that is opened next, and, where the chip can
    /// [tell](Flash::reports_corrections), reads on through the valid pages to see how well they
    /// can be read.
    ///
    /// What waits in the write buffer goes on waiting.
    ///
    /// A program or erase that the chip reports as failed, and the mount after a device's error, come on
    /// top, and what the write cache holds. With less than [`gc_step_least`](Self::gc_step_least) it does nothing. Each page is moved
    /// durably, so power may be cut between and inside steps. As long as nothing is changed in between, there is an
    /// end to it: blocks that gain nothing are not collected.
    pub fn gc_step(&mut self, budget: u32) -> Result<Idle, WriteError<F::Error>> {
        Ok(self.step(budget)?)
    }

    fn step(&mut self, budget: u32) -> Result<Idle, Fault<F::Error>> {
        self.settle()?;
        self.write_out()?;
        let start = self.space.operations();
        let spent = |index: &Self| index.space.operations().wrapping_sub(start);
        let ended = |index: &Self, more, left_to_change| Idle {
            operations: spent(index),
            more,
            left_to_change,
        };
        let ride = self.move_cost(RIDERS);
        loop {
            let left = budget.saturating_sub(spent(self));
            let due = self.due(budget >= ride, left > self.move_cost(0))?;
            let left = budget.saturating_sub(spent(self));
            let (page, cause) = match due {
                Due::Nothing => {
                    // After that erase another block's data may have rested too long.
                    if left > self.space.blocks.wear().reads_by_erase()
                        && self.space.prepare_block()?
                    {
                        continue;
                    }
                    self.patrol(budget.saturating_sub(spent(self)))?;
                    return Ok(ended(self, false, false));
                }
                Due::Change => return Ok(ended(self, false, true)),
                Due::Move(page, cause) => (page, cause),
            };
            // A page that is to gain room and is moved alone may gain none.
            let least = if cause == Cause::Gain { self.gc_step_least() } else { self.move_cost(0) };
            if left < least {
                if cause == Cause::Weak {
                    self.space.note_weak(page);
                }
                return Ok(ended(self, true, false));
            }
            if self.begin_session()? {
                self.space.note_weak(page);
                continue;
            }
            let together = !matches!(cause, Cause::Weak | Cause::Rested)
                && self.moves == Moves::Together
                && left >= self.move_cost(RIDERS)
                && (cause == Cause::Gain || self.space.room() >= self.floor() + RIDERS);
            if cause == Cause::Ahead
                && !together
                && !self.gains(self.space.geometry().block_of(page), false)
            {
                return Ok(ended(self, true, false));
            }
            let victim = together.then(|| self.space.geometry().block_of(page));
            self.refreshed_pages =
                self.refreshed_pages.saturating_add((cause == Cause::Weak).into());
            self.save(page, victim)?;
            self.reserve_touched &= self.space.room() < self.kept();
            self.space.mark_bad_blocks()?;
        }
    }

    /// Whether emptying `block` writes fewer pages than it makes free.
    fn gains(&self, block: BlockNumber, together: bool) -> bool {
        let moves = if together { self.moves } else { Moves::Alone };
        let valid = self.space.blocks.valid_in(block);
        let written = moves.pages(valid, self.moved_path(), self.inner_nodes);
        // Moved together only as long as there is room: then for all of it.
        let whole = moves == Moves::Alone || self.space.room() >= self.floor() + RIDERS + written;
        whole && written < self.space.block_pages()
    }

    /// The next page to move; `ride` if a step can carry along what stands beside it, `look` if it
    /// can look for data that has rested, which takes a read, and move a page of it.
    fn due(&mut self, ride: bool, look: bool) -> Result<Due, Fault<F::Error>> {
        let room = self.space.room();
        if room < self.floor() {
            // As the next change would: the same victim, and no other work before it.
            if (self.reserve_touched && S::path_pages(self.height) > 1)
                || self.space.blocks.searches()
            {
                return Ok(Due::Change);
            }
            let victim = self.next_victim()?;
            return Ok(match self.first_valid(victim)? {
                Some(page) if room >= S::path_pages(self.height) => Due::Move(page, Cause::Gain),
                _ => Due::Nothing,
            });
        }
        if let Some(weak) = self.space.take_weak() {
            return Ok(Due::Move(weak, Cause::Weak));
        }
        let bad = self.space.blocks.failing();
        if let Some(page) = self.first_valid(bad)? {
            return Ok(Due::Move(page, Cause::Bad));
        }
        if look && self.space.wear_due(S::path_pages(self.height)) {
            let rested = self.space.rested()?;
            if let Some(page) = self.first_valid(rested)? {
                return Ok(Due::Move(page, Cause::Rested));
            }
        }
        if room >= self.floor() + self.space.block_pages() {
            return Ok(Due::Nothing);
        }
        let victim = self
            .next_victim()?
            .filter(|&victim| self.gains(victim, false) || (ride && self.gains(victim, true)));
        Ok(match self.first_valid(victim)? {
            Some(page) => Due::Move(page, Cause::Ahead),
            None => Due::Nothing,
        })
    }

    /// The first valid page of a block; none where it would have to be searched for, which takes longer than steps do.
    fn first_valid(
        &mut self,
        block: Option<BlockNumber>,
    ) -> Result<Option<PageNumber>, Fault<F::Error>> {
        let Some(block) = block.filter(|_| !self.space.blocks.searches()) else {
            return Ok(None);
        };
        Ok(self.next_valid(block, 0)?.map(|(page, _)| page))
    }

    /// Reads at most `reads` valid pages, going on where the last call ended. Without an ECC that
    /// reports what it corrects there is nothing to find.
    fn patrol(&mut self, mut reads: u32) -> Result<(), Fault<F::Error>> {
        if !self.space.reports_corrections() {
            return Ok(());
        }
        let pages = self.space.geometry().pages();
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
