//! The account of every block: which pages are valid, how often it was erased, whether it is bad, which
//! is collected next.
//!
//! RAM: one bit for each page, six bytes for each block. All of it is rebuilt by a mount. Some ways to choose
//! need more: the time when a block was opened, or counts of what was superseded in some blocks.

use super::Victims;
use crate::flash::{BlockNumber, Geometry, PageNumber};
use crate::node::bytes::{u16_at, u32_at};

/// Bytes for each block: its erase count (u32), then its number of valid pages and three flags (u16).
const BLOCK_BYTES: usize = 6;

/// Bytes for each block that is kept count of.
const TRACKED_BYTES: usize = 6;

/// The block is bad: it is never erased or programmed again, and what is valid in it moves first.
const BAD: u16 = 1 << 15;

/// A page of the block could not be moved: it is no victim until the next mount.
const STUCK: u16 = 1 << 14;

/// The block belongs to the checkpoints: it never holds pages of the tree.
const RESERVED: u16 = 1 << 13;

/// The running operation superseded the last valid page of the block: it is not free before that commits.
const HELD: u16 = 1 << 12;

/// The most pages of a block that can be counted.
pub const PAGES_MAX: u32 = HELD as u32 - 1;

/// A block is collected for wear alone when another was erased this much more often.
const WEAR_GAP: u32 = 8;

pub struct Blocks<'b> {
    valid: &'b mut [u8],
    table: &'b mut [u8],
    /// For each block the low half of the sequence number of its first page; empty where nobody asks.
    opened: &'b mut [u8],
    /// A block (u32) and how many of its pages were superseded since the mount (u16), 0 for none.
    tracked: &'b mut [u8],
    pages_per_block: u32,
    /// Pages of a block that are ever programmed.
    safe_pages: u32,
    blocks: u32,
    valid_pages: u32,
    /// Good blocks without a valid page that are not reserved, the active one included.
    empty_blocks: u32,
    bad_blocks: u32,
    /// Valid pages on bad blocks.
    endangered_pages: u32,
    most_erased: u32,
    held_blocks: u32,
}

impl<'b> Blocks<'b> {
    pub const fn ram_needed(geometry: &Geometry, victims: Victims) -> usize {
        let (opened, tracked) = Self::bytes_for(geometry, victims);
        geometry.pages().div_ceil(8) as usize
            + geometry.blocks as usize * BLOCK_BYTES
            + opened
            + tracked
    }

    const fn bytes_for(geometry: &Geometry, victims: Victims) -> (usize, usize) {
        match victims {
            Victims::Fewest => (0, 0),
            Victims::CostBenefit => (geometry.blocks as usize * 4, 0),
            Victims::Tracked(blocks) => (0, blocks as usize * TRACKED_BYTES),
        }
    }

    pub fn new(ram: &'b mut [u8], geometry: &Geometry, victims: Victims, safe_pages: u32) -> Self {
        let (opened_bytes, tracked_bytes) = Self::bytes_for(geometry, victims);
        let (valid, rest) = ram.split_at_mut(geometry.pages().div_ceil(8) as usize);
        let (table, rest) = rest.split_at_mut(geometry.blocks as usize * BLOCK_BYTES);
        let (opened, rest) = rest.split_at_mut(opened_bytes);
        let tracked = &mut rest[..tracked_bytes];
        let mut blocks = Self {
            valid,
            table,
            opened,
            tracked,
            pages_per_block: geometry.pages_per_block,
            safe_pages,
            blocks: geometry.blocks,
            valid_pages: 0,
            empty_blocks: 0,
            bad_blocks: 0,
            endangered_pages: 0,
            most_erased: 0,
            held_blocks: 0,
        };
        blocks.table.fill(0);
        blocks.clear();
        blocks
    }

    /// Forgets every valid page, erase count and reservation. A block that was found bad stays bad.
    pub fn clear(&mut self) {
        self.valid.fill(0);
        self.opened.fill(0);
        self.tracked.fill(0);
        self.valid_pages = 0;
        self.empty_blocks = self.blocks;
        self.bad_blocks = 0;
        self.endangered_pages = 0;
        self.most_erased = 0;
        self.held_blocks = 0;
        for block in self.all() {
            let bad = self.is_bad(block);
            self.entry_mut(block).fill(0);
            if bad {
                self.set_bad(block);
            }
        }
    }

    fn entry(&self, block: BlockNumber) -> &[u8] {
        &self.table[block.0 as usize * BLOCK_BYTES..][..BLOCK_BYTES]
    }

    fn entry_mut(&mut self, block: BlockNumber) -> &mut [u8] {
        &mut self.table[block.0 as usize * BLOCK_BYTES..][..BLOCK_BYTES]
    }

    pub fn erase_count(&self, block: BlockNumber) -> u32 {
        u32_at(self.entry(block), 0)
    }

    pub fn set_erase_count(&mut self, block: BlockNumber, count: u32) {
        self.entry_mut(block)[..4].copy_from_slice(&count.to_le_bytes());
        self.most_erased = self.most_erased.max(count);
    }

