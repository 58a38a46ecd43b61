//! The pages of LA-tree as bytes: nodes, and changes that wait for them.
//!
//! What is on a page does not depend on where it is; nothing here reads or writes a device.

use nandina::Options;
use nandina::node::PageHeader;

use crate::rivals::pages::{Body, HEAD_BYTES, count_at, long_at, number_at};
use crate::rivals::tree::{Bytes, Change, Node};

/// The owner of the root's buffer, whatever the number of the root.
pub const ROOT: u32 = u32::MAX;

/// The tag of a page of changes; a page of a node has 0.
const CHANGES: u8 = 1;

/// Bytes before the entries or the changes: the node, a sequence, and their count.
const BODY_HEAD_BYTES: usize = 14;

/// Bytes before the entries of a node, from the beginning of its page.
pub const NODE_HEAD_BYTES: usize = HEAD_BYTES + BODY_HEAD_BYTES;

/// The sizes of what is on a page.
#[derive(Clone, Copy)]
pub struct Sizes {
    key_bytes: usize,
    value_bytes: usize,
    /// Changes of a page.
    pub changes: usize,
}

impl Sizes {
    pub fn new(area_bytes: usize, options: &Options) -> Self {
        let Options { key_bytes, value_bytes, .. } = *options;
        let changes = area_bytes.saturating_sub(NODE_HEAD_BYTES) / (1 + key_bytes + value_bytes);
        Self { key_bytes, value_bytes, changes }
    }

    const fn change_bytes(&self) -> usize {
        1 + self.key_bytes + self.value_bytes
    }

    const fn entry_bytes(&self, level: u8) -> usize {
        self.key_bytes + if level == 1 { self.value_bytes } else { 4 }
    }
}

/// A page of a buffer.
#[derive(Clone, Copy)]
pub struct Kept {
    pub page: u32,
    /// The sequence with which it was written first. Its newest version counts.
    pub first: u64,
    pub changes: u64,
    /// How many of them may bring a record.
    pub upserts: u64,
}

impl Kept {
    /// Of a page that is not written yet.
    pub fn new(first: u64, changes: &[Change]) -> Self {
        let upserts = changes.iter().filter(|change| change.1.is_some()).count() as u64;
        Self { page: 0, first, changes: changes.len() as u64, upserts }
    }
}

/// What a commit writes and ends.
#[derive(Default)]
pub struct Group {
    /// Nodes that are new or other.
    pub nodes: Vec<Node>,
    pub gone: Vec<u32>,
    /// Changes that are added to the buffers of these owners.
    pub appended: Vec<(u32, Vec<Change>)>,
    /// The owners of buffers whose older pages count no longer.
    pub cleared: Vec<u32>,
}

impl Group {
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.gone.is_empty() && self.appended.is_empty()
    }

    /// The pages to write: first those of the nodes, in order.
    ///
    /// Also returns the owner and the place of each page of changes. `first` is the sequence of the
    /// first page, and `since` says from which one on the buffer of a node counts.
    pub fn bodies(
        &self,
        first: u64,
        since: impl Fn(u32) -> u64,
        sizes: Sizes,
    ) -> (Vec<Body>, Vec<(u32, usize, Kept)>) {
        let nodes = self.nodes.iter();
        let mut bodies: Vec<Body> =
            nodes.map(|node| node_body(node, since(node.number), sizes)).collect();
        let mut kept = Vec::new();
        for (owner, changes) in &self.appended {
            for chunk in changes.chunks(sizes.changes) {
                let first = first + bodies.len() as u64;
                kept.push((*owner, bodies.len(), Kept::new(first, chunk)));
                bodies.push(buffer_body(*owner, first, chunk, sizes));
            }
        }
        if bodies.is_empty() {
            // A root that goes leaves no page, only another root.
            bodies.push(node_body(&Node::new(ROOT - 1, 1), 0, sizes));
        }
        (bodies, kept)
    }
}

/// Changes in flash, the oldest page first.
#[derive(Default)]
pub struct Buffer {
    pub pages: Vec<Kept>,
    /// Pages that lookups have read of it.
    pub paid: u64,
}

impl Buffer {
    pub fn numbers(&self) -> Vec<u32> {
        self.pages.iter().map(|kept| kept.page).collect()
    }

    pub fn changes(&self) -> u64 {
        self.pages.iter().map(|kept| kept.changes).sum()
    }

    pub fn upserts(&self) -> u64 {
        self.pages.iter().map(|kept| kept.upserts).sum()
    }
}

/// What a mount needs to know of a page.
pub enum Seen {
    Node { number: u32, level: u8, since: u64 },
    Buffer { owner: u32, kept: Kept },
}

