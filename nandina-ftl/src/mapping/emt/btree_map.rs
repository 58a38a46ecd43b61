//! Runs in the standard library's `BTreeMap`, for an Extent Mapping Tree (§2.3).
//!
//! The map allocates on the heap. Its nodes cannot be seen, so bytes are those of the entries
//! alone, a lower bound, and a limit in bytes is a limit of entries.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use core::cell::Cell;

use super::ordered::Ordered;
use crate::mapping::{Broken, Bytes, Refusal, Run, Work};

/// Runs by their first logical unit; the value is length and physical start.
pub struct Runs {
    map: BTreeMap<u32, (u32, u32)>,
    limit: usize,
    peak: usize,
    calls: Cell<u64>,
}

impl Runs {
    /// Bytes of an entry: three words.
    pub const ENTRY: usize = 12;

    /// An empty map that takes entries of at most `limit` bytes together.
    pub fn new(limit: usize) -> Self {
        Runs { map: BTreeMap::new(), limit, peak: 0, calls: Cell::new(0) }
    }

    fn call(&self) {
        self.calls.set(self.calls.get() + 1);
    }
}

fn run((&logical, &(length, physical)): (&u32, &(u32, u32))) -> Run {
    Run { logical, length, physical }
}

impl Ordered for Runs {
    fn predecessor(&self, start: u32) -> Option<Run> {
        self.call();
        self.map.range(..=start).next_back().map(run)
    }

    fn successor(&self, start: u32) -> Option<Run> {
        self.call();
        self.map.range((Excluded(start), Unbounded)).next().map(run)
    }

    fn insert(&mut self, run: Run) {
        self.call();
        self.map.insert(run.logical, (run.length, run.physical));
        self.peak = self.peak.max(self.map.len());
    }

    fn delete(&mut self, start: u32) {
        self.call();
        self.map.remove(&start);
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        let needed = (self.map.len() + more) * Self::ENTRY;
        if needed <= self.limit { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    fn entries(&self) -> usize {
        self.map.len()
    }

    fn bytes(&self) -> Bytes {
        let [used, peak] = [self.map.len(), self.peak].map(|entries| entries * Self::ENTRY);
        Bytes { used, reserved: self.limit, peak }
    }

    fn work(&self) -> Work {
        Work { probes: self.calls.get(), ..Work::default() }
    }

    fn check(&self) -> Result<(), Broken> {
        if self.map.len() * Self::ENTRY > self.limit {
            return Err(Broken("the map has more entries than its limit allows"));
        }
        Ok(())
    }
}
