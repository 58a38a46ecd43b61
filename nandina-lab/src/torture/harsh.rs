//! The run that is cut, with hardships: torn pages that read otherwise each time, other options at each opening, a
//! format over the index, a write buffer, and errors of the device that leave power on.
//!
//! What was once seen stays. The first opening after a cut decides what of the change that was cut is there; a scan
//! finds it out, and then every later opening, whatever it reads from torn pages and whatever is cut in it, must find
//! the same. After a format that was cut there is the index from before, or an empty one, or none: then the chip can be
//! formatted.

use nandina::place::Placement;
use nandina::{Index, OpenError, Options, WriteError, ram_needed};
use nandina_sim::{ChipError, Cut};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::cuts::Done;
use super::oracle::{
    Change, Model, Pending, Unknown, compare, contents, key, says_none, text, value,
};
use super::variants::changed;
use super::{CutPoint, CutRun, Device};

/// Changes after the last cut, to see that life goes on.
const CHANGES_AFTER: usize = 12;

/// Changes after a first cut that the second one may hit, and after an error of the device in the same session.
const CHANGES_BETWEEN: usize = 2;

/// So many changes are done without idle steps, and as many with one behind each, by turns.
const CHANGES_ALIKE: usize = 20;

/// Changes from one checkpoint that is asked for to the next.
const CHECKPOINT_TURNS: usize = 4;

/// Changes from one flush of the write buffer to the next.
const FLUSH_TURNS: usize = 3;

/// How often the torn pages after the last cut are read in another way.
const READINGS: u32 = 3;

/// More chip operations than a session can need. Without the bound a call without end would not be found.
const OPERATIONS_MAX: u64 = 2_000_000;

/// A step of the run.
#[derive(Clone, Copy, Debug)]
enum Act {
    Change(Change),
    Format,
}

/// What is on the chip, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The index of the model.
    Whole,
    /// That, or an empty one, or none: a format was begun.
    Formatting,
}

/// Why a session ended, if not at its end.
enum End {
    /// Power went.
    Cut,
    /// Wrong.
    Wrong(String),
}

impl From<String> for End {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

/// What came of an operation of the index.
enum Outcome<T> {
    Done(T),
    /// The device gave it up: the same index is used on.
    GaveUp,
    Refused(String),
}

struct Runner<D> {
    device: D,
    ram: Vec<u8>,
    life: Life,
}

/// All of a run but its device.
#[derive(Clone)]
struct Life {
    run: CutRun,
    acts: Vec<Act>,
    model: Model,
    pending: Pending,
    state: State,
    options: Options,
    random: ChaCha8Rng,
    /// Options stay as the run has them until the first cut.
    was_stopped: bool,
    /// Acts that are done.
    first: usize,
    done: Done,
}

impl<D: Device> Runner<D> {
    /// Formats the device for the run.
    fn new<S: Placement>(mut device: D, run: CutRun, cuts: &[CutPoint]) -> Result<Self, String> {
        let options = run.options::<S>();
        let mut ram = vec![0xA5; ram_needed::<S>(&device.geometry(), &options)];
        drop(Index::<_, S>::format(&mut device, &options, &mut ram).map_err(text)?);
        let mut acts: Vec<Act> = run.changes().into_iter().map(Act::Change).collect();
        if run.hardships.formats {
            // One over the fullest index, and one over what has grown since.
            let puts = run.records as usize;
            acts.insert(puts + puts / 3, Act::Format);
            acts.insert(puts, Act::Format);
        }
        let seed = cuts.iter().fold(1, |seed: u64, cut| seed.wrapping_mul(31) + cut.operation);
        let life = Life {
            run,
            acts,
            model: Model::new(),
            pending: Pending::default(),
            state: State::Whole,
            options,
            random: ChaCha8Rng::seed_from_u64(seed),
            was_stopped: false,
            first: 0,
            done: Done::default(),
        };
        Ok(Self { device, ram, life })
    }

    /// The options of the next opening, and RAM for them.
    fn choose_options<S: Placement>(&mut self) -> Options {
        let life = &mut self.life;
        if life.run.hardships.changed && life.was_stopped {
            life.options = changed::<S>(&life.options, &mut life.random);
        }
        self.ram.clear();
        self.ram.resize(ram_needed::<S>(&self.device.geometry(), &life.options), 0xA5);
        life.options
    }

    /// Opens the index, or formats the chip, and does at most `count` acts, until power goes.
    fn session<S: Placement>(&mut self, count: usize) -> Result<(), End> {
        self.device.chip_mut().limit_operations(Some(OPERATIONS_MAX));
        let mut left = count;
        let mut formats = false;
        loop {
            let options = self.choose_options::<S>();
            let Self { device, ram, life } = self;
            device.opening();
            let opened = match formats {
                true => Index::<_, S>::format(device, &options, ram),
                false => Index::<_, S>::open(device, &options, ram),
            };
            let stay = match opened {
                Ok(mut index) => {
                    index.flash().opened();
                    if formats {
                        life.was_formatted();
                    }
                    life.work(&mut index, &mut left)
                }
                Err(OpenError::Device(ChipError::PowerLost)) => Err(End::Cut),
                Err(OpenError::Device(ChipError::GaveUp)) => {
                    life.was_stopped = true;
                    left = left.min(CHANGES_BETWEEN);
                    Ok(formats)
                }
                Err(error) if life.state == State::Formatting && !formats && says_none(&error) => {
                    Ok(true)
                }
                Err(error) => Err(End::Wrong(format!("opening: {error:?}"))),
            };
            formats = match stay {
                Ok(formats) if left > 0 || formats => formats,
                other => return other.map(drop),
            };
        }
    }

