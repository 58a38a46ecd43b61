//! Pages, erases and bad blocks of the chip below a hybrid FTL.
//!
//! Unlike `nandina::log::Log` it writes on in several blocks at once: the caller names the page.
//! It never chooses what is written, and never erases a block that holds a page that counts.

use nandina::blocks::{Blocks, GcPolicy, LivenessTracking, WearPolicy};
use nandina::flash::{BlockNumber, ErrorKind, Flash, FlashError, Geometry, PageNumber, Reading};
use nandina::log::{Frames, LOST_MAX, Label, layout_of};
use nandina::node::{Medium, PageFault, PageHeader, PageLayout};
use nandina::{Fault, covered};

/// Attempts to read a page before it counts as unreadable.
const READS_MAX: u32 = 3;

/// Consecutive failures of programs and erases that are always blamed on blocks.
const FAILURES_MIN: u32 = 8;

/// Page buffers: what is read or written for the host, and the page that is looked at or copied.
const FRAMES: usize = 2;

/// How blocks are described in RAM.
const TABLE: (LivenessTracking, GcPolicy, WearPolicy) =
    (LivenessTracking::Marked, GcPolicy::Fewest, WearPolicy::Counted);

/// Erases between two looks for a block with cold data.
const LEVEL_EVERY: u64 = 4;

/// Bytes of RAM for the page buffers, and for what is known of the blocks.
///
/// They are two pages with their headers, one bit for each page of the chip, and 4.6 bytes for each
/// of its blocks.
pub(crate) fn ram_needed(geometry: &Geometry) -> usize {
    let (validity, victims, wear) = TABLE;
    Frames::ram_needed(layout_of(geometry).frame_bytes(), FRAMES, false)
        + Blocks::ram_needed(geometry, validity, victims, wear)
        + geometry.blocks.div_ceil(8) as usize
}

/// The settings of an FTL with this number, which every page of it names.
pub(crate) const fn medium_of(
    system: u8,
    geometry: &Geometry,
    (key_bytes, value_bytes): (u16, u16),
) -> Medium {
    Medium {
        system,
        key_bytes,
        value_bytes,
        blocks: geometry.blocks,
        pages_per_block: geometry.pages_per_block as u16,
        checkpoints: false,
        appended: false,
        replaced: false,
        atomic: false,
    }
}

/// The chip, two page buffers, and what is known of its blocks.
///
/// In the block table a page is valid if it counts, and a block is reserved if it has a role.
pub(crate) struct Media<'b, F> {
    pub flash: F,
    pub medium: Medium,
    pub frames: Frames<'b>,
    pub blocks: Blocks<'b>,
    /// One bit for each block: erased, and not programmed since.
    ///
    /// While a hybrid FTL mounts, the bits mark buffer blocks.
    pub clean: &'b mut [u8],
    pub identity: u32,
    /// The highest sequence number that was given or skipped.
    pub sequence: u64,
    /// Pages that were programmed, and blocks that were erased.
    pub programs: u64,
    pub erases: u64,
    /// Reads, programs, erases and marks.
    pub operations: u32,
    /// A page that should be written elsewhere.
    pub weak: Option<PageNumber>,
    /// Whether blocks with cold data are emptied.
    pub levels_wear: bool,
    /// Erases at the last look for a block with cold data.
    levelled_at: u64,
    /// The page that idle steps read last.
    patrolled: u32,
    failures: u32,
    /// Whether a block was given up that the chip has not marked yet.
    unmarked: bool,
}

