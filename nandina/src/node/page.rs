//! A page as it lies on the medium: an area for nodes, then a header.
//!
//! The header ([`field`](super::header::field)) describes the page, and its checksum seals it. It
//! comes last in a page buffer: in the spare area as far as that reaches, and otherwise in the last
//! bytes of the main data.

use super::header::{Fields, ONE_BY_ONE, REPLACED, field};
use super::{HEADER_BYTES, Medium, PageHeader, Shape, VERSION, appended};
use crate::bytes;
use crate::checksum::{self, Sum};

/// The end of the sequence numbers: no chip survives this many programs.
///
/// A page with a higher number is not ours, even if its checksum matches. And after any accepted
/// page, sequence numbers never reach the end of their six bytes.
const SEQUENCE_END: u64 = 1 << 47;

/// Marks a node as unpacked in RAM.
///
/// It replaces the byte of the header that says whether records are appended, which is 1 in the
/// page.
const UNPACKED: u8 = 2;

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
    /// A page of appended records, where such pages are not read.
    ///
    /// None of it was checked.
    Appended,
}

/// Where the parts of a page lie in a page buffer.
///
/// Main data comes first, then the used part of the spare area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageLayout {
    page_bytes: usize,
    frame_bytes: usize,
}

/// CRC-32C of 36 zeros, of the differences of two headers that are alike.
const SUM_OF_NO_CHANGE: u32 = 0xFA26_26D2;

impl PageLayout {
    /// The layout for pages of `page_bytes` with `spare_bytes` of spare area.
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

    /// Bytes for nodes, from the start of the page buffer.
    ///
    /// 0 where not even the header fits.
    pub const fn area_bytes(&self) -> usize {
        self.frame_bytes.saturating_sub(HEADER_BYTES)
    }

    /// Whether the spare area holds the whole header.
    ///
    /// Then the area for nodes is the main data.
    pub const fn has_header_beside(&self) -> bool {
        self.area_bytes() == self.page_bytes
    }

    /// Writes the header of `frame`, with the settings of its index, and its checksum.
    pub fn seal(&self, frame: &mut [u8], medium: &Medium, header: &PageHeader) {
        self.seal_as(frame, medium, header, medium.appended, &mut checksum::of);
    }

    /// Writes another header into `frame`, a page of the same index.
    pub fn reseal(&self, frame: &mut [u8], header: &PageHeader) {
        let medium = self.medium(frame);
        if Self::is_header_sealed(&frame[self.area_bytes()..], &mut checksum::of) {
            self.seal_header(frame, &medium, header, &mut checksum::of);
        } else {
            self.seal(frame, &medium, header);
        }
    }

