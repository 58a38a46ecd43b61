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
const ENTRY_BYTES: usize = BLOCK_BYTES + NUMBER_BYTES;
const BLOCK_BYTES: usize = 4;

/// A number of this many bytes is above that of any page: no chip lives for so many programs.
const NUMBER_BYTES: usize = 6;

/// No block.
const NONE: [u8; BLOCK_BYTES] = [0xFF; BLOCK_BYTES];

/// The table, in the bytes of a page buffer. An erased one is empty.
pub(crate) struct LastNumbers<B>(pub B);

impl<B: AsRef<[u8]>> LastNumbers<B> {
    /// The number of the last page of a block; `None` if it is not in the table.
    pub fn get(&self, block: BlockNumber) -> Option<u64> {
        let block = block.0.to_le_bytes();
        let mut entries =
            self.0.as_ref().chunks_exact(ENTRY_BYTES).map(|it| it.split_at(BLOCK_BYTES));
        let (found, bytes) = entries.find(|(of, _)| *of == block || *of == NONE)?;
        let mut number = [0; 8];
        number[..NUMBER_BYTES].copy_from_slice(bytes);
        (found == block).then_some(u64::from_le_bytes(number))
    }
}

impl<B: AsMut<[u8]>> LastNumbers<B> {
    /// Removes all blocks.
    pub fn clear(&mut self) {
        self.0.as_mut().fill(0xFF);
    }

    /// Adds a block. Returns `false` if there is no room for it, or for its number.
    pub fn add(&mut self, block: BlockNumber, number: u64) -> bool {
        let mut entries = self.0.as_mut().chunks_exact_mut(ENTRY_BYTES);
        let Some(free) = entries.find(|entry| entry[..BLOCK_BYTES] == NONE) else { return false };
        let number = number.to_le_bytes();
        let (bytes, above) = number.split_at(NUMBER_BYTES);
        if above.iter().any(|byte| *byte > 0) {
            return false;
        }
        free[..BLOCK_BYTES].copy_from_slice(&block.0.to_le_bytes());
        free[BLOCK_BYTES..].copy_from_slice(bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_buffer_has_an_entry_of_ten_bytes_for_each_block() {
        let mut table = LastNumbers([0; 29]);
        table.clear();
        assert_eq!(table.get(BlockNumber(7)), None);
        let most = (1 << 48) - 1;
        assert!(!table.add(BlockNumber(7), most + 1));
        assert!(table.add(BlockNumber(7), most) && table.add(BlockNumber(0), 3));
        assert!(!table.add(BlockNumber(1), 4));
        let found = [7, 0, 1].map(|block| table.get(BlockNumber(block)));
        assert_eq!(found, [Some(most), Some(3), None]);
    }
}
