//! The pages of MB-tree as bytes: nodes, and the header of a leaf in its first page.
//!
//! What is on a page does not depend on where it is; nothing here reads or writes a device.

use std::collections::BTreeMap;

use nandina::Options;

use super::HEADERS;
use crate::rivals::pages::{Body, HEAD_BYTES, count_at, number_at};
use crate::rivals::tree::{Bytes, Most, Node};

/// The most pages of a leaf.
const PAGES: usize = 4;

/// Bytes before the header and the entries: a number and a count of each.
const BODY_HEAD_BYTES: usize = 12;

/// The number of the header in a page that has none.
const NO_HEADER: u32 = u32::MAX;

/// Bytes of the number of a child.
const CHILD_BYTES: usize = 4;

/// The sizes of what is on a page.
#[derive(Clone, Copy)]
pub struct Sizes {
    key_bytes: usize,
    value_bytes: usize,
}

impl Sizes {
    pub const fn new(options: &Options) -> Self {
        Self { key_bytes: options.key_bytes, value_bytes: options.value_bytes }
    }

    /// Changes that a page of the write buffer has room for.
    pub const fn changes(self, area_bytes: usize) -> usize {
        area_bytes / (1 + self.key_bytes + self.value_bytes)
    }

    /// The most entries of nodes on pages with an area of so many bytes.
    pub const fn most(self, area_bytes: usize) -> Most {
        let child = self.key_bytes + CHILD_BYTES;
        let entries = area_bytes.saturating_sub(HEAD_BYTES + BODY_HEAD_BYTES);
        let records = entries.saturating_sub(PAGES * child);
        let leaf = records / (self.key_bytes + self.value_bytes);
        Most { leaf, parent: PAGES, inner: entries / child }
    }

    const fn entry_bytes(self, level: u8) -> usize {
        self.key_bytes + if level == 1 { self.value_bytes } else { CHILD_BYTES }
    }

    /// So many entries of a level, if they are there.
    fn entries(self, bytes: &[u8], count: usize, level: u8) -> Option<BTreeMap<Bytes, Bytes>> {
        let each = self.entry_bytes(level);
        let entries = bytes.get(..count * each)?.chunks_exact(each);
        let entries = entries.map(|entry| entry.split_at(self.key_bytes));
        Some(entries.map(|(key, has)| (Bytes::from_slice(key), Bytes::from_slice(has))).collect())
    }

    /// Bytes of the header in a page.
    fn header_bytes(self, body: &[u8]) -> usize {
        count_at(body, 10) * self.entry_bytes(HEADERS)
    }
}

/// The page of a node, and with it the header whose first page it is.
pub fn body(node: &Node, header: Option<&Node>, sizes: Sizes) -> Body {
    let mut bytes = node.number.to_le_bytes().to_vec();
    bytes.extend((node.entries.len() as u16).to_le_bytes());
    bytes.extend(header.map_or(NO_HEADER, |header| header.number).to_le_bytes());
    bytes.extend(header.map_or(0, |header| header.entries.len() as u16).to_le_bytes());
    for (key, has) in header.iter().flat_map(|header| &header.entries).chain(&node.entries) {
        bytes.extend(key);
        bytes.extend(has);
    }
    let headers = header.map_or(0, |header| header.entries.len());
    debug_assert_eq!(
        bytes.len(),
        BODY_HEAD_BYTES
            + headers * sizes.entry_bytes(HEADERS)
            + node.entries.len() * sizes.entry_bytes(node.level)
    );
    Body { level: node.level, tag: 0, bytes }
}

/// The node in a page, if it can be one of this level.
pub fn node_in(body: &[u8], sizes: Sizes, level: u8) -> Option<Node> {
    let bytes = body.get(BODY_HEAD_BYTES + sizes.header_bytes(body)..)?;
    let entries = sizes.entries(bytes, count_at(body, 4), level)?;
    Some(Node { entries, ..Node::new(number_at(body, 0), level) })
}

/// The header in a page, if it has one.
pub fn header_in(body: &[u8], sizes: Sizes) -> Option<Node> {
    let number = Some(number_at(body, 6)).filter(|&number| number != NO_HEADER)?;
    let entries = sizes.entries(&body[BODY_HEAD_BYTES..], count_at(body, 10), HEADERS)?;
    Some(Node { entries, ..Node::new(number, HEADERS) })
}

/// All nodes in a page of this level.
pub fn nodes_in(body: &[u8], sizes: Sizes, level: u8) -> Vec<Node> {
    header_in(body, sizes).into_iter().chain(node_in(body, sizes, level)).collect()
}
