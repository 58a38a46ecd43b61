//! How many pages of some blocks were superseded since the mount
//! ([`Victims::Tracked`](super::Victims::Tracked)), as entries in the account's table. Nothing here
//! chooses.

use crate::bytes::{u16_at, u32_at};
use crate::flash::BlockNumber;

/// Bytes of an entry: a block, and how many of its pages were superseded, 0 for none.
pub const TRACKED_BYTES: usize = 6;

/// Counts a superseded page of `block`, in place of the block with the fewest if it has no entry
/// yet.
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

/// Nothing of `block` is superseded any more.
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
