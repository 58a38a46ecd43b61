//! Wear levelling: under skewed updates no block is erased much more often than the others.

use nandina::flash::{Geometry, Profile};
use nandina::place::Placement;
use nandina_sim::TINY;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

struct Skewed;

impl Check for Skewed {
    fn run<S: Placement + 'static>(&self) -> Outcome {
        let geometry = Geometry { blocks: 64, pages_per_block: 16, ..TINY.geometry };
        let case = Case::new(Profile { geometry, ..TINY });
        let wear = with_index::<S, _>(&case, |index| {
            let mut random = ChaCha8Rng::seed_from_u64(9);
            let records = 4_000;
            for number in 0..records {
                index.insert(&key(number * 5 % records), &value(number, 0)).map_err(text)?;
            }
            // Nine of ten updates go to one record of a hundred.
            for turn in 0..60_000 {
                let hot = random.random_range(0..10) < 9;
                let number = random.random_range(0..if hot { records / 100 } else { records });
                index.insert(&key(number), &value(number, turn + 1)).map_err(text)?;
            }
            let statistics = index.statistics();
            let wear = index.flash().wear();
            if statistics.erases_most != wear.most {
                return Err(format!("{} erases counted, {wear:?}", statistics.erases_most));
            }
            Ok(wear)
        })?;
        println!(
            "{}: erase counts {} to {}, mean {:.1}",
            S::DESCRIPTION.key,
            wear.least,
            wear.most,
            wear.mean
        );
        if wear.mean < 50.0 {
            return Err(format!("the run is too short to tell: {wear:?}"));
        }
        if f64::from(wear.most) > 1.5 * wear.mean {
            return Err(format!("uneven wear: {wear:?}"));
        }
        Ok(())
    }
}

#[test]
fn skewed_updates_wear_blocks_evenly() {
    for_every_system(&Skewed);
}
