//! Which pages are valid: a walk of the tree by a mount.
//!
//! Nothing is written.

use super::Placement;
use super::TreeIndex;
use super::walk::{Top, Walk};
use crate::blocks::Blocks;
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::{PageFault, SAME_PAGE};

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Marks the page of a node as valid, and that of its logical address.
    ///
    /// Fails if two nodes refer to a page: the number of paths, and so the length of a walk, would
    /// have no useful bound.
    fn claim(&mut self, page: u32) -> Result<(), Fault<F::Error>> {
        let place = self.space.current_page(page);
        if place != page {
            // Its number is a logical address, so the page is kept.
            self.claim_page(PageNumber(page))?;
        }
        self.claim_page(PageNumber(place))
    }

    pub(crate) fn claim_page(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        if !self.space.log.blocks.can_have(page) {
            return Err(Fault::Corrupt { page, reason: Damage::ReferredTwice });
        }
        self.space.log.blocks.set_valid(page, true);
        Ok(())
    }

    /// The fault for a chip on which no root of the index can be read.
    ///
    /// It contains the first page that cannot be read.
    ///
    /// Cost: one read for each page up to that one.
    #[inline(never)]
    pub(crate) fn no_root(&mut self) -> Result<Fault<F::Error>, Fault<F::Error>> {
        for block in self.space.log.blocks.all() {
            for place in 0..self.space.log.block_pages() {
                let page = self.space.log.page_at(block, place);
                if matches!(self.space.log.read_page(page, 0)?, Err(fault) if fault != PageFault::Erased)
                {
                    return Ok(Fault::Corrupt { page, reason: Damage::NoRoot });
                }
            }
        }
        Ok(self.corrupt_at(self.state.root(), Damage::NoRoot))
    }

    /// Marks the page of the node of `level` in `frame`, if it has no lower node.
    #[inline(never)]
    fn claim_node(&mut self, page: u32, level: u8, frame: usize) -> Result<(), Fault<F::Error>> {
        let lowest = self.space.log.lowest(frame);
        let below = level > 1 && self.node(frame, level)?.slot_of(SAME_PAGE).is_some();
        if lowest == level {
            self.claim(page)?;
        } else if lowest > level || !below {
            return Err(self.corrupt_at(page, Damage::LacksNodeOfHeader));
        }
        if level > 1 {
            self.state.add_inner_node();
        }
        Ok(())
    }

    /// Marks every page that holds a node of the tree.
    pub(crate) fn find_valid_pages(&mut self) -> Result<(), Fault<F::Error>> {
        self.walk(self.top(), 1, true, &|_, _| true)
    }

    /// Marks every page that is `new` and holds a node of the tree below `top`.
    ///
    /// An older page leads only to pages that are older, and marked already.
    #[cfg(feature = "checkpoints")]
    pub(crate) fn find_new_pages(
        &mut self,
        top: Top,
        new: impl Fn(&Blocks<'_>, u32) -> bool,
    ) -> Result<(), Fault<F::Error>> {
        self.walk(top, 1, true, &new)
    }

    /// Marks every pointer to a node of the level `bottom`.
    pub(crate) fn mark_pointers(&mut self, bottom: u8) -> Result<(), Fault<F::Error>> {
        self.walk(self.top(), bottom, false, &|_, _| true)
    }

    /// Walks the nodes from `top` to above the level `bottom`.
    ///
    /// Marks every page that is `new` and holds a reachable node from there up. If not `all`, marks
    /// only the pointers to that level, as logical addresses.
    #[inline(never)]
    fn walk(
        &mut self,
        top: Top,
        bottom: u8,
        all: bool,
        new: &dyn Fn(&Blocks<'_>, u32) -> bool,
    ) -> Result<(), Fault<F::Error>> {
        let pages = self.space.log.geometry().pages();
        let mut walk = Walk::new(top, pages, bottom);
        while !walk.is_over() {
            let frame = self.read_on(&mut walk)?;
            if walk.is_new() && all {
                self.claim_node(walk.page(), walk.level(), frame)?;
            }
            let Some(child) = self.next_child(&mut walk, frame)? else { continue };
            let is_new = new(&self.space.log.blocks, child);
            if is_new && walk.level() > bottom + 1 {
                walk.enter(child);
                continue;
            }
            // A leaf is the lowest node of its page, so it need not be read.
            if is_new && all {
                self.claim(child)?;
            } else if is_new {
                self.claim_page(PageNumber(child))?;
            }
            walk.pass();
        }
        self.walked(&walk)
    }

    /// Walks the whole tree: marks referenced pages as valid and counts the records.
    pub(crate) fn find_every_node(
        &mut self,
        claim: impl Fn(&mut Self, u32, u8) -> Result<(), Fault<F::Error>>,
    ) -> Result<(), Fault<F::Error>> {
        self.state.begin_inner_nodes(0);
        let pages = self.space.log.geometry().pages();
        let mut walk = Walk::new(self.top(), pages, 1);
        while !walk.is_over() {
            let frame = match self.read_on(&mut walk) {
                // An unreadable leaf is reported on access; the rest of the tree stays reachable.
                Err(Fault::Corrupt { .. }) if walk.level() == 1 && self.state.height() > 1 => {
                    self.state.add_unexplained(1);
                    walk.leave();
                    continue;
                }
                frame => frame?,
            };
            if walk.level() == 1 {
                self.state.add_records(walk.path.count(1) as u32);
            } else if walk.is_new() {
                self.state.add_inner_node();
            }
            let Some(child) = self.next_child(&mut walk, frame)? else { continue };
            claim(self, child, walk.level() - 1)?;
            walk.enter(child);
        }
        self.walked(&walk)
    }
}
