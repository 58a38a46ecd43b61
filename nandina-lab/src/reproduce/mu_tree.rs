//! μ-Tree (Kang et al., EMSOFT 2007): Table 5, the rows without cache.
//!
//! One million random records of 4-byte key and 4-byte pointer on 64 MB of MLC NAND; then ten thousand
//! retrievals, deletions and insertions each (section 6.1).

use nandina::flash::profile::MLC;
use nandina::{Moves, Options};

use super::{Experiment, Reproduction, Row};
use crate::LabError;
use crate::compare::run_all;
use crate::run::{PhaseCost, Setup, SystemRun};
use crate::work::{Operation, Phase, Work};

/// System, then for retrieval, insertion and deletion: reads, programs and milliseconds (Table 5).
const TABLE_5: [(&str, [[f64; 3]; 3]); 2] = [
    ("wandering", [[3.00, 0.00, 0.50], [4.11, 3.83, 4.19], [4.14, 3.85, 4.19]]),
    ("mu", [[2.97, 0.00, 0.50], [3.32, 1.08, 1.55], [3.34, 1.09, 1.54]]),
];

const METRICS: [[&str; 3]; 3] = [
    ["reads_per_retrieval", "programs_per_retrieval", "ms_per_retrieval"],
    ["reads_per_insert", "programs_per_insert", "ms_per_insert"],
    ["reads_per_delete", "programs_per_delete", "ms_per_delete"],
];

const CONFIG: &str = "0KB+0KB";

/// How much of the paper's work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    records: u32,
    operations: u32,
    blocks: u32,
    words: &'static str,
}

impl Scale {
    /// As in the paper.
    pub const FULL: Self =
        Self { records: 1_000_000, operations: 10_000, blocks: 128, words: "full" };
    /// A quarter of the records, in seconds. The trees are as high as in the paper, and the chip is as
    /// full: it has a quarter of the blocks beyond those that are kept in reserve, (128 - 9) / 4 + 9.
    pub const QUICK: Self = Self {
        records: 250_000,
        operations: 5_000,
        blocks: 39,
        words: "quick: 250,000 records, 5,000 operations each, a chip of 39 blocks",
    };

    /// Operations of all runs: two systems, two ways of moving pages.
    pub fn total(&self) -> u64 {
        4 * (u64::from(self.records) + 3 * u64::from(self.operations))
    }
}

fn work(scale: Scale, seed: u64) -> Result<Work, LabError> {
    let Scale { records, operations, .. } = scale;
    // Rows behind the first `records` are the new keys of the insertions at the end.
    let mut work = Work::random_rows(records + operations, 4, 4, seed)?;
    let order = Work::shuffled(records, seed ^ 1);
    let some =
        |from: u32| order.iter().copied().cycle().skip(from as usize).take(operations as usize);
    let phase = |name, operations| Phase { name, operations };
    work.phases = vec![
        phase("fill", (0..records).map(Operation::Insert).collect()),
        phase("retrieval", some(operations).map(Operation::Lookup).collect()),
        phase("deletion", some(0).map(Operation::Delete).collect()),
        phase("insertion", (records..records + operations).map(Operation::Insert).collect()),
    ];
    Ok(work)
}

/// Table 5 without cache, twice: with garbage collection that moves each page alone, as the paper's does,
/// and with our own that moves pages together.
pub fn reproduce(
    scale: Scale,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Reproduction, LabError> {
    let work = work(scale, seed)?;
    let experiments = [("table5", Moves::Alone), ("table5-moves-together", Moves::Together)]
        .into_iter()
        .map(|(id, moves)| table_5(id, moves, scale, &work, progress))
        .collect::<Result<_, _>>()?;
    Ok(Reproduction { paper: "mu-tree", seed, scale: scale.words, experiments })
}

fn table_5(
    id: &'static str,
    moves: Moves,
    scale: Scale,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let setup = Setup {
        // The paper's model knows no pages that share cells.
        profile: MLC.without_pairing().with_blocks(scale.blocks),
        options: Options { moves, ..Options::new(4, 4) },
        ram_bytes: None,
    };
    let systems = TABLE_5.map(|(system, _)| system);
    let runs = run_all(&systems, &setup, work, progress)?;
    let costs = runs.into_iter().map(SystemRun::cost).collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    let mut insertion_ms = Vec::new();
    for ((system, paper), cost) in TABLE_5.into_iter().zip(&costs) {
        let phase = |name| find(&cost.phases, name);
        let ours = [phase("retrieval")?, phase("insertion")?, phase("deletion")?];
        insertion_ms.push(ours[1].ms_mean);
        for ((metrics, paper), ours) in METRICS.into_iter().zip(paper).zip(ours) {
            let measured = [ours.reads_per_op, ours.programs_per_op, ours.ms_mean];
            for (index, unit) in ["pages", "pages", "ms"].into_iter().enumerate() {
                let (metric, paper, measured) = (metrics[index], paper[index], measured[index]);
                rows.push(Row::new(system, CONFIG, metric, paper, measured, unit));
            }
        }
    }
    let claim = "an insertion takes μ-Tree less than half of wandering's time";
    let holds = insertion_ms[1] * 2.0 < insertion_ms[0];
    Ok(Experiment { id, rows, orderings: vec![(claim, holds)] })
}

fn find<'p>(phases: &'p [PhaseCost], name: &str) -> Result<&'p PhaseCost, LabError> {
    phases
        .iter()
        .find(|phase| phase.phase == name)
        .ok_or_else(|| LabError(format!("the run has no phase '{name}'")))
}
