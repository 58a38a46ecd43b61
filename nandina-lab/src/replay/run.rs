//! A trace on several mappings at once: their memory, their exact work, their time.
//!
//! Every mapping gets the same extents and physical numbers. At the end all have to hold the same
//! content and to have passed the same units; a difference is an error and never a figure.

use nandina_ftl::mapping::emt::{Emt, Runs};
use nandina_ftl::mapping::registry::{Entry, by_name};
use nandina_ftl::mapping::{MAPPINGS, Mapping, Refusal, Space};
use serde::Serialize;

use super::actions::{Action, Actions, survey};
use super::clock;
use super::tally::{Tally, content};
use super::unit::Unit;
use crate::LabError;
use crate::block_trace::{Account, BlockTrace, Refused};
use crate::layer::HYBRIDS;
use crate::trace::ReadProgress;

/// Actions that one mapping takes before the next one does.
const BATCH: usize = 16_384;
/// Bytes of memory that one mapping gets, at most.
const MEMORY_MAX: usize = 1 << 30;
/// The mappings that the others are compared with.
const PAGE: &str = "page";
const PAGE_2: &str = "page-2";

/// What is replayed, and how.
pub struct Setup {
    /// Names of mappings, besides `page` and `page-2`, which always run; empty for all.
    pub mappings: Vec<String>,
    /// The unit of the mappings.
    pub unit: Unit,
    /// Bytes of the logical space; `None` for as much as the trace names.
    pub space_bytes: Option<u64>,
    /// How often the trace is replayed, at least once.
    pub passes: u32,
}

/// How often [`replay`] reads the file.
///
/// Before the passes it reads it twice: for the space, and for the runs that need memory.
pub const fn readings(passes: u32) -> u32 {
    passes + 2
}

/// What a mapping costs on a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MappingCost {
    /// Its name.
    pub mapping: &'static str,
    /// Entries at the end: units, nodes, extents or records.
    pub entries: u64,
    /// Bytes in use at the end; of containers of libraries a lower bound.
    pub bytes_used: u64,
    /// Bytes that it got, or its limit.
    pub bytes_reserved: u64,
    /// The most bytes that it used.
    pub bytes_peak: u64,
    /// Bytes in use for each of the least possible runs.
    pub bytes_per_run: Option<f64>,
    /// Bytes in use for each unit that is mapped at the end.
    pub bytes_per_written_unit: Option<f64>,
    /// Bytes in use, in per cent of `page`.
    pub percent_of_page: f64,
    /// Bytes in use, in per cent of `page-2`; `None` if that did not run.
    pub percent_of_page_2: Option<f64>,
    /// Entries of tables for each request.
    pub probes_per_request: f64,
    /// Nodes of trees, or records, for each request.
    pub nodes_per_request: f64,
    /// Bytes moved for each request.
    pub moved_per_request: f64,
    /// Pages that the mapping reads from flash for each request, besides those of the host.
    ///
    /// Of `demand` translation pages; of `learned-4` pages read to correct or to avoid a
    /// misprediction.
    pub flash_reads_per_request: f64,
    /// Pages that the mapping writes to flash for each request: translation pages.
    pub flash_writes_per_request: f64,
    /// Processor time of one request on this machine, in nanoseconds.
    pub ns_per_request: f64,
    /// That time by the time of `page`; `None` if that did not run.
    pub time_by_page: Option<f64>,
    /// Requests that it refused because its memory was full.
    pub refused: u64,
}

/// A mapping that could not run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub mapping: &'static str,
    /// Why.
    pub reason: String,
}

/// What mappings cost on a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The name of the file.
    pub trace: String,
    /// The key of its format.
    pub format: &'static str,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Logical units.
    pub logical_units: u32,
    /// Physical units.
    pub physical_units: u32,
    /// How often the trace was replayed.
    pub passes: u32,
    /// The requests of one pass, each in exactly one count.
    pub account: Account,
    /// Requests of all passes that mappings got.
    pub replayed: u64,
    /// Requests of all passes that no mapping got besides those refused in `account` and flushes.
    pub not_replayed: Vec<Refused>,
    /// Units that are mapped at the end.
    pub written_units: u64,
    /// Runs that no mapping can do without, at the end.
    pub least_runs: u64,
    /// The mappings, in the order of their list.
    pub mappings: Vec<MappingCost>,
    /// Mappings that could not run.
    pub left_out: Vec<LeftOut>,
}