    pub fn count_erase(&mut self, block: BlockNumber) {
        self.set_erase_count(block, self.erase_count(block).saturating_add(1));
    }

    fn state(&self, block: BlockNumber) -> u16 {
        u16_at(self.entry(block), 4)
    }

    fn set_state(&mut self, block: BlockNumber, state: u16) {
        self.entry_mut(block)[4..].copy_from_slice(&state.to_le_bytes());
    }

    pub fn valid_in(&self, block: BlockNumber) -> u32 {
        u32::from(self.state(block) & !(BAD | STUCK | RESERVED | HELD))
    }

    pub fn is_bad(&self, block: BlockNumber) -> bool {
        self.state(block) & BAD != 0
    }

    /// The block is never erased or programmed again.
    pub fn set_bad(&mut self, block: BlockNumber) {
        if !self.is_bad(block) {
            self.empty_blocks -= u32::from(self.is_empty(block));
            self.bad_blocks += 1;
            self.endangered_pages += self.valid_in(block);
            self.set_state(block, self.state(block) | BAD);
        }
    }

    /// The block is kept for checkpoints, or is free again. It holds no valid page.
    pub fn set_reserved(&mut self, block: BlockNumber, reserved: bool) {
        let before = self.is_empty(block);
        let state = self.state(block) & !RESERVED;
        self.set_state(block, if reserved { state | RESERVED } else { state });
        self.empty_blocks -= u32::from(before);
        self.empty_blocks += u32::from(self.is_empty(block));
    }

    /// A good block without a valid page that is not reserved.
    fn is_empty(&self, block: BlockNumber) -> bool {
        self.state(block) & !STUCK == 0
    }

    pub const fn bad_blocks(&self) -> u32 {
        self.bad_blocks
    }

    /// A page of the block cannot be moved: the block is no victim until the next mount.
    pub fn set_stuck(&mut self, block: BlockNumber) {
        self.set_state(block, self.state(block) | STUCK);
    }

    /// Takes the mark off again, and answers whether it was there.
    pub fn take_stuck(&mut self, block: BlockNumber) -> bool {
        let stuck = self.is_stuck(block);
        self.set_state(block, self.state(block) & !STUCK);
        stuck
    }

    fn is_stuck(&self, block: BlockNumber) -> bool {
        self.state(block) & STUCK != 0
    }

    pub fn is_valid(&self, page: PageNumber) -> bool {
        self.valid[page.0 as usize / 8] & (1 << (page.0 % 8)) != 0
    }

    pub fn set_valid(&mut self, page: PageNumber, valid: bool) {
        if self.is_valid(page) == valid {
            return;
        }
        self.valid[page.0 as usize / 8] ^= 1 << (page.0 % 8);
        let block = BlockNumber(page.0 / self.pages_per_block);
        let before = self.valid_in(block);
        let good = !self.is_bad(block);
        let state = self.state(block);
        let free = state & (BAD | RESERVED | HELD) == 0;
        if valid {
            self.set_state(block, state + 1);
            self.valid_pages += 1;
            self.endangered_pages += u32::from(!good);
            self.empty_blocks -= u32::from(free && before == 0);
        } else {
            self.set_state(block, state - 1);
            self.valid_pages -= 1;
            self.endangered_pages -= u32::from(!good);
            self.empty_blocks += u32::from(free && before == 1);
        }
    }

    /// The running operation supersedes the page: it is not valid any more, and its block not free before
    /// [`release`](Self::release).
    pub fn supersede(&mut self, page: PageNumber) {
        let block = BlockNumber(page.0 / self.pages_per_block);
        let free = self.empty_blocks;
        self.set_valid(page, false);
        if self.empty_blocks > free {
            self.empty_blocks = free;
            self.held_blocks += 1;
            self.set_state(block, self.state(block) | HELD);
        }
    }

    /// The running operation has committed: what it emptied is free.
    pub fn release(&mut self) {
        if self.held_blocks == 0 {
            return;
        }
        self.held_blocks = 0;
        for block in self.all() {
            if self.state(block) & HELD != 0 {
                self.set_state(block, self.state(block) & !HELD);
                self.empty_blocks += u32::from(self.is_empty(block));
            }
        }
    }

    /// No page is valid; everything else of the blocks stays known.
    pub fn forget_valid(&mut self) {
        for page in 0..self.blocks * self.pages_per_block {
            self.set_valid(PageNumber(page), false);
        }
    }

    /// The first page of the block has this sequence number.
    pub fn set_opened_at(&mut self, block: BlockNumber, sequence: u64) {
        if let Some(opened) = self.opened.chunks_exact_mut(4).nth(block.0 as usize) {
            opened.copy_from_slice(&(sequence as u32).to_le_bytes());
        }
    }

    /// The low half of the sequence number of the block's first page; 0 if it is not known.
    pub fn opened_at(&self, block: BlockNumber) -> u32 {
        self.opened.chunks_exact(4).nth(block.0 as usize).map_or(0, |opened| u32_at(opened, 0))
    }

