//! Lives by seed: sessions that end with a cut or a close, on chips that fail in several ways.

use nandina::flash::{Capabilities, Geometry, Profile};
use nandina::store::Rosette;
use nandina::{Index, OpenError, Options, WriteError, key, plan};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY};

use crate::ways::{Compared, Model, Random, content, ram};

/// What befalls a chip.
#[derive(Clone, Copy, Debug, Default)]
struct Hardships {
    unstable: bool,
    /// One program in so many fails, and one erase in a quarter of that.
    failures: u32,
    device_errors: u32,
    /// Reads that flip a bit.
    disturbing_reads: u32,
}

/// What happened in all lives.
#[derive(Default, Debug)]
struct Lived {
    compared: Compared,
    changes: u32,
    cuts: u64,
    unstable: u64,
    failures: u64,
    refreshed: u64,
    moved: u64,
    worn_out: u32,
}

/// Bytes of a value.
const VALUE_BYTES: usize = 40;

/// A chip and options by chance, on which an index fits.
fn case(random: &mut Random, hardships: Hardships) -> (Profile, Options) {
    loop {
        let geometry = Geometry {
            page_bytes: [300, 512, 1024][random.below(3) as usize],
            pages_per_block: 3 + random.below(22),
            blocks: 12 + random.below(20),
            ..TINY.geometry
        };
        let bad_blocks_per_mille = if hardships.failures > 0 { 250 } else { 0 };
        let profile = Profile {
            geometry,
            capabilities: Capabilities { bad_blocks_per_mille, ..TINY.capabilities },
            ..TINY
        };
        let options = Options { checkpoints: Some(1), ..Options::new(4, VALUE_BYTES) };
        if plan::<Rosette>(&geometry, &profile.capabilities, &options, 1).is_ok() {
            return (profile, options);
        }
    }
}

