//! Changes of leaves in place: one move of bits, and a few items.
//!
//! A leaf is changed here only where its fields are wide enough and it has room for its items.
//! Every other change is passed to `encode.rs`. Nothing here allocates a slot for a new leaf.

use super::leaf::{Form, ITEMS, Leaf, UNITS};
use super::store::granules;
use super::{Compact, bits};
use crate::mapping::extent::{Extent, Joined, Piece};

/// A leaf of fewer items is joined with a neighbour, if that has room.
const FEW: usize = 16;

/// Free granules that a slot may keep.
const SPARE: usize = 3;

impl Compact<'_> {
    /// Gives `extent` new physical units, or none. There is room for the change.
    ///
    /// What this supersedes is passed to `old`.
    pub(super) fn change(&mut self, extent: Extent, new: Option<u32>, old: &mut Joined<'_>) {
        let piece = |part: Extent| Piece {
            logical: part.start,
            length: part.length,
            physical: new.map(|physical| physical + (part.start - extent.start)),
        };
        let mut start = extent.start;
        while start < extent.end() {
            let at = self.leaf_with(start);
            let leaf = self.leaf(at);
            let is_covered = start == leaf.base && leaf.limit <= extent.end();
            if leaf.form == Form::Units && !is_covered {
                // A flat leaf keeps its part of the space; the change is divided at its end.
                let part = Extent::between(start, leaf.limit.min(extent.end()));
                self.change_units(at, leaf, piece(part), old);
                start = part.end();
                continue;
            }
            let (mut last, mut end) = (at, extent.end());
            if end > leaf.limit {
                last = self.leaf_with(end - 1);
                if last == at + 1
                    && !is_covered
                    && !self.store.is_small()
                    && extent.end() < self.leaf(last).limit
                {
                    // Neither leaf is covered: a run that is divided between them takes an item
                    // more, but no leaf is encoded again.
                    (last, end) = (at, leaf.limit);
                }
            }
            if end > leaf.limit {
                let last_leaf = self.leaf(last);
                if last_leaf.form == Form::Units && last_leaf.limit > end {
                    end = last_leaf.base;
                    last -= 1;
                }
            }
            let new = piece(Extent::between(start, end));
            if last == at && leaf.form != Form::Units {
                self.change_items(at, leaf, new, old);
            } else {
                self.encode(at, last, new, Some(&mut *old));
            }
            start = end;
        }
        self.store.tidy();
    }

    /// Changes units of a flat leaf.
    fn change_units(&mut self, at: usize, mut leaf: Leaf, new: Piece, old: &mut Joined<'_>) {
        let breaks = breaks(self.store.memory(), &leaf, new);
        for unit in new.logical..new.end() {
            let field = (unit - leaf.base) as usize;
            old.push(leaf.item(self.store.memory(), field));
            let physical = new.physical.map(|physical| physical + (unit - new.logical));
            let piece = Piece { logical: unit, length: 1, physical };
            leaf.set_item(self.store.memory_mut(), field, piece);
        }
        self.count(u64::from(new.length));
        leaf.count = leaf.count + self::breaks(self.store.memory(), &leaf, new) - breaks;
        self.store.set_header(at, &leaf);
        // Items of three quarters of its size would do, of which three times 64 may be encoded.
        let item = leaf.physical_bits + 2 * bits::width(UNITS);
        let flat = leaf.fields() * leaf.stride();
        if leaf.count * item as usize <= flat * 3 / 4 && leaf.count <= 2 * ITEMS {
            self.encode(at, at, new, None);
        }
    }

    /// Changes items of a leaf whose part of the space has all of `new`.
    fn change_items(&mut self, at: usize, leaf: Leaf, new: Piece, old: &mut Joined<'_>) {
        let memory = self.store.memory();
        let cut = Extent::new(new.logical, new.length);
        // From the item on that begins before the change, if there is one.
        let (mut first, read) = leaf.find(memory, cut.start.saturating_sub(1).max(leaf.base));
        let mut behind = first;
        let is_item = new.physical.is_some() || leaf.form == Form::Pieces;
        let (mut left, mut right) = (None, None);
        leaf.scan(memory, first, |item| {
            if item.end() <= cut.start {
                if is_item && item.continues_to(&new) {
                    left = Some(item);
                } else {
                    first += 1;
                }
                behind += 1;
                return true;
            }
            let Some(superseded) = item.within(cut) else {
                // The item behind the change.
                if is_item && new.continues_to(&item) {
                    right = Some(item);
                    behind += 1;
                }
                return false;
            };
            old.push(superseded);
            left = left.or(item.within(Extent::between(0, cut.start)));
            right = item.within(Extent::between(cut.end(), u32::MAX));
            behind += 1;
            right.is_none()
        });
        self.count(read + (behind - first) as u64);
        let (mut items, mut count) = ([new; 3], 0usize);
        for item in [left, is_item.then_some(new), right].into_iter().flatten() {
            match count.checked_sub(1).map(|last| &mut items[last]) {
                Some(last) if last.continues_to(&item) => last.length += item.length,
                _ => {
                    items[count] = item;
                    count += 1;
                }
            }
        }
        if !self.splice(at, leaf, (first, behind), &items[..count]) {
            self.encode(at, at, new, None);
        }
    }

    /// Replaces items of a leaf; returns whether it could: else nothing was changed.
    fn splice(
        &mut self,
        at: usize,
        mut leaf: Leaf,
        (first, behind): (usize, usize),
        items: &[Piece],
    ) -> bool {
        let count = leaf.count - (behind - first) + items.len();
        let stride = leaf.stride();
        let needed = granules(count * stride);
        let is_small = count < FEW && count < leaf.count && self.store.entries() > 1;
        if count > ITEMS || is_small || items.iter().any(|&item| !leaf.holds(item)) {
            return false;
        }
        if needed > leaf.granules {
            let units = leaf.part().length;
            let flat = units as usize * leaf.physical_bits as usize;
            if units <= UNITS && flat < count * stride {
                return false;
            }
            self.store.grow(at, needed);
            leaf = self.leaf(at);
        }
        let field = |at: usize| leaf.bit + at * stride;
        if behind != first + items.len() {
            let moved = (leaf.count - behind) * stride;
            bits::shift(self.store.memory_mut(), field(behind), field(first + items.len()), moved);
            self.store.note_moved(moved.div_ceil(8));
        }
        for (at, &item) in (first..).zip(items) {
            leaf.set_item(self.store.memory_mut(), at, item);
        }
        leaf.count = count;
        self.store.set_header(at, &leaf);
        if needed + SPARE < leaf.granules {
            self.store.shrink(at, &mut leaf, needed);
        }
        true
    }
}

/// How often a unit does not continue the one before, from `new` to behind it.
fn breaks(memory: &[u8], leaf: &Leaf, new: Piece) -> usize {
    let unit = |unit: u32| leaf.item(memory, (unit - leaf.base) as usize);
    let first = new.logical.max(leaf.base + 1);
    let last = new.end().min(leaf.limit - 1);
    (first..=last).filter(|&at| !unit(at - 1).continues_to(&unit(at))).count()
}
