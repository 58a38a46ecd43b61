//! A node whose records are appended to its page in the order of arrival.
//!
//! Appending is a program that only lets bits fall (VMTree paper, section 4.3). In RAM the same
//! node is sorted, so that the tree need not know of it. This module neither reads nor programs a
//! page.
//!
//! ```text
//! page  | initial: u16 | ones         | valid bits | key payload tag | ... | ones |
//! RAM   | count: u16   | next pending | valid bits | key payload tag | ... |
//! ```
//!
//! In the page each record occupies a slot. The first `initial` records were programmed together
//! with the page, and the page's checksum covers just them ([`sealed`]); the others were appended.
//! The valid bit of a slot falls when its record is removed. Of several slots with the same key the
//! last one counts.
//!
//! The tag of a slot is the number of 0 bits in its key and payload (a Berger code). A program that
//! is cut lets fewer bits fall than it should: then the record has too few zeros, or the tag states
//! too many, and the two agree only if the slot is whole. An empty slot is never whole: its tag
//! states more zeros than a record has bits. So the slots of a page end at the first that is not
//! whole. If anything other than ones follows that end, a program was cut there, and the page is
//! *closed*: nothing is appended to it any more.
//!
//! In RAM the tag of a record is the number of its slot, or marks the record as new, or as hiding
//! older slots with its key. A record of the last kind cannot be removed in place: the older slots
//! would come back. Any change other than appended records or a single removal makes the node
//! *whole*: it is written to a new page.
//!
//! This code never writes a page in which a removed slot follows a valid one with the same key.
//! Such a page reads as if the removal had not been preceded by a replacement.

use super::tags::{self, NEW, NEW_SHADOWS, NOTHING, SHADOWS, WHOLE};
use super::{Node, Shape};
use crate::bytes::{is_erased, u16_at};

/// Bytes of a record whose zero bits fit in a tag of one byte.
const SHORT_BYTES: usize = 31;
/// Bytes of a record whose zero bits fit in a tag of two bytes.
///
/// Some numbers remain unused.
const LONG_BYTES: usize = 8191;
/// The most slots with tags of one byte.
const FEW: usize = 250;
/// The most slots with tags of two bytes. Their valid bits fill whole bytes.
const MANY: usize = 65_528;

impl Shape {
    /// The same records with tags, for nodes in areas of `area_bytes`.
    ///
    /// `None` if a record is longer than 8,191 bytes. In an area that is too short no record fits.
    pub const fn appended(self, area_bytes: usize) -> Option<Self> {
        let data_bytes = self.key_bytes() + self.payload_bytes();
        if data_bytes > LONG_BYTES {
            return None;
        }
        let few = slots(area_bytes, data_bytes, 1);
        let (tag_bytes, slots) = if data_bytes <= SHORT_BYTES && few <= FEW {
            (1, few)
        } else {
            let many = slots(area_bytes, data_bytes, 2);
            (2, if many > MANY { MANY } else { many })
        };
        let head_bytes = fixed_head(tag_bytes) + slots.div_ceil(8);
        Some(self.with_tags(tag_bytes, head_bytes))
    }
}

/// Bytes of the head before the valid bits.
const fn fixed_head(tag_bytes: usize) -> usize {
    2 + 2 * tag_bytes
}

/// The number of slots that fit, each with its valid bit.
const fn slots(area_bytes: usize, data_bytes: usize, tag_bytes: usize) -> usize {
    let room = area_bytes.saturating_sub(fixed_head(tag_bytes));
    let slot_bytes = data_bytes + tag_bytes;
    let mut slots = 8 * room / (8 * slot_bytes + 1);
    while slots.div_ceil(8) + slots * slot_bytes > room {
        slots -= 1;
    }
    slots
}

/// The number of slots of a node in an area of `area_bytes`.
pub const fn capacity(area_bytes: usize, shape: &Shape) -> usize {
    shape.capacity(area_bytes)
}

/// The bytes are not a node: its first program was cut, or they are other data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoNode;

/// The change that has to be programmed to bring a node's page up to date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// No change: the page is up to date.
    Nothing,
    /// Records to append, for which the page has empty slots: [`append_image`].
    Append {
        /// The number of records, at least one; each takes a slot.
        records: usize,
    },
    /// One slot to mark as removed: [`removal`].
    Remove,
    /// Too much for the page: the node goes to a new page, by [`pack`].
    Whole,
}

/// The part of a page's area that never changes once it is programmed.
///
/// This is what a checksum of the page covers. `area` is as in the page.
pub fn sealed<'a>(area: &'a [u8], shape: &Shape) -> Result<[&'a [u8]; 2], NoNode> {
    let slots = shape.head_bytes()..shape.at(initial(area, shape)?);
    Ok([&area[..2], &area[slots]])
}

