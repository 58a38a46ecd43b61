//! Standard output and standard error: no other file of the program writes to them.
//!
//! Output that cannot be written is an error with exit code 2, so that a full disk never looks like
//! success. A closed pipe is no error: its reader has seen enough.
//!
//! If standard output was closed before the program began (`>&-`), Rust's runtime has opened the
//! null device in its place, and the program cannot detect it.

use std::io::{self, ErrorKind, Write};

use nandina_lab::LabError;

/// Standard output without a buffer.
///
/// Unlike [`io::stdout`] it reports a descriptor that cannot be written.
#[cfg(unix)]
pub fn standard() -> Result<impl Write, LabError> {
    use std::os::fd::AsFd;
    let descriptor = io::stdout().as_fd().try_clone_to_owned();
    descriptor.map(std::fs::File::from).map_err(unwritable)
}

/// Standard output.
#[cfg(not(unix))]
pub fn standard() -> Result<impl Write, LabError> {
    Ok(io::stdout())
}

/// Converts the result of writing to standard output; a closed pipe is no error.
pub fn written(result: io::Result<()>) -> Result<(), LabError> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritable(error)),
        _ => Ok(()),
    }
}

fn unwritable(error: io::Error) -> LabError {
    LabError(format!(
        "standard output cannot be written ({error}), so what was printed is not complete: redirect it elsewhere"
    ))
}

/// Prints a line or several.
pub fn print(text: &str) -> Result<(), LabError> {
    let mut standard = standard()?;
    let all = format!("{text}\n");
    written(standard.write_all(all.as_bytes()).and_then(|()| standard.flush()))
}

/// Prints an object for programs.
pub fn print_json(object: &impl serde::Serialize) -> Result<(), LabError> {
    let text = serde_json::to_string_pretty(object).map_err(|error| LabError(error.to_string()))?;
    print(&text)
}

/// Prints the requested help or version.
pub fn print_help(help: &clap::Error) -> Result<(), LabError> {
    written(help.print().and_then(|()| io::stdout().flush()))
}

/// Prints one line about what went wrong to standard error.
///
/// If that cannot be written, only the exit code reports the error.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "nandina: {line}");
}
