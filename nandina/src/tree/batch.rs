//! The write buffer as bytes: pending changes in RAM.
//!
//! They are kept in the order of their keys, only the newest for each key (VMTree paper, section
//! 4.1). This file knows no tree, and allocates no memory: the bytes are the caller's.
//!
//! ```text
//! | key value | key value | ... | unused | upserts: one bit for each change |
//! ```
//!
//! The bit is 1 for an upsert and 0 for a removal, whose value has no meaning. A change is found by
//! bisection, and inserted in order by shifting those after it.
//!
//! Without the feature `write-buffer` a batch is empty and has no size. No change is ever pending,
//! which is known at compile time, so the handling of pending changes takes no code.

use crate::engine::{Eviction, Options};
use core::ops::Deref;

use crate::bytes::{Bits, bisect};

/// Whether this library has a write buffer.
pub const IS_BUILT: bool = cfg!(feature = "write-buffer");

/// The pending changes, and how long they may stay pending.
///
/// Holds one [`Waiting`] if this library has a write buffer, and none otherwise.
#[derive(Default)]
pub struct Batch<'b>([Waiting<'b>; IS_BUILT as usize]);

/// The content of a batch.
pub struct Waiting<'b> {
    /// Keys and values.
    entries: &'b mut [u8],
    /// Which changes are upserts.
    are_puts: Bits<&'b mut [u8]>,
    key_bytes: usize,
    entry_bytes: usize,
    capacity: usize,
    count: usize,
    /// Number of pending upserts: only these can take pages.
    puts: u32,
    /// Number of upserts that may be pending.
    /// Their pages are allowed in the current tree, whatever nodes they split.
    granted: u32,
    /// Number of pending changes that makes a flush due, or 0 for no bound.
    changes_max: u32,
    /// Number of ticks that makes a flush due, or 0 for no bound.
    ticks_max: u32,
    /// Ticks since the oldest pending change.
    ticks: u32,
    /// Most records that the root can have, or `u32::MAX` if that is not known.
    /// What may be buffered depends on it.
    root_records: u32,
    /// Which changes are written when it is full.
    ///
    /// And how many changes came before the next one.
    #[cfg(feature = "paper-modes")]
    evicts: (Eviction, u32),
}

/// The content of a batch where there is no write buffer.
static NOTHING: Waiting<'static> = Waiting::nothing();

/// Bytes of RAM for a write buffer of `pages` pages.
pub const fn ram_needed(page_bytes: usize, pages: usize) -> usize {
    if IS_BUILT { page_bytes * pages } else { 0 }
}

/// Whether two neighbouring changes belong to one leaf, as far as it is known.
///
/// The leaves of one level share the keys out in order. So two changes belong to one leaf if all
/// pairs of neighbours from one to the other do, and to two leaves if one of these pairs does.
#[cfg(feature = "paper-modes")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaf {
    Unknown = 0,
    Same = 1,
    Other = 2,
}

#[cfg(feature = "paper-modes")]
impl Leaf {
    const fn of(byte: u8) -> Self {
        match byte {
            1 => Self::Same,
            2 => Self::Other,
            _ => Self::Unknown,
        }
    }

    /// What is known of two changes and those between them, from two parts of these.
    const fn and(self, then: Self) -> Self {
        match (self, then) {
            (Self::Other, _) | (_, Self::Other) => Self::Other,
            (Self::Same, Self::Same) => Self::Same,
            _ => Self::Unknown,
        }
    }
}

/// Bytes of a pending change, besides a bit.
///
/// They are those of the key and the value, and what the choice of a leaf needs.
const fn entry_bytes(options: &Options) -> usize {
    options.key_bytes + options.value_bytes + options.eviction.change_bytes()
}

/// Changes of `entry_bytes` that fit in `bytes`, each with its bit.
const fn changes_in(bytes: usize, entry_bytes: usize) -> usize {
    let changes = 8 * bytes / (8 * entry_bytes + 1);
    // The last bits take a whole byte.
    if changes * entry_bytes + changes.div_ceil(8) > bytes { changes - 1 } else { changes }
}

