//! What a simulated chip answers when a rule is broken or power is gone.

use std::fmt;

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
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::EraseBeforeProgram => "erase before program",
            Self::BitsFall => "bits fall",
            Self::Order => "order",
            Self::WholePages => "whole pages",
            Self::Bounds => "bounds",
        }
    }
}

/// Why a chip did not do as it was told. A refused operation changes nothing and is not counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChipError {
    /// A rule of the contract was broken.
    Rule {
        /// Which rule.
        rule: Rule,
        /// Which page or block, what it allows and what was asked.
        evidence: String,
    },
    /// Rule 9: power was cut in this operation or an earlier one.
    PowerLost,
}

impl ChipError {
    pub(crate) const fn rule(rule: Rule, evidence: String) -> Self {
        Self::Rule { rule, evidence }
    }
}

impl fmt::Display for ChipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { rule, evidence } => {
                write!(f, "rule {} ({}): {evidence}", rule.number(), rule.name())
            }
            Self::PowerLost => f.write_str("rule 9 (no life after a cut): power is lost"),
        }
    }
}

impl std::error::Error for ChipError {}
