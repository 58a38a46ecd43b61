//! What the examples of a store and of an engine must both hold: a model, cuts, and swarms.

use std::collections::BTreeMap;

use nandina::flash::{Flash, Profile};
use nandina::{Index, Inserted, Options, Removed, Statistics, System, key, ram_needed};
use nandina_lab::torture::{CutRun, Episode, Hardships, Mode, cut_everywhere, episode};
use nandina_sim::Chip;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The options of all runs but those of the torture.
pub const OPTIONS: Options = Options::new(4, 12);

/// Compares an index with a map through random changes, and returns what it says of itself.
pub fn hold_what_a_map_holds<S: System>(profile: Profile) -> Statistics {
    let mut chip = Chip::new(profile);
    let mut ram = vec![0xA5; ram_needed::<S>(&chip.geometry(), &OPTIONS)];
    let mut index = Index::<_, S>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let (mut model, mut random) = (BTreeMap::new(), ChaCha8Rng::seed_from_u64(1));
    for turn in 0..9_000u32 {
        let key = key::from_u32(random.random_range(0..1_500));
        if random.random_range(0..5) < 3 {
            let value = [turn as u8; 12];
            let is_new = index.insert(&key, &value).unwrap() == Inserted::New;
            assert_eq!(is_new, model.insert(key, value).is_none());
        } else {
            let removed = index.remove(&key).unwrap() == Removed::Found;
            assert_eq!(removed, model.remove(&key).is_some());
        }
        if turn % 500 == 0 {
            index.check(|violation| panic!("{violation}")).unwrap();
        }
    }
    assert_eq!(index.len() as usize, model.len());
    for number in 0..1_500 {
        let key = key::from_u32(number);
        assert_eq!(index.get(&key).unwrap(), model.get(&key).map(|value| &value[..]));
    }
    index.statistics()
}

/// Cuts `run` at every chip operation, with usual and with the least RAM.
pub fn survive_every_cut<S: System>(run: CutRun) {
    for run in [run, CutRun { lean: true, ..run }] {
        let chip = run.chip::<S>(1);
        let report = cut_everywhere::<S, _>(chip, run, Mode::Linear, 1, &|_| {});
        assert_eq!(report.violations, []);
        assert!(report.cuts > 500, "only {} cuts", report.cuts);
    }
}

/// Lives through swarms of faults, also where torn pages are unstable.
pub fn survive_swarms<S: System>() {
    let (mut operations, mut cuts) = (0, 0);
    for seed in 1..=20 {
        for unstable in [false, true] {
            let hardships = Hardships { unstable, ..Hardships::NONE };
            let mut done = Episode::default();
            episode::<S>(seed, hardships, &mut done).unwrap();
            operations += done.operations;
            cuts += done.faults.cuts;
        }
    }
    assert!(operations > 40_000 && cuts > 1_000, "{operations} operations, {cuts} cuts");
}
