//! Settling: the first change after a cut leaves no page that may be torn.
//!
//! The page that was being programmed may be torn, and it may not be visible now. It is the first
//! page of a free block, or it lies behind the last page of a block that could be written on: a log
//! block, one of the few open data blocks, or the block of the pages about the FTL itself. A mount
//! knows these, and looks at each of the places many times.
//!
//! 1. Free blocks that hold anything are erased, and with them the copies of a merge that was cut.
//! 2. If one of the places is not blank, its block is a *suspect*: a page about the FTL itself
//!    lists it, with the sequence numbers that the torn page can have. No mount counts these from
//!    then on.
//! 3. The pages of the suspects are merged, and the suspects erased. If that is cut, there are
//!    unfinished copies and no new suspect. A buffer block comes last: its conversion may be cut in
//!    a write, which leaves another suspect, but that one is merged before the next conversion. A
//!    block is listed once, however often a cut leaves it: so the list stays short.
//! 4. A list without suspects is programmed.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::node::PageFault;
use nandina::{Damage, Fault};

use super::Hybrid;
use super::label::{Cause, Kind};
use super::maps::NONE;
use super::policy::Policy;
use super::size::{SUSPECTS, SUSPECTS_BYTES};
use crate::ftl::FtlError;
use crate::ftl::bytes::{Suspect, Suspects};
use crate::ftl::error::damage_of;
use crate::ftl::mount::LOOKS;

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// Settles, unless that is done.
    pub(super) fn settle(&mut self) -> Result<(), FtlError<F::Error>> {
        if self.settled {
            return Ok(());
        }
        // If it fails half way, only another mount knows what is torn now.
        self.in_doubt = true;
        self.clear_free_blocks()?;
        let number = (self.newest, self.media.sequence);
        let blocks = &self.media.blocks;
        self.suspects.keep(|block| blocks.valid_in(block) > 0);
        if let Some(own) = self.own {
            let block = self.media.block_of(own);
            for place in 0..self.block_pages() {
                if self.media.page_at(block, place) > own {
                    self.probe(block, place..place + 1, number)?;
                    break;
                }
            }
        }
        for at in 0..self.maps.sizes.slots {
            let slot = self.maps.slot(at);
            if slot.block != NONE && slot.next < self.block_pages() {
                self.probe(BlockNumber(slot.block), slot.next..slot.next + 1, number)?;
            }
        }
        for at in 0..self.summary.len() {
            let entry = self.summary.get(at);
            if entry.block != NONE && entry.next < self.block_pages() {
                self.probe(BlockNumber(entry.block), entry.next..entry.next + 1, number)?;
            }
        }
        for recent in self.recent {
            if recent.block != NONE {
                self.probe(BlockNumber(recent.block), recent.next..self.block_pages(), number)?;
            }
        }
        if !self.suspects.all().is_empty() {
            self.write_own()?;
            let suspects = self.suspects;
            for is_converted in [false, true] {
                for block in suspects.all().iter().map(|suspect| BlockNumber(suspect.block)) {
                    if self.summary.entry_of(block).is_some() == is_converted {
                        self.empty(block)?;
                    }
                }
            }
            self.suspects = Suspects::default();
            self.write_own()?;
        }
        self.media.mark_bad_blocks()?;
        (self.settled, self.in_doubt) = (true, false);
        Ok(())
    }

    /// Erases the free blocks that do not read as blank each time.
    ///
    /// Cost: a read for each of them, [`LOOKS`] for each that is blank.
    pub(super) fn clear_free_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        for block in self.media.blocks.all() {
            if self.media.blocks.is_empty(block)
                && !self.media.is_clean(block)
                && !self.is_blank(self.media.page_at(block, 0))?
            {
                self.media.erase(block)?;
            }
        }
        self.media.mark_bad_blocks()
    }

    fn is_blank(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if self.media.read(page, 1)? != Err(PageFault::Erased) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds a block to the suspects if one of these places behind its last page is not blank.
    ///
    /// If it was listed before, the torn page has a number that is excluded, because nothing was
    /// programmed in the block since; unless it was erased since and opened again.
    fn probe(
        &mut self,
        block: BlockNumber,
        places: core::ops::Range<u32>,
        (from, to): (u64, u64),
    ) -> Result<(), FtlError<F::Error>> {
        let last = places.start.checked_sub(1).map(|place| self.media.page_at(block, place));
        for place in places {
            if self.is_blank(self.media.page_at(block, place))? {
                continue;
            }
            let mut listed = self.suspects.all().iter();
            if let Some(to) = listed.find(|known| known.block == block.0).map(|known| known.to) {
                if self.sequence_if(last)? <= Some(to) {
                    return Ok(());
                }
                self.suspects.keep(|kept| kept != block);
            }
            let suspect = Suspect { block: block.0, from, to };
            if self.suspects.all().len() >= SUSPECTS || !self.suspects.add(suspect) {
                return Err(FtlError::NoRoom);
            }
            return Ok(());
        }
        Ok(())
    }

    /// Reads the newest page about the FTL itself into a page buffer.
    pub(super) fn read_own(&mut self, frame: usize) -> Result<(), Fault<F::Error>> {
        match self.own {
            Some(page) => match self.media.read(page, frame)? {
                Ok(header) if Kind::of(&header).0 == Kind::Own => Ok(()),
                Ok(_) => Err(Fault::Corrupt { page, reason: Damage::OtherIndex }),
                Err(fault) => Err(Fault::Corrupt { page, reason: damage_of(fault) }),
            },
            None => {
                self.media.frames.bytes_mut(frame).fill(0);
                Ok(())
            }
        }
    }

    /// Programs a page with the suspects and the trims as they were.
    pub(super) fn write_own(&mut self) -> Result<(), Fault<F::Error>> {
        self.read_own(0)?;
        self.program_own()
    }

    /// Programs page buffer 0, with the suspects, as the newest page of its kind.
    pub(super) fn program_own(&mut self) -> Result<(), Fault<F::Error>> {
        self.suspects.write(&mut self.media.frames.bytes_mut(0)[..SUSPECTS_BYTES]);
        let page = self.append_own(Kind::Own)?;
        self.statistics.own += 1;
        let before = self.own.replace(page);
        self.media.blocks.set_valid(page, true);
        if let Some(before) = before {
            self.media.blocks.set_valid(before, false);
            let block = self.media.block_of(before);
            if block != self.media.block_of(page) {
                self.media.free(block)?;
            }
        }
        Ok(())
    }

    /// Programs page buffer 0 behind the newest page of its kind, or into a new block.
    pub(super) fn append_own(&mut self, kind: Kind) -> Result<PageNumber, Fault<F::Error>> {
        loop {
            let block = match self.own {
                Some(own) if self.own_next < self.block_pages() => self.media.block_of(own),
                _ => {
                    self.own_next = 0;
                    self.media.open()?
                }
            };
            let page = self.media.page_at(block, self.own_next);
            if self.media.program(page, 0, kind.label(Cause::IN_PLACE))? {
                self.own_next += 1;
                return Ok(page);
            }
            self.own_next = self.block_pages();
            if self.media.blocks.valid_in(block) == 0 {
                self.media.free(block)?;
            }
        }
    }
}
