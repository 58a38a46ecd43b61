//! Failing media, each fault alone and frequent; swarms mix them.
//!
//! The faults are bad blocks from the factory and later ones, programs and erases that fail or
//! silently do nothing, and weak pages.

use nandina::flash::{BlockNumber, PageNumber};
use nandina::store::Description;
use nandina::{Index, Options, ReadError, System};
use nandina_lab::torture::Device;
use nandina_sim::{Chip, Faults, TINY};

use crate::harness::*;
use crate::rollback::newest_first;

/// Inserts, replaces and removes; compares the index with the model; reopens it and repeats.
pub struct Under {
    faults: Faults,
    factory_bad: u32,
    verify: bool,
    changes: u32,
    /// Lookups after each change.
    lookups: u32,
    /// The events without which the run shows no result.
    shown: fn(&Chip, u64) -> bool,
}

fn case(verify: bool) -> Case {
    let mut case = Case::new(SMALL);
    case.profile.capabilities.bad_blocks_per_mille = 200;
    case.profile.geometry.blocks = 40;
    case.options.verify = verify;
    // Nodes in RAM, where there are any, are so few that pages are read.
    case.options.arena_bytes = Some(12 * 528);
    case
}

impl Check for Under {
    fn concerns(&self, system: &Description) -> bool {
        !system.replaces() && (system.refreshes() || self.faults.disturbing_reads == 0)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        self.on::<S, _>(|chip| chip)
    }
}

impl Under {
    /// The check on a device that wraps the chip.
    pub fn on<S: System, D: Device>(&self, wrap: impl Fn(Chip) -> D) -> Outcome {
        let case = case(self.verify);
        let mut ram = case.ram::<S>();
        let mut chip = Chip::with_seed(suited::<S>(case.profile), seed());
        chip.spoil_blocks(self.factory_bad);
        chip.set_faults(self.faults);
        let mut device = wrap(chip);
        let mut model = Model::new();
        let bus: &mut dyn Bus = &mut device;
        let mut index = Index::<_, S>::format(bus, &case.options, &mut ram).map_err(text)?;
        // A block that holds a leaf is erased more seldom.
        let fails_to_erase = self.faults.erase_failures > self.faults.program_failures;
        let often = if S::DESCRIPTION.has_leaf_blocks() && fails_to_erase { 10 } else { 1 };
        for turn in 0..often * self.changes {
            let number = turn * 37 % 401;
            if turn % 5 == 4 {
                index.remove(&key(number)).map_err(|error| format!("turn {turn}: {error:?}"))?;
                model.remove(&key(number)[..]);
            } else {
                index
                    .insert(&key(number), &value(number, turn))
                    .map_err(|error| format!("turn {turn}: {error:?}"))?;
                model.insert(key(number).to_vec(), value(number, turn).to_vec());
            }
            // Inner nodes that stay in RAM are not read: more lookups disturb as much.
            let lookups = if S::DESCRIPTION.replays() { 5 * self.lookups } else { self.lookups };
            for lookup in 0..lookups {
                let number = (turn + lookup * 41) % 401;
                let found = index.get(&key(number)).map_err(text)?;
                if found != model.get(&key(number)[..]).map(|value| &value[..]) {
                    return Err(format!("turn {turn}: get of {number} answers {found:?}"));
                }
            }
        }
        compare(&mut index, &model)?;
        let statistics = index.statistics();
        drop(index);
        let bus: &mut dyn Bus = &mut device;
        let mut index = Index::<_, S>::open(bus, &case.options, &mut ram).map_err(text)?;
        compare(&mut index, &model).map_err(|what| format!("reopened: {what}"))?;
        if index.statistics().bad_blocks < self.factory_bad {
            return Err("a mount forgot blocks that are bad from the factory".into());
        }
        drop(index);
        let chip = device.chip();
        let marked = chip.bad_blocks().count() as u32;
        if marked + 1 < statistics.bad_blocks {
            return Err(format!("{} blocks are bad, {marked} are marked", statistics.bad_blocks));
        }
        if !(self.shown)(chip, statistics.refreshed_pages) {
            return Err(format!("nothing happened: {:?}, {statistics:?}", chip.fault_counters()));
        }
        Ok(())
    }
}

