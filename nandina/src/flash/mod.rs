//! What a flash chip is: geometry, capabilities, and the contract of every driver.
//!
//! This module knows nothing of trees, nodes or records. A driver for real hardware implements
//! [`Flash`]; `nandina-sim` implements it strictly, so that a broken rule is an error at once.

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

use core::ops::Range;

/// A raw flash chip, and the media contract.
///
/// The rules are numbered so that errors and tests can cite them.
///
/// 1. **Erase before program.** A page may be programmed only if its block was erased and the page
///    was since programmed fewer than [`Capabilities::programs_per_page`] times (NOP). A program
///    that was cut counts, even if no bit of it can be seen.
/// 2. **Bits fall.** A program changes bits from 1 to 0 only; an erase sets every bit of a block,
///    main and spare area, to 1. An erased page reads as `0xFF`.
/// 3. **Order.** Where [`Capabilities::in_order`] is set, the pages of a block are programmed in
///    rising order: no page below one that was programmed since the erase. Pages may be skipped.
/// 4. **Whole pages.** A read or a program moves one page: all of the main data
///    ([`Geometry::page_bytes`]) and the first bytes of the spare area, at most
///    [`Geometry::spare_bytes`] of them. Spare bytes beyond those given are not programmed.
/// 5. **Bounds.** Page and block numbers lie below [`Geometry::pages`] and [`Geometry::blocks`].
/// 6. **A cut during a program** leaves that page as any mixture of old and new bits, or
///    unreadable. No other page changes except as rule 13 says. The bits of that page are
///    *unstable*: each read may find the old bits, the new ones or another mixture, corrected or
///    [`ErrorKind::Uncorrectable`], whether there is an ECC or not. They stay unstable until an
///    erase of the block, or a rewrite of the page (rule 14), returns `Ok`. A bit that a later
///    program of the page lets fall (rules 2 and 15) is 0 from then on.
/// 7. **A cut during an erase** leaves the whole block undefined, and changes nothing else. Each of
///    its pages is unstable (rule 6) between its old content and ones, until an erase of the block
///    returns `Ok`.
/// 8. **Durable on return.** A program or an erase that returned `Ok` survives any later cut.
/// 9. **Dead after a cut.** Once power is lost, every operation fails until power is restored.
/// 10. **Bad blocks.** A block for which [`is_bad`](Flash::is_bad) holds is neither programmed nor
///     erased. Its content from before it was marked can still be read.
/// 11. **Reported failure.** A failed program ([`ErrorKind::ProgramFailed`]) leaves its page in the
///     state of rule 6, a failed erase ([`ErrorKind::EraseFailed`]) its block in the state of rule
///     7: unstable. The chip stays alive. An operation that fails with [`ErrorKind::Other`] while
///     power stays was completed, was not started, or was torn in the same way.
/// 12. **Flipped bits.** A read returns the bytes that were programmed, and reports whether the ECC
///     corrected enough bits that the page should be refreshed ([`Reading`]). Or it fails with
///     [`ErrorKind::Uncorrectable`], which concerns that page alone. This holds for the spare bytes
///     too: a driver whose ECC does not cover them has a [`Geometry::spare_bytes`] of 0.
/// 13. **Shared cells.** A cut during a program may also damage the pages that
///     [`Pairing::endangers`] lists.
/// 14. **Rewrite.** Where [`Capabilities::rewrite`] is set, a page may be replaced, programmed or
///     not, without an erase of its block. A cut leaves that page undefined and unstable (rule 6),
///     and so does a failure, reported as [`ErrorKind::ProgramFailed`]; no other page changes.
///     Where [`Capabilities::atomic_rewrite`] is set as well, a cut or a failure leaves the page as
///     it was before or as it was to become, and so it reads ever after. `rewrite` is never called
///     without [`Capabilities::rewrite`].
/// 15. **Overwrite.** Where [`Capabilities::overwrite`] is set, some of the main data of a page
///     may be programmed again, if the page was programmed since its block was erased. On a
///     chip without ordered pages (rule 3) it may also be the first program of the page, whose
///     other bytes then stay blank. It counts as one program of the page: NOP (rule 1), falling
///     bits (rule 2), order (rule 3: on a chip with ordered pages, only the page programmed
///     last in its block) and bad blocks (rule 10) hold for it. A cut leaves any mixture of old
///     and new bits in those bytes, and so does a failure, reported as
///     [`ErrorKind::ProgramFailed`]. Those bytes are unstable (rule 6). Nothing else changes
///     except as rule 13 says. Unlike after rule 6 the page stays readable: where the chip has
///     an ECC a read may fail, but it succeeds if it is repeated at once. `overwrite` is never
///     called without [`Capabilities::overwrite`].
/// 16. **Part reads.** A read may be of a part of the main data of a page. It is one read of that
///     page, and all that holds for reads holds for it (rules 5, 6, 7, 9 and 12): it may fail
///     because of bits that are not in the part. Where [`Capabilities::part_reads`] is set, only
///     the part is moved.
pub trait Flash {
    /// The error of the device. The index passes it to its caller unchanged.
    type Error: FlashError;

