//! Where each change lies in the area of a page of the journal.
//!
//! The changes of a page that is programmed at once follow a count of them (`journal.rs` beside
//! this). Those that are programmed one by one begin at the other end (`slots.rs`). Nothing is read
//! or written here.

use core::ops::Range;

use crate::bytes::u16_at;
use crate::engine::RecordSizes;
use crate::node::slot::{self, State, TAG_BYTES};
use crate::node::{ONE_BY_ONE, PageHeader};

/// Bytes of the count with which a journal page begins.
pub const COUNT_BYTES: usize = 2;

/// The most records of a page where values stay in the journal.
///
/// Their number is a byte.
pub const RECORDS_MAX: usize = u8::MAX as usize;

/// Bytes of a change: its kind, its key and its value.
pub const fn entry_bytes((key_bytes, value_bytes): RecordSizes) -> usize {
    1 + key_bytes + value_bytes
}

/// Where the change at `place` begins, behind the count.
pub const fn entry_start(sizes: RecordSizes, place: usize) -> usize {
    COUNT_BYTES + place * entry_bytes(sizes)
}

/// The number of changes behind the count that fit in an area.
pub const fn entries_in(area_bytes: usize, sizes: RecordSizes) -> usize {
    area_bytes.saturating_sub(COUNT_BYTES) / entry_bytes(sizes)
}

/// Bytes of a change that is programmed by itself.
pub const fn slot_bytes((key_bytes, value_bytes): RecordSizes) -> usize {
    TAG_BYTES + key_bytes + value_bytes
}

/// Where such a change at `place` is. The first one is the last in the area.
///
/// `place` must be below [`slots_in`] the area.
pub const fn slot_range(area_bytes: usize, sizes: RecordSizes, place: usize) -> Range<usize> {
    let end = area_bytes - place * slot_bytes(sizes);
    end - slot_bytes(sizes)..end
}

/// The number of such changes that fit in an area.
pub const fn slots_in(area_bytes: usize, sizes: RecordSizes) -> usize {
    area_bytes / slot_bytes(sizes)
}

/// The most changes in a page of values, however it is programmed.
pub const fn records_max(area_bytes: usize, sizes: RecordSizes) -> usize {
    let (entries, slots) = (entries_in(area_bytes, sizes), slots_in(area_bytes, sizes));
    let most = if entries > slots { entries } else { slots };
    if most > RECORDS_MAX { RECORDS_MAX } else { most }
}

/// Whether changes are programmed one by one into a page with this header.
pub const fn has_slots(header: &PageHeader) -> bool {
    header.lowest == ONE_BY_ONE
}

/// How many slots of an area are whole, from the first one on.
pub fn whole_slots(area: &[u8], sizes: RecordSizes) -> usize {
    let slot = |at| &area[slot_range(area.len(), sizes, at)];
    let is_whole = |&at: &usize| matches!(slot::state(slot(at)), State::Whole(_));
    (0..slots_in(area.len(), sizes)).take_while(is_whole).count()
}

/// The number of changes in the area of a page of the journal with this header.
///
/// 0 if more are counted than fit. Those that were programmed one by one end at the first that is
/// not whole.
pub fn changes_in(header: &PageHeader, area: &[u8], sizes: RecordSizes) -> usize {
    if has_slots(header) {
        return whole_slots(area, sizes);
    }
    let count = if area.len() < COUNT_BYTES { 0 } else { u16_at(area, 0).into() };
    if count > entries_in(area.len(), sizes) { 0 } else { count }
}
