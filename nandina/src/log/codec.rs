//! How an owner's pages become bytes of the chip, and where these bytes are.
//!
//! An owner passes a [`Codec`] to the log, which calls it for each page. Nothing here reads or
//! programs a page.

use super::Frames;
use crate::checksum::Sum;
use crate::node::{Medium, PageFault, PageHeader, PageLayout};

/// How an owner seals and checks its pages.
pub struct Codec {
    /// Writes header, settings and checksum of a page.
    ///
    /// The last argument computes the checksum.
    pub seal: fn(&PageLayout, &mut [u8], &Medium, &PageHeader, &mut Sum<'_>),
    /// Checks a page that was read from the chip.
    ///
    /// The last argument computes its checksum.
    pub check: fn(&PageLayout, &[u8], &mut Sum<'_>) -> Result<(), PageFault>,
    /// Attempts to read one page before it counts as unreadable.
    pub reads_max: u32,
}

/// Where the bytes of a page to be programmed are.
pub enum Source<'s> {
    /// In this page buffer.
    Frame(usize),
    /// Outside the page buffers.
    Bytes(&'s mut [u8]),
}

/// Bytes with which part of a page is programmed again.
#[derive(Clone, Copy)]
pub enum Image<'i> {
    /// These bytes.
    Bytes(&'i [u8]),
    /// This many bytes from the start of this page buffer.
    Frame(usize, usize),
}

impl Image<'_> {
    pub(super) fn bytes<'s>(&'s self, frames: &'s Frames<'_>) -> &'s [u8] {
        match *self {
            Self::Bytes(bytes) => bytes,
            Self::Frame(frame, bytes) => &frames.bytes(frame)[..bytes],
        }
    }
}
