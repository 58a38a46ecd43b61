//! Swarm over the logical pages of an FTL: a vector says what each page holds.
//!
//! An episode draws a chip, faults and their frequency, and works in sessions. Most cuts are aimed
//! at programs and erases, since a mount and a settling are mostly reads, which cannot be torn.
//! After each session every page is read: it is as acknowledged, or of a call that did not return
//! old or new; and of a request that is written as a whole, all pages are. A volatile trim may have
//! been undone. What was found once stays.
//!
//! Nothing here knows how an FTL works.

use nandina::blocks::GcPolicy;
use nandina::flash::{Flash, Profile};
use nandina_ftl::LogicalPages;
use nandina_sim::{Chip, ChipError, Cut, Faults};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::device::Device;
use super::settings::{chips, frequency};
use super::swarm::{CHIP_OPERATIONS, EPISODE_OPERATIONS, Episode, OPERATIONS_MAX, swarm_of};
use super::worn::{is_worn_out, most_blocks_fail};
use super::{Hardships, Mode, PAGES, Report, Shares, Torture};
use crate::layer::{Layer, Pages, Room, Size, block_pages, name_of};

/// Runs episodes until as many changes and reads were done as `torture` says.
pub(super) fn swarm(
    torture: &Torture,
    layer: Layer,
    shares: Shares,
    progress: &(dyn Fn(u64) + Sync),
) -> Report {
    let hardships = torture.run.hardships;
    let report = Report::new(name_of(PAGES, Some(layer)), Mode::Swarm, torture.seed);
    let live = |seed, done: &mut Episode| episode(seed, layer, hardships, done);
    swarm_of(report, (hardships, torture.operations), shares, progress, &live)
}

/// Runs the episode of `seed`. Returns what is wrong, if anything is.
pub(super) fn episode(
    seed: u64,
    layer: Layer,
    hardships: Hardships,
    done: &mut Episode,
) -> Result<(), String> {
    episode_on(seed, layer, hardships, done, |chip| chip)
}

/// The same on a device that is made of a chip.
fn episode_on<D: Device>(
    seed: u64,
    layer: Layer,
    hardships: Hardships,
    done: &mut Episode,
    make: impl FnOnce(Chip) -> D,
) -> Result<(), String> {
    let mut life = Life::new(seed, layer, hardships, make)?;
    let outcome = life.live();
    let chip = life.device.chip();
    done.operations = life.operations;
    done.chip_operations = chip.counters().operations();
    done.faults = chip.fault_counters();
    done.worn_out = is_worn_out(chip);
    outcome.map_err(|what| format!("on {}: {what}", chip.profile().key))
}

/// A call of the host that changes pages, and the number of what it writes.
#[derive(Clone, Copy, Debug)]
struct Change {
    logical: u32,
    count: u32,
    /// `None` for a trim.
    version: Option<u32>,
    /// Whether all pages are old, or all are new; of a trim, whether it is durable.
    is_whole: bool,
}

/// An episode.
struct Life<D> {
    device: D,
    layer: Layer,
    size: Size,
    room: Room,
    random: ChaCha8Rng,
    /// For each page the number of its content; `None` for a hole.
    model: Vec<Option<u32>>,
    /// For each page the content that a mount may bring back, because its trim was volatile.
    trimmed: Vec<Option<u32>>,
    pending: Option<Change>,
    faults: Faults,
    /// Chip operations of a session before its cut, at most; 0: no cuts.
    cut_within: u64,
    version: u32,
    operations: u64,
}

/// The bytes of a content.
fn fill(logical: u32, version: u32, bytes: &mut [u8]) {
    let word = (u64::from(logical) << 32 | u64::from(version)).to_le_bytes();
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = word[at % word.len()] ^ (at / word.len()) as u8;
    }
}

impl Change {
    fn concerns(&self, logical: u32) -> bool {
        (self.logical..self.logical + self.count).contains(&logical)
    }

    /// What a page holds after it.
    fn of(&self, logical: u32) -> Option<u32> {
        self.version.map(|version| version + (logical - self.logical))
    }
}

