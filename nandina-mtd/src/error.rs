//! What can go wrong with an MTD device, and what it means for an index.

use std::fmt;
use std::io;
use std::path::PathBuf;

use nandina::flash::{ErrorKind, FlashError, PageNumber};

/// An error of an MTD device.
#[derive(Debug)]
pub enum MtdError {
    /// A call to the kernel failed.
    Call {
        /// The device.
        path: PathBuf,
        /// What was to be done.
        what: &'static str,
        /// What the kernel answered.
        error: io::Error,
    },
    /// The device is of a kind, or of sizes, that cannot carry an index.
    Unsuitable {
        /// The device.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// More bits of a page are wrong than its ECC corrects.
    Uncorrectable(PageNumber),
    /// The device was opened to be read.
    ReadOnly,
    /// MTD devices cannot replace a page in place.
    NoRewrite,
}

impl fmt::Display for MtdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { path, what, error } => write!(f, "{}: {what}: {error}", path.display()),
            Self::Unsuitable { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::Uncorrectable(page) => {
                write!(f, "{page} has more wrong bits than the ECC corrects")
            }
            Self::ReadOnly => f.write_str("the device was opened to be read only"),
            Self::NoRewrite => f.write_str("an MTD device cannot replace a page in place"),
        }
    }
}

impl std::error::Error for MtdError {}

impl FlashError for MtdError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Uncorrectable(_) => ErrorKind::Uncorrectable,
            // EIO is how a driver says that the chip could not do it.
            Self::Call { what: crate::kernel::PROGRAM, error, .. }
                if error.raw_os_error() == Some(libc::EIO) =>
            {
                ErrorKind::ProgramFailed
            }
            Self::Call { what: crate::kernel::ERASE, error, .. }
                if error.raw_os_error() == Some(libc::EIO) =>
            {
                ErrorKind::EraseFailed
            }
            _ => ErrorKind::Other,
        }
    }
}
