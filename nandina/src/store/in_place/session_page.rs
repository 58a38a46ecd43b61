//! Session pages: what a mount has decided about possibly torn pages.
//!
//! They belong to indexes that are replaced in place, and make each later mount decide the same. (A
//! torn page may read differently each time, rule 6 of the media contract.)
//!
//! A mount may miss a torn page, or recognise it as torn, and a later mount may still read it, with
//! a sequence number above that of its shadow page. So the numbers above the highest that counts
//! are *outdated* before anything else is written: the numbers continue after a gap, and the first
//! page that is written, a *session page*, lists all such gaps. A page whose number lies in a gap
//! does not count, until it is overwritten as the older of its two shadow pages.
//!
//! Content of a torn page that the mount accepts is written again before that, as *settling* pages:
//! copies that count only once a session page is newer than they are. So that page commits all of
//! it at once, and a mount that is cut before leaves no trace that matters.
//!
//! A gap is forgotten once each logical page has been written since; if there is no room for one
//! more gap, a mount writes all logical pages again. A logical page is kept for session pages and
//! written in turn like any other; each mount reads the newer one often enough to know that it is
//! whole.

use super::session_end::{END_BYTES, End};
use super::vanished::Vanished;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::{GAP, Label};
use crate::node::{Gaps, PageFault, PageHeader, SESSION_END, SESSION_START};
use crate::space::{InPlace, Memory, Space};

/// The state of sessions, and where the search for a free logical page begins.
#[derive(Default)]
pub struct Sessions {
    next_free: u32,
    pub vanished: Vanished,
    /// The newest session page, if there is one, and its sequence number, or 0.
    page: Option<PageNumber>,
    number: u64,
    /// What the session page says of the tree, if it is the end of a session.
    end: Option<End>,
    gaps: Gaps,
    /// The lowest sequence number that counts.
    oldest: Option<u64>,
    /// A session page cannot be read, or is torn: it may have been the newest one.
    has_unread: bool,
}

impl Sessions {
    /// Forgets all but whether a session page cannot be read.
    fn forget(&mut self) {
        *self = Self { has_unread: self.has_unread, ..Self::default() };
    }

    /// The logical page at which the search for a free one begins.
    ///
    /// None before it is free.
    pub const fn next_free(&self) -> u32 {
        self.next_free
    }

    /// The search for a free logical page begins at `next`.
    pub const fn set_next_free(&mut self, next: u32) {
        self.next_free = next;
    }

    /// A logical page is free from now on.
    pub fn note_free(&mut self, name: u32) {
        self.next_free = self.next_free.min(name);
    }
}

impl Memory for Sessions {
    fn counts(&self, header: &PageHeader) -> bool {
        self.gaps.let_count(header, self.number)
    }

    fn note_counted(&mut self, sequence: u64) {
        self.oldest = Some(self.oldest.map_or(sequence, |oldest| oldest.min(sequence)));
    }
}

