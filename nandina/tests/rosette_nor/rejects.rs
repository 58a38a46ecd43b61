//! Chips that reject some operations while others succeed, and after a cut.

use core::ops::Range;

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use nandina::store::RosetteNor;
use nandina::{Index, OpenError, Options, WriteError, key};
use nandina_sim::{Chip, ChipError, Cut, Faults, Tear};

use crate::cuts::{Allowed, Change, TINY, changes, end, first_cut};
use crate::model::{Model, OPTIONS, Random, compare, ram, value};

/// A chip that rejects the first page of some sectors, or loses power when a leaf is marked.
struct Rejecting<'c> {
    chip: &'c mut Chip,
    /// Sectors that can be erased, but not programmed.
    sectors: Vec<u32>,
    rejections: u32,
    /// Power is lost before the first program of the header of a leaf that is there.
    cuts_marks: bool,
    /// Power is lost in the erase after this many others.
    cuts_erase: Option<u32>,
    is_cut: bool,
    /// Sectors that are marked as bad. If there are any, the others reject all programs.
    bad: Vec<u32>,
}

impl<'c> Rejecting<'c> {
    const fn new(chip: &'c mut Chip, sectors: Vec<u32>) -> Self {
        Self {
            chip,
            sectors,
            rejections: 0,
            cuts_marks: false,
            cuts_erase: None,
            is_cut: false,
            bad: Vec::new(),
        }
    }

    const fn powered(&self) -> Result<(), ChipError> {
        if self.is_cut { Err(ChipError::PowerLost) } else { Ok(()) }
    }
}

