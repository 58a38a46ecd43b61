//! Runs work on a subject and counts.
//!
//! Every result of the subject is compared with a model, so a wrong one gives an error and never a
//! figure.

use std::borrow::Cow;
use std::hint::black_box;
use std::mem::replace;

use nandina::flash::BlockNumber;
use nandina_sim::Chip;
use serde::Serialize;

pub use crate::cost::{FtlCost, KindCost, NodeCost, PhaseCost, SystemCost, TimeSplit};
pub use crate::subject::Setup;

use crate::LabError;
use crate::cost::{Times, TimesByKind};
use crate::layer::{Room, name_of, over};
use crate::subject::{Maker, Subject, SubjectError, system};
use crate::work::{Operation, Phase, Work};

/// Returns why the system named `key` can never hold these records, if that is known.
///
/// The sizes are those of a key and of a value. The check comes before there is any work.
pub fn refusal(
    key: &str,
    setup: &Setup,
    (key_bytes, value_bytes): (usize, usize),
    records: u32,
) -> Result<Option<String>, LabError> {
    let maker = system(key)?;
    let setup = setup.of_system(key);
    Ok(match setup.with_sizes(key_bytes, value_bytes).above() {
        Ok((above, _)) => maker.refusal(&above, records),
        Err(reason) => Some(reason),
    })
}

/// A system that cannot run on a chip, or not with the given settings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Refusal {
    /// Key of the system.
    pub system: &'static str,
    /// The FTL below it; absent on the chip itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Why.
    pub reason: String,
}

impl Refusal {
    /// The system and the FTL below it.
    pub fn name(&self) -> String {
        over(self.system, self.over.as_deref())
    }
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
            Self::Refused(refusal) => {
                Err(LabError(format!("{}: {}", refusal.name(), refusal.reason)))
            }
        }
    }
}

