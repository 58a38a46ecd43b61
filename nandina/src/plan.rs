//! What an index will cost, before it exists: RAM and chip operations.
//!
//! The chip operations are bounds for each kind of call. They hold for every state that an index
//! can get into on a chip none of whose blocks fails: full, worn, just mounted. Each block that
//! fails costs one program or erase more, and one page move for each page that it held.

use crate::blocks::{Victims, Wear};
use crate::error::OpenError;
use crate::flash::{Capabilities, Geometry};
use crate::gc::SPARE_MOVES;
use crate::log::{Frames, WEAK_MAX, layout_of};
use crate::place::Placement;
use crate::space::{
    AREA_BLOCKS, Budget, CHECKPOINT_ERASES_MAX, Extent, LISTED_MAX, checkpoint_cost,
    checkpoint_parts, room_to_fail, twins,
};
use crate::tree::{
    Form, MOUNT_LOOKS, MOUNT_TRIES, Options, Size, merges_max, move_cost, moved_path, ram_needed,
    waiting_max,
};

/// Upper bounds of the chip operations of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Page reads.
    pub reads: u64,
    /// Page programs, or rewrites where logical pages are replaced.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
}

impl Cost {
    /// The cost of this and of `count` times `others`.
    const fn and(self, count: u64, others: Self) -> Self {
        Self {
            reads: self.reads + count * others.reads,
            programs: self.programs + count * others.programs,
            erases: self.erases + count * others.erases,
        }
    }
}

/// The result of [`plan`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Bytes of the buffer that the index needs.
    pub ram_bytes: usize,
    /// Most levels of the tree, in whatever order records were inserted and removed.
    pub height: u8,
    /// Most pages that are valid at once.
    pub valid_pages: u32,
    /// Valid pages that are allowed in a tree of that size.
    ///
    /// For a system with virtual mappings, the pages that mappings may keep are subtracted.
    pub limit_pages: u32,
    /// The records fit, in whatever order they are inserted and removed.
    ///
    /// Their pages are allowed, and the pages have room for nodes of that many levels. No insert is
    /// refused.
    pub fits: bool,
    /// Opening the index, after a cut or a clean end.
    ///
    /// For each block whose erase was cut and that was not written since, twice its pages come on
    /// top.
    pub open: Cost,
    /// A lookup.
    pub get: Cost,
    /// A change of a record, with the garbage collection and the flush that are due.
    ///
    /// That is an insert, a replacement or a removal. The bound holds as long as power was not cut
    /// during garbage collection since it last caught up. In a tree that was thinned out, an insert
    /// that splits a node may first look through all nodes for some to merge; that is included.
    /// With a write buffer, all pending changes are applied before it, each to a leaf of its own. A
    /// flush and a tick cost no more.
    pub change: Cost,
    /// The same after any number of cuts during garbage collection.
    pub change_after_cuts: Cost,
    /// The least budget with which `gc_step` makes progress.
    pub gc_step_least: u32,
}

