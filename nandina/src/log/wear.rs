//! Which block is opened next, and which is emptied because its data rests, as far as the count of
//! its erases has to be read for that (`blocks/wear.rs` says how worn blocks are spared).

use super::Log;
use crate::blocks::{LAG, LOOK_EVERY, NO_BLOCK, TRIES};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash};
use crate::node::PageFault;

impl<F: Flash> Log<'_, F> {
    /// Whether it is time to look for a block whose data has rested, where operations program so
    /// many `pages`. A chip on which blocks become free of themselves is never short of room and
    /// wears out all the same.
    pub fn wear_due(&self, pages: u32) -> bool {
        !self.blocks.counts_erases() || self.active.1 % LOOK_EVERY < pages
    }

    /// The block whose data has rested so long that the others wear out around it, if there is one.
    /// Cost: one read or none if erases are not counted.
    pub fn rested(&mut self) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        let rested = self.blocks.rested(self.active_block(), self.sequence as u32);
        let Some(block) = rested.filter(|_| !self.blocks.counts_erases()) else {
            return Ok(rested);
        };
        // On a new chip none can be behind.
        if self.blocks.most_erased() <= LAG {
            return Ok(None);
        }
        // One whose count is lost is emptied like one that is behind.
        let count = self.read_erase_count(block)?.unwrap_or(0);
        if self.blocks.most_erased() <= count.saturating_add(LAG) {
            // It is not looked at again until the hand comes back.
            self.blocks.set_young(block);
            return Ok(None);
        }
        Ok(Some(block))
    }

    /// The free block to open next. If erases are not counted, it is the next in turn that was not
    /// erased as often as any, if one of a few was not: blocks that are often free would be ahead
    /// else. Cost: a read for each of these.
    #[inline(never)]
    pub fn next_spared(
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
            // So it is not read again before the erase.
            self.blocks.expect_erase(block, count);
            if count <= self.blocks.most_erased() {
                return Ok(next);
            }
            tried[at] = block;
            next = self.blocks.next_free(filled, &tried[..=at]);
        }
        Ok(first)
    }

    /// How often `block` will have been erased once it is erased again. Cost: one read, if erases
    /// are not counted.
    #[inline(always)]
    pub fn next_erase_count(&mut self, block: BlockNumber) -> Result<u32, Fault<F::Error>> {
        if self.blocks.counts_erases() {
            return Ok(self.blocks.erase_count(block).saturating_add(1));
        }
        if let Some(count) = self.blocks.expected_erase(block) {
            return Ok(count);
        }
        let count = self.read_erase_count(block)?;
        // Never written, or nobody knows: it is as worn as the one that was opened before it.
        Ok(count.map_or(self.blocks.last_erases().max(1), |count| count.saturating_add(1)))
    }

    /// How often `block` was erased, as its first page says. Cost: one read.
    #[inline(never)]
    fn read_erase_count(&mut self, block: BlockNumber) -> Result<Option<u32>, Fault<F::Error>> {
        let Some(frame) = self.frames.idle() else {
            return Ok(None);
        };
        Ok(match self.read_page(self.page_at(block, 0), frame)? {
            Ok(()) => Some(self.layout().erase_count(self.frames.bytes(frame))),
            Err(PageFault::Version(_) | PageFault::Appended { .. }) => Some(0),
            Err(PageFault::Erased | PageFault::Damaged | PageFault::Unreadable) => None,
        })
    }
}
