//! Block traces: requests to a disk, as tools of this field record them (docs/BLOCK-TRACES.md).
//!
//! A trace is read line by line and never held in memory: what is kept is a line, the names of its
//! volumes, and counts. Nothing here knows mappings or chips. A format is a file in `formats`,
//! which reads one line, and a row of [`FORMATS`]; no other file knows one.

mod account;
mod field;
mod format;
mod formats;
mod layout;
pub mod make;
mod read;
mod request;

pub use account::{Account, Aside, Refused, Volume};
pub(crate) use format::NO_FORMAT;
pub use format::{Choices, FORMATS, Format};
pub use layout::Layout;
pub use read::BlockTrace;
pub use request::{Kind, Request, SECTOR};
