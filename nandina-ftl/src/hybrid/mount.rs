//! A mount: finds the newest copy of each page, and the roles of blocks.
//!
//! It writes nothing.
//!
//! Only the page with the highest sequence number can be torn and count, so a mount looks at it
//! many times. If that does not read the same each time, it was never acknowledged: it does not
//! count, and the one before it is looked at. Two mounts may have begun behind the same number, the
//! first cut in its first program: so of two pages with one number the one further back in the chip
//! is the newer. If it is a copy of a full merge whose last page is
//! missing, none of these copies counts.
//!
//! Roles follow from the pages. The first block whose pages are at their offsets of a logical block
//! becomes its data block, every other one a log block; whichever holds the newest copy of a page,
//! that copy counts. A page of a buffer block that has faded counts as well (`faded.rs`).

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::log::LOST_MAX;
use nandina::node::{PageFault, PageHeader};
use nandina::{Damage, Fault, covered};

use super::ages::{Age, Ages};
use super::label::{Cause, Kind};
use super::maps::{NONE, Slot};
use super::policy::Policy;
use super::size::{SUSPECTS_BYTES, gap_of};
use super::{Hybrid, Open};
use crate::ftl::FtlError;
use crate::ftl::bytes::Suspects;
use crate::ftl::mount::LOOKS;
use crate::transit::Entry;

/// The age of no page.
const NEVER: Age = (u64::MAX, PageNumber(u32::MAX));

/// The newest page of those that count.
#[derive(Clone, Copy)]
struct Newest {
    age: Age,
    kind: Kind,
    /// If its block is a full merge without its last page, the number of the first.
    begun: Option<u64>,
}

/// What a scan has seen of a block.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The first page is a copy: its number.
    first_copy: Option<u64>,
    first: Option<u64>,
    last: u64,
    /// The place behind the last page that counts.
    next: u32,
    is_log: bool,
    commits: bool,
    is_damaged: bool,
    /// Pages behind the last one that counts which cannot be read.
    unread: u32,
    /// Whether it is a buffer block with a faded page that no page names.
    is_doubtful: bool,
}

