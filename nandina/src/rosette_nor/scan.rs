//! Ordered iteration over a range of keys, upwards or downwards.
//!
//! The directory leads from each leaf to the next. Of a leaf, the keys of its log are sorted in
//! RAM, and merged with its sorted records. Every step leads to another record or another leaf, so
//! a scan ends whatever the sectors hold.

use core::cmp::Ordering;
use core::ops::Bound;

use super::change::TRIES;
use super::leaves::{SectorLeaves, lacks_room};
use super::merge::{Item, Place, Span};
use crate::engine::{Cursor, KEY_BYTES_MAX, Record};
use crate::error::Fault;
use crate::flash::Flash;

/// How far a scan has come.
///
/// The place is the rank of the leaf, and the place of the next record in it; downwards it is the
/// place after the next record.
pub type SectorScan<'k> = Cursor<'k, (usize, Span, Place)>;

impl<F: Flash> SectorLeaves<'_, F> {
    /// The next record of `scan`.
    pub(super) fn next_record(
        &mut self,
        scan: &mut SectorScan<'_>,
    ) -> Result<Option<Record<'_>>, Fault<F::Error>> {
        if !scan.step() {
            return Ok(None);
        }
        let (mut rank, mut span, mut place) = match scan.at() {
            Some((rank, span, place)) => {
                self.sort(&span.leaf)?;
                (rank, span, place)
            }
            None => self.first_place(scan)?,
        };
        let item = loop {
            let item = if scan.is_downwards() {
                self.item_before(&span, &mut place)?
            } else {
                self.next_item(&span, &mut place, &mut None)?
            };
            if let Some(item) = item {
                break item;
            }
            let next = if scan.is_downwards() { rank.checked_sub(1) } else { Some(rank + 1) };
            let Some(next) = next.filter(|&next| next < self.directory.len()) else {
                return Ok(None);
            };
            rank = self.touch_to_read(next)?;
            span = self.span(rank)?;
            place = if scan.is_downwards() { span.end } else { span.begin };
        };
        self.read_item(&span, item, None)?;
        let (key, value) = self.record.split_at(self.form.key_bytes);
        if scan.is_beyond(key) {
            return Ok(None);
        }
        scan.continue_from((rank, span, place));
        Ok(Some((key, value)))
    }

    /// The leaf and the place at which the range begins.
    fn first_place(
        &mut self,
        scan: &SectorScan<'_>,
    ) -> Result<(usize, Span, Place), Fault<F::Error>> {
        let bound = scan.first();
        let rank = match bound {
            Bound::Included(key) | Bound::Excluded(key) => self.directory.find(key),
            Bound::Unbounded if scan.is_downwards() => self.directory.len() - 1,
            Bound::Unbounded => 0,
        };
        let rank = self.touch_to_read(rank)?;
        let span = self.span(rank)?;
        let mut place = match bound {
            Bound::Included(key) | Bound::Excluded(key) => self.place(&span.leaf, key)?,
            Bound::Unbounded if scan.is_downwards() => span.end,
            Bound::Unbounded => span.begin,
        };
        place.sorted = place.sorted.clamp(span.begin.sorted, span.end.sorted);
        place.logged = place.logged.clamp(span.begin.logged, span.end.logged);
        // Upwards an excluded bound is stepped over, downwards an included one is.
        let steps_over = match bound {
            Bound::Included(key) if scan.is_downwards() => Some(key),
            Bound::Excluded(key) if !scan.is_downwards() => Some(key),
            _ => None,
        };
        if let Some(key) = steps_over {
            self.step_over(&span, &mut place, key)?;
        }
        Ok((rank, span, place))
    }

    /// Steps over the records of this very key.
    fn step_over(
        &mut self,
        span: &Span,
        place: &mut Place,
        key: &[u8],
    ) -> Result<(), Fault<F::Error>> {
        if place.logged < span.end.logged {
            let found = self.compare_in_log(&span.leaf, place.logged, Some(key))?;
            place.logged += u8::from(found.is_eq());
        }
        if place.sorted < span.end.sorted {
            let found = &mut self.record[..self.form.key_bytes];
            self.cells.read(span.leaf.sector, self.form.sorted(place.sorted.into()), found)?;
            place.sorted += u16::from(*found == *key);
        }
        Ok(())
    }

    /// The record before `at`, without those that were removed; `at` is before it then.
    fn item_before(
        &mut self,
        span: &Span,
        at: &mut Place,
    ) -> Result<Option<Item>, Fault<F::Error>> {
        loop {
            let has_sorted = at.sorted > span.begin.sorted;
            let has_logged = at.logged > span.begin.logged;
            let last = match (has_sorted, has_logged) {
                (false, false) => return Ok(None),
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (true, true) => {
                    let key = &mut self.record[..self.form.key_bytes];
                    let position = self.form.sorted(usize::from(at.sorted) - 1);
                    self.cells.read(span.leaf.sector, position, key)?;
                    self.compare_in_log(&span.leaf, at.logged - 1, None)?
                }
            };
            // Of the same key the log has the newer record.
            at.sorted -= u16::from(last.is_le());
            at.logged -= u8::from(last.is_ge());
            if last.is_lt() {
                return Ok(Some(Item::Sorted(at.sorted.into())));
            }
            let (slot, puts) = self.order.slot(at.logged.into());
            if puts {
                return Ok(Some(Item::Slot(slot)));
            }
        }
    }

    /// Settles the leaf at `rank`, and returns its rank.
    ///
    /// If the chip rejects what is written, that is done on another sector. Where no sector takes
    /// it, the leaf stays as it is.
    pub(super) fn touch_to_read(&mut self, rank: usize) -> Result<usize, Fault<F::Error>> {
        let mut low = [0; KEY_BYTES_MAX];
        let low = &mut low[..self.form.key_bytes];
        low.copy_from_slice(self.directory.low(rank));
        let mut rank = rank;
        for _ in 0..TRIES {
            if self.state.is_unsettled() {
                break;
            }
            match self.touch(rank) {
                Err(fault) if fault.rejects_writes() || lacks_room(&fault) => {
                    let failed = self.cells.take_failed();
                    self.mount()?;
                    let is_elsewhere = match failed {
                        Some(sector) if !self.state.is_unsettled() => {
                            self.evacuate_all(sector).is_ok()
                        }
                        _ => false,
                    };
                    if !is_elsewhere {
                        let _ = self.cells.take_failed();
                        self.mount_if_in_doubt()?;
                        let rank = self.directory.find(low);
                        return self.count_unsettled(rank).map(|()| rank);
                    }
                    rank = self.directory.find(low);
                }
                done => return done.map(|()| rank),
            }
        }
        Ok(rank)
    }
}
