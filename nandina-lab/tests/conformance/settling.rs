//! Settling after cuts leaves the reserve to collection.
//!
//! The chip is full, and each mount is cut while it settles what the cut before may have torn. Of
//! several cuts the one that leaves the fewest free pages is taken. However many of them follow one
//! another, records can be replaced and removed afterwards.

use std::any::Any;
use std::cell::Cell;

use nandina::flash::profile::{DATAFLASH_264, NOR};
use nandina::flash::{BlockNumber, Flash, Geometry, PageNumber, Profile};
use nandina::store::{Description, Rosette};
use nandina::{Index, System, WriteError};
use nandina_lab::hand_on;
use nandina_lab::torture::oracle::contents;
use nandina_sim::{Chip, ChipError, Cut, Faults, Tear};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// A chip with small pages, of which few records fill many.
const CHIP: Profile = Profile {
    geometry: Geometry { page_bytes: 192, spare_bytes: 0, pages_per_block: 24, blocks: 13 },
    ..DATAFLASH_264
};

/// Cuts in a row.
const CUTS: u32 = 400;

/// A chip that can be read only until its cell is set, so that a mount settles nothing.
struct ReadOnly(Chip, Cell<bool>);

impl ReadOnly {
    fn new(chip: &Chip) -> Self {
        Self(chip.clone(), Cell::new(false))
    }

    /// Does `change`, or rejects it.
    fn write(
        &mut self,
        page: PageNumber,
        change: impl FnOnce(&mut Chip) -> Result<(), ChipError>,
    ) -> Result<(), ChipError> {
        if self.1.get() { change(&mut self.0) } else { Err(ChipError::Uncorrectable(page)) }
    }
}

impl Bus for ReadOnly {
    fn simulated(&self) -> &Chip {
        &self.0
    }

    fn itself(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Flash for ReadOnly {
    type Error = ChipError;

    hand_on!(0: geometry, capabilities, read, is_bad);

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.write(page, |chip| chip.program(page, main, spare))
    }

    fn overwrite(&mut self, page: PageNumber, at: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.write(page, |chip| chip.overwrite(page, at, bytes))
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.write(page, |chip| chip.rewrite(page, main, spare))
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.write(PageNumber(block.0), |chip| chip.erase(block))
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.write(PageNumber(block.0), |chip| chip.mark_bad(block))
    }
}

/// A chip, and how many blocks stay free however often mounts are cut.
struct CutSettling(Profile, u32);

impl CutSettling {
    fn case<S: System>(&self) -> Case {
        let mut case = Case::new(self.0);
        case.options.mapping_bytes = 4;
        case.suited::<S>()
    }

    /// Free pages that a mount finds.
    fn free_pages<S: System>(&self, chip: &Chip, ram: &mut [u8]) -> Result<u32, String> {
        let mut device = ReadOnly::new(chip);
        let bus: &mut dyn Bus = &mut device;
        let index = Index::<_, S>::open(bus, &self.case::<S>().options, ram).map_err(text)?;
        Ok(index.statistics().free_pages)
    }

    /// Operations of a mount and of a removal after it.
    fn recover<S: System>(&self, mut chip: Chip, ram: &mut [u8]) -> Result<u64, String> {
        let case = self.case::<S>();
        let before = chip.counters().operations();
        let mut index = Index::<_, S>::open(&mut chip, &case.options, ram).map_err(text)?;
        let statistics = index.statistics();
        let removed = index.remove(&key(0));
        removed.map_err(|error| format!("{error}: {statistics:?}"))?;
        drop(index);
        Ok(chip.counters().operations() - before)
    }
}

impl Check for CutSettling {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = self.case::<S>();
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let mut ram = case.ram::<S>();
        let mut chip = Chip::with_seed(case.profile, seed());
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let mut records = 0;
        while match index.insert(&key(records), &value(records, 0)) {
            Ok(_) => true,
            Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => false,
            Err(error) => return Err(text(error)),
        } {
            records += 1;
        }
        for number in 0..4 * records {
            let number = number * 7919 % records;
            index.insert(&key(number), &value(number, 1)).map_err(text)?;
        }
        drop(index);
        let mut least = u32::MAX;
        for cut in 0..Share::one_in(16).length(CUTS) {
            let needed = self
                .recover::<S>(chip.clone(), &mut ram)
                .map_err(|what| format!("after {cut} cuts: {what}"))?;
            let mut worst: Option<(u32, Chip)> = None;
            for _ in 0..24 {
                let mut chip = chip.clone();
                chip.cut_at(random.random_range(0..needed), Cut::Before);
                if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                    let _ = index.insert(&key(cut % records), &value(cut, 2));
                }
                chip.restore_power();
                let free_pages = self.free_pages::<S>(&chip, &mut ram)?;
                if worst.as_ref().is_none_or(|(fewest, _)| free_pages < *fewest) {
                    worst = Some((free_pages, chip));
                }
            }
            let Some((free_pages, worst)) = worst else { break };
            (least, chip) = (least.min(free_pages), worst);
        }
        println!("{}: {records} records, at least {least} free pages", S::DESCRIPTION.key);
        if least < self.1 * self.0.geometry.pages_per_block {
            return Err(format!("{least} free pages are left"));
        }
        if records > 0 { Ok(()) } else { Err("nothing fits".into()) }
    }
}

#[test]
fn cuts_while_a_mount_settles_never_use_up_the_reserve() {
    // A collection that is cut again wastes a block, and the next one needs another.
    for_every_system(&CutSettling(CHIP, 2));
}

