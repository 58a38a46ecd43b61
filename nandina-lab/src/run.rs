//! Runs work on a system and counts.
//!
//! Every result of the index is compared with a model, so a wrong index gives an error and never a
//! figure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nandina::flash::{BlockNumber, Profile};
use nandina::place::{Placement, Visitor};
use nandina::{Index, OpenError, Options, Statistics, WriteError, ram_needed};
use nandina_sim::{Chip, ChipError};
use serde::Serialize;

pub use crate::cost::{KindCost, PhaseCost, SystemCost, TimeSplit};

use crate::LabError;
use crate::cost::{Times, TimesByKind};
use crate::fit;
use crate::work::{Operation, Work};

/// The setup of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The chip.
    pub profile: Profile,
    /// Settings of the index. Key and value sizes are those of the work.
    pub options: Options,
    /// Bytes of RAM to use; `None` for each system's default number of page buffers.
    pub ram_bytes: Option<usize>,
}

impl Setup {
    /// Returns the settings of system `S` for keys and values of these sizes.
    ///
    /// With a bound on RAM it uses as many page buffers as fit. An error is the reason why the
    /// system cannot run on the chip.
    fn options_of<S: Placement>(
        &self,
        key_bytes: usize,
        value_bytes: usize,
    ) -> Result<Options, String> {
        if let Some(missing) = S::DESCRIPTION.needs.missing(&self.profile.capabilities) {
            return Err(missing.to_string());
        }
        let mut options = Options { key_bytes, value_bytes, ..self.options };
        let Some(ram_bytes) = self.ram_bytes else {
            return Ok(options);
        };
        let needed = |buffers| {
            let options = Options { page_buffers: Some(buffers), ..options };
            ram_needed::<S>(&self.profile.geometry, &options)
        };
        let least = S::DESCRIPTION.buffers_min;
        let buffers = (least..=16).rev().find(|&buffers| needed(buffers) <= ram_bytes);
        options.page_buffers = Some(buffers.ok_or_else(|| {
            format!(
                "{ram_bytes} bytes of RAM are too few, it needs {} on {}: raise --ram or choose a chip \
                 with smaller pages",
                needed(least),
                self.profile.key,
            )
        })?);
        Ok(options)
    }
}

/// Returns why `system` can never hold these records, if that is known.
///
/// The sizes are those of a key and of a value. The check comes before there is any work.
pub fn refusal(
    system: &str,
    setup: &Setup,
    (key_bytes, value_bytes): (usize, usize),
    records: u32,
) -> Result<Option<String>, LabError> {
    crate::systems::visit(system, Fits { setup, key_bytes, value_bytes, records })
        .ok_or_else(|| LabError::no_system(system))
}

struct Fits<'r> {
    setup: &'r Setup,
    key_bytes: usize,
    value_bytes: usize,
    records: u32,
}

impl Visitor for Fits<'_> {
    type Output = Option<String>;

    fn visit<S: Placement + 'static>(self) -> Self::Output {
        match self.setup.options_of::<S>(self.key_bytes, self.value_bytes) {
            Ok(options) => fit::refusal::<S>(&self.setup.profile, &options, self.records),
            Err(reason) => Some(reason),
        }
    }
}

/// A system that cannot run on a chip, or not with the given settings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Refusal {
    /// Key of the system.
    pub system: &'static str,
    /// Why.
    pub reason: String,
}

/// The outcome of running a system.
#[derive(Clone, PartialEq, Debug)]
pub enum SystemRun {
    /// It ran.
    Ran(SystemCost),
    /// It cannot run here.
    Refused(Refusal),
}

impl SystemRun {
    /// The costs, or an error if the system could not run.
    pub fn cost(self) -> Result<SystemCost, LabError> {
        match self {
            Self::Ran(cost) => Ok(cost),
            Self::Refused(Refusal { system, reason }) => {
                Err(LabError(format!("{system}: {reason}")))
            }
        }
    }
}

/// Runs `work` on the system named `system`.
///
/// `progress` is called with the number of operations done since its last call.
pub fn run(
    system: &str,
    setup: &Setup,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SystemRun, LabError> {
    crate::systems::visit(system, Run { setup, work, progress })
        .unwrap_or_else(|| Err(LabError::no_system(system)))
}

struct Run<'r> {
    setup: &'r Setup,
    work: &'r Work,
    progress: &'r (dyn Fn(u64) + Sync),
}

