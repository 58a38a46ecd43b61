//! Lives by seed: cuts in a row, unstable bits, device errors, failing sectors, and rot.

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Profile};
use nandina::store::RosetteNor;
use nandina::{Index, OpenError, Options, ReadError, WriteError, key};
use nandina_sim::{Chip, ChipError, Cut, Faults};

use crate::model::{Model, OPTIONS, Random, SMALL, compare, ram, value};

/// Sectors of 1,000 that may become bad, where some do.
const BAD_MAX: u32 = 250;

/// What befalls a chip.
#[derive(Clone, Copy, Debug)]
struct Hardships {
    unstable: bool,
    cuts: bool,
    device_errors: u32,
    failures: u32,
}

/// The states that the index may be in.
struct Life {
    allowed: Vec<Model>,
    operations: u32,
}

impl Life {
    fn settle(&mut self, found: &Model, what: &str) {
        assert!(self.allowed.contains(found), "{what}: a state that never was");
        self.allowed = vec![found.clone()];
    }
}

fn content(index: &mut Index<'_, &mut Chip, RosetteNor>) -> Result<Model, ReadError<ChipError>> {
    let mut model = Model::new();
    let mut range = index.range(..)?;
    while let Some((key, value)) = range.next()? {
        model.insert(key.try_into().unwrap(), value.try_into().unwrap());
    }
    Ok(model)
}

/// One life of a chip. Returns its operations.
fn live(seed: u64, hardships: Hardships) -> u32 {
    let mut random = Random::new(seed);
    let blocks = 8 + random.below(20);
    let pages_per_block = 3 + random.below(6);
    let bad_blocks_per_mille = if hardships.failures > 0 { BAD_MAX as u8 } else { 0 };
    let profile = Profile {
        geometry: Geometry { pages_per_block, blocks, ..SMALL.geometry },
        capabilities: Capabilities { bad_blocks_per_mille, ..SMALL.capabilities },
        ..SMALL
    };
    let mut chip = Chip::with_seed(profile, seed);
    let faults = Faults {
        unstable_pages: u32::from(hardships.unstable) * (1 + random.below(3)),
        device_errors: hardships.device_errors,
        program_failures: hardships.failures,
        erase_failures: hardships.failures / 4,
        ..Faults::NONE
    };
    let options = Options {
        leaves: if random.below(2) == 0 { None } else { Some(2 + random.below(blocks)) },
        verify: random.below(4) == 0,
        ..OPTIONS
    };
    let mut ram = ram(&profile, &options);
    Index::<_, RosetteNor>::format(&mut chip, &options, &mut ram).unwrap();
    chip.set_faults(faults);
    let keys = 20 + random.below(300);
    let mut life = Life { allowed: vec![Model::new()], operations: 0 };
    for session in 0..20 {
        let what = format!("seed {seed}, session {session}, {hardships:?}");
        chip.restore_power();
        let is_cut = hardships.cuts && random.below(4) > 0;
        if is_cut {
            let cut = Cut::ALL[random.below(5) as usize];
            chip.cut_at_change(u64::from(random.below(60)), cut);
        }
        let mut index = match Index::<_, RosetteNor>::open(&mut chip, &options, &mut ram) {
            Ok(index) => index,
            Err(OpenError::Device(_)) => continue,
            Err(error) => panic!("{what}: {error}"),
        };
        let grows = random.below(3) > 0;
        for turn in 0..60 {
            life.operations += 1;
            let key = key::from_u32(random.below(keys) * 0x10_0001);
            let value = value(session * 100 + turn);
            let puts = random.below(8) < if grows { 6 } else { 2 };
            let done = match puts {
                true => index.insert(&key, &value).map(|_| ()),
                false => index.remove(&key).map(|_| ()),
            };
            let lost = (0..blocks).filter(|&block| index.flash().is_lost(BlockNumber(block)));
            if lost.count() as u32 > blocks * BAD_MAX / 1000 {
                // More than the chip may have: nothing is promised.
                return life.operations;
            }
            let apply = |model: &mut Model| match puts {
                true => _ = model.insert(key, value),
                false => _ = model.remove(&key),
            };
            match done {
                Ok(()) => life.allowed.iter_mut().for_each(apply),
                Err(WriteError::Device(error)) => {
                    let mut after = life.allowed.clone();
                    after.iter_mut().for_each(apply);
                    life.allowed.extend(after);
                    if error == ChipError::PowerLost {
                        break;
                    }
                    // The index is used on: what is read now is the state.
                    match content(&mut index) {
                        Ok(found) => {
                            assert_eq!(index.len() as usize, found.len(), "{what}");
                            life.settle(&found, &what);
                        }
                        Err(ReadError::Device(_)) => break,
                        Err(error) => panic!("{what}: {error}"),
                    }
                }
                Err(WriteError::Full { .. }) if puts => {}
                Err(WriteError::Full { .. }) if hardships.failures > 0 => {}
                Err(error) => panic!("{what}: {error}"),
            }
            if random.below(20) == 0 {
                match content(&mut index) {
                    Ok(found) => {
                        assert_eq!(index.len() as usize, found.len(), "{what}");
                        life.settle(&found, &what);
                    }
                    Err(ReadError::Device(_)) => break,
                    Err(error) => panic!("{what}: {error}"),
                }
            }
            if random.below(5) == 0 && index.gc_step(8).is_err() {
                break;
            }
        }
        if random.below(3) == 0 {
            index.close();
        }
    }
    chip.restore_power();
    chip.set_faults(Faults { unstable_pages: faults.unstable_pages, ..Faults::NONE });
    for _ in 0..2 {
        let mut index = Index::<_, RosetteNor>::open(&mut chip, &options, &mut ram).unwrap();
        let found = content(&mut index).unwrap();
        life.settle(&found, &format!("seed {seed}, at the end, {hardships:?}"));
        compare(&mut index, &found);
    }
    life.operations
}

