//! Physical numbers of a mapping: the places that an FTL programs, counted in write order.
//!
//! On chips whose pages share cells only the safe pages are programmed. Their page numbers have
//! gaps, so a mapping of page numbers would never hold a run. Places have none.

use nandina::flash::{Capabilities, Geometry, PageNumber, Pairing};

/// Translates between places and pages of a chip.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pairing: Pairing,
    pages_per_block: u32,
    /// Places of a block.
    safe_pages: u32,
}

impl Places {
    pub fn of(geometry: &Geometry, capabilities: &Capabilities) -> Self {
        let pairing = capabilities.pairing;
        let pages_per_block = geometry.pages_per_block;
        Self { pairing, pages_per_block, safe_pages: pairing.safe_pages(pages_per_block) }
    }

    /// The page at a place.
    pub fn page(&self, place: u32) -> PageNumber {
        if self.safe_pages == self.pages_per_block {
            return PageNumber(place);
        }
        let (block, place) = (place / self.safe_pages, place % self.safe_pages);
        PageNumber(block * self.pages_per_block + self.pairing.safe_page(place))
    }

    /// The place of a safe page.
    pub fn place(&self, page: PageNumber) -> u32 {
        if self.safe_pages == self.pages_per_block {
            return page.0;
        }
        let (block, index) = (page.0 / self.pages_per_block, page.0 % self.pages_per_block);
        let place = match self.pairing {
            Pairing::None => index,
            Pairing::DistanceThree => index.div_ceil(2),
            Pairing::WordLines(pages) => index / u32::from(pages),
        };
        block * self.safe_pages + place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_the_safe_pages_of_all_blocks() {
        let pairings =
            [Pairing::None, Pairing::DistanceThree, Pairing::WordLines(2), Pairing::WordLines(3)];
        for pairing in pairings {
            for pages_per_block in [1, 2, 3, 4, 5, 12, 127, 128] {
                let safe_pages = pairing.safe_pages(pages_per_block);
                let places = Places { pairing, pages_per_block, safe_pages };
                for place in 0..3 * safe_pages {
                    let page = places.page(place);
                    let safe = pairing.safe_page(place % safe_pages);
                    assert_eq!(page.0, place / safe_pages * pages_per_block + safe);
                    assert_eq!(places.place(page), place, "{pairing:?}, {pages_per_block} pages");
                }
            }
        }
    }
}
