//! What a flash chip is: its geometry, its capabilities, and the contract that every driver keeps.
//!
//! Nothing here knows of trees, nodes or records. A driver for real hardware implements [`Flash`];
//! `nandina-sim` implements it strictly, so that a broken rule is an error at once.

mod geometry;
pub mod profile;

pub use geometry::{BlockNumber, Capabilities, Geometry, PageNumber};
pub use profile::{Profile, Timing};

/// A raw flash chip, and the media contract.
///
/// The rules are numbered so that errors and tests can cite them.
///
/// 1. **Erase before program.** A page may be programmed only when its block was erased since, and
///    the page then programmed fewer than [`Capabilities::programs_per_page`] times (NOP). A program
///    that was cut counts, even when no bit of it can be seen.
/// 2. **Bits fall.** A program changes bits from 1 to 0 only; an erase sets every bit of a block,
///    main and spare area, to 1. An erased page reads as `0xFF`.
/// 3. **Order.** Where [`Capabilities::in_order`] is set, the pages of a block are programmed in
///    rising order: no page below one that was programmed since the erase. Pages may be skipped.
/// 4. **Whole pages.** A read or a program moves one page: all of the main data
///    ([`Geometry::page_bytes`]) and the first bytes of the spare area, at most
///    [`Geometry::spare_bytes`] of them. Spare bytes beyond those given are not programmed.
/// 5. **Bounds.** Page and block numbers lie below [`Geometry::pages`] and [`Geometry::blocks`].
/// 6. **A cut during a program** leaves any mixture of old and new bits in that page, and changes
///    nothing else.
/// 7. **A cut during an erase** leaves the whole block undefined, and changes nothing else.
/// 8. **Durable on return.** A program or an erase that returned `Ok` survives any later cut.
/// 9. **No life after a cut.** Once power is lost, every operation fails until it is restored.
///
/// Bad blocks, bit flips and wear-out are not part of this contract yet.
pub trait Flash {
    /// What went wrong in the device. It is handed to the caller of the index unchanged.
    type Error: core::fmt::Debug;

    /// Sizes and counts. They never change while the chip is open.
    fn geometry(&self) -> Geometry;

    /// What the chip can do beyond the minimum. It never changes while the chip is open.
    fn capabilities(&self) -> Capabilities;

    /// Reads the main data of `page` and the first `spare.len()` bytes of its spare area.
    ///
    /// `main` is [`Geometry::page_bytes`] long (rule 4). Cost: one page read.
    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<(), Self::Error>;

    /// Programs the main data of `page` and the first `spare.len()` bytes of its spare area.
    ///
    /// `main` is [`Geometry::page_bytes`] long (rule 4). Cost: one page program.
    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error>;

    /// Erases `block`. Cost: one block erase.
    fn erase(&mut self, block: BlockNumber) -> Result<(), Self::Error>;
}

impl<F: Flash + ?Sized> Flash for &mut F {
    type Error = F::Error;

    fn geometry(&self) -> Geometry {
        (**self).geometry()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<(), Self::Error> {
        (**self).read(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Self::Error> {
        (**self).program(page, main, spare)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        (**self).erase(block)
    }
}