fn swarm(seeds: core::ops::Range<u64>, hardships: Hardships, least: u32) {
    let count = (seeds.end - seeds.start) as u32;
    let operations: u32 = seeds.map(|seed| live(seed, hardships)).sum();
    assert!(operations > least * count, "only {operations} operations");
}

const NONE: Hardships = Hardships { unstable: false, cuts: false, device_errors: 0, failures: 0 };

#[test]
fn cuts_in_a_row_lose_nothing() {
    // Leaves that were replaced and not marked were once too many for the directory.
    swarm(100_662..100_663, Hardships { cuts: true, ..NONE }, 300);
    swarm(0..150, Hardships { cuts: true, ..NONE }, 300);
}

#[test]
fn cuts_in_a_row_with_unstable_bits_lose_nothing() {
    swarm(1_000..1_300, Hardships { cuts: true, unstable: true, ..NONE }, 300);
}

/// H12: what a device error leaves half done is found by the mount that follows.
#[test]
fn h12_an_index_is_used_on_after_errors_of_the_device() {
    // Here a leaf was settled in an operation that failed later, which RAM did not know then.
    swarm(20_049..20_050, Hardships { device_errors: 300, ..NONE }, 100);
    swarm(2_000..2_100, Hardships { device_errors: 300, ..NONE }, 100);
    swarm(2_100..2_200, Hardships { device_errors: 300, cuts: true, unstable: true, ..NONE }, 100);
}

#[test]
fn sectors_that_fail_are_given_up() {
    swarm(30_454..30_455, Hardships { failures: 400, ..NONE }, 300);
    swarm(3_000..3_100, Hardships { failures: 400, ..NONE }, 300);
}

#[test]
fn sectors_that_fail_after_cuts_are_given_up() {
    swarm(4_000..4_300, Hardships { failures: 400, cuts: true, ..NONE }, 200);
}

/// A slot that is torn in a sector that rejects programs is read once, and written elsewhere.
#[test]
fn sectors_that_fail_after_cuts_with_unstable_bits_are_given_up() {
    let hardships = Hardships { failures: 400, cuts: true, unstable: true, ..NONE };
    // In the single ones a sector that fails was the last one with a version of its keys, or a slot
    // was seen at first and then no more.
    let one = |seed: u64| seed..seed + 1;
    let single = [60_509, 61_224, 62_050, 62_330, 63_129, 64_825];
    let later = [117_869, 132_695, 133_899, 200_617];
    let ranges = [60_641..60_660, 61_028..61_130, 61_985..62_000];
    for seeds in single.into_iter().chain(later).map(one).chain(ranges) {
        swarm(seeds, hardships, 100);
    }
}

/// H14: rot of a sorted record is an error when its leaf is written again, and `check` finds it.
#[test]
fn h14_rot_is_found_and_not_sealed_anew() {
    let mut ram = ram(&SMALL, &OPTIONS);
    let mut chip = Chip::new(SMALL);
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    for turn in 0..60 {
        index.insert(&key::from_u32(turn), &value(turn)).unwrap();
    }
    index.close();
    let (mut found, mut flips) = (0, 0);
    let (mut opened, mut rejected) = (0, 0);
    for page in 0..SMALL.geometry.pages() {
        let page = PageNumber(page);
        let mut main = vec![0; 256];
        let first =
            PageNumber(page.0 / SMALL.geometry.pages_per_block * SMALL.geometry.pages_per_block);
        chip.clone().read(first, &mut main, &mut []).unwrap();
        // The magic of a header: that of a leaf that was replaced is gone.
        if main[220..222] != *b"Nd" {
            continue;
        }
        chip.clone().read(page, &mut main, &mut []).unwrap();
        // A value of a record that is in order.
        let Some(at) = (0..240).find(|&at| main[at..at + 3] == [0, 0, 0] && main[at + 4] == 0)
        else {
            continue;
        };
        let mut rotten = chip.clone();
        rotten.corrupt_page(page, |main, _| main[at + 8] ^= 0x10);
        flips += 1;
        let Ok(mut index) = Index::<_, RosetteNor>::open(&mut rotten, &OPTIONS, &mut ram) else {
            found += 1;
            continue;
        };
        opened += 1;
        let mut violations = 0;
        let checked = index.check(|_| violations += 1);
        found += u32::from(checked.is_err() || violations > 0);
        // The leaf cannot be written again: no change gives the rot a checksum that is right.
        let damaged = (0..2_000).any(|turn| {
            let done = index.insert(&key::from_u32(turn % 60), &value(turn));
            assert!(matches!(done, Ok(_) | Err(WriteError::Corrupt { .. })), "{done:?}");
            done.is_err()
        });
        rejected += u32::from(damaged);
    }
    assert_eq!(rejected, opened);
    assert!(flips >= 3, "only {flips} records were found");
    assert_eq!(found, flips);
}
