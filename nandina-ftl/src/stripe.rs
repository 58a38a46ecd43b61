//! Several equal chips as one: pages are numbered along the stripe of all chips.
//!
//! Page 0 of a block is on the first chip, page 1 on the second, and so on; behind the last chip it
//! is the first again. So what is written in order goes to all chips in turn, its numbers rise by
//! one from page to page, and a mapping of extents keeps it as one. A block of the stripe is the
//! blocks of all chips with that number. Every call ends before it returns: nothing here starts an
//! operation while another one runs, and no operation is repeated or moved to another chip.

use core::fmt;

use nandina::flash::{
    BlockNumber, Capabilities, ErrorKind, Flash, FlashError, Geometry, PageNumber, Pairing, Reading,
};

/// The most pages of a block, which an FTL numbers in 12 bits.
const BLOCK_PAGES_MAX: u32 = 4095;

/// Equal chips as one [`Flash`], for an FTL.
///
/// It keeps the media contract if each of its chips does:
/// - Only safe pages of the chips have numbers. So no cut damages a page that was programmed
///   earlier (rule 13), and [`Capabilities::pairing`] is [`Pairing::None`].
/// - A block is bad if that of any chip is (rule 10). So up to as many times more blocks can go bad
///   as there are chips: a chip's good blocks are lost with the bad one of another.
/// - A cut in an erase leaves the blocks of some chips erased and those of others as they were,
///   which rule 7 allows.
/// - Power fails for all chips at once. A cut tears one page, because one operation runs at a time.
///   A driver that lets programs of several chips overlap could tear one page of each, and no FTL
///   of this crate expects that.
///
/// No page is replaced or overwritten, and no page is programmed twice.
pub struct Stripe<'c, F> {
    chips: &'c mut [F],
    geometry: Geometry,
    capabilities: Capabilities,
    pairing: Pairing,
    /// Pages of a block of one chip.
    chip_pages: u32,
}

/// Why chips make no stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadStripe {
    /// There is no chip.
    NoChip,
    /// A chip is not like the first one.
    Unequal {
        /// Its position.
        chip: usize,
    },
    /// A block of the stripe has too many pages.
    BlockPages {
        /// The most.
        most: u32,
        /// Pages that it would have.
        given: u32,
    },
    /// More blocks of a stripe can go bad than [`Capabilities::bad_blocks_per_mille`] can say.
    BadBlocks {
        /// The most, per mille.
        most: u32,
        /// Those of all chips, per mille.
        given: u32,
    },
}

impl fmt::Display for BadStripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChip => f.write_str("a stripe needs a chip"),
            Self::Unequal { chip } => write!(f, "chip {chip} is not like the first one"),
            Self::BlockPages { most, given } => {
                write!(f, "a block of the stripe would have {given} pages, it has at most {most}")
            }
            Self::BadBlocks { most, given } => {
                write!(
                    f,
                    "{given} of 1,000 blocks of the stripe could go bad, and at most {most} may: take fewer chips"
                )
            }
        }
    }
}

impl core::error::Error for BadStripe {}

impl<'c, F: Flash> Stripe<'c, F> {
    /// A stripe of these chips, in this order, which must always be the same.
    pub fn new(chips: &'c mut [F]) -> Result<Self, BadStripe> {
        let first = chips.first().ok_or(BadStripe::NoChip)?;
        let (chip, each) = (first.geometry(), first.capabilities());
        let is_other = |other: &F| other.geometry() != chip || other.capabilities() != each;
        if let Some(chip) = chips.iter().position(is_other) {
            return Err(BadStripe::Unequal { chip });
        }
        let count = u32::try_from(chips.len()).unwrap_or(u32::MAX);
        let geometry = stripe_geometry(&chip, &each, count);
        if geometry.pages_per_block > BLOCK_PAGES_MAX {
            let (most, given) = (BLOCK_PAGES_MAX, geometry.pages_per_block);
            return Err(BadStripe::BlockPages { most, given });
        }
        let (most, given) = (u8::MAX.into(), bad_blocks_of(&each, count));
        if given > most {
            return Err(BadStripe::BadBlocks { most, given });
        }
        Ok(Self {
            chips,
            geometry,
            capabilities: stripe_capabilities(&each, count),
            pairing: each.pairing,
            chip_pages: chip.pages_per_block,
        })
    }

