//! Appended records: a change is programmed into the page that holds the node.
//!
//! Each append commits an operation; so does a parent that takes the new page of a child.

#[cfg(feature = "checkpoints")]
mod checkpoint;
mod last_programmed;
mod look_up;
mod overwrite;
mod recover;
mod vm_ow;

pub use vm_ow::VmOw;

use crate::engine::{Cost, Options, UpdateScheme, path_options};
use last_programmed::LastProgrammed;

use crate::error::{BadOption, Fault};
use crate::flash::{Flash, PageNumber};
use crate::gc;
#[cfg(feature = "checkpoints")]
use crate::log::checkpoint::Checkpoint;
use crate::log::{LOOKS, Newest};
use crate::node::{PageLayout, Shape};
use crate::space::{Appends, BuiltCheckpoints, Kind, ReadCache};
use crate::store::page_commits;
use crate::tree::{Found, Opening, Placement, TreeIndex, WritePolicy};

impl Kind for Appends {
    const UPDATES: UpdateScheme = UpdateScheme::Appended;
    const CHECKPOINTS_END_SESSIONS: bool = true;
    type Checkpoints = BuiltCheckpoints;
    type Cache<'b> = ReadCache<'b>;
    type Memory = LastProgrammed;

    fn unpack(layout: &PageLayout, page: &mut [u8]) -> bool {
        layout.unpack(page)
    }
}

impl WritePolicy for Appends {
    #[cfg(feature = "checkpoints")]
    fn go_on_from<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        found: &Checkpoint,
    ) -> Result<bool, Fault<F::Error>> {
        index.go_on_from_end(found)
    }

    #[cfg(feature = "checkpoints")]
    fn end_session<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.end_with_checkpoint()
    }

    fn recover<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        newest: &mut Newest,
    ) -> Result<(), Fault<F::Error>> {
        let mut found = page_commits::Found::NOTHING;
        index.find_newest_root(newest, true, &mut found)?;
        index.recover_appended(newest.identity, &found)?;
        if index.ended_well() {
            return Ok(());
        }
        index.space.log.blocks.set_reserved(newest.block, true);
        index.reserve_state_before(&found)
    }

    fn settle<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        let torn = index.begin_settling()?;
        // First the page in which a record is torn, before collection may move it: an earlier mount
        // may have had no room for it, and returned it as it was before the append.
        index.settle_blocks(&torn, true)?;
        index.settle_blocks(&torn, false)?;
        index.end_settling(|_| false)?;
        index.free_held();
        index.count_anew()?;
        // What was held is free.
        gc::review_reserve(index);
        // The first page of all that commits nothing. Where the newest root counts it is the root:
        // a torn one that this mount did not see is older.
        index.move_page(PageNumber(index.state.root()), None)
    }

    fn read_unsettled<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.expect_before_append()?;
        // The torn page may have read differently when records were counted.
        index.count_anew()
    }

    fn begin_changes<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<bool, Fault<F::Error>> {
        index.settle_before_change()
    }

    fn look_up<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        key: &[u8],
    ) -> Result<Option<Found>, Fault<F::Error>> {
        index.look_up_appended(key)
    }

    fn shape(shape: Shape, bytes: usize) -> Shape {
        // Records that are too long for tags fit in no node.
        shape.appended(bytes).unwrap_or(shape.of_nothing())
    }

    fn refuses(options: &Options) -> Option<BadOption> {
        path_options(options)
    }

    fn open_cost(opening: &Opening) -> Cost {
        // For a record that is torn, each node may be looked at when it is found, before it is
        // moved, and once more if that is not possible; the torn one ten times as often.
        let cost = opening.where_pages_commit(3 * LOOKS);
        let mut cost = Cost { reads: cost.reads + 3 * 9 * LOOKS, ..cost };
        if opening.checkpoint_pages > 0 {
            // A checkpoint that no longer counts, and its anchors.
            cost.reads += opening.search_in_vain();
            cost.erases += 2;
        }
        cost
    }

    fn close_cost(ending: Cost, collecting: Cost) -> Cost {
        // Garbage may be collected for the block of the first checkpoint.
        ending.and(1, collecting)
    }
}