/// Runs `work` on the system named `key`.
///
/// `progress` is called with the number of operations done since its last call.
pub fn run(
    key: &str,
    setup: &Setup,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SystemRun, LabError> {
    run_on(system(key)?, &setup.of_system(key), work, progress)
}

/// Runs `work` on a subject that `maker` makes.
///
/// `progress` is called with the number of operations done since its last call.
pub fn run_on(
    maker: &dyn Maker,
    setup: &Setup,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SystemRun, LabError> {
    let setup = setup.with_sizes(work.key_bytes, work.value_bytes);
    match measure(maker, &setup, work, progress) {
        Ok(cost) => Ok(SystemRun::Ran(cost)),
        Err(Stop::Refused(reason)) => {
            let over = setup.layer.map(|layer| layer.name());
            Ok(SystemRun::Refused(Refusal { system: maker.key(), over, reason }))
        }
        Err(Stop::Failed(reason)) => {
            Err(LabError(format!("{}: {reason}", name_of(maker.key(), setup.layer))))
        }
    }
}

/// Why a run ends before its work does.
enum Stop {
    /// The subject cannot hold the work on this chip.
    Refused(String),
    /// The subject or the run is wrong.
    Failed(String),
}

/// Operations for which the model is read at once: their pages fit the processor's cache.
const LOOK_AHEAD: usize = 16;

/// Runs `work` on a new chip. The sizes of `setup` are those of the work.
fn measure(
    maker: &dyn Maker,
    setup: &Setup,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SystemCost, Stop> {
    let (above, size) = setup.above().map_err(Stop::Refused)?;
    if let Some(reason) = refusal_of_work(maker, &above, work) {
        return Err(Stop::Refused(reason));
    }
    let ram_bytes = maker.ram_bytes(&above).map_err(Stop::Refused)?;
    let mut ram = vec![0; ram_bytes];
    let (mut chip, mut room) = (Chip::new(setup.profile), Room::default());
    let mut disk;
    let subject = match (&setup.layer, &size) {
        (Some(layer), Some(size)) => {
            let opened = layer.open(size, &mut chip, &mut room, true);
            disk = opened.map_err(|error| Stop::Refused(error.to_string()))?;
            maker.format_over(&above, &mut disk, &mut ram)
        }
        _ => maker.format(setup, &mut chip, &mut ram),
    };
    let mut subject = subject.map_err(|error| match error {
        SubjectError::Failed(error) => Stop::Failed(error),
        SubjectError::Unsuited(error)
        | SubjectError::Full(error)
        | SubjectError::TooHigh(error) => Stop::Refused(error),
    })?;
    let formatted = subject.ftl().unwrap_or_default();
    let ram_bytes = ram_bytes + size_of_val(&*subject);
    let mut run = Run {
        setup: &above,
        work,
        buffers_changes: maker.buffers_changes(setup),
        height_most: subject.counts().height,
        subject: &mut *subject,
        model: Model::new(work),
        by_kind: TimesByKind::default(),
    };
    let phases = work.phases.iter().map(|phase| run.phase(phase, progress));
    let phases = phases.collect::<Result<Vec<_>, _>>()?;
    let (height_most, kinds) = (run.height_most, run.by_kind.costs());
    let counts = subject.counts();
    let ftl = match (&setup.layer, &size, subject.ftl()) {
        (Some(layer), Some(size), Some(work)) => {
            Some(Box::new(FtlCost::new(layer, &setup.profile, size, (&formatted, &work))))
        }
        _ => None,
    };
    let chip = subject.chip();
    let (wear, time) = (chip.wear(), chip.time());
    // A new block is also erased before it is written.
    let blocks = (0..setup.profile.geometry.blocks).map(BlockNumber);
    let used_blocks = blocks.filter(|&block| chip.erase_count(block) > 0).count() as u64;
    let seconds = |ns: u64| ns as f64 / 1e9;
    Ok(SystemCost {
        system: maker.key(),
        ram_bytes,
        height: counts.height,
        height_most,
        records: counts.records,
        valid_pages: counts.valid_pages,
        wear_max_by_mean: f64::from(wear.most) / wear.mean.max(1.0),
        collected_blocks: counts.collected_blocks,
        reclaimed_blocks: chip.counters().erases - used_blocks,
        moved_pages: counts.moved_pages,
        nodes: counts.nodes.as_ref().map(NodeCost::of),
        seconds: TimeSplit {
            read: seconds(time.read_ns),
            program: seconds(time.program_ns),
            erase: seconds(time.erase_ns),
        },
        kinds,
        phases,
        ftl,
    })
}

/// Returns why `work` can never be done, if that is known.
fn refusal_of_work(maker: &dyn Maker, setup: &Setup, work: &Work) -> Option<String> {
    // There are never more records than rows; they are counted only if that matters.
    maker.refusal(setup, work.rows() as u32)?;
    maker.refusal(setup, work.most_at_once())
}

/// A subject that does work, and what was measured so far.
struct Run<'r, 's> {
    setup: &'r Setup,
    work: &'r Work,
    buffers_changes: bool,
    subject: &'r mut (dyn Subject + 's),
    model: Model,
    by_kind: TimesByKind,
    height_most: Option<u8>,
}

impl Run<'_, '_> {
    /// Does the operations of a phase and returns their cost.
    fn phase(&mut self, phase: &Phase, progress: &(dyn Fn(u64) + Sync)) -> Result<PhaseCost, Stop> {
        let before = self.subject.chip().counters();
        let host_before = self.host_writes();
        let mut times = Times::default();
        let mut put_bytes = 0;
        let mut operations_left = self.operations_up_to_flush(&phase.operations);
        for chunk in phase.operations.chunks(1024) {
            for group in chunk.chunks(LOOK_AHEAD) {
                self.model.look_ahead(self.work, group);
                for &operation in group {
                    let row = operation.row();
                    let start = self.subject.chip().now_ns();
                    operations_left = operations_left.wrapping_sub(1);
                    put_bytes += self.perform(operation)? as u64;
                    if operations_left == 0 {
                        let flushed = self.subject.flush();
                        flushed.map_err(|error| stop(self.setup, error, "flush", row))?;
                    }
                    let time = self.subject.chip().now_ns() - start;
                    times.add(time);
                    self.by_kind.add(operation, time);
                    if self.work.idle_steps && is_change(&operation) {
                        let done = self.subject.idle_step();
                        done.map_err(|error| stop(self.setup, error, "idle step after", row))?;
                    }
                }
            }
            self.height_most = self.height_most.max(self.subject.counts().height);
            progress(chunk.len() as u64);
        }
        let counters = self.subject.chip().counters() - before;
        let host_bytes = self.host_writes().zip(host_before).map(|(after, before)| {
            (after - before) * u64::from(self.setup.profile.geometry.page_bytes)
        });
        Ok(PhaseCost::new(phase.name.clone(), &times, counters, put_bytes, host_bytes))
    }

    /// Pages that the subject wrote to the FTL below it, if there is one.
    fn host_writes(&mut self) -> Option<u64> {
        self.subject.ftl().map(|work| work.statistics.host_writes)
    }

    /// Operations of a phase up to its last change, if changes are buffered; else 0.
    ///
    /// The cost of that change includes a flush, so each phase pays for its own changes.
    fn operations_up_to_flush(&self, operations: &[Operation]) -> usize {
        if !self.buffers_changes {
            return 0;
        }
        operations.iter().rposition(is_change).map_or(0, |last| last + 1)
    }

    /// Does one operation and checks its result.
    ///
    /// Returns how many bytes of records it wrote.
    fn perform(&mut self, operation: Operation) -> Result<usize, Stop> {
        let (setup, work, row) = (self.setup, self.work, operation.row());
        let key = work.key(row);
        let what = match operation {
            Operation::Insert(_) | Operation::Update(_) => "change",
            Operation::Delete(_) => "delete",
            Operation::Lookup(_) => "lookup",
            Operation::Scan { .. } => "scan",
        };
        let stop = |error| stop(setup, error, what, row);
        let mut put_bytes = 0;
        let is_right = match operation {
            Operation::Insert(_) | Operation::Update(_) => {
                let put = Put { row, updated: matches!(operation, Operation::Update(_)) };
                let value = put.value(work);
                put_bytes = key.len() + value.len();
                let new = self.subject.insert(key, &value).map_err(stop)?;
                let is_new = self.model.replace(work.rank(row), Some(put)).is_none();
                new.is_none_or(|new| new == is_new)
            }
            Operation::Delete(_) => {
                let removed = self.subject.remove(key).map_err(stop)?;
                let was_there = self.model.replace(work.rank(row), None).is_some();
                removed.is_none_or(|removed| removed == was_there)
            }
            Operation::Lookup(_) => {
                let found = self.subject.get(key).map_err(stop)?;
                let expected = self.model.of_rank(work.rank(row)).map(|put| put.value(work));
                found == expected.as_deref()
            }
            Operation::Scan { records, .. } => {
                let mut expected = self.model.up_from(work.rank(row)).take(records.into());
                let mut is_right = true;
                let mut each = |key: &[u8], value: &[u8]| {
                    let record = expected.next().map(|put| (work.key(put.row), put.value(work)));
                    is_right &= record.is_some_and(|record| (record.0, &*record.1) == (key, value));
                };
                self.subject.scan(key, records.into(), &mut each).map_err(stop)?;
                is_right && expected.next().is_none()
            }
        };
        if is_right {
            return Ok(put_bytes);
        }
        Err(Stop::Failed(format!("{what} of row {row}: the result is wrong")))
    }
}

/// Returns why a run ends with the `error` of a call at `row`.
fn stop(setup: &Setup, error: SubjectError, what: &str, row: u32) -> Stop {
    match error {
        SubjectError::Unsuited(error) => Stop::Refused(error),
        SubjectError::Full(error) => Stop::Refused(format!(
            "{} is full after {row} rows ({error}): choose a larger --device or fewer records",
            setup.profile.key,
        )),
        SubjectError::TooHigh(error) => Stop::Refused(format!(
            "after {row} rows, {error}: choose a --device with larger pages or fewer records",
        )),
        SubjectError::Failed(error) => Stop::Failed(format!("{what} of row {row}: {error}")),
    }
}

/// Whether an operation changes records.
const fn is_change(operation: &Operation) -> bool {
    !matches!(operation, Operation::Lookup(_) | Operation::Scan { .. })
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

/// The records that the subject must hold, by the ranks of their keys.
///
/// A map of the keys would take a quarter of a run's time.
struct Model {
    puts: Vec<Option<Put>>,
}

impl Model {
    /// No records.
    fn new(work: &Work) -> Self {
        Self { puts: vec![None; work.rows()] }
    }

    /// Replaces the record of this rank, and returns the one before.
    fn replace(&mut self, rank: usize, put: Option<Put>) -> Option<Put> {
        replace(&mut self.puts[rank], put)
    }

    /// Reads what these operations will replace or compare, so that it is in the processor's cache.
    ///
    /// The pages of an operation displace it there. It waits for memory once here, and not at each
    /// operation: that was a tenth of the time of a run.
    fn look_ahead(&self, work: &Work, operations: &[Operation]) {
        let rows = operations
            .iter()
            .map(|operation| self.of_rank(work.rank(operation.row())).map_or(0, |put| put.row));
        black_box(rows.fold(0, |all, row| all ^ row));
    }

    fn of_rank(&self, rank: usize) -> Option<Put> {
        self.puts[rank]
    }

    /// The records of this rank and of those above, in order.
    fn up_from(&self, rank: usize) -> impl Iterator<Item = Put> {
        self.puts[rank..].iter().copied().flatten()
    }
}
