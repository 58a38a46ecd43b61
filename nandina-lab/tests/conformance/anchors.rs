//! Checkpoints that a cut tore.
//!
//! A torn page may be visible at one mount and not at the next. So may a checkpoint, and an anchor
//! that leads to one: whichever a mount uses, it must find every change since.

use nandina::store::Description;
use nandina::{OpenError, RelocationMode, System, WearPolicy, WriteError};
use nandina_lab::torn::Shown;
use nandina_sim::ChipError;

use crate::checkpoints::case;
use crate::formats::filled;
use crate::harness::*;
use crate::newest;

const RECORDS: u32 = 20;

/// Opens the index, which holds one of `states`, and replaces records until power fails.
///
/// Afterwards `states` has what the index may hold.
fn session<S: System>(
    chip: &mut dyn Bus,
    case: &Case,
    ram: &mut [u8],
    states: &mut Vec<Model>,
    (turns, closes): (u32, bool),
) -> Outcome {
    let mut index = match open_on::<S>(chip, &case.options, ram) {
        Ok(index) => index,
        Err(OpenError::Device(ChipError::PowerLost)) => return Ok(()),
        Err(error) => return Err(text(error)),
    };
    let mut held = None;
    for state in states.drain(..) {
        if compare(&mut index, &state).is_ok() {
            held = Some(state);
        }
    }
    states.push(held.ok_or("the index holds none of the states that are allowed")?);
    for turn in 0..turns {
        let number = turn * 7 % RECORDS;
        let mut next = states[0].clone();
        next.insert(key(number).to_vec(), value(number, turn + 1).to_vec());
        match index.insert(&key(number), &value(number, turn + 1)) {
            Ok(_) => *states = vec![next],
            Err(WriteError::Device(ChipError::PowerLost)) => {
                states.push(next);
                return Ok(());
            }
            Err(error) => return Err(text(error)),
        }
    }
    if closes {
        index.close();
    }
    Ok(())
}

struct Twofold {
    /// Blocks from one checkpoint to the next; `None` for none, but erases are counted as well.
    every: Option<u32>,
    closes: bool,
}

impl Check for Twofold {
    fn concerns(&self, system: &Description) -> bool {
        if self.every.is_some() {
            system.checkpoints && system.collects()
        } else {
            system.appends()
        }
    }

    /// More and more changes come before the cut, so that each of the next programs is once that of
    /// a checkpoint, and of an anchor. After the cut, checkpoints are written seldom.
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = case(14, 1, RelocationMode::Together, None).suited::<S>();
        case.options.checkpoints = self.every;
        case.options.wear = self.every.is_none().then_some(WearPolicy::Counted);
        let mut later = case;
        later.options.checkpoints = self.every.and(Some(12));
        let mut ram = case.ram::<S>();
        let filled = filled::<S>(&case, RECORDS, &mut ram)?;
        let records = |number| (key(number).to_vec(), value(number, 0).to_vec());
        let model: Model = (0..RECORDS).map(records).collect();
        let mut torn = 0;
        for turns in Share::one_in(4).of(0..40) {
            let mut chip = filled.clone();
            let mut states = vec![model.clone()];
            session::<S>(&mut chip, &case, &mut ram, &mut states, (turns, self.closes))?;
            for left in 0..6 {
                let (mut chip, mut states) = (chip.clone(), states.clone());
                chip.left.set(Some(left));
                session::<S>(&mut chip, &case, &mut ram, &mut states, (20, false))?;
                chip.left.set(None);
                torn += u32::from(chip.hidden.is_some());
                for programs in (0..8).chain([16, 32]) {
                    for (first, then) in
                        [(Shown::Erased, Shown::Written), (Shown::Written, Shown::Erased)]
                    {
                        let mut states = states.clone();
                        let mut cut = newest::Cut { chip: chip.clone(), programs };
                        cut.chip.shown = first;
                        session::<S>(&mut cut, &later, &mut ram, &mut states, (60, false))
                            .and_then(|()| {
                                let mut chip = cut.chip;
                                chip.shown = then;
                                session::<S>(&mut chip, &later, &mut ram, &mut states, (0, false))
                            })
                            .map_err(|what| {
                                format!(
                                    "{turns} changes, program {left} torn, then {programs} \
                                     programs: {what}"
                                )
                            })?;
                    }
                }
            }
        }
        if torn < 40 { Err(format!("only {torn} programs were torn")) } else { Ok(()) }
    }
}

#[test]
fn a_torn_checkpoint_that_comes_and_goes_hides_no_change() {
    for every in [2, 4] {
        for closes in [false, true] {
            for_one_system_in(5, &Twofold { every: Some(every), closes });
        }
    }
}

/// Where blocks are opened in turn, none of these is opened soon.
#[test]
fn a_torn_root_that_comes_and_goes_hides_no_record_where_erases_are_counted() {
    for closes in [false, true] {
        for_one_system_in(5, &Twofold { every: None, closes });
    }
}
