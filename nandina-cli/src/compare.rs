//! `nandina compare`: the same work on several systems, side by side. The work is random, a user's records, a
//! paper's workload or a trace.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use nandina::Options;
use nandina_lab::compare::compare;
use nandina_lab::run::Setup;
use nandina_lab::work::Work;
use nandina_lab::workload::by_name;
use nandina_lab::workload::kernel_compile::Parameters;
use nandina_lab::{LabError, input, trace};

use crate::arguments::size;
use crate::choose::{device, systems};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::tables::{self, print_json};
use crate::workload::kernel;

#[derive(Args)]
pub struct Compare {
    /// Systems to run, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    systems: Vec<String>,
    /// Chip to simulate; `nandina devices` lists them
    #[arg(long, default_value = "mlc")]
    device: String,
    /// Random records to put, 1 to 100,000,000; with --input, how many rows of it to use
    /// [default: 100,000, or all rows]
    #[arg(long, conflicts_with_all = ["trace", "workload"],
        value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    records: Option<u32>,
    /// Seed of everything random; a trace has nothing random
    #[arg(long, conflicts_with = "trace", default_value_t = 1)]
    seed: u64,
    /// Bytes of a key, 1 to 64; with --input 4, 8 or more [default: 4, or what the column needs]
    #[arg(long, conflicts_with_all = ["trace", "workload"], value_parser = size(1..=64))]
    key_size: Option<usize>,
    /// Bytes of a value, 0 to 65,535, as long as two records fit in a leaf [default: 4, or what the column
    /// needs]
    #[arg(long, conflicts_with_all = ["trace", "workload"], value_parser = size(0..=65_535))]
    value_size: Option<usize>,
    /// Bytes of RAM for each index; page buffers are added as they fit [default: what each system needs]
    #[arg(long)]
    ram: Option<usize>,
    /// Records from a file instead: CSV with a header, or 512-byte sensor pages; either may be
    /// compressed with zstd
    #[arg(long, conflicts_with_all = ["trace", "workload"])]
    input: Option<PathBuf>,
    /// Column of the file that is the key; sensor pages have key, v1, v2, v3 [default there: key]
    #[arg(long, requires = "input")]
    key: Option<String>,
    /// Column of the file that is the value [default: the first that is not the key]
    #[arg(long, requires = "input")]
    value: Option<String>,
    /// What becomes of rows with the same key: all are kept, the row number being put behind each key;
    /// or each replaces the one before
    #[arg(long, requires = "input", default_value = "keep")]
    duplicates: Duplicates,
    /// A trace instead: a text file of operations (docs/TRACES.md); may be compressed with zstd
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    trace: Option<PathBuf>,
    /// A workload of the μ-Tree paper instead, at its defaults: postmark, kernel-compile or mp3
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// For kernel-compile: a list of the tree's files, as for `nandina workload kernel-compile`
    #[arg(long, value_name = "FILE", requires = "workload")]
    manifest: Option<PathBuf>,
    /// A twentieth of the workload
    #[arg(long, requires = "workload")]
    quick: bool,
    #[command(flatten)]
    settings: Settings,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Duplicates {
    Keep,
    Replace,
}

/// Said of the work that has scans of one length.
const SCANS: &str = "a scan reads 100 records";

impl Compare {
    pub fn run(&self) -> Result<(), LabError> {
        let profile = device(&self.device)?;
        let systems = systems(&self.systems)?;
        let (work, description) = self.work()?;
        // A trace has nothing random.
        let seed = self.trace.is_none().then_some(self.seed);
        let options = self.settings.of(Options::new(1, 0));
        let setup = Setup { profile, options, ram_bytes: self.ram };
        let progress = Progress::new(work.operations() * systems.len() as u64);
        let advance = |operations| progress.advance(operations);
        let result = compare(&systems, &setup, &work, description, seed, &advance);
        progress.finish();
        let comparison = result?;
        if self.json {
            print_json(&comparison)
        } else {
            tables::print(&tables::comparison(&comparison));
            Ok(())
        }
    }

    /// The work and what it is, in words.
    fn work(&self) -> Result<(Work, String), LabError> {
        if let Some(path) = &self.trace {
            return traced(path);
        }
        if let Some(name) = &self.workload {
            return self.paper_work(name);
        }
        match &self.input {
            Some(path) => self.records_of(path),
            None => self.random_records(),
        }
    }

    fn paper_work(&self, name: &str) -> Result<(Work, String), LabError> {
        let made = match (name, &self.manifest) {
            ("kernel-compile", Some(list)) => {
                kernel(&Parameters::of(true, self.quick), Some(list), self.seed)?
            }
            (_, Some(_)) => {
                return Err(LabError(format!(
                    "'{name}' takes no --manifest, only kernel-compile does: leave it out"
                )));
            }
            (_, None) => by_name(name, self.quick, self.seed)?,
        };
        let part = if self.quick { ", a twentieth" } else { "" };
        let description = described(&format!("workload {name}{part}"), &made.work);
        Ok((made.work, description))
    }

    fn random_records(&self) -> Result<(Work, String), LabError> {
        let Compare { seed, key_size, value_size, .. } = *self;
        let records = self.records.unwrap_or(100_000);
        let (key_bytes, value_bytes) = (key_size.unwrap_or(4), value_size.unwrap_or(4));
        let work = Work::standard(records, key_bytes, value_bytes, seed)?;
        let description = format!(
            "{records} random records of {key_bytes}-byte keys and {value_bytes}-byte values; {SCANS}"
        );
        Ok((work, description))
    }

    fn records_of(&self, path: &Path) -> Result<(Work, String), LabError> {
        let Compare { seed, key_size, value_size, .. } = *self;
        let (key, value) = (self.key.as_deref(), self.value.as_deref());
        let mut records = input::read(path, key, value, key_size, value_size)
            .map_err(|error| LabError(error.to_string()))?;
        if let Some(rows) = self.records {
            records = records.first(rows as usize);
        }
        let repeated = records.len() - records.distinct_keys;
        let mut description = format!(
            "{}, {} rows, key {}, value {}",
            records.description,
            records.len(),
            records.key_column,
            records.value_column
        );
        if repeated > 0 {
            let fate = match self.duplicates {
                Duplicates::Keep => {
                    "all are kept, with the row number as 4 more bytes behind each key"
                }
                Duplicates::Replace => "each replaces the row before it with the same key",
            };
            description += &format!("; {} distinct keys: {fate}", records.distinct_keys);
            if self.duplicates == Duplicates::Keep {
                records = records.with_row_numbers();
            }
        }
        description += &format!("; {SCANS}");
        Ok((Work::from_records(&records, seed), description))
    }
}

/// Reads a trace.
fn traced(path: &Path) -> Result<(Work, String), LabError> {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    let progress = Progress::of_bytes(bytes);
    let result = trace::read(path, &|bytes| progress.advance(bytes));
    progress.finish();
    let work = result?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let description = described(&format!("trace {name}"), &work);
    Ok((work, description))
}

fn described(what: &str, work: &Work) -> String {
    let Work { key_bytes, value_bytes, .. } = work;
    let operations = work.operations();
    format!("{what}: {operations} operations, {key_bytes}-byte keys and {value_bytes}-byte values")
}
