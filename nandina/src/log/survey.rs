//! Where a mount begins: what the first pages of all blocks record.
//!
//! They also show what is known of wear. Nothing is written.

use super::Log;
use crate::error::{Fault, OpenError, SYSTEM_NUMBER};
use crate::flash::{BlockNumber, Flash};
use crate::node::{Medium, PageFault};

/// Sequence numbers without a verified checksum are trusted only below this.
///
/// It is half of all sequence numbers.
const UNCHECKED_END: u64 = 1 << 46;

/// What the first pages of all blocks record.
#[derive(Default)]
pub struct Survey {
    /// The newest block of those that count.
    pub newest: Option<Newest>,
    /// The settings of its index.
    medium: Option<Medium>,
    any_written: bool,
    /// No page of checkpoints has a higher number; 0 if no block holds such pages.
    pub checkpoints: u64,
    other_version: Option<u8>,
    /// The number of another system, which appends records, if some pages are of it.
    ///
    /// It comes with the highest sequence number of these pages.
    other_system: Option<(u8, u64)>,
}

/// The newest block, and what its first readable page records.
#[derive(Clone, Copy)]
pub struct Newest {
    /// The block.
    pub block: BlockNumber,
    /// The formatting of the page.
    pub identity: u32,
    /// The number of the page.
    pub sequence: u64,
    /// The page is the first one that was programmed after a mount.
    pub begins_session: bool,
    /// The page carries the settings of this index.
    pub is_ours: bool,
}

/// The position of a block in the order in which blocks were opened.
///
/// It consists of the sequence number of the block's first page, and the block's own number.
pub type Age = (u64, u32);

/// The age that is after that of every block.
pub const END: Age = (u64::MAX, 0);

impl Newest {
    /// The position of the block in the order in which blocks were opened.
    pub const fn age(&self) -> Age {
        (self.sequence, self.block.0)
    }
}

impl Survey {
    /// The newest block and its settings, or why there is no index of this system.
    ///
    /// `system` is the number of the system.
    pub fn expect<E>(&self, system: u8) -> Result<(&Newest, &Medium), OpenError<E>> {
        if let (Some(newest), Some(medium)) = (&self.newest, &self.medium) {
            return Ok((newest, medium));
        }
        Err(match (self.other_version, self.other_system) {
            (Some(found), _) => OpenError::Version { found },
            (None, Some((found, _))) => OpenError::Mismatch {
                setting: SYSTEM_NUMBER,
                found: found.into(),
                expected: system.into(),
            },
            (None, None) if self.any_written => OpenError::NotNandina,
            (None, None) => OpenError::Blank,
        })
    }

    /// Whether no written page is visible.
    pub const fn is_blank(&self) -> bool {
        !self.any_written && self.other_version.is_none()
    }

    /// Whether the anchors of checkpoints may be those of the newest index.
    ///
    /// An index without checkpoints may have nodes in their blocks, although pages of older
    /// checkpoints are left.
    pub const fn has_anchors(&self) -> bool {
        match &self.medium {
            Some(medium) => medium.checkpoints && !medium.replaced,
            None => self.checkpoints > 0,
        }
    }

    /// The highest sequence number of the pages that could not be verified.
    ///
    /// Their system appends records.
    pub fn unread_sequence(&self) -> u64 {
        self.other_system.map_or(0, |(_, sequence)| sequence)
    }
}