/// Replays a trace on mappings alone.
///
/// Each mapping gets memory for twice the extents that were kept at once in the first pass, at most
/// 1 GiB. Refuses unknown names, and spaces of more than 2^32 - 2 units.
pub fn replay(
    trace: &BlockTrace,
    setup: &Setup,
    progress: ReadProgress<'_>,
) -> Result<Report, LabError> {
    let entries = chosen(&setup.mappings)?;
    let (account, layout) = survey(trace, progress)?;
    let mut actions = Actions::new(layout.clone(), setup.unit, setup.space_bytes)?;
    let space = actions.space();
    let runs = runs_to_hold(trace, &mut actions, progress)?;

    let mut memories: Vec<_> = entries.iter().map(|entry| memory(entry, space, runs)).collect();
    let (mut tracks, mut left_out) = (Vec::new(), Vec::new());
    for (entry, memory) in entries.iter().zip(&mut memories) {
        let built = match memory {
            Ok(memory) => (entry.build)(space, memory).map_err(|refusal| refusal.to_string()),
            Err(reason) => Err(reason.clone()),
        };
        match built {
            Ok(map) => tracks.push(Track::new(entry.name, map)),
            Err(reason) => left_out.push(LeftOut { mapping: entry.name, reason }),
        }
    }

    let mut actions = Actions::new(layout, setup.unit, setup.space_bytes)?;
    let mut batches = Batches { batch: Vec::with_capacity(BATCH), tracks, replayed: 0 };
    let mut not_replayed: Vec<Refused> = Vec::new();
    for _ in 0..setup.passes {
        trace.read_again(&account, progress, &mut |request| match actions.of(request) {
            Ok(Some(action)) => batches.add(action),
            Ok(None) => {}
            Err(reason) => Refused::count(&mut not_replayed, reason),
        })?;
    }
    batches.run();
    let Batches { tracks, replayed, .. } = batches;

    let passes = u64::from(setup.passes);
    let asked = passes * (account.requests - account.refused() - account.flushes);
    let lost: u64 = not_replayed.iter().map(|refused| refused.requests).sum();
    assert_eq!(asked, replayed + lost, "a request was replayed twice or never");
    let finished = finish(&tracks)?;
    let costs = costs(&tracks, space, replayed, finished);
    Ok(Report {
        trace: trace.name(),
        format: trace.format().key,
        unit_bytes: setup.unit.bytes(),
        logical_units: space.logical,
        physical_units: space.physical,
        passes: setup.passes,
        account,
        replayed,
        not_replayed,
        written_units: finished.0.units,
        least_runs: finished.1,
        mappings: costs,
        left_out,
    })
}

/// The mappings of these names and the page maps, in the order of the list.
pub(super) fn chosen(names: &[String]) -> Result<Vec<&'static Entry>, LabError> {
    if let Some(name) = names.iter().find(|name| by_name(name).is_none()) {
        let known: Vec<_> = MAPPINGS.iter().map(|entry| entry.name).collect();
        let known = known.join(", ");
        let hybrids = HYBRIDS.iter().map(|(hybrid, ..)| *hybrid);
        let hint = match hybrids.clone().find(|hybrid| hybrid == name) {
            Some(hybrid) => format!(", or choose the FTL by --ftl {hybrid}"),
            None => String::new(),
        };
        return Err(LabError(format!("there is no mapping '{name}': choose from {known}{hint}")));
    }
    let wanted = |entry: &&Entry| {
        [PAGE, PAGE_2].contains(&entry.name)
            || names.is_empty()
            || names.iter().any(|name| name == entry.name)
    };
    Ok(MAPPINGS.iter().filter(wanted).collect())
}

/// Twice the extents that are kept at once in a pass, and a few.
fn runs_to_hold(
    trace: &BlockTrace,
    actions: &mut Actions,
    progress: ReadProgress<'_>,
) -> Result<usize, LabError> {
    let mut map = Emt::new(actions.space(), Runs::new(usize::MAX));
    trace.read(progress, &mut |request| {
        // A request that is not used is counted later.
        if let Ok(Some(action)) = actions.of(request) {
            action.keep_in(&mut map);
        }
    })?;
    Ok(2 * (map.bytes().peak / Runs::ENTRY) + 1000)
}

/// Memory for a mapping, or why it is too much.
pub(super) fn memory(entry: &Entry, space: Space, runs: usize) -> Result<Vec<u8>, String> {
    let bytes = (entry.memory)(space, runs);
    if bytes <= MEMORY_MAX {
        Ok(vec![0; bytes])
    } else {
        Err(format!("it needs {} MiB: choose a larger --unit", bytes >> 20))
    }
}

