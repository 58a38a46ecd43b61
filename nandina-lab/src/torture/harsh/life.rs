//! The work on an opened index in a run with hardships, and what it must hold.
//!
//! Opening and cutting are not done here.

use nandina::{Index, Options, System, WriteError};
use nandina_sim::ChipError;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::layer::{Bus, Layer};
use crate::torture::cuts::Done;
use crate::torture::oracle::{Change, Model, Pending, Unknown, contents, key, text};
use crate::torture::{CutPoint, CutRun};

/// Changes after a first cut that the second one may hit.
///
/// The same number follows an error of the device in a session.
pub const CHANGES_BETWEEN: usize = 2;

/// Changes in a row without idle steps.
///
/// As many follow with an idle step after each.
const CHANGES_ALIKE: usize = 20;

/// Changes from one requested checkpoint to the next.
const CHECKPOINT_TURNS: usize = 4;

/// Changes from one flush of the write buffer to the next.
const FLUSH_TURNS: usize = 3;

/// A step of the run.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Change(Change),
    Format,
}

/// The content of the chip, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The index of the model.
    Whole,
    /// That index, or an empty one, or none: a format was begun.
    Formatting,
}

/// Why a session ended early.
pub enum End {
    /// Power failed.
    Cut,
    /// A violation.
    Wrong(String),
}

impl From<String> for End {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

/// The outcome of an operation of the index.
enum Outcome<T> {
    Done(T),
    /// The device gave it up: the same index continues.
    GaveUp,
    Refused(String),
}

/// The state of a run without its device.
#[derive(Clone)]
pub struct Life {
    pub run: CutRun,
    pub acts: Vec<Act>,
    pub model: Model,
    pending: Pending,
    pub state: State,
    pub options: Options,
    pub random: ChaCha8Rng,
    /// Whether a cut or an error has happened.
    ///
    /// Until then the options stay those of the run.
    pub was_stopped: bool,
    /// Number of acts done so far.
    first: usize,
    pub done: Done,
}

impl Life {
    /// Starts `run`. The cuts decide the options of the openings after the first one.
    pub fn new<S: System>(
        run: CutRun,
        layer: Option<Layer>,
        options: Options,
        cuts: &[CutPoint],
    ) -> Self {
        let mut acts: Vec<Act> = run.changes::<S>(layer).into_iter().map(Act::Change).collect();
        if run.hardships.formats {
            // One format over the fullest index, and one over what has grown since.
            let puts = run.records as usize;
            acts.insert(puts + puts / 3, Act::Format);
            acts.insert(puts, Act::Format);
        }
        Self {
            run,
            acts,
            model: Model::new(),
            pending: Pending::default(),
            state: State::Whole,
            options,
            random: random_of(cuts),
            was_stopped: false,
            first: 0,
            done: Done::default(),
        }
    }

    /// Lets `cuts` decide the options from here on. Nothing was drawn for them so far.
    pub fn decide_by(&mut self, cuts: &[CutPoint]) {
        self.random = random_of(cuts);
    }

    /// Called when the chip was formatted.
    pub fn was_formatted(&mut self) {
        self.model.clear();
        self.pending.clear();
        self.state = State::Whole;
    }

    /// Compares `found` with the permitted states; from then on it is the only one.
    fn settle(&mut self, found: Model) -> Result<(), String> {
        let empty = self.state == State::Formatting && found.is_empty();
        if !empty {
            self.pending.admits(&self.model, &found)?;
        }
        self.model = found;
        self.pending.clear();
        self.state = State::Whole;
        Ok(())
    }

    /// Works on the opened index.
    ///
    /// Returns `true` if the chip is to be formatted next, `false` if no work is left.
    pub fn work<S: System>(
        &mut self,
        index: &mut Index<'_, &mut dyn Bus, S>,
        left: &mut usize,
    ) -> Result<bool, End> {
        let done = self.act(index, left);
        self.done.met.note(index.flash().ftl().as_ref());
        done
    }

    fn act<S: System>(
        &mut self,
        index: &mut Index<'_, &mut dyn Bus, S>,
        left: &mut usize,
    ) -> Result<bool, End> {
        self.see(index)?;
        while *left > 0 {
            let Some(&act) = self.acts.get(self.first) else {
                *left = 0;
                break;
            };
            *left -= 1;
            let gave_up = match act {
                Act::Format => {
                    self.first += 1;
                    if self.flush(index)? {
                        self.see(index)?;
                    }
                    self.state = State::Formatting;
                    return Ok(true);
                }
                Act::Change(change) => self.change(index, change)?,
            };
            self.first += 1;
            let idle = self.idle(index)?;
            if gave_up || idle {
                self.see_again(index)?;
                *left = (*left).min(CHANGES_BETWEEN);
            }
            let statistics = index.statistics();
            self.done.collected |= statistics.collected_blocks > 0;
            self.done.height = self.done.height.max(statistics.height);
        }
        self.flush(index)?;
        Ok(false)
    }

    /// Reads the content of the index, a second time if the device gives up the first.
    fn see<S: System>(&mut self, index: &mut Index<'_, &mut dyn Bus, S>) -> Result<(), End> {
        loop {
            match contents(index) {
                Ok(found) => return Ok(self.settle(found)?),
                Err(Unknown::Stopped(ChipError::GaveUp)) => {}
                Err(Unknown::Stopped(_)) => return Err(End::Cut),
                Err(Unknown::Wrong(what)) => return Err(End::Wrong(what)),
            }
        }
    }