impl<F: Flash> Log<'_, F> {
    /// Adds the first readable page of `block` to `survey`.
    ///
    /// Up to `lost` pages before it may read as erased. The block is the newest only if it comes
    /// before `before`, and, with `of`, if it is of that formatting. Returns the sequence number of
    /// the page, unless it is one of a checkpoint.
    ///
    /// Cost: one read, and one for each page before it that is lost or damaged.
    #[inline(never)]
    pub fn survey_block(
        &mut self,
        survey: &mut Survey,
        block: BlockNumber,
        lost: u32,
        (before, of): (Age, Option<u32>),
    ) -> Result<Option<u64>, Fault<F::Error>> {
        // A damaged first page must not hide those after it.
        for place in 0..self.block_pages() {
            match self.read_page(self.page_at(block, place), 0)? {
                Ok(()) => {
                    survey.any_written = true;
                    return Ok(self.note_first(survey, block, (before, of)));
                }
                // A first page that was lost and reads as erased must not hide those after it
                // either.
                Err(PageFault::Erased) if place < lost => {}
                Err(PageFault::Erased) => break,
                Err(PageFault::Damaged | PageFault::Unreadable) => survey.any_written = true,
                // No checksum covers that version, so it may be damage as well.
                Err(PageFault::Version(found)) => survey.other_version = Some(found),
                Err(PageFault::Appended) => {
                    survey.any_written = true;
                    let (layout, bytes) = (self.layout(), self.frames.bytes(0));
                    let (system, sequence) = (layout.system(bytes), layout.sequence(bytes));
                    // The number is not verified: damage must not use up the remaining numbers.
                    let sequence = if sequence < UNCHECKED_END { sequence } else { 0 };
                    let highest = survey.unread_sequence().max(sequence);
                    survey.other_system = Some((system, highest));
                }
            }
        }
        Ok(None)
    }

    /// Notes what the first readable page of `block` records.
    ///
    /// The page is in the first page buffer. Returns its number, unless it is of a checkpoint.
    #[inline(never)]
    fn note_first(
        &mut self,
        survey: &mut Survey,
        block: BlockNumber,
        (before, of): (Age, Option<u32>),
    ) -> Option<u64> {
        let (layout, bytes) = (self.layout(), self.frames.bytes(0));
        let (lowest, sequence) = (layout.lowest(bytes), layout.sequence(bytes));
        let erase_count = layout.erase_count(bytes);
        let age = (sequence, block.0);
        let identity = layout.identity(bytes);
        let is_newest = lowest > 0
            && age < before
            && of.is_none_or(|of| of == identity)
            && survey.newest.is_none_or(|newest| age > newest.age());
        if is_newest {
            let medium = layout.medium(bytes);
            let begins_session = layout.header(bytes).begins_session();
            let is_ours = medium == self.medium;
            survey.newest = Some(Newest { block, identity, sequence, begins_session, is_ours });
            survey.medium = Some(medium);
        }
        self.blocks.set_erase_count(block, erase_count);
        self.blocks.set_opened_at(block, sequence);
        if is_newest {
            self.blocks.set_last(block, erase_count);
        }
        if lowest > 0 {
            return Some(sequence);
        }
        // The last page there may be torn: no page may get its number.
        survey.checkpoints = survey.checkpoints.max(sequence + u64::from(self.block_pages()));
        None
    }

    /// The highest number of the pages in `block` that can be read, or 0.
    pub fn highest_in(&mut self, block: BlockNumber) -> Result<u64, Fault<F::Error>> {
        let mut highest = 0;
        for place in 0..self.written(block, self.block_pages(), 1)? {
            if let Ok(header) = self.read_raw(self.page_at(block, place), 0)? {
                highest = highest.max(header.sequence);
            }
        }
        Ok(highest)
    }

    /// Holds the blocks with pages of the index `identity`, unless that is all blocks.
    ///
    /// The first block is not held if a new index `begins` in it.
    pub fn hold_blocks_of(&mut self, identity: u32, begins: bool) -> Result<(), Fault<F::Error>> {
        let mut others = false;
        for block in self.blocks.all() {
            let first = self.page_at(block, 0);
            let is_other = match self.read_raw(first, 0)? {
                Ok(header) => header.identity != identity,
                Err(fault) => fault == PageFault::Erased,
            };
            others |= is_other && !self.blocks.is_bad(block);
            let is_held = !(is_other || begins && block == BlockNumber(0));
            self.blocks.set_valid(first, is_held);
        }
        if others {
            self.blocks.hold_valid();
        } else {
            self.blocks.forget_valid();
        }
        Ok(())
    }

    /// Checks the settings that a survey found in the newest block.
    ///
    /// Returns `false` if they differ and its first page is not steady: then it is the torn root of
    /// a format that was cut. Cost: [`LOOKS`](super::LOOKS) reads at most, if they differ.
    #[inline(never)]
    pub fn check_newest(
        &mut self,
        newest: &Newest,
        medium: &Medium,
    ) -> Result<bool, OpenError<F::Error>> {
        let checked = self.check_medium(medium);
        if checked.is_err() && !self.is_steady(self.page_at(newest.block, 0))? {
            return Ok(false);
        }
        checked.map(|()| true)
    }

    /// The error for a medium with other settings than those of the log.
    pub fn check_medium<E>(&self, found: &Medium) -> Result<(), OpenError<E>> {
        check_medium(found, &self.medium)
    }
}

/// The error for a medium with other settings than those that are expected.
pub fn check_medium<E>(found: &Medium, expected: &Medium) -> Result<(), OpenError<E>> {
    let settings = [
        (SYSTEM_NUMBER, u32::from(found.system), u32::from(expected.system)),
        ("key size", found.key_bytes.into(), expected.key_bytes.into()),
        ("value size", found.value_bytes.into(), expected.value_bytes.into()),
        ("block count", found.blocks, expected.blocks),
        ("checkpoints", found.checkpoints.into(), expected.checkpoints.into()),
        ("atomic replacement", found.atomic.into(), expected.atomic.into()),
        ("pages per block", found.pages_per_block.into(), expected.pages_per_block.into()),
    ];
    match settings.into_iter().find(|(_, found, expected)| found != expected) {
        Some((setting, found, expected)) => Err(OpenError::Mismatch { setting, found, expected }),
        None => Ok(()),
    }
}
