//! The sizes of nodes, pages and RAM, computed from the settings.
//!
//! Nothing is read or written here.

use core::ops::Range;

use super::changes::{self, RECORDS_MAX, records_max};
use crate::engine::{NodeRange, Options, RecordSizes};
use crate::flash::{Capabilities, Geometry};
use crate::log::layout_of;
use crate::node::Shape;
use crate::node::slot::RECORD_MAX;

/// Children of an inner node, if the options do not say.
///
/// TNC paper, Table 2: with this fanout the fewest bytes are written.
const FANOUT: usize = 32;

/// Records that a leaf has room for at least, where the page is large enough.
const LEAF_RECORDS: usize = 4;

/// The most nodes in a page where nodes have fixed places.
///
/// The mark of each node has four bits for it.
pub const FIXED_MAX: usize = 15;

/// The most full nodes in a page where nodes are packed.
///
/// There may be twice as many nodes, and their number is a byte.
const PACKED_MAX: usize = 127;

/// In the fanout of a page of nodes: values stay in the journal.
const APART: u16 = 1 << 15;

/// Bytes of the fanout with which a page of nodes ends.
const FANOUT_BYTES: usize = 2;

/// The tag of a page in which nodes are packed. Other tags are the number of nodes.
const PACKED: u8 = FIXED_MAX as u8 + 1;

/// The tag of a page of values that garbage collection moved.
///
/// Unlike a page of the journal it counts only once a commit leads to it.
pub const MOVED: u8 = PACKED + 1;

/// Values that stay in the nodes by default: more of them fit in a page.
const PER_PAGE_MOST: usize = 8;

/// Bytes with which a page of packed nodes ends.
///
/// They are the number of its nodes, the number of its places, and the fanout.
const END_BYTES: usize = 2 + FANOUT_BYTES;

/// Bytes of an entry before that end: where a packed node ends, and its level.
const ENTRY_BYTES: usize = 3;

/// Nodes that RAM has room for, if the options do not say.
const SLOTS: usize = 32;

/// The fewest nodes that RAM must have room for.
pub const SLOTS_MIN: usize = 11;

/// The most nodes in RAM: slots have numbers of 16 bits.
pub const SLOTS_MAX: usize = 0xFFF0;

/// Bytes in front of each node in RAM.
pub const SLOT_HEAD: usize = 16;

/// The sizes of everything that is stored.
///
/// If the options say how many children an inner node has, nodes are packed: each takes only the
/// bytes that it uses. Otherwise they have fixed places in a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    area_bytes: usize,
    pub key_bytes: usize,
    pub value_bytes: usize,
    /// Bytes of a full node, and of every node in RAM.
    pub node_bytes: usize,
    /// Pages of the chip.
    pub pages: u32,
    /// The most children of an inner node, if nodes have room for them.
    fanout_max: u16,
    per_page: u8,
    places: u8,
    /// Numbers of a page, for pointers to what is in it.
    numbers: u8,
    /// Values stay in the journal, and leaves point to them.
    apart: bool,
}

impl Form {
    /// The sizes for an index with these settings on a chip.
    pub fn new(geometry: &Geometry, options: &Options) -> Self {
        let area_bytes = layout_of(geometry).area_bytes();
        let (key_bytes, value_bytes) = (options.key_bytes, options.value_bytes);
        let inner = Shape::inner(key_bytes).at(options.fanout.map_or(FANOUT, usize::from));
        let apart = values_are_apart(geometry, options);
        let leaf = match apart {
            true => inner,
            false => Shape::sorted(key_bytes, value_bytes).at(LEAF_RECORDS),
        };
        let fitting =
            |end: usize, beside: usize| area_bytes.saturating_sub(end) / (inner.max(leaf) + beside);
        let packed = match options.fanout {
            Some(_) if area_bytes <= u16::MAX.into() => {
                fitting(END_BYTES, ENTRY_BYTES).min(PACKED_MAX)
            }
            _ => 0,
        };
        let (per_page, places, node_bytes) = if packed > 1 {
            (packed, 2 * packed, packed_bytes(area_bytes, packed))
        } else {
            // Each node has a byte for its level beside it.
            let fixed = fitting(FANOUT_BYTES, 1).clamp(1, FIXED_MAX);
            (fixed, fixed, extent(area_bytes, fixed, 0).len())
        };
        let form = Self {
            area_bytes,
            key_bytes,
            value_bytes,
            node_bytes,
            pages: geometry.pages(),
            fanout_max: options.fanout.unwrap_or(u16::MAX),
            per_page: per_page as u8,
            places: places as u8,
            numbers: places as u8,
            apart,
        };
        let records = if apart { records_max(area_bytes, (key_bytes, value_bytes)) } else { 0 };
        Self { numbers: places.max(records) as u8, ..form }
    }

