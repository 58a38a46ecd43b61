//! A mount: finds the newest copy of each page and its newest record. It writes nothing.
//!
//! Only what has the highest sequence number can be torn and count, so a mount looks at it many
//! times; at all pages of a merge if that is the newest. What does not read the same each time was
//! never acknowledged: it does not count, and the next one is looked at.
//!
//! A block that begins with copies counts once the last of them is there. If they are the newest on
//! the chip without it, the merge was cut; in an older block that copy has faded.
//! The last copy of the newest merge names the block that it replaced: nothing in that one counts.
//! If it has a newer copy of a page than another block, a cut came before the other one was erased;
//! or the block itself is what an erase has left of a merge that did not end. So all its copies are
//! looked at, too.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::log::{GAP, LOST_MAX};
use nandina::node::{PageFault, PageHeader};
use nandina::{Fault, covered};

use super::maps::{Home, Row};
use super::sector::{Record, Sectors};
use super::{LOG, Logged, NO_BLOCK};
use crate::ftl::FtlError;
use crate::ftl::mount::LOOKS;
use crate::hybrid::label::Kind;

/// What an item on the chip is.
#[derive(Clone, Copy)]
enum Item {
    Page(Kind),
    /// A page of a merge that is not its last.
    Copy,
    /// The last page of a merge, and the block that it replaces.
    Commit(u32),
    /// A record in this sector.
    Sector(u32),
}

impl Item {
    /// What a whole page is.
    const fn of(header: &PageHeader) -> Self {
        let (kind, cause) = Kind::of(header);
        match (cause.commits, cause.is_copy) {
            (true, _) => Self::Commit(header.erase_count),
            (false, true) => Self::Copy,
            (false, false) => Self::Page(kind),
        }
    }
}

/// The newest item that counts.
#[derive(Clone, Copy)]
struct Newest {
    sequence: u64,
    page: PageNumber,
    item: Item,
}

/// What a scan of the chip looks for, and what it has found.
struct Scan {
    identity: u32,
    /// Items from this number on do not count.
    limit: u64,
    highest: u64,
    newest: Option<Newest>,
    /// The newest merge: its number, and the block that it replaced.
    merge: Option<(u64, u32)>,
}

impl Scan {
    fn note(&mut self, sequence: u64, page: PageNumber, item: Item) {
        if self.newest.is_none_or(|newest| newest.sequence < sequence) {
            self.newest = Some(Newest { sequence, page, item });
        }
        if let Item::Commit(replaced) = item
            && self.merge.is_none_or(|(newest, _)| newest < sequence)
        {
            self.merge = Some((sequence, replaced));
        }
    }
}

/// Blocks whose copies do not count, because they do not read the same each time.
///
/// Cuts leave one, and in a settling that is cut another one. On a chip with more damage than that
/// the others count.
#[derive(Default)]
struct Rejected {
    blocks: [Option<BlockNumber>; 8],
}

impl Rejected {
    /// Adds a block. Returns `false` if there is no room.
    fn add(&mut self, block: BlockNumber) -> bool {
        let free = self.blocks.iter_mut().find(|entry| entry.is_none());
        free.map(|entry| *entry = Some(block)).is_some()
    }

    fn has(&self, block: BlockNumber) -> bool {
        self.blocks.contains(&Some(block))
    }
}

