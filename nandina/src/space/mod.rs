//! Where the next page goes and which block is collected: allocation, validity, wear.
//!
//! Pages are written one after another into the active block. A block is erased immediately before its
//! first page is written, never earlier, so a torn erase or a stale half-written block can never be
//! mistaken for free space; after a mount the active block of before is not written again, because a
//! program that was cut may be invisible (rule 1 of the media contract).
//!
//! A page that was superseded stays protected until the operation commits: a cut finds the old tree
//! whole. Nothing here knows what a node is.

mod blocks;
mod budget;
mod frames;

pub(crate) use blocks::Blocks;
pub(crate) use budget::RIDERS;
pub use budget::{Budget, Moves};
pub(crate) use frames::Frames;

use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, Geometry, PageNumber};
use crate::node::{Medium, PageFault, PageHeader, PageLayout};

/// Pages that one operation can supersede before it commits.
pub(crate) const RETIRED_MAX: usize = 48;

/// The chip, the page buffers, and the account of every block.
pub struct Space<'b, F> {
    flash: F,
    pub(crate) geometry: Geometry,
    pub(crate) layout: PageLayout,
    pub(crate) medium: Medium,
    pub(crate) frames: Frames<'b>,
    pub(crate) blocks: Blocks<'b>,
    identity: u32,
    sequence: u64,
    /// The block being written, and the index of its next page.
    active: Option<(BlockNumber, u32)>,
    retired: [PageNumber; RETIRED_MAX],
    retired_count: usize,
}

/// Bytes of RAM for the page buffers and the blocks' account.
pub(crate) fn ram_needed(geometry: &Geometry, layout: &PageLayout, buffers: usize) -> usize {
    layout.frame_bytes() * buffers + Blocks::ram_needed(geometry)
}

impl<'b, F: Flash> Space<'b, F> {
    pub(crate) fn new(flash: F, medium: Medium, buffers: usize, ram: &'b mut [u8]) -> Self {
        let geometry = flash.geometry();
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        let (frames, rest) = ram.split_at_mut(layout.frame_bytes() * buffers);
        Self {
            flash,
            geometry,
            layout,
            medium,
            frames: Frames::new(frames, buffers),
            blocks: Blocks::new(rest, &geometry),
            identity: 0,
            sequence: 0,
            active: None,
            retired: [PageNumber(0); RETIRED_MAX],
            retired_count: 0,
        }
    }

    pub(crate) fn flash(&self) -> &F {
        &self.flash
    }

    pub(crate) fn into_flash(self) -> F {
        self.flash
    }

    /// Starts from what a mount found: whose pages count, and above which sequence number to go on.
    pub(crate) fn restart(&mut self, identity: u32, sequence: u64) {
        self.identity = identity;
        self.sequence = sequence;
        self.active = None;
        self.retired_count = 0;
        self.frames.forget_all();
    }

    /// Reads any page into page buffer `frame`, whatever it holds.
    pub(crate) fn read_raw(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<Result<PageHeader, PageFault>, Fault<F::Error>> {
        self.frames.forget(frame);
        let bytes = self.frames.bytes_mut(frame);
        let (main, spare) = bytes.split_at_mut(self.layout.page_bytes());
        self.flash.read(page, main, spare).map_err(Fault::Device)?;
        Ok(self.layout.open(bytes))
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
            Ok(_) => {
                self.frames.hold(frame, page);
                return Ok(frame);
            }
            Err(PageFault::Erased) => "it is erased but referenced",
            Err(PageFault::Damaged) => "its checksum does not match",
            Err(PageFault::Version(_)) => "it has another format version",
        };
        Err(Fault::Corrupt { page, reason })
    }

    /// The header of the page that `frame` holds.
    pub(crate) fn header(&self, frame: usize) -> PageHeader {
        self.layout.header(self.frames.bytes(frame))
    }

    /// Seals `frame` and programs it into the next page. The page counts as valid from now on.
    pub(crate) fn program(
        &mut self,
        frame: usize,
        lowest: u8,
        height: u8,
        records: u32,
    ) -> Result<PageNumber, Fault<F::Error>> {
        let (block, index) = match self.active {
            Some((block, index)) if index < self.geometry.pages_per_block => (block, index),
            _ => (self.open_block()?, 0),
        };
        let page = self.geometry.page_in(block, index);
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
        self.active = Some((block, index + 1));
        self.flash.program(page, main, spare).map_err(Fault::Device)?;
        self.blocks.set_valid(page, true);
        Ok(page)
    }

    fn open_block(&mut self) -> Result<BlockNumber, Fault<F::Error>> {
        let active = self.active.take().map(|(block, _)| block);
        let Some(block) = self.blocks.least_worn_free(active) else {
            return Err(Fault::NoRoom { valid_pages: self.blocks.valid_pages(), limit_pages: 0 });
        };
        self.blocks.count_erase(block);
        self.flash.erase(block).map_err(Fault::Device)?;
        Ok(block)
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
            Some((_, index)) => self.geometry.pages_per_block - index,
            None => 0,
        };
        remaining + self.blocks.free_blocks(self.active_block()) * self.geometry.pages_per_block
    }

    pub(crate) fn active_block(&self) -> Option<BlockNumber> {
        self.active.map(|(block, _)| block)
    }
}
