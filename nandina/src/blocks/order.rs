//! The blocks of large devices in order, so that no choice looks at all of them.
//!
//! For each choice there is a tournament of the blocks: a binary tree whose inner nodes hold the
//! winner of the subtree below. When a block changes, its matches are played again, up to the root.
//! The block that was opened last takes no part, since it changes with every page, nor does another
//! one that is open by turns with it; both are compared with the winner.
//!
//! The number of valid pages of a block is stored here, too: otherwise, a match would count the
//! bits of two blocks.
//!
//! RAM: four bytes for each choice and block, with the number of blocks rounded up to a power of
//! two, and two bytes for the count of each block. Small chips have neither ([`ORDERED_MIN`]):
//! there, looking at all blocks costs less.
//!
//! Cost: the logarithm of the blocks to the base 2, for a change and for a choice.

use super::{Blocks, Mark, WORD_BYTES};
use crate::bytes::{u16_at, u32_at};
use crate::flash::BlockNumber;

/// The fewest blocks that are kept in order.
pub const ORDERED_MIN: u32 = 4096;

/// Means "no block": no block has this number.
const NONE: u32 = u32::MAX;

/// What blocks are compared by; the last part is the block's own number.
type Rank = (u32, u32, u32);

/// What a block is chosen for.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    /// To be opened: the least worn of the free ones.
    Open,
    /// To be collected: the one with the fewest valid pages.
    ///
    /// If there are several, it is the least worn one.
    Collect,
    /// To be emptied because its data is cold: the least worn with valid pages.
    Rest,
    /// To be freed when the running operation commits.
    Release,
}

const CHOICES: [Choice; 4] = [Choice::Open, Choice::Collect, Choice::Rest, Choice::Release];

/// Whether a chip of this size has its blocks kept in order.
pub(super) const fn is_ordered(blocks: u32, counts_erases: bool) -> bool {
    cfg!(feature = "large-devices") && counts_erases && blocks >= ORDERED_MIN
}

/// Bytes of the count of valid pages of a block.
const COUNT_BYTES: usize = 2;

/// Bytes that the trees and the counts take.
pub(super) const fn order_bytes(blocks: u32, counts_erases: bool) -> usize {
    if is_ordered(blocks, counts_erases) {
        CHOICES.len() * leaves(blocks) * WORD_BYTES + COUNT_BYTES * blocks as usize
    } else {
        0
    }
}

/// The number of leaves of a tree.
const fn leaves(blocks: u32) -> usize {
    blocks.next_power_of_two() as usize
}

