//! Changes of leaves in place: one move of bytes, and a few items.
//!
//! A leaf is changed here only where its fields are wide enough and it has room for its items.
//! Every other change is passed to `encode.rs`. Nothing here allocates a slot for a new leaf.

use core::ops::Range;

use super::leaf::{Form, ITEMS, Leaf, UNITS};
use super::store::granules;
use super::{Compact, bits};
use crate::mapping::extent::{Extent, Piece, Run};

/// A leaf of fewer items is joined with a neighbour, if that has room.
const FEW: usize = 16;

/// Free granules that a slot may keep.
const SPARE: usize = 3;

/// Up to three items as words, in order, which take the place of others.
struct Made {
    words: [u64; 3],
    count: usize,
}

impl Made {
    const NONE: Made = Made { words: [0; 3], count: 0 };

    #[inline(always)]
    fn push(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.count) {
            *place = word;
            self.count += 1;
        }
    }
}

impl Compact<'_> {
    /// Gives `extent` new physical units, or none. There is room for the change.
    ///
    /// What this supersedes is passed to `old`.
    pub(super) fn change(&mut self, extent: Extent, new: Option<u32>, old: &mut dyn FnMut(Run)) {
        let piece = |part: Extent| Piece {
            logical: part.start,
            length: part.length,
            physical: new.map(|physical| physical + (part.start - extent.start)),
        };
        let mut start = extent.start;
        while start < extent.end() {
            let (at, leaf) = self.leaf_with(start);
            if extent.end() <= leaf.limit && leaf.form != Form::Units {
                self.change_items(at, &leaf, piece(Extent::between(start, extent.end())), old);
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
                last = self.leaf_with(end - 1).0;
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
                self.change_items(at, &leaf, new, old);
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
        let enough = self.allowance / 8;
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
    fn change_units(&mut self, at: usize, mut leaf: Leaf, new: Piece, old: &mut dyn FnMut(Run)) {
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
        let mut passed: Option<Run> = None;
        for unit in first..end {
            let logical = leaf.base + unit as u32;
            let was = leaf.unit(items, unit);
            let is = new.physical.map_or(none, |physical| physical + (logical - new.logical));
            breaks += usize::from(last_old.is_some_and(|last| is_break(last, was)));
            added += usize::from(last_new.is_some_and(|last| is_break(last, is)));
            (last_old, last_new) = (Some(was), Some(is));
            if was != none {
                match &mut passed {
                    Some(run) if run.physical + run.length == was => run.length += 1,
                    _ => {
                        passed.into_iter().for_each(&mut *old);
                        passed = Some(Run { logical, length: 1, physical: was });
                    }
                }
            }
            leaf.set_unit(items, unit, is);
        }
        passed.into_iter().for_each(old);
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
    fn change_items(&mut self, at: usize, leaf: &Leaf, new: Piece, old: &mut dyn FnMut(Run)) {
        let is_done = match leaf.form {
            Form::Runs => self.change_runs(at, leaf, new, old),
            _ => self.change_pieces(at, leaf, new, old),
        };
        if !is_done {
            self.encode(at, at, new, None);
        }
    }

    /// The same where items are runs; returns whether they could be changed in place.
    ///
    /// What is superseded was passed to `old` in both cases.
    fn change_runs(
        &mut self,
        at: usize,
        leaf: &Leaf,
        new: Piece,
        old: &mut dyn FnMut(Run),
    ) -> bool {
        let items = leaf.items(self.store.memory());
        let end = new.end();
        let mut made = Made::NONE;
        let mut fit = true;
        // What `new` becomes when it is joined with its neighbours.
        let mut joined = new;
        let mut right = None;
        let mut at_item = leaf.before(items, new.logical);
        let mut first = at_item;
        if let Some(left) = at_item.checked_sub(1) {
            let run = leaf.run(items, left);
            let kept = new.logical - run.logical;
            if let Some(over) = run.length.checked_sub(kept) {
                let physical = run.physical + kept;
                if over > 0 {
                    old(Run { logical: new.logical, length: over.min(new.length), physical });
                    right = run.from(end);
                }
                if new.physical == Some(physical) {
                    first = left;
                    joined.logical = run.logical;
                    joined.length += kept;
                    joined.physical = Some(run.physical);
                } else if over > 0 {
                    first = left;
                    fit &= leaf.fit(run.logical, kept);
                    made.push(leaf.run_word(run.logical, kept, run.physical));
                }
            }
        }
        if right.is_none() {
            while at_item < leaf.count {
                let run = leaf.run(items, at_item);
                if run.logical >= end {
                    if run.logical == end && new.physical.is_some() {
                        let is_next = joined.physical.map(|first| first + joined.length);
                        if is_next == Some(run.physical) {
                            joined.length += run.length;
                            at_item += 1;
                        }
                    }
                    break;
                }
                at_item += 1;
                let over = run.end().saturating_sub(end);
                old(Run { length: run.length - over, ..run });
                if over > 0 {
                    right = run.from(end);
                    break;
                }
            }
        }
        if let Some(physical) = joined.physical {
            if let Some(run) = right
                && physical + joined.length == run.physical
            {
                joined.length += run.length;
                right = None;
            }
            fit &= leaf.fit(joined.logical, joined.length);
            made.push(leaf.run_word(joined.logical, joined.length, physical));
        }
        if let Some(run) = right {
            fit &= leaf.fit(run.logical, run.length);
            made.push(leaf.run_word(run.logical, run.length, run.physical));
        }
        self.count(leaf.steps() + (at_item - first) as u64);
        fit && self.splice(at, leaf, first..at_item, &made)
    }

    /// The same where items are pieces, which tile the leaf.
    fn change_pieces(
        &mut self,
        at: usize,
        leaf: &Leaf,
        new: Piece,
        old: &mut dyn FnMut(Run),
    ) -> bool {
        let items = leaf.items(self.store.memory());
        let (end, none) = (new.end(), leaf.none());
        let physical = new.physical.unwrap_or(none);
        // Whether a piece that begins `by` units behind one with the number `from` continues it.
        let continues = |from: u32, by: u32, to: u32| match from == none {
            true => to == none,
            false => to != none && from.wrapping_add(by) == to,
        };
        let step = 1 << leaf.scale;
        let (mut made, mut fit) = (Made::NONE, true);
        let first = leaf.before(items, new.logical);
        let mut at_item = first;
        // The piece that is passed next: where it begins, and its number.
        let (mut begin, mut number) = match first.checked_sub(1) {
            Some(left) => leaf.begin(items, left),
            None => (new.logical, none),
        };
        if first == 0 || !continues(number, new.logical - begin, physical) {
            fit &= leaf.fit(new.logical, step);
            made.push(leaf.piece_word(new.logical, physical));
        }
        // The last piece that begins before the end reaches to it or behind it.
        loop {
            let (next, next_number) = match at_item < leaf.count {
                true => leaf.begin(items, at_item),
                false => (leaf.limit, none),
            };
            let (from, to) = (begin.max(new.logical), next.min(end));
            if number != none && from < to {
                number = number.wrapping_add(from - begin);
                begin = from;
                old(Run { logical: from, length: to - from, physical: number });
            }
            if next > end {
                let rest = match number == none {
                    true => none,
                    false => number.wrapping_add(end - begin),
                };
                if !continues(physical, new.length, rest) {
                    fit &= leaf.fit(end, step);
                    made.push(leaf.piece_word(end, rest));
                }
                break;
            }
            if next == end {
                if at_item < leaf.count && continues(physical, new.length, next_number) {
                    at_item += 1;
                }
                break;
            }
            at_item += 1;
            (begin, number) = (next, next_number);
        }
        self.count(leaf.steps() + (at_item - first) as u64);
        fit && self.splice(at, leaf, first..at_item, &made)
    }

    /// Replaces items of a leaf; returns whether it could: else nothing was changed.
    #[inline]
    fn splice(&mut self, at: usize, leaf: &Leaf, range: Range<usize>, made: &Made) -> bool {
        let mut leaf = *leaf;
        let count = leaf.count - range.len() + made.count;
        let stride = leaf.stride();
        let is_small = count < FEW && count < leaf.count && self.store.entries() > 1;
        if count > ITEMS || is_small {
            return false;
        }
        let needed = granules(count * stride);
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
        let behind = range.start + made.count;
        if range.end != behind {
            let moved = (leaf.count - range.end) * stride;
            bits::shift(bytes, range.end * stride, behind * stride, moved);
            for (at, &word) in (range.start..).zip(&made.words[..made.count]) {
                bits::put(bytes, at * stride, stride, word);
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
            for (at, &word) in (range.start..).zip(&made.words[..made.count]) {
                bits::put(bytes, at * stride, stride, word);
            }
        }
        true
    }
}
