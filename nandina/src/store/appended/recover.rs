//! Finding the index again where records are appended to pages. Nothing is written.
//!
//! The newest root of all pages is the root. Every node is read, and the records are counted on the
//! way: no page says how many there are.
//!
//! Cost: one read for each written page and each node.

use crate::bytes::u32_at;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::gc;
use crate::node::{PageHeader, SESSION_START};
use crate::space::Appends;
use crate::store::page_commits::{Found, Unsteady};
use crate::tree::{Path, Placement, TreeIndex};

impl<F: Flash, S: Placement<Kind = Appends>> TreeIndex<'_, F, S> {
    /// Finds every node of an index whose records are appended.
    pub(super) fn recover_appended(
        &mut self,
        identity: u32,
        found: &Found,
    ) -> Result<(), Fault<F::Error>> {
        // Pages programmed since the last mount that settled everything may have been appended to.
        let settle_from = if found.start <= found.settled.sequence {
            found.start
        } else {
            self.start_before(found.settled.sequence)?
        };
        self.torn.set_settle_from(settle_from);
        let Some((page, root)) = found.root else {
            return Err(self.no_root()?);
        };
        self.take_root(page, &PageHeader { records: 0, ..root })?;
        // Pages newer than the root belong to it as well: a parent was appended a pointer to them.
        self.space.restart(identity, found.sequence, found.sequence);
        self.space.log.blocks.forget_valid();
        self.expect_before_append_to(page)?;
        self.claim_page(page)?;
        self.unexplained_pages = 0;
        self.find_every_node(|index, child, level| {
            if level > 1 {
                index.expect_before_append_to(PageNumber(child))?;
            }
            index.claim_child(PageNumber(child))
        })?;
        let unreadable = self.unexplained_pages;
        self.count_unexplained();
        self.unexplained_pages = self.unexplained_pages.max(unreadable);
        Ok(())
    }

    /// Requires that an inner node read as before a torn append.
    ///
    /// A child is remembered by its slot. With one key more or less, the children above it have
    /// other slots, and whoever reads the node twice would take one child for another. With another
    /// pointer, the child would be valid in one page and moved in another. So which pages are valid
    /// is found as the node will be written anew, and as an earlier mount may have returned it
    /// that had no room for that. At most one such append is torn.
    ///
    /// Cost: none after a clean end. Else one read, and [`LOOKS`](crate::tree::LOOKS) more if the
    /// page may be torn.
    fn expect_before_append_to(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        let is_settled = |first| first < self.torn.settle_from();
        let block = self.block_of(page.0);
        if self.ended_well() || self.space.log.first_sequence(block)?.is_none_or(is_settled) {
            return Ok(());
        }
        if let Some(Unsteady { before, other_keys }) = self.before_append(page)? {
            if other_keys {
                covered!("a torn append changes the keys of an inner node");
            }
            self.space.expect(page, before);
        }
        Ok(())
    }

    /// Counts records and valid pages anew.
    pub(super) fn count_anew(&mut self) -> Result<(), Fault<F::Error>> {
        self.records = 0;
        self.space.log.blocks.forget_valid();
        self.claim_page(PageNumber(self.root))?;
        self.find_every_node(|index, child, _| index.claim_child(PageNumber(child)))
    }

    /// Marks `page` valid, to which an inner node points.
    fn claim_child(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        // A damaged pointer may lead to a page that was erased. Who reads it reports that.
        if self.space.log.is_ahead(page) { Ok(()) } else { self.claim_page(page) }
    }

    /// Where records are appended: reserves blocks to which a parent ever pointed.
    ///
    /// The parent may or may not have received the pointer to its child's new page. Until the mount
    /// has settled, no block is opened that holds a page to which that parent ever pointed.
    pub(super) fn reserve_children(&mut self) -> Result<(), Fault<F::Error>> {
        let Some((page, _)) = self.torn.newest() else { return Ok(()) };
        let level = match self.keep_first_key(page) {
            Ok(level) if level < self.height => level,
            Ok(_) | Err(Fault::Corrupt { .. }) => return Ok(()),
            Err(fault) => return Err(fault),
        };
        let mut path = Path::new();
        let keys = core::mem::take(&mut self.separator);
        let descended = self.descend(&mut path, keys.high(), level + 1, false);
        self.separator = keys;
        match descended {
            Ok(()) => {}
            Err(Fault::Corrupt { .. }) => return Ok(()),
            Err(fault) => return Err(fault),
        }
        let parent = PageNumber(path.page(level + 1));
        if self.space.log.read_raw(parent, 0)?.is_err() {
            return Ok(());
        }
        let shape = self.level(level + 1).shape;
        let area_bytes = self.space.log.layout().area_bytes();
        for slot in 0..shape.capacity(area_bytes) {
            let at = shape.at(slot) + shape.key_bytes();
            let child = u32_at(self.space.log.frames.bytes(0), at);
            if child >= self.space.log.geometry().pages() {
                continue;
            }
            self.space.log.blocks.set_reserved(self.block_of(child), true);
            if level > 1 && self.space.log.read_raw(PageNumber(child), 0)?.is_ok() {
                // The child is an inner node with pointers of its own.
                covered!("the pointers of a child hold blocks");
                for slot in 0..shape.capacity(area_bytes) {
                    let at = shape.at(slot) + shape.key_bytes();
                    let child = u32_at(self.space.log.frames.bytes(0), at);
                    if child < self.space.log.geometry().pages() {
                        self.space.log.blocks.set_reserved(self.block_of(child), true);
                    }
                }
            }
            if level > 1 {
                let _ = self.space.log.read_raw(parent, 0)?;
            }
        }
        Ok(())
    }

    /// The newest page below the number `below` that began to write after a mount.
    ///
    /// Returns its sequence number, or 0. Cost: one read for each written page.
    pub(super) fn start_before(&mut self, below: u64) -> Result<u64, Fault<F::Error>> {
        let mut start = 0;
        for page in (0..self.space.log.geometry().pages()).map(PageNumber) {
            if let Ok(header) = self.space.log.read_raw(page, 0)?
                && header.height == 0
                && header.records == SESSION_START
                && header.sequence <= below
            {
                start = start.max(header.sequence);
            }
        }
        Ok(start)
    }

    /// Where no page can be written any more: ignores torn appends.
    ///
    /// A page with a torn append counts with the content that it had before.
    pub(super) fn expect_before_append(&mut self) -> Result<(), Fault<F::Error>> {
        for block in self.space.log.blocks.all() {
            if self
                .space
                .log
                .first_sequence(block)?
                .is_none_or(|first| first < self.torn.settle_from())
            {
                continue;
            }
            let mut from = 0;
            while let Some((page, place)) = gc::next_valid(self, block, from)? {
                if let Some(Unsteady { before, .. }) = self.before_append(page)? {
                    covered!("a torn append cannot be settled");
                    self.space.expect(page, before);
                }
                from = place + 1;
            }
        }
        Ok(())
    }
}
