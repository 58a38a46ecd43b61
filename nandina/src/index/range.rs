//! Ordered iteration over a range of keys, upwards or downwards.

use core::ops::{Bound, RangeBounds, RangeFull};

use super::Index;
use crate::engine::{Bounds, Engine, Record, System};
use crate::error::ReadError;
use crate::flash::Flash;

/// The records of a range of keys, in order, pending changes included.
///
/// Cost: one read for each leaf, and one for each inner node on the way that is no longer in a page
/// buffer. The borrow of the index prevents changes meanwhile.
pub struct Range<'i, 'b, 'k, F: Flash, S: System> {
    index: &'i mut Index<'b, F, S>,
    scan: <S::Engine<'b, F> as Engine<'b, F>>::Scan<'k>,
}

impl<'b, F: Flash, S: System> Index<'b, F, S> {
    /// The records whose keys are in `bounds`, from the lowest up.
    ///
    /// Bounds need not be keys of the index.
    pub fn range<'i, 'k>(
        &'i mut self,
        bounds: impl KeyBounds<'k>,
    ) -> Result<Range<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        self.range_toward(bounds.bounds(), false)
    }

    /// The records whose keys are in `bounds`, from the highest down.
    pub fn range_down<'i, 'k>(
        &'i mut self,
        bounds: impl KeyBounds<'k>,
    ) -> Result<Range<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        self.range_toward(bounds.bounds(), true)
    }

    fn range_toward<'i, 'k>(
        &'i mut self,
        (low, high): Bounds<'k>,
        downwards: bool,
    ) -> Result<Range<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        for bound in [low, high] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                self.check_key(key)
                    .map_err(|(expected, given)| ReadError::KeySize { expected, given })?;
            }
        }
        self.range_between((low, high), downwards)
    }

    /// The records between two bounds, which may be shorter than a key.
    pub(super) fn range_between<'i, 'k>(
        &'i mut self,
        bounds: Bounds<'k>,
        downwards: bool,
    ) -> Result<Range<'i, 'b, 'k, F, S>, ReadError<F::Error>> {
        let scan = self.engine.scan(bounds, downwards)?;
        Ok(Range { index: self, scan })
    }
}

/// A range of keys over byte slices or arrays, or a pair of bounds.
///
/// That is `..`, `a..b`, `a..=b` and so on.
pub trait KeyBounds<'k> {
    /// The lower and upper bound.
    fn bounds(&self) -> (Bound<&'k [u8]>, Bound<&'k [u8]>);
}

impl<'k> KeyBounds<'k> for RangeFull {
    fn bounds(&self) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<'k> KeyBounds<'k> for (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    fn bounds(&self) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
        *self
    }
}

macro_rules! key_bounds {
    ($($range:ident),+) => {$(
        impl<'k, K: AsRef<[u8]> + ?Sized> KeyBounds<'k> for core::ops::$range<&'k K> {
            fn bounds(&self) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
                (
                    RangeBounds::<&'k K>::start_bound(self).map(|key| (*key).as_ref()),
                    RangeBounds::<&'k K>::end_bound(self).map(|key| (*key).as_ref()),
                )
            }
        }
    )+};
}

key_bounds![Range, RangeFrom, RangeTo, RangeInclusive, RangeToInclusive];

impl<F: Flash, S: System> Range<'_, '_, '_, F, S> {
    /// The next record, or `None` at the end of the range.
    #[allow(clippy::should_implement_trait)] // A record borrows from the page buffers.
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError<F::Error>> {
        Ok(self.index.engine.next(&mut self.scan)?)
    }

    /// Counts the records that are left, and reads them all for it.
    pub fn count(mut self) -> Result<u32, ReadError<F::Error>> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}
