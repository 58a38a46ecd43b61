//! Changes of a logical page: a record in a sector, a whole page, or a merge.
//!
//! A record has the whole difference from the base page, not from the record before it: so a page
//! is read from two pages of the chip at most, and a record that is lost costs nothing but itself.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::{Fault, covered};

use super::maps::{Home, Row};
use super::sector::{HEAD, Record, Sectors};
use super::{LOG, Logged, OUT, Scheme, difference};
use crate::hybrid::label::{Cause, Kind};

impl<F: Flash> Logged<'_, F> {
    /// Writes a logical page.
    pub(super) fn put(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Fault<F::Error>> {
        let home = self.maps.home(logical);
        if let Some(home) = home.filter(|home| !home.is_hole) {
            let block = self.media.block_of(PageNumber(home.page));
            if self.has_room_for_record(block)
                && let Some(length) = self.difference(logical, home, bytes)?
            {
                if self.append(block, logical, Some(length))? {
                    return Ok(());
                }
                covered!("logged: the program of a record fails");
                return self.merge(block, Some((logical, Some(bytes))));
            }
        }
        let block = match home {
            Some(home) => Some(self.media.block_of(PageNumber(home.page))),
            None => self.host_for(logical),
        };
        let Some(block) = block else { return self.open_with(logical, bytes) };
        // IPL has base pages for new pages alone: without a free sector it merges.
        let is_new = home.is_none_or(|home| home.is_hole);
        let takes_page = is_new || self.scheme == Scheme::Dipl;
        if takes_page && self.has_room_for_page(block) && self.put_page(block, logical, bytes)? {
            return Ok(());
        }
        self.merge(block, Some((logical, Some(bytes))))
    }

    /// Makes a logical page a hole that is none.
    pub(super) fn make_hole(&mut self, logical: u32) -> Result<(), Fault<F::Error>> {
        let Some(block) = self.block_of(logical) else { return Ok(()) };
        if self.has_room_for_record(block) && self.append(block, logical, None)? {
            return Ok(());
        }
        self.merge(block, Some((logical, None)))
    }

    /// Whether a record can be programmed in a block.
    fn has_room_for_record(&self, block: BlockNumber) -> bool {
        let row = self.maps.row(block.0);
        if row.is_closed {
            return false;
        }
        let has_pages = u32::from(row.next) < self.block_pages;
        let has_logs = u32::from(row.logs) < self.scheme.logs_max(self.block_pages);
        self.open_sector(&row).is_some() || has_pages && has_logs
    }

    /// The next sector of the last log page.
    ///
    /// Where pages are programmed in order, only of the last page of its block.
    fn open_sector(&self, row: &Row) -> Option<u32> {
        let has_sectors = row.log > 0 && u32::from(row.filled) < self.sectors.count;
        let is_last = row.log == row.next;
        (has_sectors && (is_last || !self.in_order)).then_some(row.filled.into())
    }

    fn has_room_for_page(&self, block: BlockNumber) -> bool {
        let Row { next, logs, is_closed, .. } = self.maps.row(block.0);
        let pages = u32::from(next - logs);
        !is_closed
            && u32::from(next) < self.block_pages
            && pages < self.scheme.pages_max(self.block_pages)
    }

    /// Writes the difference of a page from its base page where [`append`](Self::append) takes it.
    fn difference(
        &mut self,
        logical: u32,
        home: Home,
        bytes: &[u8],
    ) -> Result<Option<usize>, Fault<F::Error>> {
        let header = self.media.read(PageNumber(home.page), OUT)?;
        if !header.is_ok_and(|header| Kind::of(&header).0 == Kind::Data(logical)) {
            return Ok(None);
        }
        let (base, log) = self.media.frames.pair(OUT, LOG);
        let out = &mut log[HEAD..self.sectors.bytes];
        Ok(difference::encode(&base[..bytes.len()], bytes, out))
    }

    /// Programs a record in the next sector of a block; its difference is in page buffer 1.
    ///
    /// Returns `false` if the program failed.
    fn append(
        &mut self,
        block: BlockNumber,
        logical: u32,
        change: Option<usize>,
    ) -> Result<bool, Fault<F::Error>> {
        let row = self.maps.row(block.0);
        let (place, sector) = match self.open_sector(&row) {
            Some(sector) => (u32::from(row.log) - 1, sector),
            None => (row.next.into(), 0),
        };
        let page = self.media.page_at(block, place);
        self.media.sequence += 1;
        let sequence = self.media.sequence;
        let identity = self.media.identity;
        let home = self.maps.home(logical);
        let pages_per_block = self.media.geometry().pages_per_block;
        let base = home.map_or(0, |home| (home.page % pages_per_block) as u16);
        let bytes = self.media.frames.bytes_mut(LOG);
        let record = Record { logical, sequence, base, change };
        let used = Sectors::seal(&mut self.media.flash, bytes, &record, identity, (page, sector));
        let again = (sector > 0).then_some((used, self.sectors.range(sector).start as u32));
        bytes[used..].fill(0xFF);
        if !self.media.program_bytes(page, LOG, again)? {
            return Ok(false);
        }
        let next = row.next.max(place as u16 + 1);
        let logs = row.logs + u16::from(sector == 0);
        let (log, filled) = (place as u16 + 1, sector as u16 + 1);
        self.maps.set_row(block.0, Row { last: sequence, next, logs, log, filled, ..row });
        self.media.blocks.set_valid(page, true);
        let record = Some((place * self.sectors.count + sector) as u16);
        let is_hole = change.is_none();
        self.put_home(logical, home.map(|home| Home { record, is_hole, ..home }));
        self.statistics.own += u64::from(is_hole);
        self.merges.records += u64::from(!is_hole);
        Ok(true)
    }

    /// Programs a logical page behind the pages of a block. Returns `false` if the program failed.
    fn put_page(
        &mut self,
        block: BlockNumber,
        logical: u32,
        bytes: &[u8],
    ) -> Result<bool, Fault<F::Error>> {
        let row = self.maps.row(block.0);
        let page = self.media.page_at(block, row.next.into());
        self.media.frames.bytes_mut(OUT)[..bytes.len()].copy_from_slice(bytes);
        if !self.media.program(page, OUT, Kind::Data(logical).label(Cause::IN_PLACE))? {
            return Ok(false);
        }
        let (last, next) = (self.media.sequence, row.next + 1);
        self.maps.set_row(block.0, Row { last, next, ..row });
        self.media.blocks.set_valid(page, true);
        self.put_home(logical, Some(Home { page: page.0, record: None, is_hole: false }));
        Ok(true)
    }

    /// Opens a block with a logical page.
    fn open_with(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Fault<F::Error>> {
        loop {
            let block = self.media.open()?;
            if self.put_page(block, logical, bytes)? {
                return Ok(());
            }
            covered!("logged: the first program of a block fails");
            self.media.free(block)?;
        }
    }

    /// The block that takes a new logical page; `None` if one is opened for it.
    fn host_for(&self, logical: u32) -> Option<BlockNumber> {
        if self.scheme == Scheme::Ipl {
            return self.candidates(Some(logical)).find_map(|of| self.block_of(of));
        }
        let held = |block: BlockNumber| u32::from(self.maps.row(block.0).held);
        let (free, kept) = (self.media.blocks.free_blocks(None), self.kept_blocks());
        let most = self.scheme.pages_in(self.block_pages);
        // The host has used the page beside it: a node that was divided is its neighbour.
        let recent = self.recent.and_then(|recent| self.block_of(recent));
        let has_room = |block: &BlockNumber| {
            let can_be_divided = free > kept && held(*block) + 1 < self.block_pages;
            held(*block) < most || can_be_divided
        };
        if let Some(recent) = recent.filter(has_room) {
            return Some(recent);
        }
        let used = self.media.blocks.all().filter(|&block| held(block) > 0);
        let emptiest = used.min_by_key(|&block| held(block));
        emptiest.filter(|&block| free <= kept || held(block) < most)
    }
}
