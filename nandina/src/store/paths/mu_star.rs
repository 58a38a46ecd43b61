//! `mu-star`: a μ-Tree with a layout for each page. Leaves have what paths leave.
//!
//! The rival of the WPCB-tree paper, section 6.1, which does not say how its pages are divided.
//!
//! The nodes of a page lie one after another, from the lowest up, and each begins with its count:
//! so the page itself says where they are. An inner node has the share of the μ-Tree at most. The
//! leaf has all that the inner nodes of its path leave, which is never less than its own share
//! there, and up to nearly the whole page. It is split only when its path does not fit in a page.
//!
//! Inner nodes grow after a leaf was written, so that its path may not fit any more. Then the leaf
//! is written into a page of its own, before that of the inner nodes: a move must not split a node.
//! The inner nodes always fit in one page. If a record of such a leaf is replaced, it is split
//! first, as long as the tree may grow.
//!
//! A change works on the nodes in two page buffers, the leaf in one and the inner nodes in the
//! other, where each level has room to grow. The page is put together in the buffer of the leaf.

use core::ops::Range;

use super::{Mu, name_page};
use crate::engine::{Description, NodeArea, PageSharing};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::{Node, SAME_PAGE};
use crate::space::{Kind as _, Paths, Space};
use crate::tree::{Halves, Level, Origin, Placement, Written, extent_of, node_in};

/// μ-Tree whose leaves have what their paths leave free.
#[derive(Default)]
pub struct MuStar {
    /// Lowest level of the nodes that wait in the page buffers for their page.
    lowest: u8,
}

/// The page buffer of the leaf, in which pages are put together.
const LEAF: usize = 0;

/// The page buffer of the inner nodes.
const INNER: usize = 1;

/// In the header of a page buffer: its nodes are not packed.
const UNPACKED: u8 = 0xFF;

impl MuStar {
    /// Bytes of the node of `level` on the path, or 0 if there is none.
    fn used<F: Flash>(space: &Space<'_, F, Paths>, level: u8, height: u8) -> usize {
        let frame = Self::working(level, height, space.buffers());
        let level = Self::level(space, level, height);
        node_in::<Self, F>(space, frame, level).map_or(0, |node| node.used().len())
    }

    /// The bytes of the nodes above `level`.
    fn above<F: Flash>(space: &Space<'_, F, Paths>, level: u8, height: u8) -> usize {
        (level + 1..=height).map(|above| Self::used(space, above, height)).sum()
    }

    fn level<F: Flash>(space: &Space<'_, F, Paths>, level: u8, height: u8) -> Level {
        let medium = &space.log.medium;
        let (key_bytes, value_bytes) = (medium.key_bytes.into(), medium.value_bytes.into());
        let shape = NodeArea { bytes: &[], lowest: 0, key_bytes, value_bytes }.shape(level);
        Level { level, height, shape }
    }

    /// Ends the page in the buffer of the leaf after `used` bytes, and programs it.
    fn finish<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Paths>,
        used: usize,
        (lowest, height): (u8, u8),
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        space.area_mut(LEAF)[used..].fill(0xFF);
        let page = space.program(LEAF, lowest, height, records)?;
        Self::clear(space, LEAF);
        Ok(page.0)
    }

    /// Makes a page buffer one of no nodes.
    fn clear<F: Flash>(space: &mut Space<'_, F, Paths>, frame: usize) {
        space.log.frames.forget(frame);
        space.log.frames.bytes_mut(frame).fill(0xFF);
    }

    /// Appends the node of `level` in `frame` to the page that is put together.
    ///
    /// The page ends at `end`. Returns where it ends then.
    fn append<F: Flash>(
        space: &mut Space<'_, F, Paths>,
        frame: usize,
        level: Level,
        end: usize,
    ) -> Result<usize, Fault<F::Error>> {
        let from = Self::extent(space.area_bytes(), level.level, level.height);
        let no_page = PageNumber(space.log.frames.held(LEAF));
        let (page, nodes) = space.areas_mut(LEAF, frame);
        let used = Node::parse(&nodes[from.clone()], level.shape).map(|node| node.used().len());
        let to = used.and_then(|used| page.get_mut(end..end + used));
        let (Some(used), Some(to)) = (used, to) else {
            // It was made sure before that the nodes fit.
            let reason = Damage::NodeTooFull;
            return Err(Fault::Corrupt { page: no_page, reason });
        };
        to.copy_from_slice(&nodes[from][..used]);
        Ok(end + used)
    }

    /// Appends the nodes from the lowest that waits up to `highest`.
    ///
    /// Returns where the page ends then.
    fn append_waiting<F: Flash>(
        &self,
        space: &mut Space<'_, F, Paths>,
        highest: u8,
        height: u8,
    ) -> Result<usize, Fault<F::Error>> {
        let mut end = if self.lowest == 1 { Self::used(space, 1, height) } else { 0 };
        for level in self.lowest.max(2)..=highest {
            let level = Self::level(space, level, height);
            end = Self::append(space, INNER, level, end)?;
        }
        Ok(end)
    }
}

