//! What the stores share whose pages each commit the operation that wrote them.
//!
//! A mount reads every written page, decides which of them are torn, and then writes anew what lies
//! in blocks that may hold a torn page.

use core::ops::Range;

use crate::blocks::NO_BLOCK;
use crate::checksum;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc::{self, PageOwner};
use crate::log::{LOOKS, LOST_MAX, Newest};
use crate::node::{PageFault, PageHeader, SESSION_START};
use crate::space::Checkpointing;
use crate::tree::{CheckpointsOf, HEIGHT_MAX, Placement, TreeIndex};

/// What the pages of one formatting record.
///
/// A mount has one of them, which is in its deepest frame.
pub(super) struct Found {
    /// The highest sequence number.
    pub sequence: u64,
    pub commit: Option<Commit>,
    pub root: Option<(PageNumber, PageHeader)>,
    /// The newest root except `root`, and its sequence number.
    pub root_before: Option<(PageNumber, u64)>,
    pub settled: Settled,
    /// The newest page that began to write after a mount.
    pub start: u64,
}

impl Found {
    pub const NOTHING: Self = Self {
        sequence: 0,
        commit: None,
        root: None,
        root_before: None,
        settled: Settled { sequence: 0, first: 0, block: NO_BLOCK },
        start: 0,
    };

    /// If no root or no commit was found, it is that of `header`, which is older.
    #[cfg(feature = "checkpoints")]
    pub fn add_older(&mut self, page: PageNumber, header: &PageHeader) {
        self.root = self.root.or(Some((page, *header)));
        self.commit = self.commit.or(Some(Commit::of(header)));
    }

    fn note_root(&mut self, page: PageNumber, header: &PageHeader) {
        match &self.root {
            Some((_, newest)) if newest.sequence >= header.sequence => {
                if self.root_before.is_none_or(|(_, before)| before < header.sequence) {
                    self.root_before = Some((page, header.sequence));
                }
            }
            newest => {
                self.root_before = newest.as_ref().map(|(page, newest)| (*page, newest.sequence));
                self.root = Some((page, *header));
            }
        }
    }
}

/// What is needed of the newest page that committed.
#[derive(Clone, Copy)]
pub(super) struct Commit {
    sequence: u64,
    records: u32,
    tag: u8,
}

impl Commit {
    pub const fn of(header: &PageHeader) -> Self {
        Self { sequence: header.sequence, records: header.records, tag: header.tag }
    }
}

/// The newest page that no mount wrote while it settled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Settled {
    pub sequence: u64,
    /// The sequence number of the first page of its block that could be read.
    ///
    /// If a cut erase of the block was begun, that differs from read to read.
    pub first: u64,
    pub block: BlockNumber,
}

/// A page that does not read the same every time, because an append to it was cut.
pub(super) struct Unsteady {
    /// The checksum of its content before that append.
    pub before: u32,
    /// With that append, the node has one more key or one less.
    pub other_keys: bool,
}

