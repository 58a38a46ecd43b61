//! `nandina workload`: makes a workload of a paper.
//!
//! It prints the counts, beside the paper's if it has them, and saves the workload as a trace.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use nandina_lab::workload::{Workload as Made, kernel_compile, manifest, mp3, postmark, ubifs};
use nandina_lab::{LabError, trace};
use serde_json::{Value, json};

use crate::output::{print, print_json};
use crate::tables::table;

/// Without options, as many tree operations as in the μ-Tree paper's Table 4, which has no `ubifs`.
#[derive(Subcommand)]
pub enum Workload {
    /// PostMark 1.5: a mail server's small files
    Postmark(Postmark),
    /// A kernel's sources are unpacked, compiled, cleaned and removed
    KernelCompile(KernelCompile),
    /// A music player's storage is filled; then half of the files are replaced, again and again
    Mp3(Mp3),
    /// A tree of files is unpacked and removed again on UBIFS, as in the TNC paper
    Ubifs(Ubifs),
}

#[derive(Args)]
pub struct Common {
    /// A twentieth of the work; other options still apply
    #[arg(long)]
    quick: bool,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Save a trace to this file, which must not exist; `nandina compare --trace` runs it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Postmark {
    /// Files at the start, 1 to 1,000,000 [default: 15,000; with --quick 750]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    files: Option<u32>,
    /// Transactions, 0 to 10,000,000 [default: 225,000; with --quick 11,250]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    transactions: Option<u32>,
    /// Smallest size of a file in bytes, 1 to 16,777,215 [default: 500]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=16_777_215))]
    smallest: Option<u64>,
    /// Largest size of a file in bytes, 2 to 16,777,216 [default: 10,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(2..=16_777_216))]
    largest: Option<u64>,
    /// Of ten transactions, those that read a file rather than append to one, 0 to 10 [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=10))]
    read_bias: Option<u32>,
    /// Of ten transactions, those that make a file rather than delete one, 0 to 10 [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=10))]
    create_bias: Option<u32>,
    /// Subdirectories that the files are spread over, 0 to 100,000; 1 is none [default: 0]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    subdirectories: Option<u32>,
    /// Bytes that reach the file system in one call, 512 to 1,048,576 [default: 4,096]
    #[arg(long, value_parser = clap::value_parser!(u64).range(512..=1_048_576))]
    buffer: Option<u64>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct KernelCompile {
    /// List of the tree's files, `type<TAB>bytes<TAB>path` a line; may be compressed with zstd
    /// [default: a tree made by rule and seed]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Files of the tree, 1 to 1,000,000: made by rule, or that many of the list's, in runs that
    /// are spread evenly over it; a number above the list's takes all [default: 24,800, of a list
    /// 25,600; with --quick a twentieth]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    files: Option<u32>,
    /// Of a thousand C sources, those that are compiled, 0 to 1,000 [default: 1,000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1000))]
    compiled: Option<u32>,
    /// Headers that a source includes, 0 to 10,000 [default: 101, with a list 140]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    headers: Option<u32>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct Mp3 {
    /// Storage in millions of bytes, 1 to 1,000,000 [default: 8,000; with --quick 400]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    megabytes: Option<u64>,
    /// Mean size of a file in bytes, 4,096 to 1,000,000,000; sizes are half to one and a half times
    /// it [default: 8,000,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(4_096..=1_000_000_000))]
    mean_bytes: Option<u64>,
    /// How often half of the files are deleted and as much is copied again, 0 to 1,000 [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1000))]
    rounds: Option<u32>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct Ubifs {
    /// List of the tree's files, as for kernel-compile [default: a tree made by rule and seed]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Files of the tree, as for kernel-compile [default: 30,000; with --quick a twentieth]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    files: Option<u32>,
    #[command(flatten)]
    common: Common,
}

impl Workload {
    pub fn run(&self) -> Result<(), LabError> {
        let (common, parameters, made) = match self {
            Self::Postmark(arguments) => arguments.make(),
            Self::KernelCompile(arguments) => arguments.make(),
            Self::Mp3(arguments) => arguments.make(),
            Self::Ubifs(arguments) => arguments.make(),
        }?;
        if let Some(path) = &common.output {
            trace::save(&made.work, path)?;
        }
        let (operations, keys) = (made.work.operations(), made.work.rows());
        let counts = made.table_4();
        if common.json {
            return print_json(&json!({
                "workload": made.name, "seed": common.seed, "quick": common.quick,
                "parameters": parameters, "operations": operations, "keys": keys,
                "counts": counts, "trace": common.output,
            }));
        }
        let mut rows = table(&["operation", "Table 4", "ours", "ratio"], 1);
        for count in &counts {
            let paper = count.paper.map_or("-".into(), |paper| paper.to_string());
            let ratio = count.ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"));
            rows.add_row([count.operation, &paper, &count.ours.to_string(), &ratio]);
        }
        let mut text = format!(
            "{}, seed {}: {operations} operations on {keys} keys\n{rows}",
            made.name, common.seed
        );
        if common.quick && counts.iter().any(|count| count.ratio.is_some()) {
            text += "\nA twentieth of the work: the ratio to expect is 0.05.";
        }
        if let Some(path) = &common.output {
            text += &format!("\nTrace: {}", path.display());
        }
        print(&text)
    }
}

/// The common options, the parameters, and the workload made from them.
type Prepared<'a> = Result<(&'a Common, Value, Made), LabError>;

impl Postmark {
    fn make(&self) -> Prepared<'_> {
        let mut parameters = postmark::Parameters::of(self.common.quick);
        set(&mut parameters.files, self.files);
        set(&mut parameters.transactions, self.transactions);
        set(&mut parameters.bytes.0, self.smallest);
        set(&mut parameters.bytes.1, self.largest);
        set(&mut parameters.reads_in_ten, self.read_bias);
        set(&mut parameters.creates_in_ten, self.create_bias);
        set(&mut parameters.subdirectories, self.subdirectories);
        set(&mut parameters.buffer_bytes, self.buffer);
        let made = postmark::workload(&parameters, self.common.seed)?;
        Ok((&self.common, json!(parameters), made))
    }
}

impl KernelCompile {
    fn make(&self) -> Prepared<'_> {
        let mut parameters =
            kernel_compile::Parameters::of(self.manifest.is_some(), self.common.quick);
        set(&mut parameters.files, self.files);
        set(&mut parameters.compiled_per_mille, self.compiled);
        set(&mut parameters.headers, self.headers);
        let made = kernel(&parameters, self.manifest.as_deref(), self.common.seed)?;
        Ok((&self.common, json!(parameters), made))
    }
}

