//! What a mount does about pages that a cut may have left torn, before anything is read from the
//! index or built on it.
//!
//! A torn page may read otherwise each time (rule 6 of the media contract): as it was, as it should
//! have become, or not at all. So a mount decides once. What it takes for written it writes anew,
//! elsewhere, and what it does not see it outdates: every number that it gives is above any that
//! something unseen can have, and the first page that is programmed after a mount commits nothing,
//! so that this number is known to each later mount before a commit counts. Until that is done no
//! block is opened that only the newest commit has made free.
//!
//! Cost of a mount that writes: what the systems write, as their sections below say.

use core::ops::Range;

use super::Index;
use super::survey::Newest;
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError, PageNumber};
use crate::gc::{self, PageOwner};
use crate::log::GAP;
use crate::node::{PageHeader, SESSION_END, SESSION_START};
use crate::place::Placement;
use crate::space::Kind;

/// Times that a mount begins again, each time without one more page that turned out to be torn.
pub(crate) const TRIES: u32 = 2;

/// Reads after which a page is taken to be steady where nothing else can be done.
pub(crate) const LOOKS: u64 = 24;

/// Pages that can turn out to be torn at one mount.
pub(super) const TORN_MAX: usize = 4;

/// No page.
pub(super) const NONE: (u32, u64) = (u32::MAX, u64::MAX);

