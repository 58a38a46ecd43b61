//! Hybrid FTLs: data blocks by a block map, and log blocks by a map of their pages.
//!
//! One engine, and a policy each: [`Block`] has no log blocks, those of [`Bast`] belong to one
//! logical block each, those of [`Fast`] take any page. Their maps are far smaller than a page map
//! ([`map_bytes`]); what that costs are merges, which [`Merges`] counts by kind.
//!
//! [`Transit`] puts buffer blocks before any of them: pages are appended there first, and go down
//! in ascending order.
//!
//! # Blocks and their states
//!
//! The logical pages of a block's size are a *logical block*. A chip's block is
//! - *free*: erased as soon as it becomes free, so that a mount meets few stale pages;
//! - the *data block* of a logical block: each page at its offset, programmed in rising order.
//!   Eight data blocks at most are *open*: pages at or behind the next place go there directly;
//! - a *log block*: pages in the order of writes. A log block whose pages are those of a logical
//!   block from the first on is *sequential*;
//! - a *buffer block*: pages of the host in the order of writes, of one logical block or a few;
//! - the block with the pages about the FTL itself: suspects and trims.
//!
//! A write goes to its offset in an open data block. If the logical block has no page yet, a data
//! block is opened; if its first page is another than the first of the block, a page that holds
//! nothing takes the first place (one program more). Otherwise the policy chooses a log block. If
//! it has none left, one is merged (`merge.rs`) and erased. Blocks that were begun before a mount
//! are read, and never written on.
//!
//! # Versions and cuts
//!
//! The header of each page has its logical page, its kind, why it was programmed, a sequence number
//! that rises with every program, and a checksum. *The copy with the highest number counts,
//! wherever it is*, unless it is labelled as old. A merge copies only the copy that counts (what a
//! buffer supersedes it labels as old), and no write of the host comes in
//! between; so a copy may take a new number. After a cut
//! - in a write: its page is torn and the old one counts, or the new one does;
//! - in the copies of a full merge: none of them counts, because the last one is missing, which
//!   says so. All that they copy is still there: it is erased only after the last copy;
//! - in the copies of a partial merge: they count as what they are, copies of the newest pages, and
//!   the log block takes a full merge later;
//! - in an erase: what reads in the block now and then is older than what counts elsewhere;
//! - in a trim: its page is torn and the pages are as before, or all are holes.
//!
//! A torn page may read differently each time (rule 6 of the media contract). What a mount decides
//! about it, the first change makes durable (`settle.rs`).
//!
//! # The transit layer
//!
//! After Ho and Park (*WPCB-Tree*, 2018), sections 3.2 and 3.3: at most [`Buffer::blocks`] buffer
//! blocks, the least worn free ones, take all pages of the host. When the buffer block of a logical
//! block is full, or another one is needed and none is left (then the one with the fewest pages is
//! the victim), its newest pages are written to the FTL below in ascending order, and it is erased.
//! [`Buffer::as_printed`] is the paper's; [`Buffer::improved`] has all of its improvements, each a
//! field. A page is read once, from the buffer or below it.
//!
//! A mount rebuilds the Summary table by reading, and converts nothing. Buffer blocks that were
//! begun before it are converted when a page of their logical block is written, or as victims.
//! (The paper merges all at a mount: [`Hybrid::convert_all`].)
//!
//! ```
//! use nandina_ftl::LogicalPages;
//! use nandina_ftl::hybrid::{Block, Buffer, Hybrid, Transit, logical_pages_max};
//! use nandina_sim::{Chip, TINY};
//!
//! let policy = Transit { over: Block, buffer: Buffer::as_printed(2) };
//! let pages = logical_pages_max(&TINY.geometry, &TINY.capabilities, &policy);
//! let (mut chip, mut ram) = (Chip::new(TINY), [0; 2048]);
//! let mut ftl = Hybrid::format(&mut chip, policy, pages, &mut ram)?;
//! for logical in [0, 1, 1, 2, 3] {
//!     ftl.write(logical, &[7; 512])?;
//! }
//! // The first four filled a block; pages 0, 1 and 2 went down for page 3.
//! let done = ftl.conversions();
//! assert_eq!((done.blocks, done.appended, done.newest), (1, 4, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! - A write or a trim that returned `Ok` stays; of one that did not, each page is old or new.
//! - What was read once stays until it is written again.
//! - A page that cannot be read any more is an error that names a page, also after it was merged.
//!   In a buffer block that holds whatever comes between the damage and the merge, unless it is the
//!   last page of its block; elsewhere as long as no mount does.
//! - A block whose program or erase fails is emptied, and marked as bad.
//! - The free block that was erased least is opened, and a block that was erased nine times less
//!   than another one is emptied, at most one for four erases.
//!
//! What is not: a mount counts damage that no cut explains
//! ([`Statistics::unexplained_blocks`](crate::Statistics::unexplained_blocks)); an older copy may
//! count then, except where a page of a buffer block has faded. Of two of these in a row only the
//! second is known: every page of their group that may have been the first is an error until it is
//! written or trimmed. (The first is forgotten if all that can be read of its block was trimmed, or
//! converted in part when power failed.) Only idle steps look for pages that fade.
//!
//! ```
//! use nandina_ftl::LogicalPages;
//! use nandina_ftl::hybrid::{Fast, Hybrid, SequentialRule, logical_pages_max, ram_needed};
//! use nandina_sim::{Chip, TINY};
//!
//! let mut chip = Chip::new(TINY);
//! let policy = Fast { log_blocks: 2, sequential: SequentialRule::FirstPage };
//! let pages = logical_pages_max(&TINY.geometry, &TINY.capabilities, &policy);
//! let mut ram = [0; 2048];
//! assert!(ram_needed(&TINY.geometry, &TINY.capabilities, &policy, pages) <= ram.len());
//!
//! let mut ftl = Hybrid::format(&mut chip, policy, pages, &mut ram)?;
//! for at in 0..100u8 {
//!     ftl.write(u32::from(at) * 7 % pages, &[at; 512])?;
//! }
//! assert!(ftl.merges().full > 0);
//!
//! // Power may fail at any instant: what returned Ok is still there.
//! let mut ftl = Hybrid::open(&mut chip, policy, pages, &mut ram)?;
//! let mut page = [0; 512];
//! assert!(ftl.read(0, &mut page)?);
//! assert_eq!(page, [96; 512]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ages;
mod check;
mod faded;
pub(crate) mod label;
mod maps;
pub(crate) mod media;
mod merge;
mod mount;
mod place;
mod policy;
mod settle;
mod size;
mod transit;
mod trim;
mod worst;

