//! The mapping table: where a node is whose parent still has its old address.
//!
//! (VMTree paper, section 4.2.) The table is a bounded hash table in RAM, rebuilt by a mount.
//!
//! A mapping is never chained: it leads from the pointer in the parent, the node's *logical
//! address*, straight to the page that holds the node. The page whose number is a logical address
//! is not programmed until the mapping is gone; otherwise, one number would mean two nodes. To
//! flush mappings, the parent is written with the current pages of its children.
//!
//! Open addressing. Of two entries that compete for a place, the one that is farther from home
//! takes it ("Robin Hood"), and a removal shifts back the entries after it. So there are no
//! tombstones, a search for a missing address ends at the first entry that is nearer to its home,
//! and the table may be filled to fifteen sixteenths.

use crate::bytes::{u16_at, u32_at};
use crate::log::checkpoint::Stream;

/// The table, in the caller's RAM.
///
/// It consists of pairs of a logical address and a page.
pub struct Mappings<'b> {
    bytes: &'b mut [u8],
    width: Width,
    /// Entries that `bytes` have room for. To divide for each search would take longer.
    places: u32,
    len: u32,
}

/// The bits of a number in an entry.
///
/// An entry consists of two: a logical address and a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Width(u8);

impl Width {
    const fn of(pages: u32) -> Self {
        // Where a checkpoint can store the table, its layout is part of the format.
        if pages < 0xFFF && !cfg!(feature = "checkpoints") {
            Self(12)
        } else if pages < u16::MAX as u32 {
            Self(16)
        } else {
            Self(32)
        }
    }

    const fn entry_bytes(self) -> usize {
        self.0 as usize / 4
    }

    /// A number of ones.
    ///
    /// In place of a logical address it means that there is no entry.
    const fn ones(self) -> u32 {
        u32::MAX >> (32 - self.0)
    }

    const fn is_whole(self) -> bool {
        self.0 == 32
    }
}

/// The most mappings in a table on a chip of `pages`, with `bytes` in the options.
pub(crate) const fn mappings_in(bytes: usize, pages: u32) -> usize {
    let places = bytes / if pages < u16::MAX as u32 { 4 } else { 8 };
    places - places.div_ceil(16)
}

/// The bytes of RAM of this table.
pub(crate) const fn table_bytes(bytes: usize, pages: u32) -> usize {
    match Width::of(pages) {
        Width(12) => bytes / 4 * 3,
        _ => bytes,
    }
}

impl<'b> Mappings<'b> {
    /// Creates a table that takes `bytes` of RAM on a chip of `pages`.
    ///
    /// Bytes that do not make up a whole entry are not used.
    pub fn new(bytes: &'b mut [u8], pages: u32) -> Self {
        Self::of_width(bytes, Width::of(pages))
    }

    fn of_width(bytes: &'b mut [u8], width: Width) -> Self {
        // The options allow 2^24 bytes at most.
        let places = (bytes.len() / width.entry_bytes()) as u32;
        let mut mappings = Self { bytes, width, places, len: 0 };
        mappings.clear();
        mappings
    }

    pub fn clear(&mut self) {
        self.bytes.fill(0xFF);
        self.len = 0;
    }

    const fn size(&self) -> usize {
        self.width.entry_bytes()
    }

    const fn places(&self) -> usize {
        self.places as usize
    }

    /// The number of mappings in the table.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// The most mappings that the table may hold.
    pub const fn capacity(&self) -> usize {
        let places = self.places();
        places - places.div_ceil(16)
    }

    /// The table as a checkpoint stores it.
    pub const fn as_bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Takes bytes of a table that a checkpoint stored, each with its place.
    ///
    /// Returns `false` if an entry has no place, because that table was larger. Afterwards
    /// [`is_sound`](Self::is_sound) must be called.
    pub fn load(&mut self, bytes: impl Iterator<Item = (usize, u8)>) -> bool {
        let end = self.places() * self.size();
        let mut fits = true;
        for (at, byte) in bytes {
            match self.bytes[..end].get_mut(at) {
                Some(place) => *place = byte,
                // Of an entry at least one byte has a zero.
                None => fits &= byte == 0xFF,
            }
        }
        fits
    }

