//! The most that a call can cost: the parts that stores contribute to a plan.

use super::torn_pages::{BEGUN_ERASE_PAGES, TORN_MAX, TRIES};
use crate::engine::Cost;
use crate::flash::Geometry;
use crate::log::checkpoint;
use crate::log::{LOOKS, LOST_MAX};

/// Blocks at which a mount looks to see whether their erase was begun.
const BEGUN_ERASES: u64 = 1 + TORN_MAX as u64;

/// What the worst cost of opening an index follows from.
pub struct Opening {
    pub geometry: Geometry,
    pub block_pages: u32,
    pub height: u8,
    /// Pages of a path from the root to a leaf.
    pub path: u32,
    pub leaves: u64,
    pub inner_nodes: u64,
    /// Reads to see each inner node once.
    pub inner_reads: u64,
    /// Blocks that one operation can span.
    pub spanned: u64,
    /// Pages of a checkpoint, or 0.
    pub checkpoint_pages: u32,
    /// The most that a change costs after cuts.
    pub after_cuts: Cost,
}

impl Opening {
    /// The cost of a mount that finds the tree with this many `reads`.
    ///
    /// What may be torn is written anew, by way of a collection if one is due; and a mount begins
    /// again for each page that turns out to be torn.
    pub fn finding(&self, reads: u64) -> Cost {
        let reads = reads * u64::from(1 + TRIES) + self.after_cuts.reads;
        Cost { reads, ..self.after_cuts }
    }

    /// Blocks of a checkpoint, or 0.
    pub fn checkpoint_blocks(&self) -> u32 {
        self.checkpoint_pages.div_ceil(self.block_pages)
    }

    /// Reads to find a checkpoint that leads nowhere.
    pub fn search_in_vain(&self) -> u64 {
        checkpoint::search_in_vain(self.checkpoint_pages, self.block_pages)
    }

    /// The cost of a mount where each page commits.
    ///
    /// A node is read `looks` times more before it is moved.
    /// Every page is read for each level and again for what moved, or every node is read three
    /// times; each node twice at most where buffers are few; and the first pages of all blocks.
    pub fn where_pages_commit(&self, looks: u64) -> Cost {
        let (pages, blocks) = (u64::from(self.geometry.pages()), u64::from(self.geometry.blocks));
        let (height, nodes) = (u64::from(self.height), self.leaves + self.inner_nodes);
        let reads = blocks + 2 * height * pages + 5 * height * nodes;
        // Twice, for the index before the last commit as well; and every page to see which may
        // be torn, and those; and some pages of the blocks of these.
        let blank_pages = u64::from(LOST_MAX) + 2;
        let reads = 2 * reads + 5 * pages + (blank_pages * (LOOKS + 1) + 4) * blocks;
        let begun = BEGUN_ERASE_PAGES + u64::from(self.block_pages);
        let reads = reads + BEGUN_ERASES * begun * (LOOKS + 1);
        let found = self.finding(reads);
        // All that was programmed since the last mount may be written anew.
        let written = nodes * u64::from(self.path + 1);
        Cost {
            reads: found.reads + nodes * (4 + 4 * height + looks),
            programs: found.programs + written,
            erases: found.erases + written / u64::from(self.block_pages) + blocks,
        }
    }
}
