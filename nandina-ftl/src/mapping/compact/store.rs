//! The memory of a compact mapping: slots for leaves, and their directory.
//!
//! ```text
//! | slots and holes ... | gap | slots and holes ... | free | directory, its first entry last |
//! 0                                                 end
//! ```
//!
//! A slot is a row of granules of 16 bytes. Holes are listed by size. So that they never add up, a
//! *gap* wanders through the slots: each step moves the next slot down to the begin of the gap, or
//! joins the next hole to it; at the end the gap becomes free memory. The directory is sorted: an
//! entry is the first unit of a leaf's part of the space, and the granule of its slot.
//!
//! Nothing here knows what an item is. A slot never lies outside of the memory.

use super::leaf::{Form, HEADER, Leaf, UNITS, form_of, granules_of, meta};
use crate::mapping::memory::{WORD, set_word, word};
use crate::mapping::{Bytes, Refusal};

/// Bytes of a granule.
pub(super) const GRANULE: usize = 16;

/// Words of a granule.
const WORDS: usize = GRANULE / WORD;

/// Bytes of a directory entry.
pub(super) const ENTRY: usize = 2 * WORD;

/// The largest slot, in granules: `UNITS` units, or 64 items of 8 bytes.
const GRANULES_MAX: usize = (HEADER + UNITS as usize * WORD).div_ceil(GRANULE);

/// No hole.
const NONE: u32 = u32::MAX;

/// Granules of slots up to which they are kept denser.
///
/// All of them fit in a processor's cache.
const SMALL: usize = 4096;

/// Granules of slots up to which no hole is left.
///
/// They are few enough for the gap to pass all of them at once.
const TINY: usize = 1024;

/// The part of the slots that may be holes while memory is not short: one of so many.
const LOOSE: usize = 12;

/// Slots and directory in the caller's memory.
pub(super) struct Store<'m> {
    memory: &'m mut [u8],
    /// Granules of slots, holes and the gap.
    end: usize,
    /// Where the gap begins, and its granules.
    gap: usize,
    gap_granules: usize,
    /// Granules of listed holes.
    holes: usize,
    /// Leaves that left a hole since the last [`Self::tidy`].
    made_holes: usize,
    /// The first hole of each size.
    heads: [u32; GRANULES_MAX + 1],
    /// A bit for each size of which there is a hole.
    sizes: u128,
    entries: usize,
    peak: usize,
    moved: u64,
}

/// The first unit of the leaf of an entry.
#[inline]
fn base_of(&[a, b, c, d, ..]: &[u8; ENTRY]) -> u32 {
    u32::from_le_bytes([a, b, c, d])
}

/// The slot of the leaf of an entry.
#[inline]
fn slot_of(&[.., a, b, c, d]: &[u8; ENTRY]) -> usize {
    u32::from_le_bytes([a, b, c, d]) as usize
}

/// Granules of a slot for `bits` bits of items.
#[inline]
pub(super) fn granules(bits: usize) -> usize {
    (HEADER + bits.div_ceil(8)).div_ceil(GRANULE)
}

impl<'m> Store<'m> {
    pub fn new(memory: &'m mut [u8]) -> Self {
        Store {
            memory,
            end: 0,
            gap: 0,
            gap_granules: 0,
            holes: 0,
            made_holes: 0,
            heads: [NONE; GRANULES_MAX + 1],
            sizes: 0,
            entries: 0,
            peak: 0,
            moved: 0,
        }
    }

