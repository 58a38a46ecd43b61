//! The crate `hashbrown` as a table of a virtual trie (§6.2.1).
//!
//! It allocates on the heap, and tells how much. While it grows, it has two allocations for a
//! moment; the bytes here are those of the one that stays.

use core::cell::Cell;

use hashbrown::HashMap;

use super::table::{Node, Table};
use crate::mapping::hashing::Hashing;
use crate::mapping::{Broken, Bytes, Refusal};

/// A table of the crate `hashbrown` that allocates at most a given number of bytes.
pub struct Brown {
    map: HashMap<u32, Node, Hashing>,
    limit: usize,
    peak: usize,
    calls: Cell<u64>,
}

impl Brown {
    /// An empty table that allocates at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Brown { map: HashMap::default(), limit, peak: 0, calls: Cell::new(0) }
    }

    /// Bytes of an allocation for `entries` nodes, at most 7/8 of its buckets.
    ///
    /// Buckets are a power of two and take 13 bytes each; a few more let groups be read whole.
    pub fn allocation(entries: usize) -> usize {
        let buckets = (entries * 8).div_ceil(7).next_power_of_two().max(4);
        buckets * 13 + 64
    }

    fn call(&self) {
        self.calls.set(self.calls.get() + 1);
    }
}

impl Table for Brown {
    fn get(&self, key: u32) -> Option<Node> {
        self.call();
        self.map.get(&key).copied()
    }

    fn put(&mut self, key: u32, node: Node) {
        self.call();
        self.map.insert(key, node);
        self.peak = self.peak.max(self.map.allocation_size());
    }

    fn remove(&mut self, key: u32) {
        self.call();
        self.map.remove(&key);
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        let entries = self.map.len() + more;
        let needed = Self::allocation(entries);
        let fits = entries <= self.map.capacity() || needed <= self.limit;
        if fits { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    fn entries(&self) -> usize {
        self.map.len()
    }

    fn bytes(&self) -> Bytes {
        Bytes { used: self.map.allocation_size(), reserved: self.limit, peak: self.peak }
    }

    fn probes(&self) -> u64 {
        self.calls.get()
    }

    fn each(&self, visit: &mut dyn FnMut(u32, Node)) {
        self.map.iter().for_each(|(&key, &node)| visit(key, node));
    }

    fn check(&self) -> Result<(), Broken> {
        if self.map.allocation_size() > self.limit {
            return Err(Broken("the table has allocated more than its limit"));
        }
        Ok(())
    }
}
