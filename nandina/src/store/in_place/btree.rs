//! `btree`: a B-tree updated in place, on devices that can rewrite any page.
//!
//! Such a device is an SD card or another block device, or a chip that erases single pages (VMTree
//! paper, section 4.6).
//!
//! The paper's B-tree rewrites the page itself, so a power failure during the write destroys the
//! page. Here each logical page has two shadow pages that are written alternately, so an update is
//! still one program and a cut leaves the previous state intact. A split writes the upper half to a
//! free logical page, then the parent, which commits; the lower half is trimmed wherever it is
//! read. The price is half of the device. The root is always stored in the first logical page. The
//! second one lists the sequence numbers of pages that do not count because they may be torn.

use super::shadow_pages::ROOT as ROOT_PAGE;
use crate::engine::{Description, SplitCommit};
use crate::error::Fault;
use crate::flash::{Flash, Needs, PageNumber};
use crate::space::{InPlace, Kind as _, Space};
use crate::tree::{Halves, Level, Origin, Placement, Written};

/// The B-tree, updated in place.
#[derive(Default)]
pub struct BTree;

impl Placement for BTree {
    type Kind = InPlace;

    const DESCRIPTION: Description = Description {
        key: "btree",
        name: "B-tree in place",
        summary: "a changed node replaces itself, in the older of two pages where a write may tear",
        source: "VMTree paper (Ould-Khessal, Fazackerley and Lawrence), section 4.6",
        needs: Needs { rewrite: true, no_bad_blocks: true, ..Needs::NOTHING },
        code: 4,
        updates: InPlace::UPDATES,
        checkpoints: true,
        checkpoints_at_close: true,
        ..Description::EMPTY
    };

    const SPLITS: SplitCommit = SplitCommit::ParentOfUpper;

    fn supersede<F: Flash>(_space: &mut Space<'_, F, Self::Kind>, _page: u32, _divided: bool) {}

    fn remove_empty<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        _level: u8,
        name: u32,
    ) {
        space.retire(PageNumber(name));
    }

    fn path_pages(_height: u8) -> u32 {
        1
    }

    fn growth_pages(from: u8, to: u8) -> u32 {
        (to - from).into()
    }

    fn write<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        Level { level, height, .. }: Level,
        origin: Origin,
        records: u32,
    ) -> Result<Written, Fault<F::Error>> {
        let frame = Self::working(level, height, space.log.frames.count());
        if level == height {
            space.replace(frame, ROOT_PAGE, level, height, records)?;
            return Ok(Written::At(ROOT_PAGE));
        }
        match origin.name {
            Some(name) => {
                space.replace(frame, name, level, 0, records)?;
                Ok(Written::Stays)
            }
            None => Ok(Written::At(space.replace_free(frame, level, records)?)),
        }
    }

    fn write_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        Level { level, .. }: Level,
        Halves { name, left, right }: Halves,
        records: u32,
    ) -> Result<(u32, u32), Fault<F::Error>> {
        let upper = space.replace_free(right, level, records)?;
        // The new root takes the logical page of the old one.
        let lower =
            if name == ROOT_PAGE { space.replace_free(left, level, records)? } else { name };
        Ok((lower, upper))
    }

    fn copy<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        frame: usize,
        level: Level,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        space.replace_free(frame, level.level, records)
    }
}
