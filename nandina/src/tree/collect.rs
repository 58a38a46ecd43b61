//! Garbage collection: blocks with few valid pages are emptied, so that they can be erased and written.
//! Bad blocks are emptied first, and pages that the ECC found weak are written elsewhere.
//!
//! A page that is believed valid is tested by reachability: its lowest node is looked for from the root,
//! by the node's own first key. If the way ends at this very page, the page is moved by writing that node
//! anew, as an update that changes nothing would (μ-Tree paper, section 5.1). Other children in the same
//! block that the path's nodes point to are copied on the way, so that one path serves them all.
//!
//! A damaged page never stops a change elsewhere: the block that holds it is left alone.

use super::Index;
use super::descend::Path;
use super::rewrite::{Edit, Emptying};
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::node::SAME_PAGE;
use crate::place::{Placement, node_mut_in};
use crate::space::{Moves, RETIRED_MAX, RIDERS};

/// Moves that one change does for other reasons than to gain room.
pub(crate) const SPARE_MOVES: u32 = 4;

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Collects garbage until the longest operation fits and the reserve is whole. Where a change
    /// takes several operations, the other work that is due is done before the first.
    pub(super) fn make_room(&mut self, first: bool) -> Result<(), Fault<F::Error>> {
        self.settle()?;
        self.begin_session()?;
        self.keep_checkpoint()?;
        if first {
            let is_short = self.space.room() < self.kept();
            if is_short {
                self.gain_room(0)?;
            }
            if is_short || self.space.wear_due(S::path_pages(self.height)) {
                self.level_wear()?;
            }
            self.tend()?;
        }
        self.gain_room(0)?;
        let operation = S::path_pages(self.height) + u32::from(self.height) + 1;
        if !self.space.can_stage(operation) || !self.keeps_path() {
            self.write_out()?;
        }
        Ok(())
    }

    /// Whether a change keeps every node of its path in a page buffer, and reads none of them twice.
    fn keeps_path(&self) -> bool {
        let buffers = self.space.frames.count();
        usize::from(self.height) < buffers || self.working(1) != S::reading(1, self.height, buffers)
    }

    /// Collects garbage until `beyond` pages more can be programmed than are kept.
    pub(super) fn gain_room(&mut self, beyond: u32) -> Result<(), Fault<F::Error>> {
        // Each round gains a page at least; a chip's worth of rounds without success is no progress.
        if self.space.room() < self.kept() + beyond {
            self.write_out()?;
        }
        self.see_reserve();
        let mut rounds = self.space.geometry().pages();
        // A block that fails on the way takes the room that was kept for it.
        while self.space.room() < self.kept() + beyond {
            let Some(victim) = self.next_victim()?.filter(|_| rounds > 0) else {
                return Err(self.no_room());
            };
            if self.space.follows_hints() && !self.reserve_touched {
                self.collect_hinted(victim)?;
            }
            self.collect(victim)?;
            rounds -= 1;
        }
        self.reserve_touched = false;
        Ok(())
    }

    /// The block to empty next, to gain room.
    #[inline(never)]
    pub(super) fn next_victim(&mut self) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        if self.reserve_touched {
            return self.easiest_victim();
        }
        let (path_pages, inner_nodes) = (self.moved_path(), self.inner_nodes);
        let block = self.space.block_pages() - self.space.extent().gain();
        Ok(self.space.victim(|valid| self.moves.pages(valid, path_pages, inner_nodes) <= block))
    }

    /// Moves the valid pages of `victim`, to gain room.
    #[inline(always)]
    fn collect(&mut self, victim: BlockNumber) -> Result<(), Fault<F::Error>> {
        self.collected_blocks = self.collected_blocks.saturating_add(1);
        let together = self.moves == Moves::Together;
        let mut from = 0;
        while let Some((page, place)) = self.next_valid(victim, from)? {
            if self.space.room() < S::path_pages(self.height) {
                return Err(self.no_room());
            }
            if !self.save(page, together.then_some(victim))? {
                break;
            }
            from = place;
        }
        self.leave_alone(victim);
        Ok(())
    }

    /// The block that the fewest moves empty: its leaves count, since a leaf takes its path along. Reads
    /// the valid pages of some blocks, which is only done when cuts have touched the reserve.
    fn easiest_victim(&mut self) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        let active = self.space.active_block();
        let Some(fewest) = self.space.blocks.victim(active) else {
            return Ok(None);
        };
        let path_pages = S::path_pages(self.height);
        let mut best = (self.space.blocks.valid_in(fewest), fewest);
        if path_pages == 1 {
            return Ok(Some(fewest));
        }
        for block in self.space.blocks.all() {
            // A move empties at most a path, so more valid pages than that cannot be fewer moves.
            let valid = self.space.blocks.valid_in(block);
            if best.0 == 1
                || valid >= best.0 * path_pages
                || !self.space.blocks.is_victim(block, active)
            {
                continue;
            }
            let mut leaves = 0;
            for place in 0..self.space.block_pages() {
                let page = self.space.page_at(block, place);
                if leaves < best.0
                    && self.space.blocks.is_valid(page)
                    && (!self.space.blocks.searches() || self.is_reached(page)?)
                {
                    let header = self.space.read_raw(page, 0)?;
                    leaves += u32::from(header.is_ok_and(|header| header.lowest == 1));
                }
            }
            // Counting ends at the best so far: what is no better is not known any closer.
            if leaves.max(1) < best.0 {
                best = (leaves.max(1), block);
            }
        }
        Ok(Some(best.1))
    }

    fn no_room(&self) -> Fault<F::Error> {
        self.space.no_room(self.budget.limit_pages)
    }

    /// Notes whether cuts, or blocks that failed, have touched the reserve. Room for blocks that fail
    /// is part of it: cuts must not use that up either.
    pub(super) fn see_reserve(&mut self) {
        let reserve_pages = self.budget.reserve_pages + self.space.room_to_fail();
        // Nothing was written since the mount, or since a block failed: a collection that is half done in
        // idle steps has touched nothing.
        self.reserve_touched |=
            self.space.active_block().is_none() && self.space.room() < reserve_pages;
    }

    /// Pages that must be free before an operation begins.
    pub(super) fn kept(&self) -> u32 {
        if S::DESCRIPTION.in_place {
            return 0;
        }
        self.budget.room_pages + self.space.room_to_fail()
    }

    /// Room below which nothing is moved but to gain room.
    pub(super) fn floor(&self) -> u32 {
        self.kept() + S::path_pages(self.height)
    }

    /// Saves what is on weak pages and bad blocks, as far as there is room.
    fn tend(&mut self) -> Result<(), Fault<F::Error>> {
        if self.space.has_weak() {
            // A device that is worn out refuses this, and may take the change all the same.
            match self.gain_room(S::path_pages(self.height)) {
                Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) => {}
                gained => gained?,
            }
        }
        while self.space.room() >= self.floor()
            && let Some(page) = self.space.take_weak()
        {
            self.refreshed_pages = self.refreshed_pages.saturating_add(1);
            self.save(page, None)?;
        }
        if let Some(block) = self.space.blocks.failing() {
            self.relieve(block)?;
        }
        self.space.mark_bad_blocks()
    }

    /// Puts a block into circulation whose data has rested while others wore out (static wear
    /// levelling), as far as there is room for it; the next calls go on.
    fn level_wear(&mut self) -> Result<(), Fault<F::Error>> {
        match self.space.rested()? {
            Some(rested) => self.relieve(rested),
            None => Ok(()),
        }
    }

    /// Moves a few valid pages of `block`, each by itself, for another reason than to gain room.
    fn relieve(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        self.collected_blocks = self.collected_blocks.saturating_add(1);
        let mut from = 0;
        for _ in 0..SPARE_MOVES {
            if self.space.room() < self.floor() {
                return Ok(());
            }
            let Some((page, place)) = self.next_valid(block, from)? else {
                self.leave_alone(block);
                break;
            };
            if !self.save(page, None)? {
                break;
            }
            from = place;
        }
        Ok(())
    }

    /// Moves the pages of `victim` that a hint tells of and that can still be reached from the root, without
    /// the account of valid pages (μ-Tree paper, section 5.1). What it leaves is the account's.
    fn collect_hinted(&mut self, victim: BlockNumber) -> Result<(), Fault<F::Error>> {
        self.write_out()?;
        let hint = self.space.read_hint(victim)?;
        for place in 0..self.space.block_pages() {
            let page = self.space.page_at(victim, place);
            let index = page.0 % self.space.geometry().pages_per_block;
            if self.space.room() < S::path_pages(self.height) {
                break;
            }
            if hint.has(index) {
                let together = (self.moves == Moves::Together).then_some(victim);
                match self.move_page(page, together) {
                    // A page that is garbage may be damaged.
                    Err(Fault::Corrupt { .. }) if !self.in_doubt => {}
                    moved => moved?,
                }
            }
        }
        Ok(())
    }

    /// All pages of `block` were looked at. What cannot be found in it, because it is damaged, stays.
    fn leave_alone(&mut self, block: BlockNumber) {
        if self.space.blocks.searches() && self.space.blocks.valid_in(block) > 0 {
            self.space.blocks.set_stuck(block);
        }
    }

    /// Moves a page, and answers whether it could be read: if not, its block is left alone.
    pub(super) fn save(
        &mut self,
        page: PageNumber,
        victim: Option<BlockNumber>,
    ) -> Result<bool, Fault<F::Error>> {
        match self.move_page(page, victim) {
            Ok(()) => Ok(true),
            Err(Fault::Corrupt { .. }) if !self.in_doubt => {
                // Where pages are searched for, garbage may be found weak: that a page of it leads nowhere is no damage.
                if !self.space.blocks.searches() {
                    self.space.blocks.set_stuck(self.space.geometry().block_of(page));
                }
                // It was read, and may have been found weak again.
                self.space.forget_weak(page);
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Writes a page elsewhere; with it, children in the block `victim` that its path points to.
    pub(super) fn move_page(
        &mut self,
        page: PageNumber,
        victim: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>> {
        // What is moved is moved durably, and what is not on the chip cannot lead to it.
        self.write_out()?;
        self.keep_checkpoint()?;
        // A page whose number is a name is garbage: the node is where the name leads.
        let level = self.keep_first_key(PageNumber(self.space.where_is(page.0)))?;
        let mut path = Path::new();
        let keys = core::mem::take(&mut self.separator);
        let descended = self.descend_to_change(&mut path, keys.high(), level);
        self.separator = keys;
        descended?;
        let (name, place) = (path.page(level), self.space.where_is(path.page(level)));
        let emptying = Some(Emptying {
            block: self.space.geometry().block_of(page),
            together: victim.is_some(),
        });
        let start = if place == page.0 {
            level
        } else if name == page.0 {
            // Nothing stands here but a name: the parent takes the node's place, and the name is free.
            level + 1
        } else {
            // Unreachable, so nothing is lost with it.
            self.space.note_unreachable(page);
            return Ok(());
        };
        self.moved_pages = self.moved_pages.saturating_add(1);
        self.rewrite(&mut path, start, &Edit::Move, self.records, emptying)
    }

    /// Keeps the first key of the lowest node of `page` where that of a divided node would be: no node is divided now.
    /// Answers its level.
    #[inline(never)]
    pub(super) fn keep_first_key(&mut self, page: PageNumber) -> Result<u8, Fault<F::Error>> {
        self.space.begin_walk();
        let frame = self.space.load(page.0, self.visiting(1))?;
        let level = self.space.lowest(frame);
        if level == 0 || level > self.height {
            return Err(Fault::Corrupt { page, reason: Damage::LevelBeyondTree });
        }
        let mut keys = core::mem::take(&mut self.separator);
        let kept = self.node(frame, level).map(|node| {
            // An empty node is a root, and every key leads to it.
            if node.count() > 0 {
                keys.set(node.key(0), node.key(0));
            }
        });
        self.separator = keys;
        kept.map(|()| level)
    }

    /// Copies the children in `victim` that the working node of `level` points to.
    #[inline(never)]
    pub(super) fn carry_along(
        &mut self,
        victim: BlockNumber,
        level: u8,
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        let (working, spare) = (self.working(level), self.spare(level));
        // What is read on the way is read elsewhere.
        self.space.frames.forget(working);
        let above = u32::from(self.height - level).min(S::path_pages(self.height) - 1) as usize;
        for slot in 0..self.node(working, level)?.count() {
            let pointer = self.node(working, level)?.pointer(slot);
            let rides = pointer != SAME_PAGE
                && self.block_of(self.space.where_is(pointer)) == victim
                && self.space.retirable() > RETIRED_MAX - RIDERS as usize + above
                && self.space.room() > S::path_pages(self.height);
            if !rides {
                continue;
            }
            let frame = match self.space.load(pointer, spare) {
                // It stays where it is; its turn as a page of its own will tell.
                Err(Fault::Corrupt { .. }) => continue,
                loaded => loaded?,
            };
            let lowest = self.space.lowest(frame);
            // What stands above the child in its page is older than the path being written.
            let extent = S::extent(self.space.layout().area_bytes(), level - 1, self.height);
            self.space.frames.bytes_mut(frame)[..extent.start].fill(0xFF);
            self.space.frames.forget(frame);
            let at = self.level(lowest);
            let moved = self.place.copy(&mut self.space, frame, at, records)?;
            self.space.retire(PageNumber(pointer));
            self.space.unname(pointer);
            self.moved_pages = self.moved_pages.saturating_add(1);
            let at = self.level(level);
            if let Some(mut node) = node_mut_in::<S, F>(&mut self.space, working, at) {
                node.set_payload(slot, &moved.to_le_bytes());
            }
        }
        Ok(())
    }
}