/// The role of a block, as far as its pages were read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    None,
    Data(u32),
    Slot(u32),
    Buffer(u32),
}

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// Finds all that is on the chip, as after a cut.
    pub(super) fn mount(&mut self) -> Result<(), FtlError<F::Error>> {
        (self.settled, self.in_doubt, self.previous) = (false, true, None);
        self.media.weak = None;
        self.media.clean.fill(0);
        let found = self.find_all();
        // It has marked blocks there.
        self.media.clean.fill(0);
        found
    }

    fn find_all(&mut self) -> Result<(), FtlError<F::Error>> {
        self.media.find_bad_blocks()?;
        let identity = self.survey()?;
        let (mut limit, mut suspects, mut highest) = (NEVER, Suspects::default(), 0);
        let mut ages = Ages::new();
        loop {
            let newest = self.scan(identity, (limit, &suspects, false), &mut ages, &mut highest)?;
            let newest = newest.ok_or(FtlError::Blank)?;
            if let Some(first) = newest.begun {
                covered!("hybrid: a full merge was cut");
                limit = (first, PageNumber(0));
                continue;
            }
            if !self.is_steady(newest.age)? {
                covered!("hybrid: the newest page is torn");
                limit = newest.age;
                continue;
            }
            if newest.kind == Kind::Retired {
                covered!("hybrid: a format was cut");
                return Err(FtlError::Blank);
            }
            self.newest = newest.age.0;
            let found = self.read_suspects()?;
            if found == suspects {
                break;
            }
            covered!("hybrid: a cut came while suspects were emptied");
            suspects = found;
        }
        if !self.forget_trimmed(&mut ages)? {
            covered!("hybrid: a trimmed page cannot be read any more");
            // Of a block whose erase was cut a page is read now and then: by the scan, not since.
            self.read_own(0)?;
            self.media.clean.fill(0);
            self.scan(identity, (limit, &suspects, true), &mut ages, &mut highest)?;
        }
        self.suspects = suspects;
        self.settle_roles()?;
        self.transit.conversions.found = self.transit.blocks().count() as u64;
        let blocks = &mut self.media.blocks;
        let damaged = blocks.all().filter(|&block| {
            blocks.take_stuck(block) && blocks.valid_in(block) > 0 && !blocks.is_bad(block)
        });
        self.statistics.unexplained_blocks = damaged.count() as u32;
        blocks.guess_erase_counts();
        self.media.identity = identity;
        self.media.sequence = highest + gap_of(&self.media.geometry());
        self.own_next = self.block_pages();
        self.in_doubt = false;
        Ok(())
    }

    /// Forgets all that is known of pages.
    pub(super) fn forget_all(&mut self) {
        self.maps.clear();
        self.transit.clear();
        self.own = None;
        (self.open, self.recent) = ([Open::NONE; _], [Open::NONE; _]);
        self.suspects = Suspects::default();
        self.media.blocks.unreserve_all();
        self.media.blocks.forget_valid();
    }

    /// Finds the newest format by the first pages of each block, and the erase counts.
    ///
    /// Marks what may be buffer blocks, for the scan.
    fn survey(&mut self) -> Result<u32, FtlError<F::Error>> {
        let is_buffer = |header: &PageHeader| Kind::of(header).1.is_buffer;
        let newest = self.media.survey(self.block_pages(), |_| true, is_buffer)?;
        let (newest, medium) = newest.ok_or(FtlError::Blank)?;
        if medium != self.media.medium {
            return Err(FtlError::OtherContent { system: medium.system });
        }
        Ok(newest.identity)
    }

    /// Reads every written page that is older than `limit`, and notes the newest copies.
    ///
    /// The blocks that the survey has marked come first: so of each copy elsewhere the number is at
    /// hand, and those of the buffer blocks are kept (`ages.rs`).
    ///
    /// Pages that `suspects` exclude do not count, nor, if `trims`, those older than a trim in the
    /// list in page buffer 0. Returns the newest page.
    fn scan(
        &mut self,
        identity: u32,
        (limit, suspects, trims): (Age, &Suspects, bool),
        ages: &mut Ages,
        highest: &mut u64,
    ) -> Result<Option<Newest>, FtlError<F::Error>> {
        self.forget_all();
        self.begin_scan(ages, !trims);
        let mut newest: Option<Newest> = None;
        let blocks = self.media.blocks.all();
        for (is_first, block) in
            [true, false].into_iter().flat_map(|it| blocks.clone().map(move |block| (it, block)))
        {
            if self.media.is_clean(block) != is_first
                || self.media.flash.is_bad(block).map_err(Fault::Device)?
            {
                continue;
            }
            let (mut seen, mut role, mut blank) = (Seen::default(), Role::None, true);
            let mut last: Option<Age> = None;
            // Whether pages are appended to the block, and how many in a row read as erased.
            let (mut is_appended, mut erased) = (false, 0);
            for place in 0..self.block_pages() {
                let page = self.media.page_at(block, place);
                let header = match self.media.read(page, 1)? {
                    Ok(header) => header,
                    Err(PageFault::Erased) if blank && place >= LOST_MAX => break,
                    // No page was appended behind so many.
                    Err(PageFault::Erased) if is_appended && erased >= LOST_MAX => break,
                    Err(PageFault::Erased) => {
                        erased += 1;
                        continue;
                    }
                    Err(_) => {
                        (seen.is_damaged, blank, erased) = (true, false, 0);
                        seen.unread += 1;
                        continue;
                    }
                };
                (blank, erased) = (false, 0);
                // A cut damages only the last page of a block. (Nothing else uses this mark yet.)
                if seen.is_damaged && !self.media.blocks.is_bad(block) {
                    self.media.blocks.set_stuck(block);
                }
                if self.media.medium_in(1) != self.media.medium || header.identity != identity {
                    continue;
                }
                let (sequence, (kind, cause)) = (header.sequence, Kind::of(&header));
                *highest = sequence.max(*highest);
                let age = (sequence, page);
                if age >= limit || (suspects.exclude(sequence) && kind != Kind::Own) {
                    continue;
                }
                if newest.is_none_or(|newest| newest.age < age) {
                    newest = Some(Newest { age, kind, begun: None });
                }
                if kind == Kind::Own {
                    self.take_own(age)?;
                    continue;
                }
                last = Some(age);
                let faded = seen.next..place;
                seen.note(sequence, place, cause);
                is_appended = cause.is_buffer;
                if let Some(logical) = kind.logical()
                    && !(trims && self.is_trimmed(logical, sequence))
                {
                    let at = (block, place);
                    role = self.take(ages, (logical, cause), at, sequence, role)?;
                    if cause.is_buffer && !faded.is_empty() {
                        // The page behind them names the last of them.
                        covered!("hybrid: a page of a buffer block has faded");
                        let named = self.transit.summary.page_of(logical, cause.before);
                        if !(trims && self.is_trimmed(named, sequence)) {
                            let at = (block, place - 1);
                            role = self.take(ages, (named, cause), at, sequence, role)?;
                        }
                        seen.is_doubtful |= faded.len() > 1;
                        if !self.media.blocks.is_bad(block) {
                            self.media.blocks.set_stuck(block);
                        }
                    }
                }
            }
            if let Some(newest) = &mut newest
                && last == Some(newest.age)
                && !seen.commits
            {
                newest.begun = seen.first_copy;
            }
            // Elsewhere than in the newest block, the last page of a merge has faded.
            if seen.first_copy.is_some() && !seen.commits && !self.media.blocks.is_bad(block) {
                covered!("hybrid: the last copy of a merge is missing");
                self.media.blocks.set_stuck(block);
            }
            let is_buffer = match role {
                Role::Buffer(_) => true,
                Role::Slot(at) => self.maps.slot(at).buffer.is_some(),
                Role::None | Role::Data(_) => false,
            };
            // Only the last of them can be torn.
            if is_buffer && seen.unread > 1 && !self.media.blocks.is_bad(block) {
                covered!("hybrid: the last pages of a buffer block have faded");
                seen.is_doubtful = true;
                self.media.blocks.set_stuck(block);
            }
            self.note_block(block, role, &seen)?;
            if let Some(last) = last.filter(|_| is_buffer) {
                self.keep_last(ages, last);
            }
        }
        Ok(newest)
    }

    /// Notes that a page holds a logical page. The newest copy counts.
    ///
    /// Returns the role of its block.
    fn take(
        &mut self,
        ages: &mut Ages,
        (logical, cause): (u32, Cause),
        (block, place): (BlockNumber, u32),
        sequence: u64,
        role: Role,
    ) -> Result<Role, FtlError<F::Error>> {
        if logical >= self.logical_pages {
            return Err(FtlError::LogicalPages { found: logical, given: self.logical_pages });
        }
        let page = self.media.page_at(block, place);
        if let Some(rival) = self.find(logical)
            && !self.is_newer(ages, (sequence, page), rival)?
        {
            return Ok(role);
        }
        // The group of a buffer block.
        let group = match role {
            Role::Buffer(at) => Some(self.transit.summary.get(at).group),
            Role::Slot(at) => {
                let slot = self.maps.slot(at);
                slot.buffer.map(|_| slot.owner)
            }
            Role::None | Role::Data(_) => None,
        };
        let expected = cause.is_buffer.then(|| self.transit.summary.group_of(logical));
        if role != Role::None && group != expected {
            return Err(FtlError::Corrupt { page, reason: Damage::OtherIndex });
        }
        self.forget(logical);
        if cause.is_buffer {
            let role = self.describe_buffer(block, logical, role)?;
            match role {
                Role::Buffer(at) => self.transit.summary.set_logical(at, place, logical),
                Role::Slot(at) => self.maps.insert(at, place, logical),
                Role::None | Role::Data(_) => {}
            }
            self.media.blocks.set_valid(page, true);
            return Ok(role);
        }
        let pages = self.block_pages();
        let (logical_block, is_in_place) = (logical / pages, logical % pages == place);
        let role = match role {
            Role::None if is_in_place && self.maps.data(logical_block).is_none() => {
                self.maps.set_data(logical_block, Some(block));
                self.media.blocks.set_reserved(block, true);
                Role::Data(logical_block)
            }
            Role::Data(of) if !is_in_place || of != logical_block => self.demote(block, of)?,
            Role::None => self.describe(block)?,
            role => role,
        };
        if let Role::Slot(slot) = role {
            self.maps.insert(slot, place, logical);
        }
        self.media.blocks.set_valid(page, true);
        Ok(role)
    }

    /// Describes a block as a buffer block, unless it is.
    fn describe_buffer(
        &mut self,
        block: BlockNumber,
        logical: u32,
        role: Role,
    ) -> Result<Role, FtlError<F::Error>> {
        if role != Role::None {
            return Ok(role);
        }
        self.drop_stale_slots();
        self.media.blocks.set_reserved(block, true);
        let group = self.transit.summary.group_of(logical);
        let entry = Entry { is_closed: true, ..Entry::new(block.0, group) };
        if let Some(at) = self.transit.summary.add(entry) {
            return Ok(Role::Buffer(at));
        }
        // One of those in the table is stale, as blocks behind it will show.
        covered!("hybrid: a mount meets more buffer blocks than there can be");
        let at = self.add_slot(block, group)?;
        self.maps.set_slot(at, Slot { buffer: Some(false), ..self.maps.slot(at) });
        Ok(Role::Slot(at))
    }

    /// Moves buffer blocks into the Summary table that it had no room for.
    fn settle_buffer(&mut self) -> Result<(), FtlError<F::Error>> {
        for at in 0..self.maps.sizes.slots {
            let Slot { block, owner: group, next, buffer, .. } = self.maps.slot(at);
            let (Some(is_doubtful), true) = (buffer, block != NONE) else { continue };
            let entry = Entry { block, group, next, is_closed: true, is_doubtful };
            let to = self.transit.summary.add(entry).ok_or(FtlError::NoRoom)?;
            for place in 0..next {
                let page = self.media.page_at(BlockNumber(block), place);
                if let Some(logical) = self.maps.logical_at(at, place)
                    && self.media.blocks.is_valid(page)
                {
                    self.maps.remove(logical);
                    self.transit.summary.set_logical(to, place, logical);
                }
            }
            self.maps.drop_slot(at);
        }
        Ok(())
    }

    /// Describes a block as a log block.
    fn describe(&mut self, block: BlockNumber) -> Result<Role, FtlError<F::Error>> {
        if !self.has_role(block) {
            self.media.blocks.set_reserved(block, true);
        }
        self.drop_stale_slots();
        Ok(Role::Slot(self.add_slot(block, NONE)?))
    }

    /// Frees the slots of blocks without pages that count.
    fn drop_stale_slots(&mut self) {
        for at in 0..self.maps.sizes.slots {
            let block = self.maps.slot(at).block;
            if block != NONE && self.media.blocks.valid_in(BlockNumber(block)) == 0 {
                self.maps.drop_slot(at);
                self.media.blocks.set_reserved(BlockNumber(block), false);
            }
        }
        for at in 0..self.transit.summary.len() {
            let block = self.transit.summary.get(at).block;
            if block != NONE && self.media.blocks.valid_in(BlockNumber(block)) == 0 {
                self.transit.summary.remove(at);
                self.media.blocks.set_reserved(BlockNumber(block), false);
            }
        }
    }

    fn has_role(&self, block: BlockNumber) -> bool {
        self.maps.data_of(block).is_some() || self.maps.slot_of(block).is_some()
    }

    /// Makes the data block of a logical block a log block.
    fn demote(
        &mut self,
        block: BlockNumber,
        logical_block: u32,
    ) -> Result<Role, FtlError<F::Error>> {
        let slot = self.add_slot(block, NONE)?;
        self.maps.set_data(logical_block, None);
        for (place, logical) in (0..).zip(self.pages_of(logical_block)) {
            if self.media.blocks.is_valid(self.media.page_at(block, place)) {
                self.maps.insert(slot, place, logical);
            }
        }
        Ok(Role::Slot(slot))
    }

    /// Notes what is known of a block after its last page.
    fn note_block(
        &mut self,
        block: BlockNumber,
        role: Role,
        seen: &Seen,
    ) -> Result<(), FtlError<F::Error>> {
        let is_full = seen.next == self.block_pages();
        let role = match role {
            // It was a log block, so that the page behind its last one may be torn.
            Role::Data(of) if seen.is_log && !is_full => {
                covered!("hybrid: a log block has its pages at their offsets");
                self.demote(block, of)?
            }
            role => role,
        };
        if let Role::Buffer(at) = role {
            let (entry, is_doubtful) = (self.transit.summary.get(at), seen.is_doubtful);
            self.transit.summary.set(at, Entry { next: seen.next, is_doubtful, ..entry });
        }
        if let Role::Slot(at) = role
            && self.maps.slot(at).buffer.is_some()
        {
            let (slot, buffer) = (self.maps.slot(at), Some(seen.is_doubtful));
            self.maps.set_slot(at, Slot { next: seen.next, is_closed: true, buffer, ..slot });
        } else if let Role::Slot(at) = role {
            let owner =
                (0..seen.next).find_map(|place| self.maps.logical_at(at, place)).unwrap_or(0);
            let age = if P::BY_USE { seen.last } else { seen.first.unwrap_or(0) };
            let slot = Slot {
                block: block.0,
                owner: Self::owner_of(owner / self.block_pages()),
                next: seen.next,
                is_closed: true,
                is_log: seen.is_log,
                buffer: None,
                age,
            };
            self.maps.set_slot(at, slot);
        }
        if role != Role::None
            && !seen.is_log
            && !is_full
            && let Some(recent) = self.recent.iter_mut().min_by_key(|recent| recent.used)
            && (recent.used < seen.last || recent.block == NONE)
        {
            *recent = Open { block: block.0, next: seen.next, used: seen.last };
        }
        Ok(())
    }

    /// Ends roles of blocks without pages that count, and makes log blocks data blocks.
    ///
    /// A log block becomes one if its pages are at their offsets, there is no other, and nothing
    /// was appended to it as to a log when power was cut.
    fn settle_roles(&mut self) -> Result<(), FtlError<F::Error>> {
        for logical_block in 0..self.maps.sizes.logical_blocks {
            if let Some(block) = self.maps.data(logical_block)
                && self.media.blocks.valid_in(block) == 0
            {
                self.maps.set_data(logical_block, None);
                self.media.blocks.set_reserved(block, false);
            }
        }
        self.drop_stale_slots();
        self.settle_buffer()?;
        for at in 0..self.maps.sizes.slots {
            let slot = self.maps.slot(at);
            let block = BlockNumber(slot.block);
            if slot.block == NONE {
                continue;
            }
            if let Some(logical_block) = self.shaped(at, &slot)
                && self.maps.data(logical_block).is_none()
            {
                self.make_data(at, logical_block);
                self.maps.set_data(logical_block, Some(block));
            }
        }
        Ok(())
    }

    /// The logical block at whose offsets all pages of a log block are that count.
    fn shaped(&self, at: u32, slot: &Slot) -> Option<u32> {
        let pages = self.block_pages();
        if slot.is_log && slot.next < pages {
            return None;
        }
        let counted = |&place: &u32| {
            self.media.blocks.is_valid(self.media.page_at(BlockNumber(slot.block), place))
        };
        let mut logical_block = None;
        for place in (0..pages).filter(counted) {
            let logical = self.maps.logical_at(at, place)?;
            let of = *logical_block.get_or_insert(logical / pages);
            if logical != of * pages + place {
                return None;
            }
        }
        logical_block
    }

    /// Notes a page that the FTL keeps about itself. The newest one counts.
    fn take_own(&mut self, (sequence, page): Age) -> Result<(), Fault<F::Error>> {
        if let Some(own) = self.own {
            if self.sequence_of(own)?.is_some_and(|known| (known, own) >= (sequence, page)) {
                return Ok(());
            }
            self.media.blocks.set_valid(own, false);
            self.media.blocks.set_reserved(self.media.block_of(own), false);
        }
        self.media.blocks.set_valid(page, true);
        self.media.blocks.set_reserved(self.media.block_of(page), true);
        self.own = Some(page);
        Ok(())
    }

    /// Whether a page reads with its number each time.
    fn is_steady(&mut self, (sequence, page): Age) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if !self.media.read(page, 1)?.is_ok_and(|header| header.sequence == sequence) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the suspects. Every format has written a page with them.
    fn read_suspects(&mut self) -> Result<Suspects, FtlError<F::Error>> {
        let page = self.own.ok_or(FtlError::Blank)?;
        self.read_own(1)?;
        let area = &self.media.frames.bytes(1)[..SUSPECTS_BYTES];
        let suspects = Suspects::read(area, self.media.geometry().blocks);
        suspects.ok_or(FtlError::Corrupt { page, reason: Damage::OtherIndex })
    }
}

impl Seen {
    fn note(&mut self, sequence: u64, place: u32, cause: Cause) {
        if self.first.is_none() {
            self.first = Some(sequence);
            self.first_copy = cause.is_copy.then_some(sequence);
        }
        self.last = sequence.max(self.last);
        self.unread = 0;
        (self.next, self.is_log) = (place + 1, cause.is_log);
        // What is programmed behind the copies of a merge shows that it had ended.
        self.commits |= cause.commits || !cause.is_copy;
    }
}
