//! The cost of a run, by phase and by kind of operation.
//!
//! Exact counts and modelled times come in, figures go out. Times are kept as a histogram: a chip's
//! latencies give few different ones.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nandina_sim::Counters;
use serde::Serialize;

use crate::work::Operation;

/// What the operations of one phase cost.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PhaseCost {
    /// The phase.
    pub phase: Cow<'static, str>,
    /// Operations.
    pub ops: u64,
    /// Page reads an operation.
    pub reads_per_op: f64,
    /// Page programs an operation, pages that were replaced in place included.
    pub programs_per_op: f64,
    /// Block erases an operation.
    pub erases_per_op: f64,
    /// Mean modelled time of an operation, in milliseconds.
    pub ms_mean: f64,
    /// Modelled time that 99 % of the operations do not exceed, in milliseconds.
    pub ms_p99: f64,
    /// Longest modelled time of an operation, in milliseconds.
    pub ms_max: f64,
    /// Bytes programmed for each byte of key and value written; absent where none was.
    pub write_amplification: Option<f64>,
    /// Exact counts of the whole phase.
    #[serde(skip)]
    pub counters: Counters,
}

/// Times of the operations of one kind, over all phases.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KindCost {
    /// `lookup`, `scan`, `insert` (updates too) or `delete`.
    pub kind: &'static str,
    /// Operations.
    pub ops: u64,
    /// Mean modelled time of an operation, in milliseconds.
    pub ms_mean: f64,
    /// Modelled time that 99 % of the operations do not exceed, in milliseconds.
    pub ms_p99: f64,
    /// Longest modelled time of an operation, in milliseconds.
    pub ms_max: f64,
}

/// The modelled time of a run by kind of chip operation, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TimeSplit {
    /// Page reads.
    pub read: f64,
    /// Page programs.
    pub program: f64,
    /// Block erases.
    pub erase: f64,
}

impl TimeSplit {
    /// Total time.
    pub fn total(&self) -> f64 {
        self.read + self.program + self.erase
    }
}

/// What a run of one system cost.
///
/// A count is `None` where the system has no such thing.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SystemCost {
    /// Key of the system.
    pub system: &'static str,
    /// Bytes of RAM: the buffer and the struct.
    pub ram_bytes: usize,
    /// Height of the tree at the end.
    pub height: Option<u8>,
    /// The greatest height at the end of any stretch of 1,024 operations.
    pub height_most: Option<u8>,
    /// Records at the end.
    pub records: Option<u32>,
    /// Valid pages at the end.
    pub valid_pages: Option<u32>,
    /// Largest erase count of a block by the mean, at the end.
    pub wear_max_by_mean: f64,
    /// Blocks from which garbage collection moved pages.
    pub collected_blocks: Option<u64>,
    /// Blocks that were erased again after their first use, with or without valid pages.
    ///
    /// The first erase of each block is not counted: systems erase a block before its first use.
    pub reclaimed_blocks: u64,
    /// Valid pages that garbage collection moved.
    pub moved_pages: Option<u64>,
    /// Where the time went.
    pub seconds: TimeSplit,
    /// Each kind of operation that the work has.
    pub kinds: Vec<KindCost>,
    /// Each phase in order.
    pub phases: Vec<PhaseCost>,
}

/// A histogram of times, in nanoseconds.
#[derive(Default)]
pub(crate) struct Times(BTreeMap<u64, u64>);

impl Times {
    pub(crate) fn add(&mut self, ns: u64) {
        *self.0.entry(ns).or_default() += 1;
    }

    fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// Mean, 99th percentile and maximum, in milliseconds.
    ///
    /// The percentile is the smallest time that at least 99 % of the operations do not exceed.
    fn mean_p99_max(&self) -> [f64; 3] {
        let ms = |ns: u64| ns as f64 / 1e6;
        let count = self.count();
        let total: u64 = self.0.iter().map(|(ns, count)| ns * count).sum();
        let rank = (u128::from(count) * 99).div_ceil(100) as u64;
        let mut seen = 0;
        let p99 = self.0.iter().find(|&(_, count)| {
            seen += count;
            seen >= rank
        });
        let mean = total as f64 / count.max(1) as f64 / 1e6;
        let [p99, max] =
            [p99, self.0.last_key_value()].map(|time| ms(time.map_or(0, |(&ns, _)| ns)));
        [mean, p99, max]
    }
}

const KINDS: [&str; 4] = ["lookup", "scan", "insert", "delete"];

const fn kind(operation: Operation) -> usize {
    match operation {
        Operation::Lookup(_) => 0,
        Operation::Scan { .. } => 1,
        Operation::Insert(_) | Operation::Update(_) => 2,
        Operation::Delete(_) => 3,
    }
}

/// The times of each kind of operation.
#[derive(Default)]
pub(crate) struct TimesByKind([Times; KINDS.len()]);

impl TimesByKind {
    pub(crate) fn add(&mut self, operation: Operation, ns: u64) {
        self.0[kind(operation)].add(ns);
    }

    pub(crate) fn costs(&self) -> Vec<KindCost> {
        let kinds = KINDS.into_iter().zip(&self.0).filter(|(_, times)| times.count() > 0);
        kinds
            .map(|(kind, times)| {
                let [ms_mean, ms_p99, ms_max] = times.mean_p99_max();
                KindCost { kind, ops: times.count(), ms_mean, ms_p99, ms_max }
            })
            .collect()
    }
}

impl PhaseCost {
    /// Figures of a phase that took `times` and wrote `put_bytes` bytes of records.
    pub(crate) fn new(
        phase: Cow<'static, str>,
        times: &Times,
        counters: Counters,
        put_bytes: u64,
    ) -> Self {
        let ops = times.count();
        let by_op = |count: u64| count as f64 / ops.max(1) as f64;
        let [ms_mean, ms_p99, ms_max] = times.mean_p99_max();
        Self {
            phase,
            ops,
            reads_per_op: by_op(counters.reads),
            programs_per_op: by_op(counters.programs + counters.rewrites),
            erases_per_op: by_op(counters.erases),
            ms_mean,
            ms_p99,
            ms_max,
            write_amplification: (put_bytes > 0)
                .then(|| counters.bytes_programmed as f64 / put_bytes as f64),
            counters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_give_mean_p99_and_longest() {
        let mut times = Times::default();
        assert_eq!(times.mean_p99_max(), [0.0; 3]);
        for ms in (1..=100).rev() {
            times.add(ms * 1_000_000);
        }
        assert_eq!(times.mean_p99_max(), [50.5, 99.0, 100.0]);
        times.add(100_000_000);
        assert_eq!(times.mean_p99_max()[1], 100.0, "99 of 101 are fewer than 99 %");
    }

    #[test]
    fn kinds_without_operations_are_left_out() {
        let mut times = TimesByKind::default();
        times.add(Operation::Insert(0), 4_000_000);
        times.add(Operation::Update(0), 2_000_000);
        let [cost] = &times.costs()[..] else { panic!("one kind") };
        assert_eq!((cost.kind, cost.ops, cost.ms_mean, cost.ms_max), ("insert", 2, 3.0, 4.0));
    }
}
