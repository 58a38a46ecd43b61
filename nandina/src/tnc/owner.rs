//! The tree as the owner of its pages: which are needed, and how one moves.
//!
//! The nodes of a page are searched for from the root, by their own first keys. The nodes that the
//! tree has in this very page become dirty, with their paths, and a commit writes them elsewhere.
//! No page of the journal is moved: a commit makes it garbage. Where values stay in the journal,
//! `values.rs` beside this moves those that are needed.

use super::apply::Key;
use super::arena::{NO_SLOT, slot_in};
use super::form::node_in;
use super::values::Moved;
use super::{Checkpoints, TncIndex};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc::MOVED_ALONG_MAX;
use crate::gc::{Collector, PageOwner};
use crate::log::Log;
use crate::node::Node;
use crate::space::Checkpointing;

/// The first key of a node and its level. A node that is empty has no key.
type FirstKey = (Option<Key>, u8);

impl<'b, F: Flash> PageOwner<'b, F> for TncIndex<'b, F> {
    fn log(&self) -> &Log<'b, F> {
        &self.space.log
    }

    fn log_mut(&mut self) -> &mut Log<'b, F> {
        &mut self.space.log
    }

    fn collector(&self) -> &Collector {
        &self.collector
    }

    fn collector_mut(&mut self) -> &mut Collector {
        &mut self.collector
    }

    fn relocate(
        &mut self,
        page: PageNumber,
        beside: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>> {
        self.move_page(page, beside)
    }

    /// The next commit need not write again what steps have written.
    fn kept(&self) -> u32 {
        let checkpoint = <Checkpoints as Checkpointing>::room(&self.space);
        (self.room.limits().room_pages + checkpoint + self.space.room_to_fail())
            .saturating_sub(self.written_pages())
    }

    fn reserve_pages(&self) -> u32 {
        self.room.limits().reserve_pages + self.space.room_to_fail()
    }

    fn pages_to_empty(&self, valid: u32, together: bool) -> u32 {
        let nodes = valid * self.arena.form.numbers() as u32;
        self.means().pages_to_empty(nodes, self.tree.height(), self.tree.inner_nodes(), together)
    }

    fn move_cost(&self, beside: u32) -> u32 {
        self.means().move_cost(self.tree.height(), beside, &self.writing())
    }

    fn limit_pages(&self) -> u32 {
        self.means().limit_pages(self.room.limits())
    }

    fn move_pages(&self) -> u32 {
        self.means().move_pages(self.tree.height())
    }

    fn pages_beside(&self) -> u32 {
        MOVED_ALONG_MAX
    }

    fn empties_blocks(&self) -> bool {
        self.means().writes_ahead(self.tree.height())
    }

    fn collect_ahead(&mut self, victim: BlockNumber) -> Result<(), Fault<F::Error>> {
        if self.empties_blocks() { self.empty_block(victim) } else { Ok(()) }
    }

    fn write_out(&mut self) -> Result<(), Fault<F::Error>> {
        if self.has_journal() { self.commit() } else { Ok(()) }
    }

    fn begin_changes(&mut self) -> Result<bool, Fault<F::Error>> {
        let begins = !self.state.is_settled();
        self.settle()?;
        Ok(begins)
    }

    fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        self.space.prepare_block()
    }

    fn is_needed(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        // Garbage may be anything, even an erased or a torn page.
        match self.find_needed(page) {
            Err(Fault::Corrupt { .. }) => Ok(false),
            found => found,
        }
    }

    fn in_doubt(&self) -> bool {
        self.state.is_in_doubt()
    }

    fn counts_moves(&self) -> bool {
        self.arena.form.numbers() == 1
    }

    /// A change that commits programs a path and a page of the journal.
    ///
    /// If every change does so, a look at fewer pages would always miss the same places of a block.
    fn wear_due(&self) -> bool {
        self.room.is_draining() || self.space.log.wear_due(u32::from(self.tree.height()) + 1)
    }

    /// The block with the fewest nodes and values, where a page holds several.
    fn victim(&self, gains: impl Fn(u32) -> bool) -> Option<BlockNumber> {
        if self.arena.form.numbers() == 1 {
            return self.space.victim(gains);
        }
        let (blocks, active) = (&self.space.log.blocks, self.space.log.active_block());
        let can_be = |&block: &BlockNumber| Some(block) != active && blocks.can_move(block);
        let nodes = blocks.all().filter(can_be).map(|block| (self.nodes_in(block), block.0));
        nodes.filter(|&(nodes, _)| nodes > 0).min().map(|(_, block)| BlockNumber(block))
    }
}

