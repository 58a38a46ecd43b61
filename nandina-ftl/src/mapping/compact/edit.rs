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
        // From the unit before the change to the one behind it, where there are such units.
        let first = new.logical - u32::from(new.logical > leaf.base);
        let (mut breaks, mut last, mut left, mut right) = (0, None::<Piece>, None, None);
        leaf.scan(self.store.memory(), (first - leaf.base) as usize, |unit| {
            breaks += usize::from(last.is_some_and(|last| !last.continues_to(&unit)));
            last = Some(unit);
            if unit.logical < new.logical {
                left = last;
            } else if unit.logical < new.end() {
                old.push(unit);
            } else {
                right = last;
            }
            right.is_none()
        });
        for unit in new.logical..new.end() {
            let physical = new.physical.map(|physical| physical + (unit - new.logical));
            let piece = Piece { logical: unit, length: 1, physical };
            leaf.set_item(self.store.memory_mut(), (unit - leaf.base) as usize, piece);
        }
        self.count(u64::from(new.length));
        // Pieces are counted by where a unit does not continue the one before it.
        leaf.count += usize::from(left.is_some_and(|left| !left.continues_to(&new)));
        leaf.count += usize::from(right.is_some_and(|right| !new.continues_to(&right)));
        leaf.count -= breaks;
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
            if item.logical >= cut.end() {
                // The item behind the change.
                if is_item && new.continues_to(&item) {
                    right = Some(item);
                    behind += 1;
                }
                return false;
            }
            behind += 1;
            let begins_before = item.logical < cut.start;
            let ends_behind = item.end() > cut.end();
            if !begins_before && !ends_behind {
                old.push(item);
                return true;
            }
            item.within(cut).into_iter().for_each(|part| old.push(part));
            if begins_before {
                left = item.within(Extent::between(0, cut.start));
            }
            if ends_behind {
                right = item.within(Extent::between(cut.end(), u32::MAX));
            }
            !ends_behind
        });
        self.count(read + (behind - first) as u64);
        // Pieces that continue one another are one item.
        let (mut items, mut count) = ([new; 3], 0);
        let mut put = |item: Piece| match count {
            1.. if items[count - 1].continues_to(&item) => items[count - 1].length += item.length,
            _ => {
                items[count] = item;
                count += 1;
            }
        };
        if let Some(left) = left {
            put(left);
        }
        if is_item {
            put(new);
        }
        if let Some(right) = right {
            put(right);
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
