//! Traces: work for an index as a text file, one operation a line (docs/TRACES.md).
//!
//! A trace states the operations, never the system or the chip.
//!
//! A reader holds one line of the file and the resulting work, so memory grows with the work and
//! not with the file. Lines, operations and records have bounds, and no bytes make the reader
//! panic.

pub(crate) mod line;
mod read;
mod write;

pub use crate::input::packed::ReadProgress;
pub use line::Mistake;
pub use read::{parse, read, read_sized};
pub(crate) use write::new_file;
pub use write::{save, write};

/// The first field of a trace.
const MAGIC: &str = "nandina-trace";

/// The version of the format, its second field.
pub const VERSION: u32 = 1;

/// Bytes of the name of a phase, at most.
const NAME_BYTES_MAX: usize = 60;

/// The names of the operations.
const INSERT: &str = "insert";
const LOOKUP: &str = "lookup";
const SCAN: &str = "scan";
const DELETE: &str = "delete";
const PHASE: &str = "phase";

/// Whether a phase of a trace may have this name.
///
/// A name appears in a line, between commas, and in tables.
fn is_name(name: &str) -> bool {
    let plain = !name.contains(|c: char| c.is_control() || c == ',');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && plain && name.trim() == name
}
