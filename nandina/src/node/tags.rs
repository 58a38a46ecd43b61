//! Bookkeeping of a node in RAM whose page receives appended records.
//!
//! A tag for each record and a head relate the node to the page that it was read from. Code that
//! changes records calls this module; this module changes no record.
//!
//! ```text
//! | count: u16 | next | pending | valid bits | key payload tag | key payload tag | ... |
//! ```
//!
//! `next`, `pending` and the tags are numbers of [`Shape::tag_bytes`]. Nodes of sorted records have
//! none of them: for those, this module does nothing.

use super::Shape;
use crate::bytes::u16_at;

/// The record is not in the page.
///
/// Below these three values, a tag is the number of the record's slot.
pub const NEW: u16 = u16::MAX;
/// The record is not in the page, but its key is, with another payload.
pub const NEW_SHADOWS: u16 = u16::MAX - 1;
/// The record is in the page, and earlier slots have its key, too.
pub const SHADOWS: u16 = u16::MAX - 2;

/// No removal is pending.
pub const NOTHING: u16 = u16::MAX;
/// The node can only be written as a whole, to a new page.
///
/// Below these two values, `pending` is the slot whose removal is pending.
pub const WHOLE: u16 = u16::MAX - 1;

/// Reads a number of `shape.tag_bytes()`.
///
/// The highest three numbers of one byte map to the highest three of two bytes.
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

/// The first empty slot of the page.
///
/// If no slot may be used any more, this is the number of slots.
pub fn next(node: &[u8], shape: &Shape) -> u16 {
    get(node, 2, shape)
}

pub fn set_next(node: &mut [u8], shape: &Shape, slot: u16) {
    put(node, 2, shape, slot);
}

/// [`NOTHING`], [`WHOLE`], or the slot whose removal is pending.
pub fn pending(node: &[u8], shape: &Shape) -> u16 {
    get(node, 2 + shape.tag_bytes(), shape)
}

pub fn set_pending(node: &mut [u8], shape: &Shape, pending: u16) {
    put(node, 2 + shape.tag_bytes(), shape, pending);
}

/// The position of the valid bit of `slot`: the byte, and the bit in it.
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

/// Begins the bookkeeping of a node that has no page.
pub fn begin(node: &mut [u8], shape: &Shape) {
    if shape.tag_bytes() > 0 {
        node[2..shape.head_bytes()].fill(0xFF);
        set_next(node, shape, 0);
        set_pending(node, shape, WHOLE);
    }
}

/// Notes a change that can only be written as a whole page.
pub fn make_whole(node: &mut [u8], shape: &Shape) {
    if shape.tag_bytes() > 0 {
        set_pending(node, shape, WHOLE);
    }
}

/// Notes that a record was inserted at `index`.
pub fn inserted(node: &mut [u8], shape: &Shape, index: usize) {
    if shape.tag_bytes() > 0 {
        set_tag(node, shape, index, NEW);
    }
}

/// Notes that the record at `index` received another payload.
pub fn replaced(node: &mut [u8], shape: &Shape, index: usize) {
    if shape.tag_bytes() > 0 && tag(node, shape, index) != NEW {
        set_tag(node, shape, index, NEW_SHADOWS);
    }
}

/// Notes that the record at `index` is about to be removed.
///
/// One slot can be removed in place, unless its record hides earlier slots with its key: those
/// would come back.
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
