//! The valid pages of a block, where only their number is known.
//!
//! With [`LivenessTracking::Searched`](crate::LivenessTracking), each page of a block is searched
//! for from the root. It is valid if the path of its lowest node's first key ends at it, or passes
//! a parent that refers to a node by its number (VMTree paper, section 4.4). Nothing is written.

use super::Placement;
use super::TreeIndex;
use super::path::Path;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Whether the tree leads to `page`, or its number is a logical address.
    #[inline(never)]
    pub(super) fn is_reached(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        // Garbage may be anything, even an erased or a torn page.
        match self.find_by_first_key(page) {
            Ok(name) => Ok(name == page.0 || self.space.current_page(name) == page.0),
            Err(Fault::Corrupt { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// The pointer on the path of the first key of `page`, at the level of its node.
    ///
    /// The node is the lowest one of the page.
    fn find_by_first_key(&mut self, page: PageNumber) -> Result<u32, Fault<F::Error>> {
        let level = self.keep_first_key(page)?;
        let mut path = Path::new();
        self.with_separator(|tree, keys| tree.descend(&mut path, keys.high(), level, false))?;
        Ok(path.page(level))
    }

    /// Whether a parent refers by `name` to the node in the first page buffer.
    ///
    /// The node is of `level`, and the parent is the one to which its first key leads. The content
    /// of the page buffers is lost.
    pub(crate) fn is_pointed_to(&mut self, level: u8, name: u32) -> Result<bool, Fault<F::Error>> {
        let mut path = Path::new();
        let has_key = self.with_separator(|tree, keys| {
            match tree.node(0, level) {
                Ok(node) if node.count() > 0 => keys.set(node.key(0), node.key(0)),
                _ => return Ok(false),
            }
            tree.descend(&mut path, keys.high(), level + 1, false).map(|()| true)
        })?;
        if !has_key {
            return Ok(false);
        }
        let node = self.node(path.frame(), level + 1)?;
        Ok(node.pointer(path.slot(level + 1)) == name)
    }
}
