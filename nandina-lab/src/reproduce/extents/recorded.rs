//! Recorded traces that a user has, on the same mappings.
//!
//! They are other traces than the paper's, and no row of the paper is beside theirs.

use std::path::{Path, PathBuf};

use super::memory::page_map;
use crate::LabError;
use crate::block_trace::{BlockTrace, Choices, NO_FORMAT};
use crate::replay::{Report, Setup, Stats, Unit, replay};
use crate::reproduce::{Experiment, Row};

/// Files that are looked at, at most.
const FILES_MAX: usize = 200;

/// Where the traces are.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The folder with them, or with folders of them.
    pub folder: PathBuf,
    /// By file name the key of the format, where more than one fits.
    pub formats: Vec<(String, String)>,
}

impl Recorded {
    /// The format that was chosen for a file.
    fn format_of(&self, path: &Path) -> Option<String> {
        let name = path.file_name()?.to_str()?;
        self.formats.iter().find(|(file, _)| file == name).map(|(_, format)| format.clone())
    }

    /// Expects that each file for which a format was chosen is there.
    fn expect_files(&self, paths: &[PathBuf]) -> Result<(), LabError> {
        let is_there =
            |file: &str| paths.iter().any(|path| path.file_name().is_some_and(|name| name == file));
        match self.formats.iter().find(|(file, _)| !is_there(file)) {
            Some((file, format)) => Err(LabError(format!(
                "--trace-format {file}={format}: {} has no file of that name",
                self.folder.display()
            ))),
            None => Ok(()),
        }
    }
}

/// The traces in a folder and the folders in it; nothing without a folder.
pub fn experiment(recorded: Option<&Recorded>) -> Result<Option<Experiment>, LabError> {
    let Some(recorded) = recorded else { return Ok(None) };
    let folder = &recorded.folder;
    let title = "Recorded traces, none of them the paper's: memory, time and canonical extents";
    let mut experiment = Experiment::of("recorded", title, Vec::new());
    let mut files = files(folder)?;
    for inner in std::mem::take(&mut files.1) {
        files.0.extend(self::files(&inner)?.0);
    }
    files.0.sort();
    recorded.expect_files(&files.0)?;
    let mut others = 0;
    for path in files.0.iter().take(FILES_MAX) {
        match rows(path, recorded.format_of(path)) {
            Ok(rows) => experiment.rows.extend(rows),
            Err(LabError(error)) if error.contains(NO_FORMAT) => others += 1,
            // What to choose is said for one file there; here it needs the file's name, too.
            Err(LabError(error)) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let choice = format!("--trace-format {name}=");
                experiment.refusals.push(error.replace("--format ", &choice));
            }
        }
    }
    if others > 0 {
        experiment.refusals.push(format!("{others} files that are no block traces"));
    }
    if experiment.rows.is_empty() && experiment.refusals.is_empty() {
        experiment.refusals.push(format!("{} holds no file", folder.display()));
    }
    Ok(Some(experiment))
}

/// The files and the folders of a folder.
fn files(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), LabError> {
    let failed =
        |error| LabError(format!("{}: {error}: choose another --traces", folder.display()));
    let mut found = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() { found.1.push(path) } else { found.0.push(path) }
    }
    Ok(found)
}

/// What one trace costs.
fn rows(path: &Path, format: Option<String>) -> Result<Vec<Row>, LabError> {
    let trace = BlockTrace::open(path, Choices { format, ..Choices::default() })?;
    let stats = Stats::of(&trace, Unit::SECTOR, &|_| {})?;
    let setup = Setup {
        mappings: ["vet", "vet-lis", "emt", "compact"].map(String::from).into(),
        unit: Unit::SECTOR,
        space_bytes: None,
        passes: 1,
    };
    let report = replay(&trace, &setup, &|_| {})?;
    let config = trace.name();
    let mut rows = Vec::new();
    let mut row = |system, metric, ours: f64, unit| {
        rows.push(Row::alone(system, &config, metric, ours, unit));
    };
    row("trace", "requests", stats.account.requests as f64, "");
    row("trace", "address space", stats.address_space_bytes as f64 / (1_u64 << 30) as f64, "GB");
    for (metric, canonical) in [
        ("canonical extents of a write", stats.writes.canonical),
        ("canonical extents of a read's range", stats.reads.canonical),
    ] {
        if let Some(canonical) = canonical {
            row("trace", metric, canonical, "");
        }
    }
    // By the page map of 4 KB pages, as in the paper, not that of the unit.
    let page = page_map(1) * stats.address_space_bytes as f64 / (1_u64 << 30) as f64;
    for name in ["vet", "emt", "compact"] {
        if let Some(cost) = cost(&report, name) {
            row(cost.mapping, "of PMT", 100.0 * cost.bytes_used as f64 / page, "%");
        }
    }
    if let (Some(vet), Some(lis), Some(emt), Some(compact)) = (
        cost(&report, "vet"),
        cost(&report, "vet-lis"),
        cost(&report, "emt"),
        cost(&report, "compact"),
    ) {
        row("vet", "memory, VET by EMT", vet.bytes_used as f64 / emt.bytes_used.max(1) as f64, "");
        row(
            "vet-lis",
            "memory, LIS by BIS",
            lis.bytes_used as f64 / vet.bytes_used.max(1) as f64,
            "",
        );
        row("vet", "request, VET by EMT", vet.ns_per_request / emt.ns_per_request, "");
        row("compact", "request, by EMT", compact.ns_per_request / emt.ns_per_request, "");
    }
    Ok(rows)
}

fn cost<'r>(report: &'r Report, mapping: &str) -> Option<&'r crate::replay::MappingCost> {
    report.mappings.iter().find(|cost| cost.mapping == mapping)
}
