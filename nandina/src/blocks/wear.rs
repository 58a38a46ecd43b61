//! Wear levelling: which block is opened next, and which holds cold data.
//!
//! Where erases are counted, the least worn free block is opened, and a block is emptied when
//! others were erased much more often. Without counts the chip is a ring: blocks are opened in
//! turn, so that none is erased twice before all others were, except the full ones (VMTree paper,
//! section 4.4). A clock takes care of these. Its hand goes round once while the chip is written
//! once. If a block was not opened since the hand last passed it, its erase count is read, and the
//! block is emptied if the count lags behind. A block that is already among the most erased ones is
//! opened only if the next few are, too.

use super::Blocks;

/// How erases are spread over the blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WearPolicy {
    /// By erase counts, at four bytes of RAM for each block.
    ///
    /// The free block that was erased least is opened next.
    Counted,
    /// In turn, without erase counts in RAM and without checkpoints.
    ///
    /// It takes a bit of RAM for each block, a page buffer for systems that write paths, and a read
    /// of the count stored in the block for each erase. The next free block in turn is opened next.
    /// The next block to collect is the next in turn that gains room
    /// ([`GcPolicy::Fewest`](crate::GcPolicy::Fewest) does not look further).
    Circular,
}

impl WearPolicy {
    /// Extra reads for each erase.
    ///
    /// They read the counts of the blocks that are tried, and a page that had to leave its page
    /// buffer for them.
    pub const fn reads_by_erase(self) -> u32 {
        match self {
            Self::Counted => 0,
            Self::Circular => TRIES as u32 + 1,
        }
    }
}

/// A block is emptied for wear alone if another was erased this much more often.
///
/// This is the threshold where erases are counted.
pub const WEAR_GAP: u32 = 8;

/// Programs between two searches for a block with cold data.
pub const LOOK_EVERY: u32 = 8;

/// Free blocks tried, where erases are not counted, for one that is less worn.
pub const TRIES: usize = 3;

/// The threshold that takes the place of `WEAR_GAP` where erases are not counted.
///
/// It is lower because a lag is noticed only when the clock hand comes by.
pub const LAG: u32 = 4;

/// The mean of some numbers, rounded down.
///
/// It divides numbers of 32 bits only: a division of 64 bits takes half a kilobyte of code on small
/// microcontrollers.
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
    /// Least and mean erase counts of the good blocks, if erases are counted.
    ///
    /// The mean is rounded down.
    pub fn least_and_mean(&self) -> Option<(u32, u32)> {
        if !self.counts_erases() {
            return None;
        }
        let good = self.all().filter(|&block| !self.is_bad(block));
        let counts = good.map(|block| self.erase_count(block));
        Some((counts.clone().min().unwrap_or(0), mean(counts).unwrap_or(0)))
    }

    /// Gives blocks of unknown wear the mean erase count of the others.
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

    /// The highest erase count of a block.
    pub fn most_erased(&self) -> u32 {
        let good = self.all().filter(|&block| !self.is_bad(block));
        let counted = good.map(|block| self.erase_count(block)).max();
        counted.filter(|_| self.counts_erases()).unwrap_or(self.most_erased)
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
