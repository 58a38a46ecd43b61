//! What an operation changes in the first node that it writes.
//!
//! No node is changed here.

use super::leaf_changes::Changes;
use crate::flash::BlockNumber;

/// The change of the first node.
#[derive(Clone, Copy)]
pub enum Edit<'k> {
    /// No change; the node is only written anew.
    Move,
    Insert {
        index: usize,
        key: &'k [u8],
        value: &'k [u8],
    },
    Replace {
        index: usize,
        value: &'k [u8],
    },
    Remove {
        index: usize,
    },
    /// The full node is split to make room for a later change.
    Split,
    /// The node takes in its upper neighbour.
    Merge(Upper),
    /// The node and its upper neighbour get half of the records of both.
    #[cfg(feature = "paper-modes")]
    Rotate(Rotation),
    /// All pending changes of a leaf.
    Batch(&'k Changes<'k>),
}

/// A block that is being emptied.
#[derive(Clone, Copy)]
pub struct Emptying {
    pub block: BlockNumber,
    /// Other children in the block are moved too when the path passes their parent.
    pub together: bool,
}

/// The upper one of two nodes that are merged.
#[derive(Clone, Copy)]
pub struct Upper {
    /// The parent's pointer to it.
    pub page: u32,
    /// Records that count in it.
    pub count: u16,
    /// Lowest level of the nodes in its page.
    pub lowest: u8,
}

/// How two neighbours are rotated.
#[cfg(feature = "paper-modes")]
#[derive(Clone, Copy)]
pub struct Rotation {
    /// The upper one.
    pub upper: Upper,
    /// Whether the lower one gets records of it, and does not give it some.
    pub lower_gains: bool,
}

impl Upper {
    /// The parent's pointer to the node, and whether its page becomes obsolete.
    ///
    /// The page becomes obsolete if it holds no other node that is needed.
    pub const fn page(&self, level: u8) -> (u32, bool) {
        (self.page, self.lowest == level)
    }
}
