//! The three ways to place a page that its data block cannot take.
//!
//! A policy only looks at the log blocks and names one. It programs nothing and merges nothing.

use super::maps::{Maps, NONE, Slot};
use crate::transit::Buffer;

/// What a policy knows: the log blocks, and the page to be written.
pub struct Logs<'m, 'b> {
    pub(super) maps: &'m Maps<'b>,
    /// The logical page.
    pub(super) logical: u32,
    /// The logical page that the host wrote before it.
    pub(super) previous: Option<u32>,
}

impl Logs<'_, '_> {
    fn slots(&self) -> impl Iterator<Item = (u32, Slot)> {
        self.maps.slots()
    }

    const fn block_pages(&self) -> u32 {
        self.maps.sizes.block_pages
    }

    const fn logical_block(&self) -> u32 {
        self.logical / self.block_pages()
    }

    const fn has_room(&self, slot: &Slot) -> bool {
        !slot.is_closed && slot.next < self.block_pages()
    }

    /// The log block with the lowest age of those that `is_candidate` selects.
    fn oldest(&self, mut is_candidate: impl FnMut(&Slot) -> bool) -> Option<u32> {
        let candidates = self.slots().filter(|(_, slot)| is_candidate(slot));
        candidates.min_by_key(|(_, slot)| slot.age).map(|(at, _)| at)
    }

    /// Makes room for a log block, or opens it.
    fn open(&self, most: u32, owner: u32, is_candidate: impl Fn(&Slot) -> bool) -> Choice {
        let used = self.slots().filter(|(_, slot)| is_candidate(slot)).count();
        match self.oldest(is_candidate) {
            Some(oldest) if used >= most as usize => Choice::Retire(oldest),
            _ => Choice::Open(owner),
        }
    }
}

/// What a policy chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The data block is copied with the new page.
    Merge,
    /// The page is appended to this log block.
    Append(u32),
    /// This log block is merged first.
    Retire(u32),
    /// A log block of this logical block, or of any, is opened first.
    Open(u32),
}

/// Where a page goes that cannot go to its place in the data block.
pub trait Policy: Copy {
    /// The number among the systems that write pages.
    const SYSTEM: u8;
    /// The fewest log blocks.
    const LOG_BLOCKS_MIN: u32;
    /// Whether a log block belongs to one logical block.
    const OWNED: bool;
    /// Whether the victim is the log block that was written least recently.
    ///
    /// Otherwise it is the one that was opened first.
    const BY_USE: bool;

    /// The most log blocks.
    fn log_blocks(&self) -> u32;

    /// Chooses.
    fn choose(&self, logs: &Logs<'_, '_>) -> Choice;

    /// The buffer blocks before it. Default: none.
    fn buffer(&self) -> Buffer {
        Buffer::NONE
    }
}

/// No log blocks: a page that is replaced copies its block (the plain block map).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block;

impl Policy for Block {
    const SYSTEM: u8 = 65;
    const LOG_BLOCKS_MIN: u32 = 0;
    const OWNED: bool = true;
    const BY_USE: bool = false;

    fn log_blocks(&self) -> u32 {
        0
    }

    fn choose(&self, _: &Logs<'_, '_>) -> Choice {
        Choice::Merge
    }
}

/// Log blocks that belong to one logical block each (BAST).
///
/// After Kim, Kim, Noh, Min and Cho (*A space-efficient flash translation layer for CompactFlash
/// systems*, 2002). The victim is the log block that was written least recently; the original's
/// rule could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bast {
    /// Log blocks, at least 1.
    pub log_blocks: u32,
}

impl Policy for Bast {
    const SYSTEM: u8 = 66;
    const LOG_BLOCKS_MIN: u32 = 1;
    const OWNED: bool = true;
    const BY_USE: bool = true;

    fn log_blocks(&self) -> u32 {
        self.log_blocks
    }

    fn choose(&self, logs: &Logs<'_, '_>) -> Choice {
        let owner = logs.logical_block();
        let mut own = logs.slots().filter(|(_, slot)| slot.owner == owner);
        match own.next() {
            Some((at, slot)) if logs.has_room(&slot) => Choice::Append(at),
            Some((at, _)) => Choice::Retire(at),
            None => logs.open(self.log_blocks, owner, |_| true),
        }
    }
}

/// When a sequential log block is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequentialRule {
    /// At each write to the first page of a logical block.
    FirstPage,
    /// At one that continues: the host wrote the page before it last.
    Continues,
}

/// One sequential log block, the others for any page (FAST).
///
/// After Lee, Park, Chung, Lee, Park and Song (*A log buffer-based flash translation layer using
/// fully-associative sector translation*, 2007). Random log blocks are merged in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fast {
    /// Log blocks, the sequential one included; at least 2.
    pub log_blocks: u32,
    /// When the sequential one is opened.
    pub sequential: SequentialRule,
}

impl Policy for Fast {
    const SYSTEM: u8 = 67;
    const LOG_BLOCKS_MIN: u32 = 2;
    const OWNED: bool = false;
    const BY_USE: bool = false;

    fn log_blocks(&self) -> u32 {
        self.log_blocks
    }

    fn choose(&self, logs: &Logs<'_, '_>) -> Choice {
        let (owner, offset) = (logs.logical_block(), logs.logical % logs.block_pages());
        let is_random = |slot: &Slot| slot.owner == NONE;
        let sequential = logs.slots().find(|(_, slot)| !is_random(slot));
        if let Some((at, slot)) = sequential
            && slot.owner == owner
            && slot.next == offset
            && logs.has_room(&slot)
        {
            return Choice::Append(at);
        }
        let continues = logs.logical.checked_sub(1).is_some_and(|it| logs.previous == Some(it));
        if offset == 0 && (self.sequential == SequentialRule::FirstPage || continues) {
            return match sequential {
                Some((at, _)) => Choice::Retire(at),
                None => logs.open(self.log_blocks, owner, |_| true),
            };
        }
        let active = logs.slots().find(|(_, slot)| is_random(slot) && logs.has_room(slot));
        match active {
            Some((at, _)) => Choice::Append(at),
            None => logs.open(self.log_blocks - 1, NONE, is_random),
        }
    }
}