impl<D: Device> Life<D> {
    /// Draws the settings of the episode of `seed`.
    fn new(
        seed: u64,
        layer: Layer,
        hardships: Hardships,
        make: impl FnOnce(Chip) -> D,
    ) -> Result<Self, String> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let chips: Vec<Profile> = chips()
            .into_iter()
            .filter(|chip| layer.size(&chip.with_blocks(1000)).is_ok())
            .collect();
        let mut profile = chips[random.random_range(0..chips.len())];
        profile.endurance = random.random_range(20..2_000);
        if random.random() {
            profile.capabilities.bad_blocks_per_mille = random.random_range(1..250);
        }
        let layer = match layer.log_blocks() {
            Some(_) => layer
                .with_log_blocks(random.random_range(2..6))
                .map_err(|error| error.to_string())?,
            None => layer,
        };
        let victims = [GcPolicy::Fewest, GcPolicy::CostBenefit, GcPolicy::Sampled(4)];
        let layer = layer.with_victims(victims[(seed % 3) as usize]);
        let logical_pages = random.random_range(2..16) * block_pages(&profile);
        let blocks = layer.blocks_needed(&profile, logical_pages) + random.random_range(0..4);
        // Every other life has room for checkpoints.
        let blocks = blocks + if seed.is_multiple_of(2) { 6 } else { 0 };
        let profile = profile.with_blocks(blocks);
        let mut drawn = |hardship| random.random_bool(0.6) && hardship;
        let (unstable, errors) = (drawn(hardships.unstable), drawn(hardships.errors));
        let faults = Faults {
            unstable_pages: if unstable { 1 << random.random_range(0..3) } else { 0 },
            device_errors: if errors { 32 << random.random_range(0..9) } else { 0 },
            program_failures: frequency(&mut random) * 16,
            erase_failures: frequency(&mut random) * 4,
            disturbing_reads: frequency(&mut random),
            retention_days: frequency(&mut random),
            within_ecc: true,
            wear_out: random.random_range(0..4) == 0,
            ..Faults::default()
        };
        let mut chip = Chip::with_seed(profile, seed);
        let bad = profile.capabilities.bad_blocks_max(profile.geometry.blocks);
        chip.spoil_blocks(random.random_range(0..=bad));
        chip.set_faults(Faults { device_errors: 0, ..faults });
        let size = layer.sized(&profile, logical_pages);
        let cut_within =
            if random.random_range(0..8) == 0 { 0 } else { 16 << random.random_range(0..8) };
        Ok(Self {
            device: make(chip),
            layer,
            size,
            room: Room::default(),
            random,
            model: vec![None; size.logical_pages as usize],
            trimmed: vec![None; size.logical_pages as usize],
            pending: None,
            faults,
            cut_within,
            version: 0,
            operations: 0,
        })
    }

    fn live(&mut self) -> Result<(), String> {
        let formatted = self.layer.open(&self.size, &mut self.device, &mut self.room, true);
        formatted.map(drop).map_err(|error| format!("formatting: {error:?}"))?;
        while self.operations < EPISODE_OPERATIONS.into()
            && self.device.chip().counters().operations() < CHIP_OPERATIONS
        {
            self.arm();
            self.device.chip_mut().limit_operations(Some(OPERATIONS_MAX));
            self.device.chip_mut().set_faults(self.faults);
            self.session()?;
            let faults = self.device.chip().faults();
            self.device.chip_mut().set_faults(Faults { device_errors: 0, ..faults });
            self.device.restore_power();
            if self.random.random_range(0..4) == 0 {
                let days = self.random.random_range(0..400);
                self.device.chip_mut().rest(days);
            }
            // Nothing is written in between: each mount finds what the one before it found.
            for _ in 0..self.random.random_range(1..3) {
                self.look()?;
            }
        }
        self.device.chip_mut().set_faults(Faults::default());
        self.demand_progress()
    }

    /// Decides when power fails: three times in four in a program or an erase.
    fn arm(&mut self) {
        if self.cut_within == 0 {
            return;
        }
        let cut = Cut::ALL[self.random.random_range(0..Cut::ALL.len())];
        let chip = self.device.chip_mut();
        if self.random.random_range(0..4) > 0 {
            chip.cut_at_change(self.random.random_range(0..self.cut_within.div_ceil(8)), cut);
        } else {
            chip.cut_at(self.random.random_range(0..self.cut_within), cut);
        }
    }

    /// Works until power fails or enough is done.
    fn session(&mut self) -> Result<(), String> {
        self.operations += 1;
        let mut disk = match self.layer.open(&self.size, &mut self.device, &mut self.room, false) {
            Ok(disk) => disk,
            Err(ChipError::PowerLost | ChipError::GaveUp) => return Ok(()),
            Err(error) => return Err(format!("opening: {error:?}")),
        };
        let host = Host {
            random: &mut self.random,
            model: &mut self.model,
            trimmed: &mut self.trimmed,
            pending: &mut self.pending,
            version: &mut self.version,
        };
        let calls = host.random.random_range(1..300);
        let (done, result) = host.work(disk.ftl(), calls);
        self.operations += done;
        drop(disk);
        match result {
            Ok(()) | Err(Failed::Device(ChipError::PowerLost | ChipError::GaveUp)) => Ok(()),
            Err(Failed::Device(error)) if self.may_refuse(&error) => Ok(()),
            Err(Failed::Device(error)) => Err(format!("{:?}: {error:?}", self.pending)),
            Err(Failed::Wrong(what)) => Err(what),
        }
    }

    /// Whether a call may end so: more blocks are lost than the chip promises.
    fn may_refuse(&self, error: &ChipError) -> bool {
        let chip = self.device.chip();
        match error {
            ChipError::Layer(_) => is_worn_out(chip),
            ChipError::EraseFailed(_) | ChipError::ProgramFailed(_) => most_blocks_fail(chip),
            _ => false,
        }
    }

    /// Opens the FTL, checks it, and compares every page.
    fn look(&mut self) -> Result<(), String> {
        let mut disk = self
            .layer
            .open(&self.size, &mut self.device, &mut self.room, false)
            .map_err(|error| format!("opening to look: {error:?}"))?;
        let ftl = disk.ftl();
        ftl.check()?;
        let change = self.pending.take();
        let (mut old, mut new) = (0, 0);
        for (logical, (known, trimmed)) in (0..).zip(self.model.iter_mut().zip(&mut self.trimmed)) {
            let after = change.filter(|change| change.concerns(logical));
            let mut all = vec![*known];
            all.extend(after.map(|change| change.of(logical)));
            all.extend(trimmed.take().map(Some));
            let is = expect(ftl, logical, &all).map_err(|failed| failed.what(logical))?;
            if after.is_some() {
                (old, new) = (old + u32::from(is != 1), new + u32::from(is == 1));
            }
            *known = all[is];
        }
        match change {
            Some(change) if change.version.is_some() && change.is_whole && old > 0 && new > 0 => {
                Err(format!("of {change:?} {old} pages are old and {new} new"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that every page can be written twice and trimmed, unless the chip is worn out.
    fn demand_progress(&mut self) -> Result<(), String> {
        self.look()?;
        let mut disk = self
            .layer
            .open(&self.size, &mut self.device, &mut self.room, false)
            .map_err(|error| format!("opening the healed chip: {error:?}"))?;
        let host = Host {
            random: &mut self.random,
            model: &mut self.model,
            trimmed: &mut self.trimmed,
            pending: &mut self.pending,
            version: &mut self.version,
        };
        let result = host.rewrite_all(disk.ftl());
        drop(disk);
        match result {
            Err(Failed::Device(error)) if self.may_refuse(&error) => Ok(()),
            Err(Failed::Device(error)) => Err(format!("on the healed chip: {error:?}")),
            Err(Failed::Wrong(what)) => Err(what),
            Ok(()) => self.look(),
        }
    }
}

/// Why a session ended early.
enum Failed {
    Device(ChipError),
    /// The FTL is wrong.
    Wrong(String),
}

impl Failed {
    /// What is wrong with a page that was read.
    fn what(self, logical: u32) -> String {
        match self {
            Self::Device(error) => format!("reading page {logical}: {error:?}"),
            Self::Wrong(what) => what,
        }
    }
}

impl From<ChipError> for Failed {
    fn from(error: ChipError) -> Self {
        Self::Device(error)
    }
}

/// Reads a page, and returns which of these contents it has.
fn expect<C: Flash<Error = ChipError>>(
    ftl: &mut Pages<'_, C>,
    logical: u32,
    contents: &[Option<u32>],
) -> Result<usize, Failed> {
    let mut bytes = vec![0; ftl.page_bytes()];
    let is_there = ftl.read(logical, &mut bytes)?;
    let mut expected = vec![0; bytes.len()];
    let is = |content: &Option<u32>| match *content {
        Some(version) => {
            fill(logical, version, &mut expected);
            is_there && bytes == expected
        }
        None => !is_there,
    };
    contents.iter().position(is).ok_or_else(|| {
        let head = &bytes[..8.min(bytes.len())];
        Failed::Wrong(format!("page {logical} begins {head:02x?}, expected {contents:?}"))
    })
}

/// The host of a session, and what it knows.
struct Host<'l> {
    random: &'l mut ChaCha8Rng,
    model: &'l mut [Option<u32>],
    trimmed: &'l mut [Option<u32>],
    pending: &'l mut Option<Change>,
    version: &'l mut u32,
}

impl Host<'_> {
    /// Makes so many calls. Returns how many were made, and why no more.
    fn work<C: Flash<Error = ChipError>>(
        mut self,
        ftl: &mut Pages<'_, C>,
        calls: u64,
    ) -> (u64, Result<(), Failed>) {
        for done in 0..calls {
            if let Err(failed) = self.call(ftl) {
                return (done + 1, Err(failed));
            }
        }
        (calls, Ok(()))
    }

    fn call<C: Flash<Error = ChipError>>(&mut self, ftl: &mut Pages<'_, C>) -> Result<(), Failed> {
        let pages = self.model.len() as u32;
        // Every other call is in a quarter of the pages.
        let most = if self.random.random() { pages } else { pages.div_ceil(4) };
        let logical = self.random.random_range(0..most);
        let long = self.random.random_range(1..=24).min(pages - logical);
        match self.random.random_range(0..100) {
            0..6 => {
                ftl.idle(self.random.random_range(0..400))?;
            }
            6..9 => {
                ftl.checkpoint()?;
            }
            9..20 => {
                expect(ftl, logical, &[self.model[logical as usize]])?;
            }
            kind @ 20..26 => {
                let is_whole = kind < 23;
                self.make(ftl, Change { logical, count: long, version: None, is_whole })?
            }
            26..38 => self.write(ftl, logical, long, false)?,
            38..48 if ftl.request_pages_max() > 1 => {
                let count = long.min(ftl.request_pages_max());
                self.write(ftl, logical, count, true)?;
            }
            _ => self.write(ftl, logical, 1, false)?,
        }
        Ok(())
    }

    fn write<C: Flash<Error = ChipError>>(
        &mut self,
        ftl: &mut Pages<'_, C>,
        logical: u32,
        count: u32,
        is_whole: bool,
    ) -> Result<(), Failed> {
        let version = Some(*self.version);
        *self.version += count;
        self.make(ftl, Change { logical, count, version, is_whole })
    }

    fn make<C: Flash<Error = ChipError>>(
        &mut self,
        ftl: &mut Pages<'_, C>,
        change: Change,
    ) -> Result<(), Failed> {
        *self.pending = Some(change);
        let Change { logical, count, version, is_whole } = change;
        let each = ftl.page_bytes();
        let mut bytes = vec![0; each * count as usize];
        if let Some(version) = version {
            for (at, page) in (0..).zip(bytes.chunks_exact_mut(each)) {
                fill(logical + at, version + at, page);
            }
        }
        match (version, is_whole) {
            (None, true) => ftl.trim(logical, count)?,
            (None, false) => ftl.trim_volatile(logical, count)?,
            (Some(_), true) => ftl.write_pages_atomic(logical, &bytes)?,
            (Some(_), false) => ftl.write_pages(logical, &bytes)?,
        }
        *self.pending = None;
        for at in logical..logical + count {
            let before = core::mem::replace(&mut self.model[at as usize], change.of(at));
            let trimmed = &mut self.trimmed[at as usize];
            *trimmed = before.or(*trimmed).filter(|_| version.is_none() && !is_whole);
        }
        Ok(())
    }

    /// Writes every page twice, trims the first half, and reads all.
    fn rewrite_all<C: Flash<Error = ChipError>>(
        mut self,
        ftl: &mut Pages<'_, C>,
    ) -> Result<(), Failed> {
        let pages = self.model.len() as u32;
        for _ in 0..2 {
            for logical in 0..pages {
                self.write(ftl, logical, 1, false)?;
            }
        }
        let half = Change { logical: 0, count: pages / 2, version: None, is_whole: true };
        self.make(ftl, half)?;
        for logical in 0..pages {
            expect(ftl, logical, &[self.model[logical as usize]])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nandina::flash::{BlockNumber, PageNumber, Reading};

    use super::super::{CutRun, Outcome, replay, torture};
    use super::*;
    use crate::effort::{Effort, Share, effort};
    use crate::hand_on;

    /// A chip behind a cache that acknowledges a program before it is done: a cut loses it.
    #[derive(Clone)]
    struct Cached {
        chip: Chip,
        held: Option<(PageNumber, Vec<u8>, Vec<u8>)>,
    }

    impl Cached {
        fn write_back(&mut self) -> Result<(), ChipError> {
            match self.held.take() {
                Some((page, main, spare)) => self.chip.program(page, &main, &spare),
                None => Ok(()),
            }
        }
    }

    impl Flash for Cached {
        type Error = ChipError;

        hand_on!(chip: geometry, capabilities, rewrite, overwrite, is_bad, mark_bad);

        fn read(
            &mut self,
            page: PageNumber,
            main: &mut [u8],
            spare: &mut [u8],
        ) -> Result<Reading, ChipError> {
            match &self.held {
                Some((held, cached, apart)) if *held == page => {
                    main.copy_from_slice(cached);
                    spare.copy_from_slice(&apart[..spare.len()]);
                    Ok(Reading::Clean)
                }
                _ => self.chip.read(page, main, spare),
            }
        }

        fn program(
            &mut self,
            page: PageNumber,
            main: &[u8],
            spare: &[u8],
        ) -> Result<(), ChipError> {
            self.write_back()?;
            self.held = Some((page, main.to_vec(), spare.to_vec()));
            Ok(())
        }

        fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
            self.write_back()?;
            self.chip.erase(block)
        }
    }

    impl Device for Cached {
        fn chip(&self) -> &Chip {
            &self.chip
        }

        fn chip_mut(&mut self) -> &mut Chip {
            &mut self.chip
        }

        fn restore_power(&mut self) {
            self.held = None;
            self.chip.restore_power();
        }
    }

    /// A chip whose programs do nothing now and then, and say that they did.
    fn silent(mut life: Life<Chip>) -> Result<(), String> {
        life.faults.silent_programs = 400;
        life.live()
    }

    #[test]
    fn swarms_over_the_pages_of_each_ftl_lose_nothing() {
        let buffered = [
            "ftl:block with 3 buffer blocks",
            "ftl:fast with 2 buffer blocks",
            "ftl:page with 3 buffer blocks",
            "ftl:compact with 2 buffer blocks as printed",
        ];
        let alone = ["ftl:page", "ftl:compact", "ftl:block", "ftl:bast", "ftl:fast"];
        let run = CutRun { hardships: Hardships::ALL, ..CutRun::SMALL };
        let kinds = alone.map(|name| (name, 4_000, 60)).into_iter();
        let kinds = kinds.chain(buffered.map(|name| (name, 1_500, 10)));
        for (name, few, cuts) in Share::one_in(7).of(kinds) {
            let operations = if effort() == Effort::Full { 1_000_000 } else { few };
            let what = Torture { mode: Mode::Swarm, seed: 1, run, operations };
            let report = torture(&format!("pages over {name}"), what, &|_| {}).unwrap();
            assert_eq!(report.violations, [], "{name}");
            println!("{report:?}");
            assert!(report.operations >= operations && report.cuts > cuts, "{report:?}");
            // Cuts are aimed at programs and erases.
            assert!(4 * report.torn > report.cuts, "{report:?}");
        }
        let name = "swarm/pages over ftl:fast/seed 3 unstable errors";
        assert_eq!(replay(name), Ok(Outcome::Survived));
    }

    /// The copies of a merge that was cut lie in a free block. Its erase is cut, and leaves some of
    /// them readable now and then. The next mount does not see them, gives their numbers again, and
    /// a later one takes them for the newest.
    #[test]
    fn copies_of_a_cut_merge_whose_erase_was_cut_never_count() {
        let name = "swarm/pages over ftl:block/seed 77000001 unstable errors";
        assert_eq!(replay(name), Ok(Outcome::Survived));
    }

    /// A program fails in a log block. While the block is merged power is cut: the page that failed
    /// is not the newest then, and is read now and then.
    #[test]
    fn a_page_whose_program_failed_never_counts_after_a_cut_in_the_merge_of_its_block() {
        let name = "swarm/pages over ftl:fast/seed 82000109 unstable errors";
        assert_eq!(replay(name), Ok(Outcome::Survived));
    }

    /// A page of a buffer block is trimmed, the block converted, and its erase cut. The page cannot
    /// be read, but the page behind it names it.
    #[test]
    fn a_trimmed_page_that_a_cut_erase_left_in_a_buffer_block_never_counts() {
        let name = "swarm/pages over ftl:block with 3 buffer blocks/seed 79000017 unstable errors";
        assert_eq!(replay(name), Ok(Outcome::Survived));
    }

    #[test]
    fn pages_are_for_swarms_over_an_ftl() {
        let what = Torture { mode: Mode::Linear, seed: 1, run: CutRun::SMALL, operations: 10 };
        let refused = |name, what| torture(name, what, &|_| {}).unwrap_err().to_string();
        let mode = refused("pages over ftl:fast", what);
        assert!(mode.starts_with("pages is for a swarm"), "{mode}");
        let what = Torture { mode: Mode::Swarm, ..what };
        let alone = refused("pages", what);
        assert!(alone.starts_with("pages are those of an FTL"), "{alone}");
        let buffer = refused("pages over ftl:fast with 0 buffer blocks", what);
        assert!(buffer.starts_with("an FTL has no '0 buffer blocks'"), "{buffer}");
    }

    #[test]
    fn broken_devices_are_caught() {
        let caught = |name: &str, lives: &dyn Fn(Layer, u64) -> Result<(), String>| {
            let layer = Layer::named(name).unwrap().with_over_provisioning(0);
            let wrong = (0..6).filter_map(|seed| lives(layer, seed).err());
            wrong.filter(|what| what.contains("begins") || what.contains("Corrupt")).count()
        };
        for name in ["ftl:page", "ftl:fast", "ftl:bast with 2 buffer blocks"] {
            let cached = caught(name, &|layer, seed| {
                let make = |chip| Cached { chip, held: None };
                episode_on(seed, layer, Hardships::NONE, &mut Episode::default(), make)
            });
            let silent = caught(name, &|layer, seed| {
                silent(Life::new(seed, layer, Hardships::NONE, |chip| chip)?)
            });
            assert!(cached > 0 && silent > 0, "{name}: {cached}, {silent}");
        }
    }
}
