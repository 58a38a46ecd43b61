//! `wpcb`: the WPCB-tree, a B-tree for an FTL that sorts its page writes.
//!
//! The paper's tree keeps full leaves full where keys ascend, and merges nothing when records are
//! removed; its transit buffer and its converter are layers of the FTL below, which the tree does
//! not know. The tree relies on a device that replaces a page as a whole or not at all, so each
//! node has one page.

use super::BTree;
use crate::engine::{Description, SplitCommit};
use crate::flash::{Flash, Needs};
use crate::space::{InPlace, Space};
use crate::tree::{Halves, Level, Origin, PlaceFault, Placement, Written};

/// The WPCB-tree.
#[derive(Default)]
pub struct Wpcb(BTree);

impl Placement for Wpcb {
    type Kind = InPlace;

    const DESCRIPTION: Description = Description {
        key: "wpcb",
        name: "WPCB-tree",
        summary: "a changed node replaces itself; leaves that ascending keys filled stay full",
        source: "WPCB-tree paper (Ho and Park), sections 3 and 4",
        needs: Needs { atomic_rewrite: true, ..BTree::DESCRIPTION.needs },
        code: 6,
        ..BTree::DESCRIPTION
    };

    const SPLITS: SplitCommit = BTree::SPLITS;

    fn stays_full(level: u8, height: u8, right_edge: bool) -> bool {
        level == 1 || BTree::stays_full(level, height, right_edge)
    }

    fn supersede<F: Flash>(space: &mut Space<'_, F, InPlace>, page: u32, divided: bool) {
        BTree::supersede(space, page, divided);
    }

    fn remove_empty<F: Flash>(&mut self, space: &mut Space<'_, F, InPlace>, level: u8, name: u32) {
        self.0.remove_empty(space, level, name);
    }

    fn path_pages(height: u8) -> u32 {
        BTree::path_pages(height)
    }

    fn growth_pages(from: u8, to: u8) -> u32 {
        BTree::growth_pages(from, to)
    }

    fn write<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, InPlace>,
        level: Level,
        origin: Origin,
        records: u32,
    ) -> Result<Written, PlaceFault<F>> {
        self.0.write(space, level, origin, records)
    }

    fn write_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, InPlace>,
        level: Level,
        halves: Halves,
        records: u32,
    ) -> Result<(u32, u32), PlaceFault<F>> {
        self.0.write_halves(space, level, halves, records)
    }

    fn copy<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, InPlace>,
        frame: usize,
        level: Level,
        records: u32,
    ) -> Result<u32, PlaceFault<F>> {
        self.0.copy(space, frame, level, records)
    }
}
