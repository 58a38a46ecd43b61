//! Finds the slot of a page: a hash table of slots with open addressing.
//!
//! The table stores no page numbers: those are in the slots' entries.
//!
//! Half of the places are empty, so a search for a missing page looks at three places on average.
//! When a slot is removed, those after it move up: there are no tombstones, and the table never has
//! to be rebuilt.

/// Bytes of the table for each slot: two places of two bytes.
const BYTES: usize = 4;

/// Marks an empty place: no slot has this number.
const EMPTY: u16 = u16::MAX;

/// Bytes of a table for `slots` slots, at most 65,535.
pub const fn bytes_for(slots: usize) -> usize {
    slots * BYTES
}

/// A table of slots, each found by one key. The caller supplies the key of a slot.
pub struct Lookup<'b> {
    places: &'b mut [u8],
}

impl<'b> Lookup<'b> {
    /// Creates a table that uses all of `places`, [`bytes_for`] its slots.
    pub fn new(places: &'b mut [u8]) -> Self {
        let mut lookup = Self { places };
        lookup.clear();
        lookup
    }

    /// Forgets every slot.
    pub fn clear(&mut self) {
        self.places.fill(0xFF);
    }

    const fn count(&self) -> usize {
        self.places.len() / 2
    }

    fn slot(&self, place: usize) -> Option<usize> {
        let slot = u16::from_le_bytes([self.places[2 * place], self.places[2 * place + 1]]);
        (slot != EMPTY).then_some(slot.into())
    }

    fn set(&mut self, place: usize, slot: u16) {
        self.places[2 * place..][..2].copy_from_slice(&slot.to_le_bytes());
    }

    /// The first place tried for `key` (multiplicative hashing, golden ratio).
    const fn home(&self, key: u32) -> usize {
        let spread = key.wrapping_mul(0x9E37_79B9) as u64;
        ((spread * self.count() as u64) >> 32) as usize
    }

    const fn after(&self, place: usize) -> usize {
        if place + 1 == self.count() { 0 } else { place + 1 }
    }

    /// Steps from place `from` to place `to`, cyclically.
    const fn steps(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.count() - from }
    }

    fn place_of(&self, key: u32, key_of: impl Fn(usize) -> u32) -> Option<(usize, usize)> {
        if self.places.is_empty() {
            return None;
        }
        let mut place = self.home(key);
        loop {
            let slot = self.slot(place)?;
            if key_of(slot) == key {
                return Some((place, slot));
            }
            place = self.after(place);
        }
    }

    /// The slot of `key`.
    pub fn find(&self, key: u32, key_of: impl Fn(usize) -> u32) -> Option<usize> {
        self.place_of(key, key_of).map(|(_, slot)| slot)
    }

    /// Adds `slot`, which is not in the table, under `key`, which no slot has.
    pub fn insert(&mut self, key: u32, slot: usize) {
        let mut place = self.home(key);
        while let Some(other) = self.slot(place) {
            debug_assert!(other != slot, "slot {slot} is there twice");
            place = self.after(place);
        }
        self.set(place, slot as u16);
    }

    /// Removes the slot of `key`.
    pub fn remove(&mut self, key: u32, key_of: impl Fn(usize) -> u32) {
        let Some((mut hole, _)) = self.place_of(key, &key_of) else { return };
        let mut place = self.after(hole);
        while let Some(slot) = self.slot(place) {
            let home = self.home(key_of(slot));
            // The slot moves up, unless that would bring it before its home.
            if self.steps(home, place) >= self.steps(hole, place) {
                self.set(hole, slot as u16);
                hole = place;
            }
            place = self.after(place);
        }
        self.set(hole, EMPTY);
    }
}