    /// Whether values stay in the journal, and leaves point to them.
    pub const fn apart(&self) -> bool {
        cfg!(feature = "journal-values") && self.apart
    }

    /// Nodes for which each page has room, however full they are.
    pub const fn per_page(&self) -> usize {
        self.per_page as usize
    }

    /// The most nodes of a page.
    pub const fn places(&self) -> usize {
        self.places as usize
    }

    /// Numbers of a page: the most nodes that it can hold, or records.
    pub const fn numbers(&self) -> usize {
        self.numbers as usize
    }

    /// Whether a node takes only the bytes that it uses.
    const fn packs(&self) -> bool {
        self.places > self.per_page
    }

    /// The shape of the nodes of `level`.
    pub const fn shape(&self, level: u8) -> Shape {
        if level == 1 && !self.apart() {
            Shape::sorted(self.key_bytes, self.value_bytes)
        } else {
            Shape::inner(self.key_bytes)
        }
    }

    /// Records that a node of `level` may hold.
    pub fn capacity(&self, level: u8) -> usize {
        let fits = self.shape(level).capacity(self.node_bytes);
        if level == 1 && !self.apart() { fits } else { fits.min(self.fanout_max.into()) }
    }

    /// The offset of the first node in a page.
    pub const fn first_at(&self) -> usize {
        if self.packs() { 0 } else { self.per_page() }
    }

    /// Whether a page has room for another node, of `used` bytes.
    ///
    /// It has `count` nodes, which end at `end`.
    pub const fn has_room(&self, count: usize, end: usize, used: usize) -> bool {
        let entries = (count + 1) * ENTRY_BYTES + END_BYTES;
        count < self.places() && (!self.packs() || end + used + entries <= self.area_bytes)
    }

    /// Notes a node of `level` in the area of its page.
    ///
    /// It begins at `from`, and has `used` bytes. Returns where the next one begins.
    pub fn put_mark(
        &self,
        area: &mut [u8],
        (place, level): (usize, u8),
        (from, used): (usize, usize),
    ) -> usize {
        if !self.packs() {
            area[place] = self.per_page << 4 | level;
            return from + self.node_bytes;
        }
        let [low, high] = ((from + used) as u16).to_le_bytes();
        let at = area.len() - END_BYTES - (place + 1) * ENTRY_BYTES;
        area[at..at + ENTRY_BYTES].copy_from_slice(&[low, high, level]);
        from + used
    }

    /// Ends the area of a page of `count` nodes. Returns the tag of the page.
    pub fn end_page(&self, area: &mut [u8], count: usize) -> u8 {
        let at = area.len() - FANOUT_BYTES;
        area[at..].copy_from_slice(&self.fanout().to_le_bytes());
        if !self.packs() {
            return count as u8;
        }
        area[at - 2..at].copy_from_slice(&[count as u8, self.places]);
        PACKED
    }

    /// Whether a page with this tag and this area is one of this form.
    pub fn is_of(&self, tag: u8, area: &[u8]) -> bool {
        (tag == PACKED) == self.packs()
            && places_in(tag, area) == self.places()
            && fanout_in(area) == self.fanout()
    }

    /// The setting in which a page differs from this form.
    ///
    /// Returns its name, what was found, and what was expected. If both have the same fanout, it is
    /// 0 where nodes have fixed places: there it was not chosen.
    pub fn other_setting(&self, tag: u8, area: &[u8]) -> Option<(&'static str, u16, u16)> {
        let (found, expected) = (fanout_in(area), self.fanout());
        match (tag == PACKED, self.packs()) {
            _ if (found ^ expected) & APART != 0 => {
                Some(("values in the journal", found / APART, expected / APART))
            }
            _ if found != expected => Some(("fanout", found & !APART, expected & !APART)),
            (true, false) => Some(("fanout", found & !APART, 0)),
            (false, true) => Some(("fanout", 0, expected & !APART)),
            _ => None,
        }
    }

