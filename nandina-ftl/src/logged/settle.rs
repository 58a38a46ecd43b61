//! Settling: the first change after a mount leaves nothing that may be torn.
//!
//! What was being programmed may be torn, and it may not be visible now. It is what comes last in
//! its block: a sector, or a page. Until it is gone, nothing gets a higher sequence number but the
//! copies of a merge, which do not count before the last of them: so a cut in between leaves it the
//! newest of all, and the next mount looks at it as this one did.
//!
//! 1. Free blocks that are not blank are erased: what a merge left that did not end, or what an
//!    erase left. First of all the block that the newest merge replaced: no later merge says that
//!    it did.
//! 2. A block where something lies behind what counts is merged, and erased. After these, so is a
//!    block of which another one has newer pages: its division was cut.

use nandina::flash::{BlockNumber, Flash};
use nandina::node::PageFault;
use nandina::{Fault, covered};

use super::maps::Row;
use super::{LOG, Logged};
use crate::ftl::mount::LOOKS;

/// Looks at each page of a free block behind the first one, without which no block is written.
const LOOKS_BEHIND: u32 = 6;

impl<F: Flash> Logged<'_, F> {
    /// Settles, unless that is done.
    ///
    /// Cost: reads of free blocks, and 48 reads for each block that is not full; erases and merges
    /// of what a cut has left.
    pub(super) fn settle(&mut self) -> Result<(), Fault<F::Error>> {
        if self.settled {
            return Ok(());
        }
        // If it fails half way, only another mount knows what is torn now.
        self.in_doubt = true;
        self.media.sequence += self.gap();
        let replaced = self.replaced;
        let first = self.media.blocks.all().filter(|block| block.0 == replaced);
        for block in first.chain(self.media.blocks.all()) {
            if self.media.blocks.is_empty(block)
                && !self.media.is_clean(block)
                && !self.is_blank(block)?
            {
                covered!("logged: a free block is not blank");
                self.media.erase(block)?;
            }
        }
        self.media.mark_bad_blocks()?;
        // What may be torn comes first: it has to be the newest until its block is replaced.
        for block in self.media.blocks.all() {
            let row = self.maps.row(block.0);
            if row.held > 0 && self.is_torn(block, &row)? {
                covered!("logged: something lies behind what counts in a block");
                self.merge(block, None)?;
            }
        }
        for block in self.media.blocks.all() {
            let row = self.maps.row(block.0);
            if row.held > 0 && row.is_suspect {
                covered!("logged: a suspect is merged");
                self.merge(block, None)?;
            }
        }
        (self.settled, self.in_doubt) = (true, false);
        Ok(())
    }

    /// Whether each page of a free block reads as blank, and the first one each time.
    fn is_blank(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let behind = if block.0 == self.replaced { LOOKS } else { LOOKS_BEHIND };
        for place in 0..self.block_pages {
            for _ in 0..if place == 0 { LOOKS } else { behind } {
                if self.media.read(self.media.page_at(block, place), LOG)? != Err(PageFault::Erased)
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether the next page of a block, or the next sector, does not read as blank each time.
    fn is_torn(&mut self, block: BlockNumber, row: &Row) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if u32::from(row.next) < self.block_pages {
                let page = self.media.page_at(block, row.next.into());
                if self.media.read(page, LOG)? != Err(PageFault::Erased) {
                    return Ok(true);
                }
            }
            if row.log > 0 && u32::from(row.filled) < self.sectors.count {
                let page = self.media.page_at(block, u32::from(row.log) - 1);
                let is_read = self.media.read(page, LOG)? != Err(PageFault::Unreadable);
                if !is_read || !self.is_sector_blank(row.filled.into()) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
