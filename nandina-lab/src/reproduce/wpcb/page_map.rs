//! The buffer before a page map, which the paper leaves out: what it costs there.

use super::below::Below;
use super::counts::LOG_BLOCKS;
use super::runs::{Case, Runs};
use super::{Experiment, Experiments};
use crate::LabError;
use crate::reproduce::Row;

/// Values of *rs*, in per cent.
const RATIOS: [u32; 2] = [0, 100];

/// Blocks beside the buffer that its FTL keeps free.
const BESIDE: u32 = 3;

/// A page map on the flash of FAST with its buffer, and the same with a buffer on top.
///
/// Beside the buffer as many blocks are spare as without.
fn belows(of: &Experiments) -> [Below; 6] {
    let spare = of.scale.blocks(LOG_BLOCKS) + of.buffer();
    let more = Below::page_map(spare + of.buffer() + BESIDE);
    let (few, all) = (of.scale.blocks(16), of.buffer());
    [
        Below::page_map(spare),
        more,
        more.printed(few),
        more.printed(all),
        more.improved(few),
        more.improved(all),
    ]
}

fn case(of: &Experiments, per_cent: u32, below: Below) -> Case {
    Case { growth: of.inserts("btree", per_cent), below }
}

/// The cases of this experiment.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let all = belows(of);
    RATIOS.iter().flat_map(|&per_cent| all.map(|below| case(of, per_cent, below))).collect()
}

/// What a buffer costs over a page map.
pub fn experiment(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Inserts into a B-tree over a page map, with and without a buffer";
    let mut experiment = Experiment::of("page-map", title, Vec::new());
    for per_cent in RATIOS {
        let rs = f64::from(per_cent) / 100.0;
        let mut found = Vec::new();
        for below in belows(of) {
            let costs = runs.costs(&case(of, per_cent, below))?;
            let (cost, config) = (costs.inserts, format!("rs {rs}, {}", below.name()));
            let row = |metric, figure, unit| Row::alone("btree", &config, metric, figure, unit);
            experiment.rows.extend([
                row("programs", cost.each(cost.programs), "an insert"),
                row("erases", cost.each(cost.erases), "an insert"),
                row("creation", cost.seconds, "s"),
                row("ram", costs.ram_bytes as f64, "bytes"),
                row("converted", cost.each(cost.conversions.newest), "pages an insert"),
            ]);
            found.push((below, cost));
        }
        let [_, (_, bare), buffered @ ..] = &found[..] else { continue };
        // With ascending keys blocks become garbage as a whole, with a buffer more than without.
        for (below, cost) in buffered.iter().filter(|_| per_cent == 0) {
            let claim =
                format!("rs {rs}: {} is slower than no buffer on the same flash", below.name());
            experiment.orderings.push((claim, cost.seconds > bare.seconds));
        }
        let seconds = |at: usize| found[at].1.seconds;
        experiment.notes.push(format!(
            "rs {rs}: over a page map C={} changes the time by {:+.1} % as printed and {:+.1} % improved, against the same flash without it.",
            of.buffer(),
            -super::reduction(seconds(3), seconds(1)),
            -super::reduction(seconds(5), seconds(1)),
        ));
    }
    Ok(experiment)
}
