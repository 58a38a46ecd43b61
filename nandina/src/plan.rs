//! What an index will cost, before it exists: RAM and chip operations.
//!
//! The chip operations are bounds for each kind of call. They hold for every state that an index
//! can get into on a chip none of whose blocks fails: full, worn, just mounted. Each block that
//! fails costs one program or erase more, and one page move for each page that it held.

use crate::error::OpenError;
use crate::flash::{Capabilities, Geometry};
use crate::log::{Frames, layout_of};
use crate::space::{
    AREA_BLOCKS, Dimensions, Extent, checkpoint_cost, checkpoint_parts, room_to_fail,
};
pub use crate::tree::Cost;
use crate::tree::{
    Bounds, Form, Limits, Opening, Options, Placement, Size, WritePolicy, merges_max, move_cost,
    ram_needed, waiting_max,
};

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
/// `records` is the most that the index ever holds at once. The plan has room for one more: an
/// insert that a cut or an error of the device ended may have split nodes, up to the root. Of the
/// children of a node, each two neighbours hold more records than fit in one node: where removals
/// have thinned them out more than that, an insert merges two before it makes the tree larger. So
/// the plan holds for every order of inserts and removals.
///
/// Fails as [`Index::format`](crate::Index::format) would. More records than fit are no error: see
/// [`Plan::fits`].
pub fn plan<S: Placement>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    options: &Options,
    records: u32,
) -> Result<Plan, OpenError<core::convert::Infallible>> {
    let chip = Dimensions::new(geometry, capabilities);
    let block_pages = chip.block_pages;
    options.check::<S, _>(&chip, usize::MAX)?;
    let layout = layout_of(geometry);
    let medium = options.medium::<S>(&chip);
    let tree = Size::of::<S>(&Form::new(&layout, &medium), records.saturating_add(1));
    let reserve = capabilities.bad_blocks_max(geometry.blocks).min(geometry.blocks);
    let area = if options.checkpoints.is_some() { AREA_BLOCKS } else { 0 };
    let extent = Extent { block_pages, blocks: (geometry.blocks - reserve).saturating_sub(area) };
    let path = S::path_pages(tree.height);
    let capacity = S::Kind::mappings(options, geometry);
    let parts = match options.checkpoints {
        Some(_) => {
            let mapping_bytes = S::Kind::mapping_bytes(options);
            checkpoint_parts(geometry, &layout, block_pages, mapping_bytes).unwrap_or(0)
        }
        None => 0,
    };
    let budget_for = |height: u8, inner_nodes: u32| {
        S::Kind::budget::<S>(&Limits {
            extent: &extent,
            pages: geometry.pages(),
            atomic: medium.atomic,
            moves: options.moves.built(),
            mappings: capacity,
            height,
            inner_nodes,
        })
    };
    let least = budget_for(2, 1);
    if least.limit_pages < 3 {
        return Err(OpenError::ChipTooSmall { limit_pages: least.limit_pages });
    }
    let limit_pages = budget_for(tree.height, tree.inner_nodes).limit_pages;
    let valid_pages = tree.leaves.saturating_add(tree.inner_nodes);
    let beside = S::Kind::planned_beside(tree.height, tree.inner_nodes, capacity);
    let limit_pages = limit_pages.saturating_sub(beside);
    let fits = !tree.too_high && valid_pages <= limit_pages;
    // Records that do not fit may be inserted all the same: then only the chip bounds the tree.
    let most = |nodes: u32| if fits { nodes } else { geometry.pages() };
    let budget = budget_for(tree.height, if fits { tree.inner_nodes } else { 1 });
    let tree = Size { leaves: most(tree.leaves), inner_nodes: most(tree.inner_nodes), ..tree };
    let wear = options.wear_of::<S>();
    let height = tree.height;
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
        trims: S::TRIMS,
        merges,
        searched,
    };
    let shared = Frames::COUNT_MAX.min(options.buffers::<S>()) <= usize::from(tree.height);
    let inner_reads = u64::from(tree.inner_nodes) * if shared { 2 } else { 1 };
    let spanned = u64::from((budget.room_pages() - budget.reserve_pages()).div_ceil(block_pages));
    let waiting = waiting_max(geometry.page_bytes as usize, options) as u64;
    let change = S::Kind::change_cost(&bounds, budget.room_pages() - budget.reserve_pages(), false);
    // The blocks for checkpoints are missing as well.
    let checkpoint = if parts > 0 { 2 * block_pages } else { 0 };
    let short_pages = budget.room_pages() + checkpoint + room_to_fail(0, reserve, block_pages);
    let after_cuts = S::Kind::change_cost(&bounds, short_pages, true);
    let opening = Opening {
        geometry: *geometry,
        block_pages,
        height,
        path,
        leaves,
        inner_nodes: inner,
        inner_reads,
        spanned,
        checkpoint_pages: parts,
        after_cuts,
    };
    Ok(Plan {
        ram_bytes: ram_needed::<S>(geometry, options),
        height: tree.height,
        valid_pages,
        limit_pages,
        fits,
        open: S::Kind::open_cost(&opening),
        get: Cost { reads: tree.height.into(), programs: 0, erases: 0 },
        change: change.and(waiting, change),
        // The first change makes the reserve whole.
        change_after_cuts: after_cuts.and(waiting, change),
        gc_step_least: move_cost(
            tree.height,
            path,
            0,
            options.verify,
            options.wear_of::<S>(),
            block_pages,
        ) + if parts > 0 { checkpoint_cost(parts, options.verify) } else { 0 },
    })
}
