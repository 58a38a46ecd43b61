//! `vm`: the VMTree. Mappings in RAM lead from old pointers to new pages of nodes.
//!
//! A changed node is written to the next page, and a mapping leads to it from the pointer in its
//! parent, so the parent need not be written (VMTree paper, sections 4.2 and 4.4).
//!
//! The parent is written when the table has no room for a mapping, when enough of its children have
//! one, when it takes in the upper half of a split child, or when the block that holds a child is
//! collected. It then stores the current pages of all of its children, and their mappings are
//! removed (they are *flushed*).
//!
//! ```text
//! | node | name: u32 |
//! ```
//!
//! `name` is the node's *logical address*: the page number by which its parent refers to it, or all
//! ones if that is the node's own page. The root is known in RAM and never mapped. Each page that
//! is written under its logical address commits an operation, as a root does. A mount recovers the
//! mappings by reading the logical addresses of all pages. Each page carries the number of the
//! newest root in its tag, so that a mount does not take an older root for one that was lost.

use crate::engine::{Description, SplitCommit};
use core::ops::Range;

use crate::bytes::u32_at;
use crate::error::Fault;
use crate::flash::Flash;
use crate::node::TAG_MAX;
use crate::space::{Kind as _, Maps, Space};
use crate::tree::{Halves, Level, Origin, Placement, Written, node_in, node_mut_in};

/// VMTree: new pages, and virtual mappings instead of new parents.
#[derive(Default)]
pub struct Vm;

const ADDRESS_BYTES: usize = 4;

/// In place of a logical address: the parent points to the node's page.
const NO_ADDRESS: u32 = u32::MAX;

impl Vm {
    fn set_address<F: Flash>(space: &mut Space<'_, F, Maps>, frame: usize, name: Option<u32>) {
        let area_bytes = space.log.layout().area_bytes();
        let name = name.unwrap_or(NO_ADDRESS).to_le_bytes();
        space.log.frames.bytes_mut(frame)[area_bytes - ADDRESS_BYTES..area_bytes]
            .copy_from_slice(&name);
    }

    /// Flushes mappings: the node in `frame` takes the current pages of its children.
    fn flush_mappings<F: Flash>(space: &mut Space<'_, F, Maps>, frame: usize, level: Level) {
        if level.level == 1 || space.mappings.len() == 0 {
            return;
        }
        let mut slot = 0;
        while let Some(node) = node_in::<Self, F>(space, frame, level)
            && slot < node.count()
        {
            let name = node.pointer(slot);
            let page = space.current_page(name);
            if page != name
                && let Some(mut node) = node_mut_in::<Self, F>(space, frame, level)
            {
                node.set_payload(slot, &page.to_le_bytes());
                space.forget_address(name);
            }
            slot += 1;
        }
    }
}

impl Placement for Vm {
    type Kind = Maps;

    const DESCRIPTION: Description = Description {
        key: "vm",
        name: "VMTree",
        summary: "a changed node is written to the next page, and a table in RAM leads to it",
        source: "VMTree paper (Ould-Khessal, Fazackerley and Lawrence), sections 4.2 to 4.5",
        code: 3,
        checkpoints: true,
        updates: Maps::UPDATES,
        ..Description::EMPTY
    };

    const SPLITS: SplitCommit = SplitCommit::ParentOfUpper;

    fn extent(area_bytes: usize, _level: u8, _height: u8) -> Range<usize> {
        0..area_bytes.saturating_sub(ADDRESS_BYTES)
    }

    fn write<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        origin: Origin,
        records: u32,
    ) -> Result<Written, Fault<F::Error>> {
        let frame = Self::working(level.level, level.height, space.log.frames.count());
        Self::flush_mappings(space, frame, level);
        let is_root = level.level == level.height;
        let stays = origin.name.filter(|&name| !is_root && !origin.leave && space.can_map(name));
        Self::set_address(space, frame, stays);
        if is_root {
            space.log.set_tag(1 + space.log.tag() % TAG_MAX);
        }
        let commits = if is_root || stays.is_some() { level.height } else { 0 };
        let page = space.program(frame, level.level, commits, records)?;
        match (stays, origin.name) {
            (Some(name), _) => {
                space.map(name, page);
                return Ok(Written::Stays);
            }
            (None, Some(name)) => space.forget_address(name),
            (None, None) => {}
        }
        Ok(Written::At(page.0))
    }

    fn write_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        Halves { name, right, .. }: Halves,
        records: u32,
    ) -> Result<(u32, u32), Fault<F::Error>> {
        Self::flush_mappings(space, right, level);
        Ok((name, self.copy(space, right, level, records)?))
    }

    fn address_in(area: &[u8]) -> Option<u32> {
        let name = u32_at(area, area.len() - ADDRESS_BYTES);
        (name != NO_ADDRESS).then_some(name)
    }

    fn copy<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        frame: usize,
        level: Level,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        Self::set_address(space, frame, None);
        Ok(space.program(frame, level.level, 0, records)?.0)
    }
}
