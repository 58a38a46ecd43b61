//! The memory of a learned mapping: slots for groups, and their directory.
//!
//! ```text
//! | slots and holes ... | free | directory, its first entry last |
//! 0                     end
//! slot: group, granules (16 bits) and segments (16), segments, lists of approximate segments
//! list: units - 1, units
//! ```
//!
//! A slot is a row of granules of 16 bytes. The directory is sorted: an entry is the number of a
//! group and the granule of its slot. Slots move together where holes are more than a 16th of
//! them, or where there is no room behind them.

use super::group::{Group, SEGMENTS};
use super::segment::{SEGMENT, Segment};
use crate::mapping::memory::{WORD, set_word, word};
use crate::mapping::{Broken, Bytes, Refusal};

/// Bytes of a granule.
pub(super) const GRANULE: usize = 16;

const WORDS: usize = GRANULE / WORD;

/// Bytes of the header of a slot.
const HEADER: usize = 8;

/// Bytes of a directory entry.
pub(super) const ENTRY: usize = 8;

/// No group: a hole. As a granule: a group without a slot.
const NONE: u32 = u32::MAX;

/// Slots move together where more than one granule in this many is a hole.
const HOLES: usize = 16;

/// The largest slot, in granules.
pub(super) const GRANULES_MAX: usize = (HEADER + SEGMENTS * SEGMENT).div_ceil(GRANULE);

/// Slots and directory in the caller's memory.
pub(super) struct Store<'m> {
    memory: &'m mut [u8],
    /// Granules of slots and holes.
    end: usize,
    holes: usize,
    entries: usize,
    peak: usize,
    moved: u64,
}

fn granules(bytes: usize) -> usize {
    (HEADER + bytes).div_ceil(GRANULE)
}

impl<'m> Store<'m> {
    pub fn new(memory: &'m mut [u8]) -> Self {
        Store { memory, end: 0, holes: 0, entries: 0, peak: 0, moved: 0 }
    }

