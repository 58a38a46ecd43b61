//! Power is cut at every operation that changes the chip, and again in the session after that.

use nandina::flash::{Flash, Geometry, PageNumber, Profile};
use nandina::store::RosetteNor;
use nandina::{Index, OpenError, ReadError, WriteError, key};
use nandina_sim::{Chip, ChipError, Cut, Faults};

use crate::model::{Model, OPTIONS, Random, SMALL, compare, ram, value};

/// So few and small sectors that leaves are divided, joined and erased within some changes.
pub const TINY: Profile = Profile {
    geometry: Geometry { page_bytes: 256, spare_bytes: 0, pages_per_block: 3, blocks: 9 },
    ..SMALL
};

/// A change of a record.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Put([u8; 4], [u8; 12]),
    Remove([u8; 4]),
}

impl Change {
    pub fn apply(self, model: &mut Model) {
        match self {
            Self::Put(key, value) => model.insert(key, value),
            Self::Remove(key) => model.remove(&key),
        };
    }

    fn make(
        self,
        index: &mut Index<'_, &mut Chip, RosetteNor>,
    ) -> Result<(), WriteError<ChipError>> {
        match self {
            Self::Put(key, value) => index.insert(&key, &value).map(|_| ()),
            Self::Remove(key) => index.remove(&key).map(|_| ()),
        }
    }
}

/// Inserts without order, values that are replaced, and removals of nearly all.
pub fn changes(seed: u64, count: u32) -> Vec<Change> {
    let mut random = Random::new(seed);
    let change = |turn: u32| {
        let key = key::from_u32(random.below(60));
        let puts = if turn < count / 2 { 7 } else { 2 };
        if random.below(8) < puts { Change::Put(key, value(turn)) } else { Change::Remove(key) }
    };
    (0..count).map(change).collect()
}

/// All records, or `None` if power is lost meanwhile.
fn content(index: &mut Index<'_, &mut Chip, RosetteNor>, what: &str) -> Option<Model> {
    let mut model = Model::new();
    let read = |index: &mut Index<'_, &mut Chip, RosetteNor>, model: &mut Model| {
        let mut range = index.range(..)?;
        while let Some((key, value)) = range.next()? {
            model.insert(key.try_into().unwrap(), value.try_into().unwrap());
        }
        Ok::<_, ReadError<ChipError>>(())
    };
    match read(index, &mut model) {
        Ok(()) => Some(model),
        Err(ReadError::Device(ChipError::PowerLost)) => None,
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Opens the index, or `None` if power is lost meanwhile.
fn opened<'b>(
    chip: &'b mut Chip,
    ram: &'b mut [u8],
    what: &str,
) -> Option<Index<'b, &'b mut Chip, RosetteNor>> {
    match Index::<_, RosetteNor>::open(chip, &OPTIONS, ram) {
        Ok(index) => Some(index),
        Err(OpenError::Device(ChipError::PowerLost)) => None,
        Err(error) => panic!("{what}: {error}"),
    }
}

/// The states that the chip may be in: one, or two after a cut in a change.
#[derive(Clone)]
pub struct Allowed(Vec<Model>);

impl Allowed {
    fn one(model: Model) -> Self {
        Self(vec![model])
    }

    /// All of them change.
    pub fn all(&mut self, change: impl FnMut(&mut Model)) {
        self.0.iter_mut().for_each(change);
    }

    /// What was read must be one of them, and is it from now on.
    fn settle(&mut self, found: Model, what: &str) {
        assert!(self.0.contains(&found), "{what}: a state that never was");
        self.0 = vec![found];
    }

    /// A change was cut: it may be there.
    pub fn cut(&mut self, change: Change) {
        let mut after = self.0.clone();
        after.iter_mut().for_each(|model| change.apply(model));
        self.0.extend(after);
    }
}

