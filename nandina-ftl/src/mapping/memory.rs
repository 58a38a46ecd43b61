//! Numbers in the caller's memory: words of 4 bytes, least significant byte first.
//!
//! No access panics. A place outside of the memory reads as 0 and takes no write; the invariants
//! of each mapping keep it from happening.

/// Bytes of a word.
pub(super) const WORD: usize = 4;

/// The word at `index`, counted in words.
#[inline]
pub(super) fn word(memory: &[u8], index: usize) -> u32 {
    let at = index * WORD;
    match memory.get(at..at + WORD) {
        Some(bytes) => u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        None => 0,
    }
}

/// Writes the word at `index`, counted in words.
#[inline]
pub(super) fn set_word(memory: &mut [u8], index: usize, value: u32) {
    let at = index * WORD;
    if let Some(bytes) = memory.get_mut(at..at + WORD) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}
