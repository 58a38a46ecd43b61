//! Writes pages with nodes to the log, and commits operations.
//!
//! Pages are programmed at once, or staged (`space/stage.rs`).

use super::memory::Memory;
use super::{Checkpointing, Kind, Space};
use crate::cache::Cached;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::log::{Label, Source};
use crate::node::ONE_BY_ONE;

/// Where the bytes of a page are.
#[derive(Clone, Copy)]
pub(super) enum Bytes {
    Frame(usize),
    /// A slot of the write cache.
    Slot(usize),
}

impl<F: Flash, K: Kind> Space<'_, F, K> {
    /// Programs the page in page buffer `frame`, or stages it in the write cache.
    ///
    /// `lowest` is the lowest level of its nodes. `height` is that of the tree if the page holds
    /// the root, which commits, and 0 otherwise. `records` is the number of records in the index.
    /// The page is valid from now on, and its number is returned.
    ///
    /// Cost: one program; an erase where a block is opened.
    pub fn program(
        &mut self,
        frame: usize,
        lowest: u8,
        height: u8,
        records: u32,
    ) -> Result<PageNumber, Fault<F::Error>> {
        let label = Label { lowest, height, records };
        if let Some(page) = K::stage(self, frame, label)? {
            return Ok(page);
        }
        // No read on the way may displace the bytes to be programmed.
        self.log.frames.forget(frame);
        let page = self.write(Bytes::Frame(frame), label)?;
        self.cache.remember_written(page, self.log.frames.bytes(frame));
        if self.keeps_pages() {
            self.log.frames.hold(frame, page);
        } else {
            self.log.frames.release(frame);
        }
        Ok(page)
    }

    /// Programs the page in `frame` again, as a mark to which no node leads.
    ///
    /// `records` is the value of its records field.
    pub(crate) fn program_mark(
        &mut self,
        frame: usize,
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        let label = Label { lowest: self.log.lowest(frame), height: 0, records };
        self.log.frames.forget(frame);
        let page = self.write(Bytes::Frame(frame), label)?;
        self.log.frames.release(frame);
        self.log.blocks.set_valid(page, false);
        Ok(())
    }

    /// Seals a page and programs it into the next place; on failure the one after.
    // A frame of its own would lie between that of the caller and the chip.
    #[inline(always)]
    pub(super) fn write(
        &mut self,
        bytes: Bytes,
        label: Label,
    ) -> Result<PageNumber, Fault<F::Error>> {
        loop {
            let Some(page) = self.log.next_page() else {
                self.open_block()?;
                continue;
            };
            if self.append(page, bytes, label)? {
                return Ok(page);
            }
        }
    }

    /// Seals a page and programs it into `page`, the next place.
    ///
    /// Returns `false` if the program failed, or if it began the session and committed nothing.
    // Apart from the loop above, so that this is not on the stack where a block is opened.
    #[inline(never)]
    fn append(
        &mut self,
        page: PageNumber,
        bytes: Bytes,
        label: Label,
    ) -> Result<bool, Fault<F::Error>> {
        // The first page after a mount commits nothing. Once it is programmed, its sequence number
        // is above those of all pages that were cut earlier, and every later mount sees it, or
        // something newer.
        let first = !self.log.has_begun() && (label.height > 0 || K::UPDATES.pages_commit());
        let label = if first { label.of_session() } else { label };
        self.memory.note_programmed(page.0);
        let source = match bytes {
            Bytes::Frame(frame) => Source::Frame(frame),
            Bytes::Slot(slot) => Source::Bytes(self.cache.bytes_mut(slot)),
        };
        let is_part = K::ONE_BY_ONE && label.lowest == ONE_BY_ONE;
        let programmed = match is_part {
            true => self.log.append_part(source, label)?,
            false => self.log.append(source, label)?,
        };
        if !programmed {
            return Ok(false);
        }
        #[cfg(debug_assertions)]
        self.operation.note(label.height > 0);
        self.cache.forget(page.0);
        if !first {
            self.log.blocks.set_valid(page, true);
        }
        Ok(!first)
    }

    /// Opens the next block, which the checkpoint may prescribe.
    #[inline(never)]
    fn open_block(&mut self) -> Result<(), Fault<F::Error>> {
        let filled = self.log.close_block();
        if self.log.open_ready() {
            // A checkpoint lists the blocks that may be opened after it.
            debug_assert!(!self.log.medium.checkpoints, "a block is opened that is not listed");
            return Ok(());
        }
        loop {
            let block = K::Checkpoints::next_block(self, filled)?;
            if self.log.open(block)? {
                return Ok(());
            }
        }
    }

    /// Erases the next block ahead of need, unless a checkpoint prescribes it.
    ///
    /// See [`Log::prepare_block`](crate::log::Log::prepare_block).
    pub(crate) fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        Ok(K::UPDATES.collects() && !self.log.medium.checkpoints && self.log.prepare_block()?)
    }

    /// Makes the first block the next one, to erase an old root in it.
    ///
    /// An index that was replaced in place may have its root there.
    pub(crate) fn begin_where_roots_are_replaced(&mut self) -> Result<(), Fault<F::Error>> {
        let first = BlockNumber(0);
        if self.begins_in_first() { self.log.make_ready(first) } else { Ok(()) }
    }

    /// Whether a new index begins in the first block.
    ///
    /// That erases a root that was replaced in place.
    pub(crate) fn begins_in_first(&self) -> bool {
        K::UPDATES.collects() && self.log.capabilities().rewrite && !self.log.medium.checkpoints
    }

    /// The block to collect next, of those that gain room.
    ///
    /// `gains` says whether a block with that number of valid pages gains room.
    pub(crate) fn victim(&self, gains: impl Fn(u32) -> bool) -> Option<BlockNumber> {
        if K::UPDATES.collects() { self.log.victim(gains) } else { None }
    }

    /// Whether it is time to look for a block with cold data.
    ///
    /// `pages` is the number of pages that an operation programs.
    pub(crate) fn wear_due(&self, pages: u32) -> bool {
        K::UPDATES.collects() && self.log.wear_due(pages)
    }

    /// Pages kept free for the blocks that may still fail.
    #[inline(never)]
    pub(crate) fn room_to_fail(&self) -> u32 {
        let log = &self.log;
        crate::gc::room_to_fail(log.blocks.bad_blocks(), log.reserve_blocks(), log.block_pages())
    }

    /// Notes that the running operation supersedes the node at address `page`.
    ///
    /// `page` is the pointer in its parent. The node's block can be erased once the operation has
    /// committed.
    pub fn retire(&mut self, page: PageNumber) {
        let page = self.current_page(page.0);
        K::supersede(self, page);
    }

    /// Forgets the content of a page that the running operation supersedes.
    pub(crate) fn forget_superseded(&mut self, page: u32) {
        self.running.note_superseded();
        self.cache.forget(page);
    }

    /// Whether the running operation superseded a page.
    pub(crate) const fn has_superseded(&self) -> bool {
        self.running.has_superseded()
    }

    /// How many more pages the running operation may supersede.
    pub(crate) const fn retirable(&self) -> usize {
        self.running.retirable()
    }

    /// The current page of the node to which pointers of the tree refer as `page`.
    ///
    /// `page` may be the number of a staged page, or a logical address.
    pub(crate) fn current_page(&self, page: u32) -> u32 {
        K::resolve(self, page)
    }

    /// Whether the node at address `name` can move without writing its parent.
    ///
    /// On a damaged medium two parents may refer to one node. When one of them has its own address
    /// for it, the page with that number can be free, or wait for its program: it is no address.
    pub(crate) fn can_map(&self, name: u32) -> bool {
        let (log, page) = (&self.log, PageNumber(name));
        let block = log.geometry().block_of(page);
        let is_free = log.blocks.is_empty(block) && Some(block) != log.active_block();
        self.mappings.takes(name) && !is_free && !log.is_ahead(page)
    }

    /// Notes that the node with the logical address `name` is now on `page`.
    ///
    /// The page whose number is the logical address counts as valid until the parent is written: if
    /// it were programmed, one number would mean two nodes.
    pub(crate) fn map(&mut self, name: u32, page: PageNumber) {
        let is_new = self.mappings.get(name).is_none();
        self.mappings.set(name, page.0);
        if is_new {
            self.log.blocks.set_valid(PageNumber(name), true);
        }
        // A page whose number is a logical address is not programmed: it counts as valid, and the
        // log programs no valid page. (What a mount of a damaged medium mapped is not checked.)
        debug_assert!(!is_new || self.log.blocks.is_valid(PageNumber(name)), "{name} is not taken");
    }

    /// Notes that no parent refers to a node by `name` any more.
    pub fn forget_address(&mut self, name: u32) {
        K::forget_address(self, name);
    }

    /// Begins an operation. If `at_once`, its pages are not staged.
    ///
    /// Garbage collection does so. Nothing may be staged at that time.
    pub(crate) fn begin_operation(&mut self, at_once: bool) {
        #[cfg(debug_assertions)]
        self.operation.begin(self.log.sequence());
        K::begin_operation(self, at_once);
    }

    /// Commits the running operation with its root. Returns the root's page.
    ///
    /// What the operation superseded becomes garbage, at once or as soon as the root is on the
    /// chip.
    pub(crate) fn commit(&mut self, root: u32) -> Result<u32, Fault<F::Error>> {
        self.running.end();
        self.log.blocks.release();
        #[cfg(debug_assertions)]
        self.check_commit();
        K::commit(self, root)
    }
}
