//! Validity by search: a count for each block instead of a bit for each page.
//!
//! The index is the same, at every cut and on a full chip, takes less RAM and more reads, and no
//! change costs more than planned.

use std::collections::BTreeSet;

use nandina::flash::{Capabilities, Flash, Geometry, PageNumber, Pairing, Profile, Reading};
use nandina::store::Description;
use nandina::{
    GcPolicy, Index, LivenessTracking, OpenError, Options, RelocationMode, System, WriteError, plan,
};
use nandina_lab::hand_on;
use nandina_sim::{Chip, ChipError, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;
use crate::victims::cut_anywhere;

fn case(profile: Profile, validity: LivenessTracking, moves: RelocationMode) -> Case {
    let mut case = Case::new(profile);
    (case.options.validity, case.options.moves) = (validity, moves);
    case
}

const ON_LONG_BLOCKS: Profile =
    Profile { geometry: Geometry { blocks: 14, ..LONG.geometry }, ..TINY };

struct CutAnywhere;

impl Check for CutAnywhere {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for moves in [RelocationMode::Together, RelocationMode::Alone] {
            let case = case(ON_LONG_BLOCKS, LivenessTracking::Searched, moves);
            cut_anywhere::<S>(&case).map_err(|what| format!("{moves:?}: {what}"))?;
        }
        Ok(())
    }
}

#[test]
fn pages_that_are_searched_for_are_found_after_any_cut() {
    for_one_system_in(2, &CutAnywhere);
}

struct FullChip;

/// Fills the chip and changes its records. Returns chip operations and bytes of RAM.
fn churn<S: System>(case: &Case) -> Result<(u64, u64, usize), String> {
    let Profile { geometry, capabilities, .. } = case.suited::<S>().profile;
    let ram_bytes = case.ram::<S>().len();
    with_index::<S, _>(case, |index| {
        let mut numbers = BTreeSet::new();
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let mut model = Model::new();
        loop {
            let number = random.random_range(0..1_000_000);
            match index.insert(&key(number), &value(number, 0)) {
                Ok(_) => {
                    numbers.insert(number);
                    model.insert(key(number).to_vec(), value(number, 0).to_vec());
                }
                Err(WriteError::Full { .. }) => break,
                Err(error) => return Err(text(error)),
            }
        }
        let numbers: Vec<_> = numbers.into_iter().collect();
        let most = plan::<S>(&geometry, &capabilities, &case.options, numbers.len() as u32)
            .map_err(text)?
            .change;
        let start = index.flash().counters();
        for turn in 1..2000 {
            let before = index.flash().counters();
            let number = numbers[random.random_range(0..numbers.len())];
            index.insert(&key(number), &value(number, turn)).map_err(text)?;
            model.insert(key(number).to_vec(), value(number, turn).to_vec());
            let after = index.flash().counters();
            let (reads, programs) = (after.reads - before.reads, after.programs - before.programs);
            if reads > most.reads || programs > most.programs {
                return Err(format!("{reads} reads, {programs} programs, planned {most:?}"));
            }
        }
        let end = index.flash().counters();
        compare(index, &model)?;
        let mut violations = Vec::new();
        index.check(|violation| violations.push(violation.to_string())).map_err(text)?;
        if !violations.is_empty() {
            return Err(format!("{violations:?}"));
        }
        Ok((end.reads - start.reads, end.programs - start.programs, ram_bytes))
    })
}

impl Check for FullChip {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for profile in [SMALL, ON_LONG_BLOCKS] {
            let Geometry { blocks, pages_per_block, .. } = profile.geometry;
            let marked =
                churn::<S>(&case(profile, LivenessTracking::Marked, RelocationMode::Together))?;
            let searched =
                churn::<S>(&case(profile, LivenessTracking::Searched, RelocationMode::Together))?;
            println!("{}: {marked:?}, {searched:?}", S::DESCRIPTION.key);
            if searched.0 <= marked.0 {
                return Err(format!("a search took no reads: {marked:?}, {searched:?}"));
            }
            let spared = (blocks * pages_per_block).div_ceil(8).saturating_sub(blocks) as usize;
            // The marks of blocks begin in the last byte of the pages' bits.
            if !(spared.saturating_sub(1)..=spared + 1).contains(&(marked.2 - searched.2)) {
                return Err(format!("{} bytes are spared, not {spared}", marked.2 - searched.2));
            }
        }
        Ok(())
    }
}

