//! Torn pages that only some reads find, around a format and on a chip that is unwritable.

use std::marker::PhantomData;

use nandina::flash::Flash;
use nandina::store::{Description, Visitor};
use nandina::{OpenError, System, plan};
use nandina_lab::systems::{SYSTEMS, visit};
use nandina_lab::torn::{Shown, Torn};
use nandina_sim::{Chip, ChipError};

use crate::harness::*;

/// Makes a chip with `records` records, all of whose blocks were erased once.
///
/// Its last session did not end by `close`.
pub fn filled<S: System>(case: &Case, records: u32, ram: &mut [u8]) -> Result<Torn, String> {
    let mut chip = Torn::new(Chip::new(case.profile));
    fill::<S>(&mut chip, case, records, ram)?;
    Ok(chip)
}

/// Formats a chip and writes `records` records until all blocks were erased, without `close`.
pub fn fill<S: System>(chip: &mut dyn Bus, case: &Case, records: u32, ram: &mut [u8]) -> Outcome {
    let mut index = format_on::<S>(chip, &case.options, ram).map_err(text)?;
    for number in 0..records {
        index.insert(&key(number), &value(number, 0)).map_err(text)?;
    }
    for number in 0..400 + records {
        index.insert(&key(number % records), &value(number % records, 0)).map_err(text)?;
    }
    Ok(())
}

struct Outdated;

impl Check for Outdated {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut seen_again = 0;
        for records in 10..60 {
            let mut chip = filled::<S>(&case, records, &mut ram)?;
            chip.left.set(Some(0));
            let opened = open_on::<S>(&mut chip, &case.options, &mut ram).map(drop);
            if !matches!(opened, Err(OpenError::Device(ChipError::PowerLost))) {
                return Err("the mount programmed nothing".into());
            }
            if let Some(page) = chip.hidden {
                let block = chip.geometry().block_of(page).0;
                chip.worn = block..block + 1;
            }
            format_on::<S>(&mut chip, &case.options, &mut ram).map(drop).map_err(text)?;
            seen_again += u32::from(chip.hidden.is_some());
            chip.shown = Shown::Written;
            let index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
            if !index.is_empty() {
                return Err(format!("{} of {records} records are back", index.len()));
            }
        }
        if seen_again == 0 {
            return Err("each format erased the torn page".into());
        }
        Ok(())
    }
}

#[test]
fn an_index_that_was_formatted_over_stays_gone_when_a_torn_page_of_its_last_mount_is_read() {
    for_every_system(&Outdated);
}

struct Anchored;

impl Check for Anchored {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG).suited::<S>();
        case.options.checkpoints = Some(2);
        let mut ram = case.ram::<S>();
        let mut from_checkpoint = 0;
        for records in 20..60 {
            let mut chip = filled::<S>(&case, records, &mut ram)?;
            end(open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?);
            let index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
            from_checkpoint += u32::from(index.statistics().from_checkpoint);
            drop(index);
            // Blocks 0 and 1 are the anchors of the checkpoints.
            chip.worn = 0..2;
            format_on::<S>(&mut chip, &case.options, &mut ram).map(drop).map_err(text)?;
            let index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
            if !index.is_empty() {
                return Err(format!("{} of {records} records are back", index.len()));
            }
        }
        if from_checkpoint == 0 {
            return Err("no mount found a checkpoint".into());
        }
        Ok(())
    }
}

#[test]
fn an_index_that_was_formatted_over_stays_gone_when_its_checkpoint_cannot_be_erased() {
    for_every_system(&Anchored);
}

struct OverAnother;

/// Formats a chip for `S` over an index of each other system.
struct Before<S>(PhantomData<S>);

impl<S: System + 'static> Visitor for Before<S> {
    type Output = Outcome;

    fn visit<P: System + 'static>(self) -> Outcome {
        let mut before = Case::new(suited::<S>(LONG));
        before.options.checkpoints = Some(2);
        let before = before.suited::<P>();
        let mut before_ram = before.ram::<P>();
        let filled = filled::<P>(&before, 30, &mut before_ram)?;
        for at in 0..10 {
            let records = [0, 1, 5, 40, 200][at / 2];
            let mut case = Case::new(before.profile);
            case.options.checkpoints = (at % 2 == 1).then_some(2);
            let case = case.suited::<S>();
            let mut ram = case.ram::<S>();
            let mut chip = filled.clone();
            let mut index = format_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
            for number in 0..records {
                index.insert(&key(number), &value(number, 1)).map_err(text)?;
            }
            drop(index);
            let opened = open_on::<P>(&mut chip, &before.options, &mut before_ram);
            if let Ok(found) = opened.map(|index| index.len()) {
                let before = P::DESCRIPTION.key;
                return Err(format!("{records} records over {before}: {found} are back"));
            }
            let index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
            if index.len() != records {
                return Err(format!("{} of {records} records", index.len()));
            }
        }
        Ok(())
    }
}

