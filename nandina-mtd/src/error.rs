//! The errors of an MTD device, and what they mean for an index. No call is retried here.

use std::fmt;
use std::io;
use std::path::PathBuf;

use nandina::flash::{ErrorKind, FlashError, PageNumber};

use crate::kernel::{ERASE, MARK, PROGRAM};

/// An error of an MTD device.
#[derive(Debug)]
pub enum MtdError {
    /// A call to the kernel failed.
    Call {
        /// The device.
        path: PathBuf,
        /// The operation.
        what: &'static str,
        /// The kernel's error.
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
    /// The device was opened for reading only.
    ReadOnly,
    /// MTD devices cannot replace a page in place.
    NoRewrite,
    /// MTD devices are not trusted to program bytes of a page again.
    NoOverwrite,
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
            Self::NoOverwrite => {
                f.write_str("bytes of a page are not programmed again on an MTD device")
            }
        }
    }
}

impl std::error::Error for MtdError {}

impl FlashError for MtdError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Uncorrectable(_) => ErrorKind::Uncorrectable,
            // With EIO a driver reports that the chip could not do it. A bad-block mark is a
            // program too, and a worn block often refuses it.
            Self::Call { what: PROGRAM | MARK, error, .. }
                if error.raw_os_error() == Some(libc::EIO) =>
            {
                ErrorKind::ProgramFailed
            }
            Self::Call { what: ERASE, error, .. } if error.raw_os_error() == Some(libc::EIO) => {
                ErrorKind::EraseFailed
            }
            _ => ErrorKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_answers_has_a_meaning() {
        let kind = |what, errno| {
            let error = io::Error::from_raw_os_error(errno);
            MtdError::Call { path: "/dev/mtd0".into(), what, error }.kind()
        };
        assert_eq!(kind(PROGRAM, libc::EIO), ErrorKind::ProgramFailed);
        assert_eq!(kind(MARK, libc::EIO), ErrorKind::ProgramFailed);
        assert_eq!(kind(ERASE, libc::EIO), ErrorKind::EraseFailed);
        assert_eq!(kind(ERASE, libc::EROFS), ErrorKind::Other);
        assert_eq!(kind("reading a page", libc::EIO), ErrorKind::Other);
        assert_eq!(MtdError::Uncorrectable(PageNumber(1)).kind(), ErrorKind::Uncorrectable);
        assert_eq!(
            (MtdError::ReadOnly.kind(), MtdError::NoRewrite.kind()),
            (ErrorKind::Other, ErrorKind::Other)
        );
    }
}
