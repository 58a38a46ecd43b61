//! Systems and devices that are broken on purpose.
//!
//! A broken device makes a healthy system behave like a broken one.
//!
//! A suite that does not detect them detects no fault at all.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nandina::flash::{BlockNumber, Flash, PageNumber, Reading};
use nandina::node::{HEADER_BYTES, PageFault, PageLayout};
use nandina::space::Space;
use nandina::store::{Description, Halves, Level, Mu, Origin, Placement, Wandering, Written};
use nandina_lab::hand_on;
use nandina_lab::torture::{CutRun, Device, Mode, cut_everywhere};
use nandina_sim::{Chip, ChipError};

use crate::harness::*;
use crate::model::{Step, replay};

/// Acknowledges some changes without writing the root.
#[derive(Default)]
struct EarlyAcknowledgement(Broken<0>);

/// Loses the upper half of some split nodes.
#[derive(Default)]
struct LostHalf(Broken<1>);

/// Keeps counting some superseded pages as valid.
#[derive(Default)]
struct Leak(Broken<2>);

#[derive(Default)]
struct Broken<const FAULT: u8> {
    wandering: Wandering,
    puts: u32,
    last_root: Option<Written>,
}

/// The fault of a canary: it changes the results of a healthy system.
trait Fault: Placement {
    fn state(&mut self) -> (&mut Wandering, &mut u32, &mut Option<Written>);
    const WHAT: What;
}

/// What is broken.
#[derive(PartialEq)]
enum What {
    SkipsRoots,
    LosesHalves,
    Leaks,
}

macro_rules! canary {
    ($name:ident, $key:literal, $what:expr) => {
        impl Fault for $name {
            fn state(&mut self) -> (&mut Wandering, &mut u32, &mut Option<Written>) {
                (&mut self.0.wandering, &mut self.0.puts, &mut self.0.last_root)
            }
            const WHAT: What = $what;
        }

        impl Placement for $name {
            type Kind = <Wandering as Placement>::Kind;

            const DESCRIPTION: Description =
                Description { key: $key, code: 255, ..Wandering::DESCRIPTION };

            fn extent(area_bytes: usize, level: u8, height: u8) -> Range<usize> {
                Wandering::extent(area_bytes, level, height)
            }

            fn path_pages(height: u8) -> u32 {
                Wandering::path_pages(height)
            }

            fn reading(level: u8, height: u8, buffers: usize) -> usize {
                Wandering::reading(level, height, buffers)
            }

            fn working(level: u8, height: u8, buffers: usize) -> usize {
                Wandering::working(level, height, buffers)
            }

            fn spare(level: u8, height: u8, buffers: usize) -> usize {
                Wandering::spare(level, height, buffers)
            }

            fn begin<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, lowest: u8) {
                self.state().0.begin(space, lowest);
            }

            fn pass<F: Flash>(
                &mut self,
                space: &mut Space<'_, F, Self::Kind>,
                level: Level,
                page: u32,
            ) {
                self.state().0.pass(space, level, page);
            }

            fn remove_empty<F: Flash>(
                &mut self,
                space: &mut Space<'_, F, Self::Kind>,
                level: u8,
                name: u32,
            ) {
                self.state().0.remove_empty(space, level, name);
            }

            fn write<F: Flash>(
                &mut self,
                space: &mut Space<'_, F, Self::Kind>,
                level: Level,
                origin: Origin,
                records: u32,
            ) -> Result<Written, nandina::store::PlaceFault<F>> {
                let (wandering, puts, last_root) = self.state();
                *puts += 1;
                let strikes = level.level == level.height && *puts % 7 == 0;
                match (Self::WHAT, *last_root) {
                    (What::SkipsRoots, Some(root)) if strikes => return Ok(root),
                    (What::Leaks, _) if strikes => {
                        wandering.write(space, level, origin, records)?;
                    }
                    _ => {}
                }
                let written = wandering.write(space, level, origin, records)?;
                if level.level == level.height {
                    *last_root = Some(written);
                }
                Ok(written)
            }

            fn write_halves<F: Flash>(
                &mut self,
                space: &mut Space<'_, F, Self::Kind>,
                level: Level,
                halves: Halves,
                records: u32,
            ) -> Result<(u32, u32), nandina::store::PlaceFault<F>> {
                let (left, right) = self.state().0.write_halves(space, level, halves, records)?;
                Ok(if Self::WHAT == What::LosesHalves { (left, left) } else { (left, right) })
            }
        }
    };
}

