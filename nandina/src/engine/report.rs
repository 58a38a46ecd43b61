//! What an index reports about itself: counts, and invariants that do not hold.

use crate::flash::PageNumber;

/// Counts and sizes of an index.
///
/// All numbers are exact; counts since the index was opened end at 2^32 - 1. An engine outside of
/// this crate begins with the default, which is all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Height of the tree, 1 for a single leaf.
    pub height: u8,
    /// Records in the index, as of the last flush.
    pub records: u32,
    /// Pending changes in the write buffer.
    pub waiting_changes: u32,
    /// Nodes above the leaves.
    pub inner_nodes: u32,
    /// Valid pages: those that hold a reachable node.
    pub valid_pages: u32,
    /// Valid pages allowed for a tree of this height.
    ///
    /// At this limit, inserts that need a page are refused.
    pub limit_pages: u32,
    /// Virtual mappings in the table.
    pub mappings: u32,
    /// Virtual mappings that the table has room for; 0 for systems without one.
    pub mappings_max: u32,
    /// Pages that can be programmed before garbage is collected.
    pub free_pages: u32,
    /// Victim blocks collected since the index was opened.
    pub collected_blocks: u64,
    /// Valid pages that garbage collection moved since the index was opened.
    pub moved_pages: u64,
    /// Erase count of the least erased block that is not bad.
    ///
    /// `None` if erases are not counted ([`WearPolicy`](crate::WearPolicy)).
    pub erases_least: Option<u32>,
    /// Mean erase count, rounded down; `None` if erases are not counted.
    pub erases_mean: Option<u32>,
    /// Erase count of the most erased block that is not bad.
    pub erases_most: u32,
    /// Blocks that are bad.
    pub bad_blocks: u32,
    /// Pages rewritten since the index was opened because the ECC corrected much.
    pub refreshed_pages: u64,
    /// Damaged pages newer than the root with which the index was opened.
    ///
    /// The one damaged page in each block that a cut explains is not counted. If this is not 0, the
    /// medium has lost pages, and perhaps acknowledged changes: the index is in the state before
    /// them.
    pub unexplained_pages: u32,
    /// The last mount used a checkpoint and did not have to read every block.
    pub from_checkpoint: bool,
}

/// An invariant that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The page in which the violation was seen.
    pub page: PageNumber,
    /// The invariant that does not hold.
    pub what: &'static str,
}

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.page, self.what)
    }
}
