//! `mu-star` beside a model: pages whose layout follows from the path that they hold.

use std::collections::BTreeMap;

use nandina::flash::profile::SLC;
use nandina::store::{Mu, MuStar};
use nandina::{Index, Options, System, ram_needed};
use nandina_sim::{Chip, TINY};

/// A small generator of numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(below)) as u32
    }
}

/// Changes records at random beside a model, checks the index now and then, and mounts it again.
fn runs_beside_a_model(seed: u64, keys: u32, options: &Options) {
    let value_bytes = options.value_bytes;
    let profile = TINY.with_blocks(64);
    let mut chip = Chip::new(profile);
    let mut ram = vec![0; ram_needed::<MuStar>(&profile.geometry, options)];
    let mut numbers = Numbers(seed);
    let mut model = BTreeMap::new();
    let mut index = Index::<_, MuStar>::format(&mut chip, options, &mut ram).unwrap();
    for turn in 0..6_000u32 {
        let key = u64::from(numbers.next(keys)).to_be_bytes();
        if numbers.next(if turn % 2_000 < 1_000 { 5 } else { 2 }) > 0 {
            let value = vec![numbers.next(256) as u8; value_bytes];
            index
                .insert(&key, &value)
                .unwrap_or_else(|error| panic!("{turn} of {keys}, {options:?}: {error}"));
            model.insert(key, value);
        } else {
            index
                .remove(&key)
                .unwrap_or_else(|error| panic!("{turn} of {keys}, {options:?}: {error}"));
            model.remove(&key);
        }
        if turn % 50 == 0 {
            index
                .check(|violation| panic!("{turn}: {violation:?}"))
                .unwrap_or_else(|error| panic!("{turn} of {keys}, {options:?}: {error}"));
        }
        if turn % 500 == 0 {
            index.flush().unwrap();
            index = Index::open(&mut chip, options, &mut ram).unwrap();
            let mut range = index.range(..).unwrap();
            for (key, value) in &model {
                assert_eq!(range.next().unwrap(), Some((&key[..], &value[..])), "{turn}");
            }
            assert_eq!(range.next().unwrap(), None);
        }
    }
}

#[test]
fn random_changes_leave_what_a_model_has() {
    for seed in 1..6 {
        for (keys, value_bytes) in [(900, 8), (1_500, 8), (200, 40), (300, 2)] {
            let plain = Options::new(8, value_bytes);
            runs_beside_a_model(seed, keys, &plain);
            runs_beside_a_model(seed, keys, &Options { write_cache: 6, ..plain });
            runs_beside_a_model(seed, keys, &Options { write_buffer: 2, ..plain });
            runs_beside_a_model(seed, keys, &Options { checkpoints: Some(1), ..plain });
        }
    }
}

/// The height, the leaves and the programs of `records` random inserts.
fn filled<S: System>(records: u32) -> (u8, u32, u64) {
    let options = Options::new(8, 8);
    let mut chip = Chip::new(SLC);
    let mut ram = vec![0; ram_needed::<S>(&SLC.geometry, &options)];
    let mut index = Index::<_, S>::format(&mut chip, &options, &mut ram).unwrap();
    for number in 0..records {
        let key = u64::from(number.wrapping_mul(0x9E37_79B1)).to_be_bytes();
        index.insert(&key, &[7; 8]).unwrap();
    }
    let found = index.statistics();
    (found.height, found.valid_pages, index.flash().counters().programs)
}

#[test]
fn a_leaf_has_what_its_path_leaves_free() {
    for records in [2_000, 20_000, 60_000] {
        let (mu, star) = (filled::<Mu>(records), filled::<MuStar>(records));
        println!("{records}: mu {mu:?}, mu-star {star:?}");
        assert!(star.0 <= mu.0 && star.1 < mu.1, "mu {mu:?}, mu-star {star:?}");
    }
}

#[test]
fn an_index_that_ascending_keys_have_filled_is_opened() {
    // Its leaves hold more than half a page, which is all that they can count on.
    let mut profile = TINY.with_blocks(16);
    (profile.geometry.page_bytes, profile.geometry.pages_per_block) = (4096, 8);
    profile.capabilities.bad_blocks_per_mille = 0;
    let options = Options::new(4, 4);
    let mut chip = Chip::new(profile);
    let mut ram = vec![0; ram_needed::<MuStar>(&profile.geometry, &options)];
    let mut index = Index::<_, MuStar>::format(&mut chip, &options, &mut ram).unwrap();
    let filled = (0..u32::MAX).find(|key| index.insert(&key.to_be_bytes(), &[7; 4]).is_err());
    let records = filled.unwrap();
    assert!(records > 34_000, "only {records} records");
    let mut index = Index::<_, MuStar>::open(&mut chip, &options, &mut ram).unwrap();
    assert_eq!(index.len(), records);
    assert_eq!(index.get(&0u32.to_be_bytes()).unwrap(), Some(&[7; 4][..]));
    assert_eq!(index.get(&(records - 1).to_be_bytes()).unwrap(), Some(&[7; 4][..]));
}
