//! Traces: work for an index as a text file, one operation a line. The format is in docs/TRACES.md.
//! A trace says what is done, never with which system or on which chip.
//!
//! A reader holds one line of the file and the work that it gives, so memory grows with what the
//! file says and not with what it is: lines, operations and records have bounds, and no bytes make
//! it panic.

mod line;
mod read;
mod write;

pub use line::Mistake;
pub use read::{ReadProgress, parse, read, read_sized};
pub use write::{save, write};

/// The first field of a trace.
const MAGIC: &str = "nandina-trace";

/// The version of the format, its second field.
pub const VERSION: u32 = 1;

/// Bytes of the name of a phase, at most.
const NAME_BYTES_MAX: usize = 60;

/// What an operation is called.
const INSERT: &str = "insert";
const LOOKUP: &str = "lookup";
const SCAN: &str = "scan";
const DELETE: &str = "delete";
const PHASE: &str = "phase";

/// Whether a phase of a trace may have this name: it stands in a line, between commas, and in
/// tables.
fn is_name(name: &str) -> bool {
    let plain = !name.contains(|c: char| c.is_control() || c == ',');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && plain && name.trim() == name
}
