//! Encoding leaves again: those that overflow, span leaves, or became small.
//!
//! The runs of all leaves that a change meets are decoded, changed, and divided into leaves of the
//! smallest form. Old slots are free before new ones are allocated, so no more room is needed than
//! the change was admitted with.

use core::ops::Range;

use super::leaf::{Form, HEADER, ITEMS, Leaf, SCALE_MAX, UNITS};
use super::store::{ENTRY, GRANULE, granules};
use super::{Compact, bits};
use crate::mapping::extent::{Extent, Piece, Run};

/// Runs of two full leaves, or of a few small ones, and those of a change.
const RUNS: usize = 3 * ITEMS;

/// Two small neighbours are joined if they have no more items than this.
const JOINED: usize = 48;

/// The most runs of a leaf whose items may need more than a word: with holes, 64 pieces.
const WIDE: usize = 31;

/// The most runs of a leaf where [`WIDE`] of them span so much that each needs
/// more than a word.
const WIDEST: usize = 16;

/// How a leaf is stored.
struct Shape {
    form: Form,
    /// Bits of all items.
    bits: usize,
    count: usize,
    scale: u32,
    start_bits: u32,
    length_bits: u32,
}

/// Runs of the leaves that are encoded again.
struct Runs {
    runs: [Run; RUNS],
    count: usize,
}

impl Runs {
    #[inline]
    fn push(&mut self, piece: Piece) {
        if let Some(run) = piece.run() {
            self.push_run(run);
        }
    }

