//! What makes a page of another one: copies, new bytes, and runs of one byte.
//!
//! A difference costs little where a record was inserted into a sorted node, or where the upper
//! half of a node is gone. It is made in one pass, and needs no RAM beside its bytes.
//!
//! Each step begins with two bytes: its kind in the highest two bits, its length less one in the
//! others. A copy is followed by the position in the old page, a run by its byte, new bytes by
//! themselves.

use core::ops::Range;

/// The kind of a step is above these bits.
const LENGTH_BITS: u32 = 14;

/// The most bytes of a step.
const LENGTH_MAX: usize = 1 << LENGTH_BITS;

const COPY: u16 = 0;
const NEW: u16 = 1;
const RUN: u16 = 2;

/// Equal bytes from which a copy is worth its own step: it ends and begins one of new bytes.
const WORTH: usize = 8;

/// Equal bytes that are no chance.
const ENOUGH: usize = 64;

/// How far behind a difference the pages are compared again.
const REACH: usize = 128;

/// Steps that are being written.
struct Steps<'a> {
    out: &'a mut [u8],
    used: usize,
}

impl Steps<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.used..self.used + bytes.len())?.copy_from_slice(bytes);
        self.used += bytes.len();
        Some(())
    }

    fn begin(&mut self, kind: u16, length: usize) -> Option<()> {
        self.put(&(kind << LENGTH_BITS | (length - 1) as u16).to_le_bytes())
    }

    fn put_copy(&mut self, from: usize, length: usize) -> Option<()> {
        for at in (0..length).step_by(LENGTH_MAX) {
            self.begin(COPY, (length - at).min(LENGTH_MAX))?;
            self.put(&((from + at) as u16).to_le_bytes())?;
        }
        Some(())
    }

    fn put_new(&mut self, bytes: &[u8]) -> Option<()> {
        for part in bytes.chunks(LENGTH_MAX) {
            self.begin(NEW, part.len())?;
            self.put(part)?;
        }
        Some(())
    }

    fn put_run(&mut self, byte: u8, length: usize) -> Option<()> {
        for at in (0..length).step_by(LENGTH_MAX) {
            self.begin(RUN, (length - at).min(LENGTH_MAX))?;
            self.put(&[byte])?;
        }
        Some(())
    }
}

/// Bytes from their beginning that are equal.
fn equal(new: &[u8], old: &[u8]) -> usize {
    // In words first: nearly all of two pages is equal.
    let words = new.chunks_exact(16).zip(old.chunks_exact(16));
    let same = 16 * words.take_while(|(new, old)| new == old).count();
    same + new[same..].iter().zip(&old[same..]).take_while(|(new, old)| new == old).count()
}

/// Whether a copy from here is worth a step: it is long, or reaches the end.
fn is_worth(new: &[u8], old: &[u8]) -> bool {
    let least = WORTH.min(new.len());
    least > 0 && old.len() >= least && new[..least] == old[..least]
}

/// Where the pages agree again: new bytes until there, and the position in the old page.
///
/// Equal bytes that are few can be chance, as zeros behind short values are: of all places within
/// reach it is the one that gains most, or the first one behind which enough is equal.
fn resume(new: &[u8], old: &[u8], from: usize) -> Option<(usize, usize)> {
    let behind = old.get(from..)?;
    let mut best: Option<(isize, (usize, usize))> = None;
    for step in 1..=REACH {
        let new_behind = new.get(step..).unwrap_or_default();
        let old_behind = behind.get(step..).unwrap_or_default();
        let places = [
            (new_behind, old_behind, (step, from + step)),
            (new_behind, behind, (step, from)),
            (new, old_behind, (0, from + step)),
        ];
        for (new, old, place) in places {
            if !is_worth(new, old) {
                continue;
            }
            let most = ENOUGH.min(new.len());
            let same = equal(&new[..most], &old[..most.min(old.len())]);
            if same == most {
                return Some(place);
            }
            let gain = same as isize - place.0 as isize;
            if best.is_none_or(|(most, _)| most < gain) {
                best = Some((gain, place));
            }
        }
    }
    best.map(|(_, place)| place)
}

