//! An index from values to records, as a secondary index is: the key is a value and, behind it, the number of a record
//! that has it, and there is nothing else. So a value may have any number of records (VMTree paper, section 5.2).
//!
//! Nothing here knows how pairs are stored: these are the index's own operations on keys put together.

use core::ops::Bound;

use super::{Index, KEY_BYTES_MAX, Range};
use crate::error::{ReadError, WriteError};
use crate::flash::Flash;
use crate::place::Placement;

/// The records of one value, from the lowest up.
///
/// Cost: as that of a [`Range`].
pub struct Records<'i, 'b, 'k, F, S: Placement> {
    range: Range<'i, 'b, 'k, F, S>,
    value: &'k [u8],
}

impl<'b, F: Flash, S: Placement> Index<'b, F, S> {
    /// Puts the pair of `value` and `record`; together they have as many bytes as a key, and the index was made with
    /// values of 0 bytes. Answers as [`insert`](Self::insert), and costs as much.
    ///
    /// ```
    /// use nandina::place::VmOw;
    /// use nandina::{Index, Options, ram_needed};
    /// use nandina_sim::Chip;
    ///
    /// let mut chip = Chip::new(nandina::flash::profile::DATAFLASH);
    /// let options = Options::new(4 + 2, 0);
    /// let mut ram = vec![0; ram_needed::<VmOw>(&chip.profile().geometry, &options)];
    /// let mut index = Index::<_, VmOw>::format(&mut chip, &options, &mut ram).unwrap();
    /// let celsius = |tenths: u32| tenths.to_be_bytes();
    /// for (hour, tenths) in [(0u16, 183), (1, 179), (2, 183)] {
    ///     index.insert_pair(&celsius(tenths), &hour.to_be_bytes()).unwrap();
    /// }
    /// let warm = celsius(183);
    /// let mut hours = index.find_all(&warm).unwrap();
    /// assert_eq!(hours.next().unwrap(), Some(&[0, 0][..]));
    /// assert_eq!(hours.next().unwrap(), Some(&[0, 2][..]));
    /// assert_eq!(hours.next().unwrap(), None);
    /// ```
    pub fn insert_pair(
        &mut self,
        value: &[u8],
        record: &[u8],
    ) -> Result<Option<bool>, WriteError<F::Error>> {
        let key = self.pair(value, record).map_err(key_size)?;
        self.insert(&key[..value.len() + record.len()], &[])
    }

    /// Takes the pair of `value` and `record` out. Answers as [`remove`](Self::remove), and costs as much.
    pub fn remove_pair(
        &mut self,
        value: &[u8],
        record: &[u8],
    ) -> Result<Option<bool>, WriteError<F::Error>> {
        let key = self.pair(value, record).map_err(key_size)?;
        self.remove(&key[..value.len() + record.len()])
    }

    /// `record`, which had the value `before`, has the value `after`. The new pair is put before the old one is taken
    /// out: a cut in between leaves both, and never neither. To do it again is right in any case.
    ///
    /// Cost: an insert and a remove; with a write buffer, a flush between them if `before` is below `after`.
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
        // What waits is applied in the order of keys: the lower of the two first.
        if inserted.is_none() && before < after {
            self.flush()?;
        }
        self.remove_pair(before, record)?;
        Ok(())
    }

    /// The records of `value`, from the lowest up: all of them, what waits in the write buffer included.
    pub fn find_all<'i, 'k>(
        &'i mut self,
        value: &'k [u8],
    ) -> Result<Records<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        let expected = usize::from(self.space.medium.key_bytes);
        if value.len() > expected {
            return Err(ReadError::KeySize { expected, given: value.len() });
        }
        // A value alone stands before every key that begins with it.
        let range = self.range_from((Bound::Included(value), Bound::Unbounded), false)?;
        Ok(Records { range, value })
    }

    /// The key of a pair, in the first bytes; or how many bytes it should have, and has.
    fn pair(&self, value: &[u8], record: &[u8]) -> Result<[u8; KEY_BYTES_MAX], (usize, usize)> {
        let (expected, given) =
            (usize::from(self.space.medium.key_bytes), value.len() + record.len());
        if given != expected {
            return Err((expected, given));
        }
        let mut key = [0; KEY_BYTES_MAX];
        key[..value.len()].copy_from_slice(value);
        key[value.len()..given].copy_from_slice(record);
        Ok(key)
    }
}

const fn key_size<E>((expected, given): (usize, usize)) -> WriteError<E> {
    WriteError::KeySize { expected, given }
}

impl<F: Flash, S: Placement> Records<'_, '_, '_, F, S> {
    /// The next record, or nothing behind the last.
    #[allow(clippy::should_implement_trait)] // A record borrows from the page buffers.
    pub fn next(&mut self) -> Result<Option<&[u8]>, ReadError<F::Error>> {
        let found = self.range.next()?;
        Ok(found.and_then(|(key, _)| key.strip_prefix(self.value)))
    }
}
