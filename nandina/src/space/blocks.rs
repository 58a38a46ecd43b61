//! The account of every block: which pages are valid, whether it is bad, what is known of its wear.
//!
//! RAM: one bit for each page, and for each block one bit for each [`Mark`]; four bytes for each block where its
//! erases are counted. All of it is rebuilt by a mount. Some ways to choose what is collected need more: the time when
//! a block was opened, or counts of what was superseded in some blocks. How worn blocks are spared is in `wear.rs`
//! beside this.

use super::tracked::TRACKED_BYTES;
use super::{NO_BLOCK, Validity, Victims, Wear};
use crate::flash::{BlockNumber, Geometry, PageNumber};
use crate::node::bytes::u32_at;

/// Bytes for each block whose erases are counted, and for each whose age is known.
const WORD_BYTES: usize = 4;

/// The most pages of a block.
pub const PAGES_MAX: u32 = 4095;

/// What is noted of a block.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    /// The block is bad: it is never erased or programmed again, and what is valid in it moves first.
    Bad,
    /// A page of the block could not be moved: it is no victim until the next mount.
    Stuck,
    /// The block belongs to the checkpoints: it never holds pages of the tree.
    Reserved,
    /// The running operation superseded the last valid page of the block: it is not free before that commits.
    Held,
    /// The block was opened since the hand of the clock passed it. Only where erases are not counted.
    Young,
}

/// Marks of a block, if its erases are counted or not.
const fn marks(wear: Wear) -> usize {
    match wear {
        Wear::Counted => 4,
        Wear::Circular => 5,
    }
}

pub struct Blocks<'b> {
    /// One bit for each page, whether it is valid; then for each mark one bit for each block; and where pages have no
    /// bits, a count for each block at the end.
    pub(super) bits: &'b mut [u8],
    pub(super) validity: Validity,
    /// For each block its erase count, if erases are counted; then the low half of the sequence number of its first
    /// page, if ages are asked for; then a block (u32) and how many of its pages were superseded since the mount
    /// (u16), 0 for none, as often as blocks are kept count of.
    pub(super) table: &'b mut [u8],
    pub(super) wear: Wear,
    ages: bool,
    pub(super) pages_per_block: u32,
    /// Pages of a block that are ever programmed.
    safe_pages: u32,
    blocks: u32,
    pub(super) valid_pages: u32,
    /// Good blocks without a valid page that are not reserved, the active one included.
    pub(super) empty_blocks: u32,
    bad_blocks: u32,
    /// Valid pages on bad blocks.
    pub(super) endangered_pages: u32,
    pub(super) most_erased: u32,
    /// The block that was opened last, and how often it was erased.
    pub(super) last: (BlockNumber, u32),
    /// The block that was erased last, and how often.
    pub(super) erased: (BlockNumber, u32),
    /// Some blocks are held.
    holds: bool,
}

impl<'b> Blocks<'b> {
    pub const fn ram_needed(
        geometry: &Geometry,
        validity: Validity,
        victims: Victims,
        wear: Wear,
    ) -> usize {
        Self::bits_bytes(geometry, validity, wear) + Self::table_bytes(geometry, victims, wear)
    }

    const fn bits_bytes(geometry: &Geometry, validity: Validity, wear: Wear) -> usize {
        let bits = validity.page_bits(geometry) + marks(wear) * geometry.blocks as usize;
        let counts = validity.count_bytes(geometry.pages_per_block) * geometry.blocks as usize;
        bits.div_ceil(8) + counts
    }

    const fn table_bytes(geometry: &Geometry, victims: Victims, wear: Wear) -> usize {
        let words = geometry.blocks as usize * WORD_BYTES;
        let counts = if matches!(wear, Wear::Counted) { words } else { 0 };
        counts
            + match victims {
                Victims::Fewest => 0,
                Victims::CostBenefit => words,
                Victims::Tracked(blocks) => blocks as usize * TRACKED_BYTES,
            }
    }

    pub fn new(
        ram: &'b mut [u8],
        geometry: &Geometry,
        validity: Validity,
        victims: Victims,
        wear: Wear,
        safe_pages: u32,
    ) -> Self {
        let (bits, rest) = ram.split_at_mut(Self::bits_bytes(geometry, validity, wear));
        let table = &mut rest[..Self::table_bytes(geometry, victims, wear)];
        bits.fill(0);
        let mut blocks = Self {
            bits,
            validity,
            table,
            wear,
            ages: victims == Victims::CostBenefit,
            pages_per_block: geometry.pages_per_block,
            safe_pages,
            blocks: geometry.blocks,
            valid_pages: 0,
            empty_blocks: 0,
            bad_blocks: 0,
            endangered_pages: 0,
            most_erased: 0,
            last: (BlockNumber(0), 0),
            erased: (NO_BLOCK, 0),
            holds: false,
        };
        blocks.clear();
        blocks
    }