/// A mapping in a replay, and what was seen of it.
struct Track<'m> {
    name: &'static str,
    map: Box<dyn Mapping + 'm>,
    /// Units that writes and trims superseded.
    superseded: Tally,
    /// Mapped units that reads found.
    found: Tally,
    refused: u64,
    nanoseconds: u64,
}

impl<'m> Track<'m> {
    fn new(name: &'static str, map: Box<dyn Mapping + 'm>) -> Self {
        let (superseded, found) = (Tally::default(), Tally::default());
        Self { name, map, superseded, found, refused: 0, nanoseconds: 0 }
    }

    fn run(&mut self, batch: &[Action]) {
        let Self { map, superseded, found, refused, .. } = self;
        let begin = clock::nanoseconds();
        for &action in batch {
            let done: Result<(), Refusal> = match action {
                Action::Read(extent) => map.look_up(extent, &mut |piece| found.add_piece(piece)),
                Action::Write(extent, physical) => {
                    map.update(extent, physical, &mut |run| superseded.add(run))
                }
                Action::Trim(extent) => map.remove(extent, &mut |run| superseded.add(run)),
            };
            *refused += u64::from(done.is_err());
        }
        self.nanoseconds += clock::nanoseconds() - begin;
    }
}

/// Actions on their way to every mapping.
struct Batches<'m> {
    batch: Vec<Action>,
    tracks: Vec<Track<'m>>,
    replayed: u64,
}

impl Batches<'_> {
    fn add(&mut self, action: Action) {
        self.batch.push(action);
        if self.batch.len() == BATCH {
            self.run();
        }
    }

    fn run(&mut self) {
        self.tracks.iter_mut().for_each(|track| track.run(&self.batch));
        self.replayed += self.batch.len() as u64;
        self.batch.clear();
    }
}

/// The content at the end and its least runs, which are those of every mapping that refused nothing.
fn finish(tracks: &[Track<'_>]) -> Result<(Tally, u64), LabError> {
    let whole: Vec<_> = tracks.iter().filter(|track| track.refused == 0).collect();
    let Some(first) = whole.first() else {
        return Err(LabError("no mapping has held the whole trace: choose a larger --unit".into()));
    };
    let finished = content(&*first.map);
    for track in &whole[1..] {
        let same = content(&*track.map) == finished
            && track.found == first.found
            && track.superseded == first.superseded;
        if !same {
            return Err(LabError(format!(
                "{} and {} map different units: this is an error in one of them",
                first.name, track.name
            )));
        }
    }
    Ok(finished)
}

fn costs(
    tracks: &[Track<'_>],
    space: Space,
    replayed: u64,
    (tally, runs): (Tally, u64),
) -> Vec<MappingCost> {
    let by = |name: &str| tracks.iter().find(|track| track.name == name);
    // The flat table's bytes follow from the space, also where it did not run.
    let page = by_name(PAGE).map_or(0, |entry| (entry.memory)(space, 0)) as f64;
    let page_2 = by(PAGE_2).map(|track| track.map.bytes().used as f64);
    let page_time = by(PAGE).map(|track| track.nanoseconds as f64);
    let per = |sum: u64, of: u64| sum as f64 / of.max(1) as f64;
    let per_any = |sum: u64, of: u64| (of > 0).then(|| per(sum, of));
    let cost = |track: &Track<'_>| {
        let (bytes, work) = (track.map.bytes(), track.map.work());
        let used = bytes.used as u64;
        MappingCost {
            mapping: track.name,
            entries: track.map.entries() as u64,
            bytes_used: used,
            bytes_reserved: bytes.reserved as u64,
            bytes_peak: bytes.peak as u64,
            bytes_per_run: per_any(used, runs),
            bytes_per_written_unit: per_any(used, tally.units),
            percent_of_page: 100.0 * used as f64 / page,
            percent_of_page_2: page_2.map(|page_2| 100.0 * used as f64 / page_2),
            probes_per_request: per(work.probes, replayed),
            nodes_per_request: per(work.nodes, replayed),
            moved_per_request: per(work.moved, replayed),
            flash_reads_per_request: per(work.flash_reads, replayed),
            flash_writes_per_request: per(work.flash_writes, replayed),
            ns_per_request: track.nanoseconds as f64 / replayed.max(1) as f64,
            time_by_page: page_time.map(|page| track.nanoseconds as f64 / page.max(1.0)),
            refused: track.refused,
        }
    };
    tracks.iter().map(cost).collect()
}