fn initial(area: &[u8], shape: &Shape) -> Result<usize, NoNode> {
    debug_assert!(shape.tag_bytes() > 0);
    if area.len() < shape.head_bytes() {
        return Err(NoNode);
    }
    let initial = usize::from(u16_at(area, 0));
    if initial <= shape.capacity(area.len()) { Ok(initial) } else { Err(NoNode) }
}

/// The number of zero bits of the key and the payload at `index`.
fn zeros(area: &[u8], shape: &Shape, index: usize) -> usize {
    let (at, end) = (shape.at(index), shape.at(index + 1) - shape.tag_bytes());
    // A small microcontroller counts the bits of four bytes about as fast as those of one.
    let (words, rest) = area[at..end].as_chunks::<4>();
    let words: u32 = words.iter().map(|&word| u32::from_le_bytes(word).count_zeros()).sum();
    let rest: u32 = rest.iter().map(|byte| byte.count_zeros()).sum();
    (words + rest) as usize
}

/// The tag as it is stored in the page.
fn code(zeros: usize) -> [u8; 2] {
    (zeros as u16).to_le_bytes()
}

fn is_whole(area: &[u8], shape: &Shape, slot: usize) -> bool {
    let end = shape.at(slot + 1);
    area[end - shape.tag_bytes()..end] == code(zeros(area, shape, slot))[..shape.tag_bytes()]
}

fn is_valid(area: &[u8], shape: &Shape, slot: usize) -> bool {
    let (byte, bit) = tags::valid_bit(slot, shape);
    area[byte] & bit != 0
}

fn key<'a>(area: &'a [u8], shape: &Shape, slot: usize) -> &'a [u8] {
    &area[shape.at(slot)..][..shape.key_bytes()]
}

/// Finds the slot that counts for `wanted` in `area`, without unpacking the node.
///
/// If the key is not in the page, returns the slot of the highest key below it, or that of the
/// lowest key of all if there is none below; `None` if no record is valid. `area` must be as in a
/// page that was checked: the search does not work on unpacked nodes. The records programmed with
/// the page are sorted and covered by its checksum, so they are searched by bisection; appended
/// slots are examined one by one.
pub fn find(area: &[u8], shape: &Shape, wanted: &[u8]) -> Result<Option<usize>, NoNode> {
    let initial = initial(area, shape)?;
    let capacity = shape.capacity(area.len());
    let end = (initial..capacity).find(|&slot| !is_whole(area, shape, slot)).unwrap_or(capacity);
    let mut best: Option<usize> = None;
    // Of several slots with the same key, the last one comes first.
    for slot in (initial..end).rev() {
        let its = key(area, shape, slot);
        if its <= wanted
            && best.is_none_or(|best| key(area, shape, best) < its)
            && is_valid(area, shape, slot)
        {
            if its == wanted {
                return Ok(Some(slot));
            }
            best = Some(slot);
        }
    }
    let mut above = match Node::sorted(area, *shape, initial).search(wanted) {
        Ok(slot) => slot + 1,
        Err(slot) => slot,
    };
    while above > 0 && !is_valid(area, shape, above - 1) {
        above -= 1;
    }
    if above > 0 && best.is_none_or(|best| key(area, shape, best) < key(area, shape, above - 1)) {
        best = Some(above - 1);
    }
    Ok(best.or_else(|| lowest(area, shape, end)))
}

/// The slot that counts for the lowest key in the slots before `end`.
#[cold]
fn lowest(area: &[u8], shape: &Shape, end: usize) -> Option<usize> {
    let valid = (0..end).rev().filter(|&slot| is_valid(area, shape, slot));
    // Returns the first of equal ones, which is the last slot.
    valid.min_by_key(|&slot| key(area, shape, slot))
}

/// Unpacks a node: turns `area` as in a page into the node in RAM.
///
/// For any input this ends without a panic; if the bytes are no node, they stay unchanged. Cost:
/// each slot is examined, and for each appended one the records above it move.
pub fn unpack(area: &mut [u8], shape: &Shape) -> Result<(), NoNode> {
    let initial = initial(area, shape)?;
    let capacity = shape.capacity(area.len());
    let end = (0..capacity).find(|&slot| !is_whole(area, shape, slot)).unwrap_or(capacity);
    if end < initial {
        return Err(NoNode);
    }
    let clean = is_erased(&area[shape.at(end)..shape.at(capacity)])
        && (end..capacity).all(|slot| is_valid(area, shape, slot));
    let mut count = 0;
    for slot in 0..end {
        if !is_valid(area, shape, slot) {
            continue;
        }
        // The sorted records occupy only slots that were already examined.
        tags::set_tag(area, shape, slot, slot as u16);
        let (sorted, rest) = area.split_at(shape.at(slot));
        let (node, key) = (Node::sorted(sorted, *shape, count), &rest[..shape.key_bytes()]);
        // The records programmed with the page come in order.
        let is_highest = count.checked_sub(1).is_none_or(|last| node.key(last) < key);
        let found = if is_highest { Err(count) } else { node.search(key) };
        let (from, to) = (shape.at(slot), shape.at(slot + 1));
        match found {
            Ok(index) => {
                area.copy_within(from..to, shape.at(index));
                tags::set_tag(area, shape, index, SHADOWS);
            }
            Err(index) => {
                area.copy_within(from..to, shape.at(count));
                let moved = &mut area[shape.at(index)..shape.at(count + 1)];
                moved.rotate_right(shape.record_bytes());
                count += 1;
            }
        }
    }
    area[..2].copy_from_slice(&(count as u16).to_le_bytes());
    tags::set_next(area, shape, if clean { end } else { capacity } as u16);
    tags::set_pending(area, shape, NOTHING);
    Ok(())
}

