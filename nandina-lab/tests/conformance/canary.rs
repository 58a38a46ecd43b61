//! Systems that are broken on purpose. If the suite does not catch them, it catches nothing.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nandina::flash::Flash;
use nandina::place::{Description, Level, Placement, Wandering};
use nandina::space::Space;

use crate::harness::*;
use crate::model::{Step, replay};

/// Acknowledges some changes without writing the root.
#[derive(Default)]
struct EarlyAcknowledgement(Broken<0>);

/// Loses the upper half of some divided nodes.
#[derive(Default)]
struct LostHalf(Broken<1>);

#[derive(Default)]
struct Broken<const FAULT: u8> {
    wandering: Wandering,
    puts: u32,
    last_root: Option<u32>,
}

/// The fault of a canary: it gets what the healthy system answered and answers something else.
trait Fault: Placement {
    fn state(&mut self) -> (&mut Wandering, &mut u32, &mut Option<u32>);
    const SKIPS_ROOTS: bool;
}

macro_rules! canary {
    ($name:ident, $key:literal, $skips_roots:literal) => {
        impl Fault for $name {
            fn state(&mut self) -> (&mut Wandering, &mut u32, &mut Option<u32>) {
                (&mut self.0.wandering, &mut self.0.puts, &mut self.0.last_root)
            }
            const SKIPS_ROOTS: bool = $skips_roots;
        }

        impl Placement for $name {
            const DESCRIPTION: Description =
                Description { key: $key, code: 255, ..Wandering::DESCRIPTION };

            fn extent(area_bytes: usize, level: u8, height: u8) -> Range<usize> {
                Wandering::extent(area_bytes, level, height)
            }

            fn path_pages(height: u8) -> u32 {
                Wandering::path_pages(height)
            }

            fn reading(level: u8, buffers: usize) -> usize {
                Wandering::reading(level, buffers)
            }

            fn working(level: u8, buffers: usize) -> usize {
                Wandering::working(level, buffers)
            }

            fn begin<F: Flash>(&mut self, space: &mut Space<'_, F>, lowest: u8) {
                self.state().0.begin(space, lowest);
            }

            fn take<F: Flash>(&mut self, space: &mut Space<'_, F>, level: Level, page: u32) {
                self.state().0.take(space, level, page);
            }

            fn vanish<F: Flash>(&mut self, space: &mut Space<'_, F>, level: u8) {
                self.state().0.vanish(space, level);
            }

            fn put<F: Flash>(
                &mut self,
                space: &mut Space<'_, F>,
                level: Level,
                records: u32,
            ) -> Result<u32, nandina::place::PlaceFault<F>> {
                let (wandering, puts, last_root) = self.state();
                *puts += 1;
                if let (true, true, Some(root)) =
                    (Self::SKIPS_ROOTS, level.level == level.height && *puts % 7 == 0, *last_root)
                {
                    return Ok(root);
                }
                let pointer = wandering.put(space, level, records)?;
                if level.level == level.height {
                    *last_root = Some(pointer);
                }
                Ok(pointer)
            }

            fn put_halves<F: Flash>(
                &mut self,
                space: &mut Space<'_, F>,
                level: Level,
                records: u32,
            ) -> Result<(u32, u32), nandina::place::PlaceFault<F>> {
                let (left, right) = self.state().0.put_halves(space, level, records)?;
                Ok(if Self::SKIPS_ROOTS { (left, right) } else { (left, left) })
            }
        }
    };
}

canary!(EarlyAcknowledgement, "early-acknowledgement", true);
canary!(LostHalf, "lost-half", false);

fn is_caught<S: Placement>() -> bool {
    let steps: Vec<Step> = (0..200u32).map(|turn| Step::Put(turn * 37 % 151, turn)).collect();
    let run = catch_unwind(AssertUnwindSafe(|| replay::<S>(&Case::new(SMALL), &steps)));
    !matches!(run, Ok(Ok(())))
}

#[test]
fn broken_systems_are_caught() {
    assert!(is_caught::<EarlyAcknowledgement>());
    assert!(is_caught::<LostHalf>());
}

#[test]
fn the_healthy_system_under_the_canaries_is_not() {
    assert!(!is_caught::<Wandering>());
}
