//! A mount: finds the newest copy of every page. Nothing is written here.
//!
//! Only the newest pages on the chip can be torn and count: a program that failed is repeated
//! elsewhere at once, and a block is erased only when newer copies of all its pages are durable. So
//! a mount looks at the newest page many times. If that does not read the same each time, it was
//! torn and never acknowledged: it does not count, and the one before it is looked at. What does
//! not count, or cannot be seen, is excluded from then on (`settle.rs`) before anything is written.
//!
//! The same is done with a request that is to be written as a whole (`request.rs`): if the newest
//! page is one that its request does not end with, nothing of that request counts.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::gc;
use nandina::log::LOST_MAX;
use nandina::node::{PageFault, PageHeader};
use nandina::{Damage, Fault};

use super::bytes::{Kind, LOGICAL_END, MOVED, NEW, Own, Suspects, Trims, opens_request};
use super::{Ftl, FtlError, size};
use crate::mapping::{Extent, Mapping};

/// Reads after which a page counts as steady.
pub(crate) const LOOKS: u32 = 24;

/// The newest page of those that count.
#[derive(Clone, Copy)]
struct Newest {
    page: PageNumber,
    sequence: u64,
    kind: Kind,
    /// The number of the first page of the request that it leaves open.
    opens: Option<u64>,
    /// The other block that was open then, if it is not full.
    beside: Option<BlockNumber>,
}

