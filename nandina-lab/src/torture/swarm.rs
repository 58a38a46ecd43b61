//! Swarm: episodes with a random chip, random settings and random faults.
//!
//! An episode draws a random subset of the faults with random frequencies, works in sessions that
//! are cut at random times, and after each cut compares everything. At its end the faults stop, and
//! the index must make progress.
//!
//! All faults of a swarm can be survived: no codeword loses more bits than the ECC corrects, and
//! where programs or erases may silently do nothing, the index reads its programs back.

use std::ops::Range;

use nandina::{
    BadOption, Index, Inserted, OpenError, Options, Removed, System, WriteError, ram_needed,
};
use nandina_sim::{ChipError, Cut, FaultCounters, Faults};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::device::{Ground, Layered};
use super::life::{End, Life, open};
use super::oracle::{Model, Pending, compare, contents, key, says_none, value};
use super::settings::Settings;
use super::worn::most_blocks_fail;
use crate::layer::{Layer, Room, name_of};

use super::{CaseId, Hardships, Mode, Report, Shares, VIOLATIONS_MAX, in_parallel};

/// Changes and lookups of one episode, about.
pub(super) const EPISODE_OPERATIONS: u32 = 2_000;

/// Chip operations after which an episode ends early, with all checks of its end.
///
/// Most episodes need fewer than a tenth. Where the device gives up every few hundred operations,
/// and a mount needs thousands, all that an episode does is to mount: one such episode of `vm` took
/// 7,661,947. The operations that it does not do are done by further episodes.
pub(super) const CHIP_OPERATIONS: u64 = 500_000;

/// More chip operations than the calls between two cuts can need.
///
/// The bound detects a call that never ends.
pub(super) const OPERATIONS_MAX: u64 = 10_000_000;

/// The events of an episode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Episode {
    /// Changes and lookups of the index.
    pub operations: u64,
    /// Operations of the chip.
    pub chip_operations: u64,
    /// The faults of the chip.
    pub faults: FaultCounters,
    /// Weak pages that the index refreshed.
    pub refreshed: u64,
    /// Mounts after a cut that began with a checkpoint.
    pub from_checkpoints: u64,
    /// Whether the chip was worn out at the end.
    ///
    /// Then all records could be read, but not all changed.
    pub worn_out: bool,
}

/// Runs episodes of system `S` until `operations` were done in all.
///
/// With a share of the episodes, those that a whole swarm begins with are shared.
pub fn swarm<S: System>(
    seed: u64,
    layer: Option<Layer>,
    hardships: Hardships,
    operations: u64,
    shares: Shares,
    progress: &(dyn Fn(u64) + Sync),
) -> Report {
    let report = Report::new(name_of(S::DESCRIPTION.key, layer), Mode::Swarm, seed);
    let episode = |seed, done: &mut Episode| episode_over::<S>(seed, layer, hardships, done);
    swarm_of(report, (hardships, operations), shares, progress, &episode)
}

/// An episode: what it did, and what is wrong, if anything is.
pub(super) type Live<'e> = dyn Fn(u64, &mut Episode) -> Result<(), String> + Sync + 'e;

/// Runs episodes until as many operations were done, and adds them to `report`.
pub(super) fn swarm_of(
    mut report: Report,
    (hardships, operations): (Hardships, u64),
    shares: Shares,
    progress: &(dyn Fn(u64) + Sync),
    episode: &Live<'_>,
) -> Report {
    let mut begun = 0;
    let silent = |_| ();
    // How many episodes follow depends on sums alone, never on the order in which threads end.
    while report.operations < operations && report.violations.len() < VIOLATIONS_MAX {
        let episodes = (operations - report.operations).div_ceil(EPISODE_OPERATIONS.into());
        let told: &(dyn Fn(u64) + Sync) = if begun == 0 { progress } else { &silent };
        let numbers = begun..begun + episodes;
        report = live(numbers, hardships, shares, report, told, episode);
        begun += episodes;
        if shares != Shares::WHOLE {
            break;
        }
    }
    report
}