impl Check for OverAnother {
    fn run<S: System + 'static>(&self) -> Outcome {
        for other in SYSTEMS.iter().filter(|other| other.key != S::DESCRIPTION.key) {
            visit(other.key, Before::<S>(PhantomData)).ok_or("a system is not visited")??;
        }
        Ok(())
    }
}

#[test]
fn a_format_over_an_index_of_another_system_leaves_nothing_of_it() {
    for_every_system(&OverAnother);
}

struct Unwritable;

impl Check for Unwritable {
    fn concerns(&self, system: &Description) -> bool {
        !system.replaces()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut ram = case.ram::<S>();
        for records in 20..60 {
            let left = records % 5;
            let mut chip = filled::<S>(&case, records, &mut ram)?;
            let mut index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
            device_of::<Torn, S>(&index).left.set(Some(left));
            let _ = index.insert(&key(records), &value(records, 0));
            drop(index);
            chip.left.set(None);
            (chip.worn, chip.shown) = (0..u32::MAX, Shown::Both);
            for _ in 0..4 {
                let mut index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
                for number in 0..records {
                    let found = index.get(&key(number)).map_err(text)?;
                    if found != Some(&value(number, 0)) {
                        return Err(format!("record {number} of {records} is {found:?}"));
                    }
                }
            }
        }
        Ok(())
    }
}

#[test]
fn a_root_that_is_read_now_and_then_is_not_taken_where_nothing_can_be_written() {
    for_every_system(&Unwritable);
}

struct TornFormat;

impl Check for TornFormat {
    fn concerns(&self, system: &Description) -> bool {
        !system.replaces()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG).suited::<S>();
        case.profile.geometry.blocks *= 4;
        let mut ram = case.ram::<S>();
        let (geometry, options) = (&case.profile.geometry, &case.options);
        for records in [20, 35, 50] {
            let plan = plan::<S>(geometry, &case.profile.capabilities, options, records);
            let bound = plan.map_err(text)?.open.reads;
            let whole = filled::<S>(&case, records, &mut ram)?;
            // The last program is that of the root.
            let mut programs = 0;
            loop {
                let mut chip = whole.clone();
                chip.left.set(Some(programs));
                programs += 1;
                if format_on::<S>(&mut chip, options, &mut ram).map(drop).is_ok() {
                    break;
                }
                chip.shown = Shown::Both;
                for _ in 0..8 {
                    chip.skip();
                    opened_within::<S>(&mut chip.clone(), &case, records, bound, &mut ram)?;
                }
            }
            if programs == 1 {
                return Err("the format programmed nothing".into());
            }
        }
        Ok(())
    }
}

/// A format of other settings was cut, and its torn first page comes and goes.
///
/// The index from before is opened whether a mount sees that page at first, later, or never.
struct TornFormatOfOthers;

impl Check for TornFormatOfOthers {
    fn concerns(&self, system: &Description) -> bool {
        !system.replaces()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut other = Case::new(LONG);
        other.options.value_bytes += 4;
        let other = other.suited::<S>();
        let mut ram = vec![0; case.ram::<S>().len().max(other.ram::<S>().len())];
        for records in 20..40 {
            let mut chip = filled::<S>(&case, records, &mut ram)?;
            // Behind its first page the older index is gone.
            chip.left.set(Some(0));
            if format_on::<S>(&mut chip, &other.options, &mut ram).map(drop).is_ok() {
                return Err("the format programmed nothing".into());
            }
            // Nothing can be settled, so a mount begins once more.
            (chip.worn, chip.shown) = (0..u32::MAX, Shown::Both);
            for _ in 0..8 {
                chip.skip();
                let found = open_on::<S>(&mut chip, &case.options, &mut ram);
                let found = found.map(|index| index.len()).map_err(text)?;
                if found != records {
                    return Err(format!("{found} of {records} records"));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn a_torn_format_of_other_settings_leaves_the_old_index() {
    for_every_system(&TornFormatOfOthers);
}

/// Opens an index that has `records` records or none, with at most `bound` reads.
fn opened_within<S: System>(
    chip: &mut Torn,
    case: &Case,
    records: u32,
    bound: u64,
    ram: &mut [u8],
) -> Outcome {
    let before = chip.reads;
    let index = open_on::<S>(chip, &case.options, ram).map_err(text)?;
    let len = index.len();
    drop(index);
    let taken = chip.reads - before;
    match len {
        _ if taken > bound => Err(format!("the mount took {taken} reads, {bound} planned")),
        len if len == 0 || len == records => Ok(()),
        len => Err(format!("{len} of {records} records are left")),
    }
}

#[test]
fn after_a_cut_format_whose_root_is_read_now_and_then_the_old_index_is_whole_or_gone() {
    for_every_system(&TornFormat);
}
