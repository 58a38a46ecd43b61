//! What the header of a page says: kind, logical page, and why it was programmed.
//!
//! The bytes are those of `nandina::node::PageHeader`: the fields that a tree uses for the level,
//! the height and the number of records hold these three. A page of a buffer block is always a
//! logical page, and has the number of the page before it where others have their kind. Every value
//! that is read is checked.

use nandina::log::Label;
use nandina::node::PageHeader;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A logical page.
    Data(u32),
    /// A logical page that was trimmed.
    Hole(u32),
    /// A logical page that could not be read when it was to be copied.
    Lost(u32),
    /// A logical page that was superseded already when it was copied: it never counts.
    Old(u32),
    /// A page that the FTL keeps about itself: suspects and trims.
    Own,
    /// Nothing: it only takes its place.
    Pad,
    /// A format of the chip has begun: nothing before it counts.
    Retired,
}

/// Why a page was programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// A merge copied it.
    pub is_copy: bool,
    /// It is the last page of a merge.
    pub commits: bool,
    /// It was appended to a log block or a buffer block.
    pub is_log: bool,
    /// It was appended to a buffer block.
    pub is_buffer: bool,
    /// In a buffer block, the page before it: its number among those of the group. Otherwise 0.
    pub before: u8,
}

impl Cause {
    /// The host's page in a data block.
    pub const IN_PLACE: Self =
        Self { is_copy: false, commits: false, is_log: false, is_buffer: false, before: 0 };
    /// The host's page in a log block.
    pub const LOG: Self = Self { is_log: true, ..Self::IN_PLACE };

    /// The host's page in a buffer block, behind the page with this number in the group.
    pub const fn buffer(before: u8) -> Self {
        Self { is_buffer: true, before, ..Self::LOG }
    }

    /// A page of a merge.
    pub const fn copy(commits: bool) -> Self {
        Self { is_copy: true, commits, ..Self::IN_PLACE }
    }
}

/// Logical pages have lower numbers than this.
pub(crate) const LOGICAL_END: u32 = u32::MAX - 16;

const OWN: u32 = u32::MAX - 3;
const PAD: u32 = u32::MAX - 5;
const RETIRED: u32 = u32::MAX - 2;

const DATA: u8 = 1;
const HOLE: u8 = 2;
const LOST: u8 = 3;
const OLD: u8 = 4;

const COPY: u8 = 1;
const COMMIT: u8 = 2;
const LOG: u8 = 4;
const BUFFER: u8 = 8;

impl Kind {
    /// The logical page, if it is one that can count.
    pub const fn logical(self) -> Option<u32> {
        match self {
            Self::Data(logical) | Self::Hole(logical) | Self::Lost(logical) => Some(logical),
            Self::Old(_) | Self::Own | Self::Pad | Self::Retired => None,
        }
    }

    /// The label of a page of this kind that was programmed for this cause.
    pub const fn label(self, cause: Cause) -> Label {
        let (lowest, records) = match self {
            Self::Data(logical) => (DATA, logical),
            Self::Hole(logical) => (HOLE, logical),
            Self::Lost(logical) => (LOST, logical),
            Self::Old(logical) => (OLD, logical),
            Self::Own => (DATA, OWN),
            Self::Pad => (DATA, PAD),
            Self::Retired => (DATA, RETIRED),
        };
        let lowest = if cause.is_buffer { cause.before } else { lowest };
        let height = if cause.is_copy { COPY } else { 0 }
            | if cause.commits { COMMIT } else { 0 }
            | if cause.is_log { LOG } else { 0 }
            | if cause.is_buffer { BUFFER } else { 0 };
        Label { lowest, height, records }
    }

    /// What a header says.
    pub const fn of(header: &PageHeader) -> (Self, Cause) {
        let bits = header.height;
        let (is_copy, commits) = (bits & COPY != 0, bits & COMMIT != 0);
        let (is_log, is_buffer) = (bits & LOG != 0, bits & BUFFER != 0);
        let before = if is_buffer { header.lowest } else { 0 };
        let kind = match (header.records, header.lowest) {
            (OWN, _) => Self::Own,
            (RETIRED, _) => Self::Retired,
            (LOGICAL_END.., _) => Self::Pad,
            (logical, _) if is_buffer => Self::Data(logical),
            (logical, HOLE) => Self::Hole(logical),
            (logical, LOST) => Self::Lost(logical),
            (logical, OLD) => Self::Old(logical),
            (logical, _) => Self::Data(logical),
        };
        (kind, Cause { is_copy, commits, is_log, is_buffer, before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lead_back_to_kinds_and_causes() {
        let kinds =
            [Kind::Data(0), Kind::Hole(9), Kind::Lost(8), Kind::Old(7), Kind::Own, Kind::Pad];
        let causes = [Cause::IN_PLACE, Cause::LOG, Cause::copy(false), Cause::copy(true)];
        for kind in kinds {
            let buffered = [Cause::buffer(0), Cause::buffer(2), Cause::buffer(255)];
            let buffered = buffered.into_iter().filter(|_| kind == Kind::Data(0));
            for cause in causes.into_iter().chain(buffered) {
                let Label { lowest, height, records } = kind.label(cause);
                let (identity, sequence, erase_count, settling) = (1, 2, 3, false);
                let header = PageHeader {
                    identity,
                    sequence,
                    lowest,
                    height,
                    erase_count,
                    records,
                    settling,
                    tag: 0,
                };
                assert_eq!(Kind::of(&header), (kind, cause));
            }
        }
    }
}
