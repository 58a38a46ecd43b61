//! Regression tests on chips written for one case, apart from the simulator.

use std::collections::VecDeque;

use nandina::flash::{BlockNumber, Flash, Geometry, PageNumber, Profile, Reading};
use nandina::store::Description;
use nandina::{Index, LivenessTracking, Options, ReadError, RelocationMode, System, WriteError};
use nandina_lab::hand_on;
use nandina_lab::torture::Bus;
use nandina_sim::{Chip, ChipError, Cut, Tear};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// A chip of which one program fails, and then, if wanted, one erase gives an error of the device.
struct FailsTwice {
    chip: Chip,
    /// Programs before the one that fails.
    until: Option<u32>,
    /// Whether the erase after it errs, once.
    then_errs: bool,
    errs: bool,
}

impl Bus for FailsTwice {
    fn simulated(&self) -> &Chip {
        &self.chip
    }
}

impl Flash for FailsTwice {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, rewrite, overwrite, is_bad, mark_bad);

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        match self.until {
            Some(0) => {
                (self.until, self.errs) = (None, self.then_errs);
                Err(ChipError::ProgramFailed(page))
            }
            until => {
                self.until = until.map(|until| until - 1);
                self.chip.program(page, main, spare)
            }
        }
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        if std::mem::take(&mut self.errs) {
            return Err(ChipError::PowerLost);
        }
        self.chip.erase(block)
    }
}

/// Looks up all records of `model`.
fn expect_all<S: System>(
    index: &mut Index<'_, &mut dyn Bus, S>,
    model: &Model,
    what: &str,
) -> Outcome {
    for (key, value) in model {
        if index.get(key).map_err(text)? != Some(&value[..]) {
            return Err(format!("{what}: {key:?} is lost"));
        }
    }
    Ok(())
}

struct RootsInAGivenUpBlock;

impl Check for RootsInAGivenUpBlock {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints && system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG);
        case.profile.capabilities.bad_blocks_per_mille = 100;
        case.options.checkpoints = Some(2);
        let mut met = 0;
        for until in 20..60 {
            let mut ram = case.ram::<S>();
            let chip = Chip::new(suited::<S>(case.profile));
            let mut device = FailsTwice { chip, until: Some(until), then_errs: true, errs: false };
            let bus: &mut dyn Bus = &mut device;
            let mut index = Index::<_, S>::format(bus, &case.options, &mut ram).map_err(text)?;
            let mut model = Model::new();
            for number in 0..80 {
                match index.insert(&key(number), &value(number, 0)) {
                    Ok(_) => drop(model.insert(key(number).to_vec(), value(number, 0).to_vec())),
                    Err(WriteError::Device(_)) => {
                        met += 1;
                        break;
                    }
                    Err(error) => return Err(text(error)),
                }
            }
            let at = |what| format!("{until} programs, {what}");
            expect_all(&mut index, &model, "the same index").map_err(at)?;
            drop(index);
            for opening in ["opened anew", "opened once more"] {
                let bus: &mut dyn Bus = &mut device;
                let mut index = Index::<_, S>::open(bus, &case.options, &mut ram).map_err(text)?;
                expect_all(&mut index, &model, opening).map_err(at)?;
            }
        }
        if met > 10 { Ok(()) } else { Err(format!("only {met} errors were met")) }
    }
}

#[test]
fn the_newest_roots_in_a_block_that_was_given_up_are_found_beside_a_checkpoint() {
    for_every_system(&RootsInAGivenUpBlock);
}

struct SplitInABlockThatWentBad;

impl Check for SplitInABlockThatWentBad {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints && !system.checkpoints_at_close
    }

    /// A block in which a node was split goes bad, and the index ends before the next checkpoint.
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG);
        case.profile.capabilities.bad_blocks_per_mille = 100;
        case.options.checkpoints = Some(3);
        let mut marked = 0;
        for until in 20..120 {
            let mut ram = case.ram::<S>();
            let chip = Chip::new(suited::<S>(case.profile));
            let mut device = FailsTwice { chip, until: Some(until), then_errs: false, errs: false };
            let bus: &mut dyn Bus = &mut device;
            let mut index = Index::<_, S>::format(bus, &case.options, &mut ram).map_err(text)?;
            for number in 0..until {
                let number = number * 7 % 128;
                index.insert(&key(number), &value(number, 0)).map_err(text)?;
            }
            let records = index.len();
            drop(index);
            let blocks = device.chip.geometry().blocks;
            let is_bad = |block| device.chip.is_bad(BlockNumber(block)).unwrap();
            marked += u32::from((0..blocks).any(is_bad));
            let bus: &mut dyn Bus = &mut device;
            let mut index = Index::<_, S>::open(bus, &case.options, &mut ram).map_err(text)?;
            let mut violations = Vec::new();
            index.check(|violation| violations.push(violation)).map_err(text)?;
            if !violations.is_empty() || index.len() != records {
                let found = index.len();
                return Err(format!("{until} programs: {found} of {records}, {violations:?}"));
            }
        }
        if marked > 30 { Ok(()) } else { Err(format!("only {marked} blocks went bad")) }
    }
}

