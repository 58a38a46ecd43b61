//! Settling: the first change after a cut leaves no page that may be torn.
//!
//! The mount has found the newest page that is steady. What was programmed after it was torn; it
//! may not even be visible now. It can lie behind that page in its block, which is a *suspect*
//! then, or first in another block, which holds no page that counts.
//!
//! 1. Blocks of the second sort are erased: those whose first page does not read as blank each
//!    time, and is not an older page.
//! 2. A session page is programmed. It lists the suspects, each with the sequence numbers that a
//!    page torn there can have: behind those of the newest page, up to that of the session page.
//!    From now on no mount counts these.
//! 3. The valid pages of the suspects are moved, the suspect with the fewest of them first, and
//!    the suspects are erased. A cut in between adds a suspect, which has at most half as many.
//! 4. A session page is programmed that lists no suspects.
//!
//! So a mount decides once, and each later mount as it did. Of a suspect with a page that cannot be
//! read the rest is moved; it stays in the list. So does a block that can neither be erased nor
//! marked as bad.
//!
//! An incomplete request (`request.rs`) lies behind the newest page that counts in its block, and
//! in one block more that holds nothing else. That block is a suspect as well. It is not erased
//! before the session page of step 2: an erase that is cut can leave any of its pages.
//!
//! Where pages that move have a block of their own, two blocks were open. The torn page may lie
//! behind the last one of the other block, which is a suspect as well, even if no page of it is
//! valid: a request may be incomplete there.

use nandina::flash::{BlockNumber, Flash};
use nandina::gc::{self, PageOwner};
use nandina::node::PageFault;
use nandina::{Fault, covered};