/// Packs a node: turns the node in RAM into the area of a new page.
///
/// All its records are to be programmed with that page. The node in RAM is gone then; [`unpack`]
/// restores it.
pub fn pack(area: &mut [u8], shape: &Shape) {
    let count = count(area, shape);
    for index in 0..count {
        let (code, end) = (code(zeros(area, shape, index)), shape.at(index + 1));
        area[end - shape.tag_bytes()..end].copy_from_slice(&code[..shape.tag_bytes()]);
    }
    area[2..shape.head_bytes()].fill(0xFF);
    area[shape.at(count)..].fill(0xFF);
}

fn count(area: &[u8], shape: &Shape) -> usize {
    usize::from(u16_at(area, 0)).min(shape.capacity(area.len()))
}

/// Whether the page of the node in RAM takes no more records.
///
/// It is full, or a program was cut in it.
pub fn is_closed(area: &[u8], shape: &Shape) -> bool {
    usize::from(tags::next(area, shape)) >= shape.capacity(area.len())
}

/// Forces the node in RAM to be written as a whole next time.
///
/// Its page is bad, or has to be left.
pub fn make_whole(area: &mut [u8], shape: &Shape) {
    tags::make_whole(area, shape);
}

fn is_new(area: &[u8], shape: &Shape, index: usize) -> bool {
    matches!(tags::tag(area, shape, index), NEW | NEW_SHADOWS)
}

/// The change to program so that the page holds the node in RAM.
///
/// It covers all changes since the node was unpacked, or since its page was last brought up to
/// date.
pub fn change(area: &[u8], shape: &Shape) -> Change {
    let records = (0..count(area, shape)).filter(|&index| is_new(area, shape, index)).count();
    let free = shape.capacity(area.len()).saturating_sub(tags::next(area, shape).into());
    match (tags::pending(area, shape), records) {
        (NOTHING, 0) => Change::Nothing,
        (NOTHING, records) if records <= free => Change::Append { records },
        (NOTHING | WHOLE, _) => Change::Whole,
        (_, 0) => Change::Remove,
        (_, _) => Change::Whole,
    }
}

/// Writes the new records of the node in RAM into `out`, as the page needs them.
///
/// Returns the offset in the area at which to program them, and the number of bytes:
/// [`Shape::record_bytes`] for each record. Returns `None` if the change is not [`Change::Append`]
/// or `out` is too short. The records count as written from now on; if the program fails,
/// [`make_whole`] corrects this.
///
/// The highest key comes first, because a cut keeps the first records. If a child was split, the
/// pointer to the upper half must not be lost while the one to the lower half is kept: the records
/// that moved up would be hidden.
pub fn append_image(area: &mut [u8], shape: &Shape, out: &mut [u8]) -> Option<(usize, usize)> {
    let Change::Append { records } = change(area, shape) else { return None };
    let bytes = records * shape.record_bytes();
    let mut images = out.get_mut(..bytes)?.chunks_exact_mut(shape.record_bytes());
    let first = tags::next(area, shape);
    let mut slot = first;
    for index in (0..count(area, shape)).rev() {
        if !is_new(area, shape, index) {
            continue;
        }
        let image = images.next()?;
        image.copy_from_slice(&area[shape.at(index)..shape.at(index + 1)]);
        let code = code(zeros(area, shape, index));
        image[shape.record_bytes() - shape.tag_bytes()..]
            .copy_from_slice(&code[..shape.tag_bytes()]);
        let shadows = tags::tag(area, shape, index) == NEW_SHADOWS;
        tags::set_tag(area, shape, index, if shadows { SHADOWS } else { slot });
        slot += 1;
    }
    tags::set_next(area, shape, slot);
    Some((shape.at(first.into()), bytes))
}

/// Prepares the removal of one slot.
///
/// Returns the offset in the area of the byte to program, and its new value, or `None` if the
/// change is not [`Change::Remove`]. The removal counts as written from now on; if the program
/// fails, [`make_whole`] corrects this.
pub fn removal(area: &mut [u8], shape: &Shape) -> Option<(usize, u8)> {
    if change(area, shape) != Change::Remove {
        return None;
    }
    let (at, bit) = tags::valid_bit(tags::pending(area, shape).into(), shape);
    area[at] &= !bit;
    tags::set_pending(area, shape, NOTHING);
    Some((at, area[at]))
}
