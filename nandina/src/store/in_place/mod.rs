//! Nodes replaced in place, on logical pages with two shadow pages each.
//!
//! Where the device replaces a page as a whole or not at all, a logical page is one page. The
//! medium records which of the two it was formatted for. Nothing is erased or collected. A page
//! that replaces another commits.

mod btree;
mod checkpoint;
mod recover;
mod session;
mod session_end;
mod session_page;
mod shadow_pages;
mod vanished;
mod wpcb;

pub use btree::BTree;
pub use wpcb::Wpcb;

use crate::engine::{Cost, Options, UpdateScheme, WorstChange, path_options};
use checkpoint::AmongNodes;
use session_page::Sessions;
use shadow_pages::{ROOT as ROOT_PAGE, logical_pages};

use crate::blocks::LivenessTracking;
use crate::error::{BadOption, Damage, Fault, OpenError};
use crate::flash::{Flash, Geometry, PageNumber, Upkeep};
use crate::gc::Budget;
use crate::log::{Newest, layout_of};
use crate::space::{InPlace, Kind, ReadCache, Space};
use crate::tree::{Limits, Opening, Placement, Replaced, TreeIndex, WritePolicy};

impl Kind for InPlace {
    const UPDATES: UpdateScheme = UpdateScheme::InPlace;
    const CHECKPOINTS_END_SESSIONS: bool = true;
    /// Gaps are listed in session pages instead.
    const GAP: u64 = 0;
    type Checkpoints = AmongNodes;
    type Cache<'b> = ReadCache<'b>;
    type Memory = Sessions;

    fn resolve<F: Flash>(space: &Space<'_, F, Self>, page: u32) -> u32 {
        space.newer_shadow_page(page)
    }

    fn room<F: Flash>(space: &Space<'_, F, Self>) -> u32 {
        space.free_logical_pages()
    }

    fn supersede<F: Flash>(space: &mut Space<'_, F, Self>, page: u32) {
        space.forget_superseded(page);
        space.log.supersede(PageNumber(page));
        let name = page / space.pages_each();
        space.memory.note_free(name);
        if space.is_atomic() {
            space.memory.vanished.note(page);
        }
    }

    fn let_device_work<F: Flash>(
        space: &mut Space<'_, F, Self>,
        budget: u32,
    ) -> Result<Upkeep, Fault<F::Error>> {
        space.log.let_device_work(budget)
    }

    fn device_work_least<F: Flash>(space: &Space<'_, F, Self>) -> u32 {
        space.log.device_work_least()
    }

    fn commit<F: Flash>(space: &mut Space<'_, F, Self>, root: u32) -> Result<u32, Fault<F::Error>> {
        space.discard_vanished()?;
        Ok(root)
    }
}

impl WritePolicy for InPlace {
    fn recover<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        _newest: &mut Newest,
    ) -> Result<(), Fault<F::Error>> {
        Self::find_again(index)
    }

    fn find<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), OpenError<F::Error>> {
        index.follow_medium()?;
        if index.continue_in_place()? {
            return Ok(());
        }
        match index.recover_in_place()? {
            Some(medium) => {
                index.space.log.check_medium(&medium)?;
                if medium == index.space.log.medium {
                    return Ok(());
                }
                Err(index.corrupt_at(ROOT_PAGE, Damage::OtherRoot).into())
            }
            None => {
                index.newest_page()?;
                Err(index.corrupt_at(ROOT_PAGE, Damage::NoRoot).into())
            }
        }
    }

    fn find_again<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        if index.continue_in_place()? {
            return Ok(());
        }
        let found = index.recover_in_place()?;
        if found != Some(index.space.log.medium) {
            return Err(index.corrupt_at(ROOT_PAGE, Damage::NoRoot));
        }
        Ok(())
    }

    fn is_torn<F: Flash, S: Placement<Kind = Self>>(
        _index: &mut TreeIndex<'_, F, S>,
        _page: PageNumber,
    ) -> Result<bool, Fault<F::Error>> {
        // The mount has already decided which pages are torn.
        Ok(false)
    }

    fn settle<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.settle_in_place()
    }

    fn begin_changes<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<bool, Fault<F::Error>> {
        index.begin_session()
    }

    fn end_session<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        // Without a checkpoint, the next session page records it.
        if index.space.has_checkpoints() { index.end_in_place() } else { Ok(()) }
    }

    fn find_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), OpenError<F::Error>> {
        index.find_as_seen()
    }

    fn begin_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        // A torn session page, or a checkpoint, must not outdate the new root.
        index.begin_session().map(|_| ())
    }

    fn survey_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        _newest: Option<Newest>,
    ) -> Result<u64, Fault<F::Error>> {
        index.outdate_in_place()
    }

    fn begins_at_once(_replaced: &Replaced) -> bool {
        true
    }

    fn budget<S: Placement<Kind = Self>>(of: &Limits<'_>) -> Budget {
        Budget::in_place(logical_pages(of.pages, of.atomic, of.checkpoint_pages))
    }

    fn checkpoint_pages(geometry: &Geometry, _options: &Options, _block_pages: u32) -> u32 {
        checkpoint::checkpoint_pages(geometry, &layout_of(geometry))
    }

    fn refuses(options: &Options) -> Option<BadOption> {
        path_options(options).or_else(|| {
            (options.validity == LivenessTracking::Searched).then_some(BadOption::NotSearched)
        })
    }

    fn change_cost(bounds: &WorstChange<'_>, _short_pages: u32, _reserve_touched: bool) -> Cost {
        let (height, merges) = (u64::from(bounds.height), u64::from(bounds.merges));
        let (_, way_reads) = bounds.ways();
        // Nothing is collected. A split writes two pages, or three for a root; and the first change
        // since a mount may write a session page.
        let programs = 3 * height + 3 + 3 * merges + 1;
        let verifies = if bounds.options.verify { programs } else { 0 };
        Cost { reads: way_reads + verifies, programs, erases: 0 }
    }

    fn open_cost(opening: &Opening) -> Cost {
        opening.where_pages_commit(0)
    }
}
