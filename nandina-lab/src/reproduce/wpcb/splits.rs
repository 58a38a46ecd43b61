//! Divisions, merges and rotations of nodes, each counted, and the pages that are written for them.
//!
//! Section 5 of the paper gives three writes to each. The index is counted alone: what an FTL makes
//! of its writes is in the other experiments.

use super::counts::LOG_BLOCKS;
use super::growth::{Growth, Phase};
use super::rebalancing;
use super::rivals::Rival;
use super::runs::{Case, Runs};
use super::tree::REBALANCING;
use super::{Experiment, Experiments};
use crate::LabError;
use crate::reproduce::Row;

/// Entries of a node (section 6.1).
pub const ENTRIES: f64 = 128.0;

/// Writes that the paper gives to a division, a merge or a rotation.
const WRITES: f64 = 3.0;

/// The B-tree of the paper, as a model; ours; and WPCB-tree.
const GROWING: [&str; 3] = [Rival::Merging.key(), "btree", "wpcb"];

/// The same, and the B-tree of the library that merges and rotates.
const SHRINKING: [&str; 4] = [Rival::Merging.key(), REBALANCING, "btree", "wpcb"];

fn ascending(of: &Experiments, system: &'static str) -> Growth {
    of.inserts(system, 100)
}

/// The cases of this experiment, over FAST, as other experiments have most of them.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let [btree, ..] = of.sides(LOG_BLOCKS);
    let growing = GROWING.map(|system| ascending(of, system));
    let shrinking = SHRINKING.map(|system| rebalancing::life(of, system));
    let all = growing.into_iter().chain(shrinking);
    all.map(|growth| Case { growth, below: btree.below }).collect()
}

/// Pages that an operation writes which writes more than one, and pages beyond one an operation.
fn writes(phase: &Phase, operations: u64) -> (f64, u64) {
    let (count, sum) = phase.large();
    (sum as f64 / count.max(1) as f64, phase.writes.saturating_sub(operations))
}

fn growing(of: &Experiments, runs: &Runs, to: &mut Experiment) -> Result<(), LabError> {
    for system in GROWING {
        let growth = ascending(of, system);
        let (grown, n) = (runs.grown(&growth)?, u64::from(growth.records));
        let (nodes, (each, beyond)) = (grown.inserts.nodes, writes(&grown.inserts, n));
        let config = format!("{n} ascending keys, height {}", grown.height);
        let by_insert = |count: u64| count as f64 / n as f64;
        let mut row = |metric, paper: Option<f64>, figure, unit| {
            to.rows.push(match paper {
                Some(paper) => Row::beside(system, &config, metric, paper, figure, unit),
                None => Row::alone(system, &config, metric, figure, unit),
            });
        };
        let divides = system == GROWING[0];
        let printed = divides.then_some(2.0 / ENTRIES);
        row("leaves divided", printed, by_insert(nodes.divided_leaves), "an insert");
        row("leaves opened", None, by_insert(nodes.opened), "an insert");
        row(
            "inner nodes divided",
            None,
            by_insert(nodes.divided - nodes.divided_leaves),
            "an insert",
        );
        row("nodes", None, f64::from(grown.nodes), "nodes");
        let printed = divides.then_some(WRITES);
        row("writes of an insert that divides or opens", printed, each, "pages");
        row("writes beyond one an insert", None, by_insert(beyond), "an insert");
        to.orderings.push(match system {
            "btree-merging" => {
                let every = n as f64 / nodes.divided_leaves.max(1) as f64;
                let holds = (0.9..=1.1).contains(&(every * 2.0 / ENTRIES))
                    && (0.9..=1.1).contains(&(each / WRITES));
                (
                    format!(
                        "ascending keys: the B-tree that merges divides a leaf every m/2 inserts, \
                         and such an insert writes three pages: every {every:.1}, {each:.3}"
                    ),
                    holds,
                )
            }
            _ => {
                let (leaves, all) = (nodes.divided_leaves, nodes.divided);
                let (but, most) =
                    if system == "wpcb" { ("", 0) } else { (" but its first root", 1) };
                let claim = format!(
                    "ascending keys: {system} divides no leaf{but}: {leaves}, and {} inner nodes",
                    all - leaves
                );
                (claim, leaves <= most)
            }
        });
    }
    Ok(())
}

