//! What an attack on the design of `rosette` found, a test for each of its holes (H1 to H14).
//!
//! Here are those that concern leaves which fill a page. H5, H6 and H9 to H11 are about leaves that
//! fill an erase sector, to which records are appended: the library has none yet. H12, errors of
//! the device in the middle of a call, is tested for all systems in `faults.rs`, and H14, pages
//! that rot, in `media.rs` and `blamed.rs`.

use nandina::flash::{Flash, Geometry, PageNumber, Profile};
use nandina::node::PageLayout;
use nandina::store::Rosette;
use nandina::{BadOption, Index, OpenError, Options, WriteError, plan, ram_needed};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// Pages of a block, and blocks, of chips on which there is hardly any room.
const TIGHT: [(u32, u32); 6] = [(4, 6), (4, 5), (3, 7), (2, 8), (5, 8), (8, 7)];

/// A chip with so many blocks of so many pages.
fn chip_of((pages_per_block, blocks): (u32, u32)) -> Profile {
    Profile { geometry: Geometry { pages_per_block, blocks, ..TINY.geometry }, ..TINY }
}

/// Long records, of which few fill a leaf.
const LONG_RECORDS: Options = Options::new(8, 100);

fn long_key(number: u32) -> [u8; 8] {
    nandina::key::from_u64(number.into())
}

/// A random life: sessions that end with a cut of power.
#[derive(Clone, Copy, Debug)]
struct Life {
    profile: Profile,
    faults: Faults,
    /// A cut comes within so many programs and erases.
    window: u64,
    sessions: u32,
    seed: u64,
}

/// How a life came out.
#[derive(Default, Debug)]
struct Lived {
    changes: u64,
    refused: u64,
    cuts: u64,
    unstable: u64,
    failures: u64,
    worn_out: u64,
}

impl Life {
    fn change(model: &mut Model, number: u32, value: Option<[u8; 100]>) {
        match value {
            Some(value) => model.insert(long_key(number).to_vec(), value.to_vec()),
            None => model.remove(&long_key(number)[..]),
        };
    }

    /// Lives it: acknowledged changes stay, and no replacement or removal is refused.
    fn live(&self, lived: &mut Lived) -> Outcome {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut chip = Chip::with_seed(self.profile, self.seed);
        let mut ram = vec![0; ram_needed::<Rosette>(&self.profile.geometry, &LONG_RECORDS)];
        match Index::<_, Rosette>::format(&mut chip, &LONG_RECORDS, &mut ram) {
            Ok(_) => {}
            Err(OpenError::ChipTooSmall { .. }) => return Ok(()),
            Err(error) => return Err(text(error)),
        }
        chip.set_faults(self.faults);
        // More records than fit.
        let records = self.profile.geometry.pages() * 4;
        let (mut before, mut after) = (Model::new(), Model::new());
        for session in 0..self.sessions {
            let at = |what: String| format!("session {session}: {what}");
            chip.restore_power();
            // Now and then power lasts long enough for collection.
            let window = if session % 8 == 0 { 20 * self.window } else { self.window };
            let cut = Cut::ALL.choose(&mut random).copied().unwrap_or(Cut::After);
            chip.cut_at_change(random.random_range(0..window), cut);
            let mut index = match Index::<_, Rosette>::open(&mut chip, &LONG_RECORDS, &mut ram) {
                Ok(index) => index,
                Err(OpenError::Device(ChipError::PowerLost | ChipError::GaveUp)) => continue,
                Err(OpenError::WornOut { .. }) if self.faults.program_failures > 0 => {
                    lived.worn_out += 1;
                    break;
                }
                Err(error) => return Err(at(text(error))),
            };
            if index.statistics().unexplained_pages > 0 && self.faults == Faults::NONE {
                return Err(at("cuts explain all damage there is".into()));
            }
            if let Err(old) = compare(&mut index, &before) {
                compare(&mut index, &after).map_err(|new| at(format!("{old}, and {new}")))?;
                before.clone_from(&after);
            }
            after.clone_from(&before);
            for step in 0..12 {
                let number = random.random_range(0..records);
                let value = random.random_bool(0.8).then_some([session as u8 ^ step; 100]);
                let was_there = before.contains_key(&long_key(number)[..]);
                Self::change(&mut after, number, value);
                let changed = match value {
                    Some(value) => index.insert(&long_key(number), &value).map(drop),
                    None => index.remove(&long_key(number)).map(drop),
                };
                match changed {
                    Ok(()) => {
                        lived.changes += 1;
                        before.clone_from(&after);
                    }
                    Err(WriteError::Full { .. }) if value.is_some() && !was_there => {
                        lived.refused += 1;
                        after.clone_from(&before);
                    }
                    Err(WriteError::Device(ChipError::PowerLost | ChipError::GaveUp)) => {
                        break;
                    }
                    Err(WriteError::WornOut { .. }) if self.faults.program_failures > 0 => {
                        after.clone_from(&before);
                        lived.worn_out += 1;
                        break;
                    }
                    Err(error) => return Err(at(format!("{error}: {:?}", index.statistics()))),
                }
            }
        }
        let counters = chip.fault_counters();
        lived.cuts += counters.cuts;
        lived.unstable += counters.unstable;
        lived.failures += counters.program_failures + counters.erase_failures;
        Ok(())
    }

