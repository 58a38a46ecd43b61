//! Checks every invariant of an index on the chip. Nothing is written or repaired.

use super::leaves::Leaves;
use crate::engine::Violation;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};

impl<F: Flash> Leaves<'_, F> {
    /// Reads all leaves and reports each invariant that does not hold.
    ///
    /// Cost: one read for each leaf.
    pub(super) fn check(
        &mut self,
        report: &mut dyn FnMut(Violation),
    ) -> Result<(), Fault<F::Error>> {
        self.mount_if_in_doubt()?;
        let mut records = 0;
        for rank in 0..self.directory.len() {
            let page = self.page_at(rank)?;
            let (frame, owned) = self.load_leaf(rank, 0)?;
            let mut violated = |what| report(Violation { page, what });
            if !self.log.blocks.is_valid(page) {
                violated("it owns keys but is not counted as valid");
            }
            let range = self.range(rank);
            let (low, high) = range.fences();
            if high.is_some_and(|high| high <= low) {
                violated("separators are out of order");
            }
            let holds = self.form().fences(self.log.frames.bytes(frame)).is_some_and(|fences| {
                let ends = match (fences.1, high) {
                    (None, _) => true,
                    (Some(fence), Some(high)) => high <= fence,
                    (Some(_), None) => false,
                };
                fences.0 <= low && ends
            });
            if !holds {
                violated("it owns keys outside of its fences");
            }
            let node = self.node(frame, page)?;
            if !(1..node.count()).all(|at| node.key(at - 1) < node.key(at)) {
                violated("keys of a leaf are out of order");
            }
            records += owned.len() as u32;
        }
        let page = self.directory.page(0).unwrap_or(PageNumber(0));
        let pages = self.directory.len() as u32 + self.pages_beside();
        for (holds, what) in [
            (records == self.state.records(), "the number of records is wrong"),
            (pages == self.log.blocks.valid_pages(), "the number of valid pages is wrong"),
            (
                pages <= self.limit_pages() + self.pages_beside().max(1)
                    || self.log.blocks.bad_blocks() > self.log.reserve_blocks(),
                "more pages are valid than allowed",
            ),
        ] {
            if !holds {
                report(Violation { page, what });
            }
        }
        Ok(())
    }
}
