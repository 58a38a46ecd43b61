//! How worn blocks are spared: which block is opened next, and which one is emptied because its data rests.
//!
//! Where erases are counted, the least worn free block is opened, and a block is emptied when
//! others were erased much more often. Without counts the chip is a ring: blocks are opened in
//! turn, so that none is erased twice before the others were, but those that are full (VMTree
//! paper, section 4.4). A clock sees to these: its hand goes once round while the chip is written
//! once. Where a block was not opened since the hand passed it, its erase count is read, and it is
//! emptied if the count is behind. A block that was erased as often as any is opened only if the
//! next few are too.

use super::blocks::Mark;
use super::{Blocks, Kind, NO_BLOCK, Space};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash};
use crate::node::PageFault;

/// How blocks are spared that are worn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wear {
    /// By the erases of each, which takes four bytes of RAM for each block. The next block to open is the free one that
    /// was erased least.
    Counted,
    /// In turn, which takes a bit of RAM for each block, for systems that write paths a page buffer, and a read for each
    /// erase: of the count that stands in the block. The next block to open is the free one that follows, and so is the next one to collect, if it gains room
    /// ([`Victims::Fewest`](crate::Victims::Fewest) does not look further). Not with checkpoints.
    Circular,
}

impl Wear {
    /// Reads for each erase: of the counts of the blocks that are tried, and of a page that had to
    /// leave its page buffer for them.
    pub(crate) const fn reads_by_erase(self) -> u32 {
        match self {
            Self::Counted => 0,
            Self::Circular => TRIES as u32 + 1,
        }
    }
}

/// A block is collected for wear alone when another was erased this much more often.
const WEAR_GAP: u32 = 8;

/// Programs from one look at the erase counts of all blocks to the next.
const LOOK_EVERY: u32 = 8;

/// Blocks that are tried, where erases are not counted, for one that was not erased as often as
/// any.
const TRIES: usize = 3;

/// The same where erases are not counted: less, for it is found out only when the hand of the clock
/// comes by.
const LAG: u32 = 4;

/// The mean of some numbers, rounded down. It divides numbers of 32 bits only: those of 64 take half a kilobyte of code
/// on small microcontrollers.
fn mean(numbers: impl Iterator<Item = u32> + Clone) -> Option<u32> {
    let count = numbers.clone().count() as u32;
    if count == 0 {
        return None;
    }
    let (mean, _) = numbers.fold((0, 0), |(mean, rest), number| {
        let rest = rest + number % count;
        (mean + number / count + u32::from(rest >= count), rest % count)
    });
    Some(mean)
}

