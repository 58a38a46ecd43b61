//! Cuts at every point of a small run, once or twice.

use nandina::flash::{BlockNumber, Flash};
use nandina::{Index, LivenessTracking, System, WriteError, ram_needed};
use nandina_ftl::Statistics;
use nandina_sim::{Chip, ChipError, Cut, FaultCounters, Tear};

use super::events::Events;
use super::oracle::{Change, Model, compare, text};
use super::{
    CaseId, CutPoint, CutRun, Ground, Hardships, Mode, Report, Shares, harsh, in_parallel,
};
use crate::layer::{FtlWork, Room, name_of};

/// Changes after the last cut, to show that the index still works.
const CHANGES_AFTER: usize = 12;

/// Changes after a first cut that the second one may hit.
const CHANGES_BETWEEN: usize = 2;

/// Changes in a row without idle steps.
///
/// As many follow with an idle step after each.
const CHANGES_ALIKE: usize = 20;

/// Changes from one requested checkpoint to the next, beside those that become due.
const CHECKPOINT_TURNS: usize = 4;

/// The most successive mounts that may each gather nodes in fewer pages.
const MOUNTS_MAX: usize = 4;

/// Every kind of cut. The first shows what is cut: a read has no inside, so all cuts of it are
/// equal.
const CUTS: [Cut; 5] = [
    Cut::Inside(Tear::Mixture),
    Cut::Inside(Tear::Ones),
    Cut::Inside(Tear::Unreadable),
    Cut::Before,
    Cut::After,
];

/// The result of a session.
struct Session {
    /// The model as it would be after the change that was cut, if one was.
    cut: Option<Model>,
    /// Chip operations since power was restored.
    chip_operations: u64,
    changes_done: usize,
}

/// The events of a whole case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// The last cut was never reached.
    pub ended: bool,
    /// The last cut hit a program, an erase or a mark, and not a read.
    pub(super) tore: bool,
    /// Idle steps that moved a page.
    pub(super) idle_moves: u64,
    pub(super) faults: FaultCounters,
    pub(super) operations: u64,
    pub(super) chip_operations: u64,
    /// Chip operations after the last cut, in which a further one could come.
    pub(super) next_session: u64,
    pub(super) collected: bool,
    /// What the FTL did in the last session that ended by itself.
    pub(super) ftl: Option<FtlWork>,
    /// What FTLs did in all sessions.
    pub(super) met: Events,
    pub(super) height: u8,
}

#[derive(Clone)]
struct Runner<D> {
    device: D,
    run: CutRun,
    ram: Vec<u8>,
    room: Room,
    model: Model,
    changes: Vec<Change>,
    /// The number of the next change.
    first: usize,
    done: Done,
}

impl<D: Ground> Runner<D> {
    /// Formats the device for the run.
    fn new<S: System>(mut device: D, run: CutRun) -> Result<Self, String> {
        let options = run.options::<S>();
        let mut ram = vec![0xA5; ram_needed::<S>(&device.geometry(), &options)];
        let mut room = Room::default();
        let mut begun = device.begin(&mut room, true).map_err(text)?;
        // The first opening follows an end, the one after a cut does not.
        Index::<_, S>::format(begun.bus(), &options, &mut ram).map_err(text)?.close();
        drop(begun);
        let (model, changes, done) =
            (Model::new(), run.changes::<S>(device.layer()), Done::default());
        Ok(Self { device, run, ram, room, model, changes, first: 0, done })
    }

    /// Opens the index once more and compares it with the model.
    fn compare<S: System>(&mut self) -> Result<(), String> {
        let options = self.run.options::<S>();
        let mut begun = self.device.begin(&mut self.room, false).map_err(text)?;
        let mut index = Index::<_, S>::open(begun.bus(), &options, &mut self.ram).map_err(text)?;
        account(&index)?;
        compare(&mut index, &self.model)?;
        drop(index);
        begun.check()
    }

