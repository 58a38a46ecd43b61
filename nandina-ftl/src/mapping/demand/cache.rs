//! The cached mapping table: single entries, the least recently used one last.
//!
//! ```text
//! | entries: logical, physical, newer, older, next in the chain and dirty mark | buckets |
//! ```
//!
//! A chain holds the entries of a few neighbouring units, so that all entries of a translation page
//! are found without a walk of the whole table. The table never reads or writes a page.

use core::cell::Cell;

use crate::mapping::Broken;
use crate::mapping::hashing::hash;
use crate::mapping::memory::{WORD, set_word, word};

/// No entry.
const NONE: u32 = u32::MAX;

/// Units whose entries are in the same chain.
const NEIGHBOURS: u32 = 8;

/// Words of an entry.
const WORDS: usize = 5;

const LOGICAL: usize = 0;
const PHYSICAL: usize = 1;
const NEWER: usize = 2;
const OLDER: usize = 3;
const CHAIN: usize = 4;

/// The mark in the word `CHAIN` of an entry that is newer than its translation page.
const DIRTY: u32 = 1 << 31;

/// The end of a chain, without the mark.
const END: u32 = !DIRTY;

/// Entries of units, in the order of their use.
pub(super) struct Cache<'m> {
    memory: &'m mut [u8],
    capacity: usize,
    entries: usize,
    newest: u32,
    oldest: u32,
    probes: Cell<u64>,
}

impl<'m> Cache<'m> {
    /// Bytes of an entry and of its bucket.
    pub const ENTRY: usize = (WORDS + 1) * WORD;

    /// An empty table with as many entries as fit in `memory`.
    pub fn new(memory: &'m mut [u8]) -> Self {
        let capacity = (memory.len() / Self::ENTRY).min(END as usize);
        for bucket in 0..capacity {
            set_word(memory, capacity * WORDS + bucket, END);
        }
        Cache { memory, capacity, entries: 0, newest: NONE, oldest: NONE, probes: Cell::new(0) }
    }

    pub fn entries(&self) -> usize {
        self.entries
    }

    pub fn is_full(&self) -> bool {
        self.entries == self.capacity
    }

    /// Bytes of the buckets and of `entries` entries.
    pub fn bytes(&self, entries: usize) -> usize {
        (self.capacity + entries * WORDS) * WORD
    }

    /// Entries and buckets that were read or written.
    pub fn probes(&self) -> u64 {
        self.probes.get()
    }

    fn field(&self, entry: u32, field: usize) -> u32 {
        word(self.memory, entry as usize * WORDS + field)
    }

    fn set(&mut self, entry: u32, field: usize, value: u32) {
        set_word(self.memory, entry as usize * WORDS + field, value);
    }

    /// The word of the bucket of `logical`.
    fn bucket(&self, logical: u32) -> usize {
        let bucket = (u64::from(hash(logical / NEIGHBOURS)) * self.capacity as u64) >> 32;
        self.capacity * WORDS + bucket as usize
    }

    fn next(&self, entry: u32) -> u32 {
        self.field(entry, CHAIN) & END
    }

    /// The entries of a chain, from its bucket on.
    fn chain(&self, logical: u32) -> impl Iterator<Item = u32> {
        let first = word(self.memory, self.bucket(logical));
        let real = |entry: u32| (entry != END).then_some(entry);
        core::iter::successors(real(first), move |&entry| real(self.next(entry)))
            .take(self.capacity)
    }

    fn count(&self, probes: u64) {
        self.probes.set(self.probes.get() + probes);
    }

    /// The entry of `logical`, without an account of the work.
    pub fn peek(&self, logical: u32) -> Option<u32> {
        self.chain(logical).find(|&entry| self.field(entry, LOGICAL) == logical)
    }

    /// The entry of `logical`.
    pub fn find(&self, logical: u32) -> Option<u32> {
        let mut probes = 1;
        let mut chain = self.chain(logical).inspect(|_| probes += 1);
        let found = chain.find(|&entry| self.field(entry, LOGICAL) == logical);
        drop(chain);
        self.count(probes);
        found
    }

    pub fn physical(&self, entry: u32) -> u32 {
        self.field(entry, PHYSICAL)
    }

    /// Changes where the unit of an entry is, and marks the entry as dirty.
    pub fn change(&mut self, entry: u32, physical: u32) {
        self.set(entry, PHYSICAL, physical);
        self.set(entry, CHAIN, self.field(entry, CHAIN) | DIRTY);
        self.count(1);
    }

