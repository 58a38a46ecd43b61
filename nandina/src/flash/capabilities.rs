//! What a chip allows and endangers, and what a system needs of it, as data.

use core::fmt;
use core::ops::Range;

/// What a chip allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// NOP: programs allowed for one page between erases, at least 1.
    ///
    /// `None` means any number, as NOR flash allows; each of them only changes bits from 1 to 0.
    pub programs_per_page: Option<u8>,
    /// The pages of a block must be programmed in rising order.
    pub in_order: bool,
    /// Which pages share their cells.
    pub pairing: Pairing,
    /// A single page can be replaced without an erase of its block.
    ///
    /// The chip has a page erase, or its own FTL (a card).
    pub rewrite: bool,
    /// A page is replaced as a whole or not at all (rule 14).
    ///
    /// An FTL that maps pages can promise it; a chip with a page erase cannot, nor can most cards.
    /// It means nothing without [`rewrite`](Self::rewrite).
    pub atomic_rewrite: bool,
    /// Some bytes of a page can be programmed again after the page (rule 15).
    ///
    /// Without [`in_order`](Self::in_order) they can also be the first ones that are programmed.
    /// This is allowed as often as [`programs_per_page`](Self::programs_per_page) says. The driver
    /// of a NAND chip sets it only if the chip's ECC survives partial programs: if codewords can be
    /// programmed separately, or the ECC of bytes that are all ones is all ones.
    pub overwrite: bool,
    /// A read of a part of a page moves this part alone (rule 16).
    ///
    /// Without it such a read moves the whole page, and so costs as much as one.
    pub part_reads: bool,
    /// Blocks in a thousand that the maker expects to go bad over the chip's life.
    ///
    /// Those that are bad from the factory are included. The index keeps this share of the blocks
    /// in reserve.
    pub bad_blocks_per_mille: u8,
}

impl Capabilities {
    /// How many of `blocks` may go bad in the chip's life, rounded up.
    pub const fn bad_blocks_max(&self, blocks: u32) -> u32 {
        // In two parts, because a division of 64 bits takes half a kilobyte of code on small
        // microcontrollers.
        let per_mille = self.bad_blocks_per_mille as u32;
        blocks / 1000 * per_mille + (blocks % 1000 * per_mille).div_ceil(1000)
    }
}

/// Pages that share their cells with pages programmed before them (rule 13).
///
/// A page is *safe* if programming it endangers no other: the lower page of a pair. An index
/// programs safe pages only, so on such a chip it uses a half or a third of the pages, as a chip in
/// its SLC mode would offer them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pairing {
    /// No two pages share cells.
    None,
    /// MLC pairs: an upper page shares cells with the page three before it.
    ///
    /// Page 0 and the odd pages except the last are lower pages. Page 2 pairs with page 0, and a
    /// last page with an odd number with the page two before it.
    DistanceThree,
    /// The pages of a block share word lines: this many consecutive pages each.
    WordLines(u8),
}

impl Pairing {
    /// The pages that a cut in a program of page `index` may damage.
    ///
    /// Pages are numbered within the block.
    pub const fn endangers(self, index: u32, pages_per_block: u32) -> Range<u32> {
        match self {
            Self::None => 0..0,
            Self::DistanceThree => {
                let last = pages_per_block - 1;
                let is_last = index == last && index % 2 == 1;
                if index == 0 || (index % 2 == 1 && !is_last) {
                    return 0..0;
                }
                let lower = if index == 2 {
                    0
                } else if is_last {
                    index.saturating_sub(2)
                } else {
                    index - 3
                };
                lower..lower + 1
            }
            Self::WordLines(pages) => index - index % pages as u32..index,
        }
    }

    /// The number of safe pages of a block.
    pub const fn safe_pages(self, pages_per_block: u32) -> u32 {
        match self {
            Self::None => pages_per_block,
            Self::DistanceThree => pages_per_block.div_ceil(2),
            Self::WordLines(pages) => pages_per_block.div_ceil(pages as u32),
        }
    }

    /// The page number, within its block, of the safe page at `place`.
    ///
    /// `place` counts the safe pages of a block from 0.
    pub const fn safe_page(self, place: u32) -> u32 {
        match self {
            Self::None => place,
            Self::DistanceThree if place == 0 => 0,
            Self::DistanceThree => 2 * place - 1,
            Self::WordLines(pages) => place * pages as u32,
        }
    }
}

/// What a system needs of a chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// Programs of one page between erases that the chip must allow.
    pub programs_per_page: u8,
    /// Pages that can be replaced in place.
    pub rewrite: bool,
    /// Pages that are replaced as a whole or not at all.
    pub atomic_rewrite: bool,
    /// Pages of which some bytes can be programmed again.
    pub overwrite: bool,
    /// Pages of a block that can be programmed in any order.
    pub any_order: bool,
    /// No block may ever go bad.
    pub no_bad_blocks: bool,
}

impl Needs {
    /// One program for each page between erases, which every chip allows.
    pub const NOTHING: Self = Self {
        programs_per_page: 1,
        rewrite: false,
        atomic_rewrite: false,
        overwrite: false,
        any_order: false,
        no_bad_blocks: false,
    };