/// Plans an index of system `S` on a chip, for at most `records` records.
///
/// `records` is the most that the index ever holds at once. Of the children of a node, each two
/// neighbours hold more records than fit in one node: where removals have thinned them out more
/// than that, an insert merges two before it makes the tree larger. So the plan holds for every
/// order of inserts and removals.
///
/// An insert that was cut counts as made: it may have split nodes, up to the root.
///
/// Fails as [`Index::format`](crate::Index::format) would. More records than fit are no error: see
/// [`Plan::fits`].
pub fn plan<S: Placement>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    options: &Options,
    records: u32,
) -> Result<Plan, OpenError<core::convert::Infallible>> {
    let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
    options.check::<S, _>(geometry, block_pages, usize::MAX)?;
    let layout = layout_of(geometry);
    let medium = options.medium::<S>(geometry);
    let tree = Size::of::<S>(&Form::new(&layout, &medium), records);
    let reserve = capabilities.bad_blocks_max(geometry.blocks).min(geometry.blocks);
    let area = if options.checkpoints.is_some() { AREA_BLOCKS } else { 0 };
    let extent = Extent { block_pages, blocks: (geometry.blocks - reserve).saturating_sub(area) };
    let path = S::path_pages(tree.height);
    let capacity = options.mappings::<S>(geometry);
    let parts = match options.checkpoints {
        Some(_) => checkpoint_parts(geometry, &layout, block_pages).unwrap_or(0),
        None => 0,
    };
    let budget_for = |height: u8, inner_nodes: u32| {
        if S::DESCRIPTION.in_place {
            return Budget::in_place(twins(geometry.pages()));
        }
        let moved = moved_path::<S>(capacity, height, inner_nodes, block_pages);
        Budget::new(&extent, options.moves, height, (S::path_pages(height), moved), inner_nodes)
    };
    let least = budget_for(2, 1);
    if least.limit_pages < 3 {
        return Err(OpenError::ChipTooSmall { limit_pages: least.limit_pages });
    }
    let limit_pages = budget_for(tree.height, tree.inner_nodes).limit_pages;
    let valid_pages = tree.leaves.saturating_add(tree.inner_nodes);
    // One logical address that a change adds, and the table places that inner nodes may take.
    let beside = match S::DESCRIPTION.maps && tree.height > 1 {
        true => 1 + tree.inner_nodes.min((capacity / 2) as u32),
        false => 0,
    };
    let limit_pages = limit_pages.saturating_sub(beside);
    let fits = !tree.too_high && valid_pages <= limit_pages;
    // Records that do not fit may be inserted all the same: then only the chip bounds the tree.
    let most = |nodes: u32| if fits { nodes } else { geometry.pages() };
    let budget = budget_for(tree.height, if fits { tree.inner_nodes } else { 1 });
    let tree = Size { leaves: most(tree.leaves), inner_nodes: most(tree.inner_nodes), ..tree };
    let wear = options.wear::<S>();
    let (height, in_place) = (tree.height, S::DESCRIPTION.in_place);
    let few_buffers = options.buffers::<S>() <= 2;
    // All nodes of a tree are searched for two to merge, anew for each merge.
    let (leaves, inner) = (u64::from(tree.leaves), u64::from(tree.inner_nodes));
    let (leaf_merges, merges) = merges_max::<S>(tree.height);
    let leaf_reads = u64::from(leaf_merges) * leaves * if few_buffers { 2 } else { 1 };
    let searched = leaf_reads + 6 * u64::from(merges) * inner;
    let bounds = Bounds {
        extent,
        budget,
        path,
        height,
        parts,
        options,
        wear,
        in_place,
        trims: S::TRIMS,
        merges,
        searched,
    };
    let shared = Frames::COUNT_MAX.min(options.buffers::<S>()) <= usize::from(tree.height);
    let inner_reads = u64::from(tree.inner_nodes) * if shared { 2 } else { 1 };
    let spanned = u64::from((budget.room_pages() - budget.reserve_pages()).div_ceil(block_pages));
    // A checkpoint that cannot be used: both anchors and its block are searched, the blocks that it
    // lists are read, and the nodes compared.
    let in_vain = if parts > 0 {
        3 * u64::from(block_pages.ilog2() + 3)
            + 2 * u64::from(parts)
            + LISTED_MAX as u64
            + (1 + spanned) * u64::from(block_pages)
            + 4 * inner_reads
    } else {
        0
    };
    let waiting = waiting_max(geometry.page_bytes as usize, options) as u64;
    let change = bounds.change(budget.room_pages() - budget.reserve_pages(), false);
    let after_cuts =
        bounds.change(budget.room_pages() + room_to_fail(0, reserve, block_pages), true);
    // Pages that may be torn are written anew, after a collection if one is due; and a mount begins
    // again for each page that turns out to be torn.
    let opened =
        |reads| Cost { reads: reads * u64::from(1 + MOUNT_TRIES) + after_cuts.reads, ..after_cuts };
    Ok(Plan {
        ram_bytes: ram_needed::<S>(geometry, options),
        height: tree.height,
        valid_pages,
        limit_pages,
        fits,
        // Every block twice, and once more for each block that a cut operation may span; the pages
        // of those blocks, whose ends are searched for first; and the inner nodes.
        open: if !S::DESCRIPTION.writes_paths {
            // Every page for each level, and again for nodes that moved, or every node three times;
            // each node at most twice where buffers are few; and the first pages of all blocks.
            let pages = u64::from(geometry.pages());
            let reads = u64::from(geometry.blocks)
                + 2 * u64::from(tree.height) * pages
                + 5 * u64::from(tree.height) * (leaves + inner);
            // Twice, for the index before the last commit as well; then every page to see which may
            // be torn, and several reads of those.
            let reads = 2 * reads + 3 * pages + (2 * MOUNT_LOOKS + 4) * u64::from(geometry.blocks);
            let opened = opened(reads);
            // All pages programmed since the last mount may be written anew. They are read before
            // in search of a torn record, and once more if they cannot be written.
            let (moves, path) = (leaves + inner, u64::from(path));
            let looks = if S::DESCRIPTION.appends { 2 * MOUNT_LOOKS } else { 0 };
            Cost {
                reads: opened.reads + moves * (4 + 4 * u64::from(tree.height) + looks),
                programs: opened.programs + moves * (path + 1),
                erases: opened.erases
                    + moves * (path + 1) / u64::from(block_pages)
                    + u64::from(geometry.blocks),
            }
        } else {
            // Twice, for the tree before the last commit as well.
            let others = u64::from(1 + (path + u32::from(tree.height) + 1) / block_pages);
            let reads = 2 * (2 + spanned + others) * u64::from(geometry.blocks)
                + 2 * (2 + spanned + others) * u64::from(block_pages + block_pages.ilog2() + 1)
                + 2 * inner_reads
                + in_vain
                + 2 * u64::from(tree.height);
            opened(reads)
        },
        get: Cost { reads: tree.height.into(), programs: 0, erases: 0 },
        change: change.and(waiting, change),
        // The first change makes the reserve whole.
        change_after_cuts: after_cuts.and(waiting, change),
        gc_step_least: move_cost(
            tree.height,
            path,
            0,
            options.verify,
            options.wear::<S>(),
            block_pages,
        ) + if parts > 0 { checkpoint_cost(parts, options.verify) } else { 0 },
    })
}

