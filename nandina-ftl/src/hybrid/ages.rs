//! Which of two copies of a logical page is newer, found with few reads.
//!
//! Pages of a block are programmed in order, each with a higher number than the one before. So of
//! two pages of one block the one behind is newer, and a page that is newer than another one is
//! newer than all pages before that one. A mount keeps the numbers that it has read for this, of a
//! few blocks, and of a buffer block those of its first, a middle and its last page. It reads no
//! page that these tell it enough of, and where they do not, one that may tell of many: the last of
//! its block, then one halfway to it. Nothing is written.

use core::cmp::Ordering;

use nandina::Fault;
use nandina::flash::{BlockNumber, Flash, PageNumber};

use super::Hybrid;
use super::policy::Policy;

/// A page's sequence number, and where it is: a higher one is newer.
pub(super) type Age = (u64, PageNumber);

/// Buffer blocks whose numbers are kept, and other blocks.
const KEPT: [usize; 2] = [4, 8];

/// The numbers of three pages of a block: a low one, the last one noted, a high one.
#[derive(Clone, Copy)]
struct Known {
    block: u32,
    ages: [Age; 3],
}

/// The first page of a block that counts, one in the middle, and the last.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    first: Age,
    middle: Age,
    pub last: Age,
}

impl Ends {
    /// Adds a page behind those before it, which is in the first half of its block or behind that.
    pub fn with(ends: Option<Self>, age: Age, is_in_first_half: bool) -> Self {
        let Self { first, middle, .. } =
            ends.unwrap_or(Self { first: age, middle: age, last: age });
        Self { first, middle: if is_in_first_half { age } else { middle }, last: age }
    }
}

impl Known {
    const NONE: Self = Self { block: u32::MAX, ages: [(0, PageNumber(0)); 3] };
}

/// The numbers that a scan has read to compare copies.
pub(super) struct Ages {
    known: [Known; KEPT[0] + KEPT[1]],
    /// The entries that the next buffer block and the next other block take.
    next: [usize; 2],
}

impl Ages {
    pub const fn new() -> Self {
        Self { known: [Known::NONE; _], next: [0, KEPT[0]] }
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

    /// Keeps the numbers of a buffer block.
    pub fn keep_ends(&mut self, block: BlockNumber, ends: &Ends) {
        for age in [ends.first, ends.last, ends.middle] {
            self.keep(block, age, true);
        }
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
    /// Whether a page is newer than the copy of its logical page that counts up to now.
    ///
    /// A copy that cannot be read is not newer, unless a page behind it names it.
    ///
    /// Cost: nothing if what was read before decides it; else one or two reads, or three for a page
    /// of a buffer block.
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
        if let Some(is_newer) = ages.compare(block, age, rival) {
            return Ok(is_newer);
        }
        // A page of a buffer block is mostly newer than all pages of the block below it, or than
        // those that were written before it was full.
        let looks = if is_buffer { 2 } else { 1 };
        for _ in 0..looks {
            if !self.look_behind(ages, rival, age.0)? {
                break;
            }
            if let Some(is_newer) = ages.compare(block, age, rival) {
                return Ok(is_newer);
            }
        }
        let Some(sequence) = self.sequence_of(rival)? else { return Ok(true) };
        ages.keep(block, (sequence, rival), self.is_buffer_block(block));
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
        ages.keep(block, (sequence, page), self.is_buffer_block(block));
        Ok(Some(sequence > than))
    }

    /// Reads a page behind `page`, which is older if that one is older than a sequence number.
    ///
    /// That is the last one that counts in the block, or one halfway to the first that is known to
    /// be newer than the number. Returns whether it read one. None is read in a buffer block, of
    /// which the ends are known.
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
