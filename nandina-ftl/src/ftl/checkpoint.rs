//! Checkpoints of the mapping, so that a mount need not read every page.
//!
//! A checkpoint is a row of pages with the runs of the mapping, its *parts*, and a directory that
//! says where they are. All of them are pages of the log like any other. The directory also says
//! with which number the checkpoint began, and where the pages were that the FTL keeps about
//! itself. A mount reads the blocks in the order in which they were opened, the newest first, until
//! it has read all that is newer than that number; the rest is in the parts.
//!
//! No mount depends on a checkpoint. Whatever is missing or damaged, the mount reads every page. So
//! the parts need no care: they count as valid while there is room for that, and collection that
//! would have to move one gives the checkpoint up.

use nandina::Fault;
use nandina::flash::{Flash, PageNumber};
use nandina::gc::{self, PageOwner};

use super::bytes::{Kind, List, Own, ROW, RUN, Trims};
use super::mount::LOOKS;
use super::{Ftl, FtlError};
use crate::mapping::{Extent, Mapping, Piece};

/// The directory's record of a page that there is none of.
const NOWHERE: u32 = u32::MAX;

/// Pages that the FTL keeps about itself, which a directory lists before the parts.
const LISTED: [Own; 2] = [Own::Session, Own::Trims];

/// Rows beyond those of full blocks: at both ends, and for blocks that fail.
const ROWS_SPARE: usize = 6;

