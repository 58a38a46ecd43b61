//! A full device below an index: the FTL's converter, its merges and the index itself have no
//! room but what each keeps, and nothing that was accepted is lost.

use std::collections::BTreeMap;

use nandina::flash::{Geometry, Profile};
use nandina::store::{BTree, Wpcb};
use nandina::{Index, Options, Removed, System, WriteError, ram_needed};
use nandina_lab::effort::Share;
use nandina_lab::layer::{Bus, Layer, OnFtl, Room, TransitBuffer};
use nandina_sim::{Chip, TINY};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CHIP: Profile =
    Profile { geometry: Geometry { pages_per_block: 8, blocks: 48, ..TINY.geometry }, ..TINY };

/// The keys that there are. More of them than a full device has room for.
const KEYS: u32 = 40_000;

/// A device is full when so many inserts were refused: leaves with room take some after the first.
const REFUSED: u32 = 40;

/// Changes at each fill, in each of two sessions.
const CHANGES: u32 = 500;

/// The most operations of the chip in a session: one more, and a caller loops for ever.
const OPERATIONS_MAX: u64 = 6_000_000;

type Model = BTreeMap<u32, u32>;

/// What one device went through.
struct Life<'l> {
    layer: &'l Layer,
    rng: ChaCha8Rng,
    model: Model,
    refused: u32,
}

impl Life<'_> {
    /// Inserts or replaces a record. Returns whether there was room.
    fn put<S: System>(
        &mut self,
        index: &mut Index<'_, &mut dyn Bus, S>,
        key: u32,
        value: u32,
    ) -> bool {
        let is_new = !self.model.contains_key(&key);
        match index.insert(&key.to_be_bytes(), &value.to_le_bytes()) {
            Ok(_) => {
                self.model.insert(key, value);
                true
            }
            // A record that is there needs no page, so that only a new one can be refused.
            Err(refusal @ WriteError::Full { .. }) if is_new => {
                let text = refusal.to_string();
                assert!(text.starts_with("the device is full: no more than "), "{text}");
                self.refused += 1;
                false
            }
            Err(error) => panic!("{}, {:?}: {error}", S::DESCRIPTION.key, self.layer),
        }
    }

    /// Replaces, removes and inserts records, with idle steps in between.
    fn change<S: System>(&mut self, index: &mut Index<'_, &mut dyn Bus, S>) {
        for turn in 0..CHANGES {
            let keys = self.model.range(self.rng.random_range(0..KEYS)..).next();
            let key = keys.map_or(0, |(key, _)| *key);
            match turn % 8 {
                // More come than go, so that it stays as full as it is.
                0 | 4 if self.model.contains_key(&key) => {
                    let removed = index.remove(&key.to_be_bytes()).unwrap();
                    assert_eq!(removed, Removed::Found);
                    self.model.remove(&key);
                }
                1 | 2 | 5 => {
                    let new = self.rng.random_range(0..KEYS);
                    self.put(index, new, turn);
                }
                3 => {
                    // It may have nothing to do, but must come to an end.
                    let budget = index.gc_step_least().max(self.rng.random_range(1..400));
                    for _ in 0..100 {
                        if !index.gc_step(budget).unwrap().more {
                            break;
                        }
                    }
                }
                _ => {
                    self.put(index, key, turn);
                }
            }
        }
    }

    /// Expects every record that was accepted, no other, and a sound tree.
    fn verify<S: System>(&self, index: &mut Index<'_, &mut dyn Bus, S>, what: &str) {
        let what = format!("{} over {:?}, {what}", S::DESCRIPTION.key, self.layer);
        let mut found = Model::new();
        let mut records = index.range(..).unwrap();
        while let Some((key, value)) = records.next().unwrap() {
            let number = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).unwrap();
            found.insert(u32::from_be_bytes(number(key)), u32::from_le_bytes(number(value)));
        }
        assert!(found == self.model, "{what}: {} of {}", found.len(), self.model.len());
        let mut violations = Vec::new();
        index.check(|violation| violations.push(violation)).unwrap();
        assert_eq!(violations, [], "{what}");
    }
}

