//! Torture: power is cut at every point, and chips fail in every way that they can.
//!
//! After each such event an index must hold what it acknowledged.
//!
//! - `linear`: a run of changes is cut once, at each chip operation in turn, in every way, torn
//!   ones included; RAM is lost, and the index is opened again.
//! - `exhaustive`: after each such cut, the recovery and the changes after it are cut a second
//!   time, at each of their operations, in every way; then the run continues.
//! - `swarm`: random settings, random faults of random frequency, cuts at random times, in long
//!   episodes; then the faults stop and the index must make progress. The system `pages` is no
//!   index: it is the logical pages of an FTL themselves, compared with a vector of contents.
//!
//! [`Hardships`] make a run or a swarm harder: unstable pages, other options at each opening, a
//! format over the index, a write buffer, errors of the device.
//!
//! The rule after a cut: the old state or the new one, never a third. All records are scanned and
//! compared. A failing case has one name ([`CaseId`]) that replays it.

mod case;
mod cut_run;
mod cuts;
pub(crate) mod device;
mod events;
mod hardships;
mod harsh;
mod life;
pub mod oracle;
mod pages;
mod session;
mod settings;
mod shares;
mod swarm;
mod variants;
mod worn;

pub use crate::layer::Bus;
pub use case::{CaseId, CutPoint};
pub use cut_run::CutRun;
pub use cuts::{cut_everywhere, cut_once, cut_shares};
use device::parts_of;
pub use device::{Begun, Device, Ground, Layered, fitted, suited};
pub use events::Events;
pub use hardships::Hardships;
use nandina::System;
pub use settings::chips;
pub use shares::Shares;
pub use swarm::{Episode, episode};

use std::sync::atomic::{AtomicU64, Ordering};

use crate::layer::{Layer, name_of};
use crate::systems::visit_any;
use nandina::store::Visitor;
use nandina_ftl::ftl::DISK;
use nandina_sim::FaultCounters;
use serde::Serialize;

use crate::LabError;

/// The mode, from no cut to faults of every kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// No cut: checks the run itself.
    None,
    /// One cut in each run.
    Linear,
    /// Two cuts in each run.
    Exhaustive,
    /// Random faults.
    Swarm,
}

impl Mode {
    /// Every mode, the mildest first.
    pub const ALL: [Self; 4] = [Self::None, Self::Linear, Self::Exhaustive, Self::Swarm];

    /// Its name on the command line and in a case's name.
    pub const fn key(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Linear => "linear",
            Self::Exhaustive => "exhaustive",
            Self::Swarm => "swarm",
        }
    }
}

/// A case that an index did not survive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Violation {
    /// The name that replays it.
    pub case: String,
    /// What was wrong.
    pub what: String,
}

/// The torture of one system and its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// Key of the system, and the FTL below it: `btree`, `btree over ftl:fast`.
    pub system: String,
    /// The mode.
    pub mode: Mode,
    /// The seed of everything random.
    pub seed: u64,
    /// Runs or episodes.
    pub runs: u64,
    /// Changes and lookups of the index.
    pub operations: u64,
    /// Reads, programs, erases and marks of the chips.
    pub chip_operations: u64,
    /// Cuts of power.
    pub cuts: u64,
    /// Programs and erases that a cut tore.
    pub torn: u64,
    /// Other faults of the chips: reported failures, silent failures, flipped bits.
    pub faults: u64,
    /// Weak pages that were refreshed in swarms.
    pub refreshed: u64,
    /// Mounts after a cut in swarms that began with a checkpoint.
    pub from_checkpoints: u64,
    /// What an FTL below the index did in runs that were cut.
    pub met: Events,
    /// The first cases that an index did not survive, at most ten; empty is the aim.
    pub violations: Vec<Violation>,
}

/// The most violations that are reported.
const VIOLATIONS_MAX: usize = 10;

