//! The log: pages are written one after another into the active block.
//!
//! Only [`Log::overwrite`] and [`Log::rewrite`] change a page in place, for systems that need it.
//! The log knows what is on the chip and what is free, but not what a page holds; the owner of a
//! page decides whether it is still needed.
//!
//! A block is erased immediately before its first page is written, or ahead of need, of which only
//! RAM knows. So a torn erase or a stale half-written block can never be mistaken for free space.
//! (Blocks of checkpoints, which describe their own content, are an exception.) After a mount the
//! previous active block is not written again, because a program that was cut may be invisible
//! (rule 1 of the media contract). Only safe pages are programmed, so a cut never damages a page
//! that was programmed earlier (rule 13).
//!
//! A block whose program or erase fails is given up at once: the page is written elsewhere, the
//! valid pages of the block move as soon as there is time, and once it is empty the chip is asked
//! to mark it as bad.
//!
//! A superseded page stays protected until the operation commits ([`Blocks::supersede`],
//! [`Blocks::release`]).

mod audit;
mod bad;
pub mod checkpoint;
mod chip;
mod codec;
mod device;
mod dimensions;
mod frames;
mod label;
mod moved;
mod open;
mod outside;
mod parked;
mod read;
mod rewrite;
mod survey;
mod victim;
#[cfg(debug_assertions)]
mod watch;
mod weak;
mod wear;
mod write;

pub(crate) use chip::Chip;
pub use codec::{Codec, Image, Source};
pub(crate) use dimensions::Dimensions;
pub use frames::Frames;
pub use label::Label;
pub use read::{LOOKS, LOST_MAX};
pub use survey::{Age, END, Newest, Survey, check_medium};
pub use weak::WEAK_MAX;

use open::Open;
use victim::SpareWithHint;
use weak::Weak;

use crate::blocks::{Blocks, GcPolicy, NO_BLOCK};
use crate::bytes::is_erased;
use crate::error::Fault;
use crate::flash::{BlockNumber, Capabilities, ErrorKind, Flash, FlashError, Geometry, PageNumber};
use crate::node::{Medium, PageLayout};

/// Sequence numbers that a mount skips, above the highest that it has seen.
///
/// These are more than can have been given to pages that were cut, or failed, and cannot be seen.
pub const GAP: u64 = 64;

/// Consecutive failures of programs and erases that are always blamed on blocks.
const FAILURES_MIN: u32 = 8;

/// A chip, its buffer pool, and its block table.
pub struct Log<'b, F> {
    chip: Chip<F>,
    codec: &'static Codec,
    /// The description of the medium that each page carries.
    pub medium: Medium,
    /// The buffer pool.
    pub frames: Frames<'b>,
    /// The block table.
    pub blocks: Blocks<'b>,
    verify: bool,
    victims: GcPolicy,
    identity: u32,
    sequence: u64,
    /// Failed programs and erases since the last program that succeeded.
    failures: u32,
    /// The blocks that are programmed next, and the owner's tag of their pages.
    open: Open,
    /// Whether the next page may commit: a page was programmed since the mount.
    begun: bool,
    /// The block with the newest page that the mount saw, until a newer one exists.
    newest: BlockNumber,
    /// Whether the mount is settling what may be torn.
    settling: bool,
    weak: Weak,
    /// Whether blocks were given up that the chip has not yet marked as bad.
    unmarked: bool,
    #[cfg(debug_assertions)]
    watch: watch::Watch,
}

impl<'b, F: Flash> Log<'b, F> {
    /// An unmounted log.
    ///
    /// If each program is read back (`verify`), `frames` has one page buffer more, beside the
    /// others.
    pub fn new(
        flash: F,
        codec: &'static Codec,
        medium: Medium,
        frames: Frames<'b>,
        blocks: Blocks<'b>,
        (verify, victims): (bool, GcPolicy),
    ) -> Self {
        Self {
            chip: Chip::new(flash),
            codec,
            medium,
            frames,
            blocks,
            verify,
            victims,
            identity: 0,
            sequence: 0,
            failures: 0,
            open: Open::NONE,
            begun: true,
            newest: NO_BLOCK,
            settling: false,
            weak: Weak::NONE,
            unmarked: false,
            #[cfg(debug_assertions)]
            watch: watch::Watch::default(),
        }
    }

    /// The chip.
    pub const fn flash(&self) -> &F {
        self.chip.flash()
    }

