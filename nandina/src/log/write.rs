//! Writes pages one after another, and opens a block where the one before is full.
//!
//! A page whose program fails is written again in the next block.

use super::{Label, Log, Source};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};

impl<F: Flash> Log<'_, F> {
    /// Seals a page, programs it into the next place, and makes it valid.
    ///
    /// The log itself chooses the block.
    pub fn write(&mut self, frame: usize, label: Label) -> Result<PageNumber, Fault<F::Error>> {
        self.write_into(frame, label, Self::next_block)
    }

    /// As [`write`](Self::write), where `next` chooses the block to open.
    ///
    /// It is called with the block that was filled.
    pub fn write_into(
        &mut self,
        frame: usize,
        label: Label,
        mut next: impl FnMut(&mut Self, Option<BlockNumber>) -> Result<BlockNumber, Fault<F::Error>>,
    ) -> Result<PageNumber, Fault<F::Error>> {
        loop {
            let Some(page) = self.next_page() else {
                let filled = self.close_block();
                if !self.open_ready() {
                    let block = next(self, filled)?;
                    self.open(block)?;
                }
                continue;
            };
            self.frames.forget(frame);
            if self.append(Source::Frame(frame), label)? {
                self.frames.release(frame);
                self.blocks.set_valid(page, true);
                return Ok(page);
            }
        }
    }
}
