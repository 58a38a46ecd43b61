//! What a checkpoint on the chip says of the index.
//!
//! Nothing is read or written here.

use super::area::Place;
use super::page::{List, Summary};
use crate::flash::BlockNumber;
use crate::node::PageHeader;

/// A checkpoint: what it says of its owner, and where newer pages can be.
pub struct Checkpoint {
    /// The header of the checkpoint's first page: newer pages have higher numbers.
    pub header: PageHeader,
    /// What it records of its owner.
    pub summary: Summary,
    place: Place,
    /// The block that was being written, and the place of its next page.
    pub active: Option<(BlockNumber, u32)>,
    list: List,
    parts: u32,
}

impl Checkpoint {
    /// A checkpoint of `parts` pages that was found on the chip.
    pub const fn new(
        header: PageHeader,
        summary: Summary,
        place: Place,
        active: Option<(BlockNumber, u32)>,
        list: List,
        parts: u32,
    ) -> Self {
        Self { header, summary, place, active, list, parts }
    }

    /// Where it is on the chip.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// Pages of the checkpoint.
    pub const fn parts(&self) -> u32 {
        self.parts
    }

    /// The number of the checkpoint's last page.
    pub fn last_sequence(&self) -> u64 {
        self.header.sequence + u64::from(self.parts - 1)
    }

    /// The number of its anchor, if one was written after it.
    pub fn anchor_sequence(&self) -> u64 {
        self.last_sequence() + 1
    }

    /// The blocks that may have been opened since.
    pub fn listed(&self) -> &[BlockNumber] {
        self.list.as_slice()
    }
}
