//! A secondary index: values with many records, kept correct through updates and deletes.
//!
//! The checks run with a write buffer and without, and after a cut between the halves of an update.

use std::collections::BTreeSet;

use nandina::{Index, Options, ReadError, System, WriteError};
use nandina_sim::{Chip, Cut};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

const VALUE: usize = 2;
const RECORD: usize = 4;

/// Pairs of a value and a record.
type Pairs = BTreeSet<([u8; VALUE], [u8; RECORD])>;

fn holds<S: System>(index: &mut Index<'_, &mut Chip, S>, pairs: &Pairs, value: u16) -> Outcome {
    let value = value.to_be_bytes();
    let expected: Vec<_> = pairs.iter().filter(|pair| pair.0 == value).collect();
    let mut found = index.find_all(&value).map_err(text)?;
    for (_, record) in expected {
        if found.next().map_err(text)? != Some(&record[..]) {
            return Err(format!("{value:?}: record {record:?} is not found"));
        }
    }
    for _ in 0..2 {
        if found.next().map_err(text)?.is_some() {
            return Err(format!("{value:?}: more records than there are"));
        }
    }
    Ok(())
}

struct Sensor {
    write_buffer: usize,
}

impl Check for Sensor {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL);
        case.options =
            Options { write_buffer: self.write_buffer, ..Options::new(VALUE + RECORD, 0) };
        with_index::<S, _>(&case, |index| {
            let mut random = ChaCha8Rng::seed_from_u64(seed());
            let (mut pairs, mut values) = (Pairs::new(), Vec::new());
            for record in 0..1_500u32 {
                // Few values, so that one has more records than a leaf holds.
                let value = random.random_range(0..12u16);
                index.insert_pair(&value.to_be_bytes(), &record.to_be_bytes()).map_err(text)?;
                pairs.insert((value.to_be_bytes(), record.to_be_bytes()));
                values.push(value);
                let other = random.random_range(0..values.len());
                let (id, before) = ((other as u32).to_be_bytes(), values[other].to_be_bytes());
                if !pairs.contains(&(before, id)) {
                    continue;
                }
                pairs.remove(&(before, id));
                if record % 3 == 0 {
                    index.remove_pair(&before, &id).map_err(text)?;
                } else {
                    let after = random.random_range(0..12u16);
                    index.move_pair(&before, &after.to_be_bytes(), &id).map_err(text)?;
                    pairs.insert((after.to_be_bytes(), id));
                    values[other] = after;
                }
                if record % 50 == 0 {
                    holds(index, &pairs, random.random_range(0..13))?;
                }
            }
            for value in 0..13 {
                holds(index, &pairs, value)?;
            }
            index.flush().map_err(text)?;
            if index.len() as usize != pairs.len() {
                return Err(format!("{} pairs, not {}", index.len(), pairs.len()));
            }
            let wrong = index.insert_pair(&[0; 3], &[0; RECORD]);
            if wrong != Err(WriteError::KeySize { expected: 6, given: 7 }) {
                return Err(format!("a pair of 7 bytes answers {wrong:?}"));
            }
            match index.find_all(&[0; 7]).map(drop) {
                Err(ReadError::KeySize { expected: 6, given: 7 }) => Ok(()),
                other => Err(format!("a value of 7 bytes answers {other:?}")),
            }
        })
    }
}

#[test]
fn every_record_of_a_value_is_found_and_no_other() {
    for write_buffer in [0, 1] {
        for_every_system(&Sensor { write_buffer });
    }
}

/// A record that moves to another value always has one of the two.
struct CutUpdates;

impl Check for CutUpdates {
    fn run<S: System + 'static>(&self) -> Outcome {
        // With a write buffer, changes are applied in the order of keys, not of the calls.
        for (write_buffer, from, to) in [(0, 1, 2), (0, 2, 1), (1, 1, 2), (1, 2, 1)] {
            let halves = cut_updates::<S>(write_buffer, from, to)
                .map_err(|what| format!("{write_buffer} pages, {from} to {to}: {what}"))?;
            // One write of a leaf makes both durable if both are pending.
            if halves == 0 && write_buffer == 0 {
                return Err("no cut fell between the halves".into());
            }
        }
        Ok(())
    }
}

/// Moves a record from one value to the other, cut anywhere.
///
/// Returns how often it was left with both.
fn cut_updates<S: System>(write_buffer: usize, from: u8, to: u8) -> Result<u32, String> {
    let mut case = Case::new(SMALL);
    case.options = Options { write_buffer, ..Options::new(VALUE + RECORD, 0) };
    let case = case.suited::<S>();
    let (mut ram, mut halves) = (case.ram::<S>(), 0);
    let id = 7u32.to_be_bytes();
    let mut filled = Chip::with_seed(case.profile, seed());
    let mut index = Index::<_, S>::format(&mut filled, &case.options, &mut ram).map_err(text)?;
    for record in 0..200u32 {
        index.insert_pair(&[0, 3 * (record % 2) as u8], &record.to_be_bytes()).map_err(text)?;
    }
    index.insert_pair(&[0, from], &id).map_err(text)?;
    index.flush().map_err(text)?;
    drop(index);
    let update = |index: &mut Index<'_, &mut Chip, S>| {
        index.move_pair(&[0, from], &[0, to], &id)?;
        index.flush()
    };
    let mut whole = filled.clone();
    let before = whole.counters().operations();
    let mut index = Index::<_, S>::open(&mut whole, &case.options, &mut ram).map_err(text)?;
    let opened = index.flash().counters().operations() - before;
    update(&mut index).map_err(text)?;
    let moved = index.flash().counters().operations() - before;
    drop(index);
    for cut in Cut::ALL {
        for at in opened..=moved {
            let mut chip = filled.clone();
            chip.cut_at(at, cut);
            if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                let _ = update(&mut index);
            }
            chip.restore_power();
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            let key = |value: u8| [&[0, value][..], &id].concat();
            let before = index.get(&key(from)).map_err(text)?.is_some();
            let after = index.get(&key(to)).map_err(text)?.is_some();
            if !before && !after {
                return Err(format!("{cut:?} at {at}: the record has no value"));
            }
            halves += u32::from(before && after);
            update(&mut index).map_err(text)?;
            if index.get(&key(from)).map_err(text)?.is_some() || index.len() != 201 {
                return Err(format!("{cut:?} at {at}: done again, it is not as if done once"));
            }
        }
    }
    Ok(halves)
}

#[test]
fn a_record_that_gets_another_value_is_never_without_one() {
    for_every_system(&CutUpdates);
}
