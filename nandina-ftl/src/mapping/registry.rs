//! The list of mappings, which programs, tests and reports walk.
//!
//! This is the only file that names every mapping. The list needs the feature `std`, because it
//! also holds mappings over containers that allocate.

use std::boxed::Box;

use super::emt::{Arena, Emt, Rangemap, Runs};
use super::{Compact, Mapping, Page, Page2, Refusal, Space};

/// Makes a mapping of a space in the given memory.
///
/// Containers that allocate by themselves take only the length of the memory, as a limit.
pub type Build = for<'m> fn(Space, &'m mut [u8]) -> Result<Box<dyn Mapping + 'm>, Refusal>;

/// A mapping of the list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// By which users choose it.
    pub name: &'static str,
    /// What it is, in a line.
    pub line: &'static str,
    /// Where the paper has it.
    pub section: &'static str,
    /// Bytes with which the given number of runs fit, if no change is larger than a few runs.
    pub memory: fn(Space, usize) -> usize,
    /// Makes it.
    pub build: Build,
}

/// Every mapping, in the order of the paper.
pub const MAPPINGS: &[Entry] = &[
    Entry {
        name: "page",
        line: "a flat table, 4 bytes a unit of the whole space",
        section: "1, 6.3 (PMT)",
        memory: |space, _| Page::bytes_needed(space),
        build: |space, memory| Ok(Box::new(Page::new(space, memory)?)),
    },
    Entry {
        name: "page-2",
        line: "a table of two levels, leaves of 1,024 units made at the first write",
        section: "none: the fair opponent of 6.3",
        memory: |space, _| Page2::bytes_needed(space),
        build: |space, memory| Ok(Box::new(Page2::new(space, memory)?)),
    },
    Entry {
        name: "emt",
        line: "extents in a balanced tree in an arena, 24 bytes an extent",
        section: "2.3, 4, Lemma 5.7",
        memory: |_, runs| runs * Arena::NODE,
        build: |space, memory| Ok(Box::new(Emt::new(space, Arena::new(memory)))),
    },
    Entry {
        name: "emt-btreemap",
        line: "extents in the standard library's B-tree; bytes are a lower bound",
        section: "2.3, 4",
        memory: |_, runs| runs * Runs::ENTRY,
        build: |space, memory| Ok(Box::new(Emt::new(space, Runs::new(memory.len())))),
    },
    Entry {
        name: "emt-rangemap",
        line: "extents in the crate rangemap, which joins them; bytes are a lower bound",
        section: "2.3, 4",
        memory: |_, runs| runs * Runs::ENTRY,
        build: |space, memory| Ok(Box::new(Rangemap::new(space, memory.len()))),
    },
    Entry {
        name: "compact",
        line: "runs in packed leaves of variable span, changed in place",
        section: "none: ours",
        memory: Compact::bytes_for,
        build: |space, memory| Ok(Box::new(Compact::new(space, memory)?)),
    },
];

/// The entry of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    MAPPINGS.iter().find(|entry| entry.name == name)
}
