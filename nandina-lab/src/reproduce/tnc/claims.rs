//! A verdict on each claim of the paper: whether it holds here, with our figure.
//!
//! What a run of the model cannot show is a note that names what does.

use super::table_1::{Cells, breaks, last_commit, spread};
use super::table_2::{Fanouts, flash, ram};
use super::table_3::{Draws, halves, linear};
use super::{Experiments, mega};
use crate::reproduce::Experiment;

/// Claims that are rules of the model or of the system `tnc`, and what checks them.
const SHOWN_ELSEWHERE: [&str; 6] = [
    "c1: index nodes change in memory only: a rule of the model; nodes are written by commits alone (tests of \
     reproduce/tnc/count.rs)",
    "c2: each dirty node is written once per commit: tests of reproduce/tnc/count.rs. \"A dirty node without a \
     dirty child\" alone would write an ancestor twice if a clean node were between two dirty ones; here a \
     change marks its whole path",
    "c3: only a clean node without a child in memory leaves: checked after changes by the same tests",
    "c4: a node in memory has its parent in memory: checked after changes by the same tests",
    "c5: after power loss nothing is lost: the model has no flash; nandina/tests/tnc/main.rs compares the system tnc \
     with a map through cuts",
    "c14: reads are faster than with a lazy update pool: the paper has no figure, and there is no such pool here",
];

/// The verdicts.
pub fn experiment(
    of: &Experiments,
    cells: &[Cells],
    fanouts: &[Fanouts],
    draws: &Draws,
) -> Experiment {
    let mut experiment = Experiment::of("claims", "The claims of the paper", Vec::new());
    experiment.notes = SHOWN_ELSEWHERE.map(String::from).into();
    let mut verdict = |id: &str, holds: bool, words: String| {
        experiment.orderings.push((format!("{id}: {words}"), holds));
    };
    // Where the journal decides when a commit comes, the ratio cannot move the last one.
    let steadier = cells.iter().find(|cells| cells.bound.bytes.is_some()).map(|cells| {
        format!(
            ", because it moves the last commit: with {}, which makes commits often, {:.2} points",
            cells.bound,
            spread(of, cells).0
        )
    });
    if let Some(cells) = cells.iter().find(|cells| cells.bound.is_fitted) {
        let saved = || cells.counts.iter().flatten().map(|counts| 100.0 - counts.per_cent());
        let (least, most) = (saved().fold(f64::MAX, f64::min), saved().fold(0.0, f64::max));
        verdict(
            "c6",
            least >= 98.23,
            format!("98.23 % to 99.41 % of the nodes are saved: {least:.2} % to {most:.2} %"),
        );
        let breaks: Vec<_> = cells.counts.iter().flat_map(|row| breaks(of, row)).collect();
        let after = |counts| last_commit(counts).map(|commit| commit.after);
        let all_later = breaks.iter().all(|(_, smaller, larger)| after(larger) > after(smaller));
        let cause = match breaks.len() {
            0 => "",
            _ if all_later => ", because its last commit comes later; table1 names it",
            _ => "",
        };
        verdict(
            "c7",
            breaks.is_empty(),
            format!(
                "a larger TNC saves more at each ratio: not in {} of 12 steps{cause}",
                breaks.len()
            ),
        );
        let (points, nodes) = spread(of, cells);
        verdict(
            "c8",
            points <= 0.325,
            format!(
                "the shrink ratio has no noticeable effect (0.32 points at most in the paper): {points:.2} points \
                 at {nodes} nodes{}",
                steadier.unwrap_or_default()
            ),
        );
    }
    if let Some(fanouts) = fanouts.first() {
        let nodes: Vec<_> =
            fanouts.counts.iter().map(|(_, counts)| counts.most.to_string()).collect();
        let falls = fanouts.counts.windows(2).all(|pair| pair[1].1.most < pair[0].1.most);
        let words = format!("with a larger fanout fewer nodes at most: {}", nodes.join(", "));
        verdict("c9", falls, words);
    }
    let bounded = fanouts.iter().filter(|fanouts| fanouts.bound.bytes.is_some());
    let least: Vec<_> = bounded.map(|fanouts| fanouts.least(flash)).collect();
    verdict(
        "c10",
        least.iter().all(|fanout| *fanout == 32),
        format!("bytes written are least at fanout 32: at {least:?} for the journal's bounds"),
    );
    let least: Vec<_> = fanouts.iter().map(|fanouts| fanouts.least(ram)).collect();
    let all = fanouts.iter().flat_map(|fanouts| &fanouts.counts);
    let bytes = all.map(|(settings, counts)| ram(settings, counts)).min().unwrap_or_default();
    verdict(
        "c11",
        least.iter().all(|fanout| *fanout == 32),
        format!(
            "bytes of RAM are least at fanout 32 (4.77 MiB): at {least:?}, {:.2} MiB",
            mega(bytes)
        ),
    );
    for (id, (words, holds)) in [("c12", linear(draws)), ("c13", halves(draws))] {
        verdict(id, holds, words);
    }
    experiment
}
