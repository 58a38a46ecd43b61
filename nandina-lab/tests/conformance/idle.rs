//! Idle steps after cuts: where collection was cut and the next change has no room, they make room.

use std::any::Any;
use std::cell::Cell;

use nandina::flash::profile::Ecc;
use nandina::flash::{Flash, Geometry, PageNumber, Profile, Reading};
use nandina::store::Description;
use nandina::{Index, OpenError, RelocationMode, System, WearPolicy, WriteError};
use nandina_lab::hand_on;
use nandina_sim::{Chip, ChipError, Cut, TINY, Tear};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// A chip of short blocks, on which a path takes most of a block.
const SHORT: Profile =
    Profile { geometry: Geometry { blocks: 40, pages_per_block: 4, ..TINY.geometry }, ..TINY };

struct RoomAfterCuts;

impl Check for RoomAfterCuts {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG);
        let mut ram = case.ram::<S>();
        let mut chip = Chip::with_seed(suited::<S>(case.profile), seed());
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let mut records = 0;
        loop {
            match index.insert(&key(records * 7919), &value(records, 0)) {
                Ok(_) => records += 1,
                Err(WriteError::Full { .. }) => break,
                Err(error) => return Err(text(error)),
            }
        }
        drop(index);
        let (mut moved, mut done) = (0, 0);
        for session in 0..200u32 {
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            let mut idle = index.gc_step(2_000).map_err(text)?;
            while idle.more {
                idle = index.gc_step(2_000).map_err(text)?;
            }
            let before = index.statistics();
            moved += before.moved_pages;
            let number = session * 31 % records;
            let changed = index.insert(&key(number * 7919), &value(number, session));
            changed.map_err(|error| {
                format!("session {session}: {error:?}, {:?}, before {before:?}", index.statistics())
            })?;
            // Where the easiest victim requires a search, the change does it.
            if !idle.left_to_change {
                done += 1;
                if index.statistics().moved_pages > before.moved_pages {
                    return Err(format!("session {session}: a change had to collect: {before:?}"));
                }
            }
            drop(index);
            // Power fails in the middle of a collection.
            chip.cut_at(u64::from(20 + session * 13 % 90), Cut::Inside(Tear::Mixture));
            if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                for number in 0..records {
                    if index.insert(&key(number * 7919), &value(number, !session)).is_err() {
                        break;
                    }
                }
            }
            chip.restore_power();
        }
        if moved > 0 && done > 0 { Ok(()) } else { Err(format!("{moved} moved, {done} done")) }
    }
}

#[test]
fn idle_steps_make_the_room_that_cuts_took() {
    for_one_system_in(3, &RoomAfterCuts);
}

struct Ends;

