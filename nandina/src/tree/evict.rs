//! Which leaf is written when the write buffer is full, if not all of them are.
//!
//! The rules of two trees that the WPCB-tree paper compares itself with (Ho and Park, 2018, Table
//! 2): IBSF writes the leaf of the oldest change, MB-tree the one with the most changes, each with
//! all changes of that leaf. A change is durable when its leaf is written, or by a flush.
//!
//! Which leaf a change belongs to is read in the node above; no leaf is read for that. The leaf
//! with the most changes would be dear to find so: the write buffer keeps which of its changes
//! belong to one leaf, and only what came since is read.

use super::merge::Merges;
use super::path::Path;
use super::{Placement, TreeIndex};
use crate::engine::{Eviction, KEY_BYTES_MAX};
use crate::error::Fault;
use crate::flash::Flash;

/// Pending changes of one leaf, as far as the node above it says.
struct Group {
    /// The page of the node above, the slot there, and the pointer.
    leaf: (u32, usize, u32),
    /// The first change, unless the leaf is the first of the node above.
    first: Option<usize>,
    /// The end of the changes, unless the leaf is the last of the node above.
    end: Option<usize>,
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Writes a leaf with all of its pending changes, as the eviction chooses.
    pub(super) fn evict(&mut self) -> Result<(), Fault<F::Error>> {
        let evicted = self.evict_leaf();
        if evicted.is_err() {
            // The leaf may be divided, and changes of both halves may still be pending.
            self.batch.forget_leaves();
        }
        evicted
    }

    fn evict_leaf(&mut self) -> Result<(), Fault<F::Error>> {
        let (from, end) = match self.batch.eviction() {
            Eviction::Mb => self.fullest()?,
            Eviction::All | Eviction::Ibsf => {
                let oldest = self.batch.oldest().unwrap_or(0);
                self.changes_beside(oldest)?
            }
        };
        if from >= end {
            return Ok(());
        }
        let bytes = usize::from(self.space.log.medium.key_bytes);
        let (mut first, mut last) = ([0; KEY_BYTES_MAX], [0; KEY_BYTES_MAX]);
        first[..bytes].copy_from_slice(self.batch.key(from));
        last[..bytes].copy_from_slice(self.batch.key(end - 1));
        let (mut merges, mut waiting) = (Merges::default(), 0);
        // If the leaf is divided, the changes of both halves are written.
        loop {
            let from = self.batch.below(&first[..bytes]);
            if from >= self.batch.len() || self.batch.key(from) > &last[..bytes] {
                return Ok(());
            }
            let is_first = self.batch.len() != core::mem::replace(&mut waiting, self.batch.len());
            self.make_room(is_first)?;
            match self.apply_to_leaf(from, &merges)? {
                Some(sparse) => self.merge(sparse, &mut merges)?,
                None if self.batch.len() < waiting => merges = Merges::default(),
                None => {}
            }
        }
    }

    /// The leaf of the pending change at `at`.
    fn group(&mut self, at: usize) -> Result<Group, Fault<F::Error>> {
        let mut key = [0; KEY_BYTES_MAX];
        let key = &mut key[..usize::from(self.space.log.medium.key_bytes)];
        key.copy_from_slice(self.batch.key(at));
        let mut path = Path::new();
        self.space.begin_walk();
        self.descend(&mut path, key, 2, false)?;
        let (slot, node) = (path.slot(2), self.node(path.frame(), 2)?);
        // A node that a split has left behind may have children that the next one has, too.
        let first = (slot > 0).then(|| self.batch.below(node.key(slot)).min(at));
        let end = (slot + 1 < node.count())
            .then(|| self.batch.below(node.key(slot + 1)).clamp(at + 1, self.batch.len()));
        Ok(Group { leaf: (path.page(2), slot, node.pointer(slot)), first, end })
    }

    /// The changes from `at` on that belong to its leaf: their end.
    fn group_end(&mut self, at: usize, group: &Group) -> Result<usize, Fault<F::Error>> {
        let mut end = group.end.unwrap_or(at + 1);
        while group.end.is_none() && end < self.batch.len() && self.group(end)?.leaf == group.leaf {
            end += 1;
        }
        Ok(end)
    }

    /// All changes of the leaf to which the one at `at` belongs.
    fn changes_beside(&mut self, at: usize) -> Result<(usize, usize), Fault<F::Error>> {
        if self.state.height() < 2 || at >= self.batch.len() {
            return Ok((0, self.batch.len()));
        }
        let group = self.group(at)?;
        let mut first = group.first.unwrap_or(at);
        while group.first.is_none() && first > 0 && self.group(first - 1)?.leaf == group.leaf {
            first -= 1;
        }
        Ok((first, self.group_end(at, &group)?))
    }

    /// Finds the end of the changes of one leaf, and notes it. The first is at `from`.
    fn find_leaf_end(&mut self, from: usize) -> Result<usize, Fault<F::Error>> {
        let group = self.group(from)?;
        let end = self.group_end(from, &group)?;
        self.batch.note_leaf(from, end);
        Ok(end)
    }

    /// The changes of the leaf with the most of them; of equals, the last.
    ///
    /// Cost: the nodes above the leaves with changes that came since the last call, or since leaves
    /// were merged or divided by anything else.
    fn fullest(&mut self) -> Result<(usize, usize), Fault<F::Error>> {
        if self.state.height() < 2 {
            return Ok((0, self.batch.len()));
        }
        let (mut best, mut from) = ((0, 0), 0);
        while from < self.batch.len() {
            let end = match self.batch.leaf_end(from) {
                Some(end) => end,
                None => self.find_leaf_end(from)?,
            };
            if end - from >= best.1 - best.0 {
                best = (from, end);
            }
            from = end;
        }
        Ok(best)
    }
}
