//! Records appended to the page of their node (rule 15 of the media contract).
//!
//! Such a program needs no new page, and is itself the commit.
//!
//! Some chips allow only few programs of a page, or require the pages of a block in order. On
//! these, records can be appended only to the page that was programmed last, and only while it is
//! known how often it was programmed: a mount forgets that.

use crate::cache::Cached;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::Image;
use crate::space::{Appends, Space};

impl<F: Flash> Space<'_, F, Appends> {
    /// Whether `page`, whose node is in `frame`, can be programmed again.
    ///
    /// Pages from before the last mount cannot: one of them may end in a half appended record, and
    /// nothing shows which one.
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

    /// Programs `image` into the area of `page`, from `offset` on.
    ///
    /// If the program fails, gives the block up and returns `false`.
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

    /// Marks `frame` as an unchanged copy of `page`, in its form for RAM.
    ///
    /// The page was just programmed or appended to.
    pub(crate) fn settle_frame(&mut self, frame: usize, page: u32) {
        self.cache.forget(page);
        self.cache.remember_written(PageNumber(page), self.log.frames.bytes(frame));
        self.log.frames.hold(frame, PageNumber(page));
    }
}
