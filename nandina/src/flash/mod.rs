//! What a flash chip is: its geometry, its capabilities, and the contract that every driver keeps.
//!
//! Nothing here knows of trees, nodes or records. A driver for real hardware implements [`Flash`];
//! `nandina-sim` implements it strictly, so that a broken rule is an error at once.

mod capabilities;
mod geometry;
#[cfg(feature = "embedded-storage")]
mod nor;
pub mod profile;

pub use capabilities::{Capabilities, Missing, Needs, Pairing};
pub use geometry::{BlockNumber, Geometry, PageNumber};
#[cfg(feature = "embedded-storage")]
pub use nor::{NorError, NorLayoutError, NorPages};
pub use profile::{Profile, Timing};

/// A raw flash chip, and the media contract.
///
/// The rules are numbered so that errors and tests can cite them.
///
/// 1. **Erase before program.** A page may be programmed only when its block was erased since, and
///    the page then programmed fewer than [`Capabilities::programs_per_page`] times (NOP). A
///    program that was cut counts, even when no bit of it can be seen.
/// 2. **Bits fall.** A program changes bits from 1 to 0 only; an erase sets every bit of a block,
///    main and spare area, to 1. An erased page reads as `0xFF`.
/// 3. **Order.** Where [`Capabilities::in_order`] is set, the pages of a block are programmed in
///    rising order: no page below one that was programmed since the erase. Pages may be skipped.
/// 4. **Whole pages.** A read or a program moves one page: all of the main data
///    ([`Geometry::page_bytes`]) and the first bytes of the spare area, at most
///    [`Geometry::spare_bytes`] of them. Spare bytes beyond those given are not programmed.
/// 5. **Bounds.** Page and block numbers lie below [`Geometry::pages`] and [`Geometry::blocks`].
/// 6. **A cut during a program** leaves any mixture of old and new bits in that page, or a page
///    that cannot be read, and changes nothing else but what rule 13 says. The bits of that page
///    are *unstable*: each read may find the old bits, the new ones or another mixture, corrected
///    or [`ErrorKind::Uncorrectable`], whether there is an ECC or not. So it stays until an erase
///    of the block, or a rewrite of the page (rule 14), returns `Ok`. A bit that a later program of
///    the page lets fall (rules 2 and 15) is 0 from then on.
/// 7. **A cut during an erase** leaves the whole block undefined, and changes nothing else. Each of
///    its pages is unstable (rule 6) between what it held and ones, until an erase of the block
///    returns `Ok`.
/// 8. **Durable on return.** A program or an erase that returned `Ok` survives any later cut.
/// 9. **No life after a cut.** Once power is lost, every operation fails until it is restored.
/// 10. **Bad blocks.** A block that [`is_bad`](Flash::is_bad) is neither programmed nor erased.
///     What it held before it was marked can still be read.
/// 11. **Reported failure.** A program that fails ([`ErrorKind::ProgramFailed`]) leaves its page as
///     rule 6 does, one erase ([`ErrorKind::EraseFailed`]) its block as rule 7 does: unstable. The
///     chip lives on. What fails with [`ErrorKind::Other`] while power stays was done, was not
///     done, or was torn in the same way.
/// 12. **Flipped bits.** A read gives the bytes that were programmed and says whether the ECC had
///     to correct so many bits that the page should be refreshed ([`Reading`]); or it fails with
///     [`ErrorKind::Uncorrectable`], which concerns that page alone. This holds for the spare bytes
///     too: a driver whose ECC does not cover them has a [`Geometry::spare_bytes`] of 0.
/// 13. **Shared cells.** A cut during a program may also damage the pages that
///     [`Pairing::endangers`] names.
/// 14. **Rewrite.** Where [`Capabilities::rewrite`] is set, a page may be replaced whatever it
///     holds. A cut leaves that page undefined and unstable (rule 6), and so does a failure,
///     reported as [`ErrorKind::ProgramFailed`]; no other page changes. Elsewhere `rewrite` is
///     never called.
/// 15. **Overwrite.** Where [`Capabilities::overwrite`] is set, some of the main data of a page may
///     be programmed again, if the page was programmed since its block was erased. That is one
///     program of the page: NOP (rule 1), falling bits (rule 2), order (rule 3: where pages rise,
///     only the page programmed last in its block) and bad blocks (rule 10) hold for it. A cut
///     leaves any mixture of old and new bits in those bytes, and so does a failure, reported as
///     [`ErrorKind::ProgramFailed`]. They are unstable (rule 6). Nothing else changes but what rule
///     13 says: unlike after rule 6 the page can be read; where the chip has an ECC a read may
///     fail, but not when it is repeated at once. Elsewhere `overwrite` is never called.
pub trait Flash {
    /// What went wrong in the device. It is handed to the caller of the index unchanged.
    type Error: FlashError;

