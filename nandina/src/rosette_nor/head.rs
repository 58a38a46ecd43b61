//! The head of a leaf, and its marks: what a mount reads of a sector.
//!
//! The head has the two fences and the number of sorted records; the header behind it, which every
//! page of this library has, the identity, the sequence number and the erase count. A checksum in
//! the head covers both, so that a mount need not read the rest of the page. The *commit* is a
//! checksum of the sorted records, and its complement: of such a pair no part is another pair, so a
//! torn one never passes.

use super::form::{COMMIT_BYTES, ENDS_BYTES, Form, HEAD_BESIDE};
use crate::bytes::{u16_at, u32_at};
use crate::engine::KEY_BYTES_MAX;
use crate::node::{Medium, PageHeader, PageLayout};

/// Flag of a head: the range has an upper end.
const IS_BOUNDED: u8 = 1;

/// The longest head.
pub const HEAD_MAX: usize = HEAD_BESIDE + 2 * KEY_BYTES_MAX;

/// Where the magic begins in a header; the checksum of the page is before it.
const MAGIC_END: usize = 6;

/// What a head says.
#[derive(Clone, Copy)]
pub struct Head {
    pub identity: u32,
    pub sequence: u64,
    pub erases: u32,
    /// Sorted records.
    pub sorted: u16,
}

/// The ends of a range of keys, which may have no upper end.
pub type Fences<'k> = (&'k [u8], Option<&'k [u8]>);

/// Writes the head into `frame`, page 0 of a sector, and the header behind it.
///
/// They are not sealed.
#[inline(never)]
pub fn write(form: &Form, frame: &mut [u8], medium: &Medium, head: &Head, (low, high): Fences<'_>) {
    let header = PageHeader {
        identity: head.identity,
        sequence: head.sequence,
        lowest: 1,
        height: 1,
        erase_count: head.erases,
        records: head.sorted.into(),
        settling: false,
        tag: 0,
    };
    form.layout.write_header(frame, medium, &header);
    let key_bytes = form.key_bytes;
    let bytes = &mut frame[form.head_at()..];
    bytes[..2].copy_from_slice(&head.sorted.to_le_bytes());
    bytes[2] = if high.is_some() { IS_BOUNDED } else { 0 };
    bytes[3] = 0;
    bytes[4..4 + key_bytes].copy_from_slice(low);
    bytes[4 + key_bytes..4 + 2 * key_bytes].fill(0);
    if let Some(high) = high {
        bytes[4 + key_bytes..4 + 2 * key_bytes].copy_from_slice(high);
    }
}

/// Seals the head in `frame`, and the page when its records are there.
pub fn seal(form: &Form, frame: &mut [u8], sum: &mut dyn FnMut(&[&[u8]]) -> u32) {
    let bytes = &mut frame[form.head_at()..];
    let own = checksum(form, bytes, sum).to_le_bytes();
    let end = form.head_bytes();
    bytes[end - own.len()..end].copy_from_slice(&own);
    form.layout.seal_written(frame, sum);
}

/// The checksum of a head, and of the header behind it from its version on.
fn checksum(form: &Form, tail: &[u8], sum: &mut dyn FnMut(&[&[u8]]) -> u32) -> u32 {
    let head = &tail[..form.head_bytes() - 4];
    let header = &tail[form.head_bytes() + MAGIC_END..form.tail_bytes()];
    sum(&[head, header])
}

/// Reads a head with the header behind it, if it is one of this medium.
///
/// `tail` has both. A leaf whose magic was removed is none, but its head is still there.
pub fn read(
    form: &Form,
    tail: &[u8],
    medium: &Medium,
    sum: &mut dyn FnMut(&[&[u8]]) -> u32,
) -> Option<Head> {
    let at = form.head_bytes() - 4;
    if checksum(form, tail, sum) != u32_at(tail, at) {
        return None;
    }
    let header = &tail[form.head_bytes()..form.tail_bytes()];
    let read = PageLayout::header_in(header);
    let is_ours = PageLayout::medium_in(header) == *medium && read.sequence < SEQUENCE_END;
    is_ours.then_some(Head {
        identity: read.identity,
        sequence: read.sequence,
        erases: read.erase_count,
        sorted: sorted(tail),
    })
}

/// The sorted records in a head that was read.
pub const fn sorted(tail: &[u8]) -> u16 {
    u16_at(tail, 0)
}

/// The end of the sequence numbers.
pub const SEQUENCE_END: u64 = 1 << 47;

/// The fences in a head that was read.
pub fn fences<'t>(form: &Form, tail: &'t [u8]) -> Fences<'t> {
    let low = &tail[4..4 + form.key_bytes];
    let high = &tail[4 + form.key_bytes..4 + 2 * form.key_bytes];
    (low, (tail[2] & IS_BOUNDED != 0).then_some(high))
}

/// The fences of a leaf in the node area of its first page.
pub fn fences_in(area: &[u8], key_bytes: usize) -> Option<Fences<'_>> {
    let head = area.len().checked_sub(HEAD_BESIDE + 2 * key_bytes)?;
    let (low, high) = area[head + 4..].split_at(key_bytes);
    Some((low, (area[head + 2] & IS_BOUNDED != 0).then_some(&high[..key_bytes])))
}

/// The commit of a leaf whose sorted records have this checksum.
pub fn commit(sum: u32) -> [u8; COMMIT_BYTES] {
    let mut bytes = [0; COMMIT_BYTES];
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes[4..].copy_from_slice(&(!sum).to_le_bytes());
    bytes
}

