//! A page as it stands on the medium: an area for nodes, then a header that describes and seals it.
//!
//! The header is the last of what a page buffer holds: in the spare area as far as that reaches, and else in the last
//! bytes of the main data. Every page describes its medium, so that no single page is precious and none wears first.
//!
//! ```text
//!  0 checksum u32      CRC-32C over the node area and the rest of the header
//!  4 magic "Nd"        6 format version u8      7 system u8
//!  8 identity u32      which formatting of the medium this page belongs to
//! 12 sequence u48      counts programs over the whole life of the medium, below 2^47
//! 18 lowest level u8   of the nodes in this page, or 0 in a page of a checkpoint
//! 19 height u8         of the tree, if its root is in this page, else 0
//! 20 key bytes u16    22 value bytes u16
//! 24 blocks u32       28 pages per block u16    30 checkpoints u8, 0 or 1, and 2 more while a mount settles   31 appended u8, 0 or 1
//! 32 erase count u32   of this page's block
//! 36 records u32       in the index, as of this page
//! ```

use super::{Shape, appended, checksum};
use crate::bytes;
/// Bytes of a page header.
pub const HEADER_BYTES: usize = 40;

/// Records that the first page tells of which is programmed after a mount: it commits nothing, and no node leads to it.
pub(crate) const SESSION_START: u32 = u32::MAX;

/// Records that the last page tells of which a session programmed, if it ended by
/// [`Index::close`](crate::Index::close): all before it is whole. No node leads to it either.
pub(crate) const SESSION_END: u32 = u32::MAX - 1;

/// Version of the format on the medium. Media of another version are refused.
pub const VERSION: u8 = 1;

const MAGIC: [u8; 2] = *b"Nd";

/// No chip lives for this many programs. A page that tells of more is not ours, however its checksum was
/// made; and from any other page on, sequence numbers never reach the end of their six bytes.
const SEQUENCE_END: u64 = 1 << 47;

/// What an index is made for. It is fixed when the medium is formatted and checked when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Medium {
    /// Number of the system that wrote the medium.
    pub system: u8,
    /// Bytes of a key.
    pub key_bytes: u16,
    /// Bytes of a value.
    pub value_bytes: u16,
    /// Blocks in the chip.
    pub blocks: u32,
    /// Pages in a block.
    pub pages_per_block: u16,
    /// Checkpoints are written, so blocks are opened in the order that they tell.
    pub checkpoints: bool,
    /// Nodes are of appended records ([`super::appended`]): a page's checksum covers what was programmed first.
    pub appended: bool,
}

/// What a page says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHeader {
    /// What the index is made for.
    pub medium: Medium,
    /// Which formatting of the medium the page belongs to.
    pub identity: u32,
    /// Rises with every program.
    pub sequence: u64,
    /// Lowest level of the nodes in the page, or 0 if it belongs to a checkpoint and holds no nodes.
    pub lowest: u8,
    /// Height of the tree if the root is in the page, else 0.
    pub height: u8,
    /// How often the block had been erased when the page was programmed.
    pub erase_count: u32,
    /// Records in the index as of this page.
    pub records: u32,
    /// The page was programmed by a mount that had not settled yet what may be torn.
    pub settling: bool,
}

impl PageHeader {
    /// Whether the page is the first of a session: it commits nothing, and no node leads to it.
    pub const fn begins_session(&self) -> bool {
        self.height == 0 && self.records == SESSION_START
    }
}

/// Why bytes are not a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageFault {
    /// Every byte is `0xFF`: the page is erased.
    Erased,
    /// No magic, or the checksum does not match.
    Damaged,
    /// The chip cannot read the page.
    Unreadable,
    /// A page of another format version.
    Version(u8),
    /// A page of appended records, where none are read: what its header says, unchecked.
    Appended {
        /// Number of the system that wrote it.
        system: u8,
        /// Its sequence number.
        sequence: u64,
    },
}

/// Where the parts of a page lie in a page buffer: main data, then the used part of the spare area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageLayout {
    page_bytes: usize,
    frame_bytes: usize,
}

impl PageLayout {
    /// The layout for pages of `page_bytes` with `spare_bytes` beside them.
    pub const fn new(page_bytes: usize, spare_bytes: usize) -> Self {
        let beside = if spare_bytes < HEADER_BYTES { spare_bytes } else { HEADER_BYTES };
        Self { page_bytes, frame_bytes: page_bytes + beside }
    }