impl Visitor for Run<'_> {
    type Output = Result<SystemRun, LabError>;

    fn visit<S: Placement + 'static>(self) -> Self::Output {
        let system = S::DESCRIPTION.key;
        let refused = |reason| Ok(SystemRun::Refused(Refusal { system, reason }));
        let options = match self.setup.options_of::<S>(self.work.key_bytes, self.work.value_bytes) {
            Ok(options) => options,
            Err(reason) => return refused(reason),
        };
        if let Some(reason) = fit::refusal_of_work::<S>(&self.setup.profile, &options, self.work) {
            return refused(reason);
        }
        let ram_bytes = ram_needed::<S>(&self.setup.profile.geometry, &options);
        let mut ram = vec![0; ram_bytes];
        let mut chip = Chip::new(self.setup.profile);
        let mut index = match Index::<_, S>::format(&mut chip, &options, &mut ram) {
            Ok(index) => index,
            Err(error @ OpenError::Device(_)) => {
                return Err(LabError(format!("{system}: {error}")));
            }
            Err(error) => return refused(error.to_string()),
        };
        let mut phases = Vec::new();
        let mut height_most = 1;
        let mut by_kind = TimesByKind::default();
        let mut model = Model::new();
        for phase in &self.work.phases {
            let before = index.flash().counters();
            let mut times = Times::default();
            let mut put_bytes = 0;
            let mut operations_left = self.operations_up_to_flush(&phase.operations);
            for chunk in phase.operations.chunks(1024) {
                for &operation in chunk {
                    let start = index.flash().now_ns();
                    operations_left = operations_left.wrapping_sub(1);
                    let mut done = self.perform(&mut index, &mut model, operation);
                    if operations_left == 0 && done.is_ok() {
                        let flushed = index.flush();
                        done = done.and_then(|bytes| match flushed {
                            Ok(()) => Ok(bytes),
                            Err(error) => Err(self.stop(system, error, "flush", operation.row())),
                        });
                    }
                    put_bytes += match done {
                        Ok(bytes) => bytes as u64,
                        Err(Stop::Refused(reason)) => return refused(reason),
                        Err(Stop::Failed(error)) => return Err(error),
                    };
                    let time = index.flash().now_ns() - start;
                    times.add(time);
                    by_kind.add(operation, time);
                    if self.work.idle_steps && is_change(&operation) {
                        let least = index.gc_step_least();
                        if let Err(error) = index.gc_step(least) {
                            match self.stop(system, error, "idle step after", operation.row()) {
                                Stop::Refused(reason) => return refused(reason),
                                Stop::Failed(error) => return Err(error),
                            }
                        }
                    }
                }
                height_most = height_most.max(index.statistics().height);
                (self.progress)(chunk.len() as u64);
            }
            let counters = index.flash().counters() - before;
            phases.push(PhaseCost::new(phase.name.clone(), &times, counters, put_bytes));
        }
        let statistics: Statistics = index.statistics();
        let ram_bytes = ram_bytes + size_of_val(&index);
        drop(index);
        let (wear, time) = (chip.wear(), chip.time());
        // A new block is also erased before it is written.
        let blocks = (0..self.setup.profile.geometry.blocks).map(BlockNumber);
        let used_blocks = blocks.filter(|&block| chip.erase_count(block) > 0).count() as u64;
        let seconds = |ns: u64| ns as f64 / 1e9;
        Ok(SystemRun::Ran(SystemCost {
            system,
            ram_bytes,
            height: statistics.height,
            height_most,
            records: statistics.records,
            valid_pages: statistics.valid_pages,
            wear_max_by_mean: f64::from(wear.most) / wear.mean.max(1.0),
            collected_blocks: statistics.collected_blocks,
            reclaimed_blocks: chip.counters().erases - used_blocks,
            moved_pages: statistics.moved_pages,
            seconds: TimeSplit {
                read: seconds(time.read_ns),
                program: seconds(time.program_ns),
                erase: seconds(time.erase_ns),
            },
            kinds: by_kind.costs(),
            phases,
        }))
    }
}

