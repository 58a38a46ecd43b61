//! Ordered iteration over a range of keys, upwards or downwards.
//!
//! Nodes have no sibling pointers: the next leaf is found through its parents, which stay in their
//! page buffers if there are enough.
//!
//! Keys that do not rise (or fall, downwards) end a scan with an error: on a medium where several
//! nodes lead to one leaf, a scan would otherwise visit the leaf once for each path to it.

use core::ops::{Bound, RangeBounds, RangeFull};

use super::Placement;
use super::descend::{Path, Toward};
use super::{Index, KEY_BYTES_MAX};
use crate::error::{Damage, Fault, ReadError};
use crate::flash::Flash;

/// The records of a range of keys, in order, pending changes included.
///
/// Cost: one read for each leaf, and one for each inner node on the way that is no longer in a page
/// buffer. The borrow of the index prevents changes meanwhile.
pub struct Range<'i, 'b, 'k, F, S: Placement> {
    index: &'i mut Index<'b, F, S>,
    low: Bound<&'k [u8]>,
    high: Bound<&'k [u8]>,
    downwards: bool,
    path: Path,
    /// Upwards: the next record in the leaf. Downwards: the one after the next.
    position: Option<usize>,
    /// The separator holds the last key of the previous leaf.
    has_before: bool,
    /// The slot in the leaf of the tree's next record, if found but not yet taken.
    ahead: Option<usize>,
    tree_ended: bool,
    /// The next change in the write buffer; downwards, the one after the next.
    waiting: usize,
    done: bool,
}

/// Where a record comes from.
enum Source {
    /// The leaf, at this slot.
    Tree(usize),
    /// The write buffer, at this position.
    Waiting(usize),
}

/// A key and its value.
type Record<'r> = (&'r [u8], &'r [u8]);

impl<'b, F: Flash, S: Placement> Index<'b, F, S> {
    /// The records whose keys are in `bounds`, from the lowest up.
    ///
    /// Bounds need not be keys of the index.
    pub fn range<'i, 'k>(
        &'i mut self,
        bounds: impl KeyBounds<'k>,
    ) -> Result<Range<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        self.range_toward(bounds.bounds(), false)
    }

    /// The records whose keys are in `bounds`, from the highest down.
    pub fn range_down<'i, 'k>(
        &'i mut self,
        bounds: impl KeyBounds<'k>,
    ) -> Result<Range<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        self.range_toward(bounds.bounds(), true)
    }

    fn range_toward<'i, 'k>(
        &'i mut self,
        (low, high): (Bound<&'k [u8]>, Bound<&'k [u8]>),
        downwards: bool,
    ) -> Result<Range<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        for bound in [low, high] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                self.check_key(key)
                    .map_err(|(expected, given)| ReadError::KeySize { expected, given })?;
            }
        }
        self.range_from((low, high), downwards)
    }

    /// Like [`range_toward`](Self::range_toward), with bounds that may be short.
    ///
    /// A bound shorter than a key comes before all keys that begin with it.
    pub(super) fn range_from<'i, 'k>(
        &'i mut self,
        (low, high): (Bound<&'k [u8]>, Bound<&'k [u8]>),
        downwards: bool,
    ) -> Result<Range<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        self.settle()?;
        self.space.begin_walk();
        let waiting = match if downwards { high } else { low } {
            // Upwards an excluded bound is stepped over, downwards an included one is.
            Bound::Included(key) => {
                self.batch.below(key) + usize::from(downwards && self.waits(key))
            }
            Bound::Excluded(key) => {
                self.batch.below(key) + usize::from(!downwards && self.waits(key))
            }
            Bound::Unbounded if downwards => self.batch.len(),
            Bound::Unbounded => 0,
        };
        Ok(Range {
            index: self,
            low,
            high,
            downwards,
            path: Path::new(),
            position: None,
            has_before: false,
            ahead: None,
            tree_ended: false,
            waiting,
            done: false,
        })
    }

    /// Whether a change of `key` is pending in the write buffer.
    pub(super) fn waits(&self, key: &[u8]) -> bool {
        self.batch.search(key).is_ok()
    }
}