impl Report {
    fn new(system: String, mode: Mode, seed: u64) -> Self {
        Self {
            system,
            mode,
            seed,
            runs: 0,
            operations: 0,
            chip_operations: 0,
            cuts: 0,
            torn: 0,
            faults: 0,
            refreshed: 0,
            from_checkpoints: 0,
            met: Events::default(),
            violations: Vec::new(),
        }
    }

    fn add(&mut self, faults: FaultCounters, operations: u64, chip_operations: u64) {
        self.operations += operations;
        self.chip_operations += chip_operations;
        self.cuts += faults.cuts;
        self.torn += faults.torn;
        self.faults += faults.injected() - faults.cuts - faults.torn;
    }

    fn violated(&mut self, case: &CaseId, what: String) {
        self.violations.push(Violation { case: case.to_string(), what });
    }

    fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.operations += other.operations;
        self.chip_operations += other.chip_operations;
        self.cuts += other.cuts;
        self.torn += other.torn;
        self.faults += other.faults;
        self.refreshed += other.refreshed;
        self.from_checkpoints += other.from_checkpoints;
        self.met.add(&other.met);
        self.violations.extend(other.violations);
    }
}

/// The settings of a torture.
#[derive(Clone, Copy, Debug)]
pub struct Torture {
    /// The mode.
    pub mode: Mode,
    /// Seed of everything random.
    pub seed: u64,
    /// The run that is cut, in the first three modes. A swarm uses only its hardships.
    pub run: CutRun,
    /// Operations of each system, in a swarm.
    pub operations: u64,
}

/// Tortures one system with `torture`.
///
/// `progress` is called with the number of thousandths done since its last call.
pub fn torture(
    system: &str,
    torture: Torture,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Report, LabError> {
    torture_shares(system, torture, Shares::WHOLE, progress)
}

/// Tortures one system with a share of the cuts or of a swarm's episodes.
pub fn torture_shares(
    system: &str,
    torture: Torture,
    shares: Shares,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Report, LabError> {
    let (key, layer) = parts_of(system)?;
    if key == PAGES {
        let layer = pages_of(torture.mode, layer)?;
        return Ok(pages::swarm(&torture, layer, shares, progress));
    }
    visit_any(key, Whole { torture, layer, shares, progress })
        .unwrap_or_else(|| Err(LabError::no_system(key)))
}

/// The name of the logical pages of an FTL, where others have an index.
pub const PAGES: &str = "pages";

/// The FTL whose pages are tortured. There are swarms of them only.
fn pages_of(mode: Mode, layer: Option<Layer>) -> Result<Layer, LabError> {
    if mode != Mode::Swarm {
        return Err(LabError(format!("{PAGES} is for a swarm: choose --mode swarm")));
    }
    layer.ok_or_else(|| LabError(format!("{PAGES} are those of an FTL: choose one by --over")))
}

struct Whole<'p> {
    torture: Torture,
    layer: Option<Layer>,
    shares: Shares,
    progress: &'p (dyn Fn(u64) + Sync),
}

impl Visitor for Whole<'_> {
    type Output = Result<Report, LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let Torture { mode, seed, run, operations } = self.torture;
        if mode == Mode::Swarm {
            demand_suited::<S>(self.layer)?;
            let (layer, hardships, shares) = (self.layer, run.hardships, self.shares);
            let progress = self.progress;
            return Ok(swarm::swarm::<S>(seed, layer, hardships, operations, shares, progress));
        }
        match self.layer {
            None => self.cut::<S, _>(run.chip::<S>(seed)),
            Some(layer) => self.cut::<S, _>(run.layered::<S>(layer, seed)),
        }
    }
}

impl Whole<'_> {
    fn cut<S: System, D: Ground>(&self, ground: D) -> Result<Report, LabError> {
        let Torture { mode, seed, run, .. } = self.torture;
        demand_possible::<S>(&run, ground.clone())?;
        Ok(cuts::cut_shares::<S, D>(ground, run, mode, seed, self.shares, self.progress))
    }
}

