//! Batches: several changes in one page of the journal.
//!
//! After a cut a page is either there or not, and so is the whole batch. No commit may come before
//! the last change of the batch is made in the nodes, since it would make a first part of the batch
//! durable. So room for all changes, on flash and in RAM, is made before the first one.

use super::TncIndex;
use super::bounds::{change_nodes, height_max};
use crate::engine::{Batches, Change, EngineFault};
use crate::error::Fault;
use crate::flash::Flash;

impl<'b, F: Flash> Batches<'b, F> for TncIndex<'b, F> {
    fn batch_max(&self) -> usize {
        // A batch may make the tree one level higher.
        let height = self.tree.height() + 1;
        let in_ram = self.means().dirty_max(height) / change_nodes(height);
        self.arena.form.entries().min(in_ram.max(1)).min(self.group.most())
    }

    fn write_batch(&mut self, changes: &[Change<'_>]) -> Result<(), EngineFault<F>> {
        self.ready()?;
        if changes.is_empty() {
            return Ok(());
        }
        let (records, splits) = self.measure(changes)?;
        let growth = self.growth(splits);
        self.make_room_for(changes.len(), growth)?;
        if !self.group.has_room_for(changes.len()) {
            self.write_group()?;
        }
        self.allow_splits(splits, growth)?;
        self.allow_records(records.saturating_sub(self.tree.records()))?;
        let waiting = self.group.len();
        let first = self.note_changes(changes, records)?;
        self.state.doubt();
        for (pointer, change) in (first..).zip(changes) {
            let before = self.tree_size();
            match *change {
                Change::Put { key, value } => self.apply_put(key, self.stored(value, pointer))?,
                Change::Remove { key } => self.apply_remove(key)?,
            };
            self.count_change(before);
        }
        self.state.trust();
        self.end_changes(waiting)
    }
}

impl<F: Flash> TncIndex<'_, F> {
    /// The number of records after a batch, and the most leaves that it splits.
    fn measure(&mut self, changes: &[Change<'_>]) -> Result<(u32, u32), Fault<F::Error>> {
        let (mut records, mut splits) = (self.tree.records(), 0);
        // Removals merge nodes, and the next record may split one that was merged.
        let merges = changes.iter().any(|change| change.value().is_none());
        for (at, change) in changes.iter().enumerate() {
            let leaf = self.descend(change.key())?;
            let node = self.arena.node(leaf);
            let before = changes[..at].iter().rev().find(|before| before.key() == change.key());
            let had_record = match before {
                Some(before) => before.value().is_some(),
                None => node.search(change.key()).is_ok(),
            };
            match change {
                Change::Put { .. } if !had_record => {
                    records = records.saturating_add(1);
                    let fits = node.count() + changes.len() <= self.arena.form.capacity(1);
                    splits += u32::from(merges || !fits);
                }
                Change::Remove { .. } if had_record => records = records.saturating_sub(1),
                _ => {}
            }
        }
        Ok((records, splits))
    }

    /// The most levels that the tree gains by these splits of leaves.
    ///
    /// Each may split every node above it.
    fn growth(&self, splits: u32) -> u8 {
        let mut children = self.arena.node(self.tree.root()).count() + splits as usize;
        let (mut growth, mut capacity) = (0, self.arena.form.capacity(self.tree.height()));
        // Keys may come in an order in which a full node keeps all its children, and each new node
        // has one child.
        while splits > 0 && children > capacity {
            children = children - capacity + 1;
            growth += 1;
            capacity = self.arena.form.capacity(2);
        }
        growth
    }

    /// Refuses these splits of leaves and of their paths if flash lacks room.
    fn allow_splits(&self, splits: u32, growth: u8) -> Result<(), Fault<F::Error>> {
        if splits == 0 {
            return Ok(());
        }
        let height = self.tree.height() + growth;
        if height > height_max(self.arena.slots()) {
            return Err(Fault::TooHigh { height: self.tree.height() });
        }
        let paths = splits * (u32::from(height) - 1) + u32::from(growth);
        let limits = self.means().limits(height, self.tree.inner_nodes() + paths);
        if self.units() + splits + paths > limits.nodes {
            return Err(self.space.log.no_room(self.means().limit_pages(&limits)));
        }
        Ok(())
    }
}
