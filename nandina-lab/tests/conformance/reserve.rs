//! The reserve for cuts is not used for bad blocks.
//!
//! As long as no more blocks are bad than the chip permits, blocks that fail in the middle of a
//! collection leave room for it, however much of the reserve earlier cuts have taken.

use nandina::flash::profile::DATAFLASH_264;
use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::store::Description;
use nandina::{Index, RelocationMode, Statistics, System, WriteError};
use nandina_lab::hand_on;
use nandina_sim::{Chip, ChipError, Cut};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// The operation that fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// An erase, and the chip says so.
    Erase,
    /// An erase that silently does nothing.
    SilentErase,
    /// A program, and the chip says so.
    Program,
}

/// A chip on which some operations of a kind fail, one after another.
struct Failing {
    chip: Chip,
    failure: Failure,
    /// Operations of this kind before those that fail.
    until: u32,
    /// Operations that are still to fail.
    left: u32,
}

impl Failing {
    fn strikes(&mut self) -> bool {
        let now = self.until == 0 && self.left > 0;
        self.until = self.until.saturating_sub(1);
        self.left -= u32::from(now);
        now
    }
}

impl Bus for Failing {
    fn simulated(&self) -> &Chip {
        &self.chip
    }
}

impl Flash for Failing {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, rewrite, is_bad, mark_bad);

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if matches!(self.failure, Failure::Program) && self.strikes() {
            return Err(ChipError::ProgramFailed(page));
        }
        match self.chip.program(page, main, spare) {
            // A page that was not erased cannot be programmed: it does not hold what it should.
            Err(ChipError::Rule { .. }) if matches!(self.failure, Failure::SilentErase) => Ok(()),
            programmed => programmed,
        }
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        let failure = self.failure;
        match failure {
            Failure::Erase if self.strikes() => Err(ChipError::EraseFailed(block)),
            Failure::SilentErase if self.strikes() => Ok(()),
            _ => self.chip.erase(block),
        }
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        if matches!(self.failure, Failure::Program) && self.strikes() {
            return Err(ChipError::ProgramFailed(page));
        }
        self.chip.overwrite(page, offset, bytes)
    }
}

/// Cuts in a row.
const SESSIONS: u32 = 400;

/// Cuts touch the reserve of a full chip, then blocks fail in the next change.
struct FailsAfterCuts {
    moves: RelocationMode,
    /// Blocks that fail in one change: all that are still permitted to.
    blocks: u32,
}

impl FailsAfterCuts {
    fn case(&self) -> Case {
        let mut case = Case::new(DATAFLASH_264.with_blocks(39));
        case.profile.capabilities.bad_blocks_per_mille = 200;
        (case.options.moves, case.options.verify) = (self.moves, true);
        case
    }

    /// Fills the chip with as many records as it takes. Returns their number.
    fn fill<S: System>(&self, chip: &mut Chip) -> Result<u32, String> {
        let case = self.case();
        let mut ram = case.ram::<S>();
        let mut index = Index::<_, S>::format(chip, &case.options, &mut ram).map_err(text)?;
        for number in 0.. {
            match index.insert(&key(number * 7919), &value(number, 0)) {
                Ok(_) => {}
                Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => return Ok(number),
                Err(error) => return Err(text(error)),
            }
        }
        Err("the chip is never full".into())
    }

    /// Cuts power soon in a session of changes.
    ///
    /// Returns the room and the chip that it leaves.
    fn cut<S: System>(
        &self,
        chip: &Chip,
        random: &mut ChaCha8Rng,
        records: u32,
        version: u32,
    ) -> Result<(u32, Chip), String> {
        let case = self.case();
        let mut ram = case.ram::<S>();
        let mut chip = chip.clone();
        // The cost of the mount is measured on a copy, since it writes.
        let mut copy = chip.clone();
        let start = copy.counters().operations();
        drop(Index::<_, S>::open(&mut copy, &case.options, &mut ram).map_err(text)?);
        let mounting = copy.counters().operations() - start;
        let first = random.random_range(0..records);
        chip.cut_at(mounting + random.random_range(0..60), Cut::ALL[random.random_range(0..5)]);
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in first..first + 40 {
            let number = number % records;
            if index.insert(&key(number * 7919), &value(number, version)).is_err() {
                break;
            }
        }
        drop(index);
        chip.restore_power();
        let index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        let free_pages = index.statistics().free_pages;
        drop(index);
        Ok((free_pages, chip))
    }

    /// Replaces a record while blocks fail. Returns whether all of them did.
    fn change<S: System>(
        &self,
        chip: &Chip,
        failure: Failure,
        until: u32,
        number: u32,
    ) -> Result<bool, String> {
        let case = self.case();
        let mut ram = case.ram::<S>();
        let mut device = Failing { chip: chip.clone(), failure, until, left: self.blocks };
        let bus: &mut dyn Bus = &mut device;
        let mut index = Index::<_, S>::open(bus, &case.options, &mut ram).map_err(text)?;
        let before = index.statistics();
        let at = |what: String, after: Statistics| {
            format!("{failure:?} {until}: {what}, before {before:?}, after {after:?}")
        };
        let changed = index.insert(&key(number * 7919), &value(number, u32::MAX));
        let after = index.statistics();
        changed.map_err(|error| at(text(error), after))?;
        let found = index.get(&key(number * 7919)).map_err(text)?;
        if found != Some(&value(number, u32::MAX)[..]) {
            return Err(at(format!("the change is not there: {found:?}"), after));
        }
        drop(index);
        Ok(device.left == 0)
    }
}

impl Check for FailsAfterCuts {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = self.case();
        let reserve_blocks = case.profile.capabilities.bad_blocks_max(case.profile.geometry.blocks);
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let mut chip = Chip::with_seed(suited::<S>(case.profile), seed());
        chip.spoil_blocks(reserve_blocks - self.blocks);
        let records = self.fill::<S>(&mut chip)?;
        let (mut least, mut failed) = (u32::MAX, 0_u64);
        let share = Share::one_in(20);
        for session in 0..share.length(SESSIONS) {
            let mut worst: Option<(u32, Chip)> = None;
            for _ in 0..8 {
                let after = self.cut::<S>(&chip, &mut random, records, session)?;
                if worst.as_ref().is_none_or(|(free_pages, _)| after.0 < *free_pages) {
                    worst = Some(after);
                }
            }
            let Some((free_pages, worst)) = worst else { break };
            chip = worst;
            least = least.min(free_pages);
            for failure in [Failure::Erase, Failure::SilentErase, Failure::Program] {
                for until in 0..3 {
                    let number = random.random_range(0..records);
                    let hit = self
                        .change::<S>(&chip, failure, until, number)
                        .map_err(|what| format!("session {session}: {what}"))?;
                    failed += u64::from(hit);
                }
            }
        }
        println!("{} {:?}: {least} pages, {failed} times", S::DESCRIPTION.key, self.moves);
        if failed > share.least(SESSIONS.into()) {
            Ok(())
        } else {
            Err(format!("only {failed} times blocks failed"))
        }
    }
}

#[test]
fn blocks_that_fail_after_cuts_are_paid_from_the_reserve_for_bad_blocks() {
    let cases = [RelocationMode::Alone, RelocationMode::Together]
        .map(|moves| [1, 3].map(|blocks| (moves, blocks)));
    for (moves, blocks) in Share::one_in(4).of(cases.into_iter().flatten()) {
        for_every_system(&FailsAfterCuts { moves, blocks });
    }
}
