//! The accounts of the block table, checked when an owner of the log commits.
//!
//! A release build never counts again: the check does nothing there.

use super::Log;
use crate::flash::Flash;

/// Pages of the largest chip whose accounts are checked at every commit.
///
/// On a chip of n times as many they are checked at each n-th sequence number or so: a check looks
/// at every page in RAM, and a test should not take much longer for it.
#[cfg(debug_assertions)]
const EACH_COMMIT_PAGES: u32 = 64;

impl<F: Flash> Log<'_, F> {
    /// Panics if an account of the block table differs from a count.
    ///
    /// An owner calls it at each commit, when no block is held any longer. Returns whether it
    /// counted this time.
    #[cfg(debug_assertions)]
    pub fn check_accounts(&self) -> bool {
        let every = u64::from(self.geometry().pages().div_ceil(EACH_COMMIT_PAGES));
        let counts = self.sequence().is_multiple_of(every);
        if counts {
            assert_eq!(self.blocks.wrong_account(), None, "an account of the block table");
        }
        counts
    }

    /// Does nothing: only debug builds count again.
    #[cfg(not(debug_assertions))]
    pub const fn check_accounts(&self) -> bool {
        false
    }
}
