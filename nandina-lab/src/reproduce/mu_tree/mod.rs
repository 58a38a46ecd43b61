//! The experiments of the μ-Tree paper (Kang et al., EMSOFT 2007).
//!
//! These are Table 3, Figure 7, Tables 4 and 5, Figures 8 and 9; and what the paper does not show:
//! the slowest operations, wear, and other chips.

mod collection;
mod model;
mod recovery;
mod table_5;
mod traces;

use nandina::flash::Profile;
use nandina::flash::profile::{MLC, SLC, TLC};
use nandina::{Options, RelocationMode};

use super::Reproduction;
use crate::LabError;
use crate::run::{PhaseCost, Setup, SystemCost};
use crate::work::Work;
use crate::workload::{self, TABLE_4, Workload};

/// The systems that the paper compares, in its order.
const SYSTEMS: [&str; 2] = ["wandering", "mu"];

/// Pages of the read cache and of the write cache, by the paper's names.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Caches {
    name: &'static str,
    pages: usize,
}

const NO_CACHE: Caches = Caches { name: "0KB+0KB", pages: 0 };
const ONE_PAGE_EACH: Caches = Caches { name: "4KB+4KB", pages: 1 };

/// Table 5's.
const CACHES: [Caches; 4] = [
    NO_CACHE,
    ONE_PAGE_EACH,
    Caches { name: "8KB+8KB", pages: 2 },
    Caches { name: "16KB+16KB", pages: 4 },
];

/// How much of the paper's work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    records: u32,
    operations: u32,
    /// The divisor of the blocks of the microbenchmark's chip.
    blocks_by: u32,
    quick: bool,
    words: &'static str,
}

impl Scale {
    /// As in the paper.
    pub const FULL: Self =
        Self { records: 1_000_000, operations: 10_000, blocks_by: 1, quick: false, words: "full" };
    /// Takes seconds: a quarter of the records, a twentieth of the traces.
    ///
    /// The trees are as high as in the paper, and the chip of the microbenchmark is as full.
    pub const QUICK: Self = Self {
        records: 250_000,
        operations: 5_000,
        blocks_by: 4,
        quick: true,
        words: "quick: 250,000 records and 5,000 operations each on a quarter of the chip, traces of a twentieth",
    };
}

/// The experiments to run.
pub struct Experiments {
    scale: Scale,
    seed: u64,
    work: Work,
    workloads: Vec<Workload>,
}

impl Experiments {
    /// Makes the work; it takes some seconds.
    pub fn new(scale: Scale, seed: u64) -> Result<Self, LabError> {
        let workloads = TABLE_4
            .iter()
            .map(|(name, _)| workload::by_name(name, scale.quick, seed))
            .collect::<Result<_, _>>()?;
        Ok(Self { scale, seed, work: table_5::work(scale, seed)?, workloads })
    }

    /// Operations of all runs.
    pub fn total(&self) -> u64 {
        let traces: u64 = self.workloads.iter().map(|workload| workload.work.operations()).sum();
        let table_5 = table_5::RUNS + collection::RUNS;
        2 * (table_5 * self.work.operations() + traces::runs(self.scale) * traces)
            + recovery::operations(self.scale.quick)
    }

    /// Runs everything. `progress` is called with the number of operations done since its last
    /// call.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Reproduction, LabError> {
        let mut experiments = vec![model::table_3(), model::figure_7()];
        experiments.push(traces::table_4(&self.workloads, self.scale.quick));
        experiments.extend(table_5::experiments(self.scale, &self.work, progress)?);
        experiments.push(recovery::experiment(self.scale.quick, progress)?);
        experiments.extend(traces::experiments(self.scale, &self.workloads, progress)?);
        if self.scale.quick {
            // Trees and traces are smaller than the paper's: only orders and trends are meaningful.
            for row in experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
                (row.ratio, row.verdict) = (None, None);
            }
        }
        Ok(Reproduction {
            quick: self.scale.quick,
            paper: "mu-tree",
            seed: self.seed,
            seeds: 1,
            scale: self.scale.words,
            experiments,
        })
    }
}

/// The chips of the runs, without shared cells, as in the paper's model.
///
/// The paper's chip has 64 MB, and so has the SLC chip. A chip of 64 MB with blocks as large as the
/// TLC chip's would have too few of them for collection.
fn chips() -> [Profile; 3] {
    [MLC, SLC, TLC].map(Profile::without_pairing)
}

/// The paper's collection moves each page alone. Sizes of keys and values are those of the work.
fn setup(profile: Profile, caches: Caches, moves: RelocationMode) -> Setup {
    let options = Options {
        moves,
        read_cache: caches.pages,
        write_cache: caches.pages,
        ..Options::new(4, 4)
    };
    Setup { profile, options, ram_bytes: None, layer: None }
}

/// The phases of Table 5's work, in the order of the table's columns.
const PHASES: [&str; 3] = ["retrieval", "insertion", "deletion"];

fn find<'c>(cost: &'c SystemCost, name: &str) -> Result<&'c PhaseCost, LabError> {
    let mut phases = cost.phases.iter();
    phases
        .find(|phase| phase.phase == name)
        .ok_or_else(|| LabError(format!("the run has no phase '{name}'")))
}
