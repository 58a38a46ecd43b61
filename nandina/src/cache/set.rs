//! A set of pages of the chip: a bit for each, and a bit for each 256 of them that says whether one
//! of these is in the set, so that the next one is found without a look at all.

use crate::flash::PageNumber;

/// Bytes of bits that one bit of the summary is for.
const GROUP: usize = 32;

/// Bytes of RAM for a set of pages of a chip of so many.
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
    /// An empty set in the first bytes of `ram`, and the rest of it.
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

    /// Pages in the set.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Puts `page`, which is one of the chip's, into the set.
    pub fn insert(&mut self, page: PageNumber) {
        let at = page.0 as usize / 8;
        let bit = 1 << (page.0 % 8);
        self.len += u32::from(self.bits[at] & bit == 0);
        self.bits[at] |= bit;
        self.summary[at / GROUP / 8] |= 1 << (at / GROUP % 8);
    }

    /// Takes the first of the pages from `from` on out of the set. All pages that are in it are at
    /// `from` or behind.
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