canary!(EarlyAcknowledgement, "early-acknowledgement", What::SkipsRoots);
canary!(LostHalf, "lost-half", What::LosesHalves);
canary!(Leak, "leak", What::Leaks);

fn is_caught<S: Placement>() -> bool {
    let steps: Vec<Step> = (0..200u32).map(|turn| Step::Put(turn * 37 % 151, turn)).collect();
    let run = catch_unwind(AssertUnwindSafe(|| replay::<S>(&Case::new(SMALL), &steps)));
    !matches!(run, Ok(Ok(())))
}

#[test]
fn broken_systems_are_caught() {
    assert!(is_caught::<EarlyAcknowledgement>());
    assert!(is_caught::<LostHalf>());
    assert!(is_caught::<Leak>());
}

#[test]
fn the_healthy_system_under_the_canaries_is_not() {
    assert!(!is_caught::<Wandering>());
}

/// Makes every checksum match, so that the index above cannot see what is torn.
///
/// It acts like an index that does not check.
#[derive(Clone)]
struct ForgottenChecksum(Chip);

/// Programs a page only when the next operation comes, so that an acknowledged change is still in
/// RAM.
#[derive(Clone)]
struct LateProgram {
    chip: Chip,
    pending: Option<(PageNumber, Vec<u8>, Vec<u8>)>,
}

impl LateProgram {
    fn flush(&mut self) -> Result<(), ChipError> {
        match self.pending.take() {
            Some((page, main, spare)) => self.chip.program(page, &main, &spare),
            None => Ok(()),
        }
    }
}

macro_rules! device {
    ($name:ident, $chip:tt, $restore:expr) => {
        impl Device for $name {
            fn chip(&self) -> &Chip {
                &self.$chip
            }
            fn chip_mut(&mut self) -> &mut Chip {
                &mut self.$chip
            }
            fn restore_power(&mut self) {
                let restore: fn(&mut Self) = $restore;
                restore(self);
                self.$chip.restore_power();
            }
        }
    };
}

device!(ForgottenChecksum, 0, |_| {});
device!(LateProgram, chip, |device| device.pending = None);

impl Flash for ForgottenChecksum {
    type Error = ChipError;

    hand_on!(0: geometry, capabilities, program, erase, rewrite, overwrite);

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let reading = self.0.read(page, main, spare)?;
        let layout = PageLayout::new(main.len(), HEADER_BYTES);
        let mut frame = [&*main, &*spare].concat();
        if layout.open(&frame) == Err(PageFault::Damaged) && spare[4..6] == *b"Nd" {
            let header = layout.header(&frame);
            layout.reseal(&mut frame, &header);
            spare.copy_from_slice(&frame[main.len()..]);
        }
        Ok(reading)
    }
}

impl Flash for LateProgram {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities);

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.flush()?;
        self.chip.read(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.flush()?;
        self.pending = Some((page, main.to_vec(), spare.to_vec()));
        Ok(())
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.flush()?;
        self.chip.erase(block)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.flush()?;
        self.chip.rewrite(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.flush()?;
        self.chip.overwrite(page, offset, bytes)
    }
}

/// Violations found by one cut at every operation.
fn violations<S: Placement, D: Device>(wrap: impl Fn(Chip) -> D) -> usize {
    let run = CutRun::SMALL;
    let device = wrap(run.chip::<S>(1));
    cut_everywhere::<S, D>(device, run, Mode::Linear, 1, &|_| {}).violations.len()
}

#[test]
fn cuts_catch_a_forgotten_checksum_and_a_late_program() {
    assert!(violations::<Wandering, _>(ForgottenChecksum) > 0);
    assert!(violations::<Mu, _>(ForgottenChecksum) > 0);
    let late = |chip| LateProgram { chip, pending: None };
    assert!(violations::<Wandering, _>(late) > 0);
    assert!(violations::<Mu, _>(late) > 0);
    assert!(violations::<Leak, _>(|chip| chip) > 0);
    assert!(violations::<EarlyAcknowledgement, _>(|chip| chip) > 0);
    assert_eq!(violations::<Wandering, _>(|chip| chip) + violations::<Mu, _>(|chip| chip), 0);
}
