//! The lock of an image: only one program at a time may change it.
//!
//! It is held from opening to closing.
//!
//! The lock is on the file itself, so no other file is left behind, and the operating system drops
//! it when a program dies. Programs that only read take no lock: a file is replaced as a whole, so
//! a program that has opened the old one reads that one.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use same_file::Handle;

use super::{ImageError, ImageErrorKind};

/// The right to replace the file at a path, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    handle: Handle,
}

impl Lock {
    /// Takes the lock on the image at `path`.
    ///
    /// It fails at once if another program has the lock.
    pub fn take(path: &Path) -> Result<Self, ImageError> {
        let failed = |error| ImageErrorKind::Io(error).of(path);
        loop {
            // Some file systems lock only files that are open for writing.
            let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(ImageErrorKind::InUse.of(path)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            let handle = file.try_clone().and_then(Handle::from_file).map_err(failed)?;
            let lock = Self { file, handle };
            // The previous owner of the lock may have replaced the file since this one was opened.
            if lock.is_of(path) {
                return Ok(lock);
            }
        }
    }

    /// Whether the locked file is still the one at `path`.
    pub fn is_of(&self, path: &Path) -> bool {
        Handle::from_path(path).is_ok_and(|there| there == self.handle)
    }

    /// The locked file.
    pub const fn file(&mut self) -> &mut File {
        &mut self.file
    }
}
