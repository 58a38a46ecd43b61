//! Ordered iteration over a range of keys, upwards or downwards.
//!
//! Nodes have no sibling pointers: the next leaf is found through its parents, which stay in their
//! page buffers if there are enough.
//!
//! Keys that do not rise (or fall, downwards) end a scan with an error: on a medium where several
//! nodes lead to one leaf, a scan would otherwise visit the leaf once for each path to it.

use crate::engine::KEY_BYTES_MAX;
use core::ops::Bound;

use super::Placement;
use super::TreeIndex;
use super::path::{Path, Toward};
use crate::engine::{Bounds, Record};
use crate::error::{Damage, Fault};
use crate::flash::Flash;

/// How far a scan over a range of keys has come.
#[derive(Clone, Copy)]
pub struct TreeScan<'k> {
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

/// One step of a scan on its tree.
struct Step<'i, 's, 'b, 'k, F, S: Placement> {
    index: &'i mut TreeIndex<'b, F, S>,
    scan: &'s mut TreeScan<'k>,
}

/// Where a record comes from.
enum Source {
    /// The leaf, at this slot.
    Tree(usize),
    /// The write buffer, at this position.
    Waiting(usize),
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// The records between two bounds, which may be shorter than a key.
    pub(super) fn scan<'k>(
        &mut self,
        (low, high): Bounds<'k>,
        downwards: bool,
    ) -> Result<TreeScan<'k>, Fault<F::Error>> {
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
        Ok(TreeScan {
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

    /// The next record of `scan`, of the tree or the write buffer.
    pub(super) fn next_record(
        &mut self,
        scan: &mut TreeScan<'_>,
    ) -> Result<Option<Record<'_>>, Fault<F::Error>> {
        Step { index: self, scan }.next()
    }

    /// Whether a change of `key` is pending in the write buffer.
    pub(super) fn waits(&self, key: &[u8]) -> bool {
        self.batch.search(key).is_ok()
    }
}

