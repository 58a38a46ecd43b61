//! `vm-ow`: VMTree-OW. A changed record is appended to the page of its node.
//!
//! The chip must be able to program a page again (VMTree paper, section 4.3). No mappings are
//! needed, because an appended change does not move the node.
//!
//! A removal clears the record's valid bit. A node is written to a new page when its page has no
//! slot left, when it is split, or when its block is collected; the new pointer is then appended to
//! its parent in turn.
//!
//! Each program commits the changes that it carries. Both pointers of a split child are appended to
//! the parent in one program, the upper half first: if a cut leaves only that one, the lower half
//! is still read from the old page and trimmed.

use crate::engine::{Description, SplitCommit};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, Needs, PageNumber};
use crate::log::Image;
use crate::node::appended::{self, Change};
use crate::space::{Appends, Kind as _, Space};
use crate::tree::{Halves, Level, Origin, Placement, Written};

/// VMTree-OW: records appended in place.
#[derive(Default)]
pub struct VmOw;

/// Largest image of appended records that is built on the stack, in bytes.
///
/// Longer ones are built in another page buffer.
const SHORT_BYTES: usize = 80;

impl VmOw {
    /// Writes the node in `frame` to a new page.
    fn put_whole<F: Flash>(
        space: &mut Space<'_, F, Appends>,
        frame: usize,
        level: Level,
        root_height: u8,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let extent = Self::extent(space.log.layout().area_bytes(), level.level, level.height);
        appended::pack(&mut space.log.frames.bytes_mut(frame)[extent], &level.shape);
        let page = space.program(frame, level.level, root_height, records)?.0;
        if !space.log.layout().unpack(space.log.frames.bytes_mut(frame)) {
            return Err(Fault::Corrupt { page: PageNumber(page), reason: Damage::NoNode });
        }
        space.settle_frame(frame, page);
        Ok(page)
    }

    /// Appends the changes of the node in `frame` to `page`.
    ///
    /// Returns `false` if that is not possible.
    fn tell<F: Flash>(
        space: &mut Space<'_, F, Appends>,
        frame: usize,
        level: Level,
        page: u32,
    ) -> Result<bool, Fault<F::Error>> {
        let (shape, buffers) = (level.shape, space.log.frames.count());
        let extent = Self::extent(space.log.layout().area_bytes(), level.level, level.height);
        let told = match appended::change(&space.log.frames.bytes(frame)[extent.clone()], &shape) {
            Change::Nothing => true,
            Change::Whole => return Ok(false),
            Change::Remove => {
                let area = &mut space.log.frames.bytes_mut(frame)[extent.clone()];
                let Some((at, byte)) = appended::removal(area, &shape) else { return Ok(false) };
                space.overwrite(page, at, Image::Bytes(&[byte]))?
            }
            Change::Append { records } if records * shape.record_bytes() <= SHORT_BYTES => {
                let mut image = [0; SHORT_BYTES];
                let area = &mut space.log.frames.bytes_mut(frame)[extent.clone()];
                let Some((at, bytes)) = appended::append_image(area, &shape, &mut image) else {
                    return Ok(false);
                };
                space.overwrite(page, at, Image::Bytes(&image[..bytes]))?
            }
            Change::Append { .. } => {
                let scratch = Self::spare(level.level, level.height, buffers);
                space.log.frames.forget(scratch);
                let (node, image) = space.log.frames.pair(frame, scratch);
                let made = appended::append_image(&mut node[extent.clone()], &shape, image);
                let Some((at, bytes)) = made else { return Ok(false) };
                space.overwrite(page, at, Image::Frame(scratch, bytes))?
            }
        };
        if !told {
            appended::make_whole(&mut space.log.frames.bytes_mut(frame)[extent], &shape);
        }
        Ok(told)
    }
}

impl Placement for VmOw {
    type Kind = Appends;

    const DESCRIPTION: Description = Description {
        key: "vm-ow",
        name: "VMTree-OW",
        summary: "a changed record is appended to the page that holds its node",
        source: "VMTree paper (Ould-Khessal, Fazackerley and Lawrence), section 4.3",
        needs: Needs { programs_per_page: 2, overwrite: true, ..Needs::NOTHING },
        code: 5,
        checkpoints: true,
        checkpoints_at_close: true,
        updates: Appends::UPDATES,
        ..Description::EMPTY
    };

    const SPLITS: SplitCommit = SplitCommit::ParentOfBoth;

    fn supersede<F: Flash>(_space: &mut Space<'_, F, Self::Kind>, _page: u32, _divided: bool) {}

    fn remove_empty<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        _level: u8,
        name: u32,
    ) {
        space.forget_address(name);
        space.retire(PageNumber(name));
    }

    fn write<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        origin: Origin,
        records: u32,
    ) -> Result<Written, Fault<F::Error>> {
        let frame = Self::working(level.level, level.height, space.log.frames.count());
        if let Some(page) = origin.name
            && !origin.leave
            && space.can_overwrite(page, frame)
            && Self::tell(space, frame, level, page)?
        {
            space.settle_frame(frame, page);
            return Ok(Written::Stays);
        }
        if let Some(page) = origin.name {
            space.retire(PageNumber(page));
        }
        let root_height = if level.level == level.height { level.height } else { 0 };
        Ok(Written::At(Self::put_whole(space, frame, level, root_height, records)?))
    }

    fn write_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        Halves { name, left, right }: Halves,
        records: u32,
    ) -> Result<(u32, u32), Fault<F::Error>> {
        space.retire(PageNumber(name));
        let right = Self::put_whole(space, right, level, 0, records)?;
        Ok((Self::put_whole(space, left, level, 0, records)?, right))
    }

    fn copy<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        frame: usize,
        level: Level,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        Self::put_whole(space, frame, level, 0, records)
    }
}
