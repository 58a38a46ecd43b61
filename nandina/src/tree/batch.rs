//! The write buffer as bytes: changes that wait in RAM, in the order of their keys, one for each key, the newest
//! (VMTree paper, section 4.1). Nothing here knows a tree, and nothing is allocated: the bytes are the caller's.
//!
//! ```text
//! | key value | key value | ... | unused | puts: one bit for each change |
//! ```
//!
//! The bit is 1 where a record is put and 0 where one is removed; the value means nothing then. A change is found
//! by bisection, and put where it belongs by shifting those behind it.

use super::Options;
use crate::node::bytes::bisect;

/// Changes that wait, and how long they may.
#[derive(Default)]
pub struct Batch<'b> {
    bytes: &'b mut [u8],
    key_bytes: usize,
    entry_bytes: usize,
    count: usize,
    /// How many of them put a record: only those can take pages.
    puts: u32,
    /// So many puts may wait: as the tree is, their pages are allowed whatever nodes they divide.
    granted: u32,
    /// Changes that are too many to wait on, or 0 for no bound.
    changes_max: u32,
    /// Ticks that are too many to wait on, or 0 for no bound.
    ticks_max: u32,
    /// Ticks since the change that waits longest.
    ticks: u32,
    /// Records in the root at most, or `u32::MAX` if that is not known: what may wait depends on it.
    root_records: u32,
}

/// Whether this library has a write buffer: it has, with the feature `write-buffer`.
pub const IS_BUILT: bool = true;

/// Bytes of RAM for a write buffer of so many pages.
pub const fn ram_needed(page_bytes: usize, pages: usize) -> usize {
    page_bytes * pages
}

/// Bytes that a waiting change takes, besides a bit.
const fn entry_bytes(options: &Options) -> usize {
    options.key_bytes + options.value_bytes
}

/// Changes of `entry_bytes` that fit in `bytes`, each with its bit.
const fn changes_in(bytes: usize, entry_bytes: usize) -> usize {
    let changes = 8 * bytes / (8 * entry_bytes + 1);
    // The last bits take a whole byte.
    if changes * entry_bytes + changes.div_ceil(8) > bytes { changes - 1 } else { changes }
}

/// Changes that a write buffer holds at most: as many as fit in its pages, or as the options allow to wait.
pub const fn waiting_max(page_bytes: usize, options: &Options) -> usize {
    let fit = changes_in(ram_needed(page_bytes, options.write_buffer), entry_bytes(options));
    match options.write_buffer_changes {
        Some(changes) if (changes as usize) < fit => changes as usize,
        _ => fit,
    }
}

impl<'b> Batch<'b> {
    pub fn new(bytes: &'b mut [u8], options: &Options) -> Self {
        Self {
            bytes,
            key_bytes: options.key_bytes,
            entry_bytes: entry_bytes(options),
            changes_max: options.write_buffer_changes.unwrap_or(0),
            ticks_max: options.write_buffer_ticks.unwrap_or(0),
            root_records: u32::MAX,
            ..Self::default()
        }
    }

    /// Whether there is a write buffer at all.
    pub const fn is_used(&self) -> bool {
        !self.bytes.is_empty()
    }

    pub const fn len(&self) -> usize {
        self.count
    }

    pub const fn capacity(&self) -> usize {
        changes_in(self.bytes.len(), self.entry_bytes)
    }

    /// The byte in which the bit of the change at `at` stands, and the bit in it.
    const fn bit(&self, at: usize) -> (usize, u8) {
        (self.bytes.len() - 1 - at / 8, 1 << (at % 8))
    }

    fn set_puts(&mut self, at: usize, puts: bool) {
        let (byte, bit) = self.bit(at);
        self.bytes[byte] = if puts { self.bytes[byte] | bit } else { self.bytes[byte] & !bit };
    }

    /// Whether a change of `key` finds a place.
    pub fn takes(&self, key: &[u8]) -> bool {
        self.count < self.capacity() || self.search(key).is_ok()
    }

    /// Whether as many changes wait as may.
    pub const fn is_due(&self) -> bool {
        self.changes_max > 0 && self.count >= self.changes_max as usize
    }

    /// A tick has passed. Answers whether what waits has waited too long.
    pub const fn tick(&mut self) -> bool {
        if self.count == 0 {
            return false;
        }
        self.ticks = self.ticks.saturating_add(1);
        self.ticks_max > 0 && self.ticks >= self.ticks_max
    }

    /// The key of the change at `at`.
    pub fn key(&self, at: usize) -> &[u8] {
        &self.bytes[at * self.entry_bytes..][..self.key_bytes]
    }

    /// Whether the change at `at` puts a record.
    pub fn puts_at(&self, at: usize) -> bool {
        let (byte, bit) = self.bit(at);
        self.bytes[byte] & bit != 0
    }

    /// The value that the change at `at` puts, or nothing if it removes.
    pub fn value(&self, at: usize) -> Option<&[u8]> {
        let entry = &self.bytes[at * self.entry_bytes..][..self.entry_bytes];
        self.puts_at(at).then(|| &entry[self.key_bytes..])
    }