    /// How many groups have segments.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Bytes that were moved or encoded again.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    pub fn bytes(&self) -> Bytes {
        Bytes { used: self.used(), reserved: self.memory.len(), peak: self.peak }
    }

    fn used(&self) -> usize {
        self.end * GRANULE + self.entries * ENTRY
    }

    /// Bytes of whole words.
    fn length(&self) -> usize {
        self.memory.len() / WORD * WORD
    }

    /// Refuses if fewer than `bytes` bytes are free, wherever they are.
    pub fn room(&self, bytes: usize) -> Result<(), Refusal> {
        let needed = self.used() - self.holes * GRANULE + bytes;
        if needed <= self.length() { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    // The directory.

    fn entry(&self, at: usize) -> usize {
        (self.length() / WORD).saturating_sub(2 * (at + 1))
    }

    /// The group of entry `at`.
    pub fn group(&self, at: usize) -> u32 {
        word(self.memory, self.entry(at))
    }

    fn slot(&self, at: usize) -> u32 {
        word(self.memory, self.entry(at) + 1)
    }

    fn set_entry(&mut self, at: usize, group: u32, slot: u32) {
        let entry = self.entry(at);
        set_word(self.memory, entry, group);
        set_word(self.memory, entry + 1, slot);
    }

    /// The first entry whose group is `group` or behind it, and how many entries that has read.
    pub fn find(&self, group: u32) -> (usize, u64) {
        let (mut low, mut high, mut read) = (0, self.entries, 0);
        while low < high {
            let middle = (low + high) / 2;
            read += 1;
            if self.group(middle) < group {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low, read)
    }

    /// Gives entries to all groups from `first` to `last`; the entries `from..to` are theirs.
    ///
    /// There is room for them. Groups without a slot have no segments yet.
    pub fn add_groups(&mut self, (from, to): (usize, usize), first: u32, last: u32) {
        let count = (last - first) as usize + 1;
        let more = count - (to - from);
        if more == 0 {
            return;
        }
        self.make_room(0, self.entries + more);
        self.move_entries(to, to + more);
        let mut old = to;
        for new in (from..from + count).rev() {
            let group = first + (new - from) as u32;
            let has_slot = old > from && self.group(old - 1) == group;
            let slot = if has_slot { self.slot(old - 1) } else { NONE };
            old -= usize::from(has_slot);
            self.set_entry(new, group, slot);
        }
        self.peak = self.peak.max(self.used());
    }

    /// Drops those of the entries `from..to` whose groups have no slot.
    pub fn drop_groups(&mut self, from: usize, to: usize) {
        let mut kept = from;
        for at in from..to {
            if self.slot(at) != NONE {
                self.set_entry(kept, self.group(at), self.slot(at));
                kept += 1;
            }
        }
        if kept < to {
            self.move_entries(to, kept);
        }
    }

    /// Moves the entries from `from` on so that they begin at `to`.
    fn move_entries(&mut self, from: usize, to: usize) {
        let bytes = (self.entries - from) * ENTRY;
        let entries = self.entries - from + to;
        let first = |at: usize| self.length().saturating_sub(at * ENTRY);
        let (source, target) = (first(self.entries), first(entries));
        self.memory.copy_within(source..source + bytes, target);
        self.moved += bytes as u64;
        self.entries = entries;
    }

    // Slots.

    /// Fills `group` with the segments of entry `at`.
    pub fn read(&self, at: usize, group: &mut Group) {
        group.clear();
        let slot = self.slot(at);
        if slot == NONE {
            return;
        }
        let first = slot as usize * WORDS;
        let count = (word(self.memory, first + 1) >> 16) as usize;
        let mut list = (first + 2 + 2 * count) * WORD;
        let byte = |at: usize| self.memory.get(at).copied().unwrap_or(0);
        let mut owner = 0u8;
        for at in 0..count {
            let place = first + 2 + 2 * at;
            let words = [word(self.memory, place), word(self.memory, place + 1)];
            let mut segment = Segment::of_words(words);
            if segment.is_approximate() {
                owner = owner.wrapping_add(1);
                segment.owner = owner;
                let units = usize::from(byte(list)) + 1;
                (1..=units).for_each(|at| group.own(byte(list + at), owner));
                list += 1 + units;
            }
            group.push(segment);
        }
    }

    /// Stores the segments of entry `at`. There is room for them.
    ///
    /// A group that needs a larger slot is compacted first. One without segments gets no slot.
    pub fn write(&mut self, at: usize, group: &mut Group) {
        let slot = self.slot(at);
        let old = if slot == NONE { 0 } else { self.granules(slot as usize) };
        let mut needed = granules(group.bytes());
        if needed > old && group.levels() > 1 {
            group.compact();
            needed = granules(group.bytes());
        }
        let is_empty = group.segments().is_empty();
        let slot = if needed == old && !is_empty {
            slot as usize
        } else {
            if slot != NONE {
                set_word(self.memory, slot as usize * WORDS, NONE);
                self.holes += old;
            }
            self.set_entry(at, self.group(at), NONE);
            if is_empty {
                return self.tidy();
            }
            self.make_room(needed, self.entries);
            self.end += needed;
            self.end - needed
        };
        self.set_entry(at, self.group(at), slot as u32);
        self.encode(slot, needed, self.group(at), group);
        if needed != old {
            self.tidy();
        }
        self.peak = self.peak.max(self.used());
    }

    fn encode(&mut self, slot: usize, granules: usize, number: u32, group: &Group) {
        let first = slot * WORDS;
        let count = group.segments().len();
        set_word(self.memory, first, number);
        set_word(self.memory, first + 1, granules as u32 | (count as u32) << 16);
        let mut list = (first + 2 + 2 * count) * WORD;
        for (at, segment) in group.segments().iter().enumerate() {
            let [low, high] = segment.words();
            set_word(self.memory, first + 2 + 2 * at, low);
            set_word(self.memory, first + 3 + 2 * at, high);
            if segment.is_approximate() {
                let begin = list;
                for unit in group.owned(segment) {
                    list += 1;
                    self.set_byte(list, unit);
                }
                self.set_byte(begin, (list - begin).saturating_sub(1) as u8);
                list += 1;
            }
        }
        self.moved += (list - first * WORD) as u64;
    }

    fn set_byte(&mut self, at: usize, value: u8) {
        if let Some(byte) = self.memory.get_mut(at) {
            *byte = value;
        }
    }

    fn granules(&self, slot: usize) -> usize {
        (word(self.memory, slot * WORDS + 1) & 0xFFFF) as usize
    }

    /// How many segments entry `at` has.
    pub fn segments(&self, at: usize) -> usize {
        match self.slot(at) {
            NONE => 0,
            slot => (word(self.memory, slot as usize * WORDS + 1) >> 16) as usize,
        }
    }

    /// Moves slots together if `granules` more and `entries` entries do not fit behind them.
    fn make_room(&mut self, granules: usize, entries: usize) {
        let limit = self.length().saturating_sub(entries * ENTRY) / GRANULE;
        if self.end + granules > limit {
            self.close_holes();
        }
    }

    fn tidy(&mut self) {
        if self.holes * HOLES > self.end {
            self.close_holes();
        }
    }

    fn close_holes(&mut self) {
        let (mut from, mut to) = (0, 0);
        while from < self.end {
            let group = word(self.memory, from * WORDS);
            let granules = self.granules(from).max(1);
            if group != NONE {
                if from != to {
                    let bytes = from * GRANULE..(from + granules) * GRANULE;
                    self.memory.copy_within(bytes, to * GRANULE);
                    self.moved += (granules * GRANULE) as u64;
                    let (at, _) = self.find(group);
                    self.set_entry(at, group, to as u32);
                }
                to += granules;
            }
            from += granules;
        }
        self.end = to;
        self.holes = 0;
    }

    /// Checks that slots and holes tile the memory, and that the directory leads to every slot.
    pub fn check(&self) -> Result<(), Broken> {
        let (mut at, mut slots, mut holes) = (0, 0, 0);
        while at < self.end {
            let (group, granules) = (word(self.memory, at * WORDS), self.granules(at));
            if granules == 0 {
                return Err(Broken("a slot has no granules"));
            }
            let (entry, _) = self.find(group);
            if group == NONE {
                holes += granules;
            } else if entry == self.entries || self.slot(entry) as usize != at {
                return Err(Broken("the directory does not lead to a slot"));
            } else {
                slots += 1;
            }
            at += granules;
        }
        if at != self.end || holes != self.holes || slots != self.entries {
            return Err(Broken("slots and holes do not tile the memory"));
        }
        if (1..self.entries).any(|at| self.group(at - 1) >= self.group(at)) {
            return Err(Broken("the groups of the directory do not rise"));
        }
        Ok(())
    }
}