impl Placement for MuStar {
    type Kind = Paths;

    const DESCRIPTION: Description = Description {
        key: "mu-star",
        name: "μ*-Tree",
        summary: "as mu, but each page says how it is divided, and a leaf has what its path leaves",
        source: "WPCB-tree paper (Ho and Park, Symmetry 2018), section 6.1",
        code: 9,
        buffers_min: 3,
        buffers_default: 3,
        updates: Paths::UPDATES,
        checkpoints: true,
        ..Description::EMPTY
    };

    const SHARING: PageSharing = PageSharing::Packed;

    // Twice the share of each inner node, so that all of them fit in one page.
    fn extent(area_bytes: usize, level: u8, _height: u8) -> Range<usize> {
        if level == 1 {
            0..area_bytes
        } else {
            area_bytes >> (level - 1)..area_bytes >> (level - 2)
        }
    }

    fn extent_in(area: &NodeArea<'_>, level: u8, height: u8) -> Range<usize> {
        if area.lowest == UNPACKED {
            return Self::extent(area.bytes.len(), level, height);
        }
        if area.lowest == 0 || area.lowest > level {
            return 0..0;
        }
        let mut start = 0;
        for below in area.lowest..level {
            match Node::parse(&area.bytes[start..], area.shape(below)) {
                Some(node) => start += node.used().len(),
                None => return 0..0,
            }
        }
        start..area.bytes.len()
    }

    fn share(area_bytes: usize, level: u8, height: u8) -> usize {
        Mu::extent(area_bytes, level, height).len()
    }

    fn path_pages(height: u8) -> u32 {
        if height > 1 { 2 } else { 1 }
    }

    fn reading(_level: u8, _height: u8, buffers: usize) -> usize {
        buffers - 1
    }

    fn working(level: u8, _height: u8, _buffers: usize) -> usize {
        if level == 1 { LEAF } else { INNER }
    }

    fn spare(_level: u8, _height: u8, buffers: usize) -> usize {
        buffers - 1
    }

    fn begin<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, lowest: u8) {
        self.lowest = lowest;
        Self::clear(space, LEAF);
        Self::clear(space, INNER);
    }

    fn pass<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, level: Level, page: u32) {
        let reading = Self::reading(level.level, level.height, space.buffers());
        let working = Self::working(level.level, level.height, space.buffers());
        let from = extent_of::<Self, F>(space, reading, level).start;
        let to = Self::extent(space.area_bytes(), level.level, level.height);
        let used = node_in::<Self, F>(space, reading, level).map_or(0, |node| node.used().len());
        // On a damaged medium a node may be larger than it can be.
        if used > to.len() {
            return;
        }
        let (nodes, read) = space.areas_mut(working, reading);
        nodes[to][..used].copy_from_slice(&read[from..from + used]);
        if level.level > 1 {
            name_page::<Self, F>(space, working, level, page);
        }
    }

    fn most<F: Flash>(&self, space: &Space<'_, F, Self::Kind>, level: Level, fits: usize) -> usize {
        if level.level > 1 || level.height == 1 {
            return fits;
        }
        let above = Self::above(space, 1, level.height);
        level.shape.capacity(space.area_bytes().saturating_sub(above)).max(fits)
    }

    fn remove_empty<F: Flash>(
        &mut self,
        _space: &mut Space<'_, F, Self::Kind>,
        level: u8,
        _name: u32,
    ) {
        self.lowest = level + 1;
    }

    fn write<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        Level { level, height, .. }: Level,
        _origin: Origin,
        records: u32,
    ) -> Result<Written, Fault<F::Error>> {
        if level == height {
            let end = self.append_waiting(space, height, height)?;
            return Ok(Written::At(self.finish(space, end, (self.lowest, height), records)?));
        }
        Ok(Written::At(self.wait(space, level, height, 0, records)?))
    }

    fn write_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        Halves { left, right, .. }: Halves,
        records: u32,
    ) -> Result<(u32, u32), Fault<F::Error>> {
        let extent = Self::extent(space.area_bytes(), level.level, level.height);
        let left_departs = level.level == 1
            || node_in::<Self, F>(space, left, level)
                .is_some_and(|node| node.slot_of(SAME_PAGE).is_some());
        // The half that departs comes into the spare buffer.
        let (working, spare) = space.areas_mut(left, right);
        if left_departs {
            working[extent.clone()].swap_with_slice(&mut spare[extent]);
        }
        let departed = if level.level == 1 {
            // The leaf that stays is in the buffer in which pages are put together.
            Self::program_alone(space, right, level, records)?
        } else {
            let lower = self.append_waiting(space, level.level - 1, level.height)?;
            let end = Self::append(space, right, level, lower)?;
            self.finish(space, end, (self.lowest, 0), records)?
        };
        self.lowest = level.level;
        // The node above takes one record more, or is a new root of two.
        let inner = Self::level(space, 2, level.height).shape;
        let stays = self.wait(space, level.level, level.height, inner.at(2), records)?;
        Ok(if left_departs { (departed, stays) } else { (stays, departed) })
    }
}

