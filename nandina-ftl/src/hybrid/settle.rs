//! Settling: the first change after a cut leaves no page that may be torn.
//!
//! The page that was being programmed may be torn, and it may not be visible now. It is the first
//! page of a free block, or it lies behind the last page of a block that could be written on: a log
//! block, one of the few open data blocks, or the block of the pages about the FTL itself. A mount
//! knows these, and looks at each of the places many times.
//!
//! 1. If one of the places is not blank, its block is a *suspect*. A free block that holds anything
//!    is one as well: the copies of a merge that was cut, or pages that were superseded. An erase of
//!    it that is cut can leave any of its pages, readable now and then, so it comes later.
//! 2. A page about the FTL itself lists the suspects, with the sequence numbers that their torn
//!    pages can have. No mount counts these from then on, and no page takes one of them.
//! 3. The free blocks among them are erased, and are listed no more.
//! 4. The pages of the other suspects are merged, and the suspects erased. If that is cut, there are
//!    unfinished copies. A buffer block comes last: its conversion may be cut in a write, which
//!    leaves another suspect, but that one is merged before the next conversion. A block is listed
//!    once, however often a cut leaves it, and of the free ones one is listed: so the list stays
//!    short.
//! 5. A list without suspects is programmed; but for those whose block can neither be erased nor
//!    marked as bad: at any mount their pages may be read.
//!
//! A page whose program failed is listed as well, at once, unless its block holds nothing else.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::node::PageFault;
use nandina::{Damage, Fault, covered};

use super::Hybrid;
use super::label::{Cause, Kind};
use super::maps::NONE;
use super::policy::Policy;
use super::size::{SUSPECTS, SUSPECTS_BYTES, gap_of};
use crate::ftl::FtlError;
use crate::ftl::bytes::{Suspect, Suspects};
use crate::ftl::error::damage_of;
use crate::ftl::mount::LOOKS;