impl<'b, F: Flash> Media<'b, F> {
    /// The chip in [`ram_needed`] bytes. So many pages of a block are used.
    pub fn new(flash: F, medium: Medium, block_pages: u32, ram: &'b mut [u8]) -> Self {
        let geometry = flash.geometry();
        let frame_bytes = layout_of(&geometry).frame_bytes();
        let frames_bytes = Frames::ram_needed(frame_bytes, FRAMES, false);
        let (frames, rest) = ram.split_at_mut(frames_bytes);
        let (clean, rest) = rest.split_at_mut(geometry.blocks.div_ceil(8) as usize);
        clean.fill(0);
        let (validity, victims, wear) = TABLE;
        Self {
            flash,
            medium,
            frames: Frames::new(frames, frame_bytes, FRAMES),
            blocks: Blocks::new(rest, &geometry, validity, victims, wear, block_pages),
            clean,
            identity: 0,
            sequence: 0,
            programs: 0,
            erases: 0,
            operations: 0,
            weak: None,
            levels_wear: true,
            levelled_at: 0,
            patrolled: 0,
            failures: 0,
            unmarked: false,
        }
    }

    pub fn geometry(&self) -> Geometry {
        self.flash.geometry()
    }

    fn layout(&self) -> PageLayout {
        layout_of(&self.geometry())
    }

    /// The page at `place` among the safe pages of `block`.
    pub fn page_at(&self, block: BlockNumber, place: u32) -> PageNumber {
        self.geometry().page_in(block, self.flash.capabilities().pairing.safe_page(place))
    }

    pub fn block_of(&self, page: PageNumber) -> BlockNumber {
        self.geometry().block_of(page)
    }

    pub fn is_clean(&self, block: BlockNumber) -> bool {
        self.clean[block.0 as usize / 8] >> (block.0 % 8) & 1 == 1
    }

    pub fn set_clean(&mut self, block: BlockNumber, to: bool) {
        let (byte, bit) = (&mut self.clean[block.0 as usize / 8], 1 << (block.0 % 8));
        *byte = if to { *byte | bit } else { *byte & !bit };
    }

    /// The settings in the page that `frame` holds.
    pub fn medium_in(&self, frame: usize) -> Medium {
        self.layout().medium(self.frames.bytes(frame))
    }

