//! The write buffer does not change the content of an index.
//!
//! This holds for lookups, ranges and after each flush. A full chip loses no accepted change, and
//! changes wait no longer than their bounds. `buffer_power` covers cuts and failing devices,
//! `buffer_costs` the cost.

use core::ops::Bound;

use nandina::flash::PageNumber;
use nandina::store::Description;
use nandina::{
    Index, Inserted, OpenError, Options, RelocationMode, System, WriteError, ram_needed,
};
use nandina_sim::{Chip, Cut, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// Pages of write buffer and write cache, page buffers (0: the system's default), and the bound by
/// count.
type Sizes = (usize, usize, usize, Option<u32>);

const SIZES: [Sizes; 6] = [
    (0, 0, 0, None),
    (1, 0, 0, None),
    (2, 0, 2, None),
    (1, 12, 0, Some(7)),
    (8, 3, 0, None),
    (1, 0, 0, Some(1)),
];

fn case<S: System>(profile: nandina::flash::Profile, sizes: Sizes) -> Case {
    let (write_buffer, write_cache, buffers, write_buffer_changes) = sizes;
    let page_buffers = (buffers > 0).then_some(buffers);
    let mut case = Case::new(profile);
    case.options =
        Options { write_buffer, write_cache, page_buffers, write_buffer_changes, ..case.options };
    case.suited::<S>()
}

/// Compares ranges with random bounds, upwards and downwards, with changes pending.
fn compare_ranges<S: System>(
    index: &mut Index<'_, &mut Chip, S>,
    model: &Model,
    random: &mut ChaCha8Rng,
) -> Outcome {
    let mut bound = |from: u32| match random.random_range(0..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key(from + random.random_range(0..250)).to_vec()),
        _ => Bound::Excluded(key(from + random.random_range(0..250)).to_vec()),
    };
    let (low, high) = (bound(0), bound(251));
    let expected: Vec<_> = model.range((low.clone(), high.clone())).collect();
    let bounds = (low.as_ref().map(|key| &key[..]), high.as_ref().map(|key| &key[..]));
    let mut range = index.range(bounds).map_err(text)?;
    for &(key, value) in &expected {
        if range.next().map_err(text)? != Some((&key[..], &value[..])) {
            return Err(format!("upwards in {bounds:?}: not {key:02x?}"));
        }
    }
    if range.next().map_err(text)?.is_some() || range.next().map_err(text)?.is_some() {
        return Err(format!("upwards in {bounds:?}: more than there is"));
    }
    let mut range = index.range_down(bounds).map_err(text)?;
    for &(key, value) in expected.iter().rev() {
        if range.next().map_err(text)? != Some((&key[..], &value[..])) {
            return Err(format!("downwards in {bounds:?}: not {key:02x?}"));
        }
    }
    if range.next().map_err(text)?.is_some() {
        return Err(format!("downwards in {bounds:?}: more than there is"));
    }
    let count = index.range(bounds).map_err(text)?.count().map_err(text)?;
    if count as usize == expected.len() { Ok(()) } else { Err("a wrong count".into()) }
}

struct Equal;

impl Equal {
    fn life<S: System>(case: &Case, seed: u64) -> Outcome {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let case = case.suited::<S>();
        let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let mut model = Model::new();
        let mut waited = 0;
        for turn in 0..6_000u32 {
            let number = random.random_range(0..500);
            let was_there = model.contains_key(&key(number)[..]);
            let (answer, expected) = match random.random_range(0..20) {
                0..10 => {
                    let answer = index.insert(&key(number), &value(number, turn));
                    if answer.is_ok() {
                        model.insert(key(number).to_vec(), value(number, turn).to_vec());
                    }
                    (answer.map(is_new), !was_there)
                }
                10..15 => {
                    let answer = index.remove(&key(number));
                    if answer.is_ok() {
                        model.remove(&key(number)[..]);
                    }
                    (answer.map(was_found), was_there)
                }
                15..18 => {
                    let found = index.get(&key(number)).map_err(text)?;
                    if found != model.get(&key(number)[..]).map(|value| &value[..]) {
                        return Err(format!("turn {turn}: get of {number} answers {found:?}"));
                    }
                    continue;
                }
                18 => {
                    compare_ranges(&mut index, &model, &mut random)?;
                    continue;
                }
                _ => {
                    match random.random_range(0..6) {
                        0 => drop(index.checkpoint().map_err(text)?),
                        1 => drop(index.gc_step(300).map_err(text)?),
                        2 => {
                            index.flush().map_err(text)?;
                            compare(&mut index, &model)?;
                            drop(index);
                            index = Index::<_, S>::open(&mut chip, &case.options, &mut ram)
                                .map_err(text)?;
                            compare(&mut index, &model)?;
                        }
                        _ => {
                            index.flush().map_err(text)?;
                            compare(&mut index, &model)?;
                        }
                    }
                    continue;
                }
            };
            match answer {
                Ok(None) => waited += 1,
                Ok(Some(answer)) if answer == expected => {}
                Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => {}
                other => return Err(format!("turn {turn}: a change of {number}: {other:?}")),
            }
        }
        index.flush().map_err(text)?;
        compare(&mut index, &model)?;
        if (case.options.write_buffer > 0) == (waited > 0) {
            Ok(())
        } else {
            Err(format!("{waited} changes waited"))
        }
    }
}