    /// Sizes and counts. They never change while the chip is open. An index asks each time instead
    /// of keeping them: let them be constants.
    fn geometry(&self) -> Geometry;

    /// What the chip can do beyond the minimum. It never changes while the chip is open, and is
    /// asked each time, too.
    fn capabilities(&self) -> Capabilities;

    /// Whether a read can return [`Reading::Corrected`]: the chip has an ECC that counts the bits
    /// that it corrects. If not, idle steps read no page only to see how well it can be read.
    /// Default: true.
    fn reports_corrections(&self) -> bool {
        true
    }

    /// The checksum of a page: CRC-32C over `pieces`, as if they were one.
    ///
    /// Called once for each page that is read or programmed, after its read or before its program.
    /// (Castagnoli; polynomial 0x1EDC6F41, reflected, initial value and final inversion
    /// 0xFFFFFFFF.) A driver for a microcontroller whose CRC unit can compute it may replace the
    /// default; it must return the same, or pages that other drivers wrote cannot be read.
    ///
    /// Default: computed, on hosts (feature `std` of this library) by the processor's instruction,
    /// else with a table of 1 KiB.
    fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
        crate::checksum::of(pieces)
    }

    /// Reads the main data of `page` and the first `spare.len()` bytes of its spare area.
    ///
    /// `main` is [`Geometry::page_bytes`] long (rule 4). Cost: one page read.
    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, Self::Error>;

    /// Programs the main data of `page` and the first `spare.len()` bytes of its spare area.
    ///
    /// `main` is [`Geometry::page_bytes`] long (rule 4). Cost: one page program.
    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error>;

    /// Erases `block`. Cost: one block erase.
    fn erase(&mut self, block: BlockNumber) -> Result<(), Self::Error>;

    /// Replaces `page` as a whole (rule 14). A driver of a chip without this capability answers an
    /// error.
    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error>;

    /// Programs `bytes` into the main data of `page` from byte `offset` on (rule 15). `bytes` are
    /// one or more, end within the main data, and are what is to stand there: no bit of them is 1
    /// where the page has 0. Cost: one page program and the transfer of these bytes alone. A driver
    /// of a chip without this capability answers an error.
    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8])
    -> Result<(), Self::Error>;

    /// Whether `block` is bad, from the factory or since. Asked once for each block by a mount, and
    /// once more where there is no checkpoint to be used, so a driver does well to keep its table
    /// in RAM. Default: no block is.
    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, Self::Error> {
        let _ = block;
        Ok(false)
    }

    /// Marks `block` as bad for ever. Only called for blocks that hold no valid page. Default:
    /// nothing, for chips without such marks; then a worn block is found out anew after each mount.
    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        let _ = block;
        Ok(())
    }
}

/// How well a page could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// As programmed.
    Clean,
    /// As programmed, but the ECC had much to correct: the page should be written elsewhere soon.
    Corrected,
}

/// An error of a device that can say what it means for the index.
pub trait FlashError: core::fmt::Debug {
    /// What the index has to do about it.
    fn kind(&self) -> ErrorKind;
}

/// What an error of a device means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The chip reports that it could not program the page: the block is given up.
    ProgramFailed,
    /// The chip reports that it could not erase the block: it is given up.
    EraseFailed,
    /// More bits of the page are wrong than the ECC can correct.
    Uncorrectable,
    /// Anything else: the operation is given up, the next one mounts again.
    Other,
}

impl FlashError for core::convert::Infallible {
    fn kind(&self) -> ErrorKind {
        match *self {}
    }
}

impl<F: Flash + ?Sized> Flash for &mut F {
    type Error = F::Error;

    fn geometry(&self) -> Geometry {
        (**self).geometry()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn reports_corrections(&self) -> bool {
        (**self).reports_corrections()
    }

    fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
        (**self).checksum(pieces)
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, Self::Error> {
        (**self).read(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error> {
        (**self).program(page, main, spare)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        (**self).erase(block)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error> {
        (**self).rewrite(page, main, spare)
    }

    fn overwrite(
        &mut self,
        page: PageNumber,
        offset: u32,
        bytes: &[u8],
    ) -> Result<(), Self::Error> {
        (**self).overwrite(page, offset, bytes)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, Self::Error> {
        (**self).is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        (**self).mark_bad(block)
    }
}