/// A range of keys over byte slices or arrays, or a pair of bounds.
///
/// That is `..`, `a..b`, `a..=b` and so on.
pub trait KeyBounds<'k> {
    /// The lower and upper bound.
    fn bounds(&self) -> (Bound<&'k [u8]>, Bound<&'k [u8]>);
}

impl<'k> KeyBounds<'k> for RangeFull {
    fn bounds(&self) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<'k> KeyBounds<'k> for (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    fn bounds(&self) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
        *self
    }
}

macro_rules! key_bounds {
    ($($range:ident),+) => {$(
        impl<'k, K: AsRef<[u8]> + ?Sized> KeyBounds<'k> for core::ops::$range<&'k K> {
            fn bounds(&self) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
                (
                    RangeBounds::<&'k K>::start_bound(self).map(|key| (*key).as_ref()),
                    RangeBounds::<&'k K>::end_bound(self).map(|key| (*key).as_ref()),
                )
            }
        }
    )+};
}

key_bounds![Range, RangeFrom, RangeTo, RangeInclusive, RangeToInclusive];

impl<F: Flash, S: Placement> Range<'_, '_, '_, F, S> {
    /// The next record, or `None` at the end of the range.
    #[allow(clippy::should_implement_trait)] // A record borrows from the page buffers.
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError<F::Error>> {
        let source = loop {
            if self.done {
                return Ok(None);
            }
            // After an end or an error the range yields no more records.
            self.done = true;
            let Some(source) = self.nearest()? else {
                return Ok(None);
            };
            self.done = false;
            // A pending removal yields no record.
            if !matches!(source, Source::Waiting(at) if !self.index.batch.puts_at(at)) {
                break source;
            }
        };
        match source {
            Source::Waiting(at) => {
                let batch = &self.index.batch;
                Ok(batch.value(at).map(|value| (batch.key(at), value)))
            }
            Source::Tree(position) => {
                let frame = self.index.visit(&mut self.path, 1)?;
                let node = self.index.node(frame, 1)?;
                Ok(Some((node.key(position), node.payload(position))))
            }
        }
    }

    /// Takes the next record of the tree or the next pending change.
    ///
    /// If both are of one key, the change is newer and replaces the record.
    fn nearest(&mut self) -> Result<Option<Source>, Fault<F::Error>> {
        if self.ahead.is_none() && !self.tree_ended {
            self.ahead = self.advance()?;
            self.tree_ended = self.ahead.is_none();
        }
        let waiting = self.next_waiting();
        let (from_tree, from_waiting) = match (self.ahead, waiting) {
            (Some(position), Some(at)) => {
                let frame = self.index.visit(&mut self.path, 1)?;
                let key = self.index.node(frame, 1)?.key(position);
                let order = key.cmp(self.index.batch.key(at));
                let order = if self.downwards { order.reverse() } else { order };
                (order.is_le(), order.is_ge())
            }
            (in_tree, waiting) => (in_tree.is_some(), waiting.is_some()),
        };
        let ahead = if from_tree { self.ahead.take() } else { None };
        if let (true, Some(at)) = (from_waiting, waiting) {
            self.waiting = if self.downwards { at } else { at + 1 };
            return Ok(Some(Source::Waiting(at)));
        }
        Ok(ahead.map(Source::Tree))
    }

    /// The next pending change, if it is in the range.
    fn next_waiting(&self) -> Option<usize> {
        let batch = &self.index.batch;
        let at = if self.downwards { self.waiting.checked_sub(1)? } else { self.waiting };
        (at < batch.len() && !self.is_beyond(batch.key(at))).then_some(at)
    }

    /// Whether `key` is behind the end of the range.
    fn is_beyond(&self, key: &[u8]) -> bool {
        match (self.downwards, self.low, self.high) {
            (false, _, Bound::Included(high)) => key > high,
            (false, _, Bound::Excluded(high)) => key >= high,
            (true, Bound::Included(low), _) => key < low,
            (true, Bound::Excluded(low), _) => key <= low,
            _ => false,
        }
    }

    /// Advances to the tree's next record and returns its slot in the leaf.
    fn advance(&mut self) -> Result<Option<usize>, Fault<F::Error>> {
        let position = match self.position {
            None => self.start()?,
            Some(position) => position,
        };
        let Some(position) = self.settle_in_leaf(position)? else {
            return Ok(None);
        };
        let frame = self.index.visit(&mut self.path, 1)?;
        let node = self.index.node(frame, 1)?;
        let key = node.key(position);
        let beside = if self.downwards { position + 1 } else { position.wrapping_sub(1) };
        let before = if beside < node.count() {
            Some(node.key(beside))
        } else {
            self.has_before.then(|| self.index.separator.low())
        };
        if before.is_some_and(|before| if self.downwards { before <= key } else { before >= key }) {
            return Err(self.index.corrupt_at(self.path.page(1), Damage::KeysOutOfOrder));
        }
        if self.is_beyond(key) {
            return Ok(None);
        }
        self.position = Some(if self.downwards { position } else { position + 1 });
        Ok(Some(position))
    }

    /// Counts the records that are left, and reads them all for it.
    pub fn count(mut self) -> Result<u32, ReadError<F::Error>> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Descends to the leaf in which the range starts.
    fn start(&mut self) -> Result<usize, Fault<F::Error>> {
        let index = &mut *self.index;
        let toward = match (self.downwards, self.low, self.high) {
            (false, Bound::Included(key) | Bound::Excluded(key), _)
            | (true, _, Bound::Included(key) | Bound::Excluded(key)) => Toward::Key(key),
            (false, Bound::Unbounded, _) => Toward::First,
            (true, _, Bound::Unbounded) => Toward::Last,
        };
        self.path.set_page(index.height, index.root);
        index.descend_from(&mut self.path, index.height, 1, toward, false)?;
        let node = index.node(self.path.frame, 1)?;
        Ok(match (toward, self.downwards) {
            (Toward::First, _) => 0,
            (Toward::Last, _) => node.count(),
            (Toward::Key(key), downwards) => {
                let bound = if downwards { self.high } else { self.low };
                // Upwards an excluded bound is stepped over, downwards an included one is.
                let steps_over = matches!(bound, Bound::Included(_)) == downwards;
                match node.search(key) {
                    Ok(at) => at + usize::from(steps_over),
                    Err(at) => at,
                }
            }
        })
    }

    /// The slot of the next record, from `position` on.
    ///
    /// If the leaf has no more records, it moves to the leaf beside it.
    fn settle_in_leaf(&mut self, position: usize) -> Result<Option<usize>, Fault<F::Error>> {
        if self.downwards && position > 0 {
            return Ok(Some(position - 1));
        }
        if !self.downwards && position < self.path.count(1) {
            return Ok(Some(position));
        }
        self.remember_last()?;
        let index = &mut *self.index;
        let mut level = 2;
        loop {
            if level > index.height {
                return Ok(None);
            }
            let (slot, count) = (self.path.slot(level), self.path.count(level));
            if self.downwards && slot > 0 {
                self.path.set_slot(level, slot - 1);
                break;
            }
            if !self.downwards && slot + 1 < count {
                self.path.set_slot(level, slot + 1);
                break;
            }
            level += 1;
        }
        let page = self.path.page(level);
        let frame = index.visit(&mut self.path, level)?;
        let child = index.child(page, frame, level, self.path.slot(level))?;
        self.path.set_page(level - 1, child);
        let toward = if self.downwards { Toward::Last } else { Toward::First };
        index.descend_from(&mut self.path, level - 1, 1, toward, false)?;
        let count = self.path.count(1);
        Ok(Some(if self.downwards { count - 1 } else { 0 }))
    }

    /// Keeps the last key of this leaf, in the direction of the scan.
    fn remember_last(&mut self) -> Result<(), Fault<F::Error>> {
        let frame = self.index.visit(&mut self.path, 1)?;
        let node = self.index.node(frame, 1)?;
        if let Some(last) = node.count().checked_sub(1) {
            let key = node.key(if self.downwards { 0 } else { last });
            let mut before = [0; KEY_BYTES_MAX];
            let before = &mut before[..key.len()];
            before.copy_from_slice(key);
            self.index.separator.set(before, before);
            self.has_before = true;
        }
        Ok(())
    }
}