impl Flash for Rejecting<'_> {
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
        self.powered()?;
        self.chip.read(page, main, spare)
    }

    fn read_part(
        &mut self,
        page: PageNumber,
        part: Range<usize>,
        main: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.powered()?;
        self.chip.read_part(page, part, main)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.powered()?;
        let geometry = self.chip.geometry();
        if self.sectors.contains(&(page.0 / geometry.pages_per_block)) {
            self.rejections += 1;
            return Err(ChipError::ProgramFailed(page));
        }
        self.chip.program(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.is_cut |=
            self.cuts_marks && page.0.is_multiple_of(self.chip.geometry().pages_per_block);
        self.powered()?;
        if !self.bad.is_empty() {
            self.rejections += 1;
            return Err(ChipError::ProgramFailed(page));
        }
        self.chip.overwrite(page, offset, bytes)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, ChipError> {
        Ok(self.bad.contains(&block.0))
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.powered()?;
        match &mut self.cuts_erase {
            Some(0) => self.chip.cut_at_change(0, Cut::Inside(Tear::Mixture)),
            Some(left) => *left -= 1,
            None => {}
        }
        self.chip.erase(block)
    }
}

/// What a change says is done, is there later, too: also where the newest leaf was not settled.
#[test]
fn a_change_after_a_cut_is_refused_or_kept_where_leaves_cannot_be_copied() {
    let changes = changes(3, 200);
    let mut ram = ram(&TINY, &OPTIONS);
    let (mut refused, mut made) = (0, 0);
    for cut in Cut::ALL {
        for at in 0.. {
            let mut chip = Chip::with_seed(TINY, at);
            let Some(allowed) = first_cut(&mut chip, &mut ram, &changes, at, cut) else { break };
            for number in (0..60).step_by(7) {
                let (mut chip, mut allowed) = (chip.clone(), allowed.clone());
                chip.restore_power();
                let sectors = (0..TINY.geometry.blocks).collect();
                let rejecting = Rejecting::new(&mut chip, sectors);
                let mut index =
                    Index::<_, RosetteNor>::open(rejecting, &OPTIONS, &mut ram).unwrap();
                let (key, value) = (key::from_u32(number), value(1_000));
                let change = Change::Put(key, value);
                match index.insert(&key, &value) {
                    Ok(_) => {
                        made += 1;
                        allowed.all(|model| change.apply(model));
                    }
                    Err(_) => {
                        refused += 1;
                        allowed.cut(change);
                    }
                }
                drop(index);
                let what = format!("{cut:?} at {at}, key {number}");
                end(&mut chip, &mut ram, allowed, &what);
            }
        }
    }
    assert!(refused > 500 && made > 500, "{refused} changes were refused, {made} made");
}

/// The last slot of a log may be torn, and where nothing can be written no mount settles it.
#[test]
fn each_mount_shows_the_same_where_nothing_can_be_written() {
    let changes = changes(9, 120);
    let mut ram = ram(&TINY, &OPTIONS);
    let mut mounts = 0;
    for at in 0.. {
        let mut chip = Chip::with_seed(TINY, at);
        chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
        let cut = Cut::Inside(Tear::Mixture);
        let Some(_) = first_cut(&mut chip, &mut ram, &changes, at, cut) else { break };
        chip.restore_power();
        let sectors = 0..TINY.geometry.blocks;
        let mut is_blank = |sector: &u32| {
            let page = PageNumber(sector * TINY.geometry.pages_per_block);
            let mut main = [0; 256];
            chip.read(page, &mut main, &mut []).unwrap();
            main[220..222] != *b"Nd"
        };
        let blank: Vec<_> = sectors.clone().filter(&mut is_blank).collect();
        let mut shown: Option<Model> = None;
        for _ in 0..80 {
            let mut rejecting = Rejecting::new(&mut chip, sectors.clone().collect());
            rejecting.bad.clone_from(&blank);
            let mut index = Index::<_, RosetteNor>::open(rejecting, &OPTIONS, &mut ram).unwrap();
            let mut found = Model::new();
            let mut range = index.range(..).unwrap();
            while let Some((key, value)) = range.next().unwrap() {
                found.insert(key.try_into().unwrap(), value.try_into().unwrap());
            }
            assert_eq!(index.len() as usize, found.len(), "cut at {at}");
            assert!(shown.is_none_or(|shown| shown == found), "cut at {at}: it has changed");
            shown = Some(found);
            mounts += 1;
        }
    }
    assert!(mounts > 5_000, "only {mounts} mounts");
}

/// A mount erases replaced leaves that a cut left: once they were too many for the directory.
#[test]
fn replaced_leaves_whose_mark_was_cut_do_not_add_up() {
    // So many sectors that none is erased again for long.
    let profile = TINY.with_blocks(250);
    let options = Options { leaves: Some(20), ..OPTIONS };
    let mut random = Random::new(1);
    let mut chip = Chip::new(profile);
    let mut ram = ram(&profile, &options);
    Index::<_, RosetteNor>::format(&mut chip, &options, &mut ram).unwrap();
    let mut in_doubt: Option<[u8; 4]> = None;
    let (mut model, mut cuts) = (Model::new(), 0);
    for session in 0..100 {
        let mut index = Index::<_, RosetteNor>::open(&mut chip, &options, &mut ram)
            .unwrap_or_else(|error| panic!("session {session}: {error}"));
        if let Some(key) = in_doubt.take() {
            // Two leaves may have been joined before the change.
            match index.get(&key[..]).unwrap() {
                Some(value) => _ = model.insert(key, value.try_into().unwrap()),
                None => _ = model.remove(&key),
            }
        }
        compare(&mut index, &model);
        let mut rejecting = Rejecting::new(&mut chip, Vec::new());
        rejecting.cuts_marks = true;
        let mut index = Index::<_, RosetteNor>::open(rejecting, &options, &mut ram).unwrap();
        let grows = random.below(2) == 0;
        for turn in 0..300 {
            let (key, value) = (key::from_u32(random.below(400)), value(turn));
            let done = if random.below(8) < if grows { 6 } else { 2 } {
                model.insert(key, value);
                index.insert(&key, &value).map(|_| ())
            } else {
                model.remove(&key);
                index.remove(&key).map(|_| ())
            };
            if let Err(error) = done {
                assert_eq!(error, WriteError::Device(ChipError::PowerLost));
                in_doubt = Some(key);
                cuts += 1;
                break;
            }
        }
    }
    assert!(cuts > 60, "only {cuts} cuts");
}

/// Makes changes until power is lost. Returns whether all were made.
fn all_made(
    index: &mut Index<'_, Rejecting<'_>, RosetteNor>,
    changes: &[Change],
    allowed: &mut Allowed,
) -> bool {
    for &change in changes {
        let done = match change {
            Change::Put(key, value) => index.insert(&key, &value).map(|_| ()),
            Change::Remove(key) => index.remove(&key).map(|_| ()),
        };
        if let Err(error) = done {
            assert_eq!(error, WriteError::Device(ChipError::PowerLost));
            allowed.cut(change);
            return false;
        }
        allowed.all(|model| change.apply(model));
    }
    true
}

/// A mount copies the newest leaf, and later an erase of the old copy is cut.
///
/// The next mount may see that copy. Once it marked it as replaced: nothing may be programmed where
/// an erase was cut.
#[test]
fn nothing_is_programmed_in_an_old_copy_whose_erase_was_cut() {
    let changes = changes(30, 100);
    let more = self::changes(31, 200);
    let mut ram = ram(&TINY, &OPTIONS);
    let mut cuts = 0;
    for at in 0.. {
        let mut chip = Chip::with_seed(TINY, at);
        let Some(first) = first_cut(&mut chip, &mut ram, &changes, at, Cut::After) else { break };
        // The mount that copies a leaf erases a sector for it.
        chip.restore_power();
        let mut mounted = chip.clone();
        Index::<_, RosetteNor>::open(&mut mounted, &OPTIONS, &mut ram).unwrap();
        if mounted.erase_counts().eq(chip.erase_counts()) {
            continue;
        }
        for (nth, twist) in (0..).flat_map(|nth| (0..60).map(move |twist| (nth, twist))) {
            let (mut chip, mut allowed) = (chip.clone(), first.clone());
            // Each number of operations before the cut makes another mixture.
            for _ in 0..twist {
                chip.read(PageNumber(0), &mut [0; 256], &mut []).unwrap();
            }
            let mut cutting = Rejecting::new(&mut chip, Vec::new());
            cutting.cuts_erase = Some(nth);
            let is_cut = match Index::<_, RosetteNor>::open(cutting, &OPTIONS, &mut ram) {
                Ok(mut index) => !all_made(&mut index, &more, &mut allowed),
                Err(error) => {
                    assert_eq!(error, OpenError::Device(ChipError::PowerLost));
                    true
                }
            };
            if !is_cut {
                break;
            }
            end(&mut chip, &mut ram, allowed, &format!("cut at {at}, in erase {nth}, {twist}"));
            cuts += 1;
        }
    }
    assert!(cuts > 4_000, "only {cuts} cuts");
}

#[test]
fn a_format_takes_another_sector_where_the_first_cannot_be_programmed() {
    let mut ram = ram(&TINY, &OPTIONS);
    let mut chip = Chip::new(TINY);
    let rejecting = Rejecting::new(&mut chip, vec![1, 2, 4]);
    let mut index = Index::<_, RosetteNor>::format(rejecting, &OPTIONS, &mut ram).unwrap();
    let mut model = Model::new();
    for turn in 0..60 {
        index.insert(&key::from_u32(turn), &value(turn)).unwrap();
        model.insert(key::from_u32(turn), value(turn));
    }
    compare(&mut index, &model);
    assert!(index.flash().rejections >= 2);
}

#[test]
fn a_format_fails_where_no_sector_can_be_programmed() {
    let mut ram = ram(&TINY, &OPTIONS);
    let mut chip = Chip::new(TINY);
    let rejecting = Rejecting::new(&mut chip, (0..TINY.geometry.blocks).collect());
    assert!(Index::<_, RosetteNor>::format(rejecting, &OPTIONS, &mut ram).is_err());
}

/// One sorted record of the newest leaf is damaged, and its commit may be torn.
#[test]
fn one_damaged_leaf_leaves_the_others_readable() {
    let changes = changes(5, 200);
    let mut ram = ram(&TINY, &OPTIONS);
    let (mut damaged, mut readable) = (0, 0);
    for cut in Cut::ALL {
        for at in 0.. {
            let mut chip = Chip::with_seed(TINY, at);
            if first_cut(&mut chip, &mut ram, &changes, at, cut).is_none() {
                break;
            }
            chip.restore_power();
            for sector in 0..TINY.geometry.blocks {
                let mut chip = chip.clone();
                let page = PageNumber(sector * TINY.geometry.pages_per_block);
                let mut is_leaf = false;
                chip.corrupt_page(page, |main, _| {
                    // The magic of a header, and a value of the first record.
                    is_leaf = main[220..222] == *b"Nd" && main[..3] == [0, 0, 0];
                    main[8] ^= 0x10;
                });
                if !is_leaf {
                    continue;
                }
                damaged += 1;
                let mut index = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS, &mut ram)
                    .unwrap_or_else(|error| panic!("{cut:?} at {at}, sector {sector}: {error}"));
                readable += (0..60).filter(|&it| index.get(&key::from_u32(it)).is_ok()).count();
            }
        }
    }
    assert!(damaged > 500 && readable > 40 * damaged, "{readable} of 60 * {damaged} keys");
}
