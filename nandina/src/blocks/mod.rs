//! The block table: what is known of each erase block.
//!
//! For each block it records which pages are valid, whether the block is bad, and how worn it is;
//! from that it chooses the block to open, to empty or to collect next. It never reads, programs or
//! erases.
//!
//! RAM: one bit for each page, and for each block one bit for each mark; four bytes for each block
//! where its erases are counted. A mount rebuilds all of it. Some victim policies need more: the
//! time when a block was opened, or counts of the superseded pages of some blocks.

#[cfg(debug_assertions)]
mod audit;
mod choose;
mod counts;
mod keep;
mod order;
mod tracked;
mod validity;
mod victims;
mod wear;

pub use order::ORDERED_MIN;
pub use validity::LivenessTracking;
pub use victims::{GcPolicy, TRACKED_MAX};
pub use wear::WearPolicy;
pub(crate) use wear::{LAG, LOOK_EVERY, TRIES};

use counts::Counts;
use keep::{Beside, Held};
use order::{is_ordered, order_bytes};
use tracked::TRACKED_BYTES;

use crate::bytes::{Bits, count_bits, has_bits, u32_at};
use crate::flash::{BlockNumber, Geometry, PageNumber};

/// Means "no block": no chip has this many blocks.
pub(crate) const NO_BLOCK: BlockNumber = BlockNumber(u32::MAX);

/// Bytes for each block whose erases are counted, and for each whose age is known.
const WORD_BYTES: usize = 4;

/// The most pages of a block.
pub const PAGES_MAX: u32 = 4095;

/// A property of a block, one bit each.
#[derive(Clone, Copy)]
enum Mark {
    /// The block is bad: it is never erased or programmed again.
    ///
    /// Its valid pages move first.
    Bad,
    /// A page of the block could not be moved: it is no victim until the next mount.
    Stuck,
    /// The block belongs to the checkpoints: it never holds pages of the tree.
    Reserved,
    /// The running operation superseded the last valid page of the block.
    ///
    /// The block is not free before that operation commits.
    Held,
    /// The block was opened since the clock hand last passed it.
    ///
    /// Only where erases are not counted.
    Young,
}

/// The number of marks of a block.
const fn marks(wear: WearPolicy) -> usize {
    match wear {
        WearPolicy::Counted => 4,
        WearPolicy::Circular => 5,
    }
}

/// The state of every block of a chip.
pub struct Blocks<'b> {
    /// Three parts: a bit for each page, then the marks, then the counts.
    ///
    /// A page's bit says whether it is valid. Each mark has one bit for each block. Where pages
    /// have no bits, a count for each block comes last.
    bits: &'b mut [u8],
    validity: LivenessTracking,
    /// Up to four parts, each present only if it is needed.
    ///
    /// The erase count of each block, if erases are counted. The low half of the sequence number of
    /// each block's first page, if the victim policy uses ages. The counts of superseded pages
    /// since the mount, for the tracked blocks: a block (u32) and its count (u16), 0 for a free
    /// entry. The order of the blocks, if they are kept in order.
    table: &'b mut [u8],
    wear: WearPolicy,
    ages: bool,
    // Two bytes each: a block of an index has at most 4,095 pages, one of an FTL 65,535.
    pages_per_block: u16,
    /// The number of pages of a block that are ever programmed.
    safe_pages: u16,
    blocks: u32,
    counts: Counts,
    most_erased: u32,
    /// The block that was opened last, and its erase count.
    last: (BlockNumber, u32),
    /// The block that was erased last, and its erase count.
    erased: (BlockNumber, u32),
    /// Whether some blocks are held.
    held: Held,
    /// It is neither free nor a victim.
    beside: Beside,
}

impl<'b> Blocks<'b> {
    /// Bytes of RAM that the block table takes.
    pub const fn ram_needed(
        geometry: &Geometry,
        validity: LivenessTracking,
        victims: GcPolicy,
        wear: WearPolicy,
    ) -> usize {
        Self::bits_bytes(geometry, validity, wear) + Self::table_bytes(geometry, victims, wear)
    }

