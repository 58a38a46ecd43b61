//! A mount: finds which leaf owns which keys, from the pages alone.
//!
//! Nothing is written here.
//!
//! Sequence numbers rise with every program, and blocks are written one at a time. So the first
//! pages of all blocks show in which order the blocks were written, and a mount reads the pages
//! from the newest to the oldest: each owns what no newer one does. As soon as every key has an
//! owner, all other pages are garbage.
//!
//! Only the newest pages on the chip can be torn and count: a program that failed is repeated
//! elsewhere at once, and a block is erased only when newer pages own all that its pages did. So a
//! mount looks at the newest page many times. If that does not read the same each time, it was torn
//! and never acknowledged: it does not count, and the one before it is looked at. What does not
//! count, or cannot be seen, is excluded from then on (`settle.rs`) before a change returns.
//!
//! A cut damages only the last page of a block. Other damage may hide what was newer: the mount
//! counts it ([`Statistics::unexplained_pages`](crate::Statistics::unexplained_pages)). Keys that
//! no page owns are an error when they are used.
//!
//! With a checkpoint all of this is done only with the pages after it (`checkpoint.rs`), and not
//! even all of these are read (`replay.rs`).

use super::batch::{IS_BUILT, is_half_made};
use super::directory::Painted;
use super::leaves::{Leaves, damage_of};
use super::order::Walk;
use crate::error::{Damage, Fault, OpenError};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc;
use crate::log::checkpoint::Checkpoint;
use crate::log::{GAP, LOST_MAX, Survey};
use crate::node::{PageHeader, SESSION_END, SESSION_START};

