//! How long the journal is: what was written and changed since the last commit.
//!
//! If its last page has slots, this file also knows how many of them are used. Nothing is read or
//! written here.

use crate::blocks::NO_BLOCK;
use crate::flash::{BlockNumber, PageNumber};

/// The pages of the journal since the last commit, their blocks, and the changes.
pub struct Length {
    /// Pages of the journal since the last commit, and the most of them.
    pages: u32,
    pages_max: u32,
    /// Blocks written since the last commit, and the newest of them.
    blocks: u32,
    block: BlockNumber,
    /// The number of changes since the last commit; it stops at its maximum.
    changes: u16,
    /// Slots of a page; 0 if changes are not programmed one by one.
    slots: u16,
    /// The page with slots that was begun last, and how many of them are used.
    ///
    /// Between them are the low bits of its sequence number.
    begun: Option<(PageNumber, u32, u16)>,
}

impl Length {
    /// No journal yet. It has at most `pages_max` pages, of that many `slots`.
    pub const fn new(pages_max: u32, slots: u16) -> Self {
        Self { pages: 0, pages_max, blocks: 0, block: NO_BLOCK, changes: 0, slots, begun: None }
    }

    /// Whether changes are programmed one by one.
    pub const fn has_slots(&self) -> bool {
        self.slots > 0
    }

    /// A page has been begun, and one slot of it is used.
    pub const fn begin(&mut self, page: PageNumber, sequence: u64) {
        self.begun = Some((page, sequence as u32, 1));
    }

    /// The next slot, and its page.
    ///
    /// There is none once another page was programmed after that one: `sequence` is the highest
    /// number that was given. So what may be torn is in the last page of its block.
    pub fn next_slot(&self, sequence: u64) -> Option<(PageNumber, u16)> {
        let (page, begun, used) = self.begun?;
        (begun == sequence as u32 && used < self.slots).then_some((page, used))
    }

    /// Counts a slot that was programmed.
    pub const fn note_slot(&mut self) {
        if let Some((_, _, used)) = &mut self.begun {
            *used += 1;
        }
    }

    /// Pages since the last commit.
    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// The most pages from one commit to the next.
    pub const fn pages_max(&self) -> u32 {
        self.pages_max
    }

    /// Blocks through which a mount looks for the journal.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Changes since the last commit; the number stops at its maximum.
    pub const fn changes(&self) -> u16 {
        self.changes
    }

    /// Counts a page of the journal in `block`.
    pub fn note_page(&mut self, block: BlockNumber) {
        self.pages += 1;
        self.note_block(block);
    }

    /// Counts `block` as one that a mount looks through for the journal.
    pub fn note_block(&mut self, block: BlockNumber) {
        self.blocks += u32::from(block != self.block);
        self.block = block;
    }

    /// Counts a change.
    pub const fn note_change(&mut self) {
        self.changes = self.changes.saturating_add(1);
    }

    /// Counts nothing: the tree was committed.
    pub const fn forget(&mut self) {
        *self = Self::new(self.pages_max, self.slots);
    }
}
