//! Batches of changes: all of a batch is there, or nothing, whatever fails.

use nandina::flash::{Geometry, Profile};
use nandina::store::Tnc;
use nandina::{Change, Index, Options, WriteError, ram_needed};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// A sixteenth of its pages may be dirty nodes, which bounds batches.
const CHIP: Profile =
    Profile { geometry: Geometry { blocks: 80, pages_per_block: 16, ..TINY.geometry }, ..TINY };

type Tested<'r, 'c> = Index<'r, &'c mut Chip, Tnc>;

/// A number, and the version of its value; `None` to remove it.
type Numbered = (u32, Option<u32>);

/// RAM for so many nodes that batches of some changes fit.
const OPTIONS: Options =
    Options { arena_bytes: Some(60_000), ..Options::new(KEY_BYTES, VALUE_BYTES) };

fn ram(options: &Options) -> Vec<u8> {
    vec![0xA5; ram_needed::<Tnc>(&CHIP.geometry, options)]
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

fn write(index: &mut Tested<'_, '_>, batch: &[Numbered]) -> Result<(), WriteError<ChipError>> {
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
    index.write_batch(&changes)
}

fn apply(model: &mut Model, batch: &[Numbered]) {
    for &(number, version) in batch {
        match version {
            Some(version) => model.insert(key(number).to_vec(), value(number, version).to_vec()),
            None => model.remove(&key(number)[..]),
        };
    }
}

fn contents(index: &mut Tested<'_, '_>) -> Result<Model, String> {
    let (mut found, mut range) = (Model::new(), index.range(..).map_err(text)?);
    while let Some((key, value)) = range.next().map_err(text)? {
        found.insert(key.to_vec(), value.to_vec());
    }
    Ok(found)
}

#[test]
fn a_batch_makes_the_changes_that_single_ones_would_make() {
    for write_buffer in [0, 2] {
        let options = Options { write_buffer, ..OPTIONS };
        let (mut chip, mut ram) = (Chip::new(CHIP), ram(&options));
        let (mut model, mut random) = (Model::new(), ChaCha8Rng::seed_from_u64(seed()));
        for session in 0..6 {
            let opened = match session {
                0 => Index::format(&mut chip, &options, &mut ram),
                _ => Index::open(&mut chip, &options, &mut ram),
            };
            let mut index: Tested<'_, '_> = opened.unwrap();
            for turn in 0..400 {
                let most = index.batch_max().min(12);
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
fn a_batch_takes_one_page_of_the_journal() {
    // Files of a catalogue: an entry, its size, its parent, in three ranges of keys.
    let files = |file: u32| [file * 7919 % 1_000, 10_000 + file, 20_000 + file / 50, 30_000 + file];
    let programs = [false, true].map(|in_batches| {
        let (mut chip, mut ram) = (Chip::new(CHIP), ram(&OPTIONS));
        let mut index: Tested<'_, '_> = Index::format(&mut chip, &OPTIONS, &mut ram).unwrap();
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

/// A run of batches that is cut at chip operation `at`, and once more while it is opened.
///
/// Returns whether it was cut, and whether the batch that was cut is there.
fn run_cut(options: &Options, formatted: &Chip, at: u64, cut: Cut) -> Result<(bool, bool), String> {
    let (mut chip, mut ram) = (formatted.clone(), ram(options));
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let start = chip.counters().operations();
    chip.cut_at(start + at, cut);
    // What there may be: a state behind each batch since the last flush.
    let mut states = vec![Model::new()];
    let was_cut = match Index::open(&mut chip, options, &mut ram) {
        Ok(mut index) => (0..80).any(|turn| {
            let most = index.batch_max().min(6);
            let batch = batch(&mut random, turn, most);
            let mut after = states.last().cloned().unwrap_or_default();
            apply(&mut after, &batch);
            states.push(after);
            let flushes = options.write_buffer == 0 || turn % 5 == 4;
            let mut written = write(&mut index, &batch);
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
    let mut index: Tested<'_, '_> = Index::open(&mut chip, options, &mut ram).map_err(text)?;
    let found = contents(&mut index)?;
    let Some(state) = states.iter().position(|state| *state == found) else {
        return Err(format!("none of {} states is there", states.len()));
    };
    // What was seen stays, also if power fails while it is opened again.
    let operations = chip.counters().operations();
    chip.cut_at(operations + at % 23, cut);
    if let Ok(mut index) = Index::open(&mut chip, options, &mut ram) {
        // A removal of nothing changes nothing, but settles what is torn.
        let _ = write(&mut index, &[(9_999, None)]);
    }
    chip.restore_power();
    let mut index: Tested<'_, '_> = Index::open(&mut chip, options, &mut ram).map_err(text)?;
    compare(&mut index, &found)?;
    Ok((was_cut, state > 0))
}

#[test]
fn a_batch_that_is_cut_is_there_wholly_or_not_at_all() {
    let share = Share::one_in(5);
    for (write_buffer, unstable_pages) in [(0, 0), (0, 1), (1, 1)] {
        let options = Options { write_buffer, journal_pages: Some(7), ..OPTIONS };
        let (mut chip, mut room) = (Chip::with_seed(CHIP, seed()), ram(&options));
        Index::<_, Tnc>::format(&mut chip, &options, &mut room).unwrap();
        chip.set_faults(Faults { unstable_pages, ..Faults::NONE });
        let (mut cuts, mut there) = (0, 0);
        'all: for at in (0..).filter(|&at| share.takes(at)) {
            for cut in Cut::ALL {
                match run_cut(&options, &chip, at, cut) {
                    Ok((false, _)) => break 'all,
                    Ok((true, is_there)) => (cuts, there) = (cuts + 1, there + u32::from(is_there)),
                    Err(what) => panic!("buffer {write_buffer}, {cut:?} at {at}: {what}"),
                }
            }
        }
        println!("buffer {write_buffer}, unstable {unstable_pages}: {cuts} cuts, {there} there");
        assert!(cuts > 200 && there > 0 && there < cuts, "{cuts} cuts, {there} there");
    }
}

#[test]
fn a_batch_that_is_refused_changes_nothing() {
    let (mut chip, mut ram) = (Chip::new(CHIP), ram(&OPTIONS));
    let mut index: Tested<'_, '_> = Index::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let (mut model, mut refused) = (Model::new(), 0);
    let most = index.batch_max();
    assert!(most >= 8, "{most}");
    let too_many: Vec<_> = (0..=most as u32).map(|number| (number, Some(1))).collect();
    let found = write(&mut index, &too_many);
    let given = most + 1;
    assert!(
        matches!(found, Err(WriteError::BatchTooLarge { most: m, given: g }) if (m, g) == (most, given))
    );
    let short = index.write_batch(&[
        Change::Put { key: &key(1), value: &value(1, 1) },
        Change::Remove { key: &[0; KEY_BYTES - 1] },
    ]);
    assert!(matches!(short, Err(WriteError::KeySize { .. })), "{short:?}");
    let long = index.write_batch(&[Change::Put { key: &key(1), value: &[0; VALUE_BYTES + 1] }]);
    assert!(matches!(long, Err(WriteError::ValueSize { .. })), "{long:?}");
    compare(&mut index, &model).unwrap();
    let mut numbers = (0..).step_by(7).map(|number: u32| number % 10_007);
    while refused < 5 {
        let count = index.batch_max().min(5);
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
    for (turn, numbers) in there.chunks(4).enumerate() {
        let version = (turn % 3 > 0).then_some(2);
        let batch: Vec<_> = numbers.iter().map(|&number| (number, version)).collect();
        write(&mut index, &batch).unwrap();
        apply(&mut model, &batch);
    }
    compare(&mut index, &model).unwrap();
}

/// A run in which the device gives up chip operation `at`, once.
///
/// Returns whether it did so in a batch, and whether that batch is there.
fn run_error(
    options: &Options,
    formatted: &Chip,
    at: u64,
    cut: Cut,
) -> Result<(bool, bool), String> {
    let (mut chip, mut ram) = (formatted.clone(), ram(options));
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    chip.give_up_at(at, cut);
    let mut model = Model::new();
    let Ok(mut index): Result<Tested<'_, '_>, _> = Index::open(&mut chip, options, &mut ram) else {
        return Ok((true, false));
    };
    for turn in 0..80 {
        let most = index.batch_max().min(6);
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
                let mut index: Tested<'_, '_> =
                    Index::open(&mut chip, options, &mut ram).map_err(text)?;
                compare(&mut index, &after)?;
                return Ok((true, is_there));
            }
            Err(error) => return Err(text(error)),
        }
    }
    Ok((false, false))
}

#[test]
fn a_device_that_gives_up_in_a_batch_leaves_all_of_it_or_nothing() {
    let share = Share::one_in(5);
    for write_buffer in [0, 1] {
        let options = Options { write_buffer, journal_pages: Some(7), ..OPTIONS };
        let (mut chip, mut room) = (Chip::with_seed(CHIP, seed()), ram(&options));
        Index::<_, Tnc>::format(&mut chip, &options, &mut room).unwrap();
        let (mut errors, mut there) = (0, 0);
        'all: for at in (0..).filter(|&at| share.takes(at)) {
            for cut in Cut::ALL {
                match run_error(&options, &chip, at, cut) {
                    Ok((false, _)) => break 'all,
                    Ok((true, is_there)) => {
                        (errors, there) = (errors + 1, there + u32::from(is_there));
                    }
                    Err(what) => panic!("buffer {write_buffer}, {cut:?} at {at}: {what}"),
                }
            }
        }
        println!("buffer {write_buffer}: {errors} errors, {there} there");
        assert!(errors > 200 && there < errors, "{errors} errors, {there} there");
    }
}
