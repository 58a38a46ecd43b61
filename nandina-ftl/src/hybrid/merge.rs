//! Merges: the pages of a log block become a data block.
//!
//! A *switch* makes the log block the data block: all of its pages are at their offsets. A
//! *partial* merge copies the pages that a sequential log block lacks behind those that it has. A
//! *full* merge copies the newest copy of each page, wherever it is, into a free block. Only the
//! newest copy is ever copied, and no page of the host comes in between, so a copy takes the next
//! sequence number and stays the newest. The copies of a full merge count when the last of them is
//! programmed, not before; what they replace is erased only then.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::{Fault, covered};

use super::Hybrid;
use super::label::{Cause, Kind};
use super::maps::Slot;
use super::policy::Policy;
use crate::transit::Below as _;

/// Where the pages of a full merge come from, beside the FTL itself.
#[derive(Clone, Copy)]
struct Sources {
    /// Whether the buffer may have pages of the logical block.
    has_buffered: bool,
    /// Whether the merge copies these; if not, it copies older ones, which never count.
    takes_buffered: bool,
}

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// Merges a log block, which is free afterwards.
    pub(super) fn retire(&mut self, at: u32) -> Result<(), Fault<F::Error>> {
        let slot = self.maps.slot(at);
        let block = BlockNumber(slot.block);
        if let Some(logical_block) = self.maps.sequential(at) {
            let is_full = slot.next == self.block_pages();
            if is_full && self.is_superseded(logical_block) {
                self.merges.switch += 1;
                self.make_data(at, logical_block);
                return self.replace_data(logical_block, Some(block));
            }
            let is_buffered = self.is_buffered(logical_block);
            if !is_full && !slot.is_closed && self.merge_partly(at, logical_block)? {
                self.merges.partial += 1;
                self.merges.partial_buffered += u64::from(is_buffered);
                self.make_data(at, logical_block);
                return self.replace_data(logical_block, Some(block));
            }
        }
        self.empty(block)
    }

    /// Whether the data block of a logical block holds no page that counts.
    fn is_superseded(&self, logical_block: u32) -> bool {
        let data = self.maps.data(logical_block);
        data.is_none_or(|data| self.media.blocks.valid_in(data) == 0)
    }

    /// Copies the pages that a log block lacks behind those that it has.
    ///
    /// Each goes to its offset. Returns `false` if a program failed. The last page that it programs
    /// is no page of a log: so a mount knows the block as a data block.
    fn merge_partly(&mut self, at: u32, logical_block: u32) -> Result<bool, Fault<F::Error>> {
        let Slot { block, next: first, .. } = self.maps.slot(at);
        let block = BlockNumber(block);
        let pages = self.pages_of(logical_block).enumerate().skip(first as usize);
        let last = pages.filter(|&(_, logical)| self.find_below(logical).is_some()).last();
        let has_buffered = self.has_buffer_block(logical_block);
        let last = last.map_or(first, |(place, _)| place as u32);
        for place in first..=last {
            let logical = logical_block * self.block_pages() + place;
            let cause = Cause::copy(place == last);
            let is_old = has_buffered && self.find_in_buffer(logical).is_some();
            let programmed = match self.find_below(logical) {
                Some(page) => self.copy(page, logical, is_old, block, place, cause)?,
                None => self.pad(block, place, cause)?,
            };
            if !programmed {
                covered!("hybrid: a program of a partial merge fails");
                self.list_failed(block)?;
                return Ok(false);
            }
            if self.find_below(logical).is_some() {
                self.forget_below(logical);
                self.hold(logical, block, place, Some(at), false);
            }
            let slot = self.maps.slot(at);
            self.maps.set_slot(at, Slot { next: place + 1, is_log: false, ..slot });
        }
        Ok(true)
    }

    /// Makes a log block whose pages are at their offsets one that no slot describes.
    ///
    /// Its pages count as before, as soon as it is the data block.
    pub(super) fn make_data(&mut self, at: u32, logical_block: u32) {
        let Slot { block, next, is_closed, is_log, .. } = self.maps.slot(at);
        for logical in self.pages_of(logical_block) {
            if self.maps.find(logical).is_some_and(|(slot, _)| slot == at) {
                self.maps.remove(logical);
            }
        }
        self.maps.drop_slot(at);
        if !is_closed && !is_log {
            self.note_open(BlockNumber(block), next);
        }
    }

    /// Makes a block the data block of a logical block, and frees the one before it.
    fn replace_data(
        &mut self,
        logical_block: u32,
        to: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>> {
        let before = self.maps.data(logical_block);
        self.maps.set_data(logical_block, to);
        match before {
            Some(before) if to != Some(before) => {
                self.close(before);
                self.media.free(before)
            }
            _ => Ok(()),
        }
    }

    /// Frees the blocks of a logical block that hold no page that counts any more.
    pub(super) fn free_if_empty(&mut self, logical_block: u32) -> Result<(), Fault<F::Error>> {
        if self.maps.data(logical_block).is_some() && self.is_superseded(logical_block) {
            self.replace_data(logical_block, None)?;
        }
        self.drop_empty_slots(logical_block)
    }

    /// Reads a page that is to be copied, and returns what its copy is.
    pub(super) fn kind_to_copy(
        &mut self,
        from: PageNumber,
        logical: u32,
        frame: usize,
    ) -> Result<Kind, Fault<F::Error>> {
        let in_doubt = self.in_doubt_of(logical, Some(from))?.is_some();
        Ok(match self.media.read(from, frame)? {
            Ok(header) if !in_doubt && Kind::of(&header).0.logical() == Some(logical) => {
                Kind::of(&header).0
            }
            _ => {
                covered!("hybrid: a page that is to be copied has faded");
                self.media.frames.bytes_mut(frame).fill(0);
                Kind::Lost(logical)
            }
        })
    }

    /// Copies a page through page buffer 1; `is_old` if the buffer supersedes it.
    ///
    /// One that cannot be read any more is noted as lost, and reads as an error from then on.
    fn copy(
        &mut self,
        from: PageNumber,
        logical: u32,
        is_old: bool,
        block: BlockNumber,
        place: u32,
        cause: Cause,
    ) -> Result<bool, Fault<F::Error>> {
        let kind = self.kind_to_copy(from, logical, 1)?;
        let kind = if is_old { Kind::Old(logical) } else { kind };
        let page = self.media.page_at(block, place);
        let programmed = self.media.program(page, 1, kind.label(cause))?;
        self.statistics.moved += u64::from(programmed);
        Ok(programmed)
    }

    /// Copies the pages of a logical block into a free block, a full merge.
    ///
    /// `new` is in page buffer 0 and takes its place among them.
    pub(super) fn merge(
        &mut self,
        logical_block: u32,
        new: Option<Kind>,
    ) -> Result<(), Fault<F::Error>> {
        self.merge_from(logical_block, new, false)
    }

    /// Copies the newest pages of a logical block into a free block, from the buffer as well.
    pub(super) fn complete(&mut self, logical_block: u32) -> Result<(), Fault<F::Error>> {
        self.merge_from(logical_block, None, true)
    }

    /// Whether the buffer may have pages of a logical block.
    fn has_buffer_block(&self, logical_block: u32) -> bool {
        let summary = &self.transit.summary;
        let (first, pages) = (logical_block * self.block_pages(), self.block_pages());
        let mut groups = summary.group_of(first)..=summary.group_of(first + pages - 1);
        groups.any(|group| summary.entries_of(group).next().is_some())
    }

    /// Whether a buffer block has a page of a logical block that counts.
    fn is_buffered(&self, logical_block: u32) -> bool {
        let mut pages = self.pages_of(logical_block);
        self.has_buffer_block(logical_block)
            && pages.any(|logical| self.find_in_buffer(logical).is_some())
    }

    /// The page that a full merge copies, and whether the buffer supersedes it.
    fn source(&self, of: Sources, logical: u32) -> Option<(PageNumber, bool)> {
        let buffered = if of.has_buffered { self.find_in_buffer(logical) } else { None };
        match buffered.filter(|_| of.takes_buffered) {
            Some(page) => Some((page, false)),
            None => self.find_below(logical).map(|page| (page, buffered.is_some())),
        }
    }

    /// A full merge, which copies pages from the buffer as well or leaves those there.
    fn merge_from(
        &mut self,
        logical_block: u32,
        new: Option<Kind>,
        takes_buffered: bool,
    ) -> Result<(), Fault<F::Error>> {
        let from = Sources { has_buffered: self.has_buffer_block(logical_block), takes_buffered };
        let is_new = |logical| new.is_some_and(|kind| kind.logical() == Some(logical));
        let first = logical_block * self.block_pages();
        let pages = self.pages_of(logical_block);
        let held = |&logical: &u32| is_new(logical) || self.source(from, logical).is_some();
        let last = pages.filter(held).last();
        let Some(last) = last else {
            self.replace_data(logical_block, None)?;
            return self.drop_empty_slots(logical_block);
        };
        let is_buffered = self.is_buffered(logical_block);
        let block = loop {
            let block = self.media.open()?;
            if self.fill(block, first..last + 1, new, from)? {
                break block;
            }
            // It counts for nothing, and no mount may see it: it is marked as bad.
            covered!("hybrid: a program of a full merge fails");
            self.media.free(block)?;
        };
        for logical in first..=last {
            let source = self.source(from, logical);
            if source.is_none() && !is_new(logical) {
                continue;
            }
            // The page in the buffer counts, if it was not written here.
            let stays = !is_new(logical) && source.is_some_and(|(_, is_old)| is_old);
            if from.has_buffered && !stays {
                self.forget_buffered(logical);
            }
            self.forget_below(logical);
            self.media.blocks.set_valid(self.media.page_at(block, logical - first), true);
        }
        self.merges.full += 1;
        self.merges.full_buffered += u64::from(is_buffered);
        self.replace_data(logical_block, Some(block))?;
        self.note_open(block, last - first + 1);
        self.drop_empty_slots(logical_block)
    }

    /// Programs the pages of a full merge. Returns `false` if a program failed.
    fn fill(
        &mut self,
        block: BlockNumber,
        pages: core::ops::Range<u32>,
        new: Option<Kind>,
        from: Sources,
    ) -> Result<bool, Fault<F::Error>> {
        for logical in pages.clone() {
            let place = logical - pages.start;
            let cause = Cause::copy(logical + 1 == pages.end);
            let programmed = match (new, self.source(from, logical)) {
                (Some(kind), _) if kind.logical() == Some(logical) => {
                    self.media.program(self.media.page_at(block, place), 0, kind.label(cause))?
                }
                (_, Some((page, is_old))) => {
                    self.copy(page, logical, is_old, block, place, cause)?
                }
                // The first place is always programmed first.
                (_, None) if place == 0 => self.pad(block, 0, cause)?,
                (_, None) => true,
            };
            if !programmed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Frees log blocks without pages that count which nothing more is appended to.
    fn drop_empty_slots(&mut self, logical_block: u32) -> Result<(), Fault<F::Error>> {
        for at in 0..self.maps.sizes.slots {
            let slot = self.maps.slot(at);
            let block = BlockNumber(slot.block);
            if slot.block != super::maps::NONE
                && self.media.blocks.valid_in(block) == 0
                && (slot.is_closed
                    || slot.next == self.block_pages()
                    || slot.owner == logical_block)
            {
                self.maps.drop_slot(at);
                self.media.free(block)?;
            }
        }
        Ok(())
    }

    /// Merges every page of a block that counts into data blocks, or converts a buffer block, and frees the block.
    pub(super) fn empty(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        if let Some(at) = self.transit.summary.entry_of(block) {
            return self.convert(at);
        }
        for place in 0..self.block_pages() {
            if let Some(logical) = self.logical_at(block, place) {
                self.merge(logical / self.block_pages(), None)?;
            }
        }
        if self.own.is_some_and(|page| self.media.block_of(page) == block) {
            self.own_next = self.block_pages();
            return self.write_own(0);
        }
        if let Some(at) = self.maps.slot_of(block) {
            self.maps.drop_slot(at);
            return self.media.free(block);
        }
        match self.maps.data_of(block) {
            Some(logical_block) => self.replace_data(logical_block, None),
            None => Ok(()),
        }
    }
}
