//! The pages that an FTL keeps about itself as bytes, and the labels of all pages.
//!
//! All numbers are little-endian. Every count and every number is checked before it is used.

use nandina::flash::BlockNumber;
use nandina::log::Label;
use nandina::node::PageHeader;

use super::waiting::{hull, touch};
use crate::mapping::Extent;

/// The number of an FTL among the systems that write pages.
pub(super) const SYSTEM: u8 = 64;

/// The content of a page, or what it says by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A logical page.
    Data(u32),
    /// A logical page that was trimmed.
    Hole(u32),
    /// A page that the FTL keeps about itself.
    Own(Own),
    /// The end of a session: every page before it is whole.
    End,
    /// A format of the chip has begun: nothing before it counts.
    Retired,
    /// A part of a checkpoint of the mapping.
    Part,
    /// The directory of a checkpoint.
    Directory,
}

/// The pages that the FTL keeps about itself: of each, the newest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// A session page: blocks that may hold a torn page.
    Session,
    /// The list of trims.
    Trims,
}

impl Own {
    pub const ALL: [Self; 2] = [Self::Session, Self::Trims];
}

// What the header has as the number of a page that is no logical one. The first is the value with
// which the library marks the end of a session, too.
const END: u32 = u32::MAX - 1;
const RETIRED: u32 = u32::MAX - 2;
const SESSION: u32 = u32::MAX - 3;
const TRIMS: u32 = u32::MAX - 4;
const PART: u32 = u32::MAX - 6;
const DIRECTORY: u32 = u32::MAX - 7;

/// What checkpoints had as directories before they had anchors: no mount uses one.
const FORMER_DIRECTORY: u32 = u32::MAX - 5;

/// The tag of a page that was written to the block for new pages.
pub(super) const NEW: u8 = 0;

/// The tag of a page that was written to the block for pages that collection moves.
pub(super) const MOVED: u8 = 1;

/// Logical pages have lower numbers than this.
pub(super) const LOGICAL_END: u32 = u32::MAX - 16;

/// The level in the header of a logical page that was trimmed.
///
/// Of every other page it is 1, [`LEVEL_OPEN`], or one of the two of a buffer block.
const LEVEL_HOLE: u8 = 2;

/// The level in the header of a logical page whose request does not end with it.
///
/// The height of that header is the page's position in the request.
const LEVEL_OPEN: u8 = 3;

/// The level in the header of a logical page in a buffer block, behind a page that is no higher.
///
/// The height of that header is the difference of the two.
const LEVEL_BEHIND_LOWER: u8 = 4;

/// The same behind a higher page.
const LEVEL_BEHIND_HIGHER: u8 = 5;

/// The label of a logical page in a buffer block, where the page before it is `before`.
///
/// The first page of a block names itself. The two lie in one group, of at most 256 pages.
pub(super) const fn buffered_label(logical: u32, before: u32) -> Label {
    let (lowest, height) = match before <= logical {
        true => (LEVEL_BEHIND_LOWER, logical - before),
        false => (LEVEL_BEHIND_HIGHER, before - logical),
    };
    Label { lowest, height: height as u8, records: logical }
}

/// The logical page before this one in its buffer block; `None` for a page of another block.
pub(super) fn before_of(header: &PageHeader) -> Option<u32> {
    let (logical, difference) = (header.records, u32::from(header.height));
    match header.lowest {
        _ if logical >= LOGICAL_END => None,
        LEVEL_BEHIND_LOWER => logical.checked_sub(difference),
        LEVEL_BEHIND_HIGHER => logical.checked_add(difference),
        _ => None,
    }
}

/// The most pages of a request: its pages but the last have a position in one byte.
pub(super) const REQUEST_PAGES_MAX: u32 = 256;

/// The label of a logical page at `position` of a request that more pages follow.
pub(super) const fn open_label(logical: u32, position: u8) -> Label {
    Label { lowest: LEVEL_OPEN, height: position, records: logical }
}

/// The number of the first page of the request that this page leaves open.
///
/// `None` for a page that ends its request, or is none of a request.
pub(super) fn opens_request(header: &PageHeader) -> Option<u64> {
    (header.lowest == LEVEL_OPEN).then(|| header.sequence.saturating_sub(header.height.into()))
}

impl Kind {
    /// The kind of a page with this label.
    pub fn of(lowest: u8, records: u32) -> Self {
        match records {
            END => Self::End,
            RETIRED => Self::Retired,
            SESSION => Self::Own(Own::Session),
            TRIMS => Self::Own(Own::Trims),
            PART | FORMER_DIRECTORY => Self::Part,
            DIRECTORY => Self::Directory,
            logical if lowest == LEVEL_HOLE => Self::Hole(logical),
            logical => Self::Data(logical),
        }
    }

