//! Mounting from a checkpoint: its directory, and what its parts say. Nothing is written here.
//!
//! Whatever is missing or damaged is no error: the mount reads every page then.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::node::{PageFault, PageHeader};
use nandina::{Fault, covered};

use super::bytes::{COUNT, Directory, Kind, List, Own, RUN, Trims};
use super::{Ftl, FtlError};
use crate::mapping::{Extent, Mapping};

/// Blocks with parts that a mount notes at once.
const NOTED: usize = 8;

/// A directory that a mount has found.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub page: PageNumber,
    pub sequence: u64,
    pub identity: u32,
    /// The number at which its checkpoint began.
    pub began: u64,
}

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Finds the directory of the newest checkpoint, and reserves the blocks that it names.
    ///
    /// Cost: two reads, and one to read the directory.
    pub(super) fn find_directory(&mut self) -> Result<Option<Found>, Fault<F::Error>> {
        self.anchors.forget(&mut self.log);
        let Some(places) = self.anchors.find_places(&mut self.log)? else { return Ok(None) };
        let (mut newest, mut is_other): (Option<(usize, Found)>, _) = (None, false);
        for (which, block) in places.into_iter().enumerate() {
            let page = self.log.page_at(block, 0);
            let header = match self.log.read_raw(page, 0)? {
                Ok(header) => header,
                Err(PageFault::Erased) => continue,
                Err(_) => {
                    if self.holds_other_pages(block)? {
                        is_other = true;
                    } else {
                        // Perhaps a directory that will be readable again.
                        covered!("ftl: a directory cannot be read");
                        self.anchors.note_stale(which);
                    }
                    continue;
                }
            };
            if !self.is_directory(&header) {
                is_other = true;
                continue;
            }
            self.anchors.note_stale(which);
            self.log.blocks.set_erase_count(block, header.erase_count);
            let (sequence, identity) = (header.sequence, header.identity);
            if newest.is_none_or(|(_, found)| found.sequence < sequence) {
                newest = Some((which, Found { page, sequence, identity, began: 0 }));
            }
        }
        // While there is a checkpoint, neither holds any other page.
        let Some((which, mut found)) = newest.filter(|_| !is_other) else { return Ok(None) };
        let Some((began, held)) = self.read_directory(found.page, places)? else {
            return Ok(None);
        };
        found.began = began;
        // The other one was erased before, or behind it.
        let erases = self.log.blocks.erase_count(places[which]).saturating_sub(1);
        self.log.blocks.set_erase_count(places[1 - which], erases);
        for block in places {
            self.log.blocks.set_reserved(block, true);
        }
        self.anchors.put_in_force(which, held);
        Ok(Some(found))
    }

    /// Reads the directory at `page` into page buffer `frame`. Returns `false` if none is there.
    pub(super) fn load_directory(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<bool, Fault<F::Error>> {
        match self.read_kind(page, frame) {
            Ok(kind) => Ok(kind == Kind::Directory),
            Err(Fault::Corrupt { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Whether the page in page buffer 0, which has this header, is a directory.
    fn is_directory(&self, header: &PageHeader) -> bool {
        let kind = Kind::of(header.lowest, header.records);
        self.log.is_ours(0) && kind == Kind::Directory
    }

    /// Whether the first readable page of a block is no directory.
    pub(super) fn holds_other_pages(
        &mut self,
        block: BlockNumber,
    ) -> Result<bool, Fault<F::Error>> {
        let header = self.log.first_header(block)?;
        Ok(header.is_some_and(|header| !self.is_directory(&header)))
    }

    /// Reads the directory at `page` into RAM: the blocks that it lists, and those of its parts.
    ///
    /// Returns at which number the checkpoint began, and how many blocks are reserved for it.
    fn read_directory(
        &mut self,
        page: PageNumber,
        anchors: [BlockNumber; 2],
    ) -> Result<Option<(u64, u32)>, Fault<F::Error>> {
        if !self.load_directory(page, 0)? {
            return Ok(None);
        }
        let (bytes, blocks) = (self.page_bytes(), self.log.blocks.count());
        let block_pages = self.log.block_pages();
        let area = &mut self.log.frames.bytes_mut(0)[..bytes];
        let Some(directory) = Directory::new(area, blocks) else { return Ok(None) };
        let count = directory.count();
        let is_right = directory.parts().div_ceil(block_pages) as usize == count
            && (0..count)
                .map(|at| directory.block(at))
                .all(|block| block.0 < blocks && !anchors.contains(&block));
        if !is_right {
            return Ok(None);
        }
        for block in self.log.blocks.all().filter(|&block| directory.lists(block)) {
            self.anchors.listed.insert(block);
        }
        (0..count).for_each(|at| self.log.blocks.set_reserved(directory.block(at), true));
        Ok(Some((directory.began(), count as u32 + 2)))
    }

    /// Maps what the checkpoint has for pages that the mount has not met.
    ///
    /// The mount has read all pages that are newer than the number with which the checkpoint
    /// began. Returns `false` if a part is missing or damaged; what is mapped then is of no use.
    ///
    /// Cost: a read for each part, one for each [`NOTED`] of their blocks, and one for the list of
    /// trims.
    pub(super) fn load_checkpoint(&mut self, found: &Found) -> Result<bool, FtlError<F::Error>> {
        let (mut noted, mut position) = (0, 0);
        let block_pages = self.log.block_pages();
        loop {
            let mut blocks = [BlockNumber(0); NOTED];
            let Some((count, parts)) = self.note_blocks(found.page, noted, &mut blocks)? else {
                return Ok(false);
            };
            if noted == 0 && !self.read_trims(found.began)? {
                return Ok(false);
            }
            for &block in &blocks[..count] {
                for place in 0..block_pages.min(parts - position) {
                    let page = self.log.page_at(block, place);
                    if !self.load_part(page, found.began, position)? {
                        return Ok(false);
                    }
                    position += 1;
                }
            }
            if count < NOTED {
                return Ok(position == parts && parts > 0);
            }
            noted += NOTED;
        }
    }

    /// Notes the blocks with parts from the `from`th on, and the FTL's own pages.
    ///
    /// Returns how many blocks these are, and how many parts there are in all.
    fn note_blocks(
        &mut self,
        directory: PageNumber,
        from: usize,
        noted: &mut [BlockNumber; NOTED],
    ) -> Result<Option<(usize, u32)>, Fault<F::Error>> {
        if !self.load_directory(directory, 0)? {
            return Ok(None);
        }
        let (bytes, blocks, places) = (self.page_bytes(), self.log.blocks.count(), self.places);
        let area = &mut self.log.frames.bytes_mut(0)[..bytes];
        let Some(directory) = Directory::new(area, blocks) else { return Ok(None) };
        for own in Own::ALL {
            let place = directory.own(own).filter(|&place| place < self.mapping.space().physical);
            let own = &mut self.own[own as usize];
            *own = own.or(place.map(|place| places.page(place)));
        }
        let count = directory.count().saturating_sub(from).min(NOTED);
        for (at, noted) in noted[..count].iter_mut().enumerate() {
            *noted = directory.block(from + at);
        }
        Ok(Some((count, directory.parts())))
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

    /// Takes what a part says: erase counts, or runs.
    ///
    /// Runs are mapped where nothing newer is mapped and nothing was trimmed since.
    fn load_part(
        &mut self,
        page: PageNumber,
        began: u64,
        position: u32,
    ) -> Result<bool, FtlError<F::Error>> {
        let (bytes, space) = (self.page_bytes(), self.mapping.space());
        match self.read_kind(page, 0) {
            Ok(Kind::Part) => {}
            Ok(_) | Err(Fault::Corrupt { .. }) => return Ok(false),
            Err(fault) => return Err(fault.into()),
        }
        let list = List(&mut self.log.frames.bytes_mut(0)[..bytes]);
        if list.head() != (began, position) {
            return Ok(false);
        }
        let count = list.count(RUN);
        if position < self.count_parts() {
            self.take_counts(position);
            return Ok(true);
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

    /// Takes the erase counts in page buffer 0, of the part at `position`.
    fn take_counts(&mut self, position: u32) {
        let (bytes, each) = (self.page_bytes(), self.counts_in_part());
        let (blocks, from) = (&mut self.log.blocks, position * each);
        let list = List(&mut self.log.frames.bytes_mut(0)[..bytes]);
        for at in 0..list.count(COUNT) as u32 {
            let (block, [count]) = (BlockNumber(from + at), list.get::<COUNT>(at as usize));
            // Of a block that was erased since, its first page knows better.
            if block.0 < blocks.count() && blocks.erase_count(block) < count {
                blocks.set_erase_count(block, count);
            }
        }
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
                covered!("ftl: a run of a checkpoint was trimmed since");
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
