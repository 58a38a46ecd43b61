//! `nandina compare`: the same work on several systems, side by side.
//!
//! The work is random, a user's records, a paper's workload or a trace.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use nandina::Options;
use nandina_lab::compare::{compare, some_can_hold};
use nandina_lab::run::Setup;
use nandina_lab::systems::usual_layer;
use nandina_lab::work::Work;
use nandina_lab::workload::kernel_compile::Parameters;
use nandina_lab::workload::{by_name, ubifs};
use nandina_lab::{LabError, input, trace};

use crate::choose::{HybridSettings, chosen_over, device};
use crate::output::{complain, print, print_json};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::tables;
use crate::values::size;
use crate::workload::{kernel, unpacked};

#[derive(Args)]
pub struct Compare {
    /// Systems to run, separated by commas; ipl and dipl are btree on ftl:ipl and ftl:dipl;
    /// bftl, la and mb are BFTL, LA-tree and MB-tree, which need an FTL [default: all but these]
    #[arg(long, value_delimiter = ',')]
    systems: Vec<String>,
    /// Chip to simulate; `nandina devices` lists them
    #[arg(long, default_value = "mlc")]
    device: String,
    /// FTLs between the systems and the chip, separated by commas: ftl:page, ftl:compact and the
    /// other mappings, ftl:block, ftl:bast, ftl:fast, ftl:ipl, ftl:dipl, or as in 'ftl:fast with 8
    /// log blocks and 4 buffer blocks'; none is the chip itself, above which wpcb has ftl:fast with
    /// a transit buffer of up to 128 blocks
    #[arg(long, value_name = "LAYERS", value_delimiter = ',', default_value = "none")]
    over: Vec<String>,
    #[command(flatten)]
    hybrid: HybridSettings,
    /// With --over: spare pages in per cent of the logical ones, 0 to 1,000; more if the FTL needs
    /// more [default: 7]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1000))]
    op: Option<u32>,
    /// Random records to insert, 1 to 100,000,000; with --input, how many rows of it to use
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
    /// Bytes of a value, 0 to 65,535, as long as two records fit in a leaf [default: 4, or what the
    /// column needs]
    #[arg(long, conflicts_with_all = ["trace", "workload"], value_parser = size(0..=65_535))]
    value_size: Option<usize>,
    /// Bytes of RAM for each index; page buffers are added as they fit [default: what each system
    /// needs]
    #[arg(long)]
    ram: Option<usize>,
    /// Records from a file instead: CSV with a header, or 512-byte sensor pages; either may be
    /// compressed with zstd
    #[arg(long, conflicts_with_all = ["trace", "workload"])]
    input: Option<PathBuf>,
    /// Column of the file that is the key; sensor pages have key, v1, v2, v3 [default there: key]
    #[arg(long)]
    key: Option<String>,
    /// Column of the file that is the value [default: the first that is not the key]
    #[arg(long)]
    value: Option<String>,
    /// How to treat rows of the file with equal keys: keep all, with the row number after each key;
    /// or let each replace the one before [default: keep]
    #[arg(long)]
    duplicates: Option<Duplicates>,
    /// A trace instead: a text file of operations (docs/TRACES.md); may be compressed with
    /// gzip or zstd
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    trace: Option<PathBuf>,
    /// A workload of a paper instead, at its defaults: postmark, kernel-compile, mp3 or ubifs
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// For kernel-compile and ubifs: a list of the tree's files, as for `nandina workload
    /// kernel-compile`
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// A twentieth of the default records or of the workload
    #[arg(long)]
    quick: bool,
    /// After each change let the index be idle for one step of garbage collection, `gc_step` with
    /// its least budget; the step's chip operations are counted, its time is not part of any
    /// operation
    #[arg(long)]
    idle_steps: bool,
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

/// Refuses sizes of keys and values, and a number of records, that no system can hold.
type Fits<'f> = &'f dyn Fn((usize, usize), u32) -> Result<(), LabError>;

/// Description of work whose scans have one length.
const SCANS: &str = "a scan reads 100 records";

impl Compare {
    pub fn run(&self) -> Result<(), LabError> {
        self.check_options()?;
        let profile = device(&self.device)?;
        let Self { systems, over, hybrid, op, .. } = self;
        let chosen = chosen_over(systems, over, *hybrid, *op, &profile)?;
        let systems: Vec<_> = chosen.iter().map(|&(system, _)| system).collect();
        let options = self.settings.of(Options::new(1, 0), &systems)?;
        let setup = Setup { profile, options, ram_bytes: self.ram, layer: None };
        // Work that is certain not to fit is refused before it is made.
        let fits = |sizes, records| some_can_hold(&chosen, &setup, sizes, records);
        let (mut work, description) = self.work(&fits)?;
        work.idle_steps = self.idle_steps;
        // A trace has nothing random.
        let seed = self.trace.is_none().then_some(self.seed);
        let progress = Progress::new(work.operations() * chosen.len() as u64);
        let advance = |operations| progress.advance(operations);
        let result = compare(&chosen, &setup, &work, (description, seed), &advance);
        progress.finish();
        let comparison = result?;
        if self.json {
            return print_json(&comparison);
        }
        print(&tables::comparison(&comparison))?;
        for (system, layer) in &chosen {
            if let Some(layer) = layer
                && layer.buffer_blocks().is_none()
                && usual_layer(system, &profile).is_some()
            {
                let name = layer.name();
                complain(&format!(
                    "{system} over {name} has no transit buffer: --transit gives it one"
                ));
            }
        }
        Ok(())
    }