impl Blocks<'_> {
    /// How worn blocks are spared.
    pub const fn wear(&self) -> Wear {
        self.wear
    }

    /// Every block, from the one on that is next in turn.
    pub fn in_turn(&self) -> impl Iterator<Item = BlockNumber> + use<> {
        let (count, last) = (self.count(), self.last.0.0.min(self.count() - 1));
        let first = if self.counts_erases() || last + 1 == count { 0 } else { last + 1 };
        (first..first + count).map(move |at| BlockNumber(if at < count { at } else { at - count }))
    }

    /// The free block to open next, which is none of `others`. The block just filled is not free: its pages may
    /// belong to an operation that has not committed.
    #[inline(never)]
    pub fn next_free(
        &self,
        filled: Option<BlockNumber>,
        others: &[BlockNumber],
    ) -> Option<BlockNumber> {
        let mut best = None;
        for block in self.in_turn() {
            if !self.is_empty(block) || Some(block) == filled || others.contains(&block) {
                continue;
            }
            if !self.counts_erases() {
                return Some(block);
            }
            let count = self.erase_count(block);
            if best.is_none_or(|(_, least)| count < least) {
                best = Some((block, count));
            }
        }
        best.map(|(block, _)| block)
    }

    /// The block with the fewest valid pages of those that may be collected, and of these the least worn.
    pub fn victim(&self, active: Option<BlockNumber>) -> Option<BlockNumber> {
        let mut best = None;
        for block in self.in_turn() {
            if self.is_victim(block, active) {
                let rank = (self.valid_in(block), self.erase_count(block));
                if best.is_none_or(|(_, least)| rank < least) {
                    best = Some((block, rank));
                }
            }
        }
        best.map(|(block, _)| block)
    }

    /// The block is erased for the `count`th time.
    pub fn note_erase(&mut self, block: BlockNumber, count: u32) {
        self.set_erase_count(block, count);
        self.erased = (block, count);
    }

    /// The block, which was erased, is written from now on.
    pub fn note_open(&mut self, block: BlockNumber) {
        self.last = (block, self.erase_count(block));
        self.erased = (NO_BLOCK, 0);
        if !self.counts_erases() {
            self.set_mark(block, Mark::Young, true);
        }
    }

    /// The newest pages stand in `block`, which was erased `count` times.
    pub fn set_last(&mut self, block: BlockNumber, count: u32) {
        self.last = (block, count);
    }

    /// Whether the block can be emptied because its data rests.
    fn may_rest(&self, block: BlockNumber, active: Option<BlockNumber>) -> bool {
        Some(block) != active
            && !self.is_bad(block)
            && !self.is_stuck(block)
            && self.valid_in(block) > 0
    }

    /// The block whose data has rested so long that the others wear out around it, if there is one, when the program
    /// numbered `sequence` is next. Without counts the block whose data may have.
    fn rested(&mut self, active: Option<BlockNumber>, sequence: u32) -> Option<BlockNumber> {
        if self.counts_erases() {
            return self
                .all()
                .filter(|&block| self.may_rest(block, active))
                .min_by_key(|&block| self.erase_count(block))
                .filter(|&block| self.most_erased - self.erase_count(block) > WEAR_GAP);
        }
        // The hand is where the count of programs puts it, so that no mount puts it back.
        let blocks = self.count();
        let hand = sequence / self.safe_pages() % blocks;
        let (before, hand) = (BlockNumber((hand + blocks - 1) % blocks), BlockNumber(hand));
        self.set_mark(before, Mark::Young, false);
        Some(hand).filter(|&hand| !self.has(hand, Mark::Young) && self.may_rest(hand, active))
    }

    /// Least and mean erases (rounded down) of a good block, if erases are counted.
    pub fn least_and_mean(&self) -> Option<(u32, u32)> {
        if !self.counts_erases() {
            return None;
        }
        let good = self.all().filter(|&block| !self.is_bad(block));
        let counts = good.map(|block| self.erase_count(block));
        Some((counts.clone().min().unwrap_or(0), mean(counts).unwrap_or(0)))
    }

    /// Blocks of which nothing is known are taken to be as worn as the others.
    pub fn guess_erase_counts(&mut self) {
        let known = self.all().map(|block| self.erase_count(block)).filter(|&count| count > 0);
        if self.counts_erases()
            && let Some(mean) = mean(known)
        {
            for block in self.all() {
                if self.erase_count(block) == 0 {
                    self.set_erase_count(block, mean);
                }
            }
        }
    }

    /// Most erases of a block.
    pub fn most_erased(&self) -> u32 {
        let good = self.all().filter(|&block| !self.is_bad(block));
        let counted = good.map(|block| self.erase_count(block)).max();
        counted.filter(|_| self.counts_erases()).unwrap_or(self.most_erased)
    }
}

impl<F: Flash, K: Kind> Space<'_, F, K> {
    /// Whether it is time to look for a block whose data has rested, where operations program so
    /// many `pages`. A chip on which blocks become free of themselves is never short of room and
    /// wears out all the same.
    pub(crate) fn wear_due(&self, pages: u32) -> bool {
        !K::IN_PLACE && (!self.blocks.counts_erases() || self.active.1 % LOOK_EVERY < pages)
    }

    /// The block whose data has rested so long that the others wear out around it, if there is one.
    /// Cost: one read or none if erases are not counted.
    pub(crate) fn rested(&mut self) -> Result<Option<BlockNumber>, Fault<F::Error>> {
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
            self.blocks.set_mark(block, Mark::Young, true);
            return Ok(None);
        }
        Ok(Some(block))
    }

    /// The free block to open next. If erases are not counted, it is the next in turn that was not
    /// erased as often as any, if one of a few was not: blocks that are often free would be ahead
    /// else. Cost: a read for each of these.
    #[inline(never)]
    pub(super) fn next_spared(
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
            self.blocks.erased = (block, count);
            if count <= self.blocks.most_erased() {
                return Ok(next);
            }
            tried[at] = block;
            next = self.blocks.next_free(filled, &tried[..=at]);
        }
        Ok(first)
    }

    /// How often `block` will have been erased once it is erased again. Cost: one read, if erases are not counted.
    #[inline(always)]
    pub(super) fn next_erase_count(&mut self, block: BlockNumber) -> Result<u32, Fault<F::Error>> {
        if self.blocks.counts_erases() {
            return Ok(self.blocks.erase_count(block).saturating_add(1));
        }
        if self.blocks.erased.0 == block {
            return Ok(self.blocks.erased.1);
        }
        let count = self.read_erase_count(block)?;
        // Never written, or nobody knows: it is as worn as the one that was opened before it.
        Ok(count.map_or(self.blocks.last.1.max(1), |count| count.saturating_add(1)))
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

#[cfg(test)]
mod tests {
    #[test]
    fn a_mean_is_exact_however_large_the_numbers_are() {
        assert_eq!(super::mean([].into_iter()), None);
        assert_eq!(super::mean([7].into_iter()), Some(7));
        assert_eq!(super::mean([1, 2, 2].into_iter()), Some(1));
        assert_eq!(super::mean([u32::MAX, u32::MAX - 1, u32::MAX].into_iter()), Some(u32::MAX - 1));
    }
}
