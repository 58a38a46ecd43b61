//! Removals of all records: the paper's baseline is a B-tree that merges and rotates nodes.
//!
//! `btree-rebalancing` is the B-tree of the library with that option, right after every cut. Its
//! model counts a rotation as both nodes and their parent; the library writes the new upper node
//! and the parent, and the lower node only if it gains records.

use super::below::Below;
use super::growth::Growth;
use super::rivals::Rival;
use super::runs::{Case, Runs};
use super::tree::REBALANCING;
use super::{Experiment, Experiments, reduction};
use crate::LabError;
use crate::reproduce::Row;

/// Records of the comparison; a quick run has fewer.
const RECORDS: u32 = 300_000;

/// Log blocks of FAST, and how much less time WPCB is to take, in per cent.
const GOALS: [(u32, f64); 2] = [(4, 79.0), (16, 44.0)];

/// All records come with random keys, and go in random order.
pub fn life(of: &Experiments, system: &'static str) -> Growth {
    let records = of.scale.records.min(RECORDS);
    Growth { then_removes: true, records, ..of.inserts(system, 0) }
}

/// The baseline, its model, and WPCB as printed and improved.
fn sides(of: &Experiments, log_blocks: u32) -> [(&'static str, Below); 4] {
    let fast = Below::fast(of.scale.blocks(log_blocks));
    [
        (REBALANCING, fast),
        (Rival::Merging.key(), fast),
        ("wpcb", fast.printed(of.buffer())),
        ("wpcb", fast.improved(of.buffer())),
    ]
}

/// The cases of this experiment.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let case = |(system, below)| Case { growth: life(of, system), below };
    GOALS.iter().flat_map(|&(log_blocks, _)| sides(of, log_blocks).map(case)).collect()
}

/// Removals of all records.
pub fn experiment(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Removals of all records against the B-tree that merges and rotates, over FAST";
    let mut experiment = Experiment::of("rebalancing", title, Vec::new());
    for (log_blocks, goal) in GOALS {
        let mut found = Vec::new();
        for (system, below) in sides(of, log_blocks) {
            let growth = life(of, system);
            let (removals, grown) =
                (runs.costs(&Case { growth, below })?.removals, runs.grown(&growth)?);
            let written = grown.removals.as_ref().map_or(0, |phase| phase.writes);
            let config = below.name();
            let row = |metric, figure, unit| Row::alone(system, &config, metric, figure, unit);
            experiment.rows.extend([
                row("writes", written as f64 / f64::from(growth.records), "a removal"),
                row("reads", removals.each(removals.reads), "a removal"),
                row("programs", removals.each(removals.programs), "a removal"),
                row("erases", removals.each(removals.erases), "a removal"),
                row("delete", removals.seconds, "s"),
            ]);
            found.push((below, removals.seconds, written as f64));
        }
        let [(_, btree, writes), (_, model, counted), printed, improved] = found[..] else {
            continue;
        };
        for (below, seconds, _) in [printed, improved] {
            let config = format!("{}, against the B-tree that rebalances", below.name());
            let less = reduction(seconds, btree);
            experiment.rows.push(Row::alone("wpcb", &config, "delete", less, "% less"));
        }
        let less = reduction(improved.1, btree);
        let claim = format!(
            "N={}: WPCB takes {goal} % less time to delete all than the B-tree that rebalances, or better: {less:.1} %",
            of.scale.blocks(log_blocks)
        );
        experiment.orderings.push((claim, less >= goal));
        experiment.notes.push(format!(
            "N={}: the B-tree of the library writes {:.3} of the pages that its model counts, and takes {:.3} of the time.",
            of.scale.blocks(log_blocks),
            writes / counted,
            btree / model,
        ));
    }
    Ok(experiment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::wpcb::below::replay;
    use crate::reproduce::wpcb::growth::Grown;
    use crate::reproduce::wpcb::{Scale, rivals, tree};

    /// A rotation takes a free page and leaves one. Which free page it takes decides how many
    /// logical blocks have nodes, and with that how much FAST merges.
    #[test]
    fn the_library_takes_as_few_logical_blocks_as_its_model_and_no_more_time() {
        let of = Experiments::new(Scale { records: 60_000, ..Scale::FULL }, 1);
        let ours = tree::grow(&life(&of, REBALANCING), &|_| {}).unwrap();
        let model = rivals::grow(&life(&of, Rival::Merging.key()), &|_| {}).unwrap().unwrap();
        assert_eq!((ours.blocks, model.blocks), (11, 11));
        assert!(ours.most_blocks <= model.most_blocks + 1, "{} blocks", ours.most_blocks);
        let seconds = |grown: &Grown, log_blocks| {
            replay(&Below::fast(log_blocks), grown).unwrap().removals.seconds
        };
        for log_blocks in [4, 16] {
            let (our, counted) = (seconds(&ours, log_blocks), seconds(&model, log_blocks));
            println!("N={log_blocks}: {our:.1} s, its model {counted:.1} s");
            assert!(our <= counted, "N={log_blocks}: {our} s, {counted} s");
        }
    }
}
