//! Why a chip could not be read from a file or written to one.
//!
//! An error has the file, what is wrong with it, and what was expected. Nothing here reads or
//! writes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a chip image could not be used.
#[derive(Debug)]
pub struct ImageError {
    /// The image.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: ImageErrorKind,
}

/// What is wrong with a chip image.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImageErrorKind {
    /// The operating system refuses.
    Io(io::Error),
    /// An image is to be created, but the file exists already.
    Exists,
    /// The folder of the image does not exist.
    NoFolder(PathBuf),
    /// Another program has opened the image to change it.
    InUse,
    /// The image was opened for reading only and cannot be written.
    LookedAt,
    /// The file was removed or replaced while the image was open.
    Replaced,
    /// The file does not begin as a chip image does.
    NotAnImage,
    /// An image of another version.
    Version {
        /// Version that can be read.
        expected: u32,
        /// Version of the file.
        found: u32,
    },
    /// The file is not as long as its chip.
    Length {
        /// Bytes that it must have; a lower bound if the chip cannot be read.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// The checksum of the chip's description does not match.
    Checksum {
        /// The computed checksum.
        computed: u32,
        /// The checksum in the file.
        stored: u32,
    },
    /// The description has a right checksum, but it does not describe a chip.
    Description(String),
    /// The chip has impossible sizes or capabilities.
    Geometry(String),
    /// A block or a page is in an impossible state.
    State(String),
}

impl ImageErrorKind {
    pub(super) fn of(self, path: &Path) -> ImageError {
        ImageError { path: path.to_path_buf(), kind: self }
    }
}

impl From<io::Error> for ImageErrorKind {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for ImageErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Exists => f.write_str("there is a file already: choose another name"),
            Self::NoFolder(folder) => {
                write!(f, "there is no folder '{}': make it first", folder.display())
            }
            Self::InUse => f.write_str("it is in use by another program: wait until that ends"),
            Self::LookedAt => f.write_str("it was opened to look at it: open it to change it"),
            Self::Replaced => f.write_str(
                "the file was removed or replaced while it was in use: nothing was written, try again",
            ),
            Self::NotAnImage => {
                f.write_str("this is no chip image: it does not begin with the bytes of one")
            }
            Self::Version { expected, found } => {
                write!(f, "the image has version {found}, version {expected} was expected")
            }
            Self::Length { expected, found } => {
                write!(f, "the image has {found} bytes, {expected} were expected")
            }
            Self::Checksum { computed, stored } => write!(
                f,
                "the description of the chip is damaged: its checksum is {computed:08x}, {stored:08x} \
                 was expected"
            ),
            Self::Description(what) => write!(f, "the description of the chip: {what}"),
            Self::Geometry(what) => write!(f, "the image describes no possible chip: {what}"),
            Self::State(what) => write!(f, "the image describes an impossible state: {what}"),
        }
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.kind)
    }
}

impl std::error::Error for ImageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ImageErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}
