//! The header of a page: where each field lies, and what the fields mean.
//!
//! Every page describes its medium, so that no single page is precious and none wears first.
//! `docs/FORMAT.md` lists the same fields, and a test compares its table with [`field`].

use crate::bytes::{u16_at, u32_at};

/// The position of each field in a header. All numbers are little-endian.
pub mod field {
    use core::ops::Range;

    /// CRC-32C of the node area and the rest of the header.
    pub const CHECKSUM: Range<usize> = 0..4;
    pub const MAGIC: Range<usize> = 4..6;
    /// Version of the format.
    pub const VERSION: Range<usize> = 6..7;
    pub const SYSTEM: Range<usize> = 7..8;
    /// Identifies the formatting of the medium that the page belongs to.
    pub const IDENTITY: Range<usize> = 8..12;
    /// Counts programs over the whole life of the medium, below 2^47.
    pub const SEQUENCE: Range<usize> = 12..18;
    /// Lowest level of the nodes in the page, or 0 in a page of a checkpoint.
    pub const LOWEST: Range<usize> = 18..19;
    /// Height of the tree if its root is in the page, and 0 otherwise.
    pub const HEIGHT: Range<usize> = 19..20;
    pub const KEY_BYTES: Range<usize> = 20..22;
    pub const VALUE_BYTES: Range<usize> = 22..24;
    pub const BLOCKS: Range<usize> = 24..28;
    pub const PAGES_PER_BLOCK: Range<usize> = 28..30;
    /// Bits: checkpoints, settling, atomic, and five for the owner's tag.
    pub const FLAGS: Range<usize> = 30..31;
    /// Bits: records are appended to pages; no anchors lead to checkpoints.
    pub const APPENDED: Range<usize> = 31..32;
    /// Erase count of the page's block.
    pub const ERASE_COUNT: Range<usize> = 32..36;
    /// Records in the index, as of this page.
    pub const RECORDS: Range<usize> = 36..40;

    /// All fields, in order, each directly after the previous one.
    #[cfg(test)]
    pub const ALL: [Range<usize>; 16] = [
        CHECKSUM,
        MAGIC,
        VERSION,
        SYSTEM,
        IDENTITY,
        SEQUENCE,
        LOWEST,
        HEIGHT,
        KEY_BYTES,
        VALUE_BYTES,
        BLOCKS,
        PAGES_PER_BLOCK,
        FLAGS,
        APPENDED,
        ERASE_COUNT,
        RECORDS,
    ];
}

/// Bytes of a page header.
pub const HEADER_BYTES: usize = field::RECORDS.end;

/// Flag: the index writes checkpoints.
const CHECKPOINTS: u8 = 1;

/// Flag: the page was written by a mount that was settling.
const SETTLING: u8 = 2;

/// Flag: a logical page is one page, which is replaced as a whole or not at all.
const ATOMIC: u8 = 4;

/// In the byte of appended records: no anchors lead to checkpoints.
pub(super) const REPLACED: u8 = 0x80;

/// Flags before the owner's tag.
const TAG_SHIFT: u32 = 3;

/// The highest tag of an owner.
pub const TAG_MAX: u8 = u8::MAX >> TAG_SHIFT;

/// Lowest level of a page whose changes are programmed one by one.
///
/// Each is sealed by itself, so the checksum covers the header alone. Such a page has no nodes, and
/// no tree has that many levels. Other owners may have the number in pages sealed as a whole.
pub const ONE_BY_ONE: u8 = u8::MAX;

/// Value of the records field that marks the first page of a session.
///
/// That page is programmed after a mount. It commits nothing, and no node leads to it.
pub(crate) const SESSION_START: u32 = u32::MAX;

/// Value of the records field that marks the last page of a session.
///
/// [`Index::close`](crate::Index::close) writes that page: all pages before it are whole. No node
/// leads to it either.
pub(crate) const SESSION_END: u32 = u32::MAX - 1;

