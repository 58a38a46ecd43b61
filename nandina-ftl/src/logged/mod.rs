//! FTLs whose blocks hold pages, and log records of their changes behind them.
//!
//! After Lee and Moon (*Design of Flash-Based DBMS: An In-Page Logging Approach*, 2007) and Na, Lee
//! and Moon (*Dynamic In-Page Logging for B⁺-tree Index*, 2012). A write that changes little of a
//! page programs a *sector*, a quarter of a page, in the block of that page. A B-tree above it is
//! their IPL or dIPL B-tree: one mechanism, which knows nothing of trees.
//!
//! # Blocks
//!
//! The pages of a block are programmed one after another. Each is the *base page* of a logical
//! page, or a *log page* of up to four sectors. A record has the difference of a logical page from
//! its base page. A page that is new is programmed as a whole; so is one whose difference does not
//! fit in a sector, but only in dIPL. If the block has no room for what is to be programmed, its
//! pages are *merged* with their records into a free block, and it is erased.
//!
//! - [`Scheme::Ipl`]: a sixteenth of a block, 4 pages of 64, are its log pages, the others its base
//!   pages. Logical pages of so many numbers in a row share a block.
//! - [`Scheme::Dipl`]: both take the pages of a block as they come. A new logical page goes where
//!   the host was last: a node that a tree divides stays beside its other half, as a *ghost* until
//!   the next merge. A merge divides a block with pages in more than three quarters of it.
//!
//! Blocks that were begun before a mount are read, and never written on: what comes next in them
//! may have been programmed when power was cut, and be invisible. The first change of a page in
//! such a block merges it.
//!
//! # What is promised
//!
//! - A write or a trim that returned `Ok` stays; of one that did not, each page is old or new.
//! - What was read once stays until it is written again.
//! - A page that cannot be read any more is an error that names a page, also after it was merged,
//!   as long as no mount comes in between. A mount cannot know what a faded page held: a logical
//!   page without a record reads as it was before, or as a hole, and the block counts as
//!   unexplained.
//! - A block whose program or erase fails is merged into another one, and marked as bad.
//! - The free block that was erased least is opened, and a block that was erased nine times less
//!   than another one is merged, at most one for four erases.
//!
//! # Chips
//!
//! Some bytes of a page must be programmable after the page, at least once ([`FtlError::Chip`]
//! refuses others): NAND with two programs a page or more, or NOR. Where pages are programmed in
//! order, only the last page of a block takes more sectors: what a log page has left is lost if a
//! base page follows.
//!
//! ```
//! use nandina::flash::profile::NAND_2K;
//! use nandina_ftl::LogicalPages;
//! use nandina_ftl::logged::{Logged, Scheme, logical_pages_max, ram_needed};
//! use nandina_sim::Chip;
//!
//! let profile = NAND_2K.with_blocks(16);
//! let pages = logical_pages_max(&profile.geometry, &profile.capabilities, Scheme::Dipl);
//! let mut ram = vec![0; ram_needed(&profile.geometry, pages)];
//! let mut chip = Chip::new(profile);
//! let mut ftl = Logged::format(&mut chip, Scheme::Dipl, pages, &mut ram)?;
//! let mut page = vec![0; ftl.page_bytes()];
//! ftl.write(7, &page)?;
//! for at in 0..100 {
//!     page[20 * at] = 1;
//!     ftl.write(7, &page)?;
//! }
//! // A sector each, until a difference takes more than a sector; then a page.
//! assert!(ftl.merges().records > 95);
//!
//! // Power may fail at any instant: what returned Ok is still there.
//! let mut ftl = Logged::open(&mut chip, Scheme::Dipl, pages, &mut ram)?;
//! let mut found = vec![0; ftl.page_bytes()];
//! assert!(ftl.read(7, &mut found)?);
//! assert_eq!(found, page);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod difference;
mod maps;
mod merge;
mod mount;
mod sector;
mod settle;
mod size;
mod worst;
mod write;

pub use size::{NEEDS, blocks_needed, logical_pages_max, map_bytes, ram_needed};
pub use worst::write_cost;

