//! The keys of a log in RAM, sorted: for scans, and for writing a leaf again.
//!
//! An entry has the first bytes of a key and the number of its newest slot. Where these bytes of
//! two keys are the same, the keys are read.

use core::cmp::Ordering;

use super::cells::Sector;
use super::form::Form;

/// How often a slot is read until it is as it was seen before.
pub const LOOKS_MAX: u32 = 64;

/// Bytes of a key in an entry.
const PREFIX: usize = 4;

/// Bytes of an entry: of the key, the slot, and whether it has a value.
pub const ENTRY_BYTES: usize = PREFIX + 2;

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

    /// Compares the key at a position with `key`, as far as the entry tells.
    ///
    /// `key` may be shorter.
    pub fn compare_beginning(&self, form: &Form, at: usize, key: &[u8]) -> Option<Ordering> {
        let known = PREFIX.min(key.len()).min(form.key_bytes);
        let found = self.entries[at][..known].cmp(&key[..known]);
        let is_all = form.key_bytes == known && key.len() == known;
        (found.is_ne() || is_all).then_some(found)
    }

    /// Whether the keys are those of this log, of which this many slots were used.
    pub fn is_of(&self, sector: Sector, used: u8) -> bool {
        self.of == Some((sector, used))
    }

    /// Removes all keys.
    pub const fn clear(&mut self) {
        (self.of, self.count) = (None, 0);
    }

    /// Notes that all keys of this log are here.
    pub const fn note(&mut self, sector: Sector, used: u8) {
        self.of = Some((sector, used));
    }

    /// Puts a key at a position, in the place of an older slot if it `is_there`.
    pub fn put(&mut self, at: usize, is_there: bool, key: &[u8], slot: u8, puts: bool) {
        if !is_there {
            self.entries.copy_within(at..self.count, at + 1);
            self.count += 1;
        }
        let entry = &mut self.entries[at];
        entry[..PREFIX].copy_from_slice(&prefix(key));
        (entry[PREFIX], entry[PREFIX + 1]) = (slot, u8::from(puts));
    }
}