struct Bounds<'p> {
    extent: Extent,
    budget: Budget,
    path: u32,
    height: u8,
    /// Pages of a checkpoint, or 0.
    parts: u32,
    options: &'p Options,
    wear: Wear,
    in_place: bool,
    /// Each level may be split by itself.
    trims: bool,
    /// Merges of nodes before that.
    merges: u8,
    /// Reads to find such nodes.
    searched: u64,
}

impl Bounds<'_> {
    /// The bound of a change when `short_pages` pages have to be gained.
    ///
    /// With `reserve_touched`, cuts may have used up part of the reserve.
    fn change(&self, short_pages: u32, reserve_touched: bool) -> Cost {
        let (height, merges) = (u64::from(self.height), u64::from(self.merges));
        // Descents and ways up: each level may be split by itself, and nodes are merged. On the way
        // up a node may have been displaced, and the node above is read for its bound.
        let ways = if self.trims { height + 1 } else { 1 } + merges;
        let way_reads = ways * (3 * height + 2) + self.searched;
        if self.in_place {
            // Nothing is collected. A split writes two pages, or three for a root; and the first
            // change since a mount may write a session page.
            let programs = 3 * height + 3 + 3 * merges + 1;
            let verifies = if self.options.verify { programs } else { 0 };
            return Cost { reads: way_reads + verifies, programs, erases: 0 };
        }
        let path = u64::from(self.path);
        let gain = self.extent.gain();
        // Pages that each of them writes beside the halves of split nodes.
        let ways_pages = (ways as u32).saturating_mul(self.path);
        let victims = u64::from((short_pages + ways_pages).div_ceil(gain));
        let moved = victims * u64::from(self.extent.block_pages - gain);
        let spare_moves = 2 * u64::from(SPARE_MOVES) + WEAK_MAX as u64;
        let operation = u64::from(ways_pages) + 2 * merges + height + 1;
        let staged = self.options.write_cache as u64;
        let programs = moved + spare_moves * path + operation + staged;
        let block_pages = u64::from(self.extent.block_pages);
        // At most one for each block that is opened, and the one that was due before.
        let checkpoints = if self.parts > 0 { programs.div_ceil(block_pages) + 2 } else { 0 };
        let programs = programs + checkpoints * u64::from(self.parts + 1);
        // Each move reads its page, descends to it, and may find nodes displaced from their
        // buffers. Once the reserve is touched, a victim is searched for among all valid pages.
        let by_move = 1 + 2 * height;
        let pages = block_pages * u64::from(self.extent.blocks);
        let search = match (reserve_touched && path > 1, self.options.validity.searches()) {
            (false, _) => 0,
            (true, false) => victims * u64::from(self.budget.limit_pages),
            (true, true) => victims * pages * (by_move + 1),
        };
        // Where the pages of a block are searched for, all are read before one is moved; so are
        // those of a bad block, and of one whose data rests.
        let searched = if self.options.validity.searches() {
            (victims + 2) * block_pages * by_move
        } else {
            0
        };
        // Where pages are found by hints, every page of a victim may be read.
        let looked_at = match self.options.victims {
            Victims::Tracked(_) => victims * (block_pages + 1),
            Victims::Fewest | Victims::CostBenefit => moved,
        };
        let verifies = if self.options.verify { programs } else { 0 };
        let reads = (looked_at + spare_moves) * by_move + way_reads + search + searched + verifies;
        let erases =
            programs.div_ceil(block_pages) + checkpoints * u64::from(CHECKPOINT_ERASES_MAX);
        // In addition, the erase count of a block whose data may have rested.
        let looks = u64::from(self.wear == Wear::Circular);
        let reads = reads + looks + erases * u64::from(self.wear.reads_by_erase());
        Cost { reads, programs, erases }
    }
}
