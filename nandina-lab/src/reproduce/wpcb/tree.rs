//! An index in RAM: the pages that it reads and writes while records come and go.
//!
//! Each lookup is checked, so a wrong index gives an error and never a figure.

use nandina::store::Visitor;
use nandina::{Index, Options, Removed, System, ram_needed};

use super::device::{Device, Event, Taken};
use super::growth::{Grown, Growth, Nodes, Phase, Tally};
use super::keys::{Order, keys, looked_up};
use crate::LabError;
use crate::systems::visit;

/// Runs the index.
pub fn grow(growth: &Growth, progress: &(dyn Fn(u64) + Sync)) -> Result<Grown, LabError> {
    let rebalances = growth.system == REBALANCING;
    let system = if rebalances { "btree" } else { growth.system };
    visit(system, Grow { growth, rebalances, progress })
        .unwrap_or_else(|| Err(LabError::no_system(growth.system)))
}

/// The B-tree of the library whose removals merge and rotate nodes.
pub const REBALANCING: &str = "btree-rebalancing";

struct Grow<'g> {
    growth: &'g Growth,
    rebalances: bool,
    progress: &'g (dyn Fn(u64) + Sync),
}

impl Visitor for Grow<'_> {
    type Output = Result<Grown, LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        self.run::<S>().map_err(|error| LabError(format!("{}: {error}", self.growth.system)))
    }
}

/// Blocks of the device for this many records, if all leaves are half full.
fn blocks_for(records: u32, block_pages: u32) -> u32 {
    records.div_ceil(60 * block_pages) * 9 / 8 + 4
}

/// Checks that a record is there.
fn look_up<S: System>(index: &mut Index<'_, &mut Device, S>, key: &[u8]) -> Result<(), String> {
    match index.get(key).map_err(|error| error.to_string())? {
        Some(value) if value == key => Ok(()),
        _ => Err("a lookup found another value than was inserted".into()),
    }
}