    /// The most children of an inner node, and where values are, as a page stores it.
    pub fn fanout(&self) -> u16 {
        let apart = if self.apart() { APART } else { 0 };
        self.capacity(2).min(usize::from(APART - 1)) as u16 | apart
    }

    /// Bytes of a change in the journal: its kind, its key and its value.
    pub const fn entry_bytes(&self) -> usize {
        changes::entry_bytes(self.sizes())
    }

    /// Bytes of a key and of a value.
    pub const fn sizes(&self) -> RecordSizes {
        (self.key_bytes, self.value_bytes)
    }

    /// Changes that fit in a page of the journal.
    pub const fn entries(&self) -> usize {
        self.bounded(changes::entries_in(self.area_bytes, self.sizes()))
    }

    /// The most of that many records that a page may have.
    const fn bounded(&self, records: usize) -> usize {
        if self.apart() && records > RECORDS_MAX { RECORDS_MAX } else { records }
    }

    /// Changes that fit in a page of the journal where each is programmed by itself.
    const fn slots_in_page(&self) -> usize {
        self.bounded(changes::slots_in(self.area_bytes, self.sizes()))
    }

    /// Bytes of a change in the journal where each is programmed by itself.
    pub const fn change_bytes(&self) -> usize {
        changes::slot_bytes(self.sizes())
    }

    /// Where the change at a place is in such a page.
    ///
    /// The first one is the last in the area.
    pub const fn change_at(&self, place: usize) -> Range<usize> {
        changes::slot_range(self.area_bytes, self.sizes(), place)
    }

    /// Changes that are programmed one by one into a page of the journal.
    ///
    /// 0 if each page is programmed at once: the chip does not allow more programs, or needs pages
    /// in order, or changes wait for their page.
    pub fn changes_by_one(&self, capabilities: &Capabilities, options: &Options) -> u16 {
        let fits = self.slots_in_page();
        let can_be = capabilities.overwrite
            && capabilities.programs_per_page.is_none()
            && !capabilities.in_order
            && options.write_buffer == 0
            && self.key_bytes + self.value_bytes <= RECORD_MAX;
        if can_be && fits > 1 { fits.min(u16::MAX.into()) as u16 } else { 0 }
    }

    /// Bytes of a node in RAM.
    pub const fn slot_bytes(&self) -> usize {
        SLOT_HEAD + self.node_bytes
    }

    /// The pointer to the node at `place` in `page`.
    pub const fn pointer(&self, page: u32, place: usize) -> u32 {
        page * self.numbers as u32 + place as u32
    }

    /// The page of a pointer, and the place in it.
    ///
    /// The number of pages, as a page, means the page in which the pointer is.
    pub const fn place_of(&self, pointer: u32) -> (u32, usize) {
        let numbers = self.numbers as u32;
        (pointer / numbers, (pointer % numbers) as usize)
    }

    /// Whether every pointer has its own number.
    pub const fn can_point(&self) -> bool {
        (self.pages as u64 + 1) * (self.numbers as u64) < 1 << 31
    }

    /// Whether a leaf can hold two records, and an inner node two children.
    pub fn can_split(&self) -> bool {
        self.capacity(1) >= 2 && self.capacity(2) >= 2 && self.entries() >= 1
    }

    /// Bytes of RAM for nodes.
    ///
    /// They are never more than have numbers.
    pub fn arena_bytes(&self, options: &Options) -> usize {
        let most = SLOTS_MAX.saturating_mul(self.slot_bytes());
        options.arena_bytes.unwrap_or(SLOTS * self.slot_bytes()).min(most)
    }

    /// The fewest bytes of RAM for nodes.
    pub const fn arena_bytes_min(&self) -> usize {
        SLOTS_MIN * self.slot_bytes()
    }

    /// Nodes that RAM has room for.
    pub const fn slots(&self, arena_bytes: usize) -> usize {
        let slots = arena_bytes / self.slot_bytes();
        if slots > SLOTS_MAX { SLOTS_MAX } else { slots }
    }

    /// Bytes of RAM for the numbers of needed nodes, or records, in each page.
    pub const fn live_bytes(&self) -> usize {
        match self.numbers() {
            ..2 => 0,
            2..=FIXED_MAX => (self.pages as usize).div_ceil(2),
            _ => self.pages as usize,
        }
    }

    /// Bytes of RAM for the changes that wait for their page of the journal.
    pub const fn group_bytes(&self, page_bytes: u32, options: &Options) -> usize {
        options.write_buffer * page_bytes as usize
    }
}