impl<F: Flash> TncIndex<'_, F> {
    /// Full pages of nodes that were written ahead of the next commit.
    #[inline(never)]
    fn written_pages(&self) -> u32 {
        (self.arena.written() / self.arena.form.per_page()) as u32
    }

    /// Needed nodes and values in the pages of `block`.
    fn nodes_in(&self, block: BlockNumber) -> u32 {
        let pages = self.space.log.geometry().pages_per_block;
        let from = block.0 * pages;
        let count = |page| self.live.count(page, self.arena.form.numbers());
        (from..from + pages).filter_map(count).map(u32::from).sum()
    }

    /// Writes the needed nodes of `page` elsewhere, durably.
    ///
    /// With `beside`, nodes of the next pages of that block move along, and those to which their
    /// paths point.
    fn move_page(
        &mut self,
        page: PageNumber,
        beside: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>> {
        self.write_out()?;
        if !self.space.log.blocks.is_valid(page) {
            return Ok(());
        }
        if self.holds_values(page)? {
            let last = beside.map_or(page.0 + 1, |block| {
                (block.0 + 1) * self.space.log.geometry().pages_per_block
            });
            match self.move_values(page.0..last)? {
                Moved::Some => {}
                Moved::Nothing => self.space.log.note_unreachable(page),
                Moved::NoRoom => return Err(self.space.log.no_room(self.limit_pages())),
            }
            return self.write_out();
        }
        if !self.make_page_dirty(page, beside)? {
            // No data is lost with a page to which no node leads.
            self.space.log.note_unreachable(page);
            return Ok(());
        }
        self.state.note_move();
        if let Some(block) = beside {
            let last = (block.0 + 1) * self.space.log.geometry().pages_per_block;
            for page in (page.0 + 1..last).map(PageNumber) {
                let nodes = self.arena.form.places() * usize::from(self.tree.height());
                if self.arena.dirty() + nodes > self.dirty_max()
                    || self.space.log.room()
                        <= self.commit_pages() + u32::from(self.tree.height()) + 1
                {
                    break;
                }
                if !self.space.log.blocks.is_valid(page) {
                    continue;
                }
                // What cannot be read is reported when the page itself is moved.
                match self.make_page_dirty(page, beside) {
                    Ok(_) | Err(Fault::Corrupt { .. }) => {}
                    Err(fault) => return Err(fault),
                }
            }
        }
        self.commit()
    }

    /// Writes the needed nodes of `block` elsewhere, with one commit for all.
    ///
    /// It ends where room is short or something is damaged. Then the pages that are left move one
    /// by one.
    fn empty_block(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        self.write_out()?;
        let pages = self.space.log.geometry().pages_per_block;
        let from = block.0 * pages;
        if self.arena.form.apart() {
            match self.move_values(from..from + pages) {
                Ok(_) | Err(Fault::Corrupt { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        for page in (from..from + pages).map(PageNumber) {
            if self.space.log.room() <= self.commit_pages() + u32::from(self.tree.height()) + 1 {
                break;
            }
            if !self.space.log.blocks.is_valid(page) {
                continue;
            }
            match self.make_page_dirty(page, Some(block)) {
                Ok(true) => self.state.note_move(),
                Ok(false) => self.space.log.note_unreachable(page),
                Err(Fault::Corrupt { .. }) => break,
                Err(fault) => return Err(fault),
            }
        }
        self.write_out()
    }

    /// Makes the needed nodes of `page` dirty, with their paths.
    ///
    /// Returns whether it has any.
    fn make_page_dirty(
        &mut self,
        page: PageNumber,
        beside: Option<BlockNumber>,
    ) -> Result<bool, Fault<F::Error>> {
        let mut is_needed = false;
        for at in 0..self.arena.form.places() {
            self.make_dirty_room()?;
            if let Some(slot) = self.needed_node(page, at)? {
                is_needed = true;
                self.arena.mark_dirty(slot);
                if let Some(block) = beside {
                    self.move_along(slot, block)?;
                }
            }
        }
        Ok(is_needed)
    }

    /// Whether a node in `page` is one of the tree, or a leaf points to a value there.
    fn find_needed(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        if self.holds_values(page)? {
            return self.has_needed_value(page);
        }
        for at in 0..self.arena.form.places() {
            if self.needed_node(page, at)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The slot of the node at `at` in `page`, if it is one of the tree.
    fn needed_node(&mut self, page: PageNumber, at: usize) -> Result<Option<u16>, Fault<F::Error>> {
        let Some((key, level)) = self.first_key(page, at)? else { return Ok(None) };
        let slot = match key {
            Some(key) => self.descend_to(key.bytes(self.arena.form.key_bytes), level)?,
            // Only a root is empty.
            None => self.tree.root(),
        };
        Ok((self.arena.place(slot) == self.arena.form.pointer(page.0, at)).then_some(slot))
    }

    /// The first key and the level of the node at `at` in `page`.
    ///
    /// `None` if the page has fewer nodes.
    fn first_key(
        &mut self,
        page: PageNumber,
        at: usize,
    ) -> Result<Option<FirstKey>, Fault<F::Error>> {
        let frame = self.space.load(page.0, 0)?;
        let bytes = &self.space.log.frames.bytes(frame)[..self.space.area_bytes()];
        let tag = self.space.log.header(frame).tag;
        let Some((level, range)) = node_in(tag, bytes, at) else { return Ok(None) };
        let level = level.clamp(1, self.tree.height());
        let node = Node::parse(&bytes[range], self.arena.form.shape(level));
        let key = node.filter(|node| node.count() > 0).map(|node| Key::of(node.key(0)));
        Ok(Some((key, level)))
    }

    /// Makes nodes in `block` dirty to which the path of `slot` points.
    fn move_along(&mut self, slot: u16, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        let mut left = MOVED_ALONG_MAX;
        let mut parent = self.arena.parent(slot);
        while parent != NO_SLOT {
            for index in 0..self.arena.node(parent).count() {
                let pointer = self.arena.node(parent).pointer(index);
                let (place, is_dirty) = match slot_in(pointer) {
                    Some(child) => (self.arena.place(child), self.arena.is_dirty(child)),
                    None => (pointer, false),
                };
                let page = PageNumber(self.arena.form.place_of(place).0);
                let rides = !is_dirty
                    && page.0 < self.arena.form.pages
                    && self.space.log.geometry().block_of(page) == block
                    && left > 0
                    && self.arena.dirty() < self.dirty_max()
                    && self.space.log.room() > self.commit_pages() + 1;
                if !rides {
                    continue;
                }
                match self.child(parent, index) {
                    // It stays where it is; the error is reported when its own page is moved.
                    Err(Fault::Corrupt { .. }) => {}
                    child => {
                        self.arena.mark_dirty(child?);
                        self.state.note_move();
                        left -= 1;
                    }
                }
            }
            parent = self.arena.parent(parent);
        }
        Ok(())
    }
}
