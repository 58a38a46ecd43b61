//! Which pages are valid: a walk of the tree by a mount.
//!
//! Nothing is written.

use super::Index;
use super::Placement;
use super::walk::Walk;
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::{PageFault, SAME_PAGE};

impl<F: Flash, S: Placement> Index<'_, F, S> {
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
        Ok(self.corrupt_at(self.root, Damage::NoRoot))
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
        self.inner_nodes += u32::from(level > 1);
        Ok(())
    }

    /// Marks every page that is `new` and holds a reachable node.
    ///
    /// An older page leads only to pages that are older, and marked already.
    pub(crate) fn find_valid_pages(
        &mut self,
        new: impl Fn(u32) -> bool,
    ) -> Result<(), Fault<F::Error>> {
        self.walk(1, true, &new)
    }

    /// Marks every pointer to a node of the level `bottom`.
    pub(crate) fn mark_pointers(&mut self, bottom: u8) -> Result<(), Fault<F::Error>> {
        self.walk(bottom, false, &|_| true)
    }

    /// Walks the nodes above the level `bottom`.
    ///
    /// Marks every page that is `new` and holds a reachable node from there up. If not `all`, marks
    /// only the pointers to that level, as logical addresses.
    #[inline(never)]
    fn walk(
        &mut self,
        bottom: u8,
        all: bool,
        new: &dyn Fn(u32) -> bool,
    ) -> Result<(), Fault<F::Error>> {
        let pages = self.space.log.geometry().pages();
        let mut walk = Walk::new(self.root, self.height, pages, bottom);
        while !walk.is_over() {
            let frame = self.read_on(&mut walk)?;
            if walk.is_new() && all {
                self.claim_node(walk.page(), walk.level(), frame)?;
            }
            let Some(child) = self.next_child(&mut walk, frame)? else { continue };
            if new(child) && walk.level() > bottom + 1 {
                walk.enter(child);
                continue;
            }
            // A leaf is the lowest node of its page, so it need not be read.
            if new(child) && all {
                self.claim(child)?;
            } else if new(child) {
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
        self.inner_nodes = 0;
        let pages = self.space.log.geometry().pages();
        let mut walk = Walk::new(self.root, self.height, pages, 1);
        while !walk.is_over() {
            let frame = match self.read_on(&mut walk) {
                // An unreadable leaf is reported on access; the rest of the tree stays reachable.
                Err(Fault::Corrupt { .. }) if walk.level() == 1 && self.height > 1 => {
                    self.unexplained_pages += 1;
                    walk.leave();
                    continue;
                }
                frame => frame?,
            };
            if walk.level() == 1 {
                self.records += walk.path.count(1) as u32;
            } else if walk.is_new() {
                self.inner_nodes += 1;
            }
            let Some(child) = self.next_child(&mut walk, frame)? else { continue };
            claim(self, child, walk.level() - 1)?;
            walk.enter(child);
        }
        self.walked(&walk)
    }
}
