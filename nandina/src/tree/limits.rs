//! How many pages may be valid in the current tree.
//!
//! Nothing is read or written here.

use super::{Limits, Placement, TreeIndex, WritePolicy};
use crate::flash::Flash;
use crate::space::{Budget, Extent, Moves};

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Updates the limits after a change, if they may have changed.
    ///
    /// They depend only on the height, the inner nodes, and how many more blocks are bad than
    /// planned for.
    pub(super) fn keep_budget(&mut self) {
        let bad_blocks = self.space.log.blocks.bad_blocks();
        let worn_out = bad_blocks > 0 && bad_blocks > self.space.log.reserve_blocks();
        let is_same =
            (self.budget_height, self.budget_inner_nodes) == (self.height, self.inner_nodes);
        if !is_same || worn_out || self.moves_asked.built() == Moves::Alone {
            self.set_budget();
        }
        debug_assert!(
            self.budget == self.budget_for(self.height, self.inner_nodes),
            "the budget is of another tree"
        );
    }

    /// Moves pages as the options ask for, if that allows what is valid.
    ///
    /// Called before a change. It is no time for that as long as changes are pending, which were
    /// buffered within the limit of pages that move together.
    pub(super) fn review_moves(&mut self) {
        if self.moves() != self.moves_asked.built() && self.batch.len() == 0 {
            self.moves = self.moves_asked.built();
            self.set_budget();
        }
    }

    /// Sets the limits for the current tree.
    ///
    /// An index may be fuller than the requested moves allow, because other settings filled it. It
    /// moves pages together until it is not: otherwise no record could be removed.
    #[inline(never)]
    pub(super) fn set_budget(&mut self) {
        (self.budget_height, self.budget_inner_nodes) = (self.height, self.inner_nodes);
        self.budget = self.budget_for(self.height, self.inner_nodes);
        if self.moves() == Moves::Alone && self.space.taken_pages() > self.budget.limit_pages {
            self.moves = Moves::Together;
            self.budget = self.budget_for(self.height, self.inner_nodes);
        }
    }

    /// How garbage collection moves pages of the tree as it is.
    pub(super) const fn moves(&self) -> Moves {
        self.moves.built()
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
            moves: self.moves(),
            mappings: self.space.mappings.capacity(),
            height,
            inner_nodes,
        }
    }
}
