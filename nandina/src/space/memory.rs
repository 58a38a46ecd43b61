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
