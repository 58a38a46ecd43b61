//! Writes of several logical pages, which a mapping gets as runs.
//!
//! Pages are programmed one after another into the open block. As long as their places follow one
//! another, they are one run, and the mapping is changed once for all of them. No garbage is
//! collected between the first page of a run and that change: until then the mapping does not know
//! where they are.

use nandina::covered;
use nandina::flash::Flash;
use nandina::gc::{self, PageOwner};

use super::bytes::{Kind, NEW};
use super::{Ftl, FtlError, size};
use crate::mapping::{Extent, Mapping};

/// Logical pages that were programmed in a row and that the mapping does not know yet.
#[derive(Clone, Copy)]
struct Pending {
    extent: Extent,
    place: u32,
}

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Writes logical pages from `logical` on, as many as `bytes` holds.
    ///
    /// After a cut in it each of them is old or new. Cost: that of a [`write`](Self::write) of each
    /// page; the mapping is changed once for each row of pages without a collection in between.
    pub fn write_pages(&mut self, logical: u32, bytes: &[u8]) -> Result<(), FtlError<F::Error>> {
        let extent = self.expect_pages(logical, bytes)?;
        if self.transit.is_there() {
            return self.write_buffered(extent, bytes);
        }
        let count = extent.length;
        let each = self.page_bytes();
        let mut start = logical;
        let end = logical + count;
        while start < end {
            let row = Extent::between(start, end.min(start + self.row_max()));
            self.begin_change(row, row.length)?;
            self.make_room_ahead((end - start).min(self.log.block_pages()))?;
            self.mapping.admits(row)?;
            self.turn(NEW);
            // Collection may have taken pages of the open block.
            let row = Extent::new(start, row.length.min(self.row_max()));
            let from = (start - logical) as usize * each;
            start += self.write_row(row, &bytes[from..])?;
        }
        Ok(())
    }

    /// Makes room for `pages` pages at once, if that is certain to succeed.
    ///
    /// So pages of one request lie side by side, and no moved page between them. Often they are
    /// superseded together, too: then their block is emptied for less.
    fn make_room_ahead(&mut self, pages: u32) -> Result<(), FtlError<F::Error>> {
        let ahead = pages - 1;
        if self.log.room() >= self.kept() + ahead {
            return Ok(());
        }
        let (geometry, capabilities) = (self.log.geometry(), self.log.capabilities());
        let most = size::valid_pages_before(&geometry, &capabilities, self.open_blocks(), pages);
        if self.log.blocks.valid_pages() > most.saturating_sub(self.held_pages()) {
            return Ok(());
        }
        let gained = gc::gain_room(self, ahead);
        let gained = self.ended(gained);
        // There is room for a page in any case.
        if self.in_doubt { gained } else { Ok(()) }
    }

    /// The extent of the pages that `bytes` holds.
    pub(super) fn expect_pages(
        &self,
        logical: u32,
        bytes: &[u8],
    ) -> Result<Extent, FtlError<F::Error>> {
        let each = self.page_bytes();
        let count = bytes.len() / each;
        if count == 0 || count * each != bytes.len() {
            return Err(FtlError::PageSize { expected: each, given: bytes.len() });
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.expect_inside(logical, count)?;
        Ok(Extent::new(logical, count))
    }

    /// The most pages that are programmed before the next collection is due.
    fn row_max(&self) -> u32 {
        let in_block = self.log.next_place().map_or(0, |(_, place)| self.log.block_pages() - place);
        let room = self.log.room().saturating_sub(self.kept());
        in_block.min(room).max(1)
    }

    /// Programs the pages of `row`, or the first of them. Returns how many.
    ///
    /// The mapping has room for the row.
    pub(super) fn write_row(
        &mut self,
        row: Extent,
        bytes: &[u8],
    ) -> Result<u32, FtlError<F::Error>> {
        let each = self.page_bytes();
        let mut pending: Option<Pending> = None;
        for (logical, bytes) in (row.start..row.end()).zip(bytes.chunks_exact(each)) {
            self.in_doubt = true;
            let (label, anchors) = (Kind::Data(logical).label(), &mut self.anchors);
            let page = self.log.write_by(
                |log, filled| anchors.next_block(log, filled),
                |log| log.append_from(bytes, label),
            )?;
            self.statistics.programmed += 1;
            self.statistics.host_writes += 1;
            let place = self.places.place(page);
            match &mut pending {
                Some(run) if run.place + run.extent.length == place => run.extent.length += 1,
                // The page is in another block: a program has failed.
                Some(_) => {
                    covered!("ftl: a program in a row of pages fails");
                    self.note_run(pending.take())?;
                    self.note_run(Some(Pending { extent: Extent::new(logical, 1), place }))?;
                    self.in_doubt = false;
                    return Ok(logical + 1 - row.start);
                }
                None => pending = Some(Pending { extent: Extent::new(logical, 1), place }),
            }
        }
        self.note_run(pending)?;
        self.log.check_accounts();
        self.in_doubt = false;
        Ok(row.length)
    }

    /// Changes the mapping: these pages count from now on.
    fn note_run(&mut self, run: Option<Pending>) -> Result<(), FtlError<F::Error>> {
        let Some(Pending { extent, place }) = run else { return Ok(()) };
        self.map_row(extent, place)?;
        self.release();
        Ok(())
    }

    /// Maps a row of pages. What they supersede stays protected until it is released.
    pub(super) fn map_row(&mut self, extent: Extent, place: u32) -> Result<(), FtlError<F::Error>> {
        let (log, places) = (&mut self.log, self.places);
        self.mapping.update(extent, place, &mut |before| {
            log.supersede_all(
                (before.physical..before.physical + before.length).map(|place| places.page(place)),
            );
        })?;
        Ok(())
    }
}
