//! What only some kinds of systems remember of what they wrote, in RAM and until the next mount.
//! Nothing here reads or writes a page.

use crate::node::PageHeader;

/// What is remembered of what was written.
pub trait Memory: Default {
    /// Pages are numbered from `sequence` on.
    fn note_mount(&mut self, sequence: u64) {
        let _ = sequence;
    }

    /// A page was programmed.
    fn note_programmed(&mut self, page: u32) {
        let _ = page;
    }

    /// The checksum of what a page is taken to hold that reads otherwise each time.
    fn expected(&self, page: u32) -> Option<u32> {
        let _ = page;
        None
    }

    /// From now on `page` is read until it holds what has this checksum.
    fn expect(&mut self, page: u32, sum: u32) {
        let _ = (page, sum);
    }

    /// Whether a page with this header counts for a mount.
    fn counts(&self, header: &PageHeader) -> bool {
        let _ = header;
        true
    }

    /// A mount counts a page with this sequence number.
    fn note_counted(&mut self, sequence: u64) {
        let _ = sequence;
    }
}

/// The page that was programmed last since the mount, and how often; the number above which pages
/// were programmed since then; and a page that reads otherwise each time, and the checksum of what
/// it is taken to hold.
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

    /// How often the page was programmed, if it was the last.
    pub fn programs(&self, page: u32) -> Option<u8> {
        self.0.filter(|&(last, _)| last == page).map(|(_, programs)| programs)
    }

    /// The page was programmed once more.
    pub fn add(&mut self, page: u32) {
        if let Some(programs) = self.programs(page) {
            self.0 = Some((page, programs.saturating_add(1)));
        }
    }
}