#[test]
fn a_mount_from_a_checkpoint_does_without_blocks_that_went_bad_since() {
    for_every_system(&SplitInABlockThatWentBad);
}

/// A chip that holds more records where pages move together than where they move alone.
///
/// That is so where a path is several pages. On `SMALL` an index is full before it matters.
const OTHER_LIMITS: Profile =
    Profile { geometry: Geometry { blocks: 17, pages_per_block: 16, ..LONG.geometry }, ..LONG };

/// Fills a new index on `chip` with records. Returns their number.
pub fn fill<S: System>(chip: &mut Chip, options: &Options, ram: &mut [u8]) -> Result<u32, String> {
    let mut index = Index::<_, S>::format(chip, options, ram).map_err(text)?;
    let mut records = 0;
    while index.insert(&key(records), &value(records, 0)).is_ok() {
        records += 1;
    }
    Ok(records)
}

struct OtherMoves;

impl Check for OtherMoves {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(OTHER_LIMITS);
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(suited::<S>(case.profile));
        let records = fill::<S>(&mut chip, &case.options, &mut ram)?;
        case.options.moves = RelocationMode::Alone;
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in 0..records {
            index.insert(&key(number), &value(number, 1)).map_err(text)?;
        }
        for number in 0..records {
            index.remove(&key(number)).map_err(text)?;
        }
        if records > 20 && index.is_empty() { Ok(()) } else { Err(format!("{records} records")) }
    }
}

#[test]
fn a_full_index_that_is_opened_with_other_moves_replaces_and_removes() {
    for_every_system(&OtherMoves);
}

struct OtherMovesBuffered;

impl Check for OtherMovesBuffered {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system) && system.has_write_buffer()
    }

    /// The limit is another one whenever the index begins to move pages as it was asked to.
    ///
    /// Descending keys split nodes, and ascending ones are removed.
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(OTHER_LIMITS);
        case.options.moves = RelocationMode::Alone;
        case.options.write_buffer = 1;
        let mut ram = case.ram::<S>();
        let mut refused = 0;
        for seed in Share::one_in(4).of(0..40_u32) {
            let mut random = ChaCha8Rng::seed_from_u64(seed.into());
            let together =
                Options { moves: RelocationMode::Together, write_buffer: 0, ..case.options };
            let mut chip = Chip::new(suited::<S>(case.profile));
            let mut index = Index::<_, S>::format(&mut chip, &together, &mut ram).map_err(text)?;
            let mut keys = VecDeque::new();
            let mut next = 100_000;
            while index.insert(&key(next), &value(next, 0)).is_ok() {
                keys.push_front(next);
                next -= 1;
            }
            drop(index);
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            for turn in 0..600 {
                if random.random_range(0..100) < 52 {
                    let last = keys.pop_back().unwrap_or(0);
                    index.remove(&key(last)).map_err(text)?;
                } else {
                    match index.insert(&key(next), &value(next, turn)) {
                        Ok(_) => {
                            keys.push_front(next);
                            next -= 1;
                        }
                        Err(WriteError::Full { .. }) => refused += 1,
                        Err(error) => return Err(text(error)),
                    }
                }
                if random.random_range(0..8) == 0 {
                    index.flush().map_err(|error| format!("seed {seed}, {turn}: {error}"))?;
                }
            }
        }
        if refused > 20 { Ok(()) } else { Err(format!("only {refused} changes were refused")) }
    }
}

#[test]
fn a_buffered_change_is_not_refused_when_the_index_moves_pages_otherwise() {
    for_every_system(&OtherMovesBuffered);
}

/// Records that went missing although their removal was refused.
///
/// A power cut ends the index that was filled, and it is opened to move pages alone, for which it
/// is too full. All of its changes were refused then. But each is due at once, and was in the write
/// buffer already: it was refused, and pending all the same. Found by a chip and a model from
/// outside of the project.
struct DueRemovals;