    /// Holds the chip against what may be there, again and again, on clones whose torn pages read otherwise.
    fn examine<S: Placement>(&self) -> Result<(), String> {
        for reading in 0..READINGS {
            let mut device = self.device.clone();
            (0..reading).for_each(|_| device.chip_mut().rest(0));
            let life = Life { acts: Vec::new(), ..self.life.clone() };
            let fresh = Self { device, ram: Vec::new(), life };
            fresh.examine_one::<S>(reading).map_err(|what| format!("reading {reading}: {what}"))?;
        }
        Ok(())
    }

    fn examine_one<S: Placement>(mut self, reading: u32) -> Result<(), String> {
        // Openings, the third of which is cut somewhere and done again.
        let mut cost = 0;
        for opening in 0..4 {
            if opening == 2 {
                let point = u64::from(reading) * 7 + u64::from(self.device.chip().counters().reads);
                let cut = Cut::ALL[(point % 5) as usize];
                self.device.chip_mut().cut_at(point % (cost + 1), cut);
            }
            let start = self.device.chip().counters().operations();
            let ended = self.session::<S>(0);
            cost = self.device.chip().counters().operations() - start;
            match ended {
                Ok(()) => {}
                Err(End::Cut) if opening == 2 => {}
                Err(End::Cut) => return Err("power went without a cut".into()),
                Err(End::Wrong(what)) => return Err(format!("opening {opening}: {what}")),
            }
            self.device.restore_power();
        }
        self.compare::<S>()
    }

    /// Opens the index once more and holds it against the model in every way.
    fn compare<S: Placement>(&mut self) -> Result<(), String> {
        let options = self.choose_options::<S>();
        let mut index = Index::<_, S>::open(&mut self.device, &options, &mut self.ram)
            .map_err(|error| format!("opening to compare: {error:?}"))?;
        compare(&mut index, &self.life.model)
    }
}

impl Life {
    /// The chip was formatted.
    fn was_formatted(&mut self) {
        self.model.clear();
        self.pending.clear();
        self.state = State::Whole;
    }

    /// Holds `found` against what may be there; from then on it is what must be there.
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

