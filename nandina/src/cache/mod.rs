//! Page caches (μ-Tree paper, section 5.3): pages that were read, the least recently used leaving
//! first, and pages that were written, in the order in which they were allocated. No page is in
//! both.
//!
//! A page that is *staged* is part of the tree and not yet on the chip. It has a number of its own,
//! with [`STAGED`] set, until it is programmed; then the pages that point to it get its place. A
//! staged page that is superseded leaves its slot without ever being programmed. A written page
//! stays in its slot, to be read, until the slot is needed.
//!
//! Each operation takes constant time, however many pages a cache has. RAM, beside the page itself:
//! 12 bytes for each page of the read cache, 28 for each of the write cache; 384 bytes for a write
//! cache, and for each page of the chip a bit, for each 256 of them a bit more.
//!
//! Nothing here calls a chip, and nothing here knows what a node is.

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

/// Bit of the number of a page that is staged.
pub const STAGED: u32 = 1 << 31;

/// Changes each pointer of the inner nodes in a page buffer. A page holds nodes from the lowest
/// level up, and the root of a tree of some height unless that is 0.
pub type Relink = fn(
    bytes: &mut [u8],
    layout: &PageLayout,
    medium: &Medium,
    lowest: u8,
    height: u8,
    to: &Resolve<'_>,
);

/// The page that a pointer is to lead to.
pub type Resolve<'r> = dyn Fn(u32) -> u32 + 'r;

/// Pages kept beside the page buffers.
pub trait Cached<'b>: Sized {
    /// Caches for so many pages, in the first bytes of `ram`, and the rest of it.
    fn new(
        ram: &'b mut [u8],
        frame_bytes: usize,
        reads: usize,
        writes: usize,
        pages: u32,
        relink: Relink,
    ) -> (Self, &'b mut [u8]);

    /// Forgets everything, staged pages too.
    fn clear(&mut self) {}

    /// The bytes of a slot of the write cache.
    fn bytes(&self, slot: usize) -> &[u8] {
        let _ = slot;
        &[]
    }

    /// The bytes of a slot of the write cache, to change.
    fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        let _ = slot;
        &mut []
    }

    /// The bytes of `page`, if a cache holds it.
    fn get(&mut self, page: PageNumber) -> Option<&[u8]> {
        let _ = page;
        None
    }

    /// Remembers a page that was read and is in no cache.
    fn remember(&mut self, page: PageNumber, bytes: &[u8]) {
        let _ = (page, bytes);
    }

    /// Remembers a page that was programmed without being staged.
    fn remember_written(&mut self, page: PageNumber, bytes: &[u8]) {
        let _ = (page, bytes);
    }

    /// The page is no page of the tree any more, or is about to be programmed anew.
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

/// A read cache, and a write cache where there can be one.
pub struct Cache<'b, W> {
    reads: Slots<'b>,
    written: W,
}

/// Bytes of RAM for caches of so many pages.
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

    /// The write cache, to change.
    pub const fn staging_mut(&mut self) -> &mut Staging<'b> {
        &mut self.written
    }
}
