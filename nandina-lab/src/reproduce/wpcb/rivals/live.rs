//! The life of a counted tree: keys come, are looked up and go, and every answer is checked.

use nandina_sim::Counters;

use super::super::cost::{Cost, Costs};
use super::super::device::{Event, Events};
use super::super::growth::{Grown, Growth, Nodes, Phase, Tally};
use super::super::keys::{Order, keys, looked_up};
use super::Rival;
use super::model::{Model, Work};
use super::store::cost;
use super::tree::Tree;
use crate::LabError;

/// What became of nodes so far. Nodes that are opened and those that are emptied are not counted.
fn nodes_of(tree: &Tree) -> Nodes {
    let (divided, divided_leaves) = (tree.splits(), tree.leaf_splits());
    let (joined, rotated) = (tree.joins(), tree.rotations());
    Nodes { divided, divided_leaves, joined, rotated, ..Nodes::default() }
}

/// A model, and what it did so far.
struct Life<'a> {
    rival: Rival,
    model: Box<dyn Model>,
    height: u8,
    tally: Tally,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl Life<'_> {
    /// Does one operation. Returns what it did to raw flash, its reads included.
    fn step(&mut self, work: Work, key: u32, events: &mut Events) -> Result<Counters, LabError> {
        let (was_there, read) = self.model.work(work, key, events);
        if was_there == (work == Work::Insert) {
            return Err(LabError(format!("{}: a wrong record", self.rival.key())));
        }
        if self.model.tree().is_too_high() {
            let rival = self.rival.name();
            return Err(LabError(format!("{rival}: a page of 128 entries has room for 6 levels")));
        }
        self.height = self.height.max(self.model.tree().height());
        let mut done = self.model.store().raw();
        done.reads += u64::from(read);
        self.tally.programs += done.programs;
        if work == Work::LookUp {
            self.tally.lookups += 1;
            self.tally.lookup_reads += u64::from(read);
        }
        events.push(Event::End(read));
        Ok(done)
    }

    /// Does the work with each key. With `looked_up`, a lookup of its key follows each.
    fn phase(
        &mut self,
        work: Work,
        keys: &[u32],
        looked_up: &[u32],
    ) -> Result<(Phase, Cost), LabError> {
        let (mut events, mut reads, mut each) = (Events::default(), 0, Vec::new());
        let before = nodes_of(self.model.tree());
        let mut looked_up = looked_up.iter();
        for chunk in keys.chunks(4096) {
            let mut operations = 0;
            for &key in chunk {
                let lookup = looked_up.next().map(|&key| (Work::LookUp, key));
                for (work, key) in [(work, key)].into_iter().chain(lookup) {
                    let done = self.step(work, key, &mut events)?;
                    reads += done.reads;
                    each.push(done);
                    operations += 1;
                }
            }
            let state = self.model.state();
            self.tally.in_ram = self.tally.in_ram.max(state.in_ram);
            self.tally.in_flash = self.tally.in_flash.max(state.in_flash);
            (self.progress)(operations);
        }
        let writes = events.iter().filter(|event| matches!(event, Event::Write(_))).count() as u64;
        self.tally.programs += writes;
        let after = nodes_of(self.model.tree());
        let nodes = Nodes {
            divided: after.divided - before.divided,
            divided_leaves: after.divided_leaves - before.divided_leaves,
            joined: after.joined - before.joined,
            rotated: after.rotated - before.rotated,
            ..after
        };
        Ok((Phase { events, reads, writes, nodes }, cost(&each)))
    }
}

/// Runs a rival.
pub fn live(
    rival: Rival,
    growth: &Growth,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Grown, LabError> {
    let model = rival.model(growth);
    let mut life = Life { rival, model, height: 1, tally: Tally::default(), progress };
    let (mut format, mut costs) = (Events::default(), Costs::default());
    life.model.format(&mut format);
    let order = keys(growth.records, growth.per_cent, growth.order, growth.seed);
    let looks = |order: &[u32], work| match growth.looks_up {
        true => looked_up(order, work == Work::Insert, growth.seed),
        false => Vec::new(),
    };
    let (inserts, cost) = life.phase(Work::Insert, &order, &looks(&order, Work::Insert))?;
    costs.inserts = cost;
    let (nodes, pages) = (life.model.tree().nodes(), life.model.store().pages());
    let blocks = life.model.store().blocks(growth.block_pages);
    life.tally.held = life.model.state().held;
    let (mut lookups, mut removals) = (None, None);
    if growth.then_removes {
        let order = keys(growth.records, 0, Order::Mixed, growth.seed ^ 0x5EA7);
        if !growth.looks_up {
            let (looked_up, cost) = life.phase(Work::LookUp, &order, &[])?;
            (lookups, costs.lookups) = (Some(looked_up), cost);
        }
        let (removed, cost) = life.phase(Work::Remove, &order, &looks(&order, Work::Remove))?;
        (removals, costs.removals) = (Some(removed), cost);
    }
    let (state, tree) = (life.model.state(), life.model.tree());
    let tally = Tally {
        nodes: state.nodes,
        node_pages: state.node_pages,
        splits: tree.splits(),
        merges: tree.joins() + state.logs_merged,
        ..life.tally
    };
    costs.chip_blocks = blocks;
    let block_pages = growth.block_pages;
    let most_blocks = blocks.max(life.model.store().blocks(block_pages));
    let (height, raw) = (life.height, rival.is_raw().then_some(costs));
    Ok(Grown {
        format,
        inserts,
        lookups,
        removals,
        height,
        nodes,
        pages,
        blocks,
        most_blocks,
        block_pages,
        raw,
        tally,
    })
}
