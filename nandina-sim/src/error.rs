//! The errors of a simulated chip: a broken rule, a failed operation, lost power.

use std::fmt;

use nandina::flash::{BlockNumber, ErrorKind, FlashError, PageNumber};

/// A rule of the media contract, numbered as in [`nandina::flash::Flash`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Rule 1.
    EraseBeforeProgram,
    /// Rule 2.
    BitsFall,
    /// Rule 3.
    Order,
    /// Rule 4.
    WholePages,
    /// Rule 5.
    Bounds,
    /// Rule 10.
    BadBlocks,
    /// Rule 14.
    Rewrite,
    /// Rule 15.
    Overwrite,
}

impl Rule {
    /// Its number in the contract.
    pub const fn number(self) -> u8 {
        match self {
            Self::EraseBeforeProgram => 1,
            Self::BitsFall => 2,
            Self::Order => 3,
            Self::WholePages => 4,
            Self::Bounds => 5,
            Self::BadBlocks => 10,
            Self::Rewrite => 14,
            Self::Overwrite => 15,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::EraseBeforeProgram => "erase before program",
            Self::BitsFall => "bits fall",
            Self::Order => "order",
            Self::WholePages => "whole pages",
            Self::Bounds => "bounds",
            Self::BadBlocks => "bad blocks",
            Self::Rewrite => "rewrite",
            Self::Overwrite => "overwrite",
        }
    }
}

/// Why a chip did not complete an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChipError {
    /// A rule of the contract was broken. The operation changed nothing and is not counted.
    Rule {
        /// Which rule.
        rule: Rule,
        /// Which page or block, what it allows and what was requested.
        evidence: String,
    },
    /// Rule 9: power was cut in this operation or an earlier one.
    PowerLost,
    /// Rule 11: the chip could not program the page.
    ProgramFailed(PageNumber),
    /// Rule 11: the chip could not erase the block.
    EraseFailed(BlockNumber),
    /// Rule 11: the device gave the operation up for a reason of its own.
    GaveUp,
    /// More operations were requested than allowed.
    ///
    /// [`Chip::limit_operations`](crate::Chip::limit_operations) sets the limit.
    TooMany {
        /// Operations that were allowed.
        allowed: u64,
    },
    /// Rule 12: the page has more wrong bits than the ECC corrects.
    Uncorrectable(PageNumber),
    /// A layer above the chip failed and says why. The chip itself never does.
    Layer(String),
}

impl ChipError {
    pub(crate) const fn rule(rule: Rule, evidence: String) -> Self {
        Self::Rule { rule, evidence }
    }
}

impl FlashError for ChipError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Rule { .. }
            | Self::PowerLost
            | Self::GaveUp
            | Self::TooMany { .. }
            | Self::Layer(_) => ErrorKind::Other,
            Self::ProgramFailed(_) => ErrorKind::ProgramFailed,
            Self::EraseFailed(_) => ErrorKind::EraseFailed,
            Self::Uncorrectable(_) => ErrorKind::Uncorrectable,
        }
    }
}

impl fmt::Display for ChipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { rule, evidence } => {
                write!(f, "rule {} ({}): {evidence}", rule.number(), rule.name())
            }
            Self::PowerLost => f.write_str("rule 9 (no life after a cut): power is lost"),
            Self::ProgramFailed(page) => write!(f, "the chip could not program {page}"),
            Self::EraseFailed(block) => write!(f, "the chip could not erase {block}"),
            Self::GaveUp => f.write_str("the device gave the operation up"),
            Self::TooMany { allowed } => {
                write!(f, "more than {allowed} operations were asked of the chip")
            }
            Self::Uncorrectable(page) => {
                write!(f, "{page} has more wrong bits than the ECC corrects")
            }
            Self::Layer(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ChipError {}
