//! When mappings are flushed into their parents, measured for each policy.
//!
//! The run has 100,000 records of 16 bytes in 20,000 pages of 512 bytes, three page buffers, and a
//! table of 1,024 bytes. The published C code, measured, writes 203,955 pages for that, 46 % of
//! them parents.

use nandina::flash::profile::SD;
use nandina::flash::{Geometry, Profile};
use nandina::{Folds, Options};

use super::Scale;
use super::case::Outcome;
use super::levels::{self, Steps};
use super::series::Kind;
use crate::LabError;
use crate::reproduce::figure::{Bar, Content, Figure};
use crate::reproduce::{Experiment, Row};

const RECORDS: u32 = 100_000;
const PAGES: u32 = 20_000;
const PAGES_PER_BLOCK: u32 = 10;
const TABLE_BYTES: usize = 1_024;

/// A metric: all writes.
pub const ALL_WRITES: &str = "writes";

/// The C code's writes.
const WRITES: f64 = 203_955.0;
const PARENTS_PERCENT: f64 = 46.0;

/// The policies, the default first.
const POLICIES: [(Folds, &str); 5] = [
    (Folds::Share, "twice-the-share"),
    (Folds::Full, "table-full"),
    (Folds::Children(2), "2-children"),
    (Folds::Children(4), "4-children"),
    (Folds::Children(8), "8-children"),
];

/// Operations of all runs.
pub fn operations(scale: Scale) -> u64 {
    2 * POLICIES.len() as u64 * u64::from(RECORDS / scale.by)
}

/// The SD card with 20,000 pages; a tenth of them for a tenth of the records.
///
/// The size of its blocks decides how much collection moves, and how many pages may be valid.
fn chip(scale: Scale) -> Profile {
    let blocks = PAGES / PAGES_PER_BLOCK / scale.by;
    Profile { geometry: Geometry { pages_per_block: PAGES_PER_BLOCK, blocks, ..SD.geometry }, ..SD }
}

/// Runs one policy.
fn steps(
    scale: Scale,
    seed: u64,
    folds: Folds,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Outcome<Steps>, LabError> {
    let records = RECORDS / scale.by;
    let work = Kind::Random.rows(records, seed, None).map_err(LabError)?;
    let mapping_bytes = TABLE_BYTES / scale.by as usize;
    let options = Options { page_buffers: Some(3), mapping_bytes, folds, ..Options::new(1, 0) };
    levels::run("vm", chip(scale), options, &work, records as usize / 10, progress)
}

/// The table of this experiment.
pub fn experiment(
    scale: Scale,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let title = "When mappings are folded: 100,000 random records of 16 bytes in 20,000 pages, M = 3, table of 1 KiB; \
                 beside the published C code";
    let mut experiment = Experiment::of("folds", title, Vec::new());
    let mut bars = Vec::new();
    let mut totals = Vec::new();
    for (folds, name) in POLICIES {
        let steps = match steps(scale, seed, folds, progress)? {
            Outcome::Ran(steps) => steps,
            Outcome::Skipped(reason) => {
                experiment.refusals.push(format!("{name}: {reason}"));
                continue;
            }
        };
        let (leaves, parents) = steps.written();
        let (leaves, parents) = (leaves as f64, parents as f64);
        let share = parents * 100.0 / (leaves + parents);
        let reads: u64 = steps.steps.iter().map(|step| step.counters.reads).sum();
        let erases: u64 = steps.steps.iter().map(|step| step.counters.erases).sum();
        let moved = steps.steps.last().map_or(0, |step| step.moved_pages);
        let rows = &mut experiment.rows;
        rows.push(Row::beside("vm", name, ALL_WRITES, WRITES, leaves + parents, "pages"));
        rows.push(Row::beside("vm", name, "of them parents", PARENTS_PERCENT, share, "%"));
        let mut row = |metric, value, unit| rows.push(Row::alone("vm", name, metric, value, unit));
        row("parents", parents, "pages");
        row("moved by collection", moved as f64, "pages");
        row("reads", reads as f64, "pages");
        row("erases", erases as f64, "blocks");
        bars.push(Bar { label: name.into(), parts: vec![leaves, parents] });
        totals.push((folds, leaves + parents, share));
    }
    let default = totals.iter().find(|(folds, ..)| *folds == Folds::default());
    if let Some((_, writes, share)) = default {
        let claims = [
            (
                "the default writes fewer pages than the C code",
                *writes < WRITES / f64::from(scale.by),
            ),
            (
                "the default writes a smaller share of parents than the C code",
                *share < PARENTS_PERCENT,
            ),
            (
                "the default writes the fewest pages of the policies",
                totals.iter().all(|(_, other, _)| writes <= other),
            ),
        ];
        experiment.orderings.extend(claims.map(|(claim, holds)| (claim.into(), holds)));
    }
    experiment.figures.push(Figure {
        id: "vmtree-folds".into(),
        title: format!(
            "Pages written for {},000 random records, by when mappings are folded",
            RECORDS / scale.by / 1000
        ),
        x: "a parent is written when".into(),
        y: "pages".into(),
        content: Content::Bars { parts: ["leaves", "parents"].map(String::from).into(), bars },
    });
    Ok(experiment)
}
