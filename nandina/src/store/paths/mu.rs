//! `mu`: the μ-Tree. All nodes of a path share a page, so an update programs one.
//!
//! See the μ-Tree paper, section 3.
//!
//! ```text
//! height 1   | root = leaf                                   |
//! height 2   | root (level 2)        | leaf                  |
//! height 3   | root (3)  | level 2   | leaf                  |
//! height 4   |root|  3   | level 2   | leaf                  |
//! ```
//!
//! The leaf takes half of the page, each level above takes half of what its children take, and the
//! root takes its level's share twice (Algorithm 1). So only the root's place depends on the
//! height.
//!
//! *Descendant-ancestor relationship*: a page holds a node and, above it, only direct ancestors of
//! it. If the lowest node of a page is unreachable, so is the whole page. When a node is split, the
//! half that points into the page being filled stays with it; this is the swap of Algorithm 4, line
//! 28. A pointer to a child in the same page is [`SAME_PAGE`], so a page never has to contain its
//! own number.
//!
//! The paper splits the root as soon as it is full (Algorithm 3, line 4). Here the root is split
//! when the next child arrives, as every other node is. The pages written are the same.

use crate::engine::{Description, PageSharing};
use core::ops::Range;

use super::name_page;
use crate::error::Fault;
use crate::flash::Flash;
use crate::node::SAME_PAGE;
use crate::space::{Kind as _, Paths, Space};
use crate::tree::{Halves, Level, Origin, Placement, Written, node_in};

/// μ-Tree: one page for each updated path.
#[derive(Default)]
pub struct Mu {
    /// Lowest level of the nodes in the page being filled.
    lowest: u8,
}

/// The page being filled is built in this buffer.
const STAGE: usize = 0;

impl Placement for Mu {
    type Kind = Paths;

    const DESCRIPTION: Description = Description {
        key: "mu",
        name: "μ-Tree",
        summary: "all nodes of the changed path are written into one new page",
        source: "μ-Tree paper (Kang et al., EMSOFT 2007), section 3",
        code: 2,
        buffers_min: 2,
        buffers_default: 2,
        updates: Paths::UPDATES,
        checkpoints: true,
        ..Description::EMPTY
    };

    const SHARING: PageSharing = PageSharing::ByLevel;

    fn extent(area_bytes: usize, level: u8, height: u8) -> Range<usize> {
        let start = if level == height { 0 } else { area_bytes >> level };
        start..area_bytes >> (level - 1)
    }

    fn path_pages(_height: u8) -> u32 {
        1
    }

    fn reading(_level: u8, _height: u8, buffers: usize) -> usize {
        buffers - 1
    }

    fn working(_level: u8, _height: u8, _buffers: usize) -> usize {
        STAGE
    }

    fn spare(_level: u8, _height: u8, buffers: usize) -> usize {
        buffers - 1
    }

    fn begin<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, lowest: u8) {
        self.lowest = lowest;
        space.log.frames.forget(STAGE);
        space.log.frames.bytes_mut(STAGE).fill(0xFF);
    }

    fn pass<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, level: Level, page: u32) {
        let reading = Self::reading(level.level, level.height, space.log.frames.count());
        let extent = Self::extent(space.log.layout().area_bytes(), level.level, level.height);
        let used = node_in::<Self, F>(space, reading, level).map_or(0, |node| node.used().len());
        let (stage, read) = space.log.frames.pair(STAGE, reading);
        stage[extent.clone()][..used].copy_from_slice(&read[extent][..used]);
        if level.level > 1 {
            name_page::<Self, F>(space, STAGE, level, page);
        }
    }

    fn remove_empty<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: u8,
        _name: u32,
    ) {
        let area = space.log.layout().area_bytes();
        space.log.frames.bytes_mut(STAGE)[area >> level..area].fill(0xFF);
        self.lowest = level + 1;
    }

    fn write<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        Level { level, height, .. }: Level,
        _origin: Origin,
        records: u32,
    ) -> Result<Written, Fault<F::Error>> {
        if level < height {
            return Ok(Written::At(SAME_PAGE));
        }
        Ok(Written::At(space.program(STAGE, self.lowest, height, records)?.0))
    }

    fn write_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        Halves { right: departing, .. }: Halves,
        records: u32,
    ) -> Result<(u32, u32), Fault<F::Error>> {
        let extent = Self::extent(space.log.layout().area_bytes(), level.level, level.height);
        let left_departs = level.level == 1
            || node_in::<Self, F>(space, STAGE, level)
                .is_some_and(|node| node.slot_of(SAME_PAGE).is_some());
        let area = space.log.layout().area_bytes();
        let (stage, page) = space.log.frames.pair(STAGE, departing);
        if left_departs {
            stage[extent.clone()].swap_with_slice(&mut page[extent.clone()]);
        }
        page[..extent.start].fill(0xFF);
        page[extent.end..area].copy_from_slice(&stage[extent.end..area]);
        stage[extent.end..area].fill(0xFF);
        let departed = space.program(departing, self.lowest, 0, records)?.0;
        self.lowest = level.level;
        Ok(if left_departs { (departed, SAME_PAGE) } else { (SAME_PAGE, departed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_page_are_those_of_figure_4() {
        assert_eq!(Mu::extent(4096, 1, 1), 0..4096);
        assert_eq!((Mu::extent(4096, 2, 2), Mu::extent(4096, 1, 2)), (0..2048, 2048..4096));
        assert_eq!(Mu::extent(4096, 3, 3), 0..1024);
        assert_eq!((Mu::extent(4096, 2, 3), Mu::extent(4096, 1, 3)), (1024..2048, 2048..4096));
    }

    #[test]
    fn shares_never_overlap_and_leave_no_gap() {
        for area in [472, 512, 1001, 4096] {
            for height in 1..=9 {
                assert_eq!(Mu::extent(area, height, height).start, 0);
                assert_eq!(Mu::extent(area, 1, height).end, area);
                for level in 1..height {
                    let (below, above) =
                        (Mu::extent(area, level, height), Mu::extent(area, level + 1, height));
                    assert_eq!(above.end, below.start);
                }
            }
        }
    }
}