    /// The label of a page of this kind.
    pub const fn label(self) -> Label {
        let (lowest, records) = match self {
            Self::Data(logical) => (1, logical),
            Self::Hole(logical) => (LEVEL_HOLE, logical),
            Self::Own(Own::Session) => (1, SESSION),
            Self::Own(Own::Trims) => (1, TRIMS),
            Self::Part => (1, PART),
            Self::Directory => (1, DIRECTORY),
            Self::End => (1, END),
            Self::Retired => (1, RETIRED),
        };
        Label { lowest, height: 0, records }
    }
}

fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> [u8; BYTES] {
    let mut number = [0; BYTES];
    number.copy_from_slice(&bytes[at..at + BYTES]);
    number
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(number(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(number(bytes, at))
}

/// A block that may hold a torn page, and the numbers that it can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suspect {
    pub block: u32,
    /// Pages numbered above this do not count, up to `to`.
    pub from: u64,
    /// The highest number that a page torn there can have.
    pub to: u64,
}

/// Bytes of a [`Suspect`] on the chip.
pub(crate) const SUSPECT_BYTES: usize = 20;

/// The most suspects on any chip: blocks have at most 4,095 pages.
pub(super) const SUSPECTS_MAX: usize = 16;

/// The suspects, in RAM and in a session page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suspects {
    list: [Suspect; SUSPECTS_MAX],
    count: usize,
}

impl Suspects {
    pub fn all(&self) -> &[Suspect] {
        &self.list[..self.count]
    }

    /// Whether pages with this number do not count.
    pub fn exclude(&self, sequence: u64) -> bool {
        self.all().iter().any(|suspect| suspect.from < sequence && sequence <= suspect.to)
    }

    /// Whether `block` is one of them.
    pub fn has(&self, block: BlockNumber) -> bool {
        self.all().iter().any(|suspect| suspect.block == block.0)
    }

    /// Adds a suspect. Returns `false` if there is no room.
    pub fn add(&mut self, suspect: Suspect) -> bool {
        let has_room = self.count < SUSPECTS_MAX;
        if has_room {
            self.list[self.count] = suspect;
            self.count += 1;
        }
        has_room
    }

    /// Keeps the suspects whose blocks `is_kept` selects.
    pub fn keep(&mut self, mut is_kept: impl FnMut(BlockNumber) -> bool) {
        let all = *self;
        self.count = 0;
        for suspect in all.all() {
            if is_kept(BlockNumber(suspect.block)) {
                self.list[self.count] = *suspect;
                self.count += 1;
            }
        }
    }

    /// Lists `block` in place of the last of those that `is_replaced` selects.
    pub fn replace(&mut self, is_replaced: impl Fn(BlockNumber) -> bool, block: BlockNumber) {
        let mut listed = self.list[..self.count].iter_mut();
        if let Some(last) = listed.rfind(|it| is_replaced(BlockNumber(it.block))) {
            last.block = block.0;
        }
    }

    /// Writes them into the area of a page. Returns `false` if it has no room for them.
    ///
    /// It has for those that one settling can involve. Those that last, on a chip without marks,
    /// can become too many: then no change is possible any more, and all can be read.
    pub fn write(&self, area: &mut [u8]) -> bool {
        if 4 + self.count * SUSPECT_BYTES > area.len() {
            return false;
        }
        area.fill(0);
        area[..4].copy_from_slice(&(self.count as u32).to_le_bytes());
        for (suspect, bytes) in self.all().iter().zip(area[4..].chunks_exact_mut(SUSPECT_BYTES)) {
            bytes[..4].copy_from_slice(&suspect.block.to_le_bytes());
            bytes[4..12].copy_from_slice(&suspect.from.to_le_bytes());
            bytes[12..].copy_from_slice(&suspect.to.to_le_bytes());
        }
        true
    }

    /// Reads them from the area of a page; `None` if that holds no such list.
    pub fn read(area: &[u8], blocks: u32) -> Option<Self> {
        let mut suspects = Self::default();
        let count = u32_at(area, 0) as usize;
        if count > SUSPECTS_MAX || 4 + count * SUSPECT_BYTES > area.len() {
            return None;
        }
        for bytes in area[4..].chunks_exact(SUSPECT_BYTES).take(count) {
            let (block, from, to) = (u32_at(bytes, 0), u64_at(bytes, 4), u64_at(bytes, 12));
            if block >= blocks {
                return None;
            }
            suspects.add(Suspect { block, from, to });
        }
        Some(suspects)
    }
}

