//! How a counted tree reaches flash.

use nandina_sim::Counters;

use super::super::cost::{Cost, nanoseconds};
use super::super::device::Events;
use super::tree::Tree;

/// How the nodes of a tree reach flash.
pub trait Store {
    /// Reads what an operation needs of these nodes, from the root down. Returns pages.
    fn read(&mut self, nodes: &[u32]) -> u32;

    /// Writes what an operation of `tree` changed. Returns the pages that it reads for that.
    fn write(&mut self, tree: &Tree, events: &mut Events) -> u32;

    /// What was done to raw flash since the last call, beside reading nodes.
    ///
    /// Default: nothing, because an FTL is below.
    fn raw(&mut self) -> Counters {
        Counters::default()
    }

    /// Pages of the device that the index has used.
    fn pages(&self) -> u32;

    /// Blocks with pages of the index.
    fn blocks(&self, block_pages: u32) -> u32 {
        self.pages().div_ceil(block_pages)
    }
}

/// The cost of operations on raw flash, from what each did.
pub fn cost(done: &[Counters]) -> Cost {
    let mut cost = Cost { operations: done.len() as u64, ..Cost::default() };
    for done in done {
        cost.reads += done.reads;
        cost.programs += done.programs;
        cost.erases += done.erases;
    }
    cost.set_times(done.iter().map(nanoseconds).collect());
    cost
}
