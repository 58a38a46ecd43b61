//! The conformance smoke test: a small life of an index.
//!
//! Each step is compared with a model.
//!
//! It measures only the stack, and never prints.

use nandina::{Inserted, Removed, key};

use crate::chip::Chip;
use crate::measure::{Kind, Meter};
use crate::records::{key_of, value_of};
use crate::work::OPTIONS;
use crate::{Index, Unopened};

const RECORDS: usize = 200;

/// The model: the version of the value of each rank, 0 for no record.
type Model = [u8; RECORDS];

/// A description of what went wrong.
pub type Failure = &'static str;

/// Returns the failure `what` unless `holds`.
pub fn demand(holds: bool, what: Failure) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(what) }
}

fn failed<E>(what: Failure) -> impl Fn(E) -> Failure {
    move |_| what
}

/// Runs the test.
#[inline(never)]
pub fn test(chip: &mut Chip<'_>, ram: &mut [u8], meter: &mut Meter) -> Result<(), Failure> {
    let mut model: Model = [0; RECORDS];
    let mut place = unopened(chip, ram, meter)?;
    let index = meter.call(Kind::Format, || place.format()).map_err(failed("format"))?;
    demand(index.is_empty(), "a new index is not empty")?;
    for place in 0..RECORDS {
        // 77 and 200 have no common divisor: every rank comes once.
        let rank = place * 77 % RECORDS;
        put(index, &mut model, meter, rank, 1)?;
    }
    verify(index, &model, meter)?;
    for rank in (0..RECORDS).step_by(3) {
        put(index, &mut model, meter, rank, 2)?;
    }
    for rank in (0..RECORDS).step_by(5) {
        take(index, &mut model, meter, rank)?;
        take(index, &mut model, meter, rank)?;
    }
    verify(index, &model, meter)?;
    index.flush().map_err(failed("flush"))?;
    place.close();

    let mut place = unopened(chip, ram, meter)?;
    let index = meter.call(Kind::Mount, || place.open()).map_err(failed("open"))?;
    verify(index, &model, meter)?;
    for rank in (0..RECORDS).step_by(2) {
        put(index, &mut model, meter, rank, 3)?;
    }
    for rank in RECORDS / 4..RECORDS / 2 {
        take(index, &mut model, meter, rank)?;
    }
    verify(index, &model, meter)
}

/// An index on `chip` that is not opened yet.
pub fn unopened<'a, 'c>(
    chip: &'a mut Chip<'c>,
    ram: &'a mut [u8],
    meter: &mut Meter,
) -> Result<Unopened<'a, 'c>, Failure> {
    meter.call(Kind::New, || Unopened::new(chip, &OPTIONS, ram)).map_err(failed("new"))
}

fn put(
    index: &mut Index<'_, '_>,
    model: &mut Model,
    meter: &mut Meter,
    rank: usize,
    version: u8,
) -> Result<(), Failure> {
    let (key, value) = (key_of(rank as u32), value_of(rank as u32, version.into()));
    let inserted = meter.call(Kind::Insert, || index.insert(&key, &value));
    let expected = if model[rank] == 0 { Inserted::New } else { Inserted::Replaced };
    demand(inserted.map_err(failed("insert"))? == expected, "insert: new or not")?;
    model[rank] = version;
    Ok(())
}

fn take(
    index: &mut Index<'_, '_>,
    model: &mut Model,
    meter: &mut Meter,
    rank: usize,
) -> Result<(), Failure> {
    let removed = meter.call(Kind::Remove, || index.remove(&key_of(rank as u32)));
    let expected = if model[rank] == 0 { Removed::Absent } else { Removed::Found };
    demand(removed.map_err(failed("remove"))? == expected, "remove: there or not")?;
    model[rank] = 0;
    Ok(())
}

/// Checks that the index equals the model by every kind of call.
///
/// The index's own check must pass as well.
fn verify(index: &mut Index<'_, '_>, model: &Model, meter: &mut Meter) -> Result<(), Failure> {
    let records = model.iter().filter(|&&version| version > 0).count();
    demand(index.len() as usize == records, "the number of records")?;
    for (rank, &version) in model.iter().enumerate() {
        let expected = value_of(rank as u32, version.into());
        let found = meter.call(Kind::Get, || index.get(&key_of(rank as u32)));
        let found = found.map_err(failed("get"))?;
        demand(found == (version > 0).then_some(&expected[..]), "the value of a key")?;
    }
    let no_key = key::from_u32(8);
    demand(index.get(&no_key).map_err(failed("get"))?.is_none(), "a key that was never put")?;
    meter.call(Kind::Range, || scan(index, model, 0, RECORDS, false))?;
    meter.call(Kind::Range, || scan(index, model, 0, RECORDS, true))?;
    meter.call(Kind::Range, || scan(index, model, 33, 155, false))?;
    meter.call(Kind::Range, || scan(index, model, 33, 155, true))?;
    let mut violations = 0;
    index.check(|_| violations += 1).map_err(failed("check"))?;
    demand(violations == 0, "the check finds an invariant that does not hold")
}

/// Checks that a scan, up or down, gives the ranks from `low` to below `high`.
fn scan(
    index: &mut Index<'_, '_>,
    model: &Model,
    low: usize,
    high: usize,
    down: bool,
) -> Result<(), Failure> {
    let (first, last) = (key_of(low as u32), key_of(high as u32 - 1));
    let bounds = &first[..]..=&last[..];
    let mut range = if down { index.range_down(bounds) } else { index.range(bounds) };
    // Not moved out of the result, so that it is on the stack only once.
    let Ok(range) = &mut range else { return Err("range") };
    for step in 0..high - low {
        let rank = if down { high - 1 - step } else { low + step };
        if model[rank] > 0 {
            let expected = (key_of(rank as u32), value_of(rank as u32, model[rank].into()));
            let found = range.next().map_err(failed("next"))?;
            demand(found == Some((&expected.0[..], &expected.1[..])), "a record of a scan")?;
        }
    }
    demand(range.next().map_err(failed("next"))?.is_none(), "a scan goes on behind its end")
}