/// Runs the episodes of these numbers, and adds them to `report`.
fn live(
    numbers: Range<u64>,
    hardships: Hardships,
    shares: Shares,
    report: Report,
    progress: &(dyn Fn(u64) + Sync),
    episode: &Live<'_>,
) -> Report {
    let (system, seed) = (report.system.clone(), report.seed);
    in_parallel(numbers.end - numbers.start, report, progress, |part, report| {
        let part = numbers.start + part;
        if !shares.takes(part) {
            return;
        }
        let seed = seed.wrapping_add(part);
        let mut done = Episode::default();
        let outcome = episode(seed, &mut done);
        report.runs += 1;
        report.add(done.faults, done.operations, done.chip_operations);
        report.refreshed += done.refreshed;
        report.from_checkpoints += done.from_checkpoints;
        if let Err(what) = outcome {
            let case = CaseId {
                mode: Mode::Swarm,
                system: system.clone(),
                seed,
                run: None,
                hardships,
                cuts: Vec::new(),
            };
            report.violated(&case, what);
        }
    })
}

/// Runs the episode of `seed`. Returns what is wrong, if anything is.
pub fn episode<S: System>(
    seed: u64,
    hardships: Hardships,
    done: &mut Episode,
) -> Result<(), String> {
    episode_over::<S>(seed, None, hardships, done)
}

/// Runs the episode of `seed` on a chip, or on an FTL on a chip.
pub(super) fn episode_over<S: System>(
    seed: u64,
    layer: Option<Layer>,
    hardships: Hardships,
    done: &mut Episode,
) -> Result<(), String> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let settings = Settings::choose::<S>(&mut random, seed, hardships, layer);
    let chip = settings.chip.clone();
    match layer {
        None => begin::<S, _>(chip, settings, random, done),
        Some(layer) => {
            let ground = Layered::new(chip, layer, settings.logical_pages);
            begin::<S, _>(ground, settings, random, done)
        }
    }
}

/// Formats what an episode is about, and lives it.
fn begin<S: System, D: Ground>(
    mut ground: D,
    settings: Settings,
    random: ChaCha8Rng,
    done: &mut Episode,
) -> Result<(), String> {
    let mut ram = vec![0xA5; ram_needed::<S>(&ground.geometry(), &settings.options)];
    // During the first format and the comparisons the device gives no operation up.
    let faults = ground.chip().faults();
    ground.chip_mut().set_faults(Faults { device_errors: 0, ..faults });
    let mut room = Room::default();
    let opened = ground.begin(&mut room, true).map_err(OpenError::Device).and_then(|mut begun| {
        Index::<_, S>::format(begun.bus(), &settings.options, &mut ram).map(drop)
    });
    let outcome = match opened {
        // A record of this size is too large for this system's leaves, or the chip too small for
        // it.
        Err(OpenError::RecordTooLarge { .. } | OpenError::ChipTooSmall { .. }) => Ok(()),
        Err(error) => Err(format!("formatting: {error:?}")),
        Ok(()) => {
            let mut life = Life {
                settings,
                ground,
                room,
                ram,
                model: Model::new(),
                pending: Pending::default(),
                random,
                version: 0,
                operations: 0,
                refreshed: 0,
                from_checkpoints: 0,
                mounting: 0,
                formatting: false,
                is_refused: false,
            };
            let outcome = life.live::<S>();
            let outcome = if life.is_shut() { Ok(()) } else { outcome };
            done.worn_out = life.is_worn_out();
            done.operations = life.operations;
            done.refreshed = life.refreshed;
            done.from_checkpoints = life.from_checkpoints;
            ground = life.ground;
            outcome
        }
    };
    let chip = ground.chip();
    done.chip_operations = chip.counters().operations();
    done.faults = chip.fault_counters();
    outcome.map_err(|what| format!("on {}: {what}", chip.profile().key))
}