impl Check for Ends {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for (profile, moves) in [
            (SMALL, RelocationMode::Together),
            (SMALL, RelocationMode::Alone),
            (LONG, RelocationMode::Together),
            (LONG, RelocationMode::Alone),
            (SHORT, RelocationMode::Together),
        ] {
            let mut case = Case::new(profile);
            case.options.moves = moves;
            with_index::<S, _>(&case, |index| {
                let mut records = 0;
                loop {
                    match index.insert(&key(records * 7919), &value(records, 0)) {
                        Ok(_) => records += 1,
                        Err(WriteError::Full { .. }) => break,
                        Err(error) => return Err(text(error)),
                    }
                }
                // However full the chip is, idle work comes to an end.
                for turn in 0..60 {
                    let before = index.flash().counters().programs;
                    let mut steps = 0;
                    while index.gc_step(2_000).map_err(text)?.more {
                        steps += 1;
                        if steps == 20 {
                            let programs = index.flash().counters().programs - before;
                            return Err(format!("turn {turn}: no end after {programs} programs"));
                        }
                    }
                    for number in 0..turn {
                        let (key, value) = (key(number * 31 % records * 7919), value(number, turn));
                        index.insert(&key, &value).map_err(text)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

#[test]
fn idle_work_ends_on_a_full_chip() {
    for_one_system_in(3, &Ends);
}

/// Inserts that wait for no erase: an idle step has erased the next block.
struct ErasedAhead;

impl Check for ErasedAhead {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        with_index::<S, _>(&Case::new(LONG), |index| {
            let (mut waited, mut ahead) = (0, 0);
            for turn in 0..1_500u32 {
                let number = turn.wrapping_mul(2_654_435_761) % 120;
                let before = index.flash().counters().erases;
                index.insert(&key(number), &value(number, turn)).map_err(text)?;
                let inserted = index.flash().counters().erases;
                waited += inserted - before;
                index.gc_step(4 * index.gc_step_least()).map_err(text)?;
                ahead += index.flash().counters().erases - inserted;
            }
            // The first block after the mount is opened before there was an idle step.
            if waited <= 2 && ahead > 20 {
                Ok(())
            } else {
                Err(format!("{waited} erases in inserts, {ahead} in idle steps"))
            }
        })
    }
}

#[test]
fn idle_steps_erase_the_block_that_is_opened_next() {
    for_every_system(&ErasedAhead);
}

/// A chip on which the first pages of all blocks can be unreadable, as cut erases may leave them.
struct Worn {
    chip: Chip,
    first_unreadable: Cell<bool>,
    refused: Cell<u32>,
}

impl Bus for Worn {
    fn simulated(&self) -> &Chip {
        &self.chip
    }

    fn itself(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Flash for Worn {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, program, erase, rewrite, overwrite, is_bad, mark_bad);

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let reading = self.chip.read(page, main, spare)?;
        if self.first_unreadable.get() && page.0.is_multiple_of(self.geometry().pages_per_block) {
            self.refused.set(self.refused.get() + 1);
            return Err(ChipError::Uncorrectable(page));
        }
        Ok(reading)
    }
}

/// Idle steps that look for the erase counts of free blocks whose first pages are unreadable.
struct LostCounts;

impl Check for LostCounts {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG);
        case.options.wear = Some(WearPolicy::Circular);
        (case.profile.ecc, case.profile.geometry.blocks) = (Ecc::NONE, 12);
        let case = case.suited::<S>();
        let mut ram = case.ram::<S>();
        let chip = Chip::new(case.profile);
        let mut chip = Worn { chip, first_unreadable: Cell::new(false), refused: Cell::new(0) };
        let mut index = format_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
        let mut erases = 0;
        for turn in 0..8_000u32 {
            index.insert(&key(turn % 50 * 7919), &value(turn, 0)).map_err(text)?;
            let (before, budget) = (index.flash().simulated().counters(), 6);
            device_of::<Worn, S>(&index).first_unreadable.set(true);
            index.gc_step(budget).map_err(text)?;
            device_of::<Worn, S>(&index).first_unreadable.set(false);
            let taken = index.flash().simulated().counters() - before;
            erases += taken.erases;
            if taken.operations() > budget.into() {
                return Err(format!("turn {turn}: {taken:?}"));
            }
        }
        let refused = device_of::<Worn, S>(&index).refused.get();
        if erases > 0 && refused > 0 { Ok(()) } else { Err(format!("{erases}, {refused}")) }
    }
}

#[test]
fn an_unreadable_erase_count_is_read_once() {
    for_every_system(&LostCounts);
}

/// Small budgets on small chips that are filled and emptied again and again, and cut.
struct SmallBudgets;

/// One session: changes and idle steps in turn, until power is cut. Returns whether it was.
fn small_steps<S: System>(
    chip: &mut Chip,
    case: &Case,
    ram: &mut [u8],
    random: &mut ChaCha8Rng,
    fills: &mut bool,
) -> Outcome {
    let Ok(mut index) = Index::<_, S>::open(chip, &case.options, ram) else { return Ok(()) };
    for turn in 0..60 {
        let least = index.gc_step_least();
        let budget = if turn % 2 == 0 { 0 } else { random.random_range(0..=least) };
        let before = index.flash().counters();
        let Ok(_) = index.gc_step(budget) else { return Ok(()) };
        let taken = index.flash().counters() - before;
        if taken.operations() > budget.into() {
            return Err(format!("budget {budget} of {least}: {taken:?}"));
        }
        let key = key(random.random_range(0..400) * 7919);
        let changed = match *fills {
            true => index.insert(&key, &value(turn, 0)).map(drop),
            false => index.remove(&key).map(drop),
        };
        match changed {
            Ok(()) => *fills |= index.is_empty(),
            Err(WriteError::Full { .. }) => *fills = false,
            Err(_) => break,
        }
    }
    Ok(())
}

impl Check for SmallBudgets {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut ran = 0;
        for (blocks, pages_per_block) in [(6, 9), (9, 8), (12, 16)] {
            let mut case = Case::new(SMALL);
            case.profile.geometry.blocks = blocks;
            case.profile.geometry.pages_per_block = pages_per_block;
            let case = case.suited::<S>();
            let (mut chip, mut ram) = (Chip::with_seed(case.profile, seed()), case.ram::<S>());
            match Index::<_, S>::format(&mut chip, &case.options, &mut ram) {
                Err(OpenError::ChipTooSmall { .. }) => continue,
                formatted => drop(formatted.map_err(text)?),
            }
            ran += 1;
            let mut random = ChaCha8Rng::seed_from_u64(seed());
            let mut fills = true;
            for session in 0..2_000 {
                chip.cut_at(random.random_range(20..200), Cut::Inside(Tear::Mixture));
                small_steps::<S>(&mut chip, &case, &mut ram, &mut random, &mut fills)
                    .map_err(|what| format!("{blocks} blocks, session {session}: {what}"))?;
                chip.restore_power();
            }
        }
        if ran > 0 { Ok(()) } else { Err("every chip is too small".into()) }
    }
}

#[test]
fn idle_steps_keep_to_a_small_budget_after_cuts() {
    for_every_system(&SmallBudgets);
}

/// Reads of idle steps that have no other work, on a chip with an ECC and on one without.
struct Patrols;

impl Check for Patrols {
    fn concerns(&self, system: &Description) -> bool {
        system.refreshes()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let reads = |ecc| {
            let mut case = Case::new(LONG);
            case.profile.ecc = ecc;
            with_index::<S, _>(&case, |index| {
                for number in 0..100 {
                    index.insert(&key(number), &value(number, 0)).map_err(text)?;
                }
                while index.gc_step(2_000).map_err(text)?.more {}
                let before = index.flash().counters().reads;
                for _ in 0..20 {
                    index.gc_step(50).map_err(text)?;
                }
                Ok(index.flash().counters().reads - before)
            })
        };
        let (with, without) = (reads(LONG.ecc)?, reads(Ecc::NONE)?);
        println!("{}: {with} reads with an ECC, {without} without", S::DESCRIPTION.key);
        if with > 20 && without == 0 { Ok(()) } else { Err(format!("{with}, {without} reads")) }
    }
}

#[test]
fn idle_steps_read_no_page_to_see_what_only_an_ecc_can_tell() {
    for_every_system(&Patrols);
}

/// The SPI NOR of the profile, 10,000 records of 16 bytes, each durable when its insert returns.
#[test]
fn inserts_into_spi_nor_take_half_a_millisecond_if_erases_are_done_when_idle() {
    use nandina::flash::profile::NOR;
    use nandina::store::VmOw;
    let case = Case::new(NOR);
    let (mut chip, mut ram) = (Chip::new(NOR), case.ram::<VmOw>());
    let struct_bytes = size_of::<Index<'_, &mut Chip, VmOw>>();
    let mut index = Index::<_, VmOw>::format(&mut chip, &case.options, &mut ram).unwrap();
    let (mut whole, mut most) = (0, 0);
    for turn in 0..10_000u32 {
        let number = turn.wrapping_mul(2_654_435_761);
        let before = index.flash().now_ns();
        index.insert(&key(number), &value(number, turn)).unwrap();
        let taken = index.flash().now_ns() - before;
        (whole, most) = (whole + taken, most.max(taken));
        index.gc_step(4 * index.gc_step_least()).unwrap();
    }
    let mean_ms = whole as f64 / 1e10;
    println!(
        "mean {mean_ms:.3} ms, most {} ms, {} bytes of RAM and a struct of {struct_bytes}",
        most as f64 / 1e6,
        case.ram::<VmOw>().len()
    );
    assert!(mean_ms < 0.5 && case.ram::<VmOw>().len() <= 3_500, "{mean_ms} ms");
}
