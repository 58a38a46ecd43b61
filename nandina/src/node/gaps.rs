//! Gaps: sequence numbers that do not count, as a session page lists them.
//!
//! They are used where logical pages are replaced in place. The node area of a session page holds a
//! count of 0 (2 bytes: a node without records), the number of gaps (2 bytes), and for each gap its
//! first number (6 bytes) and its length (4 bytes).

use super::PageHeader;
use crate::bytes::{u16_at, u32_at};

/// The most gaps that can be known at once.
const GAPS_MAX: usize = 16;

/// The offset of the gaps: after the count of the empty node and their own count.
const GAPS_AT: usize = 4;

/// Bytes of a gap: its first number (6 bytes) and its length (4 bytes).
const GAP_BYTES: usize = 10;

/// Ranges of sequence numbers whose pages do not count, in rising order.
#[derive(Default)]
pub struct Gaps {
    firsts: [u64; GAPS_MAX],
    counts: [u32; GAPS_MAX],
    len: usize,
}

impl Gaps {
    /// Bytes of a node area that has room for one gap.
    pub(crate) const LEAST_BYTES: usize = GAPS_AT + GAP_BYTES;

    /// The first number of each gap, and the number after its last one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let gaps = self.firsts.iter().zip(&self.counts).take(self.len);
        gaps.map(|(&first, &count)| (first, first + u64::from(count)))
    }

    /// Whether a page with this header counts.
    ///
    /// These gaps are listed in the page with the sequence number `session`.
    pub fn let_count(&self, header: &PageHeader, session: u64) -> bool {
        let is_unfinished = header.settling && header.sequence > session;
        let is_outdated = self.iter().any(|(first, end)| (first..end).contains(&header.sequence));
        !is_unfinished && !is_outdated
    }

    /// Forgets the gaps that end before the sequence number `oldest`.
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

    /// Adds the gap from `first` up to, but not including, `end`.
    ///
    /// Returns `false` if more than `most` gaps would result. If only a session page lies between
    /// the previous gap and this one, the previous gap becomes longer instead.
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

    /// The most gaps for which a session page has room.
    pub(crate) fn most(area_bytes: usize) -> usize {
        (area_bytes.saturating_sub(GAPS_AT) / GAP_BYTES).min(GAPS_MAX)
    }

    /// Reads the gaps from the node area of a session page.
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

    /// Writes the gaps as the node area of a session page.
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
