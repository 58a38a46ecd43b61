//! Ordered iteration over a range of keys, upwards or downwards.
//!
//! The directory leads from each leaf to the next. Nothing is written here, and every step leads to
//! another record or another leaf, so a scan ends whatever the pages hold.

use core::ops::Bound;

use super::leaves::Leaves;
use crate::engine::{Bounds, Record};
use crate::error::Fault;
use crate::flash::Flash;

/// How far a scan has come.
#[derive(Clone, Copy)]
pub struct LeafScan<'k> {
    low: Bound<&'k [u8]>,
    high: Bound<&'k [u8]>,
    downwards: bool,
    /// The rank of the leaf, and the place of the next record in it.
    ///
    /// Downwards it is the place after the next record. `None` before the first leaf.
    at: Option<(usize, usize)>,
    done: bool,
}

impl<'k> LeafScan<'k> {
    pub(super) const fn new((low, high): Bounds<'k>, downwards: bool) -> Self {
        Self { low, high, downwards, at: None, done: false }
    }

    /// Whether `key` is past the end of the range.
    fn is_beyond(&self, key: &[u8]) -> bool {
        match (self.downwards, self.low, self.high) {
            (false, _, Bound::Included(high)) => key > high,
            (false, _, Bound::Excluded(high)) => key >= high,
            (true, Bound::Included(low), _) => key < low,
            (true, Bound::Excluded(low), _) => key <= low,
            _ => false,
        }
    }
}

impl<F: Flash> Leaves<'_, F> {
    /// The next record of `scan`.
    pub(super) fn next_record(
        &mut self,
        scan: &mut LeafScan<'_>,
    ) -> Result<Option<Record<'_>>, Fault<F::Error>> {
        if scan.done {
            return Ok(None);
        }
        // After an end or an error there are no more records.
        scan.done = true;
        let Some((rank, place)) = self.next_place(scan)? else { return Ok(None) };
        let page = self.page_at(rank)?;
        let frame = self.load(page, 0)?;
        let node = self.node(frame, page)?;
        let (key, value) = (node.key(place), node.payload(place));
        if scan.is_beyond(key) {
            return Ok(None);
        }
        scan.at = Some((rank, if scan.downwards { place } else { place + 1 }));
        scan.done = false;
        Ok(Some((key, value)))
    }

    /// The leaf and the place of the next record, or `None` after the last.
    fn next_place(
        &mut self,
        scan: &LeafScan<'_>,
    ) -> Result<Option<(usize, usize)>, Fault<F::Error>> {
        let (mut rank, mut place) = match scan.at {
            Some((rank, place)) => (rank, Some(place)),
            None => (self.first_rank(scan), None),
        };
        loop {
            let (frame, owned) = self.load_leaf(rank, 0)?;
            let next = match place.take() {
                Some(place) => place,
                None if scan.at.is_some() && scan.downwards => owned.end,
                None if scan.at.is_some() => owned.start,
                None => {
                    let page = self.page_at(rank)?;
                    let node = self.node(frame, page)?;
                    let found = |key: &[u8], steps_over: bool| match node.search(key) {
                        Ok(at) => at + usize::from(steps_over),
                        Err(at) => at,
                    };
                    // Upwards an excluded bound is stepped over, downwards an included one is.
                    match if scan.downwards { scan.high } else { scan.low } {
                        Bound::Included(key) => found(key, scan.downwards),
                        Bound::Excluded(key) => found(key, !scan.downwards),
                        Bound::Unbounded if scan.downwards => owned.end,
                        Bound::Unbounded => owned.start,
                    }
                }
            };
            if scan.downwards {
                let next = next.min(owned.end);
                if next > owned.start {
                    return Ok(Some((rank, next - 1)));
                }
                let Some(before) = rank.checked_sub(1) else { return Ok(None) };
                rank = before;
            } else {
                let next = next.max(owned.start);
                if next < owned.end {
                    return Ok(Some((rank, next)));
                }
                rank += 1;
                if rank >= self.directory.len() {
                    return Ok(None);
                }
            }
        }
    }

    /// The leaf in which the range starts.
    fn first_rank(&self, scan: &LeafScan<'_>) -> usize {
        match if scan.downwards { scan.high } else { scan.low } {
            Bound::Included(key) | Bound::Excluded(key) => self.directory.find(key),
            Bound::Unbounded if scan.downwards => self.directory.len() - 1,
            Bound::Unbounded => 0,
        }
    }
}
