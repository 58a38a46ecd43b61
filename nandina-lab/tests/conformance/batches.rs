//! Batches of changes: all of a batch is there, or nothing, whatever fails.

use nandina::flash::{Geometry, Profile};
use nandina::store::{Rosette, Tnc};
use nandina::{Change, Index, OpenError, Options, System, WriteError, ram_needed};
use nandina_lab::effort::{Effort, effort};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// A sixteenth of its pages may be dirty nodes, which bounds batches.
const CHIP: Profile =
    Profile { geometry: Geometry { blocks: 80, pages_per_block: 16, ..TINY.geometry }, ..TINY };

/// A chip on which most batches of the leaves of `rosette` need room.
const SMALL: Profile =
    Profile { geometry: Geometry { blocks: 24, pages_per_block: 8, ..TINY.geometry }, ..TINY };

type Tested<'r, 'c, S> = Index<'r, &'c mut Chip, S>;

type Written = Result<(), WriteError<ChipError>>;

/// A system that makes batches, with the options and the chip under which it is tested.
trait MakesBatches: System {
    const CASES: &[(Profile, Options)];

    fn most(index: &Tested<'_, '_, Self>) -> usize
    where
        Self: Sized;

    fn write(index: &mut Tested<'_, '_, Self>, changes: &[Change<'_>]) -> Written
    where
        Self: Sized;
}

macro_rules! makes_batches {
    ($system:ty, $cases:expr) => {
        impl MakesBatches for $system {
            const CASES: &[(Profile, Options)] = &$cases;

            fn most(index: &Tested<'_, '_, Self>) -> usize {
                index.batch_max()
            }

            fn write(index: &mut Tested<'_, '_, Self>, changes: &[Change<'_>]) -> Written {
                index.write_batch(changes)
            }
        }
    };
}

makes_batches!(
    Tnc,
    [
        (CHIP, Options { journal_pages: Some(7), ..OPTIONS }),
        (CHIP, Options { journal_pages: Some(7), write_buffer: 1, ..OPTIONS }),
    ]
);
makes_batches!(
    Rosette,
    [
        (SMALL, Options::new(KEY_BYTES, VALUE_BYTES)),
        (SMALL, Options::new(KEY_BYTES, VALUE_BYTES).checkpoints(1)),
    ]
);

/// A number, and the version of its value; `None` to remove it.
type Numbered = (u32, Option<u32>);

/// RAM for so many nodes that batches of some changes fit.
const OPTIONS: Options =
    Options { arena_bytes: Some(60_000), ..Options::new(KEY_BYTES, VALUE_BYTES) };

fn ram<S: System>(profile: &Profile, options: &Options) -> Vec<u8> {
    vec![0xA5; ram_needed::<S>(&profile.geometry, options)]
}

/// Random changes of a few numbers: some of a batch concern the same one.
fn batch(random: &mut ChaCha8Rng, version: u32, most: usize) -> Vec<Numbered> {
    let count = random.random_range(1..=most);
    let base = random.random_range(0..4) * 1_000;
    let change = |random: &mut ChaCha8Rng| {
        let puts = random.random_range(0..8) > 2;
        (base + random.random_range(0..40), puts.then_some(version))
    };
    (0..count).map(|_| change(random)).collect()
}

fn write<S: MakesBatches>(index: &mut Tested<'_, '_, S>, batch: &[Numbered]) -> Written {
    let bytes: Vec<_> = batch
        .iter()
        .map(|&(number, version)| (key(number), version.map(|version| value(number, version))))
        .collect();
    let changes: Vec<_> = bytes
        .iter()
        .map(|(key, value)| match value {
            Some(value) => Change::Put { key, value },
            None => Change::Remove { key },
        })
        .collect();
    S::write(index, &changes)
}

fn apply(model: &mut Model, batch: &[Numbered]) {
    for &(number, version) in batch {
        match version {
            Some(version) => model.insert(key(number).to_vec(), value(number, version).to_vec()),
            None => model.remove(&key(number)[..]),
        };
    }
}

fn contents<S: System>(index: &mut Tested<'_, '_, S>) -> Result<Model, String> {
    let (mut found, mut range) = (Model::new(), index.range(..).map_err(text)?);
    while let Some((key, value)) = range.next().map_err(text)? {
        found.insert(key.to_vec(), value.to_vec());
    }
    Ok(found)
}

fn makes_changes<S: MakesBatches>(cases: &[(Profile, Options)]) {
    for (profile, options) in cases {
        let (mut chip, mut ram) = (Chip::new(*profile), ram::<S>(profile, options));
        let (mut model, mut random) = (Model::new(), ChaCha8Rng::seed_from_u64(seed()));
        for session in 0..6 {
            let opened = match session {
                0 => Index::format(&mut chip, options, &mut ram),
                _ => Index::open(&mut chip, options, &mut ram),
            };
            let mut index: Tested<'_, '_, S> = opened.unwrap();
            for turn in 0..400 {
                let most = S::most(&index).min(12);
                let batch = batch(&mut random, session * 1_000 + turn, most);
                write(&mut index, &batch).unwrap();
                apply(&mut model, &batch);
                if turn % 9 == 0 {
                    // Single changes come between batches.
                    let single = [(turn, Some(turn))];
                    index.insert(&key(turn), &value(turn, turn)).unwrap();
                    apply(&mut model, &single);
                }
            }
            index.flush().unwrap();
            compare(&mut index, &model).unwrap();
        }
        let erases = chip.counters().erases;
        assert!(erases > 20, "{erases} erases");
    }
}

#[test]
fn a_batch_makes_the_changes_that_single_ones_would_make() {
    makes_changes::<Tnc>(&[0, 2].map(|write_buffer| (CHIP, Options { write_buffer, ..OPTIONS })));
    makes_changes::<Rosette>(Rosette::CASES);
}

#[test]
fn a_batch_takes_one_page_of_the_journal() {
    // Files of a catalogue: an entry, its size, its parent, in three ranges of keys.
    let files = |file: u32| [file * 7919 % 1_000, 10_000 + file, 20_000 + file / 50, 30_000 + file];
    let programs = [false, true].map(|in_batches| {
        let (mut chip, mut ram) = (Chip::new(CHIP), ram::<Tnc>(&CHIP, &OPTIONS));
        let mut index: Tested<'_, '_, Tnc> = Index::format(&mut chip, &OPTIONS, &mut ram).unwrap();
        for file in 0..400 {
            let batch = files(file).map(|number| (number, Some(file)));
            let each = if in_batches { batch.len() } else { 1 };
            batch.chunks(each).for_each(|changes| write(&mut index, changes).unwrap());
        }
        chip.counters().programs
    });
    println!("400 batches of 4 changes: {programs:?} programs, one by one and as batches");
    let [one_by_one, in_batches] = programs;
    // A page of the journal for each, and a share of the commits.
    assert!(one_by_one > 1_600 && (401..500).contains(&in_batches), "{programs:?}");
}

#[test]
fn a_batch_of_neighbours_is_one_program_of_rosette() {
    let (_, options) = Rosette::CASES[0];
    let (mut chip, mut ram) = (Chip::new(CHIP), ram::<Rosette>(&CHIP, &options));
    let mut index: Tested<'_, '_, Rosette> = Index::format(&mut chip, &options, &mut ram).unwrap();
    for batch in 0..200 {
        let neighbours = (0..10).map(|at| (10 * batch + at, Some(batch)));
        write(&mut index, &neighbours.collect::<Vec<_>>()).unwrap();
    }
    let programs = index.flash().counters().programs;
    // A leaf has room for 30. One batch in three fills it and begins another one, and the page that
    // stores such a batch comes before.
    println!("2,000 records in batches of 10 neighbours: {programs} programs");
    assert!((200..350).contains(&programs), "{programs}");
    let far = (0..10).map(|at| (200 * at, Some(999))).collect::<Vec<_>>();
    write(&mut index, &far).unwrap();
    // The changes, and ten leaves.
    assert_eq!(index.flash().counters().programs, programs + 11);
}

/// A run of batches that is cut at chip operation `at`, and once more while it is opened.
///
/// Returns whether it was cut, and whether the batch that was cut is there.
fn run_cut<S: MakesBatches>(
    options: &Options,
    formatted: &Chip,
    at: u64,
    cut: Cut,
) -> Result<(bool, bool), String> {
    let (mut chip, mut ram) = (formatted.clone(), ram::<S>(formatted.profile(), options));
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    chip.cut_at(at, cut);
    // What there may be: a state behind each batch since the last flush.
    let mut states = vec![Model::new()];
    let was_cut = match Index::open(&mut chip, options, &mut ram) {
        Ok(mut index) => (0..80).any(|turn| {
            let most = S::most(&index).min(6);
            let batch = batch(&mut random, turn, most);
            let mut after = states.last().cloned().unwrap_or_default();
            apply(&mut after, &batch);
            states.push(after);
            let flushes = options.write_buffer == 0 || turn % 5 == 4;
            let mut written = write::<S>(&mut index, &batch);
            if flushes && written.is_ok() {
                written = index.flush();
            }
            if flushes && written.is_ok() {
                states.drain(..states.len() - 1);
            }
            written.is_err()
        }),
        Err(_) => true,
    };
    chip.restore_power();
    let mut index: Tested<'_, '_, S> = Index::open(&mut chip, options, &mut ram).map_err(text)?;
    let found = contents(&mut index)?;
    let Some(state) = states.iter().position(|state| *state == found) else {
        return Err(format!("none of {} states is there", states.len()));
    };
    drop(index);
    // What was seen stays, also if power fails while it is opened again.
    chip.cut_at(at % 23, cut);
    if let Ok(mut index) = Index::open(&mut chip, options, &mut ram) {
        // A removal of nothing changes nothing, but settles what is torn.
        let _ = write::<S>(&mut index, &[(9_999, None)]);
        drop(index);
    }
    chip.restore_power();
    let mut index: Tested<'_, '_, S> = Index::open(&mut chip, options, &mut ram).map_err(text)?;
    compare(&mut index, &found)?;
    Ok((was_cut, state > 0))
}

fn survives_cuts<S: MakesBatches>() {
    let share = Share::one_in(5);
    let cases = S::CASES.iter().flat_map(|case| [(case, 0), (case, 1)]);
    for ((profile, options), unstable_pages) in cases {
        let (mut chip, mut room) = (Chip::with_seed(*profile, seed()), ram::<S>(profile, options));
        Index::<_, S>::format(&mut chip, options, &mut room).unwrap();
        chip.set_faults(Faults { unstable_pages, ..Faults::NONE });
        let (mut cuts, mut there) = (0, 0);
        'all: for at in (0..).filter(|&at| share.takes(at)) {
            for cut in Cut::ALL {
                match run_cut::<S>(options, &chip, at, cut) {
                    Ok((false, _)) => break 'all,
                    Ok((true, is_there)) => (cuts, there) = (cuts + 1, there + u32::from(is_there)),
                    Err(what) => panic!("{options:?}, {cut:?} at {at}: {what}"),
                }
            }
        }
        println!("{options:?}, unstable {unstable_pages}: {cuts} cuts, {there} there");
        assert!(cuts > 200 && there > 0 && there < cuts, "{cuts} cuts, {there} there");
    }
}

#[test]
fn a_batch_that_is_cut_is_there_wholly_or_not_at_all() {
    survives_cuts::<Tnc>();
    survives_cuts::<Rosette>();
}

fn refuses<S: MakesBatches>(profile: &Profile, options: &Options) {
    let (mut chip, mut ram) = (Chip::new(*profile), ram::<S>(profile, options));
    let mut index: Tested<'_, '_, S> = Index::format(&mut chip, options, &mut ram).unwrap();
    let (mut model, mut refused) = (Model::new(), 0);
    let most = S::most(&index);
    assert!(most >= 8, "{most}");
    let too_many: Vec<_> = (0..=most as u32).map(|number| (number, Some(1))).collect();
    let found = write(&mut index, &too_many);
    let given = most + 1;
    assert!(
        matches!(found, Err(WriteError::BatchTooLarge { most: m, given: g }) if (m, g) == (most, given))
    );
    let short = S::write(
        &mut index,
        &[
            Change::Put { key: &key(1), value: &value(1, 1) },
            Change::Remove { key: &[0; KEY_BYTES - 1] },
        ],
    );
    assert!(matches!(short, Err(WriteError::KeySize { .. })), "{short:?}");
    let long = S::write(&mut index, &[Change::Put { key: &key(1), value: &[0; VALUE_BYTES + 1] }]);
    assert!(matches!(long, Err(WriteError::ValueSize { .. })), "{long:?}");
    compare(&mut index, &model).unwrap();
    let mut numbers = (0..).step_by(7).map(|number: u32| number % 10_007);
    while refused < 5 {
        let count = S::most(&index).min(5);
        let batch: Vec<_> = numbers.by_ref().take(count).map(|number| (number, Some(1))).collect();
        match write(&mut index, &batch) {
            Ok(()) => apply(&mut model, &batch),
            Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => {
                refused += 1;
                compare(&mut index, &model).unwrap();
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(model.len() > 500, "{} records", model.len());
    // A full index still replaces and removes, in batches as well.
    let there: Vec<u32> = (0..10_007).filter(|&at| model.contains_key(&key(at)[..])).collect();
    // Far from each other, so that each is in another leaf; and then the same one by one.
    let rows = there.len().div_ceil(4);
    let programs = [4, 1].map(|size| {
        let before = index.flash().counters().programs;
        for row in 0..rows {
            let version = (row % 3 > 0).then_some(2 + size as u32);
            let numbers = there.iter().skip(row).step_by(rows);
            let batch: Vec<_> = numbers.map(|&number| (number, version)).collect();
            batch.chunks(size).for_each(|batch| write(&mut index, batch).unwrap());
            apply(&mut model, &batch);
        }
        (index.flash().counters().programs - before) / rows as u64
    });
    println!("{programs:?} programs on a full chip, for batches of 4 and for the same one by one");
    assert!(programs[0] <= 2 * programs[1] + 2, "{programs:?}");
    compare(&mut index, &model).unwrap();
}

#[test]
fn a_batch_that_is_refused_changes_nothing() {
    refuses::<Tnc>(&CHIP, &OPTIONS);
    for (profile, options) in Rosette::CASES {
        refuses::<Rosette>(profile, options);
    }
}

/// A run in which the device gives up chip operation `at`, once.
///
/// Returns whether it did so in a batch, and whether that batch is there.
fn run_error<S: MakesBatches>(
    options: &Options,
    formatted: &Chip,
    at: u64,
    cut: Cut,
) -> Result<(bool, bool), String> {
    let (mut chip, mut ram) = (formatted.clone(), ram::<S>(formatted.profile(), options));
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    chip.give_up_at(at, cut);
    let mut model = Model::new();
    let Ok(mut index): Result<Tested<'_, '_, S>, _> = Index::open(&mut chip, options, &mut ram)
    else {
        return Ok((true, false));
    };
    for turn in 0..80 {
        let most = S::most(&index).min(6);
        let batch = batch(&mut random, turn, most);
        let mut after = model.clone();
        apply(&mut after, &batch);
        match write(&mut index, &batch) {
            Ok(()) => model = after,
            Err(WriteError::Device(_)) => {
                let found = contents(&mut index)?;
                if found != model && found != after {
                    return Err(format!("turn {turn}: neither all of the batch nor nothing"));
                }
                // The index goes on from there, and so does a later one.
                let is_there = found != model;
                write(&mut index, &batch).map_err(text)?;
                index.flush().map_err(text)?;
                compare(&mut index, &after)?;
                drop(index);
                let mut index: Tested<'_, '_, S> =
                    Index::open(&mut chip, options, &mut ram).map_err(text)?;
                compare(&mut index, &after)?;
                return Ok((true, is_there));
            }
            Err(error) => return Err(text(error)),
        }
    }
    Ok((false, false))
}

fn survives_errors<S: MakesBatches>() {
    let share = Share::one_in(5);
    for (profile, options) in S::CASES {
        let (mut chip, mut room) = (Chip::with_seed(*profile, seed()), ram::<S>(profile, options));
        Index::<_, S>::format(&mut chip, options, &mut room).unwrap();
        let (mut errors, mut there) = (0, 0);
        'all: for at in (0..).filter(|&at| share.takes(at)) {
            for cut in Cut::ALL {
                match run_error::<S>(options, &chip, at, cut) {
                    Ok((false, _)) => break 'all,
                    Ok((true, is_there)) => {
                        (errors, there) = (errors + 1, there + u32::from(is_there));
                    }
                    Err(what) => panic!("{options:?}, {cut:?} at {at}: {what}"),
                }
            }
        }
        println!("{options:?}: {errors} errors, {there} there");
        assert!(errors > 200 && there < errors, "{errors} errors, {there} there");
    }
}

#[test]
fn a_device_that_gives_up_in_a_batch_leaves_all_of_it_or_nothing() {
    survives_errors::<Tnc>();
    survives_errors::<Rosette>();
}

/// A life of batches on a chip whose programs and erases fail, with a cut in each session.
fn live<S: MakesBatches>(profile: &Profile, options: &Options, life: u64) -> Result<u64, String> {
    let mut random = ChaCha8Rng::seed_from_u64(life);
    let (mut chip, mut ram) = (Chip::with_seed(*profile, life), ram::<S>(profile, options));
    Index::<_, S>::format(&mut chip, options, &mut ram).map_err(text)?;
    let often = |random: &mut ChaCha8Rng| [0, 0, 300, 60][random.random_range(0..4)];
    chip.set_faults(Faults {
        program_failures: often(&mut random),
        erase_failures: often(&mut random),
        device_errors: often(&mut random),
        unstable_pages: random.random_range(0..3),
        ..Faults::NONE
    });
    let (mut states, mut version) = (vec![Model::new()], 0);
    for _ in 0..60 {
        let cut = Cut::ALL[random.random_range(0..Cut::ALL.len())];
        if random.random() {
            chip.cut_at(random.random_range(0..400), cut);
        } else {
            chip.cut_at_change(random.random_range(0..40), cut);
        }
        if let Ok(mut index) = Index::open(&mut chip, options, &mut ram) {
            let found = contents::<S>(&mut index);
            if let Ok(found) = found {
                if !states.contains(&found) {
                    return Err(format!("none of {} states is there", states.len()));
                }
                states = vec![found];
            }
            for _ in 0..random.random_range(1..30) {
                version += 1;
                let most = S::most(&index).min(7);
                let batch = batch(&mut random, version, most);
                // After an error of the device, any state since the last success may be there.
                let after = states.iter().map(|state| {
                    let mut after = state.clone();
                    apply(&mut after, &batch);
                    after
                });
                let after: Vec<_> = after.collect();
                match write::<S>(&mut index, &batch) {
                    Ok(()) if options.write_buffer == 0 => states = after,
                    Err(WriteError::Device(ChipError::PowerLost)) => {
                        states.extend(after);
                        break;
                    }
                    Ok(()) | Err(WriteError::Device(_) | WriteError::WornOut { .. }) => {
                        states.extend(after);
                        if states.len() > 16 {
                            break;
                        }
                    }
                    Err(WriteError::Full { .. }) => {}
                    Err(error) => return Err(text(error)),
                }
            }
            drop(index);
        }
        chip.restore_power();
    }
    chip.set_faults(Faults::NONE);
    let (bad_blocks, cuts) = (chip.bad_blocks().count(), chip.fault_counters().cuts);
    let found = match Index::<_, S>::open(&mut chip, options, &mut ram) {
        Ok(mut index) => contents::<S>(&mut index)?,
        // More blocks failed than any chip promises.
        Err(OpenError::WornOut { .. }) if bad_blocks > 3 => return Ok(cuts),
        Err(error) => return Err(text(error)),
    };
    if !states.contains(&found) {
        return Err(format!("none of {} states is there at the end", states.len()));
    }
    Ok(cuts)
}

#[test]
fn batches_survive_lives_of_cuts_on_chips_that_fail() {
    let lives = if effort() == Effort::Full { 4_000 } else { 60 };
    let (mut cuts, first) = (0, lives * seed());
    for life in first..first + lives {
        for (profile, options) in Rosette::CASES {
            match live::<Rosette>(profile, options, life) {
                Ok(cut) => cuts += cut,
                Err(what) => panic!("{options:?}, life {life}: {what}"),
            }
        }
    }
    println!("{cuts} cuts in {} lives", 2 * lives);
    assert!(cuts > 20 * lives, "{cuts} cuts");
}
