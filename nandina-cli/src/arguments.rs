//! The command line: each option with its unit, range and default.

use std::ops::RangeInclusive;

use clap::builder::RangedU64ValueParser;
use clap::{Parser, Subcommand};
use nandina::blocks::TRACKED_MAX;
use nandina::{Validity, Victims};

use crate::{compare, plan, torture};

/// Parses a size within a range.
pub fn size(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// Parses how garbage collection chooses a block.
pub fn victims(text: &str) -> Result<Victims, String> {
    let chosen = match text.split_once(':') {
        None if text == "fewest" => Some(Victims::Fewest),
        None if text == "cost-benefit" => Some(Victims::CostBenefit),
        Some(("sampled", draws)) => {
            draws.parse().ok().filter(|&draws| draws > 0).map(Victims::Sampled)
        }
        Some(("tracked", blocks)) => {
            let blocks = blocks.parse().ok();
            blocks.filter(|blocks| (1..=TRACKED_MAX).contains(blocks)).map(Victims::Tracked)
        }
        _ => None,
    };
    chosen.ok_or_else(|| {
        format!(
            "use fewest, cost-benefit, sampled:N with 1 to 255 blocks, or tracked:N with 1 to \
             {TRACKED_MAX}"
        )
    })
}

/// Parses how valid pages are tracked.
pub fn validity(text: &str) -> Result<Validity, String> {
    match text {
        "marked" => Ok(Validity::Marked),
        "searched" => Ok(Validity::Searched),
        _ => Err("use marked or searched".to_owned()),
    }
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
    Compare(compare::Compare),
    /// Makes a paper's workload, prints its counts beside the paper's, and saves it as a trace
    #[command(subcommand)]
    Workload(crate::workload::Workload),
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
    /// Lists the address mappings of a flash translation layer, and where each comes from
    Mappings {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Reads block traces: requests to a disk
    #[command(subcommand)]
    Trace(crate::trace::Trace),
    /// Replays a block trace on address mappings and prints what each costs: memory, work, time
    Replay(crate::replay::Replay),
    /// Runs a paper's experiments and prints its figures beside ours
    Reproduce(crate::reproduce::Reproduce),
    /// Computes RAM, height and the most that each call can cost, for a chip and a number of
    /// records
    Plan(plan::Arguments),
    /// Cuts power at every point and lets chips fail in every way, and checks that no acknowledged
    /// change is lost
    Torture(torture::Arguments),
    /// Keeps records in a chip image: a file that is a simulated chip
    #[command(subcommand)]
    Image(crate::image::Image),
    /// Shows the content of a chip image, damaged or not; does not write it
    Inspect(crate::inspect::Inspect),
    /// Checks every invariant of the index in a chip image; exit code 1 if one does not hold
    Check(crate::check::Check),
    /// Shows how worn the chip of an image is, and how long it will last
    Wear(crate::wear::Wear),
}
