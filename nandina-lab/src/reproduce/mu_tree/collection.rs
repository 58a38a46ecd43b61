//! Section 5.1: the paper's bounded bookkeeping for garbage collection.
//!
//! It uses hints in the spare area. The runs beside it use the table of all blocks, and a choice by
//! cost and benefit. The work is Table 5's, without cache. The paper gives no figures to compare
//! with.

use nandina::{GcPolicy, RelocationMode};

use super::{NO_CACHE, PHASES, SYSTEMS, find, setup};
use crate::LabError;
use crate::compare::run_all;
use crate::reproduce::{Experiment, Row};
use crate::run::{Setup, SystemCost, SystemRun};
use crate::work::Work;

/// Runs of both systems beside Table 5's own.
///
/// That one chooses the block with the fewest valid pages.
pub const RUNS: u64 = OTHERS.len() as u64;

const OTHERS: [(&str, GcPolicy); 3] = [
    ("cost and benefit", GcPolicy::CostBenefit),
    ("8 blocks tracked, hints", GcPolicy::Tracked(8)),
    ("64 blocks tracked, hints", GcPolicy::Tracked(64)),
];

/// `fewest` are the costs of Table 5's run without cache, on the chip `paper`.
pub fn experiment(
    paper: &Setup,
    fewest: &[SystemCost],
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let mut rows = rows_of("fewest valid pages", fewest)?;
    let mut reads = Vec::new();
    for (name, victims) in OTHERS {
        let mut setup = setup(paper.profile, NO_CACHE, RelocationMode::Alone);
        setup.options.victims = victims;
        let runs = run_all(&SYSTEMS, &setup, work, progress)?;
        let costs = runs.into_iter().map(SystemRun::cost).collect::<Result<Vec<_>, _>>()?;
        rows.extend(rows_of(name, &costs)?);
        reads.push((name, costs));
    }
    let mut orderings = Vec::new();
    for (at, system) in SYSTEMS.into_iter().enumerate() {
        for (name, costs) in reads.iter().filter(|(name, _)| name.contains("hints")) {
            let [tracked, all] = [find(&costs[at], "insertion")?, find(&fewest[at], "insertion")?];
            orderings.push((
                format!(
                    "{system}: {name}: insertions read more than with the account of all blocks"
                ),
                tracked.reads_per_op > all.reads_per_op,
            ));
        }
    }
    let title =
        "Section 5.1: what the choice of the block to collect costs (Table 5's work, no cache)";
    Ok(Experiment { orderings, ..Experiment::of("collection", title, rows) })
}

fn rows_of(name: &str, costs: &[SystemCost]) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    for (system, cost) in SYSTEMS.into_iter().zip(costs) {
        for phase in &PHASES[1..] {
            let cost = find(cost, phase)?;
            let [reads, programs] = if *phase == "insertion" {
                ["reads_per_insert", "programs_per_insert"]
            } else {
                ["reads_per_delete", "programs_per_delete"]
            };
            rows.push(Row::alone(system, name, reads, cost.reads_per_op, "pages"));
            rows.push(Row::alone(system, name, programs, cost.programs_per_op, "pages"));
        }
        let moved = cost.moved_pages.map(|pages| pages as f64);
        rows.extend(moved.map(|pages| Row::alone(system, name, "moved", pages, "pages")));
        let wear = cost.wear_max_by_mean;
        rows.push(Row::alone(system, name, "erases_most_by_mean", wear, "ratio"));
    }
    Ok(rows)
}
