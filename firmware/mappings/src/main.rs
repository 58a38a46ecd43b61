//! The image that measures address mappings; its command line names which.
//!
//! The fixed work is the same for all of them, and a plain table checks every result. The board has
//! more RAM than a mapping needs, so that each does the same work.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use nandina_firmware::BOARD;
use nandina_firmware::host::{self, Report, command_line};
use nandina_firmware::measure::{Kind, Meter, window_is_free};
use nandina_firmware::records::Random;
use nandina_firmware::smoke::Failure;
use nandina_ftl::mapping::registry::by_name;
use nandina_ftl::mapping::{Extent, Mapping, Piece, Space};

/// Logical pages of a small chip, and the places of its pages.
const SPACE: Space = Space { logical: 1 << 14, physical: 1 << 15 };

/// Enough for the largest: a trie with all prefixes of the space.
const MEMORY_BYTES: usize = 2 << 20;

const UPDATES: u32 = 3_000;
const LOOK_UPS: u32 = 1_000;
const REMOVALS: u32 = 500;

/// The most pages of an extent.
const EXTENT_MAX: u32 = 32;

const SEED: u32 = 0x6E61_6E64;

/// The place of each logical page; [`NONE`] of a hole.
type Table = [u32; SPACE.logical as usize];
const NONE: u32 = u32::MAX;

#[entry]
fn main() -> ! {
    // The entry function runs once, so these are its own.
    static mut MEMORY: [u8; MEMORY_BYTES] = [0; MEMORY_BYTES];
    static mut TABLE: Table = [NONE; SPACE.logical as usize];
    host::run(|report| run(MEMORY, TABLE, report))
}

#[inline(never)]
fn run(memory: &mut [u8], table: &mut Table, report: &mut Report) -> Result<(), Failure> {
    let mut line = [0; 64];
    let name = command_line(&mut line).ok_or("the host gives no command line")?;
    let entry = by_name(name).ok_or("no mapping without a heap has that name")?;
    report.tell("board", BOARD);
    report.tell("mapping", entry.name);
    if !window_is_free() {
        return Err("too little stack is free to measure it");
    }
    let mut meter = Meter::start().ok_or("the timer is taken")?;
    meter.restart();
    let mut worked = Ok(());
    (entry.lend)(SPACE, memory, &mut |map| worked = work(map, table, &mut meter, report))
        .map_err(|_| "the memory is too small for the mapping")?;
    worked?;
    meter.report(report);
    Ok(())
}

/// Extents of the work: one in four goes on where the last ended, two are a page, one is long.
struct Extents {
    random: Random,
    last: Extent,
}

impl Extents {
    fn draw(&mut self) -> Extent {
        let (kind, place, length) = (self.random.draw(), self.random.draw(), self.random.draw());
        let (start, most) = match kind % 4 {
            0 => (self.last.end(), 8),
            1 | 2 => (place, 1),
            _ => (place, EXTENT_MAX),
        };
        let start = start % SPACE.logical;
        let length = (1 + length % most).min(SPACE.logical - start);
        self.last = Extent::new(start, length);
        self.last
    }
}

/// What a call has passed: no more pieces than an extent has pages.
struct Passed {
    pieces: [Piece; EXTENT_MAX as usize],
    count: usize,
}

impl Passed {
    /// Notes what the call passes. This is counted with the call: it does no more than needed.
    #[inline(always)]
    fn take(&mut self, piece: Piece) {
        if let Some(place) = self.pieces.get_mut(self.count) {
            *place = piece;
        }
        self.count += 1;
    }

    /// Forgets what was passed; returns whether it was all that `table` has of `extent`.
    ///
    /// Holes are passed too where `holes`.
    fn is_all(&mut self, table: &Table, extent: Extent, holes: bool) -> bool {
        let count = core::mem::take(&mut self.count);
        let Some(pieces) = self.pieces.get(..count) else { return false };
        let mut units = pieces.iter().flat_map(|piece| {
            (0..piece.length).map(|unit| {
                (piece.logical + unit, piece.physical.map_or(NONE, |physical| physical + unit))
            })
        });
        let places = (extent.start..extent.end()).map(|unit| (unit, table[unit as usize]));
        let mut places = places.filter(|&(_, place)| holes || place != NONE);
        places.all(|place| units.next() == Some(place)) && units.next().is_none()
    }
}

/// Does the work, and compares what the mapping passes with the table.
fn work(
    map: &mut dyn Mapping,
    table: &mut Table,
    meter: &mut Meter,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut extents = Extents { random: Random::new(SEED), last: Extent::new(0, 1) };
    let hole = Piece { logical: 0, length: 0, physical: None };
    let mut passed = Passed { pieces: [hole; EXTENT_MAX as usize], count: 0 };
    let mut next = 0;
    for _ in 0..UPDATES {
        let extent = extents.draw();
        if SPACE.physical - next < extent.length {
            next = 0;
        }
        let updated = meter
            .call(Kind::Update, || map.update(extent, next, &mut |run| passed.take(run.into())));
        updated.map_err(|_| "an update was refused")?;
        if !passed.is_all(table, extent, false) {
            return Err("an update passed other pages than it superseded");
        }
        for unit in 0..extent.length {
            table[(extent.start + unit) as usize] = next + unit;
        }
        next += extent.length;
    }
    report.tell("entries", map.entries());
    report.tell("used_bytes", map.bytes().used);
    report.tell("peak_bytes", map.bytes().peak);
    for _ in 0..LOOK_UPS {
        let extent = extents.draw();
        let found =
            meter.call(Kind::LookUp, || map.look_up(extent, &mut |piece| passed.take(piece)));
        found.map_err(|_| "a look-up was refused")?;
        if !passed.is_all(table, extent, true) {
            return Err("a look-up found other places");
        }
    }
    for _ in 0..REMOVALS {
        let extent = extents.draw();
        let removed =
            meter.call(Kind::Remove, || map.remove(extent, &mut |run| passed.take(run.into())));
        removed.map_err(|_| "a removal was refused")?;
        if !passed.is_all(table, extent, false) {
            return Err("a removal passed other pages than it superseded");
        }
        table[extent.start as usize..extent.end() as usize].fill(NONE);
    }
    map.check().map_err(|broken| broken.0)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    host::run_failed(info)
}
