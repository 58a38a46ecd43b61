//! Wear levelling by erase counts that have to be read from the chip.
//!
//! It chooses the block that is opened next, and the one that is emptied because its data is cold
//! (`blocks/wear.rs` describes the method).

use super::Log;
use crate::blocks::{LAG, LOOK_EVERY, NO_BLOCK, TRIES};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash};
use crate::node::PageFault;

impl<F: Flash> Log<'_, F> {
    /// Whether it is time to look for a block with cold data.
    ///
    /// `pages` is the number of pages that an operation programs. This does not depend on the room
    /// left: a chip on which blocks become free by themselves is never short of room and wears out
    /// all the same.
    pub fn wear_due(&self, pages: u32) -> bool {
        !self.blocks.counts_erases() || self.open.active().1 % LOOK_EVERY < pages
    }

    /// The block whose cold data makes the others wear out, if there is one.
    ///
    /// Cost: at most one read if erases are not counted, and none otherwise.
    pub fn rested(&mut self) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        let rested = self.blocks.rested(self.active_block(), self.sequence as u32);
        let Some(block) = rested.filter(|_| !self.blocks.counts_erases()) else {
            return Ok(rested);
        };
        // On a new chip no block can lag behind.
        if self.blocks.most_erased() <= LAG {
            return Ok(None);
        }
        // A block whose count is lost is emptied like one that lags behind.
        let count = self.read_erase_count(block)?.unwrap_or(0);
        if self.blocks.most_erased() <= count.saturating_add(LAG) {
            // The block is not checked again before the hand returns to it.
            self.blocks.set_young(block);
            return Ok(None);
        }
        Ok(Some(block))
    }

    /// The free block to open next.
    ///
    /// Where erases are not counted, this is the next block in turn that was erased less often than
    /// the most erased one. If the first few are all worn, it is the first of them. Without this
    /// rule, blocks that are often free would wear faster. Cost: one read for each block tried.
    ///
    /// The block with the newest page comes last, until a newer one is programmed.
    pub fn next_spared(
        &mut self,
        filled: Option<BlockNumber>,
    ) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        let newest = Some(self.newest).filter(|&newest| newest != NO_BLOCK);
        let next = self.next_beside(filled.or(newest))?;
        if next.is_none() && newest.is_some() { self.next_beside(filled) } else { Ok(next) }
    }

    /// The free block to open next, or the error that there is none.
    pub fn next_block(
        &mut self,
        filled: Option<BlockNumber>,
    ) -> Result<BlockNumber, Fault<F::Error>> {
        self.next_spared(filled)?.ok_or_else(|| self.no_room(0))
    }

    /// The free block to open next that is not `filled`.
    #[inline(never)]
    fn next_beside(
        &mut self,
        filled: Option<BlockNumber>,
    ) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        let first = self.blocks.next_free(filled, &[]);
        if self.blocks.counts_erases() || self.blocks.most_erased() <= LAG {
            return Ok(first);
        }
        let (mut tried, mut next) = ([NO_BLOCK; TRIES], first);
        for at in 0..TRIES {
            let Some(block) = next else { break };
            let count = self.next_erase_count(block)?;
            // Saves reading the count again for the erase.
            self.blocks.expect_erase(block, count);
            if count <= self.blocks.most_erased() {
                return Ok(next);
            }
            tried[at] = block;
            next = self.blocks.next_free(filled, &tried[..=at]);
        }
        Ok(first)
    }

    /// The erase count that `block` will have after its next erase.
    ///
    /// Cost: one read, if erases are not counted.
    #[inline(always)]
    pub fn next_erase_count(&mut self, block: BlockNumber) -> Result<u32, Fault<F::Error>> {
        if self.blocks.counts_erases() {
            return Ok(self.blocks.erase_count(block).saturating_add(1));
        }
        if let Some(count) = self.blocks.expected_erase(block) {
            return Ok(count);
        }
        let count = self.read_erase_count(block)?;
        // Never written, or unknown: assume the wear of the block opened before it.
        Ok(count.map_or(self.blocks.last_erases().max(1), |count| count.saturating_add(1)))
    }

    /// The erase count that the first page of `block` records. Cost: one read.
    ///
    /// An unreadable page is not read again: a lost count does no harm, and idle steps and changes
    /// count this one read.
    #[inline(never)]
    fn read_erase_count(&mut self, block: BlockNumber) -> Result<Option<u32>, Fault<F::Error>> {
        let Some(frame) = self.frames.idle() else {
            return Ok(None);
        };
        Ok(match self.read_page_within(self.page_at(block, 0), frame, 1)? {
            Ok(()) => Some(self.layout().erase_count(self.frames.bytes(frame))),
            Err(PageFault::Version(_) | PageFault::Appended) => Some(0),
            Err(PageFault::Erased | PageFault::Damaged | PageFault::Unreadable) => None,
        })
    }
}
