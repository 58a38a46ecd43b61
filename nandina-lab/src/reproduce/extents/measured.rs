//! A synthetic trace on several mappings: bytes, exact work, and time of writes and of reads.
//!
//! Mappings take turns in batches, so that what disturbs the machine disturbs all. Of a batch the
//! reads run after the writes, for the clock is too slow to be read at each request. All mappings
//! must find and supersede the same units.

use nandina_ftl::mapping::registry::{Entry, by_name};
use nandina_ftl::mapping::{Extent, Mapping, Space};

use crate::LabError;
use crate::block_trace::Layout;
use crate::block_trace::make::Synthetic;
use crate::replay::{Action, Actions, Tally, Unit, clock, content};

/// Requests that one mapping takes before the next one does.
const BATCH: usize = 16_384;

/// What one mapping cost.
#[derive(Clone, Debug)]
pub struct Cost {
    pub mapping: &'static str,
    /// Nodes or extents at the end.
    pub entries: u64,
    /// Bytes in use at the end.
    pub used: u64,
    /// Processor time of a write and of a read, in nanoseconds.
    pub ns: [f64; 2],
    /// Table entries and tree nodes of a write and of a read.
    pub work: [f64; 2],
    /// Time of a look-up of one mapped unit, and of one in a hole, in nanoseconds.
    pub look_up_ns: [f64; 2],
}

impl Cost {
    /// Bytes in use in MiB.
    pub fn mib(&self) -> f64 {
        self.used as f64 / f64::from(1 << 20)
    }
}

/// What mappings cost on a trace.
#[derive(Clone, Debug)]
pub struct Measured {
    pub costs: Vec<Cost>,
}

impl Measured {
    /// The cost of one of its mappings.
    pub fn of(&self, mapping: &str) -> Result<&Cost, LabError> {
        let found = self.costs.iter().find(|cost| cost.mapping == mapping);
        found.ok_or_else(|| LabError(format!("{mapping} was not measured")))
    }
}

/// A mapping while it runs. Writes come first in pairs, reads second.
struct Track<'m> {
    name: &'static str,
    map: Box<dyn Mapping + 'm>,
    nanoseconds: [u64; 2],
    work: [u64; 2],
    superseded: Tally,
    found: Tally,
    refused: u64,
}

impl Track<'_> {
    fn work_now(&self) -> u64 {
        let work = self.map.work();
        work.probes + work.nodes
    }

    fn run(&mut self, writes: &[(Extent, u32)], reads: &[Extent]) {
        let begin = (clock::nanoseconds(), self.work_now());
        let Self { map, superseded, refused, .. } = self;
        for &(extent, physical) in writes {
            let done = map.update(extent, physical, &mut |run| superseded.add(run));
            *refused += u64::from(done.is_err());
        }
        let middle = (clock::nanoseconds(), self.work_now());
        let Self { map, found, refused, .. } = self;
        for &extent in reads {
            let done = map.look_up(extent, &mut |piece| found.add_piece(piece));
            *refused += u64::from(done.is_err());
        }
        let end = (clock::nanoseconds(), self.work_now());
        for (at, (from, to)) in [(begin, middle), (middle, end)].into_iter().enumerate() {
            self.nanoseconds[at] += to.0 - from.0;
            self.work[at] += to.1 - from.1;
        }
    }

    /// Nanoseconds of one of these look-ups.
    fn look_up(&mut self, extents: &[Extent]) -> f64 {
        let begin = clock::nanoseconds();
        let mut units = 0;
        for &extent in extents {
            let found = &mut |piece: nandina_ftl::mapping::Piece| units += u64::from(piece.length);
            // Every one is in the space.
            let _ = self.map.look_up(extent, found);
        }
        assert_eq!(units, extents.len() as u64, "a look-up covers its extent");
        (clock::nanoseconds() - begin) as f64 / extents.len().max(1) as f64
    }
}

/// Entries of these names.
fn entries(mappings: &[&str]) -> Result<Vec<&'static Entry>, LabError> {
    let entry = |name: &&str| by_name(name).ok_or_else(|| LabError(format!("no mapping '{name}'")));
    mappings.iter().map(entry).collect()
}

/// The actions of a trace whose unit is a sector, and its space.
pub fn actions(made: &Synthetic) -> Result<(Actions, Space), LabError> {
    let actions = Actions::new(Layout::single(made.space_bytes()), Unit::SECTOR, None)?;
    let space = actions.space();
    Ok((actions, space))
}

