//! What an operation of an FTL can return instead of its result.
//!
//! A full mapping is not the same error as a full chip, nor a damaged page the same as a chip that
//! holds something else. Bytes on the chip never cause a panic, only these errors.

use core::fmt;

use nandina::flash::{ErrorKind, FlashError, Missing, PageNumber};
use nandina::node::PageFault;
use nandina::{Damage, Fault};

use crate::mapping::{Refusal, Space};

/// Why an operation of an FTL failed. What was acknowledged before it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FtlError<E> {
    /// The chip failed. The next operation mounts again, as after a cut.
    Device(E),
    /// The buffer is smaller than [`ram_needed`](super::ram_needed) says.
    RamTooSmall {
        /// Bytes needed.
        needed: usize,
        /// Bytes given.
        given: usize,
    },
    /// The mapping was made for another space than the FTL has.
    OtherSpace {
        /// The space of this FTL ([`space_of`](super::space_of)).
        expected: Space,
        /// That of the mapping.
        given: Space,
    },
    /// Pages of the chip are too small for what the FTL notes about itself.
    PagesTooSmall {
        /// Bytes of a logical page that are needed at least.
        needed: usize,
        /// Bytes that it would have.
        given: usize,
    },
    /// The chip cannot do what the FTL needs.
    Chip(Missing),
    /// Blocks have more pages, or pages more bytes, than the FTL can describe.
    TooLarge {
        /// The most.
        most: u32,
        /// What this chip has.
        given: u32,
    },
    /// Too few spare blocks: garbage collection could not go on after every cut.
    TooFewSpareBlocks {
        /// The most logical pages on this chip.
        logical_pages_max: u32,
        /// Blocks that the chip needs for the logical pages that were asked for.
        blocks_needed: u32,
    },
    /// Fewer log blocks than the hybrid FTL can work with.
    LogBlocks {
        /// The fewest.
        needed: u32,
        /// Log blocks given.
        given: u32,
    },
    /// Blocks have more pages than a buffer block's description can tell apart.
    BufferPages {
        /// The most pages a block.
        most: u32,
        /// Pages a block of this chip.
        given: u32,
    },
    /// The chip holds no FTL: format it.
    Blank,
    /// The chip holds pages of another kind, or of another geometry.
    OtherContent {
        /// The number of the system that wrote its newest page.
        system: u8,
    },
    /// A page on the chip has a number that this FTL does not have.
    LogicalPages {
        /// The number on the chip.
        found: u32,
        /// Logical pages of this call.
        given: u32,
    },
    /// The logical pages are not all in the space.
    Outside {
        /// Logical pages that there are.
        logical_pages: u32,
    },
    /// The bytes are not those of a logical page.
    PageSize {
        /// Bytes of a logical page.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// The request has more pages than can be written as a whole.
    RequestPages {
        /// The most pages of a request
        /// ([`request_pages_max`](super::request_pages_max)).
        most: u32,
        /// Pages of this one.
        given: u32,
    },
    /// The mapping refused, and nothing was programmed for this change.
    ///
    /// Of a request that is written as a whole, pages may have been programmed: none of them counts.
    Mapping(Refusal),
    /// There is no free block, and none can be made free.
    NoRoom,
    /// More blocks are bad than were in reserve. All pages can still be read.
    WornOut {
        /// The number of bad blocks.
        bad_blocks: u32,
    },
    /// A page that the FTL needs is damaged.
    Corrupt {
        /// Which page of the chip.
        page: PageNumber,
        /// What is wrong with it.
        reason: Damage,
    },
}

impl<E> FtlError<E> {
    /// Refuses bytes that are not those of a logical page.
    pub(crate) const fn expect_page(expected: usize, given: usize) -> Result<(), Self> {
        if given == expected { Ok(()) } else { Err(Self::PageSize { expected, given }) }
    }

