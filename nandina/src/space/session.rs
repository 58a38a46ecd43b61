//! Session pages: what a mount of an index that is replaced in place has decided about pages that a cut may have left
//! torn, so that each later mount decides the same. (What is torn may read otherwise each time, rule 6 of the media
//! contract.)
//!
//! A torn page that a mount does not see, or finds to be torn, may be read at a later one, with a sequence number above
//! that of its twin. So the numbers above the highest that counts are *outdated* before anything else is written: a
//! session begins with a gap in the numbers, and its first page, the session page, lists all such gaps. A page whose
//! number lies in one does not count, until it is written over as the older of its twins.
//!
//! What the mount takes for written it writes anew before the session page, as *settling* pages: copies that count only
//! once a session page is newer than they are. So the session page commits all of it at once, and a mount that is cut
//! before leaves no trace that matters.
//!
//! A gap is forgotten when each logical page was written since; where there is no room for one more, a mount writes
//! all of them anew. The session pages are a logical page of their own, written in turn like any other; each mount reads
//! the newer one often enough to know that it is whole.

use super::memory::Memory;
use super::write::Label;
use super::{GAP, InPlace, Space};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::node::bytes::{u16_at, u32_at};
use crate::node::{PageHeader, SESSION_START};

/// The logical page of the sessions.
pub(crate) const SESSION: u32 = 2;

/// Gaps that are known at once, at most.
const GAPS_MAX: usize = 16;

/// Where the gaps stand in a page: behind the count of an empty node, and their own.
const GAPS_AT: usize = 4;

/// Bytes of a gap: its first number (6 bytes), and how many there are (4 bytes).
const GAP_BYTES: usize = 10;

/// Outdated sequence numbers, in rising order.
#[derive(Default)]
struct Gaps {
    firsts: [u64; GAPS_MAX],
    counts: [u32; GAPS_MAX],
    len: usize,
}

