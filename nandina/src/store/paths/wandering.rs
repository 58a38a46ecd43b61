//! `wandering`: a B+-tree in which every node fills a page of its own.
//!
//! A changed node is written to a new page. So its parent must be written as well, and every
//! ancestor up to the root (the B+-tree of JFFS3; μ-Tree paper, section 2.3).

use crate::engine::Description;
use crate::error::Fault;
use crate::flash::Flash;
use crate::space::{Kind as _, Paths, Space};
use crate::tree::{Halves, Level, Origin, Placement, Written};

/// A B+-tree whose whole path moves to new pages with each update.
#[derive(Default)]
pub struct Wandering;

impl Placement for Wandering {
    type Kind = Paths;

    const DESCRIPTION: Description = Description {
        key: "wandering",
        name: "wandering B+-tree",
        summary: "a changed leaf is written to a new page, and its whole path with it",
        source: "μ-Tree paper (Kang et al., EMSOFT 2007), section 2.3",
        code: 1,
        buffers_min: 2,
        buffers_default: 4,
        updates: Paths::UPDATES,
        checkpoints: true,
        ..Description::EMPTY
    };

    // The last buffer is kept for the upper half of a split. With too few buffers for a whole path,
    // levels share one, and a displaced node is read again.
    fn working(level: u8, _height: u8, buffers: usize) -> usize {
        (usize::from(level) - 1) % (buffers - 1)
    }

    fn spare(_level: u8, _height: u8, buffers: usize) -> usize {
        buffers - 1
    }

    fn write<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        Level { level, height, .. }: Level,
        _origin: Origin,
        records: u32,
    ) -> Result<Written, Fault<F::Error>> {
        let frame = Self::working(level, height, space.log.frames.count());
        let root_height = if level == height { height } else { 0 };
        Ok(Written::At(space.program(frame, level, root_height, records)?.0))
    }

    fn write_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        Level { level, .. }: Level,
        Halves { left, right, .. }: Halves,
        records: u32,
    ) -> Result<(u32, u32), Fault<F::Error>> {
        let left = space.program(left, level, 0, records)?;
        let right = space.program(right, level, 0, records)?;
        Ok((left.0, right.0))
    }
}
