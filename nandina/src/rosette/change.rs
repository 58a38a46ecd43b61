//! Upserts and removals of single records: one read and one program each.
//!
//! A full leaf is split: the half with the new record is written, and the old page still owns the
//! other half. Keys that rise, or fall, leave full leaves. `merge.rs` does the opposite.

use super::leaf::Form;
use super::leaves::Leaves;
use super::separator::{Separator, needed_between};
use super::{limits, options};
use crate::engine::{Inserted, Removed};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::node::Node;

/// For a short separator a split may be off by this part of the records.
const APART_PARTS: usize = 7;

/// What has to be done to upsert a record.
enum Look {
    /// The record is there with this value.
    Same,
    /// The record at this place gets another value.
    Replace(usize),
    /// The record is inserted at this place.
    Insert(usize),
    /// The leaf is split, and the record inserted at this place.
    Split(usize),
}

impl<F: Flash> Leaves<'_, F> {
    /// Inserts a record or replaces the value of `key`.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, Fault<F::Error>> {
        let (mut first, mut searched) = (true, false);
        loop {
            self.make_room(core::mem::take(&mut first))?;
            let rank = self.directory.find(key);
            let (frame, look) = self.look(rank, key, value)?;
            match look {
                Look::Same => return Ok(Inserted::Replaced),
                Look::Replace(at) => {
                    self.change_leaf(frame, |form, page| {
                        page[form.value(at)].copy_from_slice(value);
                    });
                    self.rewrite_leaf(frame, rank, self.state.records())?;
                    return Ok(Inserted::Replaced);
                }
                Look::Insert(at) => {
                    self.change_leaf(frame, |form, page| {
                        if let Some(mut node) = form.node_mut(page) {
                            node.insert(at, key, value);
                        }
                    });
                    self.rewrite_leaf(frame, rank, self.state.records() + 1)?;
                    return Ok(Inserted::New);
                }
                Look::Split(at) => {
                    // Two neighbours that fit in one leaf are merged before a leaf is added.
                    let merges = !searched && self.is_thin();
                    if !merges && self.split(frame, rank, at, (key, value))? {
                        return Ok(Inserted::New);
                    }
                    if searched {
                        let leaves = self.directory.len() as u32;
                        return Err(self.log.no_room(self.limit_pages().min(leaves)));
                    }
                    searched = true;
                    self.merge_thin()?;
                }
            }
        }
    }

    /// Trims the leaf at `rank` and decides how the record gets into it.
    fn look(
        &mut self,
        rank: usize,
        key: &[u8],
        value: &[u8],
    ) -> Result<(usize, Look), Fault<F::Error>> {
        let frame = self.load_trimmed(rank, 0)?;
        let (page, form) = (self.page_at(rank)?, self.form());
        let node = self.node(frame, page)?;
        let look = match node.search(key) {
            Ok(at) if node.payload(at) == value => Look::Same,
            Ok(at) => Look::Replace(at),
            Err(at) if node.count() < form.capacity() => Look::Insert(at),
            Err(at) => Look::Split(at),
        };
        Ok((frame, look))
    }

    /// Loads the leaf at `rank` and trims it. Returns its page buffer.
    pub(super) fn load_trimmed(
        &mut self,
        rank: usize,
        frame: usize,
    ) -> Result<usize, Fault<F::Error>> {
        let (frame, owned) = self.load_leaf(rank, frame)?;
        let page = self.page_at(rank)?;
        if owned != (0..self.node(frame, page)?.count()) {
            self.change_leaf(frame, |form, page| form.keep(page, owned));
        }
        Ok(frame)
    }

    /// Changes the bytes of the leaf in `frame`.
    ///
    /// From then on the buffer does not hold a page of the chip.
    fn change_leaf(&mut self, frame: usize, change: impl FnOnce(&Form, &mut [u8])) {
        let form = self.form();
        self.log.frames.forget(frame);
        change(&form, self.log.frames.bytes_mut(frame));
    }

    /// Whether the leaves hold so little that two neighbours fit in one.
    ///
    /// Also returns `true` if there may be no more leaves, although perhaps none can be merged
    /// then.
    pub(super) fn is_thin(&self) -> bool {
        let leaves = self.directory.len() as u32;
        leaves >= self.limit_pages()
            || leaves
                > limits::dense(self.state.records().saturating_add(1), self.form().capacity())
    }

    /// Whether there can be one more leaf, with this separator.
    ///
    /// A batch has found room for its leaves before.
    fn admits(&mut self, separator: &Separator) -> bool {
        let more = 1 + options::MOUNTED as usize;
        (self.batch.open().is_some() || (self.directory.len() as u32) < self.budget().limit_pages)
            && (self.directory.has_room(separator, more) || {
                covered!("a directory without room stores fewer bytes of its separators");
                self.directory.narrow();
                self.directory.has_room(separator, more)
            })
    }

    /// Chooses how many records the lower half has if `node` is split for `key`.
    ///
    /// If keys rise or fall, the new one is alone in its half; otherwise the halves are alike. If
    /// that lets the separator fit the window of the directory, up to a seventh of the records is
    /// in the other half.
    fn left_count(&self, node: &Node<'_>, at: usize, key: &[u8]) -> usize {
        let count = node.count();
        let wanted = match at {
            0 => 1,
            at if at == count => count,
            _ => count.div_ceil(2),
        };
        let (mut best, mut fewest) = (wanted, usize::MAX);
        for apart in 0..=count / APART_PARTS {
            for left in [wanted + apart, wanted.saturating_sub(apart)] {
                if !(1..=count).contains(&left) {
                    continue;
                }
                let (below, high) = around(node, left, at, key);
                let needed = needed_between(below, high);
                if self.directory.suits(high, needed) {
                    return left;
                }
                if (1..count).contains(&at) && needed < fewest {
                    (best, fewest) = (left, needed);
                }
            }
        }
        best
    }

    /// Splits the full leaf in `frame`, and inserts a record at place `at`.
    ///
    /// Returns `false`, and writes nothing, if there can be no more leaves.
    fn split(
        &mut self,
        frame: usize,
        rank: usize,
        at: usize,
        record: (&[u8], &[u8]),
    ) -> Result<bool, Fault<F::Error>> {
        let (key, value) = record;
        let kept = self.keep_half(frame, rank, at, (key, Some(value)))?;
        let Some(goes_left) = kept else { return Ok(false) };
        self.program_half(frame, rank, goes_left, self.state.records() + 1)?;
        Ok(true)
    }

    /// Programs the half of a leaf that [`keep_half`](Self::keep_half) has kept.
    pub(super) fn program_half(
        &mut self,
        frame: usize,
        rank: usize,
        goes_left: bool,
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        let page = self.program_leaf(frame, records, None)?;
        self.take_half(frame, rank, goes_left, page);
        self.end_write([None, None]);
        Ok(())
    }

    /// Keeps the half of the full leaf in `frame` that receives a record at place `at`.
    ///
    /// Inserts the record if its value is given. Returns whether that is the lower half; `None` if
    /// there can be no more leaves.
    // Apart from what programs the leaf, for the sake of the stack.
    #[inline(never)]
    pub(super) fn keep_half(
        &mut self,
        frame: usize,
        rank: usize,
        at: usize,
        (key, value): (&[u8], Option<&[u8]>),
    ) -> Result<Option<bool>, Fault<F::Error>> {
        let page = self.page_at(rank)?;
        let node = self.node(frame, page)?;
        let (count, left) = (node.count(), self.left_count(&node, at, key));
        let (below, high) = around(&node, left, at, key);
        let separator = Separator::between(below, high);
        if !self.admits(&separator) {
            return Ok(None);
        }
        let goes_left = at < left;
        self.change_leaf(frame, |form, page| {
            let (kept, at) = if goes_left { (0..left - 1, at) } else { (left..count, at - left) };
            form.keep(page, kept);
            if let (Some(mut node), Some(value)) = (form.node_mut(page), value) {
                node.insert(at, key, value);
            }
        });
        if goes_left {
            let low = self.directory.separator(rank);
            self.set_fences(frame, (&low, Some(&separator)));
        } else {
            let high = self.directory.end(rank);
            self.set_fences(frame, (&separator, high.as_deref()));
        }
        Ok(Some(goes_left))
    }

    /// Gives one half of the range at `rank` to `page`, which is in `frame`.
    ///
    /// The other half is still that of the page that was split.
    fn take_half(&mut self, frame: usize, rank: usize, goes_left: bool, page: PageNumber) {
        let before = self.directory.page(rank);
        let upper = if goes_left { before } else { Some(page) };
        let form = self.form();
        let fences = form.fences(self.log.frames.bytes(frame));
        let separator = fences.and_then(|(low, high)| if goes_left { high } else { Some(low) });
        let is_inserted =
            separator.is_some_and(|separator| self.directory.insert(rank + 1, separator, upper));
        debug_assert!(is_inserted, "a leaf is split only if the directory has room for two");
        if goes_left {
            self.directory.set_page(rank, Some(page));
        }
    }

    /// Removes the record of `key`.
    pub(super) fn take(&mut self, key: &[u8]) -> Result<Removed, Fault<F::Error>> {
        self.make_room(true)?;
        let rank = self.directory.find(key);
        let frame = self.load_trimmed(rank, 0)?;
        let page = self.page_at(rank)?;
        let Ok(at) = self.node(frame, page)?.search(key) else { return Ok(Removed::Absent) };
        let form = self.form();
        self.change_leaf(frame, |form, page| {
            if let Some(mut node) = form.node_mut(page) {
                node.remove(at);
            }
        });
        let count = form.node(self.log.frames.bytes(frame)).map_or(0, |node| node.count());
        let records = self.state.records().saturating_sub(1);
        if !self.join(frame, rank, count, records)? {
            self.rewrite_leaf(frame, rank, records)?;
        }
        Ok(Removed::Found)
    }
}

/// The last key of the lower half, and the first of the upper one.
///
/// The lower half has `left` records. `key` is inserted at place `at`.
fn around<'k>(node: &Node<'k>, left: usize, at: usize, key: &'k [u8]) -> (&'k [u8], &'k [u8]) {
    let key_at = |place: usize| match place {
        place if place < at => node.key(place),
        place if place == at => key,
        place => node.key(place - 1),
    };
    (key_at(left - 1), key_at(left))
}