/// Whether the chip did not take what was written, and lives on.
fn cannot_write<E: FlashError>(fault: &Fault<E>) -> bool {
    match fault {
        Fault::Device(error) => error.kind() != ErrorKind::Other,
        Fault::Corrupt { reason, .. } => *reason == Damage::NotAsWritten,
        _ => false,
    }
}

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Whether a mount can begin again without the newest root, of whose tree `page` cannot be
    /// read. It can if that is the page that was programmed last, which is torn: what was torn was
    /// never acknowledged. It can as well if `page` reads otherwise each time: the erase of its
    /// block was begun, so no tree that counts needs it.
    ///
    /// Cost: [`LOOKS`] reads at most.
    pub(super) fn is_torn(
        &mut self,
        page: PageNumber,
        reason: Damage,
    ) -> Result<bool, Fault<F::Error>> {
        let cannot_be_read = matches!(
            reason,
            Damage::Erased
                | Damage::Checksum
                | Damage::Uncorrectable
                | Damage::OtherVersion
                | Damage::OtherSystem
        );
        // Replaced in place, it was decided which page is torn.
        if !cannot_be_read || S::DESCRIPTION.in_place || self.is_outdated(self.newest.1) {
            return Ok(false);
        }
        let is_torn = page.0 == self.newest.0 || (S::Kind::PATHS && !self.reads_alike(page)?);
        if is_torn {
            self.torn_from = self.newest.1.min(self.torn_from);
            self.torn_to = self.space.log.sequence();
        }
        Ok(is_torn)
    }

    /// Keeps the blocks that hold pages of the tree before `root`, which was found in `block`, from
    /// being opened until what comes next has committed. If that tree is not whole any more, `root`
    /// is known to be.
    pub(super) fn hold_before(
        &mut self,
        block: Newest,
        root: &PageHeader,
        mut sequence: u64,
    ) -> Result<(), Fault<F::Error>> {
        // The newest commit began in this block, or in one of those before that its pages span.
        let operation = S::path_pages(root.height) + u32::from(root.height) + 1;
        let others = 1 + operation / self.space.log.block_pages();
        let below = (root.sequence, others);
        let found = self.root_from(block, root.identity, below, &mut sequence)?;
        let Some((page, before, _)) = found else { return Ok(()) };
        self.take_root(page, &before)?;
        self.space.restart(root.identity, before.sequence, sequence);
        self.inner_nodes = 0;
        match self.find_valid_pages(|_| true) {
            Ok(()) => self.space.log.blocks.hold_valid(),
            Err(Fault::Corrupt { .. }) => self.space.log.blocks.forget_valid(),
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Writes anew what may be torn. Where there is no room for that, the index can be read all the
    /// same.
    pub(super) fn settle_torn(&mut self) -> Result<(), Fault<F::Error>> {
        self.settled = true;
        if self.ended_well() {
            return Ok(());
        }
        let settled = match S::Kind::PATHS {
            // Else mounts alone would open all blocks that the checkpoint names.
            true => self.settle_root().and_then(|()| self.keep_checkpoint()),
            false if S::DESCRIPTION.in_place => self.settle_in_place(),
            false => self.settle_blocks(),
        };
        match settled {
            Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.in_doubt => {}
            Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) => self.mount_as_seen()?,
            // Nothing can be written now, and all can be read.
            Err(fault) if cannot_write(&fault) => self.mount_as_seen()?,
            settled => return settled,
        }
        if S::Kind::PATHS {
            self.expect_steady(self.root)?;
        } else if S::DESCRIPTION.appends {
            self.expect_before_append()?;
            // What was torn may have been read otherwise before.
            self.count_anew()?;
        }
        self.settled = false;
        self.space.log.settling = false;
        self.free_held();
        Ok(())
    }

    /// Whether the newest page on the chip is the end of a session. Then nothing can be torn but a
    /// page that commits nothing, or a block that held nothing.
    pub(super) fn ended_well(&self) -> bool {
        self.ended > 0 && self.ended + GAP == self.space.log.sequence()
    }

    /// Blocks that were kept from being opened are free, but those of checkpoints.
    pub(super) fn free_held(&mut self) {
        self.space.log.blocks.release();
        if S::DESCRIPTION.appends {
            self.space.log.blocks.unreserve_all();
        }
    }

    /// The page may be the one that was programmed last before the mount.
    pub(super) fn note_newest(&mut self, page: PageNumber, sequence: u64) {
        if self.newest.1 == u64::MAX || self.newest.1 < sequence {
            self.newest = (page.0, sequence);
        }
    }

    /// The newest page below the sequence number `below` that began to write after a mount. Cost:
    /// one read for each written page.
    pub(super) fn start_before(&mut self, below: u64) -> Result<u64, Fault<F::Error>> {
        let mut start = 0;
        for page in (0..self.space.log.geometry().pages()).map(PageNumber) {
            if let Ok(header) = self.space.log.read_raw(page, 0)?
                && header.height == 0
                && header.records == SESSION_START
                && header.sequence <= below
            {
                start = start.max(header.sequence);
            }
        }
        Ok(start)
    }

    /// Where pages commit for themselves: writes anew what stands in blocks that may hold a torn
    /// page.
    ///
    /// Cost: a read for each block, and what it costs to collect these blocks.
    fn settle_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        let torn = self.settle_from..self.space.log.sequence();
        if self.space.room() < 2 + S::path_pages(self.height)
            && self.space.log.blocks.held_blocks() > 0
        {
            self.expect_steady(self.newest.0)?;
            self.free_held();
        }
        self.space.log.settling = true;
        // Room may end before all is written anew: then first the page in which a record is torn.
        let short = self.space.room() < self.kept() + 2 * self.space.valid_pages();
        for unsteady in [true, false] {
            if unsteady && !(short && S::DESCRIPTION.appends) {
                continue;
            }
            for block in self.space.log.blocks.all() {
                self.settle_block(block, &torn, unsteady)?;
            }
        }
        // All that counts is in other blocks now, the newest commit as well: no state before it is
        // needed.
        self.space.log.blocks.release();
        for block in self.space.log.blocks.all() {
            let first = self.space.log.first_sequence(block)?;
            let clears = self.torn.contains(&self.space.log.page_at(block, 0).0)
                || (S::DESCRIPTION.maps && first.is_some_and(|first| torn.contains(&first)));
            if clears {
                self.space.log.clear_block(block)?;
            }
        }
        self.space.log.settling = false;
        if S::DESCRIPTION.appends {
            self.free_held();
            self.count_anew()?;
        }
        // What was held is free.
        gc::review_reserve(self);
        // The first page of all that says so. Where the newest root counts it is the root: a torn
        // one that this mount did not see is older.
        if S::DESCRIPTION.appends {
            self.move_page(PageNumber(self.root), None)
        } else {
            self.mark(0)
        }
    }

    /// Writes anew what is valid in `block`, if its first page has one of the numbers `torn`: all,
    /// or only what does not read the same time after time.
    fn settle_block(
        &mut self,
        block: BlockNumber,
        torn: &Range<u64>,
        unsteady: bool,
    ) -> Result<(), Fault<F::Error>> {
        if self.space.log.first_sequence(block)?.is_none_or(|first| !torn.contains(&first)) {
            return Ok(());
        }
        let mut from = 0;
        loop {
            if !unsteady {
                self.keep_room_to_settle()?;
            }
            let Some((page, place)) = gc::next_valid(self, block, from)? else { return Ok(()) };
            from = place + u32::from(unsteady);
            if unsteady {
                if self.before_append(page)?.is_none() {
                    continue;
                }
                self.keep_room_to_settle()?;
            }
            match self.move_page(page, None) {
                Err(Fault::Corrupt { page, .. }) if page.0 != self.newest.0 && !self.in_doubt => {
                    // Damage that no cut explains.
                    self.space.log.blocks.set_stuck(block);
                    return Ok(());
                }
                moved => moved?,
            }
        }
    }

    /// Where nothing more can be written: the page with a torn append is what it was before that.
    fn expect_before_append(&mut self) -> Result<(), Fault<F::Error>> {
        for block in self.space.log.blocks.all() {
            if self.space.log.first_sequence(block)?.is_none_or(|first| first < self.settle_from) {
                continue;
            }
            let mut from = 0;
            while let Some((page, place)) = gc::next_valid(self, block, from)? {
                if let Some(sum) = self.before_append(page)? {
                    self.space.expect(page, sum);
                }
                from = place + 1;
            }
        }
        Ok(())
    }

    /// Programs a page that no node leads to and that tells of so many `records`. Cost: one read
    /// and one program.
    pub(super) fn mark(&mut self, records: u32) -> Result<(), Fault<F::Error>> {
        self.space.begin_walk();
        let root = PageNumber(self.space.where_is(self.root));
        if self.space.log.read_raw(root, 0)?.is_ok() {
            self.in_doubt = true;
            self.space.program_mark(0, records)?;
            self.in_doubt = false;
        }
        Ok(())
    }

    /// Says on the chip that the session ends here and everything before is whole, so that the next
    /// mount has nothing to settle. Without room for that page, or if nothing was programmed,
    /// nothing is written.
    pub(super) fn mark_end(&mut self) -> Result<(), Fault<F::Error>> {
        let can_end = self.settled && !self.in_doubt && self.space.log.has_begun();
        if can_end && !S::DESCRIPTION.in_place && self.space.room() > self.kept() {
            self.mark(SESSION_END)?;
        }
        Ok(())
    }

    /// Notes where a session ended, if the page with this header says so.
    pub(super) fn note_end(&mut self, header: &PageHeader) {
        if header.height == 0 && header.records == SESSION_END {
            self.ended = self.ended.max(header.sequence);
        }
    }

    /// Collects garbage where less room is left than a collection may need. Where that does not
    /// suffice, blocks that were kept from being opened are free after all.
    fn keep_room_to_settle(&mut self) -> Result<(), Fault<F::Error>> {
        let least = self.space.log.block_pages() + 2 * S::path_pages(self.height);
        for _ in 0..2 {
            if self.space.room() >= least {
                return Ok(());
            }
            match gc::gain_room(self, 0) {
                Err(Fault::NoRoom { .. }) if !self.in_doubt => {}
                gained => gained?,
            }
            if self.space.room() < least {
                self.free_held();
            }
        }
        if self.space.room() < least {
            Err(self.space.log.no_room(self.budget.limit_pages))
        } else {
            Ok(())
        }
    }

    /// Goes on only if `page`, which made the last commit, reads the same time after time: there is
    /// no room to write it anew before something is built on it. The tree before it needs no block
    /// then.
    fn expect_steady(&mut self, page: u32) -> Result<(), Fault<F::Error>> {
        if self.is_steady(page)? {
            Ok(())
        } else {
            Err(Fault::Corrupt { page: PageNumber(page), reason: Damage::Checksum })
        }
    }

    /// Where the root commits: writes the page that holds it anew. Mounts that are cut here again
    /// and again would use up the reserve, a block each time. So near to that nothing is written
    /// where every page that may be torn reads the same time after time.
    ///
    /// Cost: one read, two programs, and an erase; near the reserve one read for each block,
    /// [`LOOKS`] for each that may begin with a torn page, and a collection.
    fn settle_root(&mut self) -> Result<(), Fault<F::Error>> {
        let root = self.root;
        let held_pages = self.space.log.blocks.held_blocks() * self.space.log.block_pages();
        // The first page that is programmed, and the longest way up.
        let lacks_room = self.space.room() < 1 + S::path_pages(self.height);
        if lacks_room || self.space.room() + held_pages < self.kept() + self.space.log.block_pages()
        {
            self.expect_steady(root)?;
            self.free_held();
            if self.ends_alike()? {
                return Ok(());
            }
            // The first page that is moved makes a new root. The other nodes of the page that may
            // be torn may stay.
            match gc::gain_room(self, 0) {
                Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.in_doubt => {}
                gained => gained?,
            }
            if self.root != root {
                return Ok(());
            }
        }
        self.in_doubt = true;
        self.space.begin_walk();
        self.space.begin_operation(true);
        let frame = self.working(self.height);
        self.space.load_into(root, frame)?;
        let lowest = self.space.log.lowest(frame);
        self.root = self.space.program(frame, lowest, self.height, self.records)?.0;
        self.space.retire(PageNumber(root));
        self.root = self.space.commit(self.root)?;
        self.in_doubt = false;
        Ok(())
    }
}
