//! A request of a block trace: what every format states of one.

/// Bytes of a sector, the unit of addresses in most formats.
pub const SECTOR: u64 = 512;

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Says that bytes are not needed any more: discard, TRIM, UNMAP.
    Trim,
    /// Asks that all writes become durable. It has no bytes.
    Flush,
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What it does.
    pub kind: Kind,
    /// Whose bytes: a number of [`super::Account::volumes`].
    pub volume: usize,
    /// The first byte in its volume.
    pub start: u64,
    /// How many bytes, at least 1; 0 for a flush.
    pub bytes: u64,
    /// Nanoseconds since a time that the format chooses, if it has times.
    pub time_ns: Option<u64>,
}
