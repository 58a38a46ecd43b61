//! Replacing a root that has a single child by that child.
//!
//! Nothing is written here.

use super::{Placement, TreeIndex, extent_of};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::SAME_PAGE;

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// The only child of the root, in the same page, becomes the root.
    fn shrink_in_page(&mut self) -> Result<(), Fault<F::Error>> {
        let (area_bytes, level) = (self.space.log.layout().area_bytes(), self.state.height() - 1);
        let from = S::extent(area_bytes, level, self.state.height()).start;
        let to = S::extent(area_bytes, level, level).start;
        let working = self.working(level);
        let used = self.node(working, level)?.used().len();
        self.space.log.frames.bytes_mut(working).copy_within(from..from + used, to);
        self.state.shrink();
        self.count_node_less(self.state.height() + 1)?;
        Ok(())
    }

    /// While the root has a single child, the child becomes the root.
    ///
    /// See μ-Tree paper, Algorithm 5, lines 3 to 10.
    #[inline(never)]
    pub(super) fn shrink(&mut self) -> Result<(), Fault<F::Error>> {
        while self.state.height() > 1 {
            let node = self.working_node(self.state.height())?;
            let node = node.as_node();
            if node.count() != 1 {
                break;
            }
            let page = node.pointer(0);
            if page == SAME_PAGE {
                self.shrink_in_page()?;
                continue;
            }
            let frame = self.space.load(page, self.spare(self.state.height()))?;
            let lowest = self.space.log.lowest(frame);
            if lowest == self.state.height() - 1 {
                self.space.retire(PageNumber(page));
                self.space.forget_address(page);
            }
            let area_bytes = self.space.log.layout().area_bytes();
            let from = extent_of::<S, F>(&self.space, frame, self.level(self.state.height() - 1));
            let used = self.node(frame, self.state.height() - 1)?.used().len();
            self.state.shrink();
            self.count_node_less(self.state.height() + 1)?;
            let (level, working) =
                (self.level(self.state.height()), self.working(self.state.height()));
            let to = S::extent(area_bytes, self.state.height(), self.state.height());
            if S::SHARING.packs() && used > to.len() {
                return Err(self.corrupt(frame, Damage::NodeTooFull));
            }
            self.place.begin(&mut self.space, self.state.height());
            self.space.log.frames.forget(working);
            if working == frame {
                self.space
                    .log
                    .frames
                    .bytes_mut(frame)
                    .copy_within(from.start..from.start + used, to.start);
            } else {
                let (stage, read) = self.space.log.frames.pair(working, frame);
                stage[to][..used].copy_from_slice(&read[from][..used]);
            }
            let mut root = self.working_node(level.level)?;
            // The root is written to another page than the one that it came from.
            root.make_whole();
            if level.level > 1
                && let Some(slot) = root.as_node().slot_of(SAME_PAGE)
            {
                root.set_payload(slot, &page.to_le_bytes());
            }
        }
        Ok(())
    }
}
