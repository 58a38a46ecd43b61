//! What is known of each erase block: which of its pages are valid, whether it is bad, how worn it
//! is, and which block to open, to empty or to collect next. Nothing here reads, programs or
//! erases.
//!
//! RAM: one bit for each page, and for each block one bit for each mark; four bytes for each
//! block where its erases are counted. All of it is rebuilt by a mount. Some ways to choose what is
//! collected need more: the time when a block was opened, or counts of what was superseded in some
//! blocks.

mod choose;
mod order;
mod tracked;
mod validity;
mod victims;
mod wear;

pub use order::ORDERED_MIN;
pub use validity::Validity;
pub use victims::{TRACKED_MAX, Victims};
pub use wear::Wear;
pub(crate) use wear::{LAG, LOOK_EVERY, TRIES};

use order::{Choice, is_ordered, order_bytes};
use tracked::TRACKED_BYTES;

use crate::bytes::{Bits, count_bits, has_bits, u32_at};
use crate::flash::{BlockNumber, Geometry, PageNumber};

/// No chip has so many blocks.
pub(crate) const NO_BLOCK: BlockNumber = BlockNumber(u32::MAX);

/// Bytes for each block whose erases are counted, and for each whose age is known.
const WORD_BYTES: usize = 4;

/// The most pages of a block.
pub const PAGES_MAX: u32 = 4095;

/// What is noted of a block.
#[derive(Clone, Copy)]
enum Mark {
    /// The block is bad: it is never erased or programmed again, and what is valid in it moves
    /// first.
    Bad,
    /// A page of the block could not be moved: it is no victim until the next mount.
    Stuck,
    /// The block belongs to the checkpoints: it never holds pages of the tree.
    Reserved,
    /// The running operation superseded the last valid page of the block: it is not free before
    /// that commits.
    Held,
    /// The block was opened since the hand of the clock passed it. Only where erases are not
    /// counted.
    Young,
}

/// Marks of a block, if its erases are counted or not.
const fn marks(wear: Wear) -> usize {
    match wear {
        Wear::Counted => 4,
        Wear::Circular => 5,
    }
}

/// The account of every block of a chip.
pub struct Blocks<'b> {
    /// One bit for each page, whether it is valid; then for each mark one bit for each block; and
    /// where pages have no bits, a count for each block at the end.
    bits: &'b mut [u8],
    validity: Validity,
    /// For each block its erase count, if erases are counted; then the low half of the sequence
    /// number of its first page, if ages are asked for; then a block (u32) and how many of its
    /// pages were superseded since the mount (u16), 0 for none, as often as blocks are kept count
    /// of; then the blocks in order, if they are kept so.
    table: &'b mut [u8],
    wear: Wear,
    ages: bool,
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
    /// The block that was opened last, and how often it was erased.
    last: (BlockNumber, u32),
    /// The block that was erased last, and how often.
    erased: (BlockNumber, u32),
    /// Some blocks are held.
    holds: bool,
}

