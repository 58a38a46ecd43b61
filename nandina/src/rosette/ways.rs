//! For tests: what each way to mount finds on the same chip.
//!
//! Nothing is written here, and no other file refers to it.

use super::leaves::Leaves;
use crate::error::OpenError;
use crate::flash::{Flash, PageNumber};

/// How a mount finds the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// As every mount does: by the trails after a checkpoint, if possible.
    Trails,
    /// By all pages after a checkpoint.
    Checkpoint,
    /// By the pages of all blocks.
    Pages,
}

/// What a mount has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Led<'d> {
    /// The newest page, and its number.
    pub newest: (PageNumber, u64),
    /// The newest leaf, unless it is older than the checkpoint.
    pub newest_leaf: Option<PageNumber>,
    /// The directory as it is in RAM: bytes of the lowest key of ranges, and pages.
    pub directory: &'d [u8],
    /// The records in the index.
    pub records: u32,
    /// The pages that count as valid.
    pub valid_pages: u32,
    /// Blocks that may hold a torn page.
    pub suspects: usize,
    /// Damage that no cut explains.
    pub unexplained_pages: u32,
}

impl<F: Flash> Leaves<'_, F> {
    /// Finds the index on the chip in this way, without settling.
    ///
    /// Returns `None` if no checkpoint can be used.
    pub fn led(&mut self, way: Way) -> Result<Option<Led<'_>>, OpenError<F::Error>> {
        self.state.begin_mount();
        let is_found = match way {
            Way::Pages => {
                self.find_in_all_blocks()?;
                true
            }
            Way::Trails | Way::Checkpoint => self.find_from_checkpoint(way == Way::Trails)?,
        };
        self.state.doubt();
        self.directory.narrow();
        Ok(is_found.then(|| Led {
            newest: self.torn.newest(),
            newest_leaf: self.torn.newest_leaf(),
            directory: self.directory.stored(),
            records: self.state.records(),
            valid_pages: self.log.blocks.valid_pages(),
            suspects: self.torn.suspects().len(),
            unexplained_pages: self.lost.unexplained_pages(),
        }))
    }
}