pub use policy::{Bast, Block, Fast, Policy, SequentialRule};
pub use size::{blocks_needed, logical_pages_max, map_bytes, ram_needed, summary_bytes};
pub use transit::Transit;
pub use worst::{trim_writes, write_cost};

pub use crate::transit::{Buffer, BufferBlock, Conversions};

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::log::layout_of;
use nandina::{Damage, Fault, Idle};

use crate::ftl::bytes::Suspects;
use crate::ftl::error::damage_of;
use crate::ftl::{FtlError, logical_page_bytes};
use crate::logical::{LogicalPages, Statistics};
use crate::mapping::Extent;
use crate::transit::{GROUP_PAGES_MAX, State};
use label::Kind;
use maps::{Maps, NONE};
use media::{Media, medium_of};
use size::PAGE_BYTES_MIN;

/// Data blocks that can be written on at a time.
const OPEN: usize = 8;

/// Merges since the FTL was formatted or opened, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merges {
    /// A log block became the data block. Nothing was copied.
    pub switch: u64,
    /// The pages that a log block lacked were copied behind those that it had.
    pub partial: u64,
    /// A logical block was copied into a free block.
    ///
    /// A random log block takes one for each logical block of which it has pages that count.
    /// Settling, wear levelling and blocks that fail take full merges, too.
    pub full: u64,
    /// Of the partial merges, those of logical blocks of which a buffer block has pages that count.
    pub partial_buffered: u64,
    /// Of the full merges, those of such logical blocks. Most complete one for a conversion.
    pub full_buffered: u64,
}

/// A data block that may be written on.
#[derive(Clone, Copy)]
struct Open {
    block: u32,
    next: u32,
    /// The number of the page that was programmed last in it.
    used: u64,
}

impl Open {
    const NONE: Self = Self { block: NONE, next: NONE, used: 0 };
}

