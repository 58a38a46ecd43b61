//! How many leaves there may be.
//!
//! Any two neighbouring leaves hold more records than fit in one, or an insert merges some before
//! it adds a leaf. So the number of leaves follows from the number of records. Nothing is read or
//! written here.

use super::READS_MAX;
use crate::flash::Geometry;
use crate::gc::{Budget, Extent, RelocationMode};
use crate::log::checkpoint;

/// Blocks beside the reserve: a session that is cut leaves one half written.
const SESSION_BLOCKS: u32 = 1;

/// Pages that are free beside what [`budget`] says, for settling after a cut.
pub(super) const fn settling_pages(block_pages: u32) -> u32 {
    SESSION_BLOCKS * block_pages
}

/// The fewest leaves for which there must be room: more than one can be split.
pub(super) const LIMIT_MIN: u32 = 2;

/// Chip operations to move a page.
///
/// The page is read, in up to the allowed number of attempts, and programmed into a block that may
/// have to be erased. A session may begin before, and a bad block may be marked.
pub(super) const fn move_cost(verify: bool, reads_by_erase: u32) -> u32 {
    READS_MAX + 2 * (1 + verify as u32) + 3 * (1 + reads_by_erase)
}

/// The limits on a chip of which `blocks` blocks can be counted on.
pub(super) fn budget(block_pages: u32, blocks: u32) -> (Extent, Budget) {
    let extent = Extent { block_pages, blocks: blocks.saturating_sub(SESSION_BLOCKS) };
    // A page moves by itself, without a path.
    let budget = Budget::new(&extent, RelocationMode::Alone, 1, (1, 1), 0);
    // A session page that lists suspects is valid, too.
    (extent, budget.without_page())
}

/// Blocks that hold no leaves if a checkpoint has at most `parts` pages, or 0.
pub(super) const fn area_blocks(parts: u32, block_pages: u32) -> u32 {
    match parts.div_ceil(block_pages) {
        0 => 0,
        blocks => checkpoint::area_blocks(blocks),
    }
}

/// The most leaves on a chip of this geometry, whatever it can do.
pub(super) fn leaves_max(geometry: &Geometry, checkpoints: bool) -> u32 {
    // Checkpoints of several blocks take more.
    let area = if checkpoints { checkpoint::area_blocks(1) } else { 0 };
    let blocks = geometry.blocks.saturating_sub(area);
    budget(geometry.pages_per_block, blocks).1.limit_pages
}

/// The number of leaves above which two neighbours can be merged.
///
/// `records` is the number of records in them.
pub(super) const fn dense(records: u32, capacity: usize) -> u32 {
    2 * (records / (capacity as u32 + 1)) + 1
}
