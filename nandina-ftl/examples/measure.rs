//! Measures every mapping on synthetic streams: bytes, work and time.
//!
//! `cargo run --release -p nandina-ftl --features std --example measure [mapping ...]`
//!
//! The streams are made here; they are no traces. Bytes are those in use, with directories,
//! slack and free lists; containers of libraries report a lower bound. `peak/page` is the most
//! that the mapping ever used, in per cent of a flat table of 4 bytes a unit. Times are those of
//! one thread and of this machine; look-ups are of the extents that were written.

#[path = "../tests/numbers/mod.rs"]
mod numbers;
#[path = "../tests/runs/mod.rs"]
mod runs;

use std::time::Instant;

use nandina_ftl::mapping::registry::Entry;
use nandina_ftl::mapping::{Extent, MAPPINGS, Mapping, Space};

use numbers::Numbers;
use runs::least_runs;

/// Physical units: 28 bits.
const PHYSICAL: u32 = (1 << 28) - 1;

struct Stream {
    name: &'static str,
    unit: &'static str,
    space: u32,
    requests: u32,
    /// Runs at the end are fewer than this.
    runs: usize,
    next: fn(&mut Numbers, u32, u32) -> Extent,
}

const STREAMS: &[Stream] = &[
    Stream {
        name: "random 4 KB over the whole space",
        unit: "page",
        space: 1 << 17,
        requests: 9 << 17,
        runs: 1 << 17,
        next: |numbers, _, space| Extent::new(numbers.below(space), 1),
    },
    Stream {
        name: "50,000 extents all over 1 TB, multiples of 8 KB up to 1 MB",
        unit: "sector",
        space: (1 << 31) - 1,
        requests: 50_000,
        runs: 100_000,
        next: |numbers, _, space| {
            let length = 16 * (1 + numbers.below(numbers.0 as u32 % 128 + 1));
            Extent::new(numbers.below((space - 2048) / 16) * 16, length)
        },
    },
    Stream {
        name: "mixed: 8 rising streams, small overwrites, a hot tenth",
        unit: "sector",
        space: 1 << 26,
        requests: 400_000,
        runs: 400_000,
        next: |numbers, turn, space| match numbers.below(10) {
            0..5 => {
                let stream = numbers.below(8) * (space / 8);
                Extent::new(stream + turn / 8 * 64 % (space / 8 - 256), 64 + 8 * numbers.below(16))
            }
            5..9 => Extent::new(numbers.below(space / 80) * 8, 8),
            _ => Extent::new(numbers.below(space / 8 - 32) * 8, 8 << numbers.below(4)),
        },
    },
    Stream {
        name: "rising: one stream of 4 to 128 KB with gaps",
        unit: "sector",
        space: 1 << 26,
        requests: 200_000,
        runs: 200_000,
        next: |numbers, turn, space| {
            Extent::new((turn * 300) % (space - 256), 8 * (1 + numbers.below(32)))
        },
    },
];

fn measure(entry: &Entry, stream: &Stream) {
    let space = Space { logical: stream.space, physical: PHYSICAL };
    let needed = (entry.memory)(space, stream.runs);
    if needed > 1 << 30 {
        println!("{:22} needs {} MiB: left out", entry.name, needed >> 20);
        return;
    }
    let mut memory = vec![0; needed];
    let mut map = match (entry.build)(space, &mut memory) {
        Ok(map) => map,
        Err(refusal) => return println!("{:22} {refusal}", entry.name),
    };
    let extents: Vec<_> = {
        let mut numbers = Numbers(1);
        (0..stream.requests).map(|turn| (stream.next)(&mut numbers, turn, stream.space)).collect()
    };
    let (mut physical, mut superseded) = (0, 0u64);
    let begin = Instant::now();
    for &extent in &extents {
        physical = if physical + extent.length > PHYSICAL { 0 } else { physical };
        if let Err(refusal) =
            map.update(extent, physical, &mut |run| superseded += u64::from(run.length))
        {
            return println!("{:22} refused: {refusal}", entry.name);
        }
        physical += extent.length;
    }
    let write = begin.elapsed().as_nanos() as f64 / extents.len() as f64;
    let written = map.work();
    let begin = Instant::now();
    let mut found = 0u64;
    for &extent in &extents {
        let _ = map.look_up(extent, &mut |piece| found += u64::from(piece.length));
    }
    let read = begin.elapsed().as_nanos() as f64 / extents.len() as f64;
    let looked_up = map.work();
    let (runs, units) = least_runs(&*map);
    let bytes = map.bytes();
    let each = |number: u64| number as f64 / extents.len() as f64;
    println!(
        "{:22} {:8} {:10} {:7.2} {:7.3} {:8.1} | {:8.2} {:8.2} {:8.0} | {:8.2} {:8.2} | {:7.0} {:7.0}",
        entry.name,
        map.entries(),
        bytes.used,
        bytes.used as f64 / runs as f64,
        bytes.used as f64 / units as f64,
        100.0 * bytes.peak as f64 / (4.0 * f64::from(stream.space)),
        each(written.probes),
        each(written.nodes),
        each(written.moved),
        each(looked_up.probes - written.probes),
        each(looked_up.nodes - written.nodes),
        write,
        read,
    );
    std::hint::black_box((superseded, found));
}

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    for stream in STREAMS {
        println!(
            "\n{}: {} writes, space of {} {}s",
            stream.name, stream.requests, stream.space, stream.unit
        );
        println!(
            "{:22} {:>8} {:>10} {:>7} {:>7} {:>8} | {:>8} {:>8} {:>8} | {:>8} {:>8} | {:>7} {:>7}",
            "mapping",
            "entries",
            "bytes",
            "/run",
            "/unit",
            "peak/pg%",
            "probes/w",
            "nodes/w",
            "moved/w",
            "probes/r",
            "nodes/r",
            "ns/w",
            "ns/r",
        );
        for entry in MAPPINGS {
            if chosen.is_empty() || chosen.iter().any(|name| name == entry.name) {
                measure(entry, stream);
            }
        }
    }
}
