//! The totals of the block table: valid pages, and free and bad blocks.
//!
//! The table knows all of them from its marks; a count is kept, so that nobody has to count again.

/// Totals over all blocks of a chip.
pub(super) struct Counts {
    valid_pages: u32,
    /// Good, unreserved blocks without a valid page, the active one included.
    empty_blocks: u32,
    bad_blocks: u32,
    /// Valid pages on bad blocks.
    endangered_pages: u32,
}

impl Counts {
    /// The totals of no block.
    pub const NONE: Self =
        Self { valid_pages: 0, empty_blocks: 0, bad_blocks: 0, endangered_pages: 0 };

    pub const fn valid_pages(&self) -> u32 {
        self.valid_pages
    }

    pub const fn empty_blocks(&self) -> u32 {
        self.empty_blocks
    }

    pub const fn bad_blocks(&self) -> u32 {
        self.bad_blocks
    }

    pub const fn endangered_pages(&self) -> u32 {
        self.endangered_pages
    }

    /// That many blocks are bad.
    pub const fn forget_bad(&mut self, bad_blocks: u32) {
        self.bad_blocks = bad_blocks;
    }

    /// No page is valid, and that many blocks are free.
    pub const fn forget_valid(&mut self, empty_blocks: u32) {
        (self.valid_pages, self.endangered_pages) = (0, 0);
        self.empty_blocks = empty_blocks;
    }

    /// A block may have become free: whether it `is_free`.
    pub fn note_freed(&mut self, is_free: bool) {
        self.empty_blocks += u32::from(is_free);
    }

    /// A block is not free from now on: whether it `was_free`.
    pub fn note_taken(&mut self, was_free: bool) {
        self.empty_blocks -= u32::from(was_free);
    }

    /// A block with `valid` valid pages became bad.
    pub const fn note_bad(&mut self, valid: u32) {
        self.bad_blocks += 1;
        self.endangered_pages += valid;
    }

    /// A page became valid, maybe on a bad block.
    pub fn note_valid(&mut self, on_bad: bool) {
        self.valid_pages += 1;
        self.endangered_pages += u32::from(on_bad);
    }

    /// Valid pages of one block became garbage, maybe of a bad block.
    pub const fn note_garbage(&mut self, count: u32, on_bad: bool) {
        self.valid_pages -= count;
        self.endangered_pages -= if on_bad { count } else { 0 };
    }

    /// Takes back a block that became free since there were `free`: it is held.
    ///
    /// Returns whether there was one.
    pub const fn take_freed(&mut self, free: u32) -> bool {
        let is_freed = self.empty_blocks > free;
        if is_freed {
            self.empty_blocks = free;
        }
        is_freed
    }
}
