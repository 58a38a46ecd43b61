//! Pages on their way from the chip into page buffers, and why one that was read is none of the index. Nothing is
//! written here.

use super::cache::Cached;
use super::memory::Memory;
use super::{Kind, Space};
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError, PageNumber, Reading};
use crate::node::{PageFault, PageHeader, checksum};

/// Pages one behind the other that may read as erased though they were programmed, so that those behind them are found.
pub(crate) const LOST_MAX: u32 = 2;

/// Reads of one page, where records are appended, before it counts as unreadable. An append that
/// was cut may make a page fail that holds records of before, and the next read of it may succeed
/// (rule 6 of the media contract).
const PATIENCE: u32 = 13;

impl<F: Flash, K: Kind> Space<'_, F, K> {
    /// How many of the first `count` strides of `block` were programmed.
    pub(crate) fn written(
        &mut self,
        block: BlockNumber,
        count: u32,
        stride: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let mut written = 0;
        loop {
            let mut end = count;
            while written < end {
                let middle = written + (end - written) / 2;
                if self.is_blank(block, middle * stride)? {
                    end = middle;
                } else {
                    written = middle + 1;
                }
            }
            // A page that was lost, and reads as erased, must not hide those behind it.
            let behind = (written + 1..count).take(LOST_MAX as usize);
            let mut last = None;
            for place in behind {
                if !self.is_blank(block, place * stride)? {
                    last = Some(place + 1);
                }
            }
            match last {
                Some(last) => written = last,
                None => return Ok(written),
            }
        }
    }

    /// The sequence number of the first page of `block` that can be read. Cost: one read, or a few.
    pub(crate) fn first_sequence(
        &mut self,
        block: BlockNumber,
    ) -> Result<Option<u64>, Fault<F::Error>> {
        for place in 0..(1 + LOST_MAX).min(self.block_pages()) {
            if let Ok(header) = self.read_raw(self.page_at(block, place), 0)? {
                return Ok(Some(header.sequence));
            }
        }
        Ok(None)
    }

    /// Whether the page at `place` of `block` reads as erased. Cost: one read.
    fn is_blank(&mut self, block: BlockNumber, place: u32) -> Result<bool, Fault<F::Error>> {
        let page = self.page_at(block, place);
        Ok(matches!(self.read_raw(page, 0)?, Err(PageFault::Erased)))
    }

    /// Reads any page into page buffer `frame`, whatever it holds.
    pub(crate) fn read_raw(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<Result<PageHeader, PageFault>, Fault<F::Error>> {
        Ok(self.read_page(page, frame)?.map(|()| self.header(frame)))
    }

    /// The same; the header of what is a page is left where it stands.
    #[inline(never)]
    pub(crate) fn read_page(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<Result<(), PageFault>, Fault<F::Error>> {
        self.frames.release(frame);
        let layout = self.layout();
        let expected = self.memory.expected(page.0);
        let patience = match expected {
            Some(_) => 4 * PATIENCE,
            None if K::APPENDS => PATIENCE,
            None => 1,
        };
        for _ in 0..patience {
            self.operations += 1;
            let (main, spare) = self.frames.bytes_mut(frame).split_at_mut(layout.page_bytes());
            match self.flash.read(page, main, spare) {
                Ok(reading) => {
                    if reading == Reading::Corrected {
                        self.note_weak(page);
                    }
                    let bytes = self.frames.bytes(frame);
                    if expected.is_some_and(|sum| sum != checksum::of(&[bytes])) {
                        continue;
                    }
                    return Ok(layout.check_as(self.frames.bytes(frame), K::READS_APPENDED));
                }
                Err(error) if error.kind() == ErrorKind::Uncorrectable => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Ok(Err(PageFault::Unreadable))
    }

    /// Until it is programmed anew `page` is read until it holds what has this checksum.
    pub(crate) fn expect(&mut self, page: PageNumber, sum: u32) {
        self.frames.forget_page(page.0);
        self.cache.forget(page.0);
        self.memory.expect(page.0, sum);
    }

    /// Whether page buffers keep their pages from one operation to the next.
    pub(crate) const fn keeps_pages(&self) -> bool {
        self.keeps_pages
    }

    /// An operation begins: its buffers hold nothing yet, unless they keep what the last one left in them.
    pub(crate) fn begin_walk(&mut self) {
        if self.keeps_pages {
            self.frames.release_changed();
        } else {
            self.frames.forget_all();
        }
    }

    /// Brings a page of the index into page buffer `frame`, and into no other.
    #[inline(never)]
    pub(crate) fn load_into(&mut self, page: u32, frame: usize) -> Result<(), Fault<F::Error>> {
        let held = self.load(page, frame)?;
        if held != frame {
            let (to, from) = self.frames.pair(frame, held);
            to.copy_from_slice(from);
            self.frames.forget(held);
            self.frames.hold(frame, PageNumber(self.where_is(page)));
        }
        Ok(())
    }

    /// Brings a page of the index into a page buffer: into `frame`, if no buffer holds it already.
    pub(crate) fn load(&mut self, page: u32, frame: usize) -> Result<usize, Fault<F::Error>> {
        let page = PageNumber(self.where_is(page));
        if let Some(held) = self.frames.holding(page) {
            return Ok(held);
        }
        if let Some(bytes) = self.cache.get(page) {
            self.frames.bytes_mut(frame).copy_from_slice(bytes);
            self.frames.hold(frame, page);
            return Ok(frame);
        }
        if page.0 >= self.geometry().pages() {
            return Err(Fault::Corrupt { page, reason: Damage::BeyondChip });
        }
        let reason = match self.read_page(page, frame)? {
            Ok(()) => match self.unfit(frame) {
                Some(reason) => reason,
                None => {
                    self.frames.hold(frame, page);
                    self.cache.remember(page, self.frames.bytes(frame));
                    return Ok(frame);
                }
            },
            Err(PageFault::Erased) => Damage::Erased,
            Err(PageFault::Damaged) => Damage::Checksum,
            Err(PageFault::Unreadable) => Damage::Uncorrectable,
            Err(PageFault::Version(_)) => Damage::OtherVersion,
            Err(PageFault::Appended { .. }) => Damage::OtherSystem,
        };
        Err(Fault::Corrupt { page, reason })
    }

    /// Why the page in `frame`, which was just read, holds no node of this index; nothing if it does. Then the node is
    /// as it is in RAM.
    #[inline(never)]
    fn unfit(&mut self, frame: usize) -> Option<Damage> {
        let (layout, bytes) = (self.layout(), self.frames.bytes(frame));
        if layout.medium(bytes) != self.medium || layout.identity(bytes) != self.identity {
            return Some(Damage::OtherIndex);
        }
        // The root that is missing in between was damaged, and its page written anew since.
        if self.is_foreign(layout.sequence(bytes)) {
            return Some(Damage::AfterRoot);
        }
        let is_node = !K::APPENDS || layout.unpack(self.frames.bytes_mut(frame));
        (!is_node).then_some(Damage::NoNode)
    }

    fn is_foreign(&self, sequence: u64) -> bool {
        let (first, count) = self.foreign;
        sequence >= first && sequence - first < u64::from(count)
    }

    /// Lowest level of the nodes in the page that `frame` holds.
    pub(crate) fn lowest(&self, frame: usize) -> u8 {
        self.layout().lowest(self.frames.bytes(frame))
    }

    /// The header of the page that `frame` holds.
    pub(crate) fn header(&self, frame: usize) -> PageHeader {
        self.layout().header(self.frames.bytes(frame))
    }
}
