//! Who may change an image: one program at a time, from opening to closing. The lock stands on the
//! file itself, so no other file is left behind, and the operating system drops it when a program
//! dies. Programs that only look take none: a file is replaced as a whole, and who has opened the
//! old one reads that.

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
    /// Takes the lock on the image at `path`, or refuses at once.
    pub fn take(path: &Path) -> Result<Self, ImageError> {
        let failed = |error| ImageErrorKind::Io(error).of(path);
        loop {
            // Some file systems lock only what was opened to be written.
            let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(ImageErrorKind::InUse.of(path)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            let handle = file.try_clone().and_then(Handle::from_file).map_err(failed)?;
            let lock = Self { file, handle };
            // Whoever had the lock before may have put another file there since this one was
            // opened.
            if lock.is_of(path) {
                return Ok(lock);
            }
        }
    }

    /// Whether the locked file is the one that stands at `path`.
    pub fn is_of(&self, path: &Path) -> bool {
        Handle::from_path(path).is_ok_and(|there| there == self.handle)
    }

    /// The locked file.
    pub const fn file(&mut self) -> &mut File {
        &mut self.file
    }
}
