//! Translation pages on a chip: in the logical pages of an FTL of their own.
//!
//! So garbage collection moves them apart from the host's pages, as in DFTL, and its work can be
//! counted. Nothing here knows which FTL it is.

use core::cell::{Cell, RefCell};

use super::{PAGE, TranslationPages, UNITS};
use crate::logical::{LogicalPages, Statistics};
use crate::mapping::Space;

/// Translation pages in the logical pages of an FTL, from the first one on.
///
/// ```
/// use nandina::flash::{Geometry, Profile};
/// use nandina_ftl::ftl::{Ftl, space_of};
/// use nandina_ftl::mapping::demand::{Demand, OnPages};
/// use nandina_ftl::mapping::{Extent, Mapping, Page, Space};
/// use nandina_sim::{Chip, TINY};
///
/// // The chip of the translation pages, and the directory that leads to them.
/// let space = Space { logical: 10_000, physical: 12_000 };
/// let chip = Profile { geometry: Geometry { blocks: 32, ..TINY.geometry }, ..TINY };
/// let needed = OnPages::<Ftl<'_, Chip, Page<'_>>>::pages_needed(space, 512).unwrap();
/// let directory = space_of(&chip.geometry, &chip.capabilities, needed);
/// let (mut ram, mut places) = ([0; 2048], [0; 1024]);
/// let places = Page::new(directory, &mut places)?;
/// let ftl = Ftl::format(Chip::new(chip), places, needed, &mut ram)?;
///
/// let mut memory = vec![0; 9000]; // 68 entries, in place of 10,000
/// let mut map = Demand::new(space, &mut memory, OnPages::new(ftl).unwrap())?;
/// for unit in 0..10_000 {
///     map.update(Extent::new(unit * 7 % 10_000, 1), unit, &mut |_| {})?;
/// }
/// map.look_up(Extent::new(7, 1), &mut |piece| assert_eq!(piece.physical, Some(1)))?;
/// assert!(!map.pages().has_failed());
/// // Each translation page takes eight pages of this chip.
/// assert_eq!(map.pages().statistics().host_writes, 8 * map.work().flash_writes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OnPages<L> {
    pages: RefCell<L>,
    /// Logical pages of a translation page.
    each: u32,
    /// Translation pages that were written.
    written: u32,
    has_failed: Cell<bool>,
}

impl<L: LogicalPages> OnPages<L> {
    /// No translation page is written yet; what the logical pages hold is not read.
    ///
    /// `None` unless a translation page is a whole number of logical ones: where these have a power
    /// of two bytes, at most [`PAGE`]. The FTL has at least [`pages_needed`](Self::pages_needed)
    /// pages.
    pub fn new(pages: L) -> Option<Self> {
        let each = pages_each(pages.page_bytes())?;
        let (pages, has_failed) = (RefCell::new(pages), Cell::new(false));
        Some(OnPages { pages, each, written: 0, has_failed })
    }

    /// Logical pages of `page_bytes` bytes for all translation pages of `space`.
    ///
    /// `None` as in [`new`](Self::new).
    pub fn pages_needed(space: Space, page_bytes: usize) -> Option<u32> {
        pages_each(page_bytes)?.checked_mul(space.logical.div_ceil(UNITS))
    }

    /// Whether the FTL has failed to read or write a page.
    ///
    /// The mapping is of no use then: ask after each request.
    pub fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// What the FTL has done.
    pub fn statistics(&self) -> Statistics {
        self.pages.borrow().statistics()
    }

    /// Returns the FTL.
    pub fn into_pages(self) -> L {
        self.pages.into_inner()
    }

    fn first(&self, place: u32) -> u32 {
        place * self.each
    }
}

fn pages_each(page_bytes: usize) -> Option<u32> {
    (page_bytes > 0 && PAGE.is_multiple_of(page_bytes)).then(|| (PAGE / page_bytes) as u32)
}

impl<L: LogicalPages> TranslationPages for OnPages<L> {
    fn read(&self, place: u32, bytes: &mut [u8]) {
        let read = self.pages.borrow_mut().read_pages(self.first(place), bytes);
        if !read.is_ok_and(|held| held == self.each) {
            self.has_failed.set(true);
            bytes.fill(0xFF);
        }
    }

    fn write(&mut self, old: Option<u32>, bytes: &[u8]) -> u32 {
        let place = old.unwrap_or(self.written);
        self.written += u32::from(old.is_none());
        let first = self.first(place);
        if self.pages.get_mut().write_pages(first, bytes).is_err() {
            self.has_failed.set(true);
        }
        place
    }
}
