//! A page has rotted.
//!
//! It hides no newer page of its block. And if the index that opens is changed, what it returns
//! follows from what it returned before: an older state may open where the last page of a block is
//! lost, but no change is made in one place and looked up in another.

use nandina::flash::{BlockNumber, Geometry, PageNumber, Profile};
use nandina::node::HEADER_BYTES;
use nandina::store::Description;
use nandina::{Index, System, WriteError};
use nandina_lab::effort::Share;
use nandina_sim::{Chip, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::{
    Case, Check, Model, Outcome, fitted, for_every_system, for_one_system_in, key, suited, text,
    value,
};

const KEYS: u32 = 60;

struct OneChangeFollowsFromAnother;

/// All records, or `None` if they cannot be read.
fn content<S: System>(index: &mut Index<'_, &mut Chip, S>) -> Option<Model> {
    let mut range = index.range(..).ok()?;
    let mut found = Model::new();
    while let Some((key, value)) = range.next().ok()? {
        found.insert(key.to_vec(), value.to_vec());
    }
    Some(found)
}

/// Makes changes, with idle steps between them, and lets `model` follow.
///
/// Returns `false` if one fails, unless the chip is full.
fn change<S: System>(
    index: &mut Index<'_, &mut Chip, S>,
    model: &mut Model,
    random: &mut ChaCha8Rng,
    changes: u32,
) -> bool {
    (0..changes).all(|turn| {
        let number = random.random_range(0..KEYS);
        let (key, value) = (key(number), value(number, turn));
        if random.random_range(0..4) == 0 && index.gc_step(200).is_err() {
            return false;
        }
        if random.random_range(0..2) == 0 {
            model.remove(&key[..]);
            return index.remove(&key).is_ok();
        }
        match index.insert(&key, &value) {
            Ok(_) => drop(model.insert(key.to_vec(), value.to_vec())),
            Err(WriteError::Full { .. }) => {}
            Err(_) => return false,
        }
        true
    })
}

impl Check for OneChangeFollowsFromAnother {
    fn concerns(&self, system: &Description) -> bool {
        // Of two pages that are written in turn the other one is read, so nodes differ in age.
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut went_on = 0;
        let mut lives = Share::one_in(40).of(0..400u64);
        // There a page of `vm` is lost that is newer than the checkpoint, and others go on from it.
        lives.push(317);
        for life in lives {
            let checkpoints = (life % 3 > 0).then_some(4);
            // A mount of a system with a journal commits, which takes blocks as well.
            let commits = checkpoints.is_some() && S::DESCRIPTION.replays();
            let blocks = 11 + 3 * (life / 3 % 3) as u32 + if commits { 4 } else { 0 };
            let page_bytes = 256;
            let geometry = Geometry { blocks, pages_per_block: 3, page_bytes, spare_bytes: 16 };
            let mut case = Case::new(Profile { geometry, ..TINY });
            case.options.checkpoints = checkpoints;
            case.options.mapping_bytes = 16;
            case.options = fitted::<S>(case.options);
            let profile = suited::<S>(case.profile);
            let mut random = ChaCha8Rng::seed_from_u64(5 + life);
            let (mut chip, mut ram) = (Chip::with_seed(profile, life), case.ram::<S>());
            let mut index =
                Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
            let mut model = Model::new();
            let made = change(&mut index, &mut model, &mut random, 150 + life as u32 * 7);
            drop(index);
            if !made {
                return Err(format!("life {life}: the chip is too small"));
            }
            for page in (0..geometry.pages()).map(PageNumber) {
                let mut chip = chip.clone();
                if chip.page_is_erased(page) {
                    continue;
                }
                chip.corrupt_page(page, |main, _| main[random.random_range(0..250)] ^= 4);
                let opened = Index::<_, S>::open(&mut chip, &case.options, &mut ram);
                let Ok(mut index) = opened else { continue };
                let Some(mut found) = content(&mut index) else { continue };
                if change(&mut index, &mut found, &mut random, 150) {
                    went_on += 1;
                    if content(&mut index).is_some_and(|content| content != found) {
                        return Err(format!("life {life}, {page}: other records"));
                    }
                }
            }
        }
        if went_on > 100 { Ok(()) } else { Err(format!("{went_on} went on")) }
    }
}

#[test]
fn an_index_with_a_rotten_page_returns_what_its_changes_made_of_it() {
    for_every_system(&OneChangeFollowsFromAnother);
}

/// Bytes of the pages that are damaged.
const PAGE_BYTES: u32 = 512;

/// The first page of a block is damaged, and newer ones are behind it.
struct FirstPage;

impl Check for FirstPage {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for checkpoints in [None, Some(2), Some(5)] {
            let geometry =
                Geometry { blocks: 48, pages_per_block: 8, page_bytes: PAGE_BYTES, spare_bytes: 0 };
            let mut case = Case::new(Profile { geometry, ..TINY });
            case.options.checkpoints = checkpoints;
            case.options = fitted::<S>(case.options);
            let (mut chip, mut ram) = (Chip::new(suited::<S>(case.profile)), case.ram::<S>());
            let mut index =
                Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
            let mut inserted = 0..;
            let mut insert = |index: &mut Index<'_, &mut Chip, S>, records: usize| {
                inserted.by_ref().take(records).try_for_each(|number: u32| {
                    let made = index.insert(&key(number * 7919 % 10_007), &value(number, 0));
                    made.map(|_| ()).map_err(text)
                })
            };
            insert(&mut index, 300)?;
            drop(index);
            for records in (303..340).step_by(3) {
                let mut index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                insert(&mut index, 3)?;
                drop(index);
                for block in (0..geometry.blocks).map(BlockNumber) {
                    let page = geometry.page_in(block, 0);
                    if chip.page_is_erased(geometry.page_in(block, 1)) {
                        continue;
                    }
                    for damage in Damage::ALL {
                        let mut chip = chip.clone();
                        chip.corrupt_page(page, |main, _| damage.apply(main));
                        let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram)
                        else {
                            continue;
                        };
                        let is_told = index.statistics().unexplained_pages > 0;
                        let found = content(&mut index).map_or(records, |found| found.len());
                        if found < records && !is_told {
                            return Err(format!(
                                "{checkpoints:?}, {page}, {damage:?}: {found} records of {records}"
                            ));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    /// The header has another version of the format.
    Version,
    Zeros,
    Ones,
}

impl Damage {
    const ALL: [Self; 3] = [Self::Version, Self::Zeros, Self::Ones];

    fn apply(self, main: &mut [u8]) {
        match self {
            // The header is the end of the page, and its byte 6 the version (docs/FORMAT.md).
            Self::Version => main[PAGE_BYTES as usize - HEADER_BYTES + 6] ^= 8,
            Self::Zeros => main.fill(0),
            Self::Ones => main.fill(0xFF),
        }
    }
}

#[test]
fn a_damaged_first_page_hides_no_newer_one_of_its_block() {
    for_one_system_in(7, &FirstPage);
}
