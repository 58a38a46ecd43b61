//! Checks every invariant of an index on the chip.
//!
//! Nothing is written or repaired.

use super::Placement;
use super::TreeIndex;
use super::path::Path;
use super::walk::Walk;
use crate::engine::Violation;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::node::SAME_PAGE;
use crate::space::STAGED;

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Reads the whole tree and reports each invariant that does not hold.
    pub(super) fn check(
        &mut self,
        report: &mut dyn FnMut(Violation),
    ) -> Result<(), Fault<F::Error>> {
        self.settle()?;
        self.space.begin_walk();
        let staged = |page: u32| page & STAGED != 0;
        let mut seen = Seen::default();
        let mut walk = Walk::new(self.top(), self.space.valid_pages(), 1);
        let mut previous = [0u8; super::KEY_BYTES_MAX];
        while !walk.is_over() {
            let (level, page) = (walk.level(), walk.page());
            let frame = self.read_on(&mut walk)?;
            let place = PageNumber(self.space.current_page(page));
            let mut violated = |what| report(Violation { page: place, what });
            let node = self.node(frame, level)?;
            let count = node.count();
            if walk.is_new() {
                let lowest = self.space.log.lowest(frame);
                seen.pages += u32::from(lowest == level);
                seen.inner_nodes += u32::from(level > 1);
                seen.mappings += usize::from(self.space.mappings.get(page).is_some());
                if !staged(place.0) && !self.space.log.blocks.is_valid(place) {
                    violated("it is referenced but not counted as valid");
                }
                if !(1..count).all(|index| node.key(index - 1) < node.key(index)) {
                    violated("keys of a node are out of order");
                }
                if count == 0 && self.state.height() > 1 {
                    violated("a node is empty");
                }
                if count < 2 && level == self.state.height() && level > 1 {
                    violated("the root has a single child");
                }
                if level > 1 && lowest < level && node.slot_of(SAME_PAGE).is_none() {
                    violated("a node does not point to the node below it in its page");
                }
            }
            if level == 1 {
                for index in 0..count {
                    let key = node.key(index);
                    let previous = &mut previous[..key.len()];
                    if seen.records > 0 && key <= &*previous {
                        violated("keys of two leaves are out of order");
                    }
                    // An inner node has no lower bound of its own below its first key.
                    let bounded =
                        self.state.height() > 1 && (!S::SPLITS.trims() || walk.path.slot(2) > 0);
                    if bounded && key < self.separator(&walk.path, frame, page)?.unwrap_or(key) {
                        violated("a key is below its parent's bound");
                    }
                    previous.copy_from_slice(self.node(frame, 1)?.key(index));
                    seen.records += 1;
                }
            }
            if let Some(child) = self.next_child(&mut walk, frame)? {
                walk.enter(child);
            }
        }
        let page = PageNumber(self.space.current_page(self.state.root()));
        if walk.is_endless() {
            report(Violation { page, what: "more nodes are reached than the valid pages hold" });
            return Ok(());
        }
        for (holds, what) in [
            (seen.records == self.state.records(), "the number of records is wrong"),
            (seen.inner_nodes == self.state.inner_nodes(), "the number of inner nodes is wrong"),
            (seen.pages == self.space.valid_pages(), "the number of valid pages is wrong"),
            (seen.mappings == self.space.mappings.len(), "a mapping leads to no node"),
            (
                seen.pages <= self.limit_pages()
                    || self.space.log.blocks.bad_blocks() > self.space.log.reserve_blocks(),
                "more pages are valid than allowed",
            ),
        ] {
            if !holds {
                report(Violation { page, what });
            }
        }
        Ok(())
    }

    /// The lower bound that the parent on `path` holds for its leaf.
    ///
    /// `None` if the parent is no longer in a page buffer.
    fn separator(
        &self,
        path: &Path,
        leaf_frame: usize,
        leaf_page: u32,
    ) -> Result<Option<&[u8]>, Fault<F::Error>> {
        let page = path.page(2);
        let frame = if page == leaf_page {
            Some(leaf_frame)
        } else {
            self.space.log.frames.holding(PageNumber(self.space.current_page(page)))
        };
        match frame {
            Some(frame) => Ok(Some(self.node(frame, 2)?.key(path.slot(2)))),
            None => Ok(None),
        }
    }
}

#[derive(Default)]
struct Seen {
    pages: u32,
    inner_nodes: u32,
    records: u32,
    mappings: usize,
}
