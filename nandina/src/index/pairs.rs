//! An index from values to records: a secondary index.
//!
//! Its key is a value followed by the number of a record that has it; its own values are empty. So
//! a value may have any number of records (VMTree paper, section 5.2).
//!
//! This file does not depend on how pairs are stored: it uses the index's own operations on keys
//! that it composes.

use core::ops::Bound;

use super::{Index, Range, key_size};
use crate::engine::{Engine, Inserted, KEY_BYTES_MAX, Removed, System};
use crate::error::{PairError, ReadError, WriteError};
use crate::flash::Flash;

/// The rest of each key that begins with a prefix: the records of a value.
///
/// They come from the lowest key up.
///
/// Cost: as that of a [`Range`].
pub struct Records<'i, 'b, 'k, F: Flash, S: System> {
    range: Range<'i, 'b, 'k, F, S>,
    value: &'k [u8],
}

impl<'b, F: Flash, S: System> Index<'b, F, S> {
    /// Pairs of a value and a record in this index.
    ///
    /// Values all have `value_bytes` bytes, and records have the rest of a key. A value or a record
    /// of another length is refused, so that pairs of different values are never mixed. The length
    /// is not stored on the medium: give the same one each time.
    ///
    /// Fails unless the index's own values have 0 bytes, and `value_bytes` is 1 to one less than
    /// the bytes of a key.
    ///
    /// Cost: none; nothing is read.
    ///
    /// ```
    /// use nandina::store::VmOw;
    /// use nandina::{Index, Options, PairError, ram_needed};
    /// use nandina_sim::Chip;
    ///
    /// let mut chip = Chip::new(nandina::flash::profile::DATAFLASH);
    /// let options = Options::new(4 + 2, 0);
    /// let mut ram = vec![0; ram_needed::<VmOw>(&chip.profile().geometry, &options)];
    /// let mut index = Index::<_, VmOw>::format(&mut chip, &options, &mut ram).unwrap();
    /// let mut pairs = index.pairs(4).unwrap();
    /// let celsius = |tenths: u32| tenths.to_be_bytes();
    /// for (hour, tenths) in [(0u16, 183), (1, 179), (2, 183)] {
    ///     pairs.insert(&celsius(tenths), &hour.to_be_bytes()).unwrap();
    /// }
    /// let warm = celsius(183);
    /// let mut hours = pairs.find_all(&warm).unwrap();
    /// assert_eq!(hours.next().unwrap(), Some(&[0, 0][..]));
    /// assert_eq!(hours.next().unwrap(), Some(&[0, 2][..]));
    /// assert_eq!(hours.next().unwrap(), None);
    ///
    /// let short = pairs.find_all(&warm[..2]).map(drop);
    /// assert_eq!(short, Err(PairError::ValueSize { expected: 4, given: 2 }));
    /// ```
    pub fn pairs(
        &mut self,
        value_bytes: usize,
    ) -> Result<Pairs<'_, 'b, F, S>, PairError<ReadError<F::Error>>> {
        let (key_bytes, own_value_bytes) = self.engine.record_sizes();
        if own_value_bytes > 0 || !(1..key_bytes).contains(&value_bytes) {
            return Err(PairError::Unsuited {
                pair_value_bytes: value_bytes,
                key_bytes,
                value_bytes: own_value_bytes,
            });
        }
        Ok(Pairs { index: self, value_bytes })
    }

    /// Inserts the key that is `value` followed by `record`.
    ///
    /// Result and cost are those of [`insert`](Self::insert).
    ///
    /// Together they have as many bytes as a key, and the index has values of 0 bytes. Where the
    /// value ends and the record begins is not stored: `ab` with `cd` is the same key as `abc` with
    /// `d`. [`pairs`](Self::pairs) fixes the length of values.
    pub fn insert_pair(
        &mut self,
        value: &[u8],
        record: &[u8],
    ) -> Result<Inserted, WriteError<F::Error>> {
        let key = self.pair(value, record).map_err(key_size)?;
        self.insert(&key[..value.len() + record.len()], &[])
    }

    /// Removes the key that is `value` followed by `record`.
    ///
    /// Result and cost are those of [`remove`](Self::remove).
    pub fn remove_pair(
        &mut self,
        value: &[u8],
        record: &[u8],
    ) -> Result<Removed, WriteError<F::Error>> {
        let key = self.pair(value, record).map_err(key_size)?;
        self.remove(&key[..value.len() + record.len()])
    }

