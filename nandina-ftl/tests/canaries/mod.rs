//! Mappings that are broken on purpose: comparing them with a vector must find the fault.
//!
//! Each is right but for one thing, and its own check finds no fault, so that only the pieces and
//! runs that it passes reveal it.

use std::collections::BTreeMap;

use nandina_ftl::mapping::registry::Entry;
use nandina_ftl::mapping::vet::{Chained, Inline, Insertion, Node, Table, Vet};
use nandina_ftl::mapping::{
    Broken, Bytes, Extent, Mapping, Piece, Refusal, Run, Scheme, Space, Work,
};

/// The printed lines of Algorithm 4 that lose data; each is a canary by itself.
const PRINTED: &[u32] = &[3, 4, 5, 7, 8, 12];
/// Every line as it is printed, and none of them.
const ALL: u32 = u32::MAX;
const NONE: u32 = 0;

/// What the paper means by Algorithm 4. It must pass, so that its lines are what fails.
pub const AS_MEANT: Entry = algorithm_4("Algorithm 4 as meant", algorithm::<NONE>);

/// The broken mappings.
pub const CANARIES: &[Entry] = &[
    algorithm_4("Algorithm 4 as printed", algorithm::<ALL>),
    algorithm_4("line 3 of Algorithm 4", algorithm::<3>),
    algorithm_4("line 4 of Algorithm 4", algorithm::<4>),
    algorithm_4("line 5 of Algorithm 4", algorithm::<5>),
    algorithm_4("line 7 of Algorithm 4", algorithm::<7>),
    algorithm_4("line 8 of Algorithm 4", algorithm::<8>),
    algorithm_4("line 12 of Algorithm 4", algorithm::<12>),
    stale("an internal node of VET left behind, BIS", |space, memory| {
        Ok(Box::new(Stale(Vet::new(space, Insertion::Binary, Leaky::new(memory), Inline)?)))
    }),
    stale("an internal node of VET left behind, LIS", |space, memory| {
        Ok(Box::new(Stale(Vet::new(space, Insertion::Linear, Leaky::new(memory), Inline)?)))
    }),
];

type Build = for<'m> fn(Space, &'m mut [u8]) -> Result<Box<dyn Mapping + 'm>, Refusal>;

const fn algorithm_4(name: &'static str, build: Build) -> Entry {
    canary(name, "4.1, Algorithm 4", |_, runs| runs * Algorithm4::ENTRY, build)
}

const fn stale(name: &'static str, build: Build) -> Entry {
    canary(name, "3.1, 3.3", |_, runs| runs * 80 * Chained::<false>::NODE, build)
}

const fn canary(
    name: &'static str,
    section: &'static str,
    memory: fn(Space, usize) -> usize,
    build: Build,
) -> Entry {
    let lend = |_, _: &mut [u8], _: &mut dyn FnMut(&mut dyn Mapping)| {
        unreachable!("the comparison builds its mappings")
    };
    Entry { name, line: "a canary", section, needs_heap: true, memory, build, lend }
}

fn algorithm<const LINE: u32>(
    space: Space,
    memory: &mut [u8],
) -> Result<Box<dyn Mapping + '_>, Refusal> {
    let is_printed = |line: &u32| LINE == ALL || LINE == *line;
    let printed = PRINTED.iter().copied().filter(is_printed).collect();
    Ok(Box::new(Algorithm4 { space, printed, reserved: memory.len(), tree: BTreeMap::new() }))
}

/// Algorithm 4 with some of its lines as they are printed, and the others as they are meant.
struct Algorithm4 {
    space: Space,
    /// The lines that are as printed.
    printed: Vec<u32>,
    reserved: usize,
    tree: BTreeMap<u32, Run>,
}

impl Algorithm4 {
    const ENTRY: usize = 12;

    /// 1 where the line is as printed, 0 where it is as meant.
    fn off_by(&self, line: u32) -> u32 {
        self.printed.contains(&line).into()
    }

    fn predecessor(&self, start: u32) -> Option<Run> {
        self.tree.range(..=start).next_back().map(|(_, run)| *run)
    }

    /// The runs that overlap `extent`, in order.
    fn overlapping(&self, extent: Extent) -> Vec<Run> {
        let first = self.predecessor(extent.start).map_or(extent.start, |run| run.logical);
        let runs = self.tree.range(first..extent.end());
        runs.filter_map(|(_, run)| run.within(extent)).collect()
    }
}

