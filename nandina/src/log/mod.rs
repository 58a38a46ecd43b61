//! The log: pages are written one after another into the active block, and never in place. It knows
//! what is on the chip and what is free, and not what a page holds: whose pages count is for their
//! owner to say.
//!
//! A block is erased immediately before its first page is written, or ahead of need, which only RAM
//! knows. So a torn erase or a stale half-written block can never be mistaken for free space
//! (blocks of checkpoints, which say themselves what they hold, apart). After a mount the active
//! block of before is not written again, because a program that was cut may be invisible (rule 1 of
//! the media contract). Only safe pages are programmed, so a cut never damages a page that was
//! programmed before (rule 13).
//!
//! A block whose program or erase fails is given up at once: the page goes elsewhere, what the
//! block still holds is moved as soon as there is time, and when it is empty the chip is told to
//! mark it.
//!
//! A page that was superseded stays protected until the operation commits ([`Blocks::supersede`],
//! [`Blocks::release`]).

mod frames;
mod read;
mod victim;
mod weak;
mod wear;

pub use frames::Frames;
pub use read::LOST_MAX;
pub use weak::WEAK_MAX;

use core::num::Wrapping;

use victim::SpareWithHint;
use weak::Weak;

use crate::blocks::{Blocks, NO_BLOCK, Victims};
use crate::checksum::Sum;
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, Capabilities, ErrorKind, Flash, FlashError, Geometry, PageNumber};
use crate::node::{Medium, PageFault, PageHeader, PageLayout, SESSION_START};

/// Sequence numbers that a mount leaves out, above the highest that it has seen: more than can have
/// been given to pages that were cut, or failed, and cannot be seen.
pub const GAP: u64 = 64;

/// Blocks that may always fail one after another without a page being programmed in between.
const FAILURES_MIN: u32 = 8;

/// How the pages of an owner are sealed and checked.
pub struct Codec {
    /// Writes the header of a page and its checksum, which the last argument computes.
    pub seal: fn(&PageLayout, &mut [u8], &PageHeader, &mut Sum<'_>),
    /// Checks a page that came from the chip, by the checksum that the last argument computes.
    pub check: fn(&PageLayout, &[u8], &mut Sum<'_>) -> Result<(), PageFault>,
    /// Reads of one page before it counts as unreadable.
    pub reads_max: u32,
}

/// What a page says of what it holds.
#[derive(Clone, Copy)]
pub struct Label {
    /// The lowest level of its nodes; 0 for a page of a checkpoint, and any other number where
    /// there are no levels.
    pub lowest: u8,
    /// The height of the tree if the page commits, else 0.
    pub height: u8,
    /// Records in the index, or what else the owner has to say.
    pub records: u32,
}

impl Label {
    /// The first page of a session, which commits nothing.
    pub const fn of_session(self) -> Self {
        Self { height: 0, records: SESSION_START, ..self }
    }
}

/// Where the bytes of a page are that is to be programmed.
pub enum Source<'s> {
    /// In this page buffer.
    Frame(usize),
    /// Outside the page buffers.
    Bytes(&'s mut [u8]),
}

/// Bytes that are programmed into a page once more.
#[derive(Clone, Copy)]
pub enum Image<'i> {
    /// These bytes.
    Bytes(&'i [u8]),
    /// So many bytes from the start of a page buffer.
    Frame(usize, usize),
}

impl Image<'_> {
    fn bytes<'s>(&'s self, frames: &'s Frames<'_>) -> &'s [u8] {
        match *self {
            Self::Bytes(bytes) => bytes,
            Self::Frame(frame, bytes) => &frames.bytes(frame)[..bytes],
        }
    }
}