/// Value of the records field of a page of a checkpoint.
///
/// There are such pages only where nodes are replaced in place.
pub(crate) const CHECKPOINT: u32 = u32::MAX - 2;

/// Version of the format on the medium. Media of another version are refused.
pub const VERSION: u8 = 2;

pub(super) const MAGIC: [u8; 2] = *b"Nd";

/// The settings of an index.
///
/// They are fixed when the medium is formatted, and checked when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Medium {
    /// The number of the system that wrote the medium.
    pub system: u8,
    /// Bytes of a key.
    pub key_bytes: u16,
    /// Bytes of a value.
    pub value_bytes: u16,
    /// Blocks in the chip.
    pub blocks: u32,
    /// Pages in a block.
    pub pages_per_block: u16,
    /// Whether checkpoints are written, so that they determine the order of blocks.
    pub checkpoints: bool,
    /// Whether records are appended to nodes ([`super::appended`]).
    ///
    /// Then a page's checksum covers only the part that was programmed first.
    pub appended: bool,
    /// Whether a node has one page, which is replaced as a whole or not at all.
    ///
    /// Otherwise, a node that is replaced in place has two shadow pages. `false` for systems that
    /// replace nothing in place.
    pub atomic: bool,
    /// Whether a session page leads to the checkpoints.
    ///
    /// It does so where pages are replaced in place. In other systems anchors lead to them. `false`
    /// without checkpoints.
    pub replaced: bool,
}

/// The header of a page.
///
/// The page carries the settings of its index beside it ([`Medium`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHeader {
    /// Identifies the formatting of the medium that the page belongs to.
    pub identity: u32,
    /// The sequence number: it rises with every program.
    pub sequence: u64,
    /// The lowest level of the nodes in the page.
    ///
    /// 0 if the page belongs to a checkpoint and holds no nodes.
    pub lowest: u8,
    /// Height of the tree if the root is in the page, and 0 otherwise.
    pub height: u8,
    /// Erase count of the block when the page was programmed.
    pub erase_count: u32,
    /// Records in the index as of this page, or `SESSION_START`, or `SESSION_END`.
    pub records: u32,
    /// Whether a mount programmed the page before it had settled what may be torn.
    pub settling: bool,
    /// A number of the owner's choice, 0 to [`TAG_MAX`].
    pub tag: u8,
}

impl PageHeader {
    /// Whether the page is the first of a session.
    ///
    /// It commits nothing, and no node leads to it.
    pub const fn begins_session(&self) -> bool {
        self.height == 0 && self.records == SESSION_START
    }

    /// Whether the page is the last of a session that ended by a close.
    pub const fn ends_session(&self) -> bool {
        self.height == 0 && self.records == SESSION_END
    }

    /// Whether the page is one of a checkpoint among nodes.
    ///
    /// There are such pages only where nodes are replaced in place.
    pub const fn is_of_checkpoint(&self) -> bool {
        self.height == 0 && self.records == CHECKPOINT
    }

    /// Writes all fields except the checksum into `out`, the bytes of a header.
    #[inline]
    pub(super) fn write(&self, medium: &Medium, out: &mut [u8]) {
        let flags = if medium.checkpoints { CHECKPOINTS } else { 0 }
            | if self.settling { SETTLING } else { 0 }
            | if medium.atomic { ATOMIC } else { 0 }
            | self.tag << TAG_SHIFT;
        out[field::MAGIC].copy_from_slice(&MAGIC);
        out[field::VERSION.start] = VERSION;
        out[field::SYSTEM.start] = medium.system;
        out[field::IDENTITY].copy_from_slice(&self.identity.to_le_bytes());
        out[field::SEQUENCE].copy_from_slice(&self.sequence.to_le_bytes()[..field::SEQUENCE.len()]);
        out[field::LOWEST.start] = self.lowest;
        out[field::HEIGHT.start] = self.height;
        out[field::KEY_BYTES].copy_from_slice(&medium.key_bytes.to_le_bytes());
        out[field::VALUE_BYTES].copy_from_slice(&medium.value_bytes.to_le_bytes());
        out[field::BLOCKS].copy_from_slice(&medium.blocks.to_le_bytes());
        out[field::PAGES_PER_BLOCK].copy_from_slice(&medium.pages_per_block.to_le_bytes());
        out[field::FLAGS.start] = flags;
        out[field::APPENDED.start] =
            u8::from(medium.appended) | if medium.replaced { REPLACED } else { 0 };
        out[field::ERASE_COUNT].copy_from_slice(&self.erase_count.to_le_bytes());
        out[field::RECORDS].copy_from_slice(&self.records.to_le_bytes());
    }
}