impl MuStar {
    /// Leaves the nodes up to `level` to the page of their parent, if they fit in it.
    ///
    /// The nodes above may grow by `more` bytes. If they do not fit, they are programmed, which is
    /// so only for a leaf. Returns the pointer that the parent stores.
    fn wait<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Paths>,
        level: u8,
        height: u8,
        more: usize,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let waiting: usize =
            (self.lowest..=level).map(|level| Self::used(space, level, height)).sum();
        if waiting + Self::above(space, level, height) + more <= space.area_bytes() {
            return Ok(SAME_PAGE);
        }
        let end = self.append_waiting(space, level, height)?;
        let page = self.finish(space, end, (self.lowest, 0), records)?;
        self.lowest = level + 1;
        Ok(page)
    }

    /// Programs a page with the leaf in `frame` alone.
    fn program_alone<F: Flash>(
        space: &mut Space<'_, F, Paths>,
        frame: usize,
        level: Level,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let area = space.area_mut(frame);
        let used = Node::parse(area, level.shape).map_or(0, |node| node.used().len());
        area[used..].fill(0xFF);
        Ok(space.program(frame, 1, 0, records)?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf of two records of 3 + 1 bytes, its parent of one, and what lies behind.
    fn page(behind: u8) -> [u8; 40] {
        let mut bytes = [behind; 40];
        bytes[..2].copy_from_slice(&2u16.to_le_bytes());
        bytes[10..12].copy_from_slice(&1u16.to_le_bytes());
        bytes
    }

    fn area(bytes: &[u8], lowest: u8) -> NodeArea<'_> {
        NodeArea { bytes, lowest, key_bytes: 3, value_bytes: 1 }
    }

    #[test]
    fn counts_say_where_the_nodes_of_a_page_are() {
        let bytes = page(0xFF);
        let start = |level| MuStar::extent_in(&area(&bytes, 1), level, 3).start;
        assert_eq!((start(1), start(2), start(3)), (0, 10, 19));
        // Nothing is above the parent: its count is no count.
        assert_eq!(MuStar::extent_in(&area(&bytes, 1), 4, 4), 0..0);
        // There is no leaf in a page whose lowest node is above it.
        assert_eq!(MuStar::extent_in(&area(&bytes, 2), 1, 3), 0..0);
    }

    #[test]
    fn no_count_leads_beyond_the_page() {
        for byte in 0..=u8::MAX {
            let bytes = page(byte);
            for lowest in 0..=16 {
                for level in 1..=16 {
                    let range = MuStar::extent_in(&area(&bytes, lowest), level, 16);
                    assert!(range.start <= range.end && range.end <= bytes.len());
                }
            }
        }
    }

    #[test]
    fn the_shares_of_inner_nodes_leave_a_leaf_its_own() {
        for area in [472, 512, 1001, 4096] {
            for height in 2..=9 {
                let share = |level| MuStar::share(area, level, height);
                let inner: usize = (2..=height).map(share).sum();
                assert!(inner + share(1) <= area && share(1) >= area / 2);
                // Each may grow to its place in the page buffer, and all of these fit in a page.
                let place = |level| MuStar::extent(area, level, height).len();
                assert!((2..=height).all(|level| share(level) <= place(level)));
                assert!((2..=height).map(place).sum::<usize>() <= area);
            }
        }
    }
}