    /// Counts the entries that were loaded. Returns whether each can be found again.
    ///
    /// `pages` is the number of pages of the chip. A table that is damaged, or of another size, is
    /// emptied.
    pub fn is_sound(&mut self, pages: u32) -> bool {
        let filled = (0..self.places()).filter(|&place| self.name(place).is_some());
        self.len = filled.count() as u32;
        let is_sound = self.len() <= self.capacity()
            && (0..self.places()).all(|place| {
                self.entry(place).is_none_or(|(name, page)| {
                    name < pages && page < pages && self.find(name) == Some(place)
                })
            });
        if !is_sound {
            self.clear();
        }
        is_sound
    }

    /// The logical address at `place`.
    fn name(&self, place: usize) -> Option<u32> {
        let at = place * self.size();
        let name = if self.width.is_whole() {
            u32_at(self.bytes, at)
        } else {
            u32::from(u16_at(self.bytes, at)) & self.width.ones()
        };
        (name != self.width.ones()).then_some(name)
    }

    /// The page at `place`, where an entry is.
    fn page(&self, place: usize) -> u32 {
        let end = (place + 1) * self.size();
        if self.width.is_whole() {
            u32_at(self.bytes, end - 4)
        } else {
            u32::from(u16_at(self.bytes, end - 2)) >> (16 - self.width.0)
        }
    }

    /// The entry at `place`: logical address and page.
    fn entry(&self, place: usize) -> Option<(u32, u32)> {
        Some((self.name(place)?, self.page(place)))
    }

    /// All mappings: the logical address and the page of each.
    #[cfg(debug_assertions)]
    pub fn entries(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.places()).filter_map(|place| self.entry(place))
    }

    fn set_entry(&mut self, place: usize, (name, page): (u32, u32)) {
        let size = self.size();
        let entry = &mut self.bytes[place * size..][..size];
        if self.width.is_whole() {
            entry[..4].copy_from_slice(&name.to_le_bytes());
            entry[4..].copy_from_slice(&page.to_le_bytes());
        } else {
            entry.copy_from_slice(&(name | page << self.width.0).to_le_bytes()[..size]);
        }
    }

    /// The first place tried for `name` (multiplicative hashing, golden ratio).
    const fn home(&self, name: u32) -> usize {
        let spread = name.wrapping_mul(0x9E37_79B9) as u64;
        ((spread * self.places() as u64) >> 32) as usize
    }

    const fn after(&self, place: usize) -> usize {
        if place + 1 == self.places() { 0 } else { place + 1 }
    }

    /// How far the entry of `name` at `place` is from home.
    const fn distance(&self, name: u32, place: usize) -> usize {
        let home = self.home(name);
        if place >= home { place - home } else { place + self.places() - home }
    }

    fn find(&self, name: u32) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let mut place = self.home(name);
        for distance in 0..self.places() {
            let found = self.name(place)?;
            if found == name {
                return Some(place);
            }
            if distance > 0 && self.distance(found, place) < distance {
                return None;
            }
            place = self.after(place);
        }
        None
    }

    /// The page of the node with the logical address `name`.
    ///
    /// `None` if the node has not moved since its parent was written.
    pub fn get(&self, name: u32) -> Option<u32> {
        Some(self.page(self.find(name)?))
    }

    /// Whether the table has room for a mapping of `name`.
    pub fn takes(&self, name: u32) -> bool {
        self.len() < self.capacity() || self.find(name).is_some()
    }

    /// Maps `name` to `page`, replacing the mapping of `name` if there is one.
    ///
    /// The table must have room ([`takes`](Self::takes)).
    pub fn set(&mut self, name: u32, page: u32) {
        if let Some(place) = self.find(name) {
            self.set_entry(place, (name, page));
            return;
        }
        let mut carried = (name, page);
        let mut place = self.home(name);
        let mut distance = 0;
        while let Some(found) = self.entry(place) {
            let its = self.distance(found.0, place);
            if its < distance {
                self.set_entry(place, carried);
                (carried, distance) = (found, its);
            }
            place = self.after(place);
            distance += 1;
        }
        self.set_entry(place, carried);
        self.len += 1;
    }

    /// Removes the mapping of `name`. Returns whether there was one.
    pub fn remove(&mut self, name: u32) -> bool {
        let Some(mut hole) = self.find(name) else {
            return false;
        };
        loop {
            let next = self.after(hole);
            match self.entry(next) {
                Some(entry) if self.distance(entry.0, next) > 0 => self.set_entry(hole, entry),
                _ => break,
            }
            hole = next;
        }
        let size = self.size();
        self.bytes[hole * size..][..size].fill(0xFF);
        self.len -= 1;
        true
    }

    /// The least mapped logical address from `least` on. Reads the whole table.
    pub fn first_from(&self, least: u32) -> Option<u32> {
        let names = (0..self.places()).filter_map(|place| self.name(place));
        names.filter(|&name| name >= least).min()
    }
}