/// A chip, page buffers, and the account of every block.
pub struct Log<'b, F> {
    flash: F,
    codec: &'static Codec,
    /// What each page says of its medium.
    pub medium: Medium,
    /// The page buffers.
    pub frames: Frames<'b>,
    /// The account of the blocks.
    pub blocks: Blocks<'b>,
    verify: bool,
    victims: Victims,
    identity: u32,
    sequence: u64,
    /// Programs and erases that failed since the last one that did not.
    failures: u32,
    /// The block being written, or [`NO_BLOCK`], and the place of its next page among the safe
    /// ones.
    active: (BlockNumber, u32),
    /// A free block that was erased ahead of need, or [`NO_BLOCK`].
    ready: BlockNumber,
    /// A page was programmed since the mount.
    begun: bool,
    /// The mount settles what may be torn.
    pub settling: bool,
    weak: Weak,
    /// Some blocks were given up that the chip has not marked as bad.
    unmarked: bool,
    operations: Wrapping<u32>,
}

impl<'b, F: Flash> Log<'b, F> {
    /// A log of which nothing is known, before a mount or a format. If each program is read back
    /// (`verify`), there is one more page buffer than the others, beside them.
    pub fn new(
        flash: F,
        codec: &'static Codec,
        medium: Medium,
        frames: Frames<'b>,
        blocks: Blocks<'b>,
        (verify, victims): (bool, Victims),
    ) -> Self {
        Self {
            flash,
            codec,
            medium,
            frames,
            blocks,
            verify,
            victims,
            identity: 0,
            sequence: 0,
            failures: 0,
            active: (NO_BLOCK, 0),
            ready: NO_BLOCK,
            begun: true,
            settling: false,
            weak: Weak::NONE,
            unmarked: false,
            operations: Wrapping(0),
        }
    }

    /// The chip.
    pub const fn flash(&self) -> &F {
        &self.flash
    }

    /// Gives the chip back.
    pub fn into_flash(self) -> F {
        self.flash
    }

    /// The chip's. A driver returns the same as long as it lives, most of them a constant, so no
    /// RAM is spent on it.
    pub fn geometry(&self) -> Geometry {
        self.flash.geometry()
    }

    /// What the chip allows.
    pub fn capabilities(&self) -> Capabilities {
        self.flash.capabilities()
    }

    /// Whether a read can tell that a page should be written elsewhere.
    pub fn reports_corrections(&self) -> bool {
        self.flash.reports_corrections()
    }

    /// Where the parts of a page lie in a page buffer.
    pub fn layout(&self) -> PageLayout {
        layout_of(&self.geometry())
    }

    /// Reads, programs, erases and marks since the index was opened, modulo 2^32.
    pub const fn operations(&self) -> u32 {
        self.operations.0
    }

    /// Whether each program is read back.
    pub const fn verifies(&self) -> bool {
        self.verify
    }

    /// Pages of a block that are programmed.
    pub fn block_pages(&self) -> u32 {
        self.capabilities().pairing.safe_pages(self.geometry().pages_per_block)
    }

    /// The page at `place` among the safe pages of `block`.
    pub fn page_at(&self, block: BlockNumber, place: u32) -> PageNumber {
        self.geometry().page_in(block, self.capabilities().pairing.safe_page(place))
    }

    /// The page at `place` among the safe pages of `block`, or the one behind the block's last.
    pub fn place_or_end(&self, block: BlockNumber, place: u32) -> u32 {
        if place < self.block_pages() {
            self.page_at(block, place).0
        } else {
            (block.0 + 1) * self.geometry().pages_per_block
        }
    }

    /// Goes on behind the sequence number `sequence`, in a block that has yet to be opened.
    pub fn restart(&mut self, identity: u32, sequence: u64) {
        self.identity = identity;
        self.sequence = sequence;
        self.begun = false;
        self.settling = false;
        self.active = (NO_BLOCK, 0);
        self.ready = NO_BLOCK;
        self.weak = Weak::NONE;
        self.failures = 0;
        self.frames.forget_all();
    }

    /// The pages are of this formatting of the medium.
    pub const fn set_identity(&mut self, identity: u32) {
        self.identity = identity;
    }

    /// Which formatting of the medium the pages are of.
    pub const fn identity(&self) -> u32 {
        self.identity
    }

