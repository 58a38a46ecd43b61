//! Page buffers: the only place where pages stand in RAM. They remember which page they hold, so that
//! one operation never reads a page twice while it is still there.

use crate::flash::{BlockNumber, PageNumber};

pub struct Frames<'b> {
    bytes: &'b mut [u8],
    frame_bytes: usize,
    held: [Option<PageNumber>; Frames::COUNT_MAX],
    count: usize,
}

impl<'b> Frames<'b> {
    /// The most page buffers that an index uses.
    pub const COUNT_MAX: usize = 16;

    /// `count` page buffers and, if `verifies`, one more behind them for what is read back.
    pub fn new(bytes: &'b mut [u8], count: usize, verifies: bool) -> Self {
        let frame_bytes = bytes.len() / (count + usize::from(verifies));
        Self { bytes, frame_bytes, held: [None; Self::COUNT_MAX], count }
    }

    pub const fn count(&self) -> usize {
        self.count
    }

    /// The page buffer that holds `page`.
    pub fn holding(&self, page: PageNumber) -> Option<usize> {
        self.held[..self.count].iter().position(|&held| held == Some(page))
    }

    pub const fn hold(&mut self, frame: usize, page: PageNumber) {
        self.held[frame] = Some(page);
    }

    /// The bytes of `frame` are changed, or about to be: they are no page of the chip any more.
    pub const fn forget(&mut self, frame: usize) {
        self.held[frame] = None;
    }

    /// No page buffer holds `page` any more.
    pub fn forget_page(&mut self, page: u32) {
        if let Some(frame) = self.holding(PageNumber(page)) {
            self.forget(frame);
        }
    }

    /// The pages of `block` are erased.
    pub fn forget_block(&mut self, block: BlockNumber, pages_per_block: u32) {
        for held in &mut self.held {
            if held.is_some_and(|page| page.0 / pages_per_block == block.0) {
                *held = None;
            }
        }
    }

    pub const fn forget_all(&mut self) {
        self.held = [None; Self::COUNT_MAX];
    }

    pub fn bytes(&self, frame: usize) -> &[u8] {
        &self.bytes[frame * self.frame_bytes..][..self.frame_bytes]
    }

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
