//! A full device refuses inserts, loses no record, and still deletes.
//!
//! No operation exceeds a bound of chip operations, so none can loop for ever.

use nandina::flash::{Flash, Geometry, Profile};
use nandina::store::Description;
use nandina::{Index, RelocationMode, System, WearPolicy, WriteError};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// The most chip operations of a single change.
///
/// Each page of the chip is read, moved along a path of four pages, and read again, four times
/// over.
fn guard(index: &Index<'_, &mut Chip, impl System>) -> u64 {
    40 * u64::from(index.flash().geometry().pages())
}

fn put<S: System>(
    index: &mut Index<'_, &mut Chip, S>,
    model: &mut Model,
    number: u32,
    version: u32,
) -> Result<bool, String> {
    let before = index.flash().counters().operations();
    let (key, value) = (key(number), value(number, version));
    let result = index.insert(&key, &value);
    let took = index.flash().counters().operations() - before;
    if took > guard(index) {
        return Err(format!("one insert took {took} chip operations"));
    }
    match result {
        Ok(_) => {
            model.insert(key.to_vec(), value.to_vec());
            Ok(true)
        }
        Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => Ok(false),
        Err(error) => Err(text(error)),
    }
}

fn remove<S: System>(
    index: &mut Index<'_, &mut Chip, S>,
    model: &mut Model,
    number: u32,
) -> Outcome {
    let before = index.flash().counters().operations();
    let removed = index.remove(&key(number)).map_err(text)?;
    let took = index.flash().counters().operations() - before;
    if took > guard(index) {
        return Err(format!("one remove took {took} chip operations"));
    }
    if was_found(removed) != Some(model.remove(&key(number)[..]).is_some()) {
        return Err(format!("remove of {number} answered {removed:?}"));
    }
    Ok(())
}

struct FillAndEmpty {
    case: Case,
}

impl Check for FillAndEmpty {
    fn run<S: System + 'static>(&self) -> Outcome {
        with_index::<S, _>(&self.case, |index| {
            let mut random = ChaCha8Rng::seed_from_u64(3);
            let mut model = Model::new();
            for round in 0..2 {
                let mut refused = 0;
                while refused < 20 {
                    let number = random.random_range(0..1_000_000);
                    refused += u32::from(!put(index, &mut model, number, round)?);
                }
                compare(index, &model).map_err(|what| format!("full: {what}"))?;
                let numbers: Vec<u32> = model
                    .keys()
                    .map(|key| u32::from_be_bytes([key[0], key[1], key[2], key[3]]))
                    .collect();
                // Replacing needs no page.
                for &number in numbers.iter().take(300) {
                    if !put(index, &mut model, number, round + 10)? {
                        return Err(format!("full: replacing {number} was refused"));
                    }
                }
                // Every other record goes first: leaves empty slowly, and none can be merged.
                let (even, odd): (Vec<u32>, Vec<u32>) = (
                    numbers.iter().step_by(2).copied().collect(),
                    numbers.iter().skip(1).step_by(2).copied().collect(),
                );
                for &number in even.iter().chain(&odd) {
                    remove(index, &mut model, number)?;
                }
                compare(index, &model).map_err(|what| format!("empty: {what}"))?;
                let statistics = index.statistics();
                let leaf_pages = match S::DESCRIPTION.has_leaf_blocks() {
                    true => index.flash().geometry().pages_per_block,
                    false => 1,
                };
                if (statistics.height, statistics.valid_pages) != (1, leaf_pages) {
                    return Err(format!("an empty index has {statistics:?}"));
                }
            }
            Ok(())
        })
    }
}

struct Churn {
    case: Case,
    percent: u32,
}

impl Check for Churn {
    fn run<S: System + 'static>(&self) -> Outcome {
        with_index::<S, _>(&self.case, |index| {
            let mut random = ChaCha8Rng::seed_from_u64(u64::from(self.percent));
            let mut model = Model::new();
            let target = |index: &Index<'_, &mut Chip, S>| {
                index.statistics().limit_pages * self.percent / 100
            };
            while index.statistics().valid_pages < target(index) {
                if !put(index, &mut model, random.random_range(0..1_000_000), 0)? {
                    break;
                }
            }
            for turn in 0..4_000 {
                let number = random.random_range(0..1_000_000);
                let near = model.range(key(number).to_vec()..).next();
                let near =
                    near.map(|(key, _)| u32::from_be_bytes([key[0], key[1], key[2], key[3]]));
                match (turn % 4, near) {
                    (0, Some(near)) => remove(index, &mut model, near)?,
                    (1, _) => {
                        put(index, &mut model, number, turn)?;
                    }
                    (_, Some(near)) if !put(index, &mut model, near, turn)? => {
                        return Err(format!("replacing {near} was refused at turn {turn}"));
                    }
                    _ => {}
                }
            }
            compare(index, &model)
        })
    }
}

fn cases() -> [Case; 3] {
    [Case::new(TINY), Case::new(SMALL), Case::new(LONG)]
}

#[test]
fn a_full_device_refuses_loses_nothing_and_still_deletes() {
    for mut case in Share::one_in(3).of(cases()) {
        for_one_system_in(2, &FillAndEmpty { case });
        case.options.moves = RelocationMode::Alone;
        for_one_system_in(2, &FillAndEmpty { case });
    }
}

