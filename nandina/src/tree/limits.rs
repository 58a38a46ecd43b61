//! How many pages may be valid in the current tree.
//!
//! Nothing is read or written here.

use super::{Limits, Placement, TreeIndex, WritePolicy};
use crate::flash::Flash;
use crate::gc::{Budget, Extent, RelocationMode};
use crate::space::Checkpointing;

/// How many pages may be valid, and the tree for which that was computed.
pub(super) struct PageLimits {
    budget: Budget,
    height: u8,
    inner_nodes: u32,
    /// How pages are to be moved, as set in the options.
    requested: RelocationMode,
    /// How pages are moved now.
    moves: RelocationMode,
}

impl PageLimits {
    /// Limits of no tree yet. Pages are to be moved as `requested`.
    pub fn new(requested: RelocationMode) -> Self {
        let requested = requested.built();
        Self { budget: Budget::default(), height: 0, inner_nodes: 0, requested, moves: requested }
    }
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Updates the limits after a change, if they may have changed.
    ///
    /// They depend only on the height, the inner nodes, and how many more blocks are bad than
    /// planned for.
    pub(super) fn keep_budget(&mut self) {
        let bad_blocks = self.space.log.blocks.bad_blocks();
        let worn_out = bad_blocks > 0 && bad_blocks > self.space.log.reserve_blocks();
        let PageLimits { height, inner_nodes, requested, .. } = self.page_limits;
        let is_same = (height, inner_nodes) == (self.state.height(), self.state.inner_nodes());
        if !is_same || worn_out || requested.built() == RelocationMode::Alone {
            self.set_budget();
        }
        debug_assert!(
            *self.budget() == self.budget_for(self.state.height(), self.state.inner_nodes()),
            "the budget is of another tree"
        );
    }

    /// Moves pages as the options ask for, if that allows what is valid.
    ///
    /// Called before a change. It is no time for that as long as changes are pending, which were
    /// buffered within the limit of pages that move together.
    pub(super) fn review_moves(&mut self) {
        let requested = self.page_limits.requested.built();
        if self.moves() != requested && self.batch.len() == 0 {
            self.page_limits.moves = requested;
            self.set_budget();
        }
    }

    /// Sets the limits for the current tree.
    ///
    /// An index may be fuller than the requested moves allow, because other settings filled it. It
    /// moves pages together until it is not: otherwise no record could be removed. For the same
    /// reason it writes no checkpoints that take more blocks than the smallest.
    #[inline(never)]
    pub(super) fn set_budget(&mut self) {
        (self.page_limits.height, self.page_limits.inner_nodes) =
            (self.state.height(), self.state.inner_nodes());
        self.page_limits.budget = self.budget_for(self.state.height(), self.state.inner_nodes());
        if self.moves() == RelocationMode::Alone && self.space.taken_pages() > self.limit_pages() {
            self.page_limits.moves = RelocationMode::Together;
            self.page_limits.budget =
                self.budget_for(self.state.height(), self.state.inner_nodes());
        }
        if self.space.taken_pages() > self.limit_pages() && self.space.checkpoints.shrink() {
            self.page_limits.budget =
                self.budget_for(self.state.height(), self.state.inner_nodes());
        }
    }

    /// The limits of the current tree.
    pub(super) const fn budget(&self) -> &Budget {
        &self.page_limits.budget
    }

    /// Pages that may be valid in the current tree.
    pub(crate) const fn limit_pages(&self) -> u32 {
        self.budget().limit_pages
    }

    /// How garbage collection moves pages of the tree as it is.
    pub(super) const fn moves(&self) -> RelocationMode {
        self.page_limits.moves.built()
    }

    pub(super) fn budget_for(&self, height: u8, inner_nodes: u32) -> Budget {
        let extent = self.space.extent();
        S::Kind::budget::<S>(&self.limits(&extent, height, inner_nodes))
    }

    /// What the page limits of a tree of this height follow from.
    pub(super) fn limits<'l>(
        &self,
        extent: &'l Extent,
        height: u8,
        inner_nodes: u32,
    ) -> Limits<'l> {
        Limits {
            extent,
            pages: self.space.log.geometry().pages(),
            atomic: self.space.log.medium.atomic,
            checkpoint_pages: self.space.checkpoints.pages_among_nodes(),
            moves: self.moves(),
            mappings: self.space.mappings.capacity(),
            height,
            inner_nodes,
        }
    }
}
