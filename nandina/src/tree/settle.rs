//! How a mount settles pages that a cut may have left torn.
//!
//! This happens before the index is read or changed. A torn page may read otherwise each time (rule
//! 6 of the media contract): as it was, as it should have become, or not at all. So a mount decides
//! once.
//!
//! A page that it takes as written is written anew, elsewhere. A page that it does not see is
//! outdated: every number that the mount assigns is above any that an unseen page can have. The
//! first page that is programmed after a mount commits nothing, so that each later mount knows this
//! number before a commit counts. Until that is done, no block is opened that became free only by
//! the newest commit.
//!
//! Cost of a mount that writes: see the functions below.

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

/// Times that a mount begins again, each time without one more torn page.
pub(crate) const TRIES: u32 = 2;

/// Reads after which a page counts as steady where there is no other proof.
pub(crate) const LOOKS: u64 = 24;

/// Pages that can turn out to be torn at one mount.
pub(super) const TORN_MAX: usize = 4;

/// No page.
pub(super) const NONE: (u32, u64) = (u32::MAX, u64::MAX);

/// Whether the chip rejected what was written but still works.
fn cannot_write<E: FlashError>(fault: &Fault<E>) -> bool {
    match fault {
        Fault::Device(error) => error.kind() != ErrorKind::Other,
        Fault::Corrupt { reason, .. } => *reason == Damage::NotAsWritten,
        _ => false,
    }
}

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Whether a mount can begin again without the newest root because of `page`.
    ///
    /// `page` belongs to the tree of that root and could not be read. The mount can begin again if
    /// it is the page that was programmed last: then it is torn, and a torn page was never
    /// acknowledged. It can as well if `page` reads otherwise each time: then the erase of its
    /// block was begun, so no tree that counts needs it.
    ///
    /// Cost: at most [`LOOKS`] reads.
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
        // For systems that replace in place, the mount has already decided which page is torn.
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

    /// Holds the blocks of the previous tree, the one before `root` in `block`.
    ///
    /// They are not opened until the next commit. If that tree is no longer whole, `root` is known
    /// to be.
    pub(super) fn hold_before(
        &mut self,
        block: Newest,
        root: &PageHeader,
        mut sequence: u64,
    ) -> Result<(), Fault<F::Error>> {
        // The newest commit began in this block, or in an earlier one that its pages span.
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

    /// Writes anew the pages that may be torn.
    ///
    /// If there is no room for that, the index can still be read.
    pub(super) fn settle_torn(&mut self) -> Result<(), Fault<F::Error>> {
        self.settled = true;
        if self.ended_well() {
            return Ok(());
        }
        let settled = match S::Kind::PATHS {
            // Otherwise repeated mounts would use up the blocks that the checkpoint lists.
            true => self.settle_root().and_then(|()| self.keep_checkpoint()),
            false if S::DESCRIPTION.in_place => self.settle_in_place(),
            false => self.settle_blocks(),
        };
        match settled {
            Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.in_doubt => {}
            Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) => self.mount_as_seen()?,
            // The chip cannot be written now, but all of it can be read.
            Err(fault) if cannot_write(&fault) => self.mount_as_seen()?,
            settled => return settled,
        }
        if S::Kind::PATHS {
            self.expect_steady(self.root)?;
        } else if S::DESCRIPTION.appends {
            self.expect_before_append()?;
            // The torn page may have read otherwise when records were counted.
            self.count_anew()?;
        }
        self.settled = false;
        self.space.log.settling = false;
        self.free_held();
        Ok(())
    }

    /// Whether the newest page on the chip is the end of a session.
    ///
    /// Then only a page that commits nothing, or a block that held no data, can be torn.
    pub(super) fn ended_well(&self) -> bool {
        self.ended > 0 && self.ended + GAP == self.space.log.sequence()
    }

    /// Frees the blocks that were held, except those of checkpoints.
    pub(super) fn free_held(&mut self) {
        self.space.log.blocks.release();
        if S::DESCRIPTION.appends {
            self.space.log.blocks.unreserve_all();
        }
    }

    /// Notes a page that may be the last one programmed before the mount.
    pub(super) fn note_newest(&mut self, page: PageNumber, sequence: u64) {
        if self.newest.1 == u64::MAX || self.newest.1 < sequence {
            self.newest = (page.0, sequence);
        }
    }

    /// The newest page below the number `below` that began to write after a mount.
    ///
    /// Returns its sequence number, or 0. Cost: one read for each written page.
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

    /// Where pages commit for themselves: rewrites blocks that may hold a torn page.
    ///
    /// Cost: a read for each block, and the cost of collecting these blocks.
    fn settle_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        let torn = self.settle_from..self.space.log.sequence();
        if self.space.room() < 2 + S::path_pages(self.height)
            && self.space.log.blocks.held_blocks() > 0
        {
            self.expect_steady(self.newest.0)?;
            self.free_held();
        }
        self.space.log.settling = true;
        // Room may end before everything is written anew, so the page with a torn record goes
        // first.
        let short = self.space.room() < self.kept() + 2 * self.space.valid_pages();
        for unsteady in [true, false] {
            if unsteady && !(short && S::DESCRIPTION.appends) {
                continue;
            }
            for block in self.space.log.blocks.all() {
                self.settle_block(block, &torn, unsteady)?;
            }
        }
        // All pages that count are in other blocks now, including the newest commit: no earlier
        // state is needed.
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
        // The held blocks are free now.
        gc::review_reserve(self);
        // The first page that confirms all of this. Where the newest root counts it is the root: a
        // torn root that this mount did not see is older.
        if S::DESCRIPTION.appends {
            self.move_page(PageNumber(self.root), None)
        } else {
            self.mark(0)
        }
    }

    /// Writes the valid pages of `block` anew if it may hold a torn page.
    ///
    /// That is the case if its first page has one of the numbers `torn`. With `unsteady`, writes
    /// only the pages that do not read the same every time.
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

    /// Where no page can be written any more: ignores torn appends.
    ///
    /// A page with a torn append counts with the content that it had before.
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

    /// Programs a page that no node leads to and that records the number `records`.
    ///
    /// Cost: one read and one program.
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

    /// Marks the end of the session on the chip: everything before it is whole.
    ///
    /// So the next mount has nothing to settle. Does nothing if there is no room for that page, or
    /// if nothing was programmed.
    pub(super) fn mark_end(&mut self) -> Result<(), Fault<F::Error>> {
        let can_end = self.settled && !self.in_doubt && self.space.log.has_begun();
        if can_end && !S::DESCRIPTION.in_place && self.space.room() > self.kept() {
            self.mark(SESSION_END)?;
        }
        Ok(())
    }

    /// Notes where a session ended, if the page with this header marks an end.
    pub(super) fn note_end(&mut self, header: &PageHeader) {
        if header.height == 0 && header.records == SESSION_END {
            self.ended = self.ended.max(header.sequence);
        }
    }

    /// Collects garbage if less room is left than a collection may need.
    ///
    /// If that does not suffice, it frees the blocks that were held.
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

    /// Fails unless `page`, which made the last commit, reads the same every time.
    ///
    /// There is no room to write it anew before other pages build on it. If it is steady, no block
    /// of the previous tree is needed.
    fn expect_steady(&mut self, page: u32) -> Result<(), Fault<F::Error>> {
        if self.is_steady(page)? {
            Ok(())
        } else {
            Err(Fault::Corrupt { page: PageNumber(page), reason: Damage::Checksum })
        }
    }

    /// Where the root commits: writes the page with the root anew.
    ///
    /// Mounts that are cut here again and again would use up the reserve, a block each time. So
    /// near the reserve nothing is written if every page that may be torn reads the same every
    /// time.
    ///
    /// Cost: one read, two programs, and an erase. Near the reserve one read for each block,
    /// [`LOOKS`] for each that may begin with a torn page, and a collection.
    fn settle_root(&mut self) -> Result<(), Fault<F::Error>> {
        let root = self.root;
        let held_pages = self.space.log.blocks.held_blocks() * self.space.log.block_pages();
        // Room for the first page that is programmed, and for the longest path.
        let lacks_room = self.space.room() < 1 + S::path_pages(self.height);
        if lacks_room || self.space.room() + held_pages < self.kept() + self.space.log.block_pages()
        {
            self.expect_steady(root)?;
            self.free_held();
            if self.ends_alike()? {
                return Ok(());
            }
            // The first page that is moved makes a new root. The other nodes of the page that may
            // be torn can stay there.
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