#[test]
fn churn_at_60_to_100_percent_of_the_valid_pages_goes_on() {
    for case in cases() {
        for percent in Share::one_in(4).of([60, 80, 90, 100]) {
            for_every_system(&Churn { case, percent });
        }
    }
}

/// A full index that is cut again and again.
struct CutWhenFull {
    geometry: Geometry,
    checkpoints: Option<u32>,
    moves: RelocationMode,
    wear: WearPolicy,
}

impl Check for CutWhenFull {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system) && (self.checkpoints.is_none() || system.checkpoints)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(Profile { geometry: self.geometry, ..SMALL });
        case.options.checkpoints = self.checkpoints;
        if self.checkpoints.is_some() {
            // A block of three pages has no room for a checkpoint with a larger table.
            case.options.mapping_bytes = 128;
        }
        case.options.moves = self.moves;
        case.options.wear = Some(self.wear);
        let case = case.suited::<S>();
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let mut records = 0;
        while index.insert(&key(records), &value(records, 0)).is_ok() {
            records += 1;
        }
        drop(index);
        let before = chip.counters().operations();
        drop(Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?);
        let mount = chip.counters().operations() - before;
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let mut cuts = 0;
        for session in 0..Share::one_in(2).length(600) {
            // Every fourth cut is in a change, the others are mostly in a mount.
            let cut = if session % 4 == 0 {
                let mut copy = chip.clone();
                let before = copy.counters().operations();
                drop(Index::<_, S>::open(&mut copy, &case.options, &mut ram).map_err(text)?);
                copy.counters().operations() - before + random.random_range(1..60)
            } else {
                random.random_range(1..3 * mount + 400)
            };
            chip.cut_at(cut, Cut::Before);
            if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                for turn in 0..20 {
                    let number = random.random_range(0..records);
                    match index.insert(&key(number), &value(number, turn)) {
                        Ok(_) => {}
                        Err(WriteError::Device(ChipError::PowerLost)) => {
                            cuts += 1;
                            break;
                        }
                        Err(error) => return Err(format!("{records}, {session}: {error}")),
                    }
                }
            }
            chip.restore_power();
        }
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in 0..records {
            index.remove(&key(number)).map_err(text)?;
        }
        println!("{}: mount {mount}, {cuts} cuts", S::DESCRIPTION.key);
        if cuts > 20 { Ok(()) } else { Err(format!("only {cuts} changes were cut")) }
    }
}

#[test]
fn a_full_index_replaces_records_however_often_it_is_cut() {
    // In blocks of three pages, of which a checkpoint takes two, each takes a block. In the others
    // a victim may have more valid pages than the one with the fewest.
    for (page_bytes, pages_per_block, blocks, checkpoints) in
        [(192, 3, 19, Some(1)), (264, 12, 5, None), (264, 7, 16, None), (264, 4, 37, Some(3))]
    {
        let geometry = Geometry { page_bytes, spare_bytes: 39, pages_per_block, blocks };
        for moves in [RelocationMode::Together, RelocationMode::Alone] {
            for wear in [WearPolicy::Circular, WearPolicy::Counted] {
                println!("{page_bytes} x {pages_per_block} x {blocks}, {moves:?}, {wear:?}");
                for_one_system_in(7, &CutWhenFull { geometry, checkpoints, moves, wear });
            }
        }
    }
}

/// A high tree on a chip whose erases fail until its reserve of blocks is used up.
///
/// It is filled and thinned out again and again. Every insert ends, accepted or refused.
struct Worn;

impl Check for Worn {
    fn run<S: System + 'static>(&self) -> Outcome {
        let geometry =
            Geometry { page_bytes: 128, spare_bytes: 41, pages_per_block: 16, blocks: 61 };
        let mut profile = Profile { geometry, ..TINY };
        profile.capabilities.bad_blocks_per_mille = 200;
        let mut case = Case::new(profile);
        case.options.key_bytes = 32;
        case.options.value_bytes = 1;
        case.options.mapping_bytes = 1024;
        let case = case.suited::<S>();
        let mut ram = case.ram::<S>();
        let long = |number: u32| {
            let mut key = [0; 32];
            key[..4].copy_from_slice(&number.to_be_bytes());
            key
        };
        for seed in 0..2 {
            let mut chip = Chip::with_seed(case.profile, seed);
            chip.spoil_blocks(case.profile.capabilities.bad_blocks_max(61) / 2);
            chip.set_faults(Faults { erase_failures: 300, ..Faults::default() });
            let formatted = Index::<_, S>::format(&mut chip, &case.options, &mut ram);
            let Ok(mut index) = formatted else { continue };
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut refusals = 0;
            for step in 0..3_000 {
                let key = long(random.random_range(0..6_000));
                let before = index.flash().counters().operations();
                let removes = refusals % 300 > 200;
                let result = if removes {
                    refusals += 1;
                    index.remove(&key).map(drop)
                } else {
                    index.insert(&key, &[1]).map(drop)
                };
                let took = index.flash().counters().operations() - before;
                if took > guard(&index) {
                    return Err(format!("seed {seed}, change {step} took {took} chip operations"));
                }
                match result {
                    Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => refusals += 1,
                    Err(WriteError::WornOut { .. }) => break,
                    result => result.map_err(text)?,
                }
            }
        }
        Ok(())
    }
}

#[test]
fn an_insert_into_a_worn_index_ends() {
    for_one_system_in(5, &Worn);
}
