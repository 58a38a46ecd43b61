//! Power cuts: at every chip operation of a small run, and without end.
//!
//! Cuts come before, inside and after the operation. Acknowledged changes survive; another is there
//! wholly or not at all.

use nandina::flash::{Geometry, Profile};
use nandina::store::Description;
use nandina::{Index, System, WriteError};
use nandina_lab::systems::SYSTEMS;
use nandina_lab::torture::{CutRun, Hardships, Mode, Shares, Torture, replay, torture_shares};
use nandina_sim::{Chip, ChipError, Cut, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;
use crate::model::Step;

fn apply(model: &mut Model, step: Step) {
    match step {
        Step::Put(number, version) => {
            model.insert(key(number).to_vec(), value(number, version).to_vec());
        }
        Step::Remove(number) => {
            model.remove(&key(number)[..]);
        }
        Step::Get(_) | Step::Reopen => {}
    }
}

/// Makes `steps` until power fails.
///
/// Returns the model, and the model after the operation that was cut.
fn run_until_cut<S: System>(
    index: &mut Index<'_, &mut Chip, S>,
    model: &mut Model,
    steps: &[Step],
) -> Result<Option<Model>, String> {
    for &step in steps {
        let result = match step {
            Step::Put(number, version) => {
                index.insert(&key(number), &value(number, version)).map(drop)
            }
            Step::Remove(number) => index.remove(&key(number)).map(drop),
            Step::Get(_) | Step::Reopen => continue,
        };
        match result {
            Ok(_) => apply(model, step),
            Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => {}
            Err(WriteError::Device(ChipError::PowerLost)) => {
                let mut after = model.clone();
                apply(&mut after, step);
                return Ok(Some(after));
            }
            Err(error) => return Err(text(error)),
        }
    }
    Ok(None)
}

/// Opens the chip and compares it with the two permitted states; returns the one found.
fn recover<S: System>(
    case: &Case,
    chip: &mut Chip,
    before: Model,
    after: Model,
) -> Result<Model, String> {
    let mut ram = case.ram::<S>();
    let mut index = Index::<_, S>::open(chip, &case.options, &mut ram).map_err(text)?;
    match compare(&mut index, &before) {
        Ok(()) => Ok(before),
        Err(old) => match compare(&mut index, &after) {
            Ok(()) => Ok(after),
            Err(new) => Err(format!("neither the old state ({old}) nor the new one ({new})")),
        },
    }
}

/// Chip operations that a mount of `chip` takes.
fn mounting<S: System>(case: &Case, chip: &Chip) -> Result<u64, String> {
    let (mut probe, mut ram) = (chip.clone(), case.ram::<S>());
    drop(Index::<_, S>::open(&mut probe, &case.options, &mut ram).map_err(text)?);
    Ok(probe.counters().operations() - chip.counters().operations())
}

/// Tortures every system; none may lose a record, and enough must have been done.
fn survive(torture: Torture, shares: Shares, cuts_least: u64, refreshed_least: u64) {
    survive_if(|_| true, torture, shares, cuts_least, refreshed_least);
}

/// Does the same for the systems that are `concerned`.
fn survive_if(
    concerned: fn(&Description) -> bool,
    torture: Torture,
    shares: Shares,
    cuts_least: u64,
    refreshed_least: u64,
) {
    let (cuts_least, refreshed_least) = (shares.least(cuts_least), shares.least(refreshed_least));
    for system in SYSTEMS.iter().filter(|system| concerned(system)) {
        let report = torture_shares(system.key, torture, shares, &|_| {}).unwrap();
        assert_eq!(report.violations, [], "{}", system.key);
        // Replacing in place takes the fewest chip operations, and no block is collected.
        let cuts_least = if system.collects() { cuts_least } else { cuts_least / 3 };
        assert!(report.cuts >= cuts_least, "only {} cuts", report.cuts);
        // No device on which nodes are replaced in place has an ECC.
        let refreshed_least = if system.collects() { refreshed_least } else { 0 };
        assert!(report.refreshed >= refreshed_least, "only {} refreshed", report.refreshed);
        println!("{report:?}");
    }
}

#[test]
fn two_cuts_at_every_operation_leave_the_old_or_the_new_state() {
    let run = CutRun::SMALL;
    let torture = Torture { mode: Mode::Exhaustive, seed: seed(), run, operations: 0 };
    survive(torture, Shares::one_in(263, 5), 80_000, 0);
}

#[test]
fn two_cuts_at_every_operation_with_checkpoints_leave_the_old_or_the_new_state() {
    let run = CutRun { checkpoints: Some(1), ..CutRun::SMALL };
    let torture = Torture { mode: Mode::Exhaustive, seed: seed(), run, operations: 0 };
    survive_if(|system| system.checkpoints, torture, Shares::one_in(263, 5), 80_000, 0);
}

#[test]
fn two_cuts_at_every_operation_where_a_checkpoint_takes_two_blocks_leave_the_old_or_the_new_state()
{
    let hardships = Hardships { unstable: true, narrow: true, ..Hardships::NONE };
    let run = CutRun { checkpoints: Some(1), hardships, ..CutRun::NARROW };
    let torture = Torture { mode: Mode::Exhaustive, seed: seed(), run, operations: 0 };
    // The chip has no size for a journal: its commits take blocks, with which nothing is collected.
    let concerned =
        |system: &Description| system.checkpoints && system.collects() && !system.replays();
    survive_if(concerned, torture, Shares::one_in(1543, 7), 80_000, 0);
}

#[test]
fn a_cut_at_every_operation_of_a_larger_run_leaves_the_old_or_the_new_state() {
    for lean in [false, true] {
        let run = CutRun { lean, ..CutRun::LARGE };
        let torture = Torture { mode: Mode::Linear, seed: seed(), run, operations: 0 };
        survive(torture, Shares::one_in(139, 1), 3_000, 0);
    }
}

#[test]
fn swarms_of_faults_lose_nothing_and_a_healed_chip_goes_on() {
    let run = CutRun::SMALL;
    let torture = Torture { mode: Mode::Swarm, seed: seed(), run, operations: 400_000 };
    survive(torture, Shares::one_in(20, 1), 5_000, 1);
}

/// Each session is cut after a few operations, thousands of times in a row.
///
/// The reserve must not run out, and the changes acknowledged in between must add up.
struct CutsWithoutEnd {
    case: Case,
    records: u32,
    sessions: Share,
}

impl Check for CutsWithoutEnd {
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = &self.case.suited::<S>();
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let mut ram = case.ram::<S>();
        let mut chip = Chip::with_seed(suited::<S>(case.profile), seed());
        Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let mut model = Model::new();
        let mut acknowledged = 0u64;
        for session in 0..self.sessions.length(3_000) {
            let steps: Vec<Step> = (0..40)
                .map(|_| match (random.random_range(0..self.records), random.random_range(0..5)) {
                    (number, 0) => Step::Remove(number),
                    (number, _) => Step::Put(number, session),
                })
                .collect();
            let cut = Cut::ALL[random.random_range(0..Cut::ALL.len())];
            // Most cuts fall into the first few changes; now and then power lasts long enough to
            // refill the reserve, whose search for a victim reads a part of the chip.
            let window = if session % 4 == 0 { 400 } else { 60 };
            // Of a block, many small parts are read.
            let window = if S::DESCRIPTION.has_leaf_blocks() { 20 * window } else { window };
            chip.cut_at(mounting::<S>(case, &chip)? + random.random_range(0..window), cut);
            let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram)
                .map_err(|error| format!("session {session}: {error:?}"))?;
            let at = |what| format!("session {session}: {what}");
            let records = model.clone();
            let after = run_until_cut(&mut index, &mut model, &steps).map_err(at)?;
            acknowledged += u64::from(records != model);
            drop(index);
            chip.restore_power();
            let after = after.unwrap_or_else(|| model.clone());
            model = recover::<S>(case, &mut chip, model, after).map_err(at)?;
        }
        if acknowledged > self.sessions.least(500) {
            Ok(())
        } else {
            Err(format!("{acknowledged} sessions got on"))
        }
    }
}

