//! How many pages of some blocks were superseded since the mount ([`Victims::Tracked`](super::Victims::Tracked)), in
//! the table of the blocks' account. Nothing here chooses.

use super::Blocks;
use crate::flash::BlockNumber;
use crate::node::bytes::{u16_at, u32_at};

/// Bytes for each block that is kept count of.
pub(super) const TRACKED_BYTES: usize = 6;

impl Blocks<'_> {
    /// The blocks that are kept count of, if any are.
    fn tracked(&self) -> &[u8] {
        &self.table[self.tracked_at()..]
    }

    /// Counts a superseded page of `block`, in place of the block with the fewest if it has no count yet.
    pub fn track(&mut self, block: BlockNumber) {
        let holds = |entry: &[u8]| count_of(entry) > 0 && block_of(entry) == block;
        let tracked = self.tracked();
        let at = tracked.chunks_exact(TRACKED_BYTES).position(holds);
        let fewest = || {
            let entries = tracked.chunks_exact(TRACKED_BYTES).enumerate();
            entries.min_by_key(|(_, entry)| count_of(entry)).map(|(at, _)| at)
        };
        let (count, Some(at)) = (u16::from(at.is_some()), at.or_else(fewest)) else { return };
        let at = self.tracked_at() + at * TRACKED_BYTES;
        let entry = &mut self.table[at..at + TRACKED_BYTES];
        let count = (count * count_of(entry)).saturating_add(1);
        entry[..4].copy_from_slice(&block.0.to_le_bytes());
        entry[4..].copy_from_slice(&count.to_le_bytes());
    }

    /// Pages of `block` known to be superseded since the mount.
    pub fn superseded_in(&self, block: BlockNumber) -> u32 {
        let mut entries = self.tracked().chunks_exact(TRACKED_BYTES);
        let entry = entries.find(|entry| count_of(entry) > 0 && block_of(entry) == block);
        entry.map_or(0, |entry| count_of(entry).into())
    }

    /// The block is erased: nothing of it is superseded any more.
    pub fn untrack(&mut self, block: BlockNumber) {
        let at = self.tracked_at();
        let mut entries = self.table[at..].chunks_exact_mut(TRACKED_BYTES);
        if let Some(entry) = entries.find(|entry| block_of(entry) == block) {
            entry.fill(0);
        }
    }
}

fn block_of(entry: &[u8]) -> BlockNumber {
    BlockNumber(u32_at(entry, 0))
}

fn count_of(entry: &[u8]) -> u16 {
    u16_at(entry, 4)
}
