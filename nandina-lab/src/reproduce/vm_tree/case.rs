//! One run: a system on a chip, with an amount of memory and a series of records.
//!
//! Experiments name the cases that they need; each is run once, however many experiments name it,
//! two at a time.

use crate::systems::SYSTEMS;
use nandina::Options;
use nandina::flash::Profile;

use super::series::{Kind, Series};
use crate::run::{PhaseCost, Setup, SystemCost, SystemRun, run};
use crate::{LabError, parallel};

/// The outcome of a run that may be impossible here.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome<T> {
    /// It ran.
    Ran(T),
    /// It was not run, and why.
    Skipped(String),
}

impl<T> Outcome<T> {
    /// The outcome for a system that this build does not have.
    pub fn not_there(system: &str) -> Self {
        Self::Skipped(format!("{system}: there is no such system yet"))
    }
}

/// Page buffers, and pages of the read cache beside them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Page buffers.
    pub buffers: usize,
    /// Pages of the read cache.
    pub cached: usize,
}

impl Memory {
    /// The paper's *M* as page buffers alone.
    pub const fn buffers(pages: usize) -> Self {
        Self { buffers: pages, cached: 0 }
    }

    /// The paper's *M* as three page buffers, the least, and a read cache of the rest.
    pub const fn cached(pages: usize) -> Self {
        Self { buffers: 3, cached: pages - 3 }
    }
}

/// One run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    /// Key of the system.
    pub system: &'static str,
    /// The chip.
    pub chip: Profile,
    /// The records.
    pub series: Kind,
    /// The paper's *M*.
    pub memory: Memory,
    /// The paper's *L*: pages of the write buffer.
    pub write_buffer: usize,
    /// Bytes of the table of mappings.
    pub mapping_bytes: usize,
}

impl Case {
    /// A case with three page buffers and no write buffer.
    ///
    /// The table has the size that the paper uses with pages of this size.
    pub const fn new(system: &'static str, chip: Profile, series: Kind) -> Self {
        let mapping_bytes = if chip.geometry.page_bytes >= 2048 { 2048 } else { 1024 };
        let memory = Memory::buffers(3);
        Self { system, chip, series, memory, write_buffer: 0, mapping_bytes }
    }

    /// The same with `pages` pages of write buffer.
    pub const fn buffering(self, pages: usize) -> Self {
        Self { write_buffer: pages, ..self }
    }

    /// The same with `memory`.
    pub const fn with(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// Its name in a report.
    pub fn config(&self) -> String {
        let Memory { buffers, cached } = self.memory;
        let memory = match cached {
            0 => format!("M{buffers}"),
            cached => format!("M{}", buffers + cached),
        };
        format!("{} {} {memory} L{}", self.chip.key, self.series.name(), self.write_buffer)
    }

    /// The settings. Sizes of keys and values are those of the series.
    fn options(&self) -> Options {
        Options {
            page_buffers: Some(self.memory.buffers),
            read_cache: self.memory.cached,
            mapping_bytes: self.mapping_bytes,
            write_buffer: self.write_buffer,
            ..Options::new(1, 0)
        }
    }

    fn run(
        &self,
        all: &[Series],
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Outcome<SystemCost>, LabError> {
        if !SYSTEMS.iter().any(|system| system.key == self.system) {
            return Ok(Outcome::not_there(self.system));
        }
        let work = match &self.series.find(all).work {
            Ok(work) => work,
            Err(reason) => return Ok(Outcome::Skipped(reason.clone())),
        };
        let setup =
            Setup { profile: self.chip, options: self.options(), ram_bytes: None, layer: None };
        Ok(match run(self.system, &setup, work, progress)? {
            SystemRun::Ran(cost) => Outcome::Ran(cost),
            SystemRun::Refused(refusal) => Outcome::Skipped(format!(
                "{} on {}: {}",
                refusal.system, self.chip.key, refusal.reason
            )),
        })
    }
}

/// The costs of the cases.
pub struct Costs(Vec<(Case, Outcome<SystemCost>)>);

/// Mean costs of the operations of a phase.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// Page reads.
    pub reads: f64,
    /// Pages written: programs, including overwrites, and pages replaced in place.
    pub writes: f64,
    /// Of these, overwrites of some bytes.
    pub overwrites: f64,
    /// Milliseconds by the chip's latencies.
    pub ms: f64,
}

impl Mean {
    fn of(phase: &PhaseCost) -> Self {
        let by_operation = |count: u64| count as f64 / phase.ops.max(1) as f64;
        let counters = &phase.counters;
        Self {
            reads: by_operation(counters.reads),
            writes: by_operation(counters.programs + counters.rewrites),
            overwrites: by_operation(counters.overwrites),
            ms: phase.ms_mean,
        }
    }

    /// Chip operations without erases.
    pub fn operations(&self) -> f64 {
        self.reads + self.writes
    }

    /// Operations of the index per second.
    pub fn a_second(&self) -> f64 {
        1000.0 / self.ms
    }
}

/// Each different case once, in the order in which they are first named.
pub fn distinct(cases: Vec<Case>) -> Vec<Case> {
    let mut distinct = Vec::new();
    for case in cases {
        if !distinct.contains(&case) {
            distinct.push(case);
        }
    }
    distinct
}

impl Costs {
    /// Runs `cases`, two at a time.
    pub fn run(
        cases: &[Case],
        all: &[Series],
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Self, LabError> {
        parallel::each(cases, |case| Ok((*case, case.run(all, progress)?))).map(Self)
    }

    fn outcome(&self, case: &Case) -> Option<&Outcome<SystemCost>> {
        self.0.iter().find(|(done, _)| done == case).map(|(_, outcome)| outcome)
    }

    /// The cost of `case`, if it could be run.
    pub fn cost(&self, case: &Case) -> Option<&SystemCost> {
        match self.outcome(case)? {
            Outcome::Ran(cost) => Some(cost),
            Outcome::Skipped(_) => None,
        }
    }

    /// The means of a phase of `case`, if it could be run.
    pub fn mean(&self, case: &Case, phase: &str) -> Option<Mean> {
        let cost = self.cost(case)?;
        cost.phases.iter().find(|known| known.phase == phase).map(Mean::of)
    }

    /// The reasons why some of `cases` did not run, each once.
    pub fn skipped(&self, cases: &[Case]) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        for case in cases {
            if let Some(Outcome::Skipped(reason)) = self.outcome(case)
                && !reasons.contains(reason)
            {
                reasons.push(reason.clone());
            }
        }
        reasons
    }
}
