//! A slot for one change, programmed by itself: a tag, a key and a value.
//!
//! The tag counts the bits of the slot that are 0. A program lets bits fall, so a slot that is torn
//! has too few zeros, and its tag counts too many (a Berger code): it never passes. A slot is
//! *killed* by one bit of the tag, because a kill of several bits could itself be torn, and leave
//! the very count that a torn slot has. Source: J. M. Berger, "A note on error detection codes for
//! asymmetric channels", 1961.

use crate::bytes::{is_erased, u16_at};

/// Bytes of the tag of a slot.
pub const TAG_BYTES: usize = 2;

/// The most bytes of a record, so that a tag can count its zeros.
pub const RECORD_MAX: usize = 500;

/// The bit that falls when a slot is killed. It is 1 in each slot that counts.
const ALIVE: u16 = 1 << 15;

/// Bits of a tag below the count of zeros.
const KIND_BITS: u32 = 3;

/// What a slot does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// The slot has a value; otherwise it removes its key.
    pub puts: bool,
    /// It changes how many records its leaf has, where that is counted.
    pub counts: bool,
    /// It is a copy of the last slot before it that counted, and counts in its place.
    pub copies: bool,
}

impl Kind {
    const fn bits(self) -> u16 {
        self.puts as u16 | (self.counts as u16) << 1 | (self.copies as u16) << 2
    }

    /// The kind in a tag.
    pub const fn of(tag: u16) -> Self {
        Self { puts: tag & 1 != 0, counts: tag & 2 != 0, copies: tag & 4 != 0 }
    }

    /// The kind of a copy of such a slot.
    pub const fn as_copy(self) -> Self {
        Self { copies: true, ..self }
    }

    /// The records that the leaf has more.
    pub const fn gain(self) -> i32 {
        match (self.puts, self.counts) {
            (_, false) => 0,
            (true, true) => 1,
            (false, true) => -1,
        }
    }
}

/// What a slot is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing was programmed that can be seen.
    Blank,
    /// It counts.
    Whole(Kind),
    /// It was killed.
    Killed,
    /// It is torn.
    Torn,
}

/// Whether every byte is as an erase leaves it.
///
/// It is a function of its own because it is large, and called deep on the stack.
#[inline(never)]
pub fn looks_blank(bytes: &[u8]) -> bool {
    is_erased(bytes)
}

/// Whether a tag is one of a slot that was killed.
pub const fn is_killed(tag: u16) -> bool {
    tag & ALIVE == 0
}

/// Whether a tag is blank.
pub const fn is_blank(tag: u16) -> bool {
    tag == u16::MAX
}

/// The tag that kills a slot with this tag.
pub const fn killed(tag: u16) -> u16 {
    tag & !ALIVE
}

/// The zeros of these bytes.
///
/// Words are counted: a small processor has no instruction for it.
pub fn zeros_in(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks();
    let last = rest.iter().fold(u32::MAX, |last, &byte| last << 8 | u32::from(byte));
    words
        .iter()
        .fold(last.count_zeros(), |zeros, &word| zeros + u32::from_le_bytes(word).count_zeros())
}

/// The zeros of a record and of a kind.
fn zeros(record: &[u8], kind: u16) -> u32 {
    let in_kind = KIND_BITS - (kind & ((1 << KIND_BITS) - 1)).count_ones();
    zeros_in(record) + in_kind
}

/// Writes a slot; `slot` has its size. Without a value it removes the key.
pub fn write(slot: &mut [u8], key: &[u8], value: Option<&[u8]>, kind: Kind) {
    slot.fill(0xFF);
    let record = &mut slot[TAG_BYTES..];
    record[..key.len()].copy_from_slice(key);
    if let Some(value) = value {
        record[key.len()..].copy_from_slice(value);
    }
    seal(slot, kind);
}

/// Writes the tag of a slot whose key and value are there.
pub fn seal(slot: &mut [u8], kind: Kind) {
    let zeros = zeros(&slot[TAG_BYTES..], kind.bits()) as u16;
    let tag = ALIVE | zeros << KIND_BITS | kind.bits();
    slot[..TAG_BYTES].copy_from_slice(&tag.to_le_bytes());
}

/// The tag of a slot.
pub const fn tag(slot: &[u8]) -> u16 {
    u16_at(slot, 0)
}

/// What a slot is.
pub fn state(slot: &[u8]) -> State {
    let tag = tag(slot);
    if is_blank(tag) && looks_blank(slot) {
        State::Blank
    } else if is_killed(tag) {
        State::Killed
    } else if zeros(&slot[TAG_BYTES..], tag) == u32::from((tag & !ALIVE) >> KIND_BITS) {
        State::Whole(Kind::of(tag))
    } else {
        State::Torn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: usize = TAG_BYTES + 3;

    const KINDS: [Kind; 5] = [
        Kind { puts: true, counts: true, copies: false },
        Kind { puts: true, counts: false, copies: false },
        Kind { puts: false, counts: true, copies: false },
        Kind { puts: false, counts: false, copies: true },
        Kind { puts: true, counts: true, copies: true },
    ];

    fn slot(kind: Kind, record: [u8; 3]) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        let value = kind.puts.then_some(&record[1..]);
        write(&mut slot, &record[..1], value, kind);
        slot
    }

    #[test]
    fn a_slot_of_which_some_bits_have_not_fallen_is_never_whole() {
        for kind in KINDS {
            for record in [[0, 0, 0], [0x5A, 0xFF, 0xFE], [0xFF, 0xFF, 0xFF], [7, 0x80, 1]] {
                let whole = slot(kind, record);
                assert_eq!(state(&whole), State::Whole(kind));
                let word =
                    u64::from_le_bytes([&whole[..], &[0xFF; 3]].concat().try_into().unwrap());
                // Each mixture of old and new bits: a subset of the zeros.
                let zeros = !word;
                let mut missing = zeros;
                let mut seen = 0;
                while missing != 0 && seen < 300_000 {
                    let torn = (word | missing).to_le_bytes();
                    let is_whole = matches!(state(&torn[..SLOT]), State::Whole(_));
                    assert!(!is_whole, "{kind:?} {record:?}: {torn:?}");
                    missing = missing.wrapping_sub(1) & zeros;
                    seen += 1;
                }
            }
        }
    }

    /// With a kill that programs 0, some of these kills make the torn slot a record.
    #[test]
    fn h6_no_kill_makes_a_torn_slot_whole() {
        let mut unsafe_kills = 0;
        for kind in KINDS {
            for record in [[0, 0, 0], [0x5A, 0xC3, 0x0E], [0x11, 0x22, 0x33]] {
                let whole = slot(kind, record);
                for bit in 8 * TAG_BYTES..8 * SLOT {
                    let mut torn = whole;
                    torn[bit / 8] |= 1 << (bit % 8);
                    if torn == whole {
                        continue;
                    }
                    let before = tag(&torn);
                    for tag in 0..=u16::MAX {
                        // What a kill to 0 leaves when it is torn: any part of the tag's ones.
                        if tag & !before == 0 && tag & ALIVE != 0 {
                            let mut left = torn;
                            left[..TAG_BYTES].copy_from_slice(&tag.to_le_bytes());
                            unsafe_kills += u32::from(matches!(state(&left), State::Whole(_)));
                        }
                    }
                    // The kill by one bit is there or it is not.
                    let mut left = torn;
                    left[..TAG_BYTES].copy_from_slice(&killed(before).to_le_bytes());
                    assert_eq!((state(&torn), state(&left)), (State::Torn, State::Killed));
                }
            }
        }
        assert!(unsafe_kills > 0, "the test is too tame");
    }
}
