//! An FTL as a device whose pages can be replaced in place.
//!
//! The system `btree` of the library needs such a device. A page is replaced as a whole or not at
//! all, which is more than such a device has to promise (rule 14 of the media contract).

use nandina::flash::{
    BlockNumber, Capabilities, Flash, Geometry, PageNumber, Pairing, Reading, Upkeep,
};

use crate::logical::LogicalPages;

/// The logical pages of an FTL as a [`Flash`] with `rewrite`.
///
/// A page that was never written reads as ones. To erase a block is to trim its pages.
pub struct Disk<P> {
    ftl: P,
    geometry: Geometry,
}

/// What a [`Disk`] can do.
pub const DISK: Capabilities = Capabilities {
    programs_per_page: Some(1),
    in_order: false,
    pairing: Pairing::None,
    rewrite: true,
    atomic_rewrite: true,
    overwrite: false,
    part_reads: false,
    bad_blocks_per_mille: 0,
};

/// The number of pages in a group is 0, or greater than that of the FTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadGroups {
    /// Logical pages that there are.
    pub logical_pages: u32,
}

impl<P: LogicalPages> Disk<P> {
    /// A device with blocks of `group` logical pages.
    ///
    /// Logical pages behind the last whole group are not used.
    pub fn new(ftl: P, group: u32) -> Result<Self, BadGroups> {
        let logical_pages = ftl.logical_pages();
        if group == 0 || group > logical_pages {
            return Err(BadGroups { logical_pages });
        }
        let geometry = Self::geometry_of(logical_pages, ftl.page_bytes(), group);
        Ok(Self { ftl, geometry })
    }

    /// The geometry of a device with so many logical pages, before there is one.
    ///
    /// `group` is at least 1.
    pub const fn geometry_of(logical_pages: u32, page_bytes: usize, group: u32) -> Geometry {
        Geometry {
            page_bytes: page_bytes as u32,
            spare_bytes: 0,
            pages_per_block: group,
            blocks: logical_pages / group,
        }
    }

    /// The FTL.
    pub fn ftl(&mut self) -> &mut P {
        &mut self.ftl
    }

    /// The FTL, for inspection.
    pub const fn inspect(&self) -> &P {
        &self.ftl
    }

    /// Returns the FTL.
    pub fn into_ftl(self) -> P {
        self.ftl
    }
}

impl<P: LogicalPages> Flash for Disk<P> {
    type Error = P::Error;

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        DISK
    }

    fn reports_corrections(&self) -> bool {
        // The FTL writes weak pages elsewhere by itself.
        false
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, Self::Error> {
        spare.fill(0xFF);
        self.ftl.read(page.0, main)?;
        Ok(Reading::Clean)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], _: &[u8]) -> Result<(), Self::Error> {
        self.ftl.write(page.0, main)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        let group = self.geometry.pages_per_block;
        self.ftl.trim(block.0 * group, group)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], _: &[u8]) -> Result<(), Self::Error> {
        self.ftl.write(page.0, main)
    }

    fn discard(&mut self, page: PageNumber) -> Result<(), Self::Error> {
        self.ftl.trim(page.0, 1)
    }

    fn idle(&mut self, budget: u32) -> Result<Upkeep, Self::Error> {
        let done = self.ftl.idle(budget)?;
        Ok(Upkeep { operations: done.operations, more: done.more })
    }

    fn idle_least(&self) -> u32 {
        self.ftl.idle_least()
    }
}
