//! Records that are appended to the page that holds their node (rule 15 of the media contract). Such a program needs
//! no new page, and is itself the commit.
//!
//! A chip that allows few programs of a page, or that wants the pages of a block in order, takes appended records
//! only in the page that was programmed last, and only as long as it is known how often it was: that is forgotten
//! by a mount.

use super::cache::Cached;
use super::{Appends, Frames, Space};
use crate::error::Fault;
use crate::flash::{ErrorKind, Flash, FlashError, PageNumber, Reading};

/// Bytes to append.
#[derive(Clone, Copy)]
pub(crate) enum Image<'i> {
    Bytes(&'i [u8]),
    /// So many, from the start of a page buffer on.
    Frame(usize, usize),
}

impl Image<'_> {
    fn bytes<'s>(&'s self, frames: &'s Frames<'_>) -> &'s [u8] {
        match *self {
            Self::Bytes(bytes) => bytes,
            Self::Frame(frame, bytes) => &frames.bytes(frame)[..bytes],
        }
    }
}

impl<F: Flash> Space<'_, F, Appends> {
    /// Whether the page, whose node is in `frame`, can be programmed once more as it is. Pages of before the last mount
    /// are not: a record may be half appended to one of them, and nothing tells to which.
    pub(crate) fn can_overwrite(&self, page: u32, frame: usize) -> bool {
        let capabilities = &self.capabilities();
        if !self.memory.is_recent(self.layout().sequence(self.frames.bytes(frame)))
            || self.blocks.is_bad(self.geometry().block_of(PageNumber(page)))
        {
            return false;
        }
        let programs = self.memory.programs(page);
        match capabilities.programs_per_page {
            Some(allowed) => programs.is_some_and(|programs| programs < allowed),
            None => programs.is_some() || !capabilities.in_order,
        }
    }

    /// Programs `image` into the area of `page` from `offset` on. Answers whether the chip took them; if not, its
    /// block is given up.
    pub(crate) fn overwrite(
        &mut self,
        page: u32,
        offset: usize,
        image: Image<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        let number = PageNumber(page);
        self.operations += 1;
        self.cache.forget(page);
        self.memory.add(page);
        let bytes = image.bytes(&self.frames);
        let programmed = match self.flash.overwrite(number, offset as u32, bytes) {
            Ok(()) => !self.verify || self.holds(number, offset, image)?,
            Err(error) if error.kind() == ErrorKind::ProgramFailed && self.may_fail() => false,
            Err(error) => return Err(Fault::Device(error)),
        };
        if programmed {
            self.failures = 0;
        } else {
            self.give_up(self.geometry().block_of(number));
        }
        Ok(programmed)
    }

    /// Whether `page` holds these bytes from `offset` on.
    fn holds(
        &mut self,
        page: PageNumber,
        offset: usize,
        image: Image<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        let spare_frame = self.frames.count();
        self.operations += 1;
        let page_bytes = self.layout().page_bytes();
        let (main, spare) = self.frames.bytes_mut(spare_frame).split_at_mut(page_bytes);
        match self.flash.read(page, main, spare) {
            Ok(Reading::Clean | Reading::Corrected) => {
                let bytes = image.bytes(&self.frames);
                Ok(&self.frames.bytes(spare_frame)[offset..][..bytes.len()] == bytes)
            }
            Err(error) if error.kind() == ErrorKind::Uncorrectable => Ok(false),
            Err(error) => Err(Fault::Device(error)),
        }
    }

    /// The page in `frame` was just programmed, or appended to: from now on the buffer holds its node as it is in RAM.
    pub(crate) fn settle_frame(&mut self, frame: usize, page: u32) {
        self.cache.forget(page);
        self.cache.remember_written(PageNumber(page), self.frames.bytes(frame));
        self.frames.hold(frame, PageNumber(page));
    }
}