use core::ops::Range;

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::node::PageFault;
use nandina::{Damage, Fault, Idle, covered};

use crate::ftl::error::damage_of;
use crate::ftl::{FtlError, logical_page_bytes};
use crate::hybrid::label::{Cause, Kind};
use crate::hybrid::media::{self, Media, medium_of};
use crate::logical::{LogicalPages, Statistics};
use maps::{Home, Maps};
use sector::{HEAD, Record, Sectors};

/// The page buffers: what is read or written, and a log page.
const OUT: usize = 0;
const LOG: usize = 1;

/// No block, where a merge names the one that it replaces.
const NO_BLOCK: u32 = u32::MAX;

/// How the pages of a block are shared between pages and their log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A sixteenth of the block is its log.
    Ipl,
    /// Pages and log pages take the pages of the block as they come.
    Dipl,
}

impl Scheme {
    const fn system(self) -> u8 {
        match self {
            Self::Ipl => 71,
            Self::Dipl => 72,
        }
    }

    /// Log pages of a block.
    const fn logs_max(self, block_pages: u32) -> u32 {
        match self {
            Self::Ipl if block_pages < 32 => 1,
            Self::Ipl => block_pages / 16,
            Self::Dipl => block_pages,
        }
    }

    /// Base pages of a block.
    const fn pages_max(self, block_pages: u32) -> u32 {
        match self {
            Self::Ipl => block_pages - self.logs_max(block_pages),
            Self::Dipl => block_pages,
        }
    }

    /// Logical pages that a merge leaves in a block.
    const fn pages_in(self, block_pages: u32) -> u32 {
        match self {
            Self::Ipl => self.pages_max(block_pages),
            Self::Dipl => block_pages * 3 / 4,
        }
    }
}

/// Work of an FTL with logs since it was formatted or opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogMerges {
    /// Blocks that were merged.
    pub blocks: u64,
    /// Of these, blocks that were divided.
    pub divisions: u64,
    /// Records that were programmed.
    pub records: u64,
}

/// What a read of a logical page has found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// It is in page buffer 0.
    Page,
    Damaged(PageNumber, Damage),
}

/// Logical pages on a chip, with log records in their blocks.
///
/// Every operation that fails half way is treated as a cut: the next one mounts again.
pub struct Logged<'b, F> {
    media: Media<'b, F>,
    maps: Maps<'b>,
    /// A base page while a record is applied to it.
    base: &'b mut [u8],
    scheme: Scheme,
    sectors: Sectors,
    logical_pages: u32,
    block_pages: u32,
    /// Whether pages of a block are programmed in order.
    in_order: bool,
    /// The page that says what the chip is.
    marker: Option<PageNumber>,
    /// The block that the newest merge had replaced at the last mount, until it is erased.
    replaced: u32,
    /// Whether no torn page is left that could be read.
    settled: bool,
    /// Whether an operation failed half way: RAM may differ from the chip.
    in_doubt: bool,
    /// The logical page that the host used last.
    recent: Option<u32>,
    statistics: Statistics,
    merges: LogMerges,
}

impl<'b, F: Flash> Logged<'b, F> {
    /// Makes an FTL without any page on the chip, whatever the chip holds.
    ///
    /// `ram` has at least [`ram_needed`] bytes. Refuses chips that cannot program sectors, and with
    /// [`FtlError::TooFewSpareBlocks`] more logical pages than [`logical_pages_max`]. If a format
    /// is cut, format again: a later [`open`](Self::open) finds the former FTL, or refuses.
    ///
    /// Cost: a mount, an erase of every block and a program or two.
    pub fn format(
        flash: F,
        scheme: Scheme,
        logical_pages: u32,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        let mut ftl = Self::new(flash, scheme, logical_pages, ram)?;
        let mut retired = ftl.mount();
        let mut last = None;
        if retired.is_ok() {
            // From here on the former FTL is not opened any more, however many blocks are erased.
            retired = ftl.settle().map_err(FtlError::from).and_then(|()| {
                last = Some(ftl.put_own(Kind::Retired)?);
                Ok(())
            });
        }
        if let Err(FtlError::Device(error)) = retired {
            return Err(FtlError::Device(error));
        }
        // So the block that says so comes last.
        let last = last.map(|page| ftl.media.block_of(page));
        ftl.forget_all();
        ftl.media.erase_all(last)?;
        ftl.media.identity = ftl.media.identity.wrapping_add(1);
        ftl.marker = Some(ftl.put_own(Kind::Own)?);
        (ftl.settled, ftl.in_doubt) = (true, false);
        (ftl.statistics, ftl.merges) = (Statistics::default(), LogMerges::default());
        (ftl.media.programs, ftl.media.erases) = (0, 0);
        Ok(ftl)
    }

