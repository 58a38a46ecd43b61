//! How a counted tree reaches flash.

use nandina_sim::Counters;

use super::super::cost::{Cost, nanoseconds};
use super::super::device::{Event, Events};
use super::tree::{Touch, Tree};

/// What Table 2 asks of a tree beside its programs and reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Changes that are in RAM alone.
    pub in_ram: u32,
    /// Changes in flash that are not yet in the page of their node.
    pub in_flash: u32,
    /// Pages that hold nodes, records or changes.
    pub held: u32,
    /// Programs of pages with nodes, so far.
    pub node_pages: u64,
    /// Nodes in these.
    pub nodes: u64,
    /// Logs that were merged with the nodes of their block, so far.
    pub logs_merged: u64,
}

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

    /// What Table 2 asks.
    ///
    /// Default: of a store with one node in each of its pages, which has no buffer.
    fn state(&self) -> State {
        State { held: self.pages(), node_pages: 1, nodes: 1, ..State::default() }
    }
}

/// How many of these pages are read: each once, and not the first.
///
/// It is that of the root, which is in a page buffer, as it is in the other systems.
pub fn beside_the_root(pages: &[u32]) -> u32 {
    (1..pages.len()).filter(|&place| !pages[..place].contains(&pages[place])).count() as u32
}

/// Each node in a logical page of its own, which an FTL replaces as a whole.
#[derive(Default)]
pub struct OwnPages {
    end: u32,
}

impl Store for OwnPages {
    fn read(&mut self, nodes: &[u32]) -> u32 {
        // The root is in a page buffer, as it is in the other systems.
        nodes.len() as u32 - 1
    }

    fn write(&mut self, tree: &Tree, events: &mut Events) -> u32 {
        for &(node, touch) in tree.touched() {
            events.push(match touch {
                Touch::Gone => Event::Trim(node),
                Touch::Entry | Touch::Moved | Touch::New { .. } => Event::Write(node),
            });
            self.end = self.end.max(node + 1);
        }
        tree.beside()
    }

    fn pages(&self) -> u32 {
        self.end
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
