//! The keys of a log in RAM, sorted: for scans, and for writing a leaf again.
//!
//! An entry has the first bytes of a key and the number of its newest slot. Where these bytes of
//! two keys are the same, the keys are read.

use core::cmp::Ordering;

use super::cells::{Cells, Sector};
use super::form::{Form, Log, TAG_BYTES};
use super::slot::{self, Kind, State};
use crate::engine::KEY_BYTES_MAX;
use crate::error::Fault;
use crate::flash::Flash;

/// How often a slot is read until it is as it was seen before.
pub const LOOKS_MAX: u32 = 64;

/// Bytes of a key in an entry.
const PREFIX: usize = 4;

/// Bytes of an entry: of the key, the slot, and whether it has a value.
pub const ENTRY_BYTES: usize = PREFIX + 2;

/// A log whose keys are to be sorted.
#[derive(Clone, Copy)]
pub struct Logged {
    pub sector: Sector,
    pub log: Log,
    pub used: u8,
    /// Whether other slots than the last one may be torn, and do not count then.
    pub is_untouched: bool,
}

/// The sorted keys of one log, each once.
pub struct Order<'b> {
    entries: &'b mut [[u8; ENTRY_BYTES]],
    count: usize,
    /// Whose log it is, and how many slots of it were used.
    of: Option<(Sector, u8)>,
}

/// The bytes of a key that an entry has.
fn prefix(key: &[u8]) -> [u8; PREFIX] {
    let mut bytes = [0; PREFIX];
    let known = key.len().min(PREFIX);
    bytes[..known].copy_from_slice(&key[..known]);
    bytes
}

impl<'b> Order<'b> {
    pub fn new(bytes: &'b mut [u8]) -> Self {
        Self { entries: bytes.as_chunks_mut().0, count: 0, of: None }
    }

    /// How many keys there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Forgets the keys: their log has changed.
    pub const fn forget(&mut self) {
        self.of = None;
    }

    /// The newest slot of the key at a position, and whether it has a value.
    pub const fn slot(&self, at: usize) -> (usize, bool) {
        let entry = self.entries[at];
        (entry[PREFIX] as usize, entry[PREFIX + 1] != 0)
    }

    /// Compares the key at a position with `key`, which may be shorter.
    pub fn compare<F: Flash>(
        &self,
        cells: &mut Cells<'_, F>,
        form: &Form,
        logged: &Logged,
        at: usize,
        key: &[u8],
    ) -> Result<Ordering, Fault<F::Error>> {
        let known = PREFIX.min(key.len()).min(form.key_bytes);
        let found = self.entries[at][..known].cmp(&key[..known]);
        if found.is_ne() || form.key_bytes == known && key.len() == known {
            return Ok(found);
        }
        let mut other = [0; KEY_BYTES_MAX];
        let other = &mut other[..form.key_bytes];
        cells.read(logged.sector, logged.log.slot(self.slot(at).0) + TAG_BYTES, other)?;
        Ok((*other).cmp(key))
    }

    /// The position of the first key not before `key`, and whether it is the same.
    pub fn search<F: Flash>(
        &self,
        cells: &mut Cells<'_, F>,
        form: &Form,
        logged: &Logged,
        key: &[u8],
    ) -> Result<(usize, bool), Fault<F::Error>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            match self.compare(cells, form, logged, middle, key)? {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok((middle, true)),
                Ordering::Greater => high = middle,
            }
        }
        Ok((low, false))
    }

    /// Sorts the keys of a log, unless they are those that are here.
    ///
    /// Cost: a read for each slot that was used, and those of equal beginnings.
    pub fn build<F: Flash>(
        &mut self,
        cells: &mut Cells<'_, F>,
        form: &Form,
        logged: &Logged,
        slot: &mut [u8],
    ) -> Result<(), Fault<F::Error>> {
        if self.of == Some((logged.sector, logged.used)) {
            return Ok(());
        }
        (self.of, self.count) = (None, 0);
        for number in 0..logged.used {
            let at = logged.log.slot(number.into());
            // Only the last slot may be torn, and read differently each time.
            let is_last = number + 1 == logged.used;
            let whole = is_last || logged.is_untouched;
            let bytes = if whole { slot.len() } else { TAG_BYTES + form.key_bytes };
            cells.read(logged.sector, at, &mut slot[..bytes])?;
            let mut looks = 1;
            while is_last
                && matches!(slot::state(slot), State::Torn | State::Blank)
                && looks < LOOKS_MAX
            {
                cells.read(logged.sector, at, slot)?;
                looks += 1;
            }
            let tag = slot::tag(slot);
            if slot::is_killed(tag) || whole && !matches!(slot::state(slot), State::Whole(_)) {
                continue;
            }
            let key = &slot[TAG_BYTES..TAG_BYTES + form.key_bytes];
            let mut entry = [0; ENTRY_BYTES];
            entry[..PREFIX].copy_from_slice(&prefix(key));
            (entry[PREFIX], entry[PREFIX + 1]) = (number, u8::from(Kind::of(tag).puts));
            let (to, is_there) = self.search(cells, form, logged, key)?;
            if !is_there {
                self.entries.copy_within(to..self.count, to + 1);
                self.count += 1;
            }
            self.entries[to] = entry;
        }
        self.of = Some((logged.sector, logged.used));
        Ok(())
    }
}
