//! How far RAM can be trusted, and what happened since the index was opened.
//!
//! Nothing is read or written here.

/// What a mount found beside the tree, and what became of it.
pub struct State {
    /// An operation is running, or failed half way: only the medium shows what is true.
    in_doubt: bool,
    /// The newest page before the mount ended a session: nothing is torn.
    ended: bool,
    /// No page on the chip can read differently from when the index was opened.
    settled: bool,
    moved_pages: u32,
    unexplained_pages: u32,
}

impl State {
    /// Before a mount.
    pub const UNKNOWN: Self =
        Self { in_doubt: true, ended: false, settled: false, moved_pages: 0, unexplained_pages: 0 };

    /// Whether only the medium shows what is true.
    pub const fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// An operation begins, or has failed half way.
    ///
    /// Returns whether RAM was in doubt before.
    pub const fn doubt(&mut self) -> bool {
        core::mem::replace(&mut self.in_doubt, true)
    }

    /// An operation ended, and RAM is as the chip is.
    pub const fn trust(&mut self) {
        self.in_doubt = false;
    }

    /// An operation ended within another one. RAM is as far in doubt as `before` it.
    pub const fn end_doubt(&mut self, before: bool) {
        self.in_doubt = before;
    }

    /// Whether the newest page before the mount ended a session: nothing is torn.
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Notes whether the newest page ended a session.
    pub const fn note_ended(&mut self, ended: bool) {
        self.ended = ended;
    }

    /// Whether no page can read differently from when the index was opened.
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// Notes whether no page can read differently from when the index was opened.
    pub const fn set_settled(&mut self, settled: bool) {
        self.settled = settled;
    }

    /// Pages that garbage collection moved.
    pub const fn moved_pages(&self) -> u32 {
        self.moved_pages
    }

    /// Garbage collection moves a page.
    pub const fn note_move(&mut self) {
        self.moved_pages = self.moved_pages.saturating_add(1);
    }

    /// Pages that a mount cannot read, and that no cut explains.
    pub const fn unexplained_pages(&self) -> u32 {
        self.unexplained_pages
    }

    /// Counts no unexplained page: a mount begins, or another index.
    pub const fn forget_unexplained(&mut self) {
        self.unexplained_pages = 0;
    }

    /// Counts a page that no cut explains, if there is one.
    pub fn note_unexplained(&mut self, is_unexplained: bool) {
        self.unexplained_pages += u32::from(is_unexplained);
    }
}
