//! Changes of MB-tree that wait in RAM, and which leaf has the most of them.
//!
//! Of each key the newest change waits. Nothing here reads or writes.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use crate::rivals::tree::{Bytes, Change, Keys};

/// A change that waits.
struct Waiting {
    value: Option<Bytes>,
    /// The leaf to which the key belonged when its first change came.
    leaf: u32,
}

/// The changes, by key.
#[derive(Default)]
pub struct Pending {
    changes: BTreeMap<Bytes, Waiting>,
    /// Changes of each leaf.
    counts: BTreeMap<u32, usize>,
}

impl Pending {
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// The newest change of a key, if one waits.
    pub fn get(&self, key: &[u8]) -> Option<&Option<Bytes>> {
        self.changes.get(key).map(|waiting| &waiting.value)
    }

    /// The lowest key.
    pub fn first(&self) -> Option<Bytes> {
        self.changes.keys().next().cloned()
    }

    /// Adds a change, or replaces the one of its key.
    pub fn add(&mut self, key: Bytes, value: Option<Bytes>, leaf: u32) {
        if let Some(waiting) = self.changes.get_mut(&key) {
            waiting.value = value;
            return;
        }
        self.changes.insert(key, Waiting { value, leaf });
        *self.counts.entry(leaf).or_default() += 1;
    }

    /// A key of the leaf with the most changes, of equals the youngest.
    pub fn of_fullest(&self) -> Option<Bytes> {
        let (_, fullest) = self.counts.iter().map(|(&leaf, &count)| (count, leaf)).max()?;
        let mut changes = self.changes.iter();
        changes.find(|(_, waiting)| waiting.leaf == fullest).map(|(key, _)| key.clone())
    }

    /// The changes of these keys, in the order of keys.
    pub fn within(&self, keys: &Keys) -> Vec<Change> {
        let low = keys.low.as_deref().map_or(Unbounded, Included);
        let high = keys.high.as_deref().map_or(Unbounded, Excluded);
        let within = self.changes.range::<[u8], _>((low, high));
        within.map(|(key, waiting)| (key.clone(), waiting.value.clone())).collect()
    }

    /// Forgets changes that are durable.
    pub fn forget(&mut self, changes: &[Change]) {
        for (key, _) in changes {
            let Some(Waiting { leaf, .. }) = self.changes.remove(key) else { continue };
            if let Some(count) = self.counts.get_mut(&leaf) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&leaf);
                }
            }
        }
    }
}