impl<'i, F: Flash, S: Placement> Step<'i, '_, '_, '_, F, S> {
    fn next(mut self) -> Result<Option<Record<'i>>, Fault<F::Error>> {
        let source = loop {
            if self.scan.done {
                return Ok(None);
            }
            // After an end or an error the range yields no more records.
            self.scan.done = true;
            let Some(source) = self.nearest()? else {
                return Ok(None);
            };
            self.scan.done = false;
            // A pending removal yields no record.
            if !matches!(source, Source::Waiting(at) if !self.index.batch.puts_at(at)) {
                break source;
            }
        };
        let index = self.index;
        match source {
            Source::Waiting(at) => {
                let batch = &index.batch;
                Ok(batch.value(at).map(|value| (batch.key(at), value)))
            }
            Source::Tree(position) => {
                let frame = index.visit(&mut self.scan.path, 1)?;
                let node = index.node(frame, 1)?;
                Ok(Some((node.key(position), node.payload(position))))
            }
        }
    }

    /// Takes the next record of the tree or the next pending change.
    ///
    /// If both are of one key, the change is newer and replaces the record.
    fn nearest(&mut self) -> Result<Option<Source>, Fault<F::Error>> {
        if self.scan.ahead.is_none() && !self.scan.tree_ended {
            self.scan.ahead = self.advance()?;
            self.scan.tree_ended = self.scan.ahead.is_none();
        }
        let waiting = self.next_waiting();
        let (from_tree, from_waiting) = match (self.scan.ahead, waiting) {
            (Some(position), Some(at)) => {
                let frame = self.index.visit(&mut self.scan.path, 1)?;
                let key = self.index.node(frame, 1)?.key(position);
                let order = key.cmp(self.index.batch.key(at));
                let order = if self.scan.downwards { order.reverse() } else { order };
                (order.is_le(), order.is_ge())
            }
            (in_tree, waiting) => (in_tree.is_some(), waiting.is_some()),
        };
        let ahead = if from_tree { self.scan.ahead.take() } else { None };
        if let (true, Some(at)) = (from_waiting, waiting) {
            self.scan.waiting = if self.scan.downwards { at } else { at + 1 };
            return Ok(Some(Source::Waiting(at)));
        }
        Ok(ahead.map(Source::Tree))
    }

    /// The next pending change, if it is in the range.
    fn next_waiting(&self) -> Option<usize> {
        let batch = &self.index.batch;
        let at =
            if self.scan.downwards { self.scan.waiting.checked_sub(1)? } else { self.scan.waiting };
        (at < batch.len() && !self.is_beyond(batch.key(at))).then_some(at)
    }

    /// Whether `key` is past the end of the range.
    fn is_beyond(&self, key: &[u8]) -> bool {
        match (self.scan.downwards, self.scan.low, self.scan.high) {
            (false, _, Bound::Included(high)) => key > high,
            (false, _, Bound::Excluded(high)) => key >= high,
            (true, Bound::Included(low), _) => key < low,
            (true, Bound::Excluded(low), _) => key <= low,
            _ => false,
        }
    }

    /// Advances to the tree's next record and returns its slot in the leaf.
    fn advance(&mut self) -> Result<Option<usize>, Fault<F::Error>> {
        let position = match self.scan.position {
            None => self.start()?,
            Some(position) => position,
        };
        let Some(position) = self.settle_in_leaf(position)? else {
            return Ok(None);
        };
        let frame = self.index.visit(&mut self.scan.path, 1)?;
        let node = self.index.node(frame, 1)?;
        let key = node.key(position);
        let beside = if self.scan.downwards { position + 1 } else { position.wrapping_sub(1) };
        let before = if beside < node.count() {
            Some(node.key(beside))
        } else {
            self.scan.has_before.then(|| self.index.separator.low())
        };
        if before
            .is_some_and(|before| if self.scan.downwards { before <= key } else { before >= key })
        {
            return Err(self.index.corrupt_at(self.scan.path.page(1), Damage::KeysOutOfOrder));
        }
        if self.is_beyond(key) {
            return Ok(None);
        }
        self.scan.position = Some(if self.scan.downwards { position } else { position + 1 });
        Ok(Some(position))
    }

    /// Descends to the leaf in which the range starts.
    fn start(&mut self) -> Result<usize, Fault<F::Error>> {
        let index = &mut *self.index;
        let toward = match (self.scan.downwards, self.scan.low, self.scan.high) {
            (false, Bound::Included(key) | Bound::Excluded(key), _)
            | (true, _, Bound::Included(key) | Bound::Excluded(key)) => Toward::Key(key),
            (false, Bound::Unbounded, _) => Toward::First,
            (true, _, Bound::Unbounded) => Toward::Last,
        };
        self.scan.path.set_page(index.state.height(), index.state.root());
        index.descend_from(&mut self.scan.path, index.state.height(), 1, toward, false)?;
        let node = index.node(self.scan.path.frame(), 1)?;
        Ok(match (toward, self.scan.downwards) {
            (Toward::First, _) => 0,
            (Toward::Last, _) => node.count(),
            (Toward::Key(key), downwards) => {
                let bound = if downwards { self.scan.high } else { self.scan.low };
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
        if self.scan.downwards && position > 0 {
            return Ok(Some(position - 1));
        }
        if !self.scan.downwards && position < self.scan.path.count(1) {
            return Ok(Some(position));
        }
        self.remember_last()?;
        let index = &mut *self.index;
        let mut level = 2;
        loop {
            if level > index.state.height() {
                return Ok(None);
            }
            let (slot, count) = (self.scan.path.slot(level), self.scan.path.count(level));
            if self.scan.downwards && slot > 0 {
                self.scan.path.set_slot(level, slot - 1);
                break;
            }
            if !self.scan.downwards && slot + 1 < count {
                self.scan.path.set_slot(level, slot + 1);
                break;
            }
            level += 1;
        }
        let page = self.scan.path.page(level);
        let frame = index.visit(&mut self.scan.path, level)?;
        let child = index.child(page, frame, level, self.scan.path.slot(level))?;
        self.scan.path.set_page(level - 1, child);
        let toward = if self.scan.downwards { Toward::Last } else { Toward::First };
        index.descend_from(&mut self.scan.path, level - 1, 1, toward, false)?;
        let count = self.scan.path.count(1);
        Ok(Some(if self.scan.downwards { count - 1 } else { 0 }))
    }

    /// Keeps the last key of this leaf, in the direction of the scan.
    fn remember_last(&mut self) -> Result<(), Fault<F::Error>> {
        let frame = self.index.visit(&mut self.scan.path, 1)?;
        let node = self.index.node(frame, 1)?;
        if let Some(last) = node.count().checked_sub(1) {
            let key = node.key(if self.scan.downwards { 0 } else { last });
            let mut before = [0; KEY_BYTES_MAX];
            let before = &mut before[..key.len()];
            before.copy_from_slice(key);
            self.index.separator.set(before, before);
            self.scan.has_before = true;
        }
        Ok(())
    }
}
