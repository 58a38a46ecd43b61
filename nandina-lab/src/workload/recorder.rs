//! Records the operations of a file system on its tree as work for an index.
//!
//! It counts them as Table 4 does.

use std::collections::HashMap;

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::key::KEY_BYTES;
use crate::LabError;
use crate::work::{Operation, Phase, Work};

/// Bytes of a value: the address of a record.
pub const VALUE_BYTES: usize = 4;

/// Tree operations, as Table 4 of the μ-Tree paper counts them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Counts {
    /// Searches for a key, found or not.
    pub retrievals: u64,
    /// Items inserted, and appends to items that are there.
    pub insertions: u64,
    /// Items deleted, and cuts that leave a part of an item.
    pub deletions: u64,
}

/// The most operations of a workload.
///
/// They are four times those of the largest in the paper, and take some gigabyte of memory.
const OPERATIONS_MAX: u64 = 20_000_000;

/// Work in the making, on keys of `N` bytes: ReiserFS's unless another file system says otherwise.
pub struct Recorder<const N: usize = KEY_BYTES> {
    rows: HashMap<[u8; N], u32>,
    keys: Vec<u8>,
    values: Vec<u8>,
    /// For each row, whether its item exists, and whether its record moved.
    ///
    /// A moved record is at the other address.
    present: Vec<(bool, bool)>,
    random: ChaCha8Rng,
    phases: Vec<Phase>,
    counts: Counts,
}

impl<const N: usize> Recorder<N> {
    /// Makes an empty recorder; addresses are drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            rows: HashMap::new(),
            keys: Vec::new(),
            values: Vec::new(),
            present: Vec::new(),
            random: ChaCha8Rng::seed_from_u64(seed),
            phases: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Starts the phase `name`.
    pub fn phase(&mut self, name: &'static str) {
        self.phases.push(Phase::new(name, Vec::new()));
    }

    fn row(&mut self, key: [u8; N]) -> u32 {
        let next = self.present.len() as u32;
        let row = *self.rows.entry(key).or_insert(next);
        if row == next {
            self.keys.extend_from_slice(&key);
            self.values.extend_from_slice(&self.random.next_u32().to_le_bytes());
            self.present.push((false, false));
        }
        row
    }

    /// Whether there is no room for more.
    ///
    /// Then the caller may stop, since [`Self::finish`] refuses.
    pub fn is_full(&self) -> bool {
        let Counts { retrievals, insertions, deletions } = self.counts;
        retrievals + insertions + deletions > OPERATIONS_MAX
    }

    fn push(&mut self, operation: Operation) {
        if self.is_full() {
            return;
        }
        if let Some(phase) = self.phases.last_mut() {
            phase.operations.push(operation);
        }
    }

    /// The operations so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether the item exists. It records no operation: the file system remembers it.
    pub fn has(&self, key: &[u8; N]) -> bool {
        self.rows.get(key).is_some_and(|&row| self.present[row as usize].0)
    }

    /// Looks for `key`, which may be absent.
    pub fn search(&mut self, key: [u8; N]) {
        let row = self.row(key);
        self.counts.retrievals += 1;
        self.push(Operation::Lookup(row));
    }

    /// Inserts a new item.
    pub fn insert(&mut self, key: [u8; N]) {
        let row = self.row(key);
        self.counts.insertions += 1;
        self.present[row as usize] = (true, false);
        self.push(Operation::Insert(row));
    }

    /// Appends to an item: its record is written to another address.
    pub fn append(&mut self, key: [u8; N]) {
        self.counts.insertions += 1;
        self.move_record(key);
    }

    /// Cuts a part of an item off: its record is written to another address.
    pub fn cut(&mut self, key: [u8; N]) {
        self.counts.deletions += 1;
        self.move_record(key);
    }

    /// Moves a record. An index skips an equal value, so two addresses alternate.
    fn move_record(&mut self, key: [u8; N]) {
        let row = self.row(key);
        let (_, other) = self.present[row as usize];
        self.present[row as usize] = (true, !other);
        self.push(if other { Operation::Insert(row) } else { Operation::Update(row) });
    }

    /// Deletes an item.
    pub fn delete(&mut self, key: [u8; N]) {
        let row = self.row(key);
        self.counts.deletions += 1;
        self.present[row as usize] = (false, false);
        self.push(Operation::Delete(row));
    }

    /// Returns the work and its counts.
    ///
    /// More than 20,000,000 operations are an error.
    pub fn finish(mut self) -> Result<(Work, Counts), LabError> {
        if self.is_full() {
            return Err(LabError(format!(
                "the workload has more than {OPERATIONS_MAX} operations: choose fewer or smaller files"
            )));
        }
        self.phases.iter_mut().for_each(|phase| phase.operations.shrink_to_fit());
        let mut work = Work::from_rows(N, VALUE_BYTES, self.keys, self.values)?;
        work.phases = self.phases;
        Ok((work, self.counts))
    }
}