    /// Bytes of a page buffer.
    pub const fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Bytes of main data.
    pub const fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Bytes for nodes, from the start of the page buffer; none where not even the header fits.
    pub const fn area_bytes(&self) -> usize {
        self.frame_bytes.saturating_sub(HEADER_BYTES)
    }

    /// Writes the header of `frame` and its checksum.
    pub fn seal(&self, frame: &mut [u8], header: &PageHeader) {
        self.seal_as(frame, header, header.medium.appended);
    }

    /// Writes the header of `frame`, whose records are appended or not, and its checksum.
    #[inline]
    pub(crate) fn seal_as(&self, frame: &mut [u8], header: &PageHeader, appended: bool) {
        self.write_header(frame, header);
        // What cannot be sealed does not open either.
        let checksum = self.checksum(frame, appended).unwrap_or(0);
        let at = self.area_bytes();
        frame[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Writes the header of `frame` without a checksum: it is no page of a medium yet.
    pub fn write_header(&self, frame: &mut [u8], header: &PageHeader) {
        let at = self.area_bytes();
        let medium = &header.medium;
        let out = &mut frame[at..at + HEADER_BYTES];
        out[4..6].copy_from_slice(&MAGIC);
        out[6] = VERSION;
        out[7] = medium.system;
        out[8..12].copy_from_slice(&header.identity.to_le_bytes());
        out[12..18].copy_from_slice(&header.sequence.to_le_bytes()[..6]);
        out[18] = header.lowest;
        out[19] = header.height;
        out[20..22].copy_from_slice(&medium.key_bytes.to_le_bytes());
        out[22..24].copy_from_slice(&medium.value_bytes.to_le_bytes());
        out[24..28].copy_from_slice(&medium.blocks.to_le_bytes());
        out[28..30].copy_from_slice(&medium.pages_per_block.to_le_bytes());
        let flags = u8::from(medium.checkpoints) | u8::from(header.settling) << 1;
        out[30..32].copy_from_slice(&[flags, medium.appended.into()]);
        out[32..36].copy_from_slice(&header.erase_count.to_le_bytes());
        out[36..40].copy_from_slice(&header.records.to_le_bytes());
    }

    /// Reads the header of a page that came from the medium, and checks the whole page.
    pub fn open(&self, frame: &[u8]) -> Result<PageHeader, PageFault> {
        self.check_as(frame, true).map(|()| self.header(frame))
    }

    /// Checks a page that came from the medium; where `appended` is false, pages of appended records are not read.
    #[inline]
    pub(crate) fn check_as(&self, frame: &[u8], appended: bool) -> Result<(), PageFault> {
        let header = &frame[self.area_bytes()..];
        if header[4..6] != MAGIC {
            let erased = frame.iter().all(|&byte| byte == 0xFF);
            return Err(if erased { PageFault::Erased } else { PageFault::Damaged });
        }
        if header[6] != VERSION {
            return Err(PageFault::Version(header[6]));
        }
        let is_appended = header[31] != 0;
        if is_appended && !appended {
            let sequence = self.sequence(frame);
            return Err(PageFault::Appended { system: header[7], sequence });
        }
        if self.checksum(frame, is_appended && appended) != Some(bytes::u32_at(header, 0)) {
            return Err(PageFault::Damaged);
        }
        if self.sequence(frame) >= SEQUENCE_END { Err(PageFault::Damaged) } else { Ok(()) }
    }

    /// Reads the header of a page that was checked before.
    pub fn header(&self, frame: &[u8]) -> PageHeader {
        let bytes = &frame[self.area_bytes()..];
        PageHeader {
            medium: self.medium(frame),
            identity: self.identity(frame),
            sequence: self.sequence(frame),
            lowest: bytes[18],
            height: bytes[19],
            erase_count: self.erase_count(frame),
            records: bytes::u32_at(bytes, 36),
            settling: bytes[30] & 2 != 0,
        }
    }

    // What is needed deep in an operation is read by itself, so that no whole header stands on the stack there.

    /// What a page that was checked is for.
    pub(crate) fn medium(&self, frame: &[u8]) -> Medium {
        let bytes = &frame[self.area_bytes()..];
        Medium {
            system: bytes[7],
            key_bytes: bytes::u16_at(bytes, 20),
            value_bytes: bytes::u16_at(bytes, 22),
            blocks: bytes::u32_at(bytes, 24),
            pages_per_block: bytes::u16_at(bytes, 28),
            checkpoints: bytes[30] & 1 != 0,
            appended: bytes[31] != 0,
        }
    }

    /// Of which formatting a page is that was checked.
    pub(crate) fn identity(&self, frame: &[u8]) -> u32 {
        bytes::u32_at(&frame[self.area_bytes()..], 8)
    }

    /// The sequence number of a page.
    pub(crate) fn sequence(&self, frame: &[u8]) -> u64 {
        let bytes = &frame[self.area_bytes()..];
        u64::from(bytes::u32_at(bytes, 12)) | u64::from(bytes::u16_at(bytes, 16)) << 32
    }

    /// Lowest level of the nodes in a page that was checked.
    pub(crate) fn lowest(&self, frame: &[u8]) -> u8 {
        frame[self.area_bytes() + 18]
    }

    /// Erases of its block that a page tells of that was checked.
    pub(crate) fn erase_count(&self, frame: &[u8]) -> u32 {
        bytes::u32_at(&frame[self.area_bytes()..], 32)
    }

    /// The checksum of the page in `frame`, if it is one at all.
    #[inline]
    fn checksum(&self, frame: &[u8], appended: bool) -> Option<u32> {
        let (area, header) = frame.split_at(self.area_bytes());
        let header = &header[4..HEADER_BYTES];
        if !appended {
            return Some(checksum::of(&[area, header]));
        }
        let [head, records] = appended::sealed(area, &self.appended_shape(frame)?).ok()?;
        Some(checksum::of(&[head, records, header]))
    }

    /// The shape of the node of appended records in `frame`, if it can be one.
    fn appended_shape(&self, frame: &[u8]) -> Option<Shape> {
        let header = self.header(frame);
        let medium = header.medium;
        let (key_bytes, value_bytes) = (medium.key_bytes.into(), medium.value_bytes.into());
        let shape = match header.lowest {
            1 => Shape::sorted(key_bytes, value_bytes),
            _ => Shape::inner(key_bytes),
        };
        shape.appended(self.area_bytes())
    }

    /// Makes of the node in `frame`, a page that was opened, what it is in RAM ([`appended::unpack`]); answers
    /// whether it is one. Where records are not appended, it is the same.
    pub fn unpack(&self, frame: &mut [u8]) -> bool {
        if !self.header(frame).medium.appended {
            return true;
        }
        let shape = self.appended_shape(frame);
        let area = &mut frame[..self.area_bytes()];
        shape.is_some_and(|shape| appended::unpack(area, &shape).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: PageHeader = PageHeader {
        medium: Medium {
            system: 2,
            key_bytes: 4,
            value_bytes: 8,
            blocks: 0x0102_0304,
            pages_per_block: 64,
            checkpoints: true,
            appended: false,
        },
        identity: 7,
        sequence: 0x0000_7EDC_BA98_7654,
        lowest: 1,
        height: 3,
        erase_count: 99,
        records: 1_000_000,
        settling: true,
    };

    #[test]
    fn a_sealed_page_opens_and_any_flipped_bit_is_seen() {
        for spare in [0, 64] {
            let layout = PageLayout::new(512, spare);
            let mut frame = [0x5Au8; 512 + HEADER_BYTES];
            let frame = &mut frame[..layout.frame_bytes()];
            layout.seal(frame, &HEADER);
            assert_eq!(layout.open(frame), Ok(HEADER));
            for byte in 0..frame.len() {
                frame[byte] ^= 0x10;
                assert!(layout.open(frame).is_err(), "byte {byte}");
                frame[byte] ^= 0x10;
            }
        }
    }

    #[test]
    fn an_erased_page_is_not_a_damaged_one() {
        let layout = PageLayout::new(512, 0);
        assert_eq!(layout.open(&[0xFF; 512]), Err(PageFault::Erased));
        assert_eq!(layout.open(&[0; 512]), Err(PageFault::Damaged));
    }

    #[test]
    fn a_sequence_number_that_no_chip_lives_to_see_is_damage() {
        let layout = PageLayout::new(512, 0);
        let mut frame = [0; 512];
        for (sequence, opens) in
            [(SEQUENCE_END - 1, true), (SEQUENCE_END, false), (!0 >> 16, false)]
        {
            layout.seal(&mut frame, &PageHeader { sequence, ..HEADER });
            assert_eq!(layout.open(&frame).is_ok(), opens, "{sequence}");
        }
    }
}
