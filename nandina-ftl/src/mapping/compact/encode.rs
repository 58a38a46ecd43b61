//! Encoding leaves again: those that overflow, span leaves, or became small.
//!
//! The runs of all leaves that a change meets are decoded, changed, and divided into leaves of the
//! smallest form. Old slots are free before new ones are allocated, so no more room is needed than
//! the change was admitted with.

use super::leaf::{Form, ITEMS, Leaf, SCALE_MAX, UNITS};
use super::store::granules;
use super::{Compact, bits};
use crate::mapping::extent::{Extent, Joined, Piece, Run};

/// Runs of two full leaves, or of a few small ones, and those of a change.
const RUNS: usize = 3 * ITEMS;

/// Two small neighbours are joined if they have no more items than this.
const JOINED: usize = 48;

/// The most items of a leaf that was divided.
const DIVIDED: usize = 56;

/// Runs of the leaves that are encoded again.
struct Runs {
    runs: [Run; RUNS],
    count: usize,
}

impl Runs {
    #[inline]
    fn push(&mut self, piece: Piece) {
        let Some(run) = piece.run() else { return };
        let last = self.count.checked_sub(1).map(|last| &mut self.runs[last]);
        match last {
            Some(last) if last.continues_to(&run) => last.length += run.length,
            _ => {
                if let Some(place) = self.runs.get_mut(self.count) {
                    *place = run;
                    self.count += 1;
                }
            }
        }
    }
}

