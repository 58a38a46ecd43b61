//! What every FTL does: the trait [`LogicalPages`], and the counts of its work.
//!
//! No FTL is named here. A host that works through the trait runs on each of them.

use nandina::Idle;
use nandina::flash::{FlashError, Geometry};

/// Work of an FTL since it was formatted or opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Logical pages that the host wrote.
    pub host_writes: u64,
    /// Logical pages that the host trimmed and that held something.
    pub host_trims: u64,
    /// Pages that were programmed successfully, for whatever reason.
    pub programmed: u64,
    /// Of these, pages that were moved.
    ///
    /// Garbage collection, merges, wear levelling, refresh and settling move pages.
    pub moved: u64,
    /// Of these, pages that the FTL wrote about itself, and trimmed pages.
    pub own: u64,
    /// Erases of blocks, the successful ones and those that failed.
    pub erases: u64,
    /// Blocks in which the last mount met a damaged page that no cut explains.
    ///
    /// Its bits have faded. If it was the newest copy of a logical page, an older one counts now.
    pub unexplained_blocks: u32,
}

impl Statistics {
    /// Programs for 1,000 pages that the host wrote; `None` before the first.
    pub fn write_amplification_per_mille(&self) -> Option<u64> {
        (self.programmed * 1000).checked_div(self.host_writes)
    }
}

/// Logical pages that are replaced whole, durably, and one by one.
///
/// A call that returned `Ok` survives any cut. Of one that did not, each page is old or new; of
/// [`write_pages_atomic`](Self::write_pages_atomic) all are.
pub trait LogicalPages {
    /// Why a call failed.
    type Error: FlashError;

    /// How many logical pages there are; they are numbered from 0.
    fn logical_pages(&self) -> u32;

    /// Bytes of a logical page.
    fn page_bytes(&self) -> usize;

    /// Reads a logical page into `bytes`, which has [`page_bytes`](Self::page_bytes).
    ///
    /// Returns `false` for one that was never written, or was trimmed; `bytes` are all ones then.
    fn read(&mut self, logical: u32, bytes: &mut [u8]) -> Result<bool, Self::Error>;

    /// Reads logical pages from `logical` on, as many as `bytes` has room for.
    ///
    /// Returns how many of them hold something; of the others, the bytes are all ones. After an
    /// error `bytes` are undefined. Default: a [`read`](Self::read) of each.
    fn read_pages(&mut self, logical: u32, bytes: &mut [u8]) -> Result<u32, Self::Error> {
        let each = self.page_bytes();
        let mut held = 0;
        for (number, page) in (logical..).zip(bytes.chunks_mut(each)) {
            held += u32::from(self.read(number, page)?);
        }
        Ok(held)
    }

    /// Writes a logical page, durably and whole.
    fn write(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Writes logical pages from `logical` on, as many as `bytes` holds, in order.
    ///
    /// After a cut in it each of them is old or new. Default: a [`write`](Self::write) of each.
    fn write_pages(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        let each = self.page_bytes();
        let mut pages = bytes.chunks_exact(each);
        for (number, page) in (logical..).zip(pages.by_ref()) {
            self.write(number, page)?;
        }
        // Refuses what is left, which is no page.
        if pages.remainder().is_empty() { Ok(()) } else { self.write(logical, pages.remainder()) }
    }

    /// The most pages that [`write_pages_atomic`](Self::write_pages_atomic) takes. Default: 1.
    fn request_pages_max(&self) -> u32 {
        1
    }

    /// Writes logical pages from `logical` on, as many as `bytes` holds, as a whole.
    ///
    /// After a cut in it all of them are old or all are new. Default: a [`write`](Self::write),
    /// which refuses what is not one page.
    fn write_pages_atomic(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        self.write(logical, bytes)
    }

    /// Makes `count` logical pages from `logical` on holes, durably.
    fn trim(&mut self, logical: u32, count: u32) -> Result<(), Self::Error>;

    /// Makes `count` logical pages from `logical` on holes, at least until the next mount.
    ///
    /// A cut, or a call that returns an error, may undo it: then the pages that were not written
    /// since are as they were right before it. Default: a [`trim`](Self::trim).
    fn trim_volatile(&mut self, logical: u32, count: u32) -> Result<(), Self::Error> {
        self.trim(logical, count)
    }

    /// Does work that is due, with at most `budget` chip operations.
    fn idle(&mut self, budget: u32) -> Result<Idle, Self::Error>;

    /// The least budget with which [`idle`](Self::idle) does all that can be due, a step a call.
    fn idle_least(&self) -> u32;

    /// What was done since it was formatted or opened.
    fn statistics(&self) -> Statistics;
}

/// The fewest blocks of a chip like this one that `suffice`; `u32::MAX` if no number does.
///
/// More blocks suffice where fewer do.
pub(crate) fn fewest_blocks(geometry: &Geometry, suffice: impl Fn(u32) -> bool) -> u32 {
    let (mut few, mut enough) = (0, u32::MAX / geometry.pages_per_block.max(1));
    while enough - few > 1 {
        let blocks = few + (enough - few) / 2;
        if suffice(blocks) {
            enough = blocks;
        } else {
            few = blocks;
        }
    }
    if suffice(enough) { enough } else { u32::MAX }
}
