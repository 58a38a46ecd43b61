//! The example of a store of one's own (`nandina-lab/own/leaf_pairs.rs`) under cuts and swarms.
//!
//! With the feature `example-store` of the lab, it is under the whole suite and in every report;
//! `.ci/full` runs that. Here are the checks that take seconds.

#[path = "../own/leaf_pairs.rs"]
mod leaf_pairs;

use std::collections::BTreeMap;

use leaf_pairs::LeafPairs;
use nandina::flash::{Flash, Geometry, Profile};
use nandina::store::{Mu, Wandering};
use nandina::{Index, Inserted, Options, Removed, System, key, ram_needed};
use nandina_lab::torture::{CutRun, Episode, Hardships, Mode, cut_everywhere, episode};
use nandina_sim::{Chip, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const OPTIONS: Options = Options::new(4, 12);

/// A small chip on which trees of height three are far from full.
const CHIP: Profile = Profile { geometry: Geometry { blocks: 96, ..TINY.geometry }, ..TINY };

#[test]
fn it_holds_what_a_map_holds() {
    let mut chip = Chip::new(CHIP);
    let mut ram = vec![0xA5; ram_needed::<LeafPairs>(&chip.geometry(), &OPTIONS)];
    let mut index = Index::<_, LeafPairs>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
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
    assert!(index.statistics().height > 2, "no node is above the pairs");
    for number in 0..1_500 {
        let key = key::from_u32(number);
        assert_eq!(index.get(&key).unwrap(), model.get(&key).map(|value| &value[..]));
    }
}

#[test]
fn a_cut_at_every_operation_leaves_the_old_or_the_new_state() {
    for run in [CutRun::SMALL, CutRun { lean: true, ..CutRun::SMALL }] {
        let chip = run.chip::<LeafPairs>(1);
        let report = cut_everywhere::<LeafPairs, _>(chip, run, Mode::Linear, 1, &|_| {});
        assert_eq!(report.violations, []);
        assert!(report.cuts > 500, "only {} cuts", report.cuts);
    }
}

#[test]
fn swarms_of_faults_lose_nothing() {
    let (mut operations, mut cuts) = (0, 0);
    for seed in 1..=20 {
        for unstable in [false, true] {
            let hardships = Hardships { unstable, ..Hardships::NONE };
            let mut done = Episode::default();
            episode::<LeafPairs>(seed, hardships, &mut done).unwrap();
            operations += done.operations;
            cuts += done.faults.cuts;
        }
    }
    assert!(operations > 40_000 && cuts > 1_000, "{operations} operations, {cuts} cuts");
}

/// Pages that a replacement programs in a tree of height 3, without garbage collection.
fn pages_of_a_replacement<S: System>() -> u64 {
    let mut chip = Chip::new(CHIP);
    let mut ram = vec![0; ram_needed::<S>(&chip.geometry(), &OPTIONS)];
    let mut index = Index::<_, S>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let mut number = 0;
    while index.statistics().height < 3 {
        index.insert(&key::from_u32(number), &[1; 12]).unwrap();
        number += 1;
    }
    let before = index.flash().counters().programs;
    index.insert(&key::from_u32(0), &[2; 12]).unwrap();
    index.flash().counters().programs - before
}

#[test]
fn a_change_writes_a_page_less_than_the_tree_has_levels() {
    assert_eq!(pages_of_a_replacement::<Wandering>(), 3);
    assert_eq!(pages_of_a_replacement::<LeafPairs>(), 2);
    assert_eq!(pages_of_a_replacement::<Mu>(), 1);
}
