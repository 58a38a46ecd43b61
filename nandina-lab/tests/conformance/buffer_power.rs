//! The write buffer under cuts and failing devices.
//!
//! After a cut each change since the last flush is there wholly or not at all, independently of the
//! others, and no key holds a value older than at that flush. A device that fails once during a
//! flush loses no change.

use core::cell::Cell;

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::store::Description;
use nandina::{Index, Options, System, WriteError};
use nandina_lab::hand_on;
use nandina_lab::torture::oracle::{Change, Pending, value as value_of};
use nandina_sim::{Chip, ChipError, Cut};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

fn case((write_buffer, write_cache, buffers): (usize, usize, usize)) -> Case {
    let mut case = Case::new(SMALL);
    case.profile.geometry.blocks = 20;
    let page_buffers = (buffers > 0).then_some(buffers);
    case.options = Options { write_buffer, write_cache, page_buffers, ..case.options };
    case
}

/// Changes in a few clusters, in which leaves are filled, split and emptied.
fn changes(count: u32) -> Vec<Change> {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    (0..count)
        .map(|turn| {
            let number = random.random_range(0..6) * 1_000 + random.random_range(0..25);
            // At the end mostly removals.
            let put = random.random_range(0..count) > turn.saturating_sub(count / 3);
            if put { Change::Put(number, turn) } else { Change::Remove(number) }
        })
        .collect()
}

fn ask<F: Flash, S: System>(
    index: &mut Index<'_, F, S>,
    change: Change,
) -> Result<(), WriteError<F::Error>> {
    match change {
        Change::Put(number, version) => {
            index.insert(&key(number), &value_of(number, version, VALUE_BYTES)).map(drop)
        }
        Change::Remove(number) => index.remove(&key(number)).map(drop),
    }
}

/// Changes between two flushes.
const BETWEEN_FLUSHES: usize = 70;

#[derive(Default)]
struct Seen {
    cuts: u32,
    /// Mounts after which some changes since the last flush were there and some were not.
    mixed: u32,
}

/// Makes `changes` until power fails. Returns whether it failed.
fn work<S: System>(
    index: &mut Index<'_, &mut Chip, S>,
    changes: &[Change],
    (model, pending): (&mut Model, &mut Pending),
    durable_at_once: bool,
) -> Result<bool, String> {
    for (turn, &change) in changes.iter().enumerate() {
        pending.note(model, change, VALUE_BYTES);
        let mut result = ask(index, change);
        let flushes = turn % BETWEEN_FLUSHES == BETWEEN_FLUSHES - 1;
        if flushes && result.is_ok() {
            result = index.flush();
        }
        match result {
            Ok(()) => change.apply(model, VALUE_BYTES),
            Err(WriteError::Device(ChipError::PowerLost)) => return Ok(true),
            Err(error) => return Err(format!("{change:?}: {error:?}")),
        }
        if flushes || (durable_at_once && index.statistics().waiting_changes == 0) {
            pending.clear();
        }
    }
    Ok(false)
}

struct CutEverywhere;

impl CutEverywhere {
    /// A run that is cut at chip operation `at`, mounted and continued.
    ///
    /// Returns whether it was cut.
    fn run_cut<S: System>(
        case: &Case,
        formatted: &Chip,
        at: u64,
        cut: Cut,
        seen: &mut Seen,
    ) -> Result<bool, String> {
        let changes = changes(300);
        let (mut chip, mut ram) = (formatted.clone(), case.ram::<S>());
        chip.cut_at(at, cut);
        let (mut model, mut pending) = (Model::new(), Pending::default());
        let at_once = case.options.write_cache == 0;
        let was_cut = match Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
            Ok(mut index) => work(&mut index, &changes, (&mut model, &mut pending), at_once)?,
            Err(_) => true,
        };
        chip.restore_power();
        ram.fill(0x5A);
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        let before = model.clone();
        pending.settle(&mut index, &mut model)?;
        seen.cuts += u32::from(was_cut);
        seen.mixed += u32::from(was_cut && before != model && !index.is_empty());
        pending.clear();
        compare(&mut index, &model)?;
        for &change in &changes[..40] {
            ask(&mut index, change).map_err(text)?;
            change.apply(&mut model, VALUE_BYTES);
        }
        index.flush().map_err(text)?;
        compare(&mut index, &model)?;
        Ok(was_cut)
    }
}