    /// The highest sequence number that was given or left out.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The highest sequence number is at least this one.
    pub fn raise_sequence(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
    }

    /// Whether something was programmed since the mount.
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// The next page may commit, though nothing was programmed since the mount.
    pub const fn begin_at_once(&mut self) {
        self.begun = true;
    }

    /// Pages that can be programmed before anything is collected.
    pub fn room(&self) -> u32 {
        let remaining = self.active_block().map_or(0, |_| self.block_pages() - self.active.1);
        remaining + self.blocks.free_blocks(self.active_block()) * self.block_pages()
    }

    /// The block that is being written.
    pub fn active_block(&self) -> Option<BlockNumber> {
        Some(self.active.0).filter(|&block| block != NO_BLOCK)
    }

    /// The block that is being written, and the place of its next page.
    pub fn next_place(&self) -> Option<(BlockNumber, u32)> {
        self.active_block().map(|block| (block, self.active.1))
    }

    /// The page that is programmed next, if a block is open and has one left.
    pub fn next_page(&self) -> Option<PageNumber> {
        let (block, place) = self.next_place()?;
        (place < self.block_pages()).then(|| self.page_at(block, place))
    }

    /// No block is being written any more. Returns the one that was.
    pub fn close_block(&mut self) -> Option<BlockNumber> {
        let active = self.active_block();
        self.active = (NO_BLOCK, 0);
        active
    }

    /// Opens the block that was erased ahead of need. Returns whether there is one.
    pub fn open_ready(&mut self) -> bool {
        let ready = core::mem::replace(&mut self.ready, NO_BLOCK);
        let is_ready = ready != NO_BLOCK && self.blocks.is_empty(ready);
        if is_ready {
            self.blocks.note_open(ready);
            self.active = (ready, 0);
        }
        is_ready
    }

    /// Erases a free block and opens it. Returns whether it could be erased.
    pub fn open(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let is_erased = self.erase(block)?;
        if is_erased {
            self.blocks.note_open(block);
            self.active = (block, 0);
        }
        Ok(is_erased)
    }

    /// Erases a block. If it cannot be erased, it is given up.
    #[inline(always)]
    pub fn erase(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let count = self.next_erase_count(block)?;
        self.blocks.note_erase(block, count);
        if self.follows_hints() {
            self.blocks.untrack(block);
        }
        self.frames.forget_block(block, self.geometry().pages_per_block);
        self.operations += 1;
        match self.flash.erase(block) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::EraseFailed && self.may_fail() => {
                self.give_up(block);
                Ok(false)
            }
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// Erases `block`, in which nothing is valid. That it is erased is known in RAM only, and if it
    /// can be the block that is opened next.
    pub fn clear_block(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        if self.blocks.is_empty(block) && Some(block) != self.active_block() && block != self.ready
        {
            self.erase(block)?;
        }
        Ok(())
    }

    /// Erases `block` if it is free, to be opened next.
    pub fn make_ready(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        let is_erased = self.blocks.is_empty(block) && self.erase(block)?;
        self.ready = if is_erased { block } else { NO_BLOCK };
        Ok(())
    }

    /// Erases the block that is opened next, so that no change has to wait for it, if the active
    /// one is half full. That it is erased is known in RAM only: after a cut it is erased again.
    /// Returns whether it was done.
    pub fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        let half = self.block_pages() / 2;
        let (active, place) = self.active;
        if active == NO_BLOCK || place < half || self.ready != NO_BLOCK {
            return Ok(false);
        }
        let Some(block) = self.next_spared(Some(active))? else {
            return Ok(false);
        };
        if self.erase(block)? {
            self.ready = block;
        }
        Ok(true)
    }

    /// Seals a page and programs it into the next place there is, in a block that the log chooses
    /// itself. The page is valid from now on.
    pub fn write(&mut self, frame: usize, label: Label) -> Result<PageNumber, Fault<F::Error>> {
        loop {
            let Some(page) = self.next_page() else {
                let filled = self.close_block();
                if !self.open_ready() {
                    let next = self.next_spared(filled)?;
                    self.open(next.ok_or_else(|| self.no_room(0))?)?;
                }
                continue;
            };
            self.frames.forget(frame);
            if self.append(Source::Frame(frame), label)? {
                self.frames.release(frame);
                self.blocks.set_valid(page, true);
                return Ok(page);
            }
        }
    }

