//! Pages on their way to the chip: programmed at once or staged (`stage.rs` beside this), the commit that makes an
//! operation count, and the blocks that are opened for them.

use super::cache::Cached;
use super::memory::Memory;
use super::victim::SpareWithHint;
use super::{Kind, RETIRED_MAX, STAGED, Space};
use crate::blocks::NO_BLOCK;
use crate::error::Fault;
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError, PageNumber};
use crate::node::{PageHeader, SESSION_START};

/// What a page says of its nodes.
#[derive(Clone, Copy)]
pub(super) struct Label {
    pub lowest: u8,
    pub height: u8,
    pub records: u32,
}

/// Where the bytes to program stand.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Frame(usize),
    Slot(usize),
}

impl<F: Flash, K: Kind> Space<'_, F, K> {
    /// Puts the page in `frame` into the write cache, or programs it. It counts as valid from now on.
    pub(crate) fn program(
        &mut self,
        frame: usize,
        lowest: u8,
        height: u8,
        records: u32,
    ) -> Result<PageNumber, Fault<F::Error>> {
        let label = Label { lowest, height, records };
        if let Some(space) = K::paths_mut(self)
            && !space.at_once
        {
            return space.stage(frame, label);
        }
        // What is to be programmed may be lost to nothing that is read on the way.
        self.frames.forget(frame);
        let page = self.write(Source::Frame(frame), label)?;
        self.cache.remember_written(page, self.frames.bytes(frame));
        if self.keeps_pages {
            self.frames.hold(frame, page);
        } else {
            self.frames.release(frame);
        }
        Ok(page)
    }

    /// Programs the page in `frame` once more, as one that no node leads to and that tells of so
    /// many `records`.
    pub(crate) fn program_mark(
        &mut self,
        frame: usize,
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        let label = Label { lowest: self.lowest(frame), height: 0, records };
        self.frames.forget(frame);
        let page = self.write(Source::Frame(frame), label)?;
        self.frames.release(frame);
        self.blocks.set_valid(page, false);
        Ok(())
    }

    /// Erases `block`, in which nothing is valid. That it is erased is known in RAM only, and if it can be the block
    /// that is opened next.
    pub(crate) fn clear_block(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        if self.blocks.is_empty(block) && Some(block) != self.active_block() && block != self.ready
        {
            self.erase(block)?;
        }
        Ok(())
    }

    /// The header of a page of this index.
    pub(super) const fn header_of(
        &self,
        Label { lowest, height, records }: Label,
        sequence: u64,
        erase_count: u32,
    ) -> PageHeader {
        let (medium, identity) = (self.medium, self.identity);
        let settling = self.settling;
        PageHeader { medium, identity, sequence, lowest, height, erase_count, records, settling }
    }

    /// Seals a page and programs it into the next place that takes it.
    pub(super) fn write(
        &mut self,
        source: Source,
        label: Label,
    ) -> Result<PageNumber, Fault<F::Error>> {
        loop {
            if self.active.0 == NO_BLOCK || self.active.1 >= self.block_pages() {
                self.active = (self.open_block()?, 0);
            }
            let (block, place) = self.active;
            self.active.1 += 1;
            // The first page after a mount commits nothing: once it is there, its number is above those of all that was
            // cut before, and every later mount sees it, or something newer.
            let first = !self.begun && (label.height > 0 || !K::PATHS);
            let label =
                if first { Label { height: 0, records: SESSION_START, ..label } } else { label };
            if self.program_at(block, place, source, label)? {
                let page = self.page_at(block, place);
                self.cache.forget(page.0);
                if place == 0 {
                    self.blocks.set_opened_at(block, self.sequence);
                }
                self.begun = true;
                if first {
                    continue;
                }
                self.blocks.set_valid(page, true);
                return Ok(page);
            }
            self.active = (NO_BLOCK, 0);
        }
    }

    /// Seals a page and programs it. If the chip does not take it, its block is given up.
    #[inline(never)]
    pub(super) fn program_at(
        &mut self,
        block: BlockNumber,
        place: u32,
        source: Source,
        label: Label,
    ) -> Result<bool, Fault<F::Error>> {
        let page = self.page_at(block, place);
        self.memory.note_programmed(page.0);
        self.sequence += 1;
        let hint = if label.lowest > 0 { self.hint_for(block, place) } else { None };
        let erase_count = self.blocks.erase_count(block);
        let header = self.header_of(label, self.sequence, erase_count);
        let (layout, geometry) = (self.layout(), self.geometry());
        let bytes = match source {
            Source::Frame(frame) => self.frames.bytes_mut(frame),
            Source::Slot(slot) => self.cache.bytes_mut(slot),
        };
        layout.seal_as(bytes, &header, K::APPENDS);
        let (main, spare) = bytes.split_at(layout.page_bytes());
        self.operations += 1;
        let mut with_hint = [0; size_of::<SpareWithHint>()];
        let hinted = hint.map(|hint| hint.seal(&geometry, spare, &mut with_hint));
        let spare = hinted.map_or(spare, |bytes| &with_hint[..bytes]);
        let programmed = match self.flash.program(page, main, spare) {
            Ok(()) => !self.verify || self.reads_back(page, source)?,
            Err(error) if error.kind() == ErrorKind::ProgramFailed && self.may_fail() => false,
            Err(error) => return Err(Fault::Device(error)),
        };
        if programmed {
            self.failures = 0;
        } else {
            self.give_up(block);
        }
        Ok(programmed)
    }

    /// Whether `page` holds just the bytes of `source`.
    pub(super) fn reads_back(
        &mut self,
        page: PageNumber,
        source: Source,
    ) -> Result<bool, Fault<F::Error>> {
        let spare_frame = self.frames.count();
        self.operations += 1;
        let page_bytes = self.layout().page_bytes();
        let (main, spare) = self.frames.bytes_mut(spare_frame).split_at_mut(page_bytes);
        match self.flash.read(page, main, spare) {
            Ok(_) => {
                let meant = match source {
                    Source::Frame(frame) => self.frames.bytes(frame),
                    Source::Slot(slot) => self.cache.bytes(slot),
                };
                Ok(self.frames.bytes(spare_frame) == meant)
            }
            Err(error) if error.kind() == ErrorKind::Uncorrectable => Ok(false),
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// The page is garbage from now on.
    pub(super) fn supersede(&mut self, page: PageNumber) {
        self.blocks.supersede(page);
        if K::PATHS {
            self.blocks.track(self.geometry().block_of(page));
        }
    }

    /// The next block to erase and write.
    pub(super) fn next_block(
        &mut self,
        filled: Option<BlockNumber>,
    ) -> Result<BlockNumber, Fault<F::Error>> {
        if let Some(space) = K::paths_mut(self)
            && let Some(block) = space.listed_block()?
        {
            return Ok(block);
        }
        self.next_spared(filled)?.ok_or_else(|| self.no_room(0))
    }

    /// Erases the block that is opened next, so that no change has to wait for it, if the active one is half full.
    /// That it is erased is known in RAM only: after a cut it is erased again. Answers whether it was done.
    pub(crate) fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        let half = self.block_pages() / 2;
        let (active, place) = self.active;
        // A checkpoint names the blocks that are opened after it.
        if K::IN_PLACE
            || self.medium.checkpoints
            || active == NO_BLOCK
            || place < half
            || self.ready != NO_BLOCK
        {
            return Ok(false);
        }
        let Some(block) = self.next_spared(Some(active))? else {
            return Ok(false);
        };
        if self.erase(block)? {
            self.ready = block;
        }
        Ok(true)
    }

    /// Begins to write in the first block, if an index that was replaced in place may have its root there: it is gone
    /// then.
    pub(crate) fn begin_where_roots_are_replaced(&mut self) -> Result<(), Fault<F::Error>> {
        let first = BlockNumber(0);
        if self.begins_in(first) {
            let is_erased = self.blocks.is_empty(first) && self.erase(first)?;
            self.ready = if is_erased { first } else { NO_BLOCK };
        }
        Ok(())
    }

    /// Whether an index that replaces one whose root was replaced in place begins in `block`.
    pub(crate) fn begins_in(&self, block: BlockNumber) -> bool {
        let is_first = block == BlockNumber(0);
        is_first && !K::IN_PLACE && self.capabilities().rewrite && !self.medium.checkpoints
    }

    #[inline(never)]
    fn open_block(&mut self) -> Result<BlockNumber, Fault<F::Error>> {
        let active = self.active_block();
        self.active = (NO_BLOCK, 0);
        let ready = core::mem::replace(&mut self.ready, NO_BLOCK);
        if ready != NO_BLOCK && self.blocks.is_empty(ready) {
            self.blocks.note_open(ready);
            return Ok(ready);
        }
        loop {
            let block = self.next_block(active)?;
            if self.erase(block)? {
                self.blocks.note_open(block);
                return Ok(block);
            }
        }
    }

    /// Erases a block. If it cannot be erased, it is given up.
    #[inline(always)]
    pub(super) fn erase(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let count = self.next_erase_count(block)?;
        self.blocks.note_erase(block, count);
        if K::PATHS {
            self.blocks.untrack(block);
        }
        self.frames.forget_block(block, self.geometry().pages_per_block);
        self.operations += 1;
        match self.flash.erase(block) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::EraseFailed && self.may_fail() => {
                self.give_up(block);
                Ok(false)
            }
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// Notes that the running operation supersedes the node that its parent knows as `page`. Its block can be
    /// erased once the operation has committed.
    pub(crate) fn retire(&mut self, page: PageNumber) {
        let page = self.where_is(page.0);
        if let Some(space) = K::paths_mut(self)
            && page & STAGED != 0
        {
            space.cache.supersede(page);
            return;
        }
        self.retired = self.retired.saturating_add(1);
        self.cache.forget(page);
        match K::paths_mut(self) {
            Some(space) if !space.at_once => space.cache.note_superseded(PageNumber(page)),
            _ => self.supersede(PageNumber(page)),
        }
    }

    /// How many more pages the running operation may retire.
    pub(crate) const fn retirable(&self) -> usize {
        RETIRED_MAX.saturating_sub(self.retired as usize)
    }

    /// Where the page stands that the tree knows as `page`: its number for now, or its name, may be another.
    pub(crate) fn where_is(&self, page: u32) -> u32 {
        if K::IN_PLACE {
            return self.newer_twin(page);
        }
        if K::MAPS {
            return self.mappings.get(page).unwrap_or(page);
        }
        K::paths(self).map_or(page, |space| space.cache.resolve(page))
    }

    /// Whether the node that its parent knows as `name` can be moved without its parent being told.
    pub(crate) fn can_map(&self, name: u32) -> bool {
        self.mappings.takes(name)
    }

    /// The node that its parent knows as `name` stands on `page` from now on. The page whose number is the name
    /// counts as valid until the parent is written: were it programmed, one number would mean two nodes.
    pub(crate) fn map(&mut self, name: u32, page: PageNumber) {
        let is_new = self.mappings.get(name).is_none();
        self.mappings.set(name, page.0);
        if is_new {
            self.blocks.set_valid(PageNumber(name), true);
        }
    }

    /// No parent knows a node as `name` any more.
    pub(crate) fn unname(&mut self, name: u32) {
        if K::MAPS && self.mappings.remove(name) {
            self.blocks.supersede(PageNumber(name));
        }
    }

    /// The running operation ends with its root. What it superseded is garbage, at once or as soon as the
    /// root is on the chip. Answers where the root stands.
    pub(crate) fn commit(&mut self, root: u32) -> Result<u32, Fault<F::Error>> {
        self.retired = 0;
        self.blocks.release();
        K::paths_mut(self).map_or(Ok(root), |space| space.end_staging(root))
    }
}
