//! Chips that fail several times in a row, or say that they erased what they did not.

use core::ops::Range;

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Profile, Reading};
use nandina::store::RosetteNor;
use nandina::{Index, Inserted, Options, WriteError, key};
use nandina_sim::{Chip, ChipError};

use crate::model::{Model, OPTIONS, Random, SMALL, compare, ram, value};

/// A chip on which a quarter of the sectors may fail.
const LOSING: Profile = Profile {
    geometry: Geometry { blocks: 24, ..SMALL.geometry },
    capabilities: Capabilities { bad_blocks_per_mille: 250, ..SMALL.capabilities },
    ..SMALL
};

/// A chip that fails as a test says.
struct Failing<'c> {
    chip: &'c mut Chip,
    /// Programs so far, also those that failed.
    programs: u32,
    /// Programs of these numbers do nothing, and are reported as failed.
    rejects: Vec<u32>,
    /// So many operations after the first rejection one is given up; reads count, too.
    gives_up_after: Option<u32>,
    /// One in so many erases leaves all pages from this one on, and is reported as done.
    silent: Option<(u32, u32)>,
    /// All erases are reported as failed.
    fails_erases: bool,
    erases: u32,
    left: u32,
}

impl<'c> Failing<'c> {
    const fn new(chip: &'c mut Chip) -> Self {
        Self {
            chip,
            programs: 0,
            rejects: Vec::new(),
            gives_up_after: None,
            silent: None,
            fails_erases: false,
            erases: 0,
            left: 0,
        }
    }

    /// Whether a program is rejected or given up.
    fn program_begins(&mut self, page: PageNumber) -> Result<(), ChipError> {
        let number = self.programs;
        self.programs += 1;
        if self.rejects.contains(&number) {
            return Err(ChipError::ProgramFailed(page));
        }
        self.begins()
    }

