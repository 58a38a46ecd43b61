//! Leaves that are written again: divided, joined, or as they are.
//!
//! The records of one leaf, or of two neighbours, are written to new sectors, those of the lowest
//! keys first. Each new leaf takes its range from the old ones when it commits, so a cut in between
//! leaves the upper rest where it was, and there is nothing to undo. The old sectors are free then.

use core::ops::Range;

use super::directory::Leaf;
use super::head::Head;
use super::leaves::SectorLeaves;
use super::merge::{Pending, Place, Span};
use super::pool::Use;
use super::write::Writing;
use crate::engine::KEY_BYTES_MAX;
use crate::error::{Damage, Fault};
use crate::flash::Flash;

/// A leaf is moved for wear alone if others were erased this much more often.
const WEAR_GAP: u32 = 3;

/// And by this part of the most erases of all sectors: later few moves suffice.
const WEAR_GAP_PART: u32 = 16;

/// The most leaves into which one is divided at once.
pub const PIECES_MAX: usize = 16;

/// The leaves that are written again, and the change that comes with them.
struct Sources<'s> {
    spans: &'s [Span],
    pending: Option<&'s Pending<'s>>,
    /// In whose range the change is.
    owner: usize,
}

/// Where a piece begins.
///
/// It is small, because there are several on the stack while leaves are written.
#[derive(Clone, Copy)]
struct Start {
    sorted_at: u16,
    logged_at: u8,
    /// The source, and whether the pending change comes before, or in another source.
    flags: u8,
}

/// The flag of a start in the second source.
const IN_SECOND: u8 = 1;

/// The flag of a start behind the pending change, or in another source.
const IS_TAKEN: u8 = 2;

impl Start {
    const fn new(place: Place, flags: u8) -> Self {
        Self { sorted_at: place.sorted, logged_at: place.logged, flags }
    }

    const fn place(&self) -> Place {
        Place { sorted: self.sorted_at, logged: self.logged_at }
    }

    const fn source(&self) -> usize {
        (self.flags & IN_SECOND) as usize
    }

    /// The change that is to come in the source in which the piece begins.
    fn pending_of<'s>(&self, sources: &Sources<'s>) -> Option<&'s Pending<'s>> {
        let is_to_come = self.source() == sources.owner && self.flags & IS_TAKEN == 0;
        sources.pending.filter(|_| is_to_come)
    }
}

impl Sources<'_> {
    /// How many records come before a piece.
    fn before(&self, piece: usize, pieces: usize) -> usize {
        let expected: usize = self.spans.iter().map(|span| usize::from(span.leaf.live)).sum();
        if piece == 0 { 0 } else { (piece * expected / pieces).max(piece) }
    }
}

