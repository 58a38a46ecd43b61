//! Whether a chip has lost more blocks than it promises, so that refusals are no fault.
//!
//! Nothing is read or written here: the chip knows which of its blocks are lost.

use nandina::flash::{BlockNumber, Flash};
use nandina_sim::Chip;

/// Whether more blocks are unwritable, marked or not, than the chip promises.
pub(super) fn is_worn_out(chip: &Chip) -> bool {
    // A program or erase that silently did nothing makes the index give up a good block.
    let given_up = lost_blocks(chip) + chip.fault_counters().silent as u32;
    given_up > chip.capabilities().bad_blocks_max(chip.profile().geometry.blocks)
}

/// Whether the index may pass on the chip's own error when a program or an erase fails.
///
/// So many blocks are lost that it blames the way to them.
pub(super) fn most_blocks_fail(chip: &Chip) -> bool {
    is_worn_out(chip) && lost_blocks(chip) > 8.max(chip.profile().geometry.blocks / 4)
}

/// The number of blocks that are no longer writable, marked or not.
fn lost_blocks(chip: &Chip) -> u32 {
    let blocks = (0..chip.profile().geometry.blocks).map(BlockNumber);
    blocks.filter(|&block| chip.is_lost(block)).count() as u32
}