    fn begins(&mut self) -> Result<(), ChipError> {
        if self.rejects.first().is_some_and(|&first| self.programs <= first) {
            return Ok(());
        }
        match &mut self.gives_up_after {
            Some(0) => {
                self.gives_up_after = None;
                Err(ChipError::GaveUp)
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Flash for Failing<'_> {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.chip.capabilities()
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.begins()?;
        self.chip.read(page, main, spare)
    }

    fn read_part(
        &mut self,
        page: PageNumber,
        part: Range<usize>,
        main: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.begins()?;
        self.chip.read_part(page, part, main)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.program_begins(page)?;
        self.chip.program(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.program_begins(page)?;
        self.chip.overwrite(page, offset, bytes)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.begins()?;
        self.erases += 1;
        if self.fails_erases {
            return Err(ChipError::EraseFailed(block));
        }
        let Some((_, from)) = self.silent.filter(|(often, _)| self.erases.is_multiple_of(*often))
        else {
            return self.chip.erase(block);
        };
        let geometry = self.chip.geometry();
        let mut left = Vec::new();
        for page in (from..geometry.pages_per_block).map(|page| geometry.page_in(block, page)) {
            if self.chip.page_is_erased(page) {
                continue;
            }
            let mut main = vec![0; geometry.page_bytes as usize];
            self.chip.read(page, &mut main, &mut [])?;
            left.push((page, main));
        }
        self.chip.erase(block)?;
        self.left += u32::from(!left.is_empty());
        left.iter().try_for_each(|(page, main)| self.chip.program(*page, main, &[]))
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, ChipError> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.mark_bad(block)
    }
}

/// An index of 60 records, and its model.
fn begun(chip: &mut Chip, ram: &mut [u8]) -> Model {
    let mut index = Index::<_, RosetteNor>::format(chip, &OPTIONS, ram).unwrap();
    let mut model = Model::new();
    for turn in 0..60 {
        index.insert(&key::from_u32(turn), &value(turn)).unwrap();
        model.insert(key::from_u32(turn), value(turn));
    }
    model
}

/// The sector to which a leaf is moved from one that fails may fail itself.
#[test]
fn a_change_bears_sectors_that_fail_one_after_another() {
    let mut ram = ram(&LOSING, &OPTIONS);
    for apart in 1..24 {
        for at in 0..60 {
            let mut chip = Chip::with_seed(LOSING, at.into());
            let mut model = begun(&mut chip, &mut ram);
            let mut failing = Failing::new(&mut chip);
            failing.rejects = (0..4).map(|number| at + number * apart).collect();
            let mut index = Index::<_, RosetteNor>::open(failing, &OPTIONS, &mut ram).unwrap();
            for turn in 0..80 {
                let key = key::from_u32(turn * 7 % 90);
                let done = index.insert(&key, &value(turn));
                done.unwrap_or_else(|error| {
                    panic!("each {apart} from {at} on, turn {turn}: {error}")
                });
                model.insert(key, value(turn));
            }
            assert!(index.flash().programs > at + 3 * apart);
            compare(&mut index, &model);
            index.close();
            let mut index = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
            compare(&mut index, &model);
        }
    }
}

/// A caller waits and tries again after an error of the device, and not after a failed sector.
#[test]
fn an_error_of_the_device_is_reported_also_after_a_sector_has_failed() {
    let mut ram = ram(&LOSING, &OPTIONS);
    let mut reported = 0;
    for at in (0..60).step_by(7) {
        for after in 0..200 {
            let mut chip = Chip::new(LOSING);
            let _ = begun(&mut chip, &mut ram);
            let mut failing = Failing::new(&mut chip);
            (failing.rejects, failing.gives_up_after) = (vec![at], Some(after));
            let Ok(mut index) = Index::<_, RosetteNor>::open(failing, &OPTIONS, &mut ram) else {
                continue;
            };
            for turn in 0..80 {
                if let Err(error) = index.insert(&key::from_u32(turn * 7 % 90), &value(turn)) {
                    assert_eq!(error, WriteError::Device(ChipError::GaveUp), "{after} after {at}");
                    reported += 1;
                }
            }
            assert!(index.flash().gives_up_after.is_none());
        }
    }
    assert!(reported > 1_000, "only {reported} errors");
}

/// What is left behind the records of a leaf looks like changes of it.
#[test]
fn an_erase_that_silently_left_pages_brings_no_change_back() {
    let options = Options { verify: true, ..OPTIONS };
    let mut ram = ram(&LOSING, &options);
    let mut left = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut chip = Chip::with_seed(LOSING, seed);
        let mut failing = Failing::new(&mut chip);
        failing.silent = Some((5 + random.below(20), 2 + random.below(2)));
        let mut index = Index::<_, RosetteNor>::format(failing, &options, &mut ram).unwrap();
        let mut model = Model::new();
        for turn in 0.. {
            let key = key::from_u32(random.below(80) * 0x10_0001);
            if random.below(3) == 0 {
                index.remove(&key).unwrap();
                model.remove(&key);
            } else {
                index.insert(&key, &value(turn)).unwrap();
                model.insert(key, value(turn));
            }
            if random.below(4) == 0 {
                index.gc_step(index.gc_step_least()).unwrap();
            }
            // As many sectors as may fail.
            if index.flash().left >= 5 || turn > 4_000 {
                break;
            }
        }
        compare(&mut index, &model);
        let bad = index.statistics().bad_blocks;
        assert_eq!(bad, index.flash().left, "seed {seed}");
        left += bad;
        drop(index);
        let mut index = Index::<_, RosetteNor>::open(&mut chip, &options, &mut ram).unwrap();
        compare(&mut index, &model);
    }
    assert!(left > 200, "only {left} erases left pages");
}

/// The mark that the older index is open is a program of its newest sector.
#[test]
fn a_format_over_an_index_whose_newest_sector_fails_takes_another() {
    let mut ram = ram(&LOSING, &OPTIONS);
    for apart in 1..8 {
        let mut chip = Chip::new(LOSING);
        let model = begun(&mut chip, &mut ram);
        let mut index = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
        // Each leaf is settled, so that the session can end.
        compare(&mut index, &model);
        index.close();
        let mut failing = Failing::new(&mut chip);
        failing.rejects = (0..3).map(|number| number * apart).collect();
        let mut index = Index::<_, RosetteNor>::format(failing, &OPTIONS, &mut ram).unwrap();
        assert!(index.flash().programs > 0);
        compare(&mut index, &Model::new());
        index.close();
        let mut index = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
        compare(&mut index, &Model::new());
        assert!(index.statistics().bad_blocks > 0);
    }
}

/// What an attempt left on other sectors may lack the room for a further one.
#[test]
fn a_full_index_says_so_also_after_a_sector_has_failed() {
    let options = Options { leaves: Some(4), ..OPTIONS };
    let mut ram = ram(&LOSING, &options);
    let mut refused = 0;
    for seed in 50..90 {
        let mut random = Random::new(seed);
        let mut chip = Chip::with_seed(LOSING, seed);
        let mut failing = Failing::new(&mut chip);
        failing.rejects = (0..4).map(|_| 300 + random.below(1_200)).collect();
        failing.rejects.sort_unstable();
        let mut index = Index::<_, RosetteNor>::format(failing, &options, &mut ram).unwrap();
        let mut model = Model::new();
        for turn in 0..1_500 {
            let key = key::from_u32(random.below(400));
            if random.below(6) == 0 {
                index.remove(&key).unwrap();
                model.remove(&key);
                continue;
            }
            match index.insert(&key, &value(turn)) {
                Ok(_) => _ = model.insert(key, value(turn)),
                Err(WriteError::Full { .. }) => {
                    assert!(!model.contains_key(&key), "a replacement is refused");
                    refused += 1;
                }
                Err(error) => panic!("seed {seed}, turn {turn}: {error}"),
            }
        }
        compare(&mut index, &model);
    }
    assert!(refused > 1_000, "only {refused} inserts were refused");
}

/// A leaf with a full log cannot be settled where no sector can be erased.
#[test]
fn a_replacement_by_the_same_value_is_no_insert_where_nothing_can_be_written() {
    let mut ram = ram(&LOSING, &OPTIONS);
    let mut refused = 0;
    for records in 1..120 {
        let mut chip = Chip::new(LOSING);
        let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
        for turn in 0..records {
            index.insert(&key::from_u32(turn), &value(turn)).unwrap();
        }
        for number in (0..records).step_by(9) {
            let mut chip = chip.clone();
            let mut failing = Failing::new(&mut chip);
            failing.fails_erases = true;
            let mut index = Index::<_, RosetteNor>::open(failing, &OPTIONS, &mut ram).unwrap();
            match index.insert(&key::from_u32(number), &value(number)) {
                Ok(done) => assert_eq!(done, Inserted::Replaced, "{number} of {records}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 10, "only {refused} were refused");
}
