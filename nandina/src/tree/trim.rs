//! Nodes that hold more than is theirs. Where a division writes the upper half and the parent only
//! ([`Placement::TRIMS`]), the lower half keeps old copies of what went up. They end where the upper neighbour's
//! range begins, which the ancestors tell; here they are cut off in the page buffer.
//!
//! When a node vanishes its range falls to a neighbour. To an upper neighbour it can fall at once. A lower neighbour
//! is written anew before, at every level of its right edge, where it holds old copies: else they would come back.

use super::descend::Path;
use super::rewrite::Edit;
use super::{Index, KEY_BYTES_MAX};
use crate::error::Fault;
use crate::flash::Flash;
use crate::place::{Placement, node_in};

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Brings the node of `level` on `path` into a page buffer, to read: `into` that one, or any.
    pub(super) fn enter(
        &mut self,
        path: &mut Path,
        level: u8,
        into: Option<usize>,
    ) -> Result<usize, Fault<F::Error>> {
        let mut bound = [0; KEY_BYTES_MAX];
        let bounded = S::TRIMS && self.bound(path, level, &mut bound)?;
        let page = path.page(level);
        let frame = match into {
            Some(frame) => {
                self.space.load_into(page, frame)?;
                frame
            }
            None => self.space.load(page, self.visiting(level))?,
        };
        let node = self.node(frame, level)?;
        let mut count = node.count();
        if bounded {
            let bound = &bound[..usize::from(self.space.medium.key_bytes)];
            let (Ok(own) | Err(own)) = node.search(bound);
            if own < count {
                count = own;
                self.truncate(frame, level, own);
            }
        }
        path.set_count(level, count);
        Ok(frame)
    }

    /// The first key that is not the node's of `level` any more: that of its upper neighbour. Answers whether there
    /// is one. Cost: nothing, unless the ancestors were displaced from their page buffers.
    fn bound(
        &mut self,
        path: &Path,
        level: u8,
        bound: &mut [u8; KEY_BYTES_MAX],
    ) -> Result<bool, Fault<F::Error>> {
        let above = |above: &u8| path.slot(*above) + 1 < path.count(*above);
        let Some(above) = (level + 1..=self.height).find(above) else {
            return Ok(false);
        };
        let frame = self.space.load(path.page(above), self.visiting(above))?;
        let node = self.node(frame, above)?;
        if path.slot(above) + 1 >= node.count() {
            return Err(self.corrupt("a node is not what it was on the way down"));
        }
        let key = node.key(path.slot(above) + 1);
        bound[..key.len()].copy_from_slice(key);
        Ok(true)
    }

    /// The node in `frame` ends at `count`. The buffer holds its page all the same: as far as it is the node's.
    fn truncate(&mut self, frame: usize, level: u8, count: usize) {
        let level = self.level(level);
        let extent = S::extent(self.space.layout.area_bytes(), level.level, level.height);
        let bytes = &mut self.space.frames.bytes_mut(frame)[extent];
        if let Some(mut node) = crate::node::NodeMut::parse(bytes, level.shape) {
            node.truncate(count);
        }
    }

    /// The last record of the leaf at the end of `path` is about to be removed: whether some node had to be
    /// written first, so that nothing comes back. Then the path is not true any more.
    ///
    /// Cost: nothing in most cases; else one read for each level below, and a rewrite of what is not clean.
    pub(super) fn clear_the_way(&mut self, path: &Path) -> Result<bool, Fault<F::Error>> {
        if !S::TRIMS || self.height == 1 {
            return Ok(false);
        }
        let keeps = (2..=self.height).find(|&level| path.count(level) > 1);
        let Some(keeps) = keeps.filter(|&level| path.slot(level) > 0) else {
            return Ok(false);
        };
        // An upper neighbour in the same node takes the range, and holds nothing below its own.
        if path.slot(keeps) + 1 < path.count(keeps) {
            return Ok(false);
        }
        let mut side = *path;
        side.set_slot(keeps, path.slot(keeps) - 1);
        for level in (1..keeps).rev() {
            let above = self.visit(&mut side, level + 1)?;
            let child = self.child(side.page(level + 1), above, level + 1, side.slot(level + 1))?;
            side.set_page(level, child);
            // As it stands on the chip, and not as it was trimmed before.
            self.space.frames.forget_page(self.space.where_is(child));
            let frame = self.space.load(child, self.visiting(level))?;
            let all =
                node_in::<S, F>(&self.space, frame, self.level(level)).map_or(0, |n| n.count());
            let frame = self.visit(&mut side, level)?;
            if side.count(level) == 0 {
                return Err(self.corrupt("a node is empty"));
            }
            if side.count(level) < all {
                let mut key = [0; KEY_BYTES_MAX];
                let node = self.node(frame, level)?;
                let key = &mut key[..usize::from(self.space.medium.key_bytes)];
                key.copy_from_slice(node.key(0));
                let path = self.descend_to_change(key, level)?;
                self.rewrite(&path, level, Edit::Move, self.records, None)?;
                return Ok(true);
            }
            side.set_slot(level, side.count(level) - 1);
        }
        Ok(false)
    }
}