/// The most changes that a write buffer holds.
///
/// As many as fit in its pages, or as the options allow to be pending.
pub const fn waiting_max(page_bytes: usize, options: &Options) -> usize {
    if !IS_BUILT {
        return 0;
    }
    let fit = changes_in(ram_needed(page_bytes, options.write_buffer), entry_bytes(options));
    match options.write_buffer_changes {
        Some(changes) if (changes as usize) < fit => changes as usize,
        _ => fit,
    }
}

impl<'b> Deref for Batch<'b> {
    type Target = Waiting<'b>;

    #[inline(always)]
    fn deref(&self) -> &Waiting<'b> {
        self.0.first().unwrap_or(&NOTHING)
    }
}

impl Default for Waiting<'_> {
    fn default() -> Self {
        Self::nothing()
    }
}

impl<'b> Waiting<'b> {
    const fn nothing() -> Self {
        Self {
            entries: &mut [],
            are_puts: Bits(&mut []),
            key_bytes: 0,
            entry_bytes: 0,
            capacity: 0,
            count: 0,
            puts: 0,
            granted: 0,
            changes_max: 0,
            ticks_max: 0,
            ticks: 0,
            root_records: u32::MAX,
            #[cfg(feature = "paper-modes")]
            evicts: (Eviction::All, 0),
        }
    }

    fn new(bytes: &'b mut [u8], options: &Options) -> Self {
        let entry_bytes = entry_bytes(options);
        let capacity = changes_in(bytes.len(), entry_bytes);
        let (entries, are_puts) = bytes.split_at_mut(bytes.len() - capacity.div_ceil(8));
        Self {
            entries,
            are_puts: Bits(are_puts),
            key_bytes: options.key_bytes,
            entry_bytes,
            capacity,
            changes_max: options.write_buffer_changes.unwrap_or(0),
            ticks_max: options.write_buffer_ticks.unwrap_or(0),
            #[cfg(feature = "paper-modes")]
            evicts: (options.eviction, 0),
            ..Self::nothing()
        }
    }

    /// Whether there is a write buffer at all.
    pub const fn is_used(&self) -> bool {
        IS_BUILT && self.capacity > 0
    }

    pub const fn len(&self) -> usize {
        if IS_BUILT { self.count } else { 0 }
    }

    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Notes that the change at `at` is new.
    ///
    /// It is the youngest, and perhaps its leaf is known.
    fn note_new(&mut self, at: usize) {
        #[cfg(feature = "paper-modes")]
        match self.eviction() {
            Eviction::Ibsf => {
                let (size, from) = (self.entry_bytes, self.value_end());
                self.entries[at * size..][from..size].copy_from_slice(&self.evicts.1.to_le_bytes());
                self.evicts.1 = self.evicts.1.wrapping_add(1);
            }
            Eviction::Mb => {
                // Between two changes of one leaf there is no other leaf.
                let is_between = at > 0 && at + 1 < self.count && self.leaf(at + 1) == Leaf::Same;
                let leaf = if is_between { Leaf::Same } else { Leaf::Unknown };
                for at in [at, at + 1] {
                    self.set_leaf(at, leaf);
                }
            }
            Eviction::All => {}
        }
        let _ = at;
    }

    /// Notes that the changes from `from` up to `to` leave.
    fn note_drop(&mut self, from: usize, to: usize) {
        #[cfg(feature = "paper-modes")]
        if self.eviction() == Eviction::Mb && to < self.count {
            let leaf = (from..to).fold(self.leaf(to), |leaf, at| self.leaf(at).and(leaf));
            self.set_leaf(to, leaf);
        }
        let _ = (from, to);
    }

    /// What is known of the leaves of the change at `at` and the one before it.
    #[cfg(feature = "paper-modes")]
    fn leaf(&self, at: usize) -> Leaf {
        Leaf::of(self.entries[at * self.entry_bytes + self.value_end()])
    }

    #[cfg(feature = "paper-modes")]
    fn set_leaf(&mut self, at: usize, leaf: Leaf) {
        if at < self.count {
            self.entries[at * self.entry_bytes + self.value_end()] = leaf as u8;
        }
    }