    /// Works on the opened index. Answers whether the chip is to be formatted next, else nothing is left to do.
    fn work<D: Device, S: Placement>(
        &mut self,
        index: &mut Index<'_, &mut D, S>,
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

    /// Finds out what the index holds. If the device gives that up, it is done once more.
    fn see<D: Device, S: Placement>(
        &mut self,
        index: &mut Index<'_, &mut D, S>,
    ) -> Result<(), End> {
        loop {
            match contents(index) {
                Ok(found) => return Ok(self.settle(found)?),
                Err(Unknown::Stopped(ChipError::GaveUp)) => {}
                Err(Unknown::Stopped(_)) => return Err(End::Cut),
                Err(Unknown::Wrong(what)) => return Err(End::Wrong(what)),
            }
        }
    }

    /// After an error of the device: the same index holds the old or the new state, and goes on saying so.
    fn see_again<D: Device, S: Placement>(
        &mut self,
        index: &mut Index<'_, &mut D, S>,
    ) -> Result<(), End> {
        self.was_stopped = true;
        self.see(index).map_err(|end| at("after an error of the device", end))?;
        self.flush(index)?;
        let same = compare_in_parts(index, &self.model);
        same.map_err(|end| at("after an error of the device, once more", end))
    }

    /// Does `change`. Answers whether the device gave it up.
    fn change<D: Device, S: Placement>(
        &mut self,
        index: &mut Index<'_, &mut D, S>,
        change: Change,
    ) -> Result<bool, End> {
        self.done.operations += 1;
        let value_bytes = self.run.value_bytes;
        let record = key(change.number());
        let was_there = self.model.contains_key(&record);
        let waits = index.statistics().waiting_changes > 0;
        self.pending.note(&self.model, change, value_bytes);
        let result = match change {
            Change::Put(number, version) => {
                index.insert(&record, &value(number, version, value_bytes))
            }
            Change::Remove(_) => index.remove(&record),
        };
        let removes = matches!(change, Change::Remove(_));
        let expected = was_there == removes;
        match outcome(result, change)? {
            Outcome::Done(Some(answer)) if answer != expected => {
                Err(End::Wrong(format!("{change:?} says {answer}")))
            }
            Outcome::Done(_) => {
                change.apply(&mut self.model, value_bytes);
                let waits = index.statistics().waiting_changes > 0;
                if !waits {
                    self.pending.clear();
                    return Ok(false);
                }
                if self.first % FLUSH_TURNS == 0 { self.flush(index) } else { Ok(false) }
            }
            Outcome::GaveUp => Ok(true),
            Outcome::Refused(what) if was_there && (!waits || removes) => {
                Err(End::Wrong(format!("{change:?} of a record that is there is refused: {what}")))
            }
            Outcome::Refused(_) => {
                self.see(index)?;
                Ok(false)
            }
        }
    }

    /// Flushes what waits. Answers whether the device gave it up.
    fn flush<D: Device, S: Placement>(
        &mut self,
        index: &mut Index<'_, &mut D, S>,
    ) -> Result<bool, End> {
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

    /// An idle step or a checkpoint, if it is their turn. Answers whether the device gave it up.
    fn idle<D: Device, S: Placement>(
        &mut self,
        index: &mut Index<'_, &mut D, S>,
    ) -> Result<bool, End> {
        let turn = self.first;
        let moved = index.statistics().moved_pages;
        let mut result = Ok(());
        if turn / CHANGES_ALIKE % 2 == 1 {
            result = index.gc_step(index.gc_step_least()).map(drop);
        }
        if result.is_ok() && self.run.checkpoints.is_some() && turn % CHECKPOINT_TURNS == 0 {
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

/// Holds the opened index against the model.
fn compare_in_parts<D: Device, S: Placement>(
    index: &mut Index<'_, &mut D, S>,
    model: &Model,
) -> Result<(), End> {
    match contents(index) {
        Ok(found) => Ok(Pending::default().admits(model, &found)?),
        Err(Unknown::Stopped(ChipError::GaveUp)) => Ok(()),
        Err(Unknown::Stopped(_)) => Err(End::Cut),
        Err(Unknown::Wrong(what)) => Err(End::Wrong(what)),
    }
}

/// Does `run` with its hardships on a new chip, stopped at each of `cuts` in turn: by a cut of power, or, where the
/// run has errors, the first time by an error of the device. Answers what is wrong, if anything is.
pub fn cut_once<S: Placement, D: Device>(
    device: D,
    run: CutRun,
    cuts: &[CutPoint],
) -> Result<Done, String> {
    let mut runner = Runner::new::<S>(device, run, cuts)?;
    let whole = runner.life.acts.len();
    for (number, &CutPoint { operation, cut }) in cuts.iter().enumerate() {
        let before = runner.device.chip().fault_counters();
        let chip = runner.device.chip_mut();
        if run.hardships.errors && number == 0 {
            chip.give_up_at(operation, cut);
        } else {
            chip.cut_at(operation, cut);
        }
        let ended = runner.session::<S>(whole);
        runner.life.was_stopped = true;
        let after = runner.device.chip().fault_counters();
        runner.life.done.tore = after.torn > before.torn;
        if after.cuts + after.device_errors == before.cuts + before.device_errors {
            runner.life.done.ended = true;
        }
        runner.device.restore_power();
        match ended {
            Ok(()) | Err(End::Cut) => {}
            Err(End::Wrong(what)) => return Err(what),
        }
        if runner.life.done.ended {
            break;
        }
        if number + 1 == cuts.len() {
            runner.examine::<S>()?;
        }
    }
    let lives = |runner: &mut Runner<D>, count| match runner.session::<S>(count) {
        Ok(()) => Ok(()),
        Err(End::Cut) => Err("power went without a cut".to_string()),
        Err(End::Wrong(what)) => Err(format!("afterwards: {what}")),
    };
    let start = runner.device.chip().counters().operations();
    lives(&mut runner, CHANGES_BETWEEN)?;
    runner.life.done.next_session = runner.device.chip().counters().operations() - start;
    lives(&mut runner, CHANGES_AFTER)?;
    runner.compare::<S>()?;
    runner.life.done.faults = runner.device.chip().fault_counters();
    runner.life.done.chip_operations = runner.device.chip().counters().operations();
    Ok(runner.life.done)
}

/// Does the whole run without a cut and answers how many operations and chip operations it takes.
pub fn uncut<S: Placement, D: Device>(device: D, run: CutRun) -> Result<(u64, u64), String> {
    let mut runner = Runner::new::<S>(device, run, &[])?;
    let start = runner.device.chip().counters().operations();
    let whole = runner.life.acts.len();
    match runner.session::<S>(whole) {
        Ok(()) => {}
        Err(End::Cut) => return Err("power went without a cut".into()),
        Err(End::Wrong(what)) => return Err(what),
    }
    let chip_operations = runner.device.chip().counters().operations() - start;
    let Done { collected, height, .. } = runner.life.done;
    let collects = collected || S::DESCRIPTION.in_place || run.hardships.formats;
    if !collects || height < 2 || !runner.life.model.is_empty() {
        let left = runner.life.model.len();
        return Err(format!(
            "the run is too tame: collected {collected}, height {height}, {left} records left"
        ));
    }
    runner.compare::<S>()?;
    Ok((runner.life.done.operations, chip_operations))
}
