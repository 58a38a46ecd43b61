//! The directory: which page owns which range of keys, in RAM.
//!
//! Each entry has a separator, the lowest key of a range, and the page that owns the range, which
//! ends where the next entry begins. The first separator is the lowest key of all. So each key is
//! in exactly one range. While a mount looks for the owners, and where pages are lost, a range has
//! no owner. Nothing is read or written here.
//!
//! RAM: a key and 2 to 4 bytes for each leaf.

use crate::bytes::bisect;
use crate::flash::PageNumber;

/// Bytes of the number of a page on a chip with `pages` pages.
const fn page_bytes(pages: u32) -> usize {
    // The highest number means "no page".
    match pages {
        0..=0xFFFF => 2,
        0x1_0000..=0xFF_FFFF => 3,
        _ => 4,
    }
}

/// The number of a separator in the sum over all: a hash (FNV-1a).
fn number_of(separator: &[u8]) -> u32 {
    separator
        .iter()
        .fold(0x811C_9DC5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The ranges of keys and their pages, in the caller's RAM.
pub(super) struct Directory<'b> {
    ram: &'b mut [u8],
    key_bytes: usize,
    entry_bytes: usize,
    len: usize,
    /// The sum of a number for each separator but the first.
    sum: u32,
}

/// What a page received of the range for which it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Painted {
    /// Nothing: newer pages own all of it.
    Nothing,
    /// One range.
    Whole,
    /// Several ranges with those of newer pages between them: some page is lost.
    Apart,
    /// There is no room for one more range.
    Full,
}

impl<'b> Directory<'b> {
    /// Bytes of RAM for `leaves` leaves.
    pub const fn ram_needed(key_bytes: usize, pages: u32, leaves: u32) -> usize {
        leaves as usize * (key_bytes + page_bytes(pages))
    }

    /// A directory of which nothing is known, in all of `ram`.
    pub fn new(ram: &'b mut [u8], key_bytes: usize, pages: u32) -> Self {
        let entry_bytes = key_bytes + page_bytes(pages);
        let mut directory = Self { ram, key_bytes, entry_bytes, len: 0, sum: 0 };
        directory.clear();
        directory
    }

    /// Makes the directory one range of all keys, which no page owns.
    pub fn clear(&mut self) {
        (self.len, self.sum) = (1, 0);
        self.ram[..self.key_bytes].fill(0);
        self.ram[self.key_bytes..self.entry_bytes].fill(0xFF);
    }

    /// Ranges.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Ranges that there is room for.
    pub const fn capacity(&self) -> usize {
        self.ram.len() / self.entry_bytes
    }

    /// Bytes of an entry: the separator, and the number of the page.
    pub const fn entry_bytes(&self) -> usize {
        self.entry_bytes
    }

    /// A sum over all separators.
    ///
    /// Directories whose ranges differ have different sums, but for one pair in 2^32.
    pub const fn sum(&self) -> u32 {
        self.sum
    }

    /// The entries, one after the other.
    pub fn entries(&self) -> &[u8] {
        &self.ram[..self.len * self.entry_bytes]
    }

    fn entry(&self, rank: usize) -> &[u8] {
        &self.ram[rank * self.entry_bytes..][..self.entry_bytes]
    }

    /// The lowest key of the range at `rank`.
    pub fn separator(&self, rank: usize) -> &[u8] {
        &self.entry(rank)[..self.key_bytes]
    }

    /// The end of the range at `rank`; `None` if it has none.
    pub fn end(&self, rank: usize) -> Option<&[u8]> {
        (rank + 1 < self.len).then(|| self.separator(rank + 1))
    }

    /// The page that owns the range at `rank`.
    pub fn page(&self, rank: usize) -> Option<PageNumber> {
        self.page_in(self.entry(rank))
    }

    /// The page in the bytes of an entry.
    fn page_in(&self, entry: &[u8]) -> Option<PageNumber> {
        let stored = &entry[self.key_bytes..self.entry_bytes];
        let mut bytes = [0; 4];
        bytes[..stored.len()].copy_from_slice(stored);
        let number = u32::from_le_bytes(bytes);
        (number != u32::MAX >> (8 * (4 - stored.len()))).then_some(PageNumber(number))
    }

    /// Makes `page` the owner of the range at `rank`.
    pub fn set_page(&mut self, rank: usize, page: Option<PageNumber>) {
        let number = page.map_or(u32::MAX, |page| page.0).to_le_bytes();
        let at = rank * self.entry_bytes;
        let bytes = &mut self.ram[at + self.key_bytes..at + self.entry_bytes];
        bytes.copy_from_slice(&number[..self.entry_bytes - self.key_bytes]);
    }

