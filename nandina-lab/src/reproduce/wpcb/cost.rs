//! What the phases of an index cost on a chip.

use nandina_ftl::hybrid::{Conversions, Merges};
use nandina_sim::Counters;

/// Nanoseconds of a page read, a page program and a block erase (Table 1 and section 2.1; the erase
/// is that of its reference 16).
pub const READ_NS: u64 = 25_000;
pub const PROGRAM_NS: u64 = 200_000;
const ERASE_NS: u64 = 1_500_000;

/// What a phase cost.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// Operations of the index.
    pub operations: u64,
    /// Page reads: those of the index, and what the FTL read to write.
    pub reads: u64,
    /// Page programs.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
    /// Seconds by the latencies.
    pub seconds: f64,
    /// Milliseconds that 99 % of the operations do not exceed.
    pub p99_ms: f64,
    /// Milliseconds of the longest operation.
    pub longest_ms: f64,
    /// Merges of the FTL since it was formatted.
    pub merges: Merges,
    /// Conversions of the buffer since then.
    pub conversions: Conversions,
}

impl Cost {
    /// Fills in what follows from the operations of the chip, and from the nanoseconds of each.
    pub fn set_times(&mut self, mut times: Vec<u64>) {
        times.sort_unstable();
        let ms = |ns: Option<&u64>| *ns.unwrap_or(&0) as f64 / 1e6;
        let p99 = (times.len() * 99).div_ceil(100).saturating_sub(1);
        self.p99_ms = ms(times.get(p99));
        self.longest_ms = ms(times.last());
        let Self { reads, programs, erases, .. } = *self;
        let done = Counters { reads, programs, erases, ..Counters::default() };
        self.seconds = nanoseconds(&done) as f64 / 1e9;
    }

    /// For each operation.
    pub fn each(&self, of: u64) -> f64 {
        of as f64 / self.operations.max(1) as f64
    }
}

/// What all phases cost, and the state after them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Costs {
    /// The inserts.
    pub inserts: Cost,
    /// The lookups, if there were any.
    pub lookups: Cost,
    /// The removals, if there were any.
    pub removals: Cost,
    /// Buffer blocks in use after each tenth of the inserts.
    pub buffered: Vec<u32>,
    /// Erases of the most erased block by the mean.
    pub wear: f64,
    /// Pages that a mount reads at the end.
    pub mount_reads: u64,
    /// Blocks of the chip.
    pub chip_blocks: u32,
    /// Bytes of RAM of the FTL, its map and its buffer's table included.
    pub ram_bytes: usize,
}

/// Nanoseconds of what was done on the chip.
pub const fn nanoseconds(done: &Counters) -> u64 {
    done.reads * READ_NS + done.programs * PROGRAM_NS + done.erases * ERASE_NS
}
