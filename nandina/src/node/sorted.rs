//! A node of sorted records: a count, then records of one size in key order.
//!
//! ```text
//! | count: u16 | key payload | key payload | ... | unused |
//! ```
//!
//! In a leaf the payload is the value; in an inner node it is the pointer to a child, and the key
//! is a lower bound of the child's keys. A key below the first key of an inner node belongs to its
//! first child. Whoever inserts such a key lowers the node's first key to it, so that the first key
//! stays a lower bound and the node can be found by it. Numbers are little-endian, keys are ordered
//! as bytes.

use super::shape::COUNT_BYTES;
use super::{Shape, tags};
use crate::bytes::{bisect, u32_at};

/// A node, for reading.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    bytes: &'a [u8],
    shape: Shape,
    count: usize,
}

impl<'a> Node<'a> {
    /// A node without records.
    pub(crate) const EMPTY: Self = Self { bytes: &[0; 2], shape: Shape::sorted(0, 0), count: 0 };

    /// Reads a node from `bytes`. Returns `None` if its count is impossible.
    #[inline(always)]
    pub fn parse(bytes: &'a [u8], shape: Shape) -> Option<Self> {
        let count = u16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]) as usize;
        shape.fits(count, bytes.len()).then_some(Self { bytes, shape, count })
    }

    /// The first `count` records in `bytes`, which must hold that many.
    pub(super) const fn sorted(bytes: &'a [u8], shape: Shape, count: usize) -> Self {
        Self { bytes, shape, count }
    }

    /// The number of records in the node.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The bytes of the count and the records.
    pub fn used(&self) -> &'a [u8] {
        &self.bytes[..self.shape.at(self.count)]
    }

    /// The key at `index`, which must be below the count.
    pub fn key(&self, index: usize) -> &'a [u8] {
        let at = self.shape.at(index);
        &self.bytes[at..at + self.shape.key_bytes()]
    }

    /// The value or pointer at `index`, which must be below the count.
    pub fn payload(&self, index: usize) -> &'a [u8] {
        let at = self.shape.at(index) + self.shape.key_bytes();
        &self.bytes[at..at + self.shape.payload_bytes()]
    }

    /// The pointer at `index` of an inner node.
    pub fn pointer(&self, index: usize) -> u32 {
        u32_at(self.payload(index), 0)
    }

    /// The index of `key` (`Ok`), or the index at which to insert it (`Err`).
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        bisect(self.count, |index| self.key(index), key)
    }

    /// The index of the child to which `key` belongs. The node is not empty.
    pub fn child_slot(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(index) => index,
            Err(index) => index.saturating_sub(1),
        }
    }

    /// The index of the record whose pointer is `pointer`.
    pub fn slot_of(&self, pointer: u32) -> Option<usize> {
        (0..self.count).find(|&index| self.pointer(index) == pointer)
    }
}

/// A node, for changing. The caller must keep within its capacity.
pub struct NodeMut<'a> {
    bytes: &'a mut [u8],
    shape: Shape,
    count: usize,
}

impl<'a> NodeMut<'a> {
    /// Reads a node from `bytes`. Returns `None` if its count is impossible.
    pub fn parse(bytes: &'a mut [u8], shape: Shape) -> Option<Self> {
        let count = Node::parse(bytes, shape)?.count;
        Some(Self { bytes, shape, count })
    }

    /// Creates an empty node in `bytes`, which are overwritten.
    pub fn empty(bytes: &'a mut [u8], shape: Shape) -> Self {
        let mut node = Self { bytes, shape, count: 0 };
        node.set_count(0);
        tags::begin(node.bytes, &shape);
        node
    }

