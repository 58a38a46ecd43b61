//! Where everything lies in an erase sector that holds a leaf.
//!
//! Page 0 is programmed at once: the first sorted records, the *head* of the leaf, and the header
//! that every page of this library has. Page 1 begins with the marks; the other sorted records
//! follow, then the fingerprints of the log, then its slots. A position is a byte of the main data
//! of the sector, counted over its pages. Nothing is read or written here.

use crate::flash::Geometry;
use crate::log::layout_of;
use crate::node::slot::TAG_BYTES;
use crate::node::{HEADER_BYTES, PageLayout};

/// Slots whose fingerprints lie together.
pub const GROUP: usize = 16;

/// Bytes of the fingerprints of a group: hashes, live records, a count of zeros.
pub const GROUP_BYTES: usize = GROUP + 3;

/// Bytes of the marks: the commit, that it returned, and ends of sessions.
pub const MARKS_BYTES: usize = 2 * COMMIT_BYTES + ENDS_BYTES;

/// Bytes of the mark that commits a leaf.
pub const COMMIT_BYTES: usize = 8;

/// Bytes in which a bit falls for each end and each beginning of a session.
pub const ENDS_BYTES: usize = 8;

/// Bytes of a head beside its two fences.
pub const HEAD_BESIDE: usize = 8;

/// The most slots of a log, whose numbers have a byte.
const SLOTS_MAX: usize = 254;

/// The fewest slots of a log: as many changes fit in a full leaf.
const SLOTS_MIN: usize = 16;

/// The most records of the sorted part.
const SORTED_MAX: usize = 0x7E00;

/// The sizes of sectors and records.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub layout: PageLayout,
    /// Pages of a sector.
    pages: u16,
    /// Sorted records in page 0.
    in_first: u16,
}

/// Where the log of a leaf lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Log {
    /// The first group of fingerprints.
    pub groups_at: usize,
    /// The first slot.
    pub slots_at: usize,
    /// How many slots there are.
    pub slots: usize,
    slot_bytes: usize,
}

impl Log {
    /// Where a slot begins.
    pub const fn slot(&self, slot: usize) -> usize {
        self.slots_at + slot * self.slot_bytes
    }

    /// Where the fingerprints of a group begin.
    pub const fn group(&self, group: usize) -> usize {
        self.groups_at + group * GROUP_BYTES
    }
}

impl Form {
    pub const fn new(geometry: &Geometry, key_bytes: usize, value_bytes: usize) -> Self {
        let pages = geometry.pages_per_block as u16;
        let form = Self { key_bytes, value_bytes, layout: layout_of(geometry), pages, in_first: 0 };
        // It is divided here once, and not for each record that is read.
        let in_first = form.head_at() / form.record_bytes();
        let in_first = if in_first < SORTED_MAX { in_first } else { SORTED_MAX };
        Self { in_first: in_first as u16, ..form }
    }

    /// Pages of a sector.
    pub const fn pages(&self) -> usize {
        self.pages as usize
    }

    /// Bytes of the main data of a page.
    pub const fn page_bytes(&self) -> usize {
        self.layout.page_bytes()
    }

    /// Bytes of the main data of a sector.
    pub const fn sector_bytes(&self) -> usize {
        self.page_bytes() * self.pages()
    }

    /// Bytes of a record.
    pub const fn record_bytes(&self) -> usize {
        self.key_bytes + self.value_bytes
    }

    /// Bytes of a slot of the log.
    pub const fn slot_bytes(&self) -> usize {
        TAG_BYTES + self.record_bytes()
    }

    /// Bytes of the head.
    pub const fn head_bytes(&self) -> usize {
        HEAD_BESIDE + 2 * self.key_bytes
    }

    /// Where the head begins, in page 0.
    pub const fn head_at(&self) -> usize {
        self.layout.area_bytes().saturating_sub(self.head_bytes())
    }

    /// Bytes of head and header together.
    pub const fn tail_bytes(&self) -> usize {
        self.head_bytes() + HEADER_BYTES
    }

    /// Whether all of the header is main data, so that parts of it can be read.
    pub const fn has_header_inside(&self) -> bool {
        self.layout.frame_bytes() == self.layout.page_bytes()
    }

