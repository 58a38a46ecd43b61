//! What an operation can return instead of its result: an enum for each kind.
//!
//! A full device is not the same error as a record that can never fit, nor a corrupt medium the
//! same as one that is not Nandina's. A device's own error is passed on unchanged. Bytes on the
//! medium never cause a panic, only these errors.

mod pair;
mod reason;

pub use pair::PairError;
pub use reason::{BadOption, Damage};

use core::fmt;

use crate::flash::{ErrorKind, FlashError, Missing, PageNumber};

/// A failure inside the index, below any operation.
///
/// An index never returns it: each of its operations has its own error type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault<E> {
    /// The device failed.
    Device(E),
    /// A page is not what it should be.
    Corrupt {
        /// Which page.
        page: PageNumber,
        /// What is wrong with it.
        reason: Damage,
    },
    /// There is no free block, and none can be made free.
    NoRoom {
        /// The most pages that may be valid.
        limit_pages: u32,
    },
    /// More blocks are bad than were in reserve.
    WornOut {
        /// The number of bad blocks.
        bad_blocks: u32,
    },
    /// The tree would become higher than pages allow.
    TooHigh {
        /// The greatest height that pages allow.
        height: u8,
    },
}

impl<E: FlashError> Fault<E> {
    /// Whether the chip rejected what was written but still works.
    pub fn rejects_writes(&self) -> bool {
        match self {
            Self::Device(error) => error.kind() != ErrorKind::Other,
            Self::Corrupt { reason, .. } => *reason == Damage::NotAsWritten,
            Self::NoRoom { .. } | Self::WornOut { .. } | Self::TooHigh { .. } => false,
        }
    }
}

/// Why an index could not be formatted or opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError<E> {
    /// The device failed.
    Device(E),
    /// The buffer is smaller than [`ram_needed`](crate::ram_needed) says.
    RamTooSmall {
        /// Bytes needed.
        needed: usize,
        /// Bytes given.
        given: usize,
    },
    /// An option is out of its range, or does not suit the system or the chip.
    BadOption {
        /// Which option, and what it must be.
        reason: BadOption,
    },
    /// A leaf of this system would have no room for two records of these sizes.
    RecordTooLarge {
        /// Bytes of key and value together.
        record_bytes: usize,
        /// Bytes of the smallest leaf.
        leaf_bytes: usize,
    },
    /// The chip lacks something that the system needs.
    Unsuited(Missing),
    /// The chip has too few pages for an index that can always collect garbage.
    ChipTooSmall {
        /// Pages that could be valid at once.
        limit_pages: u32,
    },
    /// More blocks are bad than are kept in reserve, and too few good ones are left.
    WornOut {
        /// The number of bad blocks.
        bad_blocks: u32,
    },
    /// Every block is erased: there is no index; format the chip.
    Blank,
    /// The chip holds data, but no page of this library.
    NotNandina,
    /// The medium has another format version.
    Version {
        /// Version on the medium.
        found: u8,
    },
    /// The medium was made with another setting.
    Mismatch {
        /// The name of the setting.
        ///
        /// For the system it is `"system number"`; `found` and `expected` are then system numbers
        /// ([`key_of`](crate::store::key_of)), and the text of the error names the systems by their
        /// keys.
        setting: &'static str,
        /// Its value on the medium.
        found: u32,
        /// Its value in this call.
        expected: u32,
    },
    /// A page that the index needs is damaged.
    Corrupt {
        /// Which page.
        page: PageNumber,
        /// What is wrong with it.
        reason: Damage,
    },
}

/// Why a lookup or a scan failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadError<E> {
    /// The device failed.
    Device(E),
    /// The key is not of the size that the index was formatted with.
    KeySize {
        /// Bytes of this index's keys.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// A page that the index needs is damaged.
    Corrupt {
        /// Which page.
        page: PageNumber,
        /// What is wrong with it.
        reason: Damage,
    },
}