    /// Where the change of `key` stands (`Ok`), or where it would be put (`Err`).
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        bisect(self.count, |index| self.key(index), key)
    }

    /// How many changes are of keys below `key`.
    pub fn below(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(at) | Err(at) => at,
        }
    }

    /// Takes a change in, of which there is room: a record with `value` is put, or removed if that is nothing.
    pub fn take(&mut self, key: &[u8], value: Option<&[u8]>) {
        let size = self.entry_bytes;
        let at = match self.search(key) {
            Ok(at) => {
                self.puts -= u32::from(self.puts_at(at));
                at
            }
            Err(at) => {
                self.bytes.copy_within(at * size..self.count * size, (at + 1) * size);
                for behind in (at..self.count).rev() {
                    self.set_puts(behind + 1, self.puts_at(behind));
                }
                self.bytes[at * size..][..self.key_bytes].copy_from_slice(key);
                self.count += 1;
                at
            }
        };
        self.set_puts(at, value.is_some());
        if let Some(value) = value {
            self.bytes[at * size..][self.key_bytes..size].copy_from_slice(value);
            self.puts += 1;
        }
    }

    /// The changes from `from` up to `to` wait no more.
    pub fn drop_between(&mut self, from: usize, to: usize) {
        for at in from..to {
            self.puts -= u32::from(self.puts_at(at));
        }
        let size = self.entry_bytes;
        self.bytes.copy_within(to * size..self.count * size, from * size);
        for behind in to..self.count {
            self.set_puts(behind - to + from, self.puts_at(behind));
        }
        self.count -= to - from;
        if self.count == 0 {
            self.ticks = 0;
        }
    }

    /// The change of `key`, if one waits, does so no more. Answers whether it would have put a record.
    pub fn forget(&mut self, key: &[u8]) -> Option<bool> {
        let at = self.search(key).ok()?;
        let puts = self.puts_at(at);
        self.drop_between(at, at + 1);
        Some(puts)
    }

    /// Puts that wait once one of `key` does as well.
    pub fn puts_with(&self, key: &[u8]) -> u32 {
        let puts_already = self.search(key).is_ok_and(|at| self.puts_at(at));
        self.puts + u32::from(!puts_already)
    }

    pub const fn granted(&self) -> u32 {
        self.granted
    }

    /// So many puts may wait until the tree changes.
    pub const fn grant(&mut self, puts: u32) {
        self.granted = puts;
    }

    /// Records in the root at most, or `u32::MAX` if that is not known.
    pub const fn root_records(&self) -> u32 {
        self.root_records
    }

    pub const fn set_root_records(&mut self, records: u32) {
        self.root_records = records;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(batch: &Batch<'_>, changes: &[(u8, Option<u8>)]) -> bool {
        let held =
            (0..batch.len()).map(|at| (batch.key(at)[0], batch.value(at).map(|value| value[0])));
        held.eq(changes.iter().copied())
    }

    #[test]
    fn one_change_a_key_waits_the_newest_in_the_order_of_keys() {
        let mut bytes = [0xA5; 9];
        let options = Options { write_buffer_changes: Some(4), ..Options::new(1, 1) };
        let mut batch = Batch::new(&mut bytes, &options);
        assert_eq!((batch.capacity(), batch.puts_with(&[7])), (4, 1));
        for (key, value) in [(7, Some(1)), (3, Some(2)), (9, None), (7, Some(3)), (3, None)] {
            batch.take(&[key], value.as_ref().map(core::slice::from_ref));
        }
        assert!(holds(&batch, &[(3, None), (7, Some(3)), (9, None)]));
        assert_eq!((batch.puts, batch.puts_with(&[7]), batch.puts_with(&[9])), (1, 1, 2));
        assert_eq!((batch.below(&[3]), batch.below(&[8]), batch.below(&[10])), (0, 2, 3));
        assert!(batch.takes(&[1]) && !batch.is_due());
        batch.take(&[1], Some(&[8]));
        assert!(!batch.takes(&[2]) && batch.takes(&[1]) && batch.is_due());
        batch.drop_between(1, 3);
        assert!(holds(&batch, &[(1, Some(8)), (9, None)]) && batch.puts == 1);
        assert_eq!([1, 9, 9].map(|key| batch.forget(&[key])), [Some(true), Some(false), None]);
        assert_eq!((batch.len(), batch.puts), (0, 0));
    }

    #[test]
    fn ticks_count_while_a_change_waits() {
        let mut bytes = [0; 3];
        let options = Options { write_buffer_ticks: Some(2), ..Options::new(1, 1) };
        let mut batch = Batch::new(&mut bytes, &options);
        assert!(!batch.tick() && !batch.tick() && !batch.tick());
        batch.take(&[1], None);
        assert!(!batch.tick());
        batch.take(&[1], Some(&[2]));
        assert!(batch.tick(), "an older change of the key has waited since the tick before");
        batch.drop_between(0, 1);
        batch.take(&[1], None);
        assert!(!batch.tick());
    }
}