impl Blocks<'_> {
    /// The offset of the count of a block in the table.
    const fn valid_count_at(&self, block: BlockNumber) -> usize {
        self.table.len() - COUNT_BYTES * (self.count() - block.0) as usize
    }

    /// How many pages of the block are valid. Only where blocks are kept in order.
    pub(super) const fn valid_count(&self, block: BlockNumber) -> u32 {
        u16_at(self.table, self.valid_count_at(block)) as u32
    }

    /// Counts `more` valid pages more, where blocks are kept in order.
    pub(super) fn count_valid(&mut self, block: BlockNumber, more: i32) {
        if self.is_ordered() {
            let count = self.valid_count(block).wrapping_add_signed(more);
            let at = self.valid_count_at(block);
            self.table[at..at + COUNT_BYTES].copy_from_slice(&(count as u16).to_le_bytes());
        }
    }

    /// Counts no valid page in any block.
    pub(super) fn count_none_valid(&mut self) {
        if self.is_ordered() {
            let from = self.valid_count_at(BlockNumber(0));
            self.table[from..].fill(0);
        }
    }

    /// The rank of a block for a choice, or `None` if it is no candidate.
    ///
    /// Lower ranks win; of equal ranks the lower block number.
    fn rank(&self, choice: Choice, block: BlockNumber) -> Option<Rank> {
        let is_candidate = match choice {
            Choice::Open => self.is_empty(block),
            Choice::Collect => self.is_victim(block, None),
            Choice::Rest => self.may_rest(block, None),
            Choice::Release => self.has(block, Mark::Held),
        };
        is_candidate.then(|| self.candidate_rank(choice, block.0))
    }

    /// Whether the block takes no part in the tree, because it changes with every page.
    fn is_apart(&self, block: BlockNumber) -> bool {
        block == self.last.0 || block == self.beside.turned()
    }

    /// The rank of a block in the tree: one that takes no part has none.
    fn entry(&self, choice: Choice, block: BlockNumber) -> Option<Rank> {
        if self.is_apart(block) { None } else { self.rank(choice, block) }
    }

    /// The rank of a block that is known to be a candidate.
    fn candidate_rank(&self, choice: Choice, block: u32) -> Rank {
        let number = BlockNumber(block);
        match choice {
            Choice::Open | Choice::Rest => (self.erase_count(number), 0, block),
            Choice::Collect => (self.valid_in(number), self.erase_count(number), block),
            Choice::Release => (0, 0, block),
        }
    }

    /// The winner below `node`. Nodes from the number of leaves on are leaves.
    fn winner(&self, choice: Choice, node: usize) -> u32 {
        let leaves = leaves(self.count());
        if node < leaves {
            return self.order_word(choice as usize * leaves + node);
        }
        let block = (node - leaves) as u32;
        if block < self.count() && self.entry(choice, BlockNumber(block)).is_some() {
            block
        } else {
            NONE
        }
    }

    fn better(&self, choice: Choice, left: u32, right: u32) -> u32 {
        if left == NONE || right == NONE {
            return left.min(right);
        }
        let rank = |block| self.candidate_rank(choice, block);
        if rank(left) < rank(right) { left } else { right }
    }

    /// Plays the matches of `block` again, after something about it has changed.
    pub(super) fn reorder(&mut self, block: BlockNumber) {
        if self.is_ordered() && !self.is_apart(block) {
            self.play_all(block);
        }
    }

    /// Plays the matches of `block` again, after it began or ended to take part.
    #[cfg(feature = "second-block")]
    pub(super) fn reorder_apart(&mut self, block: BlockNumber) {
        if self.is_ordered() && block.0 < self.count() {
            self.play_all(block);
        }
    }

    fn play_all(&mut self, block: BlockNumber) {
        for choice in CHOICES {
            self.play_up(choice, block);
        }
    }

    /// Plays the matches of `block`, which was opened last, and of the one `before` it.
    pub(super) fn reorder_last(&mut self, before: BlockNumber, block: BlockNumber) {
        if self.is_ordered() && before != block {
            self.play_all(before);
            self.play_all(block);
        }
    }

    /// The same, after one of its pages became valid, or garbage.
    ///
    /// Only the choice of a victim depends on how many valid pages it has; the others on whether it
    /// has any, and `had_valid` says whether it had before. `valid` is what the page became.
    pub(super) fn reorder_page(&mut self, block: BlockNumber, had_valid: bool, valid: bool) {
        if self.is_ordered() && !self.is_apart(block) && had_valid == self.has_valid(block) {
            if valid {
                self.play_up(Choice::Collect, block);
            } else if self.order_word(Choice::Collect as usize * leaves(self.count()) + 1)
                != block.0
            {
                // The block that is emptied wins every match before and after.
                self.climb(block);
            }
        } else {
            self.reorder(block);
        }
    }

    /// Plays the matches of `block` for one choice again, as far up as need be.
    ///
    /// The winner so far and its rank go up with it, so that a match ranks one block only.
    fn play_up(&mut self, choice: Choice, block: BlockNumber) {
        let leaves = leaves(self.count());
        let first = choice as usize * leaves;
        // Where the tree begins does not change in between.
        let tree = self.order_at() + WORD_BYTES * first;
        let mut node = leaves + block.0 as usize;
        let mut best = self.entry(choice, block);
        while node > 1 {
            let sibling = node ^ 1;
            let before = u32_at(self.table, tree + WORD_BYTES * (node / 2));
            // A block that is no candidate now, and did not win before, changes nothing.
            if best.is_none() && before != block.0 {
                break;
            }
            let is_leaf = node >= leaves;
            node /= 2;
            let other = match is_leaf {
                true => self.winner(choice, sibling),
                false => u32_at(self.table, tree + WORD_BYTES * sibling),
            };
            if other != NONE {
                let rank = self.candidate_rank(choice, other);
                best = Some(best.map_or(rank, |best| best.min(rank)));
            }
            let winner = best.map_or(NONE, |(_, _, winner)| winner);
            // The winner is unchanged, and the rank of `block` cannot change any match above.
            if winner == before && winner != block.0 {
                break;
            }
            self.set_order_word(first + node, winner);
        }
    }

    /// The same for a block to collect whose rank can only have become better.
    ///
    /// It won no match less than before: one that it lost is played against the winner.
    fn climb(&mut self, block: BlockNumber) {
        let Some(rank) = self.entry(Choice::Collect, block) else { return };
        let leaves = leaves(self.count());
        let first = Choice::Collect as usize * leaves;
        let tree = self.order_at() + WORD_BYTES * first;
        let mut node = leaves + block.0 as usize;
        while node > 1 {
            node /= 2;
            let before = u32_at(self.table, tree + WORD_BYTES * node);
            if before == block.0 {
                continue;
            }
            if before != NONE && self.candidate_rank(Choice::Collect, before) < rank {
                break;
            }
            self.set_order_word(first + node, block.0);
        }
    }

    /// Plays the match at `node`, whose subtree is right.
    fn play(&mut self, choice: Choice, node: usize) {
        let (left, right) = (self.winner(choice, 2 * node), self.winner(choice, 2 * node + 1));
        let best = self.better(choice, left, right);
        self.set_order_word(choice as usize * leaves(self.count()) + node, best);
    }

    /// Plays all matches.
    pub(super) fn reorder_all(&mut self) {
        if self.is_ordered() {
            for choice in CHOICES {
                for node in (1..leaves(self.count())).rev() {
                    self.play(choice, node);
                }
            }
        }
    }

    /// The number of matches that would have another winner if they were played again.
    #[cfg(debug_assertions)]
    pub(super) fn wrong_matches(&self) -> u32 {
        if !self.is_ordered() {
            return 0;
        }
        let is_wrong = |choice, node| {
            let (left, right) = (self.winner(choice, 2 * node), self.winner(choice, 2 * node + 1));
            self.winner(choice, node) != self.better(choice, left, right)
        };
        let matches = CHOICES
            .into_iter()
            .flat_map(|choice| (1..leaves(self.count())).map(move |node| (choice, node)));
        matches.filter(|&(choice, node)| is_wrong(choice, node)).count() as u32
    }

    /// The best block that is not `excluded`, if blocks are kept in order.
    pub(super) fn best(
        &self,
        choice: Choice,
        excluded: impl Fn(BlockNumber) -> bool,
    ) -> Option<Option<BlockNumber>> {
        if !self.is_ordered() {
            return None;
        }
        // At most one branch for each level is pending, beside the one being searched.
        let mut waiting = [0; 33];
        waiting[0] = 1;
        let apart = [self.last.0, self.beside.turned()].into_iter();
        let candidates = apart
            .filter(|&block| block.0 < self.count() && !excluded(block))
            .filter(|&block| self.rank(choice, block).is_some());
        let best = candidates.fold(NONE, |best, block| self.better(choice, best, block.0));
        let (mut count, mut best) = (1, best);
        while count > 0 {
            count -= 1;
            let node = waiting[count];
            let winner = self.winner(choice, node);
            if winner == NONE {
                continue;
            }
            if !excluded(BlockNumber(winner)) {
                best = self.better(choice, best, winner);
            } else if node < leaves(self.count()) {
                waiting[count] = 2 * node;
                waiting[count + 1] = 2 * node + 1;
                count += 2;
            }
        }
        Some((best != NONE).then_some(BlockNumber(best)))
    }
}