/// Writes what makes `new` of `old` into `out`; returns its bytes, or `None` if it does not fit.
///
/// The pages are as long as one another, at most 64 KiB.
pub(super) fn encode(old: &[u8], new: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut steps = Steps { out, used: 0 };
    // Bytes from `fresh` to `at` are new; `from` is the place in the old page that `at` is like.
    let (mut fresh, mut at, mut from) = (0, 0, 0);
    while at < new.len() {
        let same = equal(&new[at..], old.get(from..).unwrap_or_default());
        if same >= WORTH || (same > 0 && at + same == new.len()) {
            steps.put_new(&new[fresh..at])?;
            steps.put_copy(from, same)?;
            (at, from) = (at + same, from + same);
            fresh = at;
            continue;
        }
        let run = new[at..].iter().take_while(|byte| **byte == new[at]).count();
        if run >= WORTH {
            steps.put_new(&new[fresh..at])?;
            steps.put_run(new[at], run)?;
            (at, from) = (at + run, from + run);
            fresh = at;
            continue;
        }
        let (step, place) = resume(&new[at..], old, from).unwrap_or((1, from + 1));
        (at, from) = (at + step, place);
        if at - fresh > steps.out.len() {
            return None;
        }
    }
    steps.put_new(&new[fresh..])?;
    Some(steps.used)
}

/// Makes a page of `old` by the steps. Returns `false` if they make no page; `new` is undefined
/// then.
pub(super) fn apply(old: &[u8], steps: &[u8], new: &mut [u8]) -> bool {
    let (mut steps, mut at) = (steps, 0);
    while let Some((begin, rest)) = steps.split_first_chunk::<2>() {
        let begin = u16::from_le_bytes(*begin);
        let length = usize::from(begin & (LENGTH_MAX - 1) as u16) + 1;
        let Some(target) = new.get_mut(at..at + length) else { return false };
        let used = match begin >> LENGTH_BITS {
            COPY => copy(old, rest, target),
            NEW => rest.get(..length).map(|bytes| {
                target.copy_from_slice(bytes);
                length
            }),
            RUN => rest.first().map(|&byte| {
                target.fill(byte);
                1
            }),
            _ => None,
        };
        let Some(used) = used else { return false };
        (steps, at) = (&rest[used..], at + length);
    }
    steps.is_empty() && at == new.len()
}

