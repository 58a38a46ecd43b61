//! Pages that the ECC found weak, to be written elsewhere. The list is short: what finds no place
//! is found again.

use super::Log;
use crate::flash::{Flash, PageNumber};

/// Pages that wait to be written elsewhere.
pub const WEAK_MAX: usize = 4;

/// No page has this number.
const NONE: u32 = u32::MAX;

/// The pages that wait.
pub(super) struct Weak([u32; WEAK_MAX]);

impl Weak {
    pub const NONE: Self = Self([NONE; WEAK_MAX]);
}

impl<F: Flash> Log<'_, F> {
    /// Remembers that `page` should be written elsewhere, if there is room to.
    pub fn note_weak(&mut self, page: PageNumber) {
        let weak = &mut self.weak.0;
        if self.blocks.is_valid(page)
            && !weak.contains(&page.0)
            && let Some(free) = weak.iter_mut().find(|weak| **weak == NONE)
        {
            *free = page.0;
        }
    }

    /// The page belongs to no node, as was just found out: nobody needs it.
    pub fn note_unreachable(&mut self, page: PageNumber) {
        self.blocks.note_unreachable(page);
        self.forget_weak(page);
    }

    /// The page is not written elsewhere, now or later.
    pub fn forget_weak(&mut self, page: PageNumber) {
        for weak in &mut self.weak.0 {
            if *weak == page.0 {
                *weak = NONE;
            }
        }
    }

    /// Whether some page should be written elsewhere.
    pub fn has_weak(&self) -> bool {
        self.weak.0.iter().any(|&weak| weak != NONE)
    }

    /// The next valid page that should be written elsewhere.
    pub fn take_weak(&mut self) -> Option<PageNumber> {
        let weak = self.weak.0.iter_mut().map(|weak| core::mem::replace(weak, NONE));
        weak.filter(|&weak| weak != NONE).map(PageNumber).find(|&page| self.blocks.is_valid(page))
    }
}
