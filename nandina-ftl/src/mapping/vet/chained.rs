//! Hash tables with chains: the paper's `myhash`, and `uthash` (§6.2.1).
//!
//! ```text
//! | buckets: a word each, the first node of a chain | nodes |
//! node:   key, length, word, next; with handles also previous, newer, older, hash
//! ```
//!
//! A handle is what makes a node part of an *intrusive* table: it can be dropped without a walk of
//! its chain, and all nodes are listed in the order of their making. Handles of `uthash` have three
//! more words: table, key and length of the key.
//!
//! Buckets are made one by one as the table fills; nothing is ever hashed again at once.

use core::cell::Cell;

use super::table::{Node, Table};
use crate::mapping::hashing::hash;
use crate::mapping::memory::{WORD, set_word, word};
use crate::mapping::{Broken, Bytes, Refusal};

/// No node.
const NONE: u32 = u32::MAX;

/// The words of a node; those from `PREVIOUS` on are its handle.
const KEY: usize = 0;
const LENGTH: usize = 1;
const PLACE: usize = 2;
const NEXT: usize = 3;
const PREVIOUS: usize = 4;
const NEWER: usize = 5;
const OLDER: usize = 6;
const HASH: usize = 7;

/// A hash table with chains; with `HANDLES` an intrusive one.
pub struct Chained<'m, const HANDLES: bool> {
    memory: &'m mut [u8],
    /// Nodes for which there is memory, with a bucket each.
    capacity: usize,
    buckets: usize,
    /// The first free node, and how many nodes were ever used.
    free: u32,
    made: usize,
    entries: usize,
    newest: u32,
    peak: usize,
    probes: Cell<u64>,
}

impl<'m, const HANDLES: bool> Chained<'m, HANDLES> {
    /// Words of a node.
    const WORDS: usize = if HANDLES { 8 } else { 4 };

    /// Bytes of a node and of its bucket.
    pub const NODE: usize = (Self::WORDS + 1) * WORD;

    /// An empty table. It holds a node for each [`Self::NODE`] bytes of `memory`.
    pub fn new(memory: &'m mut [u8]) -> Self {
        let capacity = memory.len() / Self::NODE;
        set_word(memory, 0, NONE);
        Chained {
            memory,
            capacity,
            buckets: 1,
            free: NONE,
            made: 0,
            entries: 0,
            newest: NONE,
            peak: 0,
            probes: Cell::new(0),
        }
    }

    fn field(&self, node: u32, field: usize) -> u32 {
        word(self.memory, self.capacity + node as usize * Self::WORDS + field)
    }

    fn set(&mut self, node: u32, field: usize, value: u32) {
        set_word(self.memory, self.capacity + node as usize * Self::WORDS + field, value);
    }

    fn bucket(&self, hash: u32) -> usize {
        let low = self.buckets.ilog2();
        let index = hash as usize & ((2 << low) - 1);
        if index < self.buckets { index } else { hash as usize & ((1 << low) - 1) }
    }

    fn hash_of(&self, node: u32) -> u32 {
        if HANDLES { self.field(node, HASH) } else { hash(self.field(node, KEY)) }
    }

    fn probe(&self) {
        self.probes.set(self.probes.get() + 1);
    }

    /// The node of `key` in its chain, and the one before it.
    fn find(&self, bucket: usize, key: u32) -> (u32, u32) {
        let (mut node, mut previous) = (word(self.memory, bucket), NONE);
        self.probe();
        while node != NONE {
            self.probe();
            if self.field(node, KEY) == key {
                break;
            }
            previous = node;
            node = self.field(node, NEXT);
        }
        (node, previous)
    }

    /// Makes a node the first of a chain.
    fn link(&mut self, bucket: usize, node: u32) {
        let first = word(self.memory, bucket);
        self.set(node, NEXT, first);
        if HANDLES {
            self.set(node, PREVIOUS, NONE);
            if first != NONE {
                self.set(first, PREVIOUS, node);
            }
        }
        set_word(self.memory, bucket, node);
    }

    fn unlink(&mut self, bucket: usize, node: u32, previous: u32) {
        let next = self.field(node, NEXT);
        if previous == NONE {
            set_word(self.memory, bucket, next);
        } else {
            self.set(previous, NEXT, next);
        }
        if HANDLES && next != NONE {
            self.set(next, PREVIOUS, previous);
        }
    }