impl Scheme for Algorithm4 {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        let mut at = extent.start;
        for run in self.overlapping(extent) {
            if at < run.logical {
                found(Piece::hole(Extent::between(at, run.logical)));
            }
            found(run.into());
            at = run.end();
        }
        if at < extent.end() {
            found(Piece::hole(Extent::between(at, extent.end())));
        }
    }

    fn room(&self, _: Extent, _: bool) -> Result<(), Refusal> {
        Ok(())
    }

    /// Algorithm 4. The ends of the paper are inclusive, `end` is not.
    ///
    /// A removal is the same, with nothing to add on line 1.
    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        // The paper passes on nothing; so that is right here.
        self.overlapping(extent).into_iter().for_each(superseded);
        let Extent { start, length } = extent;
        let end = extent.end();
        let new = physical.map(|physical| Run { logical: start, length, physical });
        let mut added = Vec::from_iter(new); // line 1
        let mut next = self.predecessor(start); // line 2
        if next.is_none() && self.off_by(3) == 0 {
            next = self.tree.range(start..end).next().map(|(_, run)| *run);
        }
        while let Some(run) = next {
            if run.logical < start && start < run.end() - self.off_by(4) {
                let length = start - run.logical + self.off_by(5);
                added.push(Run { length, ..run }); // lines 4 and 5
            }
            if run.logical < end - self.off_by(7) && end < run.end() {
                let shift = (1 - self.off_by(8)) * (end - run.logical);
                let (length, physical) = (run.end() - end, run.physical + shift);
                added.push(Run { logical: end, length, physical }); // lines 7 and 8
            }
            next = self.tree.range(run.logical + 1..).next().map(|(_, run)| *run); // line 11
            if run.within(extent).is_some() || self.off_by(12) == 1 {
                self.tree.remove(&run.logical); // line 12
            }
            if next.is_some_and(|next| end <= next.logical) {
                break; // line 13
            }
        }
        self.tree.extend(added.into_iter().map(|run| (run.logical, run))); // line 15
    }
}

impl Mapping for Algorithm4 {
    fn space(&self) -> Space {
        self.space
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        self.tree.values().copied().for_each(visit);
    }

    fn entries(&self) -> usize {
        self.tree.len()
    }

    fn bytes(&self) -> Bytes {
        let (used, reserved) = (self.entries() * Self::ENTRY, self.reserved);
        Bytes { used, reserved, peak: reserved }
    }

    fn work(&self) -> Work {
        Work::default()
    }

    fn check(&self) -> Result<(), Broken> {
        Ok(())
    }
}

/// A table in which an internal node stays when the last leaf that needs it has gone.
struct Leaky<'m>(Chained<'m, false>);

impl<'m> Leaky<'m> {
    fn new(memory: &'m mut [u8]) -> Self {
        Self(Chained::new(memory))
    }
}

impl Table for Leaky<'_> {
    fn get(&self, key: u32) -> Option<Node> {
        self.0.get(key)
    }

    fn put(&mut self, key: u32, node: Node) {
        self.0.put(key, node);
    }

    fn remove(&mut self, key: u32) {
        if self.0.get(key).is_some_and(|node| node.length > 0) {
            self.0.remove(key);
        }
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        self.0.room(more)
    }

    fn entries(&self) -> usize {
        self.0.entries()
    }

    fn bytes(&self) -> Bytes {
        self.0.bytes()
    }

    fn probes(&self) -> u64 {
        self.0.probes()
    }

    fn each(&self, visit: &mut dyn FnMut(u32, Node)) {
        self.0.each(visit);
    }

    fn check(&self) -> Result<(), Broken> {
        self.0.check()
    }
}

/// A trie in such a table, whose own check would see it at once and is left out.
struct Stale<'m>(Vet<Leaky<'m>, Inline>);

impl Scheme for Stale<'_> {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        self.0.find(extent, found);
    }

    fn room(&self, extent: Extent, adds: bool) -> Result<(), Refusal> {
        self.0.room(extent, adds)
    }

    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        self.0.replace(extent, physical, superseded);
    }
}

impl Mapping for Stale<'_> {
    fn space(&self) -> Space {
        self.0.space()
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        self.0.walk(visit);
    }

    fn entries(&self) -> usize {
        self.0.entries()
    }

    fn bytes(&self) -> Bytes {
        self.0.bytes()
    }

    fn work(&self) -> Work {
        self.0.work()
    }

    fn check(&self) -> Result<(), Broken> {
        Ok(())
    }
}