/// Only blocks that are bad from the factory.
pub const SPOILED: Under = Under {
    faults: Faults::NONE,
    factory_bad: 8,
    verify: false,
    changes: 6_000,
    lookups: 0,
    shown: |_, _| true,
};

#[test]
fn factory_bad_blocks_are_never_touched() {
    for_every_system(&SPOILED);
}

#[test]
fn a_block_whose_program_fails_is_given_up_without_loss() {
    let faults = Faults { program_failures: 3_000, ..Faults::default() };
    let shown = |chip: &Chip, _| chip.fault_counters().program_failures > 0;
    for_every_system(&Under {
        faults,
        factory_bad: 1,
        verify: false,
        changes: 6_000,
        lookups: 0,
        shown,
    });
}

#[test]
fn a_block_whose_erase_fails_is_given_up_without_loss() {
    let faults = Faults { erase_failures: 300, ..Faults::default() };
    let shown = |chip: &Chip, _| chip.fault_counters().erase_failures > 0;
    for_every_system(&Under {
        faults,
        factory_bad: 0,
        verify: false,
        changes: 6_000,
        lookups: 0,
        shown,
    });
}

#[test]
fn programs_and_erases_that_do_nothing_are_found_when_read_back() {
    let faults = Faults { silent_programs: 1_500, silent_erases: 500, ..Faults::default() };
    let shown = |chip: &Chip, _| chip.fault_counters().silent > 0;
    for_every_system(&Under {
        faults,
        factory_bad: 0,
        verify: true,
        changes: 6_000,
        lookups: 0,
        shown,
    });
}

/// Reads that disturb. The flips have no bound: only refreshing keeps every codeword within the
/// ECC.
pub const DISTURBED: Under = Under {
    faults: Faults { disturbing_reads: 200, ..Faults::NONE },
    factory_bad: 0,
    verify: false,
    changes: 500,
    lookups: 300,
    shown: |chip, refreshed| chip.fault_counters().flips > 50 && refreshed > 0,
};

#[test]
fn pages_that_reads_disturb_are_refreshed_in_time() {
    for_every_system(&DISTURBED);
}

/// Data that is never read rots, unless idle steps read it.
struct Resting {
    patrol: bool,
}

impl Check for Resting {
    fn concerns(&self, system: &Description) -> bool {
        system.refreshes()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = case(false);
        let mut ram = case.ram::<S>();
        let mut chip = Chip::with_seed(suited::<S>(case.profile), seed());
        chip.set_faults(Faults { retention_days: 10, ..Faults::default() });
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in 0..400 {
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        drop(index);
        for _ in 0..200 {
            chip.rest(1);
            if self.patrol {
                let mut index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                for _ in 0..12 {
                    let least = index.gc_step_least();
                    index.gc_step(least.max(100)).map_err(text)?;
                }
            }
        }
        let lost = match Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
            Err(_) => 400,
            Ok(mut index) => {
                let mut lost = 0;
                for number in 0..400 {
                    match index.get(&key(number)) {
                        Ok(Some(found)) if found == value(number, 0) => {}
                        Err(ReadError::Corrupt { .. }) => lost += 1,
                        // Rot gives an error, never a wrong record.
                        other => return Err(format!("get of {number} answers {other:?}")),
                    }
                }
                lost
            }
        };
        match (self.patrol, lost) {
            (true, 0) | (false, 1..) => Ok(()),
            _ => Err(format!("{lost} of 400 records were lost")),
        }
    }
}

#[test]
fn an_idle_index_keeps_resting_data_alive() {
    for_every_system(&Resting { patrol: true });
    for_every_system(&Resting { patrol: false });
}

/// An unreadable page loses its own records only.
struct OneDeadPage;

