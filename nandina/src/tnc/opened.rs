//! Blocks in the order in which they were opened, as a mount looks for them.
//!
//! A look at the first page of every block finds several of them at once, so a mount takes one such
//! look for each few blocks of the journal, and not one for each block. Nothing is written here.

use super::TncIndex;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash};
use crate::log::{Age, Survey};

/// Blocks that one look at all blocks finds.
pub const AT_ONCE: usize = 8;

/// Pages before the first readable one of a block that may read as erased.
const LOST: u32 = 1;

/// The ages of a few blocks, in the order in which they are asked for.
#[derive(Default)]
pub struct Opened {
    ages: [Age; AT_ONCE],
    /// How many of them there are.
    count: usize,
    /// The one to be returned next.
    next: usize,
    /// No block comes after the last of them.
    is_last: bool,
}

impl Opened {
    /// The next age, if it is known.
    fn take(&mut self) -> Option<Age> {
        let age = self.ages[..self.count].get(self.next).copied();
        self.next += usize::from(age.is_some());
        age
    }

    /// Begins another look.
    const fn clear(&mut self) {
        (self.count, self.next, self.is_last) = (0, 0, true);
    }

    /// Adds an age in its place, if it is among the first.
    ///
    /// `comes` tells which of two ages comes before the other.
    fn add(&mut self, age: Age, comes: impl Fn(Age, Age) -> bool) {
        let at = self.ages[..self.count].iter().take_while(|&&other| comes(other, age)).count();
        self.is_last &= self.count < AT_ONCE;
        if at == AT_ONCE {
            return;
        }
        self.count = (self.count + 1).min(AT_ONCE);
        self.ages[at..self.count].rotate_right(1);
        self.ages[at] = age;
    }
}

impl<F: Flash> TncIndex<'_, F> {
    /// The age of the block that was opened next after the one of age `after`.
    ///
    /// Only blocks of the formatting `identity` count, up to the number `highest`. `opened` is new,
    /// or has returned `after`. Two blocks may begin with the same number: a mount did not see the
    /// torn first page of one, and gave its number to another page. Cost: for each [`AT_ONCE`]
    /// blocks a read of each block, or a few.
    pub(super) fn next_block(
        &mut self,
        opened: &mut Opened,
        after: Age,
        (identity, highest): (u32, u64),
    ) -> Result<Option<Age>, Fault<F::Error>> {
        self.next(
            opened,
            |one, other| one < other,
            |index, block| {
                let Some(header) = index.space.log.first_header(block)? else { return Ok(None) };
                let age = (header.sequence, block.0);
                // Blocks of checkpoints hold no journal.
                let comes = header.lowest > 0
                    && header.identity == identity
                    && index.space.log.is_ours(0)
                    && age > after
                    && header.sequence <= highest;
                Ok(comes.then_some(age))
            },
        )
    }

    /// The age of the block that was opened before the one of age `before`.
    ///
    /// `opened` is new, or has returned `before`. Cost as of [`next_block`](Self::next_block).
    pub(super) fn block_before(
        &mut self,
        opened: &mut Opened,
        before: Age,
    ) -> Result<Option<Age>, Fault<F::Error>> {
        self.next(opened, |one, other| one > other, |index, block| index.age_before(block, before))
    }

    /// The next age that `opened` knows, or that a look at all blocks finds.
    ///
    /// `age` returns that of a block, if it counts. `comes` tells which of two comes first.
    fn next(
        &mut self,
        opened: &mut Opened,
        comes: impl Fn(Age, Age) -> bool,
        age: impl Fn(&mut Self, BlockNumber) -> Result<Option<Age>, Fault<F::Error>>,
    ) -> Result<Option<Age>, Fault<F::Error>> {
        if let Some(known) = opened.take() {
            return Ok(Some(known));
        }
        if opened.is_last {
            return Ok(None);
        }
        opened.clear();
        for block in self.space.log.blocks.all() {
            if let Some(found) = age(self, block)? {
                opened.add(found, &comes);
            }
        }
        Ok(opened.take())
    }

    /// The age of `block`, if it was opened before `before`.
    ///
    /// It is not inlined, so that the survey is on the stack no longer than this.
    #[inline(never)]
    fn age_before(
        &mut self,
        block: BlockNumber,
        before: Age,
    ) -> Result<Option<Age>, Fault<F::Error>> {
        let mut survey = Survey::default();
        self.space.log.survey_block(&mut survey, block, LOST, (before, None))?;
        Ok(survey.newest.map(|newest| newest.age()))
    }
}
