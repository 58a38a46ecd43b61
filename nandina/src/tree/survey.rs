//! Where a mount begins: what the first pages of all blocks record.
//!
//! They also show what is known of wear. Nothing is written.

use crate::error::{Fault, OpenError, SYSTEM_NUMBER};
use crate::flash::{BlockNumber, Flash};
use crate::node::{Medium, PageFault};
use crate::space::{Checkpointing, Kind, Space};

/// Sequence numbers without a verified checksum are trusted only below this.
///
/// It is half of all sequence numbers.
const UNCHECKED_END: u64 = 1 << 46;

/// What the first pages of all blocks record.
#[derive(Default)]
pub struct Survey {
    pub newest: Option<Newest>,
    any_written: bool,
    /// Some block holds pages of checkpoints.
    pub checkpoints: bool,
    other_version: Option<u8>,
    /// The number of another system, which appends records, if some pages are of it.
    /// With it the highest sequence number of these pages.
    other_system: Option<(u8, u64)>,
}

/// The newest block, and what its first readable page records.
#[derive(Clone, Copy)]
pub struct Newest {
    pub block: BlockNumber,
    pub identity: u32,
    pub sequence: u64,
    /// The page is the first one that was programmed after a mount.
    pub begins_session: bool,
    medium: Medium,
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
    /// The medium of the newest index, or why there is none of this system.
    ///
    /// `system` is the number of the system.
    pub fn medium<E>(&self, system: u8) -> Result<Medium, OpenError<E>> {
        if let Some(newest) = &self.newest {
            return Ok(newest.medium);
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

    /// The highest sequence number of the pages that could not be verified.
    ///
    /// Their system appends records.
    pub fn unread_sequence(&self) -> u64 {
        self.other_system.map_or(0, |(_, sequence)| sequence)
    }
}

/// Reads the first readable page of each block.
///
/// Finds the erase counts, and the newest block of those that come before `before`.
///
/// With `of` only blocks of that formatting count.
#[inline(never)]
pub fn survey<F: Flash, K: Kind>(
    space: &mut Space<'_, F, K>,
    before: Age,
    of: Option<u32>,
) -> Result<Survey, Fault<F::Error>> {
    let mut survey = Survey::default();
    space.log.blocks.clear();
    K::Checkpoints::forget(space);
    space.log.find_bad_blocks()?;
    for block in space.log.blocks.all() {
        // A damaged first page must not hide those behind it.
        for place in 0..space.log.block_pages() {
            match space.log.read_page(space.log.page_at(block, place), 0)? {
                Ok(()) => {
                    survey.any_written = true;
                    note_first(space, &mut survey, block, (before, of));
                    break;
                }
                // A first page that was lost and reads as erased must not hide those behind it
                // either.
                Err(PageFault::Erased) if place == 0 => {}
                Err(PageFault::Erased) => break,
                Err(PageFault::Damaged | PageFault::Unreadable) => survey.any_written = true,
                Err(PageFault::Version(found)) => {
                    survey.other_version = Some(found);
                    break;
                }
                Err(PageFault::Appended { system, sequence }) => {
                    survey.any_written = true;
                    // The number is not verified: damage must not use up the remaining numbers.
                    let sequence = if sequence < UNCHECKED_END { sequence } else { 0 };
                    let highest = survey.unread_sequence().max(sequence);
                    survey.other_system = Some((system, highest));
                }
            }
        }
    }
    // The count of a block may have been lost in a cut. A block that was never erased shares the
    // guess, which only delays its first use.
    space.log.blocks.guess_erase_counts();
    Ok(survey)
}

/// Notes what the first readable page of `block` records.
///
/// The page is in the first page buffer.
#[inline(never)]
fn note_first<F: Flash, K: Kind>(
    space: &mut Space<'_, F, K>,
    survey: &mut Survey,
    block: BlockNumber,
    (before, of): (Age, Option<u32>),
) {
    let (layout, bytes) = (space.log.layout(), space.log.frames.bytes(0));
    let (lowest, sequence) = (layout.lowest(bytes), layout.sequence(bytes));
    let erase_count = layout.erase_count(bytes);
    survey.checkpoints |= lowest == 0;
    let age = (sequence, block.0);
    let identity = layout.identity(bytes);
    let is_newest = lowest > 0
        && age < before
        && of.is_none_or(|of| of == identity)
        && survey.newest.is_none_or(|newest| age > newest.age());
    if is_newest {
        let medium = layout.medium(bytes);
        let begins_session = layout.header(bytes).begins_session();
        survey.newest = Some(Newest { block, identity, sequence, begins_session, medium });
    }
    space.log.blocks.set_erase_count(block, erase_count);
    space.log.blocks.set_opened_at(block, sequence);
    if is_newest {
        space.log.blocks.set_last(block, erase_count);
    }
}
