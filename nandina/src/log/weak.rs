//! Weak pages: pages that the ECC had to correct much, to be written elsewhere.
//!
//! The list is short. A weak page that finds no room in it is found again by a later read.

use super::Log;
use crate::flash::{Flash, PageNumber};

/// The most weak pages that are remembered.
pub const WEAK_MAX: usize = 4;

/// Means "no page": no page has this number.
const NONE: u32 = u32::MAX;

/// The weak pages.
pub(super) struct Weak([u32; WEAK_MAX]);

impl Weak {
    pub const NONE: Self = Self([NONE; WEAK_MAX]);
}

impl<F: Flash> Log<'_, F> {
    /// Remembers that `page` should be written elsewhere, if the list has room.
    pub fn note_weak(&mut self, page: PageNumber) {
        let weak = &mut self.weak.0;
        if self.blocks.is_valid(page)
            && !weak.contains(&page.0)
            && let Some(free) = weak.iter_mut().find(|weak| **weak == NONE)
        {
            *free = page.0;
        }
    }

    /// Handles a page that turned out to belong to no node: it is garbage.
    pub fn note_unreachable(&mut self, page: PageNumber) {
        self.blocks.note_unreachable(page);
        self.forget_weak(page);
    }

    /// Removes the page from the list.
    pub fn forget_weak(&mut self, page: PageNumber) {
        for weak in &mut self.weak.0 {
            if *weak == page.0 {
                *weak = NONE;
            }
        }
    }

    /// Whether the list holds a page.
    pub fn has_weak(&self) -> bool {
        self.weak.0.iter().any(|&weak| weak != NONE)
    }

    /// Removes the next valid page from the list and returns it.
    pub fn take_weak(&mut self) -> Option<PageNumber> {
        let weak = self.weak.0.iter_mut().map(|weak| core::mem::replace(weak, NONE));
        weak.filter(|&weak| weak != NONE).map(PageNumber).find(|&page| self.blocks.is_valid(page))
    }
}