impl DueRemovals {
    /// Replaces records until power is cut. Returns the records that are there afterwards.
    fn replace<S: System>(
        chip: &mut Chip,
        options: &Options,
        ram: &mut [u8],
        records: u32,
    ) -> Result<Model, String> {
        let record = |number, turn| (key(number).to_vec(), value(number, turn).to_vec());
        let mut model: Model = (0..records).map(|number| record(number, 0)).collect();
        // The opening alone may write many pages anew.
        chip.cut_at_change(400, Cut::Inside(Tear::Mixture));
        let mut index = Index::<_, S>::open(&mut *chip, options, ram).map_err(text)?;
        let mut turn = 0;
        let last = loop {
            turn += 1;
            let number = turn * 7 % records;
            match index.insert(&key(number), &value(number, turn)) {
                Ok(_) => model.extend([record(number, turn)]),
                Err(WriteError::Device(ChipError::PowerLost)) => break key(number),
                Err(error) => return Err(text(error)),
            }
        };
        drop(index);
        chip.restore_power();
        let mut index = Index::<_, S>::open(&mut *chip, options, ram).map_err(text)?;
        let found = index.get(&last).map_err(text)?.ok_or("the cut took a record")?.to_vec();
        model.insert(last.to_vec(), found);
        compare(&mut index, &model).map(|()| model)
    }
}

impl Check for DueRemovals {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system) && system.has_write_buffer()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(OTHER_LIMITS);
        case.options.validity = LivenessTracking::Searched;
        let full = case.suited::<S>();
        case.options.moves = RelocationMode::Alone;
        let alone = case.suited::<S>();
        case.options.write_buffer = 1;
        case.options.write_buffer_changes = Some(1);
        let due = case.suited::<S>();
        let (mut chip, mut ram) = (Chip::new(full.profile), due.ram::<S>());
        let fewer = fill::<S>(&mut chip, &alone.options, &mut ram)?;
        let records = fill::<S>(&mut chip, &full.options, &mut ram)?;
        // Where a path is one page or two, and in `tnc`, the limit is the same.
        let has_paths = (nodes_of::<S>().path_pages)(9) > 2 && !S::DESCRIPTION.replays();
        if fewer >= records && has_paths {
            return Err(format!("{records} records fit where pages move alone"));
        }
        let mut model = Self::replace::<S>(&mut chip, &full.options, &mut ram, records)?;
        let mut index = Index::<_, S>::open(&mut chip, &due.options, &mut ram).map_err(text)?;
        let mut refused = 0;
        for number in (0..records).step_by(3) {
            match index.remove(&key(number)) {
                Ok(_) => drop(model.remove(&key(number)[..])),
                Err(WriteError::Full { .. }) => refused += 1,
                Err(error) => return Err(text(error)),
            }
            let found = index.get(&key(number)).map_err(text)?;
            if found != model.get(&key(number)[..]).map(Vec::as_slice) {
                return Err(format!("the removal of record {number} was refused, and is made"));
            }
        }
        if refused > 0 {
            return Err(format!("{refused} removals were refused"));
        }
        compare(&mut index, &model)
    }
}

#[test]
fn no_record_is_missing_whose_removal_was_refused_with_other_moves() {
    for_every_system(&DueRemovals);
}

/// A chip of which one page reads as weak, with content that was never written.
struct Fades<'c> {
    chip: &'c mut Chip,
    page: Option<PageNumber>,
}

impl Bus for Fades<'_> {
    fn simulated(&self) -> &Chip {
        self.chip
    }
}

impl Flash for Fades<'_> {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, program, rewrite, overwrite, erase, is_bad, mark_bad);

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let reading = self.chip.read(page, main, spare)?;
        if Some(page) != self.page {
            return Ok(reading);
        }
        main[40] ^= 1;
        Ok(Reading::Corrected)
    }
}

struct Faded;

impl Check for Faded {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut image = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut image, &case.options, &mut ram).map_err(text)?;
        for number in 0..200 {
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        index.close();
        let mut met = 0;
        for page in (0..case.profile.geometry.pages()).map(PageNumber) {
            let mut chip = image.clone();
            chip.limit_operations(Some(60_000));
            let device: &mut dyn Bus = &mut Fades { chip: &mut chip, page: Some(page) };
            // A page that the mount needs is reported at once.
            let Ok(mut index) = Index::<_, S>::open(device, &case.options, &mut ram) else {
                continue;
            };
            for number in 0..200 {
                match index.insert(&key(number), &value(number, 1)) {
                    Ok(_) => {}
                    Err(WriteError::Corrupt { .. }) => met += 1,
                    Err(error) => return Err(format!("{page}: {error:?}")),
                }
                match index.gc_step(200) {
                    Ok(_) | Err(WriteError::Corrupt { .. }) => {}
                    Err(error) => return Err(format!("{page}: an idle step: {error:?}")),
                }
            }
        }
        if met > 20 { Ok(()) } else { Err(format!("only {met} changes met the page")) }
    }
}

