//! The chip and the options of all tests, and a map beside the index.

use std::collections::BTreeMap;
use std::ops::Bound;

use nandina::flash::{Flash, Geometry, Profile, profile::NOR};
use nandina::store::RosetteNor;
use nandina::{Index, Inserted, Options, Removed, key, ram_needed};
use nandina_sim::Chip;

/// The options of all runs: records of 16 bytes.
pub const OPTIONS: Options = Options::new(4, 12);

/// A chip of few sectors, each of 1 KiB, so that leaves are divided and joined often.
pub const SMALL: Profile = Profile {
    geometry: Geometry { page_bytes: 256, spare_bytes: 0, pages_per_block: 4, blocks: 12 },
    ..NOR
};

pub use crate::random::Random;

/// What an index must hold.
pub type Model = BTreeMap<[u8; 4], [u8; 12]>;

/// A value that tells when it was written.
pub fn value(turn: u32) -> [u8; 12] {
    let mut bytes = [turn as u8; 12];
    bytes[..4].copy_from_slice(&turn.to_be_bytes());
    bytes
}

/// RAM for an index of these options.
pub fn ram(profile: &Profile, options: &Options) -> Vec<u8> {
    vec![0xA5; ram_needed::<RosetteNor>(&profile.geometry, options)]
}

/// Compares all that can be read with the map.
pub fn compare<F: Flash<Error: std::fmt::Debug>>(
    index: &mut Index<'_, F, RosetteNor>,
    model: &Model,
) {
    assert_eq!(index.len() as usize, model.len());
    let mut upwards = Vec::new();
    let mut range = index.range(..).unwrap();
    while let Some((key, value)) = range.next().unwrap() {
        upwards.push((key.to_vec(), value.to_vec()));
    }
    assert!(
        upwards
            .iter()
            .map(|(key, value)| (&key[..], &value[..]))
            .eq(model.iter().map(|(key, value)| (&key[..], &value[..])))
    );
    let mut downwards = Vec::new();
    let mut range = index.range_down(..).unwrap();
    while let Some((key, value)) = range.next().unwrap() {
        downwards.push((key.to_vec(), value.to_vec()));
    }
    downwards.reverse();
    assert!(upwards == downwards);
    index.check(|violation| panic!("{violation}")).unwrap();
}

#[test]
fn it_holds_what_a_map_holds() {
    for (profile, keys, turns) in [
        (SMALL, 150, 20_000),
        (SMALL.with_blocks(40), 900, 30_000),
        (NOR.with_blocks(24), 1_500, 30_000),
    ] {
        let mut chip = Chip::new(profile);
        let mut ram = ram(&profile, &OPTIONS);
        let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
        let (mut model, mut random) = (Model::new(), Random::new(1));
        for turn in 0..turns {
            let key = key::from_u32(random.below(keys) * 0x10_0001);
            // It grows, shrinks and grows again.
            let grows = turn / (turns / 5) % 2 == 0;
            if random.below(8) < if grows { 5 } else { 2 } {
                let is_new = index.insert(&key, &value(turn)).unwrap() == Inserted::New;
                assert_eq!(is_new, model.insert(key, value(turn)).is_none());
            } else {
                let removed = index.remove(&key).unwrap() == Removed::Found;
                assert_eq!(removed, model.remove(&key).is_some());
            }
            if turn % 1_000 == 0 {
                compare(&mut index, &model);
            }
            let other = key::from_u32(random.below(keys) * 0x10_0001);
            assert_eq!(index.get(&other).unwrap(), model.get(&other).map(|it| &it[..]));
        }
        compare(&mut index, &model);
        // The same after a clean end, and after none.
        index.close();
        for _ in 0..2 {
            let mut index = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
            compare(&mut index, &model);
        }
    }
}

#[test]
fn ranges_begin_and_end_where_they_are_bounded() {
    let profile = SMALL.with_blocks(20);
    let mut chip = Chip::new(profile);
    let mut ram = ram(&profile, &OPTIONS);
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let mut model = Model::new();
    let mut random = Random::new(2);
    for turn in 0..700 {
        let key = key::from_u32(random.below(400));
        if turn % 4 < 3 {
            index.insert(&key, &value(turn)).unwrap();
            model.insert(key, value(turn));
        } else {
            index.remove(&key).unwrap();
            model.remove(&key);
        }
    }
    let bound = |random: &mut Random| {
        let key = key::from_u32(random.below(410));
        match random.below(3) {
            0 => Bound::Included(key),
            1 => Bound::Excluded(key),
            _ => Bound::Unbounded,
        }
    };
    for _ in 0..2_000 {
        let (low, high) = (bound(&mut random), bound(&mut random));
        let is_in = |key: &[u8; 4]| {
            let above = match low {
                Bound::Included(low) => *key >= low,
                Bound::Excluded(low) => *key > low,
                Bound::Unbounded => true,
            };
            let below = match high {
                Bound::Included(high) => *key <= high,
                Bound::Excluded(high) => *key < high,
                Bound::Unbounded => true,
            };
            above && below
        };
        let wanted: Vec<_> = model.keys().filter(|key| is_in(key)).collect();
        let bounds = (low.as_ref().map(|it| &it[..]), high.as_ref().map(|it| &it[..]));
        let mut found = Vec::new();
        let mut range = index.range(bounds).unwrap();
        while let Some((key, _)) = range.next().unwrap() {
            found.push(key.to_vec());
        }
        assert!(found.iter().eq(wanted.iter().copied()), "{low:?} {high:?}");
        found.clear();
        let mut range = index.range_down(bounds).unwrap();
        while let Some((key, _)) = range.next().unwrap() {
            found.push(key.to_vec());
        }
        assert!(found.iter().eq(wanted.iter().rev().copied()), "{low:?} {high:?}, downwards");
    }
}
