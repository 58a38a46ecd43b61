//! The tree as the owner of its log's pages: which are valid, and how one moves.
//!
//! A page that is believed valid is tested by reachability: its lowest node is searched for from
//! the root, by the node's own first key. If the descent ends at this very page, the page is moved
//! by writing that node anew, as an update that changes no record would (μ-Tree paper, section
//! 5.1). Other children in the same block to which the path's nodes point are copied on the way, so
//! that one path serves them all.

use super::TreeIndex;
use super::edit::{Edit, Emptying};
use super::path::Path;
use super::{CheckpointsOf, Placement, WritePolicy, extent_of, node_in, node_mut_in};
use crate::blocks::WearPolicy;
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc::{self, Collector, PageOwner};
use crate::log::Log;
use crate::log::checkpoint::voiding_cost;
use crate::node::SAME_PAGE;

use crate::gc::{MOVED_ALONG_MAX, RelocationMode};
use crate::space::{Checkpointing, Kind, RETIRED_MAX};

/// Chip operations to move one page that carries `riders` others along.
pub(crate) fn move_cost(
    height: u8,
    path_pages: u32,
    riders: u32,
    verify: bool,
    wear: WearPolicy,
    block_pages: u32,
) -> u32 {
    // The page, its way down, nodes displaced from their buffers, and the riders; then erases, and
    // the mark on a bad block.
    let reads = 1 + 2 * u32::from(height) + riders;
    let programs = path_pages + riders;
    let erases = programs / block_pages + 2;
    reads + programs * (1 + u32::from(verify)) + erases * (1 + wear.reads_by_erase())
}

/// A child that moves along with its parent.
struct Sibling {
    /// The pointer of its parent.
    pointer: u32,
    /// Its slot in the parent.
    slot: u16,
    /// The page buffer that holds it.
    frame: u8,
    /// Lowest level of the nodes in its page.
    lowest: u8,
}

