//! Pages of buffer blocks that have faded: they stay errors, and no older copy takes their place.
//!
//! Each page of a buffer block names the page before it. So a mount knows a page that it cannot
//! read by the page behind it, and counts it: a read returns an error, and a conversion writes below
//! that it is lost, until the host writes it again.
//!
//! Of several in a row only the last is named. A block with such pages is *doubtful*: each logical
//! page of its group that has no copy newer than them may be what faded, and reads as an error too.
//! A write or a trim in the group converts the block first, and writes below which pages are lost.
//! So two faded pages in a row cost the group at most, and no page is older than it was.
//!
//! The last page of a block may be torn, so it is the exception: none names it, and if it alone
//! cannot be read, it never counts. What an erase that was cut has left of a block is no exception:
//! all that it held has newer copies.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::node::PageFault;
use nandina::{Fault, covered};

use super::Hybrid;
use super::label::Kind;
use super::policy::Policy;
use crate::ftl::mount::LOOKS;
use crate::transit::Entry;

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// The page that a logical page may have been, if its copy `found` may be older than that.
    ///
    /// Cost: nothing unless there is a doubtful block of its group; then a read of each page of the
    /// block, and one of the copy. They go through page buffer 1.
    pub(super) fn in_doubt_of(
        &mut self,
        logical: u32,
        found: Option<PageNumber>,
    ) -> Result<Option<PageNumber>, Fault<F::Error>> {
        let Some(at) = self.doubtful(logical) else { return Ok(None) };
        let (page, above) = self.doubt(at)?;
        Ok((self.sequence_if(found)? < Some(above)).then_some(page))
    }

    /// The doubtful buffer block of the group of a logical page.
    pub(super) fn doubtful(&self, logical: u32) -> Option<u32> {
        let mut all = self.transit.summary.entries_of(self.transit.summary.group_of(logical));
        all.find(|&at| self.transit.summary.get(at).is_doubtful)
    }

    /// The sequence number of a page that was read before, or that a page in a buffer block names.
    ///
    /// For the latter it is that of the next page that can be read: what is older elsewhere may be
    /// older than the faded page.
    pub(super) fn sequence_of(&mut self, page: PageNumber) -> Result<Option<u64>, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if let Ok(header) = self.media.read(page, 1)? {
                return Ok(Some(header.sequence));
            }
        }
        let block = self.media.block_of(page);
        if !self.is_buffer_block(block) {
            return Ok(None);
        }
        for place in 0..self.block_pages() {
            let behind = self.media.page_at(block, place);
            if behind > page
                && let Ok(header) = self.media.read(behind, 1)?
            {
                return Ok(Some(header.sequence));
            }
        }
        Ok(None)
    }

    /// Whether a block is a buffer block, also where a mount has no entry for it yet.
    pub(super) fn is_buffer_block(&self, block: BlockNumber) -> bool {
        let slot = self.maps.slot_of(block).map(|at| self.maps.slot(at));
        self.transit.summary.entry_of(block).is_some()
            || slot.is_some_and(|slot| slot.buffer.is_some())
    }

    /// The same for a page that may not be there.
    pub(super) fn sequence_if(
        &mut self,
        page: Option<PageNumber>,
    ) -> Result<Option<u64>, Fault<F::Error>> {
        page.map_or(Ok(None), |page| self.sequence_of(page))
    }

    /// The last page of a doubtful block that no page names, and a higher number than it has.
    ///
    /// If all can be read by now, what they hold was overlooked: then it may be any page.
    fn doubt(&mut self, at: u32) -> Result<(PageNumber, u64), Fault<F::Error>> {
        let Entry { block, next, .. } = self.transit.summary.get(at);
        // One page behind the last may be torn.
        let (mut above, mut is_named) = (u64::MAX, true);
        for place in (0..self.block_pages()).rev() {
            let page = self.media.page_at(BlockNumber(block), place);
            match self.media.read(page, 1)? {
                Ok(header) => (above, is_named) = (header.sequence, true),
                Err(PageFault::Erased) if place >= next => {}
                Err(_) if is_named => is_named = false,
                Err(_) => return Ok((page, above)),
            }
        }
        covered!("hybrid: a page that had faded can be read again");
        Ok((self.media.page_at(BlockNumber(block), 0), u64::MAX))
    }

    /// Writes below which pages of a doubtful block's group are lost.
    ///
    /// Those that the block holds come last: as long as one of its pages counts, a mount knows what
    /// is in doubt.
    pub(super) fn end_doubt(&mut self, at: u32) -> Result<(), Fault<F::Error>> {
        let entry = self.transit.summary.get(at);
        let (_, above) = self.doubt(at)?;
        let first = entry.group * self.transit.summary.group_pages;
        let all = first..(first + self.transit.summary.group_pages).min(self.logical_pages);
        for is_last in [false, true] {
            for logical in all.clone() {
                let found = self.find(logical);
                let is_here = found.is_some_and(|page| self.media.block_of(page).0 == entry.block);
                if is_here != is_last || self.sequence_if(found)? >= Some(above) {
                    continue;
                }
                self.media.frames.bytes_mut(0).fill(0);
                self.put(logical, Kind::Lost(logical))?;
                self.statistics.moved += 1;
            }
        }
        self.transit.summary.set(at, Entry { is_doubtful: false, ..entry });
        Ok(())
    }
}