    /// Seals a page and programs it into the next place of the open block. Returns whether the chip
    /// took it; if not, the block is given up, and another has to be opened.
    pub fn append(&mut self, source: Source<'_>, label: Label) -> Result<bool, Fault<F::Error>> {
        let (block, place) = self.active;
        self.active.1 += 1;
        if self.program_at(block, place, source, label)? {
            if place == 0 {
                self.blocks.set_opened_at(block, self.sequence);
            }
            self.begun = true;
            Ok(true)
        } else {
            self.active = (NO_BLOCK, 0);
            Ok(false)
        }
    }

    /// The header of a page.
    pub const fn header_of(
        &self,
        Label { lowest, height, records }: Label,
        sequence: u64,
        erase_count: u32,
    ) -> PageHeader {
        let (medium, identity) = (self.medium, self.identity);
        let settling = self.settling;
        PageHeader { medium, identity, sequence, lowest, height, erase_count, records, settling }
    }

    /// Seals a page and programs it. If the chip does not take it, its block is given up.
    #[inline(never)]
    pub fn program_at(
        &mut self,
        block: BlockNumber,
        place: u32,
        mut source: Source<'_>,
        label: Label,
    ) -> Result<bool, Fault<F::Error>> {
        let page = self.page_at(block, place);
        self.sequence += 1;
        let hint = if label.lowest > 0 { self.hint_for(block, place) } else { None };
        let erase_count = self.blocks.erase_count(block);
        let header = self.header_of(label, self.sequence, erase_count);
        let (layout, geometry) = (self.layout(), self.geometry());
        let bytes = match &mut source {
            Source::Frame(frame) => self.frames.bytes_mut(*frame),
            Source::Bytes(bytes) => bytes,
        };
        let flash = &mut self.flash;
        (self.codec.seal)(&layout, bytes, &header, &mut |pieces| flash.checksum(pieces));
        let (main, spare) = bytes.split_at(layout.page_bytes());
        self.operations += 1;
        let mut with_hint = [0; size_of::<SpareWithHint>()];
        let hinted = hint.map(|hint| hint.seal(&geometry, spare, &mut with_hint));
        let spare = hinted.map_or(spare, |bytes| &with_hint[..bytes]);
        let programmed = match self.flash.program(page, main, spare) {
            Ok(()) => !self.verify || self.reads_back(page, &source)?,
            Err(error) if error.kind() == ErrorKind::ProgramFailed && self.may_fail() => false,
            Err(error) => return Err(Fault::Device(error)),
        };
        self.note_programmed(programmed, block);
        Ok(programmed)
    }

    /// A program succeeded, or failed and its block is given up.
    fn note_programmed(&mut self, programmed: bool, block: BlockNumber) {
        if programmed {
            self.failures = 0;
        } else {
            self.give_up(block);
        }
    }

    /// Whether `page` holds just the bytes of `source`.
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

