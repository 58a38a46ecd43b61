//! The B+-tree, shared by all systems.
//!
//! It descends, inserts, replaces, removes, scans, and moves pages for garbage collection.
//!
//! The tree knows keys, nodes and levels. It knows nothing of chips: pages come from and go to
//! [`Space`], and the store decides where a changed node is written. No recursion, no heap.
//!
//! Nodes that become empty are removed, and removals merge no nodes (μ-Tree paper, section 3.4).
//! Only a tree that would grow beyond the size planned for its records merges nodes first
//! (`merge.rs` beside this).

mod batch;
mod change;
mod check;
mod collect;
mod cost;
mod descend;
mod edit;
mod engine;
#[cfg(feature = "paper-modes")]
mod evict;
mod flush;
mod form;
mod format;
mod identify;
mod leaf_changes;
mod limits;
mod merge;
mod mount;
mod options;
mod path;
mod placement;
mod promise;
mod range;
#[cfg(feature = "paper-modes")]
mod rebalance;
#[cfg(feature = "checkpoints")]
mod replaced;
mod rewrite;
mod search;
mod settle;
mod shrink;
mod split;
mod state;
mod torn;
mod torn_pages;
mod trim;
mod valid;
mod walk;

pub(crate) use batch::waiting_max;
pub(crate) use collect::move_cost;
pub(crate) use cost::Opening;
pub(crate) use form::Form;
pub use identify::{identify, ram_to_identify};
pub(crate) use merge::{Size, merges_max};
pub(crate) use options::{checkpoint_pages, ram_needed};
pub(crate) use path::Path;
pub use placement::WritePolicy;
pub(crate) use placement::{Found, Limits, Replaced};
pub use placement::{Halves, Level, Origin, PlaceFault, Placement, Written};
pub(crate) use placement::{extent_of, relink};
pub use placement::{node_in, node_mut_in};
pub(crate) use walk::Top;

use batch::Batch;
use limits::PageLimits;
use split::Separator;
use state::State;
use torn_pages::TornPages;

use crate::engine::{Folds, KEY_BYTES_MAX};
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc::{self, Collector, PageOwner};
use crate::log::checkpoint::Summary;
use crate::space::{Checkpointing, Kind, Space};

/// The height of the highest tree that is built.
pub const HEIGHT_MAX: u8 = 12;

/// The checkpoints of system `S`.
pub(crate) type CheckpointsOf<S> = <<S as Placement>::Kind as Kind>::Checkpoints;

