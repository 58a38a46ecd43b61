//! What the worst costs of a rival follow from: the device, and how its tree can grow.
//!
//! Each system says in a file of its own what its calls cost at most. Nodes are divided in the
//! middle and not merged. So records that are only inserted leave no node less than half full, but
//! removals can thin a tree out: how high it is then, only the numbers of nodes bound. Nothing here
//! knows how a system writes.

use nandina::{Cost, Options};

use super::tree::Most;

/// Numbers of nodes: none is given twice.
const NUMBERS: u64 = 1 << 32;

/// A device, and the settings of an index on it.
pub struct Device<'o> {
    pub pages: u64,
    /// Bytes of a page that a system can use.
    pub area_bytes: usize,
    pub most: Most,
    pub options: &'o Options,
}

/// The most that one call costs.
///
/// `erases` are the pages that it gives up: an FTL trims them. Other devices do nothing for them.
pub struct Worst {
    /// Levels.
    pub height: u64,
    /// A lookup, or the next record of a scan.
    pub get: Cost,
    pub change: Cost,
    pub open: Cost,
}

/// The least entries of a node that is half of one; as many more divide it again.
pub const fn half(most: usize) -> u64 {
    most.div_ceil(2) as u64
}

impl Device<'_> {
    /// The most nodes of each level, leaves first, if records were only inserted.
    pub fn nodes(&self, records: u64) -> Vec<u64> {
        let (mut nodes, mut entries) = (Vec::new(), records);
        loop {
            let most = self.most.of(nodes.len() as u8 + 1);
            let is_root = entries <= most as u64;
            nodes.push(if is_root { 1 } else { entries / half(most) });
            if is_root {
                return nodes;
            }
            entries = nodes[nodes.len() - 1];
        }
    }

    /// The most levels, if the leaves never have more records than these.
    ///
    /// Before a root is divided, all nodes on a path are full, and each of their children has a
    /// record. And for each child of the root, half of a node's children were made on every level.
    pub fn height(&self, records: u64) -> u64 {
        let (mut height, mut needed, mut made) = (1, self.most.leaf as u64 + 1, 1);
        while needed <= records {
            height += 1;
            let most = self.most.of(height);
            if height > 2 {
                // The root that is divided is on the level below.
                let root = self.most.of(height - 1) as u64;
                if made * root >= NUMBERS {
                    return u64::from(height - 1);
                }
                made *= half(self.most.of(height - 1));
            }
            needed += most as u64 - 1;
        }
        height.into()
    }
}
