//! The pages that a trace touches, moved together.
//!
//! The space of a trace is as large as the highest place that it names, and most of it may never be
//! touched. On a chip of that size nothing is ever collected. Without the untouched pages the same
//! requests fill the chip. Pages of one request stay neighbours.

use std::num::NonZeroU32;

/// Pages of a chunk: a word of bits for each 64.
const CHUNK_PAGES: u64 = 64 * 64;

/// Memory is taken for chunks of the space that are touched.
struct Chunk {
    /// A bit for each page.
    touched: [u64; 64],
    /// Touched pages of the space before each word of `touched`.
    before: [u64; 64],
}

/// The touched pages of a space.
pub struct Footprint {
    /// For each chunk of the space its place in `chunks`, if it is touched.
    directory: Vec<Option<NonZeroU32>>,
    /// The touched chunks, in the order in which they were touched; the first is none of them.
    chunks: Vec<Chunk>,
    pages: u64,
}

impl Footprint {
    /// The most pages of a space; its directory takes 64 MiB.
    pub const PAGES_MAX: u64 = CHUNK_PAGES << 24;

    /// A space of `pages` pages, at most [`PAGES_MAX`](Self::PAGES_MAX), none of which is touched.
    pub fn new(pages: u64) -> Self {
        let none = Chunk { touched: [0; 64], before: [0; 64] };
        let directory = vec![None; pages.div_ceil(CHUNK_PAGES) as usize];
        Self { directory, chunks: vec![none], pages: 0 }
    }

    /// Notes that a request touches the pages from `start` up to `end`.
    ///
    /// Pages behind the space are ignored.
    pub fn touch(&mut self, start: u64, end: u64) {
        for page in start..end.min(self.directory.len() as u64 * CHUNK_PAGES) {
            let entry = &mut self.directory[(page / CHUNK_PAGES) as usize];
            let chunk = *entry.get_or_insert_with(|| {
                let next = u32::try_from(self.chunks.len()).ok().and_then(NonZeroU32::new);
                self.chunks.push(Chunk { touched: [0; 64], before: [0; 64] });
                next.expect("a space has at most 2^24 chunks")
            });
            let touched = &mut self.chunks[chunk.get() as usize].touched;
            touched[(page / 64 % 64) as usize] |= 1 << (page % 64);
        }
    }

    /// Ends the touching: from now on pages have places.
    pub fn close(&mut self) {
        let mut before = 0;
        for chunk in self.directory.iter().flatten() {
            let Chunk { touched, before: all } = &mut self.chunks[chunk.get() as usize];
            for (word, count) in touched.iter().zip(all) {
                *count = before;
                before += u64::from(word.count_ones());
            }
        }
        self.pages = before;
    }

    /// Pages that were touched.
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// The number of touched pages before `page`: the place of that page, if it was touched.
    pub fn place(&self, page: u64) -> u64 {
        let chunk = (page / CHUNK_PAGES) as usize;
        if let Some(&Some(chunk)) = self.directory.get(chunk) {
            let Chunk { touched, before } = &self.chunks[chunk.get() as usize];
            let (word, bit) = ((page / 64 % 64) as usize, page % 64);
            return before[word] + u64::from((touched[word] & ((1 << bit) - 1)).count_ones());
        }
        // The next touched chunk has all touched pages before it.
        let next = self.directory.get(chunk..).and_then(|rest| rest.iter().flatten().next());
        next.map_or(self.pages, |chunk| self.chunks[chunk.get() as usize].before[0])
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_PAGES, Footprint};

    #[test]
    fn a_space_takes_memory_for_what_is_touched() {
        let mut footprint = Footprint::new(1 << 35);
        let far = (1 << 35) - 1;
        for page in [0, far - CHUNK_PAGES, far, 1 << 32] {
            footprint.touch(page, page + 1);
        }
        footprint.close();
        assert_eq!((footprint.pages(), footprint.chunks.len()), (4, 1 + 4));
        let places = [0, 1, 1 << 32, (1 << 32) + 1, far - CHUNK_PAGES, far, far + 1];
        assert_eq!(places.map(|page| footprint.place(page)), [0, 1, 1, 2, 2, 3, 4]);
    }

    #[test]
    fn pages_keep_their_order_and_the_untouched_get_no_place() {
        let mut footprint = Footprint::new(1_000);
        let touched = [(3, 5), (4, 70), (127, 129), (998, 1_000), (640, 641)];
        for (start, end) in touched {
            footprint.touch(start, end);
        }
        footprint.close();
        let pages: std::collections::BTreeSet<u64> =
            touched.iter().flat_map(|&(start, end)| start..end).collect();
        assert_eq!(footprint.pages(), pages.len() as u64);
        for (place, &page) in pages.iter().enumerate() {
            assert_eq!(footprint.place(page), place as u64);
        }
        assert_eq!(footprint.place(300), footprint.place(600), "nothing between them was touched");
        assert_eq!(footprint.place(5_000), footprint.pages());
    }
}