/// Records on a chip `F` in a tree, whose nodes are stored as system `S` does.
pub struct TreeIndex<'b, F, S: Placement> {
    pub(crate) space: Space<'b, F, S::Kind>,
    place: S,
    batch: Batch<'b>,
    separator: Separator<'b>,
    /// The key before which the node that is being read ends.
    bound: &'b mut [u8],
    pub(crate) state: State,
    /// What the mount decided about pages that may be torn.
    pub(crate) torn: TornPages,
    page_limits: PageLimits,
    pub(crate) folding: Folds,
    /// Whether removals merge and rotate nodes.
    #[cfg(feature = "paper-modes")]
    rebalances: bool,
    collector: Collector,
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Applies the pending changes and programs the staged pages.
    fn write_all(&mut self) -> Result<(), Fault<F::Error>> {
        self.settle()?;
        let applied = self.apply_waiting();
        if !self.state.is_in_doubt() {
            self.write_out()?;
        }
        applied
    }

    /// Writes a checkpoint. Returns `false` if there are none, or no room for one.
    ///
    /// If there was none before, garbage may be collected for its block.
    pub(crate) fn gain_checkpoint(&mut self) -> Result<bool, Fault<F::Error>> {
        if CheckpointsOf::<S>::room(&self.space) > self.space.log.block_pages() {
            match self.settle().and_then(|()| gc::gain_room(self, 0)) {
                Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.state.is_in_doubt() => {}
                gained => gained?,
            }
        }
        Ok(self.space.log.medium.checkpoints && self.write_checkpoint()?)
    }

    /// Writes a checkpoint. Returns `false` if there is no room for it.
    fn write_checkpoint(&mut self) -> Result<bool, Fault<F::Error>> {
        // The first one keeps its blocks, which must not be of the reserve.
        let taken = CheckpointsOf::<S>::taken(&self.space);
        if taken > 0 && self.space.room() < self.reserve_pages() + taken {
            return Ok(false);
        }
        self.state.doubt();
        let state = &self.state;
        let summary = Summary {
            page: state.root(),
            height: state.height(),
            records: state.records(),
            nodes: state.inner_nodes(),
        };
        let written = CheckpointsOf::<S>::write(&mut self.space, &summary)?;
        self.state.trust();
        Ok(written)
    }

    /// Writes a checkpoint if one is due before the longest operation or move.
    ///
    /// None is written while a mount settles: the next mount would begin after pages that are not
    /// settled yet. If the list of the last checkpoint ends meanwhile, that checkpoint is erased.
    pub(crate) fn keep_checkpoint(&mut self) -> Result<(), Fault<F::Error>> {
        if S::Kind::CHECKPOINTS_END_SESSIONS {
            return Ok(());
        }
        let operation = S::path_pages(self.state.height()) + u32::from(self.state.height()) + 1;
        if !self.space.log.is_settling() && CheckpointsOf::<S>::is_due(&self.space, operation) {
            self.write_out()?;
            self.write_checkpoint()?;
        }
        Ok(())
    }

    /// Programs the content of the write cache.
    fn write_out(&mut self) -> Result<(), Fault<F::Error>> {
        if S::Kind::staged(&self.space) != (0, 0) {
            self.state.doubt();
            let root = S::Kind::write_out(&mut self.space, self.state.root())?;
            self.state.move_root(root);
            self.state.trust();
        }
        Ok(())
    }

    /// Looks `key` up in nodes whose records are sorted.
    pub(crate) fn look_up_sorted(&mut self, key: &[u8]) -> Result<Option<Found>, Fault<F::Error>> {
        let mut path = Path::new();
        self.descend(&mut path, key, 1, false)?;
        let node = self.node(path.frame(), 1)?;
        let Ok(index) = node.search(key) else { return Ok(None) };
        let level = self.level(1);
        let start = extent_of::<S, F>(&self.space, path.frame(), level).start
            + level.shape.at(index)
            + level.shape.key_bytes();
        Ok(Some((path.frame(), start..start + level.shape.payload_bytes())))
    }

    /// Lends the keys of the separator, which the index does not hold meanwhile.
    #[inline(always)]
    pub(crate) fn with_separator<T>(
        &mut self,
        with: impl FnOnce(&mut Self, &mut Separator<'_>) -> T,
    ) -> T {
        let mut keys = core::mem::take(&mut self.separator);
        let done = with(self, &mut keys);
        self.separator = keys;
        done
    }

    /// Lends the bound, which the index does not hold meanwhile.
    #[inline(always)]
    fn with_bound<T>(&mut self, with: impl FnOnce(&mut Self, &mut [u8]) -> T) -> T {
        let bound = core::mem::take(&mut self.bound);
        let done = with(self, bound);
        self.bound = bound;
        done
    }

    /// Lends the pending changes, which the index does not hold meanwhile.
    #[inline(always)]
    fn with_batch<T>(&mut self, with: impl FnOnce(&mut Self, &Batch<'_>) -> T) -> T {
        let batch = core::mem::take(&mut self.batch);
        let done = with(self, &batch);
        self.batch = batch;
        done
    }

    /// Mounts the medium again after an operation that failed half way.
    fn settle(&mut self) -> Result<(), Fault<F::Error>> {
        if self.state.is_in_doubt() {
            self.mount()?;
        }
        Ok(())
    }

    pub(crate) fn form(&self) -> Form {
        Form::new(&self.space.log.layout(), &self.space.log.medium)
    }

    /// The root.
    pub(crate) const fn top(&self) -> Top {
        Top { page: self.state.root(), level: self.state.height() }
    }

    pub(crate) fn level(&self, level: u8) -> Level {
        self.form().level::<S>(level, self.state.height())
    }

    fn capacity(&self, level: u8) -> usize {
        self.form().capacity::<S>(level, self.state.height())
    }

    /// The most records that the node of `level` can have on the path of a change.
    fn most(&self, level: u8) -> usize {
        let fits = self.capacity(level);
        self.place.most(&self.space, self.level(level), fits)
    }

    #[inline(never)]
    pub(crate) fn working(&self, level: u8) -> usize {
        S::working(level, self.state.height(), self.space.log.frames.count())
    }

    #[inline(never)]
    fn spare(&self, level: u8) -> usize {
        S::spare(level, self.state.height(), self.space.log.frames.count())
    }

    pub(crate) fn node(
        &self,
        frame: usize,
        level: u8,
    ) -> Result<crate::node::Node<'_>, Fault<F::Error>> {
        node_in::<S, F>(&self.space, frame, self.level(level))
            .ok_or_else(|| self.corrupt(frame, Damage::NodeTooFull))
    }

    /// The fault for the damaged page that `frame` holds.
    /// It is the root if the content of `frame` was changed since it was read.
    pub(crate) fn corrupt(&self, frame: usize, reason: Damage) -> Fault<F::Error> {
        let held = self.space.log.frames.held(frame);
        let is_page = held < self.space.log.geometry().pages();
        self.corrupt_at(if is_page { held } else { self.state.root() }, reason)
    }

    /// The fault for the damaged page with the logical address `name`.
    pub(crate) fn corrupt_at(&self, name: u32, reason: Damage) -> Fault<F::Error> {
        Fault::Corrupt { page: PageNumber(self.space.current_page(name)), reason }
    }

    pub(crate) fn block_of(&self, page: u32) -> BlockNumber {
        self.space.log.geometry().block_of(PageNumber(page))
    }
}
