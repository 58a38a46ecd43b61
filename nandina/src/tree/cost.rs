//! The most that a call can cost: the parts that stores contribute to a plan.

use super::torn_pages::{BEGUN_ERASE_PAGES, TORN_MAX, TRIES};
use crate::blocks::{Victims, Wear};
use crate::engine::{Cost, Options};
use crate::flash::Geometry;
use crate::gc::SPARE_MOVES;
use crate::log::checkpoint::{self, erases_max};
use crate::log::{LOOKS, LOST_MAX, WEAK_MAX};
use crate::space::{Budget, Extent};

/// What the worst cost of a change follows from.
pub struct Bounds<'p> {
    pub extent: Extent,
    pub budget: Budget,
    pub path: u32,
    pub height: u8,
    /// Pages of a checkpoint, or 0.
    pub parts: u32,
    /// Only the end of a session writes one.
    pub ends_sessions: bool,
    pub options: &'p Options,
    pub wear: Wear,
    /// Each level may be divided by itself.
    pub trims: bool,
    /// Merges of nodes before that.
    pub merges: u8,
    /// Reads to find such nodes.
    pub searched: u64,
}

impl Bounds<'_> {
    /// Ways down and up again in one change, and the reads that they cost.
    ///
    /// Each level may be split by itself, and nodes are merged before. On the way up a node may
    /// have left its page buffer, and so may the one above that records where it ends.
    pub fn ways(&self) -> (u64, u64) {
        let (height, merges) = (u64::from(self.height), u64::from(self.merges));
        let ways = if self.trims { height + 1 } else { 1 } + merges;
        (ways, ways * (3 * height + 2) + self.searched)
    }

    /// A change in a log that finds `short_pages` too few pages free.
    pub fn change_in_log(&self, short_pages: u32, reserve_touched: bool) -> Cost {
        let (height, merges) = (u64::from(self.height), u64::from(self.merges));
        let (ways, way_reads) = self.ways();
        let path = u64::from(self.path);
        let gain = self.extent.gain();
        // What each of them writes beside the halves of the nodes that are divided.
        let ways_pages = (ways as u32).saturating_mul(self.path);
        let victims = u64::from((short_pages + ways_pages).div_ceil(gain));
        let moved = victims * u64::from(self.extent.block_pages - gain);
        let spare_moves = 2 * u64::from(SPARE_MOVES) + WEAK_MAX as u64;
        let operation = u64::from(ways_pages) + 2 * merges + height + 1;
        let staged = self.options.write_cache as u64;
        let programs = moved + spare_moves * path + operation + staged;
        let block_pages = u64::from(self.extent.block_pages);
        // At most one for each block that is opened, and the one that was due before.
        let (checkpoints, voiding) = match self.parts {
            0 => (0, 0),
            _ if self.ends_sessions => (0, u64::from(checkpoint::VOIDING)),
            _ => (programs.div_ceil(block_pages) + 2, 0),
        };
        let programs = programs + checkpoints * u64::from(self.parts + 1);
        // Each move reads its page, goes down to it, and may find nodes displaced from their
        // buffers. Once the reserve is touched, a victim is looked for among all valid pages.
        let by_move = 1 + 2 * height;
        let pages = block_pages * u64::from(self.extent.blocks);
        let search = match (reserve_touched && path > 1, self.options.validity.searches()) {
            (false, _) => 0,
            (true, false) => victims * u64::from(self.budget.limit_pages),
            (true, true) => victims * pages * (by_move + 1),
        };
        // Where the pages of a block are searched for, all are looked at before one is moved; of a
        // bad block, and of one whose data rests, too.
        let searched = if self.options.validity.searches() {
            (victims + 2) * block_pages * by_move
        } else {
            0
        };
        // Where pages are found by hints, every page of a victim may be looked at.
        let looked_at = match self.options.victims {
            Victims::Tracked(_) => victims * (block_pages + 1),
            _ => moved,
        };
        let blocks = self.parts.div_ceil(self.extent.block_pages);
        let checkpoint_erases = checkpoints * u64::from(erases_max(blocks)) + voiding;
        let verifies = if self.options.verify { programs + checkpoint_erases } else { 0 };
        let reads = (looked_at + spare_moves) * by_move + way_reads + search + searched + verifies;
        let erases = programs.div_ceil(block_pages) + checkpoint_erases;
        // One more read is that of the erase count of a block whose data may have rested.
        let looks = u64::from(self.wear == Wear::Circular);
        let reads = reads + looks + erases * u64::from(self.wear.reads_by_erase());
        Cost { reads, programs, erases }
    }
}

/// What it costs to end a session with a page, and a checkpoint before it.
///
/// The checkpoint has `parts` pages; 0 means none. `voids` says whether the page may make an
/// earlier checkpoint void. No block fails. The root is read before the page is programmed.
pub const fn ending_cost(
    (parts, voids): (u32, bool),
    block_pages: u32,
    verify: bool,
    reads_by_erase: u32,
) -> Cost {
    let erases = match parts {
        0 if voids => 1 + checkpoint::VOIDING,
        0 => 1,
        _ => 1 + erases_max(parts.div_ceil(block_pages)),
    };
    let programs = parts + 2;
    let verifies = if verify { programs + erases } else { 0 };
    let reads = 1 + verifies + erases * reads_by_erase;
    Cost { reads: reads as u64, programs: programs as u64, erases: erases as u64 }
}

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