/// Logical pages on a chip, by a block map and log blocks.
///
/// Every operation that fails half way is treated as a cut: the next one mounts again.
pub struct Hybrid<'b, F, P> {
    media: Media<'b, F>,
    maps: Maps<'b>,
    /// The buffer blocks before it.
    transit: State<'b>,
    policy: P,
    logical_pages: u32,
    open: [Open; OPEN],
    /// After a mount, the data blocks that may have been open before it.
    recent: [Open; OPEN],
    /// The newest page about the FTL itself, and the place of the next one.
    own: Option<PageNumber>,
    own_next: u32,
    /// Blocks that may hold a torn page, as that page says.
    suspects: Suspects,
    /// The number of the newest page that the mount saw.
    newest: u64,
    /// Whether no torn page is left that could be read.
    settled: bool,
    /// Whether an operation failed half way: RAM may differ from the chip.
    in_doubt: bool,
    /// The logical page that the host wrote last.
    previous: Option<u32>,
    /// The buffer block and the logical block that a conversion was at last.
    converting: (u32, u32),
    statistics: Statistics,
    merges: Merges,
}

impl<'b, F: Flash, P: Policy> Hybrid<'b, F, P> {
    /// Makes an FTL without any page on the chip, whatever the chip holds.
    ///
    /// `ram` has at least [`ram_needed`] bytes. Refuses with [`FtlError::TooFewSpareBlocks`] if
    /// there are more logical pages than [`logical_pages_max`]. If a format is cut, format again: a
    /// later [`open`](Self::open) finds either the former FTL, or refuses.
    ///
    /// Cost: a mount, an erase of every block and a program or two.
    pub fn format(
        flash: F,
        policy: P,
        logical_pages: u32,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        let mut ftl = Self::new(flash, policy, logical_pages, ram)?;
        // From here on the former FTL is not opened any more, however many blocks are erased.
        let mut retired = ftl.mount();
        if retired.is_ok() {
            retired = ftl.retire_former();
        }
        if let Err(FtlError::Device(error)) = retired {
            return Err(FtlError::Device(error));
        }
        // So the block that says so comes last.
        let last = ftl.own.map(|page| ftl.media.block_of(page));
        ftl.forget_all();
        ftl.media.erase_all(last)?;
        ftl.media.identity = ftl.media.identity.wrapping_add(1);
        ftl.media.frames.bytes_mut(0).fill(0);
        ftl.own_next = ftl.block_pages();
        ftl.program_own(0)?;
        (ftl.settled, ftl.in_doubt) = (true, false);
        (ftl.statistics, ftl.merges) = (Statistics::default(), Merges::default());
        ftl.transit.conversions = Conversions::default();
        (ftl.media.programs, ftl.media.erases) = (0, 0);
        Ok(ftl)
    }

    /// Opens the FTL on a chip: reads all pages of written blocks, and writes nothing.
    ///
    /// The arguments are those of [`format`](Self::format). More logical pages than before are
    /// fine, as long as the chip has enough spare blocks; another policy, or another number of log
    /// blocks, is refused.
    ///
    /// Cost: for each block at most three reads, for each page of a written block one, for each
    /// page that has an older copy and for each trimmed page at most three more, and mostly none,
    /// for the newest page 24; and the reads of pages once more after a cut in a merge, or for each
    /// torn page.
    pub fn open(
        flash: F,
        policy: P,
        logical_pages: u32,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        let mut ftl = Self::new(flash, policy, logical_pages, ram)?;
        ftl.mount()?;
        Ok(ftl)
    }

