//! The running operation: how its pages are written, and how many it supersedes.
//!
//! No page is read or written here.

use crate::gc::MOVED_ALONG_MAX;

/// The most pages that one operation can supersede before it commits.
///
/// Half of them are pages that the path of a moved page takes along.
pub(crate) const RETIRED_MAX: usize = 2 * MOVED_ALONG_MAX as usize;

/// What a space knows of the running operation.
pub(crate) struct Running {
    /// Its pages are programmed at once instead of being staged.
    at_once: bool,
    /// The number of pages that it superseded.
    retired: u8,
}

impl Running {
    /// No operation is running, and none stages pages.
    pub(super) const NONE: Self = Self { at_once: true, retired: 0 };

    /// Whether the pages of the operation are programmed at once.
    pub(crate) const fn is_at_once(&self) -> bool {
        self.at_once
    }

    /// An operation begins: its pages are programmed `at_once`, or staged.
    pub(crate) const fn begin(&mut self, at_once: bool) {
        self.at_once = at_once;
    }

    /// Counts a page that the operation supersedes.
    pub(super) fn note_superseded(&mut self) {
        self.retired = self.retired.saturating_add(1);
    }

    /// Whether the operation superseded a page.
    pub(super) const fn has_superseded(&self) -> bool {
        self.retired > 0
    }

    /// How many more pages the operation may supersede.
    pub(super) const fn retirable(&self) -> usize {
        RETIRED_MAX.saturating_sub(self.retired as usize)
    }

    /// No page counts as superseded any more: a commit, or a mount.
    pub(super) const fn end(&mut self) {
        self.retired = 0;
    }
}