/// Why a change was refused. All changes acknowledged before it stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WriteError<E> {
    /// The device failed. The next operation mounts the medium again, as after a cut.
    Device(E),
    /// The key is not of the size that the index was formatted with.
    KeySize {
        /// Bytes of this index's keys.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// The value is not of the size that the index was formatted with.
    ValueSize {
        /// Bytes of this index's values.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// One more valid page would leave too little room to collect garbage.
    ///
    /// Removing still works.
    Full {
        /// The most valid pages allowed for the tree that the change would produce.
        ///
        /// More inner nodes leave room for fewer pages.
        limit_pages: u32,
    },
    /// The batch has too many changes; nothing of it was made.
    BatchTooLarge {
        /// The most.
        most: usize,
        /// Changes given.
        given: usize,
    },
    /// More blocks have become bad than were kept in reserve.
    ///
    /// Those that are left do not suffice for the change. Everything can still be read, and removed
    /// as long as there is room for that.
    WornOut {
        /// The number of bad blocks.
        bad_blocks: u32,
    },
    /// The tree cannot become higher. Removing still works.
    ///
    /// A page has no room for a node of one more level; or (`tnc`) so few nodes in RAM, or in a
    /// block, do not suffice to collect garbage in such a tree: more
    /// [`arena_bytes`](crate::Options::arena_bytes) or a greater
    /// [`fanout`](crate::Options::fanout) help.
    TooHigh {
        /// Height of the tree.
        height: u8,
    },
    /// A page that the index needs is damaged.
    Corrupt {
        /// Which page.
        page: PageNumber,
        /// What is wrong with it.
        reason: Damage,
    },
}

impl<E> From<Fault<E>> for ReadError<E> {
    fn from(fault: Fault<E>) -> Self {
        match fault {
            Fault::Device(error) => Self::Device(error),
            Fault::Corrupt { page, reason } => Self::Corrupt { page, reason },
            // A read itself writes nothing, so only a recovery before it can lack room. The next
            // mount repairs this.
            Fault::NoRoom { .. } | Fault::WornOut { .. } | Fault::TooHigh { .. } => {
                Self::Corrupt { page: PageNumber(0), reason: Damage::NoRoomToRecover }
            }
        }
    }
}

impl<E> From<Fault<E>> for WriteError<E> {
    fn from(fault: Fault<E>) -> Self {
        match fault {
            Fault::Device(error) => Self::Device(error),
            Fault::Corrupt { page, reason } => Self::Corrupt { page, reason },
            Fault::NoRoom { limit_pages } => Self::Full { limit_pages },
            Fault::TooHigh { height } => Self::TooHigh { height },
            Fault::WornOut { bad_blocks } => Self::WornOut { bad_blocks },
        }
    }
}

impl<E> From<Fault<E>> for OpenError<E> {
    fn from(fault: Fault<E>) -> Self {
        match fault {
            Fault::Device(error) => Self::Device(error),
            Fault::Corrupt { reason: Damage::TableTooSmall, .. } => {
                Self::BadOption { reason: BadOption::TableTooSmall }
            }
            Fault::Corrupt { reason: Damage::DirectoryTooSmall, .. } => {
                Self::BadOption { reason: BadOption::DirectoryTooSmall }
            }
            Fault::Corrupt { reason: Damage::ArenaTooSmall, .. } => {
                Self::BadOption { reason: BadOption::ArenaTooSmall }
            }
            Fault::Corrupt { page, reason } => Self::Corrupt { page, reason },
            Fault::NoRoom { limit_pages } => Self::ChipTooSmall { limit_pages },
            // A mount adds no level.
            Fault::TooHigh { .. } => Self::ChipTooSmall { limit_pages: 0 },
            Fault::WornOut { bad_blocks } => Self::WornOut { bad_blocks },
        }
    }
}

/// The setting of a [`OpenError::Mismatch`] of systems.
pub(crate) const SYSTEM_NUMBER: &str = "system number";

/// A system by its name, or by its number if this library has no such system.
fn system(
    f: &mut fmt::Formatter<'_>,
    number: u32,
    key_of: fn(u8) -> Option<&'static str>,
) -> fmt::Result {
    match u8::try_from(number).ok().and_then(key_of) {
        Some(key) => write!(f, "system {key}"),
        None => write!(f, "system number {number}, which is not known"),
    }
}

fn worn_out(f: &mut fmt::Formatter<'_>, bad_blocks: u32) -> fmt::Result {
    write!(f, "the device is worn out: {bad_blocks} blocks are bad, more than were in reserve")
}

impl<E: fmt::Display> OpenError<E> {
    /// Writes the message.
    ///
    /// `key_of` returns the key of the system with a number on the medium.
    pub(crate) fn message(
        &self,
        f: &mut fmt::Formatter<'_>,
        key_of: fn(u8) -> Option<&'static str>,
    ) -> fmt::Result {
        match self {
            Self::Device(error) => write!(f, "the device failed: {error}"),
            Self::RamTooSmall { needed, given } => {
                write!(f, "{given} bytes of RAM were given, {needed} are needed")
            }
            Self::BadOption { reason } => write!(f, "{reason}"),
            Self::RecordTooLarge { record_bytes, leaf_bytes } => write!(
                f,
                "a record of {record_bytes} bytes can never fit twice in a leaf of {leaf_bytes} bytes"
            ),
            Self::Unsuited(missing) => write!(f, "this system cannot run on this chip: {missing}"),
            Self::ChipTooSmall { limit_pages } => {
                write!(f, "the chip is too small: only {limit_pages} pages could be valid at once")
            }
            Self::WornOut { bad_blocks } => worn_out(f, *bad_blocks),
            Self::Blank => f.write_str("the chip is erased and holds no index: format it first"),
            Self::NotNandina => f.write_str("the chip holds data that is not a Nandina index"),
            Self::Version { found } => write!(
                f,
                "the medium has format version {found} of its system, which is not read here"
            ),
            Self::Mismatch { setting: SYSTEM_NUMBER, found, expected } => {
                f.write_str("the medium was made with ")?;
                system(f, *found, key_of)?;
                f.write_str(", not ")?;
                system(f, *expected, key_of)
            }
            Self::Mismatch { setting, found, expected } => {
                write!(f, "the medium was made with {setting} {found}, not {expected}")
            }
            Self::Corrupt { page, reason } => write!(f, "{page} is corrupt: {reason}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for ReadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => write!(f, "the device failed: {error}"),
            Self::KeySize { expected, given } => {
                write!(f, "a key of {given} bytes was given, this index has keys of {expected}")
            }
            Self::Corrupt { page, reason } => write!(f, "{page} is corrupt: {reason}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for WriteError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => write!(f, "the device failed: {error}"),
            Self::KeySize { expected, given } => {
                write!(f, "a key of {given} bytes was given, this index has keys of {expected}")
            }
            Self::ValueSize { expected, given } => {
                write!(f, "a value of {given} bytes was given, this index has values of {expected}")
            }
            Self::Full { limit_pages } => {
                write!(f, "the device is full: no more than {limit_pages} pages may be valid")
            }
            Self::BatchTooLarge { most, given } => {
                write!(f, "a batch of {given} changes was given, it may have {most}")
            }
            Self::WornOut { bad_blocks } => worn_out(f, *bad_blocks),
            Self::TooHigh { height } => {
                write!(
                    f,
                    "a page of this size, or so little RAM for nodes, allows no tree higher than {height}"
                )
            }
            Self::Corrupt { page, reason } => write!(f, "{page} is corrupt: {reason}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for ReadError<E> {}
impl<E: fmt::Debug + fmt::Display> core::error::Error for WriteError<E> {}
