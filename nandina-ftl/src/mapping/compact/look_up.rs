//! Look-ups: the pieces of an extent, in order.
//!
//! There is a loop for each form of a leaf. Nothing here changes a leaf.

use super::Compact;
use super::leaf::{Form, Leaf};
use crate::mapping::extent::{Extent, Piece};

impl Compact<'_> {
    /// Passes the pieces of `extent`, cut to it, in order; holes too, where `HOLES`.
    #[inline]
    pub(super) fn visit<const HOLES: bool>(&self, extent: Extent, mut pass: impl FnMut(Piece)) {
        let (mut at, mut leaf) = self.leaf_with(extent.start);
        let mut unit = extent.start;
        while extent.end() > leaf.limit && at + 1 < self.store.entries() {
            self.visit_leaf::<HOLES>(&leaf, unit, leaf.limit, &mut pass);
            unit = leaf.limit;
            at += 1;
            leaf = self.leaf(at);
        }
        self.visit_leaf::<HOLES>(&leaf, unit, extent.end(), &mut pass);
    }

    /// The same for the units from `unit` to `end`, all of one leaf.
    #[inline]
    fn visit_leaf<const HOLES: bool>(
        &self,
        leaf: &Leaf,
        unit: u32,
        end: u32,
        pass: &mut impl FnMut(Piece),
    ) {
        let items = leaf.items(self.store.memory());
        self.count(match leaf.form {
            Form::Units => pass_units(leaf, items, unit, end, pass),
            Form::Pieces => pass_pieces(leaf, items, unit, end, pass),
            Form::Runs | Form::Free => pass_runs::<HOLES>(leaf, items, unit, end, pass),
        });
    }
}

/// Passes the units from `unit` to `end`, joined where they continue one another.
///
/// Returns how many items were read, as the others do.
#[inline]
fn pass_units(leaf: &Leaf, items: &[u8], unit: u32, end: u32, pass: &mut impl FnMut(Piece)) -> u64 {
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
    u64::from(end - unit)
}

#[inline]
fn pass_pieces(
    leaf: &Leaf,
    items: &[u8],
    unit: u32,
    end: u32,
    pass: &mut impl FnMut(Piece),
) -> u64 {
    let mut field = leaf.before(items, unit + 1).saturating_sub(1);
    let (mut unit, mut read) = (unit, leaf.steps());
    let (mut start, mut physical) = leaf.begin(items, field);
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
        unit = behind;
        (start, physical) = next;
    }
    read
}

#[inline]
fn pass_runs<const HOLES: bool>(
    leaf: &Leaf,
    items: &[u8],
    unit: u32,
    end: u32,
    pass: &mut impl FnMut(Piece),
) -> u64 {
    let mut field = leaf.before(items, unit + 1).saturating_sub(1);
    let (mut unit, mut read) = (unit, leaf.steps());
    while unit < end && field < leaf.count {
        let run = leaf.run(items, field);
        field += 1;
        if run.logical >= end {
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
        pass(Piece { logical, length: unit - logical, physical });
    }
    if HOLES && unit < end {
        pass(Piece::hole(Extent::between(unit, end)));
    }
    read
}
