//! Wear: under skewed updates no block is erased much more often than the others.
//!
//! A chip that wears out loses no record.

use nandina::flash::{Geometry, Profile};
use nandina::store::Description;
use nandina::{Index, System, WearPolicy, WriteError};
use nandina_sim::{Chip, Faults, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

use crate::harness::*;

/// Records of a run, three quarters of what a system of long paths can hold on the chip.
const RECORDS: u32 = 4_000;

/// Skewed numbers: Zipf with exponent 0.99, the ranks spread over the keys.
fn skewed(random: &mut ChaCha8Rng, zipf: &Zipf<f64>) -> u32 {
    let rank = zipf.sample(random) as u32 - 1;
    rank.wrapping_mul(2_654_435_761) % RECORDS
}

fn case(wear: WearPolicy) -> Case {
    let geometry = Geometry { blocks: 64, pages_per_block: 16, ..TINY.geometry };
    let mut case = Case::new(Profile { geometry, ..TINY });
    case.options.wear = Some(wear);
    case
}

struct DeviceFills(WearPolicy);

impl Check for DeviceFills {
    fn concerns(&self, system: &Description) -> bool {
        !system.replaces()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = case(self.0);
        let pages = u64::from(case.profile.geometry.pages());
        let (wear, updates) = with_index::<S, _>(&case, |index| {
            let mut random = ChaCha8Rng::seed_from_u64(9);
            let zipf = Zipf::new(f64::from(RECORDS), 0.99).map_err(text)?;
            for number in 0..RECORDS {
                index.insert(&key(number * 7 % RECORDS), &value(number, 0)).map_err(text)?;
            }
            let mut updates = 0;
            // Where a leaf is a block, a program is of a slot of its log.
            let done = |chip: &Chip, updates: u32| {
                if S::DESCRIPTION.has_leaf_blocks() {
                    updates.is_multiple_of(500) && chip.wear().mean >= 200.0
                } else {
                    chip.counters().programs >= 200 * pages
                }
            };
            while !done(index.flash(), updates) {
                let number = skewed(&mut random, &zipf);
                updates += 1;
                index.insert(&key(number), &value(number, updates)).map_err(text)?;
            }
            let statistics = index.statistics();
            let wear = index.flash().wear();
            if statistics.erases_most != wear.most {
                return Err(format!("{} erases counted, {wear:?}", statistics.erases_most));
            }
            Ok((wear, updates))
        })?;
        println!(
            "{} {:?}: {updates} updates, erase counts {} to {}, mean {:.1}, most by mean {:.3}",
            S::DESCRIPTION.key,
            self.0,
            wear.least,
            wear.most,
            wear.mean,
            f64::from(wear.most) / wear.mean
        );
        if wear.mean < 190.0 || f64::from(wear.most) > 1.2 * wear.mean {
            return Err(format!("uneven wear, or too short a run: {wear:?}"));
        }
        Ok(())
    }
}

#[test]
fn two_hundred_device_fills_of_skewed_updates_wear_blocks_evenly() {
    for_one_system_in(4, &DeviceFills(WearPolicy::Counted));
}

#[test]
fn without_erase_counts_two_hundred_device_fills_wear_blocks_evenly_too() {
    for_one_system_in(4, &DeviceFills(WearPolicy::Circular));
}

/// Random updates on a chip with much room, each followed by an idle step.
///
/// Blocks become free by themselves, so no change is ever short of room: only idle steps, or
/// changes that check for it, put blocks with resting data into circulation.
struct RoomAndIdleSteps;

impl Check for RoomAndIdleSteps {
    fn concerns(&self, system: &Description) -> bool {
        !system.replaces()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let geometry =
            Geometry { page_bytes: 512, spare_bytes: 0, pages_per_block: 8, blocks: 128 };
        let case = Case::new(Profile { geometry, ..nandina::flash::profile::NOR });
        for idle in [false, true] {
            let wear = with_index::<S, _>(&case, |index| {
                let records = 3_000;
                for number in 0..records {
                    index.insert(&key(number * 7 % records), &value(number, 0)).map_err(text)?;
                }
                let mut random = ChaCha8Rng::seed_from_u64(9);
                for turn in 0..if S::DESCRIPTION.has_leaf_blocks() { 800_000 } else { 200_000 } {
                    let number = random.random_range(0..records);
                    index.insert(&key(number), &value(number, turn)).map_err(text)?;
                    if idle {
                        index.gc_step(4 * index.gc_step_least()).map_err(text)?;
                    }
                    if turn % 500 == 0 && index.flash().wear().mean >= 20.0 {
                        break;
                    }
                }
                Ok(index.flash().wear())
            })?;
            println!("{}, idle steps {idle}: {wear:?}", S::DESCRIPTION.key);
            if wear.mean < 20.0 || f64::from(wear.most) > 1.2 * wear.mean {
                return Err(format!("uneven wear, idle steps {idle}: {wear:?}"));
            }
        }
        Ok(())
    }
}

#[test]
fn updates_that_are_never_short_of_room_wear_blocks_evenly() {
    for_one_system_in(4, &RoomAndIdleSteps);
}

/// Blocks fail at their endurance, until the index refuses changes.
struct EndOfLife(WearPolicy);

impl Check for EndOfLife {
    fn concerns(&self, system: &Description) -> bool {
        !system.replaces()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = case(self.0);
        case.profile.endurance = 30;
        case.profile.capabilities.bad_blocks_per_mille = 60;
        let mut ram = case.ram::<S>();
        let mut chip = Chip::with_seed(suited::<S>(case.profile), seed());
        chip.set_faults(Faults { wear_out: true, ..Faults::default() });
        let mut model = Model::new();
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let mut updates = 0;
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let (end, reached) = loop {
            let number = random.random_range(0..RECORDS / 2);
            updates += 1;
            match index.insert(&key(number), &value(number, updates)) {
                Ok(_) => {
                    model.insert(key(number).to_vec(), value(number, updates).to_vec());
                }
                Err(error @ WriteError::WornOut { .. }) => break (error, number),
                Err(error) => return Err(format!("update {updates}: {error:?}")),
            }
            if updates > 10_000_000 {
                return Err("the chip never wears out".into());
            }
        };
        println!("{}: {updates} updates, then {end}", S::DESCRIPTION.key);
        // The update that was refused may be there or not.
        let found = index.get(&key(reached)).map_err(text)?.map(<[u8]>::to_vec);
        if found.as_deref() == Some(&value(reached, updates)[..]) {
            model.insert(key(reached).to_vec(), value(reached, updates).to_vec());
        }
        compare(&mut index, &model).map_err(|what| format!("worn out: {what}"))?;
        drop(index);
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        compare(&mut index, &model).map_err(|what| format!("worn out and reopened: {what}"))
    }
}

#[test]
fn a_worn_out_chip_says_so_and_all_can_be_read() {
    for_one_system_in(3, &EndOfLife(WearPolicy::Counted));
    for_one_system_in(3, &EndOfLife(WearPolicy::Circular));
}

/// Where erases are not counted, the block that is opened next is read for its count.
///
/// With the fewest page buffers, that read takes one that holds a page, but none that is written.
struct FewBuffers;

impl Check for FewBuffers {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = case(WearPolicy::Circular);
        case.profile.geometry.blocks = 12;
        case.options.page_buffers = Some(S::DESCRIPTION.buffers_min);
        with_index::<S, _>(&case, |index| {
            let mut random = ChaCha8Rng::seed_from_u64(seed());
            let mut model = Model::new();
            for turn in 0..20_000 {
                // Leaves grow until the chip is full, and then so thin that neighbours join.
                let number = random.random_range(0..4_000);
                if random.random_range(0..3_000) < 600 + turn % 2_000 {
                    index.remove(&key(number)).map_err(text)?;
                    model.remove(&key(number)[..]);
                } else {
                    match index.insert(&key(number), &value(number, turn)) {
                        Ok(_) => drop(model.insert(key(number).into(), value(number, turn).into())),
                        Err(WriteError::Full { .. }) => {}
                        Err(error) => return Err(text(error)),
                    }
                }
                if turn % 4 == 0 {
                    let least = index.gc_step_least();
                    index.gc_step(random.random_range(0..3 * least)).map_err(text)?;
                }
            }
            if index.statistics().erases_most < 50 {
                return Err("too short a run".into());
            }
            compare(index, &model)
        })
    }
}

#[test]
fn a_count_that_is_read_takes_no_buffer_that_is_written() {
    for_one_system_in(4, &FewBuffers);
}
