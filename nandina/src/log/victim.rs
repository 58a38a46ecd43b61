//! Which block is collected next.
//!
//! The choice is made here for all owners, from the block table (`blocks/mod.rs`). Every victim
//! gains room: if a policy finds none that does, the block with the fewest valid pages is taken,
//! which always does.

use super::Log;
use crate::blocks::GcPolicy;
use crate::bytes::Bits;
use crate::checksum;
use crate::error::Fault;
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError, Geometry};
use crate::node::HEADER_BYTES;

/// The most pages of a block for which a hint is written.
const HINTED_MAX: usize = 512;

/// Bytes of a hint: a bit for each page, then their checksum.
const HINT_BYTES_MAX: usize = HINTED_MAX / 8 + 4;

/// A page header and a hint.
pub(super) type SpareWithHint = [u8; HEADER_BYTES + HINT_BYTES_MAX];

/// A hint: which pages of a block may be valid.
pub struct Hint {
    bits: Bits<[u8; HINTED_MAX / 8]>,
    /// The hint is unknown: any page may be valid.
    any: bool,
}

impl Hint {
    /// Writes the hint after the page header of a spare area.
    ///
    /// Returns the number of bytes of both together; 0 if the spare area has no room.
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

/// Bytes of a hint on this chip.
///
/// `None` if its spare area has no room for one after the page header.
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
    /// Whether hints decide which pages may be valid.
    pub const fn follows_hints(&self) -> bool {
        cfg!(feature = "paper-modes") && matches!(self.victims, GcPolicy::Tracked(_))
    }

    /// The block to collect next, of those that gain room.
    ///
    /// `gains` says whether a block with that number of valid pages gains room.
    pub fn victim(&self, gains: impl Fn(u32) -> bool) -> Option<BlockNumber> {
        let active = self.active_block();
        let fewest = self.blocks.victim(active)?;
        #[cfg(feature = "sampled-victims")]
        if let GcPolicy::Sampled(draws) = self.victims {
            return Some(self.sampled(draws, &gains).unwrap_or(fewest));
        }
        if self.victims == GcPolicy::Fewest && self.blocks.counts_erases() {
            return Some(fewest);
        }
        // In turn, but only of those that gain about as much as the best: near full, others would
        // gain only a page or two.
        let valid_max = self.blocks.valid_in(fewest) + self.block_pages() / 8;
        let mut best: Option<(BlockNumber, u64, u64)> = None;
        for block in self.blocks.in_turn() {
            let valid = self.blocks.valid_in(block);
            if !self.blocks.is_victim(block, active) || !gains(valid) {
                continue;
            }
            // The rank is the fraction `worth / each`.
            let (worth, each) = match self.victims {
                GcPolicy::Fewest if valid <= valid_max => return Some(block),
                GcPolicy::Fewest => continue,
                GcPolicy::CostBenefit => {
                    let free = u64::from(self.block_pages() - valid);
                    let age = (self.sequence as u32).wrapping_sub(self.blocks.opened_at(block));
                    (free * u64::from(age), valid.into())
                }
                GcPolicy::Tracked(_) if self.follows_hints() => {
                    (self.blocks.superseded_in(block).into(), 1)
                }
                _ => continue,
            };
            let is_tracked = matches!(self.victims, GcPolicy::Tracked(_));
            // Fractions are compared by multiplication: small microcontrollers have no hardware for
            // floating point or division.
            let is_better = best.is_none_or(|(_, other, by)| worth * by >= other * each);
            if is_better && !(is_tracked && worth == 0) {
                best = Some((block, worth, each));
            }
        }
        Some(best.map_or(fewest, |(block, ..)| block))
    }

    /// The block with the fewest valid pages of `draws` random ones that gain room.
    #[cfg(feature = "sampled-victims")]
    fn sampled(&self, draws: u8, gains: impl Fn(u32) -> bool) -> Option<BlockNumber> {
        let drawn = (0..draws).map(|draw| {
            // The finalizer of splitmix64: the numbers are equally likely, and no two draws alike.
            let mut number = self.sequence << 8 | u64::from(draw);
            number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            let number = number >> 32;
            BlockNumber(((number * u64::from(self.blocks.count())) >> 32) as u32)
        });
        drawn
            .filter(|&block| self.blocks.is_victim(block, self.active_block()))
            .filter(|&block| gains(self.blocks.valid_in(block)))
            .min_by_key(|&block| self.blocks.valid_in(block))
    }

    /// The hint that the page at `place` of `block` carries.
    ///
    /// Only the last page of a block carries one; it covers that page, too.
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

    /// Reads the hint in the last page of `block`. Cost: one read.
    pub fn read_hint(&mut self, block: BlockNumber) -> Result<Hint, Fault<F::Error>> {
        let mut found = Hint { bits: Bits([0; HINTED_MAX / 8]), any: true };
        let Some(bytes) = hint_bytes(&self.geometry()) else {
            return Ok(found);
        };
        let page = self.page_at(block, self.block_pages() - 1);
        self.frames.forget(0);
        let page_bytes = self.layout().page_bytes();
        let main = &mut self.frames.bytes_mut(0)[..page_bytes];
        let mut spare = [0; HEADER_BYTES + HINT_BYTES_MAX];
        let spare = &mut spare[..HEADER_BYTES + bytes];
        match self.chip.read(page, main, spare) {
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
