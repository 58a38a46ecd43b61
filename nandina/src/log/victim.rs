//! Which block is collected next. The choice is made here and in no tree; the account that it is
//! made from is kept in `blocks.rs`.
//!
//! Whatever is chosen gains room: where a choice would not, or finds nothing, the block with the
//! fewest valid pages is taken, which always does.

use super::Log;
use crate::blocks::Victims;
use crate::bytes::Bits;
use crate::checksum;
use crate::error::Fault;
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError, Geometry};
use crate::node::HEADER_BYTES;

/// Pages of a block for which a hint is written at most.
const HINTED_MAX: usize = 512;

/// Bytes of a hint: a bit for each page, then their checksum.
const HINT_BYTES_MAX: usize = HINTED_MAX / 8 + 4;

/// A page header and a hint.
pub(super) type SpareWithHint = [u8; HEADER_BYTES + HINT_BYTES_MAX];

/// Which pages of a block may be valid.
pub struct Hint {
    bits: Bits<[u8; HINTED_MAX / 8]>,
    /// Nothing is known: any page may be.
    any: bool,
}

impl Hint {
    /// Puts the hint behind the page header in a spare area; answers how many bytes they are.
    pub fn seal(&self, geometry: &Geometry, header: &[u8], spare: &mut SpareWithHint) -> usize {
        let Some(bytes) = hint_bytes(geometry) else {
            return 0;
        };
        spare[..HEADER_BYTES].copy_from_slice(header);
        let (bits, sum) = spare[HEADER_BYTES..HEADER_BYTES + bytes].split_at_mut(bytes - 4);
        bits.copy_from_slice(&self.bits.0[..bytes - 4]);
        sum.copy_from_slice(&checksum::of(&[header, bits]).to_le_bytes());
        HEADER_BYTES + bytes
    }

    pub fn has(&self, index: u32) -> bool {
        self.any || self.bits.has(index as usize)
    }
}

/// Bytes of a hint on such a chip, if its spare area has room for one behind the page header.
const fn hint_bytes(geometry: &Geometry) -> Option<usize> {
    let pages = geometry.pages_per_block as usize;
    let bytes = pages.div_ceil(8) + 4;
    if pages <= HINTED_MAX && HEADER_BYTES + bytes <= geometry.spare_bytes as usize {
        Some(bytes)
    } else {
        None
    }
}

impl<F: Flash> Log<'_, F> {
    /// Whether pages are taken for valid as hints tell.
    pub const fn follows_hints(&self) -> bool {
        cfg!(feature = "paper-modes") && matches!(self.victims, Victims::Tracked(_))
    }

    /// The block to collect next for its garbage, of those that gain room: `gains` is asked with a
    /// number of valid pages.
    pub fn victim(&self, gains: impl Fn(u32) -> bool) -> Option<BlockNumber> {
        let active = self.active_block();
        let fewest = self.blocks.victim(active)?;
        if self.victims == Victims::Fewest && self.blocks.counts_erases() {
            return Some(fewest);
        }
        // In turn, but of those that gain about as much as any: near full, others would gain a page
        // or two.
        let valid_max = self.blocks.valid_in(fewest) + self.block_pages() / 8;
        let mut best: Option<(BlockNumber, u64, u64)> = None;
        for block in self.blocks.in_turn() {
            let valid = self.blocks.valid_in(block);
            if !self.blocks.is_victim(block, active) || !gains(valid) {
                continue;
            }
            // What it is worth, for each so much of it.
            let (worth, each) = match self.victims {
                Victims::Fewest if valid <= valid_max => return Some(block),
                Victims::Fewest => continue,
                Victims::CostBenefit => {
                    let free = u64::from(self.block_pages() - valid);
                    let age = (self.sequence as u32).wrapping_sub(self.blocks.opened_at(block));
                    (free * u64::from(age), valid.into())
                }
                Victims::Tracked(_) if !self.follows_hints() => continue,
                Victims::Tracked(_) => (self.blocks.superseded_in(block).into(), 1),
            };
            let is_tracked = matches!(self.victims, Victims::Tracked(_));
            // Whole numbers only, and no division: small microcontrollers have neither.
            let is_better = best.is_none_or(|(_, other, by)| worth * by >= other * each);
            if is_better && !(is_tracked && worth == 0) {
                best = Some((block, worth, each));
            }
        }
        Some(best.map_or(fewest, |(block, ..)| block))
    }

    /// What the page at `place` of `block` is to tell of the block's pages, this one among them:
    /// only the last one tells.
    pub fn hint_for(&self, block: BlockNumber, place: u32) -> Option<Hint> {
        if !self.follows_hints() || place + 1 < self.block_pages() {
            return None;
        }
        hint_bytes(&self.geometry())?;
        let mut hint = Hint { bits: Bits([0; HINTED_MAX / 8]), any: false };
        let last = self.page_at(block, place);
        for index in 0..self.geometry().pages_per_block {
            let page = self.geometry().page_in(block, index);
            if page == last || self.blocks.is_valid(page) {
                hint.bits.set(index as usize, true);
            }
        }
        Some(hint)
    }

    /// What the last page of `block` says of its pages. Cost: one read.
    pub fn read_hint(&mut self, block: BlockNumber) -> Result<Hint, Fault<F::Error>> {
        let mut found = Hint { bits: Bits([0; HINTED_MAX / 8]), any: true };
        let Some(bytes) = hint_bytes(&self.geometry()) else {
            return Ok(found);
        };
        let page = self.page_at(block, self.block_pages() - 1);
        self.frames.forget(0);
        self.operations += 1;
        let page_bytes = self.layout().page_bytes();
        let main = &mut self.frames.bytes_mut(0)[..page_bytes];
        let mut spare = [0; HEADER_BYTES + HINT_BYTES_MAX];
        let spare = &mut spare[..HEADER_BYTES + bytes];
        match self.flash.read(page, main, spare) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Uncorrectable => return Ok(found),
            Err(error) => return Err(Fault::Device(error)),
        }
        let (header, hint) = spare.split_at(HEADER_BYTES);
        let (bits, sum) = hint.split_at(bytes - 4);
        if sum == checksum::of(&[header, bits]).to_le_bytes() {
            found.bits.0[..bits.len()].copy_from_slice(bits);
            found.any = false;
        }
        Ok(found)
    }
}
