//! What must hold whenever an operation commits: checks of debug builds.
//!
//! They count again what RAM keeps from change to change.

use super::{Checkpointing, Kind, Space};
use crate::flash::Flash;
use crate::log::GAP;

/// What debug builds remember of the running operation.
#[derive(Default)]
pub(super) struct Operation {
    /// The highest sequence number when it began.
    from: u64,
    /// Whether a page that commits was programmed.
    has_root: bool,
    /// Whether other pages were programmed since.
    is_followed: bool,
}

impl Operation {
    /// An operation begins, when `sequence` is the highest sequence number.
    pub const fn begin(&mut self, sequence: u64) {
        *self = Self { from: sequence, has_root: false, is_followed: false };
    }

    /// Notes that a page was programmed, which commits or not.
    pub const fn note(&mut self, commits: bool) {
        self.is_followed = self.has_root && !commits;
        self.has_root |= commits;
    }

    /// Panics if a page was programmed after the root.
    pub fn check_root(&self) {
        assert!(!self.is_followed, "a page was programmed behind the root of its operation");
    }
}

impl<F: Flash, K: Kind> Space<'_, F, K> {
    /// Panics unless RAM is consistent and no page follows the root of the operation.
    ///
    /// Called when no block is held any more.
    pub(crate) fn check_commit(&self) {
        // The root is written last and is the commit.
        if self.running.is_at_once() {
            self.operation.check_root();
        }
        // An operation uses fewer numbers than a gap has.
        let numbers = self.log.sequence() - self.operation.from;
        assert!(K::GAP > 0 || numbers < GAP, "an operation used {numbers} numbers");
        if self.log.check_accounts() {
            let mappings = self.mappings.entries().count();
            assert_eq!(self.mappings.len(), mappings, "mappings");
            K::Checkpoints::check_reserved(self);
        }
    }
}
