//! One session of a swarm's episode: from an opening until power fails.
//!
//! A session also ends when enough is done.

use nandina::flash::Flash;
use nandina::{OpenError, Options, System, WriteError};
use nandina_sim::{Chip, ChipError};
use rand::Rng;

use super::device::Ground;
use super::life::{End, Life, open};
use super::oracle::{Change, Model, key};
use super::worn::{is_worn_out, most_blocks_fail};

impl<D: Ground> Life<D> {
    /// Works until power fails or enough is done.
    pub fn session<S: System>(&mut self) -> Result<End, String> {
        let options = self.choose_options::<S>();
        let Options { value_bytes, write_buffer, write_cache, .. } = options;
        self.operations += 1;
        let mut begun = self.ground.begin(&mut self.room, false);
        let opened = open::<S>(&mut begun, &options, &mut self.ram, &mut self.is_refused);
        let mut index = match opened {
            Ok(index) => index,
            Err(OpenError::Device(ChipError::PowerLost)) => return Ok(End::Cut),
            Err(OpenError::Device(ChipError::GaveUp)) => return Ok(End::Done),
            Err(error) => return Err(format!("opening: {error:?}")),
        };
        let capabilities = index.flash().capabilities();
        let bad_blocks_max = capabilities.bad_blocks_max(index.flash().geometry().blocks);
        let mut refreshed = 0;
        for _ in 0..self.random.random_range(1..400) {
            self.operations += 1;
            let so_far = index.statistics().refreshed_pages;
            // An index that mounts again by itself restarts its counts.
            self.refreshed += so_far.saturating_sub(refreshed);
            refreshed = so_far;
            let within = self.settings.format_within;
            if within > 0 && self.random.random_range(0..within) == 0 {
                return Ok(End::Format);
            }
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
                        Err(error)
                            if !matches!(error, WriteError::TooHigh { .. })
                                && (matches!(error, WriteError::Device(ChipError::GaveUp))
                                    || is_refusal(&error, index.flash().simulated())) =>
                        {
                            // The content of a write cache may be lost in an operation that was
                            // given up half way.
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
                        Err(nandina::ReadError::Device(ChipError::GaveUp)) => {}
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
            let waited = write_cache > 0 || index.statistics().waiting_changes > 0;
            let result = change.make(&mut index, value_bytes);
            if matches!(result, Ok(Some(before)) if before != was_there) {
                return Err(format!("{change:?}: there was a record before: {result:?}"));
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
            let removes = matches!(change, Change::Remove(_));
            if refused
                && was_there
                && (removes || !waited)
                && !is_worn_out(index.flash().simulated())
            {
                return Err(format!("{change:?} of a record that is there is refused: {result:?}"));
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
                Err(WriteError::Device(ChipError::GaveUp)) => {
                    // As after a cut, but the same index shows what is there, and must not change
                    // it later.
                    if !self.pending.settle(&mut index, &mut self.model)? {
                        return Ok(End::Cut);
                    }
                    if write_buffer == 0 {
                        self.pending.clear();
                    }
                }
                Err(error) if is_refusal(&error, index.flash().simulated()) => {
                    // Refused, or given up half way: as after a cut, the change is there or not.
                    let found = index.get(&key(number)).map(|found| found.map(<[u8]>::to_vec));
                    let found = match found {
                        Ok(found) => found,
                        Err(nandina::ReadError::Device(
                            ChipError::PowerLost | ChipError::GaveUp,
                        )) => {
                            return Ok(End::Cut);
                        }
                        // The index mounts again for it, and its mount writes.
                        Err(nandina::ReadError::Device(ChipError::Layer(_)))
                            if is_worn_out(index.flash().simulated()) =>
                        {
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
        // Sometimes close the index, which marks that no page is torn. Power may fail in that as
        // well.
        if self.random.random() {
            index.close();
        }
        Ok(End::Done)
    }
}

/// Whether a change ended with this error because there is no room, or too many blocks failed.
fn is_refusal(error: &WriteError<ChipError>, chip: &Chip) -> bool {
    match error {
        WriteError::Full { .. } | WriteError::TooHigh { .. } | WriteError::WornOut { .. } => true,
        WriteError::Device(ChipError::EraseFailed(_) | ChipError::ProgramFailed(_)) => {
            most_blocks_fail(chip)
        }
        // An FTL below the index says so of its chip.
        WriteError::Device(ChipError::Layer(_)) => is_worn_out(chip),
        _ => false,
    }
}

/// Updates the model by what was found for an uncertain change.
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
