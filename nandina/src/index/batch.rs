//! Batches of changes, for systems whose engine makes them.

use super::{Index, key_size};
use crate::engine::{Batches, Change, Engine, System};
use crate::error::WriteError;
use crate::flash::Flash;

impl<'b, F: Flash, S: System> Index<'b, F, S>
where
    S::Engine<'b, F>: Batches<'b, F>,
{
    /// The most changes that [`write_batch`](Self::write_batch) takes now.
    ///
    /// For `tnc` they are those that fit in a page of the journal, and in the write buffer if there
    /// is one, and whose nodes may be changed between two commits: RAM
    /// ([`Options::arena_bytes`](crate::Options::arena_bytes)) and a sixteenth of the chip bound
    /// that. A change takes up to 2 *h* + 3 nodes. For `rosette` they are those that fit in a page,
    /// at most as many as a block has pages. Cost: no chip operation.
    pub fn batch_max(&self) -> usize {
        self.engine.batch_max()
    }

    /// Makes several changes, of which a cut leaves all or none.
    ///
    /// They are made in their order: of two changes of a key the later one counts. Once this
    /// returns `Ok` all are durable, or all are pending if there is a write buffer, which never
    /// divides them. After an error none of them was made; after [`WriteError::Device`] and
    /// [`WriteError::WornOut`] all were made, or none.
    ///
    /// Refuses more changes than [`batch_max`](Self::batch_max) with
    /// [`WriteError::BatchTooLarge`]. Where new records could split nodes, there must be room as
    /// if each did: a batch is refused with [`WriteError::Full`] a little before single changes
    /// are, and with [`WriteError::TooHigh`] if it could make the tree higher by more levels than
    /// RAM has room for. Then send fewer changes at a time.
    ///
    /// Cost with `tnc`: at most *h* reads for each change, and one program; a commit and garbage
    /// collection as for a single change. With `rosette`: a read and a program for each leaf that
    /// changes, and one program more if it is not one leaf alone that has room for all of them;
    /// garbage collection and merges as for single changes.
    ///
    /// Where more blocks of `rosette` fail in a batch than the chip promises, the index is not read
    /// until there is room for the other changes
    /// ([`OpenError::WornOut`](crate::OpenError::WornOut)).
    ///
    /// ```
    /// use nandina::place::Tnc;
    /// use nandina::{Change, Index, Options, ram_needed};
    /// use nandina_sim::{Chip, TINY};
    ///
    /// let (profile, options) = (TINY.with_blocks(64), Options::new(4, 8));
    /// let mut ram = vec![0; ram_needed::<Tnc>(&profile.geometry, &options)];
    /// let mut index = Index::<_, Tnc>::format(Chip::new(profile), &options, &mut ram)?;
    /// index.insert(b"from", &[0; 8])?;
    /// // A move: after a cut the record is there once, under the one key or the other.
    /// index.write_batch(&[
    ///     Change::Put { key: b"goal", value: &[0; 8] },
    ///     Change::Remove { key: b"from" },
    /// ])?;
    /// assert!(index.get(b"from")?.is_none() && index.get(b"goal")?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_batch(&mut self, changes: &[Change<'_>]) -> Result<(), WriteError<F::Error>> {
        let (expected, most) = (self.engine.record_sizes().1, self.batch_max());
        for change in changes {
            self.check_key(change.key()).map_err(key_size)?;
            let given = change.value().map_or(expected, <[u8]>::len);
            if given != expected {
                return Err(WriteError::ValueSize { expected, given });
            }
        }
        if changes.len() > most {
            return Err(WriteError::BatchTooLarge { most, given: changes.len() });
        }
        Ok(self.engine.write_batch(changes)?)
    }
}
