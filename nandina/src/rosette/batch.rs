//! A batch as bytes, and what is known of the batch that is being made.
//!
//! ```text
//! | count: u16 | key kind value | key kind value | ... | unused |
//! ```
//!
//! A batch that does not fit in one leaf is stored in a page of its own, sorted, with the last
//! change of each key. Kind 1 stores a value, kind 0 removes the record. Every page that is written
//! until all of these changes are made carries the mark of the batch. No page is read or written
//! here; `batches.rs` does that.

#[cfg(feature = "batches")]
use crate::engine::Change;
use crate::flash::PageNumber;
use crate::log::Label;
use crate::node::{Medium, Node, PageHeader, PageLayout, SESSION_END, Shape};

/// Whether batches are made, and made again by a mount.
pub(super) const IS_BUILT: bool = cfg!(feature = "batches");

/// Bytes of the kind of a change.
const KIND_BYTES: usize = 1;

/// Bytes of the count of changes.
#[cfg(feature = "batches")]
const COUNT_BYTES: usize = 2;

/// The lowest mark. Pages that belong to no batch have a lower number in its place.
const MARK_MIN: u8 = 2;

/// Marks of batches that follow one another differ.
#[cfg(feature = "batches")]
const MARKS: u64 = u8::MAX as u64 - MARK_MIN as u64;

/// The sizes of a stored batch.
#[derive(Clone, Copy)]
pub(super) struct BatchForm {
    shape: Shape,
    area_bytes: usize,
}

impl BatchForm {
    /// The batches of such a medium.
    pub fn new(layout: &PageLayout, medium: &Medium) -> Self {
        let value_bytes = usize::from(medium.value_bytes);
        let shape = Shape::sorted(medium.key_bytes.into(), KIND_BYTES + value_bytes);
        Self { shape, area_bytes: layout.area_bytes() }
    }

    /// The changes in a page, or `None` if their count is impossible.
    pub fn changes<'a>(&self, page: &'a [u8]) -> Option<Node<'a>> {
        Node::parse(&page[..self.area_bytes], self.shape)
    }
}

#[cfg(feature = "batches")]
impl BatchForm {
    /// Changes that fit in a page.
    pub const fn capacity(&self) -> usize {
        self.shape.capacity(self.area_bytes)
    }

    /// Stores `changes` in a page, sorted by key.
    ///
    /// Of two changes of a key the later one counts. There are at most as many as fit.
    pub fn store(&self, page: &mut [u8], changes: &[Change<'_>]) {
        page[..self.area_bytes].fill(0);
        for change in changes {
            self.store_one(page, change);
        }
    }

    fn store_one(&self, page: &mut [u8], change: &Change<'_>) {
        let Some(stored) = self.changes(page) else { return };
        let (count, found) = (stored.count(), stored.search(change.key()));
        let (Ok(at) | Err(at)) = found;
        if found.is_err() {
            let (from, end) = (self.shape.at(at), self.shape.at(count));
            page.copy_within(from..end, from + self.shape.record_bytes());
            page[..COUNT_BYTES].copy_from_slice(&(count as u16 + 1).to_le_bytes());
        }
        let bytes = &mut page[self.shape.at(at)..][..self.shape.record_bytes()];
        let (key, rest) = bytes.split_at_mut(self.shape.key_bytes());
        let (kind, value) = rest.split_at_mut(KIND_BYTES);
        key.copy_from_slice(change.key());
        kind[0] = u8::from(change.value().is_some());
        match change.value() {
            Some(given) => value.copy_from_slice(given),
            None => value.fill(0),
        }
    }
}

/// The value that a stored change leaves; `None` if it removes the record.
pub(super) fn value_in(payload: &[u8]) -> Option<&[u8]> {
    let (kind, value) = payload.split_at(KIND_BYTES);
    (kind[0] != 0).then_some(value)
}

/// The mark of a batch that is stored when the log has this sequence number.
#[cfg(feature = "batches")]
pub(super) const fn mark_of(sequence: u64) -> u8 {
    MARK_MIN + (sequence % MARKS) as u8
}

/// The mark of the batch to which a page belongs, if it belongs to one.
pub(super) fn mark_in(header: &PageHeader) -> Option<u8> {
    (header.lowest >= MARK_MIN).then_some(header.lowest)
}

/// Whether a page of a batch stores its changes.
pub(super) const fn stores_batch(header: &PageHeader) -> bool {
    header.height == 0 && header.records < SESSION_END
}

/// Whether the newest page says that changes of a batch may be missing.
pub(super) fn is_half_made(newest: &PageHeader) -> bool {
    mark_in(newest).is_some() && !stores_batch(newest)
}

/// The batch that is being made, or was made last.
pub(super) struct Batch {
    /// The page that stores its changes, until a page of no batch was written after it.
    page: Option<PageNumber>,
    mark: u8,
    is_made: bool,
    /// The page of the batch that was open as the checkpoint of a mount says.
    stored: Option<PageNumber>,
}

impl Batch {
    /// No batch.
    pub const NONE: Self = Self { page: None, mark: 0, is_made: false, stored: None };

