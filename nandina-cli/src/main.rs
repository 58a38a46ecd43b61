//! The program `nandina`: reads the command line, shows progress, prints the lab's results.
//!
//! Exit codes: 0 done; 1 the result is negative (a key is absent, an invariant does not hold, a
//! case was not survived); 2 the user's mistake or output that cannot be written, in one line on
//! standard error that says what to do.

mod arguments;
mod check;
mod choose;
mod commands;
mod compare;
mod drawing;
mod image;
mod inspect;
mod output;
mod plan;
mod progress;
mod replay;
mod reproduce;
mod settings;
mod tables;
mod torture;
mod trace;
mod usage;
mod values;
mod wear;
mod workload;

use std::process::ExitCode;

use clap::Parser;
use nandina_lab::LabError;

fn main() -> ExitCode {
    let arguments = match arguments::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let words: Vec<_> = std::env::args_os()
                .skip(1)
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            let Some(line) = usage::one_line(&error, &words) else {
                if error.use_stderr() {
                    error.exit();
                }
                return code(output::print_help(&error).map(|()| ExitCode::SUCCESS));
            };
            output::complain(&line);
            return ExitCode::from(2);
        }
    };
    code(commands::run(&arguments))
}

fn code(result: Result<ExitCode, LabError>) -> ExitCode {
    result.unwrap_or_else(|error| {
        output::complain(&error.to_string());
        ExitCode::from(2)
    })
}