    /// Sizes and counts. They never change while the chip is open.
    ///
    /// An index calls this each time instead of keeping a copy: return a constant.
    fn geometry(&self) -> Geometry;

    /// What the chip can do beyond the minimum. Constant while the chip is open.
    ///
    /// An index calls this each time, too.
    fn capabilities(&self) -> Capabilities;

    /// Whether a read can return [`Reading::Corrected`]. Default: true.
    ///
    /// This is so if the chip has an ECC that counts the bits that it corrects. If not, idle steps
    /// read no page only to see how well it can be read.
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
    /// and otherwise with a table of 1 KiB.
    fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
        crate::checksum::of(pieces)
    }

    /// Reads the main data and the start of the spare area of `page`.
    ///
    /// `main` is [`Geometry::page_bytes`] long (rule 4); `spare` receives the first `spare.len()`
    /// bytes of the spare area. Cost: one page read.
    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, Self::Error>;

    /// Reads a part of the main data of `page` (rule 16).
    ///
    /// `main` is [`Geometry::page_bytes`] long, and `part` lies in it and has at least one byte.
    /// Afterwards these bytes of `main` are those of the page, at their place; what the others are
    /// is not said. Cost: one page read, and where [`Capabilities::part_reads`] is set the transfer
    /// of these bytes alone.
    ///
    /// Default: reads the whole page.
    fn read_part(
        &mut self,
        page: PageNumber,
        part: Range<usize>,
        main: &mut [u8],
    ) -> Result<Reading, Self::Error> {
        let _ = part;
        self.read(page, main, &mut [])
    }

    /// Programs the main data and the start of the spare area of `page`.
    ///
    /// `main` is [`Geometry::page_bytes`] long (rule 4); `spare` goes to the first `spare.len()`
    /// bytes of the spare area. Cost: one page program.
    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error>;

    /// Programs `page` with the main data of the page `of`.
    ///
    /// `main` is what a read of `of` returned, whose block was not erased since. So a driver need
    /// not look at it, and one that has these bytes in the chip need not transfer them: what it
    /// programs has to be the same. The rest is as in [`program`](Self::program), which is the
    /// default.
    fn program_copy(
        &mut self,
        of: PageNumber,
        page: PageNumber,
        main: &[u8],
        spare: &[u8],
    ) -> Result<(), Self::Error> {
        let _ = of;
        self.program(page, main, spare)
    }

    /// Erases `block`. Cost: one block erase.
    fn erase(&mut self, block: BlockNumber) -> Result<(), Self::Error>;

    /// Replaces `page` as a whole (rule 14).
    ///
    /// Default, for chips without [`Capabilities::rewrite`]: panics; it is never called there.
    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error> {
        let _ = (page, main, spare);
        panic!("the driver's capabilities name rewrite, but it has none")
    }

    /// Says that nobody needs the content of `page` any longer (TRIM).
    ///
    /// Called only where [`Capabilities::atomic_rewrite`] is set, for pages of nodes that are gone.
    /// Afterwards the page may read as anything until it is written again.
    ///
    /// Default: does nothing. Cost: what the device says; an FTL may program a page.
    fn discard(&mut self, page: PageNumber) -> Result<(), Self::Error> {
        let _ = page;
        Ok(())
    }

    /// Does work of the device that is due, with at most `budget` of its operations.
    ///
    /// [`Index::gc_step`](crate::Index::gc_step) calls it with what is left of its budget, where
    /// [`Capabilities::rewrite`] is set. An FTL makes room for later writes here. The content of no
    /// page changes. Default: there is no such work.
    fn idle(&mut self, budget: u32) -> Result<Upkeep, Self::Error> {
        let _ = budget;
        Ok(Upkeep::default())
    }

    /// The least budget with which [`idle`](Self::idle) makes progress. Default: 0.
    fn idle_least(&self) -> u32 {
        0
    }

    /// Programs `bytes` into the main data of `page`, from byte `offset` on (rule 15).
    ///
    /// `bytes` has at least one byte, ends within the main data, and is the new content: none of
    /// its bits is 1 where the page has 0. Cost: one page program and the transfer of these bytes
    /// alone.
    ///
    /// Default, for chips without [`Capabilities::overwrite`]: panics; it is never called there.
    fn overwrite(
        &mut self,
        page: PageNumber,
        offset: u32,
        bytes: &[u8],
    ) -> Result<(), Self::Error> {
        let _ = (page, offset, bytes);
        panic!("the driver's capabilities name overwrite, but it has none")
    }

    /// Whether `block` is bad, from the factory or since. Default: no block is.
    ///
    /// A mount calls this once for each block, and once more if there is no usable checkpoint. So a
    /// driver should keep its table in RAM.
    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, Self::Error> {
        let _ = block;
        Ok(false)
    }

    /// Marks `block` as bad for ever. Only called for blocks that hold no valid page.
    ///
    /// Default: does nothing, for chips without such marks. A worn block then fails once more after
    /// each mount.
    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        let _ = block;
        Ok(())
    }
}