impl Mp3 {
    fn make(&self) -> Prepared<'_> {
        let mut parameters = mp3::Parameters::of(self.common.quick);
        set(&mut parameters.storage_bytes, self.megabytes.map(|megabytes| megabytes * 1_000_000));
        set(&mut parameters.mean_bytes, self.mean_bytes);
        set(&mut parameters.rounds, self.rounds);
        let made = mp3::workload(&parameters, self.common.seed)?;
        Ok((&self.common, json!(parameters), made))
    }
}

impl Ubifs {
    fn make(&self) -> Prepared<'_> {
        let mut parameters = ubifs::Parameters::of(self.common.quick);
        set(&mut parameters.files, self.files);
        let made = unpacked(&parameters, self.manifest.as_deref(), self.common.seed)?;
        Ok((&self.common, json!(parameters), made))
    }
}

fn set<V>(parameter: &mut V, given: Option<V>) {
    if let Some(given) = given {
        *parameter = given;
    }
}

/// Makes the kernel's compilation, of the tree in a list if one is given.
pub fn kernel(
    parameters: &kernel_compile::Parameters,
    list: Option<&Path>,
    seed: u64,
) -> Result<Made, LabError> {
    let list = list.map(manifest::read).transpose()?;
    kernel_compile::workload(parameters, list.as_deref(), seed)
}

/// Makes the work of UBIFS, on the tree in a list if one is given.
pub fn unpacked(
    parameters: &ubifs::Parameters,
    list: Option<&Path>,
    seed: u64,
) -> Result<Made, LabError> {
    let list = list.map(manifest::read).transpose()?;
    ubifs::workload(parameters, list.as_deref(), seed)
}
