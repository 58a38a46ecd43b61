//! What differs between the ways to write a tree, beyond where a node goes.
//!
//! A store implements [`Placement`](super::Placement) for each of its systems, and
//! [`WritePolicy`] once: how the tree is found again, what a mount writes anew, how many pages may
//! be valid, which options exist, and what the worst call costs. The tree never asks which store it
//! belongs to; it calls the policy.

use crate::engine::{Cost, Options};
use core::ops::Range;

use super::cost::{Bounds, Opening};
use super::descend::Path;
use super::format::Replaced;
use super::survey::{END, Newest};
use super::{Placement, TreeIndex};
use crate::blocks::Wear;
use crate::error::{BadOption, Fault, OpenError};
use crate::flash::{Flash, Geometry, PageNumber};
use crate::node::Shape;
use crate::space::{Budget, Checkpoint, Extent, Kind, Moves};

/// What the page limits of a tree follow from.
#[derive(Clone, Copy)]
pub struct Limits<'l> {
    /// The blocks that the index can use.
    pub extent: &'l Extent,
    /// Pages of the chip.
    pub pages: u32,
    /// Pages are replaced atomically, so that none has a shadow.
    pub atomic: bool,
    /// How garbage collection moves pages.
    pub moves: Moves,
    /// Places of the mapping table.
    pub mappings: usize,
    /// Height of the tree.
    pub height: u8,
    /// Its nodes above the leaves.
    pub inner_nodes: u32,
}

/// Where a payload is in a page buffer, and a detail of it, if there is one.
pub type Found = (usize, Range<usize>);