/// Copies from the old page; returns the bytes of the position.
fn copy(old: &[u8], rest: &[u8], target: &mut [u8]) -> Option<usize> {
    let (from, _) = rest.split_first_chunk::<2>()?;
    let from = usize::from(u16::from_le_bytes(*from));
    let range: Range<usize> = from..from + target.len();
    target.copy_from_slice(old.get(range)?);
    Some(2)
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// Bytes of the difference; expects that it makes the new page.
    fn size(old: &[u8], new: &[u8]) -> Option<usize> {
        let mut out = vec![0; 600];
        let used = encode(old, new, &mut out)?;
        let mut made = vec![0xA5; new.len()];
        assert!(apply(old, &out[..used], &mut made), "{used} bytes");
        assert_eq!(made, new);
        Some(used)
    }

    /// A node of records of 8 bytes, whose keys are the multiples of `step`.
    fn node(records: u32, step: u32) -> Vec<u8> {
        let mut page = vec![0; 2048];
        page[..2].copy_from_slice(&(records as u16).to_le_bytes());
        for (at, bytes) in (0..records).zip(page[2..].chunks_exact_mut(8)) {
            bytes[..4].copy_from_slice(&(at * step).to_be_bytes());
            bytes[4..].copy_from_slice(&(at * 7).to_le_bytes());
        }
        page
    }

    fn insert(page: &[u8], at: usize, record: u32) -> Vec<u8> {
        let mut page = page.to_vec();
        let from = 2 + 8 * at;
        page.truncate(page.len() - 8);
        page.splice(from..from, [record.to_be_bytes(), record.to_le_bytes()].concat());
        page
    }

    #[test]
    fn a_record_more_costs_little_more_than_the_record() {
        let before = node(150, 10_001);
        let mut after = before.clone();
        for at in 0..12 {
            after = insert(&after, 12 * at + 5, 77_777 * (at as u32 + 1));
            let bytes = size(&before, &after).unwrap();
            assert!(bytes <= 10 + 20 * (at + 1), "{at}: {bytes} bytes");
        }
    }

    /// Equal zeros behind each value are no reason to copy only them.
    #[test]
    fn a_record_more_among_values_that_end_with_zeros() {
        let node = |skipped: u32| -> Vec<u8> {
            let keys = (0..120u32).filter(|&at| at != skipped).map(|at| at * 7919);
            let mut page: Vec<u8> = keys
                .flat_map(|key| [key.to_be_bytes(), key.to_be_bytes(), [0; 4], [0; 4]].concat())
                .collect();
            page.resize(2048, 0);
            page
        };
        for at in 0..120 {
            assert!(size(&node(at), &node(120)).unwrap() <= 40, "{at}");
        }
    }

    #[test]
    fn a_record_less_and_the_upper_half_less_cost_little() {
        let before = node(150, 10_001);
        let mut without = before.clone();
        without.drain(402..410);
        without.extend([0; 8]);
        assert!(size(&before, &without).unwrap() <= 30);
        let mut half = before.clone();
        half[0] = 75;
        assert!(size(&before, &half).unwrap() <= 20);
        half[602..].fill(0);
        assert!(size(&before, &half).unwrap() <= 20);
        assert_eq!(size(&before, &before), Some(4));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let pages = [1u64, 2].map(|mut state| -> Vec<u8> {
            let next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            };
            core::iter::repeat_with(next).take(2048).collect()
        });
        let mut out = [0; 500];
        assert_eq!(encode(&pages[0], &pages[1], &mut out), None);
        assert_eq!(size(&pages[0], &pages[0]), Some(4));
    }

    #[test]
    fn steps_that_make_no_page_are_refused() {
        let old = [7; 16];
        let mut new = [0; 16];
        let good = [15, 0, 0, 0];
        assert!(apply(&old, &good, &mut new));
        for bad in [
            &[][..],
            &[15],
            &[15, 0, 0],
            &[15, 0, 1, 0],
            &[16, 0, 0, 0],
            &[14, 0, 0, 0],
            &[15, 0x40, 1],
            &[15, 0x80],
            &[15, 0xC0, 0, 0],
            &[15, 0, 0, 0, 0],
            &[255, 0x3F, 255, 255],
        ] {
            assert!(!apply(&old, bad, &mut new), "{bad:?}");
        }
    }

    /// All pages of three letters: every pair of short pages.
    #[test]
    fn every_pair_of_short_pages() {
        let page = |number: u32| -> Vec<u8> {
            (0..6).map(|at| (number / 3u32.pow(at) % 3) as u8).collect()
        };
        for old in 0..729 {
            for new in (0..729).step_by(7) {
                assert!(size(&page(old), &page(new)).is_some());
            }
        }
    }

    proptest! {
        #[test]
        fn edits_of_a_page(
            old in prop::collection::vec(0u8..4, 64..400),
            edits in prop::collection::vec((0usize..400, 0usize..20, any::<u8>(), 0u8..3), 0..6),
        ) {
            let mut new = old.clone();
            for (at, length, byte, kind) in edits {
                let at = at.min(new.len());
                match kind {
                    0 => drop(new.splice(at..at, vec![byte; length])),
                    1 => drop(new.drain(at..(at + length).min(new.len()))),
                    _ => new[at..].iter_mut().take(length).for_each(|it| *it = it.wrapping_add(byte)),
                }
            }
            new.resize(old.len(), 0);
            let mut out = vec![0; 3 * old.len() + 10];
            let used = encode(&old, &new, &mut out).unwrap();
            let mut made = vec![1; old.len()];
            prop_assert!(apply(&old, &out[..used], &mut made));
            prop_assert_eq!(made, new);
        }

        #[test]
        fn any_steps_are_applied_or_refused(
            steps in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut new = [0; 100];
            apply(&[3; 100], &steps, &mut new);
        }
    }
}
