//! A leaf as bits: its header, its three forms, and the items in it.
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
//! A field has as few bits as the leaf needs. Starts and lengths are in units of `2^scale`, if all
//! of them are multiples of that: sectors of pages of 4 KB take 3 bits less for each. Where holes
//! are items, the highest physical number of that many bits means none. This file changes no leaf's
//! size and knows no other leaf. The paper has no such mapping.

use super::bits;
use crate::mapping::{Extent, Piece};

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

/// The header of a leaf, decoded, and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// The bit at which items begin.
    pub bit: usize,
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
pub(super) fn granules_of(meta: u32) -> usize {
    (meta & 0x7F) as usize
}

/// The form of the leaf whose header has that second word.
pub(super) fn form_of(meta: u32) -> Form {
    match meta >> 7 & 3 {
        0 => Form::Runs,
        1 => Form::Pieces,
        2 => Form::Units,
        _ => Form::Free,
    }
}

impl Leaf {
    /// The leaf with the given header, whose first byte is at `byte`.
    pub fn decode(byte: usize, base: u32, limit: u32, meta: u32, physical_bits: u32) -> Leaf {
        Leaf {
            bit: (byte + HEADER) * 8,
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
    pub fn meta(&self) -> u32 {
        let widths = self.start_bits << 9 | self.length_bits << 15;
        meta(self.granules, self.form) | widths | (self.count as u32) << 21 | self.scale << 30
    }

    /// Its part of the space.
    pub fn part(&self) -> Extent {
        Extent::between(self.base, self.limit)
    }

    /// Bits of an item; of a unit where the form is `Units`.
    ///
    /// Starts and lengths that the form does not have take no bits.
    #[inline]
    pub fn stride(&self) -> usize {
        (self.start_bits + self.length_bits + self.physical_bits) as usize
    }

    /// How many fields of [`Self::stride`] bits it has.
    pub fn fields(&self) -> usize {
        if self.form == Form::Units { self.part().length as usize } else { self.count }
    }

    /// The number that means no physical unit.
    fn none(&self) -> u32 {
        ((1u64 << self.physical_bits) - 1) as u32
    }

    fn physical(&self, memory: &[u8], bit: usize) -> Option<u32> {
        self.some(bits::get(memory, bit, self.physical_bits))
    }

    fn some(&self, physical: u32) -> Option<u32> {
        (self.form == Form::Runs || physical != self.none()).then_some(physical)
    }

    /// The item at `at`; a unit where the form is `Units`.
    pub fn item(&self, memory: &[u8], at: usize) -> Piece {
        let mut found = Piece::hole(self.part());
        self.scan(memory, at, |item| {
            found = item;
            false
        });
        found
    }

    /// Passes the items from `first` on to `pass` while it returns true.
    ///
    /// An item is a unit where the form is `Units`. Each form has a loop of its own, outside of which
    /// is all that is the same for every item.
    #[inline(always)]
    pub fn scan(&self, memory: &[u8], first: usize, mut pass: impl FnMut(Piece) -> bool) {
        let Leaf { base, scale, start_bits, length_bits, physical_bits, .. } = *self;
        let (stride, fields) = (self.stride(), self.fields());
        let mut bit = self.bit + first * stride;
        match self.form {
            Form::Runs | Form::Free if stride <= bits::WORD => {
                let ends = start_bits + length_bits;
                for _ in first..fields {
                    let word = bits::word(memory, bit);
                    let logical = base + (bits::part(word, 0, start_bits) << scale);
                    let length = (bits::part(word, start_bits, length_bits) + 1) << scale;
                    let physical = Some(bits::part(word, ends, physical_bits));
                    if !pass(Piece { logical, length, physical }) {
                        break;
                    }
                    bit += stride;
                }
            }
            Form::Runs | Form::Free => {
                for _ in first..fields {
                    let start = bits::get(memory, bit, start_bits);
                    let length = bits::get(memory, bit + start_bits as usize, length_bits);
                    let physical = bit + (start_bits + length_bits) as usize;
                    let physical = Some(bits::get(memory, physical, physical_bits));
                    let (logical, length) = (base + (start << scale), (length + 1) << scale);
                    if !pass(Piece { logical, length, physical }) {
                        break;
                    }
                    bit += stride;
                }
            }
            Form::Pieces if first < fields => {
                let mut logical = base + (bits::get(memory, bit, start_bits) << scale);
                for at in first..fields {
                    let physical = self.physical(memory, bit + start_bits as usize);
                    bit += stride;
                    let behind = if at + 1 < fields {
                        base + (bits::get(memory, bit, start_bits) << scale)
                    } else {
                        self.limit
                    };
                    let length = behind.saturating_sub(logical);
                    if !pass(Piece { logical, length, physical }) {
                        break;
                    }
                    logical = behind;
                }
            }
            Form::Pieces => {}
            Form::Units => {
                for logical in base + first as u32..base + fields as u32 {
                    let physical = self.physical(memory, bit);
                    if !pass(Piece { logical, length: 1, physical }) {
                        break;
                    }
                    bit += stride;
                }
            }
        }
    }

    /// Whether the item fits in the fields of this leaf.
    pub fn holds(&self, piece: Piece) -> bool {
        let is_run = self.form == Form::Runs;
        let length = if is_run { piece.length } else { 0 };
        let mask = (1 << self.scale) - 1;
        let is_scaled = ((piece.logical - self.base) | length) & mask == 0;
        is_scaled && (!is_run || bits::width((length >> self.scale) - 1) <= self.length_bits)
    }

    /// Writes the item at `at`, which [`Self::holds`].
    pub fn set_item(&self, memory: &mut [u8], at: usize, piece: Piece) {
        let bit = self.bit + at * self.stride();
        let physical = u64::from(piece.physical.unwrap_or(self.none()));
        if self.form == Form::Units {
            return bits::set(memory, bit, self.physical_bits, physical);
        }
        let mut ends = u64::from((piece.logical - self.base) >> self.scale);
        let mut width = self.start_bits;
        if self.form == Form::Runs {
            ends |= u64::from((piece.length >> self.scale) - 1) << width;
            width += self.length_bits;
        }
        if self.stride() <= bits::CHUNK {
            bits::set(memory, bit, width + self.physical_bits, ends | physical << width);
        } else if width as usize <= bits::CHUNK {
            bits::set(memory, bit, width, ends);
            bits::set(memory, bit + width as usize, self.physical_bits, physical);
        } else {
            let (start, length) = (self.start_bits, self.length_bits);
            bits::set(memory, bit, start, ends);
            bits::set(memory, bit + start as usize, length, ends >> start);
            bits::set(memory, bit + width as usize, self.physical_bits, physical);
        }
    }

    /// Appends an item, which [`Self::holds`], to those before it.
    #[inline]
    pub fn append(&self, bits: &mut bits::Writer<'_>, piece: Piece) {
        let physical = u64::from(piece.physical.unwrap_or(self.none()));
        if self.form != Form::Units {
            bits.push(u64::from((piece.logical - self.base) >> self.scale), self.start_bits);
        }
        if self.form == Form::Runs {
            bits.push(u64::from((piece.length >> self.scale) - 1), self.length_bits);
        }
        bits.push(physical, self.physical_bits);
    }

    /// The last item that begins at `unit` or before it, and how many starts the search has read.
    ///
    /// It may end before the unit. If no item begins there, it is the first one.
    #[inline]
    pub fn find(&self, memory: &[u8], unit: u32) -> (usize, u64) {
        if self.form == Form::Units {
            return ((unit - self.base) as usize, 0);
        }
        // Starts are compared as they are stored.
        let key = (unit - self.base) >> self.scale;
        let (stride, width) = (self.stride(), self.start_bits);
        let (mut low, mut size, mut read) = (0, self.count, 0);
        while size > 0 {
            let half = size / 2;
            let start = bits::get(memory, self.bit + (low + half) * stride, width);
            read += 1;
            (low, size) =
                if start <= key { (low + half + 1, size - half - 1) } else { (low, half) };
        }
        (low.saturating_sub(1), read)
    }
}