    /// Opens the index and makes up to `count` changes, until power fails.
    ///
    /// The changes begin with number `first`.
    fn session<S: System>(
        &mut self,
        point: Option<CutPoint>,
        first: usize,
        count: usize,
    ) -> Result<Session, String> {
        let start = self.device.chip().counters().operations();
        if let Some(CutPoint { operation, cut }) = point {
            self.device.chip_mut().cut_at(operation, cut);
        }
        let mut session = Session { cut: None, chip_operations: 0, changes_done: 0 };
        let options = self.run.options::<S>();
        let mut begun = match self.device.begin(&mut self.room, false) {
            Ok(begun) => begun,
            Err(ChipError::PowerLost) => {
                session.cut = Some(self.model.clone());
                return Ok(session);
            }
            Err(error) => return Err(format!("opening the FTL: {error}")),
        };
        let mut index = match Index::<_, S>::open(begun.bus(), &options, &mut self.ram) {
            Ok(index) => index,
            Err(nandina::OpenError::Device(ChipError::PowerLost)) => {
                session.cut = Some(self.model.clone());
                return Ok(session);
            }
            Err(error) => return Err(format!("opening: {error:?}")),
        };
        for (turn, &change) in self.changes.iter().enumerate().skip(first).take(count) {
            self.done.operations += 1;
            match change.make(&mut index, self.run.value_bytes) {
                Ok(_) => change.apply(&mut self.model, self.run.value_bytes),
                Err(WriteError::Full { .. }) => {}
                Err(WriteError::Device(ChipError::PowerLost)) => {
                    let mut after = self.model.clone();
                    change.apply(&mut after, self.run.value_bytes);
                    session.cut = Some(after);
                    break;
                }
                Err(error) => return Err(format!("{change:?}: {error:?}")),
            }
            session.changes_done += 1;
            let moved = index.statistics().moved_pages;
            let mut idle = Ok(());
            if turn / CHANGES_ALIKE % 2 == 1 {
                idle = index.gc_step(index.gc_step_least()).map(drop);
            }
            if idle.is_ok() && self.run.checkpoints.is_some() && turn % CHECKPOINT_TURNS == 0 {
                idle = index.checkpoint().map(drop);
            }
            match idle {
                Ok(()) => {}
                Err(WriteError::Device(ChipError::PowerLost)) => {
                    session.cut = Some(self.model.clone());
                    break;
                }
                Err(error) => return Err(format!("idle after {change:?}: {error:?}")),
            }
            self.done.idle_moves += index.statistics().moved_pages - moved;
            let statistics = index.statistics();
            self.done.collected |= statistics.collected_blocks > 0;
            self.done.height = self.done.height.max(statistics.height);
        }
        let at_end = session.cut.is_none();
        if at_end && point.is_none() {
            compare(&mut index, &self.model)?;
        }
        self.done.ftl = index.flash().ftl();
        self.done.met.note(self.done.ftl.as_ref());
        let mut counted = index.statistics().valid_pages;
        let bus = if at_end { index.close() } else { return Ok(session) };
        session.chip_operations = bus.simulated().counters().operations() - start;
        if !bus.simulated().has_power() {
            session.cut = Some(self.model.clone());
        }
        if point.is_none() {
            // The mount's count of valid pages, from a walk, must equal the count that the changes
            // kept.
            let options = self.run.options::<S>();
            drop(begun);
            let mut device = self.device.clone();
            // If a chip is too full for `close`, its mount settles it. A mount that collects what a
            // cut wasted may gather nodes in fewer pages, and `close` may commit nodes of a journal
            // to other ones: then the count of that mount is compared with that of the next one.
            let mut commits = S::DESCRIPTION.replays() && options.checkpoints.is_some();
            for _ in 0..MOUNTS_MAX {
                let mut begun = device.begin(&mut self.room, false).map_err(text)?;
                let index = Index::<_, S>::open(begun.bus(), &options, &mut self.ram)
                    .map_err(|error| format!("opening once more: {error:?}"))?;
                account(&index)?;
                let found = index.statistics();
                if counted == found.valid_pages {
                    return Ok(session);
                }
                if found.moved_pages == 0 && !std::mem::take(&mut commits) {
                    return Err(format!(
                        "{counted} pages were counted as valid, a mount finds {}",
                        found.valid_pages
                    ));
                }
                counted = found.valid_pages;
            }
            return Err(format!("each of {MOUNTS_MAX} mounts finds fewer valid pages"));
        }
        Ok(session)
    }

    /// Compares the content of the chip with the two permitted states.
    fn recover<S: System>(&mut self, after: Model) -> Result<(), String> {
        let mut device = self.device.clone();
        let options = self.run.options::<S>();
        let mut begun = device
            .begin(&mut self.room, false)
            .map_err(|error| format!("opening the FTL after the cut: {error}"))?;
        let mut index = Index::<_, S>::open(begun.bus(), &options, &mut self.ram)
            .map_err(|error| format!("opening after the cut: {error:?}"))?;
        account(&index)?;
        if let Err(old) = compare(&mut index, &self.model) {
            compare(&mut index, &after)
                .map_err(|new| format!("neither the old state ({old}) nor the new one ({new})"))?;
            self.model = after;
        }
        drop(index);
        begun.check()
    }
}

