//! The order in which blocks were opened, as a mount finds it.
//!
//! A mount begins with the newest. It is known from the sequence numbers of their first pages, of
//! which 31 bits are kept. That is
//! enough: wear levelling empties a block long before 2^31 pages were programmed after it. Nothing
//! is read here.
//!
//! RAM: four bytes for each block.

use crate::bytes::u32_at;
use crate::flash::BlockNumber;

/// Bytes for each block.
const BYTES: usize = 4;

/// Set in the mark of a block whose number is known.
const KNOWN: u32 = 1 << 31;

/// The blocks of a chip, from the newest to the oldest.
pub(super) struct Order<'b> {
    marks: &'b mut [u8],
    newest: u64,
}

/// How far a walk through the blocks has come.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    /// The age of the last block, and the block.
    last: Option<(u32, u32)>,
}

impl Walk {
    /// Before the newest block, or on the way to newer ones before the oldest.
    pub const START: Self = Self { last: None };
}

impl<'b> Order<'b> {
    /// Bytes of RAM for a chip of `blocks` blocks.
    pub const fn ram_needed(blocks: u32) -> usize {
        BYTES * blocks as usize
    }

    /// The order of `ram.len() / 4` blocks, none of which is known.
    pub fn new(ram: &'b mut [u8]) -> Self {
        let mut order = Self { marks: ram, newest: 0 };
        order.clear();
        order
    }

    /// Forgets all blocks.
    pub fn clear(&mut self) {
        self.newest = 0;
        self.marks.fill(0);
    }

    /// Notes that the pages of `block` begin with this number.
    pub fn note(&mut self, block: BlockNumber, sequence: u64) {
        let mark = sequence as u32 | KNOWN;
        self.marks[block.0 as usize * BYTES..][..BYTES].copy_from_slice(&mark.to_le_bytes());
        self.newest = self.newest.max(sequence);
    }

    /// Whether a page of `block` with this number is left from before its erase.
    ///
    /// If so, its number is lower than the number of the first page of the block: that erase
    /// silently did only a part of its work.
    pub fn is_left_over(&self, block: BlockNumber, sequence: u64) -> bool {
        let mark = u32_at(self.marks, block.0 as usize * BYTES);
        let ahead = (sequence as u32).wrapping_sub(mark) & !KNOWN;
        mark & KNOWN != 0 && ahead >= 1 << 30
    }

    /// The highest number that was noted.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// The next block of a walk, older than the last one.
    ///
    /// Cost: a look at the marks of all blocks.
    pub fn next(&self, walk: &mut Walk) -> Option<BlockNumber> {
        let next = self.ages().filter(|&found| walk.last.is_none_or(|last| found > last)).min()?;
        walk.last = Some(next);
        Some(BlockNumber(next.1))
    }

    /// The next block of a walk the other way, newer than the last one.
    ///
    /// Cost: a look at the marks of all blocks.
    pub fn next_newer(&self, walk: &mut Walk) -> Option<BlockNumber> {
        let next = self.ages().filter(|&found| walk.last.is_none_or(|last| found < last)).max()?;
        walk.last = Some(next);
        Some(BlockNumber(next.1))
    }

    /// The age of each known block, and the block.
    fn ages(&self) -> impl Iterator<Item = (u32, u32)> {
        let blocks = (self.marks.len() / BYTES) as u32;
        (0..blocks).filter_map(|block| {
            let mark = u32_at(self.marks, block as usize * BYTES);
            let age = (self.newest as u32).wrapping_sub(mark) & !KNOWN;
            (mark & KNOWN != 0).then_some((age, block))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_from_the_newest_to_the_oldest() {
        let mut ram = [7; 5 * BYTES];
        let mut order = Order::new(&mut ram);
        let start = (1 << 32) - 2;
        for (block, sequence) in [(0, start), (1, start + 40), (3, start + 1), (4, start + 1)] {
            order.note(BlockNumber(block), sequence);
        }
        let mut walk = Walk::START;
        let block = BlockNumber(1);
        assert!(order.is_left_over(block, start) && !order.is_left_over(block, start + 40));
        assert!(!order.is_left_over(block, start + 41) && !order.is_left_over(BlockNumber(2), 0));
        for expected in [Some(1), Some(3), Some(4), Some(0), None, None] {
            assert_eq!(order.next(&mut walk), expected.map(BlockNumber));
        }
        let mut walk = Walk::START;
        for expected in [Some(0), Some(4), Some(3), Some(1), None] {
            assert_eq!(order.next_newer(&mut walk), expected.map(BlockNumber));
        }
    }
}
