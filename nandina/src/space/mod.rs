//! Where the next page goes and which block is collected: allocation, validity, wear, bad blocks.
//!
//! Pages are written one after another into the active block. A block is erased immediately before its
//! first page is written, never earlier, so a torn erase or a stale half-written block can never be
//! mistaken for free space; after a mount the active block of before is not written again, because a
//! program that was cut may be invisible (rule 1 of the media contract). Only safe pages are programmed,
//! so a cut never damages a page that was programmed before (rule 13).
//!
//! A block whose program or erase fails is given up at once: the page goes elsewhere, what the block still
//! holds is moved as soon as there is time, and when it is empty the chip is told to mark it.
//!
//! A page that was superseded stays protected until the operation commits: a cut finds the old tree
//! whole. Nothing here knows what a node is.

mod blocks;
mod budget;
mod failing;
mod frames;

pub(crate) use blocks::{Blocks, PAGES_MAX};
pub(crate) use budget::RIDERS;
pub use budget::{Budget, Extent, Moves};
pub(crate) use frames::Frames;

use core::ops::Range;

use crate::error::Fault;
use crate::flash::{
    BlockNumber, Capabilities, ErrorKind, Flash, FlashError, Geometry, PageNumber, Reading,
};
use crate::node::{Medium, PageFault, PageHeader, PageLayout};

/// Pages that one operation can supersede before it commits.
pub(crate) const RETIRED_MAX: usize = 48;

/// Pages that the ECC found weak and that wait to be written elsewhere. Others are found again.
pub(crate) const WEAK_MAX: usize = 4;

/// The chip, the page buffers, and the account of every block.
pub struct Space<'b, F> {
    flash: F,
    pub(crate) geometry: Geometry,
    capabilities: Capabilities,
    pub(crate) layout: PageLayout,
    pub(crate) medium: Medium,
    pub(crate) frames: Frames<'b>,
    pub(crate) blocks: Blocks<'b>,
    verify: bool,
    identity: u32,
    sequence: u64,
    /// Pages with these sequence numbers were there when the index was opened and belong to no tree of it.
    foreign: Range<u64>,
    /// Programs and erases that failed since the last one that did not.
    failures: u32,
    /// The block being written, and the place of its next page among the safe ones.
    active: Option<(BlockNumber, u32)>,
    retired: [PageNumber; RETIRED_MAX],
    retired_count: usize,
    weak: [Option<PageNumber>; WEAK_MAX],
    /// Some blocks were given up that the chip has not marked as bad.
    unmarked: bool,
    operations: u64,
}

/// Bytes of RAM for the page buffers and the blocks' account.
pub(crate) fn ram_needed(
    geometry: &Geometry,
    layout: &PageLayout,
    buffers: usize,
    verify: bool,
) -> usize {
    layout.frame_bytes() * (buffers + usize::from(verify)) + Blocks::ram_needed(geometry)
}

impl<'b, F: Flash> Space<'b, F> {
    pub(crate) fn new(
        flash: F,
        medium: Medium,
        buffers: usize,
        verify: bool,
        ram: &'b mut [u8],
    ) -> Self {
        let (geometry, capabilities) = (flash.geometry(), flash.capabilities());
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        let (frames, rest) =
            ram.split_at_mut(layout.frame_bytes() * (buffers + usize::from(verify)));
        let safe_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
        Self {
            flash,
            geometry,
            capabilities,
            layout,
            medium,
            frames: Frames::new(frames, buffers, verify),
            blocks: Blocks::new(rest, &geometry, safe_pages),
            verify,
            identity: 0,
            sequence: 0,
            foreign: 0..0,
            failures: 0,
            active: None,
            retired: [PageNumber(0); RETIRED_MAX],
            retired_count: 0,
            weak: [None; WEAK_MAX],
            unmarked: false,
            operations: 0,
        }
    }

    pub(crate) fn flash(&self) -> &F {
        &self.flash
    }

    pub(crate) fn into_flash(self) -> F {
        self.flash
    }