#[test]
fn a_weak_page_that_no_node_can_be_read_from_keeps_no_call_from_ending() {
    for_every_system(&Faded);
}

struct LostPage;

impl Check for LostPage {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut image = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut image, &case.options, &mut ram).map_err(text)?;
        // Enough records to split a leaf, then the newest ones again and again: the pages in
        // between are garbage.
        for number in 0..60 {
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        let mut version = 0;
        while version < 200 || index.flash().counters().programs % 32 < 24 {
            version += 1;
            index.insert(&key(3), &value(3, version)).map_err(text)?;
        }
        let mut model = Model::new();
        for number in 0..60 {
            let version = if number == 3 { version } else { 0 };
            model.insert(key(number).to_vec(), value(number, version).to_vec());
        }
        drop(index);
        let mut opened = 0;
        for page in (0..case.profile.geometry.pages()).map(PageNumber) {
            let mut chip = image.clone();
            if chip.page_is_erased(page) {
                continue;
            }
            chip.corrupt_page(page, |main, spare| {
                main.fill(0xFF);
                spare.fill(0xFF);
            });
            let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) else {
                continue;
            };
            let newest = index.get(&key(3)).map(|found| found == Some(&value(3, version)[..]));
            // The lost records themselves may be missing: an error reports it, or it was the very
            // last page.
            let is_last = page.0 + 1 < case.profile.geometry.pages()
                && image.page_is_erased(PageNumber(page.0 + 1));
            match newest {
                Ok(true) => opened += u32::from(compare(&mut index, &model).is_ok()),
                Err(_) => {}
                Ok(false) if is_last || index.statistics().unexplained_pages > 0 => {}
                Ok(false) => return Err(format!("without {page} an older state is opened")),
            }
        }
        if opened > 50 { Ok(()) } else { Err(format!("only {opened} openings were right")) }
    }
}

#[test]
fn a_page_that_reads_as_erased_does_not_hide_what_is_newer_in_its_block() {
    for_one_system_in(3, &LostPage);
}

/// Damages each page of an index in turn.
struct EachPageLost;

impl EachPageLost {
    const RECORDS: u32 = 900;

    /// Returns whether a value was wrong, or an error was reported instead, without `page`.
    fn read<S: System>(
        index: &mut Index<'_, &mut Chip, S>,
        newest: &[u32],
    ) -> Result<(bool, bool), String> {
        let (mut wrong, mut reported) = (false, index.statistics().unexplained_pages > 0);
        for (number, &version) in (0..).zip(newest) {
            match index.get(&key(number)) {
                Ok(found) => wrong |= found != Some(&value(number, version)[..]),
                Err(ReadError::Corrupt { .. }) => reported = true,
                Err(error) => return Err(text(error)),
            }
        }
        Ok((wrong, reported))
    }
}

impl Check for EachPageLost {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL.with_blocks(40)).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut image = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut image, &case.options, &mut ram).map_err(text)?;
        let mut newest = vec![0; Self::RECORDS as usize];
        for turn in 0..2 * Self::RECORDS {
            let number = turn * 7 % Self::RECORDS;
            index.insert(&key(number), &value(number, turn)).map_err(text)?;
            newest[number as usize] = turn;
        }
        index.close();
        let geometry = case.profile.geometry;
        let (mut lost, mut silent) = (0, 0);
        for page in (0..geometry.pages()).map(PageNumber) {
            if image.page_is_erased(page) {
                continue;
            }
            for ones in [true, false] {
                let mut chip = image.clone();
                lose_page(&mut chip, page, ones);
                let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) else {
                    lost += 1;
                    continue;
                };
                let (wrong, reported) = Self::read(&mut index, &newest)?;
                lost += u32::from(wrong || reported);
                // A cut may damage the last page of a block.
                let is_last = (page.0 + 1).is_multiple_of(geometry.pages_per_block)
                    || image.page_is_erased(PageNumber(page.0 + 1));
                if wrong && !reported && !is_last {
                    return Err(format!("without {page} (ones: {ones}) an older state is read"));
                }
                silent += u32::from(wrong && !reported);
            }
        }
        // Some pages are garbage, and some are the last of a block.
        if lost > 50 && silent < 20 { Ok(()) } else { Err(format!("{lost} lost, {silent} silent")) }
    }
}

#[test]
fn a_page_that_is_lost_and_not_the_last_of_its_block_is_reported() {
    for_every_system(&EachPageLost);
}
