//! The command line: each option with its unit, range and default.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{plan, torture};

/// Reads a size within a range.
pub fn size(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// Flash-native ordered indexes, side by side on simulated chips.
#[derive(Parser)]
#[command(name = "nandina", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Runs the same work on several systems and prints what each operation costs
    Compare(Compare),
    /// Lists the systems: how each writes its tree, and the paper it comes from
    Systems {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Lists the chips that can be simulated, and where their figures come from
    Devices {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Runs a paper's experiments and prints its figures beside ours
    Reproduce(crate::reproduce::Reproduce),
    /// Tells RAM, height and the most that each call can cost, for a chip and a number of records
    Plan(plan::Arguments),
    /// Cuts power at every point and lets chips fail in every way, and demands that nothing is lost
    Torture(torture::Arguments),
    /// Keeps records in a chip image: a file that is a simulated chip
    #[command(subcommand)]
    Image(crate::image::Image),
    /// Looks into a chip image, whatever it holds; writes nothing
    Inspect(crate::inspect::Inspect),
    /// Checks every invariant of the index in a chip image; exit code 1 if one does not hold
    Check(crate::check::Check),
    /// Says how worn the chip of an image is, and how long it will last
    Wear(crate::wear::Wear),
}

#[derive(Args)]
pub struct Compare {
    /// Systems to run, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    pub systems: Vec<String>,
    /// Chip to simulate; `nandina devices` lists them
    #[arg(long, default_value = "mlc")]
    pub device: String,
    /// Random records to put, 1 to 100,000,000; with --input, how many rows of it to use
    /// [default: 100,000, or all rows]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub records: Option<u32>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Bytes of a key, 1 to 64; with --input 4, 8 or more [default: 4, or what the column needs]
    #[arg(long, value_parser = size(1..=64))]
    pub key_size: Option<usize>,
    /// Bytes of a value, 0 to 65,535, as long as two records fit in a leaf [default: 4, or what the column
    /// needs]
    #[arg(long, value_parser = size(0..=65_535))]
    pub value_size: Option<usize>,
    /// Bytes of RAM for each index; page buffers are added as they fit [default: what each system needs]
    #[arg(long)]
    pub ram: Option<usize>,
    /// Records from a file instead: CSV with a header, or 512-byte sensor pages; either may be
    /// compressed with zstd
    #[arg(long)]
    pub input: Option<PathBuf>,
    /// Column of the file that is the key; sensor pages have key, v1, v2, v3 [default there: key]
    #[arg(long, requires = "input")]
    pub key: Option<String>,
    /// Column of the file that is the value [default: the first that is not the key]
    #[arg(long, requires = "input")]
    pub value: Option<String>,
    /// What becomes of rows with the same key: all are kept, the row number being put behind each key;
    /// or each replaces the one before
    #[arg(long, requires = "input", default_value = "keep")]
    pub duplicates: Duplicates,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Duplicates {
    Keep,
    Replace,
}