impl<F: Flash> Space<'_, F, InPlace> {
    /// The newer session page that is not `torn`, and its sequence number.
    ///
    /// Cost: two reads, or one where pages are replaced atomically.
    pub(crate) fn newer_session(
        &mut self,
        torn: &[u32],
    ) -> Result<Option<(PageNumber, u64)>, Fault<F::Error>> {
        let mut newest: Option<(PageNumber, u64)> = None;
        self.memory.has_unread = false;
        let first = self.session_page();
        for page in (first..first + self.pages_each()).map(PageNumber) {
            // A chip that is too small for a session page has none.
            if page.0 >= self.log.geometry().pages() {
                continue;
            }
            let header = match self.log.read_raw(page, 0)? {
                Ok(header) if !torn.contains(&page.0) => header,
                Err(PageFault::Erased) => continue,
                _ => {
                    self.memory.has_unread = true;
                    continue;
                }
            };
            if self.log.medium_in(0).system == self.log.medium.system
                && (header.begins_session() || header.ends_session())
                && newest.is_none_or(|(_, number)| number < header.sequence)
            {
                newest = Some((page, header.sequence));
            }
        }
        Ok(newest)
    }

    /// Continues the session of the page just read into page buffer 0.
    ///
    /// `None` if there was no session.
    pub(crate) fn set_session(&mut self, session: Option<(PageNumber, u64)>) {
        self.memory.forget();
        if let Some((page, number)) = session {
            let area_bytes = self.log.layout().area_bytes();
            let area = &self.log.frames.bytes(0)[..area_bytes];
            let (medium, header) = (self.log.medium_in(0), self.log.header(0));
            self.memory.gaps = Gaps::read(area);
            self.memory.end = End::read(&medium, &header, area);
            (self.memory.page, self.memory.number) = (Some(page), number);
            self.log.raise_sequence(number);
        }
    }

    /// The sequence number of the newest session page, or 0.
    pub(crate) const fn session(&self) -> u64 {
        self.memory.number
    }

    /// Whether there is no room for another gap after the last session.
    pub(crate) fn gaps_are_full(&self) -> bool {
        let Sessions { number, gaps, oldest, .. } = &self.memory;
        let left = gaps.iter().filter(|&(_, end)| end > oldest.unwrap_or(0)).count();
        let is_longer = gaps.iter().last().is_some_and(|(_, end)| end == *number);
        !is_longer && left >= self.gaps_max()
    }

    /// Begins a session, which outdates all pages numbered above `highest`.
    ///
    /// If there is a page `newest`, it is written again. The content of page buffer 0 is lost.
    ///
    /// Cost: a rewrite; a read and a rewrite for `newest`; and, if there is no room for one more
    /// gap, the same for each logical page.
    pub(crate) fn begin_session(
        &mut self,
        newest: Option<PageNumber>,
        highest: u64,
    ) -> Result<(), Fault<F::Error>> {
        let most = self.gaps_max();
        self.log.raise_sequence(highest + GAP);
        if let Some(oldest) = self.memory.oldest {
            self.memory.gaps.forget_before(oldest);
        }
        self.log.begin_settling();
        if !self.memory.gaps.add(highest + 1, self.log.sequence() + 1, most) {
            covered!("the list of gaps is full");
            for name in (0..self.log.geometry().pages() / 2).map(|pair| 2 * pair) {
                self.copy_logical_page(PageNumber(self.newer_shadow_page(name)), highest)?;
            }
            self.memory.gaps = Gaps::default();
        } else if let Some(page) = newest {
            covered!("a session begins with a copy");
            self.copy_logical_page(page, highest)?;
        }
        self.log.end_settling();
        self.write_session_start()?;
        self.log.begin_at_once();
        Ok(())
    }

    /// Writes the first page of a session, beside the newest session page.
    ///
    /// From then on no checkpoint counts. Cost: a rewrite.
    pub(super) fn write_session_start(&mut self) -> Result<(), Fault<F::Error>> {
        self.memory.end = None;
        let (page, number) = (self.other_session_page(), self.log.sequence() + 1);
        self.write_session_page(page, None, number)?;
        self.log.raise_sequence(number);
        (self.memory.page, self.memory.number) = (Some(page), number);
        Ok(())
    }

    /// Ends the session: writes `end` beside the page that began it.
    pub(super) fn end_session(&mut self, end: End) -> Result<(), Fault<F::Error>> {
        self.write_session_page(self.other_session_page(), Some(end), self.log.sequence() + 1)
    }

    /// The page beside the newest session page, or the only one.
    fn other_session_page(&self) -> PageNumber {
        let other = self.pages_each() - 1;
        let page = self.memory.page.map_or(self.session_page(), |page| page.0 ^ other);
        PageNumber(page)
    }

    /// Writes a session page with this number: the gaps, and the `end` if it is one.
    ///
    /// Cost: a rewrite.
    fn write_session_page(
        &mut self,
        page: PageNumber,
        end: Option<End>,
        number: u64,
    ) -> Result<(), Fault<F::Error>> {
        self.log.frames.forget(0);
        let area_bytes = self.log.layout().area_bytes();
        let area = &mut self.log.frames.bytes_mut(0)[..area_bytes];
        self.memory.gaps.write(area);
        let mut label = Label { lowest: 1, height: 0, records: SESSION_START };
        if let Some(end) = end {
            end.write(area);
            label.records = SESSION_END;
        }
        self.log.rewrite_as(0, page, label, number)?;
        self.log.frames.release(0);
        Ok(())
    }

    /// What the session page says of the tree, if it is the end of a session.
    pub(super) const fn end(&self) -> Option<&End> {
        self.memory.end.as_ref()
    }

    /// Whether the session page that was found began a session, which has not ended.
    pub(super) const fn is_open(&self) -> bool {
        self.memory.page.is_some() && self.memory.end.is_none()
    }

    /// Whether a session page may be newer than the one that was found.
    pub(super) const fn has_unread_session(&self) -> bool {
        self.memory.has_unread
    }

    /// Notes that not all pages that count were seen: no gap is forgotten.
    pub(super) const fn forget_oldest(&mut self) {
        self.memory.oldest = None;
    }

    /// The most gaps for which a session page has room, beside the end of a session.
    fn gaps_max(&self) -> usize {
        let area_bytes = self.log.layout().area_bytes();
        Gaps::most(if self.has_checkpoints() { area_bytes - END_BYTES } else { area_bytes })
    }

    /// Copies the page over its shadow page.
    ///
    /// It does so only if the page is valid, readable, and numbered `highest` at most.
    fn copy_logical_page(&mut self, page: PageNumber, highest: u64) -> Result<(), Fault<F::Error>> {
        if self.log.blocks.is_valid(page)
            && let Ok(header) = self.log.read_raw(page, 0)?
            && header.sequence <= highest
        {
            let PageHeader { lowest, height, records, .. } = header;
            self.log.frames.forget(0);
            self.replace(0, page.0 & !1, lowest, height, records)?;
        }
        Ok(())
    }
}