impl<D: Ground> Runner<D> {
    /// Continues the run up to a cut, and compares what it leaves.
    ///
    /// Does nothing after a cut that was never reached.
    fn cut<S: System>(&mut self, point: CutPoint) -> Result<(), String> {
        if self.done.ended {
            return Ok(());
        }
        let torn = self.device.chip().fault_counters().torn;
        let session = self.session::<S>(Some(point), self.first, self.changes.len())?;
        self.done.tore = self.device.chip().fault_counters().torn > torn;
        self.first += session.changes_done;
        self.device.restore_power();
        match session.cut {
            Some(after) => self.recover::<S>(after),
            None => {
                self.done.ended = true;
                Ok(())
            }
        }
    }

    /// Shows after the last cut that the index still works.
    fn end<S: System>(mut self) -> Result<Done, String> {
        // Count the operations at which a further cut could come.
        let next = self.session::<S>(None, self.first, CHANGES_BETWEEN)?;
        self.done.next_session = next.chip_operations;
        let last = self.session::<S>(None, self.first + CHANGES_BETWEEN, CHANGES_AFTER)?;
        debug_assert!(last.cut.is_none());
        self.compare::<S>()?;
        self.done.faults = self.device.chip().fault_counters();
        self.done.chip_operations = self.device.chip().counters().operations();
        Ok(self.done)
    }
}

/// A run up to its first cut, from which it continues with each second one.
enum FirstCut<D> {
    Plain(Result<Box<Runner<D>>, String>),
    Harsh(Result<Box<harsh::Runner<D>>, String>),
    /// The run up to there depends on the second cut.
    Apart,
}

impl<D: Ground> FirstCut<D> {
    fn of<S: System>(device: &D, run: CutRun, point: CutPoint) -> Self {
        if run.hardships.any() {
            let first = harsh::Runner::first::<S>(device, run, point);
            return first.map_or(Self::Apart, |runner| Self::Harsh(runner.map(Box::new)));
        }
        let cut = || {
            let mut runner = Box::new(Runner::new::<S>(device.clone(), run)?);
            runner.cut::<S>(point)?;
            Ok(runner)
        };
        Self::Plain(cut())
    }

    /// Continues a clone of it with `cuts`, of which the first was made.
    fn continued<S: System>(
        &self,
        device: &D,
        run: CutRun,
        cuts: &[CutPoint],
    ) -> Result<Done, String> {
        match self {
            Self::Plain(runner) => {
                let mut runner = runner.clone()?;
                for &point in &cuts[1..] {
                    runner.cut::<S>(point)?;
                }
                runner.end::<S>()
            }
            Self::Harsh(runner) => runner.clone()?.continues::<S>(cuts),
            Self::Apart => harsh::cut_once::<S, D>(device.clone(), run, cuts),
        }
    }
}

/// Returns an error if the index met damaged pages that no cut explains.
///
/// The index must be just opened.
fn account<F: Flash, S: System>(index: &Index<'_, F, S>) -> Result<(), String> {
    let statistics = index.statistics();
    if statistics.unexplained_pages > 0 {
        return Err(format!("no cut explains {} damaged pages", statistics.unexplained_pages));
    }
    Ok(())
}

/// Does `run` on a new chip, cut at each of `cuts` in turn.
///
/// Returns what is wrong, if anything is.
pub fn cut_once<S: System, D: Ground>(
    device: D,
    run: CutRun,
    cuts: &[CutPoint],
) -> Result<Done, String> {
    let mut runner = Runner::new::<S>(device, run)?;
    for &point in cuts {
        runner.cut::<S>(point)?;
    }
    runner.end::<S>()
}

