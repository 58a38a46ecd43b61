//! Section 5.4: 100,000 records on an SD card with room for 5,000 pages.
//!
//! The runs have four page buffers and a table of mappings of 4,096 bytes.
//!
//! The section does not say how large its records are. Records of 16 bytes, as in section 5.1, need
//! about 4,800 pages for their leaves alone, and a storage that is 96 % full cannot be passed
//! through 27 times with 135,000 writes. So records of 8 bytes are tried as well, and 16 bytes on
//! twice the storage.

use std::path::Path;

use nandina::flash::{Geometry, Profile, profile::SD};
use nandina::{Folds, Options};

use super::case::Outcome;
use super::levels::{self, Steps};
use super::series::Kind;
use super::{SYSTEMS, Scale};
use crate::LabError;
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

const RECORDS: u32 = 100_000;
const PAGES: u32 = 5_000;
const PAGES_PER_BLOCK: u32 = 10;
const TABLE_BYTES: usize = 4_096;
/// A metric: all writes.
pub const WRITES: &str = "writes, all inserts";

/// Series, storages in units of the paper's, and when mappings are flushed.
const RUNS: [(Kind, u32, Folds, &str); 8] = [
    (Kind::Random, 1, Folds::Share, "random 16 B, 5,000 pages"),
    (Kind::Random, 5, Folds::Share, "random 16 B, 25,000 pages"),
    (Kind::Random, 5, Folds::Children(2), "random 16 B, 25,000 pages, 2-children"),
    (Kind::RandomSmall, 1, Folds::Share, "random 8 B, 5,000 pages"),
    (Kind::RandomSmall, 3, Folds::Share, "random 8 B, 15,000 pages"),
    (Kind::Temperature, 1, Folds::Share, "temperature 8 B, 5,000 pages"),
    (Kind::Temperature, 3, Folds::Share, "temperature 8 B, 15,000 pages"),
    (Kind::Temperature, 24, Folds::Share, "temperature 8 B, 120,000 pages"),
];

/// Operations of all runs, at most.
pub fn operations(scale: Scale) -> u64 {
    (RUNS.len() * 2) as u64 * 2 * u64::from(RECORDS / scale.by)
}

fn chip(storages: u32, scale: Scale) -> Profile {
    let blocks = storages * PAGES / PAGES_PER_BLOCK / scale.by;
    Profile { geometry: Geometry { pages_per_block: PAGES_PER_BLOCK, blocks, ..SD.geometry }, ..SD }
}

/// The chip of a run.
///
/// The B-tree updates pages of twice the storage in turn; no update of a page is a collection.
fn chip_of(system: &str, storages: u32, scale: Scale) -> Profile {
    chip(if system == "btree" { 2 * storages } else { storages }, scale)
}

/// Section 5.4.
pub fn experiment(
    scale: Scale,
    seed: u64,
    sensors: Option<&Path>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let title = "Section 5.4: 100,000 records, storage of 5,000 pages, M = 4, table of 4,096 bytes";
    let mut experiment = Experiment::of("section5-4", title, Vec::new());
    let mut lines = Vec::new();
    let records = RECORDS / scale.by;
    let options = Options {
        page_buffers: Some(4),
        mapping_bytes: TABLE_BYTES / scale.by as usize,
        ..Options::new(1, 0)
    };
    for (kind, storages, folds, config) in RUNS {
        let work = match kind.rows(records, seed, sensors) {
            Ok(work) => work,
            Err(reason) => {
                experiment.refusals.push(reason);
                continue;
            }
        };
        let mut ran = Vec::new();
        for system in &SYSTEMS[..2] {
            let chip = chip_of(system, storages, scale);
            let options = Options { folds, ..options };
            match levels::run(system, chip, options, &work, records as usize / 10, progress)? {
                Outcome::Ran(steps) => ran.push((*system, steps)),
                Outcome::Skipped(reason) => {
                    experiment.refusals.push(format!("{config}: {reason}"));
                }
            }
        }
        for (system, steps) in &ran {
            experiment.rows.extend(rows(system, config, steps, storages));
            let writes = |step: &levels::Step| {
                (f64::from(step.records), step.writes() as f64 / (f64::from(records) / 10.0))
            };
            let points = steps.steps.iter().map(writes).collect();
            let name = format!("{system} {}", kind.name());
            // The smallest storage on which both run is drawn.
            if ran.len() == 2 && !lines.iter().any(|line: &Series| line.name == name) {
                lines.push(Series { name, points });
            }
        }
        if folds == Folds::default()
            && let [(_, btree), (_, vm)] = &ran[..]
        {
            beside(&mut experiment, kind, config, btree, vm);
        }
    }
    experiment.figures.push(Figure {
        id: "vmtree-section5-4".into(),
        title: "Pages written for an insertion, by records".into(),
        x: "records".into(),
        y: "pages".into(),
        content: Content::Lines { logarithmic: false, series: lines },
    });
    Ok(experiment)
}