impl Check for Equal {
    fn run<S: System + 'static>(&self) -> Outcome {
        for sizes in Share::one_in(3).of(SIZES) {
            for moves in Share::one_in(2).of([RelocationMode::Together, RelocationMode::Alone]) {
                let mut case = case::<S>(SMALL, sizes);
                case.options.moves = moves;
                Self::life::<S>(&case, seed()).map_err(|what| format!("{sizes:?}: {what}"))?;
                // Few records fill a chip as small as this.
                case.profile = TINY;
                Self::life::<S>(&case, seed())
                    .map_err(|what| format!("{sizes:?} on a tiny chip: {what}"))?;
            }
        }
        Ok(())
    }
}

#[test]
fn an_index_with_a_write_buffer_is_what_it_is_without() {
    for_one_system_in(5, &Equal);
}

struct FullChip;

impl Check for FullChip {
    fn concerns(&self, system: &Description) -> bool {
        system.has_write_buffer()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let cases = [(TINY, SIZES[1]), (SMALL, SIZES[2]), (SMALL, SIZES[4])];
        for (profile, sizes) in Share::one_in(3).of(cases) {
            let case = case::<S>(profile, sizes);
            let waited_when_full = with_index::<S, _>(&case, |index| {
                let mut random = ChaCha8Rng::seed_from_u64(seed());
                let mut model = Model::new();
                let (mut refused, mut waited_when_full) = (0, 0);
                for turn in 0..30_000u32 {
                    // Filled, emptied by half, filled again; now and then in the order of keys.
                    let number = match turn / 1_000 % 3 {
                        2 => turn * 50,
                        _ => random.random_range(0..1_000_000),
                    };
                    let near = model.range(key(number).to_vec()..).next();
                    let near = near.map(|(key, _)| key.clone());
                    match near {
                        Some(near)
                            if random.random_range(0..100)
                                < [10, 60][turn as usize / 6_000 % 2] =>
                        {
                            // A full device must never block a removal, whatever is buffered.
                            index.remove(&near).map_err(|error| format!("remove: {error:?}"))?;
                            model.remove(&near);
                            continue;
                        }
                        _ => {}
                    }
                    let before = model.get(&key(number)[..]).cloned();
                    match index.insert(&key(number), &value(number, turn)) {
                        Ok(answer) => {
                            model.insert(key(number).to_vec(), value(number, turn).to_vec());
                            waited_when_full +=
                                u32::from(refused > 0 && answer == Inserted::Buffered);
                        }
                        Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => {
                            refused += 1;
                            let found = index.get(&key(number)).map_err(text)?;
                            if found != before.as_deref() {
                                return Err(format!("a refusal changed {number} to {found:?}"));
                            }
                        }
                        Err(error) => return Err(text(error)),
                    }
                    if random.random_range(0..300) == 0 {
                        index.flush().map_err(|error| format!("what waited: {error:?}"))?;
                        compare(index, &model)?;
                    }
                }
                if refused < 100 {
                    return Err(format!("only {refused} refusals"));
                }
                index.flush().map_err(text)?;
                compare(index, &model)?;
                Ok(waited_when_full)
            })
            .map_err(|what| format!("{sizes:?}: {what}"))?;
            println!("{} {sizes:?}: {waited_when_full} waited", S::DESCRIPTION.key);
            // Logical addresses and parents take pages as well, and the promise counts them all.
            if waited_when_full == 0 && !S::DESCRIPTION.has_mapping_table() {
                return Err("nothing waited any more once the chip had been full".into());
            }
        }
        Ok(())
    }
}

#[test]
fn a_full_chip_loses_nothing_that_waited_and_refuses_at_once() {
    for_one_system_in(5, &FullChip);
}

struct Bounds;