/// The list of trims in the area of a page.
///
/// It consists of a number, a count, and that many extents.
/// What was written into these extents before that number does not count.
pub(crate) struct Trims<'a>(pub &'a mut [u8]);

const TRIMS_HEAD: usize = 12;
const TRIM_BYTES: usize = 8;

impl Trims<'_> {
    /// Extents that an area of so many bytes has room for.
    pub const fn room(bytes: usize) -> usize {
        bytes.saturating_sub(TRIMS_HEAD) / TRIM_BYTES
    }

    /// Makes it an empty list.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    pub fn as_of(&self) -> u64 {
        u64_at(self.0, 0)
    }

    pub fn set_as_of(&mut self, sequence: u64) {
        self.0[..8].copy_from_slice(&sequence.to_le_bytes());
    }

    /// The extents, at most as many as the page has room for.
    pub fn count(&self) -> usize {
        (u32_at(self.0, 8) as usize).min(Self::room(self.0.len()))
    }

    pub fn get(&self, at: usize) -> Extent {
        let at = TRIMS_HEAD + at * TRIM_BYTES;
        Extent::new(u32_at(self.0, at), u32_at(self.0, at + 4))
    }

    pub fn set(&mut self, at: usize, extent: Extent) {
        let at = TRIMS_HEAD + at * TRIM_BYTES;
        self.0[at..at + 4].copy_from_slice(&extent.start.to_le_bytes());
        self.0[at + 4..at + TRIM_BYTES].copy_from_slice(&extent.length.to_le_bytes());
    }

    fn set_count(&mut self, count: usize) {
        self.0[8..12].copy_from_slice(&(count as u32).to_le_bytes());
    }

    /// Extents that the page has still room for.
    pub fn spare(&self) -> usize {
        Self::room(self.0.len()) - self.count()
    }

    /// Adds an extent. Returns `false` if the page is full.
    pub fn push(&mut self, extent: Extent) -> bool {
        let (count, has_room) = (self.count(), self.spare() > 0);
        if has_room {
            self.set(count, extent);
            self.set_count(count + 1);
        }
        has_room
    }

    /// Adds an extent, as one with those of the first `zone` extents that it touches.
    ///
    /// Returns `false` if it touches none and the page is full.
    pub fn join(&mut self, mut extent: Extent, zone: usize) -> bool {
        let (mut joined, mut at) = (None, 0);
        while at < zone.min(self.count()) {
            let other = self.get(at);
            if joined == Some(at) || !touch(other, extent) {
                at += 1;
                continue;
            }
            extent = hull(other, extent);
            self.set(*joined.get_or_insert(at), extent);
            if joined != Some(at) {
                let last = self.count() - 1;
                self.set(at, self.get(last));
                self.set_count(last);
            }
        }
        joined.is_some() || self.push(extent)
    }
}

/// A list of records in the area of a page: a part of a checkpoint.
///
/// It consists of the number at which the checkpoint began, the position of the page in it, a count,
/// and that many records, each of the same count of numbers of four bytes.
pub(crate) struct List<'a>(pub &'a mut [u8]);

/// Numbers of a run: its first logical page, its length and its first place.
pub(crate) const RUN: usize = 3;

/// Numbers of an erase count.
pub(crate) const COUNT: usize = 1;

const LIST_HEAD: usize = 16;

impl List<'_> {
    /// How many records of `words` numbers an area of `bytes` holds.
    pub const fn room(bytes: usize, words: usize) -> usize {
        bytes.saturating_sub(LIST_HEAD) / (4 * words)
    }

    /// Makes it an empty list.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Notes that it is at `position` of the checkpoint that began at `sequence`.
    pub fn set_head(&mut self, sequence: u64, position: u32) {
        self.0[..8].copy_from_slice(&sequence.to_le_bytes());
        self.0[8..12].copy_from_slice(&position.to_le_bytes());
    }

    /// The number at which the checkpoint began, and the position in it.
    pub fn head(&self) -> (u64, u32) {
        (u64_at(self.0, 0), u32_at(self.0, 8))
    }

    /// The records, at most as many as the page has room for.
    pub fn count(&self, words: usize) -> usize {
        (u32_at(self.0, 12) as usize).min(Self::room(self.0.len(), words))
    }

    pub fn get<const WORDS: usize>(&self, at: usize) -> [u32; WORDS] {
        let start = LIST_HEAD + at * 4 * WORDS;
        core::array::from_fn(|word| u32_at(self.0, start + 4 * word))
    }

    pub fn set<const WORDS: usize>(&mut self, at: usize, record: [u32; WORDS]) {
        let start = LIST_HEAD + at * 4 * WORDS;
        for (word, bytes) in record.iter().zip(self.0[start..].chunks_exact_mut(4)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Adds a record. Returns `false` if the page is full.
    pub fn push<const WORDS: usize>(&mut self, record: [u32; WORDS]) -> bool {
        let count = self.count(WORDS);
        let has_room = count < Self::room(self.0.len(), WORDS);
        if has_room {
            self.set(count, record);
            self.0[12..16].copy_from_slice(&(count as u32 + 1).to_le_bytes());
        }
        has_room
    }
}

/// The directory of a checkpoint in the area of a page.
///
/// It consists of the number at which the checkpoint began, the count of its parts, the places of
/// the pages that the FTL kept about itself, a bit for each group of blocks that may be opened
/// after it, and the blocks that hold the parts, in order.
pub(super) struct Directory<'a> {
    area: &'a mut [u8],
    blocks: u32,
}

