//! The directory: which page owns which range of keys, in RAM.
//!
//! Each entry has a separator, the lowest key of a range, and the page that owns the range, which
//! ends where the next entry begins. The first separator is the lowest key of all. So each key is
//! in exactly one range. While a mount looks for the owners, and where pages are lost, a range has
//! no owner. Nothing is read or written here.
//!
//! Of each separator only a *window* is stored, the same for all: not the bytes with which all of
//! them begin, and not those at the end that are zero in all of them. Splits choose separators that
//! fit the window (`change.rs`), so that random keys take as many bytes as the number of leaves
//! needs, however long they are.
//!
//! RAM: a key, and the window and 2 to 4 bytes for each leaf. The window is never wider than a key.
//! Without some of its separators a directory has no wider window, so that a mount, which finds
//! them one by one, needs no more RAM than the index had.

use core::cmp::Ordering;

use super::separator::{Separator, Window, needed, shared};
use crate::flash::PageNumber;
use crate::log::checkpoint::IS_BUILT;

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
///
/// Behind the bytes in `parts` it is zero. Only trails need the sum, and those only checkpoints.
fn number_of(parts: [&[u8]; 2], key_bytes: usize) -> u32 {
    if !IS_BUILT {
        return 0;
    }
    let zeros = key_bytes - parts[0].len() - parts[1].len();
    let bytes = parts.into_iter().flatten().copied().chain(core::iter::repeat_n(0, zeros));
    bytes.fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The ranges of keys and their pages, in the caller's RAM.
pub(super) struct Directory<'b> {
    /// A separator, with whose first bytes all begin, and the entries.
    ram: &'b mut [u8],
    window: Window,
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
    /// Bytes of RAM for `leaves` leaves, whatever their keys.
    pub const fn ram_needed(key_bytes: usize, pages: u32, leaves: u32) -> usize {
        key_bytes + leaves as usize * (key_bytes + page_bytes(pages))
    }

    /// The most leaves in this many bytes of RAM.
    ///
    /// They have the shortest separators possible.
    pub fn leaves_most(key_bytes: usize, pages: u32, ram_bytes: usize) -> u32 {
        let room = ram_bytes.saturating_sub(key_bytes);
        // The number of separators that differ in this many bytes; the first range has none.
        let differing = |width: usize| 1usize.checked_shl(8 * width as u32).unwrap_or(usize::MAX);
        let most = (0..=key_bytes.min(size_of::<u32>()))
            .map(|width| {
                (room / (width + page_bytes(pages))).min(differing(width).saturating_add(1))
            })
            .max();
        most.unwrap_or(0).min(u32::MAX as usize) as u32
    }

    /// A directory of which nothing is known, in all of `ram`.
    pub fn new(ram: &'b mut [u8], key_bytes: usize, pages: u32) -> Self {
        let window = Window::empty(key_bytes, page_bytes(pages));
        let mut directory = Self { ram, window, len: 0, sum: 0 };
        directory.clear();
        directory
    }

    /// Makes the directory one range of all keys, which no page owns.
    pub fn clear(&mut self) {
        (self.len, self.sum) = (1, 0);
        self.begin(None);
    }

    /// Makes `page` the owner of the only range.
    fn begin(&mut self, page: Option<PageNumber>) {
        self.window = self.window.at(0, 0).unwrap_or(self.window);
        self.ram[..self.window.key_bytes()].fill(0);
        self.set_page(0, page);
    }

    /// Ranges.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Ranges that there is room for, if all separators fit the window.
    pub const fn capacity(&self) -> usize {
        (self.ram.len() - self.window.key_bytes()) / self.window.entry_bytes()
    }

    /// A sum over all separators.
    ///
    /// Directories whose ranges differ have different sums, but for one pair in 2^32.
    pub const fn sum(&self) -> u32 {
        self.sum
    }

    /// Which bytes of the separators are stored.
    pub const fn window(&self) -> Window {
        self.window
    }

    /// A separator, and behind it the entries, one after the other.
    pub fn stored(&self) -> &[u8] {
        &self.ram[..self.window.key_bytes() + self.len * self.window.entry_bytes()]
    }

    /// The bytes with which all separators begin but the first.
    fn first(&self) -> &[u8] {
        &self.ram[..self.window.from()]
    }

    /// Where the entry of `rank` begins.
    const fn at(&self, rank: usize) -> usize {
        self.window.key_bytes() + rank * self.window.entry_bytes()
    }

    fn entry(&self, rank: usize) -> &[u8] {
        &self.ram[self.at(rank)..][..self.window.entry_bytes()]
    }

    /// The lowest key of the range at `rank`.
    pub fn separator(&self, rank: usize) -> Separator {
        match rank {
            0 => Separator::lowest(self.window.key_bytes()),
            rank => {
                self.window.separator_in(&self.ram[..self.window.key_bytes()], self.entry(rank))
            }
        }
    }

    /// The end of the range at `rank`; `None` if it has none.
    pub fn end(&self, rank: usize) -> Option<Separator> {
        (rank + 1 < self.len).then(|| self.separator(rank + 1))
    }

    /// The page that owns the range at `rank`.
    pub fn page(&self, rank: usize) -> Option<PageNumber> {
        let number = self.window.page_in(self.entry(rank));
        (number != u32::MAX).then_some(PageNumber(number))
    }

    /// Makes `page` the owner of the range at `rank`.
    pub fn set_page(&mut self, rank: usize, page: Option<PageNumber>) {
        let number = page.map_or(u32::MAX, |page| page.0);
        let (at, window) = (self.at(rank), self.window);
        window.put_page(&mut self.ram[at..at + window.entry_bytes()], number);
    }

    /// How the separator at `rank` compares with `key`, which may be short.
    fn compare(&self, rank: usize, key: &[u8]) -> Ordering {
        let (first, stored) = match rank {
            0 => Default::default(),
            rank => (self.first(), &self.entry(rank)[..self.window.width()]),
        };
        let (head, rest) = key.split_at(key.len().min(first.len()));
        let (middle, tail) = rest.split_at(rest.len().min(stored.len()));
        let order = first.cmp(head).then_with(|| stored.cmp(middle));
        order.then_with(|| self.order_of_rest(tail, key))
    }

    /// The rank of the range with `key`, which may be shorter than a key.
    pub fn find(&self, key: &[u8]) -> usize {
        let (head, rest) = key.split_at(key.len().min(self.window.from()));
        match self.first().cmp(head) {
            Ordering::Less => return self.len - 1,
            Ordering::Greater => return 0,
            Ordering::Equal => {}
        }
        let (middle, tail) = rest.split_at(rest.len().min(self.window.width()));
        // Whether a separator of these bytes, and zeros behind them, is not above the key.
        let holds_equal = self.order_of_rest(tail, key) != Ordering::Greater;
        let (mut low, mut high) = (0, self.len);
        while high - low > 1 {
            let rank = low + (high - low) / 2;
            match self.entry(rank)[..self.window.width()].cmp(middle) {
                Ordering::Greater => high = rank,
                Ordering::Equal if !holds_equal => high = rank,
                _ => low = rank,
            }
        }
        low
    }

    /// How the zeros at the end of a separator compare with the `tail` of a key.
    fn order_of_rest(&self, tail: &[u8], key: &[u8]) -> Ordering {
        match tail.iter().any(|&byte| byte != 0) {
            true => Ordering::Less,
            false => self.window.key_bytes().cmp(&key.len()),
        }
    }

    /// Whether the range at `rank` begins below `key`.
    fn begins_below(&self, rank: usize, key: &[u8]) -> bool {
        self.compare(rank, key) == Ordering::Less
    }

    /// Whether the range at `rank` begins above `key`, a whole key.
    ///
    /// It is not the first range.
    pub fn begins_above(&self, rank: usize, key: &[u8]) -> bool {
        let (head, rest) = key.split_at(self.window.from());
        let stored = &self.entry(rank)[..self.window.width()];
        // No key is below the zeros at the end.
        self.first().cmp(head).then_with(|| stored.cmp(&rest[..stored.len()])) == Ordering::Greater
    }

    /// Whether the range at `rank` ends below the end of another one.
    fn ends_below(&self, rank: usize, high: Option<&[u8]>) -> bool {
        rank + 1 < self.len && high.is_none_or(|high| self.begins_below(rank + 1, high))
    }

    /// The rank of a range of `page`, from the range of `low` on and below `high`.
    pub fn rank_of(&self, page: PageNumber, (low, high): (&[u8], Option<&[u8]>)) -> Option<usize> {
        (self.find(low)..self.len)
            .take_while(|&rank| high.is_none_or(|high| self.begins_below(rank, high)))
            .find(|&rank| self.page(rank) == Some(page))
    }

    /// Whether any range is owned by `page`.
    pub fn has(&self, page: PageNumber) -> bool {
        (0..self.len).any(|rank| self.page(rank) == Some(page))
    }

    /// The window that also fits `separator`.
    fn window_with(&self, separator: &[u8]) -> Window {
        if self.len == 1 {
            // All of it is in front of the entries.
            let needed = needed(separator) as u8;
            return self.window.at(needed, needed).unwrap_or(self.window);
        }
        self.window.with(&self.ram[..self.window.key_bytes()], separator)
    }

    /// Whether a separator of the first `needed` bytes of `key` makes no entry longer.
    pub fn suits(&self, key: &[u8], needed: usize) -> bool {
        let from = self.window.from();
        self.len > 1 && needed <= self.window.end() && shared(self.first(), &key[..needed]) == from
    }

    /// Whether there is room for `more` ranges, of which one has this separator.
    pub fn has_room(&self, separator: &[u8], more: usize) -> bool {
        let entry_bytes = self.window_with(separator).entry_bytes();
        self.window.key_bytes() + (self.len + more) * entry_bytes <= self.ram.len()
    }

    /// Whether there is room for two more ranges.
    ///
    /// So it is in any index that had as much RAM before.
    pub fn has_room_beside(&mut self) -> bool {
        if self.len + 2 > self.capacity() {
            // It may be wide for pages that were there meanwhile.
            self.narrow();
        }
        self.len + 2 <= self.capacity()
    }

    /// Makes the window as narrow as the separators allow.
    #[cold]
    #[inline(never)]
    pub fn narrow(&mut self) {
        if self.len == 1 {
            return self.begin(self.page(0));
        }
        let first = self.separator(1);
        let (mut from, mut end) = (first.len(), needed(&first));
        for rank in 2..self.len {
            let separator = self.separator(rank);
            from = from.min(shared(&first, &separator));
            end = end.max(needed(&separator));
        }
        // One separator is stored in front of the entries.
        from = from.min(end);
        let Some(window) = self.window.at(from as u8, end as u8) else { return };
        let before = self.window;
        let (skipped, page_bytes) =
            (from.saturating_sub(before.from()), before.entry_bytes() - before.width());
        for rank in 0..self.len {
            let (source, target) =
                (self.at(rank), before.key_bytes() + rank * window.entry_bytes());
            let kept = source + skipped..source + skipped + window.width();
            self.ram.copy_within(kept, target);
            let page = source + before.width();
            self.ram.copy_within(page..page + page_bytes, target + window.width());
        }
        self.ram[..first.len()].copy_from_slice(&first);
        self.window = window;
    }

    /// Widens the window, for which there is room.
    #[cold]
    #[inline(never)]
    fn widen(&mut self, window: Window) {
        let before = self.window;
        let page_bytes = before.entry_bytes() - before.width();
        let more = before.from() - window.from();
        for rank in (0..self.len).rev() {
            let (source, target) =
                (self.at(rank), before.key_bytes() + rank * window.entry_bytes());
            let page = source + before.width();
            self.ram.copy_within(page..page + page_bytes, target + window.width());
            self.ram.copy_within(source..page, target + more);
            self.ram.copy_within(window.from()..before.from(), target);
            self.ram[target + more + before.width()..target + window.width()].fill(0);
        }
        self.window = window;
        // The first range has no separator.
        let (at, width) = (self.at(0), window.width());
        self.ram[at..at + width].fill(0);
    }

    /// Divides the range before `rank` at `separator`: `page` owns the upper part.
    ///
    /// Returns `false`, and changes nothing, if there is no room.
    pub fn insert(&mut self, rank: usize, separator: &[u8], page: Option<PageNumber>) -> bool {
        if !self.has_room(separator, 1) {
            return false;
        }
        let window = self.window_with(separator);
        if self.len == 1 {
            self.ram[..separator.len()].copy_from_slice(separator);
            // The first range has no separator, and its page stays where it is.
            let page = self.page(0);
            self.window = window;
            self.set_page(0, page);
        } else if window != self.window {
            self.widen(window);
        }
        let (at, end) = (self.at(rank), self.at(self.len));
        self.ram.copy_within(at..end, at + window.entry_bytes());
        self.ram[at..at + window.width()].copy_from_slice(&separator[window.from()..window.end()]);
        self.len += 1;
        self.sum = self.sum.wrapping_add(number_of([separator, &[]], separator.len()));
        self.set_page(rank, page);
        true
    }

    /// Removes the range at `rank`: the one before it takes its keys.
    pub fn remove(&mut self, rank: usize) {
        let stored = &self.entry(rank)[..self.window.width()];
        let number = number_of([self.first(), stored], self.window.key_bytes());
        self.sum = self.sum.wrapping_sub(number);
        let (at, end) = (self.at(rank), self.at(self.len));
        self.ram.copy_within(at + self.window.entry_bytes()..end, at);
        self.len -= 1;
    }

    /// Gives `page` the whole range from `low` to `high`, whoever owns it.
    ///
    /// Returns `false` if there is no room for the ranges on both sides of it.
    pub fn cover(&mut self, (low, high): (&[u8], Option<&[u8]>), page: PageNumber) -> bool {
        if let Some(high) = high {
            let rank = self.find(high);
            if self.begins_below(rank, high) && !self.insert(rank + 1, high, self.page(rank)) {
                return false;
            }
        }
        let mut rank = self.find(low);
        if self.begins_below(rank, low) {
            rank += 1;
            if !self.insert(rank, low, None) {
                return false;
            }
        }
        while self.ends_below(rank, high) {
            self.remove(rank + 1);
        }
        self.set_page(rank, Some(page));
        true
    }

    /// Whether every key has an owner.
    pub fn is_whole(&self) -> bool {
        (0..self.len).all(|rank| self.page(rank).is_some())
    }

    /// Gives `page` whatever of the range from `low` to `high` has no owner.
    ///
    /// Called for pages from the newest to the oldest. Each range without an owner ends up with at
    /// least one, so there are never more ranges than at the end.
    pub fn paint(&mut self, (low, high): (&[u8], Option<&[u8]>), page: PageNumber) -> Painted {
        let (mut painted, mut last) = (Painted::Nothing, None);
        let mut rank = self.find(low);
        while rank < self.len && high.is_none_or(|high| self.begins_below(rank, high)) {
            if self.page(rank).is_some() {
                rank += 1;
                continue;
            }
            let begins_below = self.begins_below(rank, low);
            if let Some(high) = high
                && (rank + 1 == self.len || self.begins_above(rank + 1, high))
                && !self.insert(rank + 1, high, None)
            {
                return Painted::Full;
            }
            if begins_below {
                rank += 1;
                if !self.insert(rank, low, None) {
                    return Painted::Full;
                }
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
        let mut ram = [0; 1 + 5 * 3];
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
        let mut ram = [0; 1 + 2 * 3];
        let mut directory = Directory::new(&mut ram, 1, 9);
        assert_eq!(directory.paint((&[3], None), PageNumber(1)), Painted::Whole);
        assert_eq!(directory.paint((&[0], Some(&[2])), PageNumber(1)), Painted::Full);
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
                assert!(directory.insert(directory.len(), &[at], Some(PageNumber(page))));
            }
            let high = high.map(|high| [high]);
            let range = (&[low][..], high.as_ref().map(|high| &high[..]));
            assert!(directory.cover(range, PageNumber(9)));
            let sum = expected[1..].iter().map(|&(low, _)| number_of([&[low], &[]], 1));
            assert_eq!(directory.sum(), sum.fold(0, u32::wrapping_add));
            let ranks = 0..directory.len();
            let shown = ranks.map(|at| (directory.separator(at)[0], directory.page(at).unwrap().0));
            assert!(shown.eq(expected.iter().copied()), "{expected:?}");
        }
    }

    /// A small generator of numbers.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (self.0 >> 33) as usize % end
        }
    }

    #[test]
    fn a_directory_is_as_a_list_of_whole_separators_whatever_its_window() {
        const KEY: usize = 4;
        let mut numbers = Numbers(1);
        for round in 0..60 {
            let mut ram = [0xA5; 400];
            let mut directory =
                Directory::new(&mut ram, KEY, [99, 0x1_0000, 0x100_0000][round % 3]);
            directory.set_page(0, Some(PageNumber(0)));
            let mut listed = [([0; KEY], 0); 200];
            let mut len = 1;
            // Some rounds have keys that begin, or end, alike.
            let (from, end) = (round / 3 % 3, KEY - round / 9 % 3);
            for step in 0..300 {
                let mut key = [7; KEY];
                key[end..].fill(0);
                for byte in &mut key[from..end] {
                    *byte = numbers.below(5) as u8;
                }
                let rank = directory.find(&key);
                let known = listed[..len].partition_point(|(low, _)| *low <= key) - 1;
                assert_eq!(rank, known, "{key:?}");
                let short = numbers.below(KEY);
                let known = listed[..len].partition_point(|(low, _)| low[..] <= key[..short]);
                assert_eq!(directory.find(&key[..short]), known.saturating_sub(1));
                match numbers.below(3) {
                    0 if rank > 0 => {
                        directory.remove(rank);
                        listed.copy_within(rank + 1..len, rank);
                        len -= 1;
                    }
                    1 if step % 7 == 0 => directory.narrow(),
                    _ if listed[rank].0 == key => {
                        directory.set_page(rank, Some(PageNumber(step)));
                        listed[rank].1 = step;
                    }
                    _ => {
                        let has_room = directory.has_room(&key, 1);
                        let suits = directory.suits(&key, needed(&key));
                        let before = directory.window();
                        let page = Some(PageNumber(step));
                        assert_eq!(directory.insert(rank + 1, &key, page), has_room);
                        assert!(!suits || directory.window() == before);
                        if has_room {
                            listed.copy_within(rank + 1..len, rank + 2);
                            listed[rank + 1] = (key, step);
                            len += 1;
                        }
                    }
                }
                assert_eq!(directory.len(), len);
                assert!(len <= directory.capacity());
                for (rank, (low, page)) in listed[..len].iter().enumerate() {
                    assert_eq!(*directory.separator(rank), *low, "round {round}, step {step}");
                    assert_eq!(directory.page(rank), Some(PageNumber(*page)));
                }
            }
            // The narrowest window is that of the separators put in again.
            directory.narrow();
            let mut other = [0; 400];
            let mut again = Directory::new(&mut other, KEY, [99, 0x1_0000, 0x100_0000][round % 3]);
            again.set_page(0, Some(PageNumber(listed[0].1)));
            for (rank, (low, page)) in listed[..len].iter().enumerate().skip(1) {
                assert!(again.insert(rank, low, Some(PageNumber(*page))));
            }
            assert_eq!((again.window(), again.sum()), (directory.window(), directory.sum()));
        }
    }

    #[test]
    fn ram_holds_the_leaves_that_are_promised_and_more_where_separators_are_short() {
        for (pages, page_bytes) in [(0xFFFF, 2), (0x1_0000, 3), (0xFF_FFFF, 3), (0x100_0000, 4)] {
            assert_eq!(Directory::ram_needed(4, pages, 10), 4 + 10 * (4 + page_bytes));
            let mut ram = [0; 4 + 60];
            let mut directory = Directory::new(&mut ram, 4, pages);
            assert_eq!(directory.page(0), None);
            directory.set_page(0, Some(PageNumber(pages - 1)));
            assert_eq!(directory.page(0), Some(PageNumber(pages - 1)));
            let mut leaves = 1;
            while directory.insert(leaves, &[0, leaves as u8, 0, 0], None) {
                leaves += 1;
            }
            assert_eq!(leaves, 60 / (1 + page_bytes));
            assert_eq!(Directory::leaves_most(4, pages, 64) as usize, leaves);
        }
        // 257 leaves have separators of a byte, and more need two.
        assert_eq!(Directory::leaves_most(4, 99, 4 + 3 * 300), 257);
        assert_eq!(Directory::leaves_most(4, 99, 4 + 4 * 300), 300);
        assert_eq!(Directory::leaves_most(1, 99, 4096), 257);
    }
}
