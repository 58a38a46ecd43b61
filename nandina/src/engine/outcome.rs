//! What a change of a record did.

/// What an insert did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Inserted {
    /// The index had no record of the key.
    New,
    /// The record of the key has the value now.
    ///
    /// It may have had it before.
    Replaced,
    /// The change is pending in the write buffer.
    ///
    /// Whether the key is new is not known yet.
    Buffered,
}

/// What a removal did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Removed {
    /// The record of the key is gone.
    Found,
    /// The index had no record of the key.
    Absent,
    /// The change is pending in the write buffer.
    ///
    /// Whether there is a record is not known yet.
    Buffered,
}
