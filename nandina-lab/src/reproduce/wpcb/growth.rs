//! What an index does, and what it did: its page writes, and the pages that it read.

use super::cost::Costs;
use super::device::{Event, Events};
use super::keys::Order;

/// What an index does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Growth {
    /// Key of the system, or of a model that is only counted.
    pub system: &'static str,
    /// Records, which are inserted one by one.
    pub records: u32,
    /// The paper's *rs* in per cent.
    pub per_cent: u32,
    /// How ascending and random keys are put together.
    pub order: Order,
    /// Whether all records are then looked up and removed, in random order.
    pub then_removes: bool,
    /// Whether a lookup of a record that is there follows each insert and removal.
    ///
    /// Then `then_removes` looks up nothing more between them.
    pub looks_up: bool,
    /// Pages of a block.
    pub block_pages: u32,
    /// Seed of the keys.
    pub seed: u64,
}

impl Growth {
    /// Operations of the index.
    pub fn operations(&self) -> u64 {
        let records = u64::from(self.records);
        match (self.then_removes, self.looks_up) {
            (false, false) => records,
            (false, true) => records * 2,
            (true, false) => records * 3,
            // The last removal leaves nothing to look up.
            (true, true) => records * 4 - 1,
        }
    }
}

/// What an index did: its page writes, and the pages that it read.
pub struct Grown {
    /// The pages of the empty index.
    pub format: Events,
    /// The inserts.
    pub inserts: Phase,
    /// Lookups of all records, if they were done.
    pub lookups: Option<Phase>,
    /// The removals of all records, if they were done.
    pub removals: Option<Phase>,
    /// The largest height of the tree.
    pub height: u8,
    /// Nodes, after the inserts.
    pub nodes: u32,
    /// Pages of the device that the index has used, after the inserts.
    pub pages: u32,
    /// Blocks of the device with pages of the index, after the inserts.
    pub blocks: u32,
    /// Blocks of the device that it needs for all that it does.
    pub most_blocks: u32,
    /// Pages of a block.
    pub block_pages: u32,
    /// The costs, if the index writes raw flash itself.
    pub raw: Option<Costs>,
    /// What Table 2 is made from.
    pub tally: Tally,
}

/// What Table 2 is made from: counts of the whole work, where nothing else is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Programs of the index and of its own buffer or log, without those of an FTL.
    pub programs: u64,
    /// Lookups.
    pub lookups: u64,
    /// Pages that they read.
    pub lookup_reads: u64,
    /// Nodes that were divided.
    pub splits: u64,
    /// Nodes that were joined, and logs that were merged with the nodes of their block.
    pub merges: u64,
    /// Nodes in the pages with nodes that were programmed.
    pub nodes: u64,
    /// Programs of such pages.
    pub node_pages: u64,
    /// The most changes that were in RAM alone.
    pub in_ram: u32,
    /// The most changes that were in flash, but not yet in the page of their node.
    pub in_flash: u32,
    /// Pages that hold the index after the inserts, its log or buffer included.
    pub held: u32,
}

impl Tally {
    /// This and other work: the sums, and the larger of what was the most.
    pub fn and(self, other: Self) -> Self {
        Self {
            programs: self.programs + other.programs,
            lookups: self.lookups + other.lookups,
            lookup_reads: self.lookup_reads + other.lookup_reads,
            splits: self.splits + other.splits,
            merges: self.merges + other.merges,
            nodes: self.nodes + other.nodes,
            node_pages: self.node_pages + other.node_pages,
            in_ram: self.in_ram.max(other.in_ram),
            in_flash: self.in_flash.max(other.in_flash),
            held: self.held + other.held,
        }
    }
}

/// What became of the nodes of a tree in a phase, each counted once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nodes {
    /// Nodes that were divided.
    pub divided: u64,
    /// Those of them that are leaves.
    pub divided_leaves: u64,
    /// Leaves that were opened beside a full one, which stayed full.
    pub opened: u64,
    /// Nodes that were joined with a neighbour.
    pub joined: u64,
    /// Nodes that got records of a neighbour, or gave it some, because one of them had too few.
    pub rotated: u64,
    /// Nodes that went because they were empty.
    pub emptied: u64,
}

/// The operations of one kind.
pub struct Phase {
    /// What they did, operation by operation.
    pub events: Events,
    /// Pages that they read.
    pub reads: u64,
    /// Pages that they wrote.
    pub writes: u64,
    /// What became of nodes.
    pub nodes: Nodes,
}

impl Phase {
    /// The page writes of each operation.
    pub fn writes_of_each(&self) -> impl Iterator<Item = u64> {
        let mut writes = 0;
        self.events.iter().filter_map(move |event| match event {
            Event::Write(_) => {
                writes += 1;
                None
            }
            Event::Trim(_) => None,
            Event::End(_) => Some(std::mem::take(&mut writes)),
        })
    }

    /// How many operations wrote more than one page, and how many pages these wrote.
    pub fn large(&self) -> (u64, u64) {
        let large = self.writes_of_each().filter(|&writes| writes > 1);
        large.fold((0, 0), |(count, sum), writes| (count + 1, sum + writes))
    }
}
