//! A full device refuses new records; what is there can be replaced and removed.

use nandina::{System, WriteError, key};
use nandina_lab::rivals::{Bftl, LaTree, MbTree};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{Model, chip, contents, options, with};

/// Fills a device, and empties it again.
fn refuse_and_lose_nothing<S: System>(write_buffer: usize, seed: u64) {
    let mut chip = chip(24);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = Model::new();
    let options = options(write_buffer);
    with::<S, _>(&mut chip, &options, true, |_| ()).unwrap();
    // The next session has another write buffer than the one that filled the device.
    for options in [options, crate::common::options(2 - write_buffer)] {
        with::<S, _>(&mut chip, &options, false, |index| {
            let mut refused = 0;
            while refused < 50 {
                let key = key::from_u32(random.random_range(0..100_000));
                match index.insert(&key, &[7; 12]) {
                    Ok(_) => drop(model.insert(key.to_vec(), vec![7; 12])),
                    Err(WriteError::Full { .. }) => refused += 1,
                    Err(error) => panic!("{error:?}"),
                }
            }
            index.flush().unwrap();
            assert!(model.len() > 60, "only {} records have room", model.len());
            assert_eq!(contents(index), model);
            let mut keys: Vec<Vec<u8>> = model.keys().cloned().collect();
            keys.shuffle(&mut random);
            for key in &keys {
                index.insert(key, &[9; 12]).unwrap();
                model.insert(key.clone(), vec![9; 12]);
            }
            assert_eq!(contents(index), model);
            for key in keys.iter().skip(keys.len() / 4) {
                index.remove(key).unwrap();
                model.remove(key);
            }
            index.flush().unwrap();
        })
        .unwrap();
        with::<S, _>(&mut chip, &options, false, |index| {
            assert_eq!(contents(index), model);
        })
        .unwrap();
    }
    with::<S, _>(&mut chip, &options, false, |index| {
        for key in std::mem::take(&mut model).into_keys() {
            index.remove(&key).unwrap();
        }
        assert_eq!(contents(index), model);
        index.insert(&key::from_u32(1), &[1; 12]).unwrap();
        index.flush().unwrap();
    })
    .unwrap();
}

#[test]
fn a_full_bftl_refuses_and_loses_nothing() {
    for seed in 0..4 {
        (0..=2).for_each(|pages| refuse_and_lose_nothing::<Bftl>(pages, seed));
    }
}

#[test]
fn a_full_la_refuses_and_loses_nothing() {
    for seed in 0..4 {
        (0..=2).for_each(|pages| refuse_and_lose_nothing::<LaTree>(pages, seed));
    }
}

#[test]
fn a_full_mb_refuses_and_loses_nothing() {
    for seed in 0..4 {
        (0..=2).for_each(|pages| refuse_and_lose_nothing::<MbTree>(pages, seed));
    }
}
