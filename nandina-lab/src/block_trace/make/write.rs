//! Writes a synthetic trace as CSV of our own, behind a comment that says that it is synthetic.

use std::io::{self, Write};
use std::path::Path;

use super::{SYNTHETIC, Synthetic};
use crate::LabError;
use crate::block_trace::{Kind, SECTOR};
use crate::trace::new_file;

/// Requests between two calls of a progress.
const STEP: u64 = 8_192;

/// Writes a trace to a new file.
///
/// An existing file is left unchanged, and an incomplete new one is removed. `progress` is called
/// with the number of requests written since its last call.
pub fn save(made: Synthetic, path: &Path, progress: &dyn Fn(u64)) -> Result<(), LabError> {
    new_file(path, |file| write(made, file, progress))
}

/// Writes a trace.
pub fn write(made: Synthetic, mut to: impl Write, progress: &dyn Fn(u64)) -> io::Result<()> {
    writeln!(to, "{SYNTHETIC}{}", made.title())?;
    writeln!(to, "op,start_sectors,length_sectors")?;
    let mut since = 0;
    for request in made {
        let op = if request.kind == Kind::Read { "read" } else { "write" };
        writeln!(to, "{op},{},{}", request.start / SECTOR, request.bytes / SECTOR)?;
        since += 1;
        if since == STEP {
            progress(since);
            since = 0;
        }
    }
    progress(since);
    to.flush()
}
