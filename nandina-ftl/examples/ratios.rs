//! Measures two mappings beside each other: the time of writes and of look-ups, as ratios.
//!
//! `cargo run --release -p nandina-ftl --example ratios -- [OPTION ...] [FILE | FOLDER ...]`
//!
//! Streams that are made here come first, then every block trace that is named or lies in a named
//! folder, in pages and in sectors, if 32 bits number them. All writes of a stream are done, then
//! all its look-ups; where it has none, what was written is looked up. The mappings take turns, and
//! the medians of their processor times are compared: other work on the machine hardly counts.
//! Options: `--map NAME` (`compact`), `--than NAME` (`emt-btreemap`), `--only TEXT` of the name of
//! a stream, `--rounds N` turns of each mapping (15), and `--format KEY` of the traces.

#[path = "../tests/numbers/mod.rs"]
mod numbers;
#[path = "../tests/runs/mod.rs"]
mod runs;

use std::fs::read_dir;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use nandina_ftl::mapping::registry::{Entry, by_name};
use nandina_ftl::mapping::{Extent, Mapping, Run, Space};
use nandina_lab::block_trace::make::{Choice, Synthetic, by_key};
use nandina_lab::block_trace::{BlockTrace, Choices, Kind, Layout, Request};
use nandina_lab::replay::{Unit, nanoseconds};

use numbers::Numbers;
use runs::least_runs;

/// Physical units, if the space is not larger: 28 bits.
const PHYSICAL: u64 = (1 << 28) - 1;

/// Requests of one turn at least: short streams are repeated.
const REQUESTS: usize = 50_000;

/// Requests of a synthetic trace.
const SYNTHETIC: u64 = 300_000;

/// Runs that get memory besides two for each write.
const SPARE_RUNS: usize = 1000;

/// What mappings are measured with.
struct Stream {
    name: String,
    space: Space,
    /// Extents that get physical units, or none.
    writes: Vec<(Extent, Option<u32>)>,
    look_ups: Vec<Extent>,
}

impl Stream {
    fn new(name: String, logical: u64) -> Self {
        let physical = (2 * logical).clamp(PHYSICAL, u64::from(u32::MAX) - 1);
        let space = Space { logical: logical as u32, physical: physical as u32 };
        Stream { name, space, writes: Vec::new(), look_ups: Vec::new() }
    }

    /// Fills a stream; physical units are given out in write order.
    fn fill(mut self, actions: impl Iterator<Item = (Kind, Extent)>) -> Self {
        let mut next = 0;
        for (kind, extent) in actions {
            match kind {
                Kind::Write => {
                    next = if self.space.physical - next < extent.length { 0 } else { next };
                    self.writes.push((extent, Some(next)));
                    next += extent.length;
                }
                Kind::Trim => self.writes.push((extent, None)),
                Kind::Read => self.look_ups.push(extent),
                Kind::Flush => {}
            }
        }
        if self.look_ups.is_empty() {
            self.look_ups = self.writes.iter().map(|&(extent, _)| extent).collect();
        }
        self
    }

    /// The stream of requests in a space of so many bytes.
    fn of_requests(
        name: &str,
        bytes: u64,
        unit: Unit,
        requests: impl Iterator<Item = Request>,
    ) -> Self {
        let unit_name = if unit == Unit::PAGE { "pages" } else { "sectors" };
        let stream = Self::new(format!("{name}, {unit_name}"), unit.count(bytes).max(1));
        let space = stream.space;
        stream.fill(requests.filter_map(|request| {
            let Request { kind, start, bytes, .. } = request;
            let extent = match kind {
                Kind::Trim => unit.inside(start, bytes),
                _ => unit.covering(start, bytes),
            };
            Some((kind, extent.filter(|&extent| space.admit(extent).is_ok())?))
        }))
    }
}

/// The streams that are made here.
fn made() -> Vec<Stream> {
    let mut numbers = Numbers(1);
    let random = (0..9 << 17).map(|_| (Kind::Write, Extent::new(numbers.below(1 << 17), 1)));
    let mut streams = vec![Stream::new("random 4 KB, pages".into(), 1 << 17).fill(random)];
    for (key, space_gib) in
        [("spew", 16), ("spew", 1024), ("finance", 0), ("homes", 0), ("wdev", 0), ("wsf", 0)]
    {
        let choice = Choice {
            seed: 1,
            requests: Some(if space_gib > 0 { 50_000 } else { SYNTHETIC }),
            space_gib: (space_gib > 0).then_some(space_gib),
        };
        let trace = by_key(key).and_then(|recipe| Synthetic::new(recipe, choice).ok());
        let Some(trace) = trace else { continue };
        let name = if space_gib > 0 { format!("{key} {space_gib} GB") } else { key.into() };
        let bytes = trace.space_bytes();
        streams.push(Stream::of_requests(&name, bytes, Unit::SECTOR, trace));
    }
    streams
}

