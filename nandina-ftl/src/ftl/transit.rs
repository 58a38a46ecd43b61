//! Buffer blocks before a page map: how this FTL lies below the transit layer.
//!
//! The layer is `src/transit/mod.rs`. The mapping leads into buffer blocks as into any other block,
//! so a page is read once. A conversion moves the newest pages of a buffer block in ascending order
//! to the open block for moved pages, as garbage collection would; or, from
//! [`completes_from`](crate::transit::Buffer::completes_from) pages that count on, it leaves them
//! where they are: the block is one of the log's then, which collection empties when its turn
//! comes.
//!
//! Buffer blocks are reserved in the block table and count as stuck: neither are they free without
//! a page that counts, nor does collection choose them. After a mount, and for a checkpoint, they
//! are blocks like all others: no place of theirs is written before the next erase.
//!
//! A page of a buffer block names the page before it. So a mount knows one that has faded by the
//! page behind it, and it stays an error. The number of the page behind is a little higher than its
//! own. That does no harm as long as what supersedes it elsewhere has a higher number still: so a
//! buffer block of which a page is superseded elsewhere, moved or trimmed is not written on.
//!
//! Where no block can be had for the buffer, or a program into it fails, the page goes to the open
//! block at once.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::gc::{self, PageOwner};
use nandina::log::Source;
use nandina::node::PageFault;
use nandina::{Fault, covered};

