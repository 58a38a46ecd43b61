//! Splitting a full node into two, in page buffers.
//!
//! Nothing is written here.

use super::Placement;
use super::TreeIndex;
use crate::error::{Damage, Fault};
use crate::flash::Flash;
use crate::node::{Node, NodeMut};

/// Keys of a node that was split, which must outlive it.
///
/// They are stored in the caller's RAM, not on the stack.
#[derive(Default)]
pub struct Separator<'b>(&'b mut [u8]);

impl<'b> Separator<'b> {
    /// Bytes for keys of `key_bytes`.
    pub const fn ram_needed(key_bytes: usize) -> usize {
        2 * key_bytes
    }

    pub const fn new(ram: &'b mut [u8]) -> Self {
        Self(ram)
    }

    /// The first key of the lower half.
    pub fn low(&self) -> &[u8] {
        &self.0[self.0.len() / 2..]
    }

    /// The first key of the upper half.
    pub fn high(&self) -> &[u8] {
        &self.0[..self.0.len() / 2]
    }

    pub fn set(&mut self, low: &[u8], high: &[u8]) {
        let (to_high, to_low) = self.0.split_at_mut(self.0.len() / 2);
        to_high.copy_from_slice(high);
        to_low.copy_from_slice(low);
    }
}

/// A record to insert.
pub struct Record<'r> {
    /// Its slot in the node.
    pub index: usize,
    /// Its key, or `None` for the separator of a split child.
    pub key: Option<&'r [u8]>,
    pub payload: &'r [u8],
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Inserts a record into the node of `level`, or splits the node to make room.
    ///
    /// After a split the lower half is in the working buffer and the upper half in the spare one,
    /// and `separator` holds their first keys. Returns whether the node was split.
    #[inline(always)]
    pub(super) fn insert_or_split(
        &mut self,
        level: u8,
        record: &Record<'_>,
        right_edge: bool,
        separator: &mut Separator<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        if self.insert_if_room(level, record, separator)? {
            return Ok(false);
        }
        let count = self.count_to_split(level)?;
        let lower = left_count(count, record.index, self.stays_full(level, right_edge));
        self.split(level, lower, Some(record), separator)
    }

    /// Whether a full node of `level` stays full if a record is added to its end.
    pub(super) fn stays_full(&self, level: u8, right_edge: bool) -> bool {
        S::stays_full(level, self.state.height(), right_edge)
    }

    /// Inserts a record into the node of `level`.
    ///
    /// Returns `false` if the node is full.
    #[inline(never)]
    fn insert_if_room(
        &mut self,
        level: u8,
        record: &Record<'_>,
        separator: &Separator<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        let capacity = self.most(level);
        let mut node = self.working_node(level)?;
        let has_room = node.count() < capacity;
        if has_room {
            node.insert(record.index, record.key.unwrap_or(separator.high()), record.payload);
        }
        Ok(has_room)
    }

    /// Records in the node of `level`, which is to be split.
    #[inline(never)]
    pub(super) fn count_to_split(&self, level: u8) -> Result<usize, Fault<F::Error>> {
        let count = self.node(self.working(level), level)?.count();
        // The halves of a larger node would not fit into their new ranges.
        if (!S::SHARING.packs() && count > self.capacity(level)) || count < 2 {
            return Err(self.corrupt(self.working(level), Damage::NodeTooFull));
        }
        Ok(count)
    }

    /// Splits the full node of `level`, and inserts `record`.
    ///
    /// The first `lower` records stay in the lower half. Always returns `true`: the node is split.
    #[inline(never)]
    pub(super) fn split(
        &mut self,
        level: u8,
        lower: usize,
        record: Option<&Record<'_>>,
        separator: &mut Separator<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        let is_root = level == self.state.height();
        let area_bytes = self.space.log.layout().area_bytes();
        let before = S::extent(area_bytes, level, self.state.height());
        let after = S::extent(area_bytes, level, self.state.height() + u8::from(is_root));
        let shape = self.level(level).shape;
        let (working, spare) = (self.working(level), self.spare(level));
        self.space.log.frames.forget(working);
        self.space.log.frames.forget(spare);
        let (working, spare) = self.space.log.frames.pair(working, spare);
        let mut right = NodeMut::empty(&mut spare[after.clone()], shape);
        if let Some(mut left) = NodeMut::parse(&mut working[before.clone()], shape) {
            match record {
                Some(record) => {
                    let key = record.key.unwrap_or(separator.high());
                    left.split(&mut right, lower, record.index, key, record.payload);
                }
                None => left.split_off(&mut right, lower),
            }
            separator.set(left.as_node().key(0), right.as_node().key(0));
        }
        // A root that is split moves out of the range that only the root has.
        if before.start != after.start {
            let used =
                Node::parse(&working[before.clone()], shape).map_or(0, |node| node.used().len());
            working.copy_within(before.start..before.start + used, after.start);
        }
        Ok(true)
    }
}

/// Records that stay in the lower half when a node of `count` is split.
///
/// The split makes room for one more at `index`. Ascending keys would leave half-full nodes behind
/// them, so no record of a node that `stays` full moves if the new one goes to its end.
pub(super) const fn left_count(count: usize, index: usize, stays: bool) -> usize {
    if stays && index == count { count } else { (count + 1).div_ceil(2) }
}