    /// Reads a page into the buffer beside the page buffers. Returns whether it can be read.
    fn read_beside(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        let beside = self.frames.count();
        self.operations += 1;
        let page_bytes = self.layout().page_bytes();
        let (main, spare) = self.frames.bytes_mut(beside).split_at_mut(page_bytes);
        match self.flash.read(page, main, spare) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Uncorrectable => Ok(false),
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// Programs `image` into `page` once more, from `offset` on. Returns whether the chip took it;
    /// if not, its block is given up.
    pub fn overwrite(
        &mut self,
        page: PageNumber,
        offset: usize,
        image: Image<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        self.operations += 1;
        let bytes = image.bytes(&self.frames);
        let programmed = match self.flash.overwrite(page, offset as u32, bytes) {
            Ok(()) => !self.verify || self.holds(page, offset, image)?,
            Err(error) if error.kind() == ErrorKind::ProgramFailed && self.may_fail() => false,
            Err(error) => return Err(Fault::Device(error)),
        };
        self.note_programmed(programmed, self.geometry().block_of(page));
        Ok(programmed)
    }

    /// Whether `page` holds these bytes from `offset` on.
    fn holds(
        &mut self,
        page: PageNumber,
        offset: usize,
        image: Image<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        if !self.read_beside(page)? {
            return Ok(false);
        }
        let bytes = image.bytes(&self.frames);
        Ok(&self.frames.bytes(self.frames.count())[offset..][..bytes.len()] == bytes)
    }

    /// Seals the page in `frame` and writes it in the place of `page`.
    pub fn rewrite(
        &mut self,
        frame: usize,
        page: PageNumber,
        label: Label,
    ) -> Result<(), Fault<F::Error>> {
        self.sequence += 1;
        let header = self.header_of(label, self.sequence, 0);
        let layout = self.layout();
        let bytes = self.frames.bytes_mut(frame);
        let flash = &mut self.flash;
        (self.codec.seal)(&layout, bytes, &header, &mut |pieces| flash.checksum(pieces));
        let (main, spare) = bytes.split_at(layout.page_bytes());
        self.operations += 1;
        self.flash.rewrite(page, main, spare).map_err(Fault::Device)?;
        if self.verify && !self.reads_back(page, &Source::Frame(frame))? {
            return Err(Fault::Corrupt { page, reason: Damage::NotAsWritten });
        }
        Ok(())
    }

    /// The running operation supersedes the page, which is garbage once it has committed.
    pub fn supersede(&mut self, page: PageNumber) {
        self.blocks.supersede(page);
        if self.follows_hints() {
            self.blocks.track(self.geometry().block_of(page));
        }
    }

    /// Blocks that are kept for ones that become bad.
    pub fn reserve_blocks(&self) -> u32 {
        self.capabilities().bad_blocks_max(self.geometry().blocks)
    }

    /// Why nothing more can be written.
    pub fn no_room(&self, limit_pages: u32) -> Fault<F::Error> {
        let bad_blocks = self.blocks.bad_blocks();
        if bad_blocks > self.reserve_blocks() {
            return Fault::WornOut { bad_blocks };
        }
        Fault::NoRoom { limit_pages }
    }

    /// Asks the chip which blocks are bad. One that was given up and not marked yet stays so.
    pub fn find_bad_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        for block in self.blocks.all() {
            if self.flash.is_bad(block).map_err(Fault::Device)? {
                self.blocks.set_bad(block);
            }
        }
        Ok(())
    }

    /// Whether a failure is laid to its block. Where more than a quarter of all blocks fail one
    /// after another, it is not they that are bad but the way to the chip, and the device's error
    /// is handed on.
    fn may_fail(&mut self) -> bool {
        self.failures += 1;
        self.failures <= FAILURES_MIN.max(self.geometry().blocks / 4)
    }

    fn give_up(&mut self, block: BlockNumber) {
        self.blocks.set_bad(block);
        self.unmarked = true;
    }

    /// Tells the chip of blocks that were given up and hold nothing valid any more.
    pub fn mark_bad_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        if !self.unmarked {
            return Ok(());
        }
        self.unmarked = false;
        for block in self.blocks.all() {
            if !self.blocks.is_bad(block) || self.flash.is_bad(block).map_err(Fault::Device)? {
                continue;
            }
            if self.blocks.valid_in(block) > 0 {
                self.unmarked = true;
                continue;
            }
            self.operations += 1;
            match self.flash.mark_bad(block) {
                Ok(()) => {}
                // A mark that fails is found out again by the next mount.
                Err(error) if error.kind() != ErrorKind::Other => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Ok(())
    }
}

/// The layout for the pages of a chip.
pub const fn layout_of(geometry: &Geometry) -> PageLayout {
    PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize)
}
