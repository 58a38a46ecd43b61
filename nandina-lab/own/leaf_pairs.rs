//! `leaf-pairs`: a leaf and its parent share a page; the nodes above wander.
//!
//! This is an example of a store of one's own: one file outside the library. It lies between the
//! wandering tree, which writes a page for each level, and μ-Tree, which writes one page but gives
//! leaves half of it and each level above half of the rest. Here a change writes a page less than
//! the height of the tree has levels, and a leaf has half a page.
//!
//! ```text
//! | parent: first half | leaf: second half |     every other node has a page of its own
//! ```
//!
//! The page with a leaf and its parent is built in the page buffer `PAIR` while the tree works its
//! way up. A leaf whose parent was written elsewhere stays: the parent refers to its page.

use core::ops::Range;

use nandina::flash::Flash;
use nandina::node::SAME_PAGE;
use nandina::store::{
    Description, Halves, Kind as _, Level, Origin, PageSharing, Paths, PlaceFault, Placement,
    Space, Written, node_in, node_mut_in,
};

/// The store. It remembers the lowest level in the page that is being built.
#[derive(Default)]
pub struct LeafPairs {
    lowest: u8,
}

/// The page buffer in which the page with a leaf and its parent is built.
const PAIR: usize = 0;

/// Whether a node of this level shares a page with its parent or its child.
const fn is_paired(level: u8, height: u8) -> bool {
    level <= 2 && height >= 2
}

impl LeafPairs {
    /// The bytes of a node in the node area of its page buffer.
    fn range<F: Flash>(space: &Space<'_, F, Paths>, level: Level) -> Range<usize> {
        Self::extent(space.area_bytes(), level.level, level.height)
    }

    /// Whether the node of `level` in page buffer `frame` has its child in the same page.
    fn has_child_beside<F: Flash>(space: &Space<'_, F, Paths>, frame: usize, level: Level) -> bool {
        node_in::<Self, F>(space, frame, level)
            .is_some_and(|node| node.slot_of(SAME_PAGE).is_some())
    }
}

impl Placement for LeafPairs {
    type Kind = Paths;

    const DESCRIPTION: Description = Description {
        key: "leaf-pairs",
        name: "leaf pairs",
        summary: "a changed leaf and its parent are written into one page, each node above into one",
        source: "an example of a store of one's own",
        code: 250,
        buffers_default: 4,
        updates: Paths::UPDATES,
        checkpoints: true,
        ..Description::EMPTY
    };

    const SHARING: PageSharing = PageSharing::ByLevel;

    fn extent(area_bytes: usize, level: u8, height: u8) -> Range<usize> {
        match level {
            1 if is_paired(1, height) => area_bytes / 2..area_bytes,
            2 => 0..area_bytes / 2,
            _ => 0..area_bytes,
        }
    }

    fn path_pages(height: u8) -> u32 {
        if height <= 2 { 1 } else { u32::from(height) - 1 }
    }

    fn reading(level: u8, height: u8, buffers: usize) -> usize {
        if level <= 2 { buffers - 1 } else { Self::working(level, height, buffers) }
    }

    fn working(level: u8, _height: u8, buffers: usize) -> usize {
        if level <= 2 { PAIR } else { 1 + usize::from(level - 3) % (buffers - 2) }
    }

    fn spare(_level: u8, _height: u8, buffers: usize) -> usize {
        buffers - 1
    }

    fn begin<F: Flash>(&mut self, space: &mut Space<'_, F, Paths>, lowest: u8) {
        self.lowest = lowest;
        space.area_mut(PAIR).fill(0xFF);
    }

    fn pass<F: Flash>(&mut self, space: &mut Space<'_, F, Paths>, level: Level, page: u32) {
        if level.level > 2 {
            return;
        }
        let reading = Self::reading(level.level, level.height, space.buffers());
        let range = Self::range(space, level);
        let used = node_in::<Self, F>(space, reading, level).map_or(0, |node| node.used().len());
        let (pair, read) = space.areas_mut(PAIR, reading);
        pair[range.clone()][..used].copy_from_slice(&read[range][..used]);
        // The leaf that shared the page so far stays there.
        if level.level == 2
            && let Some(mut node) = node_mut_in::<Self, F>(space, PAIR, level)
            && let Some(slot) = node.as_node().slot_of(SAME_PAGE)
        {
            node.set_payload(slot, &page.to_le_bytes());
        }
    }

    fn remove_empty<F: Flash>(&mut self, space: &mut Space<'_, F, Paths>, level: u8, _name: u32) {
        if level == 1 {
            let half = space.area_bytes() / 2;
            space.area_mut(PAIR)[half..].fill(0xFF);
        }
        self.lowest = level + 1;
    }

    fn write<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Paths>,
        Level { level, height, .. }: Level,
        _origin: Origin,
        records: u32,
    ) -> Result<Written, PlaceFault<F>> {
        if level == 1 && height > 1 {
            return Ok(Written::At(SAME_PAGE));
        }
        let frame = Self::working(level, height, space.buffers());
        let lowest = if level <= 2 { self.lowest } else { level };
        let root_height = if level == height { height } else { 0 };
        Ok(Written::At(space.program(frame, lowest, root_height, records)?.0))
    }

    fn write_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Paths>,
        level: Level,
        Halves { left, right, .. }: Halves,
        records: u32,
    ) -> Result<(u32, u32), PlaceFault<F>> {
        if level.level > 2 {
            let lower = space.program(left, level.level, 0, records)?.0;
            return Ok((lower, space.program(right, level.level, 0, records)?.0));
        }
        let (half, area) = (space.area_bytes() / 2, space.area_bytes());
        if level.level == 1 {
            // The lower half goes to a page of its own, the upper one stays beside its parent.
            let (pair, other) = space.areas_mut(PAIR, right);
            pair[half..area].swap_with_slice(&mut other[half..area]);
            other[..half].fill(0xFF);
            let lower = space.program(right, 1, 0, records)?.0;
            return Ok((lower, SAME_PAGE));
        }
        // Both halves of the parent are written, one of them with the leaf.
        let leaf_goes = !Self::has_child_beside(space, PAIR, level);
        let (pair, other) = space.areas_mut(PAIR, right);
        if leaf_goes {
            pair[half..area].swap_with_slice(&mut other[half..area]);
        }
        let lone = if leaf_goes { pair } else { other };
        lone[half..area].fill(0xFF);
        let (lower, upper) = if leaf_goes { (2, self.lowest) } else { (self.lowest, 2) };
        let lower = space.program(PAIR, lower, 0, records)?.0;
        let upper = space.program(right, upper, 0, records)?.0;
        self.lowest = 3;
        Ok((lower, upper))
    }
}
