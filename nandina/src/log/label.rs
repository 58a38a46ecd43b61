//! The header of a page: what its owner says of it, and what the log adds.
//!
//! Nothing is read or written here.

use super::Log;
use crate::flash::Flash;
use crate::node::{PageHeader, SESSION_START};

/// The part of a page header that describes the content of the page.
#[derive(Clone, Copy)]
pub struct Label {
    /// The lowest level of its nodes.
    ///
    /// 0 for a page of a checkpoint; any other number for owners without levels.
    pub lowest: u8,
    /// The height of the tree if the page commits, and 0 otherwise.
    pub height: u8,
    /// Records in the index, or another number of the owner's choice.
    pub records: u32,
}

impl Label {
    /// The label for the first page of a session, which commits nothing.
    pub const fn of_session(self) -> Self {
        Self { height: 0, records: SESSION_START, ..self }
    }
}

impl<F: Flash> Log<'_, F> {
    /// Builds the header of a page, which also carries the settings of the index.
    pub const fn header_of(
        &self,
        Label { lowest, height, records }: Label,
        sequence: u64,
        erase_count: u32,
    ) -> PageHeader {
        let Self { identity, settling, .. } = *self;
        let tag = self.tag();
        PageHeader { identity, sequence, lowest, height, erase_count, records, settling, tag }
    }
}