/// Rows of parts that a mount notes at once.
const ROWS: usize = 8;

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Writes a checkpoint of the mapping: mounts read it and what was written since.
    ///
    /// Call it from time to time, and before [`close`](Self::close). A later checkpoint replaces
    /// it. Volatile trims are durable then. Returns `false` if none was written, because the valid
    /// pages leave too few free ones, or because its directory does not fit in a page: it has 8
    /// bytes for each block with parts, and a part has (page bytes − 16) / 12 runs of the mapping. The parts count among the valid pages.
    /// When logical pages need that room, or collection a block with a part, the checkpoint is
    /// given up.
    ///
    /// Cost: a program for each part and one for the directory, what garbage collection and
    /// settling take, and look-ups of the whole space. Where moved pages have a block of their own,
    /// what is left of both open blocks is not written.
    pub fn checkpoint(&mut self) -> Result<bool, FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        self.settle()?;
        self.list_waiting()?;
        self.give_up_checkpoint()?;
        let rows = List::room(self.page_bytes(), ROW).saturating_sub(LISTED.len() + ROWS_SPARE);
        let most = rows as u32 * self.log.block_pages();
        // What is left of both open blocks is lost.
        let lost = if self.moves_apart { 2 * self.log.block_pages() } else { 0 };
        // Collection may divide runs.
        let mut parts = 0;
        loop {
            let needed = self.parts_needed()?;
            let valid = self.log.blocks.valid_pages() + needed + 1;
            if needed > most || valid > self.limits.valid_pages {
                return Ok(false);
            }
            if needed <= parts {
                break;
            }
            parts = needed;
            let gained = gc::gain_room(self, parts + 1 + lost);
            if matches!(gained, Err(Fault::NoRoom { .. })) && !self.in_doubt {
                self.refused = None;
                return Ok(false);
            }
            self.ended(gained)?;
        }
        self.write_parts()
    }

    /// Parts that the mapping takes now.
    fn parts_needed(&mut self) -> Result<u32, FtlError<F::Error>> {
        let (mut parts, mut from) = (0, 0);
        while from < self.logical_pages {
            from = self.list_runs(from)?;
            parts += 1;
        }
        Ok(parts)
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

    /// Programs the parts and the directory. There is room for them without a collection.
    fn write_parts(&mut self) -> Result<bool, FtlError<F::Error>> {
        if self.moves_apart {
            // A mount reads the newest block that was opened before, and no older one: so none of
            // them may get another page.
            self.log.close_blocks();
        }
        let (bytes, began) = (self.page_bytes(), self.log.sequence());
        self.log.frames.forget(1);
        let mut directory = List(&mut self.log.frames.bytes_mut(1)[..bytes]);
        directory.clear();
        directory.set_head(began, 0);
        for own in LISTED {
            let place = self.own[own as usize].map(|page| self.places.place(page));
            directory.push([place.unwrap_or(NOWHERE), 1]);
        }
        let (mut from, mut position) = (0, 0);
        while from < self.logical_pages {
            let next = self.list_runs(from)?;
            List(&mut self.log.frames.bytes_mut(0)[..bytes]).set_head(began, position);
            self.in_doubt = true;
            let page = self.log.write(0, Kind::Part.label())?;
            self.statistics.programmed += 1;
            self.statistics.own += 1;
            if !note_part(&mut self.log.frames.bytes_mut(1)[..bytes], self.places.place(page)) {
                // So many blocks have failed that the next call mounts again.
                return Ok(false);
            }
            (from, position) = (next, position + 1);
        }
        self.program(1, Kind::Own(Own::Checkpoint))?;
        self.statistics.own += 1;
        Ok(true)
    }

    /// Forgets the checkpoint: its pages do not count as valid any more.
    ///
    /// A later mount may still find it. Cost: one read.
    pub(super) fn give_up_checkpoint(&mut self) -> Result<(), Fault<F::Error>> {
        let Some(page) = self.own[Own::Checkpoint as usize] else { return Ok(()) };
        self.each_part(page, false)?;
        self.own[Own::Checkpoint as usize] = None;
        self.log.supersede(page);
        self.release();
        Ok(())
    }

    /// Counts the pages of the checkpoint as valid, or gives it up if there is no room for them.
    ///
    /// The session before may have given it up, too, and have counted its blocks as room: where
    /// cuts have touched the reserve it is given up again.
    pub(super) fn keep_checkpoint(&mut self) -> Result<(), Fault<F::Error>> {
        let Some(page) = self.own[Own::Checkpoint as usize] else { return Ok(()) };
        self.log.blocks.set_valid(page, true);
        self.each_part(page, true)?;
        if self.room() < self.kept() { self.give_up_checkpoint() } else { self.make_way(0) }
    }

    /// Gives the checkpoint up if `pages` more logical pages would lack room beside it.
    pub(super) fn make_way(&mut self, pages: u32) -> Result<(), Fault<F::Error>> {
        let most = self.limits.valid_pages.saturating_sub(pages);
        if self.log.blocks.valid_pages() > most { self.give_up_checkpoint() } else { Ok(()) }
    }

    /// Counts the parts that the directory at `page` lists as valid, or as garbage.
    ///
    /// Of a directory that cannot be read, the parts are counted as they were.
    fn each_part(&mut self, page: PageNumber, valid: bool) -> Result<(), Fault<F::Error>> {
        let bytes = self.page_bytes();
        if self.checkpoint_began(page)?.is_none() {
            return Ok(());
        }
        let list = List(&mut self.log.frames.bytes_mut(0)[..bytes]);
        let places = self.places;
        for at in LISTED.len()..list.count(ROW) {
            let [first, count] = list.get(at);
            for place in (first..self.mapping.space().physical).take(count as usize) {
                if valid {
                    self.log.blocks.set_valid(places.page(place), true);
                } else {
                    self.log.blocks.supersede(places.page(place));
                }
            }
        }
        Ok(())
    }

    /// Parts of the checkpoint, which count as valid. Cost: one read.
    pub(super) fn checkpoint_parts(&mut self) -> Result<usize, Fault<F::Error>> {
        let Some(page) = self.own[Own::Checkpoint as usize] else { return Ok(0) };
        let bytes = self.page_bytes();
        self.read_kind(page, 0)?;
        let list = List(&mut self.log.frames.bytes_mut(0)[..bytes]);
        let rows = (LISTED.len()..list.count(ROW)).map(|at| list.get::<ROW>(at)[1] as usize);
        Ok(rows.fold(0, usize::saturating_add))
    }

    /// The number at which the checkpoint began whose directory is at `page`.
    ///
    /// `None` if that is no directory. Cost: one read.
    pub(super) fn checkpoint_began(
        &mut self,
        page: PageNumber,
    ) -> Result<Option<u64>, Fault<F::Error>> {
        let bytes = self.page_bytes();
        match self.read_kind(page, 0) {
            Ok(Kind::Own(Own::Checkpoint)) => {
                Ok(Some(List(&mut self.log.frames.bytes_mut(0)[..bytes]).head().0))
            }
            Ok(_) | Err(Fault::Corrupt { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Whether the directory of the checkpoint that began at this number reads the same each time.
    ///
    /// The session before may have given that checkpoint up, and the erase of its block may have
    /// been cut.
    ///
    /// Cost: [`LOOKS`] reads.
    pub(super) fn has_steady_directory(&mut self, began: u64) -> Result<bool, Fault<F::Error>> {
        let Some(page) = self.own[Own::Checkpoint as usize] else { return Ok(false) };
        for _ in 0..LOOKS {
            if self.checkpoint_began(page)? != Some(began) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Maps what the checkpoint has for pages that the mount has not met.
    ///
    /// The mount has read all pages that are newer than the number with which the checkpoint
    /// began. Returns `false` if a part is missing or damaged; what is mapped then is of no use.
    ///
    /// Cost: a read for each part, one for each [`ROWS`] of their rows, and one for the list of
    /// trims.
    pub(super) fn load_checkpoint(&mut self, began: u64) -> Result<bool, FtlError<F::Error>> {
        let Some(directory) = self.own[Own::Checkpoint as usize] else { return Ok(false) };
        let (mut noted, mut position) = (0, 0);
        loop {
            let mut rows = [[NOWHERE, 0]; ROWS];
            let Some(count) = self.note_rows(directory, noted, &mut rows)? else {
                return Ok(false);
            };
            if noted == 0 && !self.read_trims(began)? {
                return Ok(false);
            }
            for &[first, count] in &rows[..count] {
                for part in 0..count {
                    if !self.load_part(first.saturating_add(part), began, position)? {
                        return Ok(false);
                    }
                    position += 1;
                }
            }
            if count < ROWS {
                return Ok(position > 0);
            }
            noted += ROWS;
        }
    }

    /// Notes the rows of parts from the `from`th on, and the FTL's own pages.
    ///
    /// Returns how many rows there are. `None` if there is no directory.
    fn note_rows(
        &mut self,
        directory: PageNumber,
        from: usize,
        rows: &mut [[u32; ROW]; ROWS],
    ) -> Result<Option<usize>, Fault<F::Error>> {
        if self.checkpoint_began(directory)?.is_none() {
            return Ok(None);
        }
        let (bytes, places) = (self.page_bytes(), self.places);
        let list = List(&mut self.log.frames.bytes_mut(0)[..bytes]);
        for (at, own) in LISTED.into_iter().enumerate() {
            let [place, _] = list.get(at);
            let page = Some(place).filter(|&place| place < self.mapping.space().physical);
            let own = &mut self.own[own as usize];
            *own = own.or(page.map(|place| places.page(place)));
        }
        let left = list.count(ROW).saturating_sub(LISTED.len() + from);
        let count = left.min(ROWS);
        for (at, row) in rows[..count].iter_mut().enumerate() {
            *row = list.get(LISTED.len() + from + at);
        }
        Ok(Some(count))
    }

    /// Reads the list of trims into page buffer 1 if it is newer than the checkpoint.
    ///
    /// Else makes that an empty list. What it names is a hole, or the mount has met a newer copy.
    fn read_trims(&mut self, began: u64) -> Result<bool, Fault<F::Error>> {
        let bytes = self.page_bytes();
        let mut is_newer = false;
        if let Some(page) = self.own[Own::Trims as usize] {
            match self.read_kind(page, 1) {
                Ok(Kind::Own(Own::Trims)) => {}
                Ok(_) | Err(Fault::Corrupt { .. }) => return Ok(false),
                Err(fault) => return Err(fault),
            }
            let list = Trims(&mut self.log.frames.bytes_mut(1)[..bytes]);
            is_newer = list.as_of() > began;
        }
        if !is_newer {
            self.log.frames.forget(1);
            Trims(&mut self.log.frames.bytes_mut(1)[..bytes]).clear();
        }
        Ok(true)
    }

    /// Maps the runs of a part, where nothing newer is mapped and nothing was trimmed since.
    fn load_part(
        &mut self,
        place: u32,
        began: u64,
        position: u32,
    ) -> Result<bool, FtlError<F::Error>> {
        let (bytes, space) = (self.page_bytes(), self.mapping.space());
        if place >= space.physical {
            return Ok(false);
        }
        match self.read_kind(self.places.page(place), 0) {
            Ok(Kind::Part) => {}
            Ok(_) | Err(Fault::Corrupt { .. }) => return Ok(false),
            Err(fault) => return Err(fault.into()),
        }
        let list = List(&mut self.log.frames.bytes_mut(0)[..bytes]);
        let count = list.count(RUN);
        if list.head() != (began, position) || count == 0 {
            // A mapping without runs has one empty part.
            return Ok(list.head() == (began, position));
        }
        for at in 0..count {
            let [start, length, place] =
                List(&mut self.log.frames.bytes_mut(0)[..bytes]).get::<RUN>(at);
            let run = Extent::new(start, length);
            if let Some(end) = start.checked_add(length)
                && end > self.logical_pages
            {
                return Err(FtlError::LogicalPages { found: end - 1, given: self.logical_pages });
            }
            if space.admit_run(run, place).is_err() {
                return Ok(false);
            }
            self.load_run(run, place)?;
        }
        Ok(true)
    }

    fn load_run(&mut self, run: Extent, place: u32) -> Result<(), FtlError<F::Error>> {
        let mut from = run.start;
        while from < run.end() {
            let mut hole = None;
            self.mapping.look_up(Extent::between(from, run.end()), &mut |piece| {
                if piece.physical.is_none() && hole.is_none() {
                    hole = Some(Extent::new(piece.logical, piece.length));
                }
            })?;
            let Some(hole) = hole else { break };
            let (start, end) = self.outside_trims(hole);
            if start < end {
                let place = place + (start - run.start);
                self.mapping.update(Extent::between(start, end), place, &mut |_| {})?;
            }
            from = end.max(start);
        }
        Ok(())
    }

    /// The first pages of `hole` that the list in page buffer 1 does not name.
    ///
    /// If there are none, both numbers are the end of what it names.
    fn outside_trims(&mut self, hole: Extent) -> (u32, u32) {
        let bytes = self.page_bytes();
        let list = Trims(&mut self.log.frames.bytes_mut(1)[..bytes]);
        let mut end = hole.end();
        for at in 0..list.count() {
            let trim = list.get(at);
            let trimmed_to = trim.start.saturating_add(trim.length);
            if trim.start <= hole.start && hole.start < trimmed_to {
                let to = trimmed_to.min(hole.end());
                return (to, to);
            }
            if hole.start < trim.start {
                end = end.min(trim.start);
            }
        }
        (hole.start, end)
    }
}

/// Adds a part to the directory. Returns `false` if that is full.
fn note_part(directory: &mut [u8], place: u32) -> bool {
    let mut list = List(directory);
    let last = list.count(ROW) - 1;
    let [first, count] = list.get::<ROW>(last);
    if last >= LISTED.len() && first + count == place {
        list.set(last, [first, count + 1]);
        return true;
    }
    list.push([place, 1])
}
