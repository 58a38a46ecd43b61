//! Changes of leaves in place: one move of bytes, and a few items.
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

/// Up to three pieces, in order; those that continue one another are one.
struct Items {
    items: [Piece; 3],
    count: usize,
}

impl Items {
    #[inline]
    fn push(&mut self, item: Piece) {
        if let Some(last) = self.items[..self.count].last_mut()
            && last.continues_to(&item)
        {
            last.length += item.length;
        } else if let Some(place) = self.items.get_mut(self.count) {
            *place = item;
            self.count += 1;
        }
    }
}

/// The part of `item` behind `cut`, which overlaps it.
#[inline]
pub(super) fn behind(item: &Piece, cut: Extent) -> Option<Piece> {
    let length = item.end().checked_sub(cut.end()).filter(|&length| length > 0)?;
    let physical = item.physical.map(|physical| physical + (cut.end() - item.logical));
    Some(Piece { logical: cut.end(), length, physical })
}

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
            if extent.end() <= leaf.limit && leaf.form != Form::Units {
                self.change_items(at, leaf, piece(Extent::between(start, extent.end())), old);
                break;
            }
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
                    && !(self.store.is_small() && self.is_short())
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
        self.store.tidy(self.enough());
    }

    /// Bytes up to which memory is not short.
    #[inline]
    fn enough(&self) -> usize {
        let enough = self.allowance / 4;
        // A dense map is kept below a flat one.
        if enough < self.space.logical as usize * 3 / 4 { enough } else { 0 }
    }

    /// Whether memory is worth more than time.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.store.bytes().used > self.enough()
    }

    /// Whether memory is so far from short that a slot that grows gets a granule more.
    fn is_ample(&self) -> bool {
        self.store.bytes().used < self.enough() / 16 * 15
    }

    /// Changes units of a flat leaf.
    fn change_units(&mut self, at: usize, mut leaf: Leaf, new: Piece, old: &mut Joined<'_>) {
        let items = leaf.items_mut(self.store.memory_mut());
        let (first, end) = ((new.logical - leaf.base) as usize, (new.end() - leaf.base) as usize);
        let none = leaf.none();
        let is_break = |last: u32, next: u32| match last == none {
            true => next != none,
            false => next == none || next != last + 1,
        };
        // Pieces are counted by where a unit does not continue the one before it.
        let (mut breaks, mut added) = (0, 0);
        let mut last_old = (first > 0).then(|| leaf.unit(items, first - 1));
        let mut last_new = last_old;
        for unit in first..end {
            let logical = leaf.base + unit as u32;
            let was = leaf.unit(items, unit);
            let is = new.physical.map_or(none, |physical| physical + (logical - new.logical));
            breaks += usize::from(last_old.is_some_and(|last| is_break(last, was)));
            added += usize::from(last_new.is_some_and(|last| is_break(last, is)));
            (last_old, last_new) = (Some(was), Some(is));
            old.push(leaf.tile(logical, 1, was));
            leaf.set_unit(items, unit, is);
        }
        if new.end() < leaf.limit {
            let next = leaf.unit(items, end);
            breaks += usize::from(last_old.is_some_and(|last| is_break(last, next)));
            added += usize::from(last_new.is_some_and(|last| is_break(last, next)));
        }
        self.count(u64::from(new.length));
        if breaks == added {
            return;
        }
        self.allowance -= leaf.allowance();
        leaf.count = leaf.count + added - breaks;
        self.allowance += leaf.allowance();
        self.store.set_meta(&leaf);
        // Items of three quarters of its size would do, of which three times 64 may be encoded.
        let item = leaf.physical_bits + 2 * bits::width(UNITS);
        let flat = leaf.fields() * leaf.stride();
        let is_small = leaf.count * item as usize <= flat * 3 / 4 && leaf.count <= 2 * ITEMS;
        if added < breaks && is_small {
            self.encode(at, at, new, None);
        }
    }

    /// Changes items of a leaf whose part of the space has all of `new`.
    fn change_items(&mut self, at: usize, leaf: Leaf, new: Piece, old: &mut Joined<'_>) {
        let cut = Extent::new(new.logical, new.length);
        let items = leaf.items(self.store.memory());
        let is_item = new.physical.is_some() || leaf.form == Form::Pieces;
        let mut made = Items { items: [new; 3], count: 0 };
        let mut right = None;
        let mut at_item = leaf.before(items, cut.start);
        let mut first = at_item;
        if let Some(left) = at_item.checked_sub(1) {
            let item = leaf.item(items, left);
            if item.end() > cut.start {
                first = left;
                item.within(cut).into_iter().for_each(|part| old.push(part));
                made.push(Piece { length: cut.start - item.logical, ..item });
                right = behind(&item, cut);
            } else if is_item && item.continues_to(&new) {
                first = left;
                made.push(item);
            }
        }
        if is_item {
            made.push(new);
        }
        if right.is_none() {
            while at_item < leaf.count {
                let item = leaf.item(items, at_item);
                if item.logical >= cut.end() {
                    if is_item && new.continues_to(&item) {
                        right = Some(item);
                        at_item += 1;
                    }
                    break;
                }
                at_item += 1;
                right = behind(&item, cut);
                match right {
                    None => old.push(item),
                    Some(_) => {
                        item.within(cut).into_iter().for_each(|part| old.push(part));
                        break;
                    }
                }
            }
        }
        if let Some(right) = right {
            made.push(right);
        }
        self.count(leaf.steps() + (at_item - first) as u64);
        if !self.splice(at, leaf, (first, at_item), &made.items[..made.count]) {
            self.encode(at, at, new, None);
        }
    }

    /// Replaces items of a leaf; returns whether it could: else nothing was changed.
    #[inline]
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
        if count > ITEMS || is_small || items.iter().any(|item| !leaf.holds(item)) {
            return false;
        }
        if needed > leaf.granules {
            let units = leaf.part().length;
            let flat = units as usize * leaf.physical_bits as usize;
            if units <= UNITS && flat < count * stride {
                return false;
            }
            self.store.grow(at, needed + usize::from(self.is_ample()));
            leaf = self.leaf(at);
        }
        let bytes = leaf.items_mut(self.store.memory_mut());
        let behind_new = first + items.len();
        if behind != behind_new {
            let moved = (leaf.count - behind) * stride;
            bits::shift(bytes, behind * stride, behind_new * stride, moved);
            for (at, item) in (first..).zip(items) {
                leaf.set_item(bytes, at, item);
            }
            self.allowance -= leaf.allowance();
            leaf.count = count;
            self.allowance += leaf.allowance();
            self.store.note_moved(moved.div_ceil(8));
            self.store.set_meta(&leaf);
            if needed + SPARE < leaf.granules {
                self.store.shrink(at, &mut leaf, needed);
            }
        } else {
            for (at, item) in (first..).zip(items) {
                leaf.set_item(bytes, at, item);
            }
        }
        true
    }
}
