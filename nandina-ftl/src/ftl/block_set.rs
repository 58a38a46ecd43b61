//! A set of blocks, as one bit for each block in the caller's memory.

use nandina::flash::BlockNumber;

/// Bytes of a set of `blocks` blocks.
pub(super) const fn bytes(blocks: u32) -> usize {
    blocks.div_ceil(8) as usize
}

/// The blocks of a set. Numbers behind the last block are in none.
pub(super) struct BlockSet<'b> {
    bits: &'b mut [u8],
}

impl<'b> BlockSet<'b> {
    /// The empty set in this memory.
    pub fn new(bits: &'b mut [u8]) -> Self {
        bits.fill(0);
        Self { bits }
    }

    pub fn clear(&mut self) {
        self.bits.fill(0);
    }

    pub fn has(&self, block: BlockNumber) -> bool {
        self.bits.get(block.0 as usize / 8).is_some_and(|byte| byte >> (block.0 % 8) & 1 == 1)
    }

    pub fn insert(&mut self, block: BlockNumber) {
        if let Some(byte) = self.bits.get_mut(block.0 as usize / 8) {
            *byte |= 1 << (block.0 % 8);
        }
    }

    pub fn remove(&mut self, block: BlockNumber) {
        if let Some(byte) = self.bits.get_mut(block.0 as usize / 8) {
            *byte &= !(1 << (block.0 % 8));
        }
    }

    /// How many blocks are in the set.
    pub fn count(&self) -> u32 {
        self.bits.iter().map(|byte| byte.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_blocks_that_were_inserted() {
        let mut memory = [7; bytes(20)];
        let mut set = BlockSet::new(&mut memory);
        assert!((0..40).all(|block| !set.has(BlockNumber(block))));
        for block in [0, 7, 8, 19, 19] {
            set.insert(BlockNumber(block));
        }
        set.insert(BlockNumber(24));
        set.insert(BlockNumber(9));
        set.remove(BlockNumber(9));
        set.remove(BlockNumber(30));
        let has: std::vec::Vec<u32> =
            (0..40).filter(|&block| set.has(BlockNumber(block))).collect();
        assert_eq!((has.as_slice(), set.count()), (&[0, 7, 8, 19][..], 4));
        set.clear();
        assert_eq!(set.count(), 0);
    }
}
