//! What some kinds of systems remember of their writes, until the next mount.
//!
//! It is kept in RAM. This module neither reads nor writes a page.

use crate::node::PageHeader;

/// What a system remembers of its writes.
pub trait Memory: Default {
    /// Notes a mount: new pages are numbered above `sequence`.
    fn note_mount(&mut self, sequence: u64) {
        let _ = sequence;
    }

    /// Notes that a page was programmed.
    fn note_programmed(&mut self, page: u32) {
        let _ = page;
    }

    /// The checksum of the accepted content of an unstable page.
    ///
    /// Such a page may read differently each time.
    fn expected(&self, page: u32) -> Option<u32> {
        let _ = page;
        None
    }

    /// Requires that `page` be read until its content has this checksum.
    fn expect(&mut self, page: u32, sum: u32) {
        let _ = (page, sum);
    }

    /// Whether a page with this header counts for a mount.
    fn counts(&self, header: &PageHeader) -> bool {
        let _ = header;
        true
    }

    /// Notes that a mount counts a page with this sequence number.
    fn note_counted(&mut self, sequence: u64) {
        let _ = sequence;
    }
}

/// What is remembered where records are appended.
///
/// In order: the page that was programmed last since the mount, and how often it was programmed;
/// the sequence number above which pages were programmed since the mount; an unstable page, and the
/// checksum of its accepted content.
#[derive(Default)]
pub struct LastProgrammed(Option<(u32, u8)>, u64, Option<(u32, u32)>);

impl Memory for LastProgrammed {
    fn note_mount(&mut self, sequence: u64) {
        self.1 = sequence;
    }

    fn note_programmed(&mut self, page: u32) {
        self.0 = Some((page, 1));
        self.2 = self.2.filter(|&(torn, _)| torn != page);
    }

    fn expected(&self, page: u32) -> Option<u32> {
        self.2.filter(|&(torn, _)| torn == page).map(|(_, sum)| sum)
    }

    fn expect(&mut self, page: u32, sum: u32) {
        self.2 = Some((page, sum));
    }
}

impl LastProgrammed {
    /// Whether the page with this sequence number was programmed since the mount.
    pub const fn is_recent(&self, sequence: u64) -> bool {
        sequence > self.1
    }

    /// How often the page was programmed, if it is the one programmed last.
    pub fn programs(&self, page: u32) -> Option<u8> {
        self.0.filter(|&(last, _)| last == page).map(|(_, programs)| programs)
    }

    /// Counts one more program of the page.
    pub fn add(&mut self, page: u32) {
        if let Some(programs) = self.programs(page) {
            self.0 = Some((page, programs.saturating_add(1)));
        }
    }
}
