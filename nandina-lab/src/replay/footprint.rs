//! The pages that a trace touches, moved together.
//!
//! The space of a trace is as large as the highest place that it names, and most of it may never be
//! touched. On a chip of that size nothing is ever collected. Without the untouched pages the same
//! requests fill the chip. Pages of one request stay neighbours.

/// The touched pages of a space.
pub struct Footprint {
    /// A bit for each page.
    touched: Vec<u64>,
    /// Touched pages before each word of `touched`.
    before: Vec<u64>,
}

impl Footprint {
    /// A space of `pages` pages, none of which is touched.
    pub fn new(pages: u64) -> Self {
        let words = pages.div_ceil(64) as usize;
        Self { touched: vec![0; words], before: Vec::new() }
    }

    /// Notes that a request touches the pages from `start` up to `end`.
    ///
    /// Pages behind the space are ignored.
    pub fn touch(&mut self, start: u64, end: u64) {
        for page in start..end.min(self.touched.len() as u64 * 64) {
            self.touched[(page / 64) as usize] |= 1 << (page % 64);
        }
    }

    /// Ends the touching: from now on pages have places.
    pub fn close(&mut self) {
        let mut before = 0;
        self.before = self
            .touched
            .iter()
            .map(|word| {
                let first = before;
                before += u64::from(word.count_ones());
                first
            })
            .collect();
    }

    /// Pages that were touched.
    pub fn pages(&self) -> u64 {
        self.touched.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The number of touched pages before `page`: the place of that page, if it was touched.
    pub fn place(&self, page: u64) -> u64 {
        let (word, bit) = ((page / 64) as usize, page % 64);
        let Some(&before) = self.before.get(word) else { return self.pages() };
        let below = self.touched[word] & ((1 << bit) - 1);
        before + u64::from(below.count_ones())
    }
}

#[cfg(test)]
mod tests {
    use super::Footprint;

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
