//! The most that a change, and the end of a session, can cost in a log.
//!
//! Engines add to this what only they do.

use super::{Cost, Options};
use crate::blocks::{GcPolicy, WearPolicy};
use crate::gc::{Budget, Extent, SPARE_MOVES};
use crate::log::WEAK_MAX;
use crate::log::checkpoint::{self, erases_max};

/// What the worst cost of a change follows from.
pub struct WorstChange<'p> {
    pub extent: Extent,
    pub budget: Budget,
    pub path: u32,
    pub height: u8,
    /// Pages of a checkpoint, or 0.
    pub parts: u32,
    /// Only the end of a session writes one.
    pub ends_sessions: bool,
    pub options: &'p Options,
    pub wear: WearPolicy,
    /// Each level may be divided by itself.
    pub trims: bool,
    /// Merges of nodes before that.
    pub merges: u8,
    /// Reads to find such nodes.
    pub searched: u64,
}

impl WorstChange<'_> {
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
            GcPolicy::Tracked(_) => victims * (block_pages + 1),
            _ => moved,
        };
        let blocks = self.parts.div_ceil(self.extent.block_pages);
        let checkpoint_erases = checkpoints * u64::from(erases_max(blocks)) + voiding;
        let verifies = if self.options.verify { programs + checkpoint_erases } else { 0 };
        let reads = (looked_at + spare_moves) * by_move + way_reads + search + searched + verifies;
        let erases = programs.div_ceil(block_pages) + checkpoint_erases;
        // One more read is that of the erase count of a block whose data may have rested.
        let looks = u64::from(self.wear == WearPolicy::Circular);
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
