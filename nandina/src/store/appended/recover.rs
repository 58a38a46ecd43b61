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
use crate::tree::{HEIGHT_MAX, Path, Placement, TreeIndex};

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
        self.state.begin_unexplained(0);
        self.find_every_node(|index, child, level| {
            if level > 1 {
                index.expect_before_append_to(PageNumber(child))?;
            }
            index.claim_child(PageNumber(child))
        })?;
        let unreadable = self.state.unexplained_pages();
        self.count_unexplained();
        self.state.begin_unexplained(self.state.unexplained_pages().max(unreadable));
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
    /// Cost: none after a clean end. Otherwise, one read, and [`LOOKS`](crate::tree::LOOKS) more if
    /// the page may be torn.
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
        self.state.begin_records();
        self.space.log.blocks.forget_valid();
        self.claim_page(PageNumber(self.state.root()))?;
        self.find_every_node(|index, child, _| index.claim_child(PageNumber(child)))
    }

    /// Marks `page` valid, to which an inner node points.
    fn claim_child(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        // A damaged pointer may lead to a page that was erased. Who reads it reports that.
        if self.space.log.is_ahead(page) { Ok(()) } else { self.claim_page(page) }
    }

    /// Reserves the blocks that the state before the last change needs.
    ///
    /// Until the mount has settled none of them is opened. If the last page that was programmed is
    /// the root, that state begins with the root before it. Otherwise the page's parent may or may
    /// not have received the pointer to it.
    ///
    /// Cost: some reads for each child of that parent, and of that root.
    pub(super) fn reserve_state_before(&mut self, found: &Found) -> Result<(), Fault<F::Error>> {
        let Some((newest, _)) = self.torn.newest() else { return Ok(()) };
        if found.root.is_some_and(|(root, _)| root == newest) {
            let Some((before, _)) = found.root_before else { return Ok(()) };
            covered!("the root before the newest one is kept");
            self.space.log.blocks.set_reserved(self.block_of(before.0), true);
            return match self.space.log.read_raw(before, 0)? {
                Ok(header) => self.reserve_below(before.0, header.lowest),
                Err(_) => Ok(()),
            };
        }
        let level = match self.keep_first_key(newest) {
            Ok(level) if level < self.state.height() => level,
            Ok(_) | Err(Fault::Corrupt { .. }) => return Ok(()),
            Err(fault) => return Err(fault),
        };
        let mut path = Path::new();
        let descended = self
            .with_separator(|tree, keys| tree.descend(&mut path, keys.high(), level + 1, false));
        match descended {
            Ok(()) => self.reserve_below(path.page(level + 1), level + 1),
            Err(Fault::Corrupt { .. }) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Reserves the blocks of the pages to which the node in page `top` ever pointed.
    ///
    /// If these are inner nodes, it does the same with their pages, and with those below that the
    /// tree no longer uses. `level` is that of the node.
    ///
    /// Cost: three reads for each of these inner nodes, of which it looks at no more than the
    /// square of the number that a node has room for.
    fn reserve_below(&mut self, top: u32, level: u8) -> Result<(), Fault<F::Error>> {
        if !(2..=HEIGHT_MAX).contains(&level) {
            return Ok(());
        }
        let area_bytes = self.space.log.layout().area_bytes();
        let slots_of = |index: &Self, at| {
            let shape = index.form().level::<S>(at, level).shape;
            (shape, shape.capacity(area_bytes))
        };
        let mut left = slots_of(self, 2).1.saturating_pow(2);
        let mut path = [(top, 0); HEIGHT_MAX as usize];
        let mut at = level;
        while at <= level {
            let (page, from) = path[usize::from(at) - 1];
            let identity = self.space.log.identity();
            let is_node = |header: PageHeader| header.lowest == at && header.identity == identity;
            let (shape, slots) = slots_of(self, at);
            let mut child = None;
            let mut slot = from;
            if self.space.log.read_raw(PageNumber(page), 0)?.is_ok_and(is_node) {
                while child.is_none() && slot < slots {
                    let place = shape.at(slot) + shape.key_bytes();
                    let pointer = u32_at(self.space.log.frames.bytes(0), place);
                    slot += 1;
                    if pointer < self.space.log.geometry().pages() {
                        self.space.log.blocks.set_reserved(self.block_of(pointer), true);
                        let is_used = self.space.log.blocks.is_valid(PageNumber(pointer));
                        child = Some(pointer).filter(|_| at > 2 && (at == level || !is_used));
                    }
                }
            }
            path[usize::from(at) - 1].1 = slot;
            match child.filter(|_| left > 0) {
                Some(child) => {
                    covered!("the pointers of a child hold blocks");
                    (left, at) = (left - 1, at - 1);
                    path[usize::from(at) - 1] = (child, 0);
                }
                // What a node has further on is looked at without the nodes below.
                None if child.is_some() => {}
                None => at += 1,
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

    /// Ignores torn appends, where no page can be written any longer.
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
