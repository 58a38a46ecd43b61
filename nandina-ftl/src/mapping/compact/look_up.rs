//! Look-ups: the pieces of an extent, in order.
//!
//! There is a loop for each form of a leaf. Nothing here changes a leaf.

use super::Compact;
use super::leaf::{Form, Leaf};
use crate::mapping::extent::{Extent, Piece};

impl Compact<'_> {
    /// Passes the pieces of `extent`, cut to it, in order.
    #[inline(always)]
    pub(super) fn visit(&self, extent: Extent, pass: &mut impl FnMut(Piece)) {
        // Often it is in the last piece of the look-up before.
        let piece = self.piece.get();
        let begin = extent.start.wrapping_sub(piece.logical);
        if begin < piece.length && extent.length <= piece.length - begin {
            self.count(1);
            let physical = piece.physical.map(|physical| physical.wrapping_add(begin));
            return pass(Piece { logical: extent.start, length: extent.length, physical });
        }
        let (at, leaf) = self.leaf_with(extent.start);
        if extent.end() <= leaf.limit {
            let last = self.visit_leaf::<true>(&leaf, extent.start, extent.end(), pass);
            self.piece.set(last);
        } else {
            self.visit_from::<true>(at, extent, pass);
        }
    }

    /// The same from the leaf `at` on, which has the first unit; holes too, where `HOLES`.
    #[inline(never)]
    pub(super) fn visit_from<const HOLES: bool>(
        &self,
        mut at: usize,
        extent: Extent,
        pass: &mut impl FnMut(Piece),
    ) {
        let mut unit = extent.start;
        while unit < extent.end() && at < self.store.entries() {
            let leaf = self.leaf(at);
            let end = leaf.limit.min(extent.end());
            self.visit_leaf::<HOLES>(&leaf, unit, end, pass);
            unit = end;
            at += 1;
        }
    }

    /// The same for the units from `unit` to `end`, all of one leaf.
    ///
    /// Returns the last piece, not cut at `end`, as far as it is known; else an empty one.
    #[inline(always)]
    fn visit_leaf<const HOLES: bool>(
        &self,
        leaf: &Leaf,
        unit: u32,
        end: u32,
        pass: &mut impl FnMut(Piece),
    ) -> Piece {
        let items = leaf.items(self.store.memory());
        let (read, last) = if leaf.form == Form::Pieces {
            pass_pieces(leaf, items, unit, end, pass)
        } else if leaf.form == Form::Units {
            pass_units(leaf, items, unit, end, pass)
        } else {
            pass_runs::<HOLES>(leaf, items, unit, end, pass)
        };
        self.count(read);
        last
    }
}

/// Passes the units from `unit` to `end`, joined where they continue one another.
///
/// Returns how many items were read, and the last piece, as the others do.
#[inline]
fn pass_units(
    leaf: &Leaf,
    items: &[u8],
    unit: u32,
    end: u32,
    pass: &mut impl FnMut(Piece),
) -> (u64, Piece) {
    let at = |unit: u32| leaf.tile(unit, 1, leaf.unit(items, (unit - leaf.base) as usize));
    let mut piece = at(unit);
    for next in (unit + 1..end).map(at) {
        if piece.continues_to(&next) {
            piece.length += 1;
        } else {
            pass(piece);
            piece = next;
        }
    }
    pass(piece);
    (u64::from(end - unit), piece)
}

#[inline(always)]
fn pass_pieces(
    leaf: &Leaf,
    items: &[u8],
    unit: u32,
    end: u32,
    pass: &mut impl FnMut(Piece),
) -> (u64, Piece) {
    let mut field = leaf.last_from(items, unit);
    let (mut unit, mut read) = (unit, leaf.steps());
    let (mut start, mut physical) = leaf.begin(items, field);
    let mut last = Piece::NONE;
    while unit < end {
        field += 1;
        read += 1;
        let next = match field < leaf.count {
            true => leaf.begin(items, field),
            false => (leaf.limit, 0),
        };
        // Rising starts let no piece be empty; of damaged ones none is passed twice.
        let behind = next.0.clamp(unit + 1, end.max(unit + 1));
        let number = (physical != leaf.none()).then(|| physical.wrapping_add(unit - start));
        pass(Piece { logical: unit, length: behind - unit, physical: number });
        last = Piece { logical: unit, length: next.0.max(behind) - unit, physical: number };
        unit = behind;
        (start, physical) = next;
    }
    (read, last)
}

#[inline(always)]
fn pass_runs<const HOLES: bool>(
    leaf: &Leaf,
    items: &[u8],
    unit: u32,
    end: u32,
    pass: &mut impl FnMut(Piece),
) -> (u64, Piece) {
    let mut field = leaf.last_from(items, unit);
    let (mut unit, mut read) = (unit, leaf.steps());
    let (mut last, mut next) = (Piece::NONE, leaf.limit);
    while unit < end && field < leaf.count {
        let run = leaf.run(items, field);
        field += 1;
        if run.logical >= end {
            next = run.logical;
            break;
        }
        if run.end() <= unit {
            continue;
        }
        read += 1;
        if HOLES && run.logical > unit {
            pass(Piece::hole(Extent::between(unit, run.logical)));
        }
        let logical = run.logical.max(unit);
        unit = run.end().min(end);
        let physical = Some(run.physical + (logical - run.logical));
        last = Piece { logical, length: run.end() - logical, physical };
        pass(Piece { logical, length: unit - logical, physical });
    }
    if HOLES && unit < end {
        pass(Piece::hole(Extent::between(unit, end)));
        last = Piece::hole(Extent::between(unit, next));
    }
    (read, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{Mapping, Space};

    #[test]
    fn a_look_up_in_the_last_piece_finds_what_a_change_has_made_of_it() {
        let mut memory = [0; 40_000];
        let space = Space { logical: 1 << 20, physical: 1 << 20 };
        let mut map = Compact::new(space, &mut memory).unwrap();
        let places = |map: &mut Compact<'_>, start, length| {
            let (mut found, mut next) = ([None; 4], 0);
            let see = &mut |piece: Piece| {
                for unit in 0..piece.length {
                    found[next] = piece.physical.map(|physical| physical + unit);
                    next += 1;
                }
            };
            map.look_up(Extent::new(start, length), see).unwrap();
            found
        };
        // A hole, and a unit of it.
        assert_eq!(places(&mut map, 50, 2), [None; 4]);
        assert_eq!(places(&mut map, 51, 1), [None; 4]);
        map.update(Extent::new(40, 100), 1000, &mut |_| {}).unwrap();
        assert_eq!(places(&mut map, 51, 1), [Some(1011), None, None, None]);
        // In a run forwards, backwards, and across its end.
        assert_eq!(places(&mut map, 53, 2), [Some(1013), Some(1014), None, None]);
        assert_eq!(places(&mut map, 45, 1), [Some(1005), None, None, None]);
        assert_eq!(places(&mut map, 139, 2), [Some(1099), None, None, None]);
        assert_eq!(places(&mut map, 139, 1), [Some(1099), None, None, None]);
        map.remove(Extent::new(139, 1), &mut |_| {}).unwrap();
        assert_eq!(places(&mut map, 138, 2), [Some(1098), None, None, None]);
    }
}