    fn new(
        flash: F,
        policy: P,
        logical_pages: u32,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        let (geometry, capabilities) = (flash.geometry(), flash.capabilities());
        let (needed, given) = (P::LOG_BLOCKS_MIN, policy.log_blocks());
        if given < needed {
            return Err(FtlError::LogBlocks { needed, given });
        }
        let (given, most) = (geometry.pages_per_block, u16::MAX.into());
        if given > most {
            return Err(FtlError::TooLarge { most, given });
        }
        let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
        let most = logical_pages_max(&geometry, &capabilities, &policy);
        if logical_pages > most || block_pages == 0 || logical_pages == 0 {
            let blocks_needed =
                blocks_needed(&geometry, &capabilities, &policy, logical_pages.max(1));
            return Err(FtlError::TooFewSpareBlocks { logical_pages_max: most, blocks_needed });
        }
        let buffer = policy.buffer();
        if buffer.blocks > 0 && block_pages > GROUP_PAGES_MAX {
            return Err(FtlError::BufferPages { most: GROUP_PAGES_MAX, given: block_pages });
        }
        let layout = layout_of(&geometry);
        if layout.area_bytes() < PAGE_BYTES_MIN {
            let (needed, given) = (PAGE_BYTES_MIN, layout.area_bytes());
            return Err(FtlError::PagesTooSmall { needed, given });
        }
        let sizes = size::sizes_of(&geometry, &capabilities, &policy, logical_pages);
        let needed = ram_needed(&geometry, &capabilities, &policy, logical_pages);
        if ram.len() < needed {
            return Err(FtlError::RamTooSmall { needed, given: ram.len() });
        }
        let (media, rest) = ram[..needed].split_at_mut(media::ram_needed(&geometry));
        let (maps, summary) = rest.split_at_mut(sizes.bytes());
        let neighbours = buffer.neighbours_of(block_pages);
        let sizes_of_pages = (logical_pages, block_pages);
        let transit = State::new(summary, buffer, geometry.blocks, sizes_of_pages);
        let neighbours = if buffer.blocks > 0 { neighbours as u16 } else { 0 };
        let log_blocks = policy.log_blocks().min(u16::MAX.into()) as u16;
        let medium = medium_of(P::SYSTEM, &geometry, (neighbours, log_blocks));
        Ok(Self {
            media: Media::new(flash, medium, block_pages, media),
            maps: Maps::new(maps, sizes),
            transit,
            policy,
            logical_pages,
            open: [Open::NONE; OPEN],
            recent: [Open::NONE; OPEN],
            own: None,
            own_next: block_pages,
            suspects: Suspects::default(),
            newest: 0,
            settled: false,
            in_doubt: true,
            previous: None,
            converting: (NONE, NONE),
            statistics: Statistics::default(),
            merges: Merges::default(),
        })
    }

    /// Merges since it was formatted or opened, by kind.
    pub const fn merges(&self) -> Merges {
        self.merges
    }

    /// Sets whether blocks with cold data are emptied, so that all wear alike. Default: they are.
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

    /// Programs a page that says that nothing before it counts.
    fn retire_former(&mut self) -> Result<(), FtlError<F::Error>> {
        self.hold_leftovers()?;
        self.media.sequence = self.raised();
        self.media.frames.bytes_mut(0).fill(0);
        let page = self.append_own(Kind::Retired, 0)?;
        self.own = Some(page);
        Ok(self.erase_leftovers()?)
    }

    fn block_pages(&self) -> u32 {
        self.maps.sizes.block_pages
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

    /// Empties a weak block, or one whose cold data makes the others wear out.
    ///
    /// Returns whether there was one.
    fn maintain(&mut self) -> Result<bool, Fault<F::Error>> {
        let block = self.media.due();
        if let Some(block) = block {
            self.empty(block)?;
        }
        Ok(block.is_some())
    }

    /// The most chip operations that emptying a block takes, if none of them fails.
    ///
    /// Each merge reads a page up to three times and programs it, and erases up to four blocks.
    fn cost_to_empty(&self, block: BlockNumber) -> u32 {
        if let Some(at) = self.transit.summary.entry_of(block) {
            return self.cost_to_convert(at);
        }
        let is_log = self.maps.slot_of(block).is_some();
        let merges = if is_log { self.media.blocks.valid_in(block) } else { 1 };
        merges.saturating_mul(4 * self.block_pages() + 8)
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
        self.in_doubt = false;
        Ok(())
    }
}

impl<F: Flash, P: Policy> LogicalPages for Hybrid<'_, F, P> {
    type Error = FtlError<F::Error>;

    fn logical_pages(&self) -> u32 {
        self.logical_pages
    }

    fn page_bytes(&self) -> usize {
        logical_page_bytes(&self.media.geometry())
    }

    /// Cost: one read. (Where two pages in a row have faded in a buffer block, one for each page of
    /// that block too.)
    fn read(&mut self, logical: u32, bytes: &mut [u8]) -> Result<bool, Self::Error> {
        self.expect_page(bytes.len())?;
        self.expect_inside(logical, 1)?;
        self.mount_if_in_doubt()?;
        bytes.fill(0xFF);
        let found = self.find(logical);
        if let Some(page) = self.in_doubt_of(logical, found)? {
            return Err(FtlError::Corrupt { page, reason: Damage::Uncorrectable });
        }
        let Some(page) = found else { return Ok(false) };
        match self.media.read(page, 0)?.map(|header| Kind::of(&header).0) {
            Ok(Kind::Data(found)) if found == logical => {
                bytes.copy_from_slice(&self.media.frames.bytes(0)[..bytes.len()]);
                Ok(true)
            }
            Ok(Kind::Hole(found)) if found == logical => Ok(false),
            Ok(Kind::Lost(found)) if found == logical => {
                Err(FtlError::Corrupt { page, reason: Damage::Uncorrectable })
            }
            Ok(_) => Err(FtlError::Corrupt { page, reason: Damage::OtherIndex }),
            Err(fault) => Err(FtlError::Corrupt { page, reason: damage_of(fault) }),
        }
    }