impl Check for Bounds {
    fn concerns(&self, system: &Description) -> bool {
        system.has_write_buffer()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = case::<S>(SMALL, (1, 0, 0, Some(5)));
        case.options.write_buffer_ticks = Some(3);
        let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let waiting = |index: &Index<'_, &mut Chip, S>| index.statistics().waiting_changes;
        let expect = |what: &str, found: u32, expected: u32| {
            if found == expected { Ok(()) } else { Err(format!("{what}: {found}, not {expected}")) }
        };
        // The chip is not touched until the fifth change.
        let before = index.flash().counters().operations();
        for turn in 0..4u32 {
            index.insert(&key(turn % 4), &value(turn, 0)).map_err(text)?;
            index.insert(&key(turn % 4), &value(turn, 1)).map_err(text)?;
            expect("waiting", waiting(&index), turn + 1)?;
        }
        let taken = index.flash().counters().operations() - before;
        expect("chip operations", taken as u32, 0)?;
        expect("records before the flush", index.len(), 0)?;
        if index.insert(&key(4), &value(4, 1)) != Ok(Inserted::Buffered) {
            return Err("the change that is one too many waits, and all are flushed".into());
        }
        expect("waiting after five changes", waiting(&index), 0)?;
        expect("records", index.len(), 5)?;
        // Three ticks, counted from the first pending change.
        index.tick().map_err(text)?;
        index.remove(&key(2)).map_err(text)?;
        for still in [1, 2] {
            index.tick().map_err(text)?;
            expect("waiting between ticks", waiting(&index), still)?;
            index.insert(&key(10), &value(10, still)).map_err(text)?;
        }
        index.tick().map_err(text)?;
        expect("waiting after three ticks", waiting(&index), 0)?;
        index.insert(&key(11), &value(11, 0)).map_err(text)?;
        // Dropped with a change pending: only that change is lost.
        drop(index);
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        let numbers = [(0, 0), (1, 1), (3, 3), (4, 4), (10, 10)];
        let version = |number| if number == 10 { 2 } else { 1 };
        let model: Model = numbers
            .iter()
            .map(|&(at, number)| (key(at).to_vec(), value(number, version(number)).to_vec()))
            .collect();
        compare(&mut index, &model)
    }
}

#[test]
fn changes_wait_no_longer_than_they_may() {
    for_every_system(&Bounds);
}

struct Settings;

impl Check for Settings {
    fn concerns(&self, system: &Description) -> bool {
        system.has_write_buffer()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let plain = Case::new(SMALL).suited::<S>();
        let with = |write_buffer| Options { write_buffer, ..plain.options };
        let geometry = &plain.profile.geometry;
        let bytes = |options| ram_needed::<S>(geometry, &options);
        if bytes(with(3)) != bytes(with(0)) + 3 * 512 {
            return Err("each page takes its main data".into());
        }
        let refused = |options: Options| {
            let (mut chip, mut ram) = (Chip::new(plain.profile), vec![0; 1 << 16]);
            let opened = Index::<_, S>::format(&mut chip, &options, &mut ram);
            matches!(opened.map(drop), Err(OpenError::BadOption { .. }))
        };
        let odd = [
            Options { write_buffer_changes: Some(0), ..with(1) },
            Options { write_buffer_ticks: Some(0), ..with(1) },
            with(65_536),
        ];
        if odd.into_iter().all(refused) { Ok(()) } else { Err("an odd option is taken".into()) }
    }
}

#[test]
fn settings_have_ranges_and_take_the_ram_that_they_say() {
    for_every_system(&Settings);
}

/// Of two changes that are due, the first is applied and the leaf of the second is damaged.
struct Halfway;

impl Check for Halfway {
    fn concerns(&self, system: &Description) -> bool {
        // The others return to an older state of the leaf.
        system.root_commits()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL);
        case.options.write_buffer = 1;
        case.options.write_buffer_changes = Some(2);
        let (low, high) = (key(1), key(999));
        let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in (0..1000).step_by(9) {
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        index.flush().map_err(text)?;
        index.close();
        let mut tried = 0;
        for page in (0..case.profile.geometry.pages()).map(PageNumber) {
            let mut chip = chip.clone();
            chip.corrupt_page(page, |main, _| main[20] ^= 4);
            let opened = Index::<_, S>::open(&mut chip, &case.options, &mut ram);
            let Ok(mut index) = opened else { continue };
            if index.get(&low).is_err() || index.get(&high).is_ok() {
                continue;
            }
            tried += 1;
            index.insert(&high, &value(999, 1)).map_err(text)?;
            // It is made, so it is not refused; a flush reports the other one.
            index.insert(&low, &value(1, 1)).map_err(text)?;
            if index.get(&low).map_err(text)? != Some(&value(1, 1)[..]) {
                return Err(format!("{page}: the change is not made"));
            }
            if !matches!(index.flush(), Err(WriteError::Corrupt { .. })) {
                return Err(format!("{page}: the change to a damaged leaf is not reported"));
            }
        }
        // A page that holds a whole path holds the root as well, which an older page replaces.
        let is_leaf_alone = !nodes_of::<S>().sharing.shares();
        if tried > 0 || !is_leaf_alone { Ok(()) } else { Err("no leaf was damaged".into()) }
    }
}