#[test]
fn cuts_while_a_mount_settles_never_use_up_the_reserve_of_blocks_of_two_pages() {
    // Each mount writes two pages there, so that each block would hold one that counts. Near the
    // reserve it leaves the leaf in place and needs one block, which frees another.
    let geometry = Geometry { pages_per_block: 2, blocks: 60, ..CHIP.geometry };
    let profile = Profile { geometry, ..CHIP };
    CutSettling(profile, 1).run::<Rosette>().unwrap();
}

/// A chip with unstable torn pages, and what an index on it needs.
fn suited<S: System>() -> Case {
    // Any page of a NOR chip can be appended to.
    let profile = if S::DESCRIPTION.appends() {
        Profile { geometry: Geometry { spare_bytes: 0, ..SMALL.geometry }, ..NOR }
    } else {
        SMALL
    };
    Case::new(profile).suited::<S>()
}

/// Chips on which a change was cut, and where. Most have a torn page.
fn cut_changes<S: System>(case: &Case, ram: &mut [u8]) -> Result<Vec<(u64, Chip)>, String> {
    let mut chip = Chip::with_seed(case.profile, seed());
    chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
    let mut index = Index::<_, S>::format(&mut chip, &case.options, ram).map_err(text)?;
    for number in 0..60 {
        index.insert(&key(number), &value(number, 0)).map_err(text)?;
    }
    drop(index);
    let mut probe = chip.clone();
    drop(Index::<_, S>::open(&mut probe, &case.options, ram).map_err(text)?);
    let mounting = probe.counters().operations() - chip.counters().operations();
    let (mut chips, mut torn) = (Vec::new(), 0);
    // Of a block, many small parts are read, and a cut tears none of them.
    let operations = if S::DESCRIPTION.has_leaf_blocks() { 900 } else { 150 };
    for at in Share::one_in(3).of((0..operations).collect::<Vec<_>>()) {
        let mut chip = chip.clone();
        chip.cut_at(mounting + at, Cut::Inside(Tear::Mixture));
        if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, ram) {
            for turn in 0..30 {
                let number = turn * 7 % 60;
                let changed = match turn % 3 {
                    0 => index.remove(&key(number)).map(drop),
                    1 => index.insert(&key(number), &value(number, turn)).map(drop),
                    _ => index.insert(&key(100 + turn), &value(turn, turn)).map(drop),
                };
                if changed.is_err() {
                    break;
                }
            }
        }
        torn += u32::from(chip.fault_counters().torn > 0);
        chip.restore_power();
        chips.push((at, chip));
    }
    println!("{}: {torn} torn pages", S::DESCRIPTION.key);
    if torn > 5 { Ok(chips) } else { Err(format!("{torn} torn pages")) }
}

/// What an index holds that is opened on `bus`.
fn records<S: System>(bus: &mut dyn Bus, case: &Case, ram: &mut [u8]) -> Result<Model, String> {
    let mut index = Index::<_, S>::open(bus, &case.options, ram).map_err(text)?;
    contents(&mut index).map_err(text)
}

/// The chip, which rejects writes, after some mounts: its torn page reads otherwise now.
fn mounted<S: System>(
    chip: &Chip,
    mounts: u32,
    case: &Case,
    ram: &mut [u8],
) -> Result<ReadOnly, String> {
    let mut device = ReadOnly::new(chip);
    for _ in 0..mounts {
        records::<S>(&mut device, case, ram)?;
    }
    Ok(device)
}

/// A mount that can write nothing shows what a cut left; a later one that can write keeps it.
struct Shown;

impl Check for Shown {
    fn concerns(&self, system: &Description) -> bool {
        // Where a root commits, a mount takes the newest after one look and writes it again; one
        // that cannot write may show what a later one does not.
        !system.root_commits()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = suited::<S>();
        let mut ram = case.ram::<S>();
        for (at, chip) in cut_changes::<S>(&case, &mut ram)? {
            for mounts in 0..4 {
                let mut device = mounted::<S>(&chip, mounts, &case, &mut ram)?;
                let shown = records::<S>(&mut device, &case, &mut ram)?;
                let kept = records::<S>(&mut device.0, &case, &mut ram)?;
                if shown != kept {
                    return Err(format!(
                        "cut at {at}: {} records are shown, and {} of them kept",
                        shown.len(),
                        shown.iter().filter(|&record| kept.get(record.0) == Some(record.1)).count()
                    ));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn what_a_mount_shows_that_can_write_nothing_is_kept_by_later_ones() {
    for_every_system(&Shown);
}

/// A mount can write nothing, and then a change is made after all: later mounts keep both.
struct ChangedAfterwards;

impl Check for ChangedAfterwards {
    fn concerns(&self, _system: &Description) -> bool {
        true
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = suited::<S>();
        let mut ram = case.ram::<S>();
        for (at, chip) in cut_changes::<S>(&case, &mut ram)? {
            for mounts in 0..4 {
                let mut device = mounted::<S>(&chip, mounts, &case, &mut ram)?;
                let mut index = open_on::<S>(&mut device, &case.options, &mut ram).map_err(text)?;
                let mut expected = contents(&mut index).map_err(text)?;
                device_of::<ReadOnly, S>(&index).1.set(true);
                // So many that later mounts do not look for the torn page behind them.
                for number in 200..230 {
                    index.insert(&key(number), &value(number, 0)).map_err(text)?;
                    expected.insert(key(number).to_vec(), value(number, 0).to_vec());
                }
                drop(index);
                for _ in 0..4 {
                    let found = records::<S>(&mut device.0, &case, &mut ram)
                        .map_err(|error| format!("cut at {at}: {error}"))?;
                    if found != expected {
                        let (found, expected) = (found.len(), expected.len());
                        return Err(format!("cut at {at}: {found} records, not {expected}"));
                    }
                }
            }
        }
        Ok(())
    }
}

#[test]
fn a_change_settles_first_what_a_mount_could_not() {
    for_one_system_in(2, &ChangedAfterwards);
}