    /// Forgets every valid page, erase count and reservation. A block that was found bad stays bad.
    pub fn clear(&mut self) {
        self.table.fill(0);
        for block in self.all() {
            for mark in [Mark::Stuck, Mark::Reserved, Mark::Held] {
                self.set_mark(block, mark, false);
            }
            if self.wear == Wear::Circular {
                self.set_mark(block, Mark::Young, false);
            }
        }
        self.holds = false;
        self.most_erased = 0;
        self.last = (BlockNumber(self.blocks - 1), 0);
        self.erased = (NO_BLOCK, 0);
        self.bad_blocks = self.all().filter(|&block| self.is_bad(block)).count() as u32;
        self.forget_valid();
    }

    /// No page is valid; everything else of the blocks stays known.
    pub fn forget_valid(&mut self) {
        if self.searches() {
            let from = self.bits.len()
                - self.validity.count_bytes(self.pages_per_block) * self.blocks as usize;
            self.bits[from..].fill(0);
        }
        let (pages, bytes) = (self.page_bits(), self.page_bits() / 8);
        self.bits[..bytes].fill(0);
        for page in bytes * 8..pages {
            self.set_bit(page, false);
        }
        (self.valid_pages, self.endangered_pages) = (0, 0);
        self.empty_blocks = self.all().filter(|&block| self.is_empty(block)).count() as u32;
    }

    /// Bits for pages.
    const fn page_bits(&self) -> usize {
        if self.searches() { 0 } else { self.blocks as usize * self.pages_per_block as usize }
    }

    pub(super) fn bit(&self, at: usize) -> bool {
        self.bits[at / 8] & (1 << (at % 8)) != 0
    }

    pub(super) fn set_bit(&mut self, at: usize, to: bool) {
        let (byte, bit) = (&mut self.bits[at / 8], 1 << (at % 8));
        *byte = if to { *byte | bit } else { *byte & !bit };
    }

    pub(super) fn has(&self, block: BlockNumber, mark: Mark) -> bool {
        self.bit(self.page_bits() + mark as usize * self.blocks as usize + block.0 as usize)
    }

    pub(super) fn set_mark(&mut self, block: BlockNumber, mark: Mark, to: bool) {
        let at = self.page_bits() + mark as usize * self.blocks as usize + block.0 as usize;
        self.set_bit(at, to);
    }

    /// Whether the erases of each block are counted.
    pub const fn counts_erases(&self) -> bool {
        matches!(self.wear, Wear::Counted)
    }

    /// The word of `block` in the table's part that begins behind `before` words for each block.
    fn word(&self, block: BlockNumber, before: usize) -> u32 {
        u32_at(self.table, (before * self.blocks as usize + block.0 as usize) * WORD_BYTES)
    }

    fn set_word(&mut self, block: BlockNumber, before: usize, to: u32) {
        let at = (before * self.blocks as usize + block.0 as usize) * WORD_BYTES;
        self.table[at..at + WORD_BYTES].copy_from_slice(&to.to_le_bytes());
    }

    /// How often the block was erased; where erases are not counted, only of the blocks that were opened and erased last.
    pub fn erase_count(&self, block: BlockNumber) -> u32 {
        if self.counts_erases() {
            self.word(block, 0)
        } else {
            let known = [self.erased, self.last].into_iter().find(|known| known.0 == block);
            known.map_or(0, |(_, count)| count)
        }
    }

    pub fn set_erase_count(&mut self, block: BlockNumber, count: u32) {
        if self.counts_erases() {
            self.set_word(block, 0, count);
        }
        self.most_erased = self.most_erased.max(count);
    }

    pub fn is_bad(&self, block: BlockNumber) -> bool {
        self.has(block, Mark::Bad)
    }

    /// The block is never erased or programmed again.
    pub fn set_bad(&mut self, block: BlockNumber) {
        if !self.is_bad(block) {
            self.empty_blocks -= u32::from(self.is_empty(block));
            self.bad_blocks += 1;
            self.endangered_pages += self.valid_in(block);
            self.set_mark(block, Mark::Bad, true);
        }
    }

    /// The block is kept for checkpoints, or is free again. It holds no valid page.
    pub fn set_reserved(&mut self, block: BlockNumber, reserved: bool) {
        let before = self.is_empty(block);
        self.set_mark(block, Mark::Reserved, reserved);
        self.empty_blocks -= u32::from(before);
        self.empty_blocks += u32::from(self.is_empty(block));
    }

    /// A good block without a valid page that is not reserved.
    pub(super) fn is_empty(&self, block: BlockNumber) -> bool {
        let is_taken = self.has(block, Mark::Bad)
            || self.has(block, Mark::Reserved)
            || self.has(block, Mark::Held);
        !is_taken && self.valid_in(block) == 0
    }