    /// Reads, programs, erases and marks since the index was opened.
    pub(crate) const fn operations(&self) -> u64 {
        self.operations
    }

    /// Whether each program is read back.
    pub(crate) const fn verifies(&self) -> bool {
        self.verify
    }

    /// Pages of a block that are programmed.
    pub(crate) const fn block_pages(&self) -> u32 {
        self.capabilities.pairing.safe_pages(self.geometry.pages_per_block)
    }

    /// The page at `place` among the safe pages of `block`.
    pub(crate) const fn page_at(&self, block: BlockNumber, place: u32) -> PageNumber {
        self.geometry.page_in(block, self.capabilities.pairing.safe_page(place))
    }

    /// What the index can count on.
    pub(crate) fn extent(&self) -> Extent {
        let lost = self.reserve_blocks().max(self.blocks.bad_blocks());
        Extent { block_pages: self.block_pages(), blocks: self.geometry.blocks - lost }
    }

    /// Starts from what a mount found: whose pages count, the sequence number of the root, and the highest
    /// of all, above which to go on.
    pub(crate) fn restart(&mut self, identity: u32, root: u64, sequence: u64) {
        self.identity = identity;
        self.sequence = sequence;
        self.foreign = root + 1..sequence + 1;
        self.active = None;
        self.retired_count = 0;
        self.weak = [None; WEAK_MAX];
        self.failures = 0;
        self.frames.forget_all();
    }