    /// Reads a page into a page buffer.
    pub fn read(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<Result<PageHeader, PageFault>, Fault<F::Error>> {
        let layout = self.layout();
        for _ in 0..READS_MAX {
            self.operations = self.operations.wrapping_add(1);
            let (main, spare) = self.frames.bytes_mut(frame).split_at_mut(layout.page_bytes());
            match self.flash.read(page, main, spare) {
                Ok(reading) => {
                    if reading == Reading::Corrected && self.blocks.is_valid(page) {
                        self.weak = Some(page);
                    }
                    let (flash, bytes) = (&mut self.flash, self.frames.bytes(frame));
                    let mut sum = |pieces: &[&[u8]]| flash.checksum(pieces);
                    let checked = layout.check_as(bytes, true, &mut sum);
                    return Ok(checked.map(|()| layout.header(bytes)));
                }
                Err(error) if error.kind() == ErrorKind::Uncorrectable => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Ok(Err(PageFault::Unreadable))
    }

    /// Seals the page in `frame` and programs it.
    ///
    /// If the program fails, gives the block up and returns `false`.
    pub fn program(
        &mut self,
        page: PageNumber,
        frame: usize,
        label: Label,
    ) -> Result<bool, Fault<F::Error>> {
        let erase_count = self.blocks.erase_count(self.block_of(page));
        self.program_with(page, frame, label, erase_count)
    }

    /// The same with another number where a header has the erase count.
    pub fn program_with(
        &mut self,
        page: PageNumber,
        frame: usize,
        Label { lowest, height, records }: Label,
        erase_count: u32,
    ) -> Result<bool, Fault<F::Error>> {
        self.sequence += 1;
        let header = PageHeader {
            identity: self.identity,
            sequence: self.sequence,
            lowest,
            height,
            erase_count,
            records,
            settling: false,
            tag: 0,
        };
        let layout = self.layout();
        let (flash, bytes) = (&mut self.flash, self.frames.bytes_mut(frame));
        let mut sum = |pieces: &[&[u8]]| flash.checksum(pieces);
        layout.seal_as(bytes, &self.medium, &header, self.medium.appended, &mut sum);
        let (main, spare) = bytes.split_at(layout.page_bytes());
        let programmed = self.flash.program(page, main, spare);
        self.programmed(page, programmed)
    }

    /// Programs the main data of a page as it is in `frame`, or `bytes` of it into a programmed
    /// page.
    ///
    /// With `bytes` these are the first of the frame, and go to the position that is given. If the
    /// program fails, gives the block up and returns `false`.
    pub fn program_bytes(
        &mut self,
        page: PageNumber,
        frame: usize,
        again: Option<(usize, u32)>,
    ) -> Result<bool, Fault<F::Error>> {
        let page_bytes = self.layout().page_bytes();
        let main = &self.frames.bytes(frame)[..page_bytes];
        let programmed = match again {
            None => self.flash.program(page, main, &[]),
            Some((bytes, at)) => self.flash.overwrite(page, at, &main[..bytes]),
        };
        self.programmed(page, programmed)
    }

    /// Counts a program, and gives the block up if it failed.
    fn programmed(
        &mut self,
        page: PageNumber,
        programmed: Result<(), F::Error>,
    ) -> Result<bool, Fault<F::Error>> {
        let block = self.block_of(page);
        self.set_clean(block, false);
        self.operations = self.operations.wrapping_add(1);
        match programmed {
            Ok(()) => {
                self.failures = 0;
                self.programs += 1;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::ProgramFailed && self.may_fail() => {
                self.give_up(block);
                Ok(false)
            }
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// Erases a block without pages that count.
    ///
    /// If the erase fails, gives the block up and returns `false`.
    pub fn erase(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        debug_assert!(self.blocks.valid_in(block) == 0 && !self.blocks.is_bad(block));
        self.blocks.note_erase(block, self.blocks.erase_count(block).saturating_add(1));
        self.set_clean(block, false);
        self.operations = self.operations.wrapping_add(1);
        self.erases += 1;
        match self.flash.erase(block) {
            Ok(()) => {
                self.set_clean(block, true);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::EraseFailed && self.may_fail() => {
                covered!("media: an erase fails");
                self.give_up(block);
                Ok(false)
            }
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// Gives the free block that was erased least a role, and erases it if it is not.
    pub fn open(&mut self) -> Result<BlockNumber, Fault<F::Error>> {
        while let Some(block) = self.blocks.next_free(None, &[]) {
            if self.is_clean(block) || self.erase(block)? {
                self.blocks.set_reserved(block, true);
                return Ok(block);
            }
        }
        let bad_blocks = self.blocks.bad_blocks();
        let spared = self.flash.capabilities().bad_blocks_max(self.geometry().blocks);
        Err(if bad_blocks > spared {
            Fault::WornOut { bad_blocks }
        } else {
            Fault::NoRoom { limit_pages: 0 }
        })
    }

    /// Ends the role of a block without pages that count, and erases it.
    ///
    /// So no stale pages remain that a mount would have to compare with others. (On a damaged chip
    /// the block may hold pages of two roles: then it is left as it is.)
    pub fn free(&mut self, block: BlockNumber) -> Result<(), Fault<F::Error>> {
        self.blocks.set_reserved(block, false);
        if self.blocks.is_empty(block) && !self.is_clean(block) {
            self.erase(block)?;
        }
        self.mark_bad_blocks()
    }

    /// Erases every block that is not bad, `last` after all others.
    pub fn erase_all(&mut self, last: Option<BlockNumber>) -> Result<(), Fault<F::Error>> {
        let others = self.blocks.all().filter(|&block| Some(block) != last);
        for block in others.chain(last) {
            if !self.blocks.is_bad(block) {
                self.erase(block)?;
            }
        }
        self.mark_bad_blocks()
    }

    /// A block with a weak page, or one whose cold data makes the others wear out.
    pub fn due(&mut self) -> Option<BlockNumber> {
        let weak = self.weak.take();
        let weak = weak.filter(|&page| self.blocks.is_valid(page));
        let is_due = self.erases >= self.levelled_at + LEVEL_EVERY;
        match weak {
            Some(page) => Some(self.block_of(page)),
            None if is_due && self.levels_wear => {
                self.levelled_at = self.erases;
                self.blocks.rested(None, self.sequence as u32)
            }
            None => None,
        }
    }

    /// Reads pages that count into page buffer 1, until one is weak.
    ///
    /// It begins where the last call ended.
    pub fn patrol(&mut self, reads: u32) -> Result<(), Fault<F::Error>> {
        let pages = self.geometry().pages();
        let mut left = reads.min(self.blocks.valid_pages());
        if !self.flash.reports_corrections() {
            return Ok(());
        }
        for _ in 0..pages {
            if left == 0 || self.weak.is_some() {
                break;
            }
            self.patrolled = (self.patrolled + 1) % pages;
            let page = PageNumber(self.patrolled);
            if self.blocks.is_valid(page) {
                left -= 1;
                // One that cannot be read is found by whoever needs it.
                let _ = self.read(page, 1)?;
            }
        }
        Ok(())
    }

    /// Finds the newest page of the first ones of each block, and the erase counts.
    ///
    /// Returns its header and settings. `block_pages` is how many pages of a block are used,
    /// `has_count` says whether a header has the erase count of its block. Marks in `clean` the
    /// blocks whose header `is_marked` chooses.
    pub fn survey(
        &mut self,
        block_pages: u32,
        has_count: impl Fn(&PageHeader) -> bool,
        is_marked: impl Fn(&PageHeader) -> bool,
    ) -> Result<Option<(PageHeader, Medium)>, Fault<F::Error>> {
        let mut newest: Option<(PageHeader, Medium)> = None;
        for block in self.blocks.all() {
            for place in 0..(1 + LOST_MAX).min(block_pages) {
                let page = self.page_at(block, place);
                let Ok(header) = self.read(page, 1)? else { continue };
                if has_count(&header) {
                    self.blocks.set_erase_count(block, header.erase_count);
                }
                self.set_clean(block, is_marked(&header));
                if newest.is_none_or(|(newest, _)| newest.sequence < header.sequence) {
                    newest = Some((header, self.medium_in(1)));
                }
                break;
            }
        }
        Ok(newest)
    }

    /// Marks the blocks as bad that the chip reports as bad.
    pub fn find_bad_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        for block in self.blocks.all() {
            if self.flash.is_bad(block).map_err(Fault::Device)? {
                self.blocks.set_bad(block);
            }
        }
        Ok(())
    }

    /// Whether a block was given up that the chip has not marked.
    pub fn is_unmarked(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        Ok(self.blocks.is_bad(block) && !self.flash.is_bad(block).map_err(Fault::Device)?)
    }

    /// Asks the chip to mark the blocks that were given up and hold nothing.
    pub fn mark_bad_blocks(&mut self) -> Result<(), Fault<F::Error>> {
        if !self.unmarked {
            return Ok(());
        }
        // A device that gives up half way leaves blocks to be marked.
        let mut left = false;
        for block in self.blocks.all() {
            if !self.blocks.is_bad(block) || self.flash.is_bad(block).map_err(Fault::Device)? {
                continue;
            }
            if self.blocks.valid_in(block) > 0 {
                covered!("media: a block that failed holds pages that count");
                left = true;
                continue;
            }
            self.operations = self.operations.wrapping_add(1);
            match self.flash.mark_bad(block) {
                Ok(()) => {}
                Err(error) if error.kind() != ErrorKind::Other => {
                    // The block fails again after the next mount.
                    covered!("media: a block cannot be marked as bad");
                }
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        self.unmarked = left;
        Ok(())
    }

    /// Whether a failure may be blamed on its block, and not on the path to the chip.
    fn may_fail(&mut self) -> bool {
        self.failures += 1;
        self.failures <= FAILURES_MIN.max(self.geometry().blocks / 4)
    }

    fn give_up(&mut self, block: BlockNumber) {
        self.blocks.set_bad(block);
        self.unmarked = true;
    }
}
