//! Hostile pages of a journal: counts, kinds, keys and numbers that are whole and say nonsense.
//!
//! Pages have checksums, and a slot counts its bits. So each of these is made right again after it
//! was changed. Only the fuzz target writes these bytes, and nothing is checked here.

use nandina::flash::PageNumber;
use nandina::node::{ONE_BY_ONE, PageHeader, PageLayout};
use nandina_sim::Chip;

use super::{Use, VALUE_BYTES};

const KEY_BYTES: usize = 4;
/// The count of changes with which a page begins that is programmed at once.
const COUNT_BYTES: usize = 2;
/// A kind, and a record.
const ENTRY_BYTES: usize = 1 + KEY_BYTES + VALUE_BYTES;
/// A tag, and a record.
const SLOT_BYTES: usize = 2 + KEY_BYTES + VALUE_BYTES;

/// The tag of a page of values that collection moved.
const MOVED: u8 = 17;

impl Use<'_> {
    /// Changes a page of the journal in the way that `kind` names, and makes it right again.
    ///
    /// It is one of those of the chip that `choice` names; without any, nothing is changed.
    pub(super) fn damage_journal(&mut self, chip: &mut Chip, choice: u32, kind: u8) {
        let geometry = chip.profile().geometry;
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        let pages: Vec<_> = (0..geometry.pages())
            .map(PageNumber)
            .filter(|&page| is_of_journal(chip, page, &layout))
            .collect();
        let Some(&page) = pages.get(choice as usize % pages.len().max(1)) else { return };
        chip.corrupt_page(page, |main, spare| {
            let used = layout.frame_bytes() - main.len();
            let mut frame = [&*main, &spare[..used]].concat();
            let mut header = layout.header(&frame);
            let area = &mut frame[..layout.area_bytes()];
            match kind % 8 {
                0..4 if header.lowest == ONE_BY_ONE => self.damage_slot(area, kind),
                // A count that may run over.
                0 => area[..COUNT_BYTES].copy_from_slice(&self.bytes.next_u16().to_le_bytes()),
                1 => area[0] = self.bytes.next() % 20,
                // A kind that may not be known, or a byte of a record.
                2 | 3 => {
                    let at = usize::from(self.bytes.next()) % (area.len() / ENTRY_BYTES);
                    let byte = usize::from(self.bytes.next()) % (1 + KEY_BYTES);
                    let byte = if kind % 8 == 2 { 0 } else { byte };
                    area[COUNT_BYTES + at * ENTRY_BYTES + byte] = self.bytes.next();
                }
                4 => header.sequence += u64::from(self.bytes.next_u16()),
                5 => header.sequence = header.sequence.saturating_sub(self.bytes.next().into()),
                6 => self.change_kind_of_page(&mut header),
                _ => header.records = self.bytes.next_u32(),
            }
            layout.reseal(&mut frame, &header);
            main.copy_from_slice(&frame[..main.len()]);
            spare[..used].copy_from_slice(&frame[main.len()..]);
        });
    }

    /// Makes a page of the journal one of moved values or of nodes, or the other way round.
    fn change_kind_of_page(&mut self, header: &mut PageHeader) {
        match self.bytes.next() % 4 {
            0 => header.tag = MOVED,
            1 => header.tag = self.bytes.next() % 32,
            2 => header.lowest = [1, ONE_BY_ONE, 2, 254][usize::from(self.bytes.next() % 4)],
            _ => header.height = self.bytes.next() % 4,
        }
    }

    /// Writes a change of any key to any slot, with a tag that fits; some are blank or killed.
    fn damage_slot(&mut self, area: &mut [u8], kind: u8) {
        let at = usize::from(self.bytes.next()) % (area.len() / SLOT_BYTES);
        let end = area.len() - at * SLOT_BYTES;
        let slot = &mut area[end - SLOT_BYTES..end];
        slot[2..2 + KEY_BYTES - 1].fill(0);
        slot[2 + KEY_BYTES - 1] = self.bytes.next();
        slot[2 + KEY_BYTES..].fill(self.bytes.next());
        let bits = u16::from(self.bytes.next());
        let counted = slot[2..].iter().map(|byte| byte.count_zeros()).sum::<u32>() as u16;
        let zeros = counted + (3 - (bits & 7).count_ones() as u16);
        let tag = match kind % 4 {
            0 | 1 => 1 << 15 | zeros << 3 | bits & 7,
            2 => bits << 8,
            _ => u16::MAX,
        };
        slot[..2].copy_from_slice(&tag.to_le_bytes());
    }
}

/// Whether a page is whole and holds changes, or values that were moved.
fn is_of_journal(chip: &mut Chip, page: PageNumber, layout: &PageLayout) -> bool {
    let mut is_one = false;
    chip.corrupt_page(page, |main, spare| {
        let frame = [&*main, &spare[..layout.frame_bytes() - main.len()]].concat();
        is_one = layout.open(&frame).is_ok_and(|header| {
            header.height == 0 && header.lowest > 0 && matches!(header.tag, 0 | MOVED)
        });
    });
    is_one
}
