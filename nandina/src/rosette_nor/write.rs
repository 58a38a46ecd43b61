//! How a leaf is written to a sector: records, head, commit.
//!
//! Page 0 is programmed when its records are there, then the others, and the commit last: until
//! then the leaf does not count. Nothing that the leaf replaces was changed before.

use super::cells::Sector;
use super::form::MARKS_BYTES;
use super::head::{self, Head};
use super::leaves::SectorLeaves;
use super::merge::{Item, Pending, Place, Span};
use super::order::LOOKS_MAX;
use super::pool::Use;
use crate::error::{Damage, Fault};
use crate::flash::Flash;
use crate::node::slot::{State, TAG_BYTES};

/// A leaf that is being written.
pub struct Writing {
    sector: Sector,
    /// Records that it is to have.
    wanted: u16,
    /// Records that were written.
    done: usize,
    /// Where the next byte goes.
    at: usize,
    /// Where the bytes of the page buffer begin that are not programmed yet.
    from: usize,
    sum: u32,
}

impl Writing {
    /// Before it has begun.
    pub const NONE: Self = Self { sector: 0, wanted: 0, done: 0, at: 0, from: 0, sum: 0 };

    pub const fn sector(&self) -> Sector {
        self.sector
    }
}

impl<F: Flash> SectorLeaves<'_, F> {
    /// Begins a leaf of this many records in the next sector, which is erased.
    ///
    /// Its fences are those of the range at `rank` in the directory. Cost: at most that of an
    /// erase.
    pub(super) fn begin_leaf(
        &mut self,
        writing: &mut Writing,
        rank: usize,
        sorted: usize,
    ) -> Result<(), Fault<F::Error>> {
        let sector = self.take_sector()?;
        writing.sector = sector;
        writing.wanted = sorted as u16;
        let head = Head {
            identity: self.state.identity(),
            sequence: self.state.next_sequence(),
            erases: self.pool.erases(sector),
            sorted: sorted as u16,
        };
        self.pool.set(sector, Use::Live);
        self.pool.set_turn(sector);
        self.page.fill(0xFF);
        let fences = (self.directory.low(rank), self.directory.high(rank));
        head::write(&self.form, self.page, &self.medium, &head, fences);
        Ok(())
    }

    /// Adds a record of a span, or the pending one, to the leaf.
    #[inline]
    pub(super) fn add(
        &mut self,
        writing: &mut Writing,
        span: &Span,
        item: Item,
        pending: Option<&Pending<'_>>,
    ) -> Result<(), Fault<F::Error>> {
        let is_in_first = writing.done < self.form.in_first();
        if !is_in_first {
            self.begin_rest(writing)?;
        }
        self.read_item(span, item, pending)?;
        writing.done += 1;
        if is_in_first {
            let to = writing.at;
            self.page[to..to + self.record.len()].copy_from_slice(self.record);
            writing.at = to + self.record.len();
            return Ok(());
        }
        self.append_record(writing)
    }

    /// Reads the record of an item into the buffer for records.
    #[inline(never)]
    pub(super) fn read_item(
        &mut self,
        span: &Span,
        item: Item,
        pending: Option<&Pending<'_>>,
    ) -> Result<(), Fault<F::Error>> {
        let key_bytes = self.form.key_bytes;
        match (item, pending) {
            (Item::Sorted(at), _) => {
                self.cells.read(span.leaf.sector, self.form.sorted(at), self.record)
            }
            (Item::Slot(slot), _) => self.read_whole_slot(span, slot),
            (Item::Pending, Some(change)) => {
                self.record[..key_bytes].copy_from_slice(change.key);
                self.record[key_bytes..].copy_from_slice(change.value.unwrap_or_default());
                Ok(())
            }
            (Item::Pending, None) => Ok(()),
        }
    }

    /// Reads the record of a slot that was seen whole into the buffer for records.
    ///
    /// The last slot may be torn, and whole now and then.
    fn read_whole_slot(&mut self, span: &Span, number: usize) -> Result<(), Fault<F::Error>> {
        let log = self.log_of(&span.leaf);
        for _ in 0..LOOKS_MAX {
            if let State::Whole(_) = self.read_slot(span.leaf.sector, &log, number)? {
                self.record.copy_from_slice(&self.slot[TAG_BYTES..]);
                return Ok(());
            }
        }
        Err(self.cells.damage(span.leaf.sector, log.slot(number), Damage::Checksum))
    }

    /// Adds the record in the buffer behind page 0, and programs pages that are full.
    fn append_record(&mut self, writing: &mut Writing) -> Result<(), Fault<F::Error>> {
        let page_bytes = self.form.page_bytes();
        let mut done = 0;
        while done < self.record.len() {
            let to = self.cells.in_page(writing.at);
            let bytes = (self.record.len() - done).min(page_bytes - to);
            self.page[to..to + bytes].copy_from_slice(&self.record[done..done + bytes]);
            (writing.at, done) = (writing.at + bytes, done + bytes);
            if to + bytes == page_bytes {
                self.program_page(writing)?;
            }
        }
        Ok(())
    }

    /// Programs what the page buffer has behind page 0.
    fn program_page(&mut self, writing: &mut Writing) -> Result<(), Fault<F::Error>> {
        let from = self.cells.in_page(writing.from);
        let bytes = &self.page[from..][..writing.at - writing.from];
        self.cells.program(writing.sector, writing.from, bytes)?;
        writing.sum = self.cells.checksum(&[&writing.sum.to_le_bytes(), bytes]);
        writing.from = writing.at;
        Ok(())
    }

    /// Programs page 0 if that was not done yet.
    fn begin_rest(&mut self, writing: &mut Writing) -> Result<(), Fault<F::Error>> {
        if writing.from > 0 {
            return Ok(());
        }
        self.program_first(writing)
    }

    #[inline(never)]
    fn program_first(&mut self, writing: &mut Writing) -> Result<(), Fault<F::Error>> {
        let records = &self.page[..writing.at];
        writing.sum = self.cells.checksum(&[&0u32.to_le_bytes(), records]);
        let cells = &mut self.cells;
        let sum = &mut |pieces: &[&[u8]]| cells.checksum(pieces);
        head::seal(&self.form, self.page, sum);
        self.cells.program_first(writing.sector, self.page)?;
        let begin = self.form.marks_at() + MARKS_BYTES;
        (writing.at, writing.from) = (begin, begin);
        Ok(())
    }

    /// Ends a leaf: the last program is its commit.
    ///
    /// If it is a copy, `sum` is the checksum that the records must have.
    pub(super) fn commit(
        &mut self,
        writing: &mut Writing,
        sum: Option<u32>,
    ) -> Result<(), Fault<F::Error>> {
        if writing.done != usize::from(writing.wanted) {
            return Err(self.cells.damage(writing.sector, 0, Damage::NodeChanged));
        }
        self.begin_rest(writing)?;
        if writing.at > writing.from {
            self.program_page(writing)?;
        }
        if sum.is_some_and(|sum| sum != writing.sum) {
            return Err(self.cells.damage(writing.sector, 0, Damage::NotAsWritten));
        }
        let commit = head::commit(writing.sum);
        self.cells.program(writing.sector, self.form.marks_at(), &commit)?;
        let acknowledged = head::commit(!writing.sum);
        self.cells.program(writing.sector, self.form.acknowledged_at(), &acknowledged)?;
        self.state.note_leaf(writing.sector);
        Ok(())
    }

    /// Whether the sorted records of a leaf are as its commit says.
    ///
    /// Cost: a read for each page of them.
    pub(super) fn sorted_is_whole(
        &mut self,
        sector: Sector,
        sorted: usize,
        wanted: u32,
    ) -> Result<bool, Fault<F::Error>> {
        let in_first = self.form.in_first().min(sorted);
        let page_bytes = self.form.page_bytes();
        let first = in_first * self.form.record_bytes();
        let mut sum = self.checked(sector, 0, first, 0)?;
        let mut at = self.form.marks_at() + MARKS_BYTES;
        let end = at + (sorted - in_first) * self.form.record_bytes();
        while at < end {
            let to = (at + page_bytes - self.cells.in_page(at)).min(end);
            sum = self.checked(sector, at, to, sum)?;
            at = to;
        }
        Ok(sum == wanted)
    }

    /// The checksum over `sum` and the bytes of a page from `from` to before `to`.
    fn checked(
        &mut self,
        sector: Sector,
        from: usize,
        to: usize,
        sum: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let bytes = &mut self.page[..to - from];
        self.cells.read(sector, from, bytes)?;
        Ok(self.cells.checksum(&[&sum.to_le_bytes(), bytes]))
    }

    /// The next sector, erased.
    fn take_sector(&mut self) -> Result<Sector, Fault<F::Error>> {
        loop {
            let Some(sector) = self.pool.next() else {
                return Err(self.no_room());
            };
            if self.pool.state(sector) == Use::Clean {
                return Ok(sector);
            }
            self.erase(sector)?;
        }
    }

    /// Erases a sector that holds no leaf. It is bad if the chip rejects that.
    ///
    /// Cost: an erase and a read, and with `verify` a read for each page.
    pub(super) fn erase(&mut self, sector: Sector) -> Result<(), Fault<F::Error>> {
        let erases = self.erases_with_the_next(sector)?;
        match self.cells.erase(sector) {
            Ok(()) => {
                self.state.note_erases(erases);
                self.state.note_erase();
                self.pool.set_clean(sector, erases);
                Ok(())
            }
            Err(fault) if fault.rejects_writes() => self.give_up(sector),
            Err(fault) => Err(fault),
        }
    }

    /// How often a sector was erased, with an erase that comes.
    #[inline(never)]
    fn erases_with_the_next(&mut self, sector: Sector) -> Result<u32, Fault<F::Error>> {
        if self.cells.look_at_tail(sector)?
            && let Some(head) = self.cells.head(&self.medium)
        {
            return Ok(head.erases.saturating_add(1));
        }
        // If the count cannot be read: a sector that was never used, or a torn one.
        Ok(self.state.erases().max(1))
    }

    /// Gives a sector up whose erase or program the chip rejected. It holds no leaf.
    pub(super) fn give_up(&mut self, sector: Sector) -> Result<(), Fault<F::Error>> {
        let _ = self.cells.take_failed();
        self.pool.set(sector, Use::Bad);
        match self.cells.mark_bad(sector) {
            // RAM knows it until the next mount.
            Err(fault) if fault.rejects_writes() => Ok(()),
            marked => marked,
        }
    }

    /// Marks a leaf as replaced, and its sector as free.
    ///
    /// That only spares reads of a mount: newer leaves own all its keys.
    #[inline(never)]
    pub(super) fn mark_replaced(&mut self, sector: Sector) -> Result<(), Fault<F::Error>> {
        self.pool.set(sector, Use::Free);
        let (at, bytes) = self.replaced_mark();
        self.cells.let_fall(sector, at, &[0; 8][..bytes])
    }

    /// What is 0 in a leaf that was replaced: the magic of its page, or its commit.
    pub(super) const fn replaced_mark(&self) -> (usize, usize) {
        if self.form.has_header_inside() {
            (self.form.head_at() + self.form.head_bytes(), 6)
        } else {
            (self.form.marks_at(), 8)
        }
    }

    /// The key of the record at a place; the pending one may come first.
    pub(super) fn key_at<'k>(
        &mut self,
        span: &Span,
        mut at: Place,
        mut pending: Option<&Pending<'_>>,
        key: &'k mut [u8],
    ) -> Result<&'k [u8], Fault<F::Error>> {
        let whole = pending;
        let Some(item) = self.next_item(span, &mut at, &mut pending)? else {
            return Err(self.cells.damage(span.leaf.sector, 0, Damage::NodeChanged));
        };
        match (self.position(&span.leaf, item), whole) {
            (Some(at), _) => self.cells.read(span.leaf.sector, at, key)?,
            (None, Some(change)) => key.copy_from_slice(change.key),
            (None, None) => {}
        }
        Ok(key)
    }
}
