//! What a workload is: Table 1 of the paper, and the histograms of its Figs. 8 and 9.

use nandina_ftl::mapping::Mapping;
use nandina_ftl::mapping::emt::{Emt, Runs};
use serde::Serialize;

use super::actions::{Actions, survey};
use super::tally::content;
use super::unit::{Unit, canonical};
use crate::LabError;
use crate::block_trace::{Account, BlockTrace, Kind, Request};
use crate::trace::ReadProgress;

/// How often [`Stats::of`] reads the file.
pub const READINGS: u32 = 2;

/// Rows of the histogram of addresses.
const ADDRESS_ROWS: u64 = 16;
/// The largest power of two of bytes that has a row of its own in the histogram of sizes: 1 MiB.
const SIZE_LOG_MAX: u32 = 20;
/// That of the smallest: 512 bytes.
const SIZE_LOG_MIN: u32 = 9;

/// Requests of one kind.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
pub struct Side {
    /// How many.
    pub requests: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes of one, in the mean.
    pub mean_bytes: Option<f64>,
    /// Canonical extents of one, in the mean (Fig. 12).
    pub canonical: Option<f64>,
}

/// Requests of more than half of and up to `up_to` bytes; the last row has all larger ones.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SizeRow {
    /// Bytes; `None` in the last row.
    pub up_to: Option<u64>,
    /// Writes of such sizes.
    pub writes: u64,
    /// Reads of such sizes.
    pub reads: u64,
}

/// Requests that begin in one part of the space.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AddressRow {
    /// The part's first byte.
    pub from: u64,
    /// Writes that begin there.
    pub writes: u64,
    /// Reads that begin there.
    pub reads: u64,
}

/// What all writes and trims leave behind, where physical units are given out in write order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Content {
    /// Units that are mapped at the end.
    pub written_units: u64,
    /// Runs that no mapping can do without, at the end.
    pub least_runs: u64,
    /// Extents that were kept at once, at most.
    pub most_extents: u64,
}

/// A workload in figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Stats {
    /// The name of the file.
    pub trace: String,
    /// The key of its format.
    pub format: &'static str,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Every request, in exactly one count.
    pub account: Account,
    /// Bytes of all volumes, each up to the last byte that a request names.
    pub address_space_bytes: u64,
    /// From the earliest request to the latest, if the format has times.
    pub seconds: Option<f64>,
    /// Writes of all reads and writes, 0 to 1.
    pub write_share: f64,
    /// Writes.
    pub writes: Side,
    /// Reads.
    pub reads: Side,
    /// Trims.
    pub trims: Side,
    /// What is left behind; `None` if the space has more units than 32 bits can number.
    pub content: Option<Content>,
    /// Request sizes (Fig. 9).
    pub sizes: Vec<SizeRow>,
    /// Request addresses (Fig. 8).
    pub addresses: Vec<AddressRow>,
}

impl Stats {
    /// Computes the figures of a trace; extents are counted in `unit`.
    ///
    /// Reads the file [`READINGS`] times. Keeps the extents that are mapped, but no requests.
    pub fn of(
        trace: &BlockTrace,
        unit: Unit,
        progress: ReadProgress<'_>,
    ) -> Result<Self, LabError> {
        let (account, layout) = survey(trace, progress)?;
        let space_bytes = layout.bytes();
        let mut gathered = Gathered::new(space_bytes, unit);
        let mut model = Actions::new(layout.clone(), unit, None).ok().map(|actions| {
            let map = Emt::new(actions.space(), Runs::new(usize::MAX));
            (actions, map)
        });
        trace.read_again(&account, progress, &mut |request| {
            gathered.add(request, layout.place(request));
            if let Some((actions, map)) = &mut model {
                // What a trace names is in the space, unless it is a trim of no whole unit.
                if let Ok(Some(action)) = actions.of(request) {
                    action.keep_in(map);
                }
            }
        })?;
        let content = model.map(|(_, map)| {
            let (tally, least_runs) = content(&map);
            let most_extents = (map.bytes().peak / Runs::ENTRY) as u64;
            Content { written_units: tally.units, least_runs, most_extents }
        });
        let [writes, reads, trims] = gathered.sides.map(Sums::side);
        let both = (writes.requests + reads.requests).max(1);
        Ok(Self {
            trace: trace.name(),
            format: trace.format().key,
            unit_bytes: unit.bytes(),
            account,
            address_space_bytes: space_bytes,
            seconds: gathered.times.map(|(first, last)| (last - first) as f64 / 1e9),
            write_share: writes.requests as f64 / both as f64,
            writes,
            reads,
            trims,
            content,
            sizes: gathered.sizes,
            addresses: gathered.addresses,
        })
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    requests: u64,
    bytes: u64,
    canonical: u64,
    /// Requests whose canonical extents were counted.
    counted: u64,
}

impl Sums {
    fn side(self) -> Side {
        let mean = |sum: u64, of: u64| (of > 0).then(|| sum as f64 / of as f64);
        Side {
            requests: self.requests,
            bytes: self.bytes,
            mean_bytes: mean(self.bytes, self.requests),
            canonical: mean(self.canonical, self.counted),
        }
    }
}

/// Counts while a trace is read. Their number does not depend on the trace.
struct Gathered {
    unit: Unit,
    space_bytes: u64,
    /// Writes, reads, trims.
    sides: [Sums; 3],
    times: Option<(u64, u64)>,
    sizes: Vec<SizeRow>,
    addresses: Vec<AddressRow>,
}

impl Gathered {
    fn new(space_bytes: u64, unit: Unit) -> Self {
        let up_to = (SIZE_LOG_MIN..=SIZE_LOG_MAX).map(|log| Some(1 << log)).chain([None]);
        let from = (0..ADDRESS_ROWS).map(|row| first_byte(row, space_bytes));
        Self {
            unit,
            space_bytes,
            sides: [Sums::default(); 3],
            times: None,
            sizes: up_to.map(|up_to| SizeRow { up_to, writes: 0, reads: 0 }).collect(),
            addresses: from.map(|from| AddressRow { from, writes: 0, reads: 0 }).collect(),
        }
    }

    fn add(&mut self, request: &Request, start: u64) {
        if let Some(time) = request.time_ns {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        let side = match request.kind {
            Kind::Write => 0,
            Kind::Read => 1,
            Kind::Trim => 2,
            Kind::Flush => return,
        };
        let sums = &mut self.sides[side];
        sums.requests += 1;
        sums.bytes += request.bytes;
        if let Some(extent) = self.unit.covering(start, request.bytes) {
            sums.canonical += canonical(extent);
            sums.counted += 1;
        }
        let log = request.bytes.next_power_of_two().ilog2();
        let log = log.clamp(SIZE_LOG_MIN, SIZE_LOG_MAX + 1) - SIZE_LOG_MIN;
        let size = &mut self.sizes[log as usize];
        let row =
            u128::from(start) * u128::from(ADDRESS_ROWS) / u128::from(self.space_bytes.max(1));
        // A file that changes while it is read may name what lies behind.
        let address = &mut self.addresses[(row as usize).min(ADDRESS_ROWS as usize - 1)];
        match request.kind {
            Kind::Write => {
                size.writes += 1;
                address.writes += 1;
            }
            Kind::Read => {
                size.reads += 1;
                address.reads += 1;
            }
            Kind::Trim | Kind::Flush => {}
        }
    }
}

/// The first byte of a row of the histogram of addresses.
fn first_byte(row: u64, space_bytes: u64) -> u64 {
    let bytes = u128::from(row) * u128::from(space_bytes);
    bytes.div_ceil(u128::from(ADDRESS_ROWS)) as u64
}