    /// Where the marks begin.
    pub const fn marks_at(&self) -> usize {
        self.page_bytes()
    }

    /// Where the mark begins that the commit has returned.
    pub const fn acknowledged_at(&self) -> usize {
        self.marks_at() + COMMIT_BYTES
    }

    /// Where the ends of sessions begin.
    pub const fn ends_at(&self) -> usize {
        self.acknowledged_at() + COMMIT_BYTES
    }

    /// Sorted records in page 0.
    pub const fn in_first(&self) -> usize {
        self.in_first as usize
    }

    /// Where the sorted records behind page 0 begin.
    const fn rest_at(&self) -> usize {
        self.marks_at() + MARKS_BYTES
    }

    /// Where a sorted record begins.
    pub const fn sorted(&self, at: usize) -> usize {
        match at.checked_sub(self.in_first()) {
            None => at * self.record_bytes(),
            Some(rest) => self.rest_at() + rest * self.record_bytes(),
        }
    }

    /// The log behind this many sorted records.
    pub const fn log(&self, sorted: usize) -> Log {
        let begin = self.rest_at() + sorted.saturating_sub(self.in_first()) * self.record_bytes();
        let room = self.sector_bytes().saturating_sub(begin);
        let slot_bytes = self.slot_bytes();
        let whole = GROUP * slot_bytes + GROUP_BYTES;
        let groups = room / whole;
        let rest = (room - groups * whole) / slot_bytes;
        let slots = groups * GROUP + if rest < GROUP { rest } else { GROUP - 1 };
        let slots = if slots < SLOTS_MAX { slots } else { SLOTS_MAX };
        let slots_at = begin + slots / GROUP * GROUP_BYTES;
        Log { groups_at: begin, slots_at, slots, slot_bytes }
    }

    /// The most slots of any log.
    pub const fn slots_max(&self) -> usize {
        self.log(0).slots
    }

    /// The most records of a leaf; 0 if a sector has no room for a log.
    pub const fn capacity(&self) -> usize {
        let least = SLOTS_MIN * self.slot_bytes() + SLOTS_MIN / GROUP * GROUP_BYTES;
        let Some(room) = self.sector_bytes().checked_sub(self.rest_at() + least) else { return 0 };
        let most = self.in_first() + room / self.record_bytes();
        if most < SORTED_MAX { most } else { SORTED_MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(page_bytes: u32, spare_bytes: u32, key_bytes: usize, value_bytes: usize) -> Form {
        let geometry = Geometry { page_bytes, spare_bytes, pages_per_block: 16, blocks: 8 };
        Form::new(&geometry, key_bytes, value_bytes)
    }

    #[test]
    fn records_log_and_marks_of_a_sector_do_not_overlap() {
        for (page_bytes, spare_bytes) in [(256, 0), (512, 16), (4096, 0)] {
            for (key_bytes, value_bytes) in [(1, 0), (4, 12), (8, 8), (64, 0), (16, 100)] {
                let form = form(page_bytes, spare_bytes, key_bytes, value_bytes);
                assert!(form.head_at() + form.head_bytes() == form.layout.area_bytes());
                assert!(form.capacity() > 16, "{form:?}");
                for sorted in 0..=form.capacity() {
                    let log = form.log(sorted);
                    assert!(log.slots >= SLOTS_MIN && log.slots <= SLOTS_MAX, "{form:?} {sorted}");
                    let end = if sorted == 0 { 0 } else { form.sorted(sorted - 1) };
                    assert!(sorted == 0 || end + form.record_bytes() <= log.groups_at);
                    assert!(log.group(log.slots / GROUP) <= log.slots_at);
                    assert!(log.slot(log.slots) <= form.sector_bytes());
                }
                for at in 0..form.in_first() {
                    assert!(form.sorted(at) + form.record_bytes() <= form.head_at());
                }
                assert_eq!(form.sorted(form.in_first()), form.marks_at() + MARKS_BYTES);
            }
        }
    }

    #[test]
    fn a_sector_of_4_kib_has_room_for_199_changes_or_231_records_of_16_bytes() {
        let form = form(256, 0, 4, 12);
        assert_eq!((form.log(0).slots, form.capacity()), (199, 231));
        assert_eq!(form.log(83).slots, 140);
    }
}
