//! A leaf as bytes: sorted records, its trail, and the fences of its range of keys.
//!
//! ```text
//! | count: u16 | key value | key value | ... | unused | trail | lower, upper fence | flags |
//! ```
//!
//! The lower fence belongs to the range, the upper one does not. Bit 0 of the flags says that there
//! is no upper fence, bit 1 that some block may hold a torn page. The records are those of any
//! sorted node (`node/sorted.rs`), the trail is in `trail.rs`. No page is read here, and nothing
//! here knows which leaf is the newest.

use core::ops::Range;

use super::directory::Directory;
use super::trail::{told_pages, trail_bytes};
use crate::engine::LeafRange;
use crate::node::{Medium, Node, NodeMut, PageLayout, Shape};

/// Bytes of the flags.
const FLAG_BYTES: usize = 1;

/// Flag: the range has no upper end.
const OPEN: u8 = 1;

/// Flag: some block may hold a torn page.
const SUSPECTS: u8 = 2;

/// Bytes of the count of records.
const COUNT_BYTES: usize = 2;

/// The sizes of a leaf, from which all positions in it follow.
#[derive(Clone, Copy)]
pub(super) struct Form {
    shape: Shape,
    area_bytes: usize,
    /// Pages that the trail tells of.
    told: usize,
}

/// A lower bound, which belongs to the range, and an upper one that does not.
pub(super) type Fences<'f> = LeafRange<'f>;

impl Form {
    /// The leaves of such a medium.
    pub fn new(layout: &PageLayout, medium: &Medium) -> Self {
        let sizes = (medium.key_bytes.into(), medium.value_bytes.into());
        Self::of(layout.area_bytes(), sizes, medium.checkpoints)
    }

    /// The leaves in areas of `area_bytes`, of a medium with `checkpoints` or without.
    pub const fn of(
        area_bytes: usize,
        (key_bytes, value_bytes): (usize, usize),
        checkpoints: bool,
    ) -> Self {
        let told = told_pages(area_bytes, checkpoints);
        Self { shape: Shape::sorted(key_bytes, value_bytes), area_bytes, told }
    }

    /// Pages that the trail of a leaf tells of: 0 if it has none.
    pub const fn told(&self) -> usize {
        self.told
    }

    /// Where the fences begin, and the flags behind them.
    const fn fences_at(&self) -> usize {
        self.area_bytes.saturating_sub(2 * self.shape.key_bytes() + FLAG_BYTES)
    }

    /// Bytes for the count and the records.
    pub const fn node_bytes(&self) -> usize {
        self.fences_at().saturating_sub(trail_bytes(self.told))
    }

    /// Records that fit in a leaf.
    pub const fn capacity(&self) -> usize {
        self.shape.capacity(self.node_bytes())
    }

    /// Bytes of a record.
    pub const fn record_bytes(&self) -> usize {
        self.shape.record_bytes()
    }

