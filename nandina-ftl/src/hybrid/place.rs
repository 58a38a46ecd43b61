//! Where a page is programmed, and which page counts.
//!
//! A page goes to its place in the data block if that is open and not yet beyond it, else where the
//! policy says. Nothing is copied here.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::{Fault, covered};

use super::label::{Cause, Kind};
use super::maps::{NONE, Slot};
use super::policy::{Choice, Logs, Policy};
use super::{Hybrid, Open};
use crate::transit::Below as _;

/// Where the next page of the host goes.
enum Spot {
    /// Into a new data block, with the pages that stay.
    Merge,
    /// To this place of a block, the log block of a slot or a data block.
    Page(BlockNumber, u32, Option<u32>),
}

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// Programs the page in page buffer 0, which is `kind` of `logical`.
    pub(super) fn put(&mut self, logical: u32, kind: Kind) -> Result<(), Fault<F::Error>> {
        loop {
            let (block, place, slot) = match self.spot(logical)? {
                Spot::Merge => return self.merge(logical / self.block_pages(), Some(kind)),
                Spot::Page(block, place, slot) => (block, place, slot),
            };
            let cause = if slot.is_some() { Cause::LOG } else { Cause::IN_PLACE };
            if self.media.program(self.media.page_at(block, place), 0, kind.label(cause))? {
                self.count(logical, block, place, slot, true);
                return Ok(());
            }
            covered!("hybrid: a program of the host's page fails");
            self.list_failed(block)?;
            self.empty(block)?;
        }
    }

    /// Finds the place for a page. What has to be opened or merged for it is.
    fn spot(&mut self, logical: u32) -> Result<Spot, Fault<F::Error>> {
        let pages = self.block_pages();
        let (logical_block, offset) = (logical / pages, logical % pages);
        loop {
            let data = self.maps.data(logical_block);
            if let Some(block) = data
                && self.open.iter().any(|open| open.block == block.0 && open.next <= offset)
            {
                return Ok(Spot::Page(block, offset, None));
            }
            if data.is_none() && !self.has_log_pages(logical_block) {
                self.open_data(logical_block, offset > 0)?;
                continue;
            }
            let logs = Logs { maps: &self.maps, logical, previous: self.previous };
            match self.policy.choose(&logs) {
                Choice::Merge => return Ok(Spot::Merge),
                Choice::Append(slot) => {
                    let Slot { block, next, .. } = self.maps.slot(slot);
                    return Ok(Spot::Page(BlockNumber(block), next, Some(slot)));
                }
                Choice::Retire(slot) => self.retire(slot)?,
                Choice::Open(owner) => {
                    let block = self.media.open()?;
                    self.add_slot(block, owner)?;
                }
            }
        }
    }

    /// The log block that is merged first for a page that is written now.
    pub(super) fn retired_for(&self, logical: u32) -> Option<u32> {
        let (data, offset) =
            (self.maps.data(logical / self.block_pages()), logical % self.block_pages());
        let is_open = |block: BlockNumber| {
            self.open.iter().any(|open| open.block == block.0 && open.next <= offset)
        };
        let logs = Logs { maps: &self.maps, logical, previous: self.previous };
        match self.policy.choose(&logs) {
            Choice::Retire(slot) if !data.is_some_and(is_open) => Some(slot),
            _ => None,
        }
    }

    /// Whether a page is the next one of an open data block, or the first of a new one.
    pub(super) fn is_next_in_data(&self, logical: u32) -> bool {
        let (logical_block, offset) = (logical / self.block_pages(), logical % self.block_pages());
        match self.maps.data(logical_block) {
            Some(block) => {
                let is_next = |open: &Open| open.block == block.0 && open.next == offset;
                self.open.iter().any(is_next)
            }
            None => offset == 0 && !self.has_log_pages(logical_block),
        }
    }

    /// Whether a log block holds a page of the logical block that counts.
    fn has_log_pages(&self, logical_block: u32) -> bool {
        self.pages_of(logical_block).any(|logical| self.maps.find(logical).is_some())
    }

    /// The logical pages of a logical block.
    pub(super) fn pages_of(
        &self,
        logical_block: u32,
    ) -> impl Iterator<Item = u32> + Clone + use<F, P> {
        let first = logical_block * self.block_pages();
        first..(first + self.block_pages()).min(self.logical_pages)
    }

    /// Opens a data block; `pads` if its first page is to be taken by nothing.
    ///
    /// The first place of every block is programmed first, so that a mount need not look further to
    /// know that a block is blank.
    fn open_data(&mut self, logical_block: u32, pads: bool) -> Result<(), Fault<F::Error>> {
        loop {
            let block = self.media.open()?;
            if pads && !self.pad(block, 0, Cause::IN_PLACE)? {
                covered!("hybrid: the program of a page that holds nothing fails");
                self.media.free(block)?;
                continue;
            }
            self.maps.set_data(logical_block, Some(block));
            self.note_open(block, u32::from(pads));
            return Ok(());
        }
    }

    /// Programs a page that holds nothing.
    pub(super) fn pad(
        &mut self,
        block: BlockNumber,
        place: u32,
        cause: Cause,
    ) -> Result<bool, Fault<F::Error>> {
        self.media.frames.bytes_mut(1).fill(0);
        let page = self.media.page_at(block, place);
        let programmed = self.media.program(page, 1, Kind::Pad.label(cause))?;
        self.statistics.own += u64::from(programmed);
        Ok(programmed)
    }

    /// Describes a log block.
    pub(super) fn add_slot(
        &mut self,
        block: BlockNumber,
        owner: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let age = self.media.sequence;
        let slot = Slot {
            block: block.0,
            owner,
            next: 0,
            is_closed: false,
            is_log: true,
            buffer: None,
            age,
        };
        self.maps.add_slot(slot).ok_or(Fault::NoRoom { limit_pages: self.logical_pages })
    }

    /// Notes a data block that may be written on, at `next` or behind it.
    ///
    /// The one that was written least recently is not written on any more.
    pub(super) fn note_open(&mut self, block: BlockNumber, next: u32) {
        self.close(block);
        if next < self.block_pages()
            && let Some(open) = self.open.iter_mut().min_by_key(|open| open.used)
        {
            *open = Open { block: block.0, next, used: self.media.sequence };
        }
    }

    /// Notes that a data block is not written on.
    pub(super) fn close(&mut self, block: BlockNumber) {
        for open in &mut self.open {
            if open.block == block.0 {
                *open = Open::NONE;
            }
        }
    }

    /// Notes that the page at this place is the copy of `logical` that counts.
    pub(super) fn count(
        &mut self,
        logical: u32,
        block: BlockNumber,
        place: u32,
        slot: Option<u32>,
        is_log: bool,
    ) {
        self.forget(logical);
        self.hold(logical, block, place, slot, is_log);
    }

    /// Notes that the FTL below the buffer has a copy of `logical` at this place, and no other.
    pub(super) fn hold(
        &mut self,
        logical: u32,
        block: BlockNumber,
        place: u32,
        slot: Option<u32>,
        is_log: bool,
    ) {
        self.media.blocks.set_valid(self.media.page_at(block, place), true);
        let used = self.media.sequence;
        let Some(at) = slot else {
            if let Some(open) = self.open.iter_mut().find(|open| open.block == block.0) {
                *open = Open { block: block.0, next: place + 1, used };
            }
            return;
        };
        self.maps.insert(at, place, logical);
        let slot = self.maps.slot(at);
        let age = if P::BY_USE { used } else { slot.age };
        self.maps.set_slot(at, Slot { next: place + 1, is_log, age, ..slot });
    }

    /// Notes that no copy of a logical page counts.
    pub(super) fn forget(&mut self, logical: u32) {
        self.forget_buffered(logical);
        self.forget_below(logical);
    }

    /// Notes that the FTL below the buffer has no copy of a logical page.
    pub(super) fn forget_below(&mut self, logical: u32) {
        if let Some(page) = self.find_below(logical) {
            if !self.is_in_data(logical, page) {
                self.maps.remove(logical);
            }
            self.media.blocks.set_valid(page, false);
        }
    }

    fn is_in_data(&self, logical: u32, page: PageNumber) -> bool {
        self.maps.data(logical / self.block_pages()) == Some(self.media.block_of(page))
    }

    /// The page of the chip that holds a logical page.
    pub(super) fn find(&self, logical: u32) -> Option<PageNumber> {
        self.find_in_buffer(logical).or_else(|| self.find_below(logical))
    }

    /// The page of the FTL below the buffer that holds a logical page.
    ///
    /// The buffer may have a newer one.
    pub(super) fn find_below(&self, logical: u32) -> Option<PageNumber> {
        let pages = self.block_pages();
        if let Some(block) = self.maps.data(logical / pages) {
            let page = self.media.page_at(block, logical % pages);
            if self.media.blocks.is_valid(page) {
                return Some(page);
            }
        }
        let (slot, place) = self.maps.find(logical)?;
        Some(self.media.page_at(BlockNumber(self.maps.slot(slot).block), place))
    }

    /// Which logical page the page at this place is a copy of, if that counts.
    pub(super) fn logical_at(&self, block: BlockNumber, place: u32) -> Option<u32> {
        if !self.media.blocks.is_valid(self.media.page_at(block, place)) {
            return None;
        }
        match self.maps.slot_of(block) {
            Some(slot) => self.maps.logical_at(slot, place),
            None => Some(self.maps.data_of(block)? * self.block_pages() + place),
        }
    }

    /// The owner of a log block as the policy has it.
    pub(super) const fn owner_of(logical_block: u32) -> u32 {
        if P::OWNED { logical_block } else { NONE }
    }
}