    /// Returns the chip.
    pub fn into_flash(self) -> F {
        self.chip.into_flash()
    }

    /// The chip geometry. Not cached in RAM: drivers return a constant.
    pub fn geometry(&self) -> Geometry {
        self.flash().geometry()
    }

    /// What the chip allows.
    pub fn capabilities(&self) -> Capabilities {
        self.flash().capabilities()
    }

    /// Whether a read can report that a page should be written elsewhere.
    pub fn reports_corrections(&self) -> bool {
        self.flash().reports_corrections()
    }

    /// The layout of a page in a page buffer.
    pub fn layout(&self) -> PageLayout {
        layout_of(&self.geometry())
    }

    /// Reads, programs, erases and marks since the index was opened, modulo 2^32.
    pub const fn operations(&self) -> u32 {
        self.chip.operations()
    }

    /// Whether each program is read back.
    pub const fn verifies(&self) -> bool {
        self.verify
    }

    /// Pages of a block that are programmed: its safe pages.
    pub fn block_pages(&self) -> u32 {
        self.capabilities().pairing.safe_pages(self.geometry().pages_per_block)
    }

    /// The page at `place` among the safe pages of `block`.
    pub fn page_at(&self, block: BlockNumber, place: u32) -> PageNumber {
        self.geometry().page_in(block, self.capabilities().pairing.safe_page(place))
    }

    /// The page at `place` among the safe pages of `block`, or its end.
    ///
    /// The end is the number after that of the block's last page.
    pub fn place_or_end(&self, block: BlockNumber, place: u32) -> u32 {
        if place < self.block_pages() {
            self.page_at(block, place).0
        } else {
            (block.0 + 1) * self.geometry().pages_per_block
        }
    }

    /// Restarts the log after `sequence`, with no block open.
    pub fn restart(&mut self, identity: u32, sequence: u64) {
        self.identity = identity;
        self.sequence = sequence;
        self.begun = false;
        if let Some(active) = self.active_block() {
            self.newest = active;
        }
        self.settling = false;
        self.open.close();
        self.close_parked();
        self.open.take_ready();
        self.weak = Weak::NONE;
        self.failures = 0;
        self.frames.forget_all();
        #[cfg(debug_assertions)]
        self.watch.forget_begun();
    }

    /// Sets the identity, which distinguishes formattings of the medium.
    pub const fn set_identity(&mut self, identity: u32) {
        self.identity = identity;
    }

    /// The identity, which distinguishes formattings of the medium.
    pub const fn identity(&self) -> u32 {
        self.identity
    }

    /// The highest sequence number that was given or skipped.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Takes the next sequence number.
    const fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Raises the highest sequence number to at least `sequence`.
    pub fn raise_sequence(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
    }

    /// Whether a page was programmed since the mount.
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Notes the block with the newest page that a mount saw.
    ///
    /// It is opened only after a newer page was programmed, if another block is free. An erase of
    /// it that is cut could hide its numbers from one mount and show its torn pages to another, and
    /// both would give the same numbers.
    pub const fn keep_newest(&mut self, block: BlockNumber) {
        self.newest = block;
    }

    /// Whether `block` holds the newest page on the chip.
    pub fn is_newest(&self, block: BlockNumber) -> bool {
        block == self.newest
    }

    /// Allows the next page to commit, though none was programmed since the mount.
    pub const fn begin_at_once(&mut self) {
        self.begun = true;
    }

    /// Whether the mount is settling what may be torn.
    pub const fn is_settling(&self) -> bool {
        self.settling
    }

    /// The mount begins to settle: each page that it programs says so.
    pub const fn begin_settling(&mut self) {
        self.settling = true;
    }

    /// The mount has settled, or leaves what may be torn as it is.
    pub const fn end_settling(&mut self) {
        self.settling = false;
    }

    /// The owner's tag of the pages that are programmed from now on.
    pub const fn tag(&self) -> u8 {
        self.open.tag()
    }

    /// Gives this tag to the pages from now on.
    ///
    /// It is at most [`TAG_MAX`](crate::node::TAG_MAX).
    pub const fn set_tag(&mut self, tag: u8) {
        self.open.set_tag(tag);
    }