/// A way to write a tree, and all that follows from it.
///
/// Each function is called for an index of a system of this policy. The defaults are those of a
/// log: pages are programmed one after another, and superseded ones are collected.
pub trait WritePolicy: Kind {
    /// Finds the tree on the chip and makes it the current one.
    ///
    /// `newest` is the newest block of the index. Nothing is written. Pages that may be
    /// torn, and blocks that the tree before the last commit needs, are noted for
    /// [`settle`](Self::settle).
    fn recover<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        newest: Newest,
    ) -> Result<(), Fault<F::Error>>;

    /// Finds the index when it is opened, and checks that it is one of these settings.
    fn find<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), OpenError<F::Error>> {
        if index.mount_from_checkpoint()? {
            return Ok(());
        }
        let newest = index.newest_page()?;
        Ok(index.mount_from_blocks(newest)?)
    }

    /// Finds the index again after an operation that failed half way.
    fn find_again<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        if index.mount_from_checkpoint()? {
            return Ok(());
        }
        let newest = index.survey_newest(END, None)?;
        index.mount_from_blocks(newest)
    }

    /// Continues from the checkpoint `found`, without writing anything.
    ///
    /// Returns `false` if it cannot be used: then all blocks have to be read.
    fn go_on_from<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        found: &Checkpoint,
    ) -> Result<bool, Fault<F::Error>> {
        let _ = (index, found);
        Ok(false)
    }

    /// Whether a mount can begin again without the newest commit: `page` is torn.
    ///
    /// `page` belongs to the tree of that commit and cannot be read.
    fn is_torn<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        page: PageNumber,
    ) -> Result<bool, Fault<F::Error>> {
        Ok(index.torn.is_newest(page))
    }

    /// Writes anew what a cut may have left torn.
    fn settle<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>>;

    /// Makes sure that the index can be read although nothing could be settled.
    fn read_unsettled<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        let _ = index;
        Ok(())
    }

    /// Called before the first change since a mount.
    ///
    /// Returns whether it wrote something.
    fn begin_changes<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<bool, Fault<F::Error>> {
        let _ = index;
        Ok(false)
    }

    /// Marks the end of a session on the chip, if there is room for that.
    fn end_session<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.mark_end()
    }

    /// Finds the index that a format replaces.
    ///
    /// Like every mount, it settles what may be torn of it.
    fn find_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), OpenError<F::Error>> {
        index.find()
    }

    /// Makes sure that the index that a format replaces does not end well.
    fn begin_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.begin_last_session()
    }

    /// Finds what a format replaces if it is no index that can be opened.
    ///
    /// Returns the highest sequence number of it, and keeps the blocks that it needs from being
    /// opened.
    fn survey_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        newest: Option<Newest>,
    ) -> Result<u64, Fault<F::Error>> {
        let Some(newest) = newest else { return Ok(0) };
        index.hold_blocks_of(newest.identity)?;
        // No page of its block has a number that is higher by more than the block has pages.
        Ok(newest.sequence + u64::from(index.space.log.block_pages()))
    }

    /// Whether a new index writes its root first.
    ///
    /// Otherwise a page that commits nothing comes before it.
    fn begins_at_once(replaced: &Replaced) -> bool {
        !matches!(replaced, Replaced::Damaged(_))
    }

    /// Looks `key` up.
    fn look_up<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        key: &[u8],
    ) -> Result<Option<Found>, Fault<F::Error>> {
        index.look_up_sorted(key)
    }

    /// The record layout of a node in `bytes`; that of a sorted node is `shape`.
    fn shape(shape: Shape, bytes: usize) -> Shape {
        let _ = bytes;
        shape
    }

    /// How many pages may be valid.
    fn budget<S: Placement<Kind = Self>>(of: &Limits<'_>) -> Budget {
        let paths = (S::path_pages(of.height), Self::moved_path::<S>(of));
        Budget::new(of.extent, of.moves, of.height, paths, of.inner_nodes)
    }

    /// Pages that are written when a page is moved, its own included.
    fn moved_path<S: Placement<Kind = Self>>(of: &Limits<'_>) -> u32 {
        S::path_pages(of.height)
    }

    /// Pages that a change may need beside those of the nodes.
    ///
    /// The tree has at most `inner_nodes` inner nodes during the change.
    fn pages_beside<F: Flash, S: Placement<Kind = Self>>(
        index: &TreeIndex<'_, F, S>,
        inner_nodes: u32,
    ) -> u32 {
        let _ = (index, inner_nodes);
        0
    }

    /// The most of these pages for any tree of up to `inner_nodes` inner nodes.
    ///
    /// The table has `mappings` places.
    fn planned_beside(height: u8, inner_nodes: u32, mappings: usize) -> u32 {
        let _ = (height, inner_nodes, mappings);
        0
    }

    /// Whether the node of `level` on `path` is written along with its changed child.
    fn writes_parent<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        path: &Path,
        level: u8,
    ) -> Result<bool, Fault<F::Error>> {
        let _ = (index, path, level);
        Ok(false)
    }

    /// Called before the first operation of a change. Default: does nothing.
    fn change_begins<F: Flash, S: Placement<Kind = Self>>(index: &mut TreeIndex<'_, F, S>) {
        let _ = index;
    }

    /// Frees a page after a `refusal` for lack of room, or returns the refusal.
    fn reclaim<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        refusal: Fault<F::Error>,
    ) -> Result<(), Fault<F::Error>> {
        let _ = index;
        Err(refusal)
    }

    /// The option that this policy has no use for, if one is set.
    fn refuses(options: &Options) -> Option<BadOption>;

    /// Whether the read of an erase count needs a page buffer of its own.
    fn reads_beside(wear: Wear) -> bool {
        let _ = wear;
        false
    }

    /// Bytes of RAM for the mapping table that the options ask for.
    fn mapping_bytes(options: &Options) -> usize {
        let _ = options;
        0
    }

    /// Places of a mapping table, on a chip of this geometry.
    fn mappings(options: &Options, geometry: &Geometry) -> usize {
        let _ = (options, geometry);
        0
    }

    /// The most that a change costs that finds `short_pages` too few pages free.
    fn change_cost(bounds: &Bounds<'_>, short_pages: u32, reserve_touched: bool) -> Cost {
        bounds.change_in_log(short_pages, reserve_touched)
    }

    /// The most that opening the index costs.
    fn open_cost(opening: &Opening) -> Cost;
}
