//! The end of a session as bytes: what its page says of the tree.
//!
//! These bytes come after the gaps that every session page lists. Nothing is read or written here.

use crate::bytes::u32_at;
use crate::node::{Medium, PageHeader};

/// The number of bytes that describe the tree.
///
/// They are the last ones of the node area of a session page.
pub(super) const END_BYTES: usize = 16;

/// The tree at the end of a session that left a checkpoint.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// The formatting of the medium.
    pub identity: u32,
    pub records: u32,
    pub inner_nodes: u32,
    pub height: u8,
}

impl End {
    /// The end that a session page with this header describes, if it is one.
    pub fn read(medium: &Medium, header: &PageHeader, area: &[u8]) -> Option<Self> {
        let end = area.len().checked_sub(END_BYTES).map(|at| &area[at..])?;
        let is_end = header.ends_session() && medium.replaced;
        is_end.then(|| Self {
            identity: header.identity,
            records: u32_at(end, 0),
            inner_nodes: u32_at(end, 4),
            height: end[8],
        })
    }

    pub fn write(&self, area: &mut [u8]) {
        let at = area.len() - END_BYTES;
        let end = &mut area[at..];
        end.fill(0);
        end[0..4].copy_from_slice(&self.records.to_le_bytes());
        end[4..8].copy_from_slice(&self.inner_nodes.to_le_bytes());
        end[8] = self.height;
    }
}
