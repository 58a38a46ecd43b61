//! How worn blocks are spared: which block is opened next, and which one is emptied because its
//! data rests.
//!
//! Where erases are counted, the least worn free block is opened, and a block is emptied when
//! others were erased much more often. Without counts the chip is a ring: blocks are opened in
//! turn, so that none is erased twice before the others were, but those that are full (VMTree
//! paper, section 4.4). A clock sees to these: its hand goes once round while the chip is written
//! once. Where a block was not opened since the hand passed it, its erase count is read, and it is
//! emptied if the count is behind. A block that was erased as often as any is opened only if the
//! next few are too.

use super::Blocks;

/// How blocks are spared that are worn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wear {
    /// By the erases of each, which takes four bytes of RAM for each block. The next block to open
    /// is the free one that was erased least.
    Counted,
    /// In turn, which takes a bit of RAM for each block, for systems that write paths a page
    /// buffer, and a read for each erase: of the count that stands in the block. The next block to
    /// open is the free one that follows, and so is the next one to collect, if it gains room
    /// ([`Victims::Fewest`](crate::Victims::Fewest) does not look further). Not with checkpoints.
    Circular,
}

impl Wear {
    /// Reads for each erase: of the counts of the blocks that are tried, and of a page that had to
    /// leave its page buffer for them.
    pub const fn reads_by_erase(self) -> u32 {
        match self {
            Self::Counted => 0,
            Self::Circular => TRIES as u32 + 1,
        }
    }
}

/// A block is collected for wear alone when another was erased this much more often.
pub const WEAR_GAP: u32 = 8;

/// Programs from one look at the erase counts of all blocks to the next.
pub const LOOK_EVERY: u32 = 8;

/// Blocks that are tried, where erases are not counted, for one that was not erased as often as
/// any.
pub const TRIES: usize = 3;

/// The same where erases are not counted: less, for it is found out only when the hand of the clock
/// comes by.
pub const LAG: u32 = 4;

/// The mean of some numbers, rounded down. It divides numbers of 32 bits only: those of 64 take
/// half a kilobyte of code on small microcontrollers.
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
