//! Cuckoo hashing: a node is in one of two buckets (§6.2.1, Table 4).
//!
//! ```text
//! | stash: 384 nodes | buckets of 4 nodes |
//! node:   key, length, word; the key 0 says that there is none
//! ```
//!
//! A new node displaces another one where both of its buckets are full, and that one moves to its
//! other bucket. After many moves the last one goes to the stash, which is searched while it holds
//! any. A change is refused while the stash could not take all nodes that it adds, so no node is
//! ever lost. The table doubles when four fifths of it are full.

use core::cell::Cell;

use super::table::{Node, Table};
use crate::mapping::hashing::hash;
use crate::mapping::memory::{WORD, set_word, word};
use crate::mapping::{Broken, Bytes, Refusal};

/// Words of a node.
const WORDS: usize = 3;

/// Nodes of a bucket.
const SLOTS: usize = 4;

/// Nodes of the stash: more than a change of any length adds.
const STASH: usize = 384;

/// Nodes that a new one displaces at most.
const MOVES: usize = 500;

/// A cuckoo hash table in memory of the caller.
pub struct Cuckoo<'m> {
    memory: &'m mut [u8],
    /// A power of two.
    buckets: usize,
    /// The most that `buckets` can become.
    buckets_max: usize,
    entries: usize,
    stashed: usize,
    peak: usize,
    probes: Cell<u64>,
    /// Changes at each displacement, so that moves do not go round in circles.
    turn: u32,
}

impl<'m> Cuckoo<'m> {
    /// Bytes of the stash.
    pub const STASH_BYTES: usize = STASH * WORDS * WORD;

    /// Bytes of a bucket.
    pub const BUCKET: usize = SLOTS * WORDS * WORD;

    /// An empty table. Refuses with [`Refusal::Full`] if stash and a bucket do not fit.
    pub fn new(memory: &'m mut [u8]) -> Result<Self, Refusal> {
        let needed = Self::STASH_BYTES + Self::BUCKET;
        let buckets = memory.len().saturating_sub(Self::STASH_BYTES) / Self::BUCKET;
        let Some(bits) = buckets.checked_ilog2() else { return Err(Refusal::Full { needed }) };
        memory.get_mut(..needed).ok_or(Refusal::Full { needed })?.fill(0);
        let probes = Cell::new(0);
        let buckets_max = 1 << bits;
        let table = Cuckoo {
            memory,
            buckets: 1,
            buckets_max,
            entries: 0,
            stashed: 0,
            peak: 0,
            probes,
            turn: 0,
        };
        Ok(table)
    }

    /// Nodes that fit in `buckets` buckets: four fifths of them.
    fn capacity(buckets: usize) -> usize {
        (buckets * SLOTS * 4 / 5).max(1)
    }

    /// The two buckets of a key.
    fn choices(&self, key: u32) -> [usize; 2] {
        let first = hash(key);
        let second = hash(first ^ 0x9E37_79B9);
        [first, second].map(|hash| hash as usize & (self.buckets - 1))
    }

    fn slot(bucket: usize, at: usize) -> usize {
        STASH + bucket * SLOTS + at
    }

    fn key(&self, slot: usize) -> u32 {
        self.probes.set(self.probes.get() + 1);
        word(self.memory, slot * WORDS)
    }

    fn node(&self, slot: usize) -> Node {
        let [length, word] = [1, 2].map(|at| word(self.memory, slot * WORDS + at));
        Node { length, word }
    }

    fn set(&mut self, slot: usize, key: u32, node: Node) {
        for (at, value) in [key, node.length, node.word].into_iter().enumerate() {
            set_word(self.memory, slot * WORDS + at, value);
        }
    }

    /// The slot of `key`.
    fn find(&self, key: u32) -> Option<usize> {
        let [first, second] = self.choices(key);
        let slots = |bucket: usize| (0..SLOTS).map(move |at| Self::slot(bucket, at));
        let mut found = slots(first).find(|&slot| self.key(slot) == key);
        if found.is_none() && second != first {
            found = slots(second).find(|&slot| self.key(slot) == key);
        }
        found.or_else(|| (0..self.stashed).find(|&slot| self.key(slot) == key))
    }

    fn empty(&self, bucket: usize) -> Option<usize> {
        (0..SLOTS).map(|at| Self::slot(bucket, at)).find(|&slot| self.key(slot) == 0)
    }

