//! A y-fast trie as the container of an Extent Mapping Tree (Lemma 5.6).
//!
//! The authors did not build it. Runs are in buckets, sorted arrays of 8 to 64; each bucket has a
//! representative, a unit at or before its first run. An x-fast trie over the representatives
//! holds every prefix of each in a hash table, with the least and the greatest representative
//! below. To find the bucket of a unit is a binary search for its longest prefix there: a
//! logarithm of its bits. A bucket that overflows is divided, a small one joins the one before.
//!
//! The first bucket has the representative 0 and always stays, so every unit has a bucket.

use std::vec::Vec;

use core::cell::Cell;

use hashbrown::HashMap;

use super::ordered::Ordered;
use crate::mapping::hashing::Hashing;
use crate::mapping::{Broken, Bytes, Refusal, Run, Space, Work};

/// The most runs of a bucket, and those below which it joins the one before.
const MOST: usize = 64;
const LEAST: usize = 8;

/// Runs of a bucket, and the representatives of its neighbours.
struct Bucket {
    runs: Vec<Run>,
    previous: Option<u32>,
    next: Option<u32>,
}

/// Runs in a y-fast trie. It allocates on the heap.
pub struct YFast {
    /// How many bits a unit has.
    bits: u32,
    /// By prefix, behind a leading 1: the least and the greatest representative below.
    prefixes: HashMap<u64, (u32, u32), Hashing>,
    buckets: HashMap<u32, Bucket, Hashing>,
    entries: usize,
    limit: usize,
    peak: usize,
    probes: Cell<u64>,
}

impl Bucket {
    /// An empty bucket.
    ///
    /// Its memory never grows: it is divided when it has one run too many.
    fn new(previous: Option<u32>, next: Option<u32>) -> Self {
        Bucket { runs: Vec::with_capacity(MOST + 1), previous, next }
    }

    /// How many of its runs begin at `start` or before it.
    fn up_to(&self, start: u32) -> usize {
        self.runs.partition_point(|run| run.logical <= start)
    }
}

impl YFast {
    /// Bytes of the runs of a bucket.
    pub const BUCKET: usize = (MOST + 1) * size_of::<Run>();

    /// An empty trie that allocates about `limit` bytes at most.
    ///
    /// A change that adds no run is never refused; it can divide a bucket above the limit.
    pub fn new(space: Space, limit: usize) -> Result<Self, Refusal> {
        let bits = u32::BITS - space.logical.leading_zeros();
        let mut trie = YFast {
            bits,
            prefixes: HashMap::default(),
            buckets: HashMap::default(),
            entries: 0,
            limit,
            peak: 0,
            probes: Cell::new(0),
        };
        trie.buckets.insert(0, Bucket::new(None, None));
        trie.add_prefixes(0);
        trie.room(1)?;
        trie.peak = trie.used();
        Ok(trie)
    }

    /// Bytes with which `runs` runs fit, if buckets are half full on average.
    pub fn bytes_for(space: Space, runs: usize) -> usize {
        let buckets = runs.div_ceil(MOST / 2) + 3;
        let prefixes = buckets * (space.logical.checked_ilog2().unwrap_or(0) as usize + 2);
        buckets * Self::BUCKET
            + 64 * (buckets + 1).next_power_of_two() * 2
            + 17 * (2 * prefixes).next_power_of_two()
            + 256
    }

    fn used(&self) -> usize {
        let tables = self.prefixes.allocation_size() + self.buckets.allocation_size();
        tables + self.buckets.len() * Self::BUCKET
    }

    fn probe(&self) {
        self.probes.set(self.probes.get() + 1);
    }

    fn prefix(&self, unit: u32, level: u32) -> u64 {
        1 << level | u64::from(unit) >> (self.bits - level)
    }

    /// The representative of the bucket in which a run that begins at `unit` belongs.
    fn representative(&self, unit: u32) -> u32 {
        let (mut low, mut high) = (0, self.bits + 1);
        let mut below = None;
        while high - low > 1 || below.is_none() {
            let level = (low + high) / 2;
            self.probe();
            match self.prefixes.get(&self.prefix(unit, level)) {
                Some(found) => (low, below) = (level, Some(*found)),
                None if level == 0 => break,
                None => high = level,
            }
        }
        let Some((least, greatest)) = below else { return 0 };
        // Behind the longest prefix, the trie has the other bit only: all are below, or above.
        if greatest <= unit {
            return greatest;
        }
        self.probe();
        self.buckets.get(&least).and_then(|bucket| bucket.previous).unwrap_or(0)
    }

    fn add_prefixes(&mut self, representative: u32) {
        for level in 0..=self.bits {
            let key = self.prefix(representative, level);
            let (least, greatest) =
                self.prefixes.entry(key).or_insert((representative, representative));
            *least = representative.min(*least);
            *greatest = representative.max(*greatest);
            self.probe();
        }
    }

    fn remove_prefixes(&mut self, representative: u32, previous: Option<u32>, next: Option<u32>) {
        for level in 0..=self.bits {
            let key = self.prefix(representative, level);
            self.probe();
            let Some((least, greatest)) = self.prefixes.get_mut(&key) else { continue };
            if least == greatest {
                self.prefixes.remove(&key);
                continue;
            }
            if *least == representative {
                *least = next.unwrap_or(*greatest);
            }
            if *greatest == representative {
                *greatest = previous.unwrap_or(*least);
            }
        }
    }