/// Runs a trace on mappings that get memory for twice `most` extents.
pub fn measure(
    made: Synthetic,
    mappings: &[&str],
    most: u64,
    progress: &dyn Fn(u64),
) -> Result<Measured, LabError> {
    let (mut actions, space) = actions(&made)?;
    let runs = 2 * most as usize + 1000;
    let entries = entries(mappings)?;
    let mut memories: Vec<_> =
        entries.iter().map(|entry| vec![0; (entry.memory)(space, runs)]).collect();
    let mut tracks = Vec::new();
    for (entry, memory) in entries.iter().zip(&mut memories) {
        let map = (entry.build)(space, memory);
        let map = map.map_err(|refusal| LabError(format!("{}: {refusal}", entry.name)))?;
        tracks.push(Track {
            name: entry.name,
            map,
            nanoseconds: [0; 2],
            work: [0; 2],
            superseded: Tally::default(),
            found: Tally::default(),
            refused: 0,
        });
    }
    let (mut writes, mut reads) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    let mut sums = [0u64; 2];
    let mut made = made.peekable();
    while let Some(request) = made.next() {
        match actions.of(&request).map_err(|reason| LabError(format!("a request {reason}")))? {
            Some(Action::Write(extent, physical)) => writes.push((extent, physical)),
            Some(Action::Read(extent)) => reads.push(extent),
            Some(Action::Trim(_)) | None => {}
        }
        if writes.len() + reads.len() == BATCH || made.peek().is_none() {
            for track in &mut tracks {
                track.run(&writes, &reads);
                progress((writes.len() + reads.len()) as u64);
            }
            sums = [sums[0] + writes.len() as u64, sums[1] + reads.len() as u64];
            writes.clear();
            reads.clear();
        }
    }
    check(&tracks)?;
    let (hits, holes) = look_ups(tracks.first(), space);
    let cost = |track: &mut Track<'_>| {
        let by = |of: [u64; 2]| [0, 1].map(|at| of[at] as f64 / sums[at].max(1) as f64);
        // The first round only fills the caches of the machine.
        let look_up_ns = [&hits, &holes].map(|extents| {
            track.look_up(extents);
            track.look_up(extents)
        });
        Cost {
            mapping: track.name,
            entries: track.map.entries() as u64,
            used: track.map.bytes().used as u64,
            ns: by(track.nanoseconds),
            work: by(track.work),
            look_up_ns,
        }
    };
    Ok(Measured { costs: tracks.iter_mut().map(cost).collect() })
}

/// Refuses a run in which a mapping was full, or in which two found different units.
fn check(tracks: &[Track<'_>]) -> Result<(), LabError> {
    let Some((first, others)) = tracks.split_first() else { return Ok(()) };
    for track in tracks {
        if track.refused > 0 {
            return Err(LabError(format!("{} refused {} requests", track.name, track.refused)));
        }
    }
    let held = content(&*first.map);
    for track in others {
        let same = track.found == first.found
            && track.superseded == first.superseded
            && content(&*track.map) == held;
        if !same {
            return Err(LabError(format!("{} and {} map different units", first.name, track.name)));
        }
    }
    Ok(())
}

/// Look-ups in each list, at most.
const LOOK_UPS: usize = 50_000;

/// Mapped units, and units in holes, both in an order without a pattern.
fn look_ups(track: Option<&Track<'_>>, space: Space) -> (Vec<Extent>, Vec<Extent>) {
    let (mut mapped, mut holes, mut end) = (Vec::new(), Vec::new(), 0);
    if let Some(track) = track {
        track.map.walk(&mut |run| {
            mapped.push(Extent::new(run.logical, 1));
            if run.logical > end {
                holes.push(Extent::new(end + (run.logical - end) / 2, 1));
            }
            end = run.end();
        });
    }
    if end < space.logical {
        holes.push(Extent::new(end, 1));
    }
    (some(&mapped), some(&holes))
}

/// At most [`LOOK_UPS`] of these, in an order without a pattern.
fn some(all: &[Extent]) -> Vec<Extent> {
    let length = all.len() as u64;
    // A prime that divides no length that occurs: the steps reach every element.
    let at = |number: u64| all[(number * 1_000_003 % length) as usize];
    (0..length.min(LOOK_UPS as u64)).map(at).collect()
}