impl<'b, F: Flash, S: Placement> PageOwner<'b, F> for TreeIndex<'b, F, S> {
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

    fn kept(&self) -> u32 {
        let checkpoint = CheckpointsOf::<S>::room(&self.space);
        self.budget().room_pages() + checkpoint + self.space.room_to_fail()
    }

    fn reserve_pages(&self) -> u32 {
        self.budget().reserve_pages() + self.space.room_to_fail()
    }

    fn pages_to_empty(&self, valid: u32, together: bool) -> u32 {
        let moves = if together { RelocationMode::Together } else { RelocationMode::Alone };
        let extent = self.space.extent();
        let limits = self.limits(&extent, self.state.height(), self.state.inner_nodes());
        moves.pages(valid, S::Kind::moved_path::<S>(&limits), self.state.inner_nodes())
    }

    fn move_cost(&self, beside: u32) -> u32 {
        let path = S::path_pages(self.state.height());
        let (verify, wear) = (self.space.log.verifies(), self.space.log.blocks.wear());
        let checkpoint = if !S::Kind::CHECKPOINTS_END_SESSIONS {
            CheckpointsOf::<S>::cost(&self.space)
        } else if S::Kind::UPDATES.collects() && self.space.log.medium.checkpoints {
            // No move writes one; it makes the last one void.
            voiding_cost(verify)
        } else {
            0
        };
        move_cost(self.state.height(), path, beside, verify, wear, self.space.log.block_pages())
            + checkpoint
    }

    fn limit_pages(&self) -> u32 {
        TreeIndex::limit_pages(self)
    }

    fn room(&self) -> u32 {
        self.space.room()
    }

    fn move_pages(&self) -> u32 {
        S::path_pages(self.state.height())
    }

    fn pages_beside(&self) -> u32 {
        if self.moves() == RelocationMode::Together { MOVED_ALONG_MAX } else { 0 }
    }

    fn write_out(&mut self) -> Result<(), Fault<F::Error>> {
        TreeIndex::write_out(self)
    }

    fn begin_changes(&mut self) -> Result<bool, Fault<F::Error>> {
        S::Kind::begin_changes(self)
    }

    fn collect_ahead(&mut self, victim: BlockNumber) -> Result<(), Fault<F::Error>> {
        if self.space.log.follows_hints() { self.collect_hinted(victim) } else { Ok(()) }
    }

    fn is_needed(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        self.is_reached(page)
    }

    /// Counts the nodes without a child in the block.
    ///
    /// Moving a node moves its path.
    fn moves_to_empty(&mut self, block: BlockNumber, best: u32) -> Result<u32, Fault<F::Error>> {
        let mut moves = 0;
        for place in 0..self.space.log.block_pages() {
            let page = self.space.log.page_at(block, place);
            // Counting stops at the best so far: the exact count of a worse block is not needed.
            if moves < best
                && self.space.log.blocks.is_valid(page)
                && (self.knows_pages() || self.is_reached(page)?)
            {
                moves += u32::from(!self.has_child_in(page, block)?);
            }
        }
        Ok(moves.max(1))
    }

    fn in_doubt(&self) -> bool {
        self.state.is_in_doubt()
    }

    fn victim(&self, gains: impl Fn(u32) -> bool) -> Option<BlockNumber> {
        self.space.victim(gains)
    }

    fn wear_due(&self) -> bool {
        self.space.wear_due(S::path_pages(self.state.height()))
    }

    fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        self.space.prepare_block()
    }
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Collects garbage until the longest operation fits and the reserve is whole.
    ///
    /// If a change takes several operations, the other work that is due is done before the first.
    pub(super) fn make_room(&mut self, first: bool) -> Result<(), Fault<F::Error>> {
        self.settle()?;
        if first {
            self.review_moves();
            S::Kind::change_begins(self);
        }
        S::Kind::begin_changes(self)?;
        self.keep_checkpoint()?;
        gc::make_room(self, first)?;
        let operation = S::path_pages(self.state.height()) + u32::from(self.state.height()) + 1;
        if !S::Kind::can_stage(&self.space, operation) || !self.keeps_path() {
            self.write_out()?;
        }
        Ok(())
    }

    /// Whether a child of the lowest node in `page` is in `block`. Cost: one read.
    fn has_child_in(
        &mut self,
        page: PageNumber,
        block: BlockNumber,
    ) -> Result<bool, Fault<F::Error>> {
        let frame = match self.space.load(page.0, 0) {
            Err(Fault::Corrupt { .. }) => return Ok(false),
            loaded => loaded?,
        };
        let level = self.space.log.lowest(frame);
        if !(2..=self.state.height()).contains(&level) {
            return Ok(false);
        }
        let Some(node) = node_in::<S, F>(&self.space, frame, self.level(level)) else {
            return Ok(false);
        };
        let pages = self.space.log.geometry().pages_of(block);
        let mut children =
            (0..node.count()).map(|slot| self.space.current_page(node.pointer(slot)));
        Ok(children.any(|child| {
            pages.contains(&child) && self.space.log.blocks.is_valid(PageNumber(child))
        }))
    }

    /// Whether a change keeps every node of its path in a page buffer.
    ///
    /// Then it reads none of them twice.
    fn keeps_path(&self) -> bool {
        let buffers = self.space.log.frames.count();
        usize::from(self.state.height()) < buffers
            || self.working(1) != S::reading(1, self.state.height(), buffers)
    }

    /// Moves the pages of `victim` that a hint lists and the root still reaches.
    ///
    /// The block table is not consulted (μ-Tree paper, section 5.1). Valid pages that the hint
    /// misses are left to ordinary collection.
    fn collect_hinted(&mut self, victim: BlockNumber) -> Result<(), Fault<F::Error>> {
        self.write_out()?;
        let hint = self.space.log.read_hint(victim)?;
        for place in 0..self.space.log.block_pages() {
            let page = self.space.log.page_at(victim, place);
            let index = page.0 % self.space.log.geometry().pages_per_block;
            if self.space.room() < S::path_pages(self.state.height()) {
                break;
            }
            if hint.has(index) {
                let together = (self.moves() == RelocationMode::Together).then_some(victim);
                match self.move_page(page, together) {
                    // A page that is garbage may be damaged.
                    Err(Fault::Corrupt { .. }) if !self.state.is_in_doubt() => {}
                    moved => moved?,
                }
            }
        }
        Ok(())
    }

    /// Writes a page elsewhere, and with it the children in `victim` of its path.
    pub(crate) fn move_page(
        &mut self,
        page: PageNumber,
        victim: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>> {
        // A move is durable, and a node that is not on the chip yet cannot lead to the page.
        self.write_out()?;
        self.keep_checkpoint()?;
        let mut path = Path::new();
        let Some(start) = self.find_to_move(page, &mut path)? else { return Ok(()) };
        self.state.note_move();
        let emptying = Emptying { block: self.block_of(page.0), together: victim.is_some() };
        self.rewrite(&mut path, start, &Edit::Move, self.state.records(), Some(emptying))
    }

    /// Finds the level on the way to `page` from which on nodes are written to move it.
    ///
    /// `None` if nothing has to be written.
    // What it finds out is gone when the nodes are written.
    #[inline(never)]
    fn find_to_move(
        &mut self,
        page: PageNumber,
        path: &mut Path,
    ) -> Result<Option<u8>, Fault<F::Error>> {
        // A page whose number is a logical address is garbage: the node is where the mapping leads.
        let level = self.keep_first_key(PageNumber(self.space.current_page(page.0)))?;
        self.with_separator(|tree, keys| tree.descend_to_change(path, keys.high(), level))?;
        let name = path.page(level);
        if self.space.current_page(name) == page.0 {
            return Ok(Some(level));
        }
        if name != page.0 {
            // The page is unreachable, so no data is lost with it.
            self.space.log.note_unreachable(page);
            return Ok(None);
        }
        if level == self.state.height() {
            return Err(Fault::Corrupt { page, reason: Damage::LevelBeyondTree });
        }
        // Only a logical address is left of this page: the parent takes the node's current page,
        // which frees the address.
        Ok(Some(level + 1))
    }

    /// Keeps the first key of the lowest node of `page` in the separator.
    ///
    /// No split uses the separator now. Returns the level of the node.
    #[inline(never)]
    pub(crate) fn keep_first_key(&mut self, page: PageNumber) -> Result<u8, Fault<F::Error>> {
        self.space.begin_walk();
        let frame = self.space.load(page.0, self.visiting(1))?;
        let level = self.space.log.lowest(frame);
        if level == 0 || level > self.state.height() {
            return Err(Fault::Corrupt { page, reason: Damage::LevelBeyondTree });
        }
        self.with_separator(|tree, keys| {
            let node = tree.node(frame, level)?;
            // An empty node is a root, and every key leads to it.
            if node.count() > 0 {
                keys.set(node.key(0), node.key(0));
            }
            Ok(level)
        })
    }

    /// Copies the children in `victim` to which the working node of `level` points.
    #[inline(never)]
    pub(super) fn move_siblings(
        &mut self,
        victim: BlockNumber,
        level: u8,
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        // The buffer counts as changed, so that pages are read into others on the way.
        self.space.log.frames.forget(self.working(level));
        let mut from = 0;
        while let Some(sibling) = self.next_sibling(victim, level, &mut from)? {
            let at = self.level(sibling.lowest);
            let moved = self.place.copy(&mut self.space, sibling.frame.into(), at, records)?;
            self.note_copy(level, &sibling, moved);
        }
        Ok(())
    }

    /// The next child to copy, from slot `from` on, which becomes the slot behind it.
    // What it finds out is gone when the child is written.
    #[inline(never)]
    fn next_sibling(
        &mut self,
        victim: BlockNumber,
        level: u8,
        from: &mut usize,
    ) -> Result<Option<Sibling>, Fault<F::Error>> {
        let (working, spare) = (self.working(level), self.spare(level));
        let above = u32::from(self.state.height() - level)
            .min(S::path_pages(self.state.height()) - 1) as usize;
        while let Some((slot, pointer)) = self.child_in(working, level, victim, *from)? {
            *from = slot + 1;
            if self.space.retirable() <= RETIRED_MAX - MOVED_ALONG_MAX as usize + above
                || self.space.room() <= S::path_pages(self.state.height())
            {
                break;
            }
            let frame = match self.space.load(pointer, spare) {
                // The child stays where it is; the error is reported when its page itself is moved.
                Err(Fault::Corrupt { .. }) => continue,
                loaded => loaded?,
            };
            let lowest = self.space.log.lowest(frame);
            if !(1..level).contains(&lowest) {
                // No child of this level is in such a page: it is damaged.
                continue;
            }
            // Nodes above the child in its page are older than the path being written.
            let extent = extent_of::<S, F>(&self.space, frame, self.level(level - 1));
            let above = if S::SHARING.packs() {
                let Ok(node) = self.node(frame, level - 1) else { continue };
                extent.start + node.used().len()..self.space.log.layout().area_bytes()
            } else {
                0..extent.start
            };
            self.space.log.frames.bytes_mut(frame)[above].fill(0xFF);
            self.space.log.frames.forget(frame);
            return Ok(Some(Sibling { pointer, slot: slot as u16, frame: frame as u8, lowest }));
        }
        Ok(None)
    }

    /// Notes that a child of the working node of `level` was copied to `moved`.
    #[inline(never)]
    fn note_copy(&mut self, level: u8, sibling: &Sibling, moved: u32) {
        self.space.retire(PageNumber(sibling.pointer));
        self.space.forget_address(sibling.pointer);
        self.state.note_move();
        let (working, at) = (self.working(level), self.level(level));
        if let Some(mut node) = node_mut_in::<S, F>(&mut self.space, working, at) {
            node.set_payload(sibling.slot.into(), &moved.to_le_bytes());
        }
    }

    /// The first child in `block`, from slot `from` on: its slot and its pointer.
    ///
    /// It is one of the node of `level` in `frame`.
    fn child_in(
        &self,
        frame: usize,
        level: u8,
        block: BlockNumber,
        from: usize,
    ) -> Result<Option<(usize, u32)>, Fault<F::Error>> {
        let node = self.node(frame, level)?;
        // Every pointer of the node is compared: a division for each would take longer.
        let pages = self.space.log.geometry().pages_of(block);
        let mut children = (from..node.count()).map(|slot| (slot, node.pointer(slot)));
        Ok(children.find(|&(_, pointer)| {
            pointer != SAME_PAGE && pages.contains(&self.space.current_page(pointer))
        }))
    }
}