/// Reads with the same result that show what was there before an append.
const SEEN: u32 = 3;

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// The next block of those that may hold new pages.
    ///
    /// A block that the chip has marked as bad holds nothing that counts: it was empty then, though
    /// its pages may still be readable. Counts `position` up.
    pub(super) fn next_scanned(
        &mut self,
        position: &mut u32,
    ) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        loop {
            *position += 1;
            let next = CheckpointsOf::<S>::scanned(&self.space, *position - 1);
            let Some(block) = next else { return Ok(None) };
            if !self.space.log.is_marked(block)? {
                return Ok(Some(block));
            }
        }
    }

    /// What is known before any page is read.
    ///
    /// After a mount from a checkpoint, the pages after the last one that was written before the
    /// checkpoint may be torn.
    fn take_known(&mut self, found: &mut Found) -> Result<(), Fault<F::Error>> {
        *found = Found::NOTHING;
        if let Some(base) = CheckpointsOf::<S>::base(&self.space) {
            let first = match base.active {
                Some(block) => self.space.log.first_sequence(block)?,
                None => None,
            };
            found.sequence = base.highest;
            found.settled = Settled {
                sequence: base.sequence,
                first: first.unwrap_or(base.sequence + 1),
                block: base.active.unwrap_or(NO_BLOCK),
            };
        }
        Ok(())
    }

    /// Reads every written page of the formatting `identity`.
    ///
    /// After a mount from a checkpoint these are only the pages that may be newer.
    ///
    /// Marks the blocks that have a damaged page other than the last.
    #[inline(never)]
    fn read_all(
        &mut self,
        identity: u32,
        marks: bool,
        found: &mut Found,
    ) -> Result<(), Fault<F::Error>> {
        self.take_known(found)?;
        let mut position = 0;
        while let Some(block) = self.next_scanned(&mut position)? {
            let (mut damaged, mut blank, mut first) = (false, 0, None);
            for place in 0..self.space.log.block_pages() {
                let page = self.space.log.page_at(block, place);
                let read = self.space.log.read_page(page, 0)?;
                if read == Err(PageFault::Erased) {
                    blank += 1;
                    if blank > LOST_MAX {
                        break;
                    }
                    continue;
                }
                damaged |= blank > 0;
                blank = 0;
                // A cut damages only the last page that was written. (Until it is known which
                // blocks matter, the stuck mark records the damage; nothing else uses it yet.)
                if damaged {
                    self.space.log.blocks.set_stuck(block);
                }
                damaged = read.is_err();
                if !damaged && !self.note_page(page, &mut first, (identity, marks), found) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Adds what the page in page buffer 0 records to what is `found`.
    ///
    /// `first` is the number of the first page of its block that could be read. Returns `false` if
    /// the other pages of the block need not be read.
    // Its frame is gone when the next page is read.
    #[inline(never)]
    fn note_page(
        &mut self,
        page: PageNumber,
        first: &mut Option<u64>,
        (identity, marks): (u32, bool),
        found: &mut Found,
    ) -> bool {
        let base = CheckpointsOf::<S>::base(&self.space);
        let block = self.block_of(page.0);
        let header = self.space.log.header(0);
        if base.is_some_and(|base| base.has_all_of(block, header.sequence)) {
            // The block was not opened since the checkpoint, which knows what it holds.
            return false;
        }
        if header.identity != identity {
            return true;
        }
        let first = *first.get_or_insert(header.sequence);
        if base.is_some_and(|base| !base.is_older_than(header.sequence)) {
            return true;
        }
        found.sequence = found.sequence.max(header.sequence);
        self.torn.note_end(&header);
        // A checkpoint has a block of its own: pages follow in the one that is written on.
        if !header.settling && header.lowest > 0 {
            let settled = Settled { sequence: header.sequence, first, block };
            found.settled = found.settled.max(settled);
        }
        if header.height == 0 && header.records == SESSION_START {
            found.start = found.start.max(header.sequence);
        }
        if !self.counts(page, header.sequence) {
            return true;
        }
        if marks || header.height > 0 {
            self.torn.note_newest(page, header.sequence);
        }
        if header.height == 0 || header.height > HEIGHT_MAX || header.lowest == 0 {
            return true;
        }
        if found.commit.is_none_or(|commit| commit.sequence < header.sequence) {
            found.commit = Some(Commit::of(&header));
        }
        if header.lowest == header.height {
            found.note_root(page, &header);
        }
        true
    }

    /// Finds the newest root, and decides which pages count.
    ///
    /// If the root of the newest format is torn, the root of the format before it is found, and
    /// `newest` becomes a block of that format. `marks` is as for
    /// [`decide_on_torn`](Self::decide_on_torn).
    pub(super) fn find_newest_root(
        &mut self,
        newest: &mut Newest,
        marks: bool,
        found: &mut Found,
    ) -> Result<(), Fault<F::Error>> {
        let mut sequence = 0;
        loop {
            self.decide_on_torn(newest.identity, marks, found)?;
            found.sequence = found.sequence.max(sequence);
            if found.root.is_some() {
                return Ok(());
            }
            sequence = found.sequence.max(newest.sequence);
            self.before_torn_format(newest)?;
        }
    }

    /// Where pages commit for themselves: decides which pages count despite a cut.
    ///
    /// This is decided before anything else is read. The pages that may be torn are the last ones
    /// of the blocks that were written since the last mount that settled. A page that cannot be
    /// read every time is torn, and does not count.
    ///
    /// With `marks`, a page that commits nothing may be the newest one as well.
    ///
    /// Cost: two reads for each block, and some for each that may hold a torn page.
    #[inline(never)]
    pub(super) fn decide_on_torn(
        &mut self,
        identity: u32,
        marks: bool,
        found: &mut Found,
    ) -> Result<(), Fault<F::Error>> {
        self.torn.forget();
        self.read_all(identity, marks, found)?;
        if self.torn.ended_at(found.sequence) {
            return Ok(());
        }
        while let Some((newest, _)) = self.torn.newest()
            && !self.space.log.is_steady(PageNumber(newest.0))?
        {
            let block = self.block_of(newest.0);
            if !self.torn.excludes_a_block() && self.erase_was_begun(block)? {
                self.torn.exclude_block(block);
            } else {
                covered!("the newest page is torn");
                // At the next read, its block may look as if it had never been written.
                let is_first = newest == self.space.log.page_at(block, 0);
                if !self.torn.exclude(newest) || !is_first {
                    break;
                }
                // Its block may have been opened because a program in the one before failed: that
                // page is torn as well, and the newest one now.
                covered!("the newest page is torn, and the first of its block");
            }
            self.torn.forget_newest();
            let sequence = found.sequence;
            self.read_all(identity, marks, found)?;
            found.sequence = found.sequence.max(sequence);
        }
        // A page that was not seen by now must not be seen later.
        self.torn.outdate_from(found.sequence + 1);
        let mut position = 0;
        while let Some(block) = self.next_scanned(&mut position)? {
            self.decide_in(block, &found.settled)?;
        }
        if !self.torn.excludes_any() {
            return Ok(());
        }
        self.torn.forget_newest();
        let sequence = found.sequence;
        self.read_all(identity, marks, found)?;
        found.sequence = sequence;
        Ok(())
    }

    /// Decides which pages of `block` are torn, unless it was settled before.
    // Apart from the function above, so that this is not on the stack where all pages are read.
    #[inline(never)]
    fn decide_in(&mut self, block: BlockNumber, of: &Settled) -> Result<(), Fault<F::Error>> {
        let first = self.space.log.first_sequence(block)?;
        if block != of.block && first.is_some_and(|first| first < of.first) {
            return Ok(());
        }
        let first_page = self.space.log.page_at(block, 0);
        if !self.torn.is_newest(first_page)
            && (first.is_none() || !self.space.log.is_steady(first_page)?)
        {
            return self.note_torn_in(block);
        }
        let written = self.space.log.written(block, self.space.log.block_pages(), 1)?;
        for place in written.saturating_sub(1)..(written + 1).min(self.space.log.block_pages()) {
            let page = self.space.log.page_at(block, place);
            if self.torn.is_newest(page) {
                continue;
            }
            let is_steady = if place < written {
                self.space.log.is_steady(page)?
            } else {
                self.is_steadily_blank(page)?
            };
            if !is_steady {
                covered!("the end of a block is torn");
                self.note_torn(page)?;
            }
        }
        Ok(())
    }

    /// Notes that `page` is torn, and all of its block if the erase of that was begun.
    fn note_torn(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        let block = self.block_of(page.0);
        if self.torn.exclude(page)
            && !self.torn.excludes_a_block()
            && self.erase_was_begun(block)?
        {
            self.torn.exclude_block(block);
        }
        Ok(())
    }

    /// Notes the torn pages of a block whose first page cannot be read every time.
    ///
    /// This block may have been the last to be opened. Or its erase was cut, and a page that was
    /// torn before is left after the first page.
    #[inline(never)]
    fn note_torn_in(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        let mut blank = 0;
        for place in 0..self.space.log.block_pages() {
            let page = self.space.log.page_at(block, place);
            if self.torn.is_newest(page) {
                blank = 0;
                continue;
            }
            match self.space.log.steady_reading(page)? {
                None => {
                    covered!("the first page of a block is torn");
                    self.note_torn(page)?;
                    blank = 0;
                }
                Some(Err(PageFault::Erased)) => blank += 1,
                Some(_) => blank = 0,
            }
            if blank > LOST_MAX || self.torn.excludes_block(block) {
                break;
            }
        }
        Ok(())
    }

    /// Whether `page` reads as erased every time.
    fn is_steadily_blank(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if self.space.log.read_page(page, 0)? != Err(PageFault::Erased) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the tree of the newest root.
    #[inline(never)]
    pub(super) fn take_newest_root(
        &mut self,
        identity: u32,
        found: &Found,
    ) -> Result<(), Fault<F::Error>> {
        self.torn.set_settle_from(found.settled.first);
        let (Some((page, root)), Some(commit)) = (found.root, found.commit) else {
            return Err(self.no_root()?);
        };
        // A page commits to the root that was the newest. (Media made before have no tags.)
        if root.tag != commit.tag && root.tag.min(commit.tag) > 0 {
            covered!("the root of the newest commit is lost");
            return Err(self.no_root()?);
        }
        self.space.log.set_tag(root.tag);
        self.take_root(page, &PageHeader { records: commit.records, ..root })?;
        self.space.restart(identity, commit.sequence, found.sequence);
        Ok(())
    }

    /// Counts the blocks with damage that no cut explains.
    ///
    /// A block without valid pages is not counted: its erase may have been cut.
    pub(super) fn count_unexplained(&mut self) {
        self.state.begin_unexplained(0);
        for block in self.space.log.blocks.all() {
            let damaged = self.space.log.blocks.take_stuck(block);
            let counts = damaged && self.space.log.blocks.valid_in(block) > 0;
            self.state.add_unexplained(u32::from(counts));
        }
    }

    /// Begins to write anew what lies in blocks that may hold a torn page.
    ///
    /// Returns the sequence numbers with which such a block begins.
    #[inline(never)]
    pub(super) fn begin_settling(&mut self) -> Result<Range<u64>, Fault<F::Error>> {
        let torn = self.torn.settle_from()..self.space.log.sequence();
        if self.space.room() < 2 + S::path_pages(self.state.height()) && self.held_pages() > 0 {
            covered!("settling begins with no room but what is held");
            if let Some((newest, _)) = self.torn.newest() {
                self.expect_steady(newest.0)?;
            }
            self.free_held();
        }
        self.space.log.begin_settling();
        Ok(torn)
    }

    /// Writes anew the valid pages of blocks that may hold a torn page.
    ///
    /// These begin with one of the numbers `torn`. With `unsteady`, writes only the pages that do
    /// not read the same every time.
    ///
    /// Cost: a read for each block, and what it costs to collect these blocks.
    #[inline(never)]
    pub(super) fn settle_blocks(
        &mut self,
        torn: &Range<u64>,
        unsteady: bool,
    ) -> Result<(), Fault<F::Error>> {
        let mut position = 0;
        let mut kept = PageOwner::kept(self);
        while let Some(block) = self.next_scanned(&mut position)? {
            self.settle_block(block, torn, unsteady, &mut kept)?;
        }
        Ok(())
    }

    /// Ends it: all that counts is in other blocks now, the newest commit as well.
    ///
    /// No earlier state is needed. Erases the blocks whose first page is torn, and those that
    /// `clears` selects by the sequence number of their first page.
    #[inline(never)]
    pub(super) fn end_settling(
        &mut self,
        clears: impl Fn(u64) -> bool,
    ) -> Result<(), Fault<F::Error>> {
        self.space.log.blocks.release();
        let mut position = 0;
        while let Some(block) = self.next_scanned(&mut position)? {
            let first = self.space.log.first_sequence(block)?;
            let is_torn = self.torn.excludes_block(block)
                || self.torn.excludes(self.space.log.page_at(block, 0));
            if is_torn || first.is_some_and(&clears) {
                if self.space.log.is_newest(block) {
                    self.mark(0)?;
                }
                // A block that is erased looks as if it had never been opened.
                CheckpointsOf::<S>::void(&mut self.space)?;
                self.space.log.clear_block(block)?;
            }
        }
        // A block that cannot be erased counts until it is marked: no page says which pages a mount
        // left out. (So `vm` does not promise that where chips have no such marks.)
        self.space.log.mark_bad_blocks()?;
        self.space.log.end_settling();
        Ok(())
    }

    /// Writes the valid pages of `block` anew if it may hold a torn page.
    ///
    /// That is the case if its first page has one of the numbers `torn`. With `unsteady`, writes
    /// only the pages that do not read the same every time. Leaves `kept` pages free, as long as
    /// that is possible.
    fn settle_block(
        &mut self,
        block: BlockNumber,
        torn: &Range<u64>,
        unsteady: bool,
        kept: &mut u32,
    ) -> Result<(), Fault<F::Error>> {
        let is_torn = |index: &mut Self| -> Result<bool, Fault<F::Error>> {
            Ok(index.space.log.first_sequence(block)?.is_some_and(|first| torn.contains(&first)))
        };
        if !is_torn(self)? {
            return Ok(());
        }
        let mut from = 0;
        loop {
            // Collection may have emptied the block, and it may be the open one now.
            if !unsteady && self.keep_room_to_settle(kept)? && !is_torn(self)? {
                return Ok(());
            }
            let Some((page, place)) = gc::next_valid(self, block, from)? else { return Ok(()) };
            from = place + u32::from(unsteady);
            if unsteady {
                let Some(Unsteady { before, .. }) = self.before_append(page)? else { continue };
                covered!("a torn append is settled first");
                self.space.expect(page, before);
                if self.keep_room_to_settle(kept)? && !self.space.log.blocks.is_valid(page) {
                    return Ok(());
                }
            }
            match self.move_page(page, None) {
                Err(Fault::Corrupt { page, .. })
                    if !self.torn.is_newest(page) && !self.state.is_in_doubt() =>
                {
                    covered!("settling meets damage that no cut explains");
                    // Damage that no cut explains.
                    self.space.log.blocks.set_stuck(block);
                    return Ok(());
                }
                moved => moved?,
            }
        }
    }

    /// Collects garbage if fewer than `kept` pages are left. Returns whether it did.
    ///
    /// Cuts may follow one another, so settling leaves the reserve to collection. If collection
    /// cannot gain that, settling continues with what one collection needs, and `kept` is that from
    /// then on. If even that is missing, it frees the blocks that were held.
    #[inline(never)]
    fn keep_room_to_settle(&mut self, kept: &mut u32) -> Result<bool, Fault<F::Error>> {
        let least = self.space.log.block_pages() + 2 * S::path_pages(self.state.height());
        let mut collected = false;
        for _ in 0..2 {
            // Blocks that are held are free at the end, and no gain until then.
            let room = self.space.room();
            if room >= least && room + self.held_pages() >= *kept {
                return Ok(collected);
            }
            collected = true;
            match gc::gain_room(self, 0) {
                Err(Fault::NoRoom { .. }) if !self.state.is_in_doubt() => *kept = least,
                gained => gained?,
            }
            if self.space.room() < least {
                covered!("settling needs what was held");
                self.free_held();
            }
        }
        if self.space.room() < least {
            Err(self.space.log.no_room(self.limit_pages()))
        } else {
            Ok(collected)
        }
    }

    /// The content of `page` before its last append, if its reads differ.
    ///
    /// Among the differing contents, the one with the most bits that are 1 was there before the
    /// append. A mixture can have more such bits than any content read so far, but it hardly ever
    /// reads the same again. `None` if all reads are alike.
    ///
    /// Cost: [`LOOKS`] reads, up to ten times as many if they differ.
    pub(super) fn before_append(
        &mut self,
        page: PageNumber,
    ) -> Result<Option<Unsteady>, Fault<F::Error>> {
        let (mut first, mut before) = (None, None);
        let (mut differs, mut other_keys) = (false, false);
        let mut seen = 0;
        for look in 0..10 * LOOKS {
            if look >= LOOKS && (!differs || seen >= SEEN) {
                break;
            }
            let Ok(header) = self.space.log.read_raw(page, 0)? else { continue };
            let bytes = self.space.log.frames.bytes(0);
            let sum = checksum::of(&[bytes]);
            if before.is_some_and(|(_, known)| known == sum) {
                seen += 1;
            }
            // Most reads are like the first, and nothing else about them is new.
            if first.is_some_and(|(known, _)| known == sum) {
                continue;
            }
            let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            if before.is_none_or(|(most, _)| most < ones) {
                (before, seen) = (Some((ones, sum)), 1);
            }
            let count = self.count_in(header.lowest);
            match first {
                None => first = Some((sum, count)),
                Some((_, known)) => {
                    differs = true;
                    other_keys |= known != count;
                }
            }
        }
        let before = before.filter(|_| differs).map(|(_, sum)| sum);
        Ok(before.map(|before| Unsteady { before, other_keys }))
    }

    /// The number of records in the node of `level` that was read into buffer 0.
    fn count_in(&mut self, level: u8) -> Option<usize> {
        if level == 0 || level > self.state.height() {
            return None;
        }
        self.space.log.layout().unpack(self.space.log.frames.bytes_mut(0));
        self.node(0, level).ok().map(|node| node.count())
    }
}