#[test]
fn a_full_chip_whose_pages_are_searched_for_goes_on_within_the_plan_in_less_ram() {
    for_one_system_in(3, &FullChip);
}

struct Refused;

impl Check for Refused {
    fn run<S: System + 'static>(&self) -> Outcome {
        let searched = Options { validity: LivenessTracking::Searched, ..Options::new(4, 12) };
        let tracked = Options { victims: GcPolicy::Tracked(1), ..searched };
        let staged = Options { write_cache: 1, ..searched };
        let kept = Options { checkpoints: Some(1), ..searched };
        let refusals =
            [(searched, !S::DESCRIPTION.collects()), (tracked, true), (staged, true), (kept, true)];
        for (options, refused) in refusals {
            let mut chip = Chip::new(suited::<S>(SMALL));
            let mut ram = vec![0; 1 << 16];
            let formatted = Index::<_, S>::format(&mut chip, &options, &mut ram).map(drop);
            if matches!(formatted, Err(OpenError::BadOption { .. })) != refused {
                return Err(format!("{options:?} gave {formatted:?}"));
            }
        }
        Ok(())
    }
}

#[test]
fn what_needs_marks_of_pages_is_refused_without_them() {
    for_every_system(&Refused);
}

/// Garbage that is read with errors is not read again for ever (a swarm found this).
#[test]
fn weak_garbage_among_pages_that_are_searched_for_is_let_go() {
    use nandina_lab::torture::{CutRun, Mode, Torture, torture};
    let run = CutRun::SMALL;
    let swarm = Torture { mode: Mode::Swarm, seed: 810_659, run, operations: 2_000 };
    let report = torture("vm", swarm, &|_| {}).unwrap();
    assert_eq!((report.runs, report.violations), (1, vec![]));
}

/// Reports one read in some as corrected, whatever page it is.
struct Corrects {
    chip: Chip,
    random: ChaCha8Rng,
    one_in: u32,
}

impl Bus for Corrects {
    fn simulated(&self) -> &Chip {
        &self.chip
    }
}

impl Flash for Corrects {
    type Error = ChipError;

    hand_on!(chip: geometry, program, erase, rewrite, overwrite, is_bad, mark_bad);

    fn capabilities(&self) -> Capabilities {
        self.chip.capabilities()
    }

    fn reports_corrections(&self) -> bool {
        true
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let reading = self.chip.read(page, main, spare)?;
        let corrects = self.random.random_range(0..self.one_in) == 0;
        Ok(if corrects { Reading::Corrected } else { reading })
    }
}

struct WeakGarbage;

impl Check for WeakGarbage {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut removed = 0;
        for (seed, one_in) in [(1, 5), (2, 5), (3, 20), (4, 20), (5, 100)] {
            let geometry = Geometry { pages_per_block: 15, blocks: 14, ..TINY.geometry };
            let mut profile = Profile { geometry, ..TINY };
            profile.capabilities.pairing = Pairing::WordLines(3);
            let case =
                case(profile, LivenessTracking::Searched, RelocationMode::Together).suited::<S>();
            if case.options.validity != LivenessTracking::Searched {
                return Ok(());
            }
            let random = ChaCha8Rng::seed_from_u64(seed);
            let mut chip = Corrects { chip: Chip::new(case.profile), random, one_in };
            let mut ram = case.ram::<S>();
            let made = format_on::<S>(&mut chip, &case.options, &mut ram);
            let mut index = match made {
                Err(OpenError::ChipTooSmall { .. } | OpenError::Unsuited(_)) => return Ok(()),
                made => made.map_err(text)?,
            };
            let mut numbers = ChaCha8Rng::seed_from_u64(seed);
            for turn in 0..4_000 {
                let number = numbers.random_range(0..2_000);
                if numbers.random_range(0..100) < 35 {
                    // A removal is never refused.
                    index.remove(&key(number)).map_err(|error| {
                        format!("seed {seed}, turn {turn}: {error}: {:?}", index.statistics())
                    })?;
                    removed += 1;
                } else if let Err(error) = index.insert(&key(number), &value(number, turn))
                    && !matches!(error, WriteError::Full { .. } | WriteError::TooHigh { .. })
                {
                    return Err(text(error));
                }
                if turn % 16 == 0 {
                    index.gc_step(100).map_err(text)?;
                }
            }
        }
        if removed > 1_000 { Ok(()) } else { Err(format!("{removed} removals")) }
    }
}

#[test]
fn weak_reads_of_garbage_refuse_no_removal() {
    for_one_system_in(3, &WeakGarbage);
}
