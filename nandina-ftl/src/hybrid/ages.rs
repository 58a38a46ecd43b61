//! Which of two copies of a logical page is newer, found with few reads.
//!
//! Pages of a block are programmed in order, each with a higher number than the one before. So of
//! two pages of one block the one behind is newer, and a page that is newer than another one is
//! newer than all pages before that one. A mount keeps the numbers that it has read for this, of a
//! few blocks. It reads no page that these tell it enough of, and where they do not, one that may
//! tell of many: the last of its block, then one halfway to it. Nothing is written.
//!
//! Of a buffer block the number of the last page decides (`transit/numbers.rs`). These numbers are
//! in page buffer 0 as long as nothing else is.

use core::cmp::Ordering;

use nandina::Fault;
use nandina::flash::{BlockNumber, Flash, PageNumber};

use super::Hybrid;
use super::policy::Policy;
use crate::transit::LastNumbers;

/// A page's sequence number, and where it is: a higher one is newer.
pub(super) type Age = (u64, PageNumber);

/// Buffer blocks without room in the page buffer whose numbers are kept, and other blocks.
const KEPT: [usize; 2] = [4, 8];

/// The numbers of three pages of a block: a low one, the last one noted, a high one.
#[derive(Clone, Copy)]
struct Known {
    block: u32,
    ages: [Age; 3],
}

impl Known {
    const NONE: Self = Self { block: u32::MAX, ages: [(0, PageNumber(0)); 3] };
}

/// The numbers that a scan has read to compare copies.
pub(super) struct Ages {
    known: [Known; KEPT[0] + KEPT[1]],
    /// The entries that the next buffer block and the next other block take.
    next: [usize; 2],
    /// Whether the numbers of buffer blocks are in page buffer 0.
    are_in_frame: bool,
}

impl Ages {
    pub const fn new() -> Self {
        Self { known: [Known::NONE; _], next: [0, KEPT[0]], are_in_frame: false }
    }

    /// Ends the use of page buffer 0.
    pub const fn leave_frame(&mut self) {
        self.are_in_frame = false;
    }

    /// Whether a page is newer than `rival`, a page of `block`; `None` if that is not known.
    fn compare(&self, block: BlockNumber, age: Age, rival: PageNumber) -> Option<bool> {
        let known = self.known.iter().find(|known| known.block == block.0)?;
        known.ages.into_iter().find_map(|(sequence, at)| match at.cmp(&rival) {
            Ordering::Equal => Some(age > (sequence, at)),
            Ordering::Greater => (age.0 > sequence).then_some(true),
            Ordering::Less => (age.0 < sequence).then_some(false),
        })
    }

    /// Whether a page of `block` is newer than a sequence number; `None` if that is not known.
    fn compare_number(&self, block: BlockNumber, page: PageNumber, than: u64) -> Option<bool> {
        let known = self.known.iter().find(|known| known.block == block.0)?;
        known.ages.into_iter().find_map(|(sequence, at)| match sequence > than {
            true => (at <= page).then_some(true),
            false => (at >= page).then_some(false),
        })
    }

    /// The first page behind `page` that is known to be newer than a sequence number.
    fn newer_behind(&self, block: BlockNumber, page: PageNumber, than: u64) -> Option<PageNumber> {
        let known = self.known.iter().find(|known| known.block == block.0)?;
        let newer = known.ages.into_iter().filter(|&(sequence, at)| sequence > than && at > page);
        newer.map(|(_, at)| at).min()
    }

