//! How a counted tree reaches flash.

use super::super::cost::{Cost, nanoseconds};
use super::super::device::Events;
use super::tree::Tree;

/// What was done to the chip beside reading nodes.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// Page reads.
    pub reads: u64,
    /// Programs, of a page or of a part of one.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
}

/// How the nodes of a tree reach flash.
pub trait Store {
    /// Reads what an operation needs of these nodes, from the root down. Returns pages.
    fn read(&mut self, nodes: &[u32]) -> u32;

    /// Writes what an operation of `tree` changed. Returns the pages that it reads for that.
    fn write(&mut self, tree: &Tree, events: &mut Events) -> u32;

    /// What was done to raw flash since the last call, if that is what is written.
    fn raw(&mut self) -> Option<Counts>;

    /// Pages of the device that the index has used.
    fn pages(&self) -> u32;

    /// Blocks with pages of the index.
    fn blocks(&self, block_pages: u32) -> u32 {
        self.pages().div_ceil(block_pages)
    }
}

/// The cost of operations on raw flash, of each the pages read for its nodes and what else it did.
pub fn cost(times: &[(u32, Option<Counts>)]) -> Cost {
    let mut cost = Cost { operations: times.len() as u64, ..Cost::default() };
    let mut each = Vec::with_capacity(times.len());
    for (reads, counts) in times {
        let Counts { reads: more, programs, erases } = counts.unwrap_or_default();
        let reads = u64::from(*reads) + more;
        cost.reads += reads;
        cost.programs += programs;
        cost.erases += erases;
        each.push(nanoseconds(reads, programs, erases));
    }
    cost.set_times(each);
    cost
}
