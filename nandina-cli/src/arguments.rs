//! The command line: each command and its options.

use clap::{Parser, Subcommand};

use crate::{compare, plan, torture};

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