/// The directory's record of a page that there is none of.
const NOWHERE: u32 = u32::MAX;

const DIRECTORY_HEAD: usize = 12 + 4 * Own::ALL.len() + 4;

impl<'a> Directory<'a> {
    /// The directory in the area of a page of a chip with this many blocks.
    ///
    /// `None` if the area has no room for one.
    pub fn new(area: &'a mut [u8], blocks: u32) -> Option<Self> {
        (area.len() >= DIRECTORY_HEAD + 16).then_some(Self { area, blocks })
    }

    /// Blocks in a group, as a power of two: the fewest for which a quarter of the area suffices.
    fn shift(&self) -> u32 {
        let bits = 8 * (self.area.len() / 4) as u32;
        (0..32).find(|shift| self.blocks.div_ceil(1 << shift) <= bits).unwrap_or(31)
    }

    fn list_bytes(&self) -> usize {
        self.blocks.div_ceil(1 << self.shift()).div_ceil(8) as usize
    }

    /// Makes it the directory of a checkpoint that began at `sequence`, without anything in it.
    pub fn clear(&mut self, sequence: u64) {
        self.area.fill(0);
        self.area[..8].copy_from_slice(&sequence.to_le_bytes());
    }

    /// The number at which the checkpoint began.
    pub fn began(&self) -> u64 {
        u64_at(self.area, 0)
    }

    pub fn parts(&self) -> u32 {
        u32_at(self.area, 8)
    }

    pub fn set_parts(&mut self, parts: u32) {
        self.area[8..12].copy_from_slice(&parts.to_le_bytes());
    }

    /// The place of a page that the FTL kept about itself.
    pub fn own(&self, own: Own) -> Option<u32> {
        Some(u32_at(self.area, 12 + 4 * own as usize)).filter(|&place| place != NOWHERE)
    }

    pub fn set_own(&mut self, own: Own, place: Option<u32>) {
        let place = place.unwrap_or(NOWHERE);
        self.area[12 + 4 * own as usize..][..4].copy_from_slice(&place.to_le_bytes());
    }

    /// Whether a block may be opened after the checkpoint.
    pub fn lists(&self, block: BlockNumber) -> bool {
        let group = (block.0 >> self.shift()) as usize;
        self.area[DIRECTORY_HEAD + group / 8] >> (group % 8) & 1 == 1
    }

    /// Lists a block, and the others of its group.
    pub fn list(&mut self, block: BlockNumber) {
        let group = (block.0 >> self.shift()) as usize;
        self.area[DIRECTORY_HEAD + group / 8] |= 1 << (group % 8);
    }

    /// How many blocks with parts a directory has room for.
    pub fn room(&self) -> usize {
        (self.area.len() - DIRECTORY_HEAD - self.list_bytes()) / 4
    }

    /// Blocks with parts, at most as many as there is room for.
    pub fn count(&self) -> usize {
        (u32_at(self.area, DIRECTORY_HEAD - 4) as usize).min(self.room())
    }

    /// The block with parts at this position, of [`count`](Self::count) ones.
    pub fn block(&self, at: usize) -> BlockNumber {
        BlockNumber(u32_at(self.area, DIRECTORY_HEAD + self.list_bytes() + 4 * at))
    }

