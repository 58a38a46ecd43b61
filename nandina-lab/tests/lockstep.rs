//! Every mapping in lockstep: after each request of a trace all of them must have said the same.
//!
//! Beside them is a plain table of units, which knows no extents. Each write and trim must pass on
//! the units that the table loses by it, each read must find those that the table has. At the end
//! the walks are compared with the table, and each mapping checks itself. There is no chip.
//!
//! Of each trace one window of requests is replayed, behind the last changes before it, and each day
//! another one. With `NANDINA_EFFORT=full` it is all of a recorded trace, and the first 200,000
//! requests of a generated one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use nandina_ftl::mapping::emt::{Emt, Runs};
use nandina_ftl::mapping::{Extent, Mapping, Piece, Refusal, Run, Space};
use nandina_lab::block_trace::make::{Choice, RECIPES, Synthetic};
use nandina_lab::block_trace::{BlockTrace, Choices, Kind, Layout, Request};
use nandina_lab::effort::{Effort, Share, effort};
use nandina_lab::replay::{Action, Entry, MAPPINGS, Unit};

/// Requests of a window, and changes before it.
const WINDOW: usize = 1000;

/// Mappings whose walk and check look at every unit of the space, mapped or not.
const UNIT_BY_UNIT: [&str; 3] = ["page", "page-2", "demand"];

/// Bytes that a mapping may need.
const BYTES_MAX: usize = 1 << 30;

/// A quick effort's, or a full one's.
fn quick_or_full<T>(quick: T, full: T) -> T {
    if effort() == Effort::Quick { quick } else { full }
}

/// Requests of a trace as actions.
struct Actions {
    layout: Layout,
    unit: Unit,
    space: Space,
    /// The next physical unit.
    next: u32,
    all: Vec<Action>,
}

impl Actions {
    /// No actions yet; `None` if the units of the space have no numbers of 32 bits.
    fn new(layout: Layout, unit: Unit) -> Option<Self> {
        let logical = u32::try_from(unit.count(layout.bytes())).ok().filter(|&it| it < u32::MAX)?;
        Some(Self { layout, unit, space: space(logical), next: 0, all: Vec::new() })
    }

    fn add(&mut self, request: &Request) {
        let (start, bytes) = (self.layout.place(request), request.bytes);
        let covering = || self.unit.covering(start, bytes).unwrap();
        match request.kind {
            Kind::Flush => {}
            Kind::Read => self.all.push(Action::Read(covering())),
            Kind::Trim => self.all.extend(self.unit.inside(start, bytes).map(Action::Trim)),
            Kind::Write => {
                let write = write(covering(), self.space, &mut self.next);
                self.all.push(write);
            }
        }
    }
}

fn space(logical: u32) -> Space {
    Space { logical, physical: logical.saturating_mul(2).max(1 << 28) }
}

/// A write takes the next physical units in a row.
fn write(extent: Extent, space: Space, next: &mut u32) -> Action {
    if space.physical - *next < extent.length {
        *next = 0;
    }
    *next += extent.length;
    Action::Write(extent, *next - extent.length)
}

/// Joins what a mapping passes where it continues.
fn joined(fill: impl FnOnce(&mut dyn FnMut(Run))) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    fill(&mut |run| match runs.last_mut() {
        Some(last) if last.continues_to(&run) => last.length += run.length,
        _ => runs.push(run),
    });
    runs
}

/// A physical unit for each logical one that is mapped.
#[derive(Default)]
struct Table(BTreeMap<u32, u32>);

impl Table {
    /// The runs of an extent.
    fn of(&self, extent: Extent) -> Vec<Run> {
        let units = self.0.range(extent.start..extent.end());
        let run = |(&logical, &physical)| Run { logical, length: 1, physical };
        joined(|pass| units.map(run).for_each(pass))
    }

    fn set(&mut self, action: Action) {
        match action {
            Action::Read(_) => {}
            Action::Write(extent, physical) => {
                self.0.extend((extent.start..extent.end()).zip(physical..));
            }
            Action::Trim(extent) => {
                let units: Vec<_> =
                    self.of(extent).into_iter().flat_map(|run| run.logical..run.end()).collect();
                for unit in units {
                    self.0.remove(&unit);
                }
            }
        }
    }
}