    /// The end of the changes of one leaf, if it is known. The first is at `from`.
    #[cfg(feature = "paper-modes")]
    pub fn leaf_end(&self, from: usize) -> Option<usize> {
        let end = (from + 1..self.count).find(|&at| self.leaf(at) != Leaf::Same);
        match end {
            Some(at) if self.leaf(at) == Leaf::Unknown => None,
            end => Some(end.unwrap_or(self.count)),
        }
    }

    /// Whether there is room for a change of `key`.
    pub fn takes(&self, key: &[u8]) -> bool {
        self.count < self.capacity || self.search(key).is_ok()
    }

    /// Whether as many changes are pending as may be.
    pub const fn is_due(&self) -> bool {
        self.changes_max > 0 && self.count >= self.changes_max as usize
    }

    /// The key of the change at `at`.
    pub fn key(&self, at: usize) -> &[u8] {
        &self.entries[at * self.entry_bytes..][..self.key_bytes]
    }

    /// Whether the change at `at` is an upsert.
    pub fn puts_at(&self, at: usize) -> bool {
        self.are_puts.has(at)
    }

    /// The value of the upsert at `at`, or `None` for a removal.
    pub fn value(&self, at: usize) -> Option<&[u8]> {
        let entry = &self.entries[at * self.entry_bytes..][..self.entry_bytes];
        self.puts_at(at).then(|| &entry[self.key_bytes..self.value_end()])
    }

    /// Which changes are written when it is full.
    pub const fn eviction(&self) -> Eviction {
        #[cfg(feature = "paper-modes")]
        return self.evicts.0;
        #[cfg(not(feature = "paper-modes"))]
        Eviction::All
    }

    /// Where the value of a change ends.
    ///
    /// Behind it is its age, or what is known of its leaf.
    const fn value_end(&self) -> usize {
        self.entry_bytes - self.eviction().change_bytes()
    }

    /// The position of the oldest change, if any is pending and ages are known.
    #[cfg(feature = "paper-modes")]
    pub fn oldest(&self) -> Option<usize> {
        let next = self.evicts.1;
        let age = |at: usize| {
            let age = &self.entries[at * self.entry_bytes..][self.value_end()..self.entry_bytes];
            age.try_into().map_or(0, |age| next.wrapping_sub(u32::from_le_bytes(age)))
        };
        (0..self.count).max_by_key(|&at| age(at))
    }

    /// The position of the change of `key` (`Ok`), or where it belongs (`Err`).
    #[inline]
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        bisect(self.len(), |at| self.key(at), key)
    }

    /// Number of changes whose keys are below `key`.
    #[inline]
    pub fn below(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(at) | Err(at) => at,
        }
    }

    /// Number of pending upserts once one of `key` is added.
    pub fn puts_with(&self, key: &[u8]) -> u32 {
        let puts_already = self.search(key).is_ok_and(|at| self.puts_at(at));
        self.puts + u32::from(!puts_already)
    }

    pub const fn granted(&self) -> u32 {
        self.granted
    }

    /// Most records that the root can have, or `u32::MAX` if that is not known.
    pub const fn root_records(&self) -> u32 {
        self.root_records
    }
}

impl<'b> Batch<'b> {
    pub fn new(mut bytes: &'b mut [u8], options: &Options) -> Self {
        Self(core::array::from_fn(|_| Waiting::new(core::mem::take(&mut bytes), options)))
    }

    /// Counts a tick.
    ///
    /// Returns whether a change has been pending for too long.
    pub fn tick(&mut self) -> bool {
        let [waiting] = self.0.as_mut_slice() else { return false };
        if waiting.count == 0 {
            return false;
        }
        waiting.ticks = waiting.ticks.saturating_add(1);
        waiting.ticks_max > 0 && waiting.ticks >= waiting.ticks_max
    }

