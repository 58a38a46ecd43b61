//! Replaces pages where they are, on devices that can.
//!
//! No block is opened or erased for it, and no page becomes valid here.

use super::{Label, Log, Source};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};

impl<F: Flash> Log<'_, F> {
    /// Seals the page in `frame` and replaces `page` with it.
    pub fn rewrite(
        &mut self,
        frame: usize,
        page: PageNumber,
        label: Label,
    ) -> Result<(), Fault<F::Error>> {
        let sequence = self.next_sequence();
        self.rewrite_as(frame, page, label, sequence)
    }

    /// Does the same with a sequence number that is not the next one.
    pub fn rewrite_as(
        &mut self,
        frame: usize,
        page: PageNumber,
        label: Label,
        sequence: u64,
    ) -> Result<(), Fault<F::Error>> {
        let header = self.header_of(label, sequence, 0);
        let layout = self.layout();
        let bytes = self.frames.bytes_mut(frame);
        let chip = &mut self.chip;
        (self.codec.seal)(&layout, bytes, &self.medium, &header, &mut |pieces| {
            chip.checksum(pieces)
        });
        let (main, spare) = bytes.split_at(layout.page_bytes());
        self.chip.rewrite(page, main, spare).map_err(Fault::Device)?;
        if self.verify && !self.reads_back(page, &Source::Frame(frame))? {
            return Err(Fault::Corrupt { page, reason: Damage::NotAsWritten });
        }
        Ok(())
    }
}