// Without the feature there is no tournament to compare with.
#[cfg(all(test, feature = "large-devices"))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::blocks::{GcPolicy, LivenessTracking, WearPolicy};
    use crate::flash::{Geometry, PageNumber};

    const GEOMETRY: Geometry =
        Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 4, blocks: ORDERED_MIN + 5 };

    /// The first block with the lowest rank, by a scan of all blocks.
    fn scanned(blocks: &Blocks<'_>, choice: Choice, excluded: &[u32]) -> Option<BlockNumber> {
        let others = blocks.all().filter(|block| !excluded.contains(&block.0));
        others
            .filter_map(|block| blocks.rank(choice, block))
            .min()
            .map(|(_, _, block)| BlockNumber(block))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn the_best_block_is_the_one_that_a_look_at_all_finds(
            steps in prop::collection::vec((0..12u8, 0..GEOMETRY.blocks, 0..4u32, 0..9u32), 1..400),
            hot in 1..40u32,
        ) {
            let mut ram = [0xA5; 160_000];
            let mut blocks = Blocks::new(
                &mut ram, &GEOMETRY, LivenessTracking::Marked, GcPolicy::Fewest, WearPolicy::Counted, 4,
            );
            for (what, block, page, number) in steps {
                // Most of the work is on a few blocks.
                let block = BlockNumber(if number > 2 { block % hot } else { block });
                let page = PageNumber(block.0 * 4 + page);
                match what {
                    0 => blocks.set_bad(block),
                    1 => blocks.set_stuck(block),
                    2 => blocks.set_erase_count(block, number),
                    3 if blocks.is_valid(page) => blocks.supersede(page),
                    4 => blocks.release(),
                    5 => blocks.set_valid(page, false),
                    6 if number == 0 => blocks.hold_valid(),
                    6 => blocks.hold(block),
                    7 => blocks.note_open(block),
                    8 => blocks.supersede_all((page.0..page.0 + number).map(PageNumber).filter(
                        |page| page.0 < GEOMETRY.pages(),
                    )),
                    _ => blocks.set_valid(page, true),
                }
                let excluded = [block.0, number, blocks.victim(None).map_or(0, |best| best.0)];
                for choice in CHOICES {
                    for excluded in [&[][..], &excluded] {
                        let found = blocks.best(choice, |block| excluded.contains(&block.0));
                        prop_assert_eq!(found, Some(scanned(&blocks, choice, excluded)));
                    }
                }
            }
        }
    }

    #[cfg(feature = "second-block")]
    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn so_is_one_that_is_open_by_turns_with_another(
            steps in prop::collection::vec((0..9u8, 0..12u32, 0..4u32), 1..400),
        ) {
            let mut ram = [0xA5; 160_000];
            let (marked, fewest) = (LivenessTracking::Marked, GcPolicy::Fewest);
            let mut blocks =
                Blocks::new(&mut ram, &GEOMETRY, marked, fewest, WearPolicy::Counted, 4);
            for (what, block, number) in steps {
                let block = BlockNumber(block);
                let page = PageNumber(block.0 * 4 + number);
                match what {
                    0 => blocks.note_open(block),
                    1 | 2 => blocks.set_beside(Some(block)),
                    3 if number == 0 => blocks.set_beside(None),
                    4 => blocks.set_erase_count(block, number),
                    5 if blocks.is_valid(page) => blocks.supersede(page),
                    6 => blocks.set_valid(page, false),
                    7 if number == 0 => blocks.release(),
                    _ => blocks.set_valid(page, true),
                }
                for choice in CHOICES {
                    for excluded in [&[][..], &[block.0]] {
                        let found = blocks.best(choice, |block| excluded.contains(&block.0));
                        prop_assert_eq!(found, Some(scanned(&blocks, choice, excluded)));
                    }
                }
                #[cfg(debug_assertions)]
                prop_assert_eq!(blocks.wrong_matches(), 0);
            }
        }
    }
}