    /// Pages that can be programmed before anything is collected.
    pub fn room(&self) -> u32 {
        let (active, block_pages) = (self.active_block(), self.block_pages());
        let remaining = active.map_or(0, |_| block_pages - self.open.active().1);
        let parked = self.open.parked().map_or(0, |(_, place)| block_pages - place);
        remaining + parked + self.blocks.free_blocks(active) * block_pages
    }

    /// Whether `page` is erased, and not programmed since.
    pub fn is_ahead(&self, page: PageNumber) -> bool {
        let (block, (active, place)) = (self.geometry().block_of(page), self.open.active());
        block == self.open.ready()
            || (block == active && page.0 >= self.place_or_end(active, place))
    }

    /// The block being written.
    pub fn active_block(&self) -> Option<BlockNumber> {
        Some(self.open.active().0).filter(|&block| block != NO_BLOCK)
    }

    /// The block being written, and the place of its next page.
    pub fn next_place(&self) -> Option<(BlockNumber, u32)> {
        self.active_block().map(|block| (block, self.open.active().1))
    }

    /// The page to program next, if a block is open and has one left.
    pub fn next_page(&self) -> Option<PageNumber> {
        let (block, place) = self.next_place()?;
        (place < self.block_pages()).then(|| self.page_at(block, place))
    }

    /// Closes the block being written, and returns it.
    pub fn close_block(&mut self) -> Option<BlockNumber> {
        let active = self.active_block();
        self.open.close();
        active
    }

    /// Opens the block that was erased ahead of need.
    ///
    /// Returns `false` if there is none.
    pub fn open_ready(&mut self) -> bool {
        let ready = self.open.take_ready();
        let is_ready = ready != NO_BLOCK && self.blocks.is_empty(ready);
        if is_ready {
            self.blocks.note_open(ready);
            self.open.begin(ready);
        }
        is_ready
    }

    /// Erases a free block and opens it. Returns `false` if the erase failed.
    pub fn open(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        #[cfg(debug_assertions)]
        self.check_open(block);
        let is_erased = self.erase(block)?;
        if is_erased {
            self.blocks.note_open(block);
            self.open.begin(block);
        }
        Ok(is_erased)
    }