impl<F: Flash> Logged<'_, F> {
    /// Finds all that is on the chip, as after a cut.
    pub(super) fn mount(&mut self) -> Result<(), FtlError<F::Error>> {
        (self.settled, self.in_doubt, self.recent) = (false, true, None);
        self.media.weak = None;
        self.media.clean.fill(0);
        self.media.find_bad_blocks()?;
        let has_count = |header: &PageHeader| !Kind::of(header).1.commits;
        let newest = self.media.survey(self.block_pages, has_count, |_| false)?;
        let (PageHeader { identity, .. }, medium) = newest.ok_or(FtlError::Blank)?;
        if medium != self.media.medium {
            return Err(FtlError::OtherContent { system: medium.system });
        }
        self.media.identity = identity;
        let (mut limit, mut rejected) = (u64::MAX, Rejected::default());
        let scan = loop {
            let scan = self.scan(identity, limit, &rejected)?;
            let newest = scan.newest.ok_or(FtlError::Blank)?;
            if matches!(newest.item, Item::Copy) {
                covered!("logged: a merge was cut");
                limit = self.first_copy(&newest)?;
                continue;
            }
            if !self.is_steady(&newest)? {
                covered!("logged: the newest item is torn");
                limit = newest.sequence;
                continue;
            }
            if matches!(newest.item, Item::Page(Kind::Retired)) {
                covered!("logged: a format was cut");
                return Err(FtlError::Blank);
            }
            match self.unsteady_winner()? {
                Some(block) if rejected.add(block) => {}
                _ => break scan,
            }
        };
        self.forget_replaced(scan.merge);
        self.settle_roles();
        self.media.blocks.guess_erase_counts();
        self.media.sequence = scan.highest + self.gap();
        self.in_doubt = false;
        Ok(())
    }

    /// Sequence numbers that a mount skips: more cannot have been programmed and be invisible.
    pub(super) fn gap(&self) -> u64 {
        let geometry = self.media.geometry();
        GAP + u64::from(geometry.blocks) + 2 * u64::from(geometry.pages_per_block)
    }

    /// Forgets all that is known of pages.
    pub(super) fn forget_all(&mut self) {
        self.maps.clear();
        self.marker = None;
        self.media.blocks.unreserve_all();
        self.media.blocks.forget_valid();
    }

    /// Reads every written page, and notes the newest of those that are older than `limit`.
    fn scan(
        &mut self,
        identity: u32,
        limit: u64,
        rejected: &Rejected,
    ) -> Result<Scan, FtlError<F::Error>> {
        self.forget_all();
        let mut scan = Scan { identity, limit, highest: 0, newest: None, merge: None };
        for block in self.media.blocks.all() {
            if self.media.flash.is_bad(block).map_err(Fault::Device)? {
                continue;
            }
            if rejected.has(block) {
                self.note_numbers(block, &mut scan)?;
                continue;
            }
            // A record can lie before its base page where pages are not in order.
            let passes = if self.in_order { 1 } else { 2 };
            for pass in 0..passes {
                self.scan_block(block, pass, &mut scan)?;
            }
        }
        Ok(scan)
    }

    /// The header in page buffer 1, if it is of this FTL.
    fn ours(&self, header: PageHeader, scan: &Scan) -> Option<PageHeader> {
        let is_ours = self.media.medium_in(LOG) == self.media.medium;
        (is_ours && header.identity == scan.identity).then_some(header)
    }

    /// The number of the first copy of the merge that `newest` is a copy of: it did not end.
    ///
    /// A merge without its last copy is cut only if it is the newest on the chip. Otherwise that
    /// copy has faded, and the others count.
    fn first_copy(&mut self, newest: &Newest) -> Result<u64, Fault<F::Error>> {
        let (block, mut first) = (self.media.block_of(newest.page), newest.sequence);
        for place in 0..self.block_pages {
            let Ok(header) = self.media.read(self.media.page_at(block, place), LOG)? else {
                continue;
            };
            if Kind::of(&header).1.is_copy && header.identity == self.media.identity {
                first = first.min(header.sequence);
            }
        }
        Ok(first)
    }

    /// Notes the highest number in a block whose pages do not count.
    fn note_numbers(&mut self, block: BlockNumber, scan: &mut Scan) -> Result<(), Fault<F::Error>> {
        for place in 0..self.block_pages {
            let page = self.media.page_at(block, place);
            match self.media.read(page, LOG)? {
                Ok(header) => {
                    let ours = self.ours(header, scan);
                    scan.highest = scan.highest.max(ours.map_or(0, |header| header.sequence));
                }
                Err(PageFault::Erased | PageFault::Unreadable) => {}
                Err(_) => {
                    for sector in 0..self.sectors.count {
                        let record = self.record_in(page, sector);
                        scan.highest = scan.highest.max(record.map_or(0, |it| it.sequence));
                    }
                }
            }
        }
        Ok(())
    }

    /// The record in a sector of the page in page buffer 1.
    pub(super) fn record_in(&mut self, page: PageNumber, sector: u32) -> Option<Record> {
        let identity = self.media.identity;
        let bytes = &self.media.frames.bytes(LOG)[self.sectors.range(sector)];
        Sectors::open(&mut self.media.flash, bytes, identity, (page, sector))
    }

    /// Whether a sector of the page in page buffer 1 was never programmed.
    pub(super) fn is_sector_blank(&self, sector: u32) -> bool {
        let bytes = &self.media.frames.bytes(LOG)[self.sectors.range(sector)];
        bytes.iter().all(|&byte| byte == 0xFF)
    }

    fn change_row(&mut self, block: BlockNumber, change: impl FnOnce(&mut Row)) {
        let mut row = self.maps.row(block.0);
        change(&mut row);
        self.maps.set_row(block.0, row);
    }

    /// Notes what a block holds. Where pages are not in order, records come in the second pass.
    fn scan_block(
        &mut self,
        block: BlockNumber,
        pass: u32,
        scan: &mut Scan,
    ) -> Result<(), FtlError<F::Error>> {
        let (mut blank, mut damaged) = (true, false);
        let mut lacks_commit = false;
        for place in 0..self.block_pages {
            let page = self.media.page_at(block, place);
            match self.media.read(page, LOG)? {
                Err(PageFault::Erased) if blank && place >= LOST_MAX => break,
                Err(PageFault::Erased) => continue,
                Ok(header) => {
                    blank = false;
                    let ours = self.ours(header, scan);
                    scan.highest = scan.highest.max(ours.map_or(0, |header| header.sequence));
                    let Some(header) = ours.filter(|header| header.sequence < scan.limit) else {
                        self.change_row(block, |row| row.is_suspect = true);
                        continue;
                    };
                    let cause = Kind::of(&header).1;
                    lacks_commit = cause.is_copy && !cause.commits;
                    if pass == 0 {
                        self.take_page(block, place, &header, scan)?;
                    }
                }
                Err(fault) => {
                    blank = false;
                    let is_read = fault != PageFault::Unreadable;
                    let counted = is_read && self.scan_log(block, place, pass, scan)?;
                    if !counted {
                        self.change_row(block, |row| row.is_suspect = true);
                        damaged = true;
                        continue;
                    }
                }
            }
            // A cut damages only what comes last in a block.
            if damaged && pass == 0 {
                covered!("logged: a page has faded");
                self.change_row(block, |row| row.is_damaged = true);
            }
        }
        // The last copy has faded, unless all of them are left of a merge that was cut.
        if lacks_commit {
            covered!("logged: the last copy of a merge is missing");
            self.change_row(block, |row| (row.is_suspect, row.is_damaged) = (true, true));
        }
        Ok(())
    }

    /// Notes the records of the log page in page buffer 1. Returns whether one of them counts.
    fn scan_log(
        &mut self,
        block: BlockNumber,
        place: u32,
        pass: u32,
        scan: &mut Scan,
    ) -> Result<bool, FtlError<F::Error>> {
        let page = self.media.page_at(block, place);
        let is_last_pass = self.in_order || pass == 1;
        let mut counted = false;
        for sector in 0..self.sectors.count {
            // Taking a record reads other pages.
            if counted && is_last_pass {
                let _ = self.media.read(page, LOG)?;
            }
            let Some(record) = self.record_in(page, sector) else {
                if !self.is_sector_blank(sector) {
                    covered!("logged: a sector is torn or has faded");
                    self.change_row(block, |row| row.is_suspect = true);
                }
                continue;
            };
            scan.highest = scan.highest.max(record.sequence);
            if record.sequence >= scan.limit {
                self.change_row(block, |row| row.is_suspect = true);
                continue;
            }
            scan.note(record.sequence, page, Item::Sector(sector));
            if pass == 0 {
                self.change_row(block, |row| {
                    if !counted {
                        row.logs += 1;
                    }
                    (row.next, row.log) = (place as u16 + 1, place as u16 + 1);
                    row.filled = sector as u16 + 1;
                    row.last = row.last.max(record.sequence);
                });
                self.media.blocks.set_valid(page, true);
            }
            counted = true;
            if is_last_pass {
                let number = (place * self.sectors.count + sector) as u16;
                self.take_record(page, number, &record)?;
            }
        }
        Ok(counted)
    }

    fn take_page(
        &mut self,
        block: BlockNumber,
        place: u32,
        header: &PageHeader,
        scan: &mut Scan,
    ) -> Result<(), FtlError<F::Error>> {
        let page = self.media.page_at(block, place);
        let (kind, _) = Kind::of(header);
        let sequence = header.sequence;
        scan.note(sequence, page, Item::of(header));
        self.change_row(block, |row| {
            (row.next, row.last) = (place as u16 + 1, row.last.max(sequence));
        });
        self.media.blocks.set_valid(page, true);
        if kind == Kind::Own {
            self.marker = Some(page);
        }
        let Some(logical) = kind.logical() else { return Ok(()) };
        self.expect_number(logical)?;
        if self.loses(logical, block, sequence)? {
            return Ok(());
        }
        let is_hole = matches!(kind, Kind::Hole(_));
        self.put_home(logical, Some(Home { page: page.0, record: None, is_hole }));
        Ok(())
    }

    fn take_record(
        &mut self,
        page: PageNumber,
        number: u16,
        record: &Record,
    ) -> Result<(), FtlError<F::Error>> {
        let block = self.media.block_of(page);
        self.expect_number(record.logical)?;
        if self.loses(record.logical, block, record.sequence)? {
            return Ok(());
        }
        let before = self.maps.home(record.logical);
        let before = before.filter(|home| self.media.block_of(PageNumber(home.page)) == block);
        if let Some(home) = before
            && !self.in_order
            && self.sequence_at(&Home { record: None, ..home })? > Some(record.sequence)
        {
            covered!("logged: a record is older than a page behind it");
            return Ok(());
        }
        // If that page cannot be read, what is read is an error.
        let pages_per_block = self.media.geometry().pages_per_block;
        let is_in_block = u32::from(record.base) < pages_per_block;
        let base = block.0 * pages_per_block + u32::from(record.base);
        let base = if is_in_block { base } else { page.0 };
        let is_hole = record.change.is_none();
        self.put_home(record.logical, Some(Home { page: base, record: Some(number), is_hole }));
        Ok(())
    }

    fn expect_number(&self, logical: u32) -> Result<(), FtlError<F::Error>> {
        let given = self.logical_pages;
        if logical < given { Ok(()) } else { Err(FtlError::LogicalPages { found: logical, given }) }
    }

    /// Whether another block has a newer state of a logical page. The block that loses is stale.
    fn loses(
        &mut self,
        logical: u32,
        block: BlockNumber,
        sequence: u64,
    ) -> Result<bool, Fault<F::Error>> {
        let Some(rival) = self.maps.home(logical) else { return Ok(false) };
        let other = self.media.block_of(PageNumber(rival.page));
        if other == block {
            return Ok(false);
        }
        let loses = self.sequence_at(&rival)?.is_some_and(|known| known > sequence);
        let (winner, stale) = if loses { (other, block) } else { (block, other) };
        self.change_row(winner, |row| row.is_winner = true);
        self.change_row(stale, |row| row.is_suspect = true);
        Ok(loses)
    }

    /// The sequence number of a logical page's newest state.
    fn sequence_at(&mut self, home: &Home) -> Result<Option<u64>, Fault<F::Error>> {
        let page = PageNumber(home.page);
        let Some(number) = home.record else {
            return Ok(self.media.read(page, LOG)?.ok().map(|header| header.sequence));
        };
        Ok(self.read_record(self.media.block_of(page), number)?.map(|record| record.sequence))
    }

    /// Whether the newest item reads with its number each time.
    fn is_steady(&mut self, newest: &Newest) -> Result<bool, Fault<F::Error>> {
        let Newest { sequence, page, item } = *newest;
        if matches!(item, Item::Commit(_)) && !self.is_merge_steady(self.media.block_of(page))? {
            return Ok(false);
        }
        for _ in 0..LOOKS {
            let read = self.media.read(page, LOG)?;
            let found = match item {
                Item::Sector(sector) if read != Err(PageFault::Unreadable) => {
                    self.record_in(page, sector).map(|record| record.sequence)
                }
                _ => read.ok().map(|header| header.sequence),
            };
            if found != Some(sequence) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all copies with which a block begins read the same each time.
    ///
    /// One that can never be read has faded: it was whole when the next one was programmed.
    fn is_merge_steady(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        for place in 0..self.block_pages {
            let page = self.media.page_at(block, place);
            let read = |this: &mut Self| -> Result<_, Fault<F::Error>> {
                let read = this.media.read(page, LOG)?;
                Ok(read.map(|header| (Kind::of(&header).1, header.sequence)))
            };
            let first = read(self)?;
            for _ in 1..LOOKS {
                let again = read(self)?;
                if first.ok() != again.ok() {
                    return Ok(false);
                }
            }
            match first {
                Ok((cause, _)) if cause.is_copy && !cause.commits => {}
                Ok(_) | Err(PageFault::Erased) => break,
                Err(_) => {}
            }
        }
        Ok(true)
    }

    /// A block with newer copies than another one whose copies do not read the same each time.
    fn unsteady_winner(&mut self) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        for block in self.media.blocks.all() {
            if !self.maps.row(block.0).is_winner {
                continue;
            }
            // Only a merge writes what another block has.
            let first = self.media.read(self.media.page_at(block, 0), LOG)?;
            let is_copy = first.is_ok_and(|header| Kind::of(&header).1.is_copy);
            if !is_copy || !self.is_merge_steady(block)? {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Forgets what is in the block that the newest merge replaced, unless it was used since.
    fn forget_replaced(&mut self, merge: Option<(u64, u32)>) {
        let replaced = merge.filter(|&(sequence, block)| {
            block < self.media.geometry().blocks && self.maps.row(block).last < sequence
        });
        self.replaced = replaced.map_or(NO_BLOCK, |(_, block)| block);
        for logical in 0..self.logical_pages {
            if self.block_of(logical) == Some(BlockNumber(self.replaced)) {
                covered!("logged: a page is left of the block that a merge replaced");
                self.put_home(logical, None);
            }
        }
    }

    /// Reserves the blocks that hold a logical page or say what the chip is; the others are free.
    ///
    /// What comes next in them may have been programmed, and be invisible: they are closed.
    fn settle_roles(&mut self) {
        let mut damaged = 0;
        for block in self.media.blocks.all() {
            let is_marker = self.marker.is_some_and(|page| self.media.block_of(page) == block);
            if self.maps.row(block.0).held > 0 || is_marker {
                self.media.blocks.set_reserved(block, true);
                self.change_row(block, |row| row.is_closed = true);
                damaged += u32::from(self.maps.row(block.0).is_damaged);
            } else {
                self.forget_block(block);
            }
        }
        self.statistics.unexplained_blocks = damaged;
    }
}
