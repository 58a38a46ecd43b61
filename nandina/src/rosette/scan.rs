//! Ordered iteration over a range of keys, upwards or downwards.
//!
//! The directory leads from each leaf to the next. Nothing is written here, and every step leads to
//! another record or another leaf, so a scan ends whatever the pages hold.

use core::ops::Bound;

use super::leaves::Leaves;
use crate::engine::{Cursor, Record};
use crate::error::Fault;
use crate::flash::Flash;

/// How far a scan has come.
///
/// The place is the rank of the leaf, and the place of the next record in it; downwards it is the
/// place after the next record.
pub type LeafScan<'k> = Cursor<'k, (usize, usize)>;

impl<F: Flash> Leaves<'_, F> {
    /// The next record of `scan`.
    pub(super) fn next_record(
        &mut self,
        scan: &mut LeafScan<'_>,
    ) -> Result<Option<Record<'_>>, Fault<F::Error>> {
        if !scan.step() {
            return Ok(None);
        }
        let Some((rank, place)) = self.next_place(scan)? else { return Ok(None) };
        let page = self.page_at(rank)?;
        let frame = self.load(page, 0)?;
        let node = self.node(frame, page)?;
        let (key, value) = (node.key(place), node.payload(place));
        if scan.is_beyond(key) {
            return Ok(None);
        }
        scan.continue_from((rank, if scan.is_downwards() { place } else { place + 1 }));
        Ok(Some((key, value)))
    }

    /// The leaf and the place of the next record, or `None` after the last.
    fn next_place(
        &mut self,
        scan: &LeafScan<'_>,
    ) -> Result<Option<(usize, usize)>, Fault<F::Error>> {
        let (mut rank, mut place) = match scan.at() {
            Some((rank, place)) => (rank, Some(place)),
            None => (self.first_rank(scan), None),
        };
        loop {
            let (frame, owned) = self.load_leaf(rank, 0)?;
            let next = match place.take() {
                Some(place) => place,
                None if scan.at().is_some() && scan.is_downwards() => owned.end,
                None if scan.at().is_some() => owned.start,
                None => {
                    let page = self.page_at(rank)?;
                    let node = self.node(frame, page)?;
                    let found = |key: &[u8], steps_over: bool| match node.search(key) {
                        Ok(at) => at + usize::from(steps_over),
                        Err(at) => at,
                    };
                    // Upwards an excluded bound is stepped over, downwards an included one is.
                    match scan.first() {
                        Bound::Included(key) => found(key, scan.is_downwards()),
                        Bound::Excluded(key) => found(key, !scan.is_downwards()),
                        Bound::Unbounded if scan.is_downwards() => owned.end,
                        Bound::Unbounded => owned.start,
                    }
                }
            };
            if scan.is_downwards() {
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
        match scan.first() {
            Bound::Included(key) | Bound::Excluded(key) => self.directory.find(key),
            Bound::Unbounded if scan.is_downwards() => self.directory.len() - 1,
            Bound::Unbounded => 0,
        }
    }
}