impl<'b> Blocks<'b> {
    /// Bytes of RAM that the account takes.
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
        let is_counted = matches!(wear, Wear::Counted);
        let counts = if is_counted { words } else { 0 };
        counts
            + order_bytes(geometry.blocks, is_counted)
            + match victims {
                Victims::Fewest => 0,
                Victims::CostBenefit => words,
                Victims::Tracked(blocks) => blocks as usize * TRACKED_BYTES,
            }
    }

    /// The account of a chip of which nothing is known, in the first bytes of `ram`. Of each block
    /// `safe_pages` are ever programmed.
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
                self.put_mark(block, mark, false);
            }
            if self.wear == Wear::Circular {
                self.put_mark(block, Mark::Young, false);
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
            Bits(&mut *self.bits).set(page, false);
        }
        (self.valid_pages, self.endangered_pages) = (0, 0);
        self.empty_blocks = self.all().filter(|&block| self.is_empty(block)).count() as u32;
        self.reorder_all();
    }

    /// Bits for pages.
    const fn page_bits(&self) -> usize {
        if self.searches() { 0 } else { self.blocks as usize * self.pages_per_block as usize }
    }

    fn has(&self, block: BlockNumber, mark: Mark) -> bool {
        let at = self.page_bits() + mark as usize * self.blocks as usize + block.0 as usize;
        Bits(&*self.bits).has(at)
    }

    fn set_mark(&mut self, block: BlockNumber, mark: Mark, to: bool) {
        self.put_mark(block, mark, to);
        self.reorder(block);
    }

    /// Sets the mark; the order of the blocks is not renewed.
    fn put_mark(&mut self, block: BlockNumber, mark: Mark, to: bool) {
        let at = self.page_bits() + mark as usize * self.blocks as usize + block.0 as usize;
        Bits(&mut *self.bits).set(at, to);
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

    /// How often the block was erased; where erases are not counted, only of the blocks that were
    /// opened and erased last.
    pub fn erase_count(&self, block: BlockNumber) -> u32 {
        if self.counts_erases() {
            self.word(block, 0)
        } else {
            let known = [self.erased, self.last].into_iter().find(|known| known.0 == block);
            known.map_or(0, |(_, count)| count)
        }
    }

    /// The block was erased `count` times.
    pub fn set_erase_count(&mut self, block: BlockNumber, count: u32) {
        if self.counts_erases() {
            self.set_word(block, 0, count);
            self.reorder(block);
        }
        self.most_erased = self.most_erased.max(count);
    }

    /// Whether the block is never erased or programmed again.
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
    pub fn is_empty(&self, block: BlockNumber) -> bool {
        let is_taken = self.has(block, Mark::Bad)
            || self.has(block, Mark::Reserved)
            || self.has(block, Mark::Held);
        !is_taken && !self.has_valid(block)
    }

    const fn safe_pages(&self) -> u32 {
        self.safe_pages
    }

    /// Blocks that are bad.
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

    fn is_stuck(&self, block: BlockNumber) -> bool {
        self.has(block, Mark::Stuck)
    }

    /// The running operation supersedes the page: it is not valid any more, and its block not free
    /// before [`release`](Self::release).
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
        while let Some(Some(block)) = self.best(Choice::Release, |_| false) {
            self.free_held(block);
        }
        if self.is_ordered() {
            return;
        }
        for block in self.all() {
            if self.has(block, Mark::Held) {
                self.free_held(block);
            }
        }
    }

    fn free_held(&mut self, block: BlockNumber) {
        self.set_mark(block, Mark::Held, false);
        self.empty_blocks += u32::from(self.is_empty(block));
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

    /// Forgets which pages are valid; but no block that holds one is free before the next operation
    /// commits.
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

    /// Whether the best block for each choice is known.
    const fn is_ordered(&self) -> bool {
        is_ordered(self.blocks, self.counts_erases())
    }

    /// Where the order of the blocks begins in the table.
    const fn order_at(&self) -> usize {
        self.table.len() - order_bytes(self.blocks, self.counts_erases())
    }

    fn order_word(&self, at: usize) -> u32 {
        u32_at(self.table, self.order_at() + WORD_BYTES * at)
    }

    fn set_order_word(&mut self, at: usize, to: u32) {
        let at = self.order_at() + WORD_BYTES * at;
        self.table[at..at + WORD_BYTES].copy_from_slice(&to.to_le_bytes());
    }

    /// Where the blocks that are kept count of stand in the table.
    const fn tracked_at(&self) -> usize {
        let words = self.counts_erases() as usize + self.ages as usize;
        words * self.blocks as usize * WORD_BYTES
    }

    /// Valid pages of all blocks.
    pub const fn valid_pages(&self) -> u32 {
        self.valid_pages
    }

    /// All blocks, by their numbers.
    pub fn all(&self) -> impl Iterator<Item = BlockNumber> + Clone + use<> {
        (0..self.blocks).map(BlockNumber)
    }

    /// Blocks that may be erased and written.
    pub fn free_blocks(&self, active: Option<BlockNumber>) -> u32 {
        self.empty_blocks - u32::from(active.is_some_and(|block| self.is_empty(block)))
    }

    /// Blocks of the chip.
    pub const fn count(&self) -> u32 {
        self.blocks
    }

    /// One bit for each page, from the lowest bit of the first byte on: whether the page is valid.
    /// The bits behind the last page mean nothing.
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

    /// Whether the valid pages of a block are found by looking for each.
    pub const fn searches(&self) -> bool {
        self.validity.searches()
    }

    /// Where the count of `block` stands among the bits.
    const fn count_at(&self, block: BlockNumber) -> (usize, usize) {
        let size = self.validity.count_bytes(self.pages_per_block);
        (self.bits.len() - size * (self.count() as usize - block.0 as usize), size)
    }

    /// Valid pages of the block, where blocks are counted.
    fn counted_in(&self, block: BlockNumber) -> u32 {
        let (at, size) = self.count_at(block);
        let mut count = [0; 4];
        count[..size].copy_from_slice(&self.bits[at..at + size]);
        u32::from_le_bytes(count)
    }

    /// The block has one valid page more, or less.
    fn count_page(&mut self, block: BlockNumber, valid: bool) {
        let count = self.counted_in(block);
        let count = if valid { count + 1 } else { count.saturating_sub(1) };
        let (at, size) = self.count_at(block);
        self.bits[at..at + size].copy_from_slice(&count.to_le_bytes()[..size]);
    }

    /// A page of the block belongs to no node, as was just found out. Where pages are searched for,
    /// it never counted.
    pub fn note_unreachable(&mut self, page: PageNumber) {
        if !self.searches() {
            self.set_valid(page, false);
        }
    }

    /// Valid pages of the block.
    pub fn valid_in(&self, block: BlockNumber) -> u32 {
        if self.searches() {
            return self.counted_in(block);
        }
        let from = block.0 as usize * self.pages_per_block as usize;
        let to = from + self.pages_per_block as usize;
        count_bits(self.bits, from, to)
    }

    /// Whether a page of the block is valid: known as soon as one is found.
    fn has_valid(&self, block: BlockNumber) -> bool {
        if self.searches() {
            return self.counted_in(block) > 0;
        }
        let from = block.0 as usize * self.pages_per_block as usize;
        has_bits(self.bits, from, from + self.pages_per_block as usize)
    }

    /// Whether the page is valid; where pages are searched for, whether it may be.
    pub fn is_valid(&self, page: PageNumber) -> bool {
        if self.searches() {
            return self.valid_in(BlockNumber(page.0 / self.pages_per_block)) > 0;
        }
        Bits(&*self.bits).has(page.0 as usize)
    }

    /// The page is valid from now on, or is garbage.
    pub fn set_valid(&mut self, page: PageNumber, valid: bool) {
        if !self.searches() && self.is_valid(page) == valid {
            return;
        }
        let block = BlockNumber(page.0 / self.pages_per_block);
        let endangered = u32::from(self.is_bad(block));
        if valid {
            self.empty_blocks -= u32::from(self.is_empty(block));
            self.valid_pages += 1;
            self.endangered_pages += endangered;
        } else {
            self.valid_pages -= 1;
            self.endangered_pages -= endangered;
        }
        if self.searches() {
            self.count_page(block, valid);
        } else {
            Bits(&mut *self.bits).set(page.0 as usize, valid);
        }
        if !valid {
            self.empty_blocks += u32::from(self.is_empty(block));
        }
        self.reorder(block);
    }

    /// Whether the block can have a valid page more: if not, two nodes refer to one.
    pub fn can_have(&self, page: PageNumber) -> bool {
        if self.searches() {
            self.valid_in(BlockNumber(page.0 / self.pages_per_block)) < self.pages_per_block
        } else {
            !self.is_valid(page)
        }
    }

    /// How worn blocks are spared.
    pub const fn wear(&self) -> Wear {
        self.wear
    }

    /// The block is erased for the `count`th time.
    pub fn note_erase(&mut self, block: BlockNumber, count: u32) {
        self.set_erase_count(block, count);
        self.erased = (block, count);
    }

    /// The block, which was erased, is written from now on.
    pub fn note_open(&mut self, block: BlockNumber) {
        self.last = (block, self.erase_count(block));
        self.erased = (NO_BLOCK, 0);
        if !self.counts_erases() {
            self.set_mark(block, Mark::Young, true);
        }
    }

    /// The newest pages stand in `block`, which was erased `count` times.
    pub fn set_last(&mut self, block: BlockNumber, count: u32) {
        self.last = (block, count);
    }

    /// Counts a superseded page of `block`, if blocks are kept count of.
    pub fn track(&mut self, block: BlockNumber) {
        let (from, to) = (self.tracked_at(), self.order_at());
        tracked::note(&mut self.table[from..to], block);
    }

    /// Pages of `block` known to be superseded since the mount.
    pub fn superseded_in(&self, block: BlockNumber) -> u32 {
        tracked::count(&self.table[self.tracked_at()..self.order_at()], block)
    }

    /// The block is erased: nothing of it is superseded any more.
    pub fn untrack(&mut self, block: BlockNumber) {
        let (from, to) = (self.tracked_at(), self.order_at());
        tracked::forget(&mut self.table[from..to], block);
    }

    /// The erase of `block` that comes next will be its `count`th, as its first page says.
    pub const fn expect_erase(&mut self, block: BlockNumber, count: u32) {
        self.erased = (block, count);
    }

    /// What [`expect_erase`](Self::expect_erase) noted of `block`, if it was the last.
    pub fn expected_erase(&self, block: BlockNumber) -> Option<u32> {
        (self.erased.0 == block).then_some(self.erased.1)
    }

    /// Erases of the block that was opened last.
    pub const fn last_erases(&self) -> u32 {
        self.last.1
    }

    /// The block does not rest before the hand of the clock comes back to it.
    pub fn set_young(&mut self, block: BlockNumber) {
        self.set_mark(block, Mark::Young, true);
    }
}