/// Whether values stay in the journal.
///
/// By default large ones do: written once, they cost less there in all but scans.
pub fn values_are_apart(geometry: &Geometry, options: &Options) -> bool {
    let is_large = options.value_bytes >= layout_of(geometry).area_bytes().div_ceil(PER_PAGE_MOST);
    cfg!(feature = "journal-values") && options.journal_values.unwrap_or(is_large)
}

/// How many nodes a page with this tag and this area has.
pub fn nodes_in(tag: u8, area: &[u8]) -> usize {
    match tag {
        MOVED => 0,
        PACKED => end_in(area)[0].into(),
        nodes => nodes.into(),
    }
}

/// How many places for nodes a page with this tag and this area has.
pub fn places_in(tag: u8, area: &[u8]) -> usize {
    if tag == PACKED {
        return end_in(area)[1].into();
    }
    area.first().map_or(0, |mark| usize::from(mark >> 4))
}

/// Whether values stay in the journal, as a page of nodes with this area says.
pub fn apart_in(area: &[u8]) -> bool {
    fanout_in(area) & APART != 0
}

/// How many numbers a page with this tag and this area has for pointers.
pub fn numbers_in(tag: u8, area: &[u8], sizes: RecordSizes) -> usize {
    let records = if apart_in(area) { records_max(area.len(), sizes) } else { 0 };
    places_in(tag, area).max(records)
}

/// The bytes with which a page of packed nodes ends.
fn end_in(area: &[u8]) -> [u8; END_BYTES] {
    area.last_chunk().copied().unwrap_or_default()
}

