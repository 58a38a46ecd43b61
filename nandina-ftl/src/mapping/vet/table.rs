//! What a virtual trie requires of a hash table (§2.2.1 of the paper).
//!
//! A table knows keys as numbers above 0 and nothing of prefixes.

use crate::mapping::{Broken, Bytes, Refusal};

/// A node of the trie, as a table stores it under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Units of a leaf; 0 says that the node is internal.
    pub length: u32,
    /// Of a leaf where it is stored, of an internal node how many leaves need it.
    pub word: u32,
}

/// A hash table of nodes.
pub trait Table {
    /// The node under `key`.
    fn get(&self, key: u32) -> Option<Node>;

    /// Stores a node under `key`, in place of another one.
    ///
    /// There is room: the caller has asked [`Self::room`].
    fn put(&mut self, key: u32, node: Node);

    /// Drops the node under `key`, if there is one.
    fn remove(&mut self, key: u32);

    /// Refuses with [`Refusal::Full`] if `more` further nodes do not fit.
    fn room(&self, more: usize) -> Result<(), Refusal>;

    /// How many nodes there are.
    fn entries(&self) -> usize;

    /// Memory of the table.
    fn bytes(&self) -> Bytes;

    /// Entries that were read or written, or calls where the table does not tell.
    fn probes(&self) -> u64;

    /// Passes every key and node, in any order.
    fn each(&self, visit: &mut dyn FnMut(u32, Node));

    /// Checks the table's own invariants.
    fn check(&self) -> Result<(), Broken>;
}