/// Programs of a list of suspects that may fail before the one behind which blocks are erased.
const LISTING: u64 = 8;

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// Settles, unless that is done.
    pub(super) fn settle(&mut self) -> Result<(), FtlError<F::Error>> {
        if self.settled {
            return Ok(());
        }
        // If it fails half way, only another mount knows what is torn now.
        self.in_doubt = true;
        let number = (self.newest, self.raised());
        let are_listed = !self.suspects.all().is_empty();
        let leftover = self.hold_leftovers()?;
        self.renew_suspects(number.1)?;
        if let Some(leftover) = leftover
            && self.suspects.all().iter().all(|suspect| suspect.to < number.1)
        {
            self.list(Suspect { block: leftover.0, from: number.0, to: number.1 })?;
        }
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
        for at in 0..self.transit.summary.len() {
            let entry = self.transit.summary.get(at);
            if entry.block != NONE && entry.next < self.block_pages() {
                self.probe(BlockNumber(entry.block), entry.next..entry.next + 1, number)?;
            }
        }
        for recent in self.recent {
            if recent.block != NONE {
                self.probe(BlockNumber(recent.block), recent.next..self.block_pages(), number)?;
            }
        }
        if are_listed || !self.suspects.all().is_empty() {
            self.media.sequence = number.1;
            match self.write_own(0) {
                Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) => {
                    // The last free block has failed: one that is held has to do.
                    covered!("hybrid: the last free block fails while a mount settles");
                    self.erase_leftovers()?;
                    self.write_own(0)?;
                }
                written => written?,
            }
            self.erase_leftovers()?;
            let suspects = self.lasting_suspects(true)?;
            if suspects != self.suspects && !suspects.all().is_empty() {
                covered!("hybrid: free suspects are erased, and others are left");
                self.suspects = suspects;
                self.write_own(0)?;
            }
            for is_converted in [false, true] {
                for block in suspects.all().iter().map(|suspect| BlockNumber(suspect.block)) {
                    let is_converting = self.transit.summary.entry_of(block).is_some();
                    if is_converting == is_converted && self.media.blocks.valid_in(block) > 0 {
                        self.empty(block)?;
                    }
                }
            }
            self.suspects = self.lasting_suspects(false)?;
            if !self.suspects.all().is_empty() {
                // A mount must not take this for the list before the erases.
                covered!("hybrid: a suspect stays bad and unmarked");
                self.media.sequence += 2 * LISTING;
            }
            self.write_own(0)?;
        }
        self.media.mark_bad_blocks()?;
        (self.settled, self.in_doubt) = (true, false);
        Ok(())
    }

    /// A sequence number above that of any page that was programmed before this mount.
    ///
    /// A mount before this one may have begun behind the same number, and what it programmed may be
    /// invisible now.
    pub(super) fn raised(&self) -> u64 {
        self.media.sequence + gap_of(&self.media.geometry())
    }

    /// Holds the free blocks that do not read as blank each time, so that none is erased yet.
    ///
    /// Returns one of them. If a free block is listed, all are held however they read, but for those
    /// that were erased since the mount. If no other block is free, holds none and erases them at
    /// once: a chip without its reserve can do no better. Cost: a read for each of them, [`LOOKS`]
    /// for each that is blank.
    pub(super) fn hold_leftovers(&mut self) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        let (blocks, suspects) = (&self.media.blocks, self.suspects);
        // One whose erase failed at an earlier mount is held alone.
        let is_any_listed = suspects.all().iter().any(|suspect| {
            let is_of_last_list = self.newest <= suspect.to.saturating_add(LISTING);
            is_of_last_list && blocks.is_empty(BlockNumber(suspect.block))
        });
        let (mut leftover, mut holds) = (None, false);
        for block in self.media.blocks.all() {
            if !self.media.blocks.is_empty(block) || self.media.is_clean(block) {
                continue;
            }
            let is_listed = suspects.all().iter().any(|suspect| suspect.block == block.0);
            if is_any_listed || is_listed || !self.is_blank(self.media.page_at(block, 0))? {
                self.media.blocks.set_stuck(block);
                self.media.blocks.set_reserved(block, true);
                holds = true;
                if !is_listed {
                    leftover = Some(block);
                }
            }
        }
        if holds && self.media.blocks.next_free(None, &[]).is_none() {
            covered!("hybrid: only blocks that may hold a torn page are free");
            self.erase_leftovers()?;
            return Ok(None);
        }
        Ok(leftover)
    }

    /// Erases the blocks that [`hold_leftovers`](Self::hold_leftovers) holds.
    pub(super) fn erase_leftovers(&mut self) -> Result<(), Fault<F::Error>> {
        for block in self.media.blocks.all() {
            if self.media.blocks.take_stuck(block) {
                self.media.blocks.set_reserved(block, false);
                if !self.media.erase(block)? {
                    // There is room for one of them in the list.
                    covered!("hybrid: a leftover cannot be erased");
                    let blocks = &self.media.blocks;
                    let is_free = |of| blocks.valid_in(of) == 0 && !blocks.is_bad(of);
                    self.suspects.replace(is_free, block);
                }
            }
        }
        self.media.mark_bad_blocks()
    }

    /// The suspects that are still to be listed; if `counted`, those with pages that count as well.
    ///
    /// Where a block can neither be erased nor marked as bad, what it holds may be read at any
    /// mount, now and then.
    fn lasting_suspects(&mut self, counted: bool) -> Result<Suspects, Fault<F::Error>> {
        let mut lasting = Suspects::default();
        for &suspect in self.suspects.all() {
            let block = BlockNumber(suspect.block);
            let counts = counted && self.media.blocks.valid_in(block) > 0;
            if counts || self.media.is_unmarked(block)? {
                lasting.add(suspect);
            }
        }
        Ok(lasting)
    }

    /// Lists the suspects that are free now as one, up to `to`, if their list is the newest page.
    ///
    /// They may hold pages as before, or what an erase that was cut left of them. Every page that
    /// was programmed since has one of these numbers. Else a suspect was merged since, and what is
    /// left of it has the numbers that the list has.
    fn renew_suspects(&mut self, to: u64) -> Result<(), FtlError<F::Error>> {
        let is_newest = self.sequence_if(self.own)? == Some(self.newest);
        let (before, mut free) = (self.suspects, None::<Suspect>);
        self.suspects = Suspects::default();
        for &suspect in before.all() {
            let block = BlockNumber(suspect.block);
            let is_free = self.media.blocks.valid_in(block) == 0;
            if is_free && self.media.is_clean(block) {
                covered!("hybrid: a suspect was erased since the mount");
                // It was erased since the mount: nothing is left of what it held.
                continue;
            }
            if is_free && is_newest && suspect.to.checked_add(1) == Some(self.newest) {
                covered!("hybrid: a free suspect is listed again");
                let from = free.map_or(suspect.from, |free| free.from.min(suspect.from));
                free = Some(Suspect { from, to, ..suspect });
            } else {
                self.list(suspect)?;
            }
        }
        Ok(free.map_or(Ok(()), |free| self.list(free))?)
    }

    /// Lists the page whose program has just failed in a block, if that has pages that count.
    ///
    /// Until the block is emptied and marked, the page may be read now and then, and newer pages
    /// follow elsewhere. Cost: a program, which goes through page buffer 1.
    pub(super) fn list_failed(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        if self.media.blocks.valid_in(block) == 0 {
            return Ok(());
        }
        covered!("hybrid: a page whose program failed is listed");
        self.suspects = self.lasting_suspects(true)?;
        let to = self.media.sequence;
        self.list(Suspect { block: block.0, from: to - 1, to })?;
        self.write_own(1)
    }

    /// Adds a suspect.
    ///
    /// Where there is no room, one of a block that could not be erased is listed no more.
    fn list(&mut self, suspect: Suspect) -> Result<(), Fault<F::Error>> {
        if self.suspects.all().len() == SUSPECTS {
            let (blocks, number) = (&self.media.blocks, self.newest);
            let is_old = |it: &Suspect| {
                blocks.valid_in(BlockNumber(it.block)) == 0
                    && it.to.saturating_add(LISTING) < number
            };
            let old = self.suspects.all().iter().find(|it| is_old(it)).map(|it| it.block);
            self.suspects.keep(|block| Some(block.0) != old);
        }
        let has_room = self.suspects.all().len() < SUSPECTS && self.suspects.add(suspect);
        if has_room { Ok(()) } else { Err(Fault::NoRoom { limit_pages: self.logical_pages }) }
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
            return Ok(self.list(Suspect { block: block.0, from, to })?);
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
    pub(super) fn write_own(&mut self, frame: usize) -> Result<(), Fault<F::Error>> {
        self.read_own(frame)?;
        self.program_own(frame)
    }

    /// Programs a page buffer, with the suspects, as the newest page of its kind.
    pub(super) fn program_own(&mut self, frame: usize) -> Result<(), Fault<F::Error>> {
        self.suspects.write(&mut self.media.frames.bytes_mut(frame)[..SUSPECTS_BYTES]);
        let page = self.append_own(Kind::Own, frame)?;
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

    /// Programs a page buffer behind the newest page of its kind, or into a new block.
    pub(super) fn append_own(
        &mut self,
        kind: Kind,
        frame: usize,
    ) -> Result<PageNumber, Fault<F::Error>> {
        loop {
            let block = match self.own {
                Some(own) if self.own_next < self.block_pages() => self.media.block_of(own),
                _ => {
                    let block = self.media.open()?;
                    self.own_next = 0;
                    block
                }
            };
            let page = self.media.page_at(block, self.own_next);
            if self.media.program(page, frame, kind.label(Cause::IN_PLACE))? {
                self.own_next += 1;
                return Ok(page);
            }
            covered!("hybrid: the program of a list fails");
            self.own_next = self.block_pages();
            if self.media.blocks.valid_in(block) == 0 {
                self.media.free(block)?;
            }
        }
    }
}