impl Check for CutEverywhere {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut seen = Seen::default();
        let share = Share::one_in(17);
        for sizes in [(1, 0, 0), (2, 0, 2), (1, 6, 0)] {
            let case = case(sizes).suited::<S>();
            let (mut formatted, mut ram) = (Chip::with_seed(case.profile, seed()), case.ram::<S>());
            drop(Index::<_, S>::format(&mut formatted, &case.options, &mut ram).map_err(text)?);
            'cuts: for at in (0..).filter(|&at| share.takes(at)) {
                for cut in Cut::ALL {
                    let outcome = Self::run_cut::<S>(&case, &formatted, at, cut, &mut seen);
                    let named = |what| format!("{sizes:?}, {cut:?} at {at}: {what}");
                    if !outcome.map_err(named)? {
                        break 'cuts;
                    }
                }
            }
        }
        println!("{}: {} cuts, {} mixed", S::DESCRIPTION.key, seen.cuts, seen.mixed);
        // Replacing in place takes the fewest chip operations, the fewer the fewer pages a node has.
        let least = if S::DESCRIPTION.collects() { 1_000 } else { 700 };
        if u64::from(seen.cuts) > share.least(least) && u64::from(seen.mixed) > share.least(100) {
            Ok(())
        } else {
            Err(format!("only {} cuts, {} of them in the midst", seen.cuts, seen.mixed))
        }
    }
}

#[test]
fn a_cut_at_every_operation_leaves_each_change_whole_or_not_at_all() {
    for_every_system(&CutEverywhere);
}

/// A chip whose driver fails once, at the program after `left` others.
struct FailsOnce<'c> {
    chip: &'c mut Chip,
    left: &'c Cell<u32>,
}

impl Bus for FailsOnce<'_> {
    fn simulated(&self) -> &Chip {
        self.chip
    }
}

impl Flash for FailsOnce<'_> {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, erase);

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.count()?;
        self.chip.program(page, main, spare)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.count()?;
        self.chip.rewrite(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.count()?;
        self.chip.overwrite(page, offset, bytes)
    }
}

impl FailsOnce<'_> {
    fn count(&self) -> Result<(), ChipError> {
        let left = self.left.get();
        self.left.set(left.wrapping_sub(1));
        if left == 0 { Err(ChipError::PowerLost) } else { Ok(()) }
    }
}

struct FailingFlush;

impl Check for FailingFlush {
    fn concerns(&self, system: &Description) -> bool {
        system.has_write_buffer()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = case((2, 0, 0)).suited::<S>();
        let mut failures = 0;
        for failing in 0..14 {
            let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
            let left = Cell::new(u32::MAX);
            let device: &mut dyn Bus = &mut FailsOnce { chip: &mut chip, left: &left };
            let mut index = Index::<_, S>::format(device, &case.options, &mut ram).map_err(text)?;
            let mut model = Model::new();
            for (turn, &change) in changes(500).iter().enumerate() {
                if turn % 50 == 49 {
                    left.set(failing);
                    if index.flush().is_err() {
                        failures += 1;
                        if index.statistics().waiting_changes == 0 {
                            return Err("nothing waits after a flush that failed".into());
                        }
                        for (key, value) in &model {
                            if index.get(key).map_err(text)? != Some(&value[..]) {
                                return Err(format!("{key:02x?} was lost"));
                            }
                        }
                    }
                    left.set(u32::MAX);
                }
                ask(&mut index, change).map_err(text)?;
                change.apply(&mut model, VALUE_BYTES);
            }
            index.flush().map_err(text)?;
            compare(&mut index, &model)?;
        }
        // Where an update is one program, fewer flushes have that many.
        let least = if S::DESCRIPTION.root_commits() { 15 } else { 10 };
        if failures > least { Ok(()) } else { Err(format!("only {failures} flushes failed")) }
    }
}

