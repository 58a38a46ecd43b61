//! Every placement is a system with the tree as its engine: its RAM and its costs.
//!
//! The bounds of chip operations hold for every state that an index can get into.

use crate::engine::{
    Cost, Description, Eviction, Nodes, Options, Plan, System, WorstChange, ending_cost,
};
use crate::error::OpenError;
use crate::flash::Flash;
use crate::flash::{Capabilities, Geometry};
use crate::gc::{Extent, room_to_fail};
use crate::log::Dimensions;
use crate::log::checkpoint;
use crate::log::{Frames, layout_of};
use crate::space::Kind;
use crate::tree::{
    Form, Limits, Opening, Placement, Size, TreeIndex, WritePolicy, checkpoint_pages, merges_max,
    move_cost, ram_needed, waiting_max,
};

impl<S: Placement> System for S {
    const DESCRIPTION: Description = {
        let description = <S as Placement>::DESCRIPTION;
        let (said, is) = (description.updates as u8, <S::Kind as Kind>::UPDATES as u8);
        assert!(said == is, "a store updates as its kind does");
        description
    };

    const NODES: Option<Nodes> = Some(Nodes {
        extent: S::extent_in,
        address_in: S::address_in,
        range_in: |_, _| None,
        trims: S::SPLITS.trims(),
        sharing: S::SHARING,
        path_pages: S::path_pages,
    });

    type Engine<'b, F: Flash> = TreeIndex<'b, F, S>;

    fn ram_needed(geometry: &Geometry, options: &Options) -> usize {
        ram_needed::<S>(geometry, options)
    }

    fn plan(
        geometry: &Geometry,
        capabilities: &Capabilities,
        options: &Options,
        records: u32,
    ) -> Result<Plan, OpenError<core::convert::Infallible>> {
        planned::<S>(geometry, capabilities, options, records)
    }
}

/// Plans an index of system `S` on a chip, for at most `records` records.
fn planned<S: Placement>(
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
    let parts = checkpoint_pages::<S>(geometry, options, block_pages);
    let area_pages = parts.next_multiple_of(block_pages);
    let has_area = parts > 0 && <S::Kind as Kind>::UPDATES.collects();
    let area = if has_area { checkpoint::area_blocks(area_pages / block_pages) } else { 0 };
    let extent = Extent { block_pages, blocks: (geometry.blocks - reserve).saturating_sub(area) };
    let path = S::path_pages(tree.height);
    let capacity = S::Kind::mappings(options, geometry);
    let budget_for = |height: u8, inner_nodes: u32| {
        S::Kind::budget::<S>(&Limits {
            extent: &extent,
            pages: geometry.pages(),
            atomic: medium.atomic,
            checkpoint_pages: parts,
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
    let beside = S::Kind::planned_beside::<S>(tree.height, tree.inner_nodes, capacity);
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
    let bounds = WorstChange {
        extent,
        budget,
        path,
        height,
        parts,
        ends_sessions: S::Kind::CHECKPOINTS_END_SESSIONS,
        options,
        wear,
        trims: S::SPLITS.trims(),
        merges,
        searched,
    };
    let shared = Frames::COUNT_MAX.min(options.buffers::<S>()) <= usize::from(tree.height);
    let inner_reads = u64::from(tree.inner_nodes) * if shared { 2 } else { 1 };
    let spanned = u64::from((budget.room_pages() - budget.reserve_pages()).div_ceil(block_pages));
    let waiting = waiting_max(geometry.page_bytes as usize, options) as u64;
    // Where a leaf is chosen, the nodes above the pending changes are read, at most twice each.
    let choosing = match options.eviction {
        Eviction::All => Cost::default(),
        _ => Cost { reads: 2 * (waiting + 1) * u64::from(tree.height), ..Cost::default() },
    };
    // A removal that rebalances descends six times for each level, and writes three pages of it.
    let levels = if options.rebalances { u64::from(tree.height) } else { 0 };
    let descents = 12 * u64::from(tree.height);
    let balancing = Cost { reads: levels * (descents + 6), programs: 3 * levels, erases: 0 };
    let change = S::Kind::change_cost(&bounds, budget.room_pages() - budget.reserve_pages(), false);
    // The blocks for checkpoints are missing as well.
    let short_pages = budget.room_pages() + 2 * area_pages + room_to_fail(0, reserve, block_pages);
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
        change: change.and(waiting, change).and(1, choosing).and(1, balancing),
        // The first change makes the reserve whole.
        change_after_cuts: after_cuts.and(waiting, change).and(1, choosing).and(1, balancing),
        close: S::Kind::close_cost(
            ending_cost(
                if S::Kind::CHECKPOINTS_END_SESSIONS { (parts, false) } else { (0, has_area) },
                block_pages,
                options.verify,
                wear.reads_by_erase(),
            ),
            if parts > 0 { after_cuts } else { Cost::default() },
        ),
        gc_step_least: move_cost(
            tree.height,
            path,
            0,
            options.verify,
            options.wear_of::<S>(),
            block_pages,
        ) + if !has_area {
            0
        } else if S::Kind::CHECKPOINTS_END_SESSIONS {
            checkpoint::voiding_cost(options.verify)
        } else {
            checkpoint::cost(parts, block_pages, options.verify)
        },
    })
}