    /// The records of a leaf, or `None` if their count is impossible.
    pub fn node<'a>(&self, page: &'a [u8]) -> Option<Node<'a>> {
        Node::parse(&page[..self.node_bytes()], self.shape)
    }

    /// The records of a leaf, for changing.
    pub fn node_mut<'a>(&self, page: &'a mut [u8]) -> Option<NodeMut<'a>> {
        NodeMut::parse(&mut page[..self.node_bytes()], self.shape)
    }

    /// Makes `page` a leaf without records; it has no fences yet.
    pub fn begin(&self, page: &mut [u8]) {
        page[..self.area_bytes].fill(0);
        NodeMut::empty(&mut page[..self.node_bytes()], self.shape);
    }

    /// The fences of a leaf, or `None` if its range is empty.
    pub fn fences<'a>(&self, page: &'a [u8]) -> Option<Fences<'a>> {
        let tail = page.get(self.fences_at()..self.area_bytes)?;
        if tail.len() < 2 * self.shape.key_bytes() + FLAG_BYTES {
            return None;
        }
        let (low, rest) = tail.split_at(self.shape.key_bytes());
        let (high, flags) = rest.split_at(self.shape.key_bytes());
        match flags[0] & !SUSPECTS {
            OPEN => Some((low, None)),
            0 if low < high => Some((low, Some(high))),
            _ => None,
        }
    }

    /// Sets the fences of a leaf.
    pub fn set_fences(&self, page: &mut [u8], (low, high): Fences<'_>) {
        let key_bytes = self.shape.key_bytes();
        let tail = &mut page[self.fences_at()..self.area_bytes];
        tail[..key_bytes].copy_from_slice(low);
        match high {
            Some(high) => tail[key_bytes..2 * key_bytes].copy_from_slice(high),
            None => tail[key_bytes..2 * key_bytes].fill(0),
        }
        tail[2 * key_bytes] = if high.is_none() { OPEN } else { 0 };
    }

    /// The trail of a leaf.
    pub fn trail<'a>(&self, page: &'a [u8]) -> &'a [u8] {
        &page[self.node_bytes()..self.fences_at()]
    }

    /// The trail of a leaf, for changing.
    pub fn trail_mut<'a>(&self, page: &'a mut [u8]) -> &'a mut [u8] {
        &mut page[self.node_bytes()..self.fences_at()]
    }

    /// Whether some block may hold a torn page, as of this leaf.
    pub const fn has_suspects(&self, page: &[u8]) -> bool {
        page[self.area_bytes - FLAG_BYTES] & SUSPECTS != 0
    }

    /// Notes in a leaf with fences that some block may hold a torn page.
    pub const fn note_suspects(&self, page: &mut [u8]) {
        page[self.area_bytes - FLAG_BYTES] |= SUSPECTS;
    }

    /// The places of the records in the range at `rank`.
    pub fn owned(node: &Node<'_>, directory: &Directory<'_>, rank: usize) -> Range<usize> {
        let count = node.count();
        let is_below = |at: usize, rank: usize| directory.begins_above(rank, node.key(at));
        // Most leaves own all of their records, so the first and the last are looked at first.
        let place = |rank: usize, first: usize| {
            let (mut low, mut high, mut at) = (0, count, first);
            while low < high {
                if is_below(at, rank) {
                    low = at + 1
                } else {
                    high = at
                }
                at = low + (high - low) / 2;
            }
            low
        };
        let start = if rank == 0 { 0 } else { place(rank, 0) };
        let ends = rank + 1 < directory.len();
        let end = if ends { place(rank + 1, count.saturating_sub(1)) } else { count };
        start..end.max(start)
    }

    /// Trims a leaf: removes the records outside of `kept`.
    ///
    /// `kept` ends at the number of records or before.
    pub fn keep(&self, page: &mut [u8], kept: Range<usize>) {
        if kept.start > 0 {
            page.copy_within(self.shape.at(kept.start)..self.shape.at(kept.end), COUNT_BYTES);
        }
        page[..COUNT_BYTES].copy_from_slice(&(kept.len() as u16).to_le_bytes());
    }

    /// The place of the value at `index` in the page.
    pub const fn value(&self, index: usize) -> Range<usize> {
        let start = self.shape.at(index) + self.shape.key_bytes();
        start..start + self.shape.payload_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form::of(64, (2, 1), false);

    fn keys(node: &Node<'_>) -> [Option<u8>; 5] {
        core::array::from_fn(|at| (at < node.count()).then(|| node.key(at)[1]))
    }

    #[test]
    fn a_leaf_keeps_its_fences_and_what_lies_between_them() {
        let mut page = [0xA5; 64];
        FORM.begin(&mut page);
        FORM.set_fences(&mut page, (&[0, 2], Some(&[0, 9])));
        for (at, key) in [1u8, 3, 5, 7, 9].into_iter().enumerate() {
            FORM.node_mut(&mut page).unwrap().insert(at, &[0, key], &[key]);
        }
        let fences: Fences<'_> = (&[0, 2], Some(&[0, 9]));
        assert_eq!(FORM.fences(&page), Some(fences));
        let mut ram = [0; 20];
        let mut directory = Directory::new(&mut ram, 2, 9);
        for (rank, low) in [(1, 2), (2, 9)] {
            assert!(directory.insert(rank, &[0, low], None));
        }
        let node = FORM.node(&page).unwrap();
        let ranges = [0, 1, 2].map(|rank| Form::owned(&node, &directory, rank));
        assert_eq!(ranges, [0..1, 1..4, 4..5]);
        let [_, owned, _] = ranges;
        FORM.keep(&mut page, owned);
        assert_eq!(keys(&FORM.node(&page).unwrap()), [Some(3), Some(5), Some(7), None, None]);
        assert_eq!(&page[FORM.value(1)], [5]);
        assert_eq!(FORM.fences(&page), Some(fences));
    }

    #[test]
    fn a_range_without_a_key_is_no_leaf() {
        let mut page = [0; 64];
        FORM.begin(&mut page);
        FORM.set_fences(&mut page, (&[0, 0], None));
        assert!(FORM.fences(&page).is_some_and(|(_, high)| high.is_none()));
        for (low, high) in [(3, 3), (4, 3)] {
            FORM.set_fences(&mut page, (&[0, low], Some(&[0, high])));
            assert_eq!(FORM.fences(&page), None);
        }
        page[63] = 7;
        assert_eq!(FORM.fences(&page), None);
    }

    #[cfg(feature = "checkpoints")]
    #[test]
    fn a_trail_lies_between_the_records_and_the_fences() {
        const BYTES: usize = 300;
        let form = Form::of(BYTES, (2, 1), true);
        assert_eq!(form.told(), 2);
        let mut page = [0; BYTES];
        form.begin(&mut page);
        for at in 0..form.capacity() {
            form.node_mut(&mut page).unwrap().insert(at, &(at as u16).to_be_bytes(), &[7]);
        }
        form.set_fences(&mut page, (&[0, 2], Some(&[1, 9])));
        form.trail_mut(&mut page).fill(0xA5);
        assert_eq!(form.trail(&page), [0xA5; 8]);
        assert!(!form.has_suspects(&page));
        form.note_suspects(&mut page);
        assert!(form.has_suspects(&page));
        assert_eq!(form.fences(&page), Some((&[0, 2][..], Some(&[1, 9][..]))));
        let node = form.node(&page).unwrap();
        assert_eq!(node.count(), form.capacity());
        assert_eq!(node.key(form.capacity() - 1), (form.capacity() as u16 - 1).to_be_bytes());
    }
}
