//! Why an operation on pairs of values and records failed.

use core::fmt;

/// Why an operation on [`Pairs`](crate::Pairs) failed.
///
/// `E` is the error of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PairError<E> {
    /// The index cannot hold pairs with values of this size.
    ///
    /// Its own values must have 0 bytes, and its keys must be long enough for a pair's value and
    /// record of at least 1 byte each.
    Unsuited {
        /// Bytes of a pair's value, as given.
        pair_value_bytes: usize,
        /// Bytes of this index's keys.
        key_bytes: usize,
        /// Bytes of this index's values.
        value_bytes: usize,
    },
    /// The value is not of the size that these pairs have.
    ValueSize {
        /// Bytes of a value of these pairs.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// The record is not of the size that these pairs have.
    RecordSize {
        /// Bytes of a record of these pairs.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// The index refused the operation, or failed.
    Index(E),
}

impl<E> From<E> for PairError<E> {
    fn from(error: E) -> Self {
        Self::Index(error)
    }
}

impl<E: fmt::Display> fmt::Display for PairError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsuited { pair_value_bytes, key_bytes, value_bytes } => write!(
                f,
                "pairs with values of {pair_value_bytes} bytes need an index with longer keys and values of 0 bytes, \
                 this one has keys of {key_bytes} and values of {value_bytes}"
            ),
            Self::ValueSize { expected, given } => {
                write!(
                    f,
                    "a value of {given} bytes was given, these pairs have values of {expected}"
                )
            }
            Self::RecordSize { expected, given } => {
                write!(
                    f,
                    "a record of {given} bytes was given, these pairs have records of {expected}"
                )
            }
            Self::Index(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for PairError<E> {}
