//! What an index does, and what it did: its page writes, and the pages that it read.

use super::cost::Costs;
use super::device::Events;
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
    /// Pages of a block.
    pub block_pages: u32,
    /// Seed of the keys.
    pub seed: u64,
}

impl Growth {
    /// Operations of the index.
    pub fn operations(&self) -> u64 {
        u64::from(self.records) * if self.then_removes { 3 } else { 1 }
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
}

/// The operations of one kind.
pub struct Phase {
    /// What they did, operation by operation.
    pub events: Events,
    /// Pages that they read.
    pub reads: u64,
    /// Pages that they wrote.
    pub writes: u64,
}
