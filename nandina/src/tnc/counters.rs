//! Counts of nodes: written, loaded, and those of all paths.
//!
//! They are kept only with the feature `node-counters`. Without it they take no byte of RAM, and
//! counting is no code.

use super::TncIndex;
use crate::engine::NodeCounters;
use crate::flash::Flash;

/// The counts of an index since it was opened; without the feature no counts.
#[derive(Default)]
pub struct Counters {
    #[cfg(feature = "node-counters")]
    counts: NodeCounters,
}

// Firmware pays for no count that it does not use.
const _: () = assert!(cfg!(feature = "node-counters") || size_of::<Counters>() == 0);

/// Height and nodes of a tree.
pub type Size = (u8, u32);

#[cfg(feature = "node-counters")]
impl Counters {
    /// The counts. What is now, `nodes` and `dirty`, is zero in them.
    pub const fn counts(&self) -> Option<NodeCounters> {
        Some(self.counts)
    }

    fn add(&mut self, count: impl FnOnce(&mut NodeCounters)) {
        count(&mut self.counts);
    }
}

#[cfg(not(feature = "node-counters"))]
impl Counters {
    /// Nothing was counted.
    pub const fn counts(&self) -> Option<NodeCounters> {
        None
    }

    #[inline(always)]
    fn add(&mut self, _: impl FnOnce(&mut NodeCounters)) {}
}

impl Counters {
    /// Counts a node that was written.
    #[inline]
    pub fn count_written(&mut self) {
        self.add(|counts| counts.nodes_written += 1);
    }

    /// Counts a node that was read from flash.
    #[inline]
    pub fn count_loaded(&mut self) {
        self.add(|counts| counts.loaded += 1);
    }

    /// There are this many nodes in RAM.
    #[inline]
    pub fn note_nodes(&mut self, nodes: u16) {
        self.add(|counts| counts.most_nodes = counts.most_nodes.max(nodes.into()));
    }

    /// This many nodes in RAM are dirty.
    #[inline]
    pub fn note_dirty(&mut self, dirty: u16) {
        self.add(|counts| counts.most_dirty = counts.most_dirty.max(dirty.into()));
    }

    /// Counts a commit.
    #[inline]
    pub fn count_commit(&mut self) {
        self.add(|counts| counts.commits += 1);
    }

    /// Counts a shrink.
    #[inline]
    pub fn count_shrink(&mut self) {
        self.add(|counts| counts.shrinks += 1);
    }

    /// Counts a change that a mount made again.
    #[inline]
    pub fn count_replayed(&mut self) {
        self.add(|counts| counts.replayed += 1);
    }

    /// Counts the nodes that a wandering tree would have written for a change.
    ///
    /// They are the nodes of the path, and those that the change added beside it.
    #[inline]
    fn count_path(&mut self, before: Size, after: Size) {
        self.add(|counts| {
            let added = after.1.saturating_sub(before.1);
            counts.wandering += u64::from(before.0.min(after.0)) + u64::from(added);
        });
    }
}

impl<F: Flash> TncIndex<'_, F> {
    /// Height and nodes of the tree.
    pub(super) const fn tree_size(&self) -> Size {
        (self.tree.height(), self.tree.leaves().saturating_add(self.tree.inner_nodes()))
    }

    /// Counts a change that was made in a tree of the size `before`.
    #[inline]
    pub(super) fn count_change(&mut self, before: Size) {
        let after = self.tree_size();
        self.arena.counters.count_path(before, after);
    }
}
