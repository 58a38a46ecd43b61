//! Pages that move: main data stay as they were read, and the header changes.
//!
//! So their checksum follows from the one that was checked, and nobody looks at the main data
//! again. If a bit of them changes in RAM in between, the checksum does not fit, as it should.

use super::{Label, Log, Source};
use crate::error::Fault;
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError, PageNumber};

impl<F: Flash> Log<'_, F> {
    /// As [`write_into`](Self::write_into), for a page that moves.
    ///
    /// It is the page `of`, which was read into `frame` and checked. Its bytes were not changed
    /// since, and its block is not erased meanwhile.
    pub fn write_moved(
        &mut self,
        of: PageNumber,
        frame: usize,
        label: Label,
        next: impl FnMut(&mut Self, Option<BlockNumber>) -> Result<BlockNumber, Fault<F::Error>>,
    ) -> Result<PageNumber, Fault<F::Error>> {
        self.write_by(next, |log| {
            log.frames.forget(frame);
            let is_written = log.append_moved(of, frame, label)?;
            if is_written {
                log.frames.release(frame);
            }
            Ok(is_written)
        })
    }

    /// Seals the page in `frame` anew and programs it into the open block.
    ///
    /// If the program fails, gives the block up and returns `false`.
    fn append_moved(
        &mut self,
        of: PageNumber,
        frame: usize,
        label: Label,
    ) -> Result<bool, Fault<F::Error>> {
        let layout = self.layout();
        if !layout.has_header_beside() || self.verify {
            return self.append(Source::Frame(frame), label);
        }
        #[cfg(debug_assertions)]
        self.check_append(label);
        let (block, place) = self.open.advance();
        #[cfg(debug_assertions)]
        self.check_program(block, place);
        let sequence = self.next_sequence();
        let page = self.page_at(block, place);
        let header = self.header_of(label, sequence, self.blocks.erase_count(block));
        let (chip, bytes) = (&mut self.chip, self.frames.bytes_mut(frame));
        layout.seal_moved(bytes, &self.medium, &header, &mut |pieces| chip.checksum(pieces));
        let (main, spare) = bytes.split_at(layout.page_bytes());
        let programmed = match chip.program_copy(of, page, main, spare) {
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
}