/// The most children of an inner node, and where values are, as a page says.
fn fanout_in(area: &[u8]) -> u16 {
    area.last_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// The level and the range of a node in a page with this tag and this area.
pub fn node_in(tag: u8, area: &[u8], place: usize) -> Option<NodeRange> {
    if place >= nodes_in(tag, area) {
        return None;
    }
    if tag != PACKED {
        let per_page = places_in(tag, area);
        let mark = *area.get(..per_page)?.get(place)?;
        let range = extent(area.len(), per_page, place);
        let is_node = usize::from(mark >> 4) == per_page && range.end <= area.len();
        return is_node.then_some((mark & 0xF, range));
    }
    let (end, level) = entry_in(area, place)?;
    let start = match place.checked_sub(1) {
        Some(before) => entry_in(area, before)?.0,
        None => 0,
    };
    (start <= end && end <= area.len()).then_some((level, start..end))
}

/// Where the node at `place` ends in an area of packed nodes, and its level.
fn entry_in(area: &[u8], place: usize) -> Option<(usize, u8)> {
    let at = area.len().checked_sub(END_BYTES + (place + 1) * ENTRY_BYTES)?;
    let &[low, high, level] = area[at..].first_chunk()?;
    Some((u16::from_le_bytes([low, high]).into(), level))
}

/// The bytes of a full node in a page with this tag and this area.
pub fn node_bytes_in(tag: u8, area: &[u8]) -> usize {
    let places = places_in(tag, area);
    match tag {
        _ if places < 2 => extent(area.len(), 1, 0).len(),
        PACKED => packed_bytes(area.len(), places / 2),
        _ => extent(area.len(), places, 0).len(),
    }
}

/// The bytes of a full node where `per_page` of them are packed in a page.
const fn packed_bytes(area_bytes: usize, per_page: usize) -> usize {
    (area_bytes.saturating_sub(END_BYTES) / per_page).saturating_sub(ENTRY_BYTES)
}

/// The range of the node at `place` in a page that has room for `per_page`.
pub const fn extent(area_bytes: usize, per_page: usize, place: usize) -> Range<usize> {
    let node_bytes = (area_bytes.saturating_sub(FANOUT_BYTES) / per_page).saturating_sub(1);
    let start = per_page + place * node_bytes;
    start..start + node_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::profile::{MLC, TLC};

    const AREA: usize = 4096;

    /// Fills a page with nodes of these levels and bytes until one finds no room.
    fn fill(form: &Form, area: &mut [u8], nodes: impl Iterator<Item = (u8, usize)>) -> (u8, usize) {
        let (mut count, mut end) = (0, form.first_at());
        for (level, used) in nodes {
            if !form.has_room(count, end, used) {
                break;
            }
            end = form.put_mark(area, (count, level), (end, used));
            count += 1;
        }
        (form.end_page(area, count), count)
    }

    #[test]
    fn a_page_has_room_for_many_small_nodes_and_for_more_that_are_not_full() {
        for (fanout, full, half) in
            [(None, 15, 15), (Some(32), 15, 29), (Some(16), 30, 59), (Some(4), 110, 204)]
        {
            let form = Form::new(&MLC.geometry, &Options { fanout, ..Options::new(4, 4) });
            assert_eq!(form.per_page(), full, "{fanout:?}");
            for (share, expected) in [(1, full), (2, half)] {
                let mut area = [0xFF; AREA];
                let used = form.node_bytes / share;
                let nodes = (0..250).map(|at| (1 + at % 3, used));
                let (tag, count) = fill(&form, &mut area, nodes);
                assert_eq!(count, expected, "{fanout:?}");
                assert!(form.is_of(tag, &area) && nodes_in(tag, &area) == count);
                assert_eq!(node_bytes_in(tag, &area), form.node_bytes);
                let mut last = 0;
                for place in 0..count {
                    let (level, range) = node_in(tag, &area, place).unwrap();
                    assert_eq!(usize::from(level), 1 + place % 3);
                    assert!(range.start >= last && range.len() >= used, "{range:?}");
                    last = range.end;
                }
                assert_eq!(node_in(tag, &area, count), None);
            }
        }
    }

    #[test]
    fn ram_for_more_nodes_than_have_numbers_is_not_taken() {
        let options = |bytes: usize| Options::new(4, 4).arena_bytes(bytes);
        let form = Form::new(&TLC.geometry, &options(0));
        let most = SLOTS_MAX * form.slot_bytes();
        for (bytes, taken) in [(0, 0), (4096, 4096), (most - 1, most - 1), (usize::MAX, most)] {
            assert_eq!(form.arena_bytes(&options(bytes)), taken);
        }
        assert_eq!(form.slots(most), SLOTS_MAX);
        assert_eq!(form.slots(form.arena_bytes_min()), SLOTS_MIN);
        assert_eq!(form.slots(form.arena_bytes_min() - 1), SLOTS_MIN - 1);
    }

    #[test]
    fn large_pages_have_as_many_nodes_as_before_if_no_fanout_is_given() {
        let form = Form::new(&TLC.geometry, &Options::new(4, 4));
        assert_eq!((form.per_page(), form.places()), (15, 15));
        let form = Form::new(&TLC.geometry, &Options::new(4, 4).fanout(8));
        assert_eq!((form.per_page(), form.places()), (127, 254));
    }

    #[test]
    fn a_page_whose_counts_are_impossible_is_of_no_form() {
        let form = Form::new(&MLC.geometry, &Options::new(4, 4).fanout(8));
        let mut area = [0xFF; AREA];
        let (tag, count) = fill(&form, &mut area, (0..40).map(|_| (1, 50)));
        assert_eq!((tag, count), (PACKED, 40));
        for byte in (0..256u16).map(|byte| byte as u8) {
            let mut wrong = area;
            wrong[AREA - 3] = byte;
            assert_eq!(form.is_of(tag, &wrong), usize::from(byte) == form.places());
            assert!(node_bytes_in(tag, &wrong) < AREA);
            wrong[AREA - 4] = byte;
            for place in [0, 39, 40, 254, 255] {
                let found = node_in(tag, &wrong, place);
                assert_eq!(found.is_some(), place < 40.min(byte.into()), "{byte} {place}");
            }
        }
        // Ends that fall, and ends behind the area.
        for end in [0u16, 49, 101, 4096, 4097, u16::MAX] {
            let mut wrong = area;
            wrong[AREA - 4 - 6..][..2].copy_from_slice(&end.to_le_bytes());
            let found = node_in(tag, &wrong, 1).map(|(_, range)| range);
            assert_eq!(found, (50..=4096).contains(&end).then_some(50..end.into()));
            assert!(node_in(tag, &wrong, 2).is_none_or(|(_, range)| range.end == 150));
        }
        // The areas of other pages, and of none.
        for tag in 0..=31 {
            for bytes in [&[][..], &[0; 3], &[0xFF; 4], &[0; AREA], &[0xFF; AREA], &area[1..]] {
                assert!(tag == PACKED || !form.is_of(tag, bytes), "{tag}");
                for place in 0..300 {
                    let found = node_in(tag, bytes, place);
                    assert!(found.is_none_or(|(_, range)| range.end <= bytes.len()));
                }
            }
        }
    }
}