impl<F: Flash> SectorLeaves<'_, F> {
    /// Writes one or two leaves again as `pieces` leaves, with a pending change.
    ///
    /// Their logs are settled.
    pub(super) fn write_again(
        &mut self,
        ranks: Range<usize>,
        pieces: usize,
        pending: Option<&Pending<'_>>,
    ) -> Result<(), Fault<F::Error>> {
        self.replace(ranks, pieces, pending, true)
    }

    /// Writes a leaf elsewhere whose sector may be torn; nothing is programmed there.
    pub(super) fn write_copy(&mut self, rank: usize) -> Result<(), Fault<F::Error>> {
        self.replace(rank..rank + 1, 1, None, false)
    }

    /// As [`write_again`](Self::write_again), and it `marks` the old leaves or not.
    #[inline(never)]
    fn replace(
        &mut self,
        ranks: Range<usize>,
        pieces: usize,
        pending: Option<&Pending<'_>>,
        marks: bool,
    ) -> Result<(), Fault<F::Error>> {
        let (first, count) = (ranks.start, ranks.len());
        let mut spans = [Span::NONE; 2];
        let sum = self.read_spans(ranks, &mut spans)?;
        let spans = &spans[..count];
        let owner = count - 1;
        let is_below = |change: &Pending<'_>| change.key < self.directory.low(first + owner);
        let owner = if pending.is_some_and(is_below) { 0 } else { owner };
        let sources = Sources { spans, pending, owner };
        let mut starts = [Start::new(spans[0].begin, 0); PIECES_MAX];
        let starts = &mut starts[..pieces];
        let total = self.divide(&sources, starts)?;
        let has_log = spans[0].end.logged > 0 || pending.is_some();
        // A copy of sorted records alone has their checksum.
        let is_copy = count == 1 && pieces == 1 && !has_log && !spans[0].leaf.is_trimmed;
        let sum = sum.filter(|_| is_copy);
        if count == 2 {
            self.directory.remove(first + 1);
        }
        for (piece, start) in starts.iter().enumerate() {
            let next = starts.get(piece + 1);
            let end = if next.is_some() { sources.before(piece + 1, pieces) } else { total };
            let records = end - sources.before(piece, pieces);
            if records > self.form.capacity() {
                let sector = spans[0].leaf.sector;
                return Err(self.cells.damage(sector, 0, Damage::NodeTooFull));
            }
            if let Some(next) = next {
                self.end_before(first + piece, &sources, next)?;
            }
            self.write_piece(first + piece, &sources, start, records, sum)?;
        }
        for span in spans {
            if marks {
                self.mark_replaced(span.leaf.sector)?;
            } else {
                self.pool.set(span.leaf.sector, Use::Free);
            }
        }
        Ok(())
    }

    /// Reads what one or two leaves have that are written again.
    ///
    /// Returns the checksum of the sorted records of the last one.
    fn read_spans(
        &mut self,
        ranks: Range<usize>,
        spans: &mut [Span; 2],
    ) -> Result<Option<u32>, Fault<F::Error>> {
        *spans = [self.span(ranks.start)?; 2];
        let mut sum = None;
        for (span, rank) in spans.iter_mut().zip(ranks) {
            sum = self.verify(rank)?;
            *span = self.span(rank)?;
        }
        Ok(sum)
    }

    /// Ends the range at `rank` where the next piece begins.
    ///
    /// That has an entry in the directory from then on.
    #[inline(never)]
    fn end_before(
        &mut self,
        rank: usize,
        sources: &Sources<'_>,
        next: &Start,
    ) -> Result<(), Fault<F::Error>> {
        let span = &sources.spans[next.source()];
        self.sort(&span.leaf)?;
        let mut key = [0; KEY_BYTES_MAX];
        let key = &mut key[..self.form.key_bytes];
        self.key_at(span, next.place(), next.pending_of(sources), key)?;
        self.insert(rank + 1, key, span.leaf)
    }

    /// Inserts a leaf into the directory.
    fn insert(&mut self, rank: usize, low: &[u8], leaf: Leaf) -> Result<(), Fault<F::Error>> {
        if self.directory.insert(rank, low, leaf) {
            return Ok(());
        }
        Err(self.cells.damage(leaf.sector, 0, Damage::DirectoryTooSmall))
    }

    /// Finds where the pieces begin, and how many records there are.
    #[inline(never)]
    fn divide(
        &mut self,
        sources: &Sources<'_>,
        starts: &mut [Start],
    ) -> Result<usize, Fault<F::Error>> {
        let pieces = starts.len();
        let (mut total, mut piece, mut bound) = (0, 1, sources.before(1, pieces));
        for (source, span) in sources.spans.iter().enumerate() {
            self.sort(&span.leaf)?;
            let mut at = span.begin;
            let mut pending = sources.pending.filter(|_| source == sources.owner);
            loop {
                let flags = source as u8 | if pending.is_none() { IS_TAKEN } else { 0 };
                let start = Start::new(at, flags);
                if self.next_item(span, &mut at, &mut pending)?.is_none() {
                    break;
                }
                if piece < pieces && total == bound {
                    starts[piece] = start;
                    piece += 1;
                    bound = sources.before(piece, pieces);
                }
                total += 1;
            }
        }
        if piece < pieces {
            return Err(self.cells.damage(sources.spans[0].leaf.sector, 0, Damage::NodeChanged));
        }
        Ok(total)
    }

    /// Writes one piece, whose entry is in the directory.
    #[inline(never)]
    fn write_piece(
        &mut self,
        rank: usize,
        sources: &Sources<'_>,
        start: &Start,
        count: usize,
        sum: Option<u32>,
    ) -> Result<(), Fault<F::Error>> {
        let mut writing = Writing::NONE;
        self.begin_leaf(&mut writing, rank, count)?;
        self.add_all(&mut writing, sources, start, count)?;
        self.commit(&mut writing, sum)?;
        self.directory.set(rank, Leaf::new(writing.sector(), count as u16));
        Ok(())
    }

    /// Adds the records of a piece.
    #[inline(never)]
    fn add_all(
        &mut self,
        writing: &mut Writing,
        sources: &Sources<'_>,
        start: &Start,
        mut count: usize,
    ) -> Result<(), Fault<F::Error>> {
        let first = start.source();
        for (source, span) in sources.spans.iter().enumerate().skip(first) {
            self.sort(&span.leaf)?;
            let (mut at, mut pending) = if source == first {
                (start.place(), start.pending_of(sources))
            } else {
                (span.begin, sources.pending.filter(|_| source == sources.owner))
            };
            while count > 0 {
                let Some(item) = self.next_item(span, &mut at, &mut pending)? else { break };
                self.add(writing, span, item, sources.pending)?;
                count -= 1;
            }
        }
        Ok(())
    }

    /// Checks the sorted records of a leaf before they are written again.
    ///
    /// Rot would get a checksum that is right otherwise.
    #[inline(never)]
    pub(super) fn verify(&mut self, rank: usize) -> Result<Option<u32>, Fault<F::Error>> {
        let leaf = self.directory.leaf(rank);
        if let Some(sum) = self.cells.committed(leaf.sector, self.form.marks_at())?
            && self.sorted_is_whole(leaf.sector, leaf.sorted.into(), sum)?
        {
            return Ok(Some(sum));
        }
        Err(self.cells.damage(leaf.sector, self.form.marks_at(), Damage::Checksum))
    }

    /// Which leaves are written again, and as how many.
    ///
    /// The leaf at `rank`, which has `live` records then, is divided, joined or renewed. `None` if
    /// there is no room.
    #[inline(never)]
    pub(super) fn way_to_renew(
        &self,
        rank: usize,
        live: usize,
        grows: bool,
    ) -> Option<(Range<usize>, usize)> {
        let capacity = self.form.capacity();
        let count = self.directory.len();
        let left = self.leaves_max.saturating_sub(count);
        let ideal = self.ideal();
        if live < ideal / 3 || live == 0 {
            // Beside a neighbour that has room for the records of both.
            let most = if live == 0 { capacity } else { capacity * 3 / 4 };
            if let Some(lower) = self.pair_within(rank, live, most) {
                return Some((lower..lower + 2, 1));
            }
        }
        // What shrinks is not divided.
        let mut pieces = if grows { (live + ideal / 2) / ideal } else { 1 };
        pieces = pieces.min(PIECES_MAX).min(left + 1).min(self.pool.ready()).max(1);
        if live.div_ceil(pieces) <= capacity {
            if pieces == 1 && left == 0 && live > capacity * 7 / 10 {
                // It will be full soon: the emptier neighbour takes a part.
                if let Some(lower) = self.pair_within(rank, live, live * 17 / 10) {
                    return Some((lower..lower + 2, 2));
                }
            }
            return Some((rank..rank + 1, pieces));
        }
        if left > 0 {
            return Some((rank..rank + 1, 2));
        }
        self.sharing(rank, live).map(|lower| (lower..lower + 2, 2))
    }

    /// Begins a leaf with a change whose key is behind all others of a leaf.
    ///
    /// So where keys rise, leaves are full, and none is written again. Returns whether it is so.
    #[inline(never)]
    pub(super) fn begin_behind(
        &mut self,
        rank: usize,
        change: &Pending<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        if self.directory.len() >= self.leaves_max {
            return Ok(false);
        }
        if self.directory.leaf(rank).live == 0 {
            // The new leaf could begin with the key with which this one begins.
            return Ok(false);
        }
        let span = self.span(rank)?;
        let at = self.place(&span.leaf, change.key)?;
        if at != (Place { sorted: span.leaf.sorted, logged: self.order.len() as u8 }) {
            return Ok(false);
        }
        self.insert(rank + 1, change.key, span.leaf)?;
        let sources =
            Sources { spans: &[Span { begin: span.end, ..span }], pending: Some(change), owner: 0 };
        let start = Start::new(span.end, 0);
        self.write_piece(rank + 1, &sources, &start, 1, None)?;
        Ok(true)
    }

    /// Settles a leaf and its upper neighbour.
    pub(super) fn touch_two(&mut self, lower: usize) -> Result<(), Fault<F::Error>> {
        self.touch(lower)?;
        self.touch(lower + 1)
    }

    /// The records that a leaf should have, if as many leaves as allowed share all.
    fn ideal(&self) -> usize {
        let records = self.state.records() as usize;
        let most = self.form.capacity().max(1);
        (records * 11 / (10 * self.leaves_max)).clamp(IDEAL_MIN.min(most), most)
    }

    /// The lower of two neighbours that have at most this many records.
    ///
    /// One is the leaf at `rank`, with `live` records; the other is its emptier neighbour.
    fn pair_within(&self, rank: usize, live: usize, most: usize) -> Option<usize> {
        let live_at = |rank: usize| usize::from(self.directory.leaf(rank).live);
        let below = rank.checked_sub(1);
        let above = (rank + 1 < self.directory.len()).then_some(rank + 1);
        let other = match (below, above) {
            (Some(below), Some(above)) if live_at(above) < live_at(below) => above,
            (Some(below), _) => below,
            (None, Some(above)) => above,
            (None, None) => return None,
        };
        (live + live_at(other) <= most).then_some(rank.min(other))
    }

    /// The lower of two leaves that can share the records of a leaf that is too full.
    pub(super) fn sharing(&self, rank: usize, live: usize) -> Option<usize> {
        self.pair_within(rank, live, self.form.capacity() * 2 * 31 / 32)
    }

    /// Joins two neighbours that have at most `most` records.
    ///
    /// Returns whether there were such. The search continues where the last one ended.
    pub(super) fn join_some(&mut self, most: usize) -> Result<bool, Fault<F::Error>> {
        let count = self.directory.len();
        for step in 0..count.saturating_sub(1) {
            let lower = (self.state.sparse() + step) % (count - 1);
            let (one, other) = (self.directory.leaf(lower), self.directory.leaf(lower + 1));
            if usize::from(one.live + other.live) <= most {
                self.touch_two(lower)?;
                self.write_again(lower..lower + 2, 1, None)?;
                self.state.note_sparse(lower);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves a leaf with cold data.
    ///
    /// Its sector was erased much less often than others.
    ///
    /// One sector is looked at for each leaf that was written. Cost: a read, and seldom that of a
    /// leaf that is written again, without an erase.
    #[inline(never)]
    pub(super) fn level_wear(&mut self) -> Result<(), Fault<F::Error>> {
        let Some(rank) = self.cold_leaf()? else { return Ok(()) };
        self.touch(rank)?;
        self.write_again(rank..rank + 1, 1, None)?;
        self.state.set_records(self.directory.records());
        Ok(())
    }

    /// The leaf in the next sector that is looked at, if it has cold data.
    #[inline(never)]
    fn cold_leaf(&mut self) -> Result<Option<usize>, Fault<F::Error>> {
        if !self.state.is_to_level() || self.pool.ready() < 2 {
            return Ok(None);
        }
        let Some(sector) = self.state.next_to_level(self.sectors) else { return Ok(None) };
        let mut ranks = 0..self.directory.len();
        let rank = ranks.find(|&rank| self.directory.leaf(rank).sector == sector);
        let (Some(rank), most) = (rank, self.state.erases()) else { return Ok(None) };
        let head = self.read_leaf(sector)?;
        let is_cold = |head: Head| head.erases + WEAR_GAP + most / WEAR_GAP_PART <= most;
        Ok(head.is_some_and(is_cold).then_some(rank))
    }

    /// Erases a sector unless this many are ready. Returns whether it did.
    pub(super) fn refill(&mut self, wanted: usize) -> Result<bool, Fault<F::Error>> {
        let Some(sector) = self.pool.next_to_erase(wanted) else { return Ok(false) };
        debug_assert!(self.pool.state(sector) == Use::Free, "a sector with a leaf is erased");
        self.erase(sector)?;
        Ok(true)
    }
}

/// The fewest records of the pieces into which a leaf is divided.
const IDEAL_MIN: usize = 12;