    /// Refuses logical pages that are not all in the space, and none of them.
    pub(crate) const fn expect_inside(
        logical_pages: u32,
        logical: u32,
        count: u32,
    ) -> Result<(), Self> {
        match logical.checked_add(count) {
            Some(end) if end <= logical_pages && count > 0 => Ok(()),
            _ => Err(Self::Outside { logical_pages }),
        }
    }
}

impl<E> From<Fault<E>> for FtlError<E> {
    fn from(fault: Fault<E>) -> Self {
        match fault {
            Fault::Device(error) => Self::Device(error),
            Fault::Corrupt { page, reason } => Self::Corrupt { page, reason },
            // An FTL has no tree, and no height.
            Fault::NoRoom { .. } | Fault::TooHigh { .. } => Self::NoRoom,
            Fault::WornOut { bad_blocks } => Self::WornOut { bad_blocks },
        }
    }
}

impl<E> From<Refusal> for FtlError<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Mapping(refusal)
    }
}

/// What is wrong with a page that cannot be used.
pub(crate) const fn damage_of(fault: PageFault) -> Damage {
    match fault {
        PageFault::Erased => Damage::Erased,
        PageFault::Damaged => Damage::Checksum,
        PageFault::Unreadable => Damage::Uncorrectable,
        PageFault::Version(_) => Damage::OtherVersion,
        PageFault::Appended => Damage::OtherSystem,
    }
}

impl<E: fmt::Debug> FlashError for FtlError<E> {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Corrupt { .. } => ErrorKind::Uncorrectable,
            _ => ErrorKind::Other,
        }
    }
}

impl<E: fmt::Display> fmt::Display for FtlError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => write!(f, "the chip failed: {error}"),
            Self::RamTooSmall { needed, given } => {
                write!(f, "the FTL needs {needed} bytes of RAM, {given} were given")
            }
            Self::OtherSpace { expected, given } => write!(
                f,
                "the mapping leads from {} to {} pages, the FTL from {} to {}",
                given.logical, given.physical, expected.logical, expected.physical
            ),
            Self::PagesTooSmall { needed, given } => {
                write!(f, "a logical page would have {given} bytes, it needs {needed}")
            }
            Self::Chip(missing) => write!(f, "the FTL cannot use this chip: {missing}"),
            Self::TooLarge { most, given } => {
                write!(
                    f,
                    "the FTL describes {most} pages of a block or bytes of a page, not {given}"
                )
            }
            Self::TooFewSpareBlocks { logical_pages_max, blocks_needed } => write!(
                f,
                "the chip has room for {logical_pages_max} logical pages; those asked for need \
                 {blocks_needed} blocks"
            ),
            Self::LogBlocks { needed, given } => {
                write!(f, "the FTL needs {needed} log blocks, {given} were given")
            }
            Self::BufferPages { most, given } => {
                write!(f, "a buffer block has at most {most} pages, blocks have {given}")
            }
            Self::Blank => f.write_str("the chip holds no FTL: format it"),
            Self::OtherContent { system } => match nandina::store::key_of(*system) {
                Some(key) => write!(f, "the chip holds an index of {key}, not this FTL"),
                None => write!(
                    f,
                    "the chip holds pages of another FTL, of another geometry, or of a system that is \
                     not known (number {system})"
                ),
            },
            Self::LogicalPages { found, given } => {
                write!(f, "the chip holds logical page {found}, the FTL has {given} logical pages")
            }
            Self::Outside { logical_pages } => {
                write!(f, "the FTL has {logical_pages} logical pages")
            }
            Self::PageSize { expected, given } => {
                write!(f, "a logical page has {expected} bytes, {given} were given")
            }
            Self::RequestPages { most, given } => {
                write!(f, "a request has at most {most} pages, {given} were given")
            }
            Self::Mapping(refusal) => refusal.fmt(f),
            Self::NoRoom => f.write_str("there is no free block, and none can be made free"),
            Self::WornOut { bad_blocks } => {
                write!(f, "{bad_blocks} blocks are bad, more than were in reserve")
            }
            Self::Corrupt { page, reason } => write!(f, "{page} is corrupt: {reason}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for FtlError<E> {}
