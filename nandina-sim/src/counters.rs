//! Exact counts of what a chip did, and how long it took by its profile.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// Operations and bytes since the chip was made.
///
/// Refused operations are not counted; one that was cut is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Page reads.
    pub reads: u64,
    /// Page programs; a mark on a bad block counts as one, and so does an overwrite.
    pub programs: u64,
    /// Overwrites: programs of some bytes of a page that was programmed before.
    #[serde(default)]
    pub overwrites: u64,
    /// Block erases.
    pub erases: u64,
    /// Pages replaced in place.
    pub rewrites: u64,
    /// Bytes read, main and spare, as the caller asked for them.
    pub bytes_read: u64,
    /// Bytes programmed, main and spare, as the caller gave them.
    pub bytes_programmed: u64,
}

impl Counters {
    /// The number of all operations. Overwrites are among the programs.
    pub const fn operations(&self) -> u64 {
        self.reads + self.changes()
    }

    /// The number of operations that change the chip.
    pub const fn changes(&self) -> u64 {
        self.programs + self.erases + self.rewrites
    }
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            programs: self.programs + other.programs,
            overwrites: self.overwrites + other.overwrites,
            erases: self.erases + other.erases,
            rewrites: self.rewrites + other.rewrites,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_programmed: self.bytes_programmed + other.bytes_programmed,
        }
    }
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            programs: self.programs - before.programs,
            overwrites: self.overwrites - before.overwrites,
            erases: self.erases - before.erases,
            rewrites: self.rewrites - before.rewrites,
            bytes_read: self.bytes_read - before.bytes_read,
            bytes_programmed: self.bytes_programmed - before.bytes_programmed,
        }
    }
}

/// Modelled time by kind of operation, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeSplit {
    /// Spent in page reads.
    pub read_ns: u64,
    /// Spent in page programs and rewrites.
    pub program_ns: u64,
    /// Spent in block erases.
    pub erase_ns: u64,
}

impl TimeSplit {
    /// Total time.
    pub const fn total(&self) -> u64 {
        self.read_ns + self.program_ns + self.erase_ns
    }
}

/// How evenly the blocks were erased.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wear {
    /// Erase count of the least erased block.
    pub least: u32,
    /// Erase count of the most erased block.
    pub most: u32,
    /// Mean erase count.
    pub mean: f64,
}
