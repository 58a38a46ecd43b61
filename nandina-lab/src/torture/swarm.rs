//! Swarm: an episode takes a random chip, random settings and a random subset of the faults with random
//! frequencies, works in sessions that are cut at random times, and after each blow compares everything.
//! At its end the chip is healed, and progress is demanded.
//!
//! All faults of a swarm can be survived: no codeword loses more bits than the ECC corrects, and where
//! programs or erases may silently do nothing, the index reads its programs back.

use nandina::flash::{BlockNumber, Flash};
use nandina::place::Placement;
use nandina::{Index, OpenError, Options, WriteError, ram_needed};
use nandina_sim::{Chip, ChipError, Cut, FaultCounters, Faults};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::oracle::{Change, Model, Pending, compare, key, value};
use super::settings::Settings;
use super::{CaseId, Mode, Report, Shares, in_parallel};

/// Changes and lookups of one episode, about.
const EPISODE_OPERATIONS: u32 = 2_000;

/// What an episode did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Episode {
    /// Changes and lookups asked of the index.
    pub operations: u64,
    /// Operations of the chip.
    pub chip_operations: u64,
    /// What was done to the chip.
    pub faults: FaultCounters,
    /// Weak pages that the index wrote anew.
    pub refreshed: u64,
    /// Mounts after a cut that began with a checkpoint.
    pub from_checkpoints: u64,
    /// The chip was worn out at the end: everything could be read, not everything be changed.
    pub worn_out: bool,
}

/// Episodes of system `S` until `operations` were done in all.
pub fn swarm<S: Placement>(
    seed: u64,
    operations: u64,
    shares: Shares,
    progress: &(dyn Fn(u64) + Sync),
) -> Report {
    let system = S::DESCRIPTION.key;
    let report = Report::new(system, Mode::Swarm, seed);
    let episodes = operations.div_ceil(EPISODE_OPERATIONS.into());
    in_parallel(episodes, report, progress, |part, report| {
        if !shares.takes(part) {
            return;
        }
        let seed = seed.wrapping_add(part);
        let mut done = Episode::default();
        let outcome = episode::<S>(seed, &mut done);
        report.runs += 1;
        report.add(done.faults, done.operations, done.chip_operations);
        report.refreshed += done.refreshed;
        report.from_checkpoints += done.from_checkpoints;
        if let Err(what) = outcome {
            let case = CaseId {
                mode: Mode::Swarm,
                system: system.into(),
                seed,
                run: None,
                cuts: Vec::new(),
            };
            report.violated(&case, what);
        }
    })
}

/// One episode, decided by `seed`. Answers what is wrong, if anything is.
pub fn episode<S: Placement>(seed: u64, done: &mut Episode) -> Result<(), String> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let settings = Settings::choose::<S>(&mut random, seed);
    let mut ram = vec![0xA5; ram_needed::<S>(&settings.chip.geometry(), &settings.options)];
    let mut chip = settings.chip.clone();
    let opened = Index::<_, S>::format(&mut chip, &settings.options, &mut ram).map(drop);
    let outcome = match opened {
        // A record of this size is too large for this system's leaves, or the chip too small for it.
        Err(OpenError::RecordTooLarge { .. } | OpenError::ChipTooSmall { .. }) => Ok(()),
        Err(error) => Err(format!("formatting: {error:?}")),
        Ok(()) => {
            let mut life = Life {
                settings,
                chip,
                ram: &mut ram,
                model: Model::new(),
                pending: Pending::default(),
                random,
                version: 0,
                operations: 0,
                refreshed: 0,
                from_checkpoints: 0,
                mounting: 0,
            };
            let outcome = life.live::<S>();
            done.worn_out = life.is_worn_out();
            done.operations = life.operations;
            done.refreshed = life.refreshed;
            done.from_checkpoints = life.from_checkpoints;
            chip = life.chip;
            outcome
        }
    };
    done.chip_operations = chip.counters().operations();
    done.faults = chip.fault_counters();
    outcome.map_err(|what| format!("on {}: {what}", chip.profile().key))
}

struct Life<'r> {
    settings: Settings,
    chip: Chip,
    ram: &'r mut [u8],
    model: Model,
    /// What may not be durable yet.
    pending: Pending,
    random: ChaCha8Rng,
    version: u32,
    operations: u64,
    refreshed: u64,
    from_checkpoints: u64,
    /// Chip operations of the last mount.
    mounting: u64,
}

/// Why a session ended.
enum End {
    /// Power went.
    Cut,
    Done,
}

