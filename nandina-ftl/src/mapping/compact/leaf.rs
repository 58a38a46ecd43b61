//! A leaf: its header, its three forms, and the items in it.
//!
//! ```text
//! bytes 0..4  base: the first logical unit of the leaf's part of the space
//! bytes 4..8  meta: granules (7 bits), form (2), bits of a start (6), of a length (6), count (9),
//!             scale (2)
//! then        form Runs:   count x (start - base, length - 1, physical)
//!             form Pieces: count x (start - base, physical), which tile the part: holes too
//!             form Units:  physical of every unit; count is how many pieces that makes
//! ```
//!
//! An item has as few bits as the leaf needs, at most those of a word. Starts and lengths are in
//! units of `2^scale`, if all of them are multiples of that: sectors of pages of 4 KB take 3 bits
//! less for each. Where holes are items, the highest physical number of that many bits means none.
//! This file changes no leaf's size and knows no other leaf. The paper has no such mapping.

use core::hint::select_unpredictable;

use super::bits;
use crate::mapping::{Extent, Piece, Run};

/// Bytes of a header.
pub(super) const HEADER: usize = 8;

/// The most items of the forms `Runs` and `Pieces`.
pub(super) const ITEMS: usize = 64;

/// The most units of the form `Units`.
pub(super) const UNITS: u32 = 256;

/// The highest scale: units of 8, which is a page of 4 KB in sectors.
pub(super) const SCALE_MAX: u32 = 3;

/// How a leaf stores its part of the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Runs,
    Pieces,
    Units,
    /// No leaf: a hole in the memory.
    Free,
}

/// Forms by their numbers. A table needs no jump.
const FORMS: [Form; 4] = [Form::Runs, Form::Pieces, Form::Units, Form::Free];

/// The header of a leaf, decoded, and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// The byte at which items begin.
    pub byte: usize,
    pub base: u32,
    /// The first unit behind the leaf's part of the space.
    pub limit: u32,
    pub granules: usize,
    pub form: Form,
    pub start_bits: u32,
    pub length_bits: u32,
    pub physical_bits: u32,
    pub count: usize,
    pub scale: u32,
}

/// The second word of a header.
pub(super) fn meta(granules: usize, form: Form) -> u32 {
    granules as u32 | (form as u32) << 7
}

/// The granules of a slot whose header has that second word.
#[inline]
pub(super) fn granules_of(meta: u32) -> usize {
    (meta & 0x7F) as usize
}

/// The form of the leaf whose header has that second word.
#[inline]
pub(super) fn form_of(meta: u32) -> Form {
    FORMS[(meta >> 7 & 3) as usize]
}

impl Leaf {
    /// The leaf with the given header, whose first byte is at `byte`.
    #[inline(always)]
    pub fn decode(byte: usize, base: u32, limit: u32, meta: u32, physical_bits: u32) -> Leaf {
        Leaf {
            byte: byte + HEADER,
            base,
            limit,
            granules: granules_of(meta),
            form: form_of(meta),
            start_bits: meta >> 9 & 0x3F,
            length_bits: meta >> 15 & 0x3F,
            physical_bits,
            count: (meta >> 21 & 0x1FF) as usize,
            scale: meta >> 30,
        }
    }

    /// The second word of its header.
    #[inline]
    pub fn meta(&self) -> u32 {
        let widths = self.start_bits << 9 | self.length_bits << 15;
        meta(self.granules, self.form) | widths | (self.count as u32) << 21 | self.scale << 30
    }

    /// Its part of the space.
    pub fn part(&self) -> Extent {
        Extent::between(self.base, self.limit)
    }

    /// How many items it has; units where the form is `Units`.
    pub fn fields(&self) -> usize {
        if self.form == Form::Units { self.part().length as usize } else { self.count }
    }

    /// Bits that it may take before memory is short, with its part of everything.
    ///
    /// With physical numbers of 28 bits a run may take 8 bytes; some pieces are holes. Where these
    /// numbers have more bits, starts and lengths have as many more.
    #[inline]
    pub fn allowance(&self) -> usize {
        self.count * self.allowance_of_item()
    }

    /// The same for one item.
    #[inline]
    pub fn allowance_of_item(&self) -> usize {
        let numbers = 2 * self.physical_bits as usize;
        if self.form == Form::Runs { numbers + 6 } else { numbers.saturating_sub(6) }
    }

    /// Bits of an item; of a unit where the form is `Units`.
    ///
    /// Starts and lengths that the form does not have take no bits.
    #[inline]
    pub fn stride(&self) -> usize {
        (self.start_bits + self.length_bits + self.physical_bits) as usize
    }

