//! The cost of a run, by phase and by kind of operation.
//!
//! Exact counts and modelled times come in, figures go out. Times are kept as a histogram: a chip's
//! latencies give few different ones.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nandina::NodeCounters;
use nandina::flash::Profile;
use nandina_ftl::hybrid::Merges;
use nandina_sim::Counters;
use serde::Serialize;

use crate::layer::{FtlWork, Layer, Size, over};
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
    /// Over an FTL: bytes that the system wrote to it, for each byte of key and value written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification_system: Option<f64>,
    /// Over an FTL: bytes programmed for each byte that the system wrote to it.
    ///
    /// The product of both is `write_amplification`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification_ftl: Option<f64>,
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
    /// Nodes that it wrote and loaded; absent where it keeps no changed nodes in RAM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCost>,
    /// Where the time went.
    pub seconds: TimeSplit,
    /// Each kind of operation that the work has.
    pub kinds: Vec<KindCost>,
    /// Each phase in order.
    pub phases: Vec<PhaseCost>,
    /// The FTL below it; absent on the chip itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ftl: Option<Box<FtlCost>>,
}

impl SystemCost {
    /// The system and the FTL below it: `btree`, or `btree over ftl:fast`.
    pub fn name(&self) -> String {
        over(self.system, self.ftl.as_ref().map(|ftl| &ftl.layer[..]))
    }
}

/// Nodes of a system that keeps changed nodes in RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct NodeCost {
    /// Nodes that a tree without nodes in RAM would have written: the path of each change.
    pub wandering: u64,
    /// Nodes written.
    pub written: u64,
    /// Nodes read from flash.
    pub loaded: u64,
    /// The most nodes in RAM.
    pub most: u32,
    /// The most dirty nodes.
    pub most_dirty: u32,
    /// Commits.
    pub commits: u64,
    /// Times that a share of the clean nodes left RAM at once.
    pub shrinks: u64,
    /// Changes that mounts made again.
    pub replayed: u64,
}

impl NodeCost {
    /// What an index counted.
    pub(crate) const fn of(counters: &NodeCounters) -> Self {
        let &NodeCounters {
            wandering,
            nodes_written: written,
            loaded,
            most_nodes,
            most_dirty,
            commits,
            shrinks,
            replayed,
            ..
        } = counters;
        Self {
            wandering,
            written,
            loaded,
            most: most_nodes,
            most_dirty,
            commits,
            shrinks,
            replayed,
        }
    }
}

/// What the FTL below a system is, and what it did in the phases of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FtlCost {
    /// Its name.
    pub layer: String,
    /// Log blocks; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_blocks: Option<u32>,
    /// Blocks of its transit buffer; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_blocks: Option<u32>,
    /// Logical pages.
    pub logical_pages: u32,
    /// Spare pages in per cent of the logical ones, as built.
    pub over_provisioning: f64,
    /// Bytes of its RAM without its map.
    pub ram_bytes: u64,
    /// The most bytes that its map used.
    pub map_bytes: u64,
    /// Pages that the system wrote.
    pub host_writes: u64,
    /// Pages that the system trimmed.
    pub host_trims: u64,
    /// Pages that garbage collection, merges and wear levelling moved.
    pub moved: u64,
    /// Pages that the FTL wrote about itself.
    pub own: u64,
    /// Block erases.
    pub erases: u64,
    /// Merges that copied nothing; absent where there are no merges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_merges: Option<u64>,
    /// Merges that copied the rest of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_merges: Option<u64>,
    /// Merges that copied a whole block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_merges: Option<u64>,
    /// Pages that the mapping read from flash of its own, which are no operations of the chip.
    pub map_reads: u64,
    /// Pages that the mapping wrote to flash of its own.
    pub map_writes: u64,
}

impl FtlCost {
    /// What was done between two moments: when the system had been formatted, and the end.
    pub(crate) fn new(
        layer: &Layer,
        chip: &Profile,
        size: &Size,
        (before, after): (&FtlWork, &FtlWork),
    ) -> Self {
        let (from, to) = (&before.statistics, &after.statistics);
        let merges = |of: fn(&Merges) -> u64| {
            after.merges.as_ref().zip(before.merges.as_ref()).map(|(to, from)| of(to) - of(from))
        };
        let map_bytes = layer.map_bytes(chip, size) as u64;
        Self {
            layer: layer.name(),
            log_blocks: layer.log_blocks(),
            buffer_blocks: layer.buffer_blocks(),
            logical_pages: size.logical_pages,
            over_provisioning: size.over_provisioning(&chip.geometry),
            ram_bytes: size.ram_bytes as u64 - map_bytes,
            map_bytes: map_bytes + after.map_bytes,
            host_writes: to.host_writes - from.host_writes,
            host_trims: to.host_trims - from.host_trims,
            moved: to.moved - from.moved,
            own: to.own - from.own,
            erases: to.erases - from.erases,
            switch_merges: merges(|merges| merges.switch),
            partial_merges: merges(|merges| merges.partial),
            full_merges: merges(|merges| merges.full),
            map_reads: after.map_reads - before.map_reads,
            map_writes: after.map_writes - before.map_writes,
        }
    }
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
    ///
    /// Over an FTL the system wrote `host_bytes` to it.
    pub(crate) fn new(
        phase: Cow<'static, str>,
        times: &Times,
        counters: Counters,
        put_bytes: u64,
        host_bytes: Option<u64>,
    ) -> Self {
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
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
            write_amplification: ratio(counters.bytes_programmed, put_bytes),
            write_amplification_system: host_bytes.and_then(|bytes| ratio(bytes, put_bytes)),
            write_amplification_ftl: host_bytes
                .and_then(|bytes| ratio(counters.bytes_programmed, bytes)),
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