    /// From now on the changes that `page` stores are made.
    pub const fn begin(&mut self, page: PageNumber, mark: u8) {
        *self = Self { page: Some(page), mark, is_made: false, stored: None };
    }

    /// Forgets the batch, and what a checkpoint names.
    pub const fn forget(&mut self) {
        if IS_BUILT {
            *self = Self::NONE;
        }
    }

    /// The page with the changes, as long as it is needed.
    pub const fn page(&self) -> Option<PageNumber> {
        if IS_BUILT { self.page } else { None }
    }

    /// The page with the changes, if some of them may not be made yet.
    pub const fn open(&self) -> Option<PageNumber> {
        if self.is_made { None } else { self.page() }
    }

    /// All changes are made.
    pub const fn note_made(&mut self) {
        self.is_made = true;
    }

    /// Notes the page that the checkpoint of a mount names, if a batch was open then.
    pub const fn note_stored(&mut self, page: Option<PageNumber>) {
        self.stored = page;
    }

    /// Forgets the batch. Returns the page that the checkpoint of the mount names.
    pub const fn take_stored(&mut self) -> Option<PageNumber> {
        let stored = self.stored;
        self.forget();
        stored
    }

    /// The label of a page that is written now.
    pub fn mark(&self, label: Label) -> Label {
        match self.open() {
            Some(_) => Label { lowest: self.mark, ..label },
            None => label,
        }
    }

    /// A page was written. Returns the page with the changes if it is no longer needed.
    pub fn note_written(&mut self) -> Option<PageNumber> {
        if IS_BUILT && self.is_made { core::mem::replace(self, Self::NONE).page } else { None }
    }
}

#[cfg(all(test, feature = "batches"))]
mod tests {
    use super::*;

    #[test]
    fn a_stored_batch_is_sorted_and_keeps_the_last_change_of_each_key() {
        let form = BatchForm { shape: Shape::sorted(1, KIND_BYTES + 2), area_bytes: 16 };
        let mut page = [0xA5; 20];
        assert_eq!(form.capacity(), 3);
        form.store(
            &mut page,
            &[
                Change::Put { key: b"m", value: b"11" },
                Change::Put { key: b"z", value: b"22" },
                Change::Put { key: b"a", value: b"33" },
                Change::Remove { key: b"m" },
                Change::Put { key: b"z", value: b"44" },
            ],
        );
        let stored = form.changes(&page).unwrap();
        assert_eq!(stored.count(), 3);
        let found = [0, 1, 2].map(|at| (stored.key(at), value_in(stored.payload(at))));
        assert_eq!(found, [(&b"a"[..], Some(&b"33"[..])), (b"m", None), (b"z", Some(b"44"))]);
        assert_eq!(page[16..], [0xA5; 4]);
    }

    #[test]
    fn pages_carry_the_mark_until_the_changes_are_made() {
        let label = Label { lowest: 1, height: 1, records: 7 };
        let mut batch = Batch::NONE;
        batch.begin(PageNumber(9), mark_of(300));
        let marked = batch.mark(label).lowest;
        assert!(marked == mark_of(300) && marked != mark_of(301) && marked != mark_of(299));
        assert!(mark_of(u64::MAX) >= MARK_MIN && mark_of(MARKS - 1) == u8::MAX - 1);
        assert_eq!((batch.note_written(), batch.open()), (None, Some(PageNumber(9))));
        batch.note_made();
        assert_eq!((batch.open(), batch.page()), (None, Some(PageNumber(9))));
        assert_eq!(batch.mark(label).lowest, 1);
        assert_eq!(batch.note_written(), Some(PageNumber(9)));
        assert_eq!((batch.note_written(), batch.page()), (None, None));
    }
}