    /// Opens the FTL on a chip: reads all pages of written blocks, and writes nothing.
    ///
    /// The arguments are those of [`format`](Self::format). More logical pages than before are
    /// fine, as long as the chip has enough spare blocks; another scheme is refused.
    ///
    /// Cost: for each block at most three reads; for each page of a written block one, or two if
    /// pages are not programmed in order; for each copy of a merge one more; for what was
    /// programmed last 24, at most a block of them; and all of it again for each torn page.
    pub fn open(
        flash: F,
        scheme: Scheme,
        logical_pages: u32,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        let mut ftl = Self::new(flash, scheme, logical_pages, ram)?;
        ftl.mount()?;
        Ok(ftl)
    }

    fn new(
        flash: F,
        scheme: Scheme,
        logical_pages: u32,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        let (geometry, capabilities) = (flash.geometry(), flash.capabilities());
        let sectors = size::sectors(&geometry, &capabilities)?;
        let most = logical_pages_max(&geometry, &capabilities, scheme);
        if logical_pages > most || logical_pages == 0 {
            let blocks_needed =
                blocks_needed(&geometry, &capabilities, scheme, logical_pages.max(1));
            return Err(FtlError::TooFewSpareBlocks { logical_pages_max: most, blocks_needed });
        }
        let needed = ram_needed(&geometry, logical_pages);
        if ram.len() < needed {
            return Err(FtlError::RamTooSmall { needed, given: ram.len() });
        }
        let block_pages = size::block_pages(&geometry, &capabilities);
        let (media, rest) = ram[..needed].split_at_mut(media::ram_needed(&geometry));
        let (base, maps) = rest.split_at_mut(logical_page_bytes(&geometry));
        let medium = medium_of(scheme.system(), &geometry, (0, 0));
        Ok(Self {
            media: Media::new(flash, medium, block_pages, media),
            maps: Maps::new(maps, logical_pages),
            base,
            scheme,
            sectors,
            logical_pages,
            block_pages,
            in_order: capabilities.in_order,
            marker: None,
            replaced: NO_BLOCK,
            settled: false,
            in_doubt: true,
            recent: None,
            statistics: Statistics::default(),
            merges: LogMerges::default(),
        })
    }

    /// Merges and records since it was formatted or opened.
    pub const fn merges(&self) -> LogMerges {
        self.merges
    }

    /// Sets whether blocks with cold data are merged, so that all wear alike. Default: they are.
    ///
    /// Without, counts are those of the design alone, and the chip wears unevenly.
    pub const fn set_wear_levelling(&mut self, to: bool) {
        self.media.levels_wear = to;
    }

    /// The chip.
    pub const fn flash(&self) -> &F {
        &self.media.flash
    }

    /// Returns the chip and ends nothing, as if power were cut.
    pub fn into_flash(self) -> F {
        self.media.flash
    }

    /// Programs a page about the FTL itself, the first of its block.
    fn put_own(&mut self, kind: Kind) -> Result<PageNumber, Fault<F::Error>> {
        loop {
            let block = self.media.open()?;
            let page = self.media.page_at(block, 0);
            self.media.frames.bytes_mut(OUT).fill(0);
            if self.media.program(page, OUT, kind.label(Cause::IN_PLACE))? {
                self.media.blocks.set_valid(page, true);
                return Ok(page);
            }
            covered!("logged: the program of the page that says what the chip is fails");
            self.media.free(block)?;
        }
    }

