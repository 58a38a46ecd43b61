//! Separators of ranges of keys, and the bytes of them that are stored.
//!
//! Nothing is read or written here.

use core::ops::Deref;

use crate::engine::KEY_BYTES_MAX;

/// A separator that is as long as a key.
#[derive(Clone, Copy)]
pub(super) struct Separator {
    bytes: [u8; KEY_BYTES_MAX],
    len: usize,
}

impl Separator {
    /// The lowest of all keys.
    pub const fn lowest(key_bytes: usize) -> Self {
        Self { bytes: [0; KEY_BYTES_MAX], len: key_bytes }
    }

    /// The shortest separator above the key `below` and not above `high`.
    ///
    /// It is the one that ends with the most zeros. `below` is the lower key of the two.
    pub fn between(below: &[u8], high: &[u8]) -> Self {
        let mut separator = Self::lowest(high.len());
        let needed = needed_between(below, high);
        separator.bytes[..needed].copy_from_slice(&high[..needed]);
        separator
    }

    /// The bytes, for changing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl Deref for Separator {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The bytes of a separator before the zeros at its end.
pub(super) fn needed(separator: &[u8]) -> usize {
    separator.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

/// The bytes of `high` that a separator above the key `below` needs.
pub(super) fn needed_between(below: &[u8], high: &[u8]) -> usize {
    high.len().min(shared(below, high) + 1)
}

/// The bytes with which both begin.
pub(super) fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Which bytes of each separator an entry stores, and how long an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    key_bytes: u8,
    page_bytes: u8,
    from: u8,
    end: u8,
}

impl Window {
    /// The window of a directory with one range: no bytes.
    pub const fn empty(key_bytes: usize, page_bytes: usize) -> Self {
        Self { key_bytes: key_bytes as u8, page_bytes: page_bytes as u8, from: 0, end: 0 }
    }

    /// This window at other bytes, or `None` if it is not within a key.
    pub const fn at(self, from: u8, end: u8) -> Option<Self> {
        if from > end || end > self.key_bytes { None } else { Some(Self { from, end, ..self }) }
    }

    /// Bytes of a key.
    pub const fn key_bytes(&self) -> usize {
        self.key_bytes as usize
    }

    /// The bytes with which all separators begin.
    pub const fn from(&self) -> usize {
        self.from as usize
    }

    /// Behind these bytes all separators are zero.
    pub const fn end(&self) -> usize {
        self.end as usize
    }

    /// Bytes of a separator in an entry.
    pub const fn width(&self) -> usize {
        (self.end - self.from) as usize
    }

    /// Bytes of an entry.
    pub const fn entry_bytes(&self) -> usize {
        self.width() + self.page_bytes as usize
    }

    /// The window that also fits `separator`.
    ///
    /// The other separators begin with the bytes of `first`.
    pub fn with(self, first: &[u8], separator: &[u8]) -> Self {
        let from = shared(&first[..self.from()], separator) as u8;
        let end = self.end.max(needed(separator) as u8);
        Self { from, end: end.max(from), ..self }
    }

    /// The separator of an entry; all of them begin with the bytes of `first`.
    pub fn separator_in(&self, first: &[u8], entry: &[u8]) -> Separator {
        let mut separator = Separator::lowest(self.key_bytes());
        separator.bytes[..self.from()].copy_from_slice(&first[..self.from()]);
        separator.bytes[self.from()..self.end()].copy_from_slice(&entry[..self.width()]);
        separator
    }

    /// The number of the page in an entry; the highest number means "no page".
    pub fn page_in(&self, entry: &[u8]) -> u32 {
        self.page_of(&entry[self.width()..self.entry_bytes()])
    }

    /// The number of a page that was stored in these bytes.
    pub fn page_of(&self, stored: &[u8]) -> u32 {
        let mut bytes = [0xFF; 4];
        bytes[..stored.len()].copy_from_slice(stored);
        let number = u32::from_le_bytes(bytes);
        let unused = 8 * (4 - u32::from(self.page_bytes));
        // The bytes that are not stored are zero, but for the number that means "no page".
        if number == u32::MAX { number } else { number << unused >> unused }
    }

    /// Puts the number of a page into an entry.
    pub fn put_page(&self, entry: &mut [u8], number: u32) {
        let stored = &mut entry[self.width()..self.entry_bytes()];
        stored.copy_from_slice(&number.to_le_bytes()[..stored.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_between_two_keys_has_as_few_bytes_as_possible() {
        for (below, high, expected) in [
            ([1, 2, 3], [1, 2, 4], [1, 2, 4]),
            ([1, 2, 3], [1, 5, 4], [1, 5, 0]),
            ([1, 255, 255], [2, 0, 0], [2, 0, 0]),
            ([0, 0, 0], [0, 0, 1], [0, 0, 1]),
        ] {
            let separator = Separator::between(&below, &high);
            assert_eq!(*separator, expected);
            assert!(below[..] < separator[..] && separator[..] <= high[..]);
        }
        assert_eq!((needed(&[0, 7, 0]), needed(&Separator::lowest(3))), (2, 0));
    }

    #[test]
    fn a_window_grows_to_what_separators_need_and_no_further() {
        let mut window = Window::empty(4, 2);
        let first = [9, 4, 6, 0];
        window = window.with(&first, &first);
        // Nothing is known of the others yet.
        assert_eq!((window.from(), window.end()), (0, 3));
        window = window.at(3, 3).unwrap();
        window = window.with(&first, &[9, 4, 7, 0]);
        assert_eq!((window.from(), window.end(), window.entry_bytes()), (2, 3, 3));
        window = window.with(&first, &[9, 4, 1, 3]);
        assert_eq!((window.from(), window.end(), window.entry_bytes()), (2, 4, 4));
        window = window.with(&first, &[8, 0, 0, 0]);
        assert_eq!((window.from(), window.end(), window.entry_bytes()), (0, 4, 6));
        assert_eq!(window.at(3, 2), None);
        assert_eq!(window.at(3, 5), None);
    }

    #[test]
    fn pages_have_as_many_bytes_as_they_need() {
        for page_bytes in 2..=4 {
            let window = Window::empty(4, page_bytes).at(1, 2).unwrap();
            let mut entry = [0; 5];
            for number in [0, 1, 0xFFFE, u32::MAX >> (8 * (4 - page_bytes)) as u32 >> 1] {
                window.put_page(&mut entry, number);
                assert_eq!(window.page_in(&entry), number);
            }
            window.put_page(&mut entry, u32::MAX);
            assert_eq!(window.page_in(&entry), u32::MAX);
            entry[0] = 5;
            assert_eq!(*window.separator_in(&[7, 8, 9, 1], &entry), [7, 5, 0, 0]);
        }
    }
}
