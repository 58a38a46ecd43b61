//! Reads the newest checkpoint on a chip into the block table.
//!
//! Nothing is written here, and unreadable pages are no error: there is another way to mount.

use core::ops::Range;

use super::anchors::ANCHORS;
use super::area::{Place, area_page};
use super::page::{
    BAD, HEAD_BYTES, Head, Kind, PREFIX_BYTES, Prefix, anchored_block, table_bytes, valid_bytes,
};
use super::{Checkpoint, Checkpoints, Stream, parts_of};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::log::Log;

/// The newest page of an anchor.
struct Anchor {
    number: u64,
    /// The first block of checkpoints to which it leads.
    block: BlockNumber,
    page: PageNumber,
}

impl Checkpoints {
    /// Reads the newest checkpoint into the block table.
    ///
    /// From it the table knows which pages are valid, which blocks are bad, and how often each was
    /// erased.
    ///
    /// Cost: for each anchor and for the checkpoints' block the logarithm of its pages to the base
    /// 2, and a few; the pages of the checkpoint; and one for each of its blocks but the first.
    pub fn find_newest<F: Flash, S: Stream>(
        &mut self,
        log: &mut Log<'_, F>,
        stream: &mut S,
    ) -> Result<Option<Checkpoint>, Fault<F::Error>> {
        self.forget(log);
        if self.every == 0 {
            return Ok(None);
        }
        // A block that was marked as bad since the checkpoint stays known while the checkpoint is
        // read.
        log.find_bad_blocks()?;
        let mut newest: Option<(usize, Anchor)> = None;
        for (which, anchor) in ANCHORS.into_iter().enumerate() {
            if !log.blocks.is_bad(anchor)
                && let Some(found) = last_anchor(log, anchor)?
            {
                self.note_anchor(which, found.block);
                if newest.as_ref().is_none_or(|(_, before)| before.number < found.number) {
                    newest = Some((which, found));
                }
            }
        }
        let Some((which, Anchor { number, block, page })) = newest else { return Ok(None) };
        // The other anchor leads nowhere: the first block of its checkpoint was erased before this
        // one was written. An anchor that can no longer be erased must not stay the one with the
        // highest number.
        self.note_number(number);
        // If all checkpoints have the same size, the search takes one step for each of them.
        let stride = if S::HAS_FIXED_SIZE { parts_of(log, stream) } else { 1 };
        let mut end = match log.block_pages() / stride {
            // A checkpoint that is larger than a block begins with its first block.
            0 => stride,
            most => stride * log.written(block, most, stride)?,
        };
        // The last checkpoint may have been cut; then a complete one lies before it.
        for _ in 0..2 {
            let Some((place, parts)) = last_before::<F, S>(log, block, end, stride)? else { break };
            end = place;
            let at = Place::new(page, (block, place));
            let Some((found, prefix)) = self.read_checkpoint(log, stream, at, parts)? else {
                continue;
            };
            // An anchor that is older than the checkpoints in the block leads to it by chance:
            // after the anchor's last visible page there may be a page that a cut made invisible.
            if prefix.number == number + u64::from(prefix.before) {
                self.reserve_anchors(log);
                let Some(held) = reserve_area(log, at, place + parts)? else { continue };
                self.take_found(which, block, held, log.block_pages());
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Reads the checkpoint at `place` of `block`, if it is whole.
    fn read_checkpoint<F: Flash, S: Stream>(
        &mut self,
        log: &mut Log<'_, F>,
        stream: &mut S,
        place: Place,
        parts: u32,
    ) -> Result<Option<(Checkpoint, Prefix)>, Fault<F::Error>> {
        log.blocks.clear();
        stream.clear();
        let mut found: Option<(Checkpoint, Prefix)> = None;
        let mut at = place;
        for part in 0..parts {
            let Some(page) = at.page_of(log, part)? else { return Ok(None) };
            let Some((header, prefix)) = area_page(log, page)? else { return Ok(None) };
            let first = found.as_ref().map(|(_, first)| *first).unwrap_or(prefix);
            let expected = Prefix { kind: Kind::Checkpoint, part: part as u16, ..first };
            if prefix != expected || u32::from(prefix.parts) != parts {
                return Ok(None);
            }
            let area_bytes = log.layout().area_bytes();
            let geometry = log.geometry();
            let bytes = &log.frames.bytes(0)[PREFIX_BYTES..area_bytes];
            if part == 0 {
                let Some(Head { summary, active, list }) = Head::read(bytes, &geometry) else {
                    return Ok(None);
                };
                self.note_number(prefix.number);
                let checkpoint = Checkpoint::new(header, summary, place, active, list, parts);
                found = Some((checkpoint, prefix));
            }
            let from = part as usize * bytes.len();
            let table = HEAD_BYTES + valid_bytes(&geometry, S::STORES_VALID);
            let owned = table_bytes(&geometry, S::STORES_VALID);
            let skipped = owned.saturating_sub(from).min(bytes.len());
            if !stream.load(from.max(owned) - owned, &bytes[skipped..]) {
                return Ok(None);
            }
            for (at, &byte) in
                (from..).zip(bytes).filter(|(at, _)| (HEAD_BYTES..table).contains(at))
            {
                for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                    let page = ((at - HEAD_BYTES) * 8 + bit) as u32;
                    if page < geometry.pages() {
                        log.blocks.set_valid(PageNumber(page), true);
                    }
                }
            }
            for (at, &byte) in (from..).zip(bytes).filter(|(at, _)| *at >= table) {
                let (block, shift) = (((at - table) / 4) as u32, (at - table) % 4 * 8);
                if block < geometry.blocks {
                    let block = BlockNumber(block);
                    let count = log.blocks.erase_count(block) | u32::from(byte) << shift;
                    log.blocks.set_erase_count(block, count & !BAD);
                    if count & BAD != 0 {
                        log.blocks.set_bad(block);
                    }
                }
            }
        }
        Ok(found.filter(|_| stream.is_sound(log.geometry().pages())))
    }
}

/// Keeps the blocks of the checkpoint at `place` from all other use.
///
/// It ends at `end`, counted from the first page of its first block. Returns their number, or
/// `None` if the anchor that names them can no longer be read.
fn reserve_area<F: Flash>(
    log: &mut Log<'_, F>,
    mut place: Place,
    end: u32,
) -> Result<Option<u8>, Fault<F::Error>> {
    let mut held = 0;
    for part in (0..end).step_by(log.block_pages() as usize) {
        let Some(page) = place.page_of(log, part)? else { return Ok(None) };
        log.blocks.set_reserved(log.geometry().block_of(page), true);
        held += 1;
    }
    Ok(Some(held))
}

/// The newest page of an anchor.
fn last_anchor<F: Flash>(
    log: &mut Log<'_, F>,
    anchor: BlockNumber,
) -> Result<Option<Anchor>, Fault<F::Error>> {
    let next = log.written(anchor, log.block_pages(), 1)?;
    for place in (next.saturating_sub(2)..next).rev() {
        let page = log.page_at(anchor, place);
        if let Some((_, Prefix { kind: Kind::Anchor, number, .. })) = area_page(log, page)? {
            let block = anchored_block(log.frames.bytes(0), 0, &log.geometry());
            return Ok(block.map(|block| Anchor { number, block, page }));
        }
    }
    Ok(None)
}

/// The last checkpoint before the place `end`: where it begins, and its pages.
///
/// It may not be whole.
fn last_before<F: Flash, S: Stream>(
    log: &mut Log<'_, F>,
    block: BlockNumber,
    end: u32,
    stride: u32,
) -> Result<Option<(u32, u32)>, Fault<F::Error>> {
    if S::HAS_FIXED_SIZE {
        return Ok(end.checked_sub(stride).map(|place| (place, stride)));
    }
    // A part of the last one may be damaged, or missing.
    let mut place = end;
    while let Some(before) = place.checked_sub(1) {
        place = before;
        let page = log.page_at(block, place);
        if let Some((_, Prefix { kind: Kind::Checkpoint, part, parts, .. })) = area_page(log, page)?
        {
            let (part, parts) = (u32::from(part), u32::from(parts));
            if parts > log.block_pages() {
                return Ok(Some((0, parts)));
            }
            match place.checked_sub(part) {
                Some(first) if part + 1 == parts => return Ok(Some((first, parts))),
                // The previous checkpoint ends where this one begins.
                first => place = first.unwrap_or(0),
            }
        }
    }
    Ok(None)
}

/// Reads a part of the checkpoint `found` again, into page buffer 0.
///
/// Returns where it has bytes of the owner, whose part of a checkpoint is of type `S`. `None` if
/// it can no longer be read. `place` is where the checkpoint is, and notes the block that is read.
///
/// Cost: one read, and one more for another block than before.
pub fn read_owned<F: Flash, S: Stream>(
    log: &mut Log<'_, F>,
    found: &Checkpoint,
    place: &mut Place,
    part: u32,
) -> Result<Option<Range<usize>>, Fault<F::Error>> {
    let Some(page) = place.page_of(log, part)? else { return Ok(None) };
    let sequence = found.header.sequence + u64::from(part);
    let is_part = area_page(log, page)?.is_some_and(|(header, prefix)| {
        header.sequence == sequence && u32::from(prefix.part) == part
    });
    let area_bytes = log.layout().area_bytes();
    let from = part as usize * (area_bytes - PREFIX_BYTES);
    let owned = table_bytes(&log.geometry(), S::STORES_VALID);
    let skipped = owned.saturating_sub(from);
    Ok(is_part.then_some((PREFIX_BYTES + skipped).min(area_bytes)..area_bytes))
}