    /// The first need that `capabilities` do not meet, or `None`.
    pub fn missing(&self, capabilities: &Capabilities) -> Option<Missing> {
        match capabilities.programs_per_page {
            Some(allowed) if allowed < self.programs_per_page => {
                Some(Missing::Programs { needed: self.programs_per_page, allowed })
            }
            _ if self.rewrite && !capabilities.rewrite => Some(Missing::Rewrite),
            _ if self.atomic_rewrite && !capabilities.atomic_rewrite => {
                Some(Missing::AtomicRewrite)
            }
            _ if self.overwrite && !capabilities.overwrite => Some(Missing::Overwrite),
            _ if self.any_order && capabilities.in_order => Some(Missing::AnyOrder),
            _ if self.no_bad_blocks && capabilities.bad_blocks_per_mille > 0 => {
                Some(Missing::GoodBlocks)
            }
            _ => None,
        }
    }
}

/// What a chip lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Missing {
    /// A page can be programmed too few times between erases.
    Programs {
        /// Programs needed; 255 for any number.
        needed: u8,
        /// Programs allowed.
        allowed: u8,
    },
    /// A page cannot be replaced in place.
    Rewrite,
    /// A cut can leave a page that is being replaced torn.
    AtomicRewrite,
    /// Bytes of a page cannot be programmed again.
    Overwrite,
    /// The pages of a block must be programmed in rising order.
    AnyOrder,
    /// Blocks can go bad.
    GoodBlocks,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Programs { needed: u8::MAX, allowed } => write!(
                f,
                "it programs a page anew for each record, the chip allows {allowed} between erases"
            ),
            Self::Programs { needed, allowed } => write!(
                f,
                "it programs a page {needed} times between erases, the chip allows {allowed}"
            ),
            Self::Rewrite => f.write_str("it replaces pages in place, the chip cannot"),
            Self::AtomicRewrite => f.write_str(
                "it replaces pages as a whole or not at all, the device can leave them torn",
            ),
            Self::GoodBlocks => {
                f.write_str("it writes nothing elsewhere, and blocks of the chip can go bad")
            }
            Self::AnyOrder => f.write_str("it programs pages in any order, the chip cannot"),
            Self::Overwrite => {
                f.write_str("it programs bytes of a page after the page, the chip cannot")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_pages_are_those_that_endanger_none() {
        for pairing in
            [Pairing::None, Pairing::DistanceThree, Pairing::WordLines(2), Pairing::WordLines(3)]
        {
            for pages in [2, 3, 4, 5, 6, 12, 127, 128] {
                let safe = (0..pages).filter(|&index| pairing.endangers(index, pages).is_empty());
                let counted = (0..pairing.safe_pages(pages)).map(|place| pairing.safe_page(place));
                assert!(safe.eq(counted), "{pairing:?}, {pages} pages");
                // Only safe pages are endangered: those programmed earlier.
                for index in 0..pages {
                    for endangered in pairing.endangers(index, pages) {
                        assert!(endangered < index, "{pairing:?}: {index} endangers {endangered}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_chip_lacks_is_told() {
        use crate::flash::profile::{
            DATAFLASH, DATAFLASH_264, MLC, NAND_2K, NOR, SD, SD_2K, SLC, TLC,
        };
        let partial = Needs { programs_per_page: 4, ..Needs::NOTHING };
        let in_place = Needs { rewrite: true, ..Needs::NOTHING };
        let appends = Needs { programs_per_page: 2, overwrite: true, ..Needs::NOTHING };
        for profile in [MLC, SLC, NOR, DATAFLASH] {
            assert_eq!(Needs::NOTHING.missing(&profile.capabilities), None);
        }
        let programs = Some(Missing::Programs { needed: 4, allowed: 1 });
        assert_eq!(partial.missing(&MLC.capabilities), programs);
        assert_eq!(partial.missing(&SLC.capabilities), None);
        assert_eq!(partial.missing(&NOR.capabilities), None);
        assert_eq!(in_place.missing(&NOR.capabilities), Some(Missing::Rewrite));
        assert_eq!(in_place.missing(&DATAFLASH.capabilities), None);
        let atomic = Needs { atomic_rewrite: true, ..in_place };
        assert_eq!(atomic.missing(&NOR.capabilities), Some(Missing::Rewrite));
        assert_eq!(atomic.missing(&SD.capabilities), Some(Missing::AtomicRewrite));
        let ftl = crate::flash::Capabilities { atomic_rewrite: true, ..SD.capabilities };
        assert_eq!((atomic.missing(&ftl), in_place.missing(&ftl)), (None, None));
        for profile in [SLC, NOR, DATAFLASH, DATAFLASH_264, NAND_2K] {
            assert_eq!(appends.missing(&profile.capabilities), None, "{}", profile.key);
        }
        for profile in [SD, SD_2K, MLC, TLC] {
            assert!(!profile.capabilities.overwrite, "{}", profile.key);
        }
        let capabilities = crate::flash::Capabilities { overwrite: false, ..SLC.capabilities };
        assert_eq!(appends.missing(&capabilities), Some(Missing::Overwrite));
        assert_eq!(partial.missing(&capabilities), None);
    }

    #[test]
    fn upper_pages_of_mlc_pair_with_lower_pages() {
        let endangers = |index| Pairing::DistanceThree.endangers(index, 128);
        assert_eq!((endangers(0), endangers(1), endangers(125)), (0..0, 0..0, 0..0));
        assert_eq!((endangers(2), endangers(4), endangers(6)), (0..1, 1..2, 3..4));
        assert_eq!((endangers(126), endangers(127)), (123..124, 125..126));
    }
}