impl<D: Ground> Life<D> {
    fn live<S: System>(&mut self) -> Result<(), String> {
        while self.operations < EPISODE_OPERATIONS.into()
            && self.ground.chip().counters().operations() < CHIP_OPERATIONS
        {
            if self.settings.cut_within > 0 {
                // Cut in the mount, or after it.
                let behind = if self.random.random_range(0..4) == 0 { 0 } else { self.mounting };
                let operation = behind + self.random.random_range(0..self.settings.cut_within);
                let cut = Cut::ALL[self.random.random_range(0..Cut::ALL.len())];
                self.ground.chip_mut().cut_at(operation, cut);
            }
            self.ground.chip_mut().limit_operations(Some(OPERATIONS_MAX));
            self.ground.chip_mut().set_faults(self.settings.chip.faults());
            let mut end = self.session::<S>()?;
            if matches!(end, End::Format) {
                end = self.format::<S>()?;
            }
            let faults = self.ground.chip().faults();
            self.ground.chip_mut().set_faults(Faults { device_errors: 0, ..faults });
            self.ground.restore_power();
            // Pending changes of a write buffer are lost without a cut as well.
            if matches!(end, End::Cut) || !self.pending.is_empty() {
                self.settle::<S>()?;
            }
            if self.random.random_range(0..4) == 0 {
                let days = self.random.random_range(0..400);
                self.ground.chip_mut().rest(days);
            }
            let unstable = self.ground.chip().faults().unstable_pages > 0;
            if self.random.random_range(0..6) == 0 || unstable {
                self.compare_all::<S>()?;
            }
        }
        self.compare_all::<S>()?;
        self.ground.chip_mut().set_faults(Faults::default());
        self.demand_progress::<S>()
    }

    fn compare_all<S: System>(&mut self) -> Result<(), String> {
        self.open_with_less_mapping_bytes::<S>()?;
        let options = self.choose_options::<S>();
        let mut begun = self.ground.begin(&mut self.room, false);
        let mut index = open::<S>(&mut begun, &options, &mut self.ram, &mut self.is_refused)
            .map_err(|error| format!("opening to compare: {error:?}"))?;
        compare(&mut index, &self.model)
    }

    /// Opens the index with a smaller table of mappings: it is refused, or nothing is missing.
    ///
    /// The options and the random numbers of the episode stay as they are.
    fn open_with_less_mapping_bytes<S: System>(&mut self) -> Result<(), String> {
        let mut apart = self.random.clone();
        if !S::DESCRIPTION.has_mapping_table() || apart.random_range(0..4) > 0 {
            return Ok(());
        }
        let mapping_bytes = apart.random_range(0..self.settings.options.mapping_bytes);
        let options = Options { mapping_bytes, ..self.settings.options };
        self.take_ram::<S>(&options);
        let mut begun = self.ground.begin(&mut self.room, false);
        let compared = match open::<S>(&mut begun, &options, &mut self.ram, &mut self.is_refused) {
            // More pages may be valid than such a table allows, so the records alone are compared.
            Ok(mut index) => contents(&mut index)
                .map_err(|error| format!("{error:?}"))
                .and_then(|found| Pending::default().admits(&self.model, &found)),
            Err(OpenError::BadOption { reason: BadOption::TableTooSmall }) => Ok(()),
            Err(error) => Err(format!("{error:?}")),
        };
        compared.map_err(|what| format!("opening with {mapping_bytes} mapping_bytes: {what}"))
    }

    /// Determines which of the changes since the last flush are there.
    fn settle<S: System>(&mut self) -> Result<(), String> {
        let start = self.ground.chip().counters().operations();
        let options = self.choose_options::<S>();
        let mut begun = self.ground.begin(&mut self.room, false);
        let opened = open::<S>(&mut begun, &options, &mut self.ram, &mut self.is_refused);
        if self.formatting && matches!(&opened, Err(error) if says_none(error)) {
            drop(opened);
            drop(begun);
            return self.format_again::<S>();
        }
        let mut index = opened.map_err(|error| format!("opening after a cut: {error:?}"))?;
        self.mounting = index.flash().simulated().counters().operations() - start;
        self.from_checkpoints += u64::from(index.statistics().from_checkpoint);
        if std::mem::take(&mut self.formatting) {
            let found = contents(&mut index).map_err(|error| format!("{error:?}"))?;
            if !found.is_empty() {
                let admitted = self.pending.admits(&self.model, &found);
                admitted.map_err(|what| format!("after a format that was cut: {what}"))?;
            }
            self.model = found;
            self.pending.clear();
            return Ok(());
        }
        let settled = self.pending.settle(&mut index, &mut self.model);
        self.pending.clear();
        // No cut and no error of the device is due.
        self.is_refused = settled == Ok(false);
        match settled {
            Ok(true) => Ok(()),
            Ok(false) => Err("after a cut: reads are refused".into()),
            Err(what) => Err(format!("after a cut: {what}")),
        }
    }

