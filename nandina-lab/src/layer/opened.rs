//! An FTL on a simulated chip, as the device of an index.
//!
//! The FTL borrows its memory from a [`Room`], and ends with the session: what it kept in RAM is
//! lost then, as in a cut.

use nandina::flash::{Flash, Profile};
use nandina_ftl::ftl::{Choices, Disk, Ftl, FtlError, Unsound, space_of};
use nandina_ftl::hybrid::{Bast, Block, Conversions, Fast, Hybrid, Merges, Transit, map_bytes};
use nandina_ftl::logged::{self, LogMerges, Logged};
use nandina_ftl::mapping::Mapping;
use nandina_ftl::{LogicalPages, Statistics};
use nandina_sim::{Chip, ChipError};

use super::{Bus, FtlWork, Kind, Layer, Size, with_kind};

/// Memory of an FTL. Its content never outlives a session.
#[derive(Clone, Debug, Default)]
pub struct Room {
    ram: Vec<u8>,
    memory: Vec<u8>,
}

impl Room {
    /// Memory of the size that is needed; what it held is lost.
    fn renew(&mut self, size: &Size) {
        for (memory, bytes) in
            [(&mut self.ram, size.ram_bytes), (&mut self.memory, size.memory_bytes)]
        {
            memory.clear();
            memory.resize(bytes, 0xA5);
        }
    }
}

/// A device on an FTL on a chip.
pub type OnFtl<'d, C = Chip> = Disk<Pages<'d, C>>;

/// The logical pages of any FTL, whose errors are those of a chip.
#[allow(clippy::large_enum_variant, reason = "debug builds watch the blocks of an FTL")]
pub enum Pages<'d, C> {
    /// By a mapping.
    Mapped(Ftl<'d, &'d mut C, Box<dyn Mapping + 'd>>),
    /// By a block map.
    Block(Hybrid<'d, &'d mut C, Transit<Block>>),
    /// With log blocks of one logical block each.
    Bast(Hybrid<'d, &'d mut C, Transit<Bast>>),
    /// With log blocks for any page.
    Fast(Hybrid<'d, &'d mut C, Transit<Fast>>),
    /// With log records in the blocks of their pages.
    Logged(Logged<'d, &'d mut C>),
}

/// Does `$does` with the FTL, whichever it is.
macro_rules! each {
    ($pages:expr, $ftl:ident => $does:expr) => {
        match $pages {
            Pages::Mapped($ftl) => $does,
            Pages::Block($ftl) => $does,
            Pages::Bast($ftl) => $does,
            Pages::Fast($ftl) => $does,
            Pages::Logged($ftl) => $does,
        }
    };
}

/// The error of a chip, or one that says what the FTL says.
fn error(error: FtlError<ChipError>) -> ChipError {
    match error {
        FtlError::Device(error) => error,
        error => ChipError::Layer(format!("FTL: {error}")),
    }
}

impl Layer {
    /// Opens the FTL on `chip`, or formats the chip for it.
    ///
    /// `size` is of this layer and this chip.
    pub fn open<'d, C: Flash<Error = ChipError>>(
        &self,
        size: &Size,
        chip: &'d mut C,
        room: &'d mut Room,
        formats: bool,
    ) -> Result<OnFtl<'d, C>, ChipError> {
        room.renew(size);
        let (geometry, capabilities) = (chip.geometry(), chip.capabilities());
        let pages = size.logical_pages;
        let buffer = self.buffer(pages, size.profile.geometry.pages_per_block);
        let Room { ram, memory } = room;
        let opened = match self.kind {
            Kind::Mapped(entry) => {
                let space = space_of(&geometry, &capabilities, pages);
                let map = (entry.build)(space, memory);
                let map = map.map_err(|refusal| error(FtlError::Mapping(refusal)))?;
                let make = if formats { Ftl::format_with } else { Ftl::open_with };
                let choices = Choices { victims: self.victims, buffer };
                make(chip, map, pages, choices, ram).map(Pages::Mapped)
            }
            Kind::Block => {
                let make = if formats { Hybrid::format } else { Hybrid::open };
                make(chip, Transit { over: Block, buffer }, pages, ram).map(Pages::Block)
            }
            Kind::Bast => {
                let over = Bast { log_blocks: self.log_blocks };
                let make = if formats { Hybrid::format } else { Hybrid::open };
                make(chip, Transit { over, buffer }, pages, ram).map(Pages::Bast)
            }
            Kind::Fast => {
                let make = if formats { Hybrid::format } else { Hybrid::open };
                let over = Fast { log_blocks: self.log_blocks, sequential: self.sequential };
                make(chip, Transit { over, buffer }, pages, ram).map(Pages::Fast)
            }
            Kind::Logged(scheme) => {
                let make = if formats { Logged::format } else { Logged::open };
                make(chip, scheme, pages, ram).map(Pages::Logged)
            }
        };
        Disk::new(opened.map_err(error)?, size.profile.geometry.pages_per_block)
            .map_err(|_| ChipError::Layer("FTL: there is no whole block of logical pages".into()))
    }

    /// Bytes of the map of a hybrid FTL, which are among those of its RAM; 0 for a mapping.
    pub fn map_bytes(&self, chip: &Profile, size: &Size) -> usize {
        let (geometry, capabilities) = (&chip.geometry, &chip.capabilities);
        let buffer = self.buffer(size.logical_pages, size.profile.geometry.pages_per_block);
        with_kind!(self, buffer, _entry => 0,
            _scheme => logged::map_bytes(geometry, size.logical_pages),
            policy => map_bytes(geometry, capabilities, &policy, size.logical_pages))
    }
}

