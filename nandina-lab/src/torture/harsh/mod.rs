//! The run that is cut, with hardships.
//!
//! These are torn pages that read differently each time, other options at each opening, a format
//! over the index, a write buffer, and errors of the device that leave power on.
//!
//! What was once seen stays. The first opening after a cut decides whether the change that was cut
//! is there; a scan reads that decision. Every later opening must find the same: torn pages may read
//! otherwise, and it may itself be cut. After a format that was cut the chip holds the old index, or
//! an empty one, or none: then the chip can be formatted.

mod life;

use nandina::{Index, OpenError, Options, System, ram_needed};
use nandina_sim::{ChipError, Cut};

use super::cuts::Done;
use super::oracle::{compare, says_none, text};
use super::variants::{changed, with_ram_for_nodes};
use super::{CutPoint, CutRun, Ground, Hardships};
use crate::layer::Room;
use life::{CHANGES_BETWEEN, End, Life, State};

/// Changes after the last cut, to show that the index still works.
const CHANGES_AFTER: usize = 12;

/// Different readings of the torn pages after the last cut.
const READINGS: u32 = 3;

/// More chip operations than a session can need.
///
/// The bound detects a call that never ends.
const OPERATIONS_MAX: u64 = 2_000_000;

#[derive(Clone)]
pub struct Runner<D> {
    device: D,
    ram: Vec<u8>,
    room: Room,
    life: Life,
}

impl<D: Ground> Runner<D> {
    /// Formats the device for the run.
    fn new<S: System>(mut device: D, run: CutRun, cuts: &[CutPoint]) -> Result<Self, String> {
        let options = run.options::<S>();
        let mut ram = vec![0xA5; ram_needed::<S>(&device.geometry(), &options)];
        let mut room = Room::default();
        let mut begun = device.begin(&mut room, true).map_err(text)?;
        drop(Index::<_, S>::format(begun.bus(), &options, &mut ram).map_err(text)?);
        drop(begun);
        let life = Life::new::<S>(run, device.layer(), options, cuts);
        Ok(Self { device, ram, room, life })
    }

    /// The options of the next opening, and RAM for them.
    fn choose_options<S: System>(&mut self) -> Options {
        let life = &mut self.life;
        if life.run.hardships.changed && life.was_stopped {
            life.options = changed::<S>(&life.options, &self.device, &mut life.random);
        }
        let changed = life.run.hardships.changed;
        let options = if changed { with_ram_for_nodes(life.options) } else { life.options };
        self.ram = vec![0xA5; ram_needed::<S>(&self.device.geometry(), &options)];
        options
    }