/// Fills a device with so many records, or until it is full. Changes records, mounts, and
/// changes more. Returns how many records it had, and how many inserts were refused.
fn live<S: System>(layer: &Layer, records: Option<u32>) -> (u32, u32) {
    let size = layer.size(&CHIP).unwrap();
    let (mut chip, mut room) = (Chip::new(CHIP), Room::default());
    let options = Options::new(4, 4);
    let mut ram = vec![0; ram_needed::<S>(&size.profile.geometry, &options)];
    let rng = ChaCha8Rng::seed_from_u64(records.unwrap_or(0).into());
    let mut life = Life { layer, rng, model: Model::new(), refused: 0 };
    let mut keys: Vec<u32> = (0..KEYS).collect();
    keys.shuffle(&mut life.rng);
    let mut had = 0;
    for session in 0..3 {
        chip.limit_operations(Some(OPERATIONS_MAX));
        let mut disk = layer.open(&size, &mut chip, &mut room, session == 0).unwrap();
        let make = if session == 0 { Index::<_, S>::format } else { Index::<_, S>::open };
        let device: &mut dyn Bus = &mut disk;
        let mut index = make(device, &options, &mut ram).unwrap();
        if session == 0 {
            for &key in &keys[..records.unwrap_or(KEYS) as usize] {
                if life.refused < REFUSED {
                    life.put(&mut index, key, key);
                }
            }
            let expected = if records.is_none() { REFUSED } else { 0 };
            assert_eq!(life.refused, expected, "{records:?}");
            had = life.model.len() as u32;
            life.verify(&mut index, "filled");
        } else {
            life.verify(&mut index, "mounted");
        }
        life.change(&mut index);
        life.verify(&mut index, "changed");
        drop(index);
        let sound = OnFtl::ftl(&mut disk).check();
        assert_eq!(sound, Ok(()), "{layer:?}");
        // The session ends without a word, as by a cut between two operations.
    }
    (had, life.refused)
}

fn layers(name: &str) -> Vec<Layer> {
    let layer = Layer::named(name).unwrap().with_over_provisioning(0);
    let layer =
        if layer.log_blocks().is_some() { layer.with_log_blocks(3).unwrap() } else { layer };
    let behind = [(1, true), (2, false), (5, true), (5, false)];
    let behind = behind.map(|(blocks, as_printed)| TransitBuffer { blocks, as_printed });
    let behind = behind.map(|transit| layer.with_transit(transit).unwrap());
    [layer].into_iter().chain(behind).collect()
}

/// Fills devices below `S` to 100, 80 and 60 per cent.
fn fill<S: System>(name: &str) {
    for layer in Share::one_in(2).of(layers(name)) {
        let (capacity, refused) = live::<S>(&layer, None);
        println!("{} over {layer:?}: {capacity} records, {refused} refused", S::DESCRIPTION.key);
        assert!(capacity > 10_000 && refused > REFUSED, "{layer:?}: {capacity}, {refused}");
        for per_cent in [80, 60] {
            let records = capacity * per_cent / 100;
            assert_eq!(live::<S>(&layer, Some(records)), (records, 0), "{layer:?}, {per_cent} %");
        }
    }
}

#[test]
fn nothing_accepted_is_lost_at_60_to_100_per_cent_above_a_page_map() {
    fill::<BTree>("ftl:page");
    fill::<Wpcb>("ftl:page");
}

#[test]
fn nothing_accepted_is_lost_at_60_to_100_per_cent_above_a_block_map() {
    fill::<BTree>("ftl:block");
    fill::<Wpcb>("ftl:block");
}

#[test]
fn nothing_accepted_is_lost_at_60_to_100_per_cent_above_bast() {
    fill::<BTree>("ftl:bast");
    fill::<Wpcb>("ftl:bast");
}

#[test]
fn nothing_accepted_is_lost_at_60_to_100_per_cent_above_fast() {
    fill::<BTree>("ftl:fast");
    fill::<Wpcb>("ftl:fast");
}
