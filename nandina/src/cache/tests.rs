//! Compares the caches and their parts with plain models.

use proptest::prelude::*;

use super::lookup::{self, Lookup};
use super::set::{self, Pages};
use super::*;

const FRAME: usize = 4;

type Both<'b> = Cache<'b, Staging<'b>>;

fn relink(_: &mut [u8], _: &PageLayout, _: &Medium, _: u8, _: u8, _: &Resolve<'_>) {}

fn bytes_of(page: u32) -> [u8; FRAME] {
    page.to_le_bytes()
}

proptest! {
    #[test]
    fn a_lookup_finds_what_is_in_it(
        steps in proptest::collection::vec((0usize..50, 0u32..200), 1..500),
        slots in 1usize..50,
    ) {
        let mut places = [0; lookup::bytes_for(50)];
        let mut table = Lookup::new(&mut places[..lookup::bytes_for(slots)]);
        let mut keys = [None; 50];
        for (slot, key) in steps {
            let slot = slot % slots;
            if let Some(old) = keys[slot] {
                table.remove(old, |slot| keys[slot].unwrap());
                keys[slot] = None;
            }
            if !keys.contains(&Some(key)) {
                table.insert(key, slot);
                keys[slot] = Some(key);
            }
            for key in 0..200 {
                let known = keys.iter().position(|&its| its == Some(key));
                prop_assert_eq!(table.find(key, |slot| keys[slot].unwrap()), known);
            }
        }
    }

    #[test]
    fn a_set_gives_its_pages_in_order(
        pages in 1u32..5000,
        members in proptest::collection::vec(any::<u32>(), 0..300),
    ) {
        let mut ram = [0xA5; set::ram_needed(5000) + 1];
        let (mut set, rest) = Pages::new(&mut ram[..set::ram_needed(pages) + 1], pages);
        prop_assert_eq!(rest.len(), 1);
        let mut model = [false; 5000];
        for page in members.into_iter().map(|member| member % pages) {
            set.insert(PageNumber(page));
            model[page as usize] = true;
            prop_assert_eq!(set.len() as usize, model.iter().filter(|&&is_in| is_in).count());
        }
        let mut from = 0;
        for page in (0..pages).filter(|&page| model[page as usize]) {
            prop_assert_eq!(set.take(from), Some(PageNumber(page)));
            from = page;
        }
        prop_assert_eq!((set.take(0), set.len()), (None, 0));
    }

    /// Compares both caches with lists of pages in the order of eviction.
    #[test]
    fn they_hold_what_lists_hold(
        steps in proptest::collection::vec((0u8..7, 0u32..40, any::<bool>()), 1..600),
        reads in 0usize..9,
        writes in 0usize..9,
    ) {
        let mut ram = [0xA5; ram_needed(FRAME, 9, 9, 40) + 1];
        let ram = &mut ram[..ram_needed(FRAME, reads, writes, 40) + 1];
        let (mut cache, rest) = Both::new(ram, FRAME, reads, writes, 40, relink);
        prop_assert_eq!(rest.len(), 1);
        let mut model = Model { reads: (reads, Row::default()), writes, ..Model::default() };
        for (step, page, root) in steps {
            model.step(&mut cache, step, page, root)?;
            model.check(&mut cache)?;
        }
    }
}

/// A list of items.
#[derive(Clone, Copy)]
struct Row<T> {
    items: [T; 600],
    len: usize,
}

impl<T: Copy + Default> Default for Row<T> {
    fn default() -> Self {
        Self { items: [T::default(); 600], len: 0 }
    }
}

impl<T> core::ops::Deref for Row<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[..self.len]
    }
}

impl<T: Copy> Row<T> {
    fn push(&mut self, item: T) {
        self.items[self.len] = item;
        self.len += 1;
    }

    fn remove(&mut self, at: usize) -> T {
        let item = self[at];
        self.items.copy_within(at + 1..self.len, at);
        self.len -= 1;
        item
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        while let Some(at) = self.iter().position(|item| !keeps(item)) {
            self.remove(at);
        }
    }
}

/// The content of the caches. Staged pages have their numbers, others their places.
#[derive(Default)]
struct Model {
    reads: (usize, Row<u32>),
    writes: usize,
    clean: Row<u32>,
    staged: Row<u32>,
    superseded: Row<u32>,
    /// Former numbers and places of pages programmed since the last operation ended.
    renamed: Row<(u32, u32)>,
    root: Option<u32>,
}

