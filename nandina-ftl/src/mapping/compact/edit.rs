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

/// Bits up to which holes are worth less than time, however few runs there are: 1,000 runs of 62.
const FEW_RUNS: usize = 62_000;

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

/// Whether a unit with the number `next` does not continue the one before it, with `last`.
#[inline(always)]
fn is_break(none: u32, last: u32, next: u32) -> bool {
    let is_next = next == last.wrapping_add(u32::from(last != none));
    !is_next | ((last == none) != (next == none))
}

impl Compact<'_> {
    /// Gives `extent` new physical units, or none. There is room for the change.
    ///
    /// What this supersedes is passed to `old`.
    #[inline]
    pub(super) fn change(&mut self, extent: Extent, new: Option<u32>, old: &mut dyn FnMut(Run)) {
        self.piece.set(Piece::NONE);
        if self.end.is_followed_by(extent, new) {
            return self.follow(extent, new, old);
        }
        self.end.set(extent, new);
        self.change_anywhere(extent, new, old);
    }

    /// The same where the last change may have been anywhere.
    #[inline(always)]
    pub(super) fn change_anywhere(
        &mut self,
        extent: Extent,
        new: Option<u32>,
        old: &mut dyn FnMut(Run),
    ) {
        let (at, leaf) = self.leaf_with(extent.start);
        let piece = Piece { logical: extent.start, length: extent.length, physical: new };
        let is_inside = extent.end() <= leaf.limit;
        if is_inside && leaf.form != Form::Units {
            self.change_items(at, &leaf, piece, old);
        } else if is_inside && extent.length < leaf.part().length {
            self.change_units(at, &leaf, piece, old);
        } else {
            self.change_leaves(at, &leaf, extent, new, old);
        }
        self.tidy();
    }

    /// Ends a change.
    #[inline(always)]
    pub(super) fn tidy(&mut self) {
        self.store.tidy(self.sparing(self.allowance.max(FEW_RUNS) / 8));
    }

    /// The same where the change may cover leaves, or meet several; the first was found.
    #[inline(never)]
    fn change_leaves(
        &mut self,
        at: usize,
        leaf: &Leaf,
        extent: Extent,
        new: Option<u32>,
        old: &mut dyn FnMut(Run),
    ) {
        let piece = |part: Extent| Piece {
            logical: part.start,
            length: part.length,
            physical: new.map(|physical| physical + (part.start - extent.start)),
        };
        let mut start = extent.start;
        let mut found = Some((at, *leaf));
        while start < extent.end() {
            let (at, leaf) = found.take().unwrap_or_else(|| self.leaf_with(start));
            if extent.end() <= leaf.limit && leaf.form != Form::Units {
                self.change_items(at, &leaf, piece(Extent::between(start, extent.end())), old);
                break;
            }
            let is_covered = start == leaf.base && leaf.limit <= extent.end();
            if leaf.form == Form::Units && !is_covered {
                // A flat leaf keeps its part of the space; the change is divided at its end.
                let part = Extent::between(start, leaf.limit.min(extent.end()));
                self.change_units(at, &leaf, piece(part), old);
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
    }

    /// Bytes up to which memory is not short.
    #[inline]
    fn enough(&self) -> usize {
        self.sparing(self.allowance / 8)
    }

    /// As many bytes, or none where a dense map has to be kept below a flat one.
    #[inline]
    fn sparing(&self, bytes: usize) -> usize {
        if bytes < self.space.logical as usize * 3 / 4 { bytes } else { 0 }
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
    #[inline(never)]
    fn change_units(&mut self, at: usize, leaf: &Leaf, new: Piece, old: &mut dyn FnMut(Run)) {
        let items = leaf.items_mut(self.store.memory_mut());
        let (none, end) = (leaf.none(), leaf.part().length as usize - 1);
        let first = (new.logical - leaf.base) as usize;
        let mut is = new.physical.unwrap_or(none);
        // Pieces are counted by where a unit does not continue the one before it.
        let mut count = leaf.count;
        let mut passed = Run { logical: 0, length: 0, physical: 0 };
        for (unit, logical) in (first..).zip(new.logical..new.end()) {
            let was = leaf.unit(items, unit);
            leaf.set_unit(items, unit, is);
            if unit > 0 {
                let last = leaf.unit(items, unit - 1);
                count += usize::from(is_break(none, last, is));
                count -= usize::from(is_break(none, last, was));
            }
            if unit < end {
                let next = leaf.unit(items, unit + 1);
                count += usize::from(is_break(none, is, next));
                count -= usize::from(is_break(none, was, next));
            }
            if was != none {
                let next = Run { logical, length: 1, physical: was };
                if passed.continues_to(&next) {
                    passed.length += 1;
                } else {
                    if passed.length > 0 {
                        old(passed);
                    }
                    passed = next;
                }
            }
            is += u32::from(is != none);
        }
        if passed.length > 0 {
            old(passed);
        }
        self.count(u64::from(new.length));
        if count != leaf.count {
            self.recount(at, leaf, count, new);
        }
    }

    /// Notes the pieces of a flat leaf, and encodes it as items if they became few.
    fn recount(&mut self, at: usize, leaf: &Leaf, count: usize, new: Piece) {
        let was = leaf.count;
        let leaf = Leaf { count, ..*leaf };
        self.allowance = self.allowance + leaf.allowance() - was * leaf.allowance_of_item();
        self.store.set_meta(&leaf);
        // Items of three quarters of its size would do, of which three times 64 may be encoded.
        let item = leaf.physical_bits + 2 * bits::width(UNITS);
        let flat = leaf.fields() * leaf.stride();
        let is_small = leaf.count * item as usize <= flat * 3 / 4 && leaf.count <= 2 * ITEMS;
        if count < was && is_small {
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
        let left = leaf.last_from(items, new.logical.saturating_sub(1).max(leaf.base));
        let mut at_item = left;
        let run = leaf.run(items, left);
        if run.logical < new.logical && leaf.count > 0 {
            at_item += 1;
        }
        let mut first = at_item;
        if first > left {
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
        let (mut made, mut fit) = (Made::NONE, true);
        // The first piece begins with the leaf.
        let is_first = new.logical == leaf.base;
        let first = if is_first { 0 } else { leaf.last_from(items, new.logical - 1) + 1 };
        let mut at_item = first;
        // What is passed next: where it begins, and its number.
        let (mut begin, mut number) = (new.logical, none);
        let mut is_joined = false;
        if let Some(left) = first.checked_sub(1) {
            let (left, left_number) = leaf.begin(items, left);
            is_joined = continues(left_number, begin - left, physical);
            if left_number != none {
                number = left_number.wrapping_add(begin - left);
            }
        }
        if !is_joined {
            fit &= leaf.fits(new.logical);
            made.push(leaf.piece_word(new.logical, physical));
        }
        // The last piece that begins before the end reaches to it or behind it.
        loop {
            let (next, next_number) = match at_item < leaf.count {
                true => leaf.begin(items, at_item),
                false => (leaf.limit, none),
            };
            let to = if next < end { next } else { end };
            if (number != none) & (begin < to) {
                old(Run { logical: begin, length: to - begin, physical: number });
            }
            if next < end {
                at_item += 1;
                (begin, number) = (next, next_number);
                continue;
            }
            if next > end {
                let rest = match number == none {
                    true => none,
                    false => number.wrapping_add(end - begin),
                };
                if !continues(physical, new.length, rest) {
                    fit &= leaf.fits(end);
                    made.push(leaf.piece_word(end, rest));
                }
            } else if at_item < leaf.count && continues(physical, new.length, next_number) {
                at_item += 1;
            }
            break;
        }
        self.count(leaf.steps() + (at_item - first) as u64);
        fit && self.splice(at, leaf, first..at_item, &made)
    }

    /// Replaces items of a leaf; returns whether it could: else nothing was changed.
    #[inline(always)]
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
            let allowance = leaf.allowance_of_item();
            self.allowance = self.allowance + count * allowance - leaf.count * allowance;
            leaf.count = count;
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