    pub(super) const fn safe_pages(&self) -> u32 {
        self.safe_pages
    }

    pub const fn bad_blocks(&self) -> u32 {
        self.bad_blocks
    }

    /// A page of the block cannot be moved: the block is no victim until the next mount.
    pub fn set_stuck(&mut self, block: BlockNumber) {
        self.set_mark(block, Mark::Stuck, true);
    }

    /// Takes the mark off again, and answers whether it was there.
    pub fn take_stuck(&mut self, block: BlockNumber) -> bool {
        let stuck = self.is_stuck(block);
        self.set_mark(block, Mark::Stuck, false);
        stuck
    }

    pub(super) fn is_stuck(&self, block: BlockNumber) -> bool {
        self.has(block, Mark::Stuck)
    }

    /// The running operation supersedes the page: it is not valid any more, and its block not free before
    /// [`release`](Self::release).
    pub fn supersede(&mut self, page: PageNumber) {
        let block = BlockNumber(page.0 / self.pages_per_block);
        let free = self.empty_blocks;
        self.set_valid(page, false);
        if self.empty_blocks > free {
            self.empty_blocks = free;
            self.holds = true;
            self.set_mark(block, Mark::Held, true);
        }
    }

    /// The running operation has committed: what it emptied is free.
    pub fn release(&mut self) {
        if !self.holds {
            return;
        }
        self.holds = false;
        for block in self.all() {
            if self.has(block, Mark::Held) {
                self.set_mark(block, Mark::Held, false);
                self.empty_blocks += u32::from(self.is_empty(block));
            }
        }
    }

    /// The block is not free before the next operation commits.
    pub fn hold(&mut self, block: BlockNumber) {
        self.empty_blocks -= u32::from(self.is_empty(block));
        self.holds = true;
        self.set_mark(block, Mark::Held, true);
    }

    /// No block is reserved any more.
    pub fn unreserve_all(&mut self) {
        for block in self.all() {
            self.set_reserved(block, false);
        }
    }

    /// Forgets which pages are valid; but no block that holds one is free before the next operation commits.
    pub fn hold_valid(&mut self) {
        for block in self.all() {
            if self.valid_in(block) > 0 {
                self.holds = true;
                self.set_mark(block, Mark::Held, true);
            }
        }
        self.forget_valid();
    }

    /// Blocks that are free once the next operation has committed.
    pub fn held_blocks(&self) -> u32 {
        let held = self.all().filter(|&block| {
            let is_held = self.has(block, Mark::Held) || self.has(block, Mark::Reserved);
            is_held && !self.has(block, Mark::Bad) && self.valid_in(block) == 0
        });
        held.count() as u32
    }

    /// The first page of the block has this sequence number.
    pub fn set_opened_at(&mut self, block: BlockNumber, sequence: u64) {
        if self.ages {
            self.set_word(block, self.counts_erases().into(), sequence as u32);
        }
    }

    /// The low half of the sequence number of the block's first page; 0 if it is not known.
    pub fn opened_at(&self, block: BlockNumber) -> u32 {
        if self.ages { self.word(block, self.counts_erases().into()) } else { 0 }
    }

    /// Where the blocks that are kept count of stand in the table.
    pub(super) const fn tracked_at(&self) -> usize {
        let words = self.counts_erases() as usize + self.ages as usize;
        words * self.blocks as usize * WORD_BYTES
    }

    pub const fn valid_pages(&self) -> u32 {
        self.valid_pages
    }

    pub fn all(&self) -> impl Iterator<Item = BlockNumber> + Clone + use<> {
        (0..self.blocks).map(BlockNumber)
    }

    /// Blocks that may be erased and written.
    pub fn free_blocks(&self, active: Option<BlockNumber>) -> u32 {
        self.empty_blocks - u32::from(active.is_some_and(|block| self.is_empty(block)))
    }

    pub const fn count(&self) -> u32 {
        self.blocks
    }

    /// One bit for each page, from the lowest bit of the first byte on: whether the page is valid. The bits behind
    /// the last page mean nothing.
    pub fn valid_bits(&self) -> &[u8] {
        &self.bits[..self.page_bits().div_ceil(8)]
    }

    /// Whether the block may be collected for its garbage.
    pub fn is_victim(&self, block: BlockNumber, active: Option<BlockNumber>) -> bool {
        Some(block) != active
            && !self.is_stuck(block)
            && !self.is_bad(block)
            && (1..self.safe_pages).contains(&self.valid_in(block))
    }

    /// A bad block that still holds valid pages.
    pub fn failing(&self) -> Option<BlockNumber> {
        if self.endangered_pages == 0 {
            return None;
        }
        self.all()
            .find(|&block| self.is_bad(block) && self.valid_in(block) > 0 && !self.is_stuck(block))
    }
}
