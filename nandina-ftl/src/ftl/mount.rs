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
use nandina::node::{Medium, PageFault, PageHeader};
use nandina::{Damage, Fault, covered};

use super::bytes::{Kind, LOGICAL_END, MOVED, NEW, Own, Suspects, Trims, before_of, opens_request};
use super::restore::Found;
use super::{Ftl, FtlError, size};
use crate::mapping::{Extent, Mapping};
use crate::transit::LastNumbers;

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
    /// The other blocks of the log that were open then, if they are not full.
    ///
    /// They are two if the page is in a buffer block.
    beside: [Option<BlockNumber>; 2],
}

/// What a scan looks for.
#[derive(Clone, Copy)]
struct Look<'s> {
    identity: u32,
    /// The checkpoint that has all pages but the newer ones.
    checkpoint: Option<Found>,
    /// Pages with this number and higher ones do not count.
    limit: u64,
    suspects: &'s Suspects,
    faded: &'s Faded,
}

/// Session pages that do not read the same each time: they do not count.
///
/// Such a page is the first one of a session that was cut in it. The next session behind the same
/// end may not have seen it (see `begin_session`).
#[derive(Default)]
struct Faded([Option<PageNumber>; 4]);

impl Faded {
    fn has(&self, page: PageNumber) -> bool {
        self.0.contains(&Some(page))
    }

    /// Adds a page. Returns `false` if there is no room.
    fn add(&mut self, page: PageNumber) -> bool {
        let free = self.0.iter_mut().find(|place| place.is_none());
        free.map(|place| *place = Some(page)).is_some()
    }
}

/// What a scan looks for, and what it has found.
struct Scan<'s> {
    look: Look<'s>,
    /// The highest number of all, whether the page counts or not.
    highest: &'s mut u64,
    newest: Option<Newest>,
    /// The newest page of each tag, and its number.
    last: [Option<(PageNumber, u64)>; 2],
    /// The number of the newest page that begins or ends a session.
    session: u64,
    /// Buffer blocks that it met.
    buffered: u64,
}