    /// Buffers an upsert (`Some(value)`) or a removal (`None`) of `key`.
    ///
    /// There must be room for it.
    pub fn take(&mut self, key: &[u8], value: Option<&[u8]>) {
        let [waiting] = self.0.as_mut_slice() else { return };
        let (size, value_end) = (waiting.entry_bytes, waiting.value_end());
        let at = match waiting.search(key) {
            Ok(at) => {
                waiting.puts -= u32::from(waiting.puts_at(at));
                at
            }
            Err(at) => {
                waiting.entries.copy_within(at * size..waiting.count * size, (at + 1) * size);
                for behind in (at..waiting.count).rev() {
                    waiting.are_puts.set(behind + 1, waiting.are_puts.has(behind));
                }
                waiting.entries[at * size..][..waiting.key_bytes].copy_from_slice(key);
                waiting.count += 1;
                waiting.note_new(at);
                at
            }
        };
        waiting.are_puts.set(at, value.is_some());
        if let Some(value) = value {
            waiting.entries[at * size..][waiting.key_bytes..value_end].copy_from_slice(value);
            waiting.puts += 1;
        }
    }

    /// Drops the changes from `from` up to `to`.
    pub fn drop_between(&mut self, from: usize, to: usize) {
        let [waiting] = self.0.as_mut_slice() else { return };
        for at in from..to {
            waiting.puts -= u32::from(waiting.puts_at(at));
        }
        waiting.note_drop(from, to);
        let size = waiting.entry_bytes;
        waiting.entries.copy_within(to * size..waiting.count * size, from * size);
        for behind in to..waiting.count {
            waiting.are_puts.set(behind - to + from, waiting.are_puts.has(behind));
        }
        waiting.count -= to - from;
        if waiting.count == 0 {
            waiting.ticks = 0;
        }
    }

    /// Notes that the changes from `from` up to `to` are all of one leaf.
    #[cfg(feature = "paper-modes")]
    pub fn note_leaf(&mut self, from: usize, to: usize) {
        let [waiting] = self.0.as_mut_slice() else { return };
        (from + 1..to).for_each(|at| waiting.set_leaf(at, Leaf::Same));
        waiting.set_leaf(to, Leaf::Other);
    }

    /// Forgets which changes belong to one leaf: leaves have other bounds now.
    pub fn forget_leaves(&mut self) {
        #[cfg(feature = "paper-modes")]
        if let [waiting] = self.0.as_mut_slice()
            && waiting.eviction() == Eviction::Mb
        {
            (0..waiting.count).for_each(|at| waiting.set_leaf(at, Leaf::Unknown));
        }
    }

    /// Drops all changes, as for another tree.
    pub fn clear(&mut self) {
        self.drop_between(0, self.len());
        self.grant(0);
        self.set_root_records(u32::MAX);
    }

    /// Drops the change of `key`, if one is pending.
    ///
    /// Returns whether it was an upsert.
    pub fn forget(&mut self, key: &[u8]) -> Option<bool> {
        let at = self.search(key).ok()?;
        let puts = self.puts_at(at);
        self.drop_between(at, at + 1);
        Some(puts)
    }

    /// Allows this number of upserts to be pending until the tree changes.
    pub fn grant(&mut self, puts: u32) {
        if let [waiting] = self.0.as_mut_slice() {
            waiting.granted = puts;
        }
    }

    pub fn set_root_records(&mut self, records: u32) {
        if let [waiting] = self.0.as_mut_slice() {
            waiting.root_records = records;
        }
    }
}

#[cfg(all(test, feature = "write-buffer"))]
mod tests {
    use super::*;

    fn holds(batch: &Batch<'_>, changes: &[(u8, Option<u8>)]) -> bool {
        let held =
            (0..batch.len()).map(|at| (batch.key(at)[0], batch.value(at).map(|value| value[0])));
        held.eq(changes.iter().copied())
    }

    #[test]
    fn one_change_a_key_waits_the_newest_in_the_order_of_keys() {
        let mut bytes = [0xA5; 9];
        let options = Options { write_buffer_changes: Some(4), ..Options::new(1, 1) };
        let mut batch = Batch::new(&mut bytes, &options);
        assert_eq!((batch.capacity(), batch.puts_with(&[7])), (4, 1));
        for (key, value) in [(7, Some(1)), (3, Some(2)), (9, None), (7, Some(3)), (3, None)] {
            batch.take(&[key], value.as_ref().map(core::slice::from_ref));
        }
        assert!(holds(&batch, &[(3, None), (7, Some(3)), (9, None)]));
        assert_eq!((batch.puts, batch.puts_with(&[7]), batch.puts_with(&[9])), (1, 1, 2));
        assert_eq!((batch.below(&[3]), batch.below(&[8]), batch.below(&[10])), (0, 2, 3));
        assert!(batch.takes(&[1]) && !batch.is_due());
        batch.take(&[1], Some(&[8]));
        assert!(!batch.takes(&[2]) && batch.takes(&[1]) && batch.is_due());
        batch.drop_between(1, 3);
        assert!(holds(&batch, &[(1, Some(8)), (9, None)]) && batch.puts == 1);
        assert_eq!([1, 9, 9].map(|key| batch.forget(&[key])), [Some(true), Some(false), None]);
        assert_eq!((batch.len(), batch.puts), (0, 0));
    }

