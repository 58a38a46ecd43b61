//! The index is the same however the block to collect is chosen.
//!
//! A cut loses no record, a full chip continues, and no change costs more than planned.

use nandina::flash::{Geometry, Profile};
use nandina::store::Description;
use nandina::{BadOption, GcPolicy, Index, OpenError, RelocationMode, System, WriteError, plan};
use nandina_sim::{Chip, ChipError, Cut, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// Choices, and bytes of the spare area: with room for a hint, and without.
const CHOICES: [(GcPolicy, u32); 6] = [
    (GcPolicy::Fewest, 64),
    (GcPolicy::CostBenefit, 64),
    (GcPolicy::Tracked(1), 64),
    (GcPolicy::Tracked(8), 64),
    (GcPolicy::Tracked(64), 0),
    (GcPolicy::Sampled(4), 64),
];

/// The choices of `S`: only systems that write paths keep count of blocks.
fn choices<S: System>() -> impl Iterator<Item = (GcPolicy, u32)> {
    let paths = S::DESCRIPTION.root_commits();
    CHOICES.into_iter().filter(move |(choice, _)| paths || !matches!(choice, GcPolicy::Tracked(_)))
}

pub fn case(victims: GcPolicy, spare_bytes: u32, moves: RelocationMode) -> Case {
    let geometry = Geometry { blocks: 14, spare_bytes, ..LONG.geometry };
    let mut case = Case::new(Profile { geometry, ..TINY });
    case.options.victims = victims;
    case.options.moves = moves;
    case
}

struct CutAnywhere;

impl Check for CutAnywhere {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for (victims, spare_bytes) in Share::one_in(3).of(choices::<S>()) {
            for moves in [RelocationMode::Together, RelocationMode::Alone] {
                let case = case(victims, spare_bytes, moves);
                let at = |what| format!("{victims:?}, {spare_bytes}, {moves:?}: {what}");
                cut_anywhere::<S>(&case).map_err(at)?;
            }
        }
        Ok(())
    }
}

pub fn cut_anywhere<S: System>(case: &Case) -> Outcome {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let mut chip = Chip::with_seed(suited::<S>(case.profile), seed());
    let mut ram = case.ram::<S>();
    drop(Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?);
    let (mut model, mut collected, mut mounting) = (Model::new(), 0, 0);
    let share = Share::one_in(3);
    for session in 0..share.length(60) {
        let mut cut = None;
        // Cut in the mount, or after it.
        let behind = if session % 4 == 0 { 0 } else { mounting };
        let operation = behind + random.random_range(100..2500);
        chip.cut_at(operation, Cut::ALL[session as usize % Cut::ALL.len()]);
        if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
            for turn in 0..600 {
                let number = random.random_range(0..1500);
                let new = match random.random_range(0..5) {
                    0 => None,
                    _ => Some(value(number, session * 1000 + turn)),
                };
                let result = match &new {
                    Some(value) => index.insert(&key(number), value).map(drop),
                    None => index.remove(&key(number)).map(drop),
                };
                let apply = |model: &mut Model| match new {
                    Some(value) => drop(model.insert(key(number).to_vec(), value.to_vec())),
                    None => drop(model.remove(&key(number)[..])),
                };
                match result {
                    Ok(_) => apply(&mut model),
                    Err(WriteError::Full { .. }) => {}
                    Err(WriteError::Device(ChipError::PowerLost)) => {
                        let mut next = model.clone();
                        apply(&mut next);
                        cut = Some(next);
                        break;
                    }
                    Err(error) => return Err(format!("session {session}: {error:?}")),
                }
            }
            collected += index.statistics().collected_blocks;
        }
        chip.restore_power();
        let start = chip.counters().operations();
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        mounting = index.flash().counters().operations() - start;
        if let Err(old) = compare(&mut index, &model) {
            let next = cut.ok_or_else(|| old.clone())?;
            compare(&mut index, &next).map_err(|new| format!("neither {old} nor {new}"))?;
            model = next;
        }
    }
    if collected > share.least(20) {
        Ok(())
    } else {
        Err(format!("only {collected} blocks were collected"))
    }
}

#[test]
fn however_a_victim_is_chosen_a_cut_leaves_the_old_or_the_new_state() {
    for_one_system_in(2, &CutAnywhere);
}

struct FullChip;

impl Check for FullChip {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut programs = Vec::new();
        for (victims, spare_bytes) in choices::<S>() {
            let case = case(victims, spare_bytes, RelocationMode::Together);
            let Profile { geometry, capabilities, .. } = suited::<S>(case.profile);
            let done = with_index::<S, _>(&case, |index| {
                let mut records = 0;
                loop {
                    match index.insert(&key(records * 7919), &value(records, 0)) {
                        Ok(_) => records += 1,
                        Err(WriteError::Full { .. }) => break,
                        Err(error) => return Err(text(error)),
                    }
                }
                let most = plan::<S>(&geometry, &capabilities, &case.options, records)
                    .map_err(text)?
                    .change;
                let mut random = ChaCha8Rng::seed_from_u64(seed());
                let start = index.flash().counters();
                for turn in 0..3000 {
                    let before = index.flash().counters();
                    let number = random.random_range(0..records);
                    index.insert(&key(number * 7919), &value(number, turn)).map_err(text)?;
                    let after = index.flash().counters();
                    if after.reads - before.reads > most.reads
                        || after.programs - before.programs > most.programs
                    {
                        return Err(format!(
                            "{victims:?}: {before:?} to {after:?}, planned {most:?}"
                        ));
                    }
                }
                let end = index.flash().counters();
                Ok((end.programs - start.programs, end.reads - start.reads))
            })?;
            programs.push((victims, done));
        }
        println!("{}: {programs:?}", S::DESCRIPTION.key);
        // The choices differ, and those that look pages up cost more reads.
        let (_, fewest) = programs[0];
        let differ = programs[1..].iter().all(|(_, done)| *done != fewest);
        let mut hinted = programs.iter().filter(|(by, _)| matches!(by, GcPolicy::Tracked(_)));
        let hinted = hinted.all(|(_, done)| done.1 > fewest.1);
        if differ && hinted { Ok(()) } else { Err(format!("{programs:?}")) }
    }
}

#[test]
fn however_a_victim_is_chosen_a_full_chip_goes_on_within_the_plan() {
    for_one_system_in(2, &FullChip);
}

struct Untracked;

impl Check for Untracked {
    fn concerns(&self, system: &Description) -> bool {
        !system.root_commits()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = case(GcPolicy::Tracked(1), 64, RelocationMode::Together);
        let mut chip = Chip::new(suited::<S>(case.profile));
        let mut ram = vec![0; 1 << 16];
        let formatted = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map(drop);
        let refused = Err(OpenError::BadOption { reason: BadOption::TrackedWithoutPaths });
        if formatted == refused { Ok(()) } else { Err(format!("{formatted:?}")) }
    }
}

#[test]
fn blocks_are_kept_count_of_only_where_paths_are_written() {
    for_every_system(&Untracked);
}
