//! Page caches: a read cache and a write cache (μ-Tree paper, section 5.3).
//!
//! The read cache keeps pages that were read, and evicts the least recently used. The write cache
//! keeps pages that were written, in the order of their allocation. No page is in both.
//!
//! A *staged* page is part of the tree and not yet on the chip. Until it is programmed it has a
//! number of its own, with [`STAGED`] set; then the pages that point to it receive its place. A
//! staged page that is superseded leaves its slot without ever being programmed. A written page
//! stays in its slot, to be read, until the slot is needed.
//!
//! Each operation takes constant time, however many pages a cache has. RAM, beside the page itself:
//! 12 bytes for each page of the read cache, 28 for each of the write cache; 384 bytes for a write
//! cache, and a bit for each page of the chip, and one more bit for each 256 of them.
//!
//! This module calls no chip and does not know nodes.

mod lookup;
mod set;
mod slots;
mod staging;
#[cfg(test)]
mod tests;

#[cfg(feature = "read-cache")]
pub use staging::NoStaging;
pub use staging::{Staging, Written};

use crate::flash::PageNumber;
use crate::node::{Medium, PageLayout};
use slots::{List, Slots};

/// The bit that is set in the number of a staged page.
pub const STAGED: u32 = 1 << 31;

/// Changes each pointer of the inner nodes in a page buffer.
///
/// A page holds nodes from level `lowest` up. It holds the root of a tree of `height`, or no root
/// if that is 0.
pub type Relink = fn(
    bytes: &mut [u8],
    layout: &PageLayout,
    medium: &Medium,
    lowest: u8,
    height: u8,
    to: &Resolve<'_>,
);

/// Maps the page of a pointer to the page that it shall point to.
pub type Resolve<'r> = dyn Fn(u32) -> u32 + 'r;

/// Pages kept in RAM beside the buffer pool.
pub trait Cached<'b>: Sized {
    /// Creates caches of `reads` and `writes` pages. Returns the unused rest of `ram`.
    ///
    /// `pages` is the number of pages of the chip.
    fn new(
        ram: &'b mut [u8],
        frame_bytes: usize,
        reads: usize,
        writes: usize,
        pages: u32,
        relink: Relink,
    ) -> (Self, &'b mut [u8]);

    /// Forgets everything, including staged pages.
    fn clear(&mut self) {}

    /// The bytes of a slot of the write cache.
    fn bytes(&self, slot: usize) -> &[u8] {
        let _ = slot;
        &[]
    }

    /// The bytes of a slot of the write cache, mutable.
    fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        let _ = slot;
        &mut []
    }

    /// The bytes of `page`, if a cache holds it.
    fn get(&mut self, page: PageNumber) -> Option<&[u8]> {
        let _ = page;
        None
    }

    /// Caches a page that was read and is in no cache.
    fn remember(&mut self, page: PageNumber, bytes: &[u8]) {
        let _ = (page, bytes);
    }

    /// Caches a page that was programmed without being staged.
    fn remember_written(&mut self, page: PageNumber, bytes: &[u8]) {
        let _ = (page, bytes);
    }

    /// Removes a page that left the tree, or that is about to be programmed again.
    fn forget(&mut self, page: u32) {
        let _ = page;
    }
}

/// No caches.
#[cfg(not(feature = "read-cache"))]
pub struct NoCache;

#[cfg(not(feature = "read-cache"))]
impl<'b> Cached<'b> for NoCache {
    fn new(
        ram: &'b mut [u8],
        _: usize,
        _: usize,
        _: usize,
        _: u32,
        _: Relink,
    ) -> (Self, &'b mut [u8]) {
        (Self, ram)
    }
}

/// A read cache, and a write cache if the build has one.
pub struct Cache<'b, W> {
    reads: Slots<'b>,
    written: W,
}

/// Bytes of RAM for caches of `reads` and `writes` pages.
///
/// `pages` is the number of pages of the chip.
pub const fn ram_needed(frame_bytes: usize, reads: usize, writes: usize, pages: u32) -> usize {
    slots::ram_needed(frame_bytes, reads) + staging::ram_needed(frame_bytes, writes, pages)
}

impl<'b, W: Written<'b>> Cached<'b> for Cache<'b, W> {
    fn new(
        ram: &'b mut [u8],
        frame_bytes: usize,
        reads: usize,
        writes: usize,
        pages: u32,
        relink: Relink,
    ) -> (Self, &'b mut [u8]) {
        let (reads, rest) = Slots::new(ram, frame_bytes, reads);
        let (written, rest) = W::new(rest, frame_bytes, writes, pages, relink);
        (Self { reads, written }, rest)
    }

    fn clear(&mut self) {
        self.reads.clear();
        self.written.clear();
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        self.written.bytes(slot)
    }

    fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        self.written.bytes_mut(slot)
    }

    fn get(&mut self, page: PageNumber) -> Option<&[u8]> {
        if let Some(slot) = self.written.find(page.0) {
            return Some(self.written.bytes(slot));
        }
        let slot = self.reads.find(page.0)?;
        self.reads.shift(slot, List::Clean, List::Clean);
        Some(self.reads.bytes(slot))
    }

    fn remember(&mut self, page: PageNumber, bytes: &[u8]) {
        if let Some(slot) = self.reads.take() {
            self.reads.put(slot, page.0, List::Clean, bytes);
        }
    }

    fn remember_written(&mut self, page: PageNumber, bytes: &[u8]) {
        self.forget(page.0);
        if !self.written.remember(page, bytes) {
            self.remember(page, bytes);
        }
    }

    fn forget(&mut self, page: u32) {
        self.written.forget(page);
        if let Some(slot) = self.reads.find(page) {
            self.reads.forget(slot);
        }
    }
}

impl<'b> Cache<'b, Staging<'b>> {
    /// The write cache.
    pub const fn staging(&self) -> &Staging<'b> {
        &self.written
    }

    /// The write cache, mutable.
    pub const fn staging_mut(&mut self) -> &mut Staging<'b> {
        &mut self.written
    }
}
