//! Writes work as a trace.
//!
//! Keys and values are written as hexadecimal digits, so the size of a trace does not depend on
//! their meaning.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::{DELETE, INSERT, LOOKUP, MAGIC, PHASE, SCAN, VERSION, is_name};
use crate::LabError;
use crate::work::{Operation, Work};

/// Writes a trace to a new file.
///
/// An existing file is left unchanged, and an incomplete new one is removed.
pub fn save(work: &Work, path: &Path) -> Result<(), LabError> {
    new_file(path, |file| write(work, file))
}

/// Makes a new file and fills it.
///
/// An existing file is left unchanged, and an incomplete new one is removed.
pub(crate) fn new_file(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), LabError> {
    let failed = |error: io::Error| {
        let what = match error.kind() {
            io::ErrorKind::AlreadyExists => "is there already".into(),
            _ => format!("cannot be written: {error}"),
        };
        LabError(format!("{} {what}: choose another file", path.display()))
    };
    let mut file = BufWriter::new(File::create_new(path).map_err(failed)?);
    fill(&mut file).and_then(|()| file.flush()).map_err(|error| {
        // The first error is the one to report.
        let _ = std::fs::remove_file(path);
        failed(error)
    })
}

/// Writes a trace. The name of a phase must be one that a trace can have.
pub fn write(work: &Work, mut to: impl Write) -> io::Result<()> {
    let Work { key_bytes, value_bytes, .. } = *work;
    writeln!(to, "{MAGIC},{VERSION},hex:{key_bytes},hex:{value_bytes}")?;
    let mut line = Vec::new();
    for phase in &work.phases {
        if !is_name(&phase.name) {
            let what = format!("'{}' can be no name of a phase in a trace", phase.name);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        writeln!(to, "{PHASE},{}", phase.name)?;
        for &operation in &phase.operations {
            line.clear();
            put(&mut line, work, operation);
            line.push(b'\n');
            to.write_all(&line)?;
        }
    }
    Ok(())
}

fn put(line: &mut Vec<u8>, work: &Work, operation: Operation) {
    let (name, row) = match operation {
        Operation::Insert(row) | Operation::Update(row) => (INSERT, row),
        Operation::Lookup(row) => (LOOKUP, row),
        Operation::Scan { row, .. } => (SCAN, row),
        Operation::Delete(row) => (DELETE, row),
    };
    line.extend_from_slice(name.as_bytes());
    line.push(b',');
    work.key(row).iter().for_each(|&byte| digits(line, byte));
    match operation {
        Operation::Insert(row) => {
            line.push(b',');
            work.value(row).iter().for_each(|&byte| digits(line, byte));
        }
        Operation::Update(row) => {
            line.push(b',');
            work.value(row).iter().for_each(|&byte| digits(line, !byte));
        }
        Operation::Scan { records, .. } => line.extend_from_slice(format!(",{records}").as_bytes()),
        Operation::Lookup(_) | Operation::Delete(_) => {}
    }
}

fn digits(line: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    line.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}