/// The costs of one system.
fn rows(system: &'static str, config: &str, steps: &Steps, storages: u32) -> Vec<Row> {
    let (leaves, parents) = steps.written();
    let writes = (leaves + parents) as f64;
    let reads: u64 = steps.steps.iter().map(|step| step.counters.reads).sum();
    let mut rows = Vec::new();
    let mut row = |metric, value, unit| rows.push(Row::alone(system, config, metric, value, unit));
    row("reads, all inserts", reads as f64, "pages");
    row("writes of leaves", leaves as f64, "pages");
    row("writes of inner nodes", parents as f64, "pages");
    row("reads_per_query", steps.reads_per_lookup, "pages");
    if let Some(last) = steps.steps.last() {
        row("valid pages at the end", last.valid_pages.into(), "pages");
        if system == "vm" {
            row("of the writes, pages moved by collection", last.moved_pages as f64, "pages");
        }
    }
    let metric = WRITES;
    if system == "vm" {
        // The paper's count is of VMTree.
        rows.push(Row::beside(system, config, metric, 135_000.0, writes, "pages"));
        let passes = writes / f64::from(storages * PAGES);
        let metric = "passes through storage";
        rows.push(match storages {
            1 => Row::beside(system, config, metric, 27.0, passes, "passes"),
            _ => Row::alone(system, config, metric, passes, "passes"),
        });
    } else {
        rows.push(Row::alone(system, config, metric, writes, "pages"));
    }
    rows
}

/// The two systems beside each other.
fn beside(experiment: &mut Experiment, kind: Kind, config: &str, btree: &Steps, vm: &Steps) {
    let ([btree_first, .., btree_last], [vm_first, .., vm_last]) =
        (&btree.steps[..], &vm.steps[..])
    else {
        return;
    };
    let operations = |step: &levels::Step| (step.counters.reads + step.writes()) as f64;
    let by = |vm: &levels::Step, btree: &levels::Step| operations(vm) / operations(btree);
    let (first, last) = (by(vm_first, btree_first), by(vm_last, btree_last));
    let rows = &mut experiment.rows;
    let metric = "operations by btree's, first tenth (throughput within 1 %)";
    rows.push(Row::in_range("vm", config, metric, (0.99, 1.01), first, "ratio"));
    let table = vm_last.table_percent;
    let metric = "operations by btree's, last tenth";
    if kind == Kind::Temperature {
        let metric = "operations by btree's, last tenth (almost no difference)";
        rows.push(Row::beside("vm", config, metric, 1.0, last, "ratio"));
        rows.push(Row::beside("vm", config, "table full at the end", 20.0, table, "%"));
    } else {
        let paper = "operations by btree's, last tenth (B-tree's throughput 22 % higher)";
        let metric = if kind == Kind::Random { paper } else { metric };
        rows.push(Row::beside("vm", config, metric, 1.22, last, "ratio"));
        rows.push(Row::in_range(
            "vm",
            config,
            "table full at the end (near full)",
            (75.0, 100.0),
            table,
            "%",
        ));
        let claim = format!("{config}: the fuller table costs VMTree operations");
        experiment.orderings.push((claim, last > first));
    }
    let rows = &mut experiment.rows;
    let time = vm_last.seconds / btree_last.seconds;
    rows.push(Row::alone("vm", config, "time by btree's, last tenth, by latencies", time, "ratio"));
    let claim = format!("{config}: queries read alike (to 5 %)");
    let holds = (vm.reads_per_lookup / btree.reads_per_lookup - 1.0).abs() < 0.05;
    experiment.orderings.push((claim, holds));
}
