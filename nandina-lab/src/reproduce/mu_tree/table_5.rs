//! Table 5: one million random records on MLC NAND, with caches of four sizes.
//!
//! The chip has 64 MB.
//!
//! Records are 4-byte keys and 4-byte pointers. Then come ten thousand retrievals, deletions and
//! insertions each (section 6.1). The same work also runs on other chips.

use nandina::RelocationMode;
use nandina::flash::Profile;

use super::{CACHES, Caches, NO_CACHE, PHASES, SYSTEMS, Scale, chips, collection, find, setup};
use crate::LabError;
use crate::compare::run_all;
use crate::reproduce::{Experiment, Row};
use crate::run::{PhaseCost, SystemCost, SystemRun};
use crate::work::{Operation, Phase, Work};

/// Runs of both systems: caches, moves together, other chips.
pub const RUNS: u64 = 4 + 1 + 2;

/// Cells for wandering, then μ-Tree.
///
/// Each has reads, programs and milliseconds of a retrieval, an insertion and a deletion.
type Cells = [[[f64; 3]; 3]; 2];

/// Table 5, by the size of the caches.
const TABLE_5: [Cells; 4] = [
    [
        [[3.00, 0.00, 0.50], [4.11, 3.83, 4.19], [4.14, 3.85, 4.19]],
        [[2.97, 0.00, 0.50], [3.32, 1.08, 1.55], [3.34, 1.09, 1.54]],
    ],
    [
        [[2.00, 0.00, 0.33], [2.83, 3.83, 3.98], [2.83, 3.83, 3.98]],
        [[1.97, 0.00, 0.33], [2.74, 1.08, 1.45], [2.76, 1.09, 1.45]],
    ],
    [
        [[1.77, 0.00, 0.29], [2.40, 3.84, 3.92], [2.40, 3.85, 3.93]],
        [[1.94, 0.00, 0.32], [2.49, 1.08, 1.40], [2.51, 1.09, 1.41]],
    ],
    [
        [[1.67, 0.00, 0.28], [2.03, 2.75, 2.85], [1.82, 2.74, 2.84]],
        [[1.90, 0.00, 0.31], [2.29, 1.08, 1.37], [2.08, 1.09, 1.38]],
    ],
];

const METRICS: [[&str; 3]; 3] = [
    ["reads_per_retrieval", "programs_per_retrieval", "ms_per_retrieval"],
    ["reads_per_insert", "programs_per_insert", "ms_per_insert"],
    ["reads_per_delete", "programs_per_delete", "ms_per_delete"],
];

const SLOWEST: [[&str; 2]; 3] = [
    ["ms_p99_of_retrievals", "ms_max_of_retrievals"],
    ["ms_p99_of_inserts", "ms_max_of_inserts"],
    ["ms_p99_of_deletes", "ms_max_of_deletes"],
];

/// The work of Table 5.
pub fn work(scale: Scale, seed: u64) -> Result<Work, LabError> {
    let Scale { records, operations, .. } = scale;
    // Rows behind the first `records` are the new keys of the insertions at the end.
    let mut work = Work::random_rows(records + operations, 4, 4, seed)?;
    let order = Work::shuffled(records, seed ^ 1);
    let some =
        |from: u32| order.iter().copied().cycle().skip(from as usize).take(operations as usize);
    work.phases = vec![
        Phase::new("fill", (0..records).map(Operation::Insert).collect()),
        Phase::new("retrieval", some(operations).map(Operation::Lookup).collect()),
        Phase::new("deletion", some(0).map(Operation::Delete).collect()),
        Phase::new("insertion", (records..records + operations).map(Operation::Insert).collect()),
    ];
    Ok(work)
}

/// The chip, as full as with all records.
///
/// A scale that has a part of the records has a part of the blocks, beyond those that an index
/// keeps in reserve.
fn chip(profile: Profile, scale: Scale) -> Profile {
    let blocks = profile.geometry.blocks;
    let reserve = profile.capabilities.bad_blocks_max(blocks) + 6;
    profile.with_blocks((blocks - reserve) / scale.blocks_by + reserve)
}