/// Does `run` on `device`, cut in every way at every chip operation, once or twice.
pub fn cut_everywhere<S: System, D: Ground>(
    device: D,
    run: CutRun,
    mode: Mode,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Report {
    cut_shares::<S, D>(device, run, mode, seed, Shares::WHOLE, progress)
}

/// Does the same at a share of the chip operations.
pub fn cut_shares<S: System, D: Ground>(
    device: D,
    run: CutRun,
    mode: Mode,
    seed: u64,
    shares: Shares,
    progress: &(dyn Fn(u64) + Sync),
) -> Report {
    let system = name_of(S::DESCRIPTION.key, device.layer());
    let mut report = Report::new(system.clone(), mode, seed);
    let case = |cuts: &[CutPoint]| CaseId {
        mode,
        system: system.clone(),
        seed,
        run: Some(run),
        hardships: Hardships::NONE,
        cuts: cuts.to_vec(),
    };
    let harsh = run.hardships.any();
    let whole = match harsh {
        true => harsh::uncut::<S, D>(device.clone(), run),
        false => uncut::<S, D>(device.clone(), run),
    };
    let (operations, chip_operations) = match &whole {
        Ok(counts) => *counts,
        Err(what) => {
            report.violated(&case(&[]), what.clone());
            return report;
        }
    };
    if mode == Mode::None {
        report.runs = 1;
        (report.operations, report.chip_operations) = (operations, chip_operations);
        progress(1000);
        return report;
    }
    let mut report = in_parallel(chip_operations, report, progress, |operation, report| {
        if !shares.takes(operation) {
            return;
        }
        let attempted = |cuts: &[CutPoint], done: Result<Done, String>, report: &mut Report| {
            report.runs += 1;
            match done {
                Ok(done) => {
                    report.add(done.faults, done.operations, done.chip_operations);
                    report.met.add(&done.met);
                    Some(done)
                }
                Err(what) => {
                    report.violated(&case(cuts), what);
                    None
                }
            }
        };
        for cut in CUTS {
            let point = CutPoint { operation, cut };
            let first_cut = FirstCut::of::<S>(&device, run, point);
            let done = first_cut.continued::<S>(&device, run, &[point]);
            let Some(first) = attempted(&[point], done, report) else {
                return;
            };
            if mode == Mode::Exhaustive {
                for operation in shares.seconds(operation, first.next_session) {
                    for cut in CUTS {
                        let again = CutPoint { operation, cut };
                        let done = first_cut.continued::<S>(&device, run, &[point, again]);
                        let Some(second) = attempted(&[point, again], done, report) else {
                            return;
                        };
                        if cut == CUTS[0] && !second.tore {
                            break;
                        }
                    }
                }
            }
            if cut == CUTS[0] && !first.tore {
                break;
            }
        }
    });
    // A system that writes blocks in order, or an FTL's pages, has an FTL do little.
    let layer = device.layer().filter(|_| shares == Shares::WHOLE && places_nodes::<S>());
    if let Some(layer) = layer {
        let met = report.met;
        for event in met.missing(&layer) {
            report.violated(&case(&[]), format!("no run met {event}"));
        }
    }
    report
}

/// Erases of the two anchor blocks. The first checkpoint erases both.
fn anchor_erases(chip: &Chip) -> u32 {
    (0..2).map(|block| chip.erase_count(BlockNumber(block))).sum()
}

/// The anchor erases that a run must reach.
///
/// With them one anchor was filled and the other begun: each page of an anchor names a block
/// of checkpoints.
const ANCHOR_ERASES_LEAST: u32 = 3;

/// Whether each node has a page that is replaced. (Of others it is not known where nodes are.)
const fn places_nodes<S: System>() -> bool {
    S::DESCRIPTION.replaces() && S::NODES.is_some()
}

/// Does the whole run without a cut, and checks that it is complete.
///
/// Returns the numbers of operations and of chip operations.
pub(super) fn uncut<S: System, D: Ground>(device: D, run: CutRun) -> Result<(u64, u64), String> {
    let mut runner = Runner::new::<S>(device, run)?;
    let whole = runner.changes.len();
    let session = runner.session::<S>(None, 0, whole)?;
    let Done { collected, height, idle_moves, .. } = runner.done;
    // A system that replaces in place collects no block, and searched blocks are not collected when
    // idle.
    let searched = run.options::<S>().validity == LivenessTracking::Searched;
    // Leaves alone are so few that idle steps may leave nothing to collect. Above an FTL no room is
    // kept for blocks that fail, so a journal has more of it, and idle steps are enough.
    let is_over_ftl = runner.done.ftl.is_some();
    let collected =
        collected || !S::DESCRIPTION.has_inner_nodes() || (is_over_ftl && S::DESCRIPTION.replays());
    let collects = (collected && (idle_moves > 0 || searched)) || !S::DESCRIPTION.collects();
    if !collects || height < 2 || !runner.model.is_empty() {
        return Err(format!(
            "the run is too tame: collected {collected}, height {height}, {idle_moves} moves when idle, \
             {} records left",
            runner.model.len()
        ));
    }
    if let Some(work) = runner.done.ftl {
        let Statistics { moved, erases, .. } = work.statistics;
        // A system that writes blocks in order leaves an FTL nothing to move, and so may a rival,
        // which writes free pages in order.
        if erases == 0 || (places_nodes::<S>() && moved == 0) {
            return Err(format!(
                "the run is too tame: the FTL moved {moved} pages, {erases} erases"
            ));
        }
    }
    let anchors = anchor_erases(runner.device.chip());
    let checkpoints = run.options::<S>().checkpoints;
    // An FTL keeps its blocks of anchors elsewhere, and pages that are replaced have none.
    let has_anchors = runner.done.ftl.is_none() && S::DESCRIPTION.collects();
    let counts = checkpoints.is_some() && has_anchors;
    if counts && anchors < ANCHOR_ERASES_LEAST {
        return Err(format!(
            "the run is too tame: {anchors} erases of anchors, too few checkpoints"
        ));
    }
    runner.compare::<S>()?;
    Ok((runner.done.operations, session.chip_operations))
}
