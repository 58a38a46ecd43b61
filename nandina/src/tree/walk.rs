//! A walk of a tree, depth first and without recursion.
//!
//! Every node comes before its children, and the children in the order of their keys. The caller
//! decides what is done at a node, and which of its children are visited.
//!
//! A node is read when the walk reaches it, and again each time the walk comes back from a child;
//! that costs no read while its page is in a page buffer.

use super::Placement;
use super::TreeIndex;
use super::path::Path;
use crate::error::{Damage, Fault};
use crate::flash::Flash;

/// The top node of a tree, or of a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Top {
    /// Its page, or its logical address.
    pub page: u32,
    pub level: u8,
}

/// The position of a walk: at a node, and before which of its children.
pub struct Walk {
    pub path: Path,
    level: u8,
    height: u8,
    bottom: u8,
    /// Number of nodes that may still be reached.
    nodes_left: u32,
}

/// The level of a walk that has reached too many nodes.
const ENDLESS: u8 = u8::MAX;

impl Walk {
    /// A walk from the top of a tree down to the level `bottom`.
    ///
    /// The tree lies in at most `pages` pages. A page holds at most one node of each level. On a
    /// damaged medium, where two nodes lead to one, there may be more paths than time: the walk
    /// ends, and is [endless](Self::is_endless), when it has reached more nodes than the pages can
    /// hold.
    pub const fn new(top: Top, pages: u32, bottom: u8) -> Self {
        let mut path = Path::new();
        path.set_page(top.level, top.page);
        Self {
            path,
            level: top.level,
            height: top.level,
            bottom,
            nodes_left: pages.saturating_mul(top.level as u32),
        }
    }

    /// Whether the walk is over.
    pub const fn is_over(&self) -> bool {
        self.level > self.height
    }

    /// Whether it is over because it reached more nodes than the pages can hold.
    pub const fn is_endless(&self) -> bool {
        self.level == ENDLESS
    }

    /// The level of the node.
    pub const fn level(&self) -> u8 {
        self.level
    }

    /// The page of the node.
    pub const fn page(&self) -> u32 {
        self.path.page(self.level)
    }

    /// The slot of the next child.
    pub const fn slot(&self) -> usize {
        self.path.slot(self.level)
    }

    /// Whether the walk has just reached the node.
    pub const fn is_new(&self) -> bool {
        self.slot() == 0
    }

    /// Descends to the next child, the node on `page`.
    pub const fn enter(&mut self, page: u32) {
        let Some(left) = self.nodes_left.checked_sub(1) else {
            self.level = ENDLESS;
            return;
        };
        self.nodes_left = left;
        self.level -= 1;
        self.path.set_page(self.level, page);
        self.path.set_slot(self.level, 0);
    }

    /// Skips the next child.
    pub const fn pass(&mut self) {
        self.path.set_slot(self.level, self.slot() + 1);
    }

    /// Returns to the parent, before the child after this node.
    ///
    /// From the root the walk is over.
    pub const fn leave(&mut self) {
        self.level += 1;
        if !self.is_over() {
            self.pass();
        }
    }
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Reads the current node of `walk` into a page buffer.
    pub(super) fn read_on(&mut self, walk: &mut Walk) -> Result<usize, Fault<F::Error>> {
        self.visit(&mut walk.path, walk.level)
    }

    /// The page of the next child of the current node, which is in `frame`.
    ///
    /// If the walk descends no deeper, or there are no more children, it leaves the node and
    /// returns `None`.
    pub(super) fn next_child(
        &self,
        walk: &mut Walk,
        frame: usize,
    ) -> Result<Option<u32>, Fault<F::Error>> {
        if walk.level == walk.bottom || walk.slot() >= walk.path.count(walk.level) {
            walk.leave();
            return Ok(None);
        }
        self.child(walk.page(), frame, walk.level, walk.slot()).map(Some)
    }

    /// Checks that a walk that is over visited the whole tree.
    pub(crate) fn walked(&self, walk: &Walk) -> Result<(), Fault<F::Error>> {
        if walk.is_endless() {
            return Err(self.corrupt_at(self.state.root(), Damage::ReferredTwice));
        }
        Ok(())
    }
}