/// A tree stores its mapping table, where it has one.
impl Stream for Mappings<'_> {
    const STORES_VALID: bool = true;
    const HAS_FIXED_SIZE: bool = true;

    fn bytes(&self) -> usize {
        self.as_bytes().len()
    }

    fn fill(&self, from: usize, out: &mut [u8]) {
        let bytes = self.as_bytes().get(from..).unwrap_or_default();
        let stored = bytes.len().min(out.len());
        let (table, rest) = out.split_at_mut(stored);
        table.copy_from_slice(&bytes[..stored]);
        rest.fill(0xFF);
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn load(&mut self, from: usize, bytes: &[u8]) -> bool {
        self.load((from..).zip(bytes.iter().copied()))
    }

    fn is_sound(&mut self, pages: u32) -> bool {
        self.is_sound(pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(
            steps in proptest::collection::vec((0u32..60, 0u32..1000, any::<bool>()), 1..400),
            entries in 2usize..40,
            width in prop_oneof![Just(Width(12)), Just(Width(16)), Just(Width(32))],
        ) {
            let mut ram = [0; 40 * 8 + 2];
            let bytes = entries * width.entry_bytes() + 2;
            let mut table = Mappings::of_width(&mut ram[..bytes], width);
            let mut model = [None; 60];
            for (name, page, put) in steps {
                let known = &mut model[name as usize];
                if !put {
                    prop_assert_eq!(table.remove(name), known.take().is_some());
                } else if table.takes(name) {
                    table.set(name, page);
                    *known = Some(page);
                } else {
                    prop_assert_eq!(table.len(), table.capacity());
                }
                prop_assert_eq!(table.len(), model.iter().flatten().count());
                for name in 0..60 {
                    prop_assert_eq!(table.get(name), model[name as usize]);
                }
            }
            for least in 0..61u32 {
                let first = (least..60).find(|&name| model[name as usize].is_some());
                prop_assert_eq!(table.first_from(least), first);
            }
        }
    }

    #[test]
    fn a_stored_table_is_taken_only_if_every_entry_is_found() {
        let mut stored = [0; 256];
        let mut table = Mappings::new(&mut stored, 2000);
        (0..40).for_each(|name| table.set(name * 31, name));
        let loaded = |bytes: usize, pages: u32, damage: Option<usize>| {
            let mut ram = [0; 512];
            let mut other = Mappings::new(&mut ram[..bytes], pages);
            let byte = |(at, &byte): (usize, &u8)| (at, byte ^ u8::from(damage == Some(at)));
            other.load(stored.iter().enumerate().map(byte));
            other.is_sound(pages).then(|| (0..40).filter_map(|name| other.get(name * 31)).count())
        };
        assert_eq!(loaded(256, 2000, None), Some(40));
        // A table of another size has each address elsewhere, and this chip has fewer pages.
        assert_eq!(loaded(512, 2000, None), None);
        assert_eq!(loaded(256, 1000, None), None);
        let entry = stored.chunks(4).position(|entry| entry != [0xFF; 4]).unwrap() * 4;
        assert_eq!(loaded(256, 2000, Some(entry + 1)), None);
        assert_eq!(loaded(0, 2000, None), Some(0));
    }

    #[test]
    fn a_table_has_room_for_as_many_mappings_as_its_options_say() {
        let mut ram = [0; 1027];
        for pages in [2000, 4094, 4095, 65_534, 65_535] {
            for bytes in [0, 3, 7, 1000, 1024, 1027] {
                let table = Mappings::new(&mut ram[..table_bytes(bytes, pages)], pages);
                assert_eq!(table.capacity(), mappings_in(bytes, pages), "{bytes} {pages}");
            }
        }
    }

    #[test]
    fn a_full_table_is_searched_in_few_steps() {
        let mut ram = [0; 1024];
        let mut table = Mappings::new(&mut ram[..table_bytes(1024, 2000)], 2000);
        let mut name = 0;
        while table.takes(name) {
            table.set(name, 1);
            name = (name + 7) % 2000;
        }
        assert_eq!((table.len(), table.capacity()), (240, 240));
        assert_eq!(mappings_in(1024, 2000), 240);
        let farthest =
            (0..256).filter_map(|place| Some(table.distance(table.entry(place)?.0, place)));
        assert!(farthest.max() < Some(48));
    }
}