impl Model {
    fn step(
        &mut self,
        cache: &mut Both<'_>,
        step: u8,
        page: u32,
        root: bool,
    ) -> Result<(), TestCaseError> {
        let at = PageNumber(page);
        match step {
            0 => {
                if cache.get(at).is_none() {
                    cache.remember(at, &bytes_of(page));
                    self.read(page);
                } else if let Some(known) = self.reads.1.iter().position(|&its| its == page) {
                    self.reads.1.remove(known);
                    self.reads.1.push(page);
                }
            }
            1 if self.staged.is_empty() => {
                cache.remember_written(at, &bytes_of(page));
                self.forget(page);
                if self.writes == 0 {
                    self.read(page);
                } else if self.has_slot() {
                    self.clean.push(page);
                }
            }
            2 => {
                cache.forget(page);
                self.forget(page);
            }
            3 => {
                let staged = cache.staging_mut().stage(&[7; FRAME], 1, u8::from(root), page);
                prop_assert_eq!(staged.is_some(), self.has_slot());
                if let Some(number) = staged {
                    prop_assert!(number & STAGED != 0 && !self.staged.contains(&number));
                    self.staged.push(number);
                    self.root = if root { Some(number) } else { self.root };
                }
            }
            4 if !self.staged.is_empty() => {
                let number = self.staged.remove(page as usize % self.staged.len());
                cache.staging_mut().supersede(number);
                self.superseded.push(number);
            }
            5 => {
                // The space forgets a page before the page is programmed again.
                cache.forget(page);
                self.forget(page);
                let pending = cache.staging().next_pending();
                prop_assert_eq!(pending.map(|it| it.page), self.staged.first().copied());
                if let Some(pending) = pending {
                    prop_assert_eq!(pending.height > 0, self.root == Some(pending.page));
                    cache
                        .staging_mut()
                        .bytes_and_names(pending.slot)
                        .0
                        .copy_from_slice(&bytes_of(page));
                    cache.staging_mut().programmed(&pending, at);
                    self.staged.remove(0);
                    self.clean.push(page);
                    self.renamed.push((pending.page, page));
                }
            }
            6 if root => {
                cache.staging_mut().end_operation();
                self.superseded.clear();
                self.renamed.clear();
            }
            6 => {
                let any = cache.staging_mut().drop_superseded();
                prop_assert_eq!(any, !self.superseded.is_empty());
                self.superseded.clear();
            }
            _ => {}
        }
        Ok(())
    }

    fn read(&mut self, page: u32) {
        let (slots, pages) = &mut self.reads;
        if pages.len() == *slots && *slots > 0 {
            pages.remove(0);
        }
        if pages.len() < *slots {
            pages.push(page);
        }
    }

    fn forget(&mut self, page: u32) {
        self.reads.1.retain(|&its| its != page);
        self.clean.retain(|&its| its != page);
    }

    /// Whether another page has a slot. Evicts the first clean page if none is empty.
    fn has_slot(&mut self) -> bool {
        let taken = self.clean.len() + self.staged.len() + self.superseded.len();
        if taken >= self.writes && !self.clean.is_empty() {
            self.clean.remove(0);
            return true;
        }
        taken < self.writes
    }

    fn check(&self, cache: &mut Both<'_>) -> Result<(), TestCaseError> {
        prop_assert_eq!(cache.staging().staged() as usize, self.staged.len());
        prop_assert_eq!(cache.staging().spilled(), !self.renamed.is_empty());
        for page in 0..40 {
            let is_read = self.reads.1.contains(&page);
            let is_written = self.clean.contains(&page);
            prop_assert!(!(is_read && is_written), "page {} is in both", page);
            if is_written {
                prop_assert_eq!(cache.get(PageNumber(page)), Some(&bytes_of(page)[..]));
            }
            prop_assert_eq!(cache.reads.find(page).is_some(), is_read);
            prop_assert_eq!(cache.written.find(page).is_some(), is_written);
        }
        for &number in self.staged.iter().chain(self.superseded.iter()) {
            prop_assert_eq!(cache.get(PageNumber(number)), Some(&[7; FRAME][..]));
            prop_assert_eq!(cache.staging().resolve(number), number);
        }
        // Beyond that number, only pages that are still in their slots are known.
        let known = &self.renamed[..self.renamed.len().min(48)];
        for &(number, page) in known {
            prop_assert_eq!(cache.staging().resolve(number), page);
        }
        Ok(())
    }
}
