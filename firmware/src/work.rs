//! The fixed work whose cost is reported.
//!
//! Random inserts come first, then random lookups and short scans.
//!
//! The numbers are the same on every system of a board, and change only with the golden figures.

use nandina::{Inserted, Options, System as _, WriteError, key};

use crate::chip::{Chip, Counts, GEOMETRY};
use crate::host::Report;
use crate::measure::{Kind, Meter};
use crate::records::{KEY_BYTES, Random, VALUE_BYTES, value_of};
use crate::smoke::{Failure, unopened};
use crate::{Index, System};

/// Records that are inserted.
pub const INSERTS: u32 = if cfg!(board = "microbit") { 2_000 } else { 10_000 };

/// Records that are looked up.
pub const LOOKUPS: u32 = if cfg!(board = "microbit") { 500 } else { 1_000 };

/// Scans, and the records of each.
pub const SCANS: u32 = 50;
const SCANNED: u32 = 20;

/// Pages of the chip that are kept in RAM while the index works.
const PAGE_BUFFERS: usize =
    if System::DESCRIPTION.buffers_min > 3 { System::DESCRIPTION.buffers_min } else { 3 };

const SEED: u32 = 0x6E61_6E64;

/// RAM for nodes, and the children of one, where nodes are changed in RAM: a page has three nodes.
const ARENA_BYTES: Option<usize> = if System::DESCRIPTION.has_arena() { Some(2_912) } else { None };
const FANOUT: Option<u16> = if System::DESCRIPTION.has_arena() { Some(16) } else { None };

/// Leaves of the directory, where there is one: each holds 12 of its 29 records at least.
const LEAVES: Option<u32> =
    if System::DESCRIPTION.has_directory() { Some(INSERTS / 12) } else { None };

/// Enough for every system; the actual need is computed and printed.
pub const RAM_BYTES: usize = match (System::DESCRIPTION.has_arena(), LEAVES) {
    (true, _) => 6 << 10,
    (false, Some(leaves)) => (3 << 10) + 6 * leaves as usize,
    (false, None) => 4 << 10,
};

/// The settings of every index here.
pub static OPTIONS: Options = Options {
    page_buffers: Some(PAGE_BUFFERS),
    arena_bytes: ARENA_BYTES,
    fanout: FANOUT,
    leaves: LEAVES,
    ..Options::new(KEY_BYTES, VALUE_BYTES)
};

/// Prints the RAM of the index, in total and by part.
pub fn report_ram(report: &mut Report) -> usize {
    let ram_bytes = nandina::ram_needed::<System>(&GEOMETRY, &OPTIONS);
    let buffer_bytes = PAGE_BUFFERS * GEOMETRY.page_bytes as usize;
    let bitmap_bytes = GEOMETRY.pages().div_ceil(8) as usize;
    report.tell("ram_bytes", ram_bytes);
    report.tell("buffer_bytes", buffer_bytes);
    report.tell("bitmap_bytes", bitmap_bytes);
    report.tell("table_bytes", ram_bytes.saturating_sub(buffer_bytes + bitmap_bytes));
    report.tell("struct_bytes", size_of::<Index<'_, '_>>());
    ram_bytes
}

/// Does the work on a new chip.
#[inline(never)]
pub fn run(
    chip: &mut Chip<'_>,
    ram: &mut [u8],
    meter: &mut Meter,
    report: &mut Report,
) -> Result<(), Failure> {
    chip.reset();
    meter.restart();
    let mut place = unopened(chip, ram, meter)?;
    let index = meter.call(Kind::Format, || place.format()).map_err(|_| "format")?;
    let mut counts = Counts::default();
    tell_counts(report, "format", &mut counts, index.flash().counts());
    let inserted = insert_all(index, meter, report)?;
    report.tell("records", inserted);
    report.tell("height", index.statistics().height);
    tell_counts(report, "insert", &mut counts, index.flash().counts());
    counts = place.close().counts();

    let mut place = unopened(chip, ram, meter)?;
    let index = meter.call(Kind::Mount, || place.open()).map_err(|_| "open")?;
    tell_counts(report, "mount", &mut counts, index.flash().counts());
    look_up(index, inserted, meter)?;
    tell_counts(report, "get", &mut counts, index.flash().counts());
    for place in 0..SCANS {
        let from = key::from_u32(place * (u32::MAX / 2 / SCANS));
        if meter.call(Kind::Range, || scan(index, &from)) != Some(SCANNED) {
            return Err("a scan ended early");
        }
    }
    tell_counts(report, "range", &mut counts, index.flash().counts());
    Ok(())
}

/// Inserts all records, or as many as fit. Returns how many are in.
fn insert_all(
    index: &mut Index<'_, '_>,
    meter: &mut Meter,
    report: &mut Report,
) -> Result<u32, Failure> {
    let mut random = Random::new(SEED);
    for _ in 0..INSERTS {
        let number = random.draw();
        let (key, value) = (key::from_u32(number), value_of(number, 0));
        match meter.call(Kind::Insert, || index.insert(&key, &value)) {
            Ok(Inserted::New) => {}
            Ok(_) => return Err("an insert found its key there"),
            Err(WriteError::TooHigh { .. } | WriteError::Full { .. }) => break,
            Err(error) => {
                report.tell("refused", format_args!("at {} records: {error:?}", index.len()));
                return Err("an insert failed");
            }
        }
    }
    index.flush().map_err(|_| "flush")?;
    Ok(index.len())
}

fn look_up(index: &mut Index<'_, '_>, inserted: u32, meter: &mut Meter) -> Result<(), Failure> {
    let mut random = Random::new(SEED);
    for place in 0..inserted {
        let number = random.draw();
        if place % (INSERTS / LOOKUPS) == 0 {
            let found = meter.call(Kind::Get, || index.get(&key::from_u32(number)));
            if found.map_err(|_| "get")? != Some(&value_of(number, 0)[..]) {
                return Err("a lookup gave another value");
            }
        }
    }
    Ok(())
}

/// Counts the records of a scan from `from` on, at most [`SCANNED`].
fn scan(index: &mut Index<'_, '_>, from: &[u8]) -> Option<u32> {
    // Not moved out of the result, so that it is on the stack only once.
    let mut range = index.range(from..);
    let range = range.as_mut().ok()?;
    let mut records = 0;
    while records < SCANNED && range.next().ok()?.is_some() {
        records += 1;
    }
    Some(records)
}

/// Prints the chip's operations since `before`, and sets `before` to `now`.
fn tell_counts(report: &mut Report, kind: &str, before: &mut Counts, now: Counts) {
    report.tell_of("reads", kind, now.reads - before.reads);
    report.tell_of("programs", kind, now.programs - before.programs);
    report.tell_of("rewrites", kind, now.rewrites - before.rewrites);
    report.tell_of("erases", kind, now.erases - before.erases);
    *before = now;
}