/// What [`Flash::idle`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Upkeep {
    /// Operations used, those of the chip below the device.
    pub operations: u32,
    /// There is more work to do.
    pub more: bool,
}

/// How well a page could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// The bytes as programmed.
    Clean,
    /// The bytes as programmed, but after many corrections by the ECC.
    ///
    /// The page should be written elsewhere soon.
    Corrected,
}

/// An error of a device, classified by what it means for the index.
pub trait FlashError: core::fmt::Debug {
    /// How the index has to react to it.
    fn kind(&self) -> ErrorKind;
}

/// What an error of a device means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The chip reports a failed program: the index gives the block up.
    ProgramFailed,
    /// The chip reports a failed erase: the index gives the block up.
    EraseFailed,
    /// More bits of the page are wrong than the ECC can correct.
    Uncorrectable,
    /// Any other error: the operation is abandoned, and the next one mounts again.
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

    fn read_part(
        &mut self,
        page: PageNumber,
        part: Range<usize>,
        main: &mut [u8],
    ) -> Result<Reading, Self::Error> {
        (**self).read_part(page, part, main)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error> {
        (**self).program(page, main, spare)
    }

    fn program_copy(
        &mut self,
        of: PageNumber,
        page: PageNumber,
        main: &[u8],
        spare: &[u8],
    ) -> Result<(), Self::Error> {
        (**self).program_copy(of, page, main, spare)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        (**self).erase(block)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error> {
        (**self).rewrite(page, main, spare)
    }

    fn discard(&mut self, page: PageNumber) -> Result<(), Self::Error> {
        (**self).discard(page)
    }

    fn idle(&mut self, budget: u32) -> Result<Upkeep, Self::Error> {
        (**self).idle(budget)
    }

    fn idle_least(&self) -> u32 {
        (**self).idle_least()
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