    /// The rank of the range with `key`, which may be shorter than a key.
    pub fn find(&self, key: &[u8]) -> usize {
        match bisect(self.len, |rank| self.separator(rank), key) {
            Ok(rank) => rank,
            Err(rank) => rank.saturating_sub(1),
        }
    }

    /// The rank of a range of `page`, from the range of `low` on and below `high`.
    pub fn rank_of(&self, page: PageNumber, (low, high): (&[u8], Option<&[u8]>)) -> Option<usize> {
        (self.find(low)..self.len)
            .take_while(|&rank| high.is_none_or(|high| self.separator(rank) < high))
            .find(|&rank| self.page(rank) == Some(page))
    }

    /// Whether any range is owned by `page`.
    pub fn has(&self, page: PageNumber) -> bool {
        (0..self.len).any(|rank| self.page(rank) == Some(page))
    }

    /// Divides the range before `rank` at `separator`: `page` owns the upper part.
    ///
    /// There must be room.
    pub fn insert(&mut self, rank: usize, separator: &[u8], page: Option<PageNumber>) {
        let (at, end) = (rank * self.entry_bytes, self.len * self.entry_bytes);
        self.ram.copy_within(at..end, at + self.entry_bytes);
        self.ram[at..at + self.key_bytes].copy_from_slice(separator);
        self.len += 1;
        self.sum = self.sum.wrapping_add(number_of(separator));
        self.set_page(rank, page);
    }

    /// Removes the range at `rank`: the one before it takes its keys.
    pub fn remove(&mut self, rank: usize) {
        self.sum = self.sum.wrapping_sub(number_of(self.separator(rank)));
        let (at, end) = (rank * self.entry_bytes, self.len * self.entry_bytes);
        self.ram.copy_within(at + self.entry_bytes..end, at);
        self.len -= 1;
    }

    /// Gives `page` the whole range from `low` to `high`, whoever owns it.
    ///
    /// Returns `false` if there is no room for two more ranges.
    pub fn cover(&mut self, (low, high): (&[u8], Option<&[u8]>), page: PageNumber) -> bool {
        if self.len + 2 > self.capacity() {
            return false;
        }
        if let Some(high) = high {
            let rank = self.find(high);
            if self.separator(rank) < high {
                self.insert(rank + 1, high, self.page(rank));
            }
        }
        let mut rank = self.find(low);
        if self.separator(rank) < low {
            rank += 1;
            self.insert(rank, low, None);
        }
        while self.end(rank).is_some_and(|end| high.is_none_or(|high| end < high)) {
            self.remove(rank + 1);
        }
        self.set_page(rank, Some(page));
        true
    }

    /// Whether every key has an owner.
    pub fn is_whole(&self) -> bool {
        (0..self.len).all(|rank| self.page(rank).is_some())
    }

    /// Gives the page of an entry that was stored whatever of its range has no owner.
    ///
    /// Its range ends where the entry `next` begins. Other bytes than those of an entry are
    /// [`Painted::Full`].
    pub fn paint_entry(&mut self, entry: &[u8], next: Option<&[u8]>, pages: u32) -> Painted {
        let low = &entry[..self.key_bytes];
        let high = next.map(|next| &next[..self.key_bytes]);
        match self.page_in(entry) {
            // That range was lost before.
            None => Painted::Nothing,
            Some(page) if page.0 < pages && high.is_none_or(|high| low < high) => {
                self.paint((low, high), page)
            }
            Some(_) => Painted::Full,
        }
    }

