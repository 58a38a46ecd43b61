//! The list of mappings, which programs, tests, reports and firmware walk.
//!
//! This is the only file that names every mapping. Without the feature `std` the list has those
//! that take all their memory from the caller.

#[cfg(feature = "std")]
use std::boxed::Box;

#[cfg(feature = "std")]
use super::demand::{Demand, HeapPages};
use super::emt::{Arena, Emt};
#[cfg(feature = "std")]
use super::emt::{Rangemap, Runs, YFast};
#[cfg(feature = "std")]
use super::learned::HeapSpare;
use super::learned::{Learned, NoSpare};
#[cfg(feature = "std")]
use super::vet::Brown;
use super::vet::{Chained, Cuckoo, Inline, Insertion, Pointed, Table, Vet};
use super::{Compact, Mapping, Page, Page2, Refusal, Space};

/// Makes a mapping of a space in the given memory.
///
/// Containers that allocate by themselves take only the length of the memory, as a limit.
#[cfg(feature = "std")]
pub type Build = for<'m> fn(Space, &'m mut [u8]) -> Result<Box<dyn Mapping + 'm>, Refusal>;

/// Makes a mapping of a space in the given memory, and lends it to some work.
pub type Lend = fn(Space, &mut [u8], &mut dyn FnMut(&mut dyn Mapping)) -> Result<(), Refusal>;

/// A mapping of the list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// By which users choose it.
    pub name: &'static str,
    /// What it is, in a line.
    pub line: &'static str,
    /// Where the paper has it.
    pub section: &'static str,
    /// Whether it allocates on the heap, so that firmware without one cannot use it.
    pub needs_heap: bool,
    /// Bytes with which the given number of runs fit.
    pub memory: fn(Space, usize) -> usize,
    /// Makes it on the heap.
    #[cfg(feature = "std")]
    pub build: Build,
    /// Makes it on the stack.
    pub lend: Lend,
}

/// An entry, whose mapping one expression makes.
macro_rules! entry {
    {
        name: $name:literal,
        line: $line:literal,
        section: $section:literal,
        needs_heap: $needs_heap:literal,
        memory: $memory:expr,
        make: |$space:ident, $bytes:ident| $make:expr,
    } => {
        Entry {
            name: $name,
            line: $line,
            section: $section,
            needs_heap: $needs_heap,
            memory: $memory,
            #[cfg(feature = "std")]
            build: |$space, $bytes| Ok(Box::new($make?)),
            lend: |$space, $bytes, work| {
                work(&mut $make?);
                Ok(())
            },
        }
    };
}

