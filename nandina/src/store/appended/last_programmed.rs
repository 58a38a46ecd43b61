//! What is remembered of appends until the next mount.
//!
//! It is kept in RAM. This module neither reads nor writes a page.

use crate::space::Memory;

/// What is remembered of the pages that were programmed since the mount.
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
