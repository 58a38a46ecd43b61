//! Leaves that are written again: divided, joined, or as they are.
//!
//! The records of one leaf, or of two neighbours, are written to new sectors, those of the lowest
//! keys first. Each new leaf takes its range from the old ones when it commits, so a cut in between
//! leaves the upper rest where it was, and there is nothing to undo. The old sectors are free then.

use core::ops::Range;

use super::directory::Leaf;
use super::head;
use super::leaves::SectorLeaves;
use super::merge::{Pending, Place, Span};
use super::pool::Use;
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
    pending: Option<Pending<'s>>,
    /// In whose range the change is.
    owner: usize,
}

/// Where a piece begins.
#[derive(Clone, Copy)]
struct Start {
    source: usize,
    place: Place,
    /// The pending change comes before, or in another source.
    is_taken: bool,
    /// How many records come before it.
    before: usize,
}

impl Start {
    /// The change that is to come in the source in which the piece begins.
    fn pending_of<'s>(&self, sources: &Sources<'s>) -> Option<Pending<'s>> {
        sources.pending.filter(|_| self.source == sources.owner && !self.is_taken)
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
        pending: Option<Pending<'_>>,
    ) -> Result<(), Fault<F::Error>> {
        for sector in self.replace(ranks, pieces, pending)?.into_iter().flatten() {
            self.mark_replaced(sector)?;
        }
        Ok(())
    }

    /// Writes a leaf elsewhere whose sector may be torn; nothing is programmed there.
    pub(super) fn write_copy(&mut self, rank: usize) -> Result<(), Fault<F::Error>> {
        for sector in self.replace(rank..rank + 1, 1, None)?.into_iter().flatten() {
            self.pool.set(sector, Use::Free);
        }
        Ok(())
    }

    /// As [`write_again`](Self::write_again). Returns the sectors of the old leaves.
    fn replace(
        &mut self,
        ranks: Range<usize>,
        pieces: usize,
        pending: Option<Pending<'_>>,
    ) -> Result<[Option<super::cells::Sector>; 2], Fault<F::Error>> {
        let mut replaced = [None; 2];
        let (first, key_bytes) = (ranks.start, self.form.key_bytes);
        let expected: usize =
            ranks.clone().map(|rank| usize::from(self.directory.leaf(rank).live)).sum();
        let mut spans = [self.span(first)?; 2];
        let mut sum = None;
        for (span, rank) in spans.iter_mut().zip(ranks.clone()) {
            sum = self.verify(rank)?;
            *span = self.span(rank)?;
        }
        let spans = &spans[..ranks.len()];
        let owner = ranks.len() - 1;
        let is_below = |change: Pending<'_>| change.key < self.directory.low(first + owner);
        let owner = if pending.is_some_and(is_below) { 0 } else { owner };
        let sources = Sources { spans, pending, owner };
        let (starts, total) = self.divide(&sources, pieces, expected)?;
        let (mut low, mut high) = ([0; KEY_BYTES_MAX], [0; KEY_BYTES_MAX]);
        let (low, high) = (&mut low[..key_bytes], &mut high[..key_bytes]);
        low.copy_from_slice(self.directory.low(first));
        let mut last = [0; KEY_BYTES_MAX];
        let last = self.directory.high(ranks.end - 1).map(|key| {
            let last = &mut last[..key_bytes];
            last.copy_from_slice(key);
            &*last
        });
        // A copy of sorted records alone has their checksum.
        let is_copy = ranks.len() == 1 && pieces == 1 && spans[0].end.logged == 0;
        let sum = sum.filter(|_| is_copy && !spans[0].leaf.is_trimmed);
        for piece in 0..pieces {
            let start = starts[piece];
            let next = (piece + 1 < pieces).then(|| starts[piece + 1]);
            let count = next.map_or(total, |next| next.before) - start.before;
            if count > self.form.capacity() {
                let sector = spans[0].leaf.sector;
                return Err(self.cells.damage(sector, 0, Damage::NodeTooFull));
            }
            let end = match next {
                Some(next) => {
                    let span = &spans[next.source];
                    self.sort(&span.leaf)?;
                    self.key_at(span, next.place, next.pending_of(&sources), high)?;
                    Some(&*high)
                }
                None => last,
            };
            let sum = if pending.is_some() { None } else { sum };
            let leaf = self.write_piece(&sources, start, count, (low, end), sum)?;
            if piece == 0 {
                self.directory.set(first, leaf);
                if spans.len() == 2 {
                    self.directory.remove(first + 1);
                }
            } else if !self.directory.insert(first + piece, low, leaf) {
                return Err(self.cells.damage(leaf.sector, 0, Damage::DirectoryTooSmall));
            }
            low.copy_from_slice(high);
        }
        for (sector, span) in replaced.iter_mut().zip(spans) {
            *sector = Some(span.leaf.sector);
        }
        Ok(replaced)
    }

    /// Finds where the pieces begin, and how many records there are.
    fn divide(
        &mut self,
        sources: &Sources<'_>,
        pieces: usize,
        expected: usize,
    ) -> Result<([Start; PIECES_MAX], usize), Fault<F::Error>> {
        let spans = sources.spans;
        let begin = spans[0].begin;
        let mut starts =
            [Start { source: 0, place: begin, is_taken: false, before: 0 }; PIECES_MAX];
        let (mut total, mut piece) = (0, 1);
        for (source, span) in spans.iter().enumerate() {
            self.sort(&span.leaf)?;
            let mut at = span.begin;
            let mut pending = sources.pending.filter(|_| source == sources.owner);
            loop {
                let (place, is_taken) = (at, pending.is_none());
                if self.next_item(span, &mut at, &mut pending)?.is_none() {
                    break;
                }
                if piece < pieces && total == (piece * expected / pieces).max(piece) {
                    starts[piece] = Start { source, place, is_taken, before: total };
                    piece += 1;
                }
                total += 1;
            }
        }
        if piece < pieces {
            return Err(self.cells.damage(spans[0].leaf.sector, 0, Damage::NodeChanged));
        }
        Ok((starts, total))
    }

    /// Writes one piece.
    fn write_piece(
        &mut self,
        sources: &Sources<'_>,
        start: Start,
        count: usize,
        fences: head::Fences<'_>,
        sum: Option<u32>,
    ) -> Result<Leaf, Fault<F::Error>> {
        let mut writing = self.begin_leaf(count)?;
        let sector = writing.sector();
        let mut done = 0;
        for (source, span) in sources.spans.iter().enumerate().skip(start.source) {
            self.sort(&span.leaf)?;
            let (mut at, mut pending) = if source == start.source {
                (start.place, start.pending_of(sources))
            } else {
                (span.begin, sources.pending.filter(|_| source == sources.owner))
            };
            while done < count {
                let Some(item) = self.next_item(span, &mut at, &mut pending)? else { break };
                self.add(&mut writing, span, item, sources.pending, fences)?;
                done += 1;
            }
        }
        self.commit(writing, fences, sum)?;
        Ok(Leaf {
            sector,
            sorted: count as u16,
            live: count as u16,
            used: 0,
            is_untouched: false,
            is_trimmed: false,
        })
    }

    /// Checks the sorted records of a leaf before they are written again.
    ///
    /// Rot would get a checksum that is right otherwise.
    pub(super) fn verify(&mut self, rank: usize) -> Result<Option<u32>, Fault<F::Error>> {
        let leaf = self.directory.leaf(rank);
        let mut commit = [0; super::form::COMMIT_BYTES];
        self.cells.read(leaf.sector, self.form.marks_at(), &mut commit)?;
        if let Some(sum) = head::committed(&commit)
            && self.sorted_is_whole(leaf.sector, leaf.sorted.into(), sum)?
        {
            return Ok(Some(sum));
        }
        Err(self.cells.damage(leaf.sector, self.form.marks_at(), Damage::Checksum))
    }

    /// Divides, joins or renews the leaf at `rank`, with a pending change.
    ///
    /// Afterwards the leaf has `live` records.
    pub(super) fn renew(
        &mut self,
        rank: usize,
        live: usize,
        pending: Option<Pending<'_>>,
    ) -> Result<(), Fault<F::Error>> {
        let capacity = self.form.capacity();
        let count = self.directory.len();
        let left = self.leaves_max.saturating_sub(count);
        let ideal = self.ideal();
        if live < ideal / 3 || live == 0 {
            // Beside a neighbour that has room for the records of both.
            let most = if live == 0 { capacity } else { capacity * 3 / 4 };
            if let Some(lower) = self.pair_within(rank, live, most) {
                return self.write_two(lower, 1, pending);
            }
        }
        // What shrinks is not divided.
        let grows = pending.is_some_and(|change| change.value.is_some());
        let mut pieces = if grows { (live + ideal / 2) / ideal } else { 1 };
        pieces = pieces.min(PIECES_MAX).min(left + 1).min(self.pool.ready()).max(1);
        if live.div_ceil(pieces) <= capacity {
            if pieces == 1 && left == 0 && live > capacity * 7 / 10 {
                // It will be full soon: the emptier neighbour takes a part.
                if let Some(lower) = self.pair_within(rank, live, live * 17 / 10) {
                    return self.write_two(lower, 2, pending);
                }
            }
            return self.write_again(rank..rank + 1, pieces, pending);
        }
        if left > 0 {
            return self.write_again(rank..rank + 1, 2, pending);
        }
        match self.sharing(rank, live) {
            Some(lower) => self.write_two(lower, 2, pending),
            None => Err(self.no_room()),
        }
    }

    /// Begins a leaf with a change whose key is behind all others of a leaf.
    ///
    /// So where keys rise, leaves are full, and none is written again. Returns whether it is so.
    pub(super) fn begin_behind(
        &mut self,
        rank: usize,
        change: Pending<'_>,
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
        let mut high = [0; KEY_BYTES_MAX];
        let high = self.directory.high(rank).map(|key| {
            let high = &mut high[..key.len()];
            high.copy_from_slice(key);
            &*high
        });
        let sources =
            Sources { spans: &[Span { begin: span.end, ..span }], pending: Some(change), owner: 0 };
        let start = Start { source: 0, place: span.end, is_taken: false, before: 0 };
        let leaf = self.write_piece(&sources, start, 1, (change.key, high), None)?;
        if !self.directory.insert(rank + 1, change.key, leaf) {
            return Err(self.cells.damage(leaf.sector, 0, Damage::DirectoryTooSmall));
        }
        Ok(true)
    }

    /// Writes a leaf and its upper neighbour again.
    fn write_two(
        &mut self,
        lower: usize,
        pieces: usize,
        pending: Option<Pending<'_>>,
    ) -> Result<(), Fault<F::Error>> {
        self.touch(lower)?;
        self.touch(lower + 1)?;
        self.write_again(lower..lower + 2, pieces, pending)
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
                self.write_two(lower, 1, None)?;
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
    pub(super) fn level_wear(&mut self) -> Result<(), Fault<F::Error>> {
        if self.pool.ready() < 2 {
            return Ok(());
        }
        let Some(sector) = self.state.next_to_level(self.sectors) else { return Ok(()) };
        let mut ranks = 0..self.directory.len();
        let rank = ranks.find(|&rank| self.directory.leaf(rank).sector == sector);
        let (Some(rank), most) = (rank, self.state.erases()) else { return Ok(()) };
        let Some(head) = self.read_leaf(sector, &mut [0; head::TAIL_MAX])? else { return Ok(()) };
        if head.erases + WEAR_GAP + most / WEAR_GAP_PART > most {
            return Ok(());
        }
        self.touch(rank)?;
        self.write_again(rank..rank + 1, 1, None)?;
        self.state.set_records(self.directory.records());
        Ok(())
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
