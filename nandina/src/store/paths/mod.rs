//! Written paths: a changed node and all nodes above it go to new pages.
//!
//! The root is programmed last and commits. Checkpoints and a write cache need that.

#[cfg(feature = "checkpoints")]
mod checkpoint;
mod mu;
mod mu_star;
mod recover;
mod wandering;

pub use mu::Mu;
pub use mu_star::MuStar;
pub use wandering::Wandering;

use crate::blocks::WearPolicy;
use crate::cache::{Cache, Staging};
use crate::engine::{Cost, Options, UpdateScheme};
use crate::error::{BadOption, Fault};
use crate::flash::{Flash, PageNumber};
#[cfg(feature = "checkpoints")]
use crate::log::checkpoint::Checkpoint;
use crate::log::{LOOKS, Label, Newest};
use crate::node::SAME_PAGE;
use crate::space::{Absent, BuiltCheckpoints, Kind, Paths, STAGED, Space};
use crate::tree::{Level, Opening, Placement, TreeIndex, WritePolicy, node_mut_in};

impl Kind for Paths {
    const UPDATES: UpdateScheme = UpdateScheme::Paths;
    const KEEPS_PAGES: bool = false;
    const WEAR: WearPolicy = WearPolicy::Counted;
    type Checkpoints = BuiltCheckpoints;
    type Cache<'b> = Cache<'b, Staging<'b>>;
    const CACHES: bool = true;
    type Memory = Absent;

    fn resolve<F: Flash>(space: &Space<'_, F, Self>, page: u32) -> u32 {
        space.cache.staging().resolve(page)
    }

    fn room<F: Flash>(space: &Space<'_, F, Self>) -> u32 {
        space.log.room().saturating_sub(space.cache.staging().staged())
    }

    fn begin_operation<F: Flash>(space: &mut Space<'_, F, Self>, at_once: bool) {
        space.running.begin(at_once || !space.cache.staging().stages());
    }

    fn stage<F: Flash>(
        space: &mut Space<'_, F, Self>,
        frame: usize,
        label: Label,
    ) -> Result<Option<PageNumber>, Fault<F::Error>> {
        if space.running.is_at_once() { Ok(None) } else { space.stage(frame, label).map(Some) }
    }

    fn supersede<F: Flash>(space: &mut Space<'_, F, Self>, page: u32) {
        if page & STAGED != 0 {
            space.cache.staging_mut().supersede(page);
            return;
        }
        space.forget_superseded(page);
        if space.running.is_at_once() {
            space.log.supersede(PageNumber(page));
        } else {
            space.cache.staging_mut().note_superseded(PageNumber(page));
        }
    }

    fn commit<F: Flash>(space: &mut Space<'_, F, Self>, root: u32) -> Result<u32, Fault<F::Error>> {
        space.end_staging(root)
    }

    fn write_out<F: Flash>(
        space: &mut Space<'_, F, Self>,
        root: u32,
    ) -> Result<u32, Fault<F::Error>> {
        space.unstage(root)
    }

    fn staged<F: Flash>(space: &Space<'_, F, Self>) -> (u32, u32) {
        let staging = space.cache.staging();
        (staging.staged(), staging.superseded_pages())
    }

    fn can_stage<F: Flash>(space: &Space<'_, F, Self>, pages: u32) -> bool {
        space.cache.staging().has_room_for(pages as usize)
    }
}

/// Names the page of the child that shares `page` with the inner node in `frame`.
///
/// The node leaves `page`, and the child stays there.
#[inline(always)]
fn name_page<S: Placement<Kind = Paths>, F: Flash>(
    space: &mut Space<'_, F, Paths>,
    frame: usize,
    level: Level,
    page: u32,
) {
    if let Some(mut node) = node_mut_in::<S, F>(space, frame, level)
        && let Some(slot) = node.as_node().slot_of(SAME_PAGE)
    {
        node.set_payload(slot, &page.to_le_bytes());
    }
}

impl WritePolicy for Paths {
    #[cfg(feature = "checkpoints")]
    fn go_on_from<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        found: &Checkpoint,
    ) -> Result<bool, Fault<F::Error>> {
        index.go_on_from_root(found)
    }

    fn recover<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        newest: &mut Newest,
    ) -> Result<(), Fault<F::Error>> {
        index.recover_root(newest)
    }

    fn is_torn<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        page: PageNumber,
    ) -> Result<bool, Fault<F::Error>> {
        // If the page reads differently each time, the erase of its block was begun: no tree that
        // counts needs it.
        Ok(index.torn.is_newest(page) || !index.space.log.reads_alike(page)?)
    }

    fn settle<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.settle_root()?;
        // Otherwise repeated mounts would use up the blocks that the checkpoint lists.
        index.keep_checkpoint()
    }

    fn read_unsettled<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.expect_steady(index.state.root())
    }

    fn survey_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        newest: Option<Newest>,
    ) -> Result<u64, Fault<F::Error>> {
        let Some(newest) = newest else { return Ok(0) };
        let last = index.last_root(newest.block, None, (0, newest.sequence), u64::MAX)?;
        let begins = index.space.begins_in_first();
        index.space.log.hold_blocks_of(newest.identity, begins)?;
        Ok(last.sequence.max(newest.sequence))
    }

    // A path that does not fit in a page leaves its leaf in one: in the end each inner node may
    // have a page of its own. Then no change that makes no node may need more pages.
    fn pages_beside<F: Flash, S: Placement<Kind = Self>>(
        _index: &TreeIndex<'_, F, S>,
        inner_nodes: u32,
    ) -> u32 {
        if S::SHARING.packs() { inner_nodes } else { 0 }
    }

    fn planned_beside<S: Placement<Kind = Self>>(
        _height: u8,
        inner_nodes: u32,
        _mappings: usize,
    ) -> u32 {
        if S::SHARING.packs() { inner_nodes } else { 0 }
    }

    fn refuses(_options: &Options) -> Option<BadOption> {
        None
    }

    fn reads_beside(wear: WearPolicy) -> bool {
        // A page buffer may hold the only copy of a node, so the read of an erase count needs one
        // of its own.
        wear == WearPolicy::Circular
    }

    fn open_cost(opening: &Opening) -> Cost {
        let Opening { block_pages, path, spanned, inner_reads, checkpoint_pages, .. } = *opening;
        let (blocks, height) = (u64::from(opening.geometry.blocks), opening.height);
        // A checkpoint that leads nowhere, from which the nodes are compared.
        let in_vain = if checkpoint_pages > 0 {
            opening.search_in_vain() + (1 + spanned) * u64::from(block_pages) + 4 * inner_reads
        } else {
            0
        };
        // Every block twice, and once more for each block that an operation which was cut may span;
        // the pages of those blocks, the end of each of which is looked for first; and the inner
        // nodes. Twice that, for the tree before the last commit as well.
        let others = u64::from(recover::others_spanned(path, height, block_pages));
        let looked_into = 2 + spanned + others;
        // Near the reserve the end of a block is looked for, and then at.
        let at_end = 2 * LOOKS + u64::from(block_pages.ilog2()) + 1;
        let reads = 2 * looked_into * blocks
            + 2 * looked_into * u64::from(block_pages + block_pages.ilog2() + 1)
            + 2 * inner_reads
            + in_vain
            + 2 * u64::from(height)
            + u64::from(recover::ends_max(path, height, block_pages)) * at_end;
        opening.finding(reads)
    }
}
