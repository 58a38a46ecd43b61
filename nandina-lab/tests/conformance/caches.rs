//! Page caches of every size do not change the content of an index.
//!
//! After a cut it has the state after one of the changes since the last flush, never one in between
//! and never an earlier one.

use nandina::store::Description;
use nandina::{Index, Options, ReadError, RelocationMode, System, WriteError};
use nandina_sim::{Chip, ChipError, Cut, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// Sizes of read and write cache, and page buffers (0: the system's default).
const SIZES: [(usize, usize, usize); 8] =
    [(1, 0, 0), (5, 0, 2), (0, 1, 0), (1, 1, 2), (2, 2, 0), (0, 3, 2), (4, 4, 0), (3, 70, 6)];

fn case((read_cache, write_cache, buffers): (usize, usize, usize), moves: RelocationMode) -> Case {
    let mut case = Case::new(SMALL);
    let page_buffers = (buffers > 0).then_some(buffers);
    case.options = Options { read_cache, write_cache, page_buffers, moves, ..case.options };
    case
}

struct Equal;

impl Check for Equal {
    fn concerns(&self, system: &Description) -> bool {
        system.has_write_cache()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for (turn, sizes) in Share::one_in(4).of(SIZES.into_iter().enumerate()) {
            let moves =
                if turn % 2 == 0 { RelocationMode::Together } else { RelocationMode::Alone };
            let case = case(sizes, moves);
            let mut random = ChaCha8Rng::seed_from_u64(seed() + turn as u64);
            with_index::<S, _>(&case, |index| {
                let mut model = Model::new();
                for turn in 0..6_000u32 {
                    let number = random.random_range(0..420);
                    match random.random_range(0..20) {
                        0..12 => match index.insert(&key(number), &value(number, turn)) {
                            Ok(_) => {
                                model.insert(key(number).to_vec(), value(number, turn).to_vec());
                            }
                            Err(WriteError::Full { .. }) => {}
                            Err(error) => return Err(format!("{sizes:?}, turn {turn}: {error:?}")),
                        },
                        12..17 => {
                            index.remove(&key(number)).map_err(text)?;
                            model.remove(&key(number)[..]);
                        }
                        17 if turn % 7 == 0 => index.flush().map_err(text)?,
                        18 if turn % 7 == 0 => {
                            index.gc_step(400).map_err(text)?;
                        }
                        _ => {
                            let found = index.get(&key(number)).map_err(text)?;
                            if found != model.get(&key(number)[..]).map(|value| &value[..]) {
                                return Err(format!("{sizes:?}, turn {turn}: get {found:?}"));
                            }
                        }
                    }
                    if turn % 500 == 0 {
                        compare(index, &model).map_err(|what| format!("{sizes:?}: {what}"))?;
                    }
                }
                // Remove all records, level by level.
                for number in 0..420 {
                    index.remove(&key(number)).map_err(text)?;
                }
                model.clear();
                compare(index, &model).map_err(|what| format!("{sizes:?}, emptied: {what}"))
            })?;
        }
        Ok(())
    }
}

#[test]
fn an_index_with_caches_is_what_it_is_without() {
    for_every_system(&Equal);
}

struct CutAnywhere;

impl Check for CutAnywhere {
    fn concerns(&self, system: &Description) -> bool {
        system.has_write_cache()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut lost = 0;
        let sizes = [(0, 1, 0), (1, 2, 2), (2, 4, 0), (0, 9, 0), (0, 60, 5)];
        for sizes in Share::one_in(2).of(sizes) {
            let mut case = case(sizes, RelocationMode::Together);
            case.profile.geometry.blocks = 16;
            let case = case.suited::<S>();
            let mut random = ChaCha8Rng::seed_from_u64(seed() + sizes.1 as u64);
            let mut chip = Chip::with_seed(case.profile, seed());
            let mut ram = case.ram::<S>();
            drop(Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?);
            let mut model = Model::new();
            for session in 0..250u32 {
                let cut = Cut::ALL[random.random_range(0..Cut::ALL.len())];
                chip.cut_at(random.random_range(0..120), cut);
                // The permitted states: that at the last flush, and after each change since.
                let mut states = vec![model.clone()];
                if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                    for turn in 0..200 {
                        let number = random.random_range(0..120);
                        let mut next = states.last().cloned().unwrap_or_default();
                        let result = if random.random_range(0..4) == 0 {
                            next.remove(&key(number)[..]);
                            index.remove(&key(number)).map(drop)
                        } else {
                            let version = session * 1000 + turn;
                            next.insert(key(number).to_vec(), value(number, version).to_vec());
                            index.insert(&key(number), &value(number, version)).map(drop)
                        };
                        states.push(next);
                        match result {
                            Ok(_) => {}
                            Err(WriteError::Full { .. }) => {
                                states.pop();
                            }
                            Err(WriteError::Device(ChipError::PowerLost)) => break,
                            Err(error) => return Err(format!("{sizes:?}: {error:?}")),
                        }
                        if random.random_range(0..9) == 0 {
                            match index.flush() {
                                Ok(()) => drop(states.drain(..states.len() - 1)),
                                Err(WriteError::Device(ChipError::PowerLost)) => break,
                                Err(error) => return Err(format!("{sizes:?}: {error:?}")),
                            }
                        }
                    }
                }
                chip.restore_power();
                let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram)
                    .map_err(|error| format!("{sizes:?}, session {session}: {error:?}"))?;
                if index.statistics().unexplained_pages > 0 {
                    return Err("a cut is said to be more than a cut".into());
                }
                let found = contents(&mut index).map_err(text)?;
                let Some(at) = states.iter().rposition(|state| *state == found) else {
                    return Err(format!(
                        "{sizes:?}, session {session}, {cut:?}: none of {} states",
                        states.len()
                    ));
                };
                lost += states.len() - 1 - at;
                model = found;
                compare(&mut index, &model)?;
            }
        }
        if lost > 0 { Ok(()) } else { Err("no change was ever kept from the chip".into()) }
    }
}

fn contents<S: System>(index: &mut Index<'_, &mut Chip, S>) -> Result<Model, ReadError<ChipError>> {
    let mut model = Model::new();
    let mut range = index.range(..)?;
    while let Some((key, value)) = range.next()? {
        model.insert(key.to_vec(), value.to_vec());
    }
    Ok(model)
}

#[test]
fn after_a_cut_the_index_is_as_after_one_of_the_changes() {
    for_every_system(&CutAnywhere);
}

struct Saves;

impl Check for Saves {
    fn concerns(&self, system: &Description) -> bool {
        system.has_write_cache()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut operations = Vec::new();
        for sizes in [(0, 0, 0), (8, 0, 0), (8, 16, 0)] {
            let mut case = case(sizes, RelocationMode::Together);
            case.profile = TINY;
            case.profile.geometry.blocks = 40;
            let counters = with_index::<S, _>(&case, |index| {
                for turn in 0..600u32 {
                    index.insert(&key(turn % 200), &value(turn, turn)).map_err(text)?;
                }
                index.flush().map_err(text)?;
                Ok(index.flash().counters())
            })?;
            operations.push((counters.reads, counters.programs));
        }
        let [none, reads, both] = operations[..] else { return Err("three runs".into()) };
        if reads.0 >= none.0 || reads.1 != none.1 || both.1 >= reads.1 {
            return Err(format!("caches of ascending size did not save: {operations:?}"));
        }
        Ok(())
    }
}

#[test]
fn larger_caches_cost_fewer_operations() {
    for_every_system(&Saves);
}