impl Life<'_> {
    fn is_worn_out(&self) -> bool {
        let capabilities = self.chip.capabilities();
        // A program or erase that silently did nothing makes the index give up a good block.
        let faults = self.chip.fault_counters();
        let given_up = self.failing_blocks() + faults.silent as u32;
        given_up > capabilities.bad_blocks_max(self.chip.geometry().blocks)
    }

    /// Blocks that can be written no more, whether they are marked or not.
    fn failing_blocks(&self) -> u32 {
        (0..self.chip.geometry().blocks)
            .filter(|&block| self.chip.is_lost(BlockNumber(block)))
            .count() as u32
    }

    fn live<S: Placement>(&mut self) -> Result<(), String> {
        while self.operations < EPISODE_OPERATIONS.into() {
            if self.settings.cut_within > 0 {
                // Into the mount, or behind it.
                let behind = if self.random.random_range(0..4) == 0 { 0 } else { self.mounting };
                let operation = behind + self.random.random_range(0..self.settings.cut_within);
                let cut = Cut::ALL[self.random.random_range(0..Cut::ALL.len())];
                self.chip.cut_at(operation, cut);
            }
            let end = self.session::<S>()?;
            self.chip.restore_power();
            // What waits in a write buffer is lost without a cut as well.
            if matches!(end, End::Cut) || !self.pending.is_empty() {
                self.settle::<S>()?;
            }
            if self.random.random_range(0..4) == 0 {
                let days = self.random.random_range(0..400);
                self.chip.rest(days);
            }
            if self.random.random_range(0..6) == 0 {
                self.compare_all::<S>()?;
            }
        }
        self.compare_all::<S>()?;
        self.chip.set_faults(Faults::default());
        self.demand_progress::<S>()
    }

    fn compare_all<S: Placement>(&mut self) -> Result<(), String> {
        let mut index = Index::<_, S>::open(&mut self.chip, &self.settings.options, self.ram)
            .map_err(|error| format!("opening to compare: {error:?}"))?;
        compare(&mut index, &self.model)
    }

    /// Decides by the records that were changed since the last flush which of the changes are there.
    fn settle<S: Placement>(&mut self) -> Result<(), String> {
        let start = self.chip.counters().operations();
        let mut index = Index::<_, S>::open(&mut self.chip, &self.settings.options, self.ram)
            .map_err(|error| format!("opening after a cut: {error:?}"))?;
        self.mounting = index.flash().counters().operations() - start;
        self.from_checkpoints += u64::from(index.statistics().from_checkpoint);
        let settled = self.pending.settle(&mut index, &mut self.model);
        self.pending.clear();
        settled.map(drop).map_err(|what| format!("after a cut: {what}"))
    }

    /// Works until power goes or enough is done.
    fn session<S: Placement>(&mut self) -> Result<End, String> {
        let Options { value_bytes, write_buffer, write_cache, .. } = self.settings.options;
        let capabilities = self.chip.capabilities();
        let bad_blocks_max = capabilities.bad_blocks_max(self.chip.geometry().blocks);
        self.operations += 1;
        let opened = Index::<_, S>::open(&mut self.chip, &self.settings.options, self.ram);
        let mut index = match opened {
            Ok(index) => index,
            Err(OpenError::Device(ChipError::PowerLost)) => return Ok(End::Cut),
            Err(error) => return Err(format!("opening: {error:?}")),
        };
        let mut refreshed = 0;
        for _ in 0..self.random.random_range(1..400) {
            self.operations += 1;
            let so_far = index.statistics().refreshed_pages;
            self.refreshed += so_far - refreshed;
            refreshed = so_far;
            let number = self.random.random_range(0..self.settings.records);
            let change = match self.random.random_range(0..100) {
                part @ 0..7 => {
                    let done = if part < 5 {
                        let budget = self.random.random_range(0..200);
                        index.gc_step(budget).map(drop)
                    } else {
                        index.checkpoint().map(|_| self.pending.clear())
                    };
                    match done {
                        Ok(()) => {}
                        Err(WriteError::Device(ChipError::PowerLost)) => {
                            return Ok(End::Cut);
                        }
                        Err(WriteError::Full { .. } | WriteError::WornOut { .. }) => {
                            // What a write cache held may be lost in what was given up half way.
                            if !self.pending.settle(&mut index, &mut self.model)? {
                                return Ok(End::Cut);
                            }
                        }
                        Err(error) => return Err(format!("idle: {error:?}")),
                    }
                    continue;
                }
                7..20 => {
                    match index.get(&key(number)) {
                        Ok(found) => {
                            if found != self.model.get(&key(number)).map(|value| &value[..]) {
                                return Err(format!("get of {number} answers {found:?}"));
                            }
                        }
                        Err(nandina::ReadError::Device(ChipError::PowerLost)) => {
                            return Ok(End::Cut);
                        }
                        Err(error) => return Err(format!("get of {number}: {error:?}")),
                    }
                    continue;
                }
                percent if percent - 20 < self.settings.remove_percent => Change::Remove(number),
                _ => {
                    self.version += 1;
                    Change::Put(number, self.version)
                }
            };
            self.pending.note(&self.model, change, value_bytes);
            let was_there = self.model.contains_key(&key(number));
            let (result, expected) = match change {
                Change::Put(number, version) => {
                    (index.insert(&key(number), &value(number, version, value_bytes)), !was_there)
                }
                Change::Remove(number) => (index.remove(&key(number)), was_there),
            };
            if matches!(result, Ok(Some(answer)) if answer != expected) {
                return Err(format!("{change:?} answers {result:?}"));
            }
            // With a write cache or a write buffer a change is acknowledged by the flush.
            let flushes = write_buffer == 0 || self.random.random_range(0..6) == 0;
            let taken = result.is_ok();
            let result = result.and_then(|_| match flushes {
                true => index.flush(),
                false if self.random.random_range(0..4) == 0 => index.tick(),
                false => Ok(()),
            });
            let refused =
                matches!(result, Err(WriteError::Full { .. } | WriteError::TooHigh { .. }));
            if taken && refused && index.statistics().bad_blocks <= bad_blocks_max {
                return Err(format!("what was taken in is refused: {result:?}"));
            }
            match result {
                Ok(()) => {
                    change.apply(&mut self.model, value_bytes);
                    let waits = write_cache > 0 || index.statistics().waiting_changes > 0;
                    if flushes || !waits {
                        self.pending.clear();
                    }
                }
                Err(WriteError::Device(ChipError::PowerLost)) => return Ok(End::Cut),
                Err(
                    WriteError::Full { .. }
                    | WriteError::TooHigh { .. }
                    | WriteError::WornOut { .. },
                ) => {
                    // Refused before or given up half way: as after a cut, it is there or not.
                    let found = match index.get(&key(number)) {
                        Ok(found) => found.map(<[u8]>::to_vec),
                        Err(nandina::ReadError::Device(ChipError::PowerLost)) => {
                            return Ok(End::Cut);
                        }
                        Err(error) => return Err(format!("get after a refusal: {error:?}")),
                    };
                    if write_buffer == 0 {
                        self.pending.clear();
                    } else if write_cache > 0 {
                        if !self.pending.settle(&mut index, &mut self.model)? {
                            return Ok(End::Cut);
                        }
                        continue;
                    }
                    settle_with(&mut self.model, change, found, value_bytes)?;
                }
                Err(error) => return Err(format!("{change:?}: {error:?}")),
            }
        }
        Ok(End::Done)
    }

    /// On a chip that is not worn out everything can be removed, and put again.
    fn demand_progress<S: Placement>(&mut self) -> Result<(), String> {
        let worn_out = self.is_worn_out();
        let value_bytes = self.settings.options.value_bytes;
        let mut index = Index::<_, S>::open(&mut self.chip, &self.settings.options, self.ram)
            .map_err(|error| format!("opening the healed chip: {error:?}"))?;
        for key in std::mem::take(&mut self.model).into_keys() {
            match index.remove(&key).and_then(|was_there| index.flush().map(|()| was_there)) {
                Ok(Some(true) | None) => {}
                Err(WriteError::Full { .. } | WriteError::WornOut { .. }) if worn_out => {
                    return Ok(());
                }
                other => {
                    return Err(format!("removing {key:02x?} from the healed chip: {other:?}"));
                }
            }
        }
        for number in 0..4 {
            let value = value(number, 1, value_bytes);
            match index.insert(&key(number), &value).and_then(|new| index.flush().map(|()| new)) {
                Ok(Some(true) | None) => {}
                Err(WriteError::Full { .. } | WriteError::WornOut { .. }) if worn_out => {
                    return Ok(());
                }
                other => return Err(format!("putting {number} on the healed chip: {other:?}")),
            }
            self.model.insert(key(number), value);
        }
        compare(&mut index, &self.model)
    }
}

/// What was found for the number of a change that may or may not have been done decides the model.
fn settle_with(
    model: &mut Model,
    change: Change,
    found: Option<Vec<u8>>,
    value_bytes: usize,
) -> Result<(), String> {
    let old = model.get(&key(change.number())).cloned();
    if found == old {
        return Ok(());
    }
    change.apply(model, value_bytes);
    if found == model.get(&key(change.number())).cloned() {
        return Ok(());
    }
    Err(format!("after a cut {change:?} left {found:02x?}, before it was {old:02x?}"))
}
