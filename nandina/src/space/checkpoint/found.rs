//! What a checkpoint on the chip says of the index.
//!
//! Nothing is read or written here.

use super::ANCHORS;
use super::page::{List, Tree};
use crate::flash::BlockNumber;
use crate::node::PageHeader;

/// A checkpoint: its tree, and where newer pages can be.
pub struct Checkpoint {
    /// The header of the checkpoint's first page: newer pages have higher numbers.
    pub header: PageHeader,
    pub tree: Tree,
    /// The block that was being written, and the place of its next page.
    pub active: Option<(BlockNumber, u32)>,
    list: List,
    parts: u32,
}

impl Checkpoint {
    /// A checkpoint of `parts` pages that was found on the chip.
    pub const fn new(
        header: PageHeader,
        tree: Tree,
        active: Option<(BlockNumber, u32)>,
        list: List,
        parts: u32,
    ) -> Self {
        Self { header, tree, active, list, parts }
    }

    /// The number of the checkpoint's last page.
    pub fn last_sequence(&self) -> u64 {
        self.header.sequence + u64::from(self.parts)
    }

    /// Whether it is one that an index writes into `block`.
    ///
    /// A listed block is opened and erased, so it is listed once, and is neither an anchor nor
    /// `block`, nor the block that was being written. A damaged page can say otherwise.
    pub fn can_be_in(&self, block: BlockNumber) -> bool {
        let active = self.active.map(|(active, _)| active);
        (0..).zip(self.listed()).all(|(at, listed)| {
            *listed != block
                && Some(*listed) != active
                && !ANCHORS.contains(listed)
                && !self.listed()[..at].contains(listed)
        })
    }

    /// The blocks that may have been opened since.
    pub fn listed(&self) -> &[BlockNumber] {
        self.list.as_slice()
    }
}
