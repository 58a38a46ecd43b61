//! The clean-up of the paper: a commit when RAM is full, and then a shrink.
//!
//! A share of the clean nodes leaves at once (TNC paper, section 6.2). It needs the feature
//! `paper-modes`. By default a node leaves only where a slot is needed, the oldest first, and a
//! commit comes only when nothing can leave.

use super::TncIndex;
use super::arena::NO_SLOT;
use crate::engine::Options;
use crate::flash::Flash;

/// How many of the clean nodes leave at once, where that is chosen.
#[derive(Clone, Copy)]
pub struct Shrink {
    #[cfg(feature = "paper-modes")]
    percent: Option<u8>,
}

#[cfg(feature = "paper-modes")]
impl Shrink {
    /// What the options say.
    pub const fn of(options: &Options) -> Self {
        Self { percent: options.shrink_percent }
    }

    const fn percent(self) -> Option<u8> {
        self.percent
    }
}

#[cfg(not(feature = "paper-modes"))]
impl Shrink {
    /// There is no such choice.
    pub const fn of(_: &Options) -> Self {
        Self {}
    }

    #[inline(always)]
    const fn percent(self) -> Option<u8> {
        None
    }
}

impl<F: Flash> TncIndex<'_, F> {
    /// Whether a commit and a shrink come before a change that may need these slots.
    #[inline(always)]
    pub(super) const fn shrinks_before(&self, nodes: usize) -> bool {
        self.shrink.percent().is_some() && self.arena.free_slots() < nodes
    }

    /// Lets the share of the clean nodes leave, or as many as make room for `nodes`.
    ///
    /// If fewer left than the change needs, the next change would commit again.
    pub(super) fn shrink(&mut self, nodes: usize) {
        let Some(percent) = self.shrink.percent() else { return };
        let clean = self.arena.used() - self.arena.changed();
        let share = (clean * usize::from(percent)).div_ceil(100);
        let leave = share.max(nodes.saturating_sub(self.arena.free_slots()));
        self.arena.counters.count_shrink();
        for _ in 0..leave {
            if !self.arena.evict(NO_SLOT) {
                break;
            }
        }
    }
}
