//! Applying the pending changes of the write buffer to the tree.
//!
//! They are applied in the order of keys, all changes of one leaf in one write of it (VMTree paper,
//! section 4.1).
//!
//! A change leaves the buffer after its leaf has been written. If a device fails in between, the
//! change is applied again, which has no effect the second time.

use super::Placement;
use super::edit::Edit;
use super::leaf_changes::Changes;
use super::merge::{Merges, Sparse};
use super::path::Path;
use super::{TreeIndex, WritePolicy};
#[cfg(feature = "paper-modes")]
use crate::engine::Eviction;
use crate::engine::KEY_BYTES_MAX;
use crate::error::Fault;
use crate::flash::Flash;
use crate::node::Node;

/// Whether the tree was not changed because there is no room, now or ever.
const fn is_refusal<E>(fault: &Fault<E>) -> bool {
    matches!(fault, Fault::NoRoom { .. } | Fault::TooHigh { .. } | Fault::WornOut { .. })
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Buffers an upsert (`Some(value)`) or a removal (`None`) of `key`.
    ///
    /// Returns `false` if the change was not buffered. Then only changes that the tree refused are
    /// still pending.
    pub(super) fn defer(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<bool, Fault<F::Error>> {
        if !self.batch.is_used() {
            return Ok(false);
        }
        self.settle()?;
        if !self.batch.takes(key) || (value.is_some() && !self.may_wait(key)) {
            match self.make_place() {
                // A refused change must never block the removal or replacement of another record.
                Err(error) if is_refusal(&error) => return Ok(false),
                applied => applied?,
            }
            if value.is_some() && !self.may_wait(key) {
                self.keep_promises()?;
                return Ok(false);
            }
        }
        let is_new = !self.waits(key);
        self.batch.take(key, value);
        if is_new
            && self.batch.is_due()
            && let Err(error) = self.write_due()
        {
            // A refused change does not stay in the buffer. If this change was applied before the
            // error, the call succeeds; the next flush reports the others.
            let waited = self.batch.forget(key).is_some();
            if waited || matches!(error, Fault::Device(_)) {
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Applies what an eviction left pending, before an upsert that is not buffered.
    ///
    /// That upsert would take the room that was promised to them.
    fn keep_promises(&mut self) -> Result<(), Fault<F::Error>> {
        #[cfg(feature = "paper-modes")]
        if self.batch.eviction() != Eviction::All {
            return match self.apply_waiting() {
                Err(error) if is_refusal(&error) && !self.state.is_in_doubt() => Ok(()),
                applied => applied,
            };
        }
        Ok(())
    }

    /// Makes a place for a change: all are applied, or those of one leaf.
    fn make_place(&mut self) -> Result<(), Fault<F::Error>> {
        #[cfg(feature = "paper-modes")]
        if self.batch.eviction() != Eviction::All && self.batch.len() > 0 {
            match self.evict() {
                // A refused change must not hold up the others.
                Err(error) if is_refusal(&error) && !self.state.is_in_doubt() => {}
                evicted => return evicted,
            }
        }
        self.apply_waiting()
    }

    /// Writes what is due when as many changes are pending as may be.
    fn write_due(&mut self) -> Result<(), Fault<F::Error>> {
        #[cfg(feature = "paper-modes")]
        if self.batch.eviction() != Eviction::All {
            self.settle()?;
            let evicted = self.make_place();
            if !self.state.is_in_doubt() {
                self.write_out()?;
            }
            return evicted;
        }
        self.write_all()
    }

    /// Applies all pending changes.
    ///
    /// The tree refuses a change only if the device has worn out since it was buffered. Such a
    /// change stays pending and does not hold up the others.
    pub(super) fn apply_waiting(&mut self) -> Result<(), Fault<F::Error>> {
        // What the tree refuses stays pending, and may be of a leaf that was divided for others.
        self.batch.forget_leaves();
        let (mut from, mut refused) = (0, Ok(()));
        let (mut merges, mut waiting) = (Merges::default(), 0);
        while from < self.batch.len() {
            // All attempts until a pending change leaves the buffer count as one change.
            let first = self.batch.len() != core::mem::replace(&mut waiting, self.batch.len());
            self.make_room(first)?;
            match self.apply_to_leaf(from, &merges) {
                Ok(Some(sparse)) => self.merge(sparse, &mut merges)?,
                Ok(None) if self.batch.len() < waiting => merges = Merges::default(),
                Ok(None) => {}
                Err(error) if is_refusal(&error) && !self.state.is_in_doubt() => {
                    from += 1;
                    refused = Err(error);
                    merges = Merges::default();
                }
                Err(error) => return Err(error),
            }
        }
        refused
    }

    /// Applies the change at `from` and later ones that belong to the same leaf.
    ///
    /// Applies as many as one write of the leaf can take, but at least one. If nodes must be merged
    /// first, returns why.
    pub(super) fn apply_to_leaf(
        &mut self,
        from: usize,
        merges: &Merges,
    ) -> Result<Option<Sparse>, Fault<F::Error>> {
        let mut key = [0; KEY_BYTES_MAX];
        let key = &mut key[..usize::from(self.space.log.medium.key_bytes)];
        key.copy_from_slice(self.batch.key(from));
        let mut path = Path::new();
        self.descend_to_change(&mut path, key, 1)?;
        // On a damaged medium the nodes may claim that no change belongs here.
        let mut end = path.waiting().clamp(from + 1, self.batch.len());
        let (first, divides) = self.look_ahead(from, end)?;
        let (mut from, mut lower) = (from, None);
        if let Some(at) = divides {
            path.set_count(1, self.most(1));
            let admitted = self.admit(&path);
            let sparse = self.sparse(self.full_levels(&path), admitted.is_err(), merges);
            if sparse.is_some() {
                return Ok(sparse);
            }
            if let Err(error) = admitted {
                if at == from {
                    return S::Kind::reclaim(self, error).map(|()| None);
                }
                end = at;
            } else if let Some(level) = self.to_split(&path, 0).filter(|&level| level > 1) {
                self.rewrite(&mut path, level, &Edit::Split, self.state.records(), None)?;
                return Ok(None);
            } else if S::SPLITS.lower_stays() {
                // The upper half is new and takes its changes now; the lower half is written when
                // its turn comes.
                let node = self.node(self.working(1), 1)?;
                let last = node.count().checked_sub(1).map(|last| node.key(last));
                let ascends = last < Some(self.batch.key(at));
                if node.count() < 2 || (ascends && self.stays_full(1, path.is_right_edge())) {
                    // Ascending keys fill the leaf first, and then a new one beside it.
                    end = if at > from { at } else { end };
                } else {
                    let kept = self.left_below(&node, from, end);
                    let upper = (from..end).find(|&at| self.batch.key(at) >= node.key(kept));
                    (from, lower) = (upper.unwrap_or(end), Some(kept));
                }
            }
        } else if self.empties(from, end)? && self.clear_the_way(&mut path, key)? {
            return Ok(None);
        }
        let mut applied = end;
        if first < end {
            let (before, records) = (self.state.height(), self.state.records());
            self.with_batch(|tree, batch| {
                let changes = Changes::of(batch, (from, end), lower, divides.is_none(), records);
                let written = tree.rewrite(&mut path, 1, &Edit::Batch(&changes), records, None);
                applied = changes.applied();
                written
            })?;
            self.note_change(&path, before);
        }
        // A change leaves the buffer after the commit of its leaf, never before.
        debug_assert!(
            !self.state.is_in_doubt(),
            "changes leave the write buffer before their leaf commits"
        );
        self.batch.drop_between(from, applied);
        Ok(None)
    }

    /// Records that a leaf keeps if it is split for the changes from `from` to `end`.
    ///
    /// That is half of them, unless all changes belong below and would fill that half again. Then
    /// the leaf keeps what is below the last change, and at least one record. So a split is
    /// followed by a change that takes effect, and a leaf is not halved until hardly a record is
    /// left in it.
    fn left_below(&self, leaf: &Node<'_>, from: usize, end: usize) -> usize {
        let (half, last) = (leaf.count().div_ceil(2), self.batch.key(end - 1));
        let is_new = |at: &usize| {
            self.batch.value(*at).is_some() && leaf.search(self.batch.key(*at)).is_err()
        };
        if last >= leaf.key(half) || half + (from..end).filter(is_new).count() <= self.capacity(1) {
            return half;
        }
        leaf.search(last).map_or_else(|below| below, |at| at + 1).max(1)
    }

    /// The first change from `from` to `end` that alters the leaf of the descent.
    ///
    /// It is `end` if there is none. If the leaf has no room for all of them, the second result is
    /// the first change that splits it.
    fn look_ahead(
        &self,
        from: usize,
        end: usize,
    ) -> Result<(usize, Option<usize>), Fault<F::Error>> {
        let node = self.node(self.working(1), 1)?;
        let (mut count, capacity) = (node.count(), self.most(1));
        let (mut first, mut divides) = (end, None);
        for at in from..end {
            let changes = match (node.search(self.batch.key(at)), self.batch.value(at)) {
                (Ok(index), Some(value)) => node.payload(index) != value,
                (Ok(_), None) => {
                    count -= 1;
                    true
                }
                (Err(_), Some(_)) => {
                    if count >= capacity && divides.is_none() {
                        divides = Some(at);
                    }
                    count += 1;
                    true
                }
                (Err(_), None) => false,
            };
            if changes {
                first = first.min(at);
            }
        }
        Ok((first, divides.filter(|_| count > capacity)))
    }

    /// Whether the changes from `from` to `end` leave the leaf of the descent empty.
    fn empties(&self, from: usize, end: usize) -> Result<bool, Fault<F::Error>> {
        let node = self.node(self.working(1), 1)?;
        let removed = |at: &usize| self.batch.value(*at).is_none();
        let gone =
            (from..end).filter(removed).filter(|&at| node.search(self.batch.key(at)).is_ok());
        Ok(S::SPLITS.trims() && (from..end).all(|at| removed(&at)) && gone.count() == node.count())
    }
}
