//! What may be torn, as a mount found it, and how far it is settled.
//!
//! `settle.rs` beside this decides what is done about it. Nothing is read or written here.

use super::suspects::{Places, Suspect, Suspects};
use crate::flash::PageNumber;

/// What a mount knows of pages that may be torn, until all of it is settled.
pub(super) struct Torn {
    /// Blocks that may hold a torn page, as the newest session page says.
    suspects: Suspects,
    /// Whether some of them have to wait for room before they are emptied.
    postponed: bool,
    /// The session page, as long as it lists suspects.
    session: Option<PageNumber>,
    /// The newest page that the mount counts, and its sequence number.
    newest: (PageNumber, u64),
    /// The newest leaf that the mount counts, until it was written again.
    newest_leaf: Option<PageNumber>,
    /// Whether no torn page is left that could be read.
    settled: bool,
}

impl Torn {
    /// Before a mount.
    pub const UNKNOWN: Self = Self {
        suspects: Suspects::NONE,
        postponed: false,
        session: None,
        newest: (PageNumber(0), 0),
        newest_leaf: None,
        settled: false,
    };

    /// Blocks that may hold a torn page.
    pub const fn suspects(&self) -> &Suspects {
        &self.suspects
    }

    /// The session page, as long as it lists suspects.
    pub const fn session(&self) -> Option<PageNumber> {
        self.session
    }

    /// The newest page that the mount counts, and its sequence number.
    pub const fn newest(&self) -> (PageNumber, u64) {
        self.newest
    }

    /// The newest leaf that the mount counts, until it was written again.
    pub const fn newest_leaf(&self) -> Option<PageNumber> {
        self.newest_leaf
    }

    /// Whether no torn page is left that could be read.
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// A mount counts no page that is newer than `page`, with this sequence number.
    pub const fn note_newest(&mut self, page: PageNumber, sequence: u64) {
        self.newest = (page, sequence);
    }

    /// A mount counts this leaf as the newest; `None` if it counts none.
    pub const fn note_newest_leaf(&mut self, leaf: Option<PageNumber>) {
        self.newest_leaf = leaf;
    }

    /// The newest leaf was written again, or is known to be whole where it is.
    pub const fn forget_newest_leaf(&mut self) {
        self.newest_leaf = None;
    }

    /// Forgets the suspects and the page that lists them.
    pub fn forget_suspects(&mut self) {
        self.suspects.clear();
        self.session = None;
    }

    /// Reads the suspects that the session page `page` lists.
    ///
    /// Returns `false` if its `area` has no valid list: then there are none.
    pub fn read_suspects(&mut self, area: &[u8], blocks: u32, page: PageNumber) -> bool {
        let is_valid = self.suspects.read(area, blocks);
        self.session = (!self.suspects.is_empty()).then_some(page);
        is_valid
    }

    /// Adds a suspect, which the next session page lists.
    ///
    /// Returns `false` if there is no room in a page of `area_bytes`.
    pub fn add_suspect(&mut self, suspect: Suspect, area_bytes: usize) -> bool {
        self.suspects.add(suspect, area_bytes)
    }

    /// Removes the suspects in these places of the list.
    pub fn remove_suspects(&mut self, places: Places) {
        self.suspects.remove(places);
    }

    /// The session page `page` was programmed: it is needed if it lists suspects.
    ///
    /// Returns the one before, if that was needed.
    pub fn note_session(&mut self, page: PageNumber) -> Option<PageNumber> {
        let is_needed = !self.suspects.is_empty();
        core::mem::replace(&mut self.session, is_needed.then_some(page))
    }

    /// The session page is not needed, and its block may be erased.
    pub const fn forget_session(&mut self) {
        self.session = None;
    }

    /// Suspects have to wait for room.
    pub const fn postpone(&mut self) {
        self.postponed = true;
    }

    /// Begins to empty the suspects. Returns whether some had to wait for room.
    pub const fn take_postponed(&mut self) -> bool {
        core::mem::replace(&mut self.postponed, false)
    }

    /// Notes whether all is settled.
    pub const fn set_settled(&mut self, settled: bool) {
        self.settled = settled;
    }
}