    #[inline]
    fn push_run(&mut self, run: Run) {
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

    /// Pushes the items of a range. Only the first can continue what was pushed before.
    #[inline]
    fn extend(&mut self, leaf: &Leaf, items: &[u8], range: Range<usize>) {
        match leaf.form {
            Form::Units => return range.for_each(|at| self.push(leaf.item(items, at))),
            Form::Pieces => return self.extend_by_pieces(leaf, items, range),
            Form::Runs | Form::Free => {}
        }
        let mut range = range;
        if let Some(first) = range.next() {
            self.push(leaf.item(items, first));
        }
        let places = self.runs.get_mut(self.count..self.count + range.len()).unwrap_or(&mut []);
        self.count += places.len();
        for (place, at) in places.iter_mut().zip(range) {
            *place = leaf.run(items, at);
        }
    }

    /// The same of a leaf of pieces: where one begins, the one before it ends.
    fn extend_by_pieces(&mut self, leaf: &Leaf, items: &[u8], range: Range<usize>) {
        let (mut logical, mut physical) = leaf.begin(items, range.start);
        for at in range.start + 1..=range.end {
            let next = match at < leaf.count {
                true => leaf.begin(items, at),
                false => (leaf.limit, 0),
            };
            if physical != leaf.none() {
                let length = next.0.saturating_sub(logical);
                self.push_run(Run { logical, length, physical });
            }
            (logical, physical) = next;
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
        mut old: Option<&mut dyn FnMut(Run)>,
    ) {
        let (first, last) = self.with_neighbour(first, last, new);
        let mut runs = Runs { runs: [Run { logical: 0, length: 0, physical: 0 }; RUNS], count: 0 };
        let cut = Extent::new(new.logical, new.length);
        let mut is_placed = false;
        for leaf in (first..=last).map(|at| self.leaf(at)) {
            let items = leaf.items(self.store.memory());
            // Only the last item that begins before the change can reach into it.
            let mut at = leaf.before(items, cut.start.clamp(leaf.base, leaf.limit));
            at = at.saturating_sub(1);
            runs.extend(&leaf, items, 0..at);
            while at < leaf.fields() {
                let item = leaf.item(items, at);
                if item.logical >= cut.end() {
                    break;
                }
                at += 1;
                if item.end() <= cut.start {
                    runs.push(item);
                    continue;
                }
                if let Some(old) = &mut old {
                    item.within(cut).and_then(|part| part.run()).into_iter().for_each(&mut **old);
                }
                if item.logical < cut.start {
                    runs.push(Piece { length: cut.start - item.logical, ..item });
                }
                if let Some(right) = item.within(Extent::between(cut.end(), u32::MAX)) {
                    runs.push(new);
                    is_placed = true;
                    runs.push(right);
                    break;
                }
            }
            if at < leaf.fields() && !is_placed {
                runs.push(new);
                is_placed = true;
            }
            runs.extend(&leaf, items, at..leaf.fields());
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
    /// Where memory is short, a leaf that overflows shares its items with a neighbour, so that
    /// leaves are fuller; but not where runs rise, as these leave full leaves behind them.
    fn with_neighbour(&self, first: usize, last: usize, new: Piece) -> (usize, usize) {
        let items = |at: usize| {
            let leaf = self.leaf(at);
            if leaf.form == Form::Units { RUNS } else { leaf.count }
        };
        let is_last = |at: usize| {
            let leaf = self.leaf(at);
            let items = leaf.items(self.store.memory());
            let last = leaf.count.checked_sub(1).map(|last| leaf.item(items, last));
            last.is_none_or(|last| last.end() <= new.end())
        };
        let count = items(first) + if first == last { 1 } else { 1 + items(last) };
        let overflows = first == last && (ITEMS..RUNS).contains(&(count - 1));
        let overflows = overflows && self.is_short() && !is_last(first);
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
        self.forget();
        let part = Extent::between(self.leaf(first).base, self.leaf(last).limit);
        for at in first..=last {
            self.allowance -= self.leaf(at).allowance();
            self.store.free(at);
        }
        let is_last = runs.last().is_some_and(|run| run.end() == new.end());
        let size = self.runs_of_a_leaf(runs, part, is_last);
        let leaves = runs.len().div_ceil(size).max(1);
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

    /// How many of `runs` each leaf gets that takes the place of `part`, at least 1.
    ///
    /// Where the last run was written just now (`is_last`), leaves stay full, because runs rise;
    /// else they are divided evenly.
    fn runs_of_a_leaf(&self, runs: &[Run], part: Extent, is_last: bool) -> usize {
        let all = runs.len().max(1);
        let length = runs.iter().fold(0, |most, run| run.length.max(most));
        let bits = bits::width(part.length) + bits::width(length) + self.physical_bits;
        let flat =
            (part.length <= UNITS).then(|| part.length as usize * self.physical_bits as usize);
        if flat.is_some_and(|flat| flat <= all * bits as usize) {
            return all;
        }
        let divided = |most: usize| match is_last {
            _ if all <= most => all,
            true => most,
            false => all.div_ceil(all.div_ceil(most - most / 8)),
        };
        if bits <= u64::BITS {
            return divided(ITEMS);
        }
        // Runs may need more than a word. Fewer of them span less, and take fewer bits each.
        let sizes = [ITEMS, WIDE, WIDEST].map(divided);
        let fitting = sizes.into_iter().filter_map(|size| {
            let granules = self.granules_of_leaves(runs, part, size)?;
            Some((granules * GRANULE + all.div_ceil(size) * ENTRY, size))
        });
        fitting.min().map_or(divided(WIDE), |(_, size)| size)
    }

    /// Granules of leaves of `size` runs each; `None` if one of them could not be stored.
    fn granules_of_leaves(&self, runs: &[Run], part: Extent, size: usize) -> Option<usize> {
        let mut base = part.start;
        let mut sum = 0;
        for leaf in (0..runs.len()).step_by(size) {
            let next = runs.get(leaf + size).map_or(part.end(), |run| run.logical);
            let end = (leaf + size).min(runs.len());
            sum += granules(self.shape(&runs[leaf..end], base, next)?.bits);
            base = next;
        }
        Some(sum)
    }

    /// The smallest form of a leaf of `runs` whose part is from `base` to `limit`, if there is one.
    fn shape(&self, runs: &[Run], base: u32, limit: u32) -> Option<Shape> {
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
        let start_bits = bits::width((span - 1) >> scale).max(1);
        let length_bits = bits::width((length >> scale).max(1) - 1);
        let (as_pieces, physical) = (start_bits + self.physical_bits, self.physical_bits as usize);
        let as_runs = as_pieces + length_bits;
        let forms = [
            (
                runs.len() <= ITEMS && as_runs <= u64::BITS,
                runs.len() * as_runs as usize,
                Form::Runs,
            ),
            (pieces <= ITEMS, pieces * as_pieces as usize, Form::Pieces),
            (span <= UNITS, span as usize * physical, Form::Units),
        ];
        let smallest = forms.into_iter().filter(|form| form.0).min_by_key(|form| form.1);
        smallest.map(|(_, bits, form)| Shape {
            form,
            bits,
            count: if form == Form::Runs { runs.len() } else { pieces },
            scale: if form == Form::Units { 0 } else { scale },
            start_bits: if form == Form::Units { 0 } else { start_bits },
            length_bits: if form == Form::Runs { length_bits } else { 0 },
        })
    }

    /// Writes a leaf of `runs`, whose part ends at `limit`, in its smallest form.
    pub(super) fn write_leaf(&mut self, at: usize, runs: &[Run], limit: u32) {
        let Some(shape) = self.shape(runs, self.store.base(at), limit) else { return };
        self.store.allocate(at, granules(shape.bits));
        let mut leaf = self.leaf(at);
        leaf.limit = limit;
        leaf.form = shape.form;
        leaf.count = shape.count;
        self.allowance += leaf.allowance();
        leaf.scale = shape.scale;
        leaf.start_bits = shape.start_bits;
        leaf.length_bits = shape.length_bits;
        self.store.set_header(at, &leaf);
        self.store.note_moved(shape.bits.div_ceil(8));
        self.write_items(&leaf, runs);
    }

    /// Writes the items of a leaf whose header is written. They fill its slot from the begin on.
    fn write_items(&mut self, leaf: &Leaf, runs: &[Run]) {
        let end = leaf.granules * GRANULE - HEADER;
        let items = leaf.items_mut(self.store.memory_mut());
        let mut bits = bits::Writer::new(items.get_mut(..end).unwrap_or(&mut []));
        let stride = leaf.stride() as u32;
        if leaf.form == Form::Runs {
            for run in runs {
                bits.push(leaf.run_word(run.logical, run.length, run.physical), stride);
            }
            return bits.finish();
        }
        let mut put = |piece: Piece| {
            if leaf.form == Form::Pieces {
                let physical = piece.physical.unwrap_or(leaf.none());
                return bits.push(leaf.piece_word(piece.logical, physical), stride);
            }
            for unit in 0..piece.length {
                let physical = piece.physical.map_or(leaf.none(), |physical| physical + unit);
                bits.push(u64::from(physical), stride);
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
        self.forget();
        let mut units = [0; UNITS as usize];
        let mut count = 0;
        for leaf in leaves {
            let items = leaf.items(self.store.memory());
            for field in 0..leaf.fields() {
                units[count] = leaf.unit(items, field);
                count += 1;
            }
        }
        let middle = leaves[0].fields();
        let piece = |at: usize| Piece {
            logical: at as u32,
            length: 1,
            physical: (units[at] != leaves[0].none()).then_some(units[at]),
        };
        let continues = piece(middle - 1).continues_to(&piece(middle));
        self.allowance -= leaves[0].allowance() + leaves[1].allowance();
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
        self.allowance += leaf.allowance();
        self.store.set_header(at, &leaf);
        self.store.note_moved(size.div_ceil(8));
        let items = leaf.items_mut(self.store.memory_mut());
        for (field, &unit) in units[..count].iter().enumerate() {
            leaf.set_unit(items, field, unit);
        }
    }
}