fn shrinking(of: &Experiments, runs: &Runs, to: &mut Experiment) -> Result<(), LabError> {
    for system in SHRINKING {
        let growth = rebalancing::life(of, system);
        let grown = runs.grown(&growth)?;
        let Some(removals) = &grown.removals else { continue };
        let n = u64::from(growth.records);
        let (nodes, (each, beyond)) = (removals.nodes, writes(removals, n));
        let config = format!("{n} removals");
        let changed = nodes.joined + nodes.rotated;
        let by_removal = |count: u64| count as f64 / n as f64;
        let mut row = |metric, figure, unit| {
            to.rows.push(Row::alone(system, &config, metric, figure, unit));
        };
        row("merges", by_removal(nodes.joined), "a removal");
        row("rotations", by_removal(nodes.rotated), "a removal");
        row("empty nodes that go", by_removal(nodes.emptied), "a removal");
        row("merges and rotations, all", changed as f64, "nodes");
        row("writes beyond one a removal", by_removal(beyond), "a removal");
        if changed == 0 {
            let holds = each == 0.0;
            let claim =
                format!("removals: {system} merges and rotates nothing, and each writes one page");
            to.orderings.push((claim, holds));
            continue;
        }
        to.rows.push(Row::beside(
            system,
            &config,
            "writes of a removal that merges or rotates",
            WRITES,
            each,
            "pages",
        ));
        let by = beyond as f64 / changed as f64;
        to.rows.push(Row::alone(
            system,
            &config,
            "writes beyond one, by such a change",
            by,
            "pages",
        ));
        let claim = format!(
            "removals: {system} merges and rotates, and a removal that does writes about three pages: {each:.3}"
        );
        to.orderings.push((claim, (0.9..=1.1).contains(&(each / WRITES))));
    }
    Ok(())
}

/// The counts.
pub fn experiment(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Divisions, merges and rotations of nodes, and the page writes of each";
    let mut experiment = Experiment::of("splits", title, Vec::new());
    growing(of, runs, &mut experiment)?;
    shrinking(of, runs, &mut experiment)?;
    experiment.notes.push(
        "A division writes three pages with the insert's own, so two beyond it; the formulas of the \
         paper add three to that of the insert."
            .into(),
    );
    Ok(experiment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::wpcb::growth::{Grown, Nodes};
    use crate::reproduce::wpcb::{Scale, rivals, tree};

    fn grown(growth: &Growth) -> Grown {
        let model = rivals::grow(growth, &|_| {});
        model.unwrap_or_else(|| tree::grow(growth, &|_| {})).unwrap()
    }

    fn of(records: u32) -> Experiments {
        Experiments::new(Scale { records, ..Scale::FULL }, 1)
    }

    #[test]
    fn ascending_keys_divide_a_node_every_m_by_2_inserts_or_never() {
        let of = of(64 * 1_000);
        let [merging, btree, wpcb] = GROWING.map(|system| grown(&ascending(&of, system)));
        // The first leaf takes 129 keys, each further 64: a leaf has 64 then. So with inner nodes.
        let (leaves, inner) = ((64_000 - 129) / 64 + 1, (998 + 1 - 129) / 64 + 1);
        let nodes = merging.inserts.nodes;
        let divided = Nodes { divided: leaves + inner, divided_leaves: leaves, ..Nodes::default() };
        assert_eq!(nodes, divided);
        assert_eq!(u64::from(merging.nodes), nodes.divided + u64::from(merging.height));
        // An insert that divides a leaf writes both halves and their parent.
        let (large, writes) = merging.inserts.large();
        let above: u64 = writes - 3 * large;
        assert_eq!((large, merging.inserts.writes), (leaves, 64_000 + 2 * large + above));
        assert_eq!(above, 2 * inner, "two pages more where an inner node is divided");
        // The root of `btree` is divided even where it is a leaf. Others of its right edge stay full.
        for (tree, leaves) in [(&btree, 1), (&wpcb, 0)] {
            let nodes = tree.inserts.nodes;
            assert_eq!((tree.height, nodes.divided_leaves, nodes.opened), (3, leaves, 499));
            // An inner node is divided at its 129th leaf, and the upper half 64 leaves later.
            assert_eq!(nodes.divided - leaves, (499 + leaves + 1 - 129) / 64 + 1);
            assert_eq!(u64::from(tree.nodes), nodes.divided + nodes.opened + 3);
            // A new leaf and its parent; two more for an inner node, and one where a root moves.
            let (large, writes) = tree.inserts.large();
            assert_eq!(writes, 2 * large + 2 * (nodes.divided - leaves) + 2);
        }
    }

    #[test]
    fn removals_merge_and_rotate_where_the_tree_does_and_write_three_pages_then() {
        let of = of(30_000);
        let [model, library, btree, wpcb] =
            SHRINKING.map(|system| grown(&rebalancing::life(&of, system)));
        for tree in [&model, &library] {
            let removals = tree.removals.as_ref().unwrap();
            let Nodes { joined, rotated, divided, opened, emptied, .. } = removals.nodes;
            assert_eq!((divided, opened, emptied), (0, 0, 0));
            // Of all nodes one is left: the others were joined, or went as roots.
            let roots = u64::from(tree.height) - 1;
            assert_eq!(joined, u64::from(tree.nodes) - 1 - roots);
            assert!(rotated > joined, "{joined} merges, {rotated} rotations");
            let (large, writes) = removals.large();
            let each = writes as f64 / large as f64;
            assert!((2.7..3.6).contains(&each), "{each} pages");
        }
        for tree in [&btree, &wpcb] {
            let removals = tree.removals.as_ref().unwrap();
            let Nodes { joined, rotated, emptied, .. } = removals.nodes;
            let roots = u64::from(tree.height) - 1;
            assert_eq!((joined, rotated, emptied), (0, 0, u64::from(tree.nodes) - 1 - roots));
            assert_eq!((removals.writes, removals.large()), (30_000, (0, 0)));
        }
    }
}
