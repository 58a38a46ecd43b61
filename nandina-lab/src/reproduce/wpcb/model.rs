//! The formulas of section 5 beside the counts.
//!
//! A write there is a page write of the index; what an FTL makes of it is in the other experiments.

use super::counts::LOG_BLOCKS;
use super::growth::{Growth, Nodes};
use super::rebalancing;
use super::rivals::Rival;
use super::runs::{Case, Runs};
use super::splits::ENTRIES;
use super::tree::REBALANCING;
use super::{Experiment, Experiments};
use crate::LabError;
use crate::reproduce::Row;

/// The systems: the B-tree of the paper, which merges, is a model and an option of ours.
const SYSTEMS: [&str; 4] = ["btree", "wpcb", Rival::Merging.key(), REBALANCING];

/// The work of each: ascending keys, and random ones that are all removed.
///
/// The library's tree that merges has fewer records, with random keys alone: it grows as `btree`.
fn growths(of: &Experiments) -> Vec<Growth> {
    let growths = SYSTEMS.into_iter().flat_map(|system| match system {
        REBALANCING => vec![rebalancing::life(of, system)],
        _ => vec![of.inserts(system, 100), Growth { then_removes: true, ..of.inserts(system, 0) }],
    });
    growths.collect()
}

/// The writes of removals by formula (4): the B-tree of the paper merges and rotates.
fn removal_writes(system: &str, n: f64, nodes: Nodes) -> f64 {
    match system {
        "wpcb" => n,
        _ => n + 3.0 * (nodes.joined + nodes.rotated) as f64,
    }
}

/// The cases of this experiment.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let [btree, ..] = of.sides(LOG_BLOCKS);
    growths(of).into_iter().map(|growth| Case { growth, below: btree.below }).collect()
}

/// The formulas and the counts.
pub fn experiment(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Section 5: page reads and writes of the index, the formula beside the count";
    let mut experiment = Experiment::of("section5", title, Vec::new());
    for growth in growths(of) {
        let grown = runs.grown(&growth)?;
        let (n, height) = (f64::from(growth.records), f64::from(grown.height));
        let system = growth.system;
        let rs = f64::from(growth.per_cent) / 100.0;
        let config = format!("rs {rs}, height {height}");
        let mut row = |config: &str, metric, formula: f64, count: u64, operations: f64| {
            let (formula, count) = (formula / operations, count as f64 / operations);
            let row = Row::beside(system, config, metric, formula, count, "an operation");
            experiment.rows.push(row);
        };
        let inserts = &grown.inserts;
        let mut reads = vec![("an insert", inserts.reads)];
        reads.extend(grown.lookups.as_ref().map(|lookups| ("a lookup", lookups.reads)));
        row(&format!("(1) inserts, {config}"), "reads", n * height, inserts.reads, n);
        let splits = inserts.nodes.divided as f64;
        let (equation, writes) = match (growth.per_cent, system) {
            (100, "wpcb") => ("(2)", n),
            (100, _) => ("(2)", n + 2.0 * n / ENTRIES * 3.0),
            _ => ("(3)", n + 3.0 * splits),
        };
        row(&format!("{equation} inserts, {config}"), "writes", writes, inserts.writes, n);
        if let Some(lookups) = &grown.lookups {
            row(&format!("lookups, {config}"), "reads", n * height, lookups.reads, n);
        }
        if let Some(removals) = &grown.removals {
            let writes = removal_writes(system, n, removals.nodes);
            row(&format!("(4) removals, {config}"), "writes", writes, removals.writes, n);
        }
        for (what, reads) in reads {
            let each = reads as f64 / n;
            let claim = format!(
                "{config}, {system}: {what} reads at most as many pages as the tree is high: {each:.3}"
            );
            experiment.orderings.push((claim, each <= height));
        }
        if system == "wpcb" {
            let claim = format!("{config}, {system}: an insert reads just as many, to a tenth");
            let each = inserts.reads as f64 / n;
            experiment.orderings.push((claim, (0.9..=1.1).contains(&(each / height))));
        }
    }
    experiment.notes = vec![
        "The formulas read each node from flash. Here the page buffers keep the root and what was read \
         last, so fewer are read; no system reads a node twice."
            .into(),
        "Splits, merges and rotations are counted (splits). The formulas add three writes for each: \
         a split writes three pages with that of the insert, so they count one too many. btree \
         and wpcb merge and rotate nothing when a record is removed."
            .into(),
    ];
    Ok(experiment)
}