    /// Makes the entry the newest one.
    pub fn touch(&mut self, entry: u32) {
        if self.newest != entry {
            self.unlist(entry);
            self.list(entry);
        }
    }

    fn unlist(&mut self, entry: u32) {
        let (newer, older) = (self.field(entry, NEWER), self.field(entry, OLDER));
        match newer {
            NONE => self.newest = older,
            _ => self.set(newer, OLDER, older),
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.set(older, NEWER, newer),
        }
        self.count(3);
    }

    fn list(&mut self, entry: u32) {
        let newest = self.newest;
        self.set(entry, NEWER, NONE);
        self.set(entry, OLDER, newest);
        match newest {
            NONE => self.oldest = entry,
            _ => self.set(newest, NEWER, entry),
        }
        self.newest = entry;
        self.count(2);
    }

    /// The oldest entry's unit, and whether the entry is dirty.
    pub fn oldest(&self) -> Option<(u32, bool)> {
        let is_dirty = |entry| self.field(entry, CHAIN) & DIRTY != 0;
        (self.oldest != NONE).then(|| (self.field(self.oldest, LOGICAL), is_dirty(self.oldest)))
    }

    /// Adds an entry to a table that is not full; no entry has its unit.
    pub fn insert(&mut self, logical: u32, physical: u32, is_dirty: bool) {
        // Entries lie in a row: a removal fills its place with the last one.
        let entry = self.entries as u32;
        self.entries += 1;
        let bucket = self.bucket(logical);
        let next = word(self.memory, bucket);
        self.set(entry, LOGICAL, logical);
        self.set(entry, PHYSICAL, physical);
        self.set(entry, CHAIN, next | if is_dirty { DIRTY } else { 0 });
        set_word(self.memory, bucket, entry);
        self.list(entry);
        self.count(2);
    }

    /// Drops the oldest entry, whatever its mark.
    pub fn drop_oldest(&mut self) {
        let entry = self.oldest;
        if entry == NONE {
            return;
        }
        self.unlist(entry);
        self.relink(entry, self.next(entry));
        let last = self.entries as u32 - 1;
        if last != entry {
            self.relink(last, entry);
            for field in 0..WORDS {
                self.set(entry, field, self.field(last, field));
            }
            match self.field(entry, NEWER) {
                NONE => self.newest = entry,
                newer => self.set(newer, OLDER, entry),
            }
            match self.field(entry, OLDER) {
                NONE => self.oldest = entry,
                older => self.set(older, NEWER, entry),
            }
            self.count(4);
        }
        self.entries -= 1;
    }

    /// Lets what leads to `entry` in its chain lead to `to`.
    fn relink(&mut self, entry: u32, to: u32) {
        let logical = self.field(entry, LOGICAL);
        let before = self.chain(logical).take_while(|&at| at != entry).last();
        match before {
            Some(before) => {
                let mark = self.field(before, CHAIN) & DIRTY;
                self.set(before, CHAIN, to | mark);
            }
            None => set_word(self.memory, self.bucket(logical), to),
        }
        self.count(2);
    }

    /// Passes unit and place of each dirty entry of the `count` units from `first` on; cleans them.
    pub fn clean(&mut self, first: u32, count: u32, mut pass: impl FnMut(u32, u32)) {
        for chain in (first..first.saturating_add(count)).step_by(NEIGHBOURS as usize) {
            let mut at = word(self.memory, self.bucket(chain));
            let mut probes = 1;
            while at != END && probes <= self.capacity as u64 {
                let logical = self.field(at, LOGICAL);
                let link = self.field(at, CHAIN);
                if link & DIRTY != 0 && logical / NEIGHBOURS == chain / NEIGHBOURS {
                    pass(logical, self.field(at, PHYSICAL));
                    self.set(at, CHAIN, link & END);
                }
                at = link & END;
                probes += 1;
            }
            self.count(probes);
        }
    }

    /// Checks the lists and the chains of the table.
    pub fn check(&self) -> Result<(), Broken> {
        let (mut at, mut newer, mut listed) = (self.newest, NONE, 0);
        while at != NONE {
            if listed == self.entries || self.field(at, NEWER) != newer {
                return Err(Broken("the list of cached entries does not hold together"));
            }
            if self.peek(self.field(at, LOGICAL)) != Some(at) {
                return Err(Broken("a cached entry is not in its chain, or is there twice"));
            }
            (newer, at) = (at, self.field(at, OLDER));
            listed += 1;
        }
        if newer != self.oldest || listed != self.entries {
            return Err(Broken("a cached entry is not listed"));
        }
        Ok(())
    }
}