    /// Keeps the number of a page of `block`.
    fn keep(&mut self, block: BlockNumber, age: Age, is_buffer: bool) {
        if let Some(known) = self.known.iter_mut().find(|known| known.block == block.0) {
            let [low, _, high] = known.ages;
            known.ages = [low.min(age), age, high.max(age)];
            return;
        }
        let next = if is_buffer { &mut self.next[0] } else { &mut self.next[1] };
        self.known[*next] = Known { block: block.0, ages: [age; 3] };
        *next = match *next + 1 {
            at if at == KEPT[0] => 0,
            at if at == KEPT[0] + KEPT[1] => KEPT[0],
            at => at,
        };
    }
}

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// Begins a scan. The numbers of buffer blocks go to page buffer 0, if that is free.
    pub(super) fn begin_scan(&mut self, ages: &mut Ages, is_free: bool) {
        ages.are_in_frame = is_free;
        ages.known[..KEPT[0]].fill(Known::NONE);
        if is_free {
            LastNumbers(self.media.frames.bytes_mut(0)).clear();
        }
    }

    /// Leaves the marks to the blocks whose numbers are in page buffer 0.
    pub(super) fn mark_kept(&mut self, ages: &Ages) {
        for block in self.media.blocks.all() {
            let is_kept = self.last_number(ages, block).is_some();
            self.media.set_clean(block, is_kept);
        }
    }

    /// Keeps the number of the last page of a buffer block.
    pub(super) fn keep_last(&mut self, ages: &mut Ages, last: Age) {
        let block = self.media.block_of(last.1);
        let is_in_frame =
            ages.are_in_frame && LastNumbers(self.media.frames.bytes_mut(0)).add(block, last.0);
        if !is_in_frame {
            ages.keep(block, last, true);
        }
    }

    /// Keeps the number of a page that was read to compare it.
    ///
    /// That of a page in a buffer block is not: it would pass for the last one's.
    fn keep_read(&self, ages: &mut Ages, age: Age) {
        let block = self.media.block_of(age.1);
        if !self.is_buffer_block(block) {
            ages.keep(block, age, false);
        }
    }

    /// The number of the last page of a buffer block, if page buffer 0 has it.
    fn last_number(&self, ages: &Ages, block: BlockNumber) -> Option<u64> {
        let numbers = LastNumbers(self.media.frames.bytes(0));
        numbers.get(block).filter(|_| ages.are_in_frame)
    }

    /// The last page of a buffer block; `None` if it cannot be read.
    ///
    /// Cost: nothing if its number is kept; else a read.
    fn last_of(
        &mut self,
        ages: &mut Ages,
        block: BlockNumber,
    ) -> Result<Option<Age>, Fault<F::Error>> {
        let slot = self.maps.slot_of(block).map(|at| self.maps.slot(at).next);
        let next = self.transit.summary.entry_of(block).map(|at| self.transit.summary.get(at).next);
        let Some(place) = next.or(slot).and_then(|next| next.checked_sub(1)) else {
            return Ok(None);
        };
        let page = self.media.page_at(block, place);
        if let Some(number) = self.last_number(ages, block) {
            return Ok(Some((number, page)));
        }
        if let Some(known) = ages.known[..KEPT[0]].iter().find(|known| known.block == block.0) {
            return Ok(Some(known.ages[2]));
        }
        let Some(sequence) = self.sequence_of(page)? else { return Ok(None) };
        ages.keep(block, (sequence, page), true);
        Ok(Some((sequence, page)))
    }

    /// Whether a page is newer than the copy of its logical page that counts up to now.
    ///
    /// A copy that cannot be read is not newer, unless a page behind it names it.
    ///
    /// Cost: nothing if what was read before decides it; else one or two reads.
    pub(super) fn is_newer(
        &mut self,
        ages: &mut Ages,
        age: Age,
        rival: PageNumber,
    ) -> Result<bool, Fault<F::Error>> {
        let block = self.media.block_of(rival);
        if block == self.media.block_of(age.1) {
            return Ok(rival < age.1);
        }
        if self.is_buffer_block(block)
            && let Some(last) = self.last_of(ages, block)?
        {
            return Ok(age > last);
        }
        if let Some(is_newer) = ages.compare(block, age, rival) {
            return Ok(is_newer);
        }
        if self.look_behind(ages, rival, age.0)?
            && let Some(is_newer) = ages.compare(block, age, rival)
        {
            return Ok(is_newer);
        }
        let Some(sequence) = self.sequence_of(rival)? else { return Ok(true) };
        self.keep_read(ages, (sequence, rival));
        Ok(age > (sequence, rival))
    }

    /// Whether a page is newer than a sequence number; `None` if it cannot be read.
    ///
    /// Cost: nothing if what was read before decides it; else one to three reads.
    pub(super) fn is_newer_than(
        &mut self,
        ages: &mut Ages,
        than: u64,
        page: PageNumber,
    ) -> Result<Option<bool>, Fault<F::Error>> {
        let block = self.media.block_of(page);
        if self.is_buffer_block(block)
            && let Some((last, _)) = self.last_of(ages, block)?
        {
            return Ok(Some(last > than));
        }
        if let Some(is_newer) = ages.compare_number(block, page, than) {
            return Ok(Some(is_newer));
        }
        for _ in 0..2 {
            if !self.look_behind(ages, page, than)? {
                break;
            }
            if let Some(is_newer) = ages.compare_number(block, page, than) {
                return Ok(Some(is_newer));
            }
        }
        let Some(sequence) = self.sequence_of(page)? else { return Ok(None) };
        self.keep_read(ages, (sequence, page));
        Ok(Some(sequence > than))
    }

    /// Reads a page behind `page`, which is older if that one is older than a sequence number.
    ///
    /// That is the last one that counts in the block, or one halfway to the first that is known to
    /// be newer than the number. Returns whether it read one. None is read in a buffer block.
    fn look_behind(
        &mut self,
        ages: &mut Ages,
        page: PageNumber,
        than: u64,
    ) -> Result<bool, Fault<F::Error>> {
        let block = self.media.block_of(page);
        if self.is_buffer_block(block) {
            return Ok(false);
        }
        let newer = ages.newer_behind(block, page, than);
        let is_tried = |it: &PageNumber| {
            *it >= page && newer.is_none_or(|newer| *it < newer) && self.media.blocks.is_valid(*it)
        };
        let pages = (0..self.block_pages()).map(|place| self.media.page_at(block, place));
        let mut pages = pages.filter(is_tried);
        let behind = match newer {
            None => pages.last(),
            Some(_) => {
                let half = pages.clone().count() / 2;
                pages.nth(half)
            }
        };
        let Some(behind) = behind.filter(|&behind| behind != page) else { return Ok(false) };
        let Ok(header) = self.media.read(behind, 1)? else { return Ok(false) };
        ages.keep(block, (header.sequence, behind), false);
        Ok(true)
    }
}
