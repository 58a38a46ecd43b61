//! The pending changes of one leaf, applied to it or to its halves in page buffers.
//!
//! Nothing is programmed here.

use core::cell::Cell;

use super::Placement;
use super::TreeIndex;
use super::batch::Batch;
use super::split::{Record, Separator, left_count};
use crate::error::Fault;
use crate::flash::Flash;
use crate::node::NodeMut;

/// The pending changes of one leaf, and the result of applying them.
pub struct Changes<'k> {
    batch: &'k Batch<'k>,
    from: usize,
    end: usize,
    /// Records that stay in the lower half, if the leaf is split first.
    ///
    /// All of the changes belong to the upper half then.
    lower: Option<usize>,
    /// The leaf has room for all of the changes if the removals are applied first.
    fits: bool,
    /// Position of the first change not applied, which would split the leaf again.
    applied: Cell<usize>,
    /// Records in the index afterwards.
    records: Cell<u32>,
    /// The lowest change that inserted a new key.
    lowest: Cell<Option<usize>>,
}

impl<'k> Changes<'k> {
    /// The changes `from` up to `end` of `batch`, to an index of `records` records.
    ///
    /// If the leaf is split first, `lower` records stay in its lower half, and all changes go into
    /// the upper one. `fits` states whether the leaf has room for all of them.
    pub const fn of(
        batch: &'k Batch<'k>,
        (from, end): (usize, usize),
        lower: Option<usize>,
        fits: bool,
        records: u32,
    ) -> Self {
        let (applied, records) = (Cell::new(end), Cell::new(records));
        Self { batch, from, end, lower, fits, applied, records, lowest: Cell::new(None) }
    }

    /// The position of the first change that was not applied.
    pub const fn applied(&self) -> usize {
        self.applied.get()
    }

    pub fn records(&self) -> u32 {
        self.records.get()
    }

    /// The lowest key that is new in the leaf.
    pub fn lowest_key(&self) -> Option<&'k [u8]> {
        self.lowest.get().map(|at| self.batch.key(at))
    }
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Applies `changes` to the leaf in its working buffer.
    ///
    /// Returns whether it was split, as [`insert_or_split`](Self::insert_or_split) does.
    pub(super) fn edit_leaf(
        &mut self,
        changes: &Changes<'_>,
        right_edge: bool,
        separator: &mut Separator<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        let batch = changes.batch;
        let mut records = self.state.records();
        if let Some(lower) = changes.lower {
            self.count_to_split(1)?;
            self.split(1, lower, None, separator)?;
            let applied = self.edit_halves(changes, changes.from, separator.high(), &mut records);
            changes.applied.set(applied);
            changes.records.set(records);
            return Ok(true);
        }
        if changes.fits {
            let mut node = self.working_node(1)?;
            for at in (changes.from..changes.end).filter(|&at| batch.value(at).is_none()) {
                if let Ok(index) = node.as_node().search(batch.key(at)) {
                    node.remove(index);
                    records = records.saturating_sub(1);
                }
            }
        }
        let (capacity, stays) = (self.capacity(1), self.stays_full(1, right_edge));
        // Records at the front of the leaf that are new.
        let mut front = 0;
        for at in changes.from..changes.end {
            let key = batch.key(at);
            let mut node = self.working_node(1)?;
            match (node.as_node().search(key), batch.value(at)) {
                (Ok(index), Some(value)) => node.set_payload(index, value),
                (Ok(index), None) => {
                    node.remove(index);
                    records = records.saturating_sub(1);
                }
                (Err(_), None) => {}
                (Err(index), Some(value)) => {
                    front += usize::from(index == front);
                    let count = node.count();
                    if S::SPLITS.trims()
                        && count >= capacity
                        && left_count(count, index, stays) <= front
                    {
                        // A cut may leave only the upper half noted in the parent. Then the leaf
                        // as it is on the medium must keep a record below the upper half.
                        changes.applied.set(at);
                        break;
                    }
                    records += 1;
                    if changes.lowest.get().is_none() {
                        changes.lowest.set(Some(at));
                    }
                    let record = Record { index, key: Some(key), payload: value };
                    if self.insert_or_split(1, &record, right_edge, separator)? {
                        let from = at + 1;
                        let applied =
                            self.edit_halves(changes, from, separator.high(), &mut records);
                        changes.applied.set(applied);
                        changes.records.set(records);
                        return Ok(true);
                    }
                }
            }
        }
        changes.records.set(records);
        Ok(false)
    }

    /// Applies the changes from `from` on to the halves of the leaf.
    ///
    /// Stops before a change that would split or empty a half, and returns its position.
    fn edit_halves(
        &mut self,
        changes: &Changes<'_>,
        from: usize,
        separator: &[u8],
        records: &mut u32,
    ) -> usize {
        let height = self.state.height().max(2);
        let form = self.form();
        let shape = form.level::<S>(1, height).shape;
        let capacity = form.capacity::<S>(1, height);
        let extent = S::extent(self.space.log.layout().area_bytes(), 1, height);
        let (working, last) = (self.working(1), self.spare(1));
        let (working, last) = self.space.log.frames.pair(working, last);
        let (Some(mut left), Some(mut right)) = (
            NodeMut::parse(&mut working[extent.clone()], shape),
            NodeMut::parse(&mut last[extent], shape),
        ) else {
            return from;
        };
        for at in from..changes.end {
            let key = changes.batch.key(at);
            let half = if key < separator { &mut left } else { &mut right };
            match (half.as_node().search(key), changes.batch.value(at)) {
                (Ok(index), Some(value)) => half.set_payload(index, value),
                (Ok(_), None) if half.count() == 1 => return at,
                (Ok(index), None) => {
                    half.remove(index);
                    *records = records.saturating_sub(1);
                }
                (Err(_), Some(_)) if half.count() >= capacity => return at,
                (Err(index), Some(value)) => {
                    half.insert(index, key, value);
                    *records += 1;
                }
                (Err(_), None) => {}
            }
        }
        changes.end
    }
}