    /// Formats the chip over the index.
    fn format<S: System>(&mut self) -> Result<End, String> {
        if self.is_worn_out() {
            return Ok(End::Done);
        }
        let options = self.choose_options::<S>();
        let begun = self.ground.begin(&mut self.room, false);
        let formatted = begun.map_err(OpenError::Device).and_then(|mut begun| {
            Index::<_, S>::format(begun.bus(), &options, &mut self.ram).map(drop)
        });
        match formatted {
            Ok(_) => {
                self.model.clear();
                self.pending.clear();
                Ok(End::Done)
            }
            Err(OpenError::Device(ChipError::PowerLost | ChipError::GaveUp)) => {
                self.formatting = true;
                Ok(End::Cut)
            }
            Err(error) => Err(format!("formatting over the index: {error:?}")),
        }
    }

    /// Formats again after a format that was cut left no index.
    fn format_again<S: System>(&mut self) -> Result<(), String> {
        let (options, worn_out) = (self.settings.options, self.is_worn_out());
        let begun = self.ground.begin(&mut self.room, false);
        let formatted = begun.map_err(OpenError::Device).and_then(|mut begun| {
            Index::<_, S>::format(begun.bus(), &options, &mut self.ram).map(drop)
        });
        match formatted {
            Ok(_) => {}
            // No index can be kept on it.
            Err(OpenError::WornOut { .. } | OpenError::Device(ChipError::Layer(_))) if worn_out => {
                self.operations = EPISODE_OPERATIONS.into();
                return Ok(());
            }
            Err(error) => return Err(format!("formatting after a format that was cut: {error:?}")),
        }
        self.formatting = false;
        self.model.clear();
        self.pending.clear();
        Ok(())
    }

    /// Checks that all records can be removed and inserted again.
    ///
    /// The chip must not be worn out.
    fn demand_progress<S: System>(&mut self) -> Result<(), String> {
        let worn_out = self.is_worn_out();
        let most_fail = most_blocks_fail(self.ground.chip());
        let may_refuse = |error: &WriteError<ChipError>| match error {
            WriteError::Full { .. } | WriteError::WornOut { .. } => worn_out,
            WriteError::Device(ChipError::EraseFailed(_) | ChipError::ProgramFailed(_)) => {
                most_fail
            }
            WriteError::Device(ChipError::Layer(_)) => worn_out,
            _ => false,
        };
        let options = self.choose_options::<S>();
        let value_bytes = options.value_bytes;
        let mut begun = self.ground.begin(&mut self.room, false);
        let mut index = open::<S>(&mut begun, &options, &mut self.ram, &mut self.is_refused)
            .map_err(|error| format!("opening the healed chip: {error:?}"))?;
        for key in std::mem::take(&mut self.model).into_keys() {
            match index.remove(&key).and_then(|was_there| index.flush().map(|()| was_there)) {
                Ok(Removed::Found | Removed::Buffered) => {}
                Err(error) if may_refuse(&error) => return Ok(()),
                other => {
                    return Err(format!("removing {key:02x?} from the healed chip: {other:?}"));
                }
            }
        }
        for number in 0..4 {
            let value = value(number, 1, value_bytes);
            match index.insert(&key(number), &value).and_then(|new| index.flush().map(|()| new)) {
                Ok(Inserted::New | Inserted::Buffered) => {}
                Err(error) if may_refuse(&error) => return Ok(()),
                other => return Err(format!("putting {number} on the healed chip: {other:?}")),
            }
            self.model.insert(key(number), value);
        }
        compare(&mut index, &self.model)
    }
}
