//! The program `nandina`: reads the command line, shows progress, prints what the lab measured.
//!
//! Exit codes: 0 done; 1 what was asked for is not so (a key is absent, an invariant does not hold, a case was
//! not survived); 2 the user's mistake, in one line on standard error that says what to do.

mod arguments;
mod check;
mod choose;
mod commands;
mod image;
mod inspect;
mod plan;
mod progress;
mod tables;
mod torture;
mod wear;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    match commands::run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nandina: {error}");
            ExitCode::from(2)
        }
    }
}
