//! The valid pages of a block, one after the other. Where only the block has a count ([`Validity`](crate::Validity)),
//! each of its pages is looked for from the root: it is valid if the way of its lowest node's first key ends at it, or
//! passes a parent that knows a node by its number (VMTree paper, section 4.4). Nothing is written.

use super::Index;
use super::descend::Path;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::place::Placement;

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// The first valid page of `block` from the one at `from` on, and its place in the block.
    ///
    /// Cost: where pages are searched for, one read for each page that is looked at, and one for each level.
    pub(super) fn next_valid(
        &mut self,
        block: BlockNumber,
        from: u32,
    ) -> Result<Option<(PageNumber, u32)>, Fault<F::Error>> {
        for place in from..self.space.geometry().pages_per_block {
            if self.space.blocks.valid_in(block) == 0 {
                break;
            }
            let page = self.space.geometry().page_in(block, place);
            if self.space.blocks.is_valid(page)
                && (!self.space.blocks.searches() || self.is_reached(page)?)
            {
                return Ok(Some((page, place)));
            }
        }
        Ok(None)
    }

    /// Whether the tree leads to `page`, or its number is a name.
    #[inline(never)]
    pub(super) fn is_reached(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        // Garbage may be anything, an erased page or a torn one too.
        match self.find_by_first_key(page) {
            Ok(name) => Ok(name == page.0 || self.space.where_is(name) == page.0),
            Err(Fault::Corrupt { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// The pointer to which the first key of the lowest node of `page` leads, on the level of that node.
    fn find_by_first_key(&mut self, page: PageNumber) -> Result<u32, Fault<F::Error>> {
        let level = self.keep_first_key(page)?;
        let mut path = Path::new();
        let keys = core::mem::take(&mut self.separator);
        let descended = self.descend(&mut path, keys.high(), level, false);
        self.separator = keys;
        descended.map(|()| path.page(level))
    }

    /// Whether `name` is the pointer, in the node above the level `level`, that the first key of the node in the first
    /// page buffer leads to. What is in the page buffers is lost.
    pub(super) fn is_pointed_to(&mut self, level: u8, name: u32) -> Result<bool, Fault<F::Error>> {
        let mut keys = core::mem::take(&mut self.separator);
        let has_key = match self.node(0, level) {
            Ok(node) if node.count() > 0 => {
                keys.set(node.key(0), node.key(0));
                true
            }
            _ => false,
        };
        let mut path = Path::new();
        let descended =
            if has_key { self.descend(&mut path, keys.high(), level + 1, false) } else { Ok(()) };
        self.separator = keys;
        descended?;
        if !has_key {
            return Ok(false);
        }
        let node = self.node(path.frame, level + 1)?;
        Ok(node.pointer(path.slot(level + 1)) == name)
    }
}