/// The fields of a page that was read from the medium.
///
/// Fields that are needed deep in an operation are read one by one, so that no whole header lies on
/// the stack there.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    pub fn header(self) -> PageHeader {
        PageHeader {
            identity: self.identity(),
            sequence: self.sequence(),
            lowest: self.lowest(),
            height: self.0[field::HEIGHT.start],
            erase_count: self.erase_count(),
            records: u32_at(self.0, field::RECORDS.start),
            settling: self.0[field::FLAGS.start] & SETTLING != 0,
            tag: self.0[field::FLAGS.start] >> TAG_SHIFT,
        }
    }

    pub fn medium(self) -> Medium {
        Medium {
            system: self.system(),
            key_bytes: u16_at(self.0, field::KEY_BYTES.start),
            value_bytes: u16_at(self.0, field::VALUE_BYTES.start),
            blocks: u32_at(self.0, field::BLOCKS.start),
            pages_per_block: u16_at(self.0, field::PAGES_PER_BLOCK.start),
            checkpoints: self.0[field::FLAGS.start] & CHECKPOINTS != 0,
            appended: self.is_appended(),
            atomic: self.0[field::FLAGS.start] & ATOMIC != 0,
            replaced: self.0[field::APPENDED.start] & REPLACED != 0,
        }
    }

    pub const fn lowest(self) -> u8 {
        self.0[field::LOWEST.start]
    }

    pub const fn checksum(self) -> u32 {
        u32_at(self.0, field::CHECKSUM.start)
    }

    pub fn has_magic(self) -> bool {
        self.0[field::MAGIC] == MAGIC
    }

    pub const fn version(self) -> u8 {
        self.0[field::VERSION.start]
    }

    pub const fn system(self) -> u8 {
        self.0[field::SYSTEM.start]
    }

    pub const fn is_appended(self) -> bool {
        self.0[field::APPENDED.start] & !REPLACED != 0
    }

    pub const fn identity(self) -> u32 {
        u32_at(self.0, field::IDENTITY.start)
    }

    pub fn sequence(self) -> u64 {
        let at = field::SEQUENCE.start;
        u64::from(u32_at(self.0, at)) | u64::from(u16_at(self.0, at + 4)) << 32
    }

    pub const fn erase_count(self) -> u32 {
        u32_at(self.0, field::ERASE_COUNT.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the first table below `heading`: offset and size of each field.
    fn fields_below<'d>(
        document: &'d str,
        heading: &str,
    ) -> impl Iterator<Item = (usize, usize)> + use<'d> {
        let (_, section) = document.split_once(heading).unwrap();
        let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
        rows.skip(1).take_while(|line| line.starts_with('|')).map(|row| {
            let mut cells = row.split('|').skip(1).map_while(|cell| cell.trim().parse().ok());
            (cells.next().unwrap(), cells.next().unwrap())
        })
    }

    #[test]
    fn the_format_document_lists_the_fields_of_a_page_header() {
        let document = include_str!("../../../docs/FORMAT.md");
        let fields = field::ALL.iter().map(|field| (field.start, field.len()));
        assert!(fields.eq(fields_below(document, "\n## Page\n")));
        for (before, after) in field::ALL.iter().zip(&field::ALL[1..]) {
            assert_eq!(before.end, after.start);
        }
    }
}