    /// The chips.
    pub const fn chips(&self) -> &[F] {
        self.chips
    }

    /// The chip of a page, and its number there.
    fn place(&mut self, page: PageNumber) -> (&mut F, PageNumber) {
        let (block, index) =
            (page.0 / self.geometry.pages_per_block, page.0 % self.geometry.pages_per_block);
        // Most stripes have one chip, and a division takes as long as all else here.
        let (place, chip) = match self.chips.len() as u32 {
            1 => (index, 0),
            chips => (index / chips, index % chips),
        };
        let page = PageNumber(block * self.chip_pages + self.pairing.safe_page(place));
        (&mut self.chips[chip as usize], page)
    }
}

/// The geometry of a stripe of `chips` chips of this one, before there is one.
///
/// A block has the safe pages of all chips; more of them than a `u32` holds are `u32::MAX`.
pub const fn stripe_geometry(chip: &Geometry, capabilities: &Capabilities, chips: u32) -> Geometry {
    let safe_pages = capabilities.pairing.safe_pages(chip.pages_per_block);
    Geometry { pages_per_block: safe_pages.saturating_mul(chips), ..*chip }
}

/// Blocks of a stripe that can go bad, per mille: each can be another one's bad block.
fn bad_blocks_of(chip: &Capabilities, chips: u32) -> u32 {
    u32::from(chip.bad_blocks_per_mille).saturating_mul(chips)
}

/// What a stripe of `chips` chips can do, each of which can do this.
///
/// Of more bad blocks than there is a number for, it is the highest number; there is no such stripe.
pub fn stripe_capabilities(chip: &Capabilities, chips: u32) -> Capabilities {
    let bad = u8::try_from(bad_blocks_of(chip, chips)).unwrap_or(u8::MAX);
    Capabilities {
        programs_per_page: Some(1),
        pairing: Pairing::None,
        rewrite: false,
        overwrite: false,
        part_reads: false,
        bad_blocks_per_mille: bad,
        ..*chip
    }
}

impl<F: Flash> Flash for Stripe<'_, F> {
    type Error = F::Error;

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn reports_corrections(&self) -> bool {
        self.chips[0].reports_corrections()
    }

    fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
        self.chips[0].checksum(pieces)
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, F::Error> {
        let (chip, page) = self.place(page);
        chip.read(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), F::Error> {
        let (chip, page) = self.place(page);
        chip.program(page, main, spare)
    }

    fn program_copy(
        &mut self,
        of: PageNumber,
        page: PageNumber,
        main: &[u8],
        spare: &[u8],
    ) -> Result<(), F::Error> {
        let chips = self.chips.len() as u32;
        let chip_of = |page: PageNumber| page.0 % self.geometry.pages_per_block % chips;
        // No chip has the bytes of another one.
        if chips > 1 && chip_of(of) != chip_of(page) {
            return self.program(page, main, spare);
        }
        let (_, of) = self.place(of);
        let (chip, page) = self.place(page);
        chip.program_copy(of, page, main, spare)
    }

    /// Erases the blocks of all chips. After a failure the later chips are left as they were.
    fn erase(&mut self, block: BlockNumber) -> Result<(), F::Error> {
        self.chips.iter_mut().try_for_each(|chip| chip.erase(block))
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, F::Error> {
        for chip in self.chips.iter_mut() {
            if chip.is_bad(block)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Marks the block as bad on every chip: a mark that holds on one of them suffices.
    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), F::Error> {
        let (mut marked, mut failed) = (false, Ok(()));
        for chip in self.chips.iter_mut() {
            if chip.is_bad(block)? {
                marked = true;
                continue;
            }
            match chip.mark_bad(block) {
                Ok(()) => marked = true,
                Err(error) if error.kind() == ErrorKind::Other => return Err(error),
                Err(error) => failed = Err(error),
            }
        }
        if marked { Ok(()) } else { failed }
    }
}