/// What a scan looks for, and what it has found.
struct Scan<'s> {
    identity: u32,
    /// Pages with this number and higher ones do not count.
    limit: u64,
    /// The number with which the checkpoint began: lower ones are left to it.
    floor: Option<u64>,
    suspects: &'s Suspects,
    /// The highest number of all, whether the page counts or not.
    highest: &'s mut u64,
    newest: Option<Newest>,
    /// The newest page of each tag, and its number.
    last: [Option<(PageNumber, u64)>; 2],
    /// The number of the newest page that begins or ends a session.
    session: u64,
}

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Finds all that is on the chip, as after a cut.
    pub(super) fn mount(&mut self) -> Result<(), FtlError<F::Error>> {
        self.statistics = self.statistics();
        // Until all erase counts are known again.
        self.erases_before = u64::MAX;
        (self.settled, self.in_doubt, self.refused) = (false, true, None);
        self.log.find_bad_blocks()?;
        for block in self.log.blocks.all() {
            // A bad block holds nothing that counts, unless it failed since the last mount. While
            // one is interrupted, it is not known which pages are valid.
            let was_stuck = self.log.blocks.take_stuck(block);
            let is_empty = match self.is_scanning {
                true => was_stuck,
                // Trims that wait are undone, and the newest copies may be in a block that failed
                // while they waited: it is not marked yet.
                false if !self.waiting.is_empty() => self.log.is_marked(block)?,
                false => self.log.blocks.valid_in(block) == 0,
            };
            if self.log.blocks.is_bad(block) && is_empty {
                self.log.blocks.set_stuck(block);
            }
        }
        // Nothing on the chip knows of them.
        self.waiting.clear();
        self.is_scanning = true;
        let identity = self.survey()?;
        let (mut limit, mut suspects, mut highest) = (u64::MAX, Suspects::default(), 0);
        let mut incomplete = None;
        let newest = loop {
            let newest = self.scan(identity, limit, &suspects, &mut highest)?;
            let newest = newest.ok_or(FtlError::Blank)?;
            if !self.is_steady(newest.page, newest.sequence)? {
                limit = newest.sequence;
                continue;
            }
            if let Some(first) = newest.opens {
                incomplete = incomplete.or(Some(self.block_of(newest.page)));
                limit = first.min(newest.sequence);
                continue;
            }
            if newest.kind == Kind::Retired {
                return Err(FtlError::Blank);
            }
            let found = self.read_session()?;
            if found == suspects {
                break newest;
            }
            suspects = found;
        };
        self.forget_trimmed()?;
        self.note_valid();
        self.keep_checkpoint()?;
        self.log.blocks.guess_erase_counts();
        self.log.restart(identity, highest + size::gap_of(&self.log.geometry()));
        self.log.tag = NEW;
        self.log.keep_newest(incomplete.unwrap_or(self.block_of(newest.page)));
        self.suspects = suspects;
        self.newest = (newest.page, newest.sequence);
        (self.incomplete, self.beside) = (incomplete, newest.beside);
        self.is_scanning = false;
        self.erases_before = self.erases_counted();
        // Nothing follows the end of a session but a session.
        let is_last = limit == u64::MAX && suspects.all().is_empty();
        self.settled = newest.kind == Kind::End && is_last;
        self.in_doubt = false;
        gc::note_reserve(self);
        Ok(())
    }

    /// Empties the mapping and all that is known of valid pages.
    pub(super) fn forget_all(&mut self) {
        // To remove everything needs no memory.
        let _ = self.mapping.remove(self.mapping.space().whole(), &mut |_| {});
        self.own = [None; Own::ALL.len()];
        self.suspects = Suspects::default();
        self.log.close_parked();
        self.log.blocks.release();
        self.log.blocks.forget_valid();
    }

    /// Finds the newest format by the first page of each block, and the erase counts.
    fn survey(&mut self) -> Result<u32, FtlError<F::Error>> {
        let mut newest: Option<PageHeader> = None;
        self.order.clear();
        for block in self.log.blocks.all() {
            let Some(header) = self.log.first_header(block)? else { continue };
            self.order.note(block, header.sequence);
            self.log.blocks.set_opened_at(block, header.sequence);
            self.log.blocks.set_erase_count(block, header.erase_count);
            if newest.is_none_or(|newest| newest.sequence < header.sequence) {
                newest = Some(header);
            }
        }
        // An index that was made later has higher numbers: it is not overwritten.
        let newest = newest.ok_or(FtlError::Blank)?;
        if newest.medium != self.log.medium {
            return Err(FtlError::OtherContent { system: newest.medium.system });
        }
        Ok(newest.identity)
    }

    /// Whether a mount leaves the block out: it was bad before, and holds nothing.
    fn is_left_out(&mut self, block: BlockNumber) -> bool {
        let is_left_out = self.log.blocks.is_bad(block) && self.log.blocks.take_stuck(block);
        if is_left_out {
            self.log.blocks.set_stuck(block);
        }
        is_left_out
    }

    /// Maps the newest copies of all written pages numbered below `limit`.
    ///
    /// Logical pages that `suspects` exclude do not count. Returns the newest page. Reads every
    /// page, or those that are newer than the newest checkpoint, and that.
    fn scan(
        &mut self,
        identity: u32,
        limit: u64,
        suspects: &Suspects,
        highest: &mut u64,
    ) -> Result<Option<Newest>, FtlError<F::Error>> {
        let mut scan = Scan {
            identity,
            limit,
            floor: None,
            suspects,
            highest,
            newest: None,
            last: [None; 2],
            session: 0,
        };
        if let Some(began) = self.scan_blocks(&mut scan, true)? {
            if self.has_steady_directory(began)? && self.load_checkpoint(began)? {
                return Ok(self.newest_of(&scan));
            }
            scan = Scan { floor: None, newest: None, last: [None; 2], session: 0, ..scan };
            self.scan_blocks(&mut scan, false)?;
        }
        // No part is known to be whole.
        self.own[Own::Checkpoint as usize] = None;
        Ok(self.newest_of(&scan))
    }

    /// The newest page that a scan found, and which block was open beside its own.
    ///
    /// That block has the newest page of the other tag. If it is older than the session, or than a
    /// checkpoint, the block was not open any more. A full block has no room for a torn page.
    fn newest_of(&self, scan: &Scan<'_>) -> Option<Newest> {
        let newest = scan.newest?;
        let block = self.block_of(newest.page);
        let mut open = scan.last.iter().flatten().filter(|&&(page, sequence)| {
            let is_full = page == self.log.page_at(self.block_of(page), self.log.block_pages() - 1);
            self.block_of(page) != block && sequence >= scan.session && !is_full
        });
        Some(Newest { beside: open.next().map(|&(page, _)| self.block_of(page)), ..newest })
    }

    /// Reads all blocks, or returns with which number a checkpoint began that has the others.
    fn scan_blocks(
        &mut self,
        scan: &mut Scan<'_>,
        uses_checkpoint: bool,
    ) -> Result<Option<u64>, FtlError<F::Error>> {
        self.forget_all();
        self.order.restart();
        let (mut directory, mut began) = (None, None);
        while let Some(taken) = self.order.take() {
            if self.is_left_out(taken.block) {
                continue;
            }
            let first = self.scan_block(taken.block, scan)?;
            if !uses_checkpoint {
                continue;
            }
            let found = self.own[Own::Checkpoint as usize];
            if found != directory {
                directory = found;
                began = match found {
                    Some(page) => self.checkpoint_began(page)?,
                    None => None,
                };
                // In older blocks, older pages may supersede those of blocks that are not read.
                scan.floor = began;
            }
            // No block that was opened before the checkpoint began has newer pages, but for the
            // last one of them.
            if let (Some(began), Some(first)) = (began, first)
                && first <= began
                && taken.in_order
                && self.order.is_recent(first)
            {
                // An erase that was cut may have left some pages of a block, which are old.
                while let Some(block) = self.order.take_unknown() {
                    if !self.is_left_out(block) {
                        self.scan_block(block, scan)?;
                    }
                }
                return Ok(Some(began));
            }
        }
        // Every block was read.
        Ok(scan.floor)
    }

    /// Reads the written pages of a block, and returns the lowest number of them.
    fn scan_block(
        &mut self,
        block: BlockNumber,
        scan: &mut Scan<'_>,
    ) -> Result<Option<u64>, FtlError<F::Error>> {
        let (mut blank, mut is_damaged, mut first) = (0, false, None);
        for place in 0..self.log.block_pages() {
            let page = self.log.page_at(block, place);
            let header = match self.log.read_raw(page, 0)? {
                Ok(header) => header,
                Err(PageFault::Erased) if blank == LOST_MAX => break,
                Err(PageFault::Erased) => {
                    blank += 1;
                    continue;
                }
                Err(_) => {
                    is_damaged = true;
                    continue;
                }
            };
            blank = 0;
            // A cut damages only the last page of a block. (Nothing else uses this mark yet.)
            if is_damaged && !self.log.blocks.is_bad(block) {
                self.log.blocks.set_stuck(block);
            }
            if header.medium != self.log.medium || header.identity != scan.identity {
                continue;
            }
            let (sequence, kind) = (header.sequence, Kind::of(header.lowest, header.records));
            *scan.highest = sequence.max(*scan.highest);
            first = Some(first.map_or(sequence, |first: u64| first.min(sequence)));
            if scan.floor.is_some_and(|floor| sequence < floor)
                || (scan.floor.is_some() && kind == Kind::Own(Own::Checkpoint))
            {
                continue;
            }
            let is_session = matches!(kind, Kind::Own(Own::Session));
            if sequence >= scan.limit || (scan.suspects.exclude(sequence) && !is_session) {
                continue;
            }
            if scan.newest.is_none_or(|newest| newest.sequence < sequence) {
                let opens = opens_request(&header);
                scan.newest = Some(Newest { page, sequence, kind, opens, beside: None });
            }
            let last = &mut scan.last[usize::from(header.tag == MOVED)];
            if last.is_none_or(|(_, last)| last < sequence) {
                *last = Some((page, sequence));
            }
            // A session page that was moved since begins no session.
            if (is_session && header.tag == NEW) || kind == Kind::End {
                scan.session = scan.session.max(sequence);
            }
            self.take(kind, page, sequence)?;
        }
        Ok(first)
    }

    /// Notes that `page` is a copy of what is of this kind. The newest copy counts.
    fn take(
        &mut self,
        kind: Kind,
        page: PageNumber,
        sequence: u64,
    ) -> Result<(), FtlError<F::Error>> {
        if let Kind::Data(found) | Kind::Hole(found) = kind
            && (found >= self.logical_pages || found >= LOGICAL_END)
        {
            return Err(FtlError::LogicalPages { found, given: self.logical_pages });
        }
        if let Some(rival) = self.current(kind)
            && self.sequence_of(rival)?.is_some_and(|rival| rival >= sequence)
        {
            return Ok(());
        }
        self.note(kind, page)?;
        Ok(())
    }

    /// The sequence number of a page that was read before.
    ///
    /// `None` if it cannot be read any more.
    ///
    /// Cost: one read, and more for an unstable page.
    fn sequence_of(&mut self, page: PageNumber) -> Result<Option<u64>, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if let Ok(header) = self.log.read_raw(page, 0)? {
                return Ok(Some(header.sequence));
            }
        }
        Ok(None)
    }

    /// Whether `page` reads with this number each time.
    fn is_steady(&mut self, page: PageNumber, sequence: u64) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if !self.log.read_raw(page, 0)?.is_ok_and(|header| header.sequence == sequence) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the newest session page. Every format has written one.
    fn read_session(&mut self) -> Result<Suspects, FtlError<F::Error>> {
        let page = self.own[Own::Session as usize].ok_or(FtlError::Blank)?;
        self.read_kind(page, 0)?;
        let area = &self.log.frames.bytes(0)[..self.page_bytes()];
        let suspects = Suspects::read(area, self.log.geometry().blocks);
        suspects.ok_or(FtlError::Corrupt { page, reason: Damage::OtherIndex })
    }

    /// Removes what the list of trims names and what is older than the trim.
    ///
    /// Cost: two reads for each page that is mapped there.
    fn forget_trimmed(&mut self) -> Result<(), FtlError<F::Error>> {
        let Some(page) = self.own[Own::Trims as usize] else { return Ok(()) };
        self.read_kind(page, 1)?;
        let bytes = self.page_bytes();
        let list = Trims(&mut self.log.frames.bytes_mut(1)[..bytes]);
        let (as_of, count) = (list.as_of(), list.count());
        for at in 0..count {
            let extent = Trims(&mut self.log.frames.bytes_mut(1)[..bytes]).get(at);
            if self.mapping.space().admit(extent).is_err() {
                return Err(FtlError::Corrupt { page, reason: Damage::OtherIndex });
            }
            for logical in extent.start..extent.end() {
                let Some(page) = self.find(logical) else { continue };
                if self.sequence_of(page)?.is_some_and(|sequence| sequence <= as_of) {
                    self.mapping.remove(Extent::new(logical, 1), &mut |_| {})?;
                }
            }
        }
        Ok(())
    }

    /// Marks the mapped pages as valid, and counts unexplained damage.
    ///
    /// That is a damaged page that is not the last of its block: no cut explains it.
    /// A block without valid pages is not counted: its erase may have been cut. Nor is one that has
    /// nothing but pages of a checkpoint, which may have been given up before.
    fn note_valid(&mut self) {
        let (blocks, places) = (&mut self.log.blocks, self.places);
        self.mapping.walk(&mut |run| {
            for place in run.physical..run.physical + run.length {
                blocks.set_valid(places.page(place), true);
            }
        });
        for own in [Own::Session, Own::Trims] {
            if let Some(page) = self.own[own as usize] {
                blocks.set_valid(page, true);
            }
        }
        let damaged = blocks.all().filter(|&block| {
            !blocks.is_bad(block) && blocks.take_stuck(block) && blocks.valid_in(block) > 0
        });
        self.statistics.unexplained_blocks = damaged.count() as u32;
    }
}