#[test]
fn a_flush_that_fails_keeps_what_was_not_applied() {
    for_every_system(&FailingFlush);
}

/// A chip on which most blocks fail at their erase once it is worn.
struct Wears<'c> {
    chip: &'c mut Chip,
    worn: &'c Cell<bool>,
    erases: u32,
}

impl Bus for Wears<'_> {
    fn simulated(&self) -> &Chip {
        self.chip
    }
}

impl Flash for Wears<'_> {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, program, rewrite, overwrite, is_bad, mark_bad);

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.erases += 1;
        if self.worn.get() && !self.erases.is_multiple_of(4) {
            return Err(ChipError::EraseFailed(block));
        }
        self.chip.erase(block)
    }
}

/// Makes changes, every fourth with a due flush, until the device has worn out.
struct RefusedWithItsFlush {
    /// Whether the changes with a due flush are removals in the end.
    removes: bool,
}

impl Check for RefusedWithItsFlush {
    fn concerns(&self, system: &Description) -> bool {
        system.collects() && system.has_write_buffer()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut refused_when_due = 0;
        for first in 0..8 {
            let mut case = case((1, 0, 0));
            case.profile.capabilities.bad_blocks_per_mille = 60;
            case.options.write_buffer_changes = Some(4);
            if S::DESCRIPTION.replays() {
                // With fewer blocks or more, or with a journal of one page, no flush is refused.
                case.profile.geometry.blocks = 24;
                case.options.journal_pages = Some(4);
            }
            let case = case.suited::<S>();
            let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
            let worn = Cell::new(false);
            let device: &mut dyn Bus = &mut Wears { chip: &mut chip, worn: &worn, erases: 0 };
            let mut index = Index::<_, S>::format(device, &case.options, &mut ram).map_err(text)?;
            let mut model = Model::new();
            for turn in 0..2_000u32 {
                // New keys fill the chip; then they are replaced.
                let number = (turn + first) * 37 % 401;
                let waiting = index.statistics().waiting_changes;
                let is_due = turn > 1_000 && waiting == 3;
                worn.set(is_due);
                let changed = if self.removes && is_due {
                    index.remove(&key(number)).map(|_| drop(model.remove(&key(number)[..])))
                } else {
                    index.insert(&key(number), &value(number, turn)).map(|_| {
                        model.insert(key(number).to_vec(), value(number, turn).to_vec());
                    })
                };
                match changed {
                    Ok(()) => {}
                    Err(WriteError::Full { .. } | WriteError::WornOut { .. }) => {
                        refused_when_due += u32::from(waiting == 3);
                        let found = index.get(&key(number)).map_err(text)?.map(<[u8]>::to_vec);
                        if found.as_ref() != model.get(&key(number)[..]) {
                            return Err(format!("turn {turn}: what was refused is there"));
                        }
                    }
                    Err(error) => return Err(format!("turn {turn}: {error:?}")),
                }
            }
            // A change reported now was accepted before. The records do not count those pending.
            if index.flush().is_ok() || !self.removes {
                compare(&mut index, &model)?;
            }
            for number in 0..401 {
                let found = index.get(&key(number)).map_err(text)?;
                if found != model.get(&key(number)[..]).map(Vec::as_slice) {
                    return Err(format!("record {number} is not as the changes left it"));
                }
            }
        }
        println!("{}: {refused_when_due} refused when due", S::DESCRIPTION.key);
        // Where pages are kept for each inner node, nothing waits any more on a chip so worn.
        let waits = !nodes_of::<S>().sharing.packs();
        if refused_when_due > 0 || !waits { Ok(()) } else { Err("no due flush was refused".into()) }
    }
}

#[test]
fn a_change_that_is_refused_with_its_own_flush_does_not_wait() {
    for_one_system_in(5, &RefusedWithItsFlush { removes: false });
}

#[test]
fn a_removal_that_is_refused_with_its_own_flush_does_not_wait() {
    for_one_system_in(5, &RefusedWithItsFlush { removes: true });
}
