//! The account of one cache slot, as bytes in the buffer that the user gave, and what staged pages are called.

use super::STAGED;
use crate::bytes::u32_at;

/// Bytes of the account of a slot.
pub const SLOT_BYTES: usize = 20;

/// Bytes of a staged page's number and its place on the chip.
pub const RENAMED_BYTES: usize = 8;

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Empty = 0,
    /// A page of the chip.
    Clean = 1,
    /// A page that is not on the chip yet.
    Staged = 2,
    /// A page that was staged and that the running operation supersedes.
    Superseded = 3,
}

/// The account of a slot.
#[derive(Clone, Copy)]
pub struct Slot {
    pub page: u32,
    /// The number of a written page while it was staged.
    pub staged_as: u32,
    /// When the page was allocated (write cache) or last read (read cache).
    pub stamp: u32,
    pub records: u32,
    pub state: State,
    pub lowest: u8,
    /// Height of the tree if the page holds its root and no newer page does, else 0.
    pub height: u8,
}

impl Slot {
    pub fn read(bytes: &[u8]) -> Self {
        let word = |at| u32_at(bytes, at);
        let state = match bytes[16] {
            1 => State::Clean,
            2 => State::Staged,
            3 => State::Superseded,
            _ => State::Empty,
        };
        Slot {
            page: word(0),
            staged_as: word(12),
            stamp: word(4),
            records: word(8),
            state,
            lowest: bytes[17],
            height: bytes[18],
        }
    }

    pub fn write(&self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&self.page.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.stamp.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.records.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.staged_as.to_le_bytes());
        bytes[16..].copy_from_slice(&[self.state as u8, self.lowest, self.height, 0]);
    }
}

/// What staged pages are called now.
pub struct Names<'c> {
    pub renamed: &'c [u8],
    pub slots: &'c [u8],
}

impl Names<'_> {
    /// Where the page with this number stands now.
    pub fn resolve(&self, page: u32) -> u32 {
        if page & STAGED == 0 {
            return page;
        }
        let renamed = self.renamed.chunks_exact(RENAMED_BYTES);
        let mut renamed = renamed.map(|entry| (u32_at(entry, 0), u32_at(entry, 4)));
        if let Some((_, now)) = renamed.find(|&(staged, _)| staged == page) {
            return now;
        }
        let mut slots = self.slots.chunks_exact(SLOT_BYTES).map(Slot::read);
        let written = |slot: &Slot| slot.state == State::Clean && slot.staged_as == page;
        slots.find(written).map_or(page, |slot| slot.page)
    }
}