    /// The block that a logical page is in, also as a hole.
    fn block_of(&self, logical: u32) -> Option<BlockNumber> {
        self.maps.home(logical).map(|home| self.media.block_of(PageNumber(home.page)))
    }

    /// Notes where a logical page is.
    fn put_home(&mut self, logical: u32, home: Option<Home>) {
        if let Some(block) = self.block_of(logical) {
            let row = self.maps.row(block.0);
            let held = row.held.saturating_sub(1);
            self.maps.set_row(block.0, maps::Row { held, ..row });
        }
        self.maps.set_home(logical, home);
        if let Some(block) = self.block_of(logical) {
            let row = self.maps.row(block.0);
            self.maps.set_row(block.0, maps::Row { held: row.held + 1, ..row });
        }
    }

    /// Logical pages that can be in the block of this one.
    fn candidates(&self, logical: Option<u32>) -> Range<u32> {
        match (self.scheme, logical) {
            (Scheme::Ipl, Some(logical)) => {
                let group = self.scheme.pages_max(self.block_pages);
                let first = logical / group * group;
                first..(first + group).min(self.logical_pages)
            }
            _ => 0..self.logical_pages,
        }
    }

    /// Reads a record of a block; its page is in page buffer 1 then.
    fn read_record(
        &mut self,
        block: BlockNumber,
        number: u16,
    ) -> Result<Option<Record>, Fault<F::Error>> {
        let count = self.sectors.count;
        let page = self.media.page_at(block, u32::from(number) / count);
        if self.media.read(page, LOG)? == Err(PageFault::Unreadable) {
            return Ok(None);
        }
        Ok(self.record_in(page, u32::from(number) % count))
    }

    /// Reads a logical page into page buffer 0.
    fn fetch(&mut self, logical: u32) -> Result<Found, Fault<F::Error>> {
        let Some(home) = self.maps.home(logical).filter(|home| !home.is_hole) else {
            return Ok(Found::Nothing);
        };
        let page = PageNumber(home.page);
        match self.media.read(page, OUT)?.map(|header| Kind::of(&header).0) {
            Ok(Kind::Data(found)) if found == logical => {}
            Ok(Kind::Lost(found)) if found == logical => {
                return Ok(Found::Damaged(page, Damage::Uncorrectable));
            }
            Ok(_) => return Ok(Found::Damaged(page, Damage::OtherIndex)),
            Err(fault) => return Ok(Found::Damaged(page, damage_of(fault))),
        }
        let Some(number) = home.record else { return Ok(Found::Page) };
        let bytes = self.page_bytes();
        self.base.copy_from_slice(&self.media.frames.bytes(OUT)[..bytes]);
        let block = self.media.block_of(page);
        let record = self.read_record(block, number)?;
        let change = record.filter(|record| record.logical == logical);
        let log_page = self.media.page_at(block, u32::from(number) / self.sectors.count);
        let Some(length) = change.and_then(|record| record.change) else {
            return Ok(Found::Damaged(log_page, Damage::Checksum));
        };
        let at = self.sectors.range(u32::from(number) % self.sectors.count).start + HEAD;
        let (out, log) = self.media.frames.pair(OUT, LOG);
        if difference::apply(self.base, &log[at..at + length], &mut out[..bytes]) {
            Ok(Found::Page)
        } else {
            Ok(Found::Damaged(log_page, Damage::OtherIndex))
        }
    }

    fn expect_page(&self, given: usize) -> Result<(), FtlError<F::Error>> {
        FtlError::expect_page(self.page_bytes(), given)
    }

    fn expect_inside(&self, logical: u32, count: u32) -> Result<(), FtlError<F::Error>> {
        FtlError::expect_inside(self.logical_pages, logical, count)
    }

    fn mount_if_in_doubt(&mut self) -> Result<(), FtlError<F::Error>> {
        if self.in_doubt { self.mount() } else { Ok(()) }
    }