impl<C: Flash<Error = ChipError>> Pages<'_, C> {
    /// Whether what the FTL keeps in RAM is what its chip says.
    pub fn check(&mut self) -> Result<(), String> {
        let sound: Result<Result<(), Unsound>, _> = each!(self, ftl => ftl.check());
        match sound {
            Ok(Ok(())) => Ok(()),
            Ok(Err(unsound)) => Err(format!("the FTL is unsound: {unsound:?}")),
            Err(error) => Err(format!("checking the FTL: {error}")),
        }
    }

    /// The chip.
    pub fn chip(&self) -> &C {
        each!(self, ftl => ftl.flash())
    }

    /// Writes a checkpoint of the mapping.
    ///
    /// Returns `false` if none was written, as by hybrid FTLs.
    pub fn checkpoint(&mut self) -> Result<bool, ChipError> {
        match self {
            Self::Mapped(ftl) => ftl.checkpoint().map_err(error),
            Self::Block(_) | Self::Bast(_) | Self::Fast(_) | Self::Logged(_) => Ok(false),
        }
    }

    /// Merges since it was formatted or opened, by kind; `None` where there are none.
    pub const fn merges(&self) -> Option<Merges> {
        match self {
            Self::Mapped(_) | Self::Logged(_) => None,
            Self::Block(ftl) => Some(ftl.merges()),
            Self::Bast(ftl) => Some(ftl.merges()),
            Self::Fast(ftl) => Some(ftl.merges()),
        }
    }

    /// Records and merges of an FTL with logs; `None` of others.
    pub const fn log_merges(&self) -> Option<LogMerges> {
        match self {
            Self::Logged(ftl) => Some(ftl.merges()),
            _ => None,
        }
    }

    /// Conversions of the transit buffer; none without one.
    pub fn conversions(&self) -> Conversions {
        match self {
            Self::Logged(_) => Conversions::default(),
            Self::Mapped(ftl) => ftl.conversions(),
            Self::Block(ftl) => ftl.conversions(),
            Self::Bast(ftl) => ftl.conversions(),
            Self::Fast(ftl) => ftl.conversions(),
        }
    }

    /// Blocks of the transit buffer that hold pages.
    pub fn buffer_blocks_used(&self) -> u32 {
        let used = match self {
            Self::Logged(_) => 0,
            Self::Mapped(ftl) => ftl.buffer_blocks().count(),
            Self::Block(ftl) => ftl.buffer_blocks().count(),
            Self::Bast(ftl) => ftl.buffer_blocks().count(),
            Self::Fast(ftl) => ftl.buffer_blocks().count(),
        };
        used as u32
    }
}

impl<C: Flash<Error = ChipError>> LogicalPages for Pages<'_, C> {
    type Error = ChipError;

    fn logical_pages(&self) -> u32 {
        each!(self, ftl => LogicalPages::logical_pages(ftl))
    }

    fn page_bytes(&self) -> usize {
        each!(self, ftl => LogicalPages::page_bytes(ftl))
    }

    fn read(&mut self, logical: u32, bytes: &mut [u8]) -> Result<bool, ChipError> {
        each!(self, ftl => LogicalPages::read(ftl, logical, bytes)).map_err(error)
    }

    fn read_pages(&mut self, logical: u32, bytes: &mut [u8]) -> Result<u32, ChipError> {
        each!(self, ftl => LogicalPages::read_pages(ftl, logical, bytes)).map_err(error)
    }

    fn write(&mut self, logical: u32, bytes: &[u8]) -> Result<(), ChipError> {
        each!(self, ftl => LogicalPages::write(ftl, logical, bytes)).map_err(error)
    }

    fn write_pages(&mut self, logical: u32, bytes: &[u8]) -> Result<(), ChipError> {
        each!(self, ftl => LogicalPages::write_pages(ftl, logical, bytes)).map_err(error)
    }

    fn request_pages_max(&self) -> u32 {
        each!(self, ftl => LogicalPages::request_pages_max(ftl))
    }

    fn write_pages_atomic(&mut self, logical: u32, bytes: &[u8]) -> Result<(), ChipError> {
        each!(self, ftl => LogicalPages::write_pages_atomic(ftl, logical, bytes)).map_err(error)
    }

    fn trim(&mut self, logical: u32, count: u32) -> Result<(), ChipError> {
        each!(self, ftl => LogicalPages::trim(ftl, logical, count)).map_err(error)
    }

    fn trim_volatile(&mut self, logical: u32, count: u32) -> Result<(), ChipError> {
        each!(self, ftl => LogicalPages::trim_volatile(ftl, logical, count)).map_err(error)
    }

    fn idle(&mut self, budget: u32) -> Result<nandina::Idle, ChipError> {
        each!(self, ftl => LogicalPages::idle(ftl, budget)).map_err(error)
    }

    fn idle_least(&self) -> u32 {
        each!(self, ftl => LogicalPages::idle_least(ftl))
    }

    fn statistics(&self) -> Statistics {
        each!(self, ftl => LogicalPages::statistics(ftl))
    }
}

impl Bus for OnFtl<'_> {
    fn simulated(&self) -> &Chip {
        self.inspect().chip()
    }

    fn ftl(&self) -> Option<FtlWork> {
        let pages = self.inspect();
        let mut work = FtlWork {
            statistics: pages.statistics(),
            merges: pages.merges(),
            conversions: pages.conversions(),
            ..FtlWork::default()
        };
        if let Pages::Mapped(ftl) = pages {
            let map = ftl.mapping();
            work.map_bytes = map.bytes().peak as u64;
            (work.map_reads, work.map_writes) = (map.work().flash_reads, map.work().flash_writes);
        }
        Some(work)
    }
}