impl<F: Flash> Leaves<'_, F> {
    /// Finds the index on the chip, if it has one with these settings, and settles.
    pub(super) fn find(&mut self) -> Result<(), OpenError<F::Error>> {
        self.state.doubt();
        self.find_as_seen()?;
        Ok(self.settle_or_read()?)
    }

    /// Mounts again, after an operation that failed half way.
    pub(super) fn mount(&mut self) -> Result<(), Fault<F::Error>> {
        self.state.doubt();
        self.mount_as_seen()?;
        self.settle_or_read()
    }

    /// Finds again an index that was found before, without settling.
    pub(super) fn mount_as_seen(&mut self) -> Result<(), Fault<F::Error>> {
        self.find_as_seen().map_err(|error| match error {
            OpenError::Device(error) => Fault::Device(error),
            OpenError::Corrupt { page, reason } => Fault::Corrupt { page, reason },
            _ => Fault::Corrupt { page: self.torn.newest().0, reason: Damage::NoPage },
        })
    }

    /// Finds the index on the chip, without settling what may be torn.
    fn find_as_seen(&mut self) -> Result<(), OpenError<F::Error>> {
        self.state.begin_mount();
        if self.find_from_checkpoint(true)? {
            return Ok(());
        }
        self.find_in_all_blocks()
    }

    /// Finds the index from the newest checkpoint and the pages after it.
    ///
    /// It follows their `trails`, if that is asked for and possible. Returns `false` if no
    /// checkpoint can be used.
    #[inline(never)]
    pub(super) fn find_from_checkpoint(
        &mut self,
        trails: bool,
    ) -> Result<bool, OpenError<F::Error>> {
        let mut found = None;
        if self.has_checkpoints() {
            self.find_usable(&mut found)?;
        }
        match &found {
            Some(found) => self.find_behind(found, trails),
            None => Ok(false),
        }
    }

    /// Finds the index from a checkpoint that was found.
    ///
    /// Returns `false` if it cannot be used after all.
    fn find_behind(
        &mut self,
        found: &Checkpoint,
        trails: bool,
    ) -> Result<bool, OpenError<F::Error>> {
        let (mut limit, mut highest) = (u64::MAX, 0);
        let newest = self.find_newest(found.header.identity, &mut limit, &mut highest)?;
        // If there is none, no page that counts was written since the checkpoint.
        let last = PageHeader { sequence: found.last_sequence(), ..found.header };
        let newest = newest.unwrap_or((last, PageNumber(found.summary.page)));
        match self.take_found(newest, (limit, highest), Some(found), trails) {
            Ok(()) => Ok(true),
            // A part of the checkpoint can no longer be read, or it has too many leaves.
            Err(OpenError::Corrupt { .. } | OpenError::BadOption { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Finds the index from the pages of all blocks.
    pub(super) fn find_in_all_blocks(&mut self) -> Result<(), OpenError<F::Error>> {
        let (mut limit, mut highest) = (u64::MAX, 0);
        let newest = self.find_newest_of_all(&mut limit, &mut highest)?;
        self.take_found(newest, (limit, highest), None, false)
    }

    /// The newest page of all blocks.
    ///
    /// Sets `limit` to the lowest number of the pages that are torn, and `highest` to the highest
    /// number seen.
    #[inline(never)]
    fn find_newest_of_all(
        &mut self,
        limit: &mut u64,
        highest: &mut u64,
    ) -> Result<(PageHeader, PageNumber), OpenError<F::Error>> {
        loop {
            let mut survey = Survey::default();
            self.survey(*limit, &mut survey)?;
            *highest = survey.checkpoints.max(*highest);
            let (first, medium) = survey.expect(self.log.medium.system)?;
            if !self.log.check_newest(first, medium)? {
                *limit = first.sequence.min(*limit);
                continue;
            }
            if let Some(found) = self.find_newest(first.identity, limit, highest)? {
                return Ok(found);
            }
            // Every page of that format is torn, and so is the format.
            *limit = first.sequence.min(*limit);
        }
    }

    /// Takes the state of the index that ends with the page `newest`.
    ///
    /// Pages numbered `limit` and above are torn, and `highest` is the highest number seen.
    #[inline(never)]
    fn take_found(
        &mut self,
        (newest, page): (PageHeader, PageNumber),
        (limit, highest): (u64, u64),
        checkpoint: Option<&Checkpoint>,
        trails: bool,
    ) -> Result<(), OpenError<F::Error>> {
        let checkpoint = checkpoint.filter(|_| self.has_checkpoints());
        self.torn.note_newest(page, newest.sequence);
        self.batch.forget();
        if !IS_BUILT && is_half_made(&newest) {
            // Whether some changes are missing takes a search for them.
            return Err(OpenError::Corrupt { page, reason: Damage::OtherVersion });
        }
        let found = Found { checkpoint, ..Found::of(&newest) };
        let followed = checkpoint.filter(|_| trails);
        let replayed = followed.map(|checkpoint| self.replay(checkpoint, &found));
        let painted = match replayed.transpose()?.flatten() {
            Some(leaf) => Ok(leaf),
            None => self.paint(found)?,
        };
        if painted.is_ok() {
            self.find_batch(&newest, checkpoint)?;
        }
        let leaf = match painted {
            Ok(leaf) if self.take_newest(leaf)? => leaf,
            // The state before the newest leaf never had this many leaves: pages of it are erased,
            // and older pages took their place. So the newest leaf is whole.
            _ => {
                covered!("the state before the newest leaf is gone");
                match self.paint(Found { counts_newest: true, ..found })? {
                    Ok(leaf) => {
                        self.find_batch(&newest, checkpoint)?;
                        leaf
                    }
                    Err(page) => return Err(self.too_many_leaves(page)),
                }
            }
        };
        if !self.directory.has_room_beside() {
            let newest = leaf.map_or(page, |(page, _)| page);
            return Err(self.too_many_leaves(newest));
        }
        self.note_apart();
        self.take_counts(leaf, checkpoint)?;
        self.count_unexplained();
        self.pin_batch();
        // No more than this many pages can have been programmed without success since the newest.
        let gap = GAP + u64::from(self.log.geometry().blocks);
        let known = self.checkpoints.base().map_or(0, |base| base.highest);
        self.log.restart(newest.identity, highest.max(known) + gap);
        self.log.keep_newest(self.block_of(page));
        self.collector.forget_reserve();
        gc::note_reserve(self);
        // Nothing follows the end of a session in its block but a session.
        let is_end = newest.lowest > 0 && newest.height == 0 && newest.records == SESSION_END;
        let settled = is_end && limit == u64::MAX && self.torn.suspects().is_empty();
        self.torn.set_settled(settled);
        if settled {
            // That page says that all before it are whole.
            self.torn.forget_newest_leaf();
            self.log.blocks.release();
        }
        self.state.trust();
        Ok(())
    }

    /// Reads the first readable page of each block.
    ///
    /// They show the order of the blocks, and their wear.
    ///
    /// Blocks that begin with the number `limit` or a higher one are not the newest. The `survey`
    /// is large, and written where it is needed.
    pub(super) fn survey(
        &mut self,
        limit: u64,
        survey: &mut Survey,
    ) -> Result<(), Fault<F::Error>> {
        self.log.blocks.clear();
        self.checkpoints.forget(&mut self.log);
        self.order.clear();
        self.log.find_bad_blocks()?;
        for block in self.log.blocks.all() {
            // A block that the chip has marked held nothing that counts.
            if !self.log.is_marked(block)?
                && let Some(first) =
                    self.log.survey_block(survey, block, LOST_MAX, ((limit, 0), None))?
            {
                self.order.note(block, first);
            }
        }
        self.log.blocks.guess_erase_counts();
        Ok(())
    }

    /// The newest page of the format `identity` that reads the same each time.
    ///
    /// If a checkpoint was found, the page is newer than that.
    ///
    /// Lowers `limit` to the number of each page that does not, and raises `highest` to the highest
    /// number seen.
    ///
    /// A page with the number of a torn one counts: the mount that wrote it had not seen the torn
    /// one, which was the first of another block and commits nothing.
    #[inline(never)]
    fn find_newest(
        &mut self,
        identity: u32,
        limit: &mut u64,
        highest: &mut u64,
    ) -> Result<Option<(PageHeader, PageNumber)>, Fault<F::Error>> {
        let mut walk = Walk::START;
        let before = *limit;
        // The first page of a block may have been readable when the blocks were put in order only.
        *highest = self.order.newest().max(*highest);
        while let Some(block) = self.order.next(&mut walk) {
            for place in (0..self.log.written(block, self.log.block_pages(), 1)?).rev() {
                let page = self.log.page_at(block, place);
                let Ok(header) = self.log.read_raw(page, 0)? else { continue };
                if self.order.is_left_over(block, header.sequence) {
                    covered!("an erase silently left a page behind a newest leaf");
                    continue;
                }
                *highest = header.sequence.max(*highest);
                if header.sequence >= before {
                    continue;
                }
                if header.identity != identity || !self.log.is_ours(0) {
                    // A format begins a block.
                    break;
                }
                if self.is_stored(header.sequence) {
                    break;
                }
                if self.log.steady_reading(page)? == Some(Ok(header.sequence)) {
                    return Ok(Some((header, page)));
                }
                covered!("the newest leaf is torn");
                *limit = header.sequence.min(*limit);
            }
        }
        Ok(None)
    }

    /// Whether a page with this number is older than the checkpoint of the mount.
    pub(super) fn is_stored(&self, sequence: u64) -> bool {
        self.checkpoints.base().is_some_and(|base| !base.is_older_than(sequence))
    }

    /// Gives each leaf of this format what no newer one owns.
    ///
    /// Pages with a higher number than the highest do not count, nor those that the newest session
    /// page excludes. The newest leaf is returned, and owns nothing unless it counts. If there are
    /// more leaves than there is room for, returns the page of the first that has none.
    fn paint(
        &mut self,
        mut found: Found<'_>,
    ) -> Result<Result<Option<NewestLeaf>, PageNumber>, Fault<F::Error>> {
        self.directory.clear();
        self.torn.forget_suspects();
        self.lost.forget();
        let mut walk = Walk::START;
        while let Some(block) = self.order.next(&mut walk) {
            if let Some(page) = self.paint_block(block, &mut found)? {
                return Ok(Err(page));
            }
            if found.checkpoint.is_none() && self.directory.is_whole() {
                break;
            }
        }
        if let Some(checkpoint) = found.checkpoint
            && self.has_checkpoints()
            && !self.paint_checkpoint(checkpoint, found.session)?
        {
            return Ok(Err(PageNumber(checkpoint.summary.page)));
        }
        Ok(Ok(found.leaf))
    }

    /// Gives the newest leaf its whole range, over the state before it.
    ///
    /// It may be torn, though it reads the same each time. So as long as the state before it is
    /// whole, the blocks that this state needs are held until the leaf was written again.
    ///
    /// Returns `false` if the directory has no room for that.
    fn take_newest(&mut self, leaf: Option<NewestLeaf>) -> Result<bool, OpenError<F::Error>> {
        let Some((page, _)) = leaf else { return Ok(true) };
        if self.directory.is_whole() {
            self.count_valid();
            self.log.blocks.hold_valid();
        }
        let frame = self.load_any(page)?;
        let fences = self.form().fences(self.log.frames.bytes(frame));
        let Some(fences) = fences else {
            return Err(OpenError::Corrupt { page, reason: Damage::NoNode });
        };
        Ok(self.directory.cover(fences, page))
    }

    /// Takes the counts of the index from the newest leaf.
    ///
    /// If there is no such leaf, the checkpoint has the counts.
    fn take_counts(
        &mut self,
        leaf: Option<NewestLeaf>,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<(), OpenError<F::Error>> {
        let stored = || checkpoint.map(|found| found.summary.records);
        let page =
            leaf.map_or(self.lost.damaged().unwrap_or(self.torn.newest().0), |(page, _)| page);
        let Some(records) = leaf.map(|(_, records)| records).or_else(stored) else {
            return Err(OpenError::Corrupt { page, reason: Damage::NoPage });
        };
        self.count_valid();
        let most = u64::from(self.log.geometry().pages()) * self.form().capacity() as u64;
        if u64::from(records) > most {
            return Err(OpenError::Corrupt { page, reason: Damage::TooManyRecords });
        }
        self.state.note_records(records);
        self.torn.note_newest_leaf(leaf.map(|(page, _)| page));
        Ok(())
    }

    /// Reads a page that counts into the first page buffer.
    fn load_any(&mut self, page: PageNumber) -> Result<usize, Fault<F::Error>> {
        match self.log.read_page(page, 0)? {
            Ok(()) => Ok(0),
            Err(fault) => Err(Fault::Corrupt { page, reason: damage_of(fault) }),
        }
    }

    /// The error for one leaf more than there is room for.
    #[cold]
    #[inline(never)]
    fn too_many_leaves(&self, page: PageNumber) -> OpenError<F::Error> {
        let reason =
            if self.is_limited() { Damage::DirectoryTooSmall } else { Damage::TooManyLeaves };
        OpenError::from(Fault::<F::Error>::Corrupt { page, reason })
    }

    /// Gives each leaf in `block` what no newer one owns.
    ///
    /// Returns the first for which the directory has no room.
    // Apart from what calls it, for the sake of the stack.
    #[inline(never)]
    fn paint_block(
        &mut self,
        block: BlockNumber,
        found: &mut Found<'_>,
    ) -> Result<Option<PageNumber>, Fault<F::Error>> {
        let written = self.log.written(block, self.log.block_pages(), 1)?;
        for place in (0..written).rev() {
            let page = self.log.page_at(block, place);
            match self.look_at(block, page, place + 1 < written, found)? {
                Seen::Leaf if !self.paint_leaf(page) => return Ok(Some(page)),
                Seen::Leaf | Seen::Nothing => {}
                Seen::End => break,
            }
        }
        Ok(None)
    }

    /// Looks at a page in `block`, which is in the first page buffer then.
    ///
    /// If it `is_followed` by another page, no cut explains that it cannot be read.
    // Apart from what calls it, for the sake of the stack.
    #[inline(never)]
    fn look_at(
        &mut self,
        block: BlockNumber,
        page: PageNumber,
        is_followed: bool,
        found: &mut Found<'_>,
    ) -> Result<Seen, Fault<F::Error>> {
        let Ok(header) = self.log.read_raw(page, 0)? else {
            self.note_damage(page, is_followed);
            return Ok(Seen::Nothing);
        };
        if self.order.is_left_over(block, header.sequence) {
            covered!("an erase silently left a leaf");
            return Ok(Seen::Nothing);
        }
        if header.identity != found.identity || !self.log.is_ours(0) {
            // A format begins a block.
            return Ok(Seen::End);
        }
        let sequence = header.sequence;
        if self.is_stored(sequence) {
            return Ok(Seen::End);
        }
        if sequence > found.highest || self.torn.suspects().exclude(block, sequence) {
            return Ok(Seen::Nothing);
        }
        match (header.height, header.records) {
            (0, SESSION_START) if !found.session => {
                found.session = true;
                self.take_session(page);
            }
            (0, _) => {}
            (1, records) => {
                let is_newest = found.leaf.is_none();
                found.leaf = found.leaf.or(Some((page, records)));
                if !is_newest || found.counts_newest {
                    return Ok(Seen::Leaf);
                }
            }
            _ => self.note_damage(page, true),
        }
        Ok(Seen::Nothing)
    }

    /// Takes the suspects of the session page that was just read.
    #[inline(never)]
    fn take_session(&mut self, page: PageNumber) {
        let area_bytes = self.log.layout().area_bytes();
        let area = &self.log.frames.bytes(0)[..area_bytes];
        if !self.torn.read_suspects(area, self.log.geometry().blocks, page) {
            self.note_damage(page, true);
        }
    }

    /// Gives the leaf that was just read what no newer one owns.
    ///
    /// Returns `false` if the directory has no room for that.
    fn paint_leaf(&mut self, page: PageNumber) -> bool {
        let form = self.form();
        let Some(fences) = form.fences(self.log.frames.bytes(0)) else {
            self.note_damage(page, true);
            return true;
        };
        let painted = self.directory.paint(fences, page);
        self.take_painted(painted)
    }

    /// Notes what a page received. Returns `false` if the directory has no room for it.
    pub(super) fn take_painted(&mut self, painted: Painted) -> bool {
        self.lost.note_apart(painted == Painted::Apart);
        painted != Painted::Full
    }

    /// Notes the leaves that own several ranges though all leaves are counted.
    ///
    /// One between those ranges is lost. Before the newest leaf was counted, it may only have been
    /// erased, because that leaf replaces it.
    fn note_apart(&mut self) {
        if !self.lost.take_apart() {
            return;
        }
        for rank in 1..self.directory.len() {
            let Some(page) = self.directory.page(rank) else { continue };
            if (0..rank).any(|earlier| self.directory.page(earlier) == Some(page)) {
                covered!("a leaf owns two ranges because one between them is lost");
                self.lost.note_apart(true);
                self.note_damage(page, true);
            }
        }
    }

    /// Notes a damaged page, in its block if no cut explains it.
    ///
    /// Nothing uses the stuck mark for another purpose at this time.
    #[cold]
    #[inline(never)]
    fn note_damage(&mut self, page: PageNumber, is_unexplained: bool) {
        self.lost.note_damaged(page);
        if is_unexplained {
            let block = self.block_of(page);
            self.log.blocks.set_stuck(block);
        }
    }

    /// Marks the owners as valid.
    fn count_valid(&mut self) {
        for rank in 0..self.directory.len() {
            let Some(page) = self.directory.page(rank) else { continue };
            let is_first = !self.lost.are_apart()
                || (0..rank).all(|earlier| self.directory.page(earlier) != Some(page));
            if is_first {
                self.log.blocks.set_valid(page, true);
            }
        }
        if let Some(session) = self.torn.session() {
            self.log.blocks.set_valid(session, true);
        }
        if let Some(page) = self.batch.page() {
            self.log.blocks.set_valid(page, true);
        }
    }

    /// Counts the blocks with damage that no cut explains.
    ///
    /// A block without valid pages is not counted: its erase may have been cut.
    fn count_unexplained(&mut self) {
        let mut unexplained = u32::from(!self.directory.is_whole());
        for block in self.log.blocks.all() {
            let is_damaged = self.log.blocks.take_stuck(block);
            unexplained += u32::from(is_damaged && self.log.blocks.valid_in(block) > 0);
        }
        self.lost.count_unexplained(unexplained);
    }
}

/// What a mount saw in a page.
enum Seen {
    /// A leaf that counts.
    Leaf,
    /// Nothing that owns keys.
    Nothing,
    /// This page and those before it in its block do not count.
    End,
}

/// What a mount looks for, and what the pages have shown so far.
#[derive(Clone, Copy)]
pub(super) struct Found<'c> {
    /// The checkpoint after which the pages come, if a mount begins with one.
    checkpoint: Option<&'c Checkpoint>,
    pub identity: u32,
    /// The highest sequence number that counts.
    pub highest: u64,
    /// Whether the newest leaf counts. Otherwise the state before it is looked for.
    counts_newest: bool,
    /// The newest leaf.
    leaf: Option<NewestLeaf>,
    /// Whether a session page was met.
    session: bool,
}

impl Found<'_> {
    /// Only the newest page is known: the state before the newest leaf is looked for.
    const fn of(newest: &PageHeader) -> Self {
        let (identity, highest) = (newest.identity, newest.sequence);
        Self {
            checkpoint: None,
            identity,
            highest,
            counts_newest: false,
            leaf: None,
            session: false,
        }
    }
}

/// The page of the newest leaf, and the records of the index as of that page.
pub(super) type NewestLeaf = (PageNumber, u32);