impl<'r> Run<'r> {
    /// Operations of a phase up to its last change, with a write buffer; else 0.
    ///
    /// The cost of that change includes a flush, so each phase pays for its own changes.
    fn operations_up_to_flush(&self, operations: &[Operation]) -> usize {
        match self.setup.options.write_buffer {
            0 => 0,
            _ => operations.iter().rposition(is_change).map_or(0, |last| last + 1),
        }
    }

    /// Returns why the run ends with the `error` of a call at `row`.
    fn stop(&self, system: &str, error: WriteError<ChipError>, what: &str, row: u32) -> Stop {
        match error {
            WriteError::Full { .. } => Stop::Refused(format!(
                "{} is full after {row} rows ({error}): choose a larger --device or fewer records",
                self.setup.profile.key,
            )),
            WriteError::TooHigh { .. } => Stop::Refused(format!(
                "after {row} rows, {error}: choose a --device with larger pages or fewer records",
            )),
            error => Stop::Failed(LabError(format!("{system}: {what} of row {row}: {error}"))),
        }
    }

    /// Does one operation and checks its result.
    ///
    /// Returns how many bytes of records it wrote.
    fn perform<S: Placement>(
        &self,
        index: &mut Index<'_, &mut Chip, S>,
        model: &mut Model<'r>,
        operation: Operation,
    ) -> Result<usize, Stop> {
        let work = self.work;
        let failed = |what: &str, row: u32, error: &dyn std::fmt::Display| {
            let text = format!("{}: {what} of row {row}: {error}", S::DESCRIPTION.key);
            Stop::Failed(LabError(text))
        };
        let wrong = |what: &str, row: u32| failed(what, row, &"the index gave a wrong answer");
        let refused = |error, row| self.stop(S::DESCRIPTION.key, error, "change", row);
        match operation {
            Operation::Insert(row) | Operation::Update(row) => {
                let put = Put { row, updated: matches!(operation, Operation::Update(_)) };
                let (key, value) = (work.key(row), put.value(work));
                let new = index.insert(key, &value).map_err(|error| refused(error, row))?;
                let is_new = model.insert(key, put).is_none();
                if new.is_some_and(|new| new != is_new) {
                    return Err(wrong("change", row));
                }
                Ok(key.len() + value.len())
            }
            Operation::Delete(row) => {
                let removed = index.remove(work.key(row)).map_err(|error| refused(error, row))?;
                let was_there = model.remove(work.key(row)).is_some();
                if removed.is_some_and(|removed| removed != was_there) {
                    return Err(wrong("delete", row));
                }
                Ok(0)
            }
            Operation::Lookup(row) => {
                let found =
                    index.get(work.key(row)).map_err(|error| failed("lookup", row, &error))?;
                let expected = model.get(work.key(row)).map(|put| put.value(work));
                if found != expected.as_deref() {
                    return Err(wrong("lookup", row));
                }
                Ok(0)
            }
            Operation::Scan { row, records } => {
                let error = |error| failed("scan", row, &error);
                let mut expected = model.range(work.key(row)..);
                let mut range = index.range(work.key(row)..).map_err(error)?;
                for _ in 0..records {
                    let expected = expected.next().map(|(&key, put)| (key, put.value(work)));
                    let expected = expected.as_ref().map(|(key, value)| (*key, &value[..]));
                    if range.next().map_err(error)? != expected {
                        return Err(wrong("scan", row));
                    }
                    if expected.is_none() {
                        break;
                    }
                }
                Ok(0)
            }
        }
    }
}

/// Whether an operation changes the index.
const fn is_change(operation: &Operation) -> bool {
    !matches!(operation, Operation::Lookup(_) | Operation::Scan { .. })
}

/// Why a run ends before its work does.
enum Stop {
    /// The system cannot hold the work on this chip.
    Refused(String),
    /// The index or the run is wrong.
    Failed(LabError),
}

/// The last record written for a key.
#[derive(Clone, Copy)]
struct Put {
    row: u32,
    updated: bool,
}

impl Put {
    /// The row's value; after an update its complement.
    fn value(self, work: &Work) -> Cow<'_, [u8]> {
        let value = work.value(self.row);
        if self.updated {
            value.iter().map(|byte| !byte).collect::<Vec<_>>().into()
        } else {
            value.into()
        }
    }
}

/// The records that the index must hold.
type Model<'w> = BTreeMap<&'w [u8], Put>;
