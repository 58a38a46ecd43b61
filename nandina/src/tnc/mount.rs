//! Opening: the last commit, the pages of its tree, and the journal after it.
//!
//! Sequence numbers rise with every program, and one block is written at a time. The newest page
//! with a root is the last commit. All inner nodes of its tree are read, which yields the valid
//! pages; then the changes of the journal are made again (`replay.rs` beside this). All of that
//! only reads.
//!
//! A torn page may read differently each time, and it is the last of its block. So the last page of
//! a block counts only if [`LOOKS`] reads find the same content. Then a commit with a higher number
//! outdates all that may be torn, before anything is returned. If that mount is cut, the next one
//! decides in the same way: the torn page is the last of its block until the block is erased. So
//! blocks with nodes of a commit that is torn need not be kept. None of this is done after a page
//! that ended a session: the first page of the next session commits nothing.
//!
//! Cost: a read of the first page of each block, and some five more for each few blocks that were
//! opened since the last commit (`opened.rs` beside this); the logarithm of a block's pages to the
//! base 2; the pages of the journal; all inner nodes, and all leaves that point to values; 24 reads
//! for each of these blocks. Then a commit, unless the session ended well.

use super::apply::{Key, Value};
use super::arena::NO_SLOT;
use super::bounds::{self, commit_pages, height_max};
use super::form;
use super::journal::pointer_to_waiting;
use super::opened::Opened;
use super::{TncIndex, journal};
use crate::error::{Damage, Fault, OpenError};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc::{self, PageOwner};
use crate::log::{Age, END, Newest};
use crate::node::{PageFault, PageHeader};

/// What a mount begins with.
#[derive(Clone, Copy)]
pub struct LastCommit {
    pub page: PageNumber,
    pub header: PageHeader,
    /// The age of that page's block.
    pub block: Age,
    /// The highest sequence number on the chip.
    pub highest: u64,
    /// The page is the last of its block, so it may be torn.
    pub may_be_torn: bool,
    /// A damaged page that is newer.
    damaged: Option<PageNumber>,
}

impl LastCommit {
    /// The formatting of its index, and the highest sequence number.
    pub const fn extent(&self) -> (u32, u64) {
        (self.header.identity, self.highest)
    }
}

/// Whether a page with this header belongs to the journal.
pub const fn is_journal(header: &PageHeader) -> bool {
    header.tag == journal::JOURNAL
        && header.height == 0
        && header.lowest > 0
        && !header.begins_session()
        && !header.ends_session()
}

