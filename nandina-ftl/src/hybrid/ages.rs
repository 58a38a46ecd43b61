//! Which of two copies of a logical page is newer, found with few reads.
//!
//! Pages of a block are programmed in order, each with a higher number than the one before. So of
//! two pages of one block the one behind is newer, and a page that is newer than another one is
//! newer than all pages before that one. A mount keeps the numbers that it has read for this, of a
//! few blocks. It reads no page that these tell it enough of. Nothing is written.

use core::cmp::Ordering;

use nandina::Fault;
use nandina::flash::{Flash, PageNumber};

use super::Hybrid;
use super::policy::Policy;

/// A page's sequence number, and where it is: a higher one is newer.
pub(super) type Age = (u64, PageNumber);

/// Blocks whose numbers are kept.
const BLOCKS: usize = 8;

/// The numbers of two pages of a block, if they were read: a low and a high one.
#[derive(Clone, Copy)]
struct Known {
    block: u32,
    low: Option<Age>,
    high: Option<Age>,
}

/// The numbers that a scan has read to compare copies.
pub(super) struct Ages {
    known: [Known; BLOCKS],
    /// The entry that the next block takes.
    next: usize,
}

impl Ages {
    pub const fn new() -> Self {
        Self { known: [Known { block: u32::MAX, low: None, high: None }; BLOCKS], next: 0 }
    }

    /// Whether a page is newer than `rival`, a page of `block`; `None` if that is not known.
    fn compare(&self, block: u32, age: Age, rival: PageNumber) -> Option<bool> {
        let known = self.known.iter().find(|known| known.block == block)?;
        let all = [known.low, known.high];
        all.into_iter().flatten().find_map(|(sequence, at)| match at.cmp(&rival) {
            Ordering::Equal => Some(age > (sequence, at)),
            Ordering::Greater => (age.0 > sequence).then_some(true),
            Ordering::Less => (age.0 < sequence).then_some(false),
        })
    }

    /// Keeps the number of a page of `block`.
    fn keep(&mut self, block: u32, age: Age) {
        let entry = self.known.iter().position(|known| known.block == block);
        let entry = entry.unwrap_or_else(|| {
            let entry = self.next;
            self.next = (entry + 1) % BLOCKS;
            self.known[entry] = Known { block, low: None, high: None };
            entry
        });
        let known = &mut self.known[entry];
        if known.low.is_none_or(|low| age < low) {
            known.low = Some(age);
        }
        if known.high.is_none_or(|high| age > high) {
            known.high = Some(age);
        }
    }
}

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// Whether a page is newer than the copy of its logical page that counts up to now.
    ///
    /// A copy that cannot be read is not newer, unless a page behind it names it.
    ///
    /// Cost: nothing if what was read before decides it; else a read, or two for a page of a buffer
    /// block.
    pub(super) fn is_newer(
        &mut self,
        ages: &mut Ages,
        (age, is_buffer): (Age, bool),
        rival: PageNumber,
    ) -> Result<bool, Fault<F::Error>> {
        let block = self.media.block_of(rival);
        if block == self.media.block_of(age.1) {
            return Ok(rival < age.1);
        }
        if let Some(is_newer) = ages.compare(block.0, age, rival) {
            return Ok(is_newer);
        }
        // A page of a buffer block is mostly newer than all pages of the block below it.
        let is_valid = |page: &PageNumber| self.media.blocks.is_valid(*page);
        let mut pages = (0..self.block_pages()).map(|place| self.media.page_at(block, place));
        let last = pages.rfind(is_valid).filter(|_| is_buffer && !self.is_buffer_block(block));
        if let Some(page) = last
            && page != rival
            && let Ok(header) = self.media.read(page, 1)?
        {
            ages.keep(block.0, (header.sequence, page));
            if let Some(is_newer) = ages.compare(block.0, age, rival) {
                return Ok(is_newer);
            }
        }
        let Some(sequence) = self.sequence_of(rival)? else { return Ok(true) };
        ages.keep(block.0, (sequence, rival));
        Ok(age > (sequence, rival))
    }
}