    /// Cost: one program, and what merges take.
    ///
    /// In [`Fast`] they are at most one for each page of a block, in the others one; and the same
    /// again if a block is emptied because it is worn little or one of its pages is weak. With
    /// buffer blocks a conversion writes at most a block of pages, and merges follow from it.
    /// [`write_cost`] has the most of each, before there is an FTL.
    fn write(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        self.expect_page(bytes.len())?;
        self.write_pages(logical, bytes)
    }

    /// Cost: that of a [`write`](Self::write) of each. A run that the buffer would only delay passes
    /// it, as [`Buffer::passes_from`] says.
    fn write_pages(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        let each = self.page_bytes();
        let count = (bytes.len() / each) as u32;
        if bytes.is_empty() {
            return Ok(());
        }
        if !bytes.len().is_multiple_of(each) {
            return self.expect_page(bytes.len());
        }
        self.expect_inside(logical, count)?;
        self.transit.note_run(Extent::new(logical, count));
        for (logical, page) in (logical..).zip(bytes.chunks_exact(each)) {
            self.change(|this| {
                if this.policy.buffer().blocks > 0 {
                    this.write_buffered(logical, page)?;
                } else {
                    this.media.frames.bytes_mut(0)[..each].copy_from_slice(page);
                    this.put(logical, Kind::Data(logical))?;
                    this.previous = Some(logical);
                }
                this.statistics.host_writes += 1;
                this.maintain().map(drop)
            })?;
        }
        Ok(())
    }

    fn trim(&mut self, logical: u32, count: u32) -> Result<(), Self::Error> {
        Self::trim(self, logical, count)
    }

    /// Converts buffer blocks, reads pages in turn, and merges those that can hardly be read.
    ///
    /// A weak page waits for the next write, or for a budget that the merges suffice with that it
    /// takes: four operations for each page of a block and eight more, in a log block for each page
    /// that counts. Buffer blocks are converted ahead of need as [`Buffer::ahead`] says, in steps of
    /// at most eight operations for each page of a block and 24 more; a budget below that converts
    /// nothing. For these steps it settles after a cut, which is not counted. Once none is due, the
    /// next [`Buffer::RESTED_WRITES`] page writes convert none.
    fn idle(&mut self, budget: u32) -> Result<Idle, Self::Error> {
        self.mount_if_in_doubt()?;
        let mut before = self.media.operations;
        while let Some(at) = self.transit.due_ahead() {
            if !self.settled {
                let used = self.media.operations;
                self.change(|_| Ok(()))?;
                before = before.wrapping_add(self.media.operations.wrapping_sub(used));
                continue;
            }
            let used = self.media.operations.wrapping_sub(before);
            if self.cost_of_step(at) > budget.saturating_sub(used) {
                break;
            }
            self.change(Self::step_ahead)?;
        }
        if self.media.weak.is_none() {
            let used = self.media.operations.wrapping_sub(before);
            self.media.patrol(budget.saturating_sub(used))?;
        }
        let used = self.media.operations.wrapping_sub(before);
        // It may be written elsewhere, or be trimmed, by now.
        self.media.weak = self.media.weak.filter(|&page| self.media.blocks.is_valid(page));
        let weak = self.media.weak.map(|page| self.media.block_of(page));
        let cost = weak.map_or(0, |block| self.cost_to_empty(block));
        if weak.is_some() && cost <= budget.saturating_sub(used) {
            self.change(|this| this.maintain().map(drop))?;
        }
        let operations = self.media.operations.wrapping_sub(before);
        let is_due = self.transit.due_ahead().is_some();
        if !is_due {
            self.transit.note_rest();
        }
        let more = self.media.weak.is_some() || is_due;
        Ok(Idle { operations, more, left_to_change: false })
    }

    fn idle_least(&self) -> u32 {
        self.step_cost()
    }

    fn statistics(&self) -> Statistics {
        let (programmed, erases) = (self.media.programs, self.media.erases);
        Statistics { programmed, erases, ..self.statistics }
    }
}
