//! Records that are appended to the page that holds their node (rule 15 of the media contract).
//! Such a program needs no new page, and is itself the commit.
//!
//! A chip that allows few programs of a page, or that wants the pages of a block in order, takes
//! appended records only in the page that was programmed last, and only as long as it is known how
//! often it was: that is forgotten by a mount.

use super::{Appends, Space};
use crate::cache::Cached;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::Image;

impl<F: Flash> Space<'_, F, Appends> {
    /// Whether the page, whose node is in `frame`, can be programmed once more as it is. Pages of
    /// before the last mount are not: a record may be half appended to one of them, and nothing
    /// tells to which.
    pub(crate) fn can_overwrite(&self, page: u32, frame: usize) -> bool {
        let capabilities = &self.log.capabilities();
        if !self.memory.is_recent(self.log.layout().sequence(self.log.frames.bytes(frame)))
            || self.log.blocks.is_bad(self.log.geometry().block_of(PageNumber(page)))
        {
            return false;
        }
        let programs = self.memory.programs(page);
        match capabilities.programs_per_page {
            Some(allowed) => programs.is_some_and(|programs| programs < allowed),
            None => programs.is_some() || !capabilities.in_order,
        }
    }

    /// Programs `image` into the area of `page` from `offset` on. Returns whether the chip took
    /// them; if not, its block is given up.
    pub(crate) fn overwrite(
        &mut self,
        page: u32,
        offset: usize,
        image: Image<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        self.cache.forget(page);
        self.memory.add(page);
        self.log.overwrite(PageNumber(page), offset, image)
    }

    /// The page in `frame` was just programmed, or appended to: from now on the buffer holds its
    /// node as it is in RAM.
    pub(crate) fn settle_frame(&mut self, frame: usize, page: u32) {
        self.cache.forget(page);
        self.cache.remember_written(PageNumber(page), self.log.frames.bytes(frame));
        self.log.frames.hold(frame, PageNumber(page));
    }
}