#[test]
fn cuts_without_end_never_use_up_the_reserve() {
    // More records than fit: the chips are full most of the time.
    let sessions = Share::one_in(16);
    for (profile, records) in Share::one_in(3).of([(TINY, 400), (SMALL, 5_000), (LONG, 6_000)]) {
        for_every_system(&CutsWithoutEnd { case: Case::new(profile), records, sessions });
    }
}

/// Two faults that swarms found in checkpoints.
///
/// A checkpoint that a mount could not use looked valid again once its last block was erased again
/// and cut. And an old anchor named, by chance, the block of a newer checkpoint.
#[test]
fn a_checkpoint_that_a_mount_did_not_use_never_comes_back() {
    for case in ["swarm/mu/seed 34", "swarm/mu/seed 1718"] {
        assert_eq!(replay(case), Ok(nandina_lab::torture::Outcome::Survived), "{case}");
    }
    let sessions = Share::one_in(16);
    for (blocks, records) in Share::one_in(3).of([(12, 400), (14, 400), (20, 600)]) {
        let profile = Profile { geometry: Geometry { blocks, ..TINY.geometry }, ..TINY };
        let mut case = Case::new(profile);
        case.options.checkpoints = Some(1);
        for_every_system(&CutsWithoutEnd { case, records, sessions });
    }
}
