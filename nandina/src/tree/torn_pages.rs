//! What a mount has found out about pages that may be torn.
//!
//! A torn page may read differently each time, so a mount decides once (`settle.rs` beside this)
//! and remembers here what it decided. Nothing is read or written here.

use crate::blocks::NO_BLOCK;
use crate::flash::{BlockNumber, PageNumber};
use crate::log::{GAP, LOST_MAX};
use crate::node::PageHeader;

/// Times that a mount begins again, each time without one more torn page.
pub(crate) const TRIES: u32 = 2;

/// Pages of a block that may be torn although its erase was not begun.
pub(crate) const UNSTEADY_MAX: u32 = 2;

/// Pages of a block that are read to see whether its erase was begun.
pub(crate) const BEGUN_ERASE_PAGES: u64 = 2 * (UNSTEADY_MAX as u64 + 1) + LOST_MAX as u64 + 1;

/// Pages that can turn out to be torn at one mount.
pub(crate) const TORN_MAX: usize = 4;

/// No page has this number.
const NO_PAGE: u32 = u32::MAX;

/// The decisions of a mount about pages that may be torn.
pub(crate) struct TornPages {
    /// The page programmed last before the mount, as far as visible.
    newest: u32,
    /// The number of that page.
    newest_sequence: u64,
    /// Numbers from here to `to` are outdated: their pages turned out to be torn.
    from: u64,
    /// The highest number at that time. Pages written since then count.
    to: u64,
    /// Pages that do not count because they could not be read each time.
    pages: [u32; TORN_MAX],
    /// A block whose erase was begun: none of its pages counts.
    block: BlockNumber,
    /// The number from which pages may be torn, where pages commit for themselves.
    settle_from: u64,
    /// The number of the page that marks the end of a session, or 0.
    ended: u64,
}

impl TornPages {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self {
            newest: NO_PAGE,
            newest_sequence: u64::MAX,
            from: u64::MAX,
            to: u64::MAX,
            pages: [NO_PAGE; TORN_MAX],
            block: NO_BLOCK,
            settle_from: 0,
            ended: 0,
        }
    }

    /// Forgets the newest page, and what does not count.
    pub fn forget(&mut self) {
        self.forget_newest();
        self.outdate_none();
        self.pages = [NO_PAGE; TORN_MAX];
        self.block = NO_BLOCK;
    }

    /// The page that was programmed last before the mount, and its number.
    ///
    /// It may be torn.
    pub fn newest(&self) -> Option<(PageNumber, u64)> {
        (self.newest != NO_PAGE).then_some((PageNumber(self.newest), self.newest_sequence))
    }

    /// Whether `page` was programmed last before the mount, as far as can be seen.
    pub const fn is_newest(&self, page: PageNumber) -> bool {
        page.0 == self.newest
    }

    /// Sets the page that was programmed last.
    pub const fn set_newest(&mut self, page: PageNumber, sequence: u64) {
        (self.newest, self.newest_sequence) = (page.0, sequence);
    }

    /// Notes a page that may be the one programmed last.
    pub const fn note_newest(&mut self, page: PageNumber, sequence: u64) {
        if self.newest_sequence == u64::MAX || self.newest_sequence < sequence {
            self.set_newest(page, sequence);
        }
    }

    /// No page is known to be the newest.
    pub const fn forget_newest(&mut self) {
        (self.newest, self.newest_sequence) = (NO_PAGE, u64::MAX);
    }

    /// Whether this number belongs to an operation that was cut and is torn.
    pub fn outdates(&self, sequence: u64) -> bool {
        (self.from..=self.to).contains(&sequence)
    }

    /// Whether the newest page was found to be torn before.
    pub fn outdates_newest(&self) -> bool {
        self.outdates(self.newest_sequence)
    }

    /// Numbers from that of the newest page to `to` do not count: it is torn.
    pub fn outdate_newest(&mut self, to: u64) {
        self.from = self.newest_sequence.min(self.from);
        self.to = to;
    }

    /// Numbers from `from` on do not count: no page with one was seen.
    pub const fn outdate_from(&mut self, from: u64) {
        (self.from, self.to) = (from, u64::MAX);
    }

    /// All numbers count.
    pub const fn outdate_none(&mut self) {
        self.from = u64::MAX;
    }

    /// Notes that `page` is torn and does not count.
    ///
    /// Returns `false` if there is no room for one more.
    pub fn exclude(&mut self, page: PageNumber) -> bool {
        let place = self.pages.iter_mut().find(|place| [NO_PAGE, page.0].contains(*place));
        place.map(|place| *place = page.0).is_some()
    }

    /// Whether `page` was excluded.
    pub fn excludes(&self, page: PageNumber) -> bool {
        self.pages.contains(&page.0)
    }

    /// Whether any page was excluded.
    pub const fn excludes_any(&self) -> bool {
        self.pages[0] != NO_PAGE
    }

    /// The pages that were excluded, among places that hold no page.
    pub const fn excluded(&self) -> &[u32; TORN_MAX] {
        &self.pages
    }

    /// Notes that the erase of `block` was begun, so that none of its pages counts.
    pub const fn exclude_block(&mut self, block: BlockNumber) {
        self.block = block;
    }

    /// Whether no page of `block` counts.
    pub fn excludes_block(&self, block: BlockNumber) -> bool {
        self.block == block
    }

    /// Whether there is a block of which no page counts.
    pub fn excludes_a_block(&self) -> bool {
        self.block != NO_BLOCK
    }

    /// The number from which pages may be torn, where pages commit for themselves.
    pub const fn settle_from(&self) -> u64 {
        self.settle_from
    }

    /// Sets the number from which pages may be torn.
    pub const fn set_settle_from(&mut self, sequence: u64) {
        self.settle_from = sequence;
    }

    /// Notes where a session ended, if the page with this header marks an end.
    pub fn note_end(&mut self, header: &PageHeader) {
        if header.ends_session() {
            self.ended = self.ended.max(header.sequence);
        }
    }

    /// Notes that the last session ended with the page that has this number.
    #[cfg(feature = "checkpoints")]
    pub const fn note_ended(&mut self, sequence: u64) {
        self.ended = sequence;
    }

    /// No end of a session is known.
    pub const fn forget_end(&mut self) {
        self.ended = 0;
    }

    /// Whether the last session ended with the page that has this number.
    pub const fn ended_at(&self, sequence: u64) -> bool {
        self.ended == sequence
    }

    /// Whether the newest page on the chip is the end of a session.
    ///
    /// `sequence` is the number of the log after the gap that a mount leaves.
    pub const fn ended_well(&self, sequence: u64) -> bool {
        self.ended > 0 && self.ended + GAP == sequence
    }
}