/// One change by chance, or a step of what an index does when it is idle.
///
/// Returns `false` if the session is over.
fn step(
    index: &mut Index<'_, &mut Chip, Rosette>,
    random: &mut Random,
    keys: u32,
    states: &mut (Model, Model),
    lived: &mut Lived,
) -> bool {
    let number = random.below(keys);
    let done = match random.below(24) {
        0 => index.checkpoint().map(drop),
        1 => {
            let least = index.gc_step_least();
            index.gc_step(least + random.below(60)).map(drop)
        }
        2..9 => {
            states.1.remove(&key::from_u32(number)[..]);
            index.remove(&key::from_u32(number)).map(drop)
        }
        _ => {
            let value = [random.below(256) as u8; VALUE_BYTES];
            states.1.insert(key::from_u32(number).to_vec(), value.to_vec());
            index.insert(&key::from_u32(number), &value).map(drop)
        }
    };
    match done {
        Ok(()) => {
            lived.changes += 1;
            states.0.clone_from(&states.1);
            true
        }
        Err(WriteError::Full { .. }) => {
            states.1.clone_from(&states.0);
            true
        }
        Err(WriteError::Device(ChipError::PowerLost | ChipError::GaveUp)) => false,
        Err(WriteError::WornOut { .. }) => {
            states.1.clone_from(&states.0);
            lived.worn_out += 1;
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// One life of a chip.
fn live(seed: u64, hardships: Hardships, lived: &mut Lived) {
    let mut random = Random::new(seed);
    let (profile, options) = case(&mut random, hardships);
    let mut chip = Chip::with_seed(profile, seed);
    let mut memory = ram(&chip, &options);
    assert!(Index::<_, Rosette>::format(&mut chip, &options, &mut memory).is_ok());
    chip.set_faults(Faults {
        unstable_pages: u32::from(hardships.unstable) * (1 + random.below(3)),
        device_errors: hardships.device_errors,
        program_failures: hardships.failures,
        erase_failures: hardships.failures / 4,
        disturbing_reads: hardships.disturbing_reads,
        within_ecc: true,
        ..Faults::NONE
    });
    let keys = profile.geometry.pages() * (1 + random.below(6)) / 4 + 20;
    let mut states = (Model::new(), Model::new());
    for session in 0..40 {
        chip.restore_power();
        // Whatever options differ from one session to the next.
        let options = Options {
            checkpoints: Some(1 + random.below(4)),
            page_buffers: Some(2 + random.below(3) as usize),
            verify: random.below(4) == 0,
            ..options
        };
        let mut memory = ram(&chip, &options);
        lived.compared.compare(&chip, &options);
        // Now and then power fails soon: in the mount, or before a checkpoint.
        let window = [20, 200, 900][random.below(3) as usize];
        if random.below(6) > 0 {
            let kind = Cut::ALL[random.below(Cut::ALL.len() as u32) as usize];
            chip.cut_at(random.below(window).into(), kind);
        }
        let mut index = match Index::<_, Rosette>::open(&mut chip, &options, &mut memory) {
            Ok(index) => index,
            Err(OpenError::Device(ChipError::PowerLost | ChipError::GaveUp)) => continue,
            Err(OpenError::WornOut { .. }) if hardships.failures > 0 => break,
            Err(error) => panic!("seed {seed}, session {session}: {error}"),
        };
        let Some(found) = content(&mut index) else { continue };
        assert!(found == states.0 || found == states.1, "seed {seed}, session {session}");
        states = (found.clone(), found);
        let mut violations = 0;
        if index.check(|_| violations += 1).is_err() {
            continue;
        }
        assert_eq!(violations, 0, "seed {seed}, session {session}");
        let most = random.below(400);
        let lasts = (0..most).all(|_| step(&mut index, &mut random, keys, &mut states, lived));
        let statistics = index.statistics();
        lived.refreshed += statistics.refreshed_pages;
        lived.moved += statistics.moved_pages;
        if lasts && random.below(2) == 0 {
            index.close();
        }
    }
    let counters = chip.fault_counters();
    lived.cuts += counters.cuts;
    lived.unstable += counters.unstable;
    lived.failures += counters.program_failures + counters.erase_failures;
}

/// Lives several times under these hardships.
fn lives(seeds: core::ops::Range<u64>, hardships: Hardships) -> Lived {
    let mut lived = Lived::default();
    for seed in seeds {
        live(seed, hardships, &mut lived);
    }
    println!("{lived:?}");
    let Compared { mounts, behind, shorter, unsteady } = lived.compared;
    assert!(behind * 3 > mounts && shorter * 4 > behind, "{lived:?}");
    assert!(unsteady * 20 < mounts, "{lived:?}");
    lived
}

#[test]
fn cuts_and_ends_of_sessions_leave_one_directory() {
    let lived = lives(0..24, Hardships::default());
    assert!(lived.cuts > 300 && lived.moved > 500, "{lived:?}");
    assert_eq!(lived.compared.unsteady, 0);
}

#[test]
fn unstable_pages_leave_one_directory() {
    let lived = lives(100..124, Hardships { unstable: true, ..Hardships::default() });
    assert!(lived.unstable > 50, "{lived:?}");
}

#[test]
fn programs_and_erases_that_fail_leave_one_directory() {
    for unstable in [false, true] {
        let hardships = Hardships { failures: 300, unstable, ..Hardships::default() };
        let lived = lives(200..230, hardships);
        assert!(lived.failures > 100, "{lived:?}");
    }
}

#[test]
fn device_errors_leave_one_directory() {
    let hardships = Hardships { device_errors: 300, unstable: true, ..Hardships::default() };
    lives(300..320, hardships);
}

#[test]
fn refreshed_leaves_leave_one_directory() {
    let lived = lives(400..416, Hardships { disturbing_reads: 3, ..Hardships::default() });
    assert!(lived.refreshed > 100, "{lived:?}");
}