/// What a mount decides to begin with.
struct Decided {
    identity: u32,
    newest: Newest,
    suspects: Suspects,
    /// The highest number on the chip.
    highest: u64,
    /// Pages with this number and higher ones do not count.
    limit: u64,
    /// The block with the last page of a request that is incomplete.
    incomplete: Option<BlockNumber>,
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
        if !self.waiting.is_empty() {
            covered!("ftl: a mount undoes trims that wait");
        }
        self.waiting.clear();
        self.transit.clear();
        self.is_scanning = true;
        let found = self.find_all();
        // From now on the blocks of an earlier buffer are like all others.
        self.anchors.buffered.clear();
        found
    }

    fn find_all(&mut self) -> Result<(), FtlError<F::Error>> {
        let found = match self.find_directory()? {
            Some(checkpoint) => match self.decide_from(checkpoint) {
                Err(FtlError::Device(error)) => return Err(FtlError::Device(error)),
                Err(_) => {
                    covered!("ftl: a checkpoint cannot be used");
                    None
                }
                Ok(decided) => Some(decided),
            },
            None => None,
        };
        // What it has of trims and parts goes through the page buffer with the numbers.
        let are_numbers_kept = found.is_none();
        let decided = match found {
            Some(decided) => decided,
            None => {
                // No part is known to be whole.
                self.anchors.leave(&mut self.log);
                let identity = self.survey()?;
                self.decide(identity, None)?
            }
        };
        let Decided { identity, newest, suspects, highest, limit, incomplete } = decided;
        self.forget_trimmed(are_numbers_kept)?;
        self.note_valid();
        self.log.blocks.guess_erase_counts();
        self.log.restart(identity, highest + size::gap_of(&self.log.geometry()));
        self.log.set_tag(NEW);
        self.keep_checkpoint();
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

    /// Decides from a checkpoint and the pages that were written since.
    fn decide_from(&mut self, checkpoint: Found) -> Result<Decided, FtlError<F::Error>> {
        self.survey_listed(&checkpoint)?;
        let decided = self.decide(checkpoint.identity, Some(checkpoint))?;
        let Found { page, sequence, .. } = checkpoint;
        // Nothing newer shows that the directory is whole.
        let is_whole = decided.newest.sequence > sequence || self.is_steady(page, sequence)?;
        if !is_whole || self.maps_reserved_blocks() {
            return Err(FtlError::Blank);
        }
        Ok(decided)
    }

    /// Whether pages count that lie in blocks of the checkpoint: then it was tampered with.
    fn maps_reserved_blocks(&self) -> bool {
        let (blocks, places) = (&self.log.blocks, self.places);
        let is_reserved = |page| blocks.is_reserved(self.block_of(page));
        let mut found = self.own.iter().flatten().any(|&page| is_reserved(page));
        self.mapping.walk(&mut |run| {
            let end = run.physical + run.length;
            let mut at = run.physical;
            while at < end && !found {
                found = is_reserved(places.page(at));
                at += self.log.block_pages() - at % self.log.block_pages();
            }
        });
        found
    }

    /// Finds the newest page that counts, and maps all that does.
    fn decide(
        &mut self,
        identity: u32,
        checkpoint: Option<Found>,
    ) -> Result<Decided, FtlError<F::Error>> {
        let (mut limit, mut suspects, mut highest) = (u64::MAX, Suspects::default(), 0);
        let (mut incomplete, mut faded) = (None, Faded::default());
        let newest = loop {
            let look = Look { identity, checkpoint, limit, suspects: &suspects, faded: &faded };
            let newest = self.scan(look, &mut highest)?;
            let newest = newest.ok_or(FtlError::Blank)?;
            if !self.is_steady(newest.page, newest.sequence)? {
                covered!("ftl: the newest page is torn");
                limit = newest.sequence;
                continue;
            }
            if let Some(first) = newest.opens {
                covered!("ftl: a request is incomplete");
                incomplete = incomplete.or(Some(self.block_of(newest.page)));
                limit = first.min(newest.sequence);
                continue;
            }
            if newest.kind == Kind::Retired {
                covered!("ftl: a format was cut");
                return Err(FtlError::Blank);
            }
            let session = self.own[Own::Session as usize].ok_or(FtlError::Blank)?;
            if !self.log.is_steady(session)? && faded.add(session) {
                covered!("ftl: a session page is torn");
                continue;
            }
            let found = self.read_session()?;
            if found == suspects {
                break newest;
            }
            covered!("ftl: a cut came while suspects were emptied");
            suspects = found;
        };
        Ok(Decided { identity, newest, suspects, highest, limit, incomplete })
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
        let mut newest: Option<(PageHeader, Medium)> = None;
        for block in self.log.blocks.all() {
            self.anchors.unread.insert(block);
            let Some(header) = self.log.first_header(block)? else { continue };
            self.note_buffered(block, &header);
            self.log.blocks.set_opened_at(block, header.sequence);
            self.log.blocks.set_erase_count(block, header.erase_count);
            if newest.is_none_or(|(newest, _)| newest.sequence < header.sequence) {
                newest = Some((header, self.log.medium_in(0)));
            }
        }
        // An index that was made later has higher numbers: it is not overwritten.
        let (newest, medium) = newest.ok_or(FtlError::Blank)?;
        if medium != self.log.medium {
            return Err(FtlError::OtherContent { system: medium.system });
        }
        Ok(newest.identity)
    }

    /// Finds the blocks that were opened since the checkpoint, and the erase counts of those listed.
    fn survey_listed(&mut self, checkpoint: &Found) -> Result<(), FtlError<F::Error>> {
        self.anchors.unread.clear();
        for block in self.log.blocks.all() {
            self.log.blocks.set_opened_at(block, checkpoint.began);
            if !self.anchors.listed.has(block) || self.log.blocks.is_reserved(block) {
                continue;
            }
            let header = self.log.first_header(block)?;
            let is_ours = self.log.is_ours(0);
            if header.is_some_and(|header| !is_ours && header.sequence > checkpoint.sequence) {
                // What else was made later is found by a look at every block.
                return Err(FtlError::Blank);
            }
            let ours = header.filter(|header| is_ours && header.identity == checkpoint.identity);
            if let Some(header) = ours {
                self.note_buffered(block, &header);
                self.log.blocks.set_opened_at(block, header.sequence);
                self.log.blocks.set_erase_count(block, header.erase_count);
            }
            // No block was open when the checkpoint began.
            if ours.is_none_or(|header| header.sequence > checkpoint.began) {
                self.anchors.unread.insert(block);
            }
        }
        Ok(())
    }

    /// Notes a block that was a buffer block: a scan reads it first.
    fn note_buffered(&mut self, block: BlockNumber, first: &PageHeader) {
        if before_of(first).is_some() {
            self.anchors.buffered.insert(block);
        }
    }

    /// Whether a mount leaves the block out: it was bad before, and holds nothing.
    fn is_left_out(&mut self, block: BlockNumber) -> bool {
        let is_left_out = self.log.blocks.is_bad(block) && self.log.blocks.take_stuck(block);
        if is_left_out {
            covered!("ftl: a mount leaves out a bad block");
            self.log.blocks.set_stuck(block);
        }
        is_left_out
    }

    /// Maps the newest copies of all written pages numbered below `limit`.
    ///
    /// Logical pages that `suspects` exclude do not count. Returns the newest page. Reads every
    /// page, or those that are newer than the newest checkpoint, and that.
    ///
    /// What were buffer blocks comes first: so of each copy elsewhere the number is at hand, and
    /// those of the buffer blocks are in page buffer 1 (`transit/numbers.rs`).
    fn scan(
        &mut self,
        look: Look<'_>,
        highest: &mut u64,
    ) -> Result<Option<Newest>, FtlError<F::Error>> {
        let Look { checkpoint, limit, .. } = look;
        let mut scan =
            Scan { look, highest, newest: None, last: [None; 2], session: 0, buffered: 0 };
        self.forget_all();
        self.log.frames.forget(1);
        LastNumbers(self.log.frames.bytes_mut(1)).clear();
        for is_first in [true, false] {
            for block in self.log.blocks.all() {
                if self.anchors.buffered.has(block) == is_first
                    && self.anchors.unread.has(block)
                    && !self.is_left_out(block)
                {
                    self.scan_block(block, &mut scan)?;
                }
            }
        }
        self.buffered_from = (scan.buffered > 0).then_some(scan.session);
        self.transit.conversions.found = scan.buffered;
        let Some(checkpoint) = checkpoint else { return Ok(self.newest_of(&scan)) };
        *scan.highest = checkpoint.sequence.max(*scan.highest);
        if scan.newest.is_none() && checkpoint.sequence < limit {
            let Found { page, sequence, .. } = checkpoint;
            let kind = Kind::Directory;
            scan.newest = Some(Newest { page, sequence, kind, opens: None, beside: [None; 2] });
        }
        if !self.load_checkpoint(&checkpoint)? {
            // Whatever the error, the mount reads every page then.
            return Err(FtlError::Blank);
        }
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
        let beside = [open.next(), open.next()].map(|it| it.map(|&(page, _)| self.block_of(page)));
        Some(Newest { beside, ..newest })
    }

    /// Reads the written pages of a block.
    fn scan_block(
        &mut self,
        block: BlockNumber,
        scan: &mut Scan<'_>,
    ) -> Result<(), FtlError<F::Error>> {
        let (mut blank, mut is_damaged, mut unread, mut last_buffered) = (0, false, None, None);
        let began = scan.look.checkpoint.map_or(0, |checkpoint| checkpoint.began);
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
                    unread = Some(place);
                    continue;
                }
            };
            blank = 0;
            let was_unread = unread.is_some_and(|unread| unread + 1 == place);
            // A cut damages only the last page of a block. (Nothing else uses this mark yet.)
            if is_damaged && !self.log.blocks.is_bad(block) {
                self.log.blocks.set_stuck(block);
            }
            if !self.log.is_ours(0) || header.identity != scan.look.identity {
                continue;
            }
            let (sequence, kind) = (header.sequence, Kind::of(header.lowest, header.records));
            *scan.highest = sequence.max(*scan.highest);
            // A directory lies outside of the log.
            if sequence < began || kind == Kind::Directory {
                continue;
            }
            let is_session = matches!(kind, Kind::Own(Own::Session));
            let is_excluded = match is_session {
                true => scan.look.faded.has(page),
                false => scan.look.suspects.exclude(sequence),
            };
            if sequence >= scan.look.limit || is_excluded {
                continue;
            }
            if scan.newest.is_none_or(|newest| newest.sequence < sequence) {
                let opens = opens_request(&header);
                scan.newest = Some(Newest { page, sequence, kind, opens, beside: [None; 2] });
            }
            let before = before_of(&header);
            let last = &mut scan.last[usize::from(header.tag == MOVED)];
            if before.is_none() && last.is_none_or(|(_, last)| last < sequence) {
                *last = Some((page, sequence));
            }
            last_buffered = before.map(|_| sequence);
            // A session page that was moved since begins no session.
            if (is_session && header.tag == NEW) || kind == Kind::End {
                scan.session = scan.session.max(sequence);
            }
            self.take(kind, page, sequence)?;
            if let Some(before) = before.filter(|_| was_unread) {
                // The page behind it names it.
                covered!("ftl: a page of a buffer block has faded");
                self.take(Kind::Data(before), self.log.page_at(block, place - 1), sequence)?;
            }
        }
        if let Some(last) = last_buffered {
            scan.buffered += 1;
            // A block without room there is compared by reading.
            LastNumbers(self.log.frames.bytes_mut(1)).add(block, last);
        }
        Ok(())
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
            && !self.is_newer((page, sequence), rival)?
        {
            return Ok(());
        }
        self.note(kind, page)?;
        Ok(())
    }

    /// Whether a page is newer than the copy that counts up to now.
    ///
    /// Cost: a read, unless both are in one block, or that copy is in a buffer block.
    fn is_newer(
        &mut self,
        (page, sequence): (PageNumber, u64),
        rival: PageNumber,
    ) -> Result<bool, Fault<F::Error>> {
        let block = self.block_of(rival);
        if block == self.block_of(page) {
            return Ok(rival < page);
        }
        if let Some(last) = LastNumbers(self.log.frames.bytes(1)).get(block) {
            return Ok(sequence > last);
        }
        Ok(self.sequence_of(rival)?.is_none_or(|rival| rival < sequence))
    }

    /// The sequence number of a page that was read before.
    ///
    /// `None` if it cannot be read any more, unless a page in a buffer block names it.
    ///
    /// Cost: one read, and more for an unstable page.
    fn sequence_of(&mut self, page: PageNumber) -> Result<Option<u64>, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if let Ok(header) = self.log.read_raw(page, 0)? {
                return Ok(Some(header.sequence));
            }
        }
        // A page that the one behind it names is a little older than that.
        let block = self.block_of(page);
        for place in 0..self.log.block_pages() {
            let behind = self.log.page_at(block, place);
            if behind > page
                && let Ok(header) = self.log.read_raw(behind, 0)?
            {
                return Ok(before_of(&header).map(|_| header.sequence));
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
    /// Cost: a read for each page that is mapped there, but for those in buffer blocks whose
    /// numbers are kept; more for an unstable page.
    fn forget_trimmed(&mut self, are_numbers_kept: bool) -> Result<(), FtlError<F::Error>> {
        let Some(page) = self.own[Own::Trims as usize] else { return Ok(()) };
        let bytes = self.page_bytes();
        self.read_kind(page, 0)?;
        for block in self.log.blocks.all() {
            let numbers = LastNumbers(self.log.frames.bytes(1));
            if !are_numbers_kept || numbers.get(block).is_none() {
                self.anchors.buffered.remove(block);
            }
        }
        // First pages of the blocks that are left, whose numbers are in page buffer 1. It takes the
        // list afterwards.
        for frame in [0, 1] {
            if frame == 1 {
                let (from, to) = self.log.frames.pair(0, 1);
                to.copy_from_slice(from);
            }
            let list = Trims(&mut self.log.frames.bytes_mut(frame)[..bytes]);
            let (as_of, count) = (list.as_of(), list.count());
            for at in 0..count {
                let extent = Trims(&mut self.log.frames.bytes_mut(frame)[..bytes]).get(at);
                if self.mapping.space().admit(extent).is_err() {
                    return Err(FtlError::Corrupt { page, reason: Damage::OtherIndex });
                }
                for logical in extent.start..extent.end() {
                    let Some(page) = self.find(logical) else { continue };
                    let block = self.block_of(page);
                    if self.anchors.buffered.has(block) != (frame == 0) {
                        continue;
                    }
                    let sequence = match frame {
                        0 => LastNumbers(self.log.frames.bytes(1)).get(block),
                        _ => self.sequence_of(page)?,
                    };
                    if sequence.is_some_and(|sequence| sequence <= as_of) {
                        covered!("ftl: a mount trims a page again");
                        self.mapping.remove(Extent::new(logical, 1), &mut |_| {})?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Marks the mapped pages as valid, and counts unexplained damage.
    ///
    /// That is a damaged page that is not the last of its block: no cut explains it.
    /// A block without valid pages is not counted: its erase may have been cut.
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
