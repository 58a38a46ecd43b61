//! Writes pages one after another, and opens a block where the one before is full.
//!
//! A page whose program fails is written again in the next block.

use super::{Label, Log, Source};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};

impl<F: Flash> Log<'_, F> {
    /// As [`append`](Self::append), without the blank bytes with which the page begins.
    ///
    /// The chip can program parts of pages, in any order.
    pub fn append_part(
        &mut self,
        source: Source<'_>,
        label: Label,
    ) -> Result<bool, Fault<F::Error>> {
        #[cfg(debug_assertions)]
        self.check_append(label);
        let (block, place) = self.open.advance();
        let programmed = self.program_as::<true>(block, place, source, label)?;
        self.note_appended(programmed, block, place);
        Ok(programmed)
    }

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
        next: impl FnMut(&mut Self, Option<BlockNumber>) -> Result<BlockNumber, Fault<F::Error>>,
    ) -> Result<PageNumber, Fault<F::Error>> {
        self.write_by(next, |log| {
            log.frames.forget(frame);
            let is_written = log.append(Source::Frame(frame), label)?;
            if is_written {
                log.frames.release(frame);
            }
            Ok(is_written)
        })
    }

    /// As [`write_into`](Self::write_into), where `append` programs the page.
    ///
    /// It returns `false` if the program failed, and is called again with another block open.
    pub fn write_by(
        &mut self,
        mut next: impl FnMut(&mut Self, Option<BlockNumber>) -> Result<BlockNumber, Fault<F::Error>>,
        mut append: impl FnMut(&mut Self) -> Result<bool, Fault<F::Error>>,
    ) -> Result<PageNumber, Fault<F::Error>> {
        loop {
            let Some(page) = self.next_page() else {
                let filled = self.close_block();
                if !self.open_ready() && !self.fill_parked(filled) {
                    let block = next(self, filled)?;
                    self.open(block)?;
                }
                continue;
            };
            if append(self)? {
                self.blocks.set_valid(page, true);
                return Ok(page);
            }
        }
    }
}