    /// Makes the next bucket and moves the nodes there that belong to it.
    fn add_bucket(&mut self) {
        let new = self.buckets;
        let old = new - (1 << new.ilog2());
        set_word(self.memory, new, NONE);
        self.buckets += 1;
        let mut node = word(self.memory, old);
        let mut previous = NONE;
        while node != NONE {
            self.probe();
            let next = self.field(node, NEXT);
            if self.bucket(self.hash_of(node)) == new {
                self.unlink(old, node, previous);
                self.link(new, node);
            } else {
                previous = node;
            }
            node = next;
        }
    }

    fn take_node(&mut self) -> u32 {
        if self.free == NONE {
            self.made += 1;
            return (self.made - 1) as u32;
        }
        let node = self.free;
        self.free = self.field(node, NEXT);
        node
    }

    fn used(&self) -> usize {
        (self.buckets + self.made * Self::WORDS) * WORD
    }
}

impl<const HANDLES: bool> Table for Chained<'_, HANDLES> {
    fn get(&self, key: u32) -> Option<Node> {
        let (node, _) = self.find(self.bucket(hash(key)), key);
        (node != NONE)
            .then(|| Node { length: self.field(node, LENGTH), word: self.field(node, PLACE) })
    }

    fn put(&mut self, key: u32, value: Node) {
        let hash = hash(key);
        let bucket = self.bucket(hash);
        let (mut node, _) = self.find(bucket, key);
        if node == NONE {
            node = self.take_node();
            self.set(node, KEY, key);
            self.link(bucket, node);
            self.entries += 1;
            if HANDLES {
                let newest = self.newest;
                self.set(node, HASH, hash);
                self.set(node, OLDER, newest);
                self.set(node, NEWER, NONE);
                if newest != NONE {
                    self.set(newest, NEWER, node);
                }
                self.newest = node;
            }
            if self.entries > self.buckets {
                self.add_bucket();
            }
        }
        self.set(node, LENGTH, value.length);
        self.set(node, PLACE, value.word);
        self.peak = self.peak.max(self.used());
    }

    fn remove(&mut self, key: u32) {
        let bucket = self.bucket(hash(key));
        let (node, mut previous) = self.find(bucket, key);
        if node == NONE {
            return;
        }
        if HANDLES {
            previous = self.field(node, PREVIOUS);
            let (newer, older) = (self.field(node, NEWER), self.field(node, OLDER));
            if newer == NONE {
                self.newest = older;
            } else {
                self.set(newer, OLDER, older);
            }
            if older != NONE {
                self.set(older, NEWER, newer);
            }
        }
        self.unlink(bucket, node, previous);
        self.set(node, NEXT, self.free);
        self.free = node;
        self.entries -= 1;
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        let needed = (self.entries + more) * Self::NODE;
        if self.entries + more <= self.capacity { Ok(()) } else { Err(Refusal::Full { needed }) }
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
        for bucket in 0..self.buckets {
            let mut node = word(self.memory, bucket);
            while node != NONE {
                let value =
                    Node { length: self.field(node, LENGTH), word: self.field(node, PLACE) };
                visit(self.field(node, KEY), value);
                node = self.field(node, NEXT);
            }
        }
    }

    fn check(&self) -> Result<(), Broken> {
        let mut count = 0;
        for bucket in 0..self.buckets.min(self.capacity) {
            let mut node = word(self.memory, bucket);
            while node != NONE {
                count += 1;
                if count > self.entries {
                    return Err(Broken("chains have more nodes than the table"));
                }
                if self.bucket(hash(self.field(node, KEY))) != bucket {
                    return Err(Broken("a node is in the chain of another bucket"));
                }
                let next = self.field(node, NEXT);
                if HANDLES && next != NONE && self.field(next, PREVIOUS) != node {
                    return Err(Broken("a handle does not lead back"));
                }
                node = next;
            }
        }
        let (mut node, mut listed) = (self.newest, 0);
        while HANDLES && node != NONE && listed <= self.entries {
            listed += 1;
            node = self.field(node, OLDER);
        }
        if count != self.entries || HANDLES && listed != self.entries {
            return Err(Broken("chains or list have fewer nodes than the table"));
        }
        Ok(())
    }
}