/// The checksum in a commit, if it is whole.
pub const fn committed(bytes: &[u8]) -> Option<u32> {
    let sum = u32_at(bytes, 0);
    if sum == !u32_at(bytes, 4) { Some(sum) } else { None }
}

/// Sessions that a leaf can record.
const SESSIONS: u32 = 4 * ENDS_BYTES as u32;

/// Bits that fall at the ends of sessions; the others fall at their beginnings.
const END_BITS: u64 = 0x5555_5555_5555_5555;

/// The number of the session that a leaf records, and whether it has ended.
///
/// Each session has two bits. One falls when it ends, and says that nothing is torn; the other one
/// when the next session begins, however it ended. A bit is there or not, so no torn mark says that
/// a session has ended which has not.
pub fn session(bytes: &[u8; ENDS_BYTES]) -> (u32, bool) {
    let bits = u64::from_le_bytes(*bytes);
    let is_open = |number: &u32| bits >> (2 * number + 1) & 1 == 1;
    let number = (0..SESSIONS).find(is_open).unwrap_or(SESSIONS);
    (number, number < SESSIONS && bits >> (2 * number) & 1 == 0)
}

/// The bytes that end a session, if it can be recorded.
pub const fn end(number: u32) -> Option<[u8; ENDS_BYTES]> {
    if number >= SESSIONS {
        return None;
    }
    let bit: u64 = 1 << (2 * number);
    Some((!bit).to_le_bytes())
}

/// The bytes that begin the session after this one, if this one is recorded.
///
/// The bits of earlier ones fall, too: they may be torn.
pub const fn begin_next(number: u32) -> Option<[u8; ENDS_BYTES]> {
    if number >= SESSIONS {
        return None;
    }
    let earlier = u64::MAX >> (64 - 2 * (number + 1));
    Some((!(earlier & !END_BITS)).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::Geometry;

    const GEOMETRY: Geometry =
        Geometry { page_bytes: 256, spare_bytes: 0, pages_per_block: 16, blocks: 8 };

    const MEDIUM: Medium = Medium {
        system: 10,
        key_bytes: 4,
        value_bytes: 12,
        blocks: 8,
        pages_per_block: 16,
        checkpoints: false,
        appended: false,
        replaced: false,
        atomic: false,
    };

    #[test]
    fn a_head_is_read_as_written_and_any_flipped_bit_is_seen() {
        let form = Form::new(&GEOMETRY, 4, 12);
        let mut sum = |pieces: &[&[u8]]| {
            pieces.concat().iter().fold(7u32, |sum, &byte| {
                (sum.rotate_left(5) ^ u32::from(byte)).wrapping_mul(0x9E37_79B1)
            })
        };
        let head = Head { identity: 3, sequence: 1 << 40, erases: 77, sorted: 83 };
        for high in [None, Some(&[2, 0, 0, 0][..])] {
            let mut frame = [0x11; 256];
            write(&form, &mut frame, &MEDIUM, &head, (&[1, 2, 3, 4], high));
            seal(&form, &mut frame, &mut sum);
            let tail = &mut frame[form.head_at()..];
            let found = read(&form, tail, &MEDIUM, &mut sum).unwrap();
            assert_eq!((found.identity, found.sequence), (3, 1 << 40));
            assert_eq!((found.erases, found.sorted), (77, 83));
            assert_eq!(fences(&form, tail), (&[1, 2, 3, 4][..], high));
            let end = form.head_bytes();
            assert_eq!(fences_in(&tail[..end], 4), Some((&[1, 2, 3, 4][..], high)));
            for bit in 0..8 * form.head_bytes() {
                tail[bit / 8] ^= 1 << (bit % 8);
                assert!(read(&form, tail, &MEDIUM, &mut sum).is_none(), "bit {bit}");
                tail[bit / 8] ^= 1 << (bit % 8);
            }
            let other = Medium { value_bytes: 13, ..MEDIUM };
            assert!(read(&form, tail, &other, &mut sum).is_none());
        }
    }

    #[test]
    fn a_commit_of_which_some_bits_have_not_fallen_is_none() {
        for sum in [0, u32::MAX, 0x1234_5678] {
            let whole = u64::from_le_bytes(commit(sum));
            assert_eq!(committed(&whole.to_le_bytes()), Some(sum));
            let zeros = !whole;
            let mut missing = zeros;
            for _ in 0..300_000 {
                assert_eq!(committed(&(whole | missing).to_le_bytes()), None);
                missing = missing.wrapping_sub(1) & zeros;
                if missing == 0 {
                    break;
                }
            }
        }
        assert_eq!((committed(&[0xFF; 8]), committed(&[0; 8])), (None, None));
    }

    #[test]
    fn sessions_begin_and_end_by_a_bit_each() {
        let mut bytes = [0xFF; ENDS_BYTES];
        let mut fall = |bits: [u8; ENDS_BYTES]| {
            bytes.iter_mut().zip(bits).for_each(|(byte, bits)| *byte &= bits);
            session(&bytes)
        };
        assert_eq!(fall([0xFF; ENDS_BYTES]), (0, false));
        for number in 0..SESSIONS {
            if number % 3 > 0 {
                assert_eq!(fall(end(number).unwrap()), (number, true));
            }
            assert_eq!(fall(begin_next(number).unwrap()), (number + 1, false));
        }
        assert_eq!((end(SESSIONS), begin_next(SESSIONS)), (None, None));
    }
}