#[test]
fn a_change_that_is_applied_before_its_flush_meets_damage_is_made() {
    for_every_system(&Halfway);
}

/// A removal that fills the write buffer meets an error of the device in one of its reads.
///
/// The session before ended with `close`. Found by reading: `tnc` had a change more waiting than
/// its buffer has room for.
struct DeviceGaveUpAtAFullBuffer;

impl DeviceGaveUpAtAFullBuffer {
    const RECORDS: u32 = 160;

    /// Opens the index and makes changes that wait.
    fn open<'a, S: System>(
        case: &Case,
        chip: &'a mut Chip,
        ram: &'a mut [u8],
        waiting: u32,
    ) -> Result<Index<'a, &'a mut Chip, S>, String> {
        let mut index = Index::<_, S>::open(chip, &case.options, ram).map_err(text)?;
        for number in 0..waiting {
            let inserted = index.insert(&key(number), &value(number, 1));
            inserted.map_err(|error| format!("inserting {number}: {error}"))?;
        }
        Ok(index)
    }

    /// The device gives up the operation after `at` others, in the removal or soon after it.
    fn run_at<S: System>(
        case: &Case,
        image: &Chip,
        (waiting, victim): (u32, u32),
        at: u64,
    ) -> Outcome {
        let (mut chip, mut ram) = (image.clone(), case.ram::<S>());
        let record = |number, turn| (key(number).to_vec(), value(number, turn).to_vec());
        let mut model: Model = (0..Self::RECORDS).map(|number| record(number, 0)).collect();
        model.extend((0..waiting).map(|number| record(number, 1)));
        chip.give_up_at(at, Cut::Before);
        let mut index = Self::open::<S>(case, &mut chip, &mut ram, waiting)?;
        // If it fails, the record is there or not.
        let _ = index.remove(&key(victim));
        for number in [34, 35, 36] {
            // It gives up once.
            let removed = index.remove(&key(number)).or_else(|_| index.remove(&key(number)));
            removed.map_err(|error| format!("removing {number}: {error}"))?;
            model.remove(&key(number)[..]);
        }
        let flushed = index.flush().or_else(|_| index.flush());
        flushed.map_err(|error| format!("flushing: {error}"))?;
        drop(index);
        chip.restore_power();
        let mut index = Self::open::<S>(case, &mut chip, &mut ram, 0)?;
        if index.get(&key(victim)).map_err(text)?.is_none() {
            model.remove(&key(victim)[..]);
        }
        let mut count = 0;
        for (key, value) in &model {
            count += 1;
            if index.get(key).map_err(text)? != Some(&value[..]) {
                return Err(format!("{waiting} waiting, operation {at}: {key:?} is lost"));
            }
        }
        if index.len() == count { Ok(()) } else { Err("there is a record more".into()) }
    }
}

impl Check for DeviceGaveUpAtAFullBuffer {
    fn concerns(&self, system: &Description) -> bool {
        system.has_write_buffer()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL.with_blocks(60)).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut image = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut image, &case.options, &mut ram).map_err(text)?;
        for number in 0..2 * Self::RECORDS {
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        // Most leaves are nearly empty, so that a removal reads a neighbour.
        for number in (0..2 * Self::RECORDS).filter(|number| *number >= Self::RECORDS) {
            index.remove(&key(number)).map_err(text)?;
        }
        index.close();
        case.options.write_buffer = 1;
        for waiting in 26..31 {
            let (mut chip, mut ram) = (image.clone(), case.ram::<S>());
            let index = Self::open::<S>(&case, &mut chip, &mut ram, waiting)?;
            let before = index.flash().counters().operations() - image.counters().operations();
            for victim in (40..Self::RECORDS).step_by(4) {
                for at in before..before + 5 {
                    Self::run_at::<S>(&case, &image, (waiting, victim), at)?;
                }
            }
        }
        Ok(())
    }
}

#[test]
fn a_device_that_gives_up_at_a_full_write_buffer_costs_no_change() {
    for_one_system_in(3, &DeviceGaveUpAtAFullBuffer);
}
