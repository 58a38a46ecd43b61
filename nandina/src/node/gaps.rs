//! Sequence numbers that do not count, as a session page lists them where logical pages are
//! replaced in place.
//!
//! The node area of a session page holds a count of 0 (2 bytes: a node without records), how many
//! gaps there are (2 bytes), and for each its first number (6 bytes) and how many numbers it has (4
//! bytes).

use super::PageHeader;
use crate::bytes::{u16_at, u32_at};

/// Gaps that are known at once, at most.
const GAPS_MAX: usize = 16;

/// Where the gaps stand in a page: behind the count of an empty node, and their own.
const GAPS_AT: usize = 4;

/// Bytes of a gap: its first number (6 bytes), and how many there are (4 bytes).
const GAP_BYTES: usize = 10;

/// Sequence numbers that were given to nothing that counts, in rising order.
#[derive(Default)]
pub struct Gaps {
    firsts: [u64; GAPS_MAX],
    counts: [u32; GAPS_MAX],
    len: usize,
}

impl Gaps {
    /// The first number of each gap, and the one behind it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let gaps = self.firsts.iter().zip(&self.counts).take(self.len);
        gaps.map(|(&first, &count)| (first, first + u64::from(count)))
    }

    /// Whether a page with this header counts, where the session page with these gaps has the
    /// number `session`.
    pub fn let_count(&self, header: &PageHeader, session: u64) -> bool {
        let is_unfinished = header.settling && header.sequence > session;
        let is_outdated = self.iter().any(|(first, end)| (first..end).contains(&header.sequence));
        !is_unfinished && !is_outdated
    }

    /// Forgets those that end before the sequence number `oldest`.
    pub(crate) fn forget_before(&mut self, oldest: u64) {
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

    /// Adds the numbers from `first` on up to `end`, if there is room for at most `most` gaps. The
    /// one before, if only a session page lies between the two, becomes longer.
    pub(crate) fn add(&mut self, first: u64, end: u64, most: usize) -> bool {
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

    /// Gaps for which a session page has room.
    pub(crate) fn most(area_bytes: usize) -> usize {
        (area_bytes.saturating_sub(GAPS_AT) / GAP_BYTES).min(GAPS_MAX)
    }

    /// Reads those that a session page with this node area lists.
    pub fn read(area: &[u8]) -> Self {
        let len = usize::from(u16_at(area, 2)).min(Self::most(area.len()));
        let mut gaps = Self { len, ..Self::default() };
        for at in 0..gaps.len {
            let gap = &area[GAPS_AT + at * GAP_BYTES..][..GAP_BYTES];
            gaps.firsts[at] = u64::from(u32_at(gap, 0)) | u64::from(u16_at(gap, 4)) << 32;
            gaps.counts[at] = u32_at(gap, 6);
        }
        gaps
    }

    /// Makes a session page of a node area.
    pub(crate) fn write(&self, area: &mut [u8]) {
        area.fill(0);
        area[2..GAPS_AT].copy_from_slice(&(self.len as u16).to_le_bytes());
        for at in 0..self.len {
            let gap = &mut area[GAPS_AT + at * GAP_BYTES..][..GAP_BYTES];
            gap[..6].copy_from_slice(&self.firsts[at].to_le_bytes()[..6]);
            gap[6..].copy_from_slice(&self.counts[at].to_le_bytes());
        }
    }
}
