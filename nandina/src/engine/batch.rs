//! Batches: several changes of which a cut leaves all or none.

use super::{Engine, EngineFault};
use crate::flash::Flash;

/// A change of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'c> {
    /// Inserts a record or replaces the value of its key.
    Put {
        /// Its key.
        key: &'c [u8],
        /// Its value.
        value: &'c [u8],
    },
    /// Removes the record of a key, if there is one.
    Remove {
        /// The key.
        key: &'c [u8],
    },
}

impl<'c> Change<'c> {
    /// The key that it changes.
    pub const fn key(&self) -> &'c [u8] {
        match *self {
            Self::Put { key, .. } | Self::Remove { key } => key,
        }
    }

    /// The value that the key has afterwards; `None` if it has no record then.
    pub const fn value(&self) -> Option<&'c [u8]> {
        match *self {
            Self::Put { value, .. } => Some(value),
            Self::Remove { .. } => None,
        }
    }
}

/// An engine that makes batches of changes.
///
/// It keeps what [`Index::write_batch`](crate::Index::write_batch) promises.
pub trait Batches<'b, F: Flash>: Engine<'b, F> {
    /// The most changes of a batch now.
    fn batch_max(&self) -> usize;

    /// Makes at most [`batch_max`](Self::batch_max) changes, in order.
    fn write_batch(&mut self, changes: &[Change<'_>]) -> Result<(), EngineFault<F>>;
}