    /// Writes the header of `frame`, and a checksum of that alone.
    ///
    /// The changes in such a page are sealed one by one.
    pub fn seal_header(
        &self,
        frame: &mut [u8],
        medium: &Medium,
        header: &PageHeader,
        sum: &mut Sum<'_>,
    ) {
        let bytes = &mut frame[self.area_bytes()..][..HEADER_BYTES];
        header.write(medium, bytes);
        let checksum = sum(&[&bytes[field::CHECKSUM.end..]]);
        bytes[field::CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Whether the checksum in a header is that of the header alone.
    ///
    /// Other owners than a tree may have this level in pages that are sealed as a whole.
    fn is_header_sealed(bytes: &[u8], sum: &mut Sum<'_>) -> bool {
        let header = Fields(bytes);
        header.lowest() == ONE_BY_ONE
            && header.checksum() == sum(&[&bytes[field::CHECKSUM.end..HEADER_BYTES]])
    }

    /// As [`seal`](Self::seal), for pages whose records are appended or not.
    ///
    /// `sum` computes the checksum, as a chip does it (`Flash::checksum`).
    #[inline]
    pub fn seal_as(
        &self,
        frame: &mut [u8],
        medium: &Medium,
        header: &PageHeader,
        appended: bool,
        sum: &mut Sum<'_>,
    ) {
        let (area, bytes) = frame.split_at_mut(self.area_bytes());
        Self::seal_parts(area, &mut bytes[..HEADER_BYTES], medium, header, appended, sum);
    }

    /// The same for a page whose area and header are apart in RAM.
    #[inline]
    pub fn seal_parts(
        area: &[u8],
        bytes: &mut [u8],
        medium: &Medium,
        header: &PageHeader,
        appended: bool,
        sum: &mut Sum<'_>,
    ) {
        header.write(medium, bytes);
        // Content that cannot be sealed cannot be opened either.
        let checksum = Self::checksum(area, bytes, appended, sum).unwrap_or(0);
        bytes[field::CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Seals a page without appended records whose header is in `frame` already.
    pub fn seal_written(&self, frame: &mut [u8], sum: &mut Sum<'_>) {
        let (area, bytes) = frame.split_at_mut(self.area_bytes());
        let checksum = Self::checksum(area, bytes, false, sum).unwrap_or(0);
        bytes[field::CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Writes the header of `frame` without a checksum.
    ///
    /// The result is not yet a page of a medium.
    pub fn write_header(&self, frame: &mut [u8], medium: &Medium, header: &PageHeader) {
        let at = self.area_bytes();
        header.write(medium, &mut frame[at..at + HEADER_BYTES]);
    }

    /// The header of `frame`.
    fn fields<'a>(&self, frame: &'a [u8]) -> Fields<'a> {
        Fields(&frame[self.area_bytes()..])
    }

    /// Writes another header into `frame`, a checked page whose area is unchanged.
    ///
    /// A checksum is linear: that of the page changes as those of the two headers differ. So nobody
    /// computes one over the area.
    pub fn seal_moved(
        &self,
        frame: &mut [u8],
        medium: &Medium,
        header: &PageHeader,
        sum: &mut Sum<'_>,
    ) {
        let (area, bytes) = frame.split_at_mut(self.area_bytes());
        let before = Fields(bytes);
        if before.lowest() == ONE_BY_ONE || before.is_appended() {
            // It may be sealed in another way.
            return Self::seal_parts(area, &mut bytes[..HEADER_BYTES], medium, header, false, sum);
        }
        let checksum = before.checksum();
        let mut changes = [0; HEADER_BYTES];
        header.write(medium, &mut changes);
        let pairs = changes.iter_mut().zip(&mut *bytes).skip(field::CHECKSUM.end);
        pairs.for_each(|(new, byte)| *new ^= core::mem::replace(byte, *new));
        let checksum = checksum ^ sum(&[&changes[field::CHECKSUM.end..]]) ^ SUM_OF_NO_CHANGE;
        bytes[field::CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Checks a page that was read from the medium, and returns its header.
    pub fn open(&self, frame: &[u8]) -> Result<PageHeader, PageFault> {
        self.check_as(frame, true, &mut checksum::of).map(|()| self.header(frame))
    }

    /// Checks a page that was read from the medium.
    ///
    /// If `appended` is false, pages to which something may be appended are rejected. `sum` is as
    /// for [`seal_as`](Self::seal_as).
    #[inline]
    pub fn check_as(
        &self,
        frame: &[u8],
        appended: bool,
        sum: &mut Sum<'_>,
    ) -> Result<(), PageFault> {
        let (area, bytes) = frame.split_at(self.area_bytes());
        Self::check_parts(area, bytes, appended, sum)
    }

    /// The same for a page whose area and header are apart in RAM.
    #[inline]
    pub fn check_parts(
        area: &[u8],
        bytes: &[u8],
        appended: bool,
        sum: &mut Sum<'_>,
    ) -> Result<(), PageFault> {
        let header = Fields(bytes);
        if !header.has_magic() {
            return Err(if bytes::is_erased(bytes) && bytes::is_erased(area) {
                PageFault::Erased
            } else {
                PageFault::Damaged
            });
        }
        if header.version() != VERSION {
            return Err(PageFault::Version(header.version()));
        }
        let is_appended = header.is_appended();
        if is_appended && !appended {
            return Err(PageFault::Appended);
        }
        // No page on the medium is marked as unpacked.
        if appended && bytes[field::APPENDED.start] & !REPLACED > 1 {
            return Err(PageFault::Damaged);
        }
        if !(appended && Self::is_header_sealed(bytes, sum)) {
            let checksum = Self::checksum(area, bytes, is_appended && appended, sum);
            if checksum != Some(header.checksum()) {
                return Err(PageFault::Damaged);
            }
        }
        if header.sequence() >= SEQUENCE_END { Err(PageFault::Damaged) } else { Ok(()) }
    }

    /// The header of a page that was checked.
    pub fn header(&self, frame: &[u8]) -> PageHeader {
        self.fields(frame).header()
    }

    /// The header in its own bytes.
    pub fn header_in(bytes: &[u8]) -> PageHeader {
        Fields(bytes).header()
    }

    /// Whether these are the magic, the version and the system of some header.
    pub(crate) fn begins_header(bytes: [u8; 4]) -> bool {
        bytes[..2] == super::header::MAGIC && bytes[2] == VERSION
    }

    /// The settings of the index in the bytes of a header.
    pub(crate) fn medium_in(bytes: &[u8]) -> Medium {
        Fields(bytes).medium()
    }

    /// The settings of the index in a page that was checked.
    pub fn medium(&self, frame: &[u8]) -> Medium {
        self.fields(frame).medium()
    }

    /// The number of the system that wrote a page.
    pub(crate) fn system(&self, frame: &[u8]) -> u8 {
        self.fields(frame).system()
    }

    /// The identity in a page that was checked: its formatting of the medium.
    pub(crate) fn identity(&self, frame: &[u8]) -> u32 {
        self.fields(frame).identity()
    }

    /// The sequence number of a page.
    pub(crate) fn sequence(&self, frame: &[u8]) -> u64 {
        self.fields(frame).sequence()
    }

    /// The lowest level of the nodes in a page that was checked.
    pub(crate) fn lowest(&self, frame: &[u8]) -> u8 {
        frame[self.area_bytes() + field::LOWEST.start]
    }

    /// The erase count of its block in a page that was checked.
    pub(crate) fn erase_count(&self, frame: &[u8]) -> u32 {
        self.fields(frame).erase_count()
    }

    /// The checksum of a page, or `None` if it cannot be a page.
    #[inline]
    fn checksum(area: &[u8], bytes: &[u8], appended: bool, sum: &mut Sum<'_>) -> Option<u32> {
        let header = &bytes[field::CHECKSUM.end..HEADER_BYTES];
        if !appended {
            return Some(sum(&[area, header]));
        }
        let shape = Self::appended_shape(area.len(), Fields(bytes))?;
        let [head, records] = appended::sealed(area, &shape).ok()?;
        Some(sum(&[head, records, header]))
    }

    /// The shape of a node of appended records, if there can be one with this header.
    fn appended_shape(area_bytes: usize, fields: Fields<'_>) -> Option<Shape> {
        let medium = fields.medium();
        let (key_bytes, value_bytes) = (medium.key_bytes.into(), medium.value_bytes.into());
        let shape = match fields.lowest() {
            1 => Shape::sorted(key_bytes, value_bytes),
            _ => Shape::inner(key_bytes),
        };
        shape.appended(area_bytes)
    }

    /// Unpacks the node in `frame`, a page that was checked, for use in RAM.
    ///
    /// Returns `false` if it is no node. Does nothing if records are not appended, or if the node
    /// is already unpacked ([`appended::unpack`]).
    pub fn unpack(&self, frame: &mut [u8]) -> bool {
        if !self.is_packed(frame) {
            return true;
        }
        let (area, header) = frame.split_at_mut(self.area_bytes());
        let Some(shape) = Self::appended_shape(area.len(), Fields(header)) else { return false };
        let is_node = appended::unpack(area, &shape).is_ok();
        if is_node {
            header[field::APPENDED.start] = UNPACKED;
        }
        is_node
    }

    /// Whether `frame` holds a node of appended records that is not unpacked.
    ///
    /// `frame` is a page that was checked.
    pub fn is_packed(&self, frame: &[u8]) -> bool {
        let appended = frame[self.area_bytes() + field::APPENDED.start] & !REPLACED;
        !matches!(appended, 0 | UNPACKED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEDIUM: Medium = Medium {
        system: 2,
        key_bytes: 4,
        value_bytes: 8,
        blocks: 0x0102_0304,
        pages_per_block: 64,
        checkpoints: true,
        appended: false,
        replaced: false,
        atomic: false,
    };

    const HEADER: PageHeader = PageHeader {
        identity: 7,
        sequence: 0x0000_7EDC_BA98_7654,
        lowest: 1,
        height: 3,
        erase_count: 99,
        records: 1_000_000,
        tag: 21,
        settling: true,
    };

    #[test]
    fn a_sealed_page_opens_and_any_flipped_bit_is_seen() {
        for spare in [0, 64] {
            let layout = PageLayout::new(512, spare);
            let mut frame = [0x5Au8; 512 + HEADER_BYTES];
            let frame = &mut frame[..layout.frame_bytes()];
            layout.seal(frame, &MEDIUM, &HEADER);
            assert_eq!(layout.open(frame), Ok(HEADER));
            for byte in 0..frame.len() {
                frame[byte] ^= 0x10;
                assert!(layout.open(frame).is_err(), "byte {byte}");
                frame[byte] ^= 0x10;
            }
        }
    }

    #[test]
    fn a_page_that_moves_is_sealed_as_a_new_one_and_hides_no_flipped_bit() {
        for (spare, lowest) in [(0, 1), (64, 1), (64, ONE_BY_ONE)] {
            let layout = PageLayout::new(512, spare);
            let mut frames = [[0x5A; 512 + HEADER_BYTES]; 2];
            let [moved, new] = frames.each_mut().map(|frame| &mut frame[..layout.frame_bytes()]);
            let header = PageHeader { lowest, ..HEADER };
            layout.seal(moved, &MEDIUM, &header);
            let header = PageHeader { sequence: 9, erase_count: 3, tag: 1, ..header };
            layout.seal(new, &MEDIUM, &header);
            layout.seal_moved(moved, &MEDIUM, &header, &mut checksum::of);
            assert_eq!(moved, new);
            if lowest != ONE_BY_ONE {
                moved[100] ^= 0x10;
                layout.seal_moved(moved, &MEDIUM, &HEADER, &mut checksum::of);
                assert_eq!(layout.open(moved), Err(PageFault::Damaged));
            }
        }
    }

    #[test]
    fn changes_that_are_programmed_one_by_one_do_not_break_the_seal_of_their_page() {
        let layout = PageLayout::new(512, 0);
        let mut frame = [0xFF; 512];
        let header = PageHeader { lowest: ONE_BY_ONE, height: 0, ..HEADER };
        layout.seal_header(&mut frame, &MEDIUM, &header, &mut checksum::of);
        frame[..layout.area_bytes()].fill(0x5A);
        assert_eq!(layout.open(&frame), Ok(header));
        layout.reseal(&mut frame, &PageHeader { sequence: 9, ..header });
        assert_eq!(layout.open(&frame), Ok(PageHeader { sequence: 9, ..header }));
        for byte in layout.area_bytes()..frame.len() {
            frame[byte] ^= 0x10;
            assert!(layout.open(&frame).is_err(), "byte {byte}");
            frame[byte] ^= 0x10;
        }
    }

    /// An FTL has numbers of its own where a tree has the lowest level.
    #[test]
    fn a_page_that_is_sealed_as_a_whole_may_have_any_level() {
        let layout = PageLayout::new(512, 0);
        for lowest in 0..=u8::MAX {
            let mut frame = [0x5A; 512];
            let header = PageHeader { lowest, height: 0, ..HEADER };
            layout.seal(&mut frame, &MEDIUM, &header);
            assert_eq!(layout.open(&frame), Ok(header));
            layout.reseal(&mut frame, &PageHeader { sequence: 9, ..header });
            assert_eq!(layout.open(&frame), Ok(PageHeader { sequence: 9, ..header }));
            frame[7] ^= 1;
            assert_eq!(layout.open(&frame), Err(PageFault::Damaged), "level {lowest}");
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
            layout.seal(&mut frame, &MEDIUM, &PageHeader { sequence, ..HEADER });
            assert_eq!(layout.open(&frame).is_ok(), opens, "{sequence}");
        }
    }
}
