//! A program that the chip reports as failed, though the page is whole.
//!
//! The content is written again elsewhere, so the chip holds it twice. No mount may count it twice,
//! nor need more RAM because of it.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;

use nandina::flash::{Flash, PageNumber};
use nandina::store::Description;
use nandina::{Index, Options, System};
use nandina_lab::hand_on;
use nandina_lab::torture::oracle::contents;
use nandina_sim::{Chip, ChipError};

use crate::harness::*;

/// Reports one program as failed, which is done.
///
/// And the next ones, which are not.
struct Whole {
    chip: Chip,
    /// Programs until that one.
    left: Cell<Option<u32>>,
    /// Programs that fail behind it, and how many are left of them.
    behind: u32,
    failing: u32,
}

impl Bus for Whole {
    fn simulated(&self) -> &Chip {
        &self.chip
    }

    fn itself(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Flash for Whole {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, erase, rewrite, overwrite, is_bad, mark_bad);

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if self.failing > 0 {
            self.failing -= 1;
            return Err(ChipError::ProgramFailed(page));
        }
        self.chip.program(page, main, spare)?;
        let left = self.left.take();
        self.left.set(left.and_then(|left| left.checked_sub(1)));
        if left == Some(0) {
            self.failing = self.behind;
            return Err(ChipError::ProgramFailed(page));
        }
        Ok(())
    }
}

/// Changes of one life.
const CHANGES: u32 = 300;

struct CountedOnce;

impl CountedOnce {
    fn case<S: System>(arena_bytes: Option<usize>, write_buffer: usize) -> Case {
        let options = Options { arena_bytes, write_buffer, ..Case::new(SMALL).options };
        let mut case = Case { options, ..Case::new(SMALL) }.suited::<S>();
        case.profile.capabilities.bad_blocks_per_mille = 100;
        case
    }

    /// The least RAM for nodes, of a system that has an option for it.
    fn least_arena<S: System>() -> Option<usize> {
        (1..100).map(|at| 64 * at).find(|&bytes| {
            let case = Self::case::<S>(Some(bytes), 1);
            let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
            Index::<_, S>::format(&mut chip, &case.options, &mut ram).is_ok()
        })
    }

    /// Makes changes, with the program number `failed` reported as such, and opens the index anew.
    ///
    /// The `behind` next ones fail. Flushes them in groups of this many.
    fn live<S: System>(
        case: &Case,
        (failed, behind, group): (u32, u32, u32),
        ram: &mut [u8],
    ) -> Result<bool, String> {
        let chip = Chip::new(case.profile);
        let mut chip = Whole { chip, left: Cell::new(None), behind, failing: 0 };
        let mut index = format_on::<S>(&mut chip, &case.options, ram).map_err(text)?;
        device_of::<Whole, S>(&index).left.set(Some(failed));
        let mut model = BTreeMap::new();
        let mut acknowledged = model.clone();
        for turn in 0..CHANGES {
            // A third are removals; what is left grows.
            let number = turn * 47 % 151;
            if turn % 3 == 2 {
                index.remove(&key(number)).map_err(text)?;
                model.remove(&key(number)[..]);
            } else {
                index.insert(&key(number), &value(number, turn)).map_err(text)?;
                model.insert(key(number).to_vec(), value(number, turn).to_vec());
            }
            if turn % group == group - 1 {
                index.flush().map_err(text)?;
                acknowledged.clone_from(&model);
                if device_of::<Whole, S>(&index).left.get().is_none() && turn > 20 {
                    break;
                }
            }
        }
        let met = device_of::<Whole, S>(&index).left.get().is_none();
        drop(index);
        let mut index = open_on::<S>(&mut chip, &case.options, ram).map_err(text)?;
        if contents(&mut index).map_err(text)? != acknowledged {
            return Err("the records are others".into());
        }
        let mut found = Vec::new();
        index.check(|violation| found.push(violation.to_string())).map_err(text)?;
        if found.is_empty() { Ok(met) } else { Err(format!("{found:?}")) }
    }
}

impl Check for CountedOnce {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut met = 0;
        for (arena_bytes, buffer) in [(None, 0), (None, 1), (Self::least_arena::<S>(), 1)] {
            let case = Self::case::<S>(arena_bytes, buffer);
            let mut ram = case.ram::<S>();
            for failed in Share::one_in(7).of((0..90).collect::<Vec<_>>()) {
                for (behind, group) in [(0, 3), (0, 10), (0, 30), (1, 10)] {
                    let lived = Self::live::<S>(&case, (failed, behind, group), &mut ram);
                    met += u32::from(lived.map_err(|what| {
                        let with = format!("buffer {buffer}, arena {arena_bytes:?}");
                        format!("program {failed} and {behind}, groups of {group}, {with}: {what}")
                    })?);
                }
            }
        }
        if met > 10 { Ok(()) } else { Err(format!("{met} programs failed")) }
    }
}

#[test]
fn what_a_failed_program_wrote_all_the_same_counts_once() {
    for_every_system(&CountedOnce);
}
