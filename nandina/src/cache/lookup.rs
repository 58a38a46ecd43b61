//! From a page to its slot: a hash table of slots with open addressing. A slot's page stands in its
//! account, and not here again.
//!
//! Half of the places are empty, so a search looks at three places on the mean before it finds that
//! a page is not there. What follows a removed slot moves up: there are no graves, and the table
//! never has to be built anew.

/// Bytes of the table for each slot: two places of two bytes.
const BYTES: usize = 4;

/// No slot has this number.
const EMPTY: u16 = u16::MAX;

/// Bytes of a table for so many slots, at most 65,535.
pub const fn bytes_for(slots: usize) -> usize {
    slots * BYTES
}

/// A table of slots, each known by one key. Whoever calls it says which key a slot has.
pub struct Lookup<'b> {
    places: &'b mut [u8],
}

impl<'b> Lookup<'b> {
    /// A table in all of `places`, which are [`bytes_for`] the slots.
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

    /// The place of `key` if it is alone (multiplication by the golden ratio).
    const fn home(&self, key: u32) -> usize {
        let spread = key.wrapping_mul(0x9E37_79B9) as u64;
        ((spread * self.count() as u64) >> 32) as usize
    }

    const fn after(&self, place: usize) -> usize {
        if place + 1 == self.count() { 0 } else { place + 1 }
    }

    /// Steps from place `from` to place `to`.
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

    /// The slot that is known by `key`.
    pub fn find(&self, key: u32, key_of: impl Fn(usize) -> u32) -> Option<usize> {
        self.place_of(key, key_of).map(|(_, slot)| slot)
    }

    /// `slot`, which is not in the table, is known by `key`, by which no other slot is known.
    pub fn insert(&mut self, key: u32, slot: usize) {
        let mut place = self.home(key);
        while let Some(other) = self.slot(place) {
            debug_assert!(other != slot, "slot {slot} is there twice");
            place = self.after(place);
        }
        self.set(place, slot as u16);
    }

    /// No slot is known by `key` any more.
    pub fn remove(&mut self, key: u32, key_of: impl Fn(usize) -> u32) {
        let Some((mut hole, _)) = self.place_of(key, &key_of) else { return };
        let mut place = self.after(hole);
        while let Some(slot) = self.slot(place) {
            let home = self.home(key_of(slot));
            // It moves up, unless that leads to before its home.
            if self.steps(home, place) >= self.steps(hole, place) {
                self.set(hole, slot as u16);
                hole = place;
            }
            place = self.after(place);
        }
        self.set(hole, EMPTY);
    }
}
