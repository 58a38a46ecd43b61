//! Hostile sectors of `rosette-nor`: heads, marks and changes that are whole and say nonsense.
//!
//! What is damaged at random is seen to be damaged: heads and records have checksums, and a slot
//! counts its bits. So each of these is made right again after it was changed. Only the fuzz target
//! writes these bytes; the library has its own code for them, and nothing is checked here.

use nandina::flash::{Flash, Geometry, PageNumber};
use nandina::node::{HEADER_BYTES, PageLayout};
use nandina_sim::Chip;

use super::{Use, VALUE_BYTES};

const KEY_BYTES: usize = 4;
const RECORD_BYTES: usize = KEY_BYTES + VALUE_BYTES;
/// A tag, and a record.
const SLOT_BYTES: usize = 2 + RECORD_BYTES;
/// Records, flags, two fences and a checksum.
const HEAD_BYTES: usize = 8 + 2 * KEY_BYTES;
/// A commit, that it returned, and ends of sessions.
const MARKS_BYTES: usize = 24;
/// Slots whose fingerprints lie together, and bytes of these.
const GROUP: usize = 16;
const GROUP_BYTES: usize = GROUP + 3;

impl Use<'_> {
    /// Changes a part of a sector, which is right again afterwards, in the way that `kind` names.
    pub(super) fn damage_sector(&mut self, chip: &mut Chip, sector: u32, kind: u8) {
        let geometry = chip.profile().geometry;
        let first = geometry.pages_per_block * (sector % geometry.blocks);
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        match kind % 8 {
            0..3 => self.change_head(chip, PageNumber(first), &layout, kind),
            3 => self.change_marks(chip, PageNumber(first + 1)),
            4 => {
                // Records of the first page, and the commit of all.
                let at = usize::from(self.bytes.next_u16()) % (layout.area_bytes() - HEAD_BYTES);
                let byte = self.bytes.next();
                chip.corrupt_page(PageNumber(first), |main, _| main[at] = byte);
                commit(chip, &geometry, first, &layout);
            }
            _ => self.change_slot(chip, &geometry, first, &layout, kind),
        }
    }

    /// Changes a head, or the header behind it, under checksums that are right again.
    fn change_head(&mut self, chip: &mut Chip, page: PageNumber, layout: &PageLayout, kind: u8) {
        let frame_bytes = layout.frame_bytes();
        let mut frame = read(chip, page, frame_bytes);
        let mut header = layout.header(&frame);
        let head_at = layout.area_bytes() - HEAD_BYTES;
        match kind % 8 {
            // The number of records, the flags, or a byte of a fence.
            0 => {
                let at = usize::from(self.bytes.next()) % (HEAD_BYTES - 4);
                frame[head_at + at] = self.bytes.next();
            }
            1 => {
                let high = u64::from(self.bytes.next_u16());
                header.sequence = high << 32 | u64::from(self.bytes.next_u32());
            }
            _ => {
                header.identity = self.bytes.next().into();
                header.erase_count = self.bytes.next_u32();
            }
        }
        let medium = layout.medium(&frame);
        // The checksum of the head covers the header from its version on.
        layout.seal(&mut frame, &medium, &header);
        let header_at = frame_bytes - HEADER_BYTES;
        let own = chip.checksum(&[&frame[head_at..][..HEAD_BYTES - 4], &frame[header_at + 6..]]);
        frame[head_at + HEAD_BYTES - 4..][..4].copy_from_slice(&own.to_le_bytes());
        layout.seal(&mut frame, &medium, &header);
        write(chip, page, &frame);
    }

    /// Changes the marks: any bytes, or whole ones of any checksum.
    fn change_marks(&mut self, chip: &mut Chip, page: PageNumber) {
        let at = usize::from(self.bytes.next()) % MARKS_BYTES;
        let sum = self.bytes.next_u32();
        chip.corrupt_page(page, |main, _| {
            if at < 16 {
                let at = at / 8 * 8;
                main[at..at + 4].copy_from_slice(&sum.to_le_bytes());
                main[at + 4..at + 8].copy_from_slice(&(!sum).to_le_bytes());
            } else {
                main[at] = sum as u8;
            }
        });
    }

    /// Writes a change of any key to any slot, with a tag that fits; some are blank or killed.
    fn change_slot(
        &mut self,
        chip: &mut Chip,
        geometry: &Geometry,
        first: u32,
        layout: &PageLayout,
        kind: u8,
    ) {
        let (groups_at, slots_at, slots) = log(chip, geometry, first, layout);
        let mut slot = [0xFF; SLOT_BYTES];
        let number = usize::from(self.bytes.next()) % slots.max(1);
        slot[2 + KEY_BYTES - 1] = self.bytes.next();
        slot[2..2 + KEY_BYTES - 1].fill(if kind & 8 == 0 { 0 } else { self.bytes.next() });
        slot[2 + KEY_BYTES..].fill(self.bytes.next());
        let bits = u16::from(self.bytes.next());
        let counted = slot[2..].iter().map(|byte| byte.count_zeros()).sum::<u32>() as u16;
        let zeros = counted + (3 - (bits & 7).count_ones() as u16);
        let tag = match kind % 8 {
            5 => 1 << 15 | zeros << 3 | bits & 7,
            6 => bits << 8,
            _ => u16::MAX,
        };
        slot[..2].copy_from_slice(&tag.to_le_bytes());
        put(chip, geometry, first, slots_at + number * SLOT_BYTES, &slot);
        // Fingerprints that are whole and lead anywhere.
        if kind & 16 != 0 && number / GROUP < slots / GROUP {
            let mut group = [self.bytes.next(); GROUP_BYTES];
            group[GROUP + 1] |= 1 << 7;
            let zeros = group[..GROUP_BYTES - 1].iter().map(|byte| byte.count_zeros()).sum::<u32>();
            group[GROUP_BYTES - 1] = zeros as u8;
            put(chip, geometry, first, groups_at + number / GROUP * GROUP_BYTES, &group);
        }
    }
}

