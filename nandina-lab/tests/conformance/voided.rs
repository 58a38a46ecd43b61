//! Costs where a checkpoint ends a session.
//!
//! No change and no idle step writes such a checkpoint. But one that a mount did not use has to be
//! made void before a block is opened, and that belongs to the cost of a step.

use nandina::flash::profile::NOR;
use nandina::store::Description;
use nandina::{RelocationMode, System, WearPolicy, plan};
use nandina_lab::torn::Torn;

use crate::checkpoints::case;
use crate::formats::filled;
use crate::harness::*;

/// Erases that make a checkpoint void, where no block fails: those of both anchors.
const VOIDING: u64 = 2;

struct NotCounted;

impl Check for NotCounted {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints_at_close && system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for verify in [false, true] {
            let mut with = case(200, 4, RelocationMode::Together, None).suited::<S>();
            with.options.verify = verify;
            let mut without = with;
            (without.options.checkpoints, without.options.wear) = (None, Some(WearPolicy::Counted));
            let planned = |case: &Case| {
                plan::<S>(&case.profile.geometry, &case.profile.capabilities, &case.options, 300)
                    .map_err(text)
            };
            let (with, without) = (planned(&with)?, planned(&without)?);
            let voiding = VOIDING * (1 + u64::from(verify));
            let step = u64::from(without.gc_step_least) + voiding;
            let (change, least) = (with.change, without.change);
            if u64::from(with.gc_step_least) != step
                || change.programs != least.programs
                || change.erases > least.erases + VOIDING
                || change.reads > least.reads + voiding
            {
                return Err(format!("with checkpoints {with:?}, without {without:?}"));
            }
        }
        Ok(())
    }
}

#[test]
fn no_change_and_no_step_is_planned_with_a_checkpoint_that_only_close_writes() {
    for_every_system(&NotCounted);
}

/// A step is the first since the mount to open a block, after a close without a checkpoint.
struct FirstStep;

impl FirstStep {
    /// A chip whose last `close` could write no anchor, and so no checkpoint.
    fn closed<S: System>(case: &Case, ram: &mut [u8]) -> Result<Torn, String> {
        let mut chip = filled::<S>(case, 40, ram)?;
        for worn in [0..0, 0..2] {
            chip.worn = worn;
            let mut index = open_on::<S>(&mut chip, &case.options, ram).map_err(text)?;
            let version = 1 + device_of::<Torn, S>(&index).worn.end;
            index.insert(&key(0), &value(0, version)).map_err(text)?;
            index.flush().map_err(text)?;
            index.close();
        }
        chip.worn = 0..0;
        Ok(chip)
    }
}

impl Check for FirstStep {
    fn concerns(&self, system: &Description) -> bool {
        // A step commits what waits in the write buffer.
        system.checkpoints_at_close && system.replays()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut worked = 0;
        for verify in [false, true] {
            let mut case = Case::new(LONG);
            case.options.checkpoints = Some(1);
            // The patrol would use up the rest of each budget.
            case.profile.ecc = NOR.ecc;
            case.options.verify = verify;
            case.options.write_buffer = 1;
            let case = case.suited::<S>();
            let mut ram = case.ram::<S>();
            let closed = Self::closed::<S>(&case, &mut ram)?;
            for budget in 1..120 {
                let mut chip = closed.clone();
                let mut index = open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?;
                if index.statistics().from_checkpoint {
                    return Err("a checkpoint was written".into());
                }
                index.insert(&key(1), &value(1, budget)).map_err(text)?;
                for _ in 0..12 {
                    let before = index.flash().simulated().counters().operations();
                    let done = index.gc_step(budget).map_err(text)?;
                    let taken = index.flash().simulated().counters().operations() - before;
                    worked += taken;
                    if taken > budget.into() || taken != u64::from(done.operations) {
                        return Err(format!("verify {verify}: {taken} of {budget}, {done:?}"));
                    }
                }
            }
        }
        if worked == 0 { Err("no step did anything".into()) } else { Ok(()) }
    }
}

#[test]
fn a_first_step_that_makes_a_checkpoint_void_keeps_to_its_budget() {
    for_every_system(&FirstStep);
}
