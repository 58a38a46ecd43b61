//! The example of a store of one's own (`nandina-lab/own/leaf_pairs.rs`) under cuts and swarms.
//!
//! With the feature `example-store` of the lab, it is under the whole suite and in every report;
//! `.ci/full` runs that. Here are the checks that take seconds.

mod example;
#[path = "../own/leaf_pairs.rs"]
mod leaf_pairs;

use example::{OPTIONS, hold_what_a_map_holds, survive_every_cut, survive_swarms};
use leaf_pairs::LeafPairs;
use nandina::flash::{Flash, Geometry, Profile};
use nandina::store::{Mu, Wandering};
use nandina::{Index, System, key, ram_needed};
use nandina_lab::torture::CutRun;
use nandina_sim::{Chip, TINY};

/// A small chip on which trees of height three are far from full.
const CHIP: Profile = Profile { geometry: Geometry { blocks: 96, ..TINY.geometry }, ..TINY };

#[test]
fn it_holds_what_a_map_holds() {
    let height = hold_what_a_map_holds::<LeafPairs>(CHIP).height;
    assert!(height > 2, "no node is above the pairs");
}

#[test]
fn a_cut_at_every_operation_leaves_the_old_or_the_new_state() {
    survive_every_cut::<LeafPairs>(CutRun::SMALL);
}

#[test]
fn swarms_of_faults_lose_nothing() {
    survive_swarms::<LeafPairs>();
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