/// What a mapping says to an action: the runs that are superseded or found.
fn said(map: &mut dyn Mapping, action: Action) -> Result<Vec<Run>, Refusal> {
    let mut done = Ok(());
    let runs = joined(|pass| {
        done = match action {
            Action::Write(extent, physical) => {
                map.admits(extent).and_then(|()| map.update(extent, physical, pass))
            }
            Action::Trim(extent) => map.remove(extent, pass),
            Action::Read(extent) => {
                let mut end = extent.start;
                let found = map.look_up(extent, &mut |piece: Piece| {
                    assert_eq!(piece.logical, end, "a piece begins where the last one ends");
                    end = piece.end();
                    piece.run().into_iter().for_each(&mut *pass);
                });
                assert_eq!(end, extent.end(), "the pieces of a look-up cover its extent");
                found
            }
        };
    });
    done.map(|()| runs)
}

/// Twice the extents that are kept at once.
fn runs_to_hold(space: Space, actions: &[Action]) -> usize {
    let mut map = Emt::new(space, Runs::new(usize::MAX));
    actions.iter().for_each(|action| action.keep_in(&mut map));
    2 * (map.bytes().peak / Runs::ENTRY) + 100
}

/// Runs actions on every mapping that the space is not too large for, and returns their names.
fn lockstep(trace: &str, space: Space, actions: &[Action]) -> BTreeSet<&'static str> {
    let runs = runs_to_hold(space, actions);
    let fits = |entry: &&Entry| {
        let few = space.logical <= quick_or_full(5 << 20, 64 << 20);
        (entry.memory)(space, runs) <= BYTES_MAX && (few || !UNIT_BY_UNIT.contains(&entry.name))
    };
    let with_memory = |entry: &'static Entry| (entry, vec![0; (entry.memory)(space, runs)]);
    let mut memories: Vec<_> = MAPPINGS.iter().filter(fits).map(with_memory).collect();
    let mut maps = Vec::new();
    for (entry, memory) in &mut memories {
        match (entry.build)(space, memory) {
            Err(Refusal::Space { logical_max }) if space.logical > logical_max => {}
            map => maps.push((entry.name, map.unwrap())),
        }
    }
    let mut table = Table::default();
    for (at, &action) in actions.iter().enumerate() {
        let (Action::Read(extent) | Action::Write(extent, _) | Action::Trim(extent)) = action;
        let expected = table.of(extent);
        for (name, map) in &mut maps {
            let said = said(&mut **map, action);
            assert_eq!(said.as_ref(), Ok(&expected), "{trace}: {name}, {action:?}, number {at}");
        }
        table.set(action);
    }
    let held = table.of(space.whole());
    for (name, map) in &maps {
        assert!(joined(|pass| map.walk(pass)) == held, "{trace}: the walk of {name} differs");
        map.check().unwrap_or_else(|broken| panic!("{trace}: {name}: {broken}"));
    }
    let names: BTreeSet<_> = maps.iter().map(|(name, _)| *name).collect();
    let left_out = MAPPINGS.iter().filter(|entry| !names.contains(entry.name));
    let left_out: Vec<_> = left_out.map(|entry| entry.name).collect();
    println!("{trace}: {} requests, {} runs, too large: {left_out:?}", actions.len(), held.len());
    names
}

/// Runs the window of this day, or all.
fn window(trace: &str, space: Space, actions: &[Action]) -> BTreeSet<&'static str> {
    let length = quick_or_full(WINDOW, actions.len());
    let starts = (0..actions.len()).step_by(length.max(1));
    let start = Share::one_in(starts.len() as u64).of(starts)[0];
    let (before, window) = actions.split_at(start);
    let is_change = |action: &&Action| !matches!(action, Action::Read(_));
    let changes = before.iter().rev().filter(is_change).take(length);
    let mut all: Vec<_> = changes.copied().collect();
    all.reverse();
    all.extend(&window[..length.min(window.len())]);
    lockstep(trace, space, &all)
}

/// The units of each trace.
const UNITS: [Unit; 2] = [Unit::PAGE, Unit::SECTOR];

