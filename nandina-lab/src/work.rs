//! Work for an index: records, and phases of operations on them.
//!
//! Everything comes from one seed and is independent of the system that does the work.

use std::borrow::Cow;
use std::mem::replace;

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
    /// The rank of each row's key.
    ranks: Vec<u32>,
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

    /// The rank of the key of `row` among the different keys, which are in order.
    ///
    /// It is below the number of rows. Whoever keeps something for each key needs no map of keys.
    pub fn rank(&self, row: u32) -> usize {
        self.ranks[row as usize] as usize
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
        let mut there = vec![false; self.rows()];
        let (mut count, mut most) = (0, 0);
        for &operation in self.phases.iter().flat_map(|phase| &phase.operations) {
            let becomes = match operation {
                Operation::Insert(_) | Operation::Update(_) => true,
                Operation::Delete(_) => false,
                Operation::Lookup(_) | Operation::Scan { .. } => continue,
            };
            let was = replace(&mut there[self.rank(operation.row())], becomes);
            count = count + u32::from(becomes) - u32::from(was);
            most = most.max(count);
        }
        most
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
        Ok(Self::of(key_bytes, value_bytes, keys, values))
    }

    /// Rows of these keys and values, and no phase.
    fn of(key_bytes: usize, value_bytes: usize, keys: Vec<u8>, values: Vec<u8>) -> Self {
        let (phases, ranks) = (Vec::new(), ranks(&keys, key_bytes));
        Self { key_bytes, value_bytes, phases, idle_steps: false, keys, values, ranks }
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
        let mut keys = vec![0; rows as usize * key_bytes];
        // As many keys are drawn again as came more than once.
        let mut drawn = 0;
        while drawn < keys.len() {
            keys[drawn..].chunks_exact_mut(key_bytes).for_each(|key| random.fill_bytes(key));
            drawn = keep_first(&mut keys, key_bytes);
        }
        let mut values = vec![0; rows as usize * value_bytes];
        random.fill_bytes(&mut values);
        Ok(Self::of(key_bytes, value_bytes, keys, values))
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
        let mut work = Self::of(
            records.key_bytes,
            records.value_bytes,
            rows.clone().flat_map(|row| records.key(row)).copied().collect(),
            rows.clone().flat_map(|row| records.value(row)).copied().collect(),
        );
        work.add_standard_phases(rows.map(|row| row as u32).collect(), seed);
        work
    }

    fn add_standard_phases(&mut self, arrival: Vec<u32>, seed: u64) {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x5EED);
        let tenth = (arrival.len() / 10).max(1);
        // Where keys repeat, one row represents each key, so that no key is deleted twice.
        let mut seen = vec![false; self.rows()];
        let is_new = |&row: &u32| !replace(&mut seen[self.rank(row)], true);
        let mut rows: Vec<u32> = arrival.iter().copied().filter(is_new).collect();
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

/// The rank of each of `keys`, of `key_bytes` each, among the different ones in order.
fn ranks(keys: &[u8], key_bytes: usize) -> Vec<u32> {
    let key = |row: u32| &keys[row as usize * key_bytes..][..key_bytes];
    // The first bytes of two keys decide in most cases, as a number they do so fastest.
    let first_bytes = |row: u32| {
        let (mut first, bytes) = ([0; 8], key_bytes.min(8));
        first[..bytes].copy_from_slice(&key(row)[..bytes]);
        u64::from_be_bytes(first)
    };
    let rows = (keys.len() / key_bytes) as u32;
    let mut order: Vec<(u64, u32)> = (0..rows).map(|row| (first_bytes(row), row)).collect();
    if key_bytes <= 8 {
        order.sort_unstable();
    } else {
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))));
    }
    let mut ranks = vec![0; rows as usize];
    let mut rank = 0;
    for pair in order.windows(2) {
        rank += u32::from(key(pair[0].1) != key(pair[1].1));
        ranks[pair[1].1 as usize] = rank;
    }
    ranks
}

/// Keeps each key where it comes first, one behind another. Returns how many bytes they take.
fn keep_first(keys: &mut [u8], key_bytes: usize) -> usize {
    let ranks = ranks(keys, key_bytes);
    let mut seen = vec![false; ranks.len()];
    let mut end = 0;
    for (row, rank) in ranks.into_iter().enumerate() {
        if !replace(&mut seen[rank as usize], true) {
            let from = row * key_bytes;
            keys.copy_within(from..from + key_bytes, end);
            end += key_bytes;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    #[test]
    fn ranks_are_the_places_of_keys_among_the_different_ones() {
        for key_bytes in [1, 3, 8, 9, 12] {
            let mut keys = vec![0; 300 * key_bytes];
            ChaCha8Rng::seed_from_u64(3).fill_bytes(&mut keys);
            // Few values, so that keys come often and differ in any byte.
            keys.iter_mut().for_each(|byte| *byte %= 2);
            let rows: Vec<&[u8]> = keys.chunks_exact(key_bytes).collect();
            let different: Vec<&[u8]> =
                rows.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
            let expected = rows.iter().map(|key| different.binary_search(key).unwrap() as u32);
            assert_eq!(ranks(&keys, key_bytes), expected.collect::<Vec<_>>(), "{key_bytes} bytes");
        }
        assert!(ranks(&[], 4).is_empty());
    }

    #[test]
    fn random_keys_are_the_first_different_ones_of_their_draws() {
        for (rows, key_bytes) in [(128, 1), (1000, 2), (50, 5)] {
            let mut random = ChaCha8Rng::seed_from_u64(7);
            let (mut seen, mut keys) = (HashSet::new(), Vec::new());
            while seen.len() < rows as usize {
                let mut key = vec![0; key_bytes];
                random.fill_bytes(&mut key);
                if seen.insert(key.clone()) {
                    keys.extend(key);
                }
            }
            let mut values = vec![0; rows as usize * 4];
            random.fill_bytes(&mut values);
            let expected = Work::from_rows(key_bytes, 4, keys, values).unwrap();
            assert_eq!(Work::random_rows(rows, key_bytes, 4, 7).unwrap(), expected);
        }
    }

    #[test]
    fn records_at_once_are_counted_by_their_keys() {
        let mut work = Work::from_rows(1, 0, vec![5, 5, 6, 7], Vec::new()).unwrap();
        use Operation::{Delete, Insert, Lookup, Update};
        let operations = vec![Insert(0), Update(1), Lookup(3), Insert(2), Delete(1), Delete(1)];
        work.phases = vec![Phase::new("first", operations), Phase::new("then", vec![Insert(3)])];
        assert_eq!(work.most_at_once(), 2);
    }
}
