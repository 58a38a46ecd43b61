//! The tree as it is in RAM: its root, and how much it holds.
//!
//! The nodes themselves are in `arena.rs` beside this. Nothing is read or written here.

use super::arena::NO_SLOT;

/// The root of the tree, and what is counted of it.
pub struct Tree {
    /// The slot of the root.
    root: u16,
    height: u8,
    records: u32,
    leaves: u32,
    inner_nodes: u32,
}

impl Tree {
    /// Before a mount.
    pub const UNKNOWN: Self =
        Self { root: NO_SLOT, height: 1, records: 0, leaves: 0, inner_nodes: 0 };

    /// The slot of the root.
    pub const fn root(&self) -> u16 {
        self.root
    }

    pub const fn height(&self) -> u8 {
        self.height
    }

    pub const fn records(&self) -> u32 {
        self.records
    }

    pub const fn leaves(&self) -> u32 {
        self.leaves
    }

    pub const fn inner_nodes(&self) -> u32 {
        self.inner_nodes
    }

    /// A mount takes a tree of this height, whose root is read next.
    pub const fn begin(&mut self, height: u8) {
        self.height = height;
    }

    /// The root is in this slot.
    pub const fn set_root(&mut self, slot: u16) {
        self.root = slot;
    }

    /// The tree is a single leaf.
    pub const fn become_leaf(&mut self) {
        (self.height, self.leaves, self.inner_nodes) = (1, 1, 0);
    }

    /// The tree grows by one level: the root, which is now in this slot.
    pub fn grow(&mut self, root: u16) {
        (self.root, self.height) = (root, self.height + 1);
        self.inner_nodes += 1;
    }

    /// The child in this slot becomes the root, one level lower.
    pub const fn lower(&mut self, child: u16) {
        (self.root, self.height) = (child, self.height - 1);
    }

    /// Counts no node: a mount counts all of them next.
    pub const fn forget_nodes(&mut self) {
        (self.leaves, self.inner_nodes) = (0, 0);
    }

    /// The tree has this many nodes.
    #[cfg(feature = "checkpoints")]
    pub const fn take_nodes(&mut self, leaves: u32, inner_nodes: u32) {
        (self.leaves, self.inner_nodes) = (leaves, inner_nodes);
    }

    /// Counts one node of this level more.
    pub const fn count_node(&mut self, level: u8) {
        if level == 1 {
            self.leaves += 1;
        } else {
            self.inner_nodes += 1;
        }
    }

    /// Counts one node of this level less; `None` if none was counted.
    pub fn count_node_less(&mut self, level: u8) -> Option<()> {
        let nodes = if level == 1 { &mut self.leaves } else { &mut self.inner_nodes };
        *nodes = nodes.checked_sub(1)?;
        Some(())
    }

    /// The tree has this many records.
    pub const fn take_records(&mut self, records: u32) {
        self.records = records;
    }

    /// Counts one record more.
    pub const fn count_record(&mut self) {
        self.records = self.records.saturating_add(1);
    }

    /// Counts one record less.
    pub const fn count_record_less(&mut self) {
        self.records = self.records.saturating_sub(1);
    }
}
