//! Sessions of an index that is replaced in place.
//!
//! A mount decides about torn pages, and writes the decision down before anything else is written
//! (`session_page.rs` beside this has the pages).
//!
//! Pages are written one after the other, and a write that was cut or failed ends in a mount. So of
//! the pages that count and are newer than the last session page, only the newest may be torn. It
//! is read [`LOOKS`] times. If it does not read the same each time, it does not count, and the
//! mount starts over without it. There are at most two such pages: one of an operation, and the
//! root of a format that was cut as well. In addition, a session page may be torn if its mount was
//! cut. It is checked in the same way before anything else is. Each mount writes its session page
//! to the same page, so no torn one is left once a session has begun.
//!
//! As a session begins, a page that counts is written anew, so it stays visible even if those reads
//! were misleading. A page that does not count, or was not seen, has a number in a gap, and session
//! pages list all gaps, so it cannot come back. (The gap also covers pages of a split whose
//! parent was not written.) Pages written later have higher numbers, so a free logical page can be
//! used, even if it is torn: that page is in a gap, or older than what is written.
//!
//! If no page is newer than the last session page, there is nothing to keep, and a mount writes
//! nothing. There is one exception: the first page of a session may have been torn, and read as
//! before its program. Another such mount may still find that page, and then keeps it. The first
//! change, or a mount that writes, decides everything.
//!
//! Where pages are replaced atomically, no page is torn: there are no sessions, and a mount writes
//! nothing. With checkpoints, a session begins with a page that makes the last one void.
//!
//! Cost: 24 reads for a session page, and as many for the newest page if it is newer. As a session
//! begins, two writes and a read. When there are as many gaps as a page lists (16, fewer in pages
//! of less than 204 bytes), a write and a read for each node, once. That sweep counts as a whole or
//! not at all: power must last for it.

use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::log::LOOKS;
use crate::space::InPlace;
use crate::tree::{Placement, TreeIndex};

impl<F: Flash, S: Placement<Kind = InPlace>> TreeIndex<'_, F, S> {
    /// Finds the last session: the newer session page that reads the same each time.
    ///
    /// Where pages are replaced atomically, the only session is that of a checkpoint.
    pub(super) fn find_session(&mut self) -> Result<(), Fault<F::Error>> {
        if self.space.is_atomic() {
            // No page is torn, so the first read shows it.
            let session = if self.space.has_checkpoints() {
                self.space.newer_session(self.torn.excluded())?
            } else {
                None
            };
            self.space.set_session(session);
            return Ok(());
        }
        loop {
            let torn = *self.torn.excluded();
            let session = self.space.newer_session(&torn)?;
            if let Some((page, number)) = session
                && !self.reads_as(page, number)?
            {
                if self.torn.exclude(page) {
                    covered!("a session page is torn");
                    continue;
                }
                return Err(Fault::Corrupt { page, reason: Damage::Checksum });
            }
            self.space.set_session(session);
            return Ok(());
        }
    }

    /// The highest number that a session page decides on: its own.
    pub(super) fn last_session(&mut self) -> u64 {
        self.space.session()
    }

    /// Whether `page` reads with this sequence number every time.
    ///
    /// If so, the page is in page buffer 0 afterwards.
    pub(super) fn reads_as(
        &mut self,
        page: PageNumber,
        sequence: u64,
    ) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            let header = self.space.log.read_raw(page, 0)?;
            if header.map(|header| header.sequence) != Ok(sequence) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the next mount could read differently what this one took or left out.
    ///
    /// If not, a mount writes nothing. A full list of gaps must be settled as well.
    fn needs_settling(&mut self) -> bool {
        let must_decide = self.unsettled().is_some() || self.torn.excludes_any();
        !self.space.is_atomic() && (must_decide || self.space.gaps_are_full())
    }

    /// The newest page, if no session page has decided on it.
    fn unsettled(&self) -> Option<PageNumber> {
        let newest = self.torn.newest();
        newest.filter(|(_, sequence)| *sequence > self.space.session()).map(|(page, _)| page)
    }

    /// Makes sure that each later mount decides as this one has.
    pub(super) fn settle_in_place(&mut self) -> Result<(), Fault<F::Error>> {
        if self.needs_settling() { self.begin_session().map(|_| ()) } else { Ok(()) }
    }

    /// Begins a session before the first change.
    ///
    /// Returns whether a page was written for that.
    pub(super) fn begin_session(&mut self) -> Result<bool, Fault<F::Error>> {
        if self.space.log.has_begun() {
            return Ok(false);
        }
        if self.space.is_atomic() {
            let was_closed = self.space.has_checkpoints() && !self.space.is_open();
            if was_closed {
                self.state.doubt();
                self.space.write_session_start()?;
                self.state.trust();
            }
            self.space.log.begin_at_once();
            return Ok(was_closed);
        }
        self.state.doubt();
        let recent = self.unsettled();
        let highest = self.space.log.sequence();
        self.space.begin_session(recent, highest)?;
        self.state.trust();
        Ok(true)
    }

    /// Decides about the torn pages of an index that cannot be opened, before a format.
    ///
    /// So none of them comes back, and no torn session page outdates the new root. Returns the
    /// number that comes before that of the new root.
    ///
    /// Cost: a read for each page and 24 more, up to three times, and what it costs to begin a
    /// session.
    pub(super) fn outdate_in_place(&mut self) -> Result<u64, Fault<F::Error>> {
        let last = self.last_session();
        let newest = loop {
            let newest = self.newest_readable()?.filter(|&(_, sequence)| sequence > last);
            match newest {
                Some((page, sequence))
                    if !self.reads_as(page, sequence)? && self.torn.exclude(page) => {}
                newest => break newest,
            }
        };
        let highest = newest.map_or(last, |(_, sequence)| sequence);
        let root = self.root_in_place()?;
        let medium = self.space.log.medium;
        let has_sessions = root.is_some_and(|(_, _, found)| {
            found.system == medium.system && !found.atomic && !medium.atomic
        });
        // The age of no node is known, so no gap is forgotten, and no node is moved to make room.
        self.space.forget_oldest();
        if !has_sessions || self.space.gaps_are_full() {
            return Ok(highest);
        }
        self.space.begin_session(None, highest)?;
        Ok(self.space.log.sequence())
    }

    /// The readable page with the highest sequence number, except session pages.
    ///
    /// Cost: a read for each page.
    fn newest_readable(&mut self) -> Result<Option<(PageNumber, u64)>, Fault<F::Error>> {
        let mut newest: Option<(PageNumber, u64)> = None;
        for page in (0..self.space.log.geometry().pages()).map(PageNumber) {
            if let Ok(header) = self.space.log.read_raw(page, 0)?
                && !header.settling
                && !header.begins_session()
                && !header.ends_session()
                && !header.is_of_checkpoint()
                && !self.torn.excludes(page)
                && newest.is_none_or(|(_, sequence)| sequence < header.sequence)
            {
                newest = Some((page, header.sequence));
            }
        }
        Ok(newest)
    }
}
