//! The sizes of a node's records, from which all positions in it follow.
//!
//! No node is read here.

use super::POINTER_BYTES;

/// The sizes of a node's head and of the parts of a record, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    // Two bytes each, because every node in use carries its shape on the stack.
    key_bytes: u16,
    payload_bytes: u16,
    tag_bytes: u16,
    head_bytes: u16,
}

/// Bytes of the count with which a node begins.
pub const COUNT_BYTES: usize = 2;

impl Shape {
    /// The shape of sorted records without tags.
    ///
    /// Keys and payloads have at most 65535 bytes.
    pub const fn sorted(key_bytes: usize, payload_bytes: usize) -> Self {
        debug_assert!(key_bytes <= u16::MAX as usize && payload_bytes <= u16::MAX as usize);
        let (key_bytes, payload_bytes) = (key_bytes as u16, payload_bytes as u16);
        Self { key_bytes, payload_bytes, tag_bytes: 0, head_bytes: COUNT_BYTES as u16 }
    }

    /// The same records with tags, in a node with a head of `head_bytes`.
    pub(super) const fn with_tags(self, tag_bytes: usize, head_bytes: usize) -> Self {
        Self { tag_bytes: tag_bytes as u16, head_bytes: head_bytes as u16, ..self }
    }

    /// The shape of a node without room for a record.
    pub const fn of_nothing(self) -> Self {
        Self { head_bytes: u16::MAX, ..self }
    }

    /// Bytes of the key.
    pub const fn key_bytes(&self) -> usize {
        self.key_bytes as usize
    }

    /// Bytes of the payload: the value, or the pointer in an inner node.
    pub const fn payload_bytes(&self) -> usize {
        self.payload_bytes as usize
    }

    /// Bytes of the tag after the payload.
    ///
    /// 0, or 1 or 2 where records are appended to pages ([`appended`](super::appended)).
    pub const fn tag_bytes(&self) -> usize {
        self.tag_bytes as usize
    }

    /// Bytes before the first record: 2 for the count, and more if there are tags.
    pub const fn head_bytes(&self) -> usize {
        self.head_bytes as usize
    }

    /// The shape of the inner nodes above leaves with keys of `key_bytes`.
    pub const fn inner(key_bytes: usize) -> Self {
        Self::sorted(key_bytes, POINTER_BYTES)
    }

    /// Bytes of one record, its tag included.
    pub const fn record_bytes(&self) -> usize {
        self.key_bytes() + self.payload_bytes() + self.tag_bytes()
    }

    /// The number of records that fit in a node of `bytes`.
    pub const fn capacity(&self, bytes: usize) -> usize {
        if bytes < self.head_bytes() || self.head_bytes == u16::MAX {
            return 0;
        }
        let records = (bytes - self.head_bytes()) / self.record_bytes();
        if self.tag_bytes > 0 {
            // Each slot of a page has a valid bit in the head.
            let slots = 8 * self.head_bytes().saturating_sub(COUNT_BYTES + 2 * self.tag_bytes());
            return if records > slots { slots } else { records };
        }
        if records > u16::MAX as usize { u16::MAX as usize } else { records }
    }

    /// Whether `count` records fit in a node of `bytes`.
    ///
    /// Unlike [`capacity`](Self::capacity) this needs no division, which is slow on small
    /// microcontrollers.
    pub(super) const fn fits(&self, count: usize, bytes: usize) -> bool {
        if self.tag_bytes > 0 || self.head_bytes == u16::MAX {
            return count <= self.capacity(bytes);
        }
        self.at(count) <= bytes
    }

    /// The offset of the record at `index`.
    pub(crate) const fn at(&self, index: usize) -> usize {
        self.head_bytes() + index * self.record_bytes()
    }
}