    #[test]
    #[cfg(feature = "paper-modes")]
    fn the_oldest_change_is_known_and_keeps_its_age_as_it_is_replaced() {
        let options = Options { eviction: Eviction::Ibsf, ..Options::new(1, 1) };
        let mut bytes = [0xA5; 25];
        let mut batch = Batch::new(&mut bytes, &options);
        // A key, a value, and the age.
        assert_eq!((batch.capacity(), batch.oldest()), (4, None));
        for key in [7, 3, 9, 7, 1] {
            batch.take(&[key], Some(&[key]));
        }
        let oldest = |batch: &Batch<'_>| batch.oldest().map(|at| batch.key(at)[0]);
        for expected in [7, 3, 9, 1] {
            assert_eq!(oldest(&batch), Some(expected));
            assert!(batch.value(batch.below(&[expected])) == Some(&[expected]));
            assert_eq!(batch.forget(&[expected]), Some(true));
        }
        assert_eq!(oldest(&batch), None);
    }

    /// Random changes that come and go, and leaves that are asked for.
    #[test]
    #[cfg(feature = "paper-modes")]
    fn what_is_known_of_leaves_stays_right_as_changes_come_and_go() {
        const LEAF_KEYS: u8 = 20;
        let options = Options { eviction: Eviction::Mb, ..Options::new(1, 0) };
        let mut bytes = [0xA5; 100];
        let mut batch = Batch::new(&mut bytes, &options);
        let (mut random, mut known) = (1u32, 0);
        let mut draw = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16) % below
        };
        for turn in 0..20_000 {
            let key = [draw(250) as u8];
            match draw(4) {
                0 => drop(batch.forget(&key)),
                1 if batch.len() > 30 => {
                    let from = draw(batch.len() as u32) as usize;
                    batch.drop_between(from, (from + 3).min(batch.len()));
                }
                2 if turn % 1_000 == 0 => batch.forget_leaves(),
                _ if batch.takes(&key) => batch.take(&key, Some(&[])),
                _ => {}
            }
            // All changes of a leaf, as a tree would count them.
            let leaf = |batch: &Batch<'_>, at: usize| batch.key(at)[0] / LEAF_KEYS;
            let mut from = 0;
            while from < batch.len() {
                let beyond = |at: &usize| leaf(&batch, *at) != leaf(&batch, from);
                let end = (from..batch.len()).find(beyond).unwrap_or(batch.len());
                match batch.leaf_end(from) {
                    Some(found) => {
                        assert_eq!(found, end, "turn {turn}");
                        known += 1;
                    }
                    None if draw(3) == 0 => batch.note_leaf(from, end),
                    None => {}
                }
                from = end;
            }
        }
        assert!(known > 50_000, "{known} ends were known");
        batch.forget_leaves();
        assert_eq!(batch.leaf_end(0), None);
    }

    #[test]
    fn ticks_count_while_a_change_waits() {
        let mut bytes = [0; 3];
        let options = Options { write_buffer_ticks: Some(2), ..Options::new(1, 1) };
        let mut batch = Batch::new(&mut bytes, &options);
        assert!(!batch.tick() && !batch.tick() && !batch.tick());
        batch.take(&[1], None);
        assert!(!batch.tick());
        batch.take(&[1], Some(&[2]));
        assert!(batch.tick(), "an older change of the key has waited since the tick before");
        batch.drop_between(0, 1);
        batch.take(&[1], None);
        assert!(!batch.tick());
    }
}