    /// After an error of the device, checks that the state is the old or the new one.
    ///
    /// The same index must hold the same state from then on.
    fn see_again<S: System>(&mut self, index: &mut Index<'_, &mut dyn Bus, S>) -> Result<(), End> {
        self.was_stopped = true;
        self.see(index).map_err(|end| at("after an error of the device", end))?;
        self.flush(index)?;
        let same = compare_in_parts(index, &self.model);
        same.map_err(|end| at("after an error of the device, once more", end))
    }

    /// Makes `change`. Returns whether the device gave it up.
    fn change<S: System>(
        &mut self,
        index: &mut Index<'_, &mut dyn Bus, S>,
        change: Change,
    ) -> Result<bool, End> {
        self.done.operations += 1;
        let value_bytes = self.run.value_bytes;
        let record = key(change.number());
        let was_there = self.model.contains_key(&record);
        let waits = index.statistics().waiting_changes > 0;
        self.pending.note(&self.model, change, value_bytes);
        let result = change.make(index, value_bytes);
        let removes = matches!(change, Change::Remove(_));
        match outcome(result, change)? {
            Outcome::Done(Some(before)) if before != was_there => {
                Err(End::Wrong(format!("{change:?}: there was a record before: {before}")))
            }
            Outcome::Done(_) => {
                change.apply(&mut self.model, value_bytes);
                let waits = index.statistics().waiting_changes > 0;
                if !waits {
                    self.pending.clear();
                    return Ok(false);
                }
                if self.first.is_multiple_of(FLUSH_TURNS) { self.flush(index) } else { Ok(false) }
            }
            Outcome::GaveUp => Ok(true),
            Outcome::Refused(what) if was_there && (!waits || removes) => {
                Err(End::Wrong(format!("{change:?} of a record that is there is refused: {what}")))
            }
            Outcome::Refused(_) => {
                self.flush(index)?;
                self.see(index)?;
                Ok(false)
            }
        }
    }

    /// Flushes the pending changes. Returns whether the device gave it up.
    fn flush<S: System>(&mut self, index: &mut Index<'_, &mut dyn Bus, S>) -> Result<bool, End> {
        match outcome(index.flush(), "flush")? {
            Outcome::Done(()) => {
                self.pending.clear();
                Ok(false)
            }
            Outcome::GaveUp => Ok(true),
            Outcome::Refused(what) => {
                Err(End::Wrong(format!("the write buffer refuses what it took: {what}")))
            }
        }
    }

    /// Does an idle step or a checkpoint if it is due. Returns whether the device gave it up.
    fn idle<S: System>(&mut self, index: &mut Index<'_, &mut dyn Bus, S>) -> Result<bool, End> {
        let turn = self.first;
        let moved = index.statistics().moved_pages;
        let mut result = Ok(());
        if turn / CHANGES_ALIKE % 2 == 1 {
            result = index.gc_step(index.gc_step_least()).map(drop);
        }
        if result.is_ok() && self.run.checkpoints.is_some() && turn.is_multiple_of(CHECKPOINT_TURNS)
        {
            result = index.checkpoint().map(drop);
        }
        self.done.idle_moves += index.statistics().moved_pages.saturating_sub(moved);
        match outcome(result, "idle")? {
            Outcome::Done(()) => Ok(false),
            Outcome::GaveUp => Ok(true),
            Outcome::Refused(what) => Err(End::Wrong(format!("idle: {what}"))),
        }
    }
}

/// The random numbers of a run that is cut at `cuts`.
fn random_of(cuts: &[CutPoint]) -> ChaCha8Rng {
    let seed = cuts.iter().fold(1, |seed: u64, cut| seed.wrapping_mul(31) + cut.operation);
    ChaCha8Rng::seed_from_u64(seed)
}

fn at(when: &str, end: End) -> End {
    match end {
        End::Cut => End::Cut,
        End::Wrong(what) => End::Wrong(format!("{when}: {what}")),
    }
}

fn outcome<T>(
    result: Result<T, WriteError<ChipError>>,
    of: impl std::fmt::Debug,
) -> Result<Outcome<T>, End> {
    match result {
        Ok(done) => Ok(Outcome::Done(done)),
        Err(WriteError::Device(ChipError::PowerLost)) => Err(End::Cut),
        Err(WriteError::Device(ChipError::GaveUp)) => Ok(Outcome::GaveUp),
        Err(error @ (WriteError::Full { .. } | WriteError::TooHigh { .. })) => {
            Ok(Outcome::Refused(text(error)))
        }
        Err(error) => Err(End::Wrong(format!("{of:?}: {error:?}"))),
    }
}

/// Compares the opened index with the model.
fn compare_in_parts<S: System>(
    index: &mut Index<'_, &mut dyn Bus, S>,
    model: &Model,
) -> Result<(), End> {
    match contents(index) {
        Ok(found) => Ok(Pending::default().admits(model, &found)?),
        Err(Unknown::Stopped(ChipError::GaveUp)) => Ok(()),
        Err(Unknown::Stopped(_)) => Err(End::Cut),
        Err(Unknown::Wrong(what)) => Err(End::Wrong(what)),
    }
}