/// Every mapping, in the order of the paper.
pub const MAPPINGS: &[Entry] = &[
    entry! {
        name: "page",
        line: "a flat table, 4 bytes a unit of the whole space",
        section: "1, 6.3 (PMT)",
        needs_heap: false,
        memory: |space, _| Page::bytes_needed(space),
        make: |space, memory| Page::new(space, memory),
    },
    entry! {
        name: "page-2",
        line: "a table of two levels, leaves of 1,024 units made at the first write",
        section: "none: the fair opponent of 6.3",
        needs_heap: false,
        memory: |space, _| Page2::bytes_needed(space),
        make: |space, memory| Page2::new(space, memory),
    },
    entry! {
        name: "vet",
        line: "canonical extents, binary insertion, no pointers, a table with chains",
        section: "2.2, 3.3, 6.2.1 (BIS, PF-VET, myhash)",
        needs_heap: false,
        memory: |space, runs| nodes(space, runs, 40) * Chained::<false>::NODE,
        make: |space, memory| vet(space, Insertion::Binary, Chained::<false>::new(memory)),
    },
    entry! {
        name: "vet-lis",
        line: "the same with linear insertion",
        section: "2.2, 3.1 (LIS, PF-VET, myhash)",
        needs_heap: false,
        memory: |space, runs| nodes(space, runs, 80) * Chained::<false>::NODE,
        make: |space, memory| vet(space, Insertion::Linear, Chained::<false>::new(memory)),
    },
    entry! {
        name: "vet-pointers",
        line: "the same with binary insertion, and leaves that point to extents",
        section: "6.2.1 (BIS, PD-VET, myhash)",
        needs_heap: false,
        memory: |space, runs| pointed_bytes(space, runs, 40),
        make: |space, memory| pointed(space, Insertion::Binary, 40, memory),
    },
    entry! {
        name: "vet-lis-pointers",
        line: "the same with linear insertion, and leaves that point to extents",
        section: "6.2.1 (LIS, PD-VET, myhash)",
        needs_heap: false,
        memory: |space, runs| pointed_bytes(space, runs, 80),
        make: |space, memory| pointed(space, Insertion::Linear, 80, memory),
    },
    entry! {
        name: "vet-cuckoo",
        line: "as vet, in a cuckoo hash table",
        section: "6.2.1, Table 4 (cuckoo-hash)",
        needs_heap: false,
        memory: |space, runs| {
            let buckets = (nodes(space, runs, 40) / 3).next_power_of_two();
            Cuckoo::STASH_BYTES + buckets * Cuckoo::BUCKET
        },
        make: |space, memory| vet(space, Insertion::Binary, Cuckoo::new(memory)?),
    },
    entry! {
        name: "vet-intrusive",
        line: "as vet, in a table whose nodes carry handles",
        section: "6.2.1, Table 4 (uthash)",
        needs_heap: false,
        memory: |space, runs| nodes(space, runs, 40) * Chained::<true>::NODE,
        make: |space, memory| vet(space, Insertion::Binary, Chained::<true>::new(memory)),
    },
    #[cfg(feature = "std")]
    entry! {
        name: "vet-hashbrown",
        line: "as vet, in the crate hashbrown",
        section: "6.2.1, Table 4: not in the paper",
        needs_heap: true,
        memory: |space, runs| Brown::allocation(nodes(space, runs, 40)),
        make: |space, memory| vet(space, Insertion::Binary, Brown::new(memory.len())),
    },
    entry! {
        name: "emt",
        line: "extents in a balanced tree in an arena, 24 bytes an extent",
        section: "2.3, 4, Lemma 5.7",
        needs_heap: false,
        memory: |_, runs| runs * Arena::NODE,
        make: |space, memory| Ok::<_, Refusal>(Emt::new(space, Arena::new(memory))),
    },
    #[cfg(feature = "std")]
    entry! {
        name: "emt-btreemap",
        line: "extents in the standard library's B-tree; bytes are a lower bound",
        section: "2.3, 4",
        needs_heap: true,
        memory: |_, runs| runs * Runs::ENTRY,
        make: |space, memory| Ok::<_, Refusal>(Emt::new(space, Runs::new(memory.len()))),
    },
    #[cfg(feature = "std")]
    entry! {
        name: "emt-rangemap",
        line: "extents in the crate rangemap, which joins them; bytes are a lower bound",
        section: "2.3, 4",
        needs_heap: true,
        memory: |_, runs| runs * Runs::ENTRY,
        make: |space, memory| Ok::<_, Refusal>(Rangemap::new(space, memory.len())),
    },
    #[cfg(feature = "std")]
    entry! {
        name: "emt-yfast",
        line: "extents in a y-fast trie, which the authors did not build",
        section: "5.3, Lemma 5.6",
        needs_heap: true,
        memory: YFast::bytes_for,
        make: |space, memory| Ok::<_, Refusal>(Emt::new(space, YFast::new(space, memory.len())?)),
    },
    #[cfg(feature = "std")]
    entry! {
        name: "demand",
        line: "a page map on flash, single entries cached in a 32nd of the bytes of page",
        section: "none: DFTL, ASPLOS 2009",
        needs_heap: true,
        memory: |space, _| Demand::<HeapPages>::bytes_for(space),
        make: |space, memory| Demand::new(space, memory, HeapPages::default()),
    },
    entry! {
        name: "learned",
        line: "segments of 8 bytes that lead to 256 units at most, all of them exact",
        section: "none: LeaFTL, ASPLOS 2023, γ = 0",
        needs_heap: false,
        memory: Learned::<NoSpare>::bytes_for,
        make: |space, memory| Learned::new(space, 0, memory, NoSpare),
    },
    #[cfg(feature = "std")]
    entry! {
        name: "learned-4",
        line: "the same, and segments that are wrong by 4 units at most",
        section: "none: LeaFTL, ASPLOS 2023, γ = 4",
        needs_heap: true,
        memory: Learned::<HeapSpare>::bytes_for,
        make: |space, memory| Learned::new(space, 4, memory, HeapSpare::default()),
    },
    entry! {
        name: "compact",
        line: "runs in packed leaves of variable span, changed in place",
        section: "none: ours",
        needs_heap: false,
        memory: Compact::bytes_for,
        make: |space, memory| Compact::new(space, memory),
    },
];

/// Nodes of a trie with `runs` runs of `each` nodes, at most all prefixes.
fn nodes(space: Space, runs: usize, each: usize) -> usize {
    let prefixes = 2 * (space.logical as usize).next_power_of_two();
    // A change may need room for a few nodes more than it makes.
    (runs * each).min(prefixes) + 4 * each
}

fn vet<'m>(
    space: Space,
    insertion: Insertion,
    table: impl Table + 'm,
) -> Result<impl Mapping + 'm, Refusal> {
    Vet::new(space, insertion, table, Inline)
}

/// Bytes of a trie whose leaves point to extents: an extent for each `each` nodes.
fn pointed_bytes(space: Space, runs: usize, each: usize) -> usize {
    // In a small space there are fewer nodes for each run, at least one.
    let nodes = nodes(space, runs, each);
    nodes * Chained::<false>::NODE + runs.min(nodes) * Pointed::EXTENT
}

fn pointed(
    space: Space,
    insertion: Insertion,
    each: usize,
    memory: &mut [u8],
) -> Result<impl Mapping, Refusal> {
    // As many runs as `pointed_bytes` has given memory for: the most that fit.
    let (mut low, mut high) = (0, memory.len() / Pointed::EXTENT + 1);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if pointed_bytes(space, middle, each) <= memory.len() {
            low = middle;
        } else {
            high = middle;
        }
    }
    let extents = low.min(nodes(space, low, each)) * Pointed::EXTENT;
    let (extents, table) = memory.split_at_mut(extents);
    let table = Chained::<false>::new(table);
    Vet::new(space, insertion, table, Pointed::new(extents))
}

/// The entry of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    MAPPINGS.iter().find(|entry| entry.name == name)
}