impl Check for OneDeadPage {
    fn concerns(&self, system: &Description) -> bool {
        // Of two pages that are written in turn, a damaged one looks torn.
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case { options: Options::new(KEY_BYTES, VALUE_BYTES), ..Case::new(SMALL) };
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(suited::<S>(case.profile));
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in 0..600 {
            index.insert(&key(number * 7 % 600), &value(number * 7 % 600, 0)).map_err(text)?;
        }
        let valid_pages = index.statistics().valid_pages;
        drop(index);
        let roots = newest_first(&chip);
        let counts_newest = S::DESCRIPTION.newest_counts();
        let (mut dead, mut last_pages, mut noticed) = (0, 0, 0);
        for page in (0..case.profile.geometry.pages()).map(PageNumber) {
            let image = &chip;
            let mut chip = chip.clone();
            chip.corrupt_page(page, |main, _| main.reverse());
            let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) else {
                continue;
            };
            let told = index.statistics().unexplained_pages > 0;
            // A dead page of a journal takes its changes along, which the mount reports.
            let lacks_changes = S::DESCRIPTION.appends() || S::DESCRIPTION.replays();
            if index.len() < 600 && !(lacks_changes && told) {
                // The very last page: a dead one looks like one that was torn before it was
                // acknowledged, and the previous state is the right one to open.
                last_pages += 1;
                continue;
            }
            let next = PageNumber(page.0 + 1);
            let is_last = next.0.is_multiple_of(case.profile.geometry.pages_per_block)
                || image.page_is_erased(next);
            let (mut readable, mut absent, dead_before) = (Vec::new(), 0, dead);
            for number in 0..600 {
                match index.get(&key(number)) {
                    Ok(Some(found)) if found == value(number, 0) => readable.push(number),
                    Err(ReadError::Corrupt { .. }) => dead += 1,
                    // What only the dead page recorded is lost: the place of a node that moved. If
                    // other pages of its block were written after it, the damage is reported; the
                    // last one looks torn.
                    Ok(_) if counts_newest && (told || is_last) => dead += 1,
                    Ok(None) if S::DESCRIPTION.replays() && told => absent += 1,
                    other => return Err(format!("{page}: get of {number} answers {other:?}")),
                }
            }
            dead += absent;
            // Each change has a page of its own, and no other page takes changes along than a root.
            if absent > 1 && !roots.contains(&page) {
                return Err(format!("{page}, which is no root, took {absent} changes along"));
            }
            noticed += u32::from(told || dead > dead_before);
            // Changes of readable records continue for longer than the room lasts.
            for turn in 0..400u32 {
                let Some(&number) = readable.get(turn as usize * 7 % readable.len().max(1)) else {
                    break;
                };
                index
                    .insert(&key(number), &value(number, turn + 1))
                    .map_err(|error| format!("{page}: change {turn}: {error:?}"))?;
            }
        }
        // An older page of a leaf lacks only what the dead one changed, so few records are lost. But
        // each needed page is missed, unless it is the last of its block.
        let blocks = case.profile.geometry.blocks;
        let is_missed = if S::DESCRIPTION.has_inner_nodes() {
            dead > 100
        } else {
            noticed + last_pages + blocks >= valid_pages
        };
        if is_missed && dead > 0 && last_pages <= 1 {
            Ok(())
        } else {
            Err(format!(
                "{dead} dead records were met, {last_pages} pages were taken for torn, of \
                 {valid_pages} valid pages {noticed} were missed"
            ))
        }
    }
}

#[test]
fn a_dead_page_stops_no_change_elsewhere() {
    for_one_system_in(2, &OneDeadPage);
}

#[test]
fn chips_without_faults_report_none() {
    let mut chip = Chip::new(TINY);
    chip.spoil_blocks(2);
    assert_eq!(chip.bad_blocks().count(), 2);
    assert_eq!(chip.fault_counters().injected(), 0);
    assert!((0..8).map(BlockNumber).filter(|&block| chip.is_lost(block)).count() == 2);
}
