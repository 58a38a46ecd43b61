//! Reads pages into page buffers, and finds which pages of a block were written.
//!
//! Nothing is written here.

use super::Log;
use crate::error::Fault;
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError, PageNumber, Reading};
use crate::node::{Medium, PageFault, PageHeader};

/// The most consecutive programmed pages that may read as erased.
///
/// Up to this number of them, the pages after them are still found.
pub const LOST_MAX: u32 = 2;

/// Reads after which a page counts as steady where there is no other proof.
pub const LOOKS: u64 = 24;

/// What all reads of a page returned, or `None` if they differ.
type Steady<E> = Result<Option<Result<u64, PageFault>>, Fault<E>>;

impl<F: Flash> Log<'_, F> {
    /// Finds the end of the programmed pages of `block` by binary search.
    ///
    /// It probes every `stride`-th page, `count` of them at most, and returns how many of these
    /// were programmed.
    pub fn written(
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
            // A page that was lost, and reads as erased, must not hide those after it.
            let behind = (written + 1..count).take(LOST_MAX as usize);
            let mut last = None;
            for place in behind {
                if !self.is_blank(block, place * stride)? {
                    last = Some(place + 1);
                }
            }
            match last {
                Some(last) => {
                    covered!("a page that reads as erased hides others");
                    written = last;
                }
                None => return Ok(written),
            }
        }
    }

    /// The header of the first readable page of `block`.
    ///
    /// Looks at the first `1 + LOST_MAX` pages. Cost: one read, or a few.
    pub fn first_header(
        &mut self,
        block: BlockNumber,
    ) -> Result<Option<PageHeader>, Fault<F::Error>> {
        Ok(self.read_first(block)?.then(|| self.header(0)))
    }

    /// Whether the chip has marked `block` as bad.
    pub fn is_marked(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        Ok(self.blocks.is_bad(block) && self.chip.is_bad(block).map_err(Fault::Device)?)
    }

    /// The sequence number of the first readable page of `block`.
    ///
    /// Cost: one read, or a few.
    pub fn first_sequence(&mut self, block: BlockNumber) -> Result<Option<u64>, Fault<F::Error>> {
        Ok(self.read_first(block)?.then(|| self.sequence_in(0)))
    }

    /// Reads the first readable page of `block` into page buffer 0, if there is one.
    fn read_first(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        for place in 0..(1 + LOST_MAX).min(self.block_pages()) {
            if self.read_page(self.page_at(block, place), 0)?.is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The sequence number of the page that `frame` holds.
    fn sequence_in(&self, frame: usize) -> u64 {
        self.layout().sequence(self.frames.bytes(frame))
    }

    /// Whether the page at `place` of `block` reads as erased. Cost: one read.
    fn is_blank(&mut self, block: BlockNumber, place: u32) -> Result<bool, Fault<F::Error>> {
        let page = self.page_at(block, place);
        Ok(self.read_page(page, 0)? == Err(PageFault::Erased))
    }

    /// Whether `page` can be read every time. Cost: [`LOOKS`] reads at most.
    pub fn is_steady(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if self.read_page(page, 0)?.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `page` reads the same every time, readable or not.
    pub fn reads_alike(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        Ok(self.steady_reading(page)?.is_some())
    }

    /// The sequence number of `page` or its fault, if it reads the same every time.
    ///
    /// Cost: [`LOOKS`] reads at most.
    pub fn steady_reading(&mut self, page: PageNumber) -> Steady<F::Error> {
        let first = self.read_page(page, 0)?;
        let sequence = self.sequence_in(0);
        for _ in 1..LOOKS {
            if self.read_page(page, 0)? != first
                || (first.is_ok() && self.sequence_in(0) != sequence)
            {
                return Ok(None);
            }
        }
        Ok(Some(first.map(|()| sequence)))
    }

    /// Reads any page into page buffer `frame` and returns its header.
    pub fn read_raw(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<Result<PageHeader, PageFault>, Fault<F::Error>> {
        Ok(self.read_page(page, frame)?.map(|()| self.header(frame)))
    }

    /// The same, but leaves the header in the page buffer.
    ///
    /// Where a torn page may be readable now and then, an unreadable page is read again.
    pub fn read_page(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<Result<(), PageFault>, Fault<F::Error>> {
        self.read_page_within(page, frame, self.codec.reads_max)
    }

    /// Reads any page into page buffer `frame`, in at most `reads` reads.
    #[inline(never)]
    pub fn read_page_within(
        &mut self,
        page: PageNumber,
        frame: usize,
        reads: u32,
    ) -> Result<Result<(), PageFault>, Fault<F::Error>> {
        self.frames.release(frame);
        let layout = self.layout();
        for _ in 0..reads {
            let (main, spare) = self.frames.bytes_mut(frame).split_at_mut(layout.page_bytes());
            match self.chip.read(page, main, spare) {
                Ok(reading) => {
                    if reading == Reading::Corrected {
                        self.note_weak(page);
                    }
                    let (chip, bytes) = (&mut self.chip, self.frames.bytes(frame));
                    let mut sum = |pieces: &[&[u8]]| chip.checksum(pieces);
                    return Ok((self.codec.check)(&layout, bytes, &mut sum));
                }
                Err(error) if error.kind() == ErrorKind::Uncorrectable => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Ok(Err(PageFault::Unreadable))
    }

    /// Lowest level of the nodes in the page that `frame` holds.
    pub fn lowest(&self, frame: usize) -> u8 {
        self.layout().lowest(self.frames.bytes(frame))
    }

    /// Whether the page that `frame` holds carries the settings of this index.
    pub fn is_ours(&self, frame: usize) -> bool {
        self.medium_in(frame) == self.medium
    }

    /// The settings in the page that `frame` holds.
    pub fn medium_in(&self, frame: usize) -> Medium {
        self.layout().medium(self.frames.bytes(frame))
    }

    /// The header of the page that `frame` holds.
    pub fn header(&self, frame: usize) -> PageHeader {
        self.layout().header(self.frames.bytes(frame))
    }
}
