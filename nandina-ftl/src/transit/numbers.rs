//! The sequence numbers of the last pages of buffer blocks, while a mount compares copies.
//!
//! Nothing is appended to a buffer block any more once a copy of one of its pages is written
//! elsewhere, or once one of them is trimmed. So a copy elsewhere that is newer than the page is
//! newer than the whole block, and this one number decides for all of its pages. A mount scans
//! buffer blocks first and has the number of each other page at hand. So it reads no page of a
//! buffer block twice.
//!
//! The table lies in a page buffer that a scan has no other use for. Nothing here calls a chip.

use nandina::flash::BlockNumber;

/// Bytes of an entry: the block, and the number of its last page.
const ENTRY_BYTES: usize = 4 + 8;

/// The table, in the bytes of a page buffer. An erased one is empty.
pub(crate) struct LastNumbers<B>(pub B);

impl<B: AsRef<[u8]>> LastNumbers<B> {
    /// The number of the last page of a block; `None` if it is not in the table.
    pub fn get(&self, block: BlockNumber) -> Option<u64> {
        let block = block.0.to_le_bytes();
        let mut entries = self.0.as_ref().chunks_exact(ENTRY_BYTES);
        let entry = entries.find(|entry| entry[..4] == block || entry[..4] == [0xFF; 4])?;
        let mut number = [0; 8];
        number.copy_from_slice(&entry[4..]);
        (entry[..4] == block).then_some(u64::from_le_bytes(number))
    }
}

impl<B: AsMut<[u8]>> LastNumbers<B> {
    /// Removes all blocks.
    pub fn clear(&mut self) {
        self.0.as_mut().fill(0xFF);
    }

    /// Adds a block. Returns `false` if there is no room.
    pub fn add(&mut self, block: BlockNumber, number: u64) -> bool {
        let mut entries = self.0.as_mut().chunks_exact_mut(ENTRY_BYTES);
        let Some(free) = entries.find(|entry| entry[..4] == [0xFF; 4]) else { return false };
        free[..4].copy_from_slice(&block.0.to_le_bytes());
        free[4..].copy_from_slice(&number.to_le_bytes());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_buffer_has_an_entry_of_twelve_bytes_for_each_block() {
        let mut table = LastNumbers([0; 30]);
        table.clear();
        assert_eq!(table.get(BlockNumber(7)), None);
        assert!(table.add(BlockNumber(7), u64::MAX - 1) && table.add(BlockNumber(0), 3));
        assert!(!table.add(BlockNumber(1), 4));
        let found = [7, 0, 1].map(|block| table.get(BlockNumber(block)));
        assert_eq!(found, [Some(u64::MAX - 1), Some(3), None]);
    }
}
