//! Every system on chips from tiny to those of Table 1 of the μ-Tree paper, with and without spare
//! area.

use std::convert::Infallible;

use nandina::flash::profile::PROFILES;
use nandina::flash::{
    BlockNumber, Capabilities, Flash, Geometry, PageNumber, Pairing, Profile, Reading,
};
use nandina::{Index, OpenError, Options, System, identify, plan, ram_needed, ram_to_identify};
use nandina_sim::TINY;

use crate::harness::*;
use crate::model::{Step, replay};

struct Mixed {
    case: Case,
    operations: u32,
}

impl Check for Mixed {
    fn run<S: System + 'static>(&self) -> Outcome {
        let spread = |turn: u32| turn.wrapping_mul(2_654_435_761) % (self.operations * 2);
        let mut steps: Vec<Step> = (0..self.operations)
            .map(|turn| match turn % 5 {
                0 => Step::Remove(spread(turn / 2)),
                1 => Step::Get(spread(turn / 3)),
                _ => Step::Put(spread(turn), turn),
            })
            .collect();
        steps.insert(steps.len() / 2, Step::Reopen);
        steps.push(Step::Reopen);
        replay::<S>(&self.case, &steps)
            .map_err(|what| format!("on {:?}: {what}", self.case.profile.geometry))
    }
}

#[test]
fn tiny_to_middling_chips() {
    for (page_bytes, spare_bytes) in [(256, 0), (512, 16), (512, 64), (1024, 0), (2048, 64)] {
        for (pages_per_block, blocks) in Share::one_in(4).of([(4, 8), (16, 16), (7, 33), (64, 12)])
        {
            let geometry = Geometry { page_bytes, spare_bytes, pages_per_block, blocks };
            let case = Case::new(Profile { geometry, ..TINY });
            for_every_system(&Mixed { case, operations: 3_000 });
        }
    }
}

#[test]
fn the_chips_of_the_profiles() {
    for &profile in Share::one_in(5).of(PROFILES) {
        let operations = Share::one_in(6).length(40_000);
        for_every_system(&Mixed { case: Case::new(profile), operations });
    }
}

/// A device of which only the geometry matters.
struct Shape(Geometry, Capabilities);

impl Flash for Shape {
    type Error = Infallible;

    fn geometry(&self) -> Geometry {
        self.0
    }

    fn capabilities(&self) -> Capabilities {
        self.1
    }

    fn read(
        &mut self,
        _: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, Infallible> {
        main.fill(0xFF);
        spare.fill(0xFF);
        Ok(Reading::Clean)
    }

    fn program(&mut self, _: PageNumber, _: &[u8], _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    fn erase(&mut self, _: BlockNumber) -> Result<(), Infallible> {
        Ok(())
    }

    fn rewrite(&mut self, _: PageNumber, _: &[u8], _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }

    fn overwrite(&mut self, _: PageNumber, _: u32, _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Chips too small for any index, and some barely large enough: refused or planned, never a panic.
struct Absurd(Pairing);

impl Check for Absurd {
    fn run<S: System + 'static>(&self) -> Outcome {
        let capabilities = Capabilities { pairing: self.0, ..TINY.capabilities };
        let capabilities = suited::<S>(Profile { capabilities, ..TINY }).capabilities;
        let options = fitted::<S>(Options::new(4, 8));
        let mut ram = vec![0; 1 << 14];
        let mut refused = 0;
        for (page_bytes, spare_bytes) in PAGES {
            for pages_per_block in [0, 1, 2, 3, 8, 4095, 4096, u32::MAX] {
                for blocks in [0, 1, 2, 3, 8, 1 << 20, u32::MAX] {
                    let geometry = Geometry { page_bytes, spare_bytes, pages_per_block, blocks };
                    let usable = page_bytes.saturating_add(spare_bytes.min(40)) >= 40
                        && (2..=4095).contains(&pages_per_block)
                        && (1..1 << 31).contains(&(u64::from(blocks) * u64::from(pages_per_block)));
                    let planned = plan::<S>(&geometry, &capabilities, &options, 10);
                    let _ = (ram_needed::<S>(&geometry, &options), ram_to_identify(&geometry));
                    let is_refused =
                        |error: &OpenError<_>| matches!(error, OpenError::BadOption { .. });
                    if usable == planned.as_ref().is_err_and(is_refused) {
                        return Err(format!("{geometry:?}: {planned:?}"));
                    }
                    if blocks > 8 && usable {
                        continue;
                    }
                    let formatted =
                        Index::<_, S>::format(Shape(geometry, capabilities), &options, &mut ram);
                    let formatted = formatted.map(|_| ());
                    let identified = identify(Shape(geometry, capabilities), &mut ram);
                    match (formatted, identified) {
                        (Err(error), Err(other)) if !usable => {
                            let same = planned.is_err_and(|planned| planned == error);
                            if !same || error != other {
                                return Err(format!("{geometry:?}: {error:?}, {other:?}"));
                            }
                            refused += 1;
                        }
                        (_, Err(other)) if usable && !is_refused(&other) => {}
                        others => return Err(format!("{geometry:?}: {others:?}")),
                    }
                }
            }
        }
        if refused > 300 { Ok(()) } else { Err(format!("only {refused} refused")) }
    }
}

/// Bytes of pages and spare areas.
const PAGES: [(u32, u32); 11] = [
    (0, 0),
    (1, 0),
    (39, 0),
    (40, 0),
    (41, 0),
    (64, 0),
    (0, 40),
    (16, 23),
    (16, 24),
    (512, u32::MAX),
    (1 << 24, 64),
];

#[test]
fn chips_of_absurd_sizes_are_refused_and_never_panic() {
    for pairing in [Pairing::None, Pairing::DistanceThree, Pairing::WordLines(3)] {
        for_every_system(&Absurd(pairing));
    }
}

/// Plans for chips that lack what a system needs.
struct Unsuited;

impl Check for Unsuited {
    fn run<S: System + 'static>(&self) -> Outcome {
        for Profile { key, geometry, capabilities, .. } in PROFILES {
            let planned = plan::<S>(geometry, capabilities, &Options::new(4, 4), 10);
            let lacks = S::DESCRIPTION.needs.missing(capabilities);
            let refused = match planned {
                Err(OpenError::Unsuited(missing)) => Some(missing),
                _ => None,
            };
            if refused != lacks {
                return Err(format!("{key}: {refused:?} in place of {lacks:?}"));
            }
        }
        Ok(())
    }
}

#[test]
fn plan_refuses_a_chip_that_lacks_what_a_system_needs() {
    for_every_system(&Unsuited);
}