    /// The memory from the first item on, as the other functions take it.
    #[inline]
    pub fn items<'m>(&self, memory: &'m [u8]) -> &'m [u8] {
        memory.get(self.byte..).unwrap_or(&[])
    }

    /// The same, to be written.
    #[inline]
    pub fn items_mut<'m>(&self, memory: &'m mut [u8]) -> &'m mut [u8] {
        memory.get_mut(self.byte..).unwrap_or(&mut [])
    }

    /// The number that means no physical unit.
    #[inline]
    pub fn none(&self) -> u32 {
        bits::mask(self.physical_bits)
    }

    /// The item at `at`; a unit where the form is `Units`.
    #[inline(always)]
    pub fn item(&self, items: &[u8], at: usize) -> Piece {
        match self.form {
            Form::Runs => self.run(items, at).into(),
            Form::Units => self.tile(self.base + at as u32, 1, self.unit(items, at)),
            _ => {
                let (logical, physical) = self.begin(items, at);
                let next = at + 1 < self.count;
                let behind = if next { self.begin(items, at + 1).0 } else { self.limit };
                self.tile(logical, behind.saturating_sub(logical), physical)
            }
        }
    }

    /// Where the item at `at` begins, and its physical number, where the form is `Pieces`.
    #[inline(always)]
    pub fn begin(&self, items: &[u8], at: usize) -> (u32, u32) {
        let word = bits::word(items, at * self.stride(), self.stride());
        let start = bits::part(word, 0, self.start_bits);
        (self.base + (start << self.scale), bits::part(word, self.start_bits, self.physical_bits))
    }

    /// A piece of a leaf whose pieces tile its part.
    #[inline(always)]
    pub fn tile(&self, logical: u32, length: u32, physical: u32) -> Piece {
        Piece { logical, length, physical: (physical != self.none()).then_some(physical) }
    }

    /// The item at `at`, where the form is `Runs`.
    #[inline(always)]
    pub fn run(&self, items: &[u8], at: usize) -> Run {
        let word = bits::word(items, at * self.stride(), self.stride());
        let ends = self.start_bits + self.length_bits;
        Run {
            logical: self.base + (bits::part(word, 0, self.start_bits) << self.scale),
            length: (bits::part(word, self.start_bits, self.length_bits) + 1) << self.scale,
            physical: bits::part(word, ends, self.physical_bits),
        }
    }

    /// The physical number of the unit at `at`, where the form is `Units`.
    #[inline]
    pub fn unit(&self, items: &[u8], at: usize) -> u32 {
        bits::get(items, at * self.physical_bits as usize, self.physical_bits)
    }

    /// Writes the physical number of the unit at `at`, where the form is `Units`.
    #[inline]
    pub fn set_unit(&self, items: &mut [u8], at: usize, physical: u32) {
        let bit = at * self.physical_bits as usize;
        bits::set(items, bit, self.physical_bits, u64::from(physical));
    }

    /// Whether a piece of that begin fits in the fields of this leaf.
    #[inline(always)]
    pub fn fits(&self, logical: u32) -> bool {
        (logical - self.base) & bits::mask(self.scale) == 0
    }

    /// Whether an item of that begin and length fits, where the form is `Runs`.
    #[inline(always)]
    pub fn fit(&self, logical: u32, length: u32) -> bool {
        ((logical - self.base) | length) & bits::mask(self.scale) == 0
            && (length >> self.scale).wrapping_sub(1) <= bits::mask(self.length_bits)
    }

    /// The word of a run, which [`Self::fit`]s, where the form is `Runs`.
    #[inline(always)]
    pub fn run_word(&self, logical: u32, length: u32, physical: u32) -> u64 {
        let start = u64::from((logical - self.base) >> self.scale);
        let length = u64::from((length >> self.scale).wrapping_sub(1));
        let ends = self.start_bits + self.length_bits;
        start | length << self.start_bits | u64::from(physical) << ends
    }

    /// The word of a piece, which [`Self::fit`]s, where the form is `Pieces`.
    #[inline(always)]
    pub fn piece_word(&self, logical: u32, physical: u32) -> u64 {
        let start = u64::from((logical - self.base) >> self.scale);
        start | u64::from(physical) << self.start_bits
    }

    /// How many items begin before `unit`, which the leaf's part has or ends at.
    #[inline]
    pub fn before(&self, items: &[u8], unit: u32) -> usize {
        if self.form == Form::Units {
            return (unit - self.base) as usize;
        }
        let Some(last) = unit.checked_sub(1).filter(|&last| last >= self.base) else { return 0 };
        let at = self.last_from(items, last);
        at + usize::from(self.count > 0 && self.start(items, at) <= last)
    }

    /// Where the item at `at` begins, unless the form is `Units`.
    #[inline(always)]
    fn start(&self, items: &[u8], at: usize) -> u32 {
        self.base + (bits::get(items, at * self.stride(), self.start_bits) << self.scale)
    }

    /// The last item that begins at `unit` or before it, 0 if none does.
    ///
    /// The leaf's part has `unit`, and its form is not `Units`.
    #[inline(always)]
    pub fn last_from(&self, items: &[u8], unit: u32) -> usize {
        // Starts are compared as they are stored.
        let key = unit.wrapping_sub(self.base) >> self.scale;
        let mask = bits::mask(self.start_bits);
        // A place is an item's number and, in the lower half, the bit at which the item begins.
        let item = 1 << 32 | self.stride() as u64;
        // As many steps for every leaf, so that a processor foresees the end: some step nowhere.
        let (mut low, mut size) = (0, self.count as u64);
        for _ in 0..ITEMS.ilog2() {
            let half = size / 2;
            let middle = low + half * item;
            let start = bits::low(items, middle as u32 as usize) as u32 & mask;
            low = select_unpredictable(start <= key, middle, low);
            size -= half;
        }
        (low >> 32) as usize
    }

    /// How many starts [`Self::last_from`] reads.
    #[inline]
    pub fn steps(&self) -> u64 {
        u64::from(usize::BITS - self.count.leading_zeros())
    }
}
