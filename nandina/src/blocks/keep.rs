//! Which blocks are not free although no page of them is valid.
//!
//! A block is *held* if the running operation superseded its last valid page: an earlier state
//! needs it until the commit. It is *reserved* for checkpoints, or open *beside* the active block.

use super::order::Choice;
use super::{Blocks, Mark, NO_BLOCK};
use crate::bytes::Bits;
use crate::flash::{BlockNumber, PageNumber};

/// Whether some blocks are held.
pub(super) struct Held(bool);

impl Held {
    /// No block is held.
    pub const NONE: Self = Self(false);

    #[cfg(debug_assertions)]
    pub const fn are_some(&self) -> bool {
        self.0
    }

    const fn note(&mut self) {
        self.0 = true;
    }

    /// No block is held from now on. Returns whether some were.
    pub const fn take_all(&mut self) -> bool {
        core::mem::replace(&mut self.0, false)
    }
}

/// A block that is open beside the active one, if there is one.
///
/// Without the feature `second-block` there is none, and this takes no RAM.
#[derive(Clone, Copy)]
pub(super) struct Beside {
    #[cfg(feature = "second-block")]
    block: BlockNumber,
    /// The block that was beside the active one last, unless it was opened last.
    ///
    /// It changes with every page while it is active.
    #[cfg(feature = "second-block")]
    turned: BlockNumber,
}

impl Beside {
    pub const NONE: Self = Self {
        #[cfg(feature = "second-block")]
        block: NO_BLOCK,
        #[cfg(feature = "second-block")]
        turned: NO_BLOCK,
    };

    /// Whether it is this block.
    pub fn is(self, block: BlockNumber) -> bool {
        #[cfg(feature = "second-block")]
        return block == self.block;
        #[cfg(not(feature = "second-block"))]
        {
            let _ = block;
            false
        }
    }

    /// The block that was beside the active one last, or [`NO_BLOCK`].
    ///
    /// It is not the one that was opened last.
    pub const fn turned(self) -> BlockNumber {
        #[cfg(feature = "second-block")]
        return self.turned;
        #[cfg(not(feature = "second-block"))]
        NO_BLOCK
    }
}

#[cfg(feature = "second-block")]
impl Beside {
    /// From now on it is `block`, or none. Returns the one before, or [`NO_BLOCK`].
    const fn replace(&mut self, block: Option<BlockNumber>) -> BlockNumber {
        let block = match block {
            Some(block) => block,
            None => NO_BLOCK,
        };
        core::mem::replace(&mut self.block, block)
    }

    /// Notes the block that was beside the active one last. Returns the one before.
    const fn note_turned(&mut self, block: BlockNumber) -> BlockNumber {
        core::mem::replace(&mut self.turned, block)
    }
}

#[cfg(feature = "second-block")]
impl Blocks<'_> {
    /// Keeps this block open beside the active one, and no other.
    pub fn set_beside(&mut self, beside: Option<BlockNumber>) {
        let before = self.beside.replace(None);
        if before != NO_BLOCK {
            self.counts.note_freed(self.is_empty(before));
            if before != self.last.0 && before != self.beside.turned() {
                let turned = self.beside.note_turned(before);
                self.reorder_apart(turned);
                self.reorder_apart(before);
            }
        }
        if let Some(block) = beside {
            self.counts.note_taken(self.is_empty(block));
            self.beside.replace(Some(block));
            self.reorder(block);
        }
    }
}

impl Blocks<'_> {
    /// Reserves the block for checkpoints, or frees it again. It holds no valid page.
    pub fn set_reserved(&mut self, block: BlockNumber, reserved: bool) {
        let before = self.is_empty(block);
        self.set_mark(block, Mark::Reserved, reserved);
        self.counts.note_taken(before);
        self.counts.note_freed(self.is_empty(block));
    }

    /// Whether the block is kept for checkpoints.
    pub fn is_reserved(&self, block: BlockNumber) -> bool {
        self.has(block, Mark::Reserved)
    }

    /// Makes the page invalid because the running operation supersedes it.
    ///
    /// Its block is not free before [`release`](Self::release).
    pub fn supersede(&mut self, page: PageNumber) {
        let free = self.counts.empty_blocks();
        self.set_valid(page, false);
        self.hold_emptied(BlockNumber(page.0 / self.pages_per_block()), free);
    }

    /// The same for several pages.
    ///
    /// Cost: pages of one block that follow one another reorder the blocks once.
    pub fn supersede_all(&mut self, pages: impl Iterator<Item = PageNumber>) {
        let mut pages = pages.peekable();
        while let Some(page) = pages.next() {
            let block = BlockNumber(page.0 / self.pages_per_block());
            let (free, had_valid) = (self.counts.empty_blocks(), self.has_valid(block));
            let mut count = u32::from(self.take_valid(page));
            while let Some(page) = pages.next_if(|next| next.0 / self.pages_per_block() == block.0)
            {
                count += u32::from(self.take_valid(page));
            }
            self.count_garbage(block, count);
            self.reorder_page(block, had_valid, false);
            self.hold_emptied(block, free);
        }
    }

    /// Makes the page garbage.
    ///
    /// Returns whether [`count_garbage`](Self::count_garbage) must count it.
    fn take_valid(&mut self, page: PageNumber) -> bool {
        if self.searches() {
            self.change_valid(page, false);
            return false;
        }
        let mut bits = Bits(&mut *self.bits);
        let was_valid = bits.has(page.0 as usize);
        bits.set(page.0 as usize, false);
        was_valid
    }

    /// Counts `count` pages of `block` as garbage.
    fn count_garbage(&mut self, block: BlockNumber, count: u32) {
        if count > 0 {
            self.counts.note_garbage(count, self.is_bad(block));
            self.count_valid(block, -(count as i32));
            self.counts.note_freed(self.is_empty(block));
        }
    }

    /// Holds the block if it became free: `free` blocks were so before.
    fn hold_emptied(&mut self, block: BlockNumber, free: u32) {
        if self.counts.take_freed(free) {
            self.held.note();
            self.set_mark(block, Mark::Held, true);
        }
    }

    /// Called on commit: blocks emptied by this operation become free.
    pub fn release(&mut self) {
        if !self.held.take_all() {
            return;
        }
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
        self.counts.note_freed(self.is_empty(block));
    }

    /// Keeps the block from becoming free before the next operation commits.
    pub fn hold(&mut self, block: BlockNumber) {
        self.counts.note_taken(self.is_empty(block));
        self.held.note();
        self.set_mark(block, Mark::Held, true);
    }

    /// Ends the reservation of every block.
    pub fn unreserve_all(&mut self) {
        for block in self.all() {
            self.set_reserved(block, false);
        }
    }

    /// Forgets which pages are valid, and holds the blocks that have some.
    ///
    /// No block that holds a valid page becomes free before the next operation commits.
    pub fn hold_valid(&mut self) {
        for block in self.all() {
            if self.valid_in(block) > 0 {
                self.held.note();
                self.set_mark(block, Mark::Held, true);
            }
        }
        self.forget_valid();
    }

    /// The number of blocks that become free when the next operation commits.
    ///
    /// If `reserved`, it includes those that become free when no block is reserved.
    pub fn held_blocks(&self, reserved: bool) -> u32 {
        let held = self.all().filter(|&block| {
            let is_held =
                self.has(block, Mark::Held) || reserved && self.has(block, Mark::Reserved);
            is_held && !self.has(block, Mark::Bad) && self.valid_in(block) == 0
        });
        held.count() as u32
    }
}