    /// Erases a block. If the erase fails, gives the block up and returns `false`.
    #[inline(always)]
    pub fn erase(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        #[cfg(debug_assertions)]
        self.check_erase(block);
        let count = self.next_erase_count(block)?;
        self.blocks.note_erase(block, count);
        if self.follows_hints() {
            self.blocks.untrack(block);
        }
        self.frames.forget_pages(&self.geometry().pages_of(block));
        match self.chip.erase(block) {
            Ok(()) => {
                #[cfg(debug_assertions)]
                self.watch_erase(block);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::EraseFailed && self.may_fail() => {
                self.give_up(block);
                Ok(false)
            }
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// Erases a block whose old pages must never be found again.
    ///
    /// Nothing is programmed into it soon, so with `verify` its first page is read: a block whose
    /// erase silently did nothing is given up. Returns `false` if the block is given up.
    pub fn erase_for_good(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let erased = self.erase(block)?;
        if erased && self.verify && !self.reads_as_erased(self.page_at(block, 0))? {
            covered!("an erase silently did nothing");
            self.give_up(block);
            return Ok(false);
        }
        Ok(erased)
    }

    /// Erases `block` if it is free and neither open nor erased ahead of need.
    ///
    /// This removes torn pages. Nothing records the erase, so the block is erased again when it is
    /// opened.
    pub fn clear_block(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        let is_ahead = block == self.open.ready();
        if self.blocks.is_empty(block) && Some(block) != self.active_block() && !is_ahead {
            self.erase(block)?;
            #[cfg(debug_assertions)]
            self.watch.forget(block);
        }
        Ok(())
    }

    /// Erases `block` if it is free, and makes it the one that is opened next.
    pub fn make_ready(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        let is_erased = self.blocks.is_empty(block) && self.erase(block)?;
        self.open.note_ready(if is_erased { block } else { NO_BLOCK });
        Ok(())
    }

    /// Erases the next block ahead of need, if the active one is half full.
    ///
    /// So no change has to wait for the erase. Only RAM knows that the block is erased: after a cut
    /// it is erased again. Returns whether a block was prepared.
    pub fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        let half = self.block_pages() / 2;
        let (active, place) = self.open.active();
        if active == NO_BLOCK || place < half || self.open.ready() != NO_BLOCK {
            return Ok(false);
        }
        let Some(block) = self.next_spared(Some(active))? else {
            return Ok(false);
        };
        if self.erase(block)? {
            self.open.note_ready(block);
        }
        Ok(true)
    }

    /// Seals a page and programs it into the next place of the open block.
    ///
    /// If the program fails, gives the block up and returns `false`: the caller opens another one.
    pub fn append(&mut self, source: Source<'_>, label: Label) -> Result<bool, Fault<F::Error>> {
        #[cfg(debug_assertions)]
        self.check_append(label);
        let (block, place) = self.open.advance();
        let programmed = self.program_at(block, place, source, label)?;
        self.note_appended(programmed, block, place);
        Ok(programmed)
    }

    /// Records that a page of the open block was programmed, or closes the block.
    fn note_appended(&mut self, programmed: bool, block: BlockNumber, place: u32) {
        if !programmed {
            self.open.close();
            return;
        }
        if place == 0 {
            self.blocks.set_opened_at(block, self.sequence);
        }
        self.begun = true;
        self.newest = NO_BLOCK;
    }

    /// Seals a page and programs it.
    ///
    /// If the program fails, gives the block up and returns `false`.
    pub fn program_at(
        &mut self,
        block: BlockNumber,
        place: u32,
        source: Source<'_>,
        label: Label,
    ) -> Result<bool, Fault<F::Error>> {
        self.program_as::<false>(block, place, source, label)
    }

    /// The same; if it is a `PART`, without the blank bytes before the others.
    #[inline(never)]
    fn program_as<const PART: bool>(
        &mut self,
        block: BlockNumber,
        place: u32,
        mut source: Source<'_>,
        label: Label,
    ) -> Result<bool, Fault<F::Error>> {
        let page = self.page_at(block, place);
        #[cfg(debug_assertions)]
        self.check_program(block, place);
        let sequence = self.next_sequence();
        let hint = if label.lowest > 0 { self.hint_for(block, place) } else { None };
        let erase_count = self.blocks.erase_count(block);
        let header = self.header_of(label, sequence, erase_count);
        let (layout, geometry) = (self.layout(), self.geometry());
        let bytes = match &mut source {
            Source::Frame(frame) => self.frames.bytes_mut(*frame),
            Source::Bytes(bytes) => bytes,
        };
        let chip = &mut self.chip;
        (self.codec.seal)(&layout, bytes, &self.medium, &header, &mut |pieces| {
            chip.checksum(pieces)
        });
        let (main, spare) = bytes.split_at(layout.page_bytes());
        let mut with_hint = [0; size_of::<SpareWithHint>()];
        let hinted = hint.map(|hint| hint.seal(&geometry, spare, &mut with_hint));
        let spare = hinted.map_or(spare, |bytes| &with_hint[..bytes]);
        let written = if PART && spare.is_empty() {
            // The rest of the page stays blank.
            let from = main.iter().position(|&byte| byte != 0xFF).unwrap_or(0);
            self.chip.overwrite(page, from as u32, &main[from..])
        } else {
            self.chip.program(page, main, spare)
        };
        let programmed = match written {
            Ok(()) => !self.verify || self.reads_back(page, &source)?,
            Err(error) if error.kind() == ErrorKind::ProgramFailed && self.may_fail() => false,
            Err(error) => return Err(Fault::Device(error)),
        };
        #[cfg(debug_assertions)]
        self.watch_program(programmed, block, place, label);
        self.note_programmed(programmed, block);
        Ok(programmed)
    }

    /// Records that a program succeeded, or gives up the block of one that failed.
    fn note_programmed(&mut self, programmed: bool, block: BlockNumber) {
        if programmed {
            self.failures = 0;
        } else {
            self.give_up(block);
        }
    }

    /// Whether `page` holds exactly the bytes of `source`.
    fn reads_back(
        &mut self,
        page: PageNumber,
        source: &Source<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        if !self.read_beside(page)? {
            return Ok(false);
        }
        let meant = match source {
            Source::Frame(frame) => self.frames.bytes(*frame),
            Source::Bytes(bytes) => bytes,
        };
        Ok(self.frames.bytes(self.frames.count()) == meant)
    }

    fn reads_as_erased(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        Ok(self.read_beside(page)? && is_erased(self.frames.bytes(self.frames.count())))
    }

    /// Reads a page into the extra buffer. Returns `false` if it is unreadable.
    fn read_beside(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        let beside = self.frames.count();
        let page_bytes = self.layout().page_bytes();
        let (main, spare) = self.frames.bytes_mut(beside).split_at_mut(page_bytes);
        match self.chip.read(page, main, spare) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Uncorrectable => Ok(false),
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// Programs `image` into `page` again, from `offset` on.
    ///
    /// If the program fails, gives the block up and returns `false`.
    pub fn overwrite(
        &mut self,
        page: PageNumber,
        offset: usize,
        image: Image<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        let bytes = image.bytes(&self.frames);
        let programmed = match self.chip.overwrite(page, offset as u32, bytes) {
            Ok(()) => !self.verify || self.holds(page, offset, image)?,
            Err(error) if error.kind() == ErrorKind::ProgramFailed && self.may_fail() => false,
            Err(error) => return Err(Fault::Device(error)),
        };
        self.note_programmed(programmed, self.geometry().block_of(page));
        Ok(programmed)
    }

    /// Whether `page` holds the bytes of `image` from `offset` on.
    fn holds(
        &mut self,
        page: PageNumber,
        offset: usize,
        image: Image<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        let (beside, page_bytes) = (self.frames.count(), self.layout().page_bytes());
        let part = offset..offset + image.bytes(&self.frames).len();
        let main = &mut self.frames.bytes_mut(beside)[..page_bytes];
        match self.chip.read_part(page, part.clone(), main) {
            Ok(_) => Ok(&self.frames.bytes(beside)[part] == image.bytes(&self.frames)),
            Err(error) if error.kind() == ErrorKind::Uncorrectable => Ok(false),
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// Supersedes `page`, which becomes garbage when the operation commits.
    pub fn supersede(&mut self, page: PageNumber) {
        self.blocks.supersede(page);
        if self.follows_hints() {
            self.blocks.track(self.geometry().block_of(page));
        }
    }

    /// Makes several pages garbage, as [`supersede`](Self::supersede) does.
    pub fn supersede_all(&mut self, pages: impl Iterator<Item = PageNumber> + Clone) {
        if self.follows_hints() {
            let geometry = self.geometry();
            pages.clone().for_each(|page| self.blocks.track(geometry.block_of(page)));
        }
        self.blocks.supersede_all(pages);
    }

    /// Blocks kept in reserve for those that go bad.
    pub fn reserve_blocks(&self) -> u32 {
        self.capabilities().bad_blocks_max(self.geometry().blocks)
    }

    /// The error for a lack of room: worn out, or no room.
    pub fn no_room(&self, limit_pages: u32) -> Fault<F::Error> {
        let bad_blocks = self.blocks.bad_blocks();
        if bad_blocks > self.reserve_blocks() {
            return Fault::WornOut { bad_blocks };
        }
        Fault::NoRoom { limit_pages }
    }

    /// Marks the blocks as bad that the chip reports as bad.
    ///
    /// A block that was given up and is not yet marked on the chip stays bad.
    pub fn find_bad_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        for block in self.blocks.all() {
            if self.chip.is_bad(block).map_err(Fault::Device)? {
                self.blocks.set_bad(block);
            }
        }
        Ok(())
    }

    /// Whether a failure may be blamed on its block.
    ///
    /// If more failures follow one another than a quarter of all blocks, the path to the chip is at
    /// fault and not the blocks. Then the device's error is returned.
    fn may_fail(&mut self) -> bool {
        self.failures += 1;
        self.failures <= FAILURES_MIN.max(self.geometry().blocks / 4)
    }

    fn give_up(&mut self, block: BlockNumber) {
        self.blocks.set_bad(block);
        self.unmarked = true;
    }

    /// Asks the chip to mark the empty blocks that were given up.
    pub fn mark_bad_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        if !self.unmarked {
            return Ok(());
        }
        // A device that gives up half way leaves blocks to be marked.
        let mut left = false;
        for block in self.blocks.all() {
            if !self.blocks.is_bad(block) || self.chip.is_bad(block).map_err(Fault::Device)? {
                continue;
            }
            if self.blocks.valid_in(block) > 0 {
                left = true;
                continue;
            }
            self.mark_bad(block)?;
        }
        self.unmarked = left;
        Ok(())
    }
}

/// The layout for the pages of a chip.
pub const fn layout_of(geometry: &Geometry) -> PageLayout {
    PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize)
}
