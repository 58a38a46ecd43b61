//! Pages whose main data lies outside the page buffers, in the memory of a caller.
//!
//! So nobody copies it. The header has to fit into the spare area, records are not appended, and
//! no program is read back.

use super::{Label, Log, Source};
use crate::error::Fault;
use crate::flash::{ErrorKind, Flash, FlashError, PageNumber, Reading};
use crate::node::{HEADER_BYTES, PageFault, PageHeader, PageLayout};

impl<F: Flash> Log<'_, F> {
    /// Whether main data can lie outside the page buffers.
    fn takes_outside(&self) -> bool {
        self.layout().has_header_beside() && !self.verify
    }

    /// Writes a page with this data and makes it valid.
    ///
    /// As [`write`](Self::write), it opens a block where one is full or fails. Where main data
    /// cannot lie outside the page buffers, it is copied into page buffer 0.
    pub fn write_outside(
        &mut self,
        main: &[u8],
        label: Label,
    ) -> Result<PageNumber, Fault<F::Error>> {
        self.write_by(Self::next_block, |log| log.append_from(main, label))
    }

    /// Seals a page with this data and programs it into the open block.
    ///
    /// Where it has to, it copies the data, as [`write_outside`](Self::write_outside) does. If the
    /// program fails, gives the block up and returns `false`.
    pub fn append_from(&mut self, main: &[u8], label: Label) -> Result<bool, Fault<F::Error>> {
        if self.takes_outside() {
            return self.append_outside(main, label);
        }
        self.frames.forget(0);
        self.frames.bytes_mut(0)[..main.len()].copy_from_slice(main);
        let is_written = self.append(Source::Frame(0), label)?;
        if is_written {
            self.frames.release(0);
        }
        Ok(is_written)
    }

    /// The same, without a copy.
    ///
    /// Requires [`takes_outside`](Self::takes_outside).
    fn append_outside(&mut self, main: &[u8], label: Label) -> Result<bool, Fault<F::Error>> {
        #[cfg(debug_assertions)]
        self.check_append(label);
        let (block, place) = self.open.advance();
        #[cfg(debug_assertions)]
        self.check_program(block, place);
        let sequence = self.next_sequence();
        let page = self.page_at(block, place);
        let header = self.header_of(label, sequence, self.blocks.erase_count(block));
        let (chip, mut beside) = (&mut self.chip, [0; HEADER_BYTES]);
        let mut sum = |pieces: &[&[u8]]| chip.checksum(pieces);
        PageLayout::seal_parts(main, &mut beside, &self.medium, &header, false, &mut sum);
        let programmed = match self.chip.program(page, main, &beside) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::ProgramFailed && self.may_fail() => false,
            Err(error) => return Err(Fault::Device(error)),
        };
        #[cfg(debug_assertions)]
        self.watch_program(programmed, block, place, label);
        self.note_programmed(programmed, block);
        self.note_appended(programmed, block, place);
        Ok(programmed)
    }

    /// Reads a page, its data into `main`, and returns its header.
    ///
    /// Where main data cannot lie outside the page buffers, it is copied from page buffer 0.
    pub fn read_outside(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
    ) -> Result<Result<PageHeader, PageFault>, Fault<F::Error>> {
        if !self.takes_outside() {
            let read = self.read_raw(page, 0)?;
            main.copy_from_slice(&self.frames.bytes(0)[..main.len()]);
            return Ok(read);
        }
        let mut beside = [0; HEADER_BYTES];
        for _ in 0..self.codec.reads_max {
            match self.chip.read(page, main, &mut beside) {
                Ok(reading) => {
                    if reading == Reading::Corrected {
                        self.note_weak(page);
                    }
                    let chip = &mut self.chip;
                    let mut sum = |pieces: &[&[u8]]| chip.checksum(pieces);
                    let checked = PageLayout::check_parts(main, &beside, false, &mut sum);
                    return Ok(checked.map(|()| PageLayout::header_in(&beside)));
                }
                Err(error) if error.kind() == ErrorKind::Uncorrectable => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Ok(Err(PageFault::Unreadable))
    }
}
