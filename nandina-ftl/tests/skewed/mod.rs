//! Skewed work, and what a write of it did to a chip.

use nandina::Cost;
use nandina_sim::{Chip, Counters};

use crate::numbers::Numbers;

/// Runs from the start of a block, a hot eighth, and pages anywhere.
pub struct Skewed {
    pages: u32,
    block_pages: u32,
    /// The next page of a run, and how many are left of it.
    run: (u32, u32),
}

impl Skewed {
    /// Work on so many logical pages; those of a logical block are given, too.
    pub fn new(pages: u32, block_pages: u32) -> Self {
        Self { pages, block_pages, run: (0, 0) }
    }

    /// The page that is written next.
    pub fn next(&mut self, numbers: &mut Numbers) -> u32 {
        let (next, mut left) = self.run;
        let logical = match numbers.below(12) {
            _ if left > 0 && next < self.pages => next,
            0 => {
                left = numbers.below(3 * self.block_pages);
                numbers.below(self.pages) / self.block_pages * self.block_pages
            }
            at if at % 2 == 0 => numbers.below(self.pages / 8),
            _ => numbers.below(self.pages),
        };
        self.run = (logical + 1, left.saturating_sub(1));
        logical
    }
}

/// What a chip did since `before`.
pub fn since(chip: &Chip, before: Counters) -> Cost {
    let done = chip.counters() - before;
    Cost { reads: done.reads, programs: done.programs, erases: done.erases }
}

/// Whether no figure is higher.
pub fn is_within(cost: Cost, most: Cost) -> bool {
    cost.reads <= most.reads && cost.programs <= most.programs && cost.erases <= most.erases
}

/// Operations of the chip.
pub fn operations(cost: Cost) -> u64 {
    cost.reads + cost.programs + cost.erases
}