/// What a page is.
pub fn seen(header: &PageHeader, body: &[u8], sizes: Sizes) -> Seen {
    let (number, sequence) = (number_at(body, 0), long_at(body, 4));
    if header.tag == CHANGES {
        let changes = Changes::of(body, sizes);
        let upserts = changes.parts().filter(|change| change.1.is_some()).count() as u64;
        let changes = changes.parts().count() as u64;
        Seen::Buffer { owner: number, kept: Kept { page: 0, first: sequence, changes, upserts } }
    } else {
        Seen::Node { number, level: header.lowest, since: sequence }
    }
}

fn head(number: u32, sequence: u64, count: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend(sequence.to_le_bytes());
    bytes.extend((count as u16).to_le_bytes());
    bytes
}

/// The page of a node, whose buffer counts from a sequence on.
fn node_body(node: &Node, since: u64, sizes: Sizes) -> Body {
    let mut bytes = head(node.number, since, node.entries.len());
    for (key, has) in &node.entries {
        bytes.extend(key);
        bytes.extend(has);
    }
    debug_assert_eq!(
        bytes.len(),
        BODY_HEAD_BYTES + node.entries.len() * sizes.entry_bytes(node.level)
    );
    Body { level: node.level, tag: 0, bytes }
}

/// The node in a page, if it can be one of this level.
pub fn node_in(body: &[u8], sizes: Sizes, level: u8) -> Option<Node> {
    let entries = Entries::of(body, sizes, level)?;
    let entries =
        entries.all().map(|(key, has)| (Bytes::from_slice(key), Bytes::from_slice(has))).collect();
    Some(Node { entries, ..Node::new(number_at(body, 0), level) })
}

/// The entries of a node in its page: a lookup takes one of them.
pub struct Entries<'p> {
    bytes: &'p [u8],
    entry_bytes: usize,
    key_bytes: usize,
}

impl<'p> Entries<'p> {
    /// Those of a node of this level, if it can be one.
    pub fn of(body: &'p [u8], sizes: Sizes, level: u8) -> Option<Self> {
        let entry_bytes = sizes.entry_bytes(level);
        let bytes = count_at(body, 12) * entry_bytes;
        let bytes = body.get(BODY_HEAD_BYTES..BODY_HEAD_BYTES + bytes)?;
        Some(Self { bytes, entry_bytes, key_bytes: sizes.key_bytes })
    }

    fn all(&self) -> impl ExactSizeIterator<Item = (&'p [u8], &'p [u8])> {
        self.bytes.chunks_exact(self.entry_bytes).map(|entry| entry.split_at(self.key_bytes))
    }

    pub fn count(&self) -> u64 {
        self.all().len() as u64
    }

    /// The child of an inner node that a search for a key goes to.
    pub fn child_of(&self, key: &[u8]) -> Option<u32> {
        let behind = self.all().skip(1).take_while(|(low, _)| *low <= key).count();
        self.all().nth(behind).map(|(_, child)| number_at(child, 0))
    }

    /// What a leaf has for a key.
    pub fn value_of(&self, key: &[u8]) -> Option<&'p [u8]> {
        self.all().find(|(found, _)| *found == key).map(|(_, value)| value)
    }
}

/// A page of changes that wait for a node.
pub fn buffer_body(owner: u32, first: u64, changes: &[Change], sizes: Sizes) -> Body {
    let mut bytes = head(owner, first, changes.len());
    for (key, value) in changes {
        let end = bytes.len() + sizes.change_bytes();
        bytes.push(u8::from(value.is_some()));
        bytes.extend(key);
        bytes.extend(value.as_deref().unwrap_or(&[]));
        bytes.resize(end, 0);
    }
    Body { level: 1, tag: CHANGES, bytes }
}

/// The changes in a page.
pub struct Changes<'p> {
    bytes: &'p [u8],
    sizes: Sizes,
}

impl<'p> Changes<'p> {
    pub fn of(body: &'p [u8], sizes: Sizes) -> Self {
        let bytes = count_at(body, 12) * sizes.change_bytes();
        let bytes = body.get(BODY_HEAD_BYTES..BODY_HEAD_BYTES + bytes).unwrap_or(&[]);
        Self { bytes, sizes }
    }

    /// The key of each, and its value if it brings a record, in the order in which they came.
    fn parts(&self) -> impl DoubleEndedIterator<Item = (&'p [u8], Option<&'p [u8]>)> {
        self.bytes.chunks_exact(self.sizes.change_bytes()).map(|change| {
            let (key, value) = change[1..].split_at(self.sizes.key_bytes);
            (key, (change[0] == 1).then_some(value))
        })
    }

    /// All of them, in the order in which they came.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = Change> {
        self.parts().map(|(key, value)| (Bytes::from_slice(key), value.map(Bytes::from_slice)))
    }

    /// The newest one of a key.
    pub fn last_of(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let found = self.parts().rfind(|change| change.0 == key);
        found.map(|(_, value)| value.map(Bytes::from_slice))
    }
}