    fn place(&mut self, mut key: u32, mut node: Node) {
        let choices = self.choices(key);
        if let Some(slot) = choices.into_iter().find_map(|bucket| self.empty(bucket)) {
            return self.set(slot, key, node);
        }
        let mut bucket = choices[0];
        for _ in 0..MOVES {
            self.turn = self.turn.wrapping_add(1);
            let slot = Self::slot(bucket, hash(self.turn) as usize % SLOTS);
            let displaced = (self.key(slot), self.node(slot));
            self.set(slot, key, node);
            (key, node) = displaced;
            let [first, second] = self.choices(key);
            bucket = if bucket == first { second } else { first };
            if let Some(slot) = self.empty(bucket) {
                return self.set(slot, key, node);
            }
        }
        self.set(self.stashed, key, node);
        self.stashed += 1;
    }

    /// Doubles the buckets.
    ///
    /// A node moves to the new bucket that has its old number in its low bits.
    fn double(&mut self) {
        let old = self.buckets;
        let begin = Self::slot(old, 0) * WORDS * WORD;
        if let Some(new) = self.memory.get_mut(begin..begin + old * Self::BUCKET) {
            new.fill(0);
        }
        for bucket in 0..old {
            for slot in (0..SLOTS).map(|at| Self::slot(bucket, at)) {
                let (key, node) = (self.key(slot), self.node(slot));
                if key == 0 {
                    continue;
                }
                self.buckets = 2 * old;
                let choices = self.choices(key);
                self.buckets = old;
                let target = choices.into_iter().find(|choice| choice & (old - 1) == bucket);
                if let Some(target) = target.filter(|&target| target != bucket) {
                    // The new bucket takes nodes of this one only, so that a slot is free.
                    if let Some(place) = self.empty(target) {
                        self.set(place, key, node);
                        self.set(slot, 0, Node { length: 0, word: 0 });
                    }
                }
            }
        }
        self.buckets = 2 * old;
        for _ in 0..self.stashed {
            self.stashed -= 1;
            let (key, node) = (self.key(self.stashed), self.node(self.stashed));
            self.place(key, node);
        }
    }

    fn used(&self) -> usize {
        Self::STASH_BYTES + self.buckets * Self::BUCKET
    }
}

impl Table for Cuckoo<'_> {
    fn get(&self, key: u32) -> Option<Node> {
        self.find(key).map(|slot| self.node(slot))
    }

    fn put(&mut self, key: u32, node: Node) {
        match self.find(key) {
            Some(slot) => self.set(slot, key, node),
            None => {
                while self.entries >= Self::capacity(self.buckets)
                    && self.buckets < self.buckets_max
                {
                    self.double();
                }
                self.place(key, node);
                self.entries += 1;
            }
        }
        self.peak = self.peak.max(self.used());
    }

    fn remove(&mut self, key: u32) {
        let Some(slot) = self.find(key) else { return };
        let none = Node { length: 0, word: 0 };
        self.entries -= 1;
        if slot < self.stashed {
            self.stashed -= 1;
            let (key, node) = (self.key(self.stashed), self.node(self.stashed));
            self.set(slot, key, node);
            self.set(self.stashed, 0, none);
        } else {
            self.set(slot, 0, none);
        }
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        let fits = self.entries + more <= Self::capacity(self.buckets_max);
        if fits && self.stashed + more <= STASH {
            return Ok(());
        }
        let mut buckets = self.buckets_max;
        while self.entries + more > Self::capacity(buckets) || buckets == self.buckets_max && fits {
            buckets *= 2;
        }
        Err(Refusal::Full { needed: Self::STASH_BYTES + buckets * Self::BUCKET })
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn bytes(&self) -> Bytes {
        Bytes { used: self.used(), reserved: self.memory.len(), peak: self.peak.max(self.used()) }
    }

    fn probes(&self) -> u64 {
        self.probes.get()
    }

    fn each(&self, visit: &mut dyn FnMut(u32, Node)) {
        let stash = 0..self.stashed;
        for slot in stash.chain(STASH..STASH + self.buckets * SLOTS) {
            let key = word(self.memory, slot * WORDS);
            if key != 0 {
                visit(key, self.node(slot));
            }
        }
    }

    fn check(&self) -> Result<(), Broken> {
        let (mut count, mut lost) = (0, false);
        self.each(&mut |key, node| {
            count += 1;
            lost |= self.get(key) != Some(node);
        });
        if lost {
            return Err(Broken("a node is in neither of its buckets"));
        }
        if count != self.entries {
            return Err(Broken("the number of nodes is wrong"));
        }
        Ok(())
    }
}