    /// Runs a change. If it fails half way, the next operation mounts again.
    fn change(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), Fault<F::Error>>,
    ) -> Result<(), FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        self.settle()?;
        self.in_doubt = true;
        work(self)?;
        self.maintain()?;
        self.in_doubt = false;
        Ok(())
    }

    /// Merges a block with a weak page, or one whose cold data makes the others wear out.
    fn maintain(&mut self) -> Result<(), Fault<F::Error>> {
        let Some(block) = self.media.due() else { return Ok(()) };
        let is_marker = self.marker.is_some_and(|page| self.media.block_of(page) == block);
        if is_marker && self.maps.row(block.0).held == 0 {
            covered!("logged: the page that says what the chip is moves");
            self.marker = Some(self.put_own(Kind::Own)?);
            self.statistics.own += 1;
            self.forget_block(block);
            return self.media.free(block);
        }
        self.merge(block, None)
    }
}

impl<F: Flash> LogicalPages for Logged<'_, F> {
    type Error = FtlError<F::Error>;

    fn logical_pages(&self) -> u32 {
        self.logical_pages
    }

    fn page_bytes(&self) -> usize {
        logical_page_bytes(&self.media.geometry())
    }

    /// Cost: one read, or two if there is a record.
    fn read(&mut self, logical: u32, bytes: &mut [u8]) -> Result<bool, Self::Error> {
        self.expect_page(bytes.len())?;
        self.expect_inside(logical, 1)?;
        self.mount_if_in_doubt()?;
        bytes.fill(0xFF);
        match self.fetch(logical)? {
            Found::Nothing => Ok(false),
            Found::Page => {
                self.recent = Some(logical);
                bytes.copy_from_slice(&self.media.frames.bytes(OUT)[..bytes.len()]);
                Ok(true)
            }
            Found::Damaged(page, reason) => Err(FtlError::Corrupt { page, reason }),
        }
    }

    /// Cost: a read and one program; or a merge, which reads and programs the pages of a block and
    /// erases one, and the same again if a block is merged because it is worn little or weak.
    fn write(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        self.expect_page(bytes.len())?;
        self.expect_inside(logical, 1)?;
        self.change(|this| {
            this.put(logical, bytes)?;
            this.statistics.host_writes += 1;
            this.recent = Some(logical);
            Ok(())
        })
    }

    /// Cost: a program for each page that holds something, or a merge.
    fn trim(&mut self, logical: u32, count: u32) -> Result<(), Self::Error> {
        self.expect_inside(logical, count)?;
        self.mount_if_in_doubt()?;
        for logical in logical..logical + count {
            let holds = |this: &Self| this.maps.home(logical).is_some_and(|home| !home.is_hole);
            if !holds(self) {
                continue;
            }
            self.change(|this| {
                if holds(this) {
                    this.make_hole(logical)?;
                    this.statistics.host_trims += 1;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Reads pages in turn, and merges the block of one that can hardly be read.
    ///
    /// That waits for a budget of four operations for each page of a block and eight more, or for
    /// the next write.
    fn idle(&mut self, budget: u32) -> Result<Idle, Self::Error> {
        self.mount_if_in_doubt()?;
        let before = self.media.operations;
        if self.media.weak.is_none() {
            self.media.patrol(budget)?;
        }
        let used = self.media.operations.wrapping_sub(before);
        self.media.weak = self.media.weak.filter(|&page| self.media.blocks.is_valid(page));
        if self.media.weak.is_some() && self.idle_least() <= budget.saturating_sub(used) {
            self.change(|_| Ok(()))?;
        }
        let operations = self.media.operations.wrapping_sub(before);
        Ok(Idle { operations, more: self.media.weak.is_some(), left_to_change: false })
    }

    fn idle_least(&self) -> u32 {
        4 * self.block_pages + 8
    }

    fn statistics(&self) -> Statistics {
        let (programmed, erases) = (self.media.programs, self.media.erases);
        Statistics { programmed, erases, ..self.statistics }
    }
}
