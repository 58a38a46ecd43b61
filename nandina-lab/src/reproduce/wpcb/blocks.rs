//! Blocks: how many the buffer uses, and the tree (Figures 9, 13, 14 and 15).

use super::below::Below;
use super::counts::LOG_BLOCKS;
use super::runs::{Case, Runs};
use super::{Experiment, Experiments, bars, begun, lines};
use crate::LabError;
use crate::reproduce::Row;
use crate::reproduce::figure::{Bar, Series};

/// The figures by *rs* in per cent, and the sizes by the B-tree's that the paper prints.
const FIGURES: [(&str, &str, u32, Option<f64>); 3] = [
    ("figure13", "Flash blocks of tree and buffer, rs = 1", 100, Some(0.5)),
    ("figure14", "Flash blocks of tree and buffer, rs = 0.5", 50, None),
    ("figure15", "Flash blocks of tree and buffer, rs = 0", 0, None),
];

/// The buffer with *C* = 128, and one that always has a free block.
fn figure_9(of: &Experiments) -> [Case; 2] {
    let fast = Below::fast(of.scale.blocks(LOG_BLOCKS));
    [of.buffer(), of.scale.blocks(256)]
        .map(|blocks| Case { growth: of.inserts("wpcb", 0), below: fast.printed(blocks) })
}

fn tree(of: &Experiments, per_cent: u32) -> [Case; 3] {
    of.sides(LOG_BLOCKS)
        .map(|side| Case { growth: of.inserts(side.system, per_cent), below: side.below })
}

/// The cases of these experiments.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let trees = FIGURES.into_iter().flat_map(|(_, _, per_cent, _)| tree(of, per_cent));
    let rivals = FIGURES.into_iter().flat_map(|(_, _, per_cent, _)| of.rival_cases(per_cent));
    let rivals = rivals.map(|(_, case)| case);
    figure_9(of).into_iter().chain(trees).chain(rivals).collect()
}

fn buffer_in_use(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Buffer blocks in use as records are inserted, rs = 0";
    let mut experiment = Experiment::of("figure9", title, Vec::new());
    let mut series = Vec::new();
    for case in figure_9(of) {
        let most = case.below.buffer.map_or(0, |buffer| buffer.blocks);
        let used = &runs.costs(&case)?.buffered;
        let mut points = Vec::new();
        for (tenth, used) in used.iter().enumerate() {
            let records = u64::from(of.scale.records) * (tenth as u64 + 1) / 10;
            let config = format!("{records} records, {}", case.below.name());
            let row = Row::alone("wpcb", &config, "buffer_blocks", f64::from(*used), "blocks");
            experiment.rows.push(row);
            points.push((records as f64, f64::from(*used)));
        }
        // A conversion frees a block before the next one is taken.
        let rises = used.windows(2).all(|two| two[1] + 1 >= two[0]);
        let claim = format!("C={most}: buffer blocks in use do not fall as records rise");
        experiment.orderings.push((claim, rises));
        let claim = format!("C={most}: never more than C are in use");
        experiment.orderings.push((claim, used.iter().all(|used| *used <= most)));
        series.push(Series { name: format!("C={most}"), points });
    }
    experiment.figures.push(lines("figure9", title, "records", "buffer blocks in use", series));
    Ok(experiment)
}

/// Figures 9, 13, 14 and 15.
pub fn experiments(of: &Experiments, runs: &Runs) -> Result<Vec<Experiment>, LabError> {
    let mut experiments = vec![buffer_in_use(of, runs)?];
    let mut sizes = Vec::new();
    for (id, title, per_cent, printed) in FIGURES {
        let mut experiment = begun(id, title);
        let cases = tree(of, per_cent);
        let (mut found, mut drawn) = (Vec::new(), Vec::new());
        for (side, case) in of.sides(LOG_BLOCKS).iter().zip(&cases) {
            let blocks = runs.grown(&case.growth)?.blocks;
            let used = runs.costs(case)?.buffered.last().copied().unwrap_or(0);
            let (system, config) = (case.growth.system, case.below.name());
            let row = |metric, figure| Row::alone(system, &config, metric, figure, "blocks");
            experiment.rows.push(row("tree", f64::from(blocks)));
            experiment.rows.push(row("tree_and_buffer", f64::from(blocks + used)));
            found.push(f64::from(blocks + used));
            let parts = [blocks, used].map(f64::from).into();
            drawn.push(Bar { label: side.name.into(), parts });
        }
        let [btree, wpcb, _] = found[..] else { continue };
        if let Some(paper) = printed {
            let row = Row::beside(
                "wpcb",
                "as printed, by B-tree",
                "blocks",
                paper,
                wpcb / btree,
                "ratio",
            );
            experiment.rows.push(row);
        }
        let claim = match per_cent {
            100 => ("rs = 1: WPCB needs about half of the blocks", wpcb < 0.6 * btree),
            50 => ("rs = 0.5: WPCB needs fewer blocks", wpcb < btree),
            _ => ("rs = 0: B-tree needs fewer blocks", btree < wpcb),
        };
        experiment.orderings.push((claim.0.into(), claim.1));
        for (rival, case) in of.rival_cases(per_cent) {
            let blocks = f64::from(runs.grown(&case.growth)?.blocks);
            let config = rival.below.name();
            experiment.rows.push(Row::alone(rival.system, &config, "tree", blocks, "blocks"));
            drawn.push(Bar { label: rival.name.into(), parts: vec![blocks, 0.0] });
            let claim = match (per_cent, rival.system) {
                (100, "dipl-ftl" | "mu-star" | "btree-merging") => {
                    let half = (0.4..0.6).contains(&(wpcb / blocks));
                    (format!("rs = 1: WPCB needs about half of the blocks of {}", rival.name), half)
                }
                (50, "dipl-ftl" | "mu-star" | "btree-merging") => (
                    format!("rs = 0.5: WPCB needs fewer blocks than {}", rival.name),
                    wpcb < blocks,
                ),
                (0, "mu-star" | "btree-merging") => {
                    (format!("rs = 0: {} needs fewer blocks", rival.name), blocks < wpcb)
                }
                (0, "dipl-ftl") => {
                    (format!("rs = 0: WPCB needs fewer blocks than {}", rival.name), wpcb < blocks)
                }
                _ => continue,
            };
            experiment.orderings.push(claim);
        }
        let figure = bars(id, title, "tree", "blocks", &["tree", "buffer"], drawn);
        experiment.figures.push(figure);
        sizes.push(wpcb);
        experiments.push(experiment);
    }
    if let ([ascending, half, random], Some(last)) = (&sizes[..], experiments.last_mut()) {
        let claim = "WPCB needs more blocks with rs = 0 than with 0.5 and 1";
        last.orderings.push((claim.into(), random > half && random > ascending));
    }
    Ok(experiments)
}
