//! Trimming: after a split the lower half still holds stale copies of records.
//!
//! Where a split writes only the upper half and the parent ([`Placement::SPLITS`]), the lower half
//! keeps old copies of the records that moved up. They begin where the upper neighbour's range
//! begins, which the ancestors record; here they are cut off in the page buffer.
//!
//! When a node becomes empty and is removed, a neighbour takes over its range. An upper neighbour
//! can do so at once. A lower neighbour that holds stale copies is written anew first, at every
//! level of its right edge; otherwise, the copies would come back. A node that takes in its upper
//! neighbour is written anew in any case, and the nodes below it keep their bounds.

use super::TreeIndex;
use super::edit::Edit;
use super::path::Path;
use super::{Placement, extent_of, node_in};
use crate::error::{Damage, Fault};
use crate::flash::Flash;

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Reads the node of `level` on `path` into a page buffer and trims it.
    ///
    /// The buffer is `into`, or any if that is `None`.
    pub(super) fn load_trimmed(
        &mut self,
        path: &mut Path,
        level: u8,
        into: Option<usize>,
    ) -> Result<usize, Fault<F::Error>> {
        let bounded = S::SPLITS.trims() && self.find_bound(path, level)?;
        self.load_bounded(path, level, into, bounded)
    }

    /// Like [`load_trimmed`](Self::load_trimmed), with the bound already kept.
    ///
    /// `bounded` states whether there is one.
    pub(super) fn load_bounded(
        &mut self,
        path: &mut Path,
        level: u8,
        into: Option<usize>,
        bounded: bool,
    ) -> Result<usize, Fault<F::Error>> {
        let page = path.page(level);
        let frame = match into {
            Some(frame) => {
                self.space.load_into(page, frame)?;
                frame
            }
            None => self.space.load(page, self.visiting(level))?,
        };
        let count = self
            .with_bound(|tree, bound| tree.cut(frame, level, Some(&*bound).filter(|_| bounded)))?;
        path.set_count(level, count);
        path.set_lowest(level, self.space.log.lowest(frame));
        Ok(frame)
    }

    /// Finds the first key that no longer belongs to the node of `level`.
    ///
    /// It is the first key of the upper neighbour, and is kept as the bound. Returns whether there
    /// is one. Cost: no read, unless the ancestors were displaced from their page buffers.
    #[inline(never)]
    pub(super) fn find_bound(&mut self, path: &Path, level: u8) -> Result<bool, Fault<F::Error>> {
        let mut above = level + 1;
        while above <= self.state.height() && path.slot(above) + 1 >= path.count(above) {
            above += 1;
        }
        if above > self.state.height() {
            return Ok(false);
        }
        let frame = self.space.load(path.page(above), self.visiting(above))?;
        self.keep_bound(frame, above, path.slot(above) + 1)?;
        Ok(true)
    }

    /// Keeps the key at `slot` of the node of `level` in `frame` as the next bound.
    ///
    /// A descent keeps the nearest bound, so it need not read again an ancestor that was displaced
    /// from its page buffer.
    #[inline(never)]
    pub(super) fn keep_bound(
        &mut self,
        frame: usize,
        level: u8,
        slot: usize,
    ) -> Result<(), Fault<F::Error>> {
        self.with_bound(|tree, bound| tree.copy_key(frame, level, slot, bound))
    }

    /// Copies the key at `slot` of the node of `level` in `frame`.
    fn copy_key(
        &self,
        frame: usize,
        level: u8,
        slot: usize,
        key: &mut [u8],
    ) -> Result<(), Fault<F::Error>> {
        let node = self.node(frame, level)?;
        if slot >= node.count() {
            return Err(self.corrupt(frame, Damage::NodeChanged));
        }
        key.copy_from_slice(node.key(slot));
        Ok(())
    }

    /// Trims the node in `frame` to the keys below `bound`, and returns its count.
    ///
    /// The buffer still counts as holding its page, as far as the records belong to the node.
    #[inline(never)]
    fn cut(
        &mut self,
        frame: usize,
        level: u8,
        bound: Option<&[u8]>,
    ) -> Result<usize, Fault<F::Error>> {
        let node = self.node(frame, level)?;
        let count = node.count();
        let Some(bound) = bound else { return Ok(count) };
        let (Ok(own) | Err(own)) = node.search(bound);
        if own < count {
            self.truncate(frame, level, own);
        }
        Ok(own.min(count))
    }

    /// Truncates the node in `frame` to `count` records.
    #[inline(never)]
    pub(super) fn truncate(&mut self, frame: usize, level: u8, count: usize) {
        let level = self.level(level);
        let extent = extent_of::<S, F>(&self.space, frame, level);
        let bytes = &mut self.space.log.frames.bytes_mut(frame)[extent];
        if let Some(mut node) = crate::node::NodeMut::parse(bytes, level.shape) {
            node.truncate(count);
        }
    }

    /// Rewrites a node, if needed, before the last record of a leaf is removed.
    ///
    /// `key` is that record, and the leaf is at the end of `path`. Without the rewrite, trimmed
    /// records would come back. Returns whether a node was written; `path` is no longer true then.
    ///
    /// Cost: no chip operation in most cases. Otherwise, one read for each level below, and a
    /// rewrite of the node that is not clean, or the descent to the leaf.
    #[inline(never)]
    pub(super) fn clear_the_way(
        &mut self,
        path: &mut Path,
        key: &[u8],
    ) -> Result<bool, Fault<F::Error>> {
        if !S::SPLITS.trims() || self.state.height() == 1 {
            return Ok(false);
        }
        let keeps = (2..=self.state.height()).find(|&level| path.count(level) > 1);
        let Some(keeps) = keeps.filter(|&level| path.slot(level) > 0) else {
            return Ok(false);
        };
        // An upper neighbour in the same node takes the range, and holds no record below its own.
        if path.slot(keeps) + 1 < path.count(keeps) {
            return Ok(false);
        }
        path.set_slot(keeps, path.slot(keeps) - 1);
        for level in (1..keeps).rev() {
            let above = self.visit(path, level + 1)?;
            let child = self.child(path.page(level + 1), above, level + 1, path.slot(level + 1))?;
            path.set_page(level, child);
            // The node is needed as it is stored on the chip, not as it was trimmed before.
            self.space.log.frames.forget_page(self.space.current_page(child));
            let frame = self.space.load(child, self.visiting(level))?;
            let all =
                node_in::<S, F>(&self.space, frame, self.level(level)).map_or(0, |n| n.count());
            self.visit(path, level)?;
            if path.count(level) == 0 {
                return Err(self.corrupt_at(child, Damage::NodeEmpty));
            }
            if path.count(level) < all {
                self.rewrite(path, level, &Edit::Move, self.state.records(), None)?;
                return Ok(true);
            }
            path.set_slot(level, path.count(level) - 1);
        }
        self.descend_to_change(path, key, 1)?;
        Ok(false)
    }
}
