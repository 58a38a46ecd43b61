//! The records of a leaf in order: its sorted part and its log as one.

use core::cmp::Ordering;

use super::directory::Leaf;
use super::leaves::SectorLeaves;
use crate::engine::KEY_BYTES_MAX;
use crate::error::Fault;
use crate::flash::Flash;
use crate::node::slot::TAG_BYTES;

/// A change that is written together with the records of a leaf.
#[derive(Clone, Copy)]
pub struct Pending<'k> {
    pub key: &'k [u8],
    /// Without a value it removes the key.
    pub value: Option<&'k [u8]>,
}

/// A position among the records of a leaf: before these ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The next sorted record.
    pub sorted: u16,
    /// The next key of the sorted log.
    pub logged: u8,
}

/// The part of a leaf that its range has.
#[derive(Clone, Copy)]
pub struct Span {
    pub leaf: Leaf,
    pub begin: Place,
    pub end: Place,
}

impl Span {
    /// Of no leaf.
    pub const NONE: Self = {
        let place = Place { sorted: 0, logged: 0 };
        Self { leaf: Leaf::new(0, 0), begin: place, end: place }
    };
}

/// Where the next record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    Sorted(usize),
    Slot(usize),
    Pending,
}

impl<F: Flash> SectorLeaves<'_, F> {
    /// The place of the first record that is not before `key`; `key` may be short.
    ///
    /// The keys of the leaf's log are sorted.
    pub(super) fn place(&mut self, leaf: &Leaf, key: &[u8]) -> Result<Place, Fault<F::Error>> {
        let (in_log, _) = self.search_log(leaf, &self.log_of(leaf), Some(key))?;
        let (sorted, _) = self.search_sorted(leaf, key)?;
        Ok(Place { sorted: sorted as u16, logged: in_log as u8 })
    }

    /// The part of a leaf that its range has. The keys of its log are sorted then.
    pub(super) fn span(&mut self, rank: usize) -> Result<Span, Fault<F::Error>> {
        let leaf = self.directory.leaf(rank);
        self.sort(&leaf)?;
        let mut begin = Place { sorted: 0, logged: 0 };
        let mut end = Place { sorted: leaf.sorted, logged: self.order.len() as u8 };
        if leaf.is_trimmed {
            begin = self.begin_of(rank, &leaf)?;
            if rank + 1 < self.directory.len() {
                end = self.begin_of(rank + 1, &leaf)?;
            }
        }
        Ok(Span { leaf, begin, end })
    }

    /// The place in a leaf at which the range at `rank` begins.
    #[inline(never)]
    fn begin_of(&mut self, rank: usize, leaf: &Leaf) -> Result<Place, Fault<F::Error>> {
        let mut key = [0; KEY_BYTES_MAX];
        let key = &mut key[..self.form.key_bytes];
        key.copy_from_slice(self.directory.low(rank));
        self.place(leaf, key)
    }

    /// The next record of a span from `at` on, without those that were removed.
    ///
    /// `pending` comes in its place, and is taken then. Of a sorted record the key is in the buffer
    /// for records.
    pub(super) fn next_item(
        &mut self,
        span: &Span,
        at: &mut Place,
        pending: &mut Option<&Pending<'_>>,
    ) -> Result<Option<Item>, Fault<F::Error>> {
        loop {
            let has_sorted = at.sorted < span.end.sorted;
            let has_logged = at.logged < span.end.logged;
            if has_sorted {
                let key = &mut self.record[..self.form.key_bytes];
                self.cells.read(span.leaf.sector, self.form.sorted(at.sorted.into()), key)?;
            }
            // Which of the two comes first; of the same key the log has the newer record.
            let first = match (has_sorted, has_logged) {
                (false, false) => None,
                (true, false) => Some(Ordering::Less),
                (false, true) => Some(Ordering::Greater),
                (true, true) => Some(self.compare_in_log(&span.leaf, at.logged, None)?.reverse()),
            };
            let against = match (first, *pending) {
                (_, None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(Ordering::Less), Some(change)) => {
                    self.record[..self.form.key_bytes].cmp(change.key)
                }
                (Some(_), Some(change)) => {
                    self.compare_in_log(&span.leaf, at.logged, Some(change.key))?
                }
            };
            let (from_sorted, from_log) = (at.sorted, at.logged);
            if against.is_le() {
                at.sorted += u16::from(first.is_some_and(Ordering::is_le));
                at.logged += u8::from(first.is_some_and(Ordering::is_ge));
            }
            if against.is_ge() {
                let removes = pending.take().is_some_and(|change| change.value.is_none());
                if removes {
                    continue;
                }
                return Ok(Some(Item::Pending));
            }
            match first {
                None => return Ok(None),
                Some(Ordering::Less) => return Ok(Some(Item::Sorted(from_sorted.into()))),
                Some(_) => {
                    let (slot, puts) = self.order.slot(from_log.into());
                    if puts {
                        return Ok(Some(Item::Slot(slot)));
                    }
                }
            }
        }
    }

    /// Where the record of an item begins in its sector; `None` if it is pending.
    pub(super) const fn position(&self, leaf: &Leaf, item: Item) -> Option<usize> {
        match item {
            Item::Sorted(at) => Some(self.form.sorted(at)),
            Item::Slot(slot) => Some(self.log_of(leaf).slot(slot) + TAG_BYTES),
            Item::Pending => None,
        }
    }

    /// Counts the records of a span.
    pub(super) fn count(&mut self, span: &Span) -> Result<u16, Fault<F::Error>> {
        let (mut at, mut count) = (span.begin, 0);
        while self.next_item(span, &mut at, &mut None)?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}
