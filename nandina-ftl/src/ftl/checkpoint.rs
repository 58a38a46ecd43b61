//! Checkpoints of the mapping, so that a mount need not look into every block.
//!
//! A checkpoint is a row of pages, its *parts*: how often each block was erased, then the runs of
//! the mapping. They fill blocks of their own. Its *directory* says where they are, and which
//! blocks may be opened after it; one of two *anchors* holds it (`anchors.rs`). A mount reads the
//! directory, the blocks that it lists as far as they were opened since, and the parts.
//!
//! As long as blocks are written, the list has to grow: another directory of the same checkpoint is
//! written before the listed blocks run short, and lists twice as many. So there are few of them,
//! and a mount looks at no more than some blocks for each that was opened.
//!
//! No mount depends on a checkpoint (`restore.rs`). Whatever is missing or damaged, it reads every
//! page. Where room for the blocks of a checkpoint is lacking, it is given up.

use nandina::flash::{BlockNumber, Flash};
use nandina::gc::{self, PageOwner};
use nandina::log::Source;
use nandina::{Fault, covered};

use super::bytes::{COUNT, Directory, Kind, List, NEW, Own, RUN};
use super::{Ftl, FtlError};
use crate::mapping::{Extent, Mapping, Piece};

/// Blocks that the first directory of a checkpoint lists, if so many are free.
const LISTED_FIRST: u32 = 16;

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Writes a checkpoint of the mapping: mounts read it and what was written since.
    ///
    /// Call it from time to time, and before [`close`](Self::close). A later checkpoint replaces
    /// it. Volatile trims are durable then. It takes two blocks and those of its parts, each of
    /// which has (page bytes − 16) / 12 runs of the mapping, or (page bytes − 16) / 4 erase counts.
    /// Returns `false` if none was written, because the valid pages leave too few blocks free,
    /// because its directory does not fit in a page, which takes 4 bytes for each block with parts
    /// and at most a quarter of the page more, or because a block failed or a page could not be
    /// read meanwhile. The former checkpoint is gone then, too. When logical pages need its room,
    /// the checkpoint is given up.
    ///
    /// Cost: a program for each part and one for the directory, an erase for each block of them and
    /// two or three for the anchors, what garbage collection and settling take, and look-ups of the
    /// whole space. The first one moves what is in the first two blocks of the chip. What is left
    /// of the open blocks is not written. Later, each time when the blocks opened since have
    /// doubled, a change costs two erases and a program more.
    pub fn checkpoint(&mut self) -> Result<bool, FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        self.begin()?;
        self.list_waiting()?;
        self.drop_buffers();
        self.give_up_checkpoint()?;
        let written = self.write_checkpoint();
        if !matches!(written, Ok(true)) && !self.in_doubt {
            self.give_up_checkpoint()?;
        }
        written
    }

    fn write_checkpoint(&mut self) -> Result<bool, FtlError<F::Error>> {
        let block_pages = self.log.block_pages();
        let estimate = self.parts_needed()?;
        if !self.has_room_for(estimate)? || !self.take_anchors()? {
            return Ok(false);
        }
        // Moves may have divided runs, and those that make room may again.
        let mut parts = 0;
        loop {
            let needed = self.parts_needed()?;
            if !self.has_room_for(needed)? {
                return Ok(false);
            }
            if needed <= parts {
                break;
            }
            parts = needed;
            // What is left of the open blocks is lost.
            if !self.gain_pages((parts.div_ceil(block_pages) + 2) * block_pages)? {
                return Ok(false);
            }
        }
        self.turn(NEW);
        // A mount reads none of the blocks opened before: so none of them may get another page.
        self.log.close_blocks();
        self.in_doubt = true;
        let written = self.write_parts();
        // A device that gave up leaves it in doubt.
        self.in_doubt = matches!(written, Err(FtlError::Device(_)));
        written
    }

    /// Parts that the mapping and the erase counts take now.
    fn parts_needed(&mut self) -> Result<u32, FtlError<F::Error>> {
        let (mut parts, mut from) = (self.count_parts(), 0);
        while from < self.logical_pages {
            from = self.list_runs(from)?;
            parts += 1;
        }
        Ok(parts)
    }

    /// Parts with erase counts, which come first.
    pub(super) fn count_parts(&self) -> u32 {
        self.log.blocks.count().div_ceil(self.counts_in_part())
    }

    pub(super) fn counts_in_part(&self) -> u32 {
        List::room(self.page_bytes(), COUNT).max(1) as u32
    }

    /// Whether a checkpoint with so many parts fits in its directory and on the chip.
    fn has_room_for(&mut self, parts: u32) -> Result<bool, FtlError<F::Error>> {
        let (bytes, blocks) = (self.page_bytes(), self.log.blocks.count());
        let taken = parts.div_ceil(self.log.block_pages());
        let area = &mut self.log.frames.bytes_mut(1)[..bytes];
        let fits = Directory::new(area, blocks).is_some_and(|list| taken as usize <= list.room());
        let held = (taken + 2).saturating_mul(self.log.block_pages());
        let most = self.limits.valid_pages.saturating_sub(held);
        Ok(fits && self.log.blocks.valid_pages() <= most)
    }

    /// Makes room for `pages` pages beside those that have to be free, if that is possible.
    fn gain_pages(&mut self, pages: u32) -> Result<bool, FtlError<F::Error>> {
        let gained = gc::gain_room(self, pages);
        self.moved(gained)
    }

    /// Whether pages could be moved.
    fn moved(&mut self, moved: Result<(), Fault<F::Error>>) -> Result<bool, FtlError<F::Error>> {
        let is_stopped = matches!(moved, Err(Fault::NoRoom { .. } | Fault::Corrupt { .. }));
        if is_stopped && !self.in_doubt {
            self.refused = None;
            return Ok(false);
        }
        self.ended(moved).map(|()| true)
    }

    /// Empties the anchors, and keeps them from all other use.
    fn take_anchors(&mut self) -> Result<bool, FtlError<F::Error>> {
        let Some(places) = self.anchors.find_places(&mut self.log)? else { return Ok(false) };
        let valid: u32 = places.iter().map(|&block| self.log.blocks.valid_in(block)).sum();
        // The open blocks are closed before and after.
        if !self.gain_pages(valid + 5 * self.log.block_pages())? {
            return Ok(false);
        }
        self.log.close_blocks();
        for block in places {
            if self.log.blocks.is_bad(block) {
                return Ok(false);
            }
            if self.log.blocks.is_empty(block) {
                self.log.blocks.set_reserved(block, true);
            }
        }
        for block in places {
            let mut from = 0;
            while let Some((page, place)) = gc::next_valid(self, block, from)? {
                from = place + 1;
                let moved = self.relocate(page, None);
                if !self.moved(moved)? {
                    return Ok(false);
                }
            }
            if !self.log.blocks.is_reserved(block) {
                if !self.log.blocks.is_empty(block) {
                    return Ok(false);
                }
                self.log.blocks.set_reserved(block, true);
            }
        }
        Ok(true)
    }

    /// Fills page buffer 0 with runs from `from` on. Returns where the next part begins.
    fn list_runs(&mut self, from: u32) -> Result<u32, FtlError<F::Error>> {
        let bytes = self.page_bytes();
        self.log.frames.forget(0);
        let list = &mut List(&mut self.log.frames.bytes_mut(0)[..bytes]);
        list.clear();
        let mut next = from;
        while next < self.logical_pages {
            let room = List::room(bytes, RUN) - list.count(RUN);
            // No extent has more pieces than pages.
            let end = next.saturating_add(room as u32).min(self.logical_pages);
            if room == 0 {
                break;
            }
            self.mapping.look_up(Extent::between(next, end), &mut |piece| {
                let Piece { logical, length, physical: Some(place) } = piece else { return };
                let last = list.count(RUN).checked_sub(1).map(|at| (at, list.get::<RUN>(at)));
                match last {
                    Some((at, [start, count, first]))
                        if start + count == logical && first + count == place =>
                    {
                        list.set(at, [start, count + length, first]);
                    }
                    _ => {
                        list.push([logical, length, place]);
                    }
                }
            })?;
            next = end;
        }
        Ok(next)
    }

    /// Fills page buffer 0 with the erase counts of the part at `position`.
    fn list_counts(&mut self, position: u32) {
        let (bytes, each) = (self.page_bytes(), self.counts_in_part());
        self.log.frames.forget(0);
        let blocks = &self.log.blocks;
        let list = &mut List(&mut self.log.frames.bytes_mut(0)[..bytes]);
        list.clear();
        let from = position * each;
        for block in from..blocks.count().min(from.saturating_add(each)) {
            list.push([blocks.erase_count(BlockNumber(block))]);
        }
    }

    /// Programs the parts and the directory. There is room for them without a collection.
    fn write_parts(&mut self) -> Result<bool, FtlError<F::Error>> {
        let (bytes, blocks) = (self.page_bytes(), self.log.blocks.count());
        let (began, block_pages) = (self.log.sequence(), self.log.block_pages());
        self.log.frames.forget(1);
        let (mut from, mut position, counts) = (0, 0, self.count_parts());
        let mut open = None;
        while position < counts || from < self.logical_pages {
            if position % block_pages == 0 {
                open = self.open_part_block(began, position == 0)?;
            }
            let Some(block) = open else { return Ok(false) };
            if position < counts {
                self.list_counts(position);
            } else {
                from = self.list_runs(from)?;
            }
            List(&mut self.log.frames.bytes_mut(0)[..bytes]).set_head(began, position);
            let place = position % block_pages;
            if !self.log.program_at(block, place, Source::Frame(0), Kind::Part.label())? {
                covered!("ftl: a part of a checkpoint cannot be programmed");
                return Ok(false);
            }
            self.statistics.programmed += 1;
            self.statistics.own += 1;
            position += 1;
        }
        self.anchors.list_more(&self.log, LISTED_FIRST);
        let area = &mut self.log.frames.bytes_mut(1)[..bytes];
        let Some(mut directory) = Directory::new(area, blocks) else { return Ok(false) };
        directory.set_parts(position);
        let held = directory.count() as u32 + 2;
        self.write_directory(held)
    }

    /// Erases a block for parts, and adds it to the directory in page buffer 1.
    ///
    /// The `first` one begins the directory.
    fn open_part_block(
        &mut self,
        began: u64,
        first: bool,
    ) -> Result<Option<BlockNumber>, FtlError<F::Error>> {
        let (bytes, blocks, places) = (self.page_bytes(), self.log.blocks.count(), self.places);
        if first {
            self.anchors.listed.clear();
            let own = [Own::Session, Own::Trims].map(|own| (own, self.own[own as usize]));
            let area = &mut self.log.frames.bytes_mut(1)[..bytes];
            let Some(mut directory) = Directory::new(area, blocks) else { return Ok(None) };
            directory.clear(began);
            for (own, page) in own {
                directory.set_own(own, page.map(|page| places.place(page)));
            }
        }
        let block = loop {
            let Some(block) = self.log.next_spared(None)? else { return Ok(None) };
            if self.log.erase(block)? {
                self.log.blocks.set_reserved(block, true);
                break block;
            }
        };
        let area = &mut self.log.frames.bytes_mut(1)[..bytes];
        let is_added = Directory::new(area, blocks).is_some_and(|mut list| list.push(block));
        Ok(is_added.then_some(block))
    }

    /// Puts the directory in page buffer 1 in force, with the blocks that are listed in RAM.
    ///
    /// Returns `false` if a block failed: then no directory is in force.
    fn write_directory(&mut self, held: u32) -> Result<bool, FtlError<F::Error>> {
        let (bytes, blocks) = (self.page_bytes(), self.log.blocks.count());
        let area = &mut self.log.frames.bytes_mut(1)[..bytes];
        let Some(mut directory) = Directory::new(area, blocks) else { return Ok(false) };
        for block in self.log.blocks.all() {
            if self.anchors.listed.has(block) {
                directory.list(block);
            }
        }
        // With a block its group is listed.
        for block in self.log.blocks.all() {
            if directory.lists(block) {
                self.anchors.listed.insert(block);
            }
        }
        let Self { anchors, log, .. } = self;
        let written = anchors.write(log, 1, Kind::Directory.label(), held)?;
        if written {
            self.statistics.programmed += 1;
            self.statistics.own += 1;
        } else {
            covered!("ftl: no anchor can be written");
            self.anchors.leave(&mut self.log);
            self.anchors.erase_stale(&mut self.log)?;
        }
        if self.waiting.is_empty() {
            self.log.mark_bad_blocks()?;
        }
        Ok(written)
    }

    /// Lists more blocks that may be opened, if few are left of those that are listed.
    ///
    /// Cost: none in most cases; else a read, two erases and a program.
    pub(super) fn list_ahead(&mut self) -> Result<(), FtlError<F::Error>> {
        if !self.anchors.lack(&self.log) {
            return Ok(());
        }
        let Some(current) = self.anchors.current() else { return Ok(()) };
        let held = self.anchors.held();
        self.log.frames.forget(1);
        let page = self.log.page_at(current, 0);
        if !self.load_directory(page, 1)? {
            covered!("ftl: the directory in force has faded");
            return self.give_up_checkpoint_now();
        }
        covered!("ftl: a directory is written again, with more blocks");
        let enough = 2 * self.anchors.listed.count();
        self.anchors.list_more(&self.log, enough);
        self.in_doubt = true;
        self.write_directory(held)?;
        self.in_doubt = false;
        Ok(())
    }

    /// Whether the next mount will use a checkpoint that was written before.
    ///
    /// If not, it reads every written page. An FTL gives its checkpoint up where room is lacking,
    /// and a mount cannot use one that is damaged.
    pub fn has_checkpoint(&self) -> bool {
        self.anchors.current().is_some()
    }

    /// Forgets the checkpoint, and frees its blocks. The directory is erased at once.
    ///
    /// Cost: at most two erases.
    pub(super) fn give_up_checkpoint(&mut self) -> Result<(), FtlError<F::Error>> {
        if self.anchors.current().is_none() && !self.anchors.has_stale() {
            // What a checkpoint that was not completed has taken.
            self.anchors.leave(&mut self.log);
            return Ok(());
        }
        self.give_up_checkpoint_now()
    }

    fn give_up_checkpoint_now(&mut self) -> Result<(), FtlError<F::Error>> {
        self.in_doubt = true;
        self.anchors.leave(&mut self.log);
        self.anchors.erase_stale(&mut self.log)?;
        self.in_doubt = false;
        Ok(())
    }

    /// Gives the checkpoint up if there is no room for its blocks. Nothing is written here.
    pub(super) fn keep_checkpoint(&mut self) {
        if self.anchors.current().is_some() && self.lacks_room_for(0) {
            self.anchors.leave(&mut self.log);
        }
    }

    /// Pages of the blocks that are reserved for the checkpoint.
    pub(super) fn held_pages(&self) -> u32 {
        self.anchors.held().saturating_mul(self.log.block_pages())
    }

    /// Whether `pages` more logical pages lack room beside the checkpoint.
    fn lacks_room_for(&self, pages: u32) -> bool {
        let most = self.limits.valid_pages.saturating_sub(pages).saturating_sub(self.held_pages());
        self.log.blocks.valid_pages() > most
    }

    /// Gives the checkpoint up if `pages` more logical pages would lack room beside it.
    pub(super) fn make_way(&mut self, pages: u32) -> Result<(), FtlError<F::Error>> {
        let lacks = self.anchors.current().is_some() && self.lacks_room_for(pages);
        if lacks { self.give_up_checkpoint() } else { Ok(()) }
    }
}
