//! The cells of one block, and separately the damage that they have taken.
//!
//! This file checks no rule and does not model power.
//!
//! An erased page is a flag, so an erase moves no bytes. A block's bytes are one allocation, made
//! when the block is first programmed: a chip with many unused blocks costs little memory.

use std::collections::BTreeMap;

use nandina::flash::PageNumber;
use serde::{Deserialize, Serialize};

use crate::unstable::Unstable;

/// Damage that keeps a page from reading as it was programmed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Damage {
    /// No ECC can read the page: its program or erase was torn.
    pub unreadable: bool,
    /// Numbers of the wrong bits, counted over main data and spare area.
    pub flips: Vec<u32>,
}

/// One block; page numbers count from its first page.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Vec<u8>,
    page_bytes: usize,
    programs: Vec<u8>,
    /// Pages whose cells are not all ones, independently of what the chip has recorded.
    written: Vec<bool>,
    pub erase_count: u32,
    /// One above the highest page that was programmed since the erase.
    pub next_in_order: u32,
    /// Marked as bad, in the factory or since.
    pub bad: bool,
    /// Every program and erase fails from now on.
    pub failing: bool,
    pub damage: BTreeMap<u32, Damage>,
    /// Pages that may read differently each time. They count as written.
    pub unstable: BTreeMap<u32, Unstable>,
}

impl Block {
    /// An erased block of `pages` pages of `page_bytes`, main and spare together.
    pub fn new(pages: u32, page_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            page_bytes,
            programs: vec![0; pages as usize],
            written: vec![false; pages as usize],
            erase_count: 0,
            next_in_order: 0,
            bad: false,
            failing: false,
            damage: BTreeMap::new(),
            unstable: BTreeMap::new(),
        }
    }

    /// Makes the block as [`Block::new`] made it, and keeps its memory.
    pub fn renew(&mut self) {
        self.erase();
        *self = Self {
            bytes: std::mem::take(&mut self.bytes),
            programs: std::mem::take(&mut self.programs),
            written: std::mem::take(&mut self.written),
            ..Self::new(0, self.page_bytes)
        };
    }

    /// Whether the block is as [`Block::new`] made it.
    pub fn is_new(&self) -> bool {
        self.erase_count == 0
            && self.next_in_order == 0
            && !self.bad
            && !self.failing
            && self.damage.is_empty()
            && self.unstable.is_empty()
            && self.programs.iter().all(|&programs| programs == 0)
            && !self.written.contains(&true)
    }

    /// Number of programs of each page since the erase; 255 if it must be erased first.
    pub fn programs_of_pages(&self) -> &[u8] {
        &self.programs
    }

    /// Which pages have cells that are not all ones.
    pub fn written_pages(&self) -> &[bool] {
        &self.written
    }

    /// Restores the number of programs of each page. `programs` has one entry a page.
    pub fn set_programs(&mut self, programs: Vec<u8>) {
        debug_assert_eq!(programs.len(), self.programs.len());
        self.programs = programs;
    }

    /// Number of programs of `page` since the erase.
    pub fn programs(&self, page: PageNumber) -> u8 {
        self.programs[page.0 as usize]
    }

    /// Counts one more program of `page`.
    ///
    /// A page that must be erased first stays so.
    pub fn count_program(&mut self, page: PageNumber) {
        if !self.is_exhausted(page) {
            self.programs[page.0 as usize] = (self.programs(page) + 1).min(u8::MAX - 1);
        }
        self.next_in_order = self.next_in_order.max(page.0 + 1);
    }

    pub fn erase(&mut self) {
        self.forget_programs();
        self.written.fill(false);
        self.damage.clear();
        self.unstable.clear();
    }

    /// Resets the program counts as an erase does, and keeps the content of the cells.
    pub fn forget_programs(&mut self) {
        self.programs.fill(0);
        self.next_in_order = 0;
    }

    /// Forbids programs of all pages until the next erase.
    pub fn exhaust(&mut self) {
        self.programs.fill(u8::MAX);
        self.next_in_order = self.programs.len() as u32;
    }

    /// Whether a cut erase has made `page` unusable.
    pub fn is_exhausted(&self, page: PageNumber) -> bool {
        self.programs(page) == u8::MAX
    }

    /// The bytes of a page, or `None` if it is erased.
    pub fn page_bytes(&self, page: PageNumber) -> Option<&[u8]> {
        let at = page.0 as usize * self.page_bytes;
        self.written[page.0 as usize].then(|| &self.bytes[at..at + self.page_bytes])
    }

    /// The bytes of an erased page.
    pub fn ones(&self) -> Vec<u8> {
        vec![0xFF; self.page_bytes]
    }

    /// The bytes of a page, for changing them. Those of an erased page are all ones.
    pub fn page_bytes_mut(&mut self, page: PageNumber) -> &mut [u8] {
        let erased = !self.written[page.0 as usize];
        let bytes = self.cells_mut(page);
        if erased {
            bytes.fill(0xFF);
        }
        bytes
    }

    /// The bytes of a page with unspecified content: the caller overwrites all of them.
    #[inline]
    pub fn cells_mut(&mut self, page: PageNumber) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.make_cells();
        }
        self.written[page.0 as usize] = true;
        &mut self.bytes[page.0 as usize * self.page_bytes..][..self.page_bytes]
    }

    /// Allocates zeros.
    ///
    /// The system provides them on first touch; ones would have to be written.
    #[cold]
    fn make_cells(&mut self) {
        self.bytes = vec![0; self.page_bytes * self.programs.len()];
    }

    /// Sets `page` to ones, as a page erase does.
    pub fn erase_page(&mut self, page: PageNumber) {
        self.written[page.0 as usize] = false;
        self.programs[page.0 as usize] = 0;
        self.damage.remove(&page.0);
        self.unstable.remove(&page.0);
    }

    pub fn damage_mut(&mut self, page: PageNumber) -> &mut Damage {
        self.damage.entry(page.0).or_default()
    }
}
