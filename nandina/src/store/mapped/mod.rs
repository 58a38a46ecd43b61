//! Mapped nodes: a mapping in RAM leads to the new page of a changed node.
//!
//! The parent keeps the logical address of the node. Each page that is written under its logical
//! address commits an operation, as a root does.

#[cfg(feature = "checkpoints")]
mod checkpoint;
mod flush_mappings;
mod recover;
mod vm;

pub use vm::Vm;

use crate::engine::{Cost, Options, UpdateScheme, path_options};
use flush_mappings::Reclaiming;

use crate::error::{BadOption, Fault};
use crate::flash::{Flash, Geometry, PageNumber};
use crate::gc;
use crate::log::Newest;
#[cfg(feature = "checkpoints")]
use crate::log::checkpoint::Checkpoint;
use crate::log::checkpoint::{LIST_MAX, erases_max};
use crate::space::{BuiltCheckpoints, Kind, Maps, ReadCache, Space, mappings_in};
use crate::tree::{Limits, Opening, Path, Placement, TreeIndex, WritePolicy};

impl Kind for Maps {
    const UPDATES: UpdateScheme = UpdateScheme::Mapped;
    type Checkpoints = BuiltCheckpoints;
    type Cache<'b> = ReadCache<'b>;
    type Memory = Reclaiming;

    fn resolve<F: Flash>(space: &Space<'_, F, Self>, page: u32) -> u32 {
        space.mappings.get(page).unwrap_or(page)
    }

    fn forget_address<F: Flash>(space: &mut Space<'_, F, Self>, name: u32) {
        if space.mappings.remove(name) {
            space.log.blocks.supersede(PageNumber(name));
        }
    }
}

impl WritePolicy for Maps {
    #[cfg(feature = "checkpoints")]
    fn go_on_from<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        found: &Checkpoint,
    ) -> Result<bool, Fault<F::Error>> {
        index.go_on_from_mappings(found)
    }

    fn recover<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        newest: &mut Newest,
    ) -> Result<(), Fault<F::Error>> {
        let root_before = index.take_root_from(newest)?;
        index.recover_mapped(newest.identity)?;
        if index.ended_well() {
            return Ok(());
        }
        let before = match root_before {
            Some(before) => before,
            None => index.before_commit(newest.identity)?,
        };
        index.hold_before_commit(before)
    }

    fn settle<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        let torn = index.begin_settling()?;
        index.settle_blocks(&torn, false)?;
        index.end_settling(|first| torn.contains(&first))?;
        // What was held is free.
        gc::review_reserve(index);
        // The first page of all that commits nothing.
        index.mark(0)?;
        index.keep_checkpoint()
    }

    fn begin_changes<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<bool, Fault<F::Error>> {
        index.settle_before_change()
    }

    fn moved_path<S: Placement<Kind = Self>>(of: &Limits<'_>) -> u32 {
        flush_mappings::moved_path(S::path_pages(of.height), of)
    }

    fn pages_beside<F: Flash, S: Placement<Kind = Self>>(
        index: &TreeIndex<'_, F, S>,
        inner_nodes: u32,
    ) -> u32 {
        // One logical address that the change adds, and the table places of all inner nodes.
        1 + index.kept_until(inner_nodes)
    }

    fn counted_pages<F: Flash, S: Placement<Kind = Self>>(index: &TreeIndex<'_, F, S>) -> u32 {
        index.pages_beside_parents()
    }

    fn planned_beside<S: Placement<Kind = Self>>(
        height: u8,
        inner_nodes: u32,
        mappings: usize,
    ) -> u32 {
        if height > 1 { 1 + inner_nodes.min((mappings / 2) as u32) } else { 0 }
    }

    fn writes_parent<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        path: &Path,
        level: u8,
    ) -> Result<bool, Fault<F::Error>> {
        index.flushes_mappings(path, level)
    }

    fn change_begins<F: Flash, S: Placement<Kind = Self>>(index: &mut TreeIndex<'_, F, S>) {
        index.forget_refusal();
    }

    fn reclaim<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        refusal: Fault<F::Error>,
    ) -> Result<(), Fault<F::Error>> {
        index.reclaim_address(refusal)
    }

    fn refuses(options: &Options) -> Option<BadOption> {
        path_options(options)
    }

    fn mapping_bytes(options: &Options) -> usize {
        options.mapping_bytes
    }

    fn mappings(options: &Options, geometry: &Geometry) -> usize {
        mappings_in(options.mapping_bytes, geometry.pages())
    }

    fn open_cost(opening: &Opening) -> Cost {
        let mut cost = opening.where_pages_commit(0);
        if opening.checkpoint_pages > 0 {
            // A checkpoint that leads nowhere, after the pages that are newer and the inner nodes
            // were read; then another one is written.
            let newer = (LIST_MAX as u64 + 1) * u64::from(opening.block_pages);
            cost.reads += opening.search_in_vain() + 5 * newer + 4 * opening.inner_reads;
            cost.programs += u64::from(opening.checkpoint_pages) + 1;
            cost.erases += u64::from(erases_max(opening.checkpoint_blocks())) + 3;
        }
        cost
    }
}
