//! Written paths: a changed node and all nodes above it go to new pages.
//!
//! The root is programmed last and commits. Checkpoints and a write cache need that.

mod checkpoint;
mod follow;
mod mu;
mod recover;
mod wandering;

pub use mu::Mu;
pub use wandering::Wandering;

use crate::blocks::Wear;
use crate::error::{BadOption, Fault, OpenError};
use crate::flash::{Flash, PageNumber};
use crate::space::{LISTED_MAX, Paths};
use crate::tree::{Cost, END, Index, Newest, Opening, Options, Placement, WritePolicy};

impl WritePolicy for Paths {
    const KEEPS_PAGES: bool = false;

    fn find<F: Flash, S: Placement<Kind = Self>>(
        index: &mut Index<'_, F, S>,
    ) -> Result<(), OpenError<F::Error>> {
        if index.mount_from_checkpoint()? {
            return Ok(());
        }
        let newest = index.newest_page()?;
        Ok(index.mount_from_blocks(newest)?)
    }

    fn find_again<F: Flash, S: Placement<Kind = Self>>(
        index: &mut Index<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        if index.mount_from_checkpoint()? {
            return Ok(());
        }
        let newest = index.survey_newest(END)?;
        index.mount_from_blocks(newest)
    }

    fn recover<F: Flash, S: Placement<Kind = Self>>(
        index: &mut Index<'_, F, S>,
        newest: Newest,
    ) -> Result<(), Fault<F::Error>> {
        index.recover_root(newest)
    }

    fn is_torn<F: Flash, S: Placement<Kind = Self>>(
        index: &mut Index<'_, F, S>,
        page: PageNumber,
    ) -> Result<bool, Fault<F::Error>> {
        // If the page reads differently each time, the erase of its block was begun: no tree that
        // counts needs it.
        Ok(index.is_newest(page) || !index.reads_alike(page)?)
    }

    fn settle<F: Flash, S: Placement<Kind = Self>>(
        index: &mut Index<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.settle_root()?;
        // Otherwise repeated mounts would use up the blocks that the checkpoint lists.
        index.keep_checkpoint()
    }

    fn read_unsettled<F: Flash, S: Placement<Kind = Self>>(
        index: &mut Index<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.expect_steady(index.root)
    }

    fn survey_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut Index<'_, F, S>,
        newest: Option<Newest>,
    ) -> Result<u64, Fault<F::Error>> {
        let Some(newest) = newest else { return Ok(0) };
        let last = index.last_root(newest.block, None, 0, u64::MAX)?;
        index.hold_blocks_of(newest.identity)?;
        Ok(last.sequence.max(newest.sequence))
    }

    fn refuses(_options: &Options) -> Option<BadOption> {
        None
    }

    fn reads_beside(wear: Wear) -> bool {
        // A page buffer may hold the only copy of a node, so the read of an erase count needs one
        // of its own.
        wear == Wear::Circular
    }

    fn open_cost(opening: &Opening) -> Cost {
        let Opening { block_pages, path, spanned, inner_reads, checkpoint_pages, .. } = *opening;
        let (blocks, height) = (u64::from(opening.geometry.blocks), opening.height);
        // A checkpoint that leads nowhere: both anchors and its block are searched, the blocks that
        // it lists looked into, and the nodes compared.
        let in_vain = if checkpoint_pages > 0 {
            3 * u64::from(block_pages.ilog2() + 3)
                + 2 * u64::from(checkpoint_pages)
                + LISTED_MAX as u64
                + (1 + spanned) * u64::from(block_pages)
                + 4 * inner_reads
        } else {
            0
        };
        // Every block twice, and once more for each block that an operation which was cut may span;
        // the pages of those blocks, the end of each of which is looked for first; and the inner
        // nodes. Twice that, for the tree before the last commit as well.
        let others = u64::from(1 + (path + u32::from(height) + 1) / block_pages);
        let looked_into = 2 + spanned + others;
        let reads = 2 * looked_into * blocks
            + 2 * looked_into * u64::from(block_pages + block_pages.ilog2() + 1)
            + 2 * inner_reads
            + in_vain
            + 2 * u64::from(height);
        opening.finding(reads)
    }
}