impl Compact<'_> {
    /// Encodes the leaves `first..=last` again, with `new` in place of what it covers.
    ///
    /// What `new` supersedes is passed to `old`, unless that was done before.
    pub(super) fn encode(
        &mut self,
        first: usize,
        last: usize,
        new: Piece,
        mut old: Option<&mut Joined<'_>>,
    ) {
        let (first, last) = self.with_neighbour(first, last, new);
        let mut runs = Runs { runs: [Run { logical: 0, length: 0, physical: 0 }; RUNS], count: 0 };
        let cut = Extent::new(new.logical, new.length);
        let mut is_placed = false;
        for leaf in (first..=last).map(|at| self.leaf(at)) {
            let memory = self.store.memory();
            leaf.scan(memory, 0, |item| {
                if item.end() <= cut.start {
                    runs.push(item);
                    return true;
                }
                if item.logical < cut.end() {
                    if let (Some(old), Some(superseded)) = (&mut old, item.within(cut)) {
                        old.push(superseded);
                    }
                    item.within(Extent::between(0, cut.start))
                        .into_iter()
                        .for_each(|left| runs.push(left));
                    if item.end() <= cut.end() {
                        return true;
                    }
                }
                if !is_placed {
                    runs.push(new);
                    is_placed = true;
                }
                item.within(Extent::between(cut.end(), u32::MAX))
                    .into_iter()
                    .for_each(|right| runs.push(right));
                true
            });
            self.count(leaf.fields() as u64);
        }
        if !is_placed {
            runs.push(new);
        }
        let Runs { runs, count } = &runs;
        self.write_leaves(first, last, &runs[..*count], new);
    }

    /// The leaves `first..=last`, and a neighbour if items are few or too many.
    ///
    /// A leaf that overflows shares its items with a neighbour, so that leaves are fuller; but not
    /// where runs rise, as these leave full leaves behind them.
    fn with_neighbour(&self, first: usize, last: usize, new: Piece) -> (usize, usize) {
        let items = |at: usize| {
            let leaf = self.leaf(at);
            if leaf.form == Form::Units { RUNS } else { leaf.count }
        };
        let is_last = |at: usize| {
            let leaf = self.leaf(at);
            let last = leaf.count.checked_sub(1).map(|last| leaf.item(self.store.memory(), last));
            last.is_none_or(|last| last.end() <= new.end())
        };
        let count = items(first) + if first == last { 1 } else { 1 + items(last) };
        let overflows = first == last && (ITEMS..RUNS).contains(&(count - 1)) && !is_last(first);
        let most = if overflows { ITEMS } else { JOINED.saturating_sub(count) };
        let before = first.checked_sub(1).map_or(RUNS, items);
        let behind = if last + 1 < self.store.entries() { items(last + 1) } else { RUNS };
        if before <= most && before <= behind {
            (first - 1, last)
        } else if behind <= most {
            (first, last + 1)
        } else {
            (first, last)
        }
    }

    /// Writes leaves of `runs` in place of the leaves `first..=last`.
    fn write_leaves(&mut self, first: usize, last: usize, runs: &[Run], new: Piece) {
        let part = Extent::between(self.leaf(first).base, self.leaf(last).limit);
        (first..=last).for_each(|at| self.store.free(at));
        let mut size = runs.len();
        if size > ITEMS && !self.is_flat_smaller(runs, part) {
            // Behind a run that rises, leaves stay full; else they are divided evenly.
            let is_last = runs.last().is_some_and(|run| run.end() == new.end());
            size = if is_last { ITEMS } else { size.div_ceil(size.div_ceil(DIVIDED)) };
        }
        let leaves = runs.len().div_ceil(size.max(1)).max(1);
        self.store.replace_entries(first, last + 1, leaves);
        self.store.set_base(first, part.start);
        for at in 1..leaves {
            self.store.set_base(first + at, runs[at * size].logical);
        }
        for at in 0..leaves {
            let end = ((at + 1) * size).min(runs.len());
            let limit = runs.get(end).filter(|_| at + 1 < leaves).map(|run| run.logical);
            self.write_leaf(first + at, &runs[at * size..end], limit.unwrap_or(part.end()));
        }
        if leaves == 1 {
            self.join_units(first);
            if first > 0 {
                self.join_units(first - 1);
            }
        }
    }

    /// Whether a flat leaf is smaller than two leaves of the items.
    fn is_flat_smaller(&self, runs: &[Run], part: Extent) -> bool {
        let length = runs.iter().map(|run| run.length).max().unwrap_or(0);
        let item = bits::width(part.length) + bits::width(length) + self.physical_bits;
        let flat = part.length as usize * self.physical_bits as usize;
        part.length <= UNITS && flat <= runs.len() * item as usize
    }

    /// Writes a leaf of `runs`, whose part ends at `limit`, in its smallest form.
    pub(super) fn write_leaf(&mut self, at: usize, runs: &[Run], limit: u32) {
        let base = self.store.base(at);
        let span = limit - base;
        let mut end = base;
        let (mut pieces, mut length, mut bounds) = (0, 0, 0);
        for run in runs {
            pieces += 1 + usize::from(run.logical > end);
            end = run.end();
            length = length.max(run.length);
            // Ends of items are starts of pieces; where lengths are multiples too, ends are.
            bounds |= (run.logical - base) | run.length;
        }
        pieces += usize::from(end < limit);
        let scale = bounds.trailing_zeros().min(SCALE_MAX);
        let start_bits = bits::width((span - 1) >> scale);
        let length_bits = bits::width((length >> scale).max(1) - 1);
        let (start, physical) = (start_bits as usize, self.physical_bits as usize);
        let as_runs = runs.len() * (start + length_bits as usize + physical);
        let as_pieces = pieces * (start + physical);
        let as_units = span as usize * physical;
        let fits = |form: Form| match form {
            Form::Runs => runs.len() <= ITEMS,
            Form::Pieces => pieces <= ITEMS,
            _ => span <= UNITS,
        };
        let forms = [(as_runs, Form::Runs), (as_pieces, Form::Pieces), (as_units, Form::Units)];
        let smallest = forms.into_iter().filter(|&(_, form)| fits(form)).min_by_key(|form| form.0);
        let Some((size, form)) = smallest else { return };
        self.store.allocate(at, granules(size));
        let mut leaf = self.leaf(at);
        leaf.limit = limit;
        leaf.form = form;
        leaf.count = if form == Form::Runs { runs.len() } else { pieces };
        leaf.scale = if form == Form::Units { 0 } else { scale };
        leaf.start_bits = if form == Form::Units { 0 } else { start_bits };
        leaf.length_bits = if form == Form::Runs { length_bits } else { 0 };
        self.store.set_header(at, &leaf);
        self.store.note_moved(size.div_ceil(8));
        self.write_items(&leaf, runs);
    }

    /// Writes the items of a leaf whose header is written. They fill its slot from the begin on.
    fn write_items(&mut self, leaf: &Leaf, runs: &[Run]) {
        let mut bits = bits::Writer::new(self.store.memory_mut(), leaf.bit);
        if leaf.form == Form::Runs {
            runs.iter().for_each(|&run| leaf.append(&mut bits, run.into()));
            return bits.finish();
        }
        let mut put = |piece: Piece| {
            let parts = if leaf.form == Form::Units { piece.length } else { 1 };
            for part in 0..parts {
                let physical = piece.physical.map(|physical| physical + part);
                leaf.append(&mut bits, Piece { physical, ..piece });
            }
        };
        let mut unit = leaf.base;
        for &run in runs {
            if run.logical > unit {
                put(Piece::hole(Extent::between(unit, run.logical)));
            }
            put(run.into());
            unit = run.end();
        }
        if unit < leaf.limit {
            put(Piece::hole(Extent::between(unit, leaf.limit)));
        }
        bits.finish();
    }

    /// Joins two neighbouring flat leaves that are small enough.
    fn join_units(&mut self, at: usize) {
        if at + 1 >= self.store.entries() {
            return;
        }
        let leaves = [self.leaf(at), self.leaf(at + 1)];
        let span = leaves[1].limit - leaves[0].base;
        if span > UNITS || leaves.iter().any(|leaf| leaf.form != Form::Units) {
            return;
        }
        let none = Piece { logical: 0, length: 1, physical: None };
        let mut units = [none; UNITS as usize];
        let mut count = 0;
        for leaf in leaves {
            for field in 0..leaf.fields() {
                units[count] = leaf.item(self.store.memory(), field);
                count += 1;
            }
        }
        let continues = units[leaves[0].fields() - 1].continues_to(&units[leaves[0].fields()]);
        let limit = leaves[1].limit;
        self.store.free(at);
        self.store.free(at + 1);
        self.store.replace_entries(at, at + 2, 1);
        self.store.set_base(at, leaves[0].base);
        let size = count * self.physical_bits as usize;
        self.store.allocate(at, granules(size));
        let mut leaf = self.leaf(at);
        leaf.limit = limit;
        leaf.form = Form::Units;
        leaf.count = leaves[0].count + leaves[1].count - usize::from(continues);
        self.store.set_header(at, &leaf);
        self.store.note_moved(size.div_ceil(8));
        for (field, &unit) in units[..count].iter().enumerate() {
            leaf.set_item(self.store.memory_mut(), field, unit);
        }
    }
}