    pub fn memory(&self) -> &[u8] {
        self.memory
    }

    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.memory
    }

    /// How many leaves the directory leads to.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Whether memory is worth more than time: slots are few, and all in a processor's cache.
    pub fn is_small(&self) -> bool {
        self.end < SMALL
    }

    /// Notes bytes that were moved or encoded again.
    pub fn note_moved(&mut self, bytes: usize) {
        self.moved += bytes as u64;
    }

    pub fn moved(&self) -> u64 {
        self.moved
    }

    pub fn bytes(&self) -> Bytes {
        Bytes { used: self.used(), reserved: self.memory.len(), peak: self.peak }
    }

    fn used(&self) -> usize {
        self.end * GRANULE + self.entries * ENTRY
    }

    /// Refuses if fewer than `bytes` bytes are free, wherever they are.
    pub fn room(&self, bytes: usize) -> Result<(), Refusal> {
        let taken = self.used() - (self.holes + self.gap_granules) * GRANULE;
        let needed = taken + bytes;
        if needed <= self.memory.len() { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    // The directory.

    /// The word at which entry `at` begins. The first entry is the last one there.
    fn entry(&self, at: usize) -> usize {
        (self.memory.len() / WORD).saturating_sub(2 * (at + 1))
    }

    /// The first unit of leaf `at`.
    #[inline]
    pub fn base(&self, at: usize) -> u32 {
        word(self.memory, self.entry(at))
    }

    fn slot(&self, at: usize) -> usize {
        word(self.memory, self.entry(at) + 1) as usize
    }

    fn set_slot(&mut self, at: usize, slot: usize) {
        let entry = self.entry(at);
        set_word(self.memory, entry + 1, slot as u32);
    }

    /// The entries of the directory: bases fall, so that the last leaf comes first.
    #[inline]
    fn directory(&self) -> &[[u8; ENTRY]] {
        let end = self.memory.len() / WORD * WORD;
        let entries = self.memory.get(end - self.entries * ENTRY..end).unwrap_or(&[]);
        entries.as_chunks().0
    }

    /// The number of the leaf whose part has `unit`.
    fn number(&self, unit: u32) -> usize {
        let behind = self.directory().partition_point(|entry| base_of(entry) > unit);
        self.entries.saturating_sub(behind + 1)
    }

    /// The leaf whose part has `unit`, its number, and how many entries the search has read.
    #[inline(always)]
    pub fn find(&self, unit: u32, logical: u32, physical_bits: u32) -> (usize, Leaf, u64) {
        let directory = self.directory();
        let behind = directory.partition_point(|entry| base_of(entry) > unit);
        let limit = behind.checked_sub(1).map_or(logical, |next| base_of(&directory[next]));
        let (base, slot) =
            directory.get(behind).map_or((0, 0), |entry| (base_of(entry), slot_of(entry)));
        let meta = word(self.memory, slot * WORDS + 1);
        let leaf = Leaf::decode(slot * GRANULE, base, limit, meta, physical_bits);
        let steps = usize::BITS - directory.len().leading_zeros();
        (self.entries.saturating_sub(behind + 1), leaf, u64::from(steps))
    }

    /// Replaces the entries `from..to`, whose slots are free, by `count` entries.
    ///
    /// These lead nowhere yet: next the caller sets the base of each, then allocates their slots.
    pub fn replace_entries(&mut self, from: usize, to: usize, count: usize) {
        let behind = self.entries - to;
        let entries = self.entries + count - (to - from);
        self.make_room(0, entries);
        let first = |at: usize| self.memory.len() / WORD * WORD - at * ENTRY;
        if count != to - from {
            let (source, target) = (first(self.entries), first(entries));
            self.memory.copy_within(source..source + behind * ENTRY, target);
            self.moved += (behind * ENTRY) as u64;
        }
        self.entries = entries;
    }

    /// Sets the first unit of leaf `at`.
    pub fn set_base(&mut self, at: usize, base: u32) {
        let entry = self.entry(at);
        set_word(self.memory, entry, base);
    }

    // Slots.

    /// The leaf `at`. Its part ends where the next begins, the last at `logical`.
    #[inline(always)]
    pub fn leaf(&self, at: usize, logical: u32, physical_bits: u32) -> Leaf {
        // The entry behind it is stored before it.
        let place = (self.memory.len() / WORD * WORD).wrapping_sub((at + 2) * ENTRY);
        let entries = self.memory.get(place..place.wrapping_add(2 * ENTRY));
        let number = |at: usize| match entries.and_then(|bytes| bytes.get(at..at + 4)) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => 0,
        };
        let limit = if at + 1 < self.entries { number(0) } else { logical };
        let (base, slot) = (number(ENTRY), number(ENTRY + WORD) as usize);
        let meta = word(self.memory, slot * WORDS + 1);
        Leaf::decode(slot * GRANULE, base, limit, meta, physical_bits)
    }

    /// Writes the header of leaf `at` again.
    pub fn set_header(&mut self, at: usize, leaf: &Leaf) {
        let slot = self.slot(at);
        set_word(self.memory, slot * WORDS, leaf.base);
        set_word(self.memory, slot * WORDS + 1, leaf.meta());
    }

    /// Writes the second word of a leaf's header again.
    #[inline]
    pub fn set_meta(&mut self, leaf: &Leaf) {
        set_word(self.memory, leaf.byte / WORD - 1, leaf.meta());
    }

    fn set_hole(&mut self, slot: usize, granules: usize) {
        let head = self.heads[granules];
        set_word(self.memory, slot * WORDS, head);
        set_word(self.memory, slot * WORDS + 1, meta(granules, Form::Free));
        set_word(self.memory, slot * WORDS + 2, NONE);
        if head != NONE {
            set_word(self.memory, head as usize * WORDS + 2, slot as u32);
        }
        self.heads[granules] = slot as u32;
        self.sizes |= 1 << granules;
        self.holes += granules;
    }

    fn unlink_hole(&mut self, slot: usize, granules: usize) {
        let next = word(self.memory, slot * WORDS);
        let previous = word(self.memory, slot * WORDS + 2);
        if previous == NONE {
            self.heads[granules] = next;
            if next == NONE {
                self.sizes &= !(1 << granules);
            }
        } else {
            set_word(self.memory, previous as usize * WORDS, next);
        }
        if next != NONE {
            set_word(self.memory, next as usize * WORDS + 2, previous);
        }
        self.holes -= granules;
    }

    /// Frees the slot of leaf `at`, whose entry then leads nowhere.
    pub fn free(&mut self, at: usize) {
        let slot = self.slot(at);
        let granules = granules_of(word(self.memory, slot * WORDS + 1));
        self.set_hole(slot, granules);
        self.made_holes += 1;
    }

    /// Frees all but the first `granules` granules of the slot of leaf `at`.
    pub fn shrink(&mut self, at: usize, leaf: &mut Leaf, granules: usize) {
        if let Some(spare) = leaf.granules.checked_sub(granules).filter(|&spare| spare > 0) {
            leaf.granules = granules;
            self.set_header(at, leaf);
            self.set_hole(self.slot(at) + granules, spare);
        }
    }

    /// Gives leaf `at` a slot of `granules` granules with a header of that size.
    ///
    /// There is room: the caller has asked [`Self::room`]. Other slots may move.
    pub fn allocate(&mut self, at: usize, granules: usize) {
        let slot = self.take(granules);
        self.set_slot(at, slot);
        let base = self.base(at);
        set_word(self.memory, slot * WORDS, base);
        set_word(self.memory, slot * WORDS + 1, meta(granules, Form::Runs));
        self.peak = self.peak.max(self.used());
    }

    fn take(&mut self, granules: usize) -> usize {
        let fitting = self.sizes >> granules;
        if fitting != 0 {
            let size = granules + fitting.trailing_zeros() as usize;
            let slot = self.heads[size] as usize;
            self.unlink_hole(slot, size);
            if size > granules {
                self.set_hole(slot + granules, size - granules);
            }
            return slot;
        }
        if self.gap_granules >= granules {
            let slot = self.gap;
            self.gap += granules;
            self.gap_granules -= granules;
            return slot;
        }
        self.make_room(granules, self.entries);
        self.end += granules;
        self.end - granules
    }

    /// Frees all holes, if `granules` more and `entries` entries do not fit else.
    fn make_room(&mut self, granules: usize, entries: usize) {
        let limit = self.memory.len().saturating_sub(entries * ENTRY) / GRANULE;
        if self.end + granules > limit {
            // The gap wanders to the end, then once through all slots.
            for _ in 0..2 {
                while !self.step() {}
            }
        }
    }

    /// Gives leaf `at` a larger slot, into which all that the old one holds is copied.
    pub fn grow(&mut self, at: usize, granules: usize) {
        let slot = self.take(granules);
        // The old slot may have moved.
        let old = self.slot(at);
        let meta = word(self.memory, old * WORDS + 1);
        let size = granules_of(meta);
        self.memory.copy_within(old * GRANULE..(old + size) * GRANULE, slot * GRANULE);
        set_word(self.memory, slot * WORDS + 1, meta - size as u32 + granules as u32);
        self.set_hole(old, size);
        self.made_holes += 1;
        self.set_slot(at, slot);
        self.moved += (size * GRANULE) as u64;
        self.peak = self.peak.max(self.used());
    }

    /// Moves the gap by a slot; returns whether it has become free memory.
    fn step(&mut self) -> bool {
        let next = self.gap + self.gap_granules;
        if next >= self.end {
            self.end = self.gap;
            self.gap = 0;
            self.gap_granules = 0;
            return true;
        }
        let meta = word(self.memory, next * WORDS + 1);
        let granules = granules_of(meta).max(1);
        if form_of(meta) == Form::Free {
            self.unlink_hole(next, granules);
            self.gap_granules += granules;
        } else {
            if self.gap_granules > 0 {
                let bytes = next * GRANULE..(next + granules) * GRANULE;
                self.memory.copy_within(bytes, self.gap * GRANULE);
                let at = self.number(word(self.memory, self.gap * WORDS));
                self.set_slot(at, self.gap);
                self.moved += (granules * GRANULE) as u64;
            }
            self.gap += granules;
        }
        false
    }

    /// Ends a change: keeps holes and gap a small part of the slots, in bounded steps.
    ///
    /// Up to `enough` bytes in use, they may be a larger part.
    #[inline]
    pub fn tidy(&mut self, enough: usize) {
        let free = self.holes + self.gap_granules;
        if free > 0 && (self.used() > enough || free * LOOSE > self.end) {
            self.tidy_holes();
        }
    }

    fn tidy_holes(&mut self) {
        let (part, steps) = match self.end {
            0..TINY => (TINY, 64),
            TINY..SMALL => (128, 16),
            _ => (32, 4),
        };
        let made = core::mem::take(&mut self.made_holes);
        for _ in 0..steps * made + 1 {
            if (self.holes + self.gap_granules) * part <= self.end {
                break;
            }
            self.step();
        }
    }

    /// Whether slots, holes and gap tile the memory, and every slot is listed.
    pub fn is_whole(&self) -> bool {
        let (mut at, mut holes, mut leaves) = (0, 0, 0);
        while at < self.end {
            if at == self.gap && self.gap_granules > 0 {
                at += self.gap_granules;
                continue;
            }
            let meta = word(self.memory, at * WORDS + 1);
            let granules = granules_of(meta);
            if granules == 0 {
                return false;
            }
            if form_of(meta) == Form::Free {
                holes += granules;
            } else {
                let base = word(self.memory, at * WORDS);
                let entry = self.number(base);
                if self.base(entry) != base || self.slot(entry) != at {
                    return false;
                }
                leaves += 1;
            }
            at += granules;
        }
        at == self.end && holes == self.holes && leaves == self.entries
    }
}