/// Refuses a system that needs what no FTL does. A swarm draws the chip itself.
fn demand_suited<S: System>(layer: Option<Layer>) -> Result<(), LabError> {
    let missing = layer.and_then(|_| S::DESCRIPTION.needs.missing(&DISK));
    let name = name_of(S::DESCRIPTION.key, layer);
    missing.map_or(Ok(()), |missing| Err(LabError(format!("{name}: {missing}"))))
}

fn demand_possible<S: System>(run: &CutRun, ground: impl Ground) -> Result<(), LabError> {
    let name = name_of(S::DESCRIPTION.key, ground.layer());
    let refusal = run.refusal::<S>(ground);
    refusal.map_or(Ok(()), |why| Err(LabError(format!("{name}: {why}"))))
}

/// The outcome of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The index survived it.
    Survived,
    /// The run ended before one of the cuts, so the case shows no result.
    NotReached,
    /// What is wrong.
    Violated(String),
}

/// Replays the case of this name.
pub fn replay(name: &str) -> Result<Outcome, LabError> {
    let case: CaseId = name.parse()?;
    let (key, layer) = parts_of(&case.system)?;
    if key == PAGES {
        let layer = pages_of(case.mode, layer)?;
        let lived = pages::episode(case.seed, layer, case.hardships, &mut Episode::default());
        return Ok(lived.map_or_else(Outcome::Violated, |()| Outcome::Survived));
    }
    visit_any(key, One { case: &case, layer }).unwrap_or_else(|| Err(LabError::no_system(key)))
}

struct One<'c> {
    case: &'c CaseId,
    layer: Option<Layer>,
}

impl Visitor for One<'_> {
    type Output = Result<Outcome, LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let case = self.case;
        let done = match case.run {
            None => {
                demand_suited::<S>(self.layer)?;
                let (mut done, layer) = (Episode::default(), self.layer);
                let lived = swarm::episode_over::<S>(case.seed, layer, case.hardships, &mut done);
                lived.map(|()| false)
            }
            Some(run) => match self.layer {
                None => self.cut::<S, _>(run, run.chip::<S>(case.seed))?,
                Some(layer) => self.cut::<S, _>(run, run.layered::<S>(layer, case.seed))?,
            },
        };
        Ok(match done {
            Ok(false) => Outcome::Survived,
            Ok(true) => Outcome::NotReached,
            Err(what) => Outcome::Violated(what),
        })
    }
}

impl One<'_> {
    /// Returns whether the run ended before a cut, or what is wrong.
    fn cut<S: System, D: Ground>(
        &self,
        run: CutRun,
        ground: D,
    ) -> Result<Result<bool, String>, LabError> {
        let cuts = &self.case.cuts;
        demand_possible::<S>(&run, ground.clone())?;
        Ok(match (cuts.is_empty(), run.hardships.any()) {
            (true, false) => cuts::uncut::<S, D>(ground, run).map(|_| false),
            (true, true) => harsh::uncut::<S, D>(ground, run).map(|_| false),
            (false, false) => cut_once::<S, D>(ground, run, cuts).map(|done| done.ended),
            (false, true) => harsh::cut_once::<S, D>(ground, run, cuts).map(|done| done.ended),
        })
    }
}

/// Runs the numbered parts of `work` in two threads, until one finds enough.
fn in_parallel(
    parts: u64,
    report: Report,
    progress: &(dyn Fn(u64) + Sync),
    work: impl Fn(u64, &mut Report) + Sync,
) -> Report {
    let next = AtomicU64::new(0);
    let blank = Report::new(report.system.clone(), report.mode, report.seed);
    let worker = || {
        let mut report = blank.clone();
        while report.violations.len() < VIOLATIONS_MAX {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                break;
            }
            work(part, &mut report);
            let done = (part + 1) * 1000 / parts - part * 1000 / parts;
            if done > 0 {
                progress(done);
            }
        }
        report
    };
    let mut report = report;
    std::thread::scope(|scope| {
        let threads = [scope.spawn(worker), scope.spawn(worker)];
        for thread in threads {
            match thread.join() {
                Ok(part) => report.merge(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    report.violations.truncate(VIOLATIONS_MAX);
    report
}
