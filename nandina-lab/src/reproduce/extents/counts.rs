//! Exact counts of a trace, without any mapping: extents, canonical extents, sizes, addresses.
//!
//! Extents are kept as EMT keeps them: one for each write, or for what is left of it. Their
//! canonical extents are the leaves of VET: the parts of an extent that are left after a cut have
//! the same ones as leaves that were cut each by itself.

use std::collections::BTreeMap;

use crate::block_trace::make::Synthetic;
use crate::block_trace::{Kind, SECTOR};

/// Parts of the space in the histogram of addresses.
pub const PARTS: usize = 64;
/// Rows of the histogram of sizes: 512 bytes to 1 MiB by powers of two.
pub const SIZES: usize = 12;

/// Counts of a trace. Sizes are in sectors.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub writes: u64,
    pub reads: u64,
    pub written: u64,
    pub read: u64,
    /// Canonical extents of all writes.
    pub generated: u64,
    /// Existing extents that writes overlap, and the canonical ones of these.
    pub overlapped: u64,
    pub overlapped_canonical: u64,
    /// Existing extents that reads overlap, and the canonical ones of these.
    pub found: u64,
    pub found_canonical: u64,
    /// Extents that writes deleted, and those that they shortened or divided.
    pub deleted: u64,
    pub modified: u64,
    /// Extents at once, at most, and at the end, and the canonical ones at the end.
    pub most: u64,
    pub end: u64,
    pub end_canonical: u64,
    /// Writes by address and by size.
    pub addresses: Vec<u64>,
    pub sizes: Vec<u64>,
}

impl Counts {
    /// Counts a whole trace.
    pub fn of(made: Synthetic, progress: &dyn Fn(u64)) -> Self {
        let sectors = made.space_bytes() / SECTOR;
        let mut counts =
            Self { addresses: vec![0; PARTS], sizes: vec![0; SIZES], ..Self::default() };
        let mut extents = Extents::default();
        for request in made {
            let (start, length) = (request.start / SECTOR, request.bytes / SECTOR);
            counts.add(&mut extents, request.kind, start, start + length);
            if request.kind == Kind::Write {
                counts.addresses[(start * PARTS as u64 / sectors) as usize % PARTS] += 1;
                counts.sizes[(length.next_power_of_two().ilog2() as usize).min(SIZES - 1)] += 1;
            }
            progress(1);
        }
        counts.end = extents.0.len() as u64;
        counts.end_canonical =
            extents.0.iter().map(|(&start, &end)| canonical(start, end, 0, u64::MAX)).sum();
        counts
    }

    fn add(&mut self, extents: &mut Extents, kind: Kind, start: u64, end: u64) {
        let overlapping = extents.overlapping(start, end);
        let leaves =
            overlapping.iter().map(|&(from, to)| canonical(from, to, start, end)).sum::<u64>();
        if kind == Kind::Read {
            self.reads += 1;
            self.read += end - start;
            self.found += overlapping.len() as u64;
            self.found_canonical += leaves;
            return;
        }
        self.writes += 1;
        self.written += end - start;
        self.generated += canonical(start, end, start, end);
        self.overlapped += overlapping.len() as u64;
        self.overlapped_canonical += leaves;
        for (from, to) in overlapping {
            let whole = start <= from && to <= end;
            self.deleted += u64::from(whole);
            self.modified += u64::from(!whole);
            extents.0.remove(&from);
            if from < start {
                extents.0.insert(from, start);
            }
            if end < to {
                extents.0.insert(end, to);
            }
        }
        extents.0.insert(start, end);
        self.most = self.most.max(extents.0.len() as u64);
    }

    fn by(sum: u64, requests: u64) -> f64 {
        sum as f64 / requests.max(1) as f64
    }

    /// Of one write: canonical extents generated.
    pub fn generated_mean(&self) -> f64 {
        Self::by(self.generated, self.writes)
    }

    /// Of one write: existing extents overlapped, and canonical ones.
    pub fn overlapped_means(&self) -> [f64; 2] {
        [self.overlapped, self.overlapped_canonical].map(|sum| Self::by(sum, self.writes))
    }

    /// Of one read: existing extents found, and canonical ones.
    pub fn found_means(&self) -> [f64; 2] {
        [self.found, self.found_canonical].map(|sum| Self::by(sum, self.reads))
    }

    /// KiB of a write and of a read.
    pub fn kib_means(&self) -> [f64; 2] {
        [Self::by(self.written, 2 * self.writes), Self::by(self.read, 2 * self.reads)]
    }
}

/// Extents by their start; the value is their end.
#[derive(Default)]
struct Extents(BTreeMap<u64, u64>);

impl Extents {
    fn overlapping(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let before = self.0.range(..start).next_back().filter(|&(_, &to)| to > start);
        let inside = self.0.range(start..end);
        before.into_iter().chain(inside).map(|(&from, &to)| (from, to)).collect()
    }
}

/// Canonical extents of `start..end` that overlap `from..to`.
fn canonical(start: u64, end: u64, from: u64, to: u64) -> u64 {
    let (mut at, mut count) = (start, 0);
    while at < end {
        let largest = 1 << (end - at).ilog2();
        let length = if at == 0 { largest } else { largest.min(1 << at.trailing_zeros()) };
        count += u64::from(at < to && at + length > from);
        at += length;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_and_their_canonical_ones_are_counted_as_by_hand() {
        let (mut counts, mut extents) = (Counts::default(), Extents::default());
        // 1..8 is 1, 2..4 and 4..8.
        counts.add(&mut extents, Kind::Write, 1, 8);
        // Cuts 4..8 in the middle: 1..5 and 6..8 stay.
        counts.add(&mut extents, Kind::Write, 5, 6);
        assert_eq!((counts.generated, counts.overlapped), (4, 1));
        assert_eq!((counts.overlapped_canonical, counts.modified, counts.deleted), (1, 1, 0));
        assert_eq!(
            extents.0.iter().map(|(&a, &b)| (a, b)).collect::<Vec<_>>(),
            [(1, 5), (5, 6), (6, 8)]
        );
        counts.add(&mut extents, Kind::Read, 0, 5);
        // 1, 2..4 and 4 of one extent.
        assert_eq!((counts.found, counts.found_canonical), (1, 3));
        counts.add(&mut extents, Kind::Write, 0, 8);
        assert_eq!((counts.deleted, counts.overlapped, counts.most), (3, 4, 3));
        assert_eq!(extents.0.len(), 1);
    }
}