    /// Changes the value of `record` from `before` to `after`.
    ///
    /// Inserts the key that is `after` followed by `record`, then removes the one that is `before`
    /// followed by `record`. A cut in between leaves both keys, and never neither; repeating the
    /// call is safe.
    ///
    /// Cost: an insert and a remove; with a write buffer, a flush between them if `before` is below
    /// `after`.
    pub fn move_pair(
        &mut self,
        before: &[u8],
        after: &[u8],
        record: &[u8],
    ) -> Result<(), WriteError<F::Error>> {
        let inserted = self.insert_pair(after, record)?;
        if before == after {
            return Ok(());
        }
        // Pending changes are applied in the order of keys: the lower of the two first.
        if inserted == Inserted::Buffered && before < after {
            self.flush()?;
        }
        self.remove_pair(before, record)?;
        Ok(())
    }

    /// Finds every key that begins with the bytes of `value`, pending changes included.
    ///
    /// Returns the rest of each key, from the lowest up. Any prefix of a key may be given. So where
    /// pairs were inserted with values of different lengths, `find_all(b"ab")` returns keys
    /// inserted for the value `abc` too. [`pairs`](Self::pairs) refuses values of another length.
    pub fn find_all<'i, 'k>(
        &'i mut self,
        value: &'k [u8],
    ) -> Result<Records<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        let expected = self.engine.record_sizes().0;
        if value.len() > expected {
            return Err(ReadError::KeySize { expected, given: value.len() });
        }
        // A value alone comes before every key that begins with it.
        let range = self.range_between((Bound::Included(value), Bound::Unbounded), false)?;
        Ok(Records { range, value })
    }

    /// The key of a pair, in the first bytes.
    ///
    /// Fails with the number of bytes that it should have, and the number that it has.
    fn pair(&self, value: &[u8], record: &[u8]) -> Result<[u8; KEY_BYTES_MAX], (usize, usize)> {
        let (expected, given) = (self.engine.record_sizes().0, value.len() + record.len());
        if given != expected {
            return Err((expected, given));
        }
        let mut key = [0; KEY_BYTES_MAX];
        key[..value.len()].copy_from_slice(value);
        key[value.len()..given].copy_from_slice(record);
        Ok(key)
    }
}

/// Pairs of values and records in an index: a secondary index.
///
/// Values have one length, and records have one. Made by [`Index::pairs`].
pub struct Pairs<'i, 'b, F: Flash, S: System> {
    index: &'i mut Index<'b, F, S>,
    value_bytes: usize,
}

/// Why a change of a pair failed.
type WriteFault<F> = PairError<WriteError<<F as Flash>::Error>>;

impl<'b, F: Flash, S: System> Pairs<'_, 'b, F, S> {
    /// Inserts the pair of `value` and `record`.
    ///
    /// Result and cost are those of [`Index::insert`].
    pub fn insert(&mut self, value: &[u8], record: &[u8]) -> Result<Inserted, WriteFault<F>> {
        self.sized(value, Some(record))?;
        Ok(self.index.insert_pair(value, record)?)
    }

    /// Removes the pair of `value` and `record`.
    ///
    /// Result and cost are those of [`Index::remove`].
    pub fn remove(&mut self, value: &[u8], record: &[u8]) -> Result<Removed, WriteFault<F>> {
        self.sized(value, Some(record))?;
        Ok(self.index.remove_pair(value, record)?)
    }

    /// Changes the value of `record` from `before` to `after`.
    ///
    /// See [`Index::move_pair`].
    pub fn move_pair(
        &mut self,
        before: &[u8],
        after: &[u8],
        record: &[u8],
    ) -> Result<(), WriteFault<F>> {
        self.sized(before, Some(record))?;
        self.sized(after, None)?;
        Ok(self.index.move_pair(before, after, record)?)
    }

    /// Finds all records of `value` and of no other, pending changes included.
    ///
    /// Returns them from the lowest up.
    pub fn find_all<'r, 'k>(
        &'r mut self,
        value: &'k [u8],
    ) -> Result<Records<'r, 'b, 'k, F, S>, PairError<ReadError<F::Error>>> {
        self.sized(value, None)?;
        Ok(self.index.find_all(value)?)
    }

    /// Checks the length of a value, and that of a record if there is one.
    fn sized<E>(&self, value: &[u8], record: Option<&[u8]>) -> Result<(), PairError<E>> {
        let (expected, given) = (self.value_bytes, value.len());
        if given != expected {
            return Err(PairError::ValueSize { expected, given });
        }
        let expected = self.index.engine.record_sizes().0 - self.value_bytes;
        match record.map(<[u8]>::len) {
            Some(given) if given != expected => Err(PairError::RecordSize { expected, given }),
            _ => Ok(()),
        }
    }
}

impl<F: Flash, S: System> Records<'_, '_, '_, F, S> {
    /// The next record, or `None` after the last.
    #[allow(clippy::should_implement_trait)] // A record borrows from the page buffers.
    pub fn next(&mut self) -> Result<Option<&[u8]>, ReadError<F::Error>> {
        let found = self.range.next()?;
        Ok(found.and_then(|(key, _)| key.strip_prefix(self.value)))
    }
}
