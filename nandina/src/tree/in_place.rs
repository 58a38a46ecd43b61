//! Finding the index again where nodes are replaced in place: a mount of a system with [`Description::in_place`].
//! Nothing is written.
//!
//! The root stands in the first logical page. Of each node the newer of two pages counts, which nothing else tells:
//! so every node is looked at, and the records are counted on the way.
//!
//! Cost: two reads for each node, and one more for each inner node and leaf.

use super::descend::Path;
use super::{HEIGHT_MAX, Index};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::node::PageHeader;
use crate::place::Placement;
use crate::space::ROOT_TWIN;

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// The header of the root.
    pub(super) fn root_in_place(&mut self) -> Result<Option<PageHeader>, Fault<F::Error>> {
        self.space.blocks.forget_valid();
        self.space.find_twin(ROOT_TWIN, None)
    }

    /// Finds every node.
    pub(super) fn recover_in_place(&mut self) -> Result<(), Fault<F::Error>> {
        self.unexplained_pages = 0;
        self.from_checkpoint = false;
        let root = self.root_in_place()?;
        let Some(root) = root.filter(|root| {
            root.lowest > 0 && root.lowest == root.height && root.height <= HEIGHT_MAX
        }) else {
            return Err(self.corrupt("no root is readable"));
        };
        let identity = root.identity;
        self.space.restart(identity, root.sequence, root.sequence);
        self.take_root(PageNumber(ROOT_TWIN), &PageHeader { records: 0, ..root })?;
        self.inner_nodes = 0;
        let mut path = Path::new();
        let mut level = self.height;
        path.set_page(level, self.root);
        loop {
            let frame = self.visit(&mut path, level)?;
            let (page, slot, count) = (path.page(level), path.slot(level), path.count(level));
            if slot == 0 {
                self.inner_nodes += u32::from(level > 1);
                if level == 1 {
                    self.records += count as u32;
                }
            }
            if level == 1 || slot >= count {
                if level == self.height {
                    return Ok(());
                }
                level += 1;
                path.set_slot(level, path.slot(level) + 1);
                continue;
            }
            let child = self.child(page, frame, level, slot)?;
            let corrupt = |reason| Fault::Corrupt { page: PageNumber(page), reason };
            if child >= self.space.geometry.pages() || child % 2 == 1 {
                return Err(corrupt("a pointer leads to no logical page"));
            }
            if self.space.blocks.is_valid(PageNumber(child))
                || self.space.blocks.is_valid(PageNumber(child + 1))
            {
                return Err(corrupt("two nodes refer to a page"));
            }
            let header = self.space.find_twin(child, Some(identity))?;
            if header.is_none_or(|header| header.lowest != level - 1) {
                return Err(corrupt("a node that it refers to is not readable"));
            }
            level -= 1;
            path.set_page(level, child);
            path.set_slot(level, 0);
        }
    }
}