    /// Counts a superseded page of `block`, in place of the block with the fewest if it has no count yet.
    pub fn track(&mut self, block: BlockNumber) {
        let holds = |entry: &[u8]| count_of(entry) > 0 && block_of(entry) == block;
        let at = self.tracked.chunks_exact(TRACKED_BYTES).position(holds);
        let fewest = || {
            let entries = self.tracked.chunks_exact(TRACKED_BYTES).enumerate();
            entries.min_by_key(|(_, entry)| count_of(entry)).map(|(at, _)| at)
        };
        let (count, Some(at)) = (u16::from(at.is_some()), at.or_else(fewest)) else { return };
        let entry = &mut self.tracked[at * TRACKED_BYTES..][..TRACKED_BYTES];
        let count = (count * count_of(entry)).saturating_add(1);
        entry[..4].copy_from_slice(&block.0.to_le_bytes());
        entry[4..].copy_from_slice(&count.to_le_bytes());
    }

    /// Pages of `block` known to be superseded since the mount.
    pub fn superseded_in(&self, block: BlockNumber) -> u32 {
        let mut entries = self.tracked.chunks_exact(TRACKED_BYTES);
        let entry = entries.find(|entry| count_of(entry) > 0 && block_of(entry) == block);
        entry.map_or(0, |entry| count_of(entry).into())
    }

    /// The block is erased: nothing of it is superseded any more.
    pub fn untrack(&mut self, block: BlockNumber) {
        let mut entries = self.tracked.chunks_exact_mut(TRACKED_BYTES);
        if let Some(entry) = entries.find(|entry| block_of(entry) == block) {
            entry.fill(0);
        }
    }

    pub const fn valid_pages(&self) -> u32 {
        self.valid_pages
    }

    pub fn all(&self) -> impl Iterator<Item = BlockNumber> + use<> {
        (0..self.blocks).map(BlockNumber)
    }

    /// Blocks that may be erased and written.
    pub fn free_blocks(&self, active: Option<BlockNumber>) -> u32 {
        self.empty_blocks - u32::from(active.is_some_and(|block| self.is_empty(block)))
    }

    /// The free block that was erased least often, and is none of `others`. The block just filled is not
    /// free: its pages may belong to an operation that has not committed.
    pub fn least_worn_free(
        &self,
        filled: Option<BlockNumber>,
        others: &[BlockNumber],
    ) -> Option<BlockNumber> {
        self.all()
            .filter(|&block| self.is_empty(block) && Some(block) != filled)
            .filter(|block| !others.contains(block))
            .min_by_key(|&block| self.erase_count(block))
    }

    pub const fn count(&self) -> u32 {
        self.blocks
    }

    /// One bit for each page, from the lowest bit of the first byte on: whether the page is valid.
    pub fn valid_bits(&self) -> &[u8] {
        self.valid
    }

    /// Whether the block may be collected for its garbage.
    pub fn is_victim(&self, block: BlockNumber, active: Option<BlockNumber>) -> bool {
        Some(block) != active
            && !self.is_stuck(block)
            && !self.is_bad(block)
            && (1..self.safe_pages).contains(&self.valid_in(block))
    }

    /// The block to collect next for its garbage: the one with the fewest valid pages, and of these the
    /// least worn.
    pub fn victim(&self, active: Option<BlockNumber>) -> Option<BlockNumber> {
        self.all()
            .filter(|&block| self.is_victim(block, active))
            .min_by_key(|&block| (self.valid_in(block), self.erase_count(block)))
    }

    /// A bad block that still holds valid pages.
    pub fn failing(&self) -> Option<BlockNumber> {
        if self.endangered_pages == 0 {
            return None;
        }
        self.all()
            .find(|&block| self.is_bad(block) && self.valid_in(block) > 0 && !self.is_stuck(block))
    }

    /// The block whose data has rested so long that the others wear out around it, if there is one.
    pub fn rested(&self, active: Option<BlockNumber>) -> Option<BlockNumber> {
        self.all()
            .filter(|&block| self.valid_in(block) > 0 && Some(block) != active)
            .filter(|&block| !self.is_bad(block) && !self.is_stuck(block))
            .min_by_key(|&block| self.erase_count(block))
            .filter(|&block| self.most_erased - self.erase_count(block) > WEAR_GAP)
    }

    /// Least, mean (rounded down) and most erases of a good block.
    pub fn wear(&self) -> (u32, u32, u32) {
        let good = || self.all().filter(|&block| !self.is_bad(block));
        let counts = || good().map(|block| self.erase_count(block));
        let sum: u64 = counts().map(u64::from).sum();
        let mean = (sum / u64::from((self.blocks - self.bad_blocks).max(1))) as u32;
        (counts().min().unwrap_or(0), mean, counts().max().unwrap_or(0))
    }
}

fn block_of(entry: &[u8]) -> BlockNumber {
    BlockNumber(u32_at(entry, 0))
}

fn count_of(entry: &[u8]) -> u16 {
    u16_at(entry, 4)
}