    /// Reads any page into page buffer `frame`, whatever it holds.
    pub(crate) fn read_raw(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<Result<PageHeader, PageFault>, Fault<F::Error>> {
        self.frames.forget(frame);
        self.operations += 1;
        let bytes = self.frames.bytes_mut(frame);
        let (main, spare) = bytes.split_at_mut(self.layout.page_bytes());
        match self.flash.read(page, main, spare) {
            Ok(Reading::Clean) => {}
            Ok(Reading::Corrected) => self.note_weak(page),
            Err(error) if error.kind() == ErrorKind::Uncorrectable => {
                return Ok(Err(PageFault::Unreadable));
            }
            Err(error) => return Err(Fault::Device(error)),
        }
        Ok(self.layout.open(self.frames.bytes(frame)))
    }

    /// Remembers that `page` should be written elsewhere, if there is room to.
    pub(crate) fn note_weak(&mut self, page: PageNumber) {
        if self.blocks.is_valid(page)
            && !self.weak.contains(&Some(page))
            && let Some(free) = self.weak.iter_mut().find(|weak| weak.is_none())
        {
            *free = Some(page);
        }
    }

    /// Whether some page should be written elsewhere.
    pub(crate) fn has_weak(&self) -> bool {
        self.weak.iter().any(Option::is_some)
    }

    /// The next valid page that should be written elsewhere.
    pub(crate) fn take_weak(&mut self) -> Option<PageNumber> {
        let mut weak = self.weak.iter_mut().filter_map(Option::take);
        weak.find(|&page| self.blocks.is_valid(page))
    }

    /// Brings a page of the index into a page buffer: into `frame`, if no buffer holds it already.
    pub(crate) fn load(&mut self, page: u32, frame: usize) -> Result<usize, Fault<F::Error>> {
        let page = PageNumber(page);
        if let Some(held) = self.frames.holding(page) {
            return Ok(held);
        }
        if page.0 >= self.geometry.pages() {
            return Err(Fault::Corrupt { page, reason: "a pointer leads beyond the chip" });
        }
        let reason = match self.read_raw(page, frame)? {
            Ok(header) if header.medium != self.medium || header.identity != self.identity => {
                "it belongs to another index"
            }
            // The root that is missing in between was damaged, and its page written anew since.
            Ok(header) if self.foreign.contains(&header.sequence) => {
                "it was written after the root that leads to it"
            }
            Ok(_) => {
                self.frames.hold(frame, page);
                return Ok(frame);
            }
            Err(PageFault::Erased) => "it is erased but referenced",
            Err(PageFault::Damaged) => "its checksum does not match",
            Err(PageFault::Unreadable) => "it has more wrong bits than the ECC corrects",
            Err(PageFault::Version(_)) => "it has another format version",
        };
        Err(Fault::Corrupt { page, reason })
    }

    /// The header of the page that `frame` holds.
    pub(crate) fn header(&self, frame: usize) -> PageHeader {
        self.layout.header(self.frames.bytes(frame))
    }

    /// Seals `frame` and programs it into the next page that takes it. The page counts as valid from now
    /// on.
    pub(crate) fn program(
        &mut self,
        frame: usize,
        lowest: u8,
        height: u8,
        records: u32,
    ) -> Result<PageNumber, Fault<F::Error>> {
        loop {
            let (block, place) = match self.active {
                Some((block, place)) if place < self.block_pages() => (block, place),
                _ => (self.open_block()?, 0),
            };
            let page = self.page_at(block, place);
            self.sequence += 1;
            let header = PageHeader {
                medium: self.medium,
                identity: self.identity,
                sequence: self.sequence,
                lowest,
                height,
                erase_count: self.blocks.erase_count(block),
                records,
            };
            let bytes = self.frames.bytes_mut(frame);
            self.layout.seal(bytes, &header);
            let (main, spare) = bytes.split_at(self.layout.page_bytes());
            self.active = Some((block, place + 1));
            self.operations += 1;
            let programmed = match self.flash.program(page, main, spare) {
                Ok(()) => !self.verify || self.reads_back(page, frame)?,
                Err(error) if error.kind() == ErrorKind::ProgramFailed && self.may_fail() => false,
                Err(error) => return Err(Fault::Device(error)),
            };
            if programmed {
                self.failures = 0;
                self.blocks.set_valid(page, true);
                return Ok(page);
            }
            self.give_up(block);
            self.active = None;
        }
    }

    /// Whether `page` holds just the bytes of `frame`.
    fn reads_back(&mut self, page: PageNumber, frame: usize) -> Result<bool, Fault<F::Error>> {
        let spare_frame = self.frames.count();
        self.operations += 1;
        let (main, spare) =
            self.frames.bytes_mut(spare_frame).split_at_mut(self.layout.page_bytes());
        match self.flash.read(page, main, spare) {
            Ok(_) => Ok(self.frames.bytes(spare_frame) == self.frames.bytes(frame)),
            Err(error) if error.kind() == ErrorKind::Uncorrectable => Ok(false),
            Err(error) => Err(Fault::Device(error)),
        }
    }

    fn open_block(&mut self) -> Result<BlockNumber, Fault<F::Error>> {
        let active = self.active.take().map(|(block, _)| block);
        loop {
            let Some(block) = self.blocks.least_worn_free(active) else {
                return Err(self.no_room(0));
            };
            self.blocks.count_erase(block);
            self.operations += 1;
            match self.flash.erase(block) {
                Ok(()) => return Ok(block),
                Err(error) if error.kind() == ErrorKind::EraseFailed && self.may_fail() => {
                    self.give_up(block);
                }
                Err(error) => return Err(Fault::Device(error)),
            }
        }
    }

    /// Notes that the running operation supersedes `page`.
    pub(crate) fn retire(&mut self, page: PageNumber) {
        self.retired[self.retired_count] = page;
        self.retired_count += 1;
    }

    /// How many more pages the running operation may retire.
    pub(crate) const fn retirable(&self) -> usize {
        RETIRED_MAX - self.retired_count
    }

    /// The running operation is durable: what it superseded is garbage.
    pub(crate) fn commit(&mut self) {
        for index in 0..self.retired_count {
            self.blocks.set_valid(self.retired[index], false);
        }
        self.retired_count = 0;
    }

    /// Pages that can be programmed before anything is collected.
    pub(crate) fn room(&self) -> u32 {
        let remaining = match self.active {
            Some((_, place)) => self.block_pages() - place,
            None => 0,
        };
        remaining + self.blocks.free_blocks(self.active_block()) * self.block_pages()
    }

    pub(crate) fn active_block(&self) -> Option<BlockNumber> {
        self.active.map(|(block, _)| block)
    }
}