impl Gaps {
    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let gaps = self.firsts.iter().zip(&self.counts).take(self.len);
        gaps.map(|(&first, &count)| (first, first + u64::from(count)))
    }

    fn cover(&self, sequence: u64) -> bool {
        self.iter().any(|(first, end)| (first..end).contains(&sequence))
    }

    /// Forgets those that end before the sequence number `oldest`.
    fn forget_before(&mut self, oldest: u64) {
        let mut kept = 0;
        for at in 0..self.len {
            let (first, count) = (self.firsts[at], self.counts[at]);
            if first + u64::from(count) > oldest {
                (self.firsts[kept], self.counts[kept]) = (first, count);
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Adds the numbers from `first` on up to `end`, if there is room for at most `most` gaps. The one before, if only a
    /// session page lies between the two, becomes longer.
    fn add(&mut self, first: u64, end: u64, most: usize) -> bool {
        let last = self.len.checked_sub(1);
        let longer =
            last.filter(|&last| self.firsts[last] + u64::from(self.counts[last]) + 1 == first);
        let (at, from) = longer.map_or((self.len, first), |last| (last, self.firsts[last]));
        let Ok(count) = u32::try_from(end.saturating_sub(from)) else { return false };
        if at >= most {
            return false;
        }
        (self.firsts[at], self.counts[at]) = (from, count);
        self.len = at + 1;
        true
    }

    fn most(area_bytes: usize) -> usize {
        (area_bytes.saturating_sub(GAPS_AT) / GAP_BYTES).min(GAPS_MAX)
    }

    fn read(area: &[u8]) -> Self {
        let mut gaps = Self::default();
        gaps.len = usize::from(u16_at(area, 2)).min(Self::most(area.len()));
        for at in 0..gaps.len {
            let gap = &area[GAPS_AT + at * GAP_BYTES..][..GAP_BYTES];
            gaps.firsts[at] = u64::from(u32_at(gap, 0)) | u64::from(u16_at(gap, 4)) << 32;
            gaps.counts[at] = u32_at(gap, 6);
        }
        gaps
    }

    fn write(&self, area: &mut [u8]) {
        area.fill(0);
        area[2..GAPS_AT].copy_from_slice(&(self.len as u16).to_le_bytes());
        for at in 0..self.len {
            let gap = &mut area[GAPS_AT + at * GAP_BYTES..][..GAP_BYTES];
            gap[..6].copy_from_slice(&self.firsts[at].to_le_bytes()[..6]);
            gap[6..].copy_from_slice(&self.counts[at].to_le_bytes());
        }
    }
}

/// What is known of sessions, and from where on a free logical page is looked for.
#[derive(Default)]
pub struct Sessions {
    pub next_free: u32,
    /// The newest session page, if there is one, and its number, or 0.
    page: Option<PageNumber>,
    number: u64,
    gaps: Gaps,
    /// The lowest sequence number that counts.
    oldest: Option<u64>,
}

impl Memory for Sessions {
    fn counts(&self, header: &PageHeader) -> bool {
        let is_unfinished = header.settling && header.sequence > self.number;
        !is_unfinished && !self.gaps.cover(header.sequence)
    }

    fn note_counted(&mut self, sequence: u64) {
        self.oldest = Some(self.oldest.map_or(sequence, |oldest| oldest.min(sequence)));
    }
}

impl<F: Flash> Space<'_, F, InPlace> {
    /// The newer session page that is not `torn`, and its number. Cost: two reads.
    pub(crate) fn newer_session(
        &mut self,
        torn: &[u32],
    ) -> Result<Option<(PageNumber, u64)>, Fault<F::Error>> {
        let mut newest: Option<(PageNumber, u64)> = None;
        for page in [PageNumber(SESSION), PageNumber(SESSION | 1)] {
            // A chip too small for it has none.
            if page.0 < self.geometry().pages()
                && let Ok(header) = self.read_raw(page, 0)?
                && header.medium.system == self.medium.system
                && (header.height, header.records) == (0, SESSION_START)
                && newest.is_none_or(|(_, number)| number < header.sequence)
                && !torn.contains(&page.0)
            {
                newest = Some((page, header.sequence));
            }
        }
        Ok(newest)
    }

    /// The last session is the one of the session page that was just read into page buffer 0, or there was none.
    pub(crate) fn set_session(&mut self, session: Option<(PageNumber, u64)>) {
        self.memory = Sessions::default();
        if let Some((page, number)) = session {
            let area_bytes = self.layout().area_bytes();
            let gaps = Gaps::read(&self.frames.bytes(0)[..area_bytes]);
            self.memory = Sessions { page: Some(page), number, gaps, ..Sessions::default() };
            self.sequence = self.sequence.max(number);
        }
    }

    /// The number of the newest session page, or 0.
    pub(crate) const fn session(&self) -> u64 {
        self.memory.number
    }

    /// Whether the gaps have no room for one behind the last session.
    pub(crate) fn gaps_are_full(&self) -> bool {
        let Sessions { number, gaps, oldest, .. } = &self.memory;
        let left = gaps.iter().filter(|&(_, end)| end > oldest.unwrap_or(0)).count();
        let is_longer = gaps.iter().last().is_some_and(|(_, end)| end == *number);
        !is_longer && left >= Gaps::most(self.layout().area_bytes())
    }

    /// Begins a session: what was written above the sequence number `highest` is outdated. If the page `newest` is told,
    /// it is written anew. What is in page buffer 0 is lost.
    ///
    /// Cost: a rewrite, a read and a rewrite for `newest`; and where there is no room for one more gap, the same for each
    /// logical page.
    pub(crate) fn begin_session(
        &mut self,
        newest: Option<PageNumber>,
        highest: u64,
    ) -> Result<(), Fault<F::Error>> {
        let most = Gaps::most(self.layout().area_bytes());
        self.sequence = highest + GAP;
        if let Some(oldest) = self.memory.oldest {
            self.memory.gaps.forget_before(oldest);
        }
        self.settling = true;
        if !self.memory.gaps.add(highest + 1, self.sequence + 1, most) {
            for name in (0..self.geometry().pages() / 2).map(|pair| 2 * pair) {
                self.copy_twin(PageNumber(self.newer_twin(name)), highest)?;
            }
            self.memory.gaps = Gaps::default();
        } else if let Some(page) = newest {
            self.copy_twin(page, highest)?;
        }
        self.settling = false;
        let page = self.memory.page.map_or(SESSION, |page| page.0 ^ 1);
        self.frames.forget(0);
        let area_bytes = self.layout().area_bytes();
        self.memory.gaps.write(&mut self.frames.bytes_mut(0)[..area_bytes]);
        let label = Label { lowest: 1, height: 0, records: SESSION_START };
        self.rewrite(0, PageNumber(page), label)?;
        self.frames.release(0);
        (self.memory.page, self.memory.number) = (Some(PageNumber(page)), self.sequence);
        self.begun = true;
        Ok(())
    }

    /// Writes the page over its twin, if it is valid, can be read, and has no higher number than `highest`.
    fn copy_twin(&mut self, page: PageNumber, highest: u64) -> Result<(), Fault<F::Error>> {
        if self.blocks.is_valid(page)
            && let Ok(header) = self.read_raw(page, 0)?
            && header.sequence <= highest
        {
            let PageHeader { lowest, height, records, .. } = header;
            self.frames.forget(0);
            self.replace(0, page.0 & !1, lowest, height, records)?;
        }
        Ok(())
    }
}
