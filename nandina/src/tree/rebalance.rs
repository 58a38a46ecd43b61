//! Removals that merge and rotate nodes, as in textbooks: for comparison.
//!
//! The WPCB-tree paper (Ho and Park, 2018, section 5) compares itself with a B-tree whose removals
//! keep each node at least half full: a node with fewer records is merged with a neighbour below
//! the same parent if both fit in one node, else the two are *rotated*, so that each has half of
//! the records of both.
//!
//! Right after a cut at any instant, as long as a page is replaced as a whole or not at all:
//! - a merge is that of `merge.rs`;
//! - a rotation writes the new upper node to a free page, and the lower one only if it gains
//!   records; these lie above its range, so reads trim them. The parent commits: it gets the new
//!   separator and the new upper node at once. Before it is written, the former upper node is as it
//!   was.
//!
//! A lower node that loses records stays as it is: they are stale copies, as after a split.

use super::edit::{Edit, Rotation, Upper};
use super::path::Path;
use super::split::Separator;
use super::{Placement, TreeIndex};
use crate::engine::KEY_BYTES_MAX;
use crate::error::{Damage, Fault};
use crate::flash::Flash;
use crate::node::NodeMut;

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Merges or rotates the nodes on the way to `key` that are less than half full.
    ///
    /// Called after a removal. Cost: at most three programs and six descents for each level; a
    /// descent if no node is too empty.
    pub(super) fn rebalance(&mut self, key: &[u8]) -> Result<(), Fault<F::Error>> {
        let mut level = 1;
        while level < self.state.height() {
            let mut path = Path::new();
            self.space.begin_walk();
            self.descend(&mut path, key, level, false)?;
            if path.count(level) >= self.capacity(level) / 2 || path.count(level + 1) < 2 {
                return Ok(());
            }
            let lower = path.slot(level + 1).saturating_sub(1);
            let frame = self.visit(&mut path, level + 1)?;
            self.with_separator(|tree, keys| {
                let node = tree.node(frame, level + 1)?;
                keys.set(node.key(lower), node.key(lower + 1));
                Ok::<_, Fault<F::Error>>(())
            })?;
            let low = self.neighbour(level, |keys| keys.low())?;
            let upper = self.neighbour(level, |keys| keys.high())?;
            let total = usize::from(low.count) + usize::from(upper.count);
            self.make_room(false)?;
            if total <= self.capacity(level) {
                self.merge_with(level, upper)?;
                level += 1;
                continue;
            }
            let (limit_pages, beside) =
                self.limit_and_beside(self.state.height(), self.state.inner_nodes());
            if self.space.valid_pages() + 1 + beside > limit_pages {
                // The new upper node has no page: the nodes stay as they are.
                return Ok(());
            }
            let gains = usize::from(low.count) < total / 2;
            return self.rotate_with(level, Rotation { upper, lower_gains: gains });
        }
        Ok(())
    }

    /// The node of `level` to which one of the keys in the separator leads.
    fn neighbour(
        &mut self,
        level: u8,
        key: for<'k, 's> fn(&'k Separator<'s>) -> &'k [u8],
    ) -> Result<Upper, Fault<F::Error>> {
        let mut path = Path::new();
        self.space.begin_walk();
        self.with_separator(|tree, keys| tree.descend(&mut path, key(keys), level, false))?;
        let (page, count) = (path.page(level), path.count(level) as u16);
        Ok(Upper { page, count, lowest: path.lowest(level) })
    }

    fn rotate_with(&mut self, level: u8, rotation: Rotation) -> Result<(), Fault<F::Error>> {
        let (mut path, before) = (Path::new(), self.state.height());
        self.with_separator(|tree, keys| tree.descend_to_change(&mut path, keys.low(), level))?;
        self.rewrite(&mut path, level, &Edit::Rotate(rotation), self.state.records(), None)?;
        self.note_change(&path, before);
        Ok(())
    }

    /// Divides the records of the node of `level` and its upper neighbour anew.
    ///
    /// The node is in its working buffer; the new upper one is in the spare buffer then. The
    /// separator has the key of the neighbour in the parent, and gets that of the new one.
    #[inline(never)]
    pub(super) fn shift(
        &mut self,
        level: u8,
        upper: Upper,
        separator: &mut Separator<'_>,
    ) -> Result<(), Fault<F::Error>> {
        let fault = self.corrupt_at(upper.page, Damage::NodeTooFull);
        let (working, spare) = (self.working(level), self.spare(level));
        self.space.load_into(upper.page, spare)?;
        self.truncate(spare, level, upper.count.into());
        let area_bytes = self.space.log.layout().area_bytes();
        let extent = S::extent(area_bytes, level, self.state.height());
        let shape = self.level(level).shape;
        self.space.log.frames.forget(working);
        self.space.log.frames.forget(spare);
        let (working, spare) = self.space.log.frames.pair(working, spare);
        let lower = NodeMut::parse(&mut working[extent.clone()], shape);
        let (Some(mut lower), Some(mut upper)) = (lower, NodeMut::parse(&mut spare[extent], shape))
        else {
            return Err(fault);
        };
        if lower.count() == 0 || upper.count() == 0 {
            return Err(fault);
        }
        let half = (lower.count() + upper.count()) / 2;
        // The first child of the upper node owned all keys from the separator on.
        if level > 1 && separator.high() < upper.as_node().key(0) {
            upper.set_key(0, separator.high());
        }
        while lower.count() < half {
            let first = upper.as_node();
            lower.insert(lower.count(), first.key(0), first.payload(0));
            upper.remove(0);
        }
        while lower.count() > half {
            let (last, at) = (lower.as_node(), lower.count() - 1);
            upper.insert(0, last.key(at), last.payload(at));
            lower.truncate(at);
        }
        let mut low = [0; KEY_BYTES_MAX];
        let low = &mut low[..separator.low().len()];
        low.copy_from_slice(separator.low());
        separator.set(low, upper.as_node().key(0));
        Ok(())
    }
}