/// Opens the index, reads all of it, and makes changes, until power is lost or they are made.
///
/// Returns whether power was lost.
fn session(
    chip: &mut Chip,
    ram: &mut [u8],
    allowed: &mut Allowed,
    changes: &[Change],
    closes: bool,
    what: &str,
) -> bool {
    let Some(mut index) = opened(chip, ram, what) else { return true };
    // At first some changes, before all leaves were touched.
    let (first, rest) = changes.split_at(changes.len() / 2);
    for change in first {
        match change.make(&mut index) {
            Ok(()) => allowed.0.iter_mut().for_each(|model| change.apply(model)),
            Err(WriteError::Device(ChipError::PowerLost)) => {
                allowed.cut(*change);
                return true;
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    let Some(found) = content(&mut index, what) else { return true };
    allowed.settle(found, what);
    for change in rest {
        match change.make(&mut index) {
            Ok(()) => change.apply(&mut allowed.0[0]),
            Err(WriteError::Device(ChipError::PowerLost)) => {
                allowed.cut(*change);
                return true;
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    if closes {
        return !index.close().has_power();
    }
    false
}

/// Power is restored, and all that can be read must be allowed, now and later.
pub fn end(chip: &mut Chip, ram: &mut [u8], mut allowed: Allowed, what: &str) {
    for _ in 0..3 {
        chip.restore_power();
        let mut index = opened(chip, ram, what).unwrap();
        let found = content(&mut index, what).unwrap();
        allowed.settle(found, what);
        assert_eq!(index.len() as usize, allowed.0[0].len(), "{what}");
        compare(&mut index, &allowed.0[0]);
    }
}

/// Runs `changes` with a cut, and returns what is allowed then; `None` if nothing was cut.
pub fn first_cut(
    chip: &mut Chip,
    ram: &mut [u8],
    changes: &[Change],
    at: u64,
    cut: Cut,
) -> Option<Allowed> {
    Index::<_, RosetteNor>::format(&mut *chip, &OPTIONS, ram).unwrap();
    chip.cut_at_change(at, cut);
    let mut allowed = Allowed::one(Model::new());
    let is_cut = session(chip, ram, &mut allowed, changes, true, "first session");
    is_cut.then_some(allowed)
}

/// Cuts at every change of the chip, of every kind. Returns how often.
fn cut_everywhere(unstable: bool, seed: u64, count: u32) -> u32 {
    let changes = changes(seed, count);
    let mut ram = ram(&TINY, &OPTIONS);
    let mut cuts = 0;
    for cut in Cut::ALL {
        for at in 0.. {
            let mut chip = Chip::with_seed(TINY, seed + at);
            let unstable_pages = u32::from(unstable);
            chip.set_faults(Faults { unstable_pages, ..Faults::NONE });
            let Some(allowed) = first_cut(&mut chip, &mut ram, &changes, at, cut) else { break };
            end(&mut chip, &mut ram, allowed, &format!("seed {seed}, {cut:?} at {at}"));
            cuts += 1;
        }
    }
    cuts
}

#[test]
fn a_cut_at_every_operation_leaves_the_old_or_the_new_state() {
    let cuts: u32 = (0..2).map(|seed| cut_everywhere(false, seed, 250)).sum();
    assert!(cuts > 2_500, "only {cuts} cuts");
}

#[test]
fn h5_torn_bits_that_read_differently_each_time_hide_and_bring_back_nothing() {
    let cuts: u32 = (0..4).map(|seed| cut_everywhere(true, seed, 250)).sum();
    assert!(cuts > 4_500, "only {cuts} cuts");
}

/// Cuts everywhere, and again at each change of the two sessions after that.
fn cut_twice(unstable: bool, seed: u64, step: u64) -> u32 {
    let changes = changes(seed, 150);
    let more = self::changes(seed + 100, 6);
    let mut ram = ram(&TINY, &OPTIONS);
    let mut cuts = 0;
    for (nth, cut) in Cut::ALL.into_iter().enumerate() {
        for at in (nth as u64 % step..).step_by(step as usize) {
            let mut chip = Chip::with_seed(TINY, seed + at);
            let unstable_pages = u32::from(unstable);
            chip.set_faults(Faults { unstable_pages, ..Faults::NONE });
            let Some(allowed) = first_cut(&mut chip, &mut ram, &changes, at, cut) else { break };
            for again in Cut::ALL {
                for second in 0.. {
                    let (mut chip, mut allowed) = (chip.clone(), allowed.clone());
                    chip.restore_power();
                    chip.cut_at_change(second, again);
                    let what = format!("seed {seed}, {cut:?} at {at}, {again:?} at {second}");
                    if !session(&mut chip, &mut ram, &mut allowed, &more, false, &what) {
                        break;
                    }
                    end(&mut chip, &mut ram, allowed, &what);
                    cuts += 1;
                }
            }
        }
    }
    cuts
}

#[test]
fn two_cuts_at_every_operation_leave_the_old_or_the_new_state() {
    let cuts = cut_twice(false, 7, 9);
    assert!(cuts > 3_000, "only {cuts} cuts");
}

#[test]
fn two_cuts_with_unstable_bits_leave_the_old_or_the_new_state() {
    let cuts: u32 = (0..3).map(|seed| cut_twice(true, 20 + seed, 11)).sum();
    assert!(cuts > 9_000, "only {cuts} cuts");
}

/// The marks of a sector: whether its leaf was committed, and acknowledged.
fn marks(chip: &mut Chip, sector: u32) -> (bool, bool) {
    let mut page = [0; TINY.geometry.page_bytes as usize];
    chip.read(marks_page(sector), &mut page, &mut []).unwrap();
    (page[..8] != [0xFF; 8] && page[..8] != [0; 8], page[8..16] != [0xFF; 8])
}

const fn marks_page(sector: u32) -> PageNumber {
    PageNumber(sector * TINY.geometry.pages_per_block + 1)
}

/// The commit of a leaf is torn. A mount sees it, and is cut while it writes the leaf again. The
/// next mount does not see it: there are two leaves then that were begun.
#[test]
fn a_torn_leaf_that_a_cut_mount_was_copying_does_not_come_back() {
    let cuts: u32 = (0..20).map(cut_copies_of_torn_leaves).sum();
    assert!(cuts > 400, "only {cuts} cuts");
}

fn cut_copies_of_torn_leaves(seed: u64) -> u32 {
    let changes = changes(seed, 150);
    let mut ram = ram(&TINY, &OPTIONS);
    let mut cuts = 0;
    for at in 0.. {
        let mut chip = Chip::with_seed(TINY, seed);
        let Some(allowed) = first_cut(&mut chip, &mut ram, &changes, at, Cut::Before) else {
            break;
        };
        chip.restore_power();
        let is_torn = |&sector: &u32| marks(&mut chip, sector) == (true, false);
        let Some(torn) = (0..TINY.geometry.blocks).find(is_torn) else { continue };
        for second in 0..5 {
            let (mut chip, mut allowed) = (chip.clone(), allowed.clone());
            chip.cut_at_change(second, Cut::Before);
            let what = format!("seed {seed}, cut at {at}, then at {second}");
            if opened(&mut chip, &mut ram, &what).is_some() {
                break;
            }
            chip.restore_power();
            let tear = |main: &mut [u8], _: &mut [u8]| main[3] ^= 0xFF;
            chip.corrupt_page(marks_page(torn), tear);
            let found =
                opened(&mut chip, &mut ram, &what).and_then(|mut index| content(&mut index, &what));
            allowed.settle(found.unwrap(), &what);
            if marks(&mut chip, torn) == (true, false) {
                chip.corrupt_page(marks_page(torn), tear);
            }
            end(&mut chip, &mut ram, allowed, &what);
            cuts += 1;
        }
    }
    cuts
}

#[test]
fn a_mount_erases_no_sector_twice() {
    let changes = changes(11, 250);
    let mut ram = ram(&TINY, &OPTIONS);
    let mut erases = 0;
    for cut in Cut::ALL {
        for at in 0.. {
            let mut chip = Chip::with_seed(TINY, at);
            if first_cut(&mut chip, &mut ram, &changes, at, cut).is_none() {
                break;
            }
            chip.restore_power();
            let before: Vec<_> = chip.erase_counts().collect();
            assert!(opened(&mut chip, &mut ram, "after a cut").is_some());
            for (before, after) in before.into_iter().zip(chip.erase_counts()) {
                assert!(after <= before + 1, "{cut:?} at {at}");
                erases += after - before;
            }
        }
    }
    // Only a leaf that was begun costs an erase.
    assert!(erases > 80, "only {erases} erases");
}