    /// Moves the upper half of a bucket to a new one.
    fn divide(&mut self, representative: u32) {
        let Some(bucket) = self.buckets.get_mut(&representative) else { return };
        let half = bucket.runs.len() / 2;
        let Some(first) = bucket.runs.get(half).map(|run| run.logical) else { return };
        let mut upper = Bucket::new(Some(representative), bucket.next);
        upper.runs.extend(bucket.runs.drain(half..));
        let next = bucket.next.replace(first);
        self.buckets.insert(first, upper);
        if let Some(next) = next.and_then(|next| self.buckets.get_mut(&next)) {
            next.previous = Some(first);
        }
        self.add_prefixes(first);
        self.probe();
    }

    /// Moves the runs of a bucket to the one before it.
    fn join(&mut self, representative: u32, previous: u32) {
        let Some(bucket) = self.buckets.remove(&representative) else { return };
        self.remove_prefixes(representative, Some(previous), bucket.next);
        if let Some(next) = bucket.next.and_then(|next| self.buckets.get_mut(&next)) {
            next.previous = Some(previous);
        }
        if let Some(before) = self.buckets.get_mut(&previous) {
            before.next = bucket.next;
            before.runs.extend(bucket.runs);
        }
        self.probe();
    }
}

impl Ordered for YFast {
    fn predecessor(&self, start: u32) -> Option<Run> {
        let mut bucket = self.buckets.get(&self.representative(start))?;
        self.probe();
        match bucket.up_to(start).checked_sub(1) {
            Some(at) => bucket.runs.get(at).copied(),
            None => {
                // Only the first bucket can be empty.
                bucket = self.buckets.get(&bucket.previous?)?;
                self.probe();
                bucket.runs.last().copied()
            }
        }
    }

    fn successor(&self, start: u32) -> Option<Run> {
        let bucket = self.buckets.get(&self.representative(start))?;
        self.probe();
        if let Some(run) = bucket.runs.get(bucket.up_to(start)) {
            return Some(*run);
        }
        self.probe();
        self.buckets.get(&bucket.next?)?.runs.first().copied()
    }

    fn insert(&mut self, run: Run) {
        let representative = self.representative(run.logical);
        self.probe();
        let Some(bucket) = self.buckets.get_mut(&representative) else { return };
        let at = bucket.up_to(run.logical);
        let same = at.checked_sub(1).and_then(|at| bucket.runs.get_mut(at));
        match same.filter(|same| same.logical == run.logical) {
            Some(same) => *same = run,
            None => {
                bucket.runs.insert(at, run);
                self.entries += 1;
                if bucket.runs.len() > MOST {
                    self.divide(representative);
                }
            }
        }
        self.peak = self.peak.max(self.used());
    }

    fn delete(&mut self, start: u32) {
        let representative = self.representative(start);
        self.probe();
        let Some(bucket) = self.buckets.get_mut(&representative) else { return };
        let Some(at) = bucket.runs.iter().position(|run| run.logical == start) else { return };
        bucket.runs.remove(at);
        self.entries -= 1;
        let (few, previous) = (bucket.runs.len() < LEAST, bucket.previous);
        if let Some(previous) = previous.filter(|_| few) {
            // A bucket that would overflow is divided first: both halves are large enough.
            if self.buckets.get(&previous).is_some_and(|before| before.runs.len() > MOST - LEAST) {
                self.divide(previous);
            }
            let before = self.buckets.get(&representative).and_then(|bucket| bucket.previous);
            self.join(representative, before.unwrap_or(previous));
        }
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        if more == 0 {
            return Ok(());
        }
        // Two runs divide two buckets at most; a table that is full doubles.
        let prefixes = self.prefixes.len() + 2 * (self.bits as usize + 1);
        let doubles = |full: bool, bytes: usize| if full { 2 * bytes + 64 } else { bytes };
        let needed = doubles(prefixes > self.prefixes.capacity(), self.prefixes.allocation_size())
            + doubles(
                self.buckets.len() + 2 > self.buckets.capacity(),
                self.buckets.allocation_size(),
            )
            + (self.buckets.len() + 2) * Self::BUCKET;
        if needed <= self.limit { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn bytes(&self) -> Bytes {
        Bytes { used: self.used(), reserved: self.limit, peak: self.peak }
    }

    fn work(&self) -> Work {
        Work { probes: self.probes.get(), ..Work::default() }
    }

    fn check(&self) -> Result<(), Broken> {
        let (mut representative, mut previous) = (Some(0), None);
        let (mut count, mut buckets) = (0, 0);
        while let Some(at) = representative {
            let Some(bucket) = self.buckets.get(&at) else {
                return Err(Broken("a bucket that is listed is missing"));
            };
            if bucket.previous != previous || previous.is_some_and(|previous| previous >= at) {
                return Err(Broken("buckets are not listed in order"));
            }
            let ordered = bucket.runs.windows(2).all(|pair| pair[0].logical < pair[1].logical);
            let last = bucket.next.unwrap_or(u32::MAX);
            let inside = bucket.runs.iter().all(|run| (at..last).contains(&run.logical));
            if !ordered || !inside {
                return Err(Broken("a run is in another bucket than its own"));
            }
            if bucket.runs.len() > MOST || at > 0 && bucket.runs.len() < LEAST {
                return Err(Broken("a bucket is too large or too small"));
            }
            for level in 0..=self.bits {
                let found = self.prefixes.get(&self.prefix(at, level));
                if !found.is_some_and(|&(least, greatest)| (least..=greatest).contains(&at)) {
                    return Err(Broken("a prefix of a representative is missing"));
                }
            }
            count += bucket.runs.len();
            buckets += 1;
            previous = Some(at);
            representative = bucket.next;
        }
        if count != self.entries || buckets != self.buckets.len() {
            return Err(Broken("buckets hold other runs than there are"));
        }
        let known = |at: &u32| self.buckets.contains_key(at);
        if self.prefixes.values().any(|(least, greatest)| !known(least) || !known(greatest)) {
            return Err(Broken("a prefix leads to a bucket that is gone"));
        }
        Ok(())
    }
}