    /// Opens the index or formats the chip, and does up to `count` acts.
    ///
    /// It ends early when power fails.
    fn session<S: System>(&mut self, count: usize) -> Result<(), End> {
        self.device.chip_mut().limit_operations(Some(OPERATIONS_MAX));
        let mut left = count;
        let mut formats = false;
        loop {
            let options = self.choose_options::<S>();
            let Self { device, ram, room, life } = self;
            let mut begun = device.begin(room, false);
            let opened = begun.as_mut().map_err(|error| OpenError::Device(error.clone())).and_then(
                |begun| {
                    let bus = begun.bus();
                    bus.opening();
                    match formats {
                        true => Index::<_, S>::format(bus, &options, ram),
                        false => Index::<_, S>::open(bus, &options, ram),
                    }
                },
            );
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

    /// Compares the chip with the permitted states.
    ///
    /// It uses clones whose torn pages read differently.
    fn examine<S: System>(&self) -> Result<(), String> {
        // Stable pages read the same each time.
        let readings = if self.life.run.hardships.unstable { READINGS } else { 1 };
        for reading in 0..readings {
            let mut device = self.device.clone();
            (0..reading).for_each(|_| device.chip_mut().rest(0));
            let mut life = self.life.clone();
            life.acts.clear();
            let fresh = Self { device, ram: Vec::new(), room: Room::default(), life };
            fresh.examine_one::<S>(reading).map_err(|what| format!("reading {reading}: {what}"))?;
        }
        Ok(())
    }

    fn examine_one<S: System>(mut self, reading: u32) -> Result<(), String> {
        // Open several times; the third opening is cut somewhere and repeated.
        let mut cost = 0;
        for opening in 0..4 {
            if opening == 2 {
                let point = u64::from(reading) * 7 + self.device.chip().counters().reads;
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

    /// Opens the index once more and compares it with the model in every way.
    fn compare<S: System>(&mut self) -> Result<(), String> {
        let options = self.choose_options::<S>();
        let mut begun = self.device.begin(&mut self.room, false).map_err(text)?;
        let mut index = Index::<_, S>::open(begun.bus(), &options, &mut self.ram)
            .map_err(|error| format!("opening to compare: {error:?}"))?;
        compare(&mut index, &self.life.model)?;
        drop(index);
        begun.check()
    }
}

impl<D: Ground> Runner<D> {
    /// Continues the run up to a stop. `first` says that it is the first one.
    ///
    /// A stop is a power cut; where the run has errors, the first stop is an error of the device.
    /// Does nothing after a stop that was never reached.
    fn stop<S: System>(
        &mut self,
        CutPoint { operation, cut }: CutPoint,
        first: bool,
    ) -> Result<(), String> {
        if self.life.done.ended {
            return Ok(());
        }
        let before = self.device.chip().fault_counters();
        let chip = self.device.chip_mut();
        if self.life.run.hardships.errors && first {
            chip.give_up_at(operation, cut);
        } else {
            chip.cut_at(operation, cut);
        }
        let ended = self.session::<S>(self.life.acts.len());
        self.life.was_stopped = true;
        let after = self.device.chip().fault_counters();
        self.life.done.tore = after.torn > before.torn;
        if after.cuts + after.device_errors == before.cuts + before.device_errors {
            self.life.done.ended = true;
        }
        self.device.restore_power();
        match ended {
            Ok(()) | Err(End::Cut) => Ok(()),
            Err(End::Wrong(what)) => Err(what),
        }
    }

    /// Does the run up to the first of its stops, from which it continues with each second one.
    ///
    /// `None` where the run depends on the second stop before that. That is so if it is opened with
    /// other options in the session of the first stop, which an error of the device does not end.
    pub fn first<S: System>(
        device: &D,
        run: CutRun,
        point: CutPoint,
    ) -> Option<Result<Self, String>> {
        let Hardships { errors, changed, .. } = run.hardships;
        (!(errors && changed)).then(|| {
            let mut runner = Self::new::<S>(device.clone(), run, &[point])?;
            runner.stop::<S>(point, true)?;
            Ok(runner)
        })
    }

    /// Continues with `cuts`, of which the first was made, as if the run had begun with them.
    pub fn continues<S: System>(mut self, cuts: &[CutPoint]) -> Result<Done, String> {
        self.life.decide_by(cuts);
        for &point in &cuts[1..] {
            self.stop::<S>(point, false)?;
        }
        self.end::<S>()
    }

    /// Shows after the last stop that what was seen stays, and that the index still works.
    fn end<S: System>(mut self) -> Result<Done, String> {
        if !self.life.done.ended {
            self.examine::<S>()?;
        }
        let start = self.device.chip().counters().operations();
        self.lives::<S>(CHANGES_BETWEEN)?;
        self.life.done.next_session = self.device.chip().counters().operations() - start;
        self.lives::<S>(CHANGES_AFTER)?;
        self.compare::<S>()?;
        self.life.done.faults = self.device.chip().fault_counters();
        self.life.done.chip_operations = self.device.chip().counters().operations();
        Ok(self.life.done)
    }

    /// Does `count` acts without a stop.
    fn lives<S: System>(&mut self, count: usize) -> Result<(), String> {
        match self.session::<S>(count) {
            Ok(()) => Ok(()),
            Err(End::Cut) => Err("power went without a cut".to_string()),
            Err(End::Wrong(what)) => Err(format!("afterwards: {what}")),
        }
    }
}

/// Does `run` with its hardships on a new chip, stopped at each of `cuts` in turn.
///
/// Returns what is wrong, if anything is.
pub fn cut_once<S: System, D: Ground>(
    device: D,
    run: CutRun,
    cuts: &[CutPoint],
) -> Result<Done, String> {
    let mut runner = Runner::new::<S>(device, run, cuts)?;
    for (number, &point) in cuts.iter().enumerate() {
        runner.stop::<S>(point, number == 0)?;
    }
    runner.end::<S>()
}

/// Does the whole run without a cut.
///
/// Returns the numbers of operations and of chip operations.
pub fn uncut<S: System, D: Ground>(device: D, run: CutRun) -> Result<(u64, u64), String> {
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
    // Where each opening has other options, some of them leave enough room.
    let roomy = run.hardships.formats || run.hardships.changed;
    let collects = collected || !S::DESCRIPTION.collects() || roomy;
    if !collects || height < 2 || !runner.life.model.is_empty() {
        let left = runner.life.model.len();
        return Err(format!(
            "the run is too tame: collected {collected}, height {height}, {left} records left"
        ));
    }
    if run.hardships.overwrite && runner.device.chip().counters().overwrites == 0 {
        return Err("the run is too tame: no part of a page was programmed".into());
    }
    runner.compare::<S>()?;
    Ok((runner.life.done.operations, chip_operations))
}
