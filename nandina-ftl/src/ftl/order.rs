//! The order in which the blocks of a chip were opened, as a mount finds it.
//!
//! It is known from the sequence numbers of their first pages, of which it keeps 30 bits.

use nandina::flash::BlockNumber;

/// Bytes for each block.
pub(super) const BYTES: usize = 4;

/// Blocks that are taken in order. Behind them the order does not matter any more.
///
/// Taking one goes through all blocks, so a mount of a large chip without a checkpoint must not
/// take all of them in order.
const ORDERED_MAX: u32 = 256;

/// Set in the mark of a block whose number is known.
const KNOWN: u32 = 1;

/// Set in the mark of a block that was taken.
const TAKEN: u32 = 2;

/// The mark of a block that begins with this number: its low bits.
const fn mark(sequence: u64) -> u32 {
    (sequence as u32) << 2 | KNOWN
}

/// The blocks that were not taken yet.
pub(super) struct Order<'b> {
    marks: &'b mut [u8],
    newest: u64,
    taken: u32,
    /// All blocks before this one were taken.
    first: usize,
}

/// A block that was taken.
pub(super) struct Taken {
    pub block: BlockNumber,
    /// All blocks that were opened later were taken before, if this block begins with a number
    /// for which [`Order::is_recent`] holds.
    pub in_order: bool,
}

impl<'b> Order<'b> {
    /// Of `ram.len() / BYTES` blocks, none of which is known.
    pub fn new(ram: &'b mut [u8]) -> Self {
        ram.fill(0);
        Self { marks: ram, newest: 0, taken: 0, first: 0 }
    }

    /// Forgets all blocks.
    pub fn clear(&mut self) {
        self.restart();
        self.newest = 0;
        self.marks.fill(0);
    }

    /// Puts all blocks back.
    pub fn restart(&mut self) {
        (self.taken, self.first) = (0, 0);
        for block in 0..self.marks.len() / BYTES {
            self.set(block, self.mark_of(block) & !TAKEN);
        }
    }

    /// Notes that the pages of `block` begin with this number.
    pub fn note(&mut self, block: BlockNumber, sequence: u64) {
        self.set(block.0 as usize, mark(sequence));
        self.newest = self.newest.max(sequence);
    }

    /// Whether the bits that are kept of a number tell it from newer ones.
    pub fn is_recent(&self, sequence: u64) -> bool {
        self.newest.saturating_sub(sequence) < 1 << 30
    }

    /// Takes the block that was opened last of those that are left.
    ///
    /// Blocks of which nothing is known come last.
    pub fn take(&mut self) -> Option<Taken> {
        let (blocks, newest) = (self.marks.len() / BYTES, mark(self.newest));
        let in_order = self.taken < ORDERED_MAX;
        let mut left = (self.first..blocks).filter(|&block| self.mark_of(block) & TAKEN == 0);
        let block = match in_order {
            true => left.min_by_key(|&block| match self.mark_of(block) {
                0 => u64::MAX,
                mark => newest.wrapping_sub(mark).into(),
            }),
            false => left.next(),
        }?;
        let mark = self.mark_of(block);
        self.set(block, mark | TAKEN);
        self.taken += mark & KNOWN;
        if !in_order {
            self.first = block + 1;
        }
        let block = BlockNumber(block as u32);
        Some(Taken { block, in_order: in_order && mark & KNOWN != 0 })
    }

    /// Takes a block of which nothing is known; after that no other one can be taken.
    pub fn take_unknown(&mut self) -> Option<BlockNumber> {
        let blocks = self.marks.len() / BYTES;
        let block = (self.first..blocks).find(|&block| self.mark_of(block) == 0)?;
        self.first = block + 1;
        Some(BlockNumber(block as u32))
    }

    fn mark_of(&self, block: usize) -> u32 {
        let mut number = [0; BYTES];
        number.copy_from_slice(&self.marks[block * BYTES..][..BYTES]);
        u32::from_le_bytes(number)
    }

    fn set(&mut self, block: usize, mark: u32) {
        self.marks[block * BYTES..][..BYTES].copy_from_slice(&mark.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_from_the_newest_to_the_oldest_and_unknown_ones_last() {
        let mut ram = [7; 5 * BYTES];
        let mut order = Order::new(&mut ram);
        let start = (1 << 32) - 2;
        for (block, sequence) in [(0, start), (1, start + 40), (3, start + 1), (4, start + 9)] {
            order.note(BlockNumber(block), sequence);
        }
        for _ in 0..2 {
            let taken: [u32; 5] = core::array::from_fn(|at| {
                let taken = order.take().unwrap();
                assert_eq!(taken.in_order, at < 4);
                taken.block.0
            });
            assert_eq!(taken, [1, 4, 3, 0, 2]);
            assert!(order.take().is_none());
            order.restart();
        }
        assert_eq!((order.take_unknown(), order.take_unknown()), (Some(BlockNumber(2)), None));
        assert!(order.is_recent(start) && !order.is_recent(start - (1 << 30)));
    }

    #[test]
    fn behind_the_first_blocks_the_order_does_not_matter() {
        let blocks = ORDERED_MAX + 300;
        let mut ram = std::vec![0; blocks as usize * BYTES];
        let mut order = Order::new(&mut ram);
        for block in 0..blocks {
            order.note(BlockNumber(block), u64::from(block * 7 % blocks));
        }
        let mut seen = std::vec![false; blocks as usize];
        let mut in_order = 0;
        while let Some(taken) = order.take() {
            assert!(!core::mem::replace(&mut seen[taken.block.0 as usize], true));
            in_order += u32::from(taken.in_order);
        }
        assert!(seen.iter().all(|&seen| seen));
        assert_eq!(in_order, ORDERED_MAX);
    }
}
