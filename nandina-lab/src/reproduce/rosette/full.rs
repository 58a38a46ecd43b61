//! Chips that are nearly full of leaves: what an update costs then.
//!
//! Collection moves the more pages the fewer of them are garbage. Chips have blocks of 32 pages of
//! 4 KiB, as many as make the leaves a given part of all pages.

use nandina::flash::Profile;
use nandina::flash::profile::MLC;

use super::nand::{changes, zipf};
use super::{SYSTEM, Scale, find, setup};
use crate::LabError;
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};
use crate::run::{SystemRun, run};
use crate::work::{Operation, Phase, Work};

/// Pages of a block.
const BLOCK_PAGES: u32 = 32;

/// Leaves in per cent of all pages; programs an update of the prototype: uniform, by Zipf's law.
const FILLS: [(u32, Option<f64>, Option<f64>); 6] = [
    (17, Some(1.007), None),
    (50, Some(1.296), Some(1.526)),
    (60, Some(1.580), Some(1.896)),
    (70, Some(2.09), Some(2.563)),
    (80, Some(3.31), None),
    (90, Some(9.2), None),
];

/// Records that are inserted in random order: a leaf holds some 390 of them then.
const RECORDS: u32 = 1_000_000;

/// Updates for each page of the chip before those that are measured, and as many that are.
const ROUNDS: u32 = 4;

/// Records for a scale: enough for several times as many leaves as a block has pages.
const fn records(scale: Scale) -> u32 {
    if scale.quick { RECORDS / 5 } else { RECORDS }
}

/// Operations of all runs.
pub fn operations(scale: Scale) -> u64 {
    let leaves = records(scale) / 350;
    let updates: u32 = FILLS.iter().map(|(fill, ..)| 2 * ROUNDS * leaves * 100 / fill).sum();
    2 * (FILLS.len() as u64 * u64::from(records(scale)) + u64::from(updates))
}

/// A chip of so many pages that `leaves` are `fill` per cent of them.
fn chip(leaves: u32, fill: u32) -> Profile {
    let mut profile = MLC.without_pairing();
    profile.geometry.pages_per_block = BLOCK_PAGES;
    profile.capabilities.bad_blocks_per_mille = 0;
    profile.with_blocks((leaves * 100 / fill).div_ceil(BLOCK_PAGES))
}

/// Programs an update by how full the chip is.
pub fn experiment(
    scale: Scale,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let records = records(scale);
    let fill_phase = || Phase::new("fill", (0..records).map(Operation::Insert).collect());
    // How many leaves there will be is known from a run on a chip with room.
    let mut work = Work::random_rows(records, 4, 4, seed)?;
    work.phases = vec![fill_phase()];
    let room = records / 250;
    let roomy = run(SYSTEM, &setup(chip(room, 10), room, None), &work, &|_| {})?.cost()?;
    let leaves = roomy.valid_pages.unwrap_or(room);
    let (mut rows, mut refusals, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let mut orderings = Vec::new();
    for (skewed, law) in [(false, "uniform"), (true, "Zipf 0.99")] {
        let mut points = Vec::new();
        for (fill, uniform, by_zipf) in FILLS {
            let profile = chip(leaves, fill);
            let updates = ROUNDS * profile.geometry.pages();
            let drawn = if skewed {
                zipf(records, 2 * updates, seed)?
            } else {
                let order = Work::shuffled(records, seed ^ 3);
                changes(order.iter().copied().cycle().take(2 * updates as usize), records)
            };
            let (before, after) = drawn.split_at(updates as usize);
            work.phases = vec![
                fill_phase(),
                Phase::new("aging", before.to_vec()),
                Phase::new("update", after.to_vec()),
            ];
            let config = format!("{fill} % leaves, {law}");
            let cost = match run(SYSTEM, &setup(profile, leaves + 8, None), &work, progress)? {
                SystemRun::Ran(cost) => cost,
                SystemRun::Refused(refusal) => {
                    refusals.push(format!("{config}: {}", refusal.reason));
                    continue;
                }
            };
            let phase = find(&cost, "update")?;
            let programs = phase.programs_per_op;
            rows.push(match if skewed { by_zipf } else { uniform } {
                Some(theirs) => Row::beside(SYSTEM, &config, "programs", theirs, programs, "pages"),
                None => Row::alone(SYSTEM, &config, "programs", programs, "pages"),
            });
            rows.push(Row::alone(SYSTEM, &config, "longest", phase.ms_max, "ms"));
            let wear = cost.wear_max_by_mean;
            rows.push(Row::alone(SYSTEM, &config, "most erases by mean", wear, "ratio"));
            points.push((f64::from(fill), programs));
        }
        orderings.push((
            format!("{law}: the fuller the chip, the more an update programs"),
            points.len() > 2 && points.is_sorted_by(|one, other| one.1 <= other.1),
        ));
        lines.push(Series { name: law.into(), points });
    }
    let figure = Figure {
        id: "rosette-full".into(),
        title: "Programs an update by how full of leaves the chip is".into(),
        x: "leaves in per cent of all pages".into(),
        y: "page programs".into(),
        content: Content::Lines { logarithmic: false, series: lines },
    };
    let title = "Chips that are nearly full: a leaf in each page";
    let figures = vec![figure];
    Ok(Experiment { orderings, refusals, figures, ..Experiment::of("full", title, rows) })
}