impl<F: Flash> TncIndex<'_, F> {
    /// Finds the index on the chip, if it has one with these settings.
    pub(super) fn find(&mut self) -> Result<(), OpenError<F::Error>> {
        self.state.doubt();
        #[cfg(feature = "checkpoints")]
        if self.mount_from_checkpoint()? {
            return Ok(self.settle_torn()?);
        }
        let survey = self.space.survey(END, None)?;
        let (newest, medium) = survey.expect(self.space.log.medium.system)?;
        self.space.log.check_newest(newest, medium)?;
        self.mount_from(survey.newest).map_err(|fault| self.refusal(fault))?;
        Ok(self.settle_torn()?)
    }

    /// Why the index is not opened, after `fault`.
    #[cold]
    #[inline(never)]
    fn refusal(&mut self, fault: Fault<F::Error>) -> OpenError<F::Error> {
        let Fault::Corrupt { page, reason: Damage::OtherFanout } = fault else {
            return fault.into();
        };
        match self.space.load(page.0, 0) {
            Ok(frame) => {
                let tag = self.space.log.header(frame).tag;
                let area = &self.space.log.frames.bytes(frame)[..self.space.area_bytes()];
                match self.arena.form.other_setting(tag, area) {
                    Some((setting, found, expected)) => {
                        let (found, expected) = (found.into(), expected.into());
                        OpenError::Mismatch { setting, found, expected }
                    }
                    None => fault.into(),
                }
            }
            Err(fault) => fault.into(),
        }
    }

    /// Mounts the medium again after an operation that failed half way.
    pub(super) fn ready(&mut self) -> Result<(), Fault<F::Error>> {
        if !self.state.is_in_doubt() {
            return Ok(());
        }
        #[cfg(feature = "checkpoints")]
        if self.mount_from_checkpoint()? {
            return self.settle_torn();
        }
        let newest = self.space.survey(END, None)?.newest;
        self.mount_from(newest)?;
        self.settle_torn()
    }

    /// Makes again the changes that waited for their page of the journal.
    fn apply_group(&mut self) -> Result<(), Fault<F::Error>> {
        for at in 0..self.group.len() {
            let (key, value) = self.group.entry(at);
            let key = Key::of(key);
            let key = key.bytes(self.arena.form.key_bytes);
            if value.is_some() {
                let value = match self.arena.form.apart() {
                    true => Value::At(pointer_to_waiting(at)),
                    false => Value::Waiting(at),
                };
                self.apply_put(key, value)?;
            } else {
                self.apply_remove(key)?;
            }
        }
        Ok(())
    }

    /// Mounts without writing anything. `newest` is the newest block of the index.
    fn mount_from(&mut self, newest: Option<Newest>) -> Result<(), Fault<F::Error>> {
        self.state.doubt();
        self.state.forget_unexplained();
        let Some(newest) = newest else {
            return Err(Fault::Corrupt { page: PageNumber(0), reason: Damage::NoPage });
        };
        let commit = self.last_commit(newest.age(), u64::MAX)?;
        if commit.may_be_torn {
            self.hold_before(&commit)?;
        }
        match self.take_and_replay(&commit, newest.block) {
            // The page may have been erased after a newer commit, which is damaged now.
            // But neither the RAM nor the options of this mount come from that.
            Err(Fault::Corrupt { page, reason })
                if commit.damaged.is_some()
                    && reason != Damage::ArenaTooSmall
                    && (reason, page) != (Damage::OtherFanout, commit.page) =>
            {
                let page = commit.damaged.unwrap_or(commit.page);
                return Err(Fault::Corrupt { page, reason: Damage::Checksum });
            }
            taken => taken?,
        }
        self.take_pending()
    }

    /// Makes the pending changes again, and computes what follows from the tree.
    pub(super) fn take_pending(&mut self) -> Result<(), Fault<F::Error>> {
        self.group.note_records(self.tree.records());
        self.apply_group()?;
        self.set_limits();
        self.collector.forget_reserve();
        gc::note_reserve(self);
        self.state.trust();
        Ok(())
    }

    /// Makes the tree of `commit` the current one, with its journal.
    fn take_and_replay(
        &mut self,
        commit: &LastCommit,
        newest: BlockNumber,
    ) -> Result<(), Fault<F::Error>> {
        self.take_commit(commit, newest)?;
        // The blocks that the previous commit needs are held only if there is room to settle
        // without them. The blocks after this commit, which hold the journal, do not count as room.
        if commit.may_be_torn {
            let mut needed = commit_pages(&self.arena.form, self.dirty_max());
            let (mut opened, mut age) = (Opened::default(), commit.block);
            while let Some(next) = self.next_block(&mut opened, age, commit.extent())? {
                needed += self.space.log.block_pages();
                age = next;
            }
            if self.space.room() < needed + self.space.log.block_pages() {
                self.space.log.blocks.release();
            }
        }
        self.replay(commit)
    }

    /// Makes the tree of `commit` the current one.
    ///
    /// `newest` is the newest block on the chip.
    fn take_commit(
        &mut self,
        commit: &LastCommit,
        newest: BlockNumber,
    ) -> Result<(), Fault<F::Error>> {
        let header = commit.header;
        self.space.restart(header.identity, header.sequence, commit.highest);
        self.space.log.keep_newest(newest);
        self.live.clear();
        let root = self.take_root(commit.page, &header)?;
        self.find_valid_pages(root)?;
        self.take_records(commit.page, header.records)
    }

    /// Makes the last node in `page` the root. Returns its pointer.
    pub(super) fn take_root(
        &mut self,
        page: PageNumber,
        header: &PageHeader,
    ) -> Result<u32, Fault<F::Error>> {
        self.arena.clear();
        self.journal.forget();
        if header.height > height_max(self.arena.slots()) {
            return Err(Fault::Corrupt { page, reason: Damage::ArenaTooSmall });
        }
        self.tree.begin(header.height);
        let place = self.count_nodes(page, header)?.saturating_sub(1);
        if place >= self.arena.form.places() {
            return Err(Fault::Corrupt { page, reason: Damage::OtherFanout });
        }
        let root = self.arena.form.pointer(page.0, place);
        let slot = self.read_node(root, self.tree.height(), NO_SLOT)?;
        self.tree.set_root(slot);
        Ok(root)
    }

    /// How many nodes `page` has.
    fn count_nodes(
        &mut self,
        page: PageNumber,
        header: &PageHeader,
    ) -> Result<usize, Fault<F::Error>> {
        let frame = self.space.load(page.0, 0)?;
        let area = &self.space.log.frames.bytes(frame)[..self.space.area_bytes()];
        Ok(form::nodes_in(header.tag, area))
    }

    /// Sets the number of records to `records`, as `page` says.
    pub(super) fn take_records(
        &mut self,
        page: PageNumber,
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        let most = u64::from(self.tree.leaves()) * self.arena.form.capacity(1) as u64;
        if u64::from(records) > most {
            return Err(Fault::Corrupt { page, reason: Damage::TooManyRecords });
        }
        self.tree.take_records(records);
        Ok(())
    }

    /// Holds the blocks that the commit before `commit` needs, and its journal.
    ///
    /// They are not opened until the mount has settled: `commit` may be torn, so the next mount may
    /// not see it. If the earlier tree is no longer whole, `commit` is known to be whole.
    fn hold_before(&mut self, commit: &LastCommit) -> Result<(), Fault<F::Error>> {
        let before = match self.last_commit(commit.block, commit.header.sequence) {
            Err(Fault::Corrupt { .. }) => return Ok(()),
            before => before?,
        };
        match self.take_commit(&before, BlockNumber(commit.block.1)) {
            Ok(()) => self.space.log.blocks.hold_valid(),
            Err(Fault::Corrupt { .. }) => {
                self.space.log.blocks.forget_valid();
                return Ok(());
            }
            Err(fault) => return Err(fault),
        }
        let (mut opened, mut next) = (Opened::default(), Some(before.block));
        while let Some(age) = next {
            if age.0 > commit.header.sequence {
                break;
            }
            self.space.log.blocks.hold(BlockNumber(age.1));
            next = self.next_block(&mut opened, age, before.extent())?;
        }
        Ok(())
    }

    /// The newest page with a root that counts and has a number below `below`.
    ///
    /// It is in the block `newest`, or in one that was opened before.
    fn last_commit(&mut self, newest: Age, below: u64) -> Result<LastCommit, Fault<F::Error>> {
        let (mut highest, mut ended) = (newest.0, 0);
        let mut damaged = None;
        let (mut opened, mut next) = (Opened::default(), Some(newest));
        while let Some(age) = next {
            let (first, block) = (age.0, BlockNumber(age.1));
            let written = self.written(block)?;
            let mut behind = true;
            for place in (0..written).rev() {
                let page = self.space.log.page_at(block, place);
                let header = match self.space.log.read_raw(page, 0)? {
                    Ok(header) => header,
                    Err(fault) => {
                        if fault != PageFault::Erased {
                            damaged = damaged.or(Some(page));
                        }
                        continue;
                    }
                };
                if header.sequence < first {
                    covered!("an erase silently left a page behind those of tnc");
                    continue;
                }
                let is_last = core::mem::take(&mut behind);
                if !self.space.log.is_ours(0) {
                    continue;
                }
                highest = highest.max(header.sequence);
                if header.ends_session() {
                    ended = header.sequence.max(ended);
                }
                if below == u64::MAX {
                    self.state.note_ended(ended == highest);
                }
                let commits = header.height > 0
                    && header.lowest > 0
                    && header.tag > 0
                    && header.sequence < below;
                let may_be_torn = is_last && !self.state.has_ended();
                if commits
                    && (!may_be_torn
                        || self.space.log.steady_reading(page)? == Some(Ok(header.sequence)))
                {
                    let block = age;
                    return Ok(LastCommit { page, header, block, highest, may_be_torn, damaged });
                }
            }
            next = self.block_before(&mut opened, age)?;
        }
        let page = self.space.log.page_at(BlockNumber(newest.1), 0);
        Err(Fault::Corrupt { page, reason: Damage::NoRoot })
    }

    /// How many pages of `block` were programmed.
    pub(super) fn written(&mut self, block: BlockNumber) -> Result<u32, Fault<F::Error>> {
        self.space.log.written(block, self.space.log.block_pages(), 1)
    }

    /// Marks the pages of all nodes and needed values as valid, and counts the nodes.
    ///
    /// Cost: one read for each inner node, and for each leaf that has pointers.
    fn find_valid_pages(&mut self, root: u32) -> Result<(), Fault<F::Error>> {
        self.tree.forget_nodes();
        self.claim(root, self.tree.height())?;
        let lowest = if self.arena.form.apart() { 1 } else { 2 };
        if self.tree.height() < lowest {
            return Ok(());
        }
        let (mut slot, mut next) = (self.tree.root(), [0usize; bounds::HEIGHT_MAX as usize + 1]);
        loop {
            let level = self.arena.level(slot);
            let at = &mut next[usize::from(level)];
            let index = core::mem::replace(at, *at + 1);
            if index >= self.arena.node(slot).count() {
                next[usize::from(level)] = 0;
                if slot == self.tree.root() {
                    return Ok(());
                }
                slot = self.arena.parent(slot);
                continue;
            }
            let pointer = self.arena.node(slot).pointer(index);
            self.claim(pointer, level - 1)?;
            if level > lowest {
                slot = self.child(slot, index)?;
            }
        }
    }

    /// Notes that a node of `level` is at `place`, or a value, whose level is 0.
    fn claim(&mut self, place: u32, level: u8) -> Result<(), Fault<F::Error>> {
        let (page, at) = self.arena.form.place_of(place);
        let number = PageNumber(page);
        let fault = |reason| Err(Fault::Corrupt { page: number, reason });
        let (form, numbers) = (self.arena.form, self.arena.form.numbers());
        let places = if level == 0 { numbers } else { form.places() };
        if page >= form.pages || at >= places {
            return fault(Damage::BeyondChip);
        }
        let before = self.live.count(page, numbers);
        let can_have = match before {
            Some(_) => self.live.add(page, numbers),
            None => self.space.log.blocks.can_have(number),
        };
        if !can_have {
            return fault(Damage::ReferredTwice);
        }
        if before.unwrap_or(0) == 0 {
            self.space.log.blocks.set_valid(number, true);
        }
        if level > 0 {
            self.tree.count_node(level);
        }
        Ok(())
    }

    /// Writes a commit, after which nothing that may be torn counts.
    ///
    /// If there is no room for that, the index can still be read.
    fn settle_torn(&mut self) -> Result<(), Fault<F::Error>> {
        // Nodes that this mount has written ahead need their commit.
        let has_written = self.space.log.active_block().is_some();
        self.state.set_settled(self.state.has_ended() && !has_written);
        if self.state.is_settled() {
            return Ok(());
        }
        match self.settle() {
            Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.state.is_in_doubt() => {
                Ok(())
            }
            Err(fault)
                if fault.rejects_writes()
                    || matches!(fault, Fault::NoRoom { .. } | Fault::WornOut { .. }) =>
            {
                let newest = self.space.survey(END, None)?.newest;
                self.mount_from(newest)
            }
            settled => settled,
        }
    }

    /// Commits before the first change, if the mount could not.
    pub(super) fn settle(&mut self) -> Result<(), Fault<F::Error>> {
        if self.state.is_settled() {
            return Ok(());
        }
        if self.space.room() < self.commit_pages() {
            return Err(self.space.log.no_room(self.limit_pages()));
        }
        self.commit()?;
        self.state.set_settled(true);
        // A series of sessions that are cut must not use up the reserve.
        self.set_limits();
        match gc::gain_room(self, 0) {
            Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.state.is_in_doubt() => {
                Ok(())
            }
            gained => gained,
        }
    }
}