    /// Lives several times on each of the tight chips.
    fn live_on_tight_chips(&self, lives: Share, most: u32) -> Lived {
        let mut lived = Lived::default();
        for life in lives.of(0..most) {
            for shape in TIGHT {
                let profile = Profile { geometry: chip_of(shape).geometry, ..self.profile };
                let life = Self { profile, seed: u64::from(life) + seed(), ..*self };
                life.live(&mut lived).unwrap_or_else(|what| panic!("{life:?}: {what}"));
            }
        }
        println!("{lived:?}");
        lived
    }
}

/// Cuts only, many in a row, on chips with hardly any room.
const CUT_SHORT: Life =
    Life { profile: TINY, faults: Faults::NONE, window: 6, sessions: 400, seed: 1 };

#[test]
fn h1_a_queue_has_no_more_leaves_than_its_records_need() {
    const LIVE: u32 = 300;
    for rises in [true, false] {
        let case = Case::new(SMALL).suited::<Rosette>();
        with_index::<Rosette, _>(&case, |index| {
            let number = |turn: u32| if rises { turn } else { u32::MAX - turn };
            for turn in 0..20_000 {
                index.insert(&key(number(turn)), &value(turn, 0)).map_err(text)?;
                if let Some(oldest) = turn.checked_sub(LIVE) {
                    index.remove(&key(number(oldest))).map_err(text)?;
                }
                // A leaf holds 28 of these records.
                let leaves = index.statistics().valid_pages;
                if leaves > LIVE / 28 + 4 {
                    return Err(format!("{leaves} leaves after {turn} records"));
                }
            }
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn h2_a_full_chip_replaces_removes_and_is_filled_again() {
    for shape in TIGHT.into_iter().chain([(8, 24)]) {
        let case = Case::new(chip_of(shape)).suited::<Rosette>();
        if plan::<Rosette>(&case.profile.geometry, &case.profile.capabilities, &case.options, 1)
            .is_err()
        {
            continue;
        }
        with_index::<Rosette, _>(&case, |index| {
            let mut fitted = None;
            for turn in 0..3 {
                let mut records = 0;
                let number = |record: u32| record.wrapping_mul(0x9E37_79B1);
                while index.insert(&key(number(records)), &value(turn, 0)).is_ok() {
                    records += 1;
                }
                if *fitted.get_or_insert(records) > records {
                    return Err(format!("{fitted:?} records fitted, then {records}"));
                }
                for version in 1..4 {
                    for record in 0..records {
                        index.insert(&key(number(record)), &value(turn, version)).map_err(text)?;
                    }
                }
                for record in 0..records {
                    index.remove(&key(number(record))).map_err(text)?;
                }
            }
            Ok(())
        })
        .unwrap_or_else(|what| panic!("{shape:?}: {what}"));
    }
}

#[test]
fn h2_cuts_in_a_row_leave_room_to_replace_and_remove() {
    let lived = CUT_SHORT.live_on_tight_chips(Share::one_in(4), 40);
    assert!(lived.refused > 1_000, "the chips were hardly ever full");
}

#[test]
fn h3_a_torn_page_that_reads_differently_each_time_loses_nothing() {
    let faults = Faults { unstable_pages: 2, ..Faults::NONE };
    let lived = Life { faults, ..CUT_SHORT }.live_on_tight_chips(Share::one_in(4), 40);
    assert!(lived.unstable > 500, "hardly any torn page was unstable");
}

#[test]
fn h4_a_program_that_failed_never_owns_a_key() {
    let mut profile = TINY;
    profile.capabilities.bad_blocks_per_mille = 250;
    for unstable_pages in [0, 2] {
        let faults =
            Faults { program_failures: 300, erase_failures: 600, unstable_pages, ..Faults::NONE };
        let life = Life { profile, faults, window: 30, ..CUT_SHORT };
        let mut lived = Lived::default();
        for seed in Share::one_in(4).of(0..60) {
            let profile = Profile { geometry: chip_of((4, 14)).geometry, ..profile };
            let life = Life { profile, seed, ..life };
            life.live(&mut lived).unwrap_or_else(|what| panic!("{life:?}: {what}"));
        }
        println!("{lived:?}");
        assert!(lived.failures > 15, "hardly anything failed");
    }
}

/// An index of the older format with so many records, and what it holds.
fn filled(case: &Case, records: u32) -> (Chip, Model) {
    let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<Rosette>());
    let mut index = Index::<_, Rosette>::format(&mut chip, &case.options, &mut ram).unwrap();
    let mut model = Model::new();
    for number in 0..records {
        let number = number.wrapping_mul(0x9E37_79B1);
        index.insert(&key(number), &value(number, 1)).unwrap();
        model.insert(key(number).to_vec(), value(number, 1).to_vec());
    }
    (chip, model)
}

#[test]
fn h7_a_format_that_is_cut_leaves_the_older_index_or_an_empty_one() {
    let case = Case::new(TINY).suited::<Rosette>();
    let mut ram = case.ram::<Rosette>();
    let (mut whole, mut empty) = (0, 0);
    for (records, cut) in
        [3, 40, 120].into_iter().flat_map(|count| Cut::ALL.map(|cut| (count, cut)))
    {
        let (chip, model) = filled(&case, records);
        for change in 0.. {
            let mut chip = chip.clone();
            chip.cut_at_change(change, cut);
            drop(Index::<_, Rosette>::format(&mut chip, &case.options, &mut ram));
            if chip.has_power() {
                break;
            }
            chip.restore_power();
            let mut index = Index::<_, Rosette>::open(&mut chip, &case.options, &mut ram).unwrap();
            if index.is_empty() {
                empty += 1;
            } else {
                compare(&mut index, &model).unwrap();
                whole += 1;
            }
        }
    }
    assert!(whole > 5 && empty > 0, "{whole} whole, {empty} empty");
}

#[test]
fn h8_an_index_opens_with_other_options_or_says_which_setting_differs() {
    let case = Case::new(SMALL).suited::<Rosette>();
    let (mut chip, mut model) = filled(&case, 500);
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    for turn in 0..60 {
        let mut options = case.options;
        options.page_buffers = Some(random.random_range(2..6));
        options.verify = random.random();
        options.leaves = random.random_bool(0.5).then(|| random.random_range(2..120));
        let mut ram = vec![turn; ram_needed::<Rosette>(&case.profile.geometry, &options)];
        let mut index = match Index::<_, Rosette>::open(&mut chip, &options, &mut ram) {
            Ok(index) => index,
            Err(OpenError::BadOption { reason: BadOption::DirectoryTooSmall })
                if options.leaves.is_some() =>
            {
                continue;
            }
            Err(error) => panic!("{options:?}: {error}"),
        };
        compare(&mut index, &model).unwrap();
        let number = u32::from(turn);
        index.insert(&key(number), &value(number, 2)).unwrap();
        model.insert(key(number).to_vec(), value(number, 2).to_vec());
    }
    let other = Options::new(KEY_BYTES, VALUE_BYTES + 1);
    let mut ram = vec![0; ram_needed::<Rosette>(&case.profile.geometry, &other)];
    let opened = Index::<_, Rosette>::open(&mut chip, &other, &mut ram);
    assert!(matches!(opened, Err(OpenError::Mismatch { setting: "value size", .. })));
}

#[test]
fn h13_a_full_directory_merges_leaves_before_it_refuses_a_record() {
    let mut case = Case::new(SMALL);
    case.options.leaves = Some(12);
    let case = case.suited::<Rosette>();
    with_index::<Rosette, _>(&case, |index| {
        let number = |record: u32| record.wrapping_mul(0x9E37_79B1);
        let mut records = 0;
        while index.insert(&key(number(records)), &value(0, 0)).is_ok() {
            records += 1;
        }
        // Many leaves with few records each.
        for record in (0..records).filter(|record| record % 4 != 0) {
            index.remove(&key(number(record))).map_err(text)?;
        }
        let left = index.len();
        let mut more = 0;
        while index.insert(&key(u32::MAX - 5_000 + more), &value(0, 0)).is_ok() {
            more += 1;
        }
        // Two neighbours always have more records together than the 28 that fit in one leaf.
        let most = left + more;
        if most < 6 * 28 { Err(format!("refused at {most} records")) } else { Ok(()) }
    })
    .unwrap();
}

/// The number of suspects that the newest session page lists.
fn listed(chip: &mut Chip) -> u16 {
    let geometry = chip.geometry();
    let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
    let mut bytes = vec![0; layout.frame_bytes()];
    let mut newest = (0, 0);
    for page in (0..geometry.pages()).map(PageNumber) {
        let (main, spare) = bytes.split_at_mut(layout.page_bytes());
        if chip.read(page, main, spare).is_ok()
            && let Ok(header) = layout.open(&bytes)
            && header.begins_session()
        {
            newest = newest.max((header.sequence, u16::from_le_bytes([bytes[0], bytes[1]])));
        }
    }
    newest.1
}

/// On a full chip suspects waited for room until the list was nearly full. Two cuts in the mounts
/// that emptied them were one suspect too many, and the index could not be written any more.
#[test]
fn a_list_of_suspects_has_room_for_cuts_in_a_row() {
    let geometry = Geometry { page_bytes: 148, spare_bytes: 64, blocks: 16, pages_per_block: 32 };
    let case = Case::new(Profile { geometry, ..SMALL }).suited::<Rosette>();
    let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<Rosette>());
    let mut index = Index::<_, Rosette>::format(&mut chip, &case.options, &mut ram).unwrap();
    let mut records = 0;
    // Neighbouring keys are inserted far from each other, so that leaves are half full.
    while index.insert(&key(records * 7919 % 100_003), &value(records, 0)).is_ok() {
        records += 1;
    }
    let mut most = 0;
    for session in 0..300 {
        let mut index = Index::<_, Rosette>::open(&mut chip, &case.options, &mut ram).unwrap();
        for turn in 0..session % 3 {
            let number = (session * 31 + turn * 577) % records;
            index.insert(&key(number * 7919 % 100_003), &value(number, session)).unwrap();
        }
        most = most.max(listed(&mut chip));
    }
    assert!((1..=2).contains(&most), "{most} suspects wait");
}
