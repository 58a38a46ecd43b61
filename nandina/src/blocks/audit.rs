//! The accounts of the block table, counted again: a check of debug builds.
//!
//! The table keeps its totals from change to change. Here they are counted from the marks of each
//! block and the bits of each page, and compared. Cost: a look at every block and page in RAM.

use super::{Blocks, Mark};
use crate::flash::PageNumber;

impl Blocks<'_> {
    /// The first account that differs from a new count, if there is one.
    pub(crate) fn wrong_account(&self) -> Option<&'static str> {
        let (mut valid, mut endangered, mut empty, mut bad) = (0, 0, 0, 0);
        for block in self.all() {
            let valid_in = self.valid_in(block);
            let first = block.0 * self.pages_per_block();
            let pages = (first..first + self.pages_per_block()).map(PageNumber);
            let counted = || pages.filter(|&page| self.is_valid(page)).count() as u32;
            if !self.searches() && valid_in != counted() {
                return Some("valid pages of a block");
            }
            valid += valid_in;
            empty += u32::from(self.is_empty(block));
            bad += u32::from(self.is_bad(block));
            endangered += if self.is_bad(block) { valid_in } else { 0 };
            if self.has(block, Mark::Held) && !self.held.are_some() {
                return Some("held blocks");
            }
            if self.counts_erases() && self.erase_count(block) > self.most_erased {
                return Some("erases of the most erased block");
            }
        }
        let counts = [
            ("valid pages", self.counts.valid_pages(), valid),
            ("valid pages on bad blocks", self.counts.endangered_pages(), endangered),
            ("free blocks", self.counts.empty_blocks(), empty),
            ("bad blocks", self.counts.bad_blocks(), bad),
            ("matches of blocks", 0, self.wrong_matches()),
        ];
        counts.into_iter().find(|(_, kept, counted)| kept != counted).map(|(name, ..)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "large-devices")]
    use crate::blocks::ORDERED_MIN;
    use crate::blocks::{GcPolicy, LivenessTracking, WearPolicy};
    use crate::flash::BlockNumber;
    use crate::flash::Geometry;

    const SMALL: Geometry =
        Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 4, blocks: 5 };

    /// The wrong account after `change` of a table with some history.
    fn wrong(geometry: &Geometry, change: fn(&mut Blocks<'_>)) -> Option<&'static str> {
        let mut ram = [0; 160_000];
        let wear = WearPolicy::Counted;
        let (validity, victims) = (LivenessTracking::Marked, GcPolicy::Fewest);
        let mut blocks = Blocks::new(&mut ram, geometry, validity, victims, wear, 4);
        (0..9).for_each(|page| blocks.set_valid(PageNumber(page), true));
        blocks.set_erase_count(BlockNumber(1), 3);
        blocks.set_bad(BlockNumber(0));
        blocks.supersede(PageNumber(8));
        assert_eq!(blocks.wrong_account(), None);
        change(&mut blocks);
        blocks.wrong_account()
    }

    #[test]
    fn each_account_that_is_wrong_is_found() {
        let found = |change| wrong(&SMALL, change);
        assert_eq!(found(|blocks| blocks.set_valid(PageNumber(17), true)), None);
        assert_eq!(found(|blocks| blocks.counts.note_valid(false)), Some("valid pages"));
        let name = "valid pages on bad blocks";
        assert_eq!(found(|blocks| blocks.counts.note_bad(1)), Some(name));
        assert_eq!(found(|blocks| blocks.counts.note_taken(true)), Some("free blocks"));
        assert_eq!(found(|blocks| blocks.counts.note_bad(0)), Some("bad blocks"));
        assert_eq!(found(|blocks| assert!(blocks.held.take_all())), Some("held blocks"));
        let name = "erases of the most erased block";
        assert_eq!(found(|blocks| blocks.most_erased = 2), Some(name));
    }

    #[test]
    #[cfg(feature = "paper-modes")]
    fn a_page_that_was_never_counted_cannot_become_garbage() {
        let mut ram = [0; 160_000];
        let (validity, victims, wear) =
            (LivenessTracking::Searched, GcPolicy::Fewest, WearPolicy::Counted);
        let mut blocks = Blocks::new(&mut ram, &SMALL, validity, victims, wear, 4);
        blocks.set_valid(PageNumber(3), true);
        blocks.set_valid(PageNumber(5), false);
        assert_eq!((blocks.wrong_account(), blocks.valid_pages()), (None, 1));
    }

    #[test]
    #[cfg(feature = "large-devices")]
    fn a_match_that_was_not_played_again_is_found() {
        let large = Geometry { blocks: ORDERED_MIN, ..SMALL };
        assert_eq!(wrong(&large, |blocks| blocks.set_erase_count(BlockNumber(6), 2)), None);
        let change: fn(&mut Blocks<'_>) = |blocks| blocks.set_word(BlockNumber(6), 0, 2);
        assert_eq!(wrong(&large, change), Some("matches of blocks"));
    }
}
