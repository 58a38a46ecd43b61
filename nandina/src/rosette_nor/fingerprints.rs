//! The fingerprints of a group of slots.
//!
//! They count the zeros of their own bytes, as a slot does, and are killed by one bit.

use super::form::{GROUP, GROUP_BYTES};
use crate::bytes::u16_at;
use crate::node::slot::zeros_in;

/// The byte of a group with the bit that falls when it is killed.
///
/// It is the high byte of the records of the leaf, of which there are fewer than 32,768.
const GROUP_ALIVE_AT: usize = GROUP + 1;

/// That bit. It is 1 in each group that counts.
const GROUP_ALIVE: u8 = 1 << 7;

/// The fingerprint of a key.
pub fn fingerprint(key: &[u8]) -> u8 {
    let hash = key
        .iter()
        .fold(0x811C_9DC5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 16) ^ (hash >> 8)) as u8
}

/// Seals a group whose hashes are there, with the records of the leaf.
pub fn seal_group(group: &mut [u8; GROUP_BYTES], live: u16) {
    group[GROUP..GROUP + 2].copy_from_slice(&live.to_le_bytes());
    group[GROUP_ALIVE_AT] |= GROUP_ALIVE;
    group[GROUP_BYTES - 1] = zeros_in(&group[..GROUP_BYTES - 1]) as u8;
}

/// The bits that fall so that a group never counts again: one, as in a slot.
pub const fn group_killed() -> [u8; GROUP_BYTES] {
    let mut bytes = [0xFF; GROUP_BYTES];
    bytes[GROUP_ALIVE_AT] &= !GROUP_ALIVE;
    bytes
}

/// Whether the fingerprints of a group are whole.
pub fn group_is_whole(group: &[u8]) -> bool {
    let zeros = zeros_in(&group[..GROUP_BYTES - 1]);
    group[GROUP_ALIVE_AT] & GROUP_ALIVE != 0 && u32::from(group[GROUP_BYTES - 1]) == zeros
}

/// Whether one of the fingerprints of a group is this one.
pub fn group_has(group: &[u8], wanted: u8) -> bool {
    const ONES: u32 = 0x0101_0101;
    let (words, _) = group[..GROUP].as_chunks();
    words.iter().any(|&word| {
        // A byte of 0, where the fingerprint is the same, borrows from the one above it.
        let other = u32::from_le_bytes(word) ^ (u32::from(wanted) * ONES);
        other.wrapping_sub(ONES) & !other & ONES << 7 != 0
    })
}

/// The records of the leaf after a group.
pub const fn group_live(group: &[u8]) -> u16 {
    u16_at(group, GROUP) & !((GROUP_ALIVE as u16) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_which_some_bits_have_not_fallen_is_not_whole() {
        let mut group = [0x35; GROUP_BYTES];
        seal_group(&mut group, 83);
        assert!(group_is_whole(&group) && group_live(&group) == 83);
        assert!(!group_is_whole(&[0xFF; GROUP_BYTES]));
        for one in 0..8 * GROUP_BYTES {
            for other in 0..8 * GROUP_BYTES {
                let mut torn = group;
                torn[one / 8] |= 1 << (one % 8);
                torn[other / 8] |= 1 << (other % 8);
                assert!(torn == group || !group_is_whole(&torn), "bits {one} and {other}");
            }
        }
    }

    #[test]
    fn a_group_has_each_of_its_fingerprints_and_no_other() {
        for first in 0..=u8::MAX {
            let mut group = [0; GROUP_BYTES];
            for (at, byte) in (0..).zip(&mut group[..GROUP]) {
                *byte = first.wrapping_mul(31).wrapping_add(first << (at % 8)) ^ at;
            }
            for wanted in 0..=u8::MAX {
                assert_eq!(group_has(&group, wanted), group[..GROUP].contains(&wanted));
            }
        }
    }

    /// With a kill that programs 0, some of these kills make torn fingerprints whole.
    #[test]
    fn no_kill_makes_a_torn_group_whole() {
        let mut group = [0x35; GROUP_BYTES];
        seal_group(&mut group, 83);
        let mut unsafe_kills = 0;
        for missing in 0..8 * GROUP_BYTES {
            let mut torn = group;
            torn[missing / 8] |= 1 << (missing % 8);
            if torn == group {
                continue;
            }
            // Of each kill one bit has fallen.
            for fallen in 0..8 * GROUP_BYTES {
                let left = |kill: [u8; GROUP_BYTES]| {
                    let mut left = torn;
                    left[fallen / 8] &= kill[fallen / 8] | !(1 << (fallen % 8));
                    left
                };
                unsafe_kills += u32::from(group_is_whole(&left([0; GROUP_BYTES])));
                assert!(!group_is_whole(&left(group_killed())), "bits {missing} and {fallen}");
            }
            let mut killed = torn;
            killed.iter_mut().zip(group_killed()).for_each(|(byte, bits)| *byte &= bits);
            assert!(!group_is_whole(&killed), "bit {missing}");
        }
        assert!(unsafe_kills > 0, "the test is too tame");
        group.iter_mut().zip(group_killed()).for_each(|(byte, bits)| *byte &= bits);
        assert!(!group_is_whole(&group));
    }
}
