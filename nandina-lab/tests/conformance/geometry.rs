//! Every system on chips from tiny to those of Table 1 of the μ-Tree paper, with and without spare area.

use nandina::flash::profile::PROFILES;
use nandina::flash::{Geometry, Profile};
use nandina::place::Placement;
use nandina_sim::TINY;

use crate::harness::*;
use crate::model::{Step, replay};

struct Mixed {
    case: Case,
    operations: u32,
}

impl Check for Mixed {
    fn run<S: Placement + 'static>(&self) -> Outcome {
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
        for (pages_per_block, blocks) in Share::one_in(2).of([(4, 8), (16, 16), (7, 33), (64, 12)])
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
        for_every_system(&Mixed { case: Case::new(profile), operations: 40_000 });
    }
}
