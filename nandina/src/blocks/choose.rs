//! Which block is opened, collected or emptied next.

use super::order::Choice;
use super::wear::WEAR_GAP;
use super::{Blocks, Mark};
use crate::flash::BlockNumber;

impl Blocks<'_> {
    /// All blocks in ring order, beginning after the block opened last.
    ///
    /// Where erases are counted, they begin with block 0.
    pub fn in_turn(&self) -> impl Iterator<Item = BlockNumber> + use<> {
        let (count, last) = (self.count(), self.last.0.0.min(self.count() - 1));
        let first = if self.counts_erases() || last + 1 == count { 0 } else { last + 1 };
        (first..first + count).map(move |at| BlockNumber(if at < count { at } else { at - count }))
    }

    /// The free block to open next, excluding `others`.
    ///
    /// The block `filled` last is not free: its pages may belong to an operation that has not
    /// committed.
    #[inline(never)]
    pub fn next_free(
        &self,
        filled: Option<BlockNumber>,
        others: &[BlockNumber],
    ) -> Option<BlockNumber> {
        let is_excluded = |block| Some(block) == filled || others.contains(&block);
        if let Some(best) = self.best(Choice::Open, is_excluded) {
            return best;
        }
        let mut best = None;
        for block in self.in_turn() {
            // Comparing counts is faster than looking for a valid page.
            let count = if self.counts_erases() { self.erase_count(block) } else { 0 };
            if best.is_some_and(|(_, least)| count >= least)
                || !self.is_empty(block)
                || is_excluded(block)
            {
                continue;
            }
            if !self.counts_erases() {
                return Some(block);
            }
            best = Some((block, count));
        }
        best.map(|(block, _)| block)
    }

    /// The block with the fewest valid pages that may be collected.
    ///
    /// If there are several, it is the least worn one.
    pub fn victim(&self, active: Option<BlockNumber>) -> Option<BlockNumber> {
        if let Some(best) = self.best(Choice::Collect, |block| Some(block) == active) {
            return best;
        }
        let mut best = None;
        for block in self.in_turn() {
            if self.is_victim(block, active) {
                let rank = (self.valid_in(block), self.erase_count(block));
                if best.is_none_or(|(_, least)| rank < least) {
                    best = Some((block, rank));
                }
            }
        }
        best.map(|(block, _)| block)
    }

    /// Whether the block may be emptied if its data is cold.
    pub(super) fn may_rest(&self, block: BlockNumber, active: Option<BlockNumber>) -> bool {
        Some(block) != active
            && !self.beside.is(block)
            && !self.is_bad(block)
            && !self.is_stuck(block)
            && self.has_valid(block)
    }

    /// The block whose cold data makes the others wear out, if there is one.
    ///
    /// `sequence` is the number of the next program. Where erases are not counted, this is a
    /// candidate: the caller has to read its erase count.
    pub fn rested(&mut self, active: Option<BlockNumber>, sequence: u32) -> Option<BlockNumber> {
        if self.counts_erases() {
            // Few blocks lag behind, and comparing counts is faster than looking for a valid page.
            let lags = |&block: &BlockNumber| self.most_erased - self.erase_count(block) > WEAR_GAP;
            if let Some(best) = self.best(Choice::Rest, |block| Some(block) == active) {
                return best.filter(lags);
            }
            let lagging = self.all().filter(lags);
            let resting = lagging.filter(|&block| self.may_rest(block, active));
            return resting.min_by_key(|&block| self.erase_count(block));
        }
        // The count of programs determines the position of the hand, so that no mount resets it.
        let blocks = self.count();
        let hand = sequence / self.safe_pages() % blocks;
        let (before, hand) = (BlockNumber((hand + blocks - 1) % blocks), BlockNumber(hand));
        self.set_mark(before, Mark::Young, false);
        Some(hand).filter(|&hand| !self.has(hand, Mark::Young) && self.may_rest(hand, active))
    }
}