    const fn bits_bytes(
        geometry: &Geometry,
        validity: LivenessTracking,
        wear: WearPolicy,
    ) -> usize {
        let bits = validity.page_bits(geometry) + marks(wear) * geometry.blocks as usize;
        let counts = validity.count_bytes(geometry.pages_per_block) * geometry.blocks as usize;
        bits.div_ceil(8) + counts
    }

    const fn table_bytes(geometry: &Geometry, victims: GcPolicy, wear: WearPolicy) -> usize {
        let words = geometry.blocks as usize * WORD_BYTES;
        let is_counted = matches!(wear, WearPolicy::Counted);
        let counts = if is_counted { words } else { 0 };
        counts
            + order_bytes(geometry.blocks, is_counted)
            + match victims {
                GcPolicy::CostBenefit => words,
                GcPolicy::Tracked(blocks) => blocks as usize * TRACKED_BYTES,
                _ => 0,
            }
    }

    /// An empty table for a chip, in the first bytes of `ram`.
    ///
    /// Of each block `safe_pages` are ever programmed.
    pub fn new(
        ram: &'b mut [u8],
        geometry: &Geometry,
        validity: LivenessTracking,
        victims: GcPolicy,
        wear: WearPolicy,
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
            ages: victims == GcPolicy::CostBenefit,
            pages_per_block: geometry.pages_per_block as u16,
            safe_pages: safe_pages as u16,
            blocks: geometry.blocks,
            counts: Counts::NONE,
            most_erased: 0,
            last: (BlockNumber(0), 0),
            erased: (NO_BLOCK, 0),
            held: Held::NONE,
            beside: Beside::NONE,
        };
        blocks.clear();
        blocks
    }

    /// Forgets every valid page, erase count and reservation.
    ///
    /// A block that was found to be bad stays bad.
    pub fn clear(&mut self) {
        self.table.fill(0);
        for block in self.all() {
            for mark in [Mark::Stuck, Mark::Reserved, Mark::Held] {
                self.put_mark(block, mark, false);
            }
            if self.wear == WearPolicy::Circular {
                self.put_mark(block, Mark::Young, false);
            }
        }
        self.held = Held::NONE;
        self.beside = Beside::NONE;
        self.most_erased = 0;
        self.last = (BlockNumber(self.blocks - 1), 0);
        self.erased = (NO_BLOCK, 0);
        let bad = self.all().filter(|&block| self.is_bad(block)).count();
        self.counts.forget_bad(bad as u32);
        self.forget_valid();
    }

    /// Marks every page as not valid, and keeps all other knowledge of the blocks.
    pub fn forget_valid(&mut self) {
        if self.searches() {
            let from = self.bits.len()
                - self.validity.count_bytes(self.pages_per_block()) * self.blocks as usize;
            self.bits[from..].fill(0);
        }
        let (pages, bytes) = (self.page_bits(), self.page_bits() / 8);
        self.bits[..bytes].fill(0);
        for page in bytes * 8..pages {
            Bits(&mut *self.bits).set(page, false);
        }
        self.count_none_valid();
        let empty = self.all().filter(|&block| self.is_empty(block)).count();
        self.counts.forget_valid(empty as u32);
        self.reorder_all();
    }

    /// The number of bits for pages.
    const fn page_bits(&self) -> usize {
        if self.searches() { 0 } else { self.blocks as usize * self.pages_per_block() as usize }
    }

    fn has(&self, block: BlockNumber, mark: Mark) -> bool {
        let at = self.page_bits() + mark as usize * self.blocks as usize + block.0 as usize;
        Bits(&*self.bits).has(at)
    }

    fn set_mark(&mut self, block: BlockNumber, mark: Mark, to: bool) {
        self.put_mark(block, mark, to);
        self.reorder(block);
    }

    /// Sets the mark without updating the order of the blocks.
    fn put_mark(&mut self, block: BlockNumber, mark: Mark, to: bool) {
        let at = self.page_bits() + mark as usize * self.blocks as usize + block.0 as usize;
        Bits(&mut *self.bits).set(at, to);
    }

    /// Whether the erases of each block are counted.
    pub const fn counts_erases(&self) -> bool {
        matches!(self.wear, WearPolicy::Counted)
    }

    /// The word of `block` in the part of the table after `before` words a block.
    fn word(&self, block: BlockNumber, before: usize) -> u32 {
        u32_at(self.table, (before * self.blocks as usize + block.0 as usize) * WORD_BYTES)
    }

    fn set_word(&mut self, block: BlockNumber, before: usize, to: u32) {
        let at = (before * self.blocks as usize + block.0 as usize) * WORD_BYTES;
        self.table[at..at + WORD_BYTES].copy_from_slice(&to.to_le_bytes());
    }

    /// How often the block was erased.
    ///
    /// Where erases are not counted, this is known only for the blocks that were opened and erased
    /// last.
    pub fn erase_count(&self, block: BlockNumber) -> u32 {
        if self.counts_erases() {
            self.word(block, 0)
        } else {
            let known = [self.erased, self.last].into_iter().find(|known| known.0 == block);
            known.map_or(0, |(_, count)| count)
        }
    }

    /// Records that the block was erased `count` times.
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

    /// Marks the block as bad: it is never erased or programmed again.
    pub fn set_bad(&mut self, block: BlockNumber) {
        if !self.is_bad(block) {
            self.counts.note_taken(self.is_empty(block));
            self.counts.note_bad(self.valid_in(block));
            self.set_mark(block, Mark::Bad, true);
        }
    }

    /// Whether the block is free: good, not kept, and without a valid page.
    ///
    /// So the active block may be, but not one that is open beside it.
    #[cfg_attr(feature = "large-devices", inline)]
    pub fn is_empty(&self, block: BlockNumber) -> bool {
        // This is the shortest way to the most frequent result.
        !self.has_valid(block) && !self.beside.is(block) && !self.is_kept(block)
    }

    /// Whether a mark keeps the block from being free.
    #[cfg_attr(feature = "large-devices", inline(never))]
    fn is_kept(&self, block: BlockNumber) -> bool {
        self.has(block, Mark::Bad) || self.has(block, Mark::Reserved) || self.has(block, Mark::Held)
    }

    const fn pages_per_block(&self) -> u32 {
        self.pages_per_block as u32
    }

    const fn safe_pages(&self) -> u32 {
        self.safe_pages as u32
    }

    /// The number of bad blocks.
    pub const fn bad_blocks(&self) -> u32 {
        self.counts.bad_blocks()
    }

    /// Marks the block as stuck, because one of its pages cannot be moved.
    ///
    /// It is no victim until the next mount.
    pub fn set_stuck(&mut self, block: BlockNumber) {
        self.set_mark(block, Mark::Stuck, true);
    }

    /// Clears the mark and returns whether it was set.
    pub fn take_stuck(&mut self, block: BlockNumber) -> bool {
        let stuck = self.is_stuck(block);
        self.set_mark(block, Mark::Stuck, false);
        stuck
    }

    fn is_stuck(&self, block: BlockNumber) -> bool {
        self.has(block, Mark::Stuck)
    }

    /// Records the sequence number of the first page of the block.
    pub fn set_opened_at(&mut self, block: BlockNumber, sequence: u64) {
        if self.ages {
            self.set_word(block, self.counts_erases().into(), sequence as u32);
        }
    }

    /// The low half of the sequence number of the block's first page; 0 if unknown.
    pub fn opened_at(&self, block: BlockNumber) -> u32 {
        if self.ages { self.word(block, self.counts_erases().into()) } else { 0 }
    }

    /// Whether the best block for each choice is known.
    const fn is_ordered(&self) -> bool {
        is_ordered(self.blocks, self.counts_erases())
    }

    /// The offset of the order of the blocks in the table.
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

    /// The offset of the tracked blocks in the table.
    const fn tracked_at(&self) -> usize {
        let words = self.counts_erases() as usize + self.ages as usize;
        words * self.blocks as usize * WORD_BYTES
    }

    /// Valid pages of the chip.
    pub const fn valid_pages(&self) -> u32 {
        self.counts.valid_pages()
    }

    /// All blocks, by their numbers.
    pub fn all(&self) -> impl Iterator<Item = BlockNumber> + Clone + use<> {
        (0..self.blocks).map(BlockNumber)
    }

    /// Blocks that may be erased and written.
    pub fn free_blocks(&self, active: Option<BlockNumber>) -> u32 {
        self.counts.empty_blocks() - u32::from(active.is_some_and(|block| self.is_empty(block)))
    }

    /// The number of blocks of the chip.
    pub const fn count(&self) -> u32 {
        self.blocks
    }

    /// One bit for each page: whether it is valid.
    ///
    /// The bits begin with the lowest bit of the first byte. Bits after that of the last page are
    /// undefined.
    pub fn valid_bits(&self) -> &[u8] {
        &self.bits[..self.page_bits().div_ceil(8)]
    }

    /// Whether the block may be collected for its garbage.
    pub fn is_victim(&self, block: BlockNumber, active: Option<BlockNumber>) -> bool {
        Some(block) != active
            && !self.beside.is(block)
            && !self.is_stuck(block)
            && !self.is_bad(block)
            && (1..self.safe_pages()).contains(&self.valid_in(block))
    }

    /// Whether pages of the block can be moved: it is neither bad nor stuck.
    pub(crate) fn can_move(&self, block: BlockNumber) -> bool {
        !self.is_stuck(block) && !self.is_bad(block)
    }

    /// A bad block that still holds valid pages, if there is one.
    pub fn failing(&self) -> Option<BlockNumber> {
        if self.counts.endangered_pages() == 0 {
            return None;
        }
        self.all()
            .find(|&block| self.is_bad(block) && self.valid_in(block) > 0 && !self.is_stuck(block))
    }

    /// Whether validity is searched for page by page instead of being stored.
    pub const fn searches(&self) -> bool {
        self.validity.searches()
    }

    /// The offset and the size of the count of `block` in `bits`.
    const fn count_at(&self, block: BlockNumber) -> (usize, usize) {
        let size = self.validity.count_bytes(self.pages_per_block());
        (self.bits.len() - size * (self.count() as usize - block.0 as usize), size)
    }

    /// Valid pages of the block, where blocks have counts.
    fn counted_in(&self, block: BlockNumber) -> u32 {
        let (at, size) = self.count_at(block);
        let mut count = [0; 4];
        count[..size].copy_from_slice(&self.bits[at..at + size]);
        u32::from_le_bytes(count)
    }

    /// Adjusts the count of the block by one valid page more or less.
    fn count_page(&mut self, block: BlockNumber, valid: bool) {
        let count = self.counted_in(block);
        let count = if valid { count + 1 } else { count.saturating_sub(1) };
        let (at, size) = self.count_at(block);
        self.bits[at..at + size].copy_from_slice(&count.to_le_bytes()[..size]);
    }

    /// Makes a page invalid that turned out to belong to no node.
    ///
    /// Where pages are searched for, such a page was never counted.
    pub fn note_unreachable(&mut self, page: PageNumber) {
        if !self.searches() {
            self.set_valid(page, false);
        }
    }

    /// The number of valid pages of the block.
    pub fn valid_in(&self, block: BlockNumber) -> u32 {
        if self.searches() {
            return self.counted_in(block);
        }
        if self.is_ordered() {
            return self.valid_count(block);
        }
        let from = block.0 as usize * self.pages_per_block() as usize;
        let to = from + self.pages_per_block() as usize;
        count_bits(self.bits, from, to)
    }

    /// Whether the block has a valid page.
    #[cfg_attr(feature = "large-devices", inline)]
    fn has_valid(&self, block: BlockNumber) -> bool {
        if self.is_ordered() && !self.searches() {
            return self.valid_count(block) > 0;
        }
        self.finds_valid(block)
    }

    /// The same where blocks are not in order. Stops at the first valid page.
    #[cfg_attr(feature = "large-devices", inline(never))]
    fn finds_valid(&self, block: BlockNumber) -> bool {
        if self.searches() {
            return self.counted_in(block) > 0;
        }
        let from = block.0 as usize * self.pages_per_block() as usize;
        has_bits(self.bits, from, from + self.pages_per_block() as usize)
    }

    /// Whether the page is valid; where pages are searched for, whether it may be.
    pub fn is_valid(&self, page: PageNumber) -> bool {
        if self.searches() {
            return self.valid_in(BlockNumber(page.0 / self.pages_per_block())) > 0;
        }
        Bits(&*self.bits).has(page.0 as usize)
    }

    /// Makes the page valid, or garbage.
    pub fn set_valid(&mut self, page: PageNumber, valid: bool) {
        let block = BlockNumber(page.0 / self.pages_per_block());
        let had_valid = self.is_ordered() && self.has_valid(block);
        self.change_valid(page, valid);
        self.reorder_page(block, had_valid, valid);
    }

    /// The same without updating the order of the blocks.
    fn change_valid(&mut self, page: PageNumber, valid: bool) {
        // Where valid pages of a block are only counted, one more may become valid. A pointer that
        // reads differently from when pages were counted can lead to a block that has none.
        if self.is_valid(page) == valid && !(valid && self.searches()) {
            return;
        }
        let block = BlockNumber(page.0 / self.pages_per_block());
        let is_bad = self.is_bad(block);
        if valid {
            self.counts.note_taken(self.is_empty(block));
            self.counts.note_valid(is_bad);
        } else {
            self.counts.note_garbage(1, is_bad);
        }
        if self.searches() {
            self.count_page(block, valid);
        } else {
            Bits(&mut *self.bits).set(page.0 as usize, valid);
            self.count_valid(block, if valid { 1 } else { -1 });
        }
        if !valid {
            self.counts.note_freed(self.is_empty(block));
        }
    }

    /// Whether the block can have one more valid page.
    ///
    /// If not, two nodes refer to the same page.
    pub fn can_have(&self, page: PageNumber) -> bool {
        if self.searches() {
            self.valid_in(BlockNumber(page.0 / self.pages_per_block())) < self.pages_per_block()
        } else {
            !self.is_valid(page)
        }
    }

    /// How worn blocks are spared.
    pub const fn wear(&self) -> WearPolicy {
        self.wear
    }

    /// Records that the block is being erased for the `count`th time.
    pub fn note_erase(&mut self, block: BlockNumber, count: u32) {
        self.set_erase_count(block, count);
        self.erased = (block, count);
    }

    /// Records that the block, just erased, is opened for writing.
    pub fn note_open(&mut self, block: BlockNumber) {
        self.set_last(block, self.erase_count(block));
        self.erased = (NO_BLOCK, 0);
        if !self.counts_erases() {
            self.set_mark(block, Mark::Young, true);
        }
    }

    /// Records `block`, which was erased `count` times, as that of the newest pages.
    pub fn set_last(&mut self, block: BlockNumber, count: u32) {
        let before = core::mem::replace(&mut self.last, (block, count)).0;
        self.reorder_last(before, block);
    }

    /// Counts a superseded page of `block`, if blocks are tracked.
    pub fn track(&mut self, block: BlockNumber) {
        let (from, to) = (self.tracked_at(), self.order_at());
        tracked::note(&mut self.table[from..to], block);
    }

    /// Pages of `block` known to be superseded since the mount.
    pub fn superseded_in(&self, block: BlockNumber) -> u32 {
        tracked::count(&self.table[self.tracked_at()..self.order_at()], block)
    }

    /// Forgets the superseded pages of a block that is erased.
    pub fn untrack(&mut self, block: BlockNumber) {
        let (from, to) = (self.tracked_at(), self.order_at());
        tracked::forget(&mut self.table[from..to], block);
    }

    /// Records that the next erase of `block` will be its `count`th.
    ///
    /// The count comes from the block's first page.
    pub const fn expect_erase(&mut self, block: BlockNumber, count: u32) {
        self.erased = (block, count);
    }

    /// The count that [`expect_erase`](Self::expect_erase) recorded for `block`.
    ///
    /// `None` if another block was the last.
    pub fn expected_erase(&self, block: BlockNumber) -> Option<u32> {
        (self.erased.0 == block).then_some(self.erased.1)
    }

    /// Erases of the block that was opened last.
    pub const fn last_erases(&self) -> u32 {
        self.last.1
    }

    /// Marks the block as recently opened, until the clock hand returns to it.
    pub fn set_young(&mut self, block: BlockNumber) {
        self.set_mark(block, Mark::Young, true);
    }
}