/// What both systems cost.
fn costs(
    profile: Profile,
    caches: Caches,
    moves: RelocationMode,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<SystemCost>, LabError> {
    let runs = run_all(&SYSTEMS, &setup(profile, caches, moves), work, progress)?;
    runs.into_iter().map(SystemRun::cost).collect()
}

/// Table 5; its part without cache, with pages moved together; and what it does not show.
pub fn experiments(
    scale: Scale,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Experiment>, LabError> {
    let [mlc, others @ ..] = chips().map(|profile| chip(profile, scale));
    let by_cache = CACHES
        .into_iter()
        .map(|caches| costs(mlc, caches, RelocationMode::Alone, work, progress))
        .collect::<Result<Vec<_>, _>>()?;
    let together = costs(mlc, NO_CACHE, RelocationMode::Together, work, progress)?;
    let mut beyond = Vec::new();
    for (caches, costs) in CACHES.into_iter().zip(&by_cache) {
        beyond.extend(slowest(&format!("mlc {}", caches.name), costs)?);
    }
    for profile in others {
        let costs = costs(profile, NO_CACHE, RelocationMode::Alone, work, progress)?;
        let config = format!("{} {}", profile.key, NO_CACHE.name);
        beyond.extend(means(&config, &costs)?);
        beyond.extend(slowest(&config, &costs)?);
    }
    let paper = setup(mlc, NO_CACHE, RelocationMode::Alone);
    let collection = collection::experiment(&paper, &by_cache[0], work, progress)?;
    Ok(vec![
        table_5(&by_cache)?,
        collection,
        Experiment::of(
            "table5-moves-together",
            "Table 5 without cache, with collection that moves the pages of a path together",
            beside(NO_CACHE, &TABLE_5[0], &together)?,
        ),
        Experiment::of(
            "table5-beyond",
            "What Table 5 does not show: the slowest operations, wear, and chips with other pages",
            beyond,
        ),
    ])
}

fn table_5(by_cache: &[Vec<SystemCost>]) -> Result<Experiment, LabError> {
    let mut rows = Vec::new();
    let mut orderings = Vec::new();
    for ((caches, paper), costs) in CACHES.into_iter().zip(&TABLE_5).zip(by_cache) {
        rows.extend(beside(caches, paper, costs)?);
        for phase in ["insertion", "deletion"] {
            let ms = ms(costs, phase)?;
            let claim = format!(
                "{}: {phase}s cost the wandering tree more time than the μ-Tree",
                caches.name
            );
            orderings.push((claim, ms[0] > ms[1]));
        }
    }
    for (system, name) in SYSTEMS.into_iter().enumerate() {
        for phase in PHASES {
            let times = by_cache
                .iter()
                .map(|costs| Ok(ms(costs, phase)?[system]))
                .collect::<Result<Vec<_>, LabError>>()?;
            let claim = format!("{name}: a larger cache makes no {phase} dearer");
            orderings.push((claim, times.is_sorted_by(|small, large| large <= small)));
        }
    }
    for (index, caches) in CACHES.into_iter().enumerate().skip(2) {
        let reads = reads(&by_cache[index], "retrieval")?;
        let claim = format!("{}: a retrieval reads more pages of the μ-Tree", caches.name);
        orderings.push((claim, reads[1] > reads[0]));
    }
    let title = "Table 5: random records of 8 bytes on MLC NAND, then as many of each operation";
    Ok(Experiment { orderings, ..Experiment::of("table5", title, rows) })
}

/// The table's cells for one size of caches beside ours.
fn beside(caches: Caches, paper: &Cells, costs: &[SystemCost]) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    for ((system, paper), cost) in SYSTEMS.into_iter().zip(paper).zip(costs) {
        for ((metrics, paper), phase) in METRICS.into_iter().zip(paper).zip(PHASES) {
            for (index, (measured, unit)) in measured(find(cost, phase)?).into_iter().enumerate() {
                let (metric, paper) = (metrics[index], paper[index]);
                rows.push(Row::beside(system, caches.name, metric, paper, measured, unit));
            }
        }
    }
    Ok(rows)
}

fn measured(phase: &PhaseCost) -> [(f64, &'static str); 3] {
    [(phase.reads_per_op, "pages"), (phase.programs_per_op, "pages"), (phase.ms_mean, "ms")]
}

fn means(config: &str, costs: &[SystemCost]) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    for (system, cost) in SYSTEMS.into_iter().zip(costs) {
        for (metrics, phase) in METRICS.into_iter().zip(PHASES) {
            for (metric, (measured, unit)) in metrics.into_iter().zip(measured(find(cost, phase)?))
            {
                rows.push(Row::alone(system, config, metric, measured, unit));
            }
        }
        let height = cost.height.map(f64::from);
        rows.extend(height.map(|height| Row::alone(system, config, "height", height, "levels")));
    }
    Ok(rows)
}

fn slowest(config: &str, costs: &[SystemCost]) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    for (system, cost) in SYSTEMS.into_iter().zip(costs) {
        for ([p99, max], phase) in SLOWEST.into_iter().zip(PHASES) {
            let phase = find(cost, phase)?;
            rows.push(Row::alone(system, config, p99, phase.ms_p99, "ms"));
            rows.push(Row::alone(system, config, max, phase.ms_max, "ms"));
        }
        let wear = cost.wear_max_by_mean;
        rows.push(Row::alone(system, config, "erases_most_by_mean", wear, "ratio"));
    }
    Ok(rows)
}

fn ms(costs: &[SystemCost], phase: &str) -> Result<[f64; 2], LabError> {
    Ok([find(&costs[0], phase)?.ms_mean, find(&costs[1], phase)?.ms_mean])
}

fn reads(costs: &[SystemCost], phase: &str) -> Result<[f64; 2], LabError> {
    Ok([find(&costs[0], phase)?.reads_per_op, find(&costs[1], phase)?.reads_per_op])
}
