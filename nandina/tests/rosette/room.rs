//! How many leaves a directory has room for, and that it never has less room than a mount needs.

use nandina::flash::Profile;
use nandina::store::{Rosette, Way};
use nandina::{Index, Options, Removed, WriteError, ram_needed};
use nandina_sim::{Chip, TINY};

use crate::ways::{Model, Random, content, found};

/// A chip with room for many more leaves than the directories here.
const ROOMY: Profile = TINY.with_blocks(1000);

/// An index in as little RAM as its options allow, and what it must hold.
struct Held {
    chip: Chip,
    options: Options,
    ram: Vec<u8>,
    model: Model,
    random: Random,
}

impl Held {
    fn new(key_bytes: usize, promised: u32, checkpoints: Option<u32>, seed: u64) -> Self {
        let options = Options { leaves: Some(promised), checkpoints, ..Options::new(key_bytes, 4) };
        let mut chip = Chip::with_seed(ROOMY, seed);
        let mut ram = vec![0; ram_needed::<Rosette>(&ROOMY.geometry, &options)];
        Index::<_, Rosette>::format(&mut chip, &options, &mut ram).unwrap();
        Self { chip, options, ram, model: Model::new(), random: Random::new(seed) }
    }

    fn open(&mut self) -> Index<'_, &mut Chip, Rosette> {
        Index::open(&mut self.chip, &self.options, &mut self.ram).unwrap()
    }

    /// Inserts records until one more is refused. Returns the leaves that there are then.
    fn fill(&mut self, mut key: impl FnMut(&mut Random, &mut [u8])) -> u32 {
        let Self { chip, options, ram, model, random } = self;
        let mut index = Index::<_, Rosette>::open(chip, options, ram).unwrap();
        loop {
            let mut bytes = vec![0; options.key_bytes];
            key(random, &mut bytes);
            match index.insert(&bytes, &[7; 4]) {
                Ok(_) => model.insert(bytes, vec![7; 4]),
                Err(WriteError::Full { .. }) => break,
                Err(error) => panic!("{error}"),
            };
        }
        // A full index still replaces and removes.
        let known = model.keys().next().unwrap().clone();
        index.insert(&known, &[8; 4]).unwrap();
        model.insert(known, vec![8; 4]);
        index.check(|violation| panic!("{violation:?}")).unwrap();
        index.statistics().valid_pages
    }

    /// Removes all records but every `kept`th, in no order.
    fn thin(&mut self, kept: usize) {
        let keys: Vec<_> = self.model.keys().cloned().collect();
        let Self { chip, options, ram, model, .. } = self;
        let mut index = Index::<_, Rosette>::open(chip, options, ram).unwrap();
        for (at, key) in keys.iter().enumerate() {
            if at % kept > 0 {
                assert_eq!(index.remove(key).unwrap(), Removed::Found);
                model.remove(key);
            }
        }
    }

    /// An opening with the same RAM finds everything, whichever way it goes.
    fn expect_whole(&mut self) {
        let ways = [Way::Trails, Way::Checkpoint, Way::Pages];
        let [by_trails, by_all, bare] =
            ways.map(|way| found(&self.chip, &self.options, way).unwrap().0);
        let bare = bare.unwrap();
        for other in [by_trails, by_all].into_iter().flatten() {
            assert_eq!(other.directory, bare.directory);
        }
        let expected = self.model.clone();
        assert_eq!(content(&mut self.open()), Some(expected));
    }
}

#[test]
fn random_keys_have_room_for_many_leaves_and_clusters_for_those_that_are_promised() {
    for (key_bytes, promised, checkpoints) in
        [(4, 40, None), (8, 40, Some(4)), (16, 40, Some(4)), (4, 600, Some(8)), (16, 200, None)]
    {
        let mut held = Held::new(key_bytes, promised, checkpoints, 3);
        let random_key = |random: &mut Random, key: &mut [u8]| {
            key.fill_with(|| random.below(256) as u8);
        };
        let leaves = held.fill(random_key);
        // An entry has two bytes of the key beside the two of the page, however long keys are.
        let entries = (key_bytes + 2) as u32 * promised / 4;
        assert!(leaves > entries - 4, "{key_bytes}: {leaves} of {entries}");
        held.expect_whole();
        held.thin(9);
        held.expect_whole();
        // Keys that differ in their first and last bytes need whole separators.
        let leaves = held.fill(|random, key| {
            key.fill(0xEE);
            key[0] = random.below(3) as u8;
            let last = key.len() - 2;
            key[last..].copy_from_slice(&(random.next() as u16).to_be_bytes());
        });
        assert!((promised..=promised * 5 / 4).contains(&leaves), "{key_bytes}: {leaves}");
        held.expect_whole();
        held.thin(usize::MAX);
        held.expect_whole();
        // Once these are gone, there is as much room as before.
        let leaves = held.fill(random_key);
        assert!(leaves > entries - 4, "{key_bytes}: {leaves} of {entries}");
        held.expect_whole();
    }
}
