//! Counts of the pages of some blocks that were superseded since the mount.
//!
//! They serve [`GcPolicy::Tracked`](super::GcPolicy::Tracked) and are entries in the block table.
//! The choice is made elsewhere.

use crate::bytes::{u16_at, u32_at};
use crate::flash::BlockNumber;

/// Bytes of an entry: a block, and its count of superseded pages, 0 if free.
pub const TRACKED_BYTES: usize = 6;

/// Counts a superseded page of `block`.
///
/// If the block has no entry yet, it replaces the entry with the lowest count.
pub fn note(entries: &mut [u8], block: BlockNumber) {
    let holds = |entry: &[u8]| count_of(entry) > 0 && block_of(entry) == block;
    let at = entries.chunks_exact(TRACKED_BYTES).position(holds);
    let fewest = || {
        let entries = entries.chunks_exact(TRACKED_BYTES).enumerate();
        entries.min_by_key(|(_, entry)| count_of(entry)).map(|(at, _)| at)
    };
    let (count, Some(at)) = (u16::from(at.is_some()), at.or_else(fewest)) else { return };
    let entry = &mut entries[at * TRACKED_BYTES..][..TRACKED_BYTES];
    let count = (count * count_of(entry)).saturating_add(1);
    entry[..4].copy_from_slice(&block.0.to_le_bytes());
    entry[4..].copy_from_slice(&count.to_le_bytes());
}

/// Pages of `block` known to be superseded since the mount.
pub fn count(entries: &[u8], block: BlockNumber) -> u32 {
    let mut entries = entries.chunks_exact(TRACKED_BYTES);
    let entry = entries.find(|entry| count_of(entry) > 0 && block_of(entry) == block);
    entry.map_or(0, |entry| count_of(entry).into())
}

/// Removes the entry of `block`.
pub fn forget(entries: &mut [u8], block: BlockNumber) {
    let mut entries = entries.chunks_exact_mut(TRACKED_BYTES);
    if let Some(entry) = entries.find(|entry| block_of(entry) == block) {
        entry.fill(0);
    }
}

fn block_of(entry: &[u8]) -> BlockNumber {
    BlockNumber(u32_at(entry, 0))
}

fn count_of(entry: &[u8]) -> u16 {
    u16_at(entry, 4)
}