    /// Adds a block with parts. Returns `false` if the directory is full.
    pub fn push(&mut self, block: BlockNumber) -> bool {
        let count = self.count();
        let has_room = count < self.room();
        if has_room {
            let at = DIRECTORY_HEAD + self.list_bytes() + 4 * count;
            self.area[at..at + 4].copy_from_slice(&block.0.to_le_bytes());
            let count = count as u32 + 1;
            self.area[DIRECTORY_HEAD - 4..DIRECTORY_HEAD].copy_from_slice(&count.to_le_bytes());
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspects_are_read_as_they_were_written_and_nonsense_is_refused() {
        let mut suspects = Suspects::default();
        assert!(suspects.add(Suspect { block: 3, from: 10, to: 20 }));
        assert!(suspects.add(Suspect { block: 5, from: 1 << 40, to: 1 << 41 }));
        assert!(suspects.exclude(11) && suspects.exclude(20) && !suspects.exclude(10));
        let mut area = [0xFF; 64];
        assert!(suspects.write(&mut area));
        assert_eq!(Suspects::read(&area, 6), Some(suspects));
        assert_eq!(Suspects::read(&area, 5), None, "a block behind the chip");
        area[0] = 4;
        assert_eq!(Suspects::read(&area, 6), None, "more than the page has room for");
        assert_eq!(Suspects::read(&[0xFF; 512], 6), None);
    }

    #[test]
    fn a_list_of_trims_ends_with_its_page() {
        let mut area = [0xFF; 40];
        let mut trims = Trims(&mut area);
        assert_eq!(trims.count(), 3, "no more than there is room for");
        trims.clear();
        assert!((0..3).all(|at| trims.push(Extent::new(at, 7))));
        assert!(!trims.push(Extent::new(9, 9)));
        assert_eq!((trims.count(), trims.get(2), trims.spare()), (3, Extent::new(2, 7), 0));
    }

    #[test]
    fn extents_of_a_list_of_trims_that_touch_are_joined() {
        let mut area = [0; 60];
        let mut trims = Trims(&mut area);
        for start in [0, 10, 20, 30] {
            assert!(trims.join(Extent::new(start, 5), 4));
        }
        assert_eq!(trims.count(), 4);
        // Behind the zone nothing is joined.
        assert!(trims.join(Extent::new(34, 2), 3));
        assert_eq!(trims.count(), 5);
        assert!(trims.join(Extent::new(5, 16), 4));
        let all: std::vec::Vec<_> = (0..trims.count()).map(|at| trims.get(at)).collect();
        assert_eq!(all, [Extent::new(0, 25), Extent::new(34, 2), Extent::new(30, 5)]);
    }

    #[test]
    fn a_list_ends_with_its_page() {
        let mut area = [0xFF; 16 + 2 * 12 + 11];
        let mut list = List(&mut area);
        assert_eq!(list.count(RUN), 2, "no more than there is room for");
        list.clear();
        list.set_head(1 << 40, 7);
        assert!(list.push([1, 2, 3]) && list.push([4, 5, 6]) && !list.push([7, 8, 9]));
        list.set(0, [0, 9, 9]);
        assert_eq!((list.head(), list.count(RUN)), ((1 << 40, 7), 2));
        assert_eq!((list.get::<RUN>(0), list.get::<RUN>(1)), ([0, 9, 9], [4, 5, 6]));
    }

    #[test]
    fn a_directory_is_read_as_it_was_written_and_ends_with_its_page() {
        let mut area = [0xFF; 128];
        assert!(Directory::new(&mut area[..39], 9).is_none());
        let mut directory = Directory::new(&mut area, 1000).unwrap();
        assert_eq!(directory.count(), directory.room(), "no more than there is room for");
        directory.clear(1 << 40);
        directory.set_parts(7);
        directory.set_own(Own::Session, Some(5));
        directory.set_own(Own::Trims, None);
        // A quarter of the area has 256 bits: four blocks share one.
        directory.list(BlockNumber(0));
        directory.list(BlockNumber(998));
        let room = directory.room();
        assert!((0..room as u32).all(|block| directory.push(BlockNumber(block))));
        assert!(!directory.push(BlockNumber(9)));
        let listed = (0..1000).filter(|&block| directory.lists(BlockNumber(block)));
        assert!(listed.eq([0, 1, 2, 3, 996, 997, 998, 999]));
        assert_eq!((directory.began(), directory.parts()), (1 << 40, 7));
        assert_eq!((directory.own(Own::Session), directory.own(Own::Trims)), (Some(5), None));
        assert!((0..room).all(|at| directory.block(at).0 == at as u32));
    }

    #[test]
    fn labels_lead_back_to_their_kinds() {
        let own = Own::ALL.map(Kind::Own);
        let others =
            [Kind::Data(0), Kind::Hole(9), Kind::End, Kind::Retired, Kind::Part, Kind::Directory];
        for kind in others.into_iter().chain(own) {
            let label = kind.label();
            assert_eq!(Kind::of(label.lowest, label.records), kind);
        }
    }
}