    /// Refuses options that do not apply to the chosen work: none is ignored.
    fn check_options(&self) -> Result<(), LabError> {
        let of_file = [
            ("--key", self.key.is_some()),
            ("--value", self.value.is_some()),
            ("--duplicates", self.duplicates.is_some()),
        ];
        if let (None, Some((option, _))) = (&self.input, of_file.iter().find(|(_, given)| *given)) {
            return Err(LabError(format!(
                "{option} is for records of a file: add --input FILE or leave it out"
            )));
        }
        if self.manifest.is_some()
            && !matches!(self.workload.as_deref(), Some("kernel-compile" | "ubifs"))
        {
            let what = "--manifest is for two workloads: add --workload kernel-compile or ubifs, or leave it out";
            return Err(LabError(what.into()));
        }
        let whole = [
            ("--records", self.records.is_some()),
            ("--input", self.input.is_some()),
            ("--trace", self.trace.is_some()),
        ];
        match whole.iter().find(|(_, given)| self.quick && *given) {
            Some((option, _)) => Err(LabError(format!(
                "--quick is a twentieth of the default records or of a --workload: leave out --quick or {option}"
            ))),
            None => Ok(()),
        }
    }

    /// Makes the work and its description.
    ///
    /// `fits` refuses sizes and numbers of records that no system can hold.
    fn work(&self, fits: Fits<'_>) -> Result<(Work, String), LabError> {
        if let Some(path) = &self.trace {
            return traced(path, fits);
        }
        if let Some(name) = &self.workload {
            return self.paper_work(name);
        }
        match &self.input {
            Some(path) => self.records_of(path, fits),
            None => self.random_records(fits),
        }
    }

    fn paper_work(&self, name: &str) -> Result<(Work, String), LabError> {
        let made = match (name, &self.manifest) {
            ("kernel-compile", Some(list)) => {
                kernel(&Parameters::of(true, self.quick), Some(list), self.seed)?
            }
            ("ubifs", Some(list)) => {
                unpacked(&ubifs::Parameters::of(self.quick), Some(list), self.seed)?
            }
            _ => by_name(name, self.quick, self.seed)?,
        };
        let part = if self.quick { ", a twentieth" } else { "" };
        let description = described(&format!("workload {name}{part}"), &made.work);
        Ok((made.work, description))
    }

    fn random_records(&self, fits: Fits<'_>) -> Result<(Work, String), LabError> {
        let Compare { seed, key_size, value_size, .. } = *self;
        let records = self.records.unwrap_or(if self.quick { 5_000 } else { 100_000 });
        let (key_bytes, value_bytes) = (key_size.unwrap_or(4), value_size.unwrap_or(4));
        fits((key_bytes, value_bytes), records)?;
        let work = Work::standard(records, key_bytes, value_bytes, seed)?;
        let description = format!(
            "{records} random records of {key_bytes}-byte keys and {value_bytes}-byte values; {SCANS}"
        );
        Ok((work, description))
    }

    fn records_of(&self, path: &Path, fits: Fits<'_>) -> Result<(Work, String), LabError> {
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
            let duplicates = self.duplicates.unwrap_or(Duplicates::Keep);
            let fate = match duplicates {
                Duplicates::Keep => {
                    "all are kept, with the row number as 4 more bytes behind each key"
                }
                Duplicates::Replace => "each replaces the row before it with the same key",
            };
            description += &format!("; {} distinct keys: {fate}", records.distinct_keys);
            if duplicates == Duplicates::Keep {
                records = records.with_row_numbers();
            }
        }
        description += &format!("; {SCANS}");
        // With row numbers all keys are different.
        fits((records.key_bytes, records.value_bytes), records.distinct_keys as u32)?;
        Ok((Work::from_records(&records, seed), description))
    }
}

/// Reads a trace.
fn traced(path: &Path, fits: Fits<'_>) -> Result<(Work, String), LabError> {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    let progress = Progress::of_bytes(bytes);
    let sizes = |key_bytes, value_bytes| fits((key_bytes, value_bytes), 1);
    let result = trace::read_sized(path, &|bytes| progress.advance(bytes), &sizes);
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