/// A trace as streams of pages and of sectors; what it cannot be is printed.
fn recorded(path: &Path, format: Option<&str>) -> Vec<Stream> {
    let choices = Choices { format: format.map(String::from), ..Choices::default() };
    let mut requests = Vec::new();
    let layout = BlockTrace::open(path, choices).and_then(|trace| {
        let account = trace.read(&|_| {}, &mut |request| requests.push(*request))?;
        Ok((trace.name(), Layout::of(&account)))
    });
    let (name, layout) = match layout {
        Ok(found) => found,
        Err(error) => {
            println!("{}", error.to_string().split(": choose").next().unwrap_or_default());
            return Vec::new();
        }
    };
    let placed =
        requests.iter().map(|request| Request { start: layout.place(request), ..*request });
    let fits = |unit: &Unit| unit.count(layout.bytes()) < u64::from(u32::MAX);
    let units = [Unit::PAGE, Unit::SECTOR].into_iter().filter(fits);
    units.map(|unit| Stream::of_requests(&name, layout.bytes(), unit, placed.clone())).collect()
}

/// The files of a path, and of the folders in it.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(folder) = read_dir(path) else { return vec![path.into()] };
    let mut paths: Vec<_> = folder.flatten().flat_map(|entry| files(&entry.path())).collect();
    paths.sort();
    paths
}

/// The times of one mapping, in nanoseconds a request, and what it held at the end.
#[derive(Default)]
struct Times {
    writes: Vec<f64>,
    look_ups: Vec<f64>,
    bytes: usize,
    runs: usize,
}

/// One turn: all writes and all look-ups, as often as there are too few of them.
fn turn(entry: &Entry, memory: &mut [u8], stream: &Stream, times: &mut Times) {
    let (mut writing, mut looking) = (0, 0);
    let repeats = REQUESTS.div_ceil(stream.writes.len());
    for _ in 0..repeats {
        let mut map = match (entry.build)(stream.space, memory) {
            Ok(map) => map,
            Err(refusal) => panic!("{}: {refusal}", entry.name),
        };
        let begin = nanoseconds();
        let mut units = 0;
        for &(extent, physical) in &stream.writes {
            let superseded = &mut |run: Run| units += u64::from(run.length);
            let done = match physical {
                Some(physical) => map.update(extent, physical, superseded),
                None => map.remove(extent, superseded),
            };
            assert!(done.is_ok(), "{} has too little memory", entry.name);
        }
        let middle = nanoseconds();
        let again = REQUESTS.div_ceil(repeats * stream.look_ups.len());
        for _ in 0..again {
            for &extent in &stream.look_ups {
                let _ = map.look_up(extent, &mut |piece| units += u64::from(piece.length));
            }
        }
        looking += (nanoseconds() - middle) / again as u64;
        writing += middle - begin;
        black_box(units);
        (times.bytes, times.runs) = (map.bytes().used, least_runs(&*map).0);
    }
    let each = |sum: u64, count: usize| sum as f64 / (count * repeats) as f64;
    times.writes.push(each(writing, stream.writes.len()));
    times.look_ups.push(each(looking, stream.look_ups.len()));
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(stream: &Stream, entries: [&Entry; 2], rounds: usize) {
    if stream.writes.is_empty() {
        return println!("{:40} has no write", stream.name);
    }
    let runs = 2 * stream.writes.len() + SPARE_RUNS;
    let mut memories = entries.map(|entry| vec![0; (entry.memory)(stream.space, runs)]);
    let mut times = [Times::default(), Times::default()];
    for _ in 0..rounds {
        for ((entry, memory), times) in entries.iter().zip(&mut memories).zip(&mut times) {
            turn(entry, memory, stream, times);
        }
    }
    let [a, b] = &mut times;
    let (write, than) = (median(&mut a.writes), median(&mut b.writes));
    let (look_up, look_up_than) = (median(&mut a.look_ups), median(&mut b.look_ups));
    println!(
        "{:40} {:>8} {:>8} {:>8} {:>6.2} {:>7.1} {:>7.1} {:>6.2} {:>7.1} {:>7.1} {:>6.2}",
        stream.name,
        stream.writes.len(),
        stream.look_ups.len(),
        a.runs,
        a.bytes as f64 / a.runs.max(1) as f64,
        write,
        than,
        than / write,
        look_up,
        look_up_than,
        look_up_than / look_up,
    );
}

fn main() {
    let (mut names, mut only, mut rounds) =
        (["compact", "emt-btreemap"].map(String::from), None, 15);
    let (mut format, mut paths) = (None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--map" => names[0] = value(),
            "--than" => names[1] = value(),
            "--only" => only = Some(value()),
            "--rounds" => rounds = value().parse().unwrap_or(rounds),
            "--format" => format = Some(value()),
            path => paths.push(PathBuf::from(path)),
        }
    }
    let entries = names.each_ref().map(|name| by_name(name).expect("a name of `nandina mappings`"));
    println!("{} against {}: nanoseconds of processor time, medians", names[0], names[1]);
    println!(
        "{:40} {:>8} {:>8} {:>8} {:>6} {:>7} {:>7} {:>6} {:>7} {:>7} {:>6}",
        "stream",
        "writes",
        "look-ups",
        "runs",
        "B/run",
        "write",
        "than",
        "ratio",
        "look-up",
        "than",
        "ratio"
    );
    let is_wanted = |stream: &Stream| only.as_ref().is_none_or(|only| stream.name.contains(only));
    let traces = paths.iter().flat_map(|path| files(path));
    let recorded = traces.flat_map(|path| recorded(&path, format.as_deref()));
    for stream in made().into_iter().chain(recorded).filter(is_wanted) {
        measure(&stream, entries, rounds);
    }
}