    /// Gives `page` whatever of the range from `low` to `high` has no owner.
    ///
    /// Called for pages from the newest to the oldest. Each range without an owner ends up with at
    /// least one, so there are never more ranges than at the end.
    pub fn paint(&mut self, (low, high): (&[u8], Option<&[u8]>), page: PageNumber) -> Painted {
        let (mut painted, mut last) = (Painted::Nothing, None);
        let mut rank = self.find(low);
        while rank < self.len && high.is_none_or(|high| self.separator(rank) < high) {
            if self.page(rank).is_some() {
                rank += 1;
                continue;
            }
            let begins_below = self.separator(rank) < low;
            let ends_above = match (high, self.end(rank)) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(high), Some(end)) => high < end,
            };
            let more = usize::from(begins_below) + usize::from(ends_above);
            if self.len + more > self.capacity() {
                return Painted::Full;
            }
            if let Some(high) = high.filter(|_| ends_above) {
                self.insert(rank + 1, high, None);
            }
            if begins_below {
                rank += 1;
                self.insert(rank, low, None);
            }
            self.set_page(rank, Some(page));
            let is_next = last.is_none_or(|last| last + 1 == rank);
            painted =
                if is_next && painted != Painted::Apart { Painted::Whole } else { Painted::Apart };
            last = Some(rank);
            rank += 1;
        }
        painted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(directory: &Directory<'_>, expected: &[(u8, Option<u32>)]) {
        let shown = (0..directory.len())
            .map(|rank| (directory.separator(rank)[0], directory.page(rank).map(|page| page.0)));
        assert!(shown.eq(expected.iter().copied()), "not {expected:?}");
    }

    #[test]
    fn the_newest_page_owns_and_older_ones_fill_what_is_left() {
        let mut ram = [0; 5 * 3];
        let mut directory = Directory::new(&mut ram, 1, 9);
        let mut paint = |low: u8, high: Option<u8>, page| {
            let high = high.map(|high| [high]);
            directory.paint((&[low], high.as_ref().map(|high| &high[..])), PageNumber(page))
        };
        assert_eq!(paint(10, Some(20), 1), Painted::Whole);
        assert_eq!(paint(12, Some(18), 2), Painted::Nothing);
        assert_eq!(paint(15, Some(40), 3), Painted::Whole);
        assert_eq!(paint(0, Some(90), 4), Painted::Apart);
        assert_eq!(paint(0, None, 5), Painted::Whole);
        let owners = [(0, Some(4)), (10, Some(1)), (20, Some(3)), (40, Some(4)), (90, Some(5))];
        expect(&directory, &owners);
        assert!(directory.is_whole() && directory.has(PageNumber(4)));
        for (key, rank) in [(0, 0), (9, 0), (10, 1), (39, 2), (40, 3), (89, 3), (90, 4), (255, 4)] {
            assert_eq!(directory.find(&[key]), rank);
        }
        assert_eq!(directory.rank_of(PageNumber(4), (&[5], None)), Some(0));
        assert_eq!(directory.rank_of(PageNumber(4), (&[10], None)), Some(3));
        assert_eq!(directory.rank_of(PageNumber(4), (&[10], Some(&[40]))), None);
    }

    #[test]
    fn no_more_ranges_are_kept_than_there_is_room_for() {
        let mut ram = [0; 2 * 3];
        let mut directory = Directory::new(&mut ram, 1, 9);
        assert_eq!(directory.paint((&[3], Some(&[4])), PageNumber(1)), Painted::Full);
        assert_eq!(directory.paint((&[3], None), PageNumber(1)), Painted::Whole);
        assert_eq!(directory.paint((&[0], Some(&[9])), PageNumber(2)), Painted::Whole);
        expect(&directory, &[(0, Some(2)), (3, Some(1))]);
    }

    #[test]
    fn a_page_that_covers_a_range_leaves_the_rest_to_the_owners_before() {
        for (low, high, expected) in [
            (10, Some(20), [(0, 1), (10, 9), (20, 3), (30, 4)].as_slice()),
            (10, Some(30), &[(0, 1), (10, 9), (30, 4)]),
            (12, Some(20), &[(0, 1), (10, 2), (12, 9), (20, 3), (30, 4)]),
            (10, Some(15), &[(0, 1), (10, 9), (15, 2), (20, 3), (30, 4)]),
            (0, None, &[(0, 9)]),
            (35, None, &[(0, 1), (10, 2), (20, 3), (30, 4), (35, 9)]),
        ] {
            let mut ram = [0; 8 * 3];
            let mut directory = Directory::new(&mut ram, 1, 99);
            directory.set_page(0, Some(PageNumber(1)));
            for (at, page) in [(10, 2), (20, 3), (30, 4)] {
                directory.insert(directory.len(), &[at], Some(PageNumber(page)));
            }
            let high = high.map(|high| [high]);
            let range = (&[low][..], high.as_ref().map(|high| &high[..]));
            assert!(directory.cover(range, PageNumber(9)));
            let sum = expected[1..].iter().map(|&(low, _)| number_of(&[low]));
            assert_eq!(directory.sum(), sum.fold(0, u32::wrapping_add));
            let ranks = 0..directory.len();
            let shown = ranks.map(|at| (directory.separator(at)[0], directory.page(at).unwrap().0));
            assert!(shown.eq(expected.iter().copied()), "{expected:?}");
        }
    }

    #[test]
    fn page_numbers_take_as_many_bytes_as_they_need() {
        for (pages, bytes) in [(0xFFFF, 2), (0x1_0000, 3), (0xFF_FFFF, 3), (0x100_0000, 4)] {
            assert_eq!(Directory::ram_needed(4, pages, 10), 10 * (4 + bytes));
            let mut ram = [0; 16];
            let mut directory = Directory::new(&mut ram, 4, pages);
            assert_eq!(directory.page(0), None);
            directory.set_page(0, Some(PageNumber(pages - 1)));
            assert_eq!(directory.page(0), Some(PageNumber(pages - 1)));
        }
    }
}
