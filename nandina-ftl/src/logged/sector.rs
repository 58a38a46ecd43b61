//! A log record as it lies in its sector.
//!
//! A record is whole by itself: it says of which logical page it is, when it was written, and what
//! makes the page of its base page. The checksum also covers where the sector is, so that bytes of
//! a host that look like a record are none. Every value that is read is checked.

use core::ops::Range;

use nandina::flash::{Capabilities, Flash, Geometry, PageNumber};

/// Most sectors of a page, each programmed by itself.
const SECTORS_MAX: u32 = 4;

/// The fewest bytes of a sector: a small difference has to fit.
const BYTES_MIN: u32 = 128;

/// Where each field of a sector lies. All numbers are little-endian.
pub(super) mod field {
    use core::ops::Range;

    pub const CHECKSUM: Range<usize> = 0..4;
    pub const MAGIC: usize = 4;
    pub const KIND: usize = 5;
    /// Bytes of the difference.
    pub const LENGTH: Range<usize> = 6..8;
    pub const SEQUENCE: Range<usize> = 8..14;
    pub const LOGICAL: Range<usize> = 14..18;
    pub const IDENTITY: Range<usize> = 18..22;
    /// The number of the base page in its block.
    pub const BASE: Range<usize> = 22..24;
}

/// Bytes of a sector before the difference.
pub(super) const HEAD: usize = field::BASE.end;

const MAGIC: u8 = b'L';

const CHANGE: u8 = 1;
const HOLE: u8 = 2;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub logical: u32,
    pub sequence: u64,
    /// The number of its base page in the same block.
    pub base: u16,
    /// Bytes of the difference from the base page; `None` if the page was trimmed.
    pub change: Option<usize>,
}

/// How a log page is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sectors {
    /// Sectors of a page, 2 or more.
    pub count: u32,
    /// Bytes of a sector.
    pub bytes: usize,
}

impl Sectors {
    /// The sectors of a page of this chip; `None` if it has too few, or too small ones.
    pub fn of(geometry: &Geometry, capabilities: &Capabilities) -> Option<Self> {
        let programs = capabilities.programs_per_page.map_or(SECTORS_MAX, u32::from);
        let count = programs.min(SECTORS_MAX).min(geometry.page_bytes / BYTES_MIN);
        if count < 2 || !capabilities.overwrite {
            return None;
        }
        Some(Self { count, bytes: (geometry.page_bytes / count) as usize })
    }

    /// The bytes of a sector in its page.
    pub const fn range(&self, sector: u32) -> Range<usize> {
        let at = sector as usize * self.bytes;
        at..at + self.bytes
    }

    /// Seals a record whose difference is in its place.
    ///
    /// `place` is the page and the sector that it is for. Returns the bytes that are used.
    pub fn seal<F: Flash>(
        flash: &mut F,
        bytes: &mut [u8],
        record: &Record,
        identity: u32,
        place: (PageNumber, u32),
    ) -> usize {
        let length = record.change.unwrap_or(0);
        bytes[field::MAGIC] = MAGIC;
        bytes[field::KIND] = if record.change.is_some() { CHANGE } else { HOLE };
        bytes[field::LENGTH].copy_from_slice(&(length as u16).to_le_bytes());
        bytes[field::SEQUENCE].copy_from_slice(&record.sequence.to_le_bytes()[..6]);
        bytes[field::LOGICAL].copy_from_slice(&record.logical.to_le_bytes());
        bytes[field::IDENTITY].copy_from_slice(&identity.to_le_bytes());
        bytes[field::BASE].copy_from_slice(&record.base.to_le_bytes());
        let used = HEAD + length;
        let sum = Self::checksum(flash, &bytes[..used], place);
        bytes[field::CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        used
    }

    /// The record in the bytes of a sector, if they hold one of this formatting of the chip.
    pub fn open<F: Flash>(
        flash: &mut F,
        bytes: &[u8],
        identity: u32,
        place: (PageNumber, u32),
    ) -> Option<Record> {
        let number = |range: Range<usize>| {
            bytes[range].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
        };
        let length = number(field::LENGTH) as usize;
        let used = bytes.get(..HEAD + length)?;
        let is_ours = bytes[field::MAGIC] == MAGIC && number(field::IDENTITY) == identity.into();
        if !is_ours || number(field::CHECKSUM) != Self::checksum(flash, used, place).into() {
            return None;
        }
        let change = match bytes[field::KIND] {
            CHANGE => Some(length),
            HOLE if length == 0 => None,
            _ => return None,
        };
        let (logical, sequence) = (number(field::LOGICAL) as u32, number(field::SEQUENCE));
        let base = number(field::BASE) as u16;
        // As in pages: behind such a number there would be no room for others.
        (sequence < 1 << 47).then_some(Record { logical, sequence, base, change })
    }

    fn checksum<F: Flash>(flash: &mut F, used: &[u8], (page, sector): (PageNumber, u32)) -> u32 {
        let (page, sector) = (page.0.to_le_bytes(), sector.to_le_bytes());
        flash.checksum(&[&page, &sector, &used[field::CHECKSUM.end..]])
    }
}