#[test]
fn mappings_agree_on_generated_traces() {
    let mut ran = BTreeSet::new();
    for (recipe, unit) in RECIPES.iter().flat_map(|recipe| UNITS.map(|unit| (recipe, unit))) {
        let requests = quick_or_full(20 * WINDOW as u64, 200_000).min(recipe.requests());
        let choice = Choice { seed: 7, requests: Some(requests), space_gib: None };
        let made = Synthetic::new(recipe, choice).unwrap();
        let mut actions = Actions::new(Layout::single(made.space_bytes()), unit).unwrap();
        for (request, at) in made.zip(0..) {
            // The recipes have no trims; a twelfth of their writes is one here.
            let trims = request.kind == Kind::Write && at % 12 == 11;
            let kind = if trims { Kind::Trim } else { request.kind };
            actions.add(&Request { kind, ..request });
        }
        let name = format!("{}, {} bytes", recipe.key, unit.bytes());
        ran.extend(window(&name, actions.space, &actions.all));
    }
    let known: BTreeSet<_> = MAPPINGS.iter().map(|entry| entry.name).collect();
    assert_eq!(ran, known, "a mapping was on no trace");
}

fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data")
}

/// The files in the folders of the shared data; none, and a message, without them.
fn shared_files() -> Vec<PathBuf> {
    let inside = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let folders = inside(&shared()).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<_> = folders.flat_map(|folder| inside(&folder)).collect();
    files.sort();
    if files.is_empty() {
        println!("skipped: {} is not there", shared().display());
    }
    files
}

/// Opens a block trace; of files whose columns fit several formats ours are SSDsim's.
fn open(path: &Path) -> Option<BlockTrace> {
    let found = BlockTrace::open(path, Choices::default());
    let error = match found {
        Ok(trace) => return Some(trace),
        Err(error) => error.to_string(),
    };
    if error.contains("more than one format fits") {
        let format = Some("ssdsim".into());
        return Some(BlockTrace::open(path, Choices { format, ..Choices::default() }).unwrap());
    }
    println!("no block trace: {error}");
    None
}

#[test]
fn mappings_agree_on_recorded_traces() {
    let files = shared_files();
    if files.is_empty() {
        return;
    }
    let mut ran = BTreeSet::new();
    for trace in files.iter().filter_map(|path| open(path)) {
        let layout = Layout::of(&trace.read(&|_| {}, &mut |_| {}).unwrap());
        for unit in UNITS {
            let name = format!("{}, {} bytes", trace.name(), unit.bytes());
            let Some(mut actions) = Actions::new(layout.clone(), unit) else {
                println!("{name}: more units than 32 bits count");
                continue;
            };
            trace.read(&|_| {}, &mut |request| actions.add(request)).unwrap();
            ran.extend(window(&name, actions.space, &actions.all));
        }
    }
    assert!(!ran.is_empty(), "there is no trace in {}", shared().display());
}

/// The extents of a stream of addresses: text with start and length, or numbers of 32 bits.
fn addresses(path: &Path, most: usize) -> Vec<Extent> {
    let mut file = BufReader::new(File::open(path).unwrap());
    let plain = BufReader::new(ruzstd::decoding::StreamingDecoder::new(&mut file).unwrap());
    if path.to_string_lossy().ends_with(".bin.zst") {
        let mut bytes = Vec::new();
        plain.take(4 * most as u64).read_to_end(&mut bytes).unwrap();
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        return bytes.chunks_exact(4).map(|bytes| Extent::new(number(bytes), 1)).collect();
    }
    let extent = |line: String| {
        let mut fields = line.split(' ').map(|field| field.parse().unwrap());
        Extent::new(fields.next().unwrap(), fields.next().unwrap())
    };
    plain.lines().take(most).map(|line| extent(line.unwrap())).collect()
}

/// Streams of addresses say nothing of writes; here an address is written, read or trimmed in turn.
///
/// With `NANDINA_EFFORT=full` these are the first 300,000 addresses.
#[test]
fn mappings_agree_on_streams_of_addresses() {
    let is_stream = |path: &PathBuf| {
        let is_inside = path.parent().is_some_and(|folder| folder.ends_with("lba-streams"));
        is_inside && path.extension().is_some_and(|extension| extension == "zst")
    };
    for path in shared_files().into_iter().filter(is_stream) {
        let extents = addresses(&path, quick_or_full(10 * WINDOW, 300_000));
        let space = space(extents.iter().map(Extent::end).max().unwrap());
        let mut next = 0;
        let action = |(extent, at): (Extent, usize)| match at % 12 {
            2 | 5 | 8 => Action::Read(extent),
            11 => Action::Trim(extent),
            _ => write(extent, space, &mut next),
        };
        let actions: Vec<_> = extents.into_iter().zip(0..).map(action).collect();
        let name = path.file_name().unwrap().to_string_lossy();
        assert!(!window(&name, space, &actions).is_empty(), "{name}");
    }
}