/// A page, with what is used of its spare area.
fn read(chip: &mut Chip, page: PageNumber, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    let main_bytes = chip.profile().geometry.page_bytes as usize;
    let (main, spare) = frame.split_at_mut(main_bytes);
    // A page that was never programmed reads as blank, too.
    let _ = chip.read(page, main, spare);
    frame
}

fn write(chip: &mut Chip, page: PageNumber, frame: &[u8]) {
    chip.corrupt_page(page, |main, spare| {
        let (now, rest) = frame.split_at(main.len());
        main.copy_from_slice(now);
        spare[..rest.len()].copy_from_slice(rest);
    });
}

/// Writes bytes at a position of a sector.
fn put(chip: &mut Chip, geometry: &Geometry, first: u32, at: usize, bytes: &[u8]) {
    let page_bytes = geometry.page_bytes as usize;
    let (now, rest) = bytes.split_at(bytes.len().min(page_bytes - at % page_bytes));
    let page = (at / page_bytes) as u32;
    if page >= geometry.pages_per_block {
        return;
    }
    chip.corrupt_page(PageNumber(first + page), |main, _| {
        main[at % page_bytes..][..now.len()].copy_from_slice(now);
    });
    if !rest.is_empty() {
        put(chip, geometry, first, at + now.len(), rest);
    }
}

/// The sorted records that a head names, and those of them that are in its page.
fn sorted(chip: &mut Chip, first: u32, layout: &PageLayout) -> (usize, usize) {
    let frame = read(chip, PageNumber(first), layout.frame_bytes());
    let head_at = layout.area_bytes() - HEAD_BYTES;
    let sorted = usize::from(u16::from_le_bytes([frame[head_at], frame[head_at + 1]]));
    (sorted, sorted.min(head_at / RECORD_BYTES))
}

/// Where the fingerprints of a log begin, where its slots do, and how many there are.
fn log(
    chip: &mut Chip,
    geometry: &Geometry,
    first: u32,
    layout: &PageLayout,
) -> (usize, usize, usize) {
    let (sorted, in_first) = sorted(chip, first, layout);
    let page_bytes = geometry.page_bytes as usize;
    let begin = page_bytes + MARKS_BYTES + (sorted - in_first) * RECORD_BYTES;
    let room = (page_bytes * geometry.pages_per_block as usize).saturating_sub(begin);
    let whole = GROUP * SLOT_BYTES + GROUP_BYTES;
    let slots = room / whole * GROUP + (room % whole / SLOT_BYTES).min(GROUP - 1);
    (begin, begin + slots / GROUP * GROUP_BYTES, slots)
}

/// Writes the commit of the records that are there.
fn commit(chip: &mut Chip, geometry: &Geometry, first: u32, layout: &PageLayout) {
    let (sorted, in_first) = sorted(chip, first, layout);
    let page_bytes = geometry.page_bytes as usize;
    let frame = read(chip, PageNumber(first), page_bytes);
    let mut sum = chip.checksum(&[&0u32.to_le_bytes(), &frame[..in_first * RECORD_BYTES]]);
    let mut at = page_bytes + MARKS_BYTES;
    let end = at + (sorted - in_first) * RECORD_BYTES;
    while at < end.min(page_bytes * geometry.pages_per_block as usize) {
        let to = ((at / page_bytes + 1) * page_bytes).min(end);
        let page = read(chip, PageNumber(first + (at / page_bytes) as u32), page_bytes);
        let start = at % page_bytes;
        sum = chip.checksum(&[&sum.to_le_bytes(), &page[start..start + to - at]]);
        at = to;
    }
    let commit = [sum.to_le_bytes(), (!sum).to_le_bytes()].concat();
    put(chip, geometry, first, page_bytes, &commit);
}