use super::bytes::{NEW, before_of, buffered_label};
use super::mount::LOOKS;
use super::{Ftl, FtlError};
use crate::mapping::{Extent, Mapping};
use crate::transit::{Below, BufferBlock, Completed, Conversions, State};

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// The buffer blocks.
    pub fn buffer_blocks(&self) -> impl Iterator<Item = BufferBlock> {
        self.transit.blocks()
    }

    /// Conversions since it was formatted or opened.
    pub const fn conversions(&self) -> Conversions {
        self.transit.conversions
    }

    /// Converts all buffer blocks.
    pub fn convert_all(&mut self) -> Result<(), FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        self.begin()?;
        self.convert_each()
    }

    /// Writes pages of the host through the buffer, or past it.
    pub(super) fn write_buffered(
        &mut self,
        extent: Extent,
        bytes: &[u8],
    ) -> Result<(), FtlError<F::Error>> {
        let each = self.page_bytes();
        self.transit.note_run(extent);
        for (logical, bytes) in (extent.start..extent.end()).zip(bytes.chunks_exact(each)) {
            let page = Extent::new(logical, 1);
            self.begin_change(page, 1)?;
            if !self.append(logical, bytes)? {
                self.close_own(logical);
                self.turn(NEW);
                self.write_row(page, bytes)?;
            }
        }
        Ok(())
    }

    /// Makes the block of a buffer block one like all others. Its pages count where they are.
    fn drop_buffer(&mut self, block: BlockNumber) {
        self.anchors.buffered.remove(block);
        self.log.blocks.take_stuck(block);
        self.log.blocks.set_reserved(block, false);
        if self.log.blocks.is_empty(block) {
            // It may hold what a mount that undoes volatile trims needs.
            self.log.blocks.hold(block);
            self.release();
        }
    }

    /// Makes all buffer blocks blocks like all others.
    pub(super) fn drop_buffers(&mut self) {
        for at in 0..self.transit.summary.len() {
            let block = BlockNumber(self.transit.summary.get(at).block);
            if self.anchors.buffered.has(block) {
                self.drop_buffer(block);
            }
            self.transit.summary.remove(at);
        }
    }

    /// Notes that a page is superseded from outside its block, if that is a buffer block.
    pub(super) fn close_buffer_of(&mut self, page: PageNumber) {
        if !self.transit.is_there() {
            return;
        }
        if let Some(at) = self.transit.summary.entry_of(self.block_of(page)) {
            self.transit.close(at);
        }
    }

    /// Erases a free block to be a buffer block.
    fn erase_for_buffer(&mut self) -> Result<BlockNumber, Fault<F::Error>> {
        loop {
            let active = self.log.active_block();
            let block = self.anchors.next_block(&mut self.log, active)?;
            if self.log.take_ready(block) || self.log.erase(block)? {
                self.log.blocks.note_open(block);
                self.log.blocks.set_reserved(block, true);
                self.log.blocks.set_stuck(block);
                self.anchors.buffered.insert(block);
                return Ok(block);
            }
        }
    }

    /// Converts buffer blocks ahead of need, with at most so many operations of the chip.
    ///
    /// Returns whether more are due.
    pub(super) fn convert_ahead(&mut self, budget: u32) -> Result<bool, FtlError<F::Error>> {
        let before = self.log.operations();
        let reads = if self.transit.buffer.reads_newest_only { 0 } else { self.log.block_pages() };
        while let Some(at) = self.transit.due_ahead() {
            // Nothing but collection uses the reserve.
            if self.room() <= gc::floor(self) {
                return Ok(false);
            }
            let used = self.log.operations().wrapping_sub(before);
            if self.move_cost(0) + reads > budget.saturating_sub(used) {
                return Ok(true);
            }
            self.begin()?;
            let is_done = self.convert_step(at)?;
            self.transit.conversions.ahead += u64::from(is_done);
        }
        Ok(false)
    }

    /// Whether a block may end in a torn page.
    ///
    /// The newest page that counts has the number `newest`. If `from` is given, the block must have
    /// been a buffer block of the session that began with that number. Cost: two reads for most
    /// blocks; else one for each page, and [`LOOKS`].
    pub(super) fn may_end_torn(
        &mut self,
        block: BlockNumber,
        (from, newest): (Option<u64>, u64),
    ) -> Result<bool, Fault<F::Error>> {
        let block_pages = self.log.block_pages();
        let (mut next, mut last) = (0, None);
        for place in [block_pages - 1].into_iter().chain(0..block_pages) {
            let read = self.log.read_raw(self.log.page_at(block, place), 0)?;
            let Ok(header) = read else { continue };
            if header.sequence > newest || !self.log.is_ours(0) {
                continue;
            }
            // A full block has no torn page, and another one was no buffer block.
            let is_meant = from.is_none() || before_of(&header).is_some();
            if place + 1 == block_pages || !is_meant {
                return Ok(false);
            }
            (next, last) = (place + 1, Some(header.sequence));
        }
        if last.is_none_or(|last| from.is_some_and(|from| last < from)) {
            return Ok(false);
        }
        let page = self.log.page_at(block, next);
        for _ in 0..LOOKS {
            if self.log.read_raw(page, 0)? != Err(PageFault::Erased) {
                covered!("ftl: a buffer block ends in a torn page");
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl<'b, F: Flash, M: Mapping> Below<'b> for Ftl<'b, F, M> {
    type Error = FtlError<F::Error>;

    fn transit(&self) -> &State<'b> {
        &self.transit
    }

    fn transit_mut(&mut self) -> &mut State<'b> {
        &mut self.transit
    }

    fn page_in(&self, block: BlockNumber, place: u32) -> PageNumber {
        self.log.page_at(block, place)
    }

    fn counts(&self, page: PageNumber) -> bool {
        self.log.blocks.is_valid(page)
    }

    fn may_pass(&self, _: u32) -> bool {
        true
    }

    fn prepare(&mut self, logical: u32) -> Result<(), Self::Error> {
        self.make_room()?;
        Ok(self.mapping.admits(Extent::new(logical, 1))?)
    }

    /// Collection must be able to go on beside it, so two blocks have to be left. If the page may
    /// not wait for collection, the room that idle steps gain has to do: one block.
    fn open_buffer(&mut self, may_wait: bool) -> Result<Option<BlockNumber>, Self::Error> {
        let pages = if may_wait { 2 } else { 1 } * self.log.block_pages();
        if !may_wait && self.room() < self.kept() + pages {
            return Ok(None);
        }
        let gained = gc::gain_room(self, pages);
        let gained = self.ended(gained);
        if gained.is_err() {
            covered!("ftl: no block is left for the buffer");
            return if self.in_doubt { gained.map(|()| None) } else { Ok(None) };
        }
        self.in_doubt = true;
        let opened = self.erase_for_buffer();
        self.in_doubt = matches!(opened, Err(Fault::Device(_)));
        match opened {
            Err(Fault::NoRoom { .. }) => Ok(None),
            opened => Ok(Some(opened?)),
        }
    }

    fn program_buffered(
        &mut self,
        (block, place): (BlockNumber, u32),
        (logical, before): (u32, u32),
        bytes: &[u8],
    ) -> Result<bool, Self::Error> {
        self.in_doubt = true;
        self.log.frames.forget(0);
        self.log.frames.bytes_mut(0)[..bytes.len()].copy_from_slice(bytes);
        let label = buffered_label(logical, before);
        debug_assert!(self.anchors.buffered.has(block), "a page goes to another block");
        if place > 0 {
            self.log.note_next(block, place);
        }
        let programmed = self.log.program_at(block, place, Source::Frame(0), label)?;
        self.log.frames.release(0);
        if programmed {
            self.statistics.programmed += 1;
            self.statistics.host_writes += 1;
            if place == 0 {
                self.log.blocks.set_opened_at(block, self.log.sequence());
            }
        }
        Ok(programmed)
    }

    fn give_up_buffer(&mut self, at: u32) -> Result<bool, Self::Error> {
        covered!("ftl: a program into a buffer block fails");
        let block = BlockNumber(self.transit.summary.get(at).block);
        self.transit.summary.remove(at);
        self.drop_buffer(block);
        // The page is repeated before anything else is programmed.
        Ok(false)
    }

    fn count_buffered(&mut self, logical: u32, page: PageNumber) -> Result<(), Self::Error> {
        self.log.blocks.set_valid(page, true);
        self.map_row(Extent::new(logical, 1), self.places.place(page))?;
        self.release();
        self.log.check_accounts();
        self.in_doubt = false;
        Ok(())
    }

    /// What counts stays where it is, so all of its pages are spared.
    fn newest_of(&self, _: u32, at: u32) -> u32 {
        self.log.blocks.valid_in(BlockNumber(self.transit.summary.get(at).block))
    }

    fn complete_from(&mut self, at: u32, _: u32) -> Result<Completed, Self::Error> {
        self.drop_buffer(BlockNumber(self.transit.summary.get(at).block));
        Ok(Completed::Adopted)
    }

    fn put_below(&mut self, at: u32, logical: u32) -> Result<bool, Self::Error> {
        if self.room() <= gc::floor(self) {
            self.make_room()?;
        }
        let block = BlockNumber(self.transit.summary.get(at).block);
        let page = self.find(logical).filter(|&page| self.block_of(page) == block);
        let Some(page) = page else { return Ok(true) };
        let moved = gc::save(self, page, None);
        let is_moved = self.ended(moved)?;
        if !is_moved {
            covered!("ftl: a page of a buffer block cannot be read");
            self.drop_buffer(block);
            // It stays where it is, as collection leaves it.
            self.log.blocks.set_stuck(block);
        }
        Ok(is_moved)
    }

    fn read_stale(&mut self, page: PageNumber) -> Result<(), Self::Error> {
        Ok(self.log.read_raw(page, 0).map(drop)?)
    }

    fn let_go(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        self.drop_buffer(block);
        Ok(())
    }
}
