//! `cargo xtask`: the chores of this repository that are no part of the product.
//!
//! It measures the firmware and checks the figures; it writes only the golden figures, and only on
//! demand.

mod count;
mod emulate;
mod figures;
mod firmware;
mod golden;
mod image;
mod print;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of this repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Builds every system for two microcontrollers, and every address mapping for one, runs them
    /// in an emulator, and compares their figures with firmware/golden.txt
    Firmware(Firmware),
}

#[derive(Args)]
struct Firmware {
    /// Where tools are missing, say so and succeed
    #[arg(long)]
    if_possible: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Write the figures into firmware/golden.txt instead of comparing them
    #[arg(long, conflicts_with_all = ["system", "board"])]
    bless: bool,
    /// Only this system, or mapping as map:NAME; may be given several times
    #[arg(long, value_parser = firmware::known)]
    system: Vec<String>,
    /// Only this board
    #[arg(long, value_parser = ["microbit", "lm3s6965evb", "mps2-an385"])]
    board: Vec<String>,
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn main() -> ExitCode {
    let Chore::Firmware(arguments) = Arguments::parse().chore;
    match firmware::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}
