//! Changes that continue the one before: often one item becomes longer, and that is all.
//!
//! The item is looked for when a change continues another one, and kept for those that may come
//! next, until a change does not. Nothing here makes room.

use super::leaf::Form;
use super::{Compact, bits};
use crate::mapping::extent::{Extent, Run};

/// The end of the last change.
#[derive(Default)]
pub(super) struct End {
    logical: u32,
    /// The physical unit behind the change, if it mapped any.
    physical: Option<u32>,
    /// The item that ends there, if it is known.
    item: Option<Item>,
}

/// An item at the end of a change.
#[derive(Clone, Copy)]
struct Item {
    number: usize,
    /// Its first unit.
    logical: u32,
    /// Where what is alike behind it ends: a hole, or the next piece.
    next: u32,
}

impl End {
    /// Whether such a change begins there, in both spaces.
    #[inline(always)]
    pub fn is_followed_by(&self, extent: Extent, new: Option<u32>) -> bool {
        extent.start == self.logical && new == self.physical
    }

    /// Notes a change that was made, and forgets the item.
    #[inline(always)]
    pub fn set(&mut self, extent: Extent, new: Option<u32>) {
        self.logical = extent.end();
        self.physical = new.map(|physical| physical.wrapping_add(extent.length));
        self.item = None;
    }
}

impl Compact<'_> {
    /// Makes a change that follows the last one.
    #[inline(never)]
    pub(super) fn follow(&mut self, extent: Extent, new: Option<u32>, old: &mut dyn FnMut(Run)) {
        let item = self.lengthen(extent, new, old);
        self.end.set(extent, new);
        self.end.item = item;
        match item {
            Some(_) => self.tidy(),
            None => self.change_anywhere(extent, new, old),
        }
    }

    /// Makes such a change, if that changes one item; else changes nothing.
    ///
    /// Returns the item that became longer.
    fn lengthen(
        &mut self,
        extent: Extent,
        new: Option<u32>,
        old: &mut dyn FnMut(Run),
    ) -> Option<Item> {
        let (physical, end) = (new?, extent.end());
        let item = self.end.item.or_else(|| self.item_at_end(extent.start))?;
        if end >= item.next {
            return None;
        }
        let leaf = self.leaf_with(item.logical).1;
        let items = leaf.items_mut(self.store.memory_mut());
        let stride = leaf.stride();
        if leaf.form == Form::Runs {
            let length = end - item.logical;
            if !leaf.fit(item.logical, length) {
                return None;
            }
            let first = physical.wrapping_sub(extent.start - item.logical);
            let word = leaf.run_word(item.logical, length, first);
            bits::put(items, item.number * stride, stride, word);
        } else {
            if !leaf.fits(end) {
                return None;
            }
            // What is behind begins later.
            let behind = item.number + 1;
            let mut number = leaf.begin(items, behind).1;
            if number != leaf.none() {
                old(Run { logical: extent.start, length: extent.length, physical: number });
                number += extent.length;
            }
            bits::put(items, behind * stride, stride, leaf.piece_word(end, number));
        }
        Some(item)
    }

    /// The item that ends at `end`, unless its leaf is flat.
    fn item_at_end(&self, end: u32) -> Option<Item> {
        let leaf = self.leaf_with(end - 1).1;
        if leaf.form == Form::Units {
            return None;
        }
        self.count(leaf.steps());
        let items = leaf.items(self.store.memory());
        let number = leaf.last_from(items, end - 1);
        let begin = |at: usize| match at < leaf.count {
            true => leaf.item(items, at).logical,
            false => leaf.limit,
        };
        let item = leaf.item(items, number);
        // Behind a run is a hole; of pieces it is the next one.
        let behind = number + 1 + usize::from(leaf.form == Form::Pieces);
        let next = if behind <= leaf.count { begin(behind) } else { end };
        (item.end() == end).then_some(Item { number, logical: item.logical, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{Mapping, Piece, Space};

    const SPACE: Space = Space { logical: 1 << 13, physical: 1 << 24 };

    /// A number below `end`, and the next state.
    fn below(state: &mut u64, end: u32) -> u32 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((*state >> 33) % u64::from(end)) as u32
    }

    #[test]
    fn series_of_changes_map_and_supersede_what_a_vector_says() {
        // In sectors, in pages of 8 of them, and in both; over holes, runs and pieces.
        for (units, most, writes) in [([1; 4], 5, 9), ([8; 4], 20, 7), ([8, 8, 1, 8], 9, 8)] {
            let mut memory = [0; 80_000];
            let mut map = Compact::new(SPACE, &mut memory).unwrap();
            let mut vector = [None; SPACE.logical as usize];
            let (mut state, mut next) = (1, 0);
            for series in 0..2000 {
                let unit = units[series % units.len()];
                let mut start = below(&mut state, SPACE.logical / unit) * unit;
                // Some get units that continue those of other series.
                let mut physical = if series % 3 > 0 { next } else { (1 << 23) + start };
                for step in 0..1 + below(&mut state, 7) {
                    // Now and then the second ends within a page.
                    let unit = if series % 40 < 2 && step == 1 { 1 } else { unit };
                    let length = (1 + below(&mut state, most)) * unit;
                    let length = length.min(SPACE.logical - start);
                    if length == 0 {
                        break;
                    }
                    let extent = Extent::new(start, length);
                    let part = &mut vector[start as usize..extent.end() as usize];
                    let mut units = 0;
                    let see = &mut |run: Run| {
                        for unit in 0..run.length {
                            let at = run.logical + unit - start;
                            assert_eq!(part[at as usize], Some(run.physical + unit));
                            units += 1;
                        }
                    };
                    let new = (series % 10 < writes).then_some(physical);
                    match new {
                        Some(physical) => map.update(extent, physical, see).unwrap(),
                        None => map.remove(extent, see).unwrap(),
                    }
                    assert_eq!(units, part.iter().flatten().count());
                    for (at, unit) in (0..).zip(part) {
                        *unit = new.map(|physical| physical + at);
                    }
                    start += length;
                    physical += length;
                }
                // The next series continues nothing.
                next += 2049;
                map.check().unwrap();
            }
            let mut found = [None; SPACE.logical as usize];
            map.walk(&mut |run| {
                for unit in 0..run.length {
                    found[(run.logical + unit) as usize] = Some(run.physical + unit);
                }
            });
            assert!(found == vector);
        }
    }

    #[test]
    fn a_series_may_end_within_a_page_of_a_leaf_of_pages() {
        let mut memory = [0; 80_000];
        let mut map = Compact::new(SPACE, &mut memory).unwrap();
        // Pages in turn with two at once, so that leaves that were divided have pieces.
        for at in 0..60 {
            map.update(Extent::new(24 * at, 8), 1000 * at, &mut |_| {}).unwrap();
            map.update(Extent::new(24 * at + 8, 16), 100_000 + 1000 * at, &mut |_| {}).unwrap();
        }
        map.update(Extent::new(96, 8), 90_000, &mut |_| {}).unwrap();
        map.update(Extent::new(104, 4), 90_008, &mut |_| {}).unwrap();
        let mut units = [None; 16];
        let see = &mut |piece: Piece| {
            for unit in 0..piece.length {
                let at = piece.logical + unit - 96;
                units[at as usize] = piece.physical.map(|physical| physical + unit);
            }
        };
        map.look_up(Extent::new(96, 16), see).unwrap();
        assert_eq!([units[11], units[12]], [Some(90_011), Some(104_004)]);
        map.check().unwrap();
    }
}
