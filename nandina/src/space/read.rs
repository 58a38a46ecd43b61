//! Reads pages of the index into page buffers, and rejects pages of others.
//!
//! Nothing is written here.

use super::kind::PATIENCE;
use super::memory::Memory;
use super::{Checkpointing, Kind, Space};
use crate::cache::Cached;
use crate::checksum;
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::log::{Age, Survey};
use crate::node::PageFault;

impl<F: Flash, K: Kind> Space<'_, F, K> {
    /// Whether page buffers keep their pages from one operation to the next.
    pub(crate) const fn keeps_pages(&self) -> bool {
        if cfg!(feature = "paper-modes") { self.keeps_pages } else { K::KEEPS_PAGES }
    }

    /// Reads the first readable page of each block.
    ///
    /// Finds the erase counts, and the newest block of those that come before `before`. With `of`
    /// only blocks of that formatting count.
    #[inline(never)]
    pub(crate) fn survey(
        &mut self,
        before: Age,
        of: Option<u32>,
    ) -> Result<Survey, Fault<F::Error>> {
        let mut survey = Survey::default();
        self.survey_into(&mut survey, before, of)?;
        Ok(survey)
    }

    /// As [`survey`](Self::survey), into a new survey of the caller's.
    ///
    /// So it is on the stack only once.
    #[inline(never)]
    pub(crate) fn survey_into(
        &mut self,
        survey: &mut Survey,
        before: Age,
        of: Option<u32>,
    ) -> Result<(), Fault<F::Error>> {
        self.log.blocks.clear();
        K::Checkpoints::forget(self);
        self.log.find_bad_blocks()?;
        for block in self.log.blocks.all() {
            self.log.survey_block(survey, block, 1, (before, of))?;
        }
        // The count of a block may have been lost in a cut. A block that was never erased shares
        // the guess, which only delays its first use.
        self.log.blocks.guess_erase_counts();
        Ok(())
    }

    /// Begins an operation: frees the page buffers.
    ///
    /// If page buffers keep their pages, only those with changed content are freed.
    pub(crate) fn begin_walk(&mut self) {
        if self.keeps_pages() {
            self.log.frames.release_changed();
        } else {
            self.log.frames.forget_all();
        }
    }

    /// Loads a page of the index into page buffer `frame`, and no other.
    #[inline(never)]
    pub(crate) fn load_into(&mut self, page: u32, frame: usize) -> Result<(), Fault<F::Error>> {
        let held = self.load(page, frame)?;
        if held != frame {
            let (to, from) = self.log.frames.pair(frame, held);
            to.copy_from_slice(from);
            self.log.frames.forget(held);
            self.log.frames.hold(frame, PageNumber(self.current_page(page)));
        }
        Ok(())
    }

    /// Loads a page of the index into a page buffer, and unpacks its node.
    ///
    /// Returns the page buffer: the one that already holds the page, or `frame`.
    pub(crate) fn load(&mut self, page: u32, frame: usize) -> Result<usize, Fault<F::Error>> {
        let held = self.fetch(page, frame)?;
        if !K::unpack(&self.log.layout(), self.log.frames.bytes_mut(held)) {
            let page = PageNumber(self.log.frames.held(held));
            self.log.frames.release(held);
            return Err(Fault::Corrupt { page, reason: Damage::NoNode });
        }
        Ok(held)
    }

    /// The same, but a node of appended records may be left packed.
    pub(crate) fn fetch(&mut self, page: u32, frame: usize) -> Result<usize, Fault<F::Error>> {
        let page = PageNumber(self.current_page(page));
        if let Some(held) = self.log.frames.holding(page) {
            return Ok(held);
        }
        if let Some(bytes) = self.cache.get(page) {
            self.log.frames.bytes_mut(frame).copy_from_slice(bytes);
            self.log.frames.hold(frame, page);
            return Ok(frame);
        }
        if page.0 >= self.log.geometry().pages() {
            return Err(Fault::Corrupt { page, reason: Damage::BeyondChip });
        }
        let reason = match self.read_expected(page, frame)? {
            Ok(()) => match self.unfit(frame) {
                Some(reason) => reason,
                None => {
                    self.log.frames.hold(frame, page);
                    self.cache.remember(page, self.log.frames.bytes(frame));
                    return Ok(frame);
                }
            },
            Err(PageFault::Erased) => Damage::Erased,
            Err(PageFault::Damaged) => Damage::Checksum,
            Err(PageFault::Unreadable) => Damage::Uncorrectable,
            Err(PageFault::Version(_)) => Damage::OtherVersion,
            Err(PageFault::Appended) => Damage::OtherSystem,
        };
        Err(Fault::Corrupt { page, reason })
    }

    /// Reads a page, repeatedly if it has to match an expected checksum.
    fn read_expected(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<Result<(), PageFault>, Fault<F::Error>> {
        let Some(expected) = self.memory.expected(page.0) else {
            return self.log.read_page(page, frame);
        };
        for _ in 0..4 * PATIENCE {
            let read = self.log.read_page(page, frame)?;
            if read.is_ok() && checksum::of(&[self.log.frames.bytes(frame)]) == expected {
                return Ok(read);
            }
        }
        Ok(Err(PageFault::Unreadable))
    }

    /// Forgets the copies of a page in RAM: the next look reads it.
    pub(crate) fn forget_copies(&mut self, page: PageNumber) {
        self.log.frames.forget_page(page.0);
        self.cache.forget(page.0);
    }

    /// Requires that `page` be read until its content has the checksum `sum`.
    ///
    /// This holds until the page is programmed again.
    pub(crate) fn expect(&mut self, page: PageNumber, sum: u32) {
        self.forget_copies(page);
        self.memory.expect(page.0, sum);
    }

    /// Why the page just read into `frame` does not belong to this index, if so.
    #[inline(never)]
    fn unfit(&self, frame: usize) -> Option<Damage> {
        let (layout, bytes) = (self.log.layout(), self.log.frames.bytes(frame));
        if layout.medium(bytes) != self.log.medium || layout.identity(bytes) != self.log.identity()
        {
            return Some(Damage::OtherIndex);
        }
        // A newer root was damaged, and its page has been written again since.
        if self.is_foreign(layout.sequence(bytes)) {
            return Some(Damage::AfterRoot);
        }
        None
    }

    fn is_foreign(&self, sequence: u64) -> bool {
        let (first, count) = self.foreign;
        sequence >= first && sequence - first < u64::from(count)
    }
}
