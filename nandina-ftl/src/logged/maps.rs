//! Maps of a logging FTL in the caller's RAM: logical pages, and blocks.
//!
//! Nothing here calls a chip.

/// Bytes of a logical page: its base page, and its newest record.
pub(super) const LOGICAL_BYTES: usize = 4 + 2;

/// Bytes of a block.
pub(super) const ROW_BYTES: usize = 8 + 5 * 2 + 1;

const NONE: u32 = u32::MAX;
const NO_RECORD: u16 = 0x7FFF;
const IS_HOLE: u16 = 0x8000;

const SUSPECT: u8 = 1;
const CLOSED: u8 = 2;
const WINNER: u8 = 4;
const DAMAGED: u8 = 8;

/// The most pages of a block with so many sectors each, so that a record's place has a number.
pub(super) const fn block_pages_max(sectors: u32) -> u32 {
    NO_RECORD as u32 / sectors
}

/// Where a logical page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    /// Its base page; if it is a hole, the page that says so.
    pub page: u32,
    /// The newest record: the number of its sector in the block.
    pub record: Option<u16>,
    /// Whether it was trimmed.
    pub is_hole: bool,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// The highest sequence number in it.
    pub last: u64,
    /// Pages that were programmed.
    pub next: u16,
    /// Of these, log pages.
    pub logs: u16,
    /// The place of the last log page and one; 0 for none.
    pub log: u16,
    /// Sectors of that page that were programmed.
    pub filled: u16,
    /// Logical pages that are in it, holes included.
    pub held: u16,
    /// Whether it has to be merged before anything else is written.
    pub is_suspect: bool,
    /// Whether nothing is programmed in it any more, because it was begun before a mount.
    pub is_closed: bool,
    /// Whether it has a newer state of a page that another block has too.
    pub is_winner: bool,
    /// Whether something before what counts cannot be read.
    pub is_damaged: bool,
}

/// Both maps.
pub(super) struct Maps<'b> {
    logical: &'b mut [u8],
    rows: &'b mut [u8],
}

impl<'b> Maps<'b> {
    pub fn new(memory: &'b mut [u8], logical_pages: u32) -> Self {
        let (logical, rows) = memory.split_at_mut(logical_pages as usize * LOGICAL_BYTES);
        let mut maps = Self { logical, rows };
        maps.clear();
        maps
    }

    pub fn clear(&mut self) {
        self.rows.fill(0);
        self.logical.fill(0xFF);
    }

    pub fn home(&self, logical: u32) -> Option<Home> {
        let at = logical as usize * LOGICAL_BYTES;
        let bytes = self.logical.get(at..at + LOGICAL_BYTES)?;
        let page = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let record = u16::from_le_bytes([bytes[4], bytes[5]]);
        let (is_hole, record) = (record & IS_HOLE != 0, record & !IS_HOLE);
        let record = (record != NO_RECORD).then_some(record);
        (page != NONE).then_some(Home { page, record, is_hole })
    }

    /// Notes where a logical page is.
    pub fn set_home(&mut self, logical: u32, home: Option<Home>) {
        let (page, record) = match home {
            None => (NONE, u16::MAX),
            Some(Home { page, record, is_hole }) => {
                (page, record.unwrap_or(NO_RECORD) | if is_hole { IS_HOLE } else { 0 })
            }
        };
        let at = logical as usize * LOGICAL_BYTES;
        if let Some(bytes) = self.logical.get_mut(at..at + LOGICAL_BYTES) {
            bytes[..4].copy_from_slice(&page.to_le_bytes());
            bytes[4..].copy_from_slice(&record.to_le_bytes());
        }
    }

    pub fn row(&self, block: u32) -> Row {
        let at = block as usize * ROW_BYTES;
        let bytes = &self.rows[at..at + ROW_BYTES];
        let small = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let last = (0..8).rev().fold(0, |all, at| all << 8 | u64::from(bytes[at]));
        Row {
            last,
            next: small(8),
            logs: small(10),
            log: small(12),
            filled: small(14),
            held: small(16),
            is_suspect: bytes[18] & SUSPECT != 0,
            is_closed: bytes[18] & CLOSED != 0,
            is_winner: bytes[18] & WINNER != 0,
            is_damaged: bytes[18] & DAMAGED != 0,
        }
    }

    pub fn set_row(&mut self, block: u32, row: Row) {
        let at = block as usize * ROW_BYTES;
        let bytes = &mut self.rows[at..at + ROW_BYTES];
        bytes[..8].copy_from_slice(&row.last.to_le_bytes());
        let small = [row.next, row.logs, row.log, row.filled, row.held];
        for (bytes, number) in bytes[8..18].chunks_exact_mut(2).zip(small) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        let flags = [
            (row.is_suspect, SUSPECT),
            (row.is_closed, CLOSED),
            (row.is_winner, WINNER),
            (row.is_damaged, DAMAGED),
        ];
        bytes[18] = flags.iter().filter(|flag| flag.0).fold(0, |all, flag| all | flag.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_remember_what_they_are_told() {
        let mut memory = [7; 3 * LOGICAL_BYTES + 2 * ROW_BYTES];
        let mut maps = Maps::new(&mut memory, 3);
        assert_eq!((maps.home(2), maps.row(1)), (None, Row::default()));
        let homes = [
            Home { page: 9, record: None, is_hole: false },
            Home { page: 1 << 30, record: Some(NO_RECORD - 1), is_hole: false },
            Home { page: 5, record: Some(0), is_hole: true },
        ];
        for (logical, home) in (0..).zip(homes) {
            maps.set_home(logical, Some(home));
        }
        let row = Row {
            last: 1 << 46,
            next: 64,
            logs: 4,
            log: 61,
            filled: 3,
            held: 60,
            is_suspect: true,
            is_closed: false,
            is_winner: true,
            is_damaged: false,
        };
        maps.set_row(1, row);
        assert_eq!((0..3).map(|at| maps.home(at).unwrap()).collect::<std::vec::Vec<_>>(), homes);
        assert_eq!((maps.row(0), maps.row(1)), (Row::default(), row));
        maps.set_home(1, None);
        assert_eq!((maps.home(1), maps.home(3)), (None, None));
    }
}
