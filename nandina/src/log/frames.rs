//! The buffer pool: the only place where pages are held in RAM.
//!
//! Each page buffer remembers which page it holds, so that an operation never reads a page again
//! while it is still buffered.

use core::ops::Range;

use crate::bytes::u32_at;
use crate::flash::PageNumber;

/// Bytes of bookkeeping for each page buffer: the number of the page it holds.
const HELD_BYTES: usize = 4;

/// The page buffer is free. No page has this number.
const NONE: u32 = u32::MAX;

/// The page buffer holds bytes that are not, or not yet, a page of the chip.
///
/// No page has this number either.
const CHANGED: u32 = u32::MAX - 1;

/// A pool of page buffers in the caller's RAM.
pub struct Frames<'b> {
    /// The page buffers, then the number of the page that each holds.
    bytes: &'b mut [u8],
    frame_bytes: usize,
    count: usize,
}

impl<'b> Frames<'b> {
    /// The most page buffers that an index can use.
    pub const COUNT_MAX: usize = 16;

    /// Bytes of RAM for `count` page buffers, and one more if `beside`.
    pub const fn ram_needed(frame_bytes: usize, count: usize, beside: bool) -> usize {
        frame_bytes * (count + beside as usize) + HELD_BYTES * count
    }

    /// Creates `count` page buffers, and one more beside them if `bytes` has room.
    ///
    /// The extra one is for reads while all others are in use.
    pub fn new(bytes: &'b mut [u8], frame_bytes: usize, count: usize) -> Self {
        let mut frames = Self { bytes, frame_bytes, count };
        frames.forget_all();
        frames
    }

    /// The number of page buffers.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The offset of the page numbers.
    const fn table(&self) -> usize {
        self.bytes.len() - HELD_BYTES * self.count
    }

    /// The page that `frame` holds, or a number that no page has.
    pub fn held(&self, frame: usize) -> u32 {
        u32_at(self.bytes, self.table() + HELD_BYTES * frame)
    }

    fn set_held(&mut self, frame: usize, page: u32) {
        let at = self.table() + HELD_BYTES * frame;
        self.bytes[at..at + HELD_BYTES].copy_from_slice(&page.to_le_bytes());
    }

    /// The page buffer that holds `page`.
    pub fn holding(&self, page: PageNumber) -> Option<usize> {
        (0..self.count).find(|&frame| self.held(frame) == page.0)
    }

    /// Records that the page buffer holds `page` unchanged from the chip.
    pub fn hold(&mut self, frame: usize, page: PageNumber) {
        self.set_held(frame, page.0);
    }

    /// Records that the bytes of `frame` no longer match a page of the chip.
    ///
    /// Called before they are changed.
    pub fn forget(&mut self, frame: usize) {
        self.set_held(frame, CHANGED);
    }

    /// Frees the page buffer.
    pub fn release(&mut self, frame: usize) {
        // The extra buffer has no entry: it never holds a page.
        if frame < self.count {
            self.set_held(frame, NONE);
        }
    }

    /// Frees the page buffers that were changed and not programmed.
    pub fn release_changed(&mut self) {
        for frame in 0..self.count {
            if self.held(frame) == CHANGED {
                self.release(frame);
            }
        }
    }

    /// A page buffer that may be overwritten: its page can be read again.
    pub fn idle(&self) -> Option<usize> {
        let beside = self.table() > self.count * self.frame_bytes;
        let idle = || (0..self.count).filter(|&frame| self.held(frame) != CHANGED);
        let empty = idle().find(|&frame| self.held(frame) == NONE);
        if beside { Some(self.count) } else { empty.or_else(|| idle().next()) }
    }

    /// Frees the page buffer that holds `page`, if there is one.
    pub fn forget_page(&mut self, page: u32) {
        if let Some(frame) = self.holding(PageNumber(page)) {
            self.release(frame);
        }
    }

    /// Frees the page buffers that hold one of `pages`, whose block is being erased.
    pub fn forget_pages(&mut self, pages: &Range<u32>) {
        for frame in 0..self.count {
            if pages.contains(&self.held(frame)) {
                self.release(frame);
            }
        }
    }

    /// Frees all page buffers.
    pub fn forget_all(&mut self) {
        let table = self.table();
        self.bytes[table..].fill(0xFF);
    }

    /// The bytes of a page buffer.
    pub fn bytes(&self, frame: usize) -> &[u8] {
        &self.bytes[frame * self.frame_bytes..][..self.frame_bytes]
    }

    /// The bytes of a page buffer, mutable.
    pub fn bytes_mut(&mut self, frame: usize) -> &mut [u8] {
        &mut self.bytes[frame * self.frame_bytes..][..self.frame_bytes]
    }

    /// Two different page buffers at once.
    pub fn pair(&mut self, first: usize, second: usize) -> (&mut [u8], &mut [u8]) {
        debug_assert!(first != second);
        let size = self.frame_bytes;
        let (low, high) = self.bytes.split_at_mut(first.max(second) * size);
        let low = &mut low[first.min(second) * size..][..size];
        let high = &mut high[..size];
        if first < second { (low, high) } else { (high, low) }
    }
}
