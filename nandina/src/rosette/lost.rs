//! What a mount found damaged that no cut explains.
//!
//! Nothing is read or written here.

use crate::flash::PageNumber;

/// Pages that a mount missed.
pub(super) struct Lost {
    /// A damaged page that the mount met: the newest one.
    damaged: Option<PageNumber>,
    /// Some page owns several ranges, because a page between them is lost.
    apart: bool,
    unexplained_pages: u32,
}

impl Lost {
    /// Nothing is lost.
    pub const NONE: Self = Self { damaged: None, apart: false, unexplained_pages: 0 };

    /// A damaged page that the mount met: the newest one.
    pub const fn damaged(&self) -> Option<PageNumber> {
        self.damaged
    }

    /// Whether some page owns several ranges, because a page between them is lost.
    pub const fn are_apart(&self) -> bool {
        self.apart
    }

    /// Damage that no cut explains: at most this many pages are lost.
    pub const fn unexplained_pages(&self) -> u32 {
        self.unexplained_pages
    }

    /// A mount begins to look at the pages.
    pub const fn forget(&mut self) {
        (self.damaged, self.apart) = (None, false);
    }

    /// A mount met a damaged page. It comes from the newest pages to the oldest.
    pub fn note_damaged(&mut self, page: PageNumber) {
        self.damaged.get_or_insert(page);
    }

    /// Notes whether a page received several ranges.
    pub fn note_apart(&mut self, apart: bool) {
        self.apart |= apart;
    }

    /// Forgets that a page received several ranges. Returns whether one did.
    pub const fn take_apart(&mut self) -> bool {
        core::mem::replace(&mut self.apart, false)
    }

    /// A mount counted the damage that no cut explains.
    pub const fn count_unexplained(&mut self, pages: u32) {
        self.unexplained_pages = pages;
    }
}