/// Does `operation` for each key.
///
/// With `looked_up`, a lookup of one of its keys follows each.
fn phase<S: System>(
    index: &mut Index<'_, &mut Device, S>,
    (keys, looked_up): (&[u32], &[u32]),
    progress: &(dyn Fn(u64) + Sync),
    tally: &mut Tally,
    mut operation: impl FnMut(&mut Index<'_, &mut Device, S>, &[u8]) -> Result<(), String>,
) -> Result<Phase, String> {
    let (mut reads, mut looked_up) = (0, looked_up.iter());
    for chunk in keys.chunks(4096) {
        let mut operations = chunk.len() as u64;
        for key in chunk {
            operation(index, &key.to_be_bytes())?;
            reads += u64::from(index.flash().end_operation());
            if let Some(key) = looked_up.next() {
                look_up(index, &key.to_be_bytes())?;
                let read = u64::from(index.flash().end_operation());
                reads += read;
                tally.lookups += 1;
                tally.lookup_reads += read;
                operations += 1;
            }
        }
        progress(operations);
    }
    let events = index.flash().take_events();
    let writes = events.iter().filter(|event| matches!(event, Event::Write(_))).count() as u64;
    tally.programs += writes;
    Ok(Phase { events, reads, writes, nodes: Nodes::default() })
}

/// What inserts did to nodes. Halves of a leaf have many records; an opened leaf begins with one.
///
/// A tree that grows gives its old root, which was a leaf in the first tree, another page.
fn nodes_of_inserts(taken: Taken, from: u8, to: u8) -> Nodes {
    let (new, opened) = (taken.new, taken.of_one_record);
    let divided = new - opened - u64::from(to - from);
    let divided_leaves = taken.leaves - opened - u64::from(from == 1 && to > 1);
    Nodes { divided, divided_leaves, opened, ..Nodes::default() }
}

/// What removals did to nodes. Only a rotation takes a page, and gives one up for it.
fn nodes_of_removals(taken: Taken, shrunk: u8, rebalances: bool) -> Nodes {
    let (rotated, gone) = (taken.new, taken.given_up - taken.new - u64::from(shrunk));
    let [joined, emptied] = if rebalances { [gone, 0] } else { [0, gone] };
    Nodes { joined, emptied, rotated, ..Nodes::default() }
}

impl Grow<'_> {
    fn run<S: System + 'static>(&self) -> Result<Grown, String> {
        let Growth { records, per_cent, order, seed, then_removes, block_pages, .. } = *self.growth;
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut device = Device::new(blocks_for(records, block_pages), block_pages);
        let options = Options { rebalances: self.rebalances, ..Options::new(4, 4) };
        let mut ram = vec![0; ram_needed::<S>(&nandina::flash::Flash::geometry(&device), &options)];
        let mut index =
            Index::<_, S>::format(&mut device, &options, &mut ram).map_err(|error| text(&error))?;
        let format = index.flash().take_events();
        index.flash().end_operation();
        index.flash().take_events();
        let mut tally = Tally::default();
        let order = keys(records, per_cent, order, seed);
        let looks = |order: &[u32], inserts| match self.growth.looks_up {
            true => looked_up(order, inserts, seed),
            false => Vec::new(),
        };
        let looked_up = looks(&order, true);
        let work = (&order[..], &looked_up[..]);
        let (before, low) = (index.flash().taken(), index.statistics().height);
        let mut inserts = phase(&mut index, work, self.progress, &mut tally, |index, key| {
            index.insert(key, key).map(drop).map_err(|error| text(&error))
        })?;
        let nandina::Statistics { height, valid_pages: nodes, .. } = index.statistics();
        inserts.nodes = nodes_of_inserts(index.flash().taken() - before, low, height);
        let pages = index.flash().pages();
        let blocks = pages.div_ceil(block_pages);
        (tally.held, tally.nodes, tally.node_pages) = (pages, u64::from(nodes), u64::from(pages));
        let (mut lookups, mut removals) = (None, None);
        if then_removes {
            let order = keys(records, 0, Order::Mixed, seed ^ 0x5EA7);
            if !self.growth.looks_up {
                let work = (&order[..], &[][..]);
                let looked_up = phase(&mut index, work, self.progress, &mut tally, look_up)?;
                lookups = Some(looked_up);
            }
            let looked_up = looks(&order, false);
            let work = (&order[..], &looked_up[..]);
            let before = index.flash().taken();
            let mut removed = phase(&mut index, work, self.progress, &mut tally, |index, key| {
                match index.remove(key).map_err(|error| text(&error))? {
                    Removed::Found => Ok(()),
                    _ => Err("a record was gone before its removal".into()),
                }
            })?;
            let shrunk = height - index.statistics().height;
            let taken = index.flash().taken() - before;
            removed.nodes = nodes_of_removals(taken, shrunk, self.rebalances);
            // An empty leaf that goes leaves its parent to be written; a join would write more.
            tally.merges = removed.large().0;
            removals = Some(removed);
        }
        // A rotation takes a new page for a moment; other removals take none.
        let (most_blocks, raw) = (index.flash().pages().div_ceil(block_pages), None);
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
}

#[cfg(test)]
mod tests {
    use super::super::rivals;
    use super::*;

    #[test]
    fn the_counted_tree_has_the_nodes_of_the_system() {
        for per_cent in [0, 50, 100] {
            let growth = |system| Growth {
                system,
                records: 60_000,
                per_cent,
                order: Order::Mixed,
                then_removes: false,
                looks_up: false,
                block_pages: 64,
                seed: 1,
            };
            let system = grow(&growth("wpcb"), &|_| {}).unwrap();
            let counted = rivals::grow(&growth("wpcb-tree"), &|_| {}).unwrap().unwrap();
            assert_eq!((counted.nodes, counted.height), (system.nodes, system.height));
            // With ascending keys, only the root is divided: every other node was opened.
            assert_eq!(counted.tally.splits < 10, per_cent == 100, "{}", counted.tally.splits);
        }
    }

    #[test]
    fn a_leaf_has_room_for_128_entries() {
        let nodes = |records| {
            let order = Order::Mixed;
            let growth = Growth {
                system: "btree",
                records,
                per_cent: 100,
                order,
                then_removes: false,
                looks_up: false,
                block_pages: 64,
                seed: 1,
            };
            let grown = grow(&growth, &|_| {}).unwrap();
            (grown.height, grown.nodes)
        };
        assert_eq!(nodes(128), (1, 1));
        assert_eq!(nodes(129), (2, 3));
    }
}
