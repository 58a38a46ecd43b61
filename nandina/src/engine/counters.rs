//! Counts of the nodes of an index that keeps changed nodes in RAM.

/// Nodes that an index wrote and loaded, and those of all paths.
///
/// A count begins when the index is opened or formatted, so that of the mount is in it. Nodes of
/// every level count, leaves too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct NodeCounters {
    /// Nodes that a tree without nodes in RAM would have written.
    ///
    /// For each change these are the nodes of its path, from the leaf to the root, and those that
    /// it added. Changes that a mount made again do not count, nor do nodes that garbage collection
    /// moved.
    pub wandering: u64,
    /// Nodes that commits wrote, or steps ahead of them; each time counts.
    pub nodes_written: u64,
    /// Nodes that were read from flash.
    pub loaded: u64,
    /// Nodes in RAM now.
    pub nodes: u32,
    /// The most nodes in RAM.
    pub most_nodes: u32,
    /// Dirty nodes now: the next commit writes them.
    pub dirty: u32,
    /// The most dirty nodes.
    pub most_dirty: u32,
    /// Commits.
    pub commits: u64,
    /// Times that a share of the clean nodes left at once (`Options::shrink_percent`).
    pub shrinks: u64,
    /// Changes that mounts made again, those after errors of the device too.
    pub replayed: u64,
}
