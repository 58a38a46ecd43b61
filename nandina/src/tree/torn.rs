//! Which pages may be torn, and which blocks an earlier state still needs.
//!
//! This is for systems whose pages commit for themselves. Nothing is written here.

use super::torn_pages::UNSTEADY_MAX;
use super::{Placement, TreeIndex};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::log::{LOST_MAX, Newest};
use crate::node::PageFault;

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Whether a mount counts the page as one of the index.
    pub(crate) fn counts(&self, page: PageNumber, sequence: u64) -> bool {
        !self.torn.outdates(sequence)
            && !self.torn.excludes(page)
            && !self.torn.excludes_block(self.block_of(page.0))
    }

    /// Makes `newest` the newest block from before a format that was cut.
    ///
    /// Before the call, `newest` is the block of that format's root, which is its first page and
    /// torn: one read saw it, and another one does not. Several formats may have been cut so.
    ///
    /// Otherwise there is no root. Cost: for each of them at most [`LOOKS`] reads, and one for each
    /// block.
    #[inline(never)]
    pub(crate) fn before_torn_format(
        &mut self,
        newest: &mut Newest,
    ) -> Result<(), Fault<F::Error>> {
        while !self.space.log.is_steady(self.space.log.page_at(newest.block, 0))? {
            covered!("the root of a format is torn");
            let Some(older) = self.survey_newest(newest.age(), None)? else { break };
            *newest = older;
            if newest.is_ours {
                return Ok(());
            }
        }
        self.expect_ours(newest)?;
        Err(self.no_root()?)
    }

    /// Whether the erase of `block` was begun and failed, or was cut.
    ///
    /// Then each of its pages reads differently each time. A program that was cut leaves one such
    /// page in a block, and so does an append.
    ///
    /// Cost: [`LOOKS`] reads for each of a few pages.
    pub(crate) fn erase_was_begun(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let (mut unsteady, mut steady, mut blank) = (0, 0, 0);
        for place in 0..self.space.log.block_pages() {
            let page = self.space.log.page_at(block, place);
            match self.space.log.steady_reading(page)? {
                None => unsteady += 1,
                Some(Err(PageFault::Erased)) => blank += 1,
                Some(_) => steady += 1,
            }
            if unsteady > UNSTEADY_MAX {
                covered!("the erase of a block was begun");
                return Ok(true);
            }
            if steady > UNSTEADY_MAX || blank > LOST_MAX {
                break;
            }
        }
        Ok(false)
    }
}
