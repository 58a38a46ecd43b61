//! The reserve for cuts is not for bad blocks: as long as fewer blocks are bad than may become so, a block
//! that fails in the middle of a collection leaves room for it, however much the cuts before have taken.

use nandina::flash::profile::DATAFLASH_264;
use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use nandina::place::Placement;
use nandina::{Index, Moves, Statistics, WriteError};
use nandina_sim::{Chip, ChipError, Cut};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// What fails once.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// An erase, and the chip says so.
    Erase,
    /// An erase that does nothing and says that it did.
    SilentErase,
    /// A program, and the chip says so.
    Program,
}

/// A chip of which one operation fails, so many of its kind before it.
#[derive(Clone)]
struct FailsOnce {
    chip: Chip,
    failure: Failure,
    until: Option<u32>,
}

impl FailsOnce {
    fn strikes(&mut self) -> bool {
        let now = self.until == Some(0);
        self.until = self.until.and_then(|until| until.checked_sub(1));
        now
    }
}

impl Flash for FailsOnce {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.chip.capabilities()
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.chip.read(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if matches!(self.failure, Failure::Program) && self.strikes() {
            return Err(ChipError::ProgramFailed(page));
        }
        match self.chip.program(page, main, spare) {
            // What was not erased takes no program: the page does not hold what it should.
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

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.chip.rewrite(page, main, spare)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, ChipError> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.mark_bad(block)
    }
}

/// Cuts in a row.
const SESSIONS: u32 = 400;

/// Cuts touch the reserve of a full chip, then a block fails in the next change.
struct FailsAfterCuts {
    moves: Moves,
}

impl FailsAfterCuts {
    fn case(&self) -> Case {
        let mut case = Case::new(DATAFLASH_264.with_blocks(39));
        case.profile.capabilities.bad_blocks_per_mille = 200;
        (case.options.moves, case.options.verify) = (self.moves, true);
        case
    }

    /// Fills the chip with as many records as it takes, and answers how many these are.
    fn fill<S: Placement>(&self, chip: &mut Chip) -> Result<u32, String> {
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

    /// Cuts power soon in a session of changes, and answers the room and the chip that it leaves.
    fn cut<S: Placement>(
        &self,
        chip: &Chip,
        random: &mut ChaCha8Rng,
        records: u32,
        version: u32,
    ) -> Result<(u32, Chip), String> {
        let case = self.case();
        let mut ram = case.ram::<S>();
        let mut chip = chip.clone();
        let start = chip.counters().operations();
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        let mounting = index.flash().counters().operations() - start;
        drop(index);
        let first = random.random_range(0..records);
        chip.cut_at(mounting + random.random_range(0..60), Cut::ALL[random.random_range(0..5)]);
        index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
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

    /// Replaces a record while a block fails. Answers whether one failed.
    fn change<S: Placement>(
        &self,
        chip: &Chip,
        failure: Failure,
        until: u32,
        number: u32,
    ) -> Result<bool, String> {
        let case = self.case();
        let mut ram = case.ram::<S>();
        let mut device = FailsOnce { chip: chip.clone(), failure, until: Some(until) };
        let mut index = Index::<_, S>::open(&mut device, &case.options, &mut ram).map_err(text)?;
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
        Ok(device.until.is_none())
    }
}

impl Check for FailsAfterCuts {
    fn run<S: Placement + 'static>(&self) -> Outcome {
        let case = self.case();
        let reserve_blocks = case.profile.capabilities.bad_blocks_max(case.profile.geometry.blocks);
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let mut chip = Chip::with_seed(case.profile, seed());
        // All but one of the blocks that may be bad are.
        chip.spoil_blocks(reserve_blocks - 1);
        let records = self.fill::<S>(&mut chip)?;
        let (mut least, mut failed) = (u32::MAX, 0);
        for session in 0..SESSIONS {
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
                    failed += u32::from(hit);
                }
            }
        }
        println!("{} {:?}: {least} pages, {failed} failures", S::DESCRIPTION.key, self.moves);
        if failed > SESSIONS { Ok(()) } else { Err(format!("only {failed} blocks failed")) }
    }
}

#[test]
fn a_block_that_fails_after_cuts_is_paid_from_the_reserve_for_bad_blocks() {
    for moves in [Moves::Alone, Moves::Together] {
        for_every_system(&FailsAfterCuts { moves });
    }
}
