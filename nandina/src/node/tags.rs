//! What a node in RAM knows of the page that it came from, where records are appended to pages: a
//! tag for each record, and a head. Whoever changes records tells it here, and nothing here changes
//! a record.
//!
//! ```text
//! | count: u16 | next | pending | valid bits | key payload tag | key payload tag | ... |
//! ```
//!
//! `next`, `pending` and the tags are numbers of [`Shape::tag_bytes`]. Nodes of sorted records have
//! neither: there nothing in this file does anything.

use super::Shape;
use crate::bytes::u16_at;

/// The record is not on the medium. Below these three, a tag is the number of the record's slot.
pub const NEW: u16 = u16::MAX;
/// The record is not on the medium, but its key is, with another payload.
pub const NEW_SHADOWS: u16 = u16::MAX - 1;
/// The record is on the medium, and its key also stands in slots before that.
pub const SHADOWS: u16 = u16::MAX - 2;

/// Nothing was removed from the medium's records.
pub const NOTHING: u16 = u16::MAX;
/// The node can be put only as a whole page. Below these two, what is pending is the removal of
/// that slot.
pub const WHOLE: u16 = u16::MAX - 1;

/// A number of `shape.tag_bytes()`. The highest three stand for those of two bytes.
fn get(bytes: &[u8], at: usize, shape: &Shape) -> u16 {
    match (shape.tag_bytes(), bytes[at]) {
        (1, byte @ 0xFD..) => 0xFF00 | u16::from(byte),
        (1, byte) => byte.into(),
        _ => u16_at(bytes, at),
    }
}

fn put(bytes: &mut [u8], at: usize, shape: &Shape, number: u16) {
    let number = number.to_le_bytes();
    bytes[at..at + shape.tag_bytes()].copy_from_slice(&number[..shape.tag_bytes()]);
}

/// First empty slot of the page; as many as there are slots, if none may be used any more.
pub fn next(node: &[u8], shape: &Shape) -> u16 {
    get(node, 2, shape)
}

pub fn set_next(node: &mut [u8], shape: &Shape, slot: u16) {
    put(node, 2, shape, slot);
}

/// [`NOTHING`], [`WHOLE`], or the slot that is to be removed.
pub fn pending(node: &[u8], shape: &Shape) -> u16 {
    get(node, 2 + shape.tag_bytes(), shape)
}

pub fn set_pending(node: &mut [u8], shape: &Shape, pending: u16) {
    put(node, 2 + shape.tag_bytes(), shape, pending);
}

/// Where the valid bit of `slot` stands: the byte, and the bit in it.
pub const fn valid_bit(slot: usize, shape: &Shape) -> (usize, u8) {
    (2 + 2 * shape.tag_bytes() + slot / 8, 1 << (slot % 8))
}

/// The tag of the record at `index`.
pub fn tag(node: &[u8], shape: &Shape, index: usize) -> u16 {
    get(node, shape.at(index + 1) - shape.tag_bytes(), shape)
}

pub fn set_tag(node: &mut [u8], shape: &Shape, index: usize, tag: u16) {
    put(node, shape.at(index + 1) - shape.tag_bytes(), shape, tag);
}

/// The node has no page.
pub fn begin(node: &mut [u8], shape: &Shape) {
    if shape.tag_bytes() > 0 {
        node[2..shape.head_bytes()].fill(0xFF);
        set_next(node, shape, 0);
        set_pending(node, shape, WHOLE);
    }
}

/// Something changed that a page cannot be told but as a whole.
pub fn make_whole(node: &mut [u8], shape: &Shape) {
    if shape.tag_bytes() > 0 {
        set_pending(node, shape, WHOLE);
    }
}

/// The record at `index` was put there.
pub fn inserted(node: &mut [u8], shape: &Shape, index: usize) {
    if shape.tag_bytes() > 0 {
        set_tag(node, shape, index, NEW);
    }
}

/// The record at `index` got another payload.
pub fn replaced(node: &mut [u8], shape: &Shape, index: usize) {
    if shape.tag_bytes() > 0 && tag(node, shape, index) != NEW {
        set_tag(node, shape, index, NEW_SHADOWS);
    }
}

/// The record at `index` is about to be taken out. One slot can be removed in place; not one that
/// shadows others, for they would come back.
pub fn removed(node: &mut [u8], shape: &Shape, index: usize) {
    if shape.tag_bytes() > 0 {
        match tag(node, shape, index) {
            NEW => {}
            slot if slot < SHADOWS && pending(node, shape) == NOTHING => {
                set_pending(node, shape, slot);
            }
            _ => set_pending(node, shape, WHOLE),
        }
    }
}
