//! A set of pages of the chip, as a bitmap with a summary.
//!
//! There is a bit for each page, and a bit for each 256 pages that says whether any of them is in
//! the set. So the next page is found without a scan of all.

use crate::flash::PageNumber;

/// Bytes of the bitmap that one bit of the summary covers.
const GROUP: usize = 32;

/// Bytes of RAM for a set of pages of a chip with `pages` pages.
pub const fn ram_needed(pages: u32) -> usize {
    bits_bytes(pages) + summary_bytes(pages)
}

const fn bits_bytes(pages: u32) -> usize {
    pages.div_ceil(8) as usize
}

const fn summary_bytes(pages: u32) -> usize {
    bits_bytes(pages).div_ceil(8 * GROUP)
}

/// A set of pages.
pub struct Pages<'b> {
    bits: &'b mut [u8],
    summary: &'b mut [u8],
    len: u32,
}

impl<'b> Pages<'b> {
    /// Creates an empty set. Returns the unused rest of `ram`.
    pub fn new(ram: &'b mut [u8], pages: u32) -> (Self, &'b mut [u8]) {
        let (bits, rest) = ram.split_at_mut(bits_bytes(pages));
        let (summary, rest) = rest.split_at_mut(summary_bytes(pages));
        let mut set = Self { bits, summary, len: 0 };
        set.clear();
        (set, rest)
    }

    /// A set for a chip without pages.
    pub fn nothing() -> Self {
        Self { bits: &mut [], summary: &mut [], len: 0 }
    }

    pub fn clear(&mut self) {
        self.bits.fill(0);
        self.summary.fill(0);
        self.len = 0;
    }

    /// The number of pages in the set.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Adds `page`, which is a page of the chip.
    pub fn insert(&mut self, page: PageNumber) {
        let at = page.0 as usize / 8;
        let bit = 1 << (page.0 % 8);
        self.len += u32::from(self.bits[at] & bit == 0);
        self.bits[at] |= bit;
        self.summary[at / GROUP / 8] |= 1 << (at / GROUP % 8);
    }

    /// Removes the first page of the set and returns it.
    ///
    /// No page of the set may lie before `from`; the search begins there.
    pub fn take(&mut self, from: u32) -> Option<PageNumber> {
        if self.len == 0 {
            return None;
        }
        let first = from as usize / 8 / GROUP / 8;
        let word = first + self.summary[first..].iter().position(|&bits| bits != 0)?;
        let group = word * 8 + self.summary[word].trailing_zeros() as usize;
        let end = ((group + 1) * GROUP).min(self.bits.len());
        let at =
            group * GROUP + self.bits[group * GROUP..end].iter().position(|&bits| bits != 0)?;
        let bit = self.bits[at].trailing_zeros();
        self.bits[at] &= !(1 << bit);
        self.len -= 1;
        if self.bits[group * GROUP..end].iter().all(|&bits| bits == 0) {
            self.summary[word] &= !(1 << (group % 8));
        }
        Some(PageNumber(at as u32 * 8 + bit))
    }
}
