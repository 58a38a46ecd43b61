//! Work for an index: records, and phases of operations on them.
//!
//! Everything comes from one seed and is independent of the system that does the work.

use std::borrow::Cow;
use std::collections::HashSet;

use rand::seq::SliceRandom;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::LabError;
use crate::input::Records;

/// An operation with the record of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Insert the row's key and value.
    Insert(u32),
    /// Find the row's key.
    Lookup(u32),
    /// Replace the value of the row's key by its complement.
    Update(u32),
    /// Remove the row's key.
    Delete(u32),
    /// Read `records` records in order from the row's key on.
    Scan {
        /// The row.
        row: u32,
        /// Number of records, fewer at the end of the keys.
        records: u16,
    },
}

impl Operation {
    /// The row of the operation, or the first row of a scan.
    pub const fn row(self) -> u32 {
        match self {
            Self::Insert(row) | Self::Lookup(row) | Self::Update(row) | Self::Delete(row) => row,
            Self::Scan { row, .. } => row,
        }
    }
}

// Work has millions of operations.
const _: () = assert!(size_of::<Operation>() == 8);

/// Records that a scan of the standard work reads, fewer at the end of the keys.
pub const SCAN_RECORDS: u16 = 100;

/// Operations that are reported together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phase {
    /// Its name in reports.
    pub name: Cow<'static, str>,
    /// The operations in order.
    pub operations: Vec<Operation>,
}

impl Phase {
    /// Makes a phase.
    pub fn new(name: impl Into<Cow<'static, str>>, operations: Vec<Operation>) -> Self {
        Self { name: name.into(), operations }
    }
}

/// Records and the operations on them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Phases in order.
    pub phases: Vec<Phase>,
    /// Whether an idle step follows each change.
    ///
    /// For an index the step is a `gc_step` of the least budget.
    ///
    /// The chip operations of the step count in the phase, its time in no operation.
    pub idle_steps: bool,
    keys: Vec<u8>,
    values: Vec<u8>,
}

impl Work {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.keys.len() / self.key_bytes
    }

    /// The key of `row`.
    pub fn key(&self, row: u32) -> &[u8] {
        &self.keys[row as usize * self.key_bytes..][..self.key_bytes]
    }

    /// The value of `row`.
    pub fn value(&self, row: u32) -> &[u8] {
        &self.values[row as usize * self.value_bytes..][..self.value_bytes]
    }

    /// Operations in all phases.
    pub fn operations(&self) -> u64 {
        self.phases.iter().map(|phase| phase.operations.len() as u64).sum()
    }

    /// The most records that exist at once.
    pub fn most_at_once(&self) -> u32 {
        let (mut there, mut most) = (HashSet::new(), 0);
        for operation in self.phases.iter().flat_map(|phase| &phase.operations) {
            match *operation {
                Operation::Insert(row) | Operation::Update(row) => there.insert(self.key(row)),
                Operation::Delete(row) => there.remove(self.key(row)),
                Operation::Lookup(_) | Operation::Scan { .. } => false,
            };
            most = most.max(there.len());
        }
        most as u32
    }

    /// Makes rows with the given keys and values, one after another, and no phase.
    ///
    /// Sizes are in bytes, a key's at least 1. Different rows may have the same key.
    pub fn from_rows(
        key_bytes: usize,
        value_bytes: usize,
        keys: Vec<u8>,
        values: Vec<u8>,
    ) -> Result<Self, LabError> {
        let rows = keys.len() / key_bytes.max(1);
        if key_bytes == 0 || keys.len() != rows * key_bytes || values.len() != rows * value_bytes {
            return Err(LabError(format!(
                "{} bytes of keys and {} of values are not rows of {key_bytes} and {value_bytes} bytes",
                keys.len(),
                values.len()
            )));
        }
        if u32::try_from(rows).is_err() {
            return Err(LabError(format!("{rows} rows are too many: there may be 2^32 - 1")));
        }
        Ok(Self { key_bytes, value_bytes, phases: Vec::new(), idle_steps: false, keys, values })
    }

    /// Makes rows with distinct random keys and random values, and no phase.
    pub fn random_rows(
        rows: u32,
        key_bytes: usize,
        value_bytes: usize,
        seed: u64,
    ) -> Result<Self, LabError> {
        let keys_there_are = 256f64.powi(key_bytes.min(100) as i32);
        if f64::from(rows) > keys_there_are / 2.0 {
            return Err(LabError(format!(
                "keys of {key_bytes} bytes are too short for {rows} random records: choose a larger \
                 --key-size or fewer --records"
            )));
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut seen = HashSet::with_capacity(rows as usize);
        let mut keys = Vec::with_capacity(rows as usize * key_bytes);
        let mut key = vec![0; key_bytes];
        while seen.len() < rows as usize {
            random.fill_bytes(&mut key);
            if seen.insert(key.clone()) {
                keys.extend_from_slice(&key);
            }
        }
        let mut values = vec![0; rows as usize * value_bytes];
        random.fill_bytes(&mut values);
        Ok(Self { key_bytes, value_bytes, phases: Vec::new(), idle_steps: false, keys, values })
    }

    /// The default work of `nandina compare`.
    ///
    /// All rows are inserted; then a tenth each is looked up, updated and deleted, and a thousandth
    /// scanned from.
    pub fn standard(
        rows: u32,
        key_bytes: usize,
        value_bytes: usize,
        seed: u64,
    ) -> Result<Self, LabError> {
        let mut work = Self::random_rows(rows, key_bytes, value_bytes, seed)?;
        let arrival = (0..rows).collect();
        work.add_standard_phases(arrival, seed);
        Ok(work)
    }

    /// The same phases over a user's records, inserted in the order of the file.
    pub fn from_records(records: &Records, seed: u64) -> Self {
        let rows = 0..records.len();
        let mut work = Self {
            key_bytes: records.key_bytes,
            value_bytes: records.value_bytes,
            phases: Vec::new(),
            idle_steps: false,
            keys: rows.clone().flat_map(|row| records.key(row)).copied().collect(),
            values: rows.clone().flat_map(|row| records.value(row)).copied().collect(),
        };
        work.add_standard_phases(rows.map(|row| row as u32).collect(), seed);
        work
    }

    fn add_standard_phases(&mut self, arrival: Vec<u32>, seed: u64) {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x5EED);
        let tenth = (arrival.len() / 10).max(1);
        // Where keys repeat, one row represents each key, so that no key is deleted twice.
        let mut seen = HashSet::new();
        let mut rows: Vec<u32> =
            arrival.iter().copied().filter(|&row| seen.insert(self.key(row).to_vec())).collect();
        rows.shuffle(&mut random);
        let mut pick = |count: usize, make: fn(u32) -> Operation| -> Vec<Operation> {
            (0..count).map(|_| make(rows[random.random_range(0..rows.len())])).collect()
        };
        let lookups = pick(tenth, Operation::Lookup);
        let scan = |row| Operation::Scan { row, records: SCAN_RECORDS };
        let scans = pick((tenth / 100).max(1), scan);
        let updates = rows.iter().rev().take(tenth).map(|&row| Operation::Update(row)).collect();
        let deletes = rows.iter().take(tenth).map(|&row| Operation::Delete(row)).collect();
        self.phases = vec![
            Phase::new("insert", arrival.into_iter().map(Operation::Insert).collect()),
            Phase::new("lookup", lookups),
            Phase::new("scan", scans),
            Phase::new("update", updates),
            Phase::new("delete", deletes),
        ];
    }

    /// Row numbers `0..rows` in random order.
    pub fn shuffled(rows: u32, seed: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..rows).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        order
    }
}