use super::bytes::{Kind, Own, Suspect, Suspects};
use super::mount::LOOKS;
use super::size::gap_of;
use super::{Ftl, FtlError};
use crate::mapping::Mapping;

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Prepares the first change since the mount.
    pub(super) fn begin(&mut self) -> Result<(), FtlError<F::Error>> {
        self.settle()?;
        self.begin_session().map(|_| ())
    }

    /// Begins a session behind the end of the one before, where nothing is to settle.
    ///
    /// Its first page may be torn, and then invisible to the next mount, which gives the same
    /// number to another page. So it is a session page, of which any two are alike; a mount counts
    /// only one that reads the same each time. Returns whether it did anything. Cost: a program,
    /// and at most two erases and 48 reads.
    pub(super) fn begin_session(&mut self) -> Result<bool, FtlError<F::Error>> {
        if !self.settled || self.log.has_begun() {
            return Ok(false);
        }
        self.in_doubt = true;
        self.clear_idle_anchors()?;
        self.write_session()?;
        // If programs of it failed, the next session may not see those that were repeated.
        self.log.raise_sequence(self.log.sequence() + gap_of(&self.log.geometry()));
        Ok(true)
    }

    /// Settles, unless that is done.
    pub(super) fn settle(&mut self) -> Result<(), FtlError<F::Error>> {
        if self.settled {
            return Ok(());
        }
        // If it fails half way, only another mount knows what is torn now.
        let settled = self.settle_all();
        self.in_doubt = settled.is_err();
        self.settled = settled.is_ok();
        settled
    }

    fn settle_all(&mut self) -> Result<(), FtlError<F::Error>> {
        let (newest, number) = self.newest;
        let block = self.block_of(newest);
        self.clear_idle_anchors()?;
        let failed = self.clear_torn_blocks(number)?;
        let mut suspects = self.suspects;
        for suspect in self.suspects.all() {
            let suspect = BlockNumber(suspect.block);
            if suspect != block {
                self.log.clear_block(suspect)?;
            }
        }
        // One that could not be erased is marked before its numbers are excluded no longer.
        self.log.mark_bad_blocks()?;
        let lasting = self.lasting(&suspects)?;
        let blocks = &self.log.blocks;
        suspects.keep(|suspect| {
            suspect == block || blocks.valid_in(suspect) > 0 || lasting.has(suspect)
        });
        for suspect in self.lasting(&failed)?.all() {
            covered!("ftl: a block that begins torn is neither erased nor marked");
            if !suspects.has(BlockNumber(suspect.block)) && !suspects.add(*suspect) {
                return Err(FtlError::NoRoom);
            }
        }
        // Behind a directory there is nothing, and no block is open.
        if newest != self.log.page_at(block, self.log.block_pages() - 1)
            && Some(block) != self.anchors.current()
        {
            // The session page has a higher number than any page torn now can have.
            let to = self.log.sequence();
            if !suspects.add(Suspect { block: block.0, from: number, to }) {
                return Err(FtlError::NoRoom);
            }
        }
        // Behind a page in a buffer block the other two are listed only if they are not blank.
        let are_two = self.beside.iter().all(Option::is_some);
        for other in [self.incomplete].into_iter().chain(self.beside).flatten() {
            if are_two
                && Some(other) != self.incomplete
                && !self.may_end_torn(other, (None, number))?
            {
                continue;
            }
            let suspect = Suspect { block: other.0, from: number, to: self.log.sequence() };
            if suspects.has(other) || other == block {
                continue;
            }
            covered!("ftl: the other open block is a suspect");
            if !suspects.add(suspect) {
                return Err(FtlError::NoRoom);
            }
        }
        if let Some(from) = self.buffered_from {
            for other in self.log.blocks.all() {
                let is_listed = suspects.has(other);
                if is_listed || other == block || !self.may_end_torn(other, (Some(from), number))? {
                    continue;
                }
                // It is not erased before what it may show is excluded.
                if self.log.blocks.is_empty(other) {
                    self.log.blocks.hold(other);
                }
                let suspect = Suspect { block: other.0, from: number, to: self.log.sequence() };
                if !suspects.add(suspect) {
                    return Err(FtlError::NoRoom);
                }
            }
        }
        self.suspects = suspects;
        if suspects.all().is_empty() {
            return Ok(self.log.mark_bad_blocks()?);
        }
        self.write_session()?;
        let mut damaged = Suspects::default();
        while let Some(suspect) = self.easiest_suspect() {
            if !self.empty_suspect(BlockNumber(suspect.block))? {
                damaged.add(suspect);
            }
            self.suspects.keep(|block| block.0 != suspect.block);
        }
        // What cannot be erased is left out by every mount before it counts again.
        self.log.mark_bad_blocks()?;
        for suspect in self.lasting(&suspects)?.all() {
            covered!("ftl: a suspect is neither erased nor marked");
            if !damaged.has(BlockNumber(suspect.block)) && !damaged.add(*suspect) {
                return Err(FtlError::NoRoom);
            }
        }
        self.suspects = damaged;
        (self.incomplete, self.beside) = (None, [None; 2]);
        self.write_session()?;
        Ok(self.log.mark_bad_blocks()?)
    }

    /// Those of `suspects` whose blocks can neither be erased nor marked as bad.
    fn lasting(&mut self, suspects: &Suspects) -> Result<Suspects, FtlError<F::Error>> {
        let mut lasting = Suspects::default();
        for suspect in suspects.all() {
            let block = BlockNumber(suspect.block);
            if self.log.blocks.is_bad(block) && !self.log.is_marked(block)? {
                lasting.add(*suspect);
            }
        }
        Ok(lasting)
    }

    /// The suspect with the fewest valid pages.
    fn easiest_suspect(&self) -> Option<Suspect> {
        let suspects = self.suspects.all().iter().copied();
        suspects.min_by_key(|suspect| self.log.blocks.valid_in(BlockNumber(suspect.block)))
    }

    /// Moves all valid pages of a block, and erases it.
    ///
    /// Returns `false` if one of them cannot be read.
    fn empty_suspect(&mut self, block: BlockNumber) -> Result<bool, FtlError<F::Error>> {
        if self.log.active_block() == Some(block) {
            // It held nothing, and was erased for the session page.
            covered!("ftl: a suspect takes the session page");
            return Ok(true);
        }
        let (mut from, mut is_whole) = (0, true);
        while let Some((page, place)) = gc::next_valid(self, block, from)? {
            from = place + 1;
            match self.relocate(page, None) {
                Err(Fault::Corrupt { .. }) if !self.in_doubt => {
                    covered!("ftl: a page of a suspect cannot be read");
                    is_whole = false;
                }
                moved => self.ended(moved)?,
            }
        }
        self.log.clear_block(block)?;
        Ok(is_whole)
    }

    /// Erases the anchors that may show a directory which is not in force.
    ///
    /// It may be torn, or half erased, and not seen by each mount. Cost: [`LOOKS`] reads and an
    /// erase at most for each anchor.
    fn clear_idle_anchors(&mut self) -> Result<(), FtlError<F::Error>> {
        for which in 0..2 {
            let Some(block) = self.anchors.idle(which) else { continue };
            if self.log.blocks.valid_in(block) == 0 && self.may_show_directory(block)? {
                covered!("ftl: an anchor may show a directory that is not in force");
                self.anchors.erase(&mut self.log, which)?;
            }
        }
        Ok(())
    }

    /// Whether the first page of `block` is neither blank each time nor of another kind.
    fn may_show_directory(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let page = self.log.page_at(block, 0);
        for _ in 0..LOOKS {
            match self.log.read_raw(page, 0)? {
                Err(PageFault::Erased) => {}
                Ok(header) => {
                    return Ok(Kind::of(header.lowest, header.records) == Kind::Directory);
                }
                Err(_) => return Ok(!self.holds_other_pages(block)?),
            }
        }
        Ok(false)
    }

    /// Erases the blocks without valid pages whose first page may be torn.
    ///
    /// Returns those whose erase failed. Every page that is not torn has at most the number
    /// `newest`. Cost: a read for each such block that was written, [`LOOKS`] for each that was
    /// not.
    fn clear_torn_blocks(&mut self, newest: u64) -> Result<Suspects, FtlError<F::Error>> {
        let mut failed = Suspects::default();
        for block in self.log.blocks.all() {
            if self.anchors.allow(block)
                && self.log.blocks.is_empty(block)
                && !self.log.is_newest(block)
                && self.may_begin_torn(block, newest)?
            {
                covered!("ftl: the first page of a block is torn");
                self.log.clear_block(block)?;
                let suspect = Suspect { block: block.0, from: newest, to: self.log.sequence() };
                if self.log.blocks.is_bad(block) && !failed.add(suspect) {
                    return Err(FtlError::NoRoom);
                }
            }
        }
        self.log.mark_bad_blocks()?;
        Ok(failed)
    }

    fn may_begin_torn(&mut self, block: BlockNumber, newest: u64) -> Result<bool, Fault<F::Error>> {
        let page = self.log.page_at(block, 0);
        for _ in 0..LOOKS {
            match self.log.read_raw(page, 0)? {
                Err(PageFault::Erased) => {}
                Ok(header) => return Ok(header.sequence > newest),
                Err(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Programs a session page with the current suspects.
    pub(super) fn write_session(&mut self) -> Result<(), FtlError<F::Error>> {
        let bytes = self.page_bytes();
        self.log.frames.forget(0);
        if !self.suspects.write(&mut self.log.frames.bytes_mut(0)[..bytes]) {
            return Err(FtlError::NoRoom);
        }
        self.program(0, Kind::Own(Own::Session))?;
        self.statistics.own += 1;
        Ok(())
    }
}
