//! A full node becomes two, in page buffers. Nothing is put here.

use super::Index;
use super::rewrite::Separator;
use crate::error::Fault;
use crate::flash::Flash;
use crate::node::{Node, NodeMut};
use crate::place::Placement;

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Puts a record into the node of `level`, or divides the node: then its lower half stays in the
    /// working buffer, its upper half goes to the last one, and `separator` becomes the first key of
    /// that. Answers whether the node was divided.
    pub(super) fn insert_or_divide(
        &mut self,
        level: u8,
        index: usize,
        key: &[u8],
        payload: &[u8],
        right_edge: bool,
        separator: &mut Separator,
    ) -> Result<bool, Fault<F::Error>> {
        let capacity = self.capacity(level);
        let mut node = self.working_node(level)?;
        if node.count() < capacity {
            node.insert(index, key, payload);
            return Ok(false);
        }
        self.divide(level, Some((index, key, payload)), right_edge, separator)
    }

    /// Divides the full node of `level`, with one record more if there is one. Answers that it is divided.
    pub(super) fn divide(
        &mut self,
        level: u8,
        record: Option<(usize, &[u8], &[u8])>,
        right_edge: bool,
        separator: &mut Separator,
    ) -> Result<bool, Fault<F::Error>> {
        let count = self.working_node(level)?.count();
        // The halves of a larger node would not fit where they go.
        if count > self.capacity(level) || count < 2 {
            return Err(self.corrupt("a node has more records than it may"));
        }
        let is_root = level == self.height;
        let area_bytes = self.space.layout.area_bytes();
        let before = S::extent(area_bytes, level, self.height);
        let after = S::extent(area_bytes, level, self.height + u8::from(is_root));
        let shape = self.level(level).shape;
        let (working, spare) = (self.working(level), self.spare(level));
        self.space.frames.forget(spare);
        let (working, spare) = self.space.frames.pair(working, spare);
        let mut right = NodeMut::empty(&mut spare[after.clone()], shape);
        if let Some(mut left) = NodeMut::parse(&mut working[before.clone()], shape) {
            match record {
                Some((index, key, payload)) => {
                    let left_count = left_count(count, index, right_edge && !is_root);
                    left.divide(&mut right, left_count, index, key, payload);
                }
                None => left.split_off(&mut right, count.div_ceil(2)),
            }
            let key_bytes = shape.key_bytes;
            separator.low[..key_bytes].copy_from_slice(left.as_node().key(0));
            separator.bytes[..key_bytes].copy_from_slice(right.as_node().key(0));
        }
        // A root that is divided leaves the root's place.
        if before.start != after.start {
            let used =
                Node::parse(&working[before.clone()], shape).map_or(0, |node| node.used().len());
            working.copy_within(before.start..before.start + used, after.start);
        }
        Ok(true)
    }
}

/// Records that stay in the lower half when a node of `count` is divided for one more at `index`. Ascending keys
/// would leave half-full nodes behind them: at the right edge, nothing moves.
pub(super) const fn left_count(count: usize, index: usize, right_edge: bool) -> usize {
    if right_edge && index == count { count } else { (count + 1).div_ceil(2) }
}