    /// The number of records in the node.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The same node, for reading.
    pub fn as_node(&self) -> Node<'_> {
        Node { bytes: self.bytes, shape: self.shape, count: self.count }
    }

    fn set_count(&mut self, count: usize) {
        debug_assert!(count <= self.shape.capacity(self.bytes.len()));
        self.count = count;
        self.bytes[..COUNT_BYTES].copy_from_slice(&(count as u16).to_le_bytes());
    }

    /// Inserts a record at `index` and shifts those after it.
    pub fn insert(&mut self, index: usize, key: &[u8], payload: &[u8]) {
        let (at, end) = (self.shape.at(index), self.shape.at(self.count));
        self.bytes.copy_within(at..end, at + self.shape.record_bytes());
        let middle = at + self.shape.key_bytes();
        self.bytes[at..middle].copy_from_slice(key);
        self.bytes[middle..middle + self.shape.payload_bytes()].copy_from_slice(payload);
        tags::inserted(self.bytes, &self.shape, index);
        self.set_count(self.count + 1);
    }

    /// Copies the key at `from` to `to`. The result must still be in order.
    pub fn copy_key(&mut self, from: usize, to: usize) {
        let (from, to) = (self.shape.at(from), self.shape.at(to));
        self.bytes.copy_within(from..from + self.shape.key_bytes(), to);
        tags::make_whole(self.bytes, &self.shape);
    }

    /// Replaces the key at `index`. The result must still be in order.
    pub fn set_key(&mut self, index: usize, key: &[u8]) {
        let at = self.shape.at(index);
        let old = &mut self.bytes[at..at + self.shape.key_bytes()];
        if old != key {
            old.copy_from_slice(key);
            tags::make_whole(self.bytes, &self.shape);
        }
    }

    /// Replaces the value or pointer at `index`.
    pub fn set_payload(&mut self, index: usize, payload: &[u8]) {
        let at = self.shape.at(index) + self.shape.key_bytes();
        let old = &mut self.bytes[at..at + self.shape.payload_bytes()];
        // An unchanged payload needs no new slot of the page.
        if old != payload {
            old.copy_from_slice(payload);
            tags::replaced(self.bytes, &self.shape, index);
        }
    }

    /// Removes the record at `index` and closes the gap.
    pub fn remove(&mut self, index: usize) {
        tags::removed(self.bytes, &self.shape, index);
        let (at, end) = (self.shape.at(index), self.shape.at(self.count));
        self.bytes.copy_within(at + self.shape.record_bytes()..end, at);
        self.set_count(self.count - 1);
    }

    /// Detaches the node from its page: it has to be written as a whole.
    pub fn make_whole(&mut self) {
        tags::make_whole(self.bytes, &self.shape);
    }

    /// Removes the records from `count` on.
    pub fn truncate(&mut self, count: usize) {
        self.set_count(count.min(self.count));
    }

    /// Moves the records from `left` on to `right`, which is overwritten.
    pub fn split_off(&mut self, right: &mut NodeMut<'_>, left: usize) {
        let (at, end) = (self.shape.at(left), self.shape.at(self.count));
        let from = right.shape.at(0);
        right.bytes[from..from + end - at].copy_from_slice(&self.bytes[at..end]);
        right.set_count(self.count - left);
        self.set_count(left);
        tags::make_whole(right.bytes, &self.shape);
        tags::make_whole(self.bytes, &self.shape);
    }

    /// Appends all records of `upper`, a node of the same shape.
    ///
    /// There must be room for them.
    pub fn append(&mut self, upper: &Node<'_>) {
        let (at, from) = (self.shape.at(self.count), upper.shape.at(0));
        let records = &upper.bytes[from..upper.shape.at(upper.count)];
        self.bytes[at..at + records.len()].copy_from_slice(records);
        self.set_count(self.count + upper.count);
        tags::make_whole(self.bytes, &self.shape);
    }

    /// Splits a full node and inserts a record at `index`.
    ///
    /// The first `left` of all records stay; the others move to `right`, which is overwritten.
    pub fn split(
        &mut self,
        right: &mut NodeMut<'_>,
        left: usize,
        index: usize,
        key: &[u8],
        payload: &[u8],
    ) {
        debug_assert!(left >= 1 && left <= self.count);
        let goes_left = index < left;
        self.split_off(right, left - usize::from(goes_left));
        if goes_left {
            self.insert(index, key, payload);
        } else {
            right.insert(index - left, key, payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape::sorted(2, 1);

    fn keys<'a>(node: &'a Node<'a>) -> impl Iterator<Item = u16> + 'a {
        (0..node.count()).map(|index| u16::from_be_bytes([node.key(index)[0], node.key(index)[1]]))
    }

    #[test]
    fn a_count_beyond_the_capacity_is_no_node() {
        let mut bytes = [0u8; 2 + 3 * 4];
        bytes[0] = 5;
        assert!(Node::parse(&bytes, SHAPE).is_none());
        bytes[0] = 4;
        assert_eq!(Node::parse(&bytes, SHAPE).map(|node| node.count()), Some(4));
        assert!(Node::parse(&bytes[..1], SHAPE).is_none());
    }

    #[test]
    fn dividing_keeps_order_wherever_the_new_record_falls() {
        for position in 0..=4u16 {
            for left in 1..=4 {
                let (mut a, mut b) = ([0u8; 14], [0xFFu8; 14]);
                let mut low = NodeMut::empty(&mut a, SHAPE);
                for index in 0..4u16 {
                    low.insert(index as usize, &(index * 2 + 1).to_be_bytes(), &[0]);
                }
                let mut high = NodeMut::empty(&mut b, SHAPE);
                low.split(&mut high, left, position as usize, &(position * 2).to_be_bytes(), &[9]);
                assert_eq!((low.count(), high.count()), (left, 5 - left));
                let (low, high) = (low.as_node(), high.as_node());
                assert!(keys(&low).chain(keys(&high)).is_sorted());
                let new = (position * 2).to_be_bytes();
                assert!(low.search(&new).is_ok() != high.search(&new).is_ok());
            }
        }
    }

    #[test]
    fn a_key_below_all_belongs_to_the_first_child() {
        let mut bytes = [0u8; 64];
        let mut node = NodeMut::empty(&mut bytes, Shape::inner(1));
        for (index, key) in [10u8, 20, 30].into_iter().enumerate() {
            node.insert(index, &[key], &(index as u32).to_le_bytes());
        }
        let node = node.as_node();
        for (key, slot) in [(0, 0), (10, 0), (19, 0), (20, 1), (29, 1), (30, 2), (255, 2)] {
            assert_eq!(node.child_slot(&[key]), slot);
        }
        assert_eq!(node.slot_of(2), Some(2));
        assert_eq!(node.slot_of(7), None);
    }
}
