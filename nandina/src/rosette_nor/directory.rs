//! The directory in RAM: which leaf owns which keys, and how far its log is used.
//!
//! Its entries are in the order of keys. The range of a leaf begins with its own lowest key and
//! ends where that of the next leaf begins. Nothing is read or written here.

use super::cells::Sector;
use crate::bytes::{bisect, u16_at};

/// Bytes of an entry beside its key.
pub const BESIDE_KEY: usize = 7;

/// The bit of the sorted records: the leaf was not touched since the mount.
const UNTOUCHED: u16 = 1 << 15;

/// The bit of the live records: the leaf may hold records below its range.
const TRIMMED: u16 = 1 << 15;

/// What the directory knows of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    pub sector: Sector,
    /// Records of its sorted part.
    pub sorted: u16,
    /// Records that it holds.
    pub live: u16,
    /// Slots of its log that were used.
    ///
    /// Until it is settled, those up to the last one that counts.
    pub used: u8,
    /// Whether it has to be settled before it is used.
    pub is_untouched: bool,
    /// Whether it may hold records below its range.
    pub is_trimmed: bool,
}

impl Leaf {
    /// A leaf that was just written, with an empty log.
    pub const fn new(sector: Sector, sorted: u16) -> Self {
        Self { sector, sorted, live: sorted, used: 0, is_untouched: false, is_trimmed: false }
    }
}

/// The leaves, in the order of their keys.
pub struct Directory<'b> {
    entries: &'b mut [u8],
    key_bytes: usize,
    count: usize,
}

impl<'b> Directory<'b> {
    pub const fn new(entries: &'b mut [u8], key_bytes: usize) -> Self {
        Self { entries, key_bytes, count: 0 }
    }

    /// Bytes of this many entries.
    pub const fn ram_needed(key_bytes: usize, leaves: usize) -> usize {
        leaves.saturating_mul(key_bytes + BESIDE_KEY)
    }

    const fn entry_bytes(&self) -> usize {
        self.key_bytes + BESIDE_KEY
    }

    /// How many leaves there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Forgets all leaves.
    pub const fn clear(&mut self) {
        self.count = 0;
    }

    /// The lowest key of the range at `rank`.
    pub fn low(&self, rank: usize) -> &[u8] {
        &self.entries[rank * self.entry_bytes()..][..self.key_bytes]
    }

    /// The first key past the range at `rank`, if there is one.
    pub fn high(&self, rank: usize) -> Option<&[u8]> {
        (rank + 1 < self.count).then(|| self.low(rank + 1))
    }

    /// The leaf at `rank`.
    pub fn leaf(&self, rank: usize) -> Leaf {
        let bytes = &self.entries[rank * self.entry_bytes() + self.key_bytes..][..BESIDE_KEY];
        let (sorted, live) = (u16_at(bytes, 2), u16_at(bytes, 4));
        Leaf {
            sector: u16_at(bytes, 0),
            sorted: sorted & !UNTOUCHED,
            live: live & !TRIMMED,
            used: bytes[6],
            is_untouched: sorted & UNTOUCHED != 0,
            is_trimmed: live & TRIMMED != 0,
        }
    }

    /// Replaces the leaf at `rank`.
    pub fn set(&mut self, rank: usize, leaf: Leaf) {
        let at = rank * self.entry_bytes() + self.key_bytes;
        let bytes = &mut self.entries[at..at + BESIDE_KEY];
        let sorted = leaf.sorted | if leaf.is_untouched { UNTOUCHED } else { 0 };
        let live = leaf.live | if leaf.is_trimmed { TRIMMED } else { 0 };
        bytes[..2].copy_from_slice(&leaf.sector.to_le_bytes());
        bytes[2..4].copy_from_slice(&sorted.to_le_bytes());
        bytes[4..6].copy_from_slice(&live.to_le_bytes());
        bytes[6] = leaf.used;
    }

    /// The rank of the leaf whose range has `key`, which may be shorter than a key.
    ///
    /// The first range has all keys below its own lowest, too.
    pub fn find(&self, key: &[u8]) -> usize {
        match bisect(self.count, |rank| self.low(rank), key) {
            Ok(rank) => rank,
            Err(rank) => rank.saturating_sub(1),
        }
    }

    /// Inserts a leaf before the one at `rank`. Returns whether there was room.
    pub fn insert(&mut self, rank: usize, low: &[u8], leaf: Leaf) -> bool {
        let each = self.entry_bytes();
        let end = self.count * each;
        if end + each > self.entries.len() {
            return false;
        }
        self.entries.copy_within(rank * each..end, (rank + 1) * each);
        self.entries[rank * each..][..self.key_bytes].copy_from_slice(low);
        self.count += 1;
        self.set(rank, leaf);
        true
    }

    /// Inserts a leaf behind all whose ranges begin before its own, or with it.
    pub fn insert_in_order(&mut self, low: &[u8], leaf: Leaf) -> bool {
        let mut rank = match bisect(self.count, |rank| self.low(rank), low) {
            Ok(rank) | Err(rank) => rank,
        };
        while rank < self.count && self.low(rank) <= low {
            rank += 1;
        }
        self.insert(rank, low, leaf)
    }

    /// Removes the leaf at `rank`.
    pub fn remove(&mut self, rank: usize) {
        let each = self.entry_bytes();
        self.entries.copy_within((rank + 1) * each..self.count * each, rank * each);
        self.count -= 1;
    }

    /// Exchanges the leaves at two ranks whose ranges begin with the same key.
    pub fn exchange(&mut self, one: usize, other: usize) {
        let (first, second) = (self.leaf(one), self.leaf(other));
        self.set(one, second);
        self.set(other, first);
    }

    /// The records of all leaves.
    pub fn records(&self) -> u32 {
        (0..self.count).map(|rank| u32::from(self.leaf(rank).live)).sum()
    }

    /// Whether a leaf has to be settled before it is used.
    pub fn has_untouched(&self) -> bool {
        self.untouched().is_some()
    }

    /// The rank of the first leaf that has to be settled before it is used.
    pub fn untouched(&self) -> Option<usize> {
        (0..self.count).find(|&rank| self.leaf(rank).is_untouched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_found_by_the_range_that_has_a_key() {
        let mut bytes = [0; 10 * (2 + BESIDE_KEY)];
        let mut directory = Directory::new(&mut bytes, 2);
        let leaf = |sector| Leaf {
            sector,
            sorted: 9,
            live: 7,
            used: 200,
            is_untouched: true,
            is_trimmed: false,
        };
        for low in [[0, 0], [7, 0], [3, 1], [3, 0], [9, 9]] {
            assert!(directory.insert_in_order(&low, leaf(u16::from_be_bytes(low))));
        }
        assert_eq!(directory.len(), 5);
        for (key, sector) in
            [([0, 0], 0), ([2, 255], 0), ([3, 0], 0x300), ([3, 1], 0x301), ([255, 255], 0x909)]
        {
            assert_eq!(directory.leaf(directory.find(&key)), leaf(sector));
        }
        assert_eq!(directory.find(&[3]), 0);
        assert_eq!((directory.high(0), directory.high(4)), (Some(&[3, 0][..]), None));
        directory.remove(1);
        assert_eq!(directory.leaf(directory.find(&[3, 0])), leaf(0));
        assert_eq!(directory.records(), 4 * 7);
        assert_eq!(directory.untouched(), Some(0));
        for low in 0..6 {
            assert!(directory.insert_in_order(&[4, low], leaf(1)));
        }
        assert!(!directory.insert_in_order(&[5, 0], leaf(1)));
    }
}
