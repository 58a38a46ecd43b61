//! The index: the one public type, over whatever engine its system has.
//!
//! It checks the sizes of keys and values, and gives each operation its own error type. Nothing
//! here knows how records are stored.

mod batch;
mod pairs;
mod range;
mod unopened;

pub use pairs::{Pairs, Records};
pub use range::{KeyBounds, Range};
pub use unopened::Unopened;

use core::convert::Infallible;

use crate::engine::{
    Chosen, Engine, Inserted, NodeCounters, Options, Plan, Removed, Statistics, System, Violation,
};
use crate::error::{OpenError, ReadError, WriteError};
use crate::flash::{Capabilities, Flash, Geometry};
use crate::gc::Idle;

/// A sorted map on a chip `F`, stored as system `S` does.
///
/// Without a write cache ([`Options::write_cache`]) and a write buffer ([`Options::write_buffer`])
/// every change is durable when it returns: a cut at any later instant does not undo it, and a
/// change that was cut is there wholly or not at all. Costs are given per operation for a tree of
/// height *h*, without those of garbage collection.
pub struct Index<'b, F: Flash, S: System> {
    engine: S::Engine<'b, F>,
}

impl<'b, F: Flash, S: System> Index<'b, F, S> {
    /// Makes an empty index on the chip, in place of an older one.
    ///
    /// The older index is gone once this returns `Ok`. After a cut during the format, the chip
    /// holds either the older index, unchanged, or none. (Over an index of another system or of
    /// other sizes, a cut may also restore an earlier state of the older index, if every block was
    /// written and none is left from before that index.)
    ///
    /// Cost: that of [`open`](Self::open) if the chip holds an index of these settings. Otherwise,
    /// one read for each block (where pages are replaced in place, for each page), and one or two
    /// erases and programs; with checkpoints, or over an index with them, two more erases.
    pub fn format(
        flash: F,
        options: &impl Chosen<S>,
        ram: &'b mut [u8],
    ) -> Result<Self, OpenError<F::Error>> {
        let options = options.options();
        S::Engine::check_options(&flash, options, ram)?;
        let mut index = Self { engine: S::Engine::new(flash, options, ram) };
        index.engine.format()?;
        Ok(index)
    }

    /// Opens the index on the chip, after a clean end or a cut alike.
    ///
    /// Cost: one read for each block, a few more, and one read for each inner node. With
    /// checkpoints a few reads, and one for each inner node that was written since the last
    /// checkpoint or replaced. Unless the previous session ended by [`close`](Self::close), pages
    /// that may be torn are written anew: an erase and two programs, more where nodes commit for
    /// themselves. `plan` computes the bound.
    pub fn open(
        flash: F,
        options: &impl Chosen<S>,
        ram: &'b mut [u8],
    ) -> Result<Self, OpenError<F::Error>> {
        let options = options.options();
        S::Engine::check_options(&flash, options, ram)?;
        let mut index = Self { engine: S::Engine::new(flash, options, ram) };
        index.engine.open()?;
        Ok(index)
    }

    /// Records in the index.
    ///
    /// With a write buffer, as of the last [`flush`](Self::flush): pending changes do not count.
    /// Cost: none.
    pub fn len(&self) -> u32 {
        self.engine.records()
    }

    /// Whether the index holds no record.
    ///
    /// With a write buffer as of the last flush, like [`len`](Self::len). Cost: none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chip that holds the index.
    pub fn flash(&self) -> &F {
        self.engine.flash()
    }

    /// Ends the use of the index and returns the chip.
    ///
    /// With a write cache or a write buffer, call [`flush`](Self::flush) before, or their content
    /// is lost.
    ///
    /// A page on the chip then records that nothing on it is torn, so that the next
    /// [`open`](Self::open) only reads. Without `close` nothing is lost, but that `open` rewrites
    /// the pages that a cut may have left torn. If the device fails here, the index is in the same
    /// state as without `close`.
    ///
    /// Cost: one read and one program, sometimes an erase. No chip operation if nothing was written
    /// since the index was opened, where nodes are replaced in place without checkpoints, or if the
    /// chip is too full for one more page. `vm-ow` and `tnc` with [`Options::checkpoints`] write a
    /// checkpoint instead: the cost is that of [`checkpoint`](Self::checkpoint), and in `tnc` of a
    /// commit. So do `btree` and `wpcb`: a program for each page of it, and one for its end.
    pub fn close(self) -> F {
        self.engine.close()
    }

    /// Makes every change durable.
    ///
    /// Without a write cache and a write buffer every change is durable already, and this does
    /// nothing.
    ///
    /// After an error the changes that were not applied stay in the write buffer; a later flush
    /// continues. A pending change is refused only if the device has worn out since it was
    /// buffered.
    ///
    /// Cost: at most that of one insert for each leaf with pending changes, and as many programs as
    /// the write cache has pages.
    pub fn flush(&mut self) -> Result<(), WriteError<F::Error>> {
        Ok(self.engine.flush()?)
    }

    /// Makes every change durable and writes a checkpoint.
    ///
    /// With [`Options::checkpoints`], the next mount then has the least to read. This is worthwhile
    /// before power is switched off; without it nothing is lost. Returns whether a checkpoint was
    /// written: `false` without the option, if no block is free for it, or if both anchors are bad.
    ///
    /// In `vm-ow`, `tnc`, `btree` and `wpcb` only [`close`](Self::close) writes one, and this is a
    /// flush.
    ///
    /// Cost: [`flush`](Self::flush), the pages of a checkpoint, and sometimes an anchor's page and
    /// two erases. If there was no checkpoint, garbage may be collected for its block.
    pub fn checkpoint(&mut self) -> Result<bool, WriteError<F::Error>> {
        Ok(self.engine.checkpoint()?)
    }

    /// Counts and sizes of the index.
    ///
    /// Cost: no chip operation.
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    /// Counts of nodes since the index was opened.
    ///
    /// `None` for systems that keep no changed nodes in RAM (all but `tnc`), and without the
    /// feature `node-counters` of this library. Cost: no chip operation.
    pub fn node_counters(&self) -> Option<NodeCounters> {
        self.engine.node_counters()
    }

    /// Whether pages that were read must be rewritten before more of their bits fade.
    ///
    /// The next change rewrites them, or [`gc_step`](Self::gc_step); lookups alone never write.
    /// Cost: none.
    pub fn refresh_due(&self) -> bool {
        self.engine.refresh_due()
    }

    /// The value of `key`, or `None` if the index has no such record.
    ///
    /// Cost: at most *h* page reads; none if a change of the key is pending in the write buffer.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, ReadError<F::Error>> {
        self.check_key(key).map_err(|(expected, given)| ReadError::KeySize { expected, given })?;
        Ok(self.engine.get(key)?)
    }

    /// Inserts a record or replaces the value of `key`.
    ///
    /// Returns whether the key was new, or that the write buffer took the change before that was
    /// known.
    ///
    /// Cost: at most *h* reads, and as many programs as the system's path has pages, one more for
    /// each split. In a tree that was thinned out, a split may merge nodes first: at most four
    /// times that, and one or two reads for each node. A value that is already there costs no
    /// program. No chip operation if the write buffer takes the change; the cost of a
    /// [`flush`](Self::flush) more if it is full. If that flush fails, the change is refused as
    /// well and is not buffered; earlier pending changes stay in the buffer.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, WriteError<F::Error>> {
        self.check_key(key).map_err(key_size)?;
        let (expected, given) = (self.engine.record_sizes().1, value.len());
        if given != expected {
            return Err(WriteError::ValueSize { expected, given });
        }
        Ok(self.engine.insert(key, value)?)
    }

    /// Removes the record of `key`.
    ///
    /// Returns whether there was one, or that the write buffer took the change before that was
    /// known. Cost: as a replacing insert.
    pub fn remove(&mut self, key: &[u8]) -> Result<Removed, WriteError<F::Error>> {
        self.check_key(key).map_err(key_size)?;
        Ok(self.engine.remove(key)?)
    }

    /// Advances the clock of the write buffer: call it at an interval of your choice.
    ///
    /// Flushes once a change has been pending for
    /// [`Options::write_buffer_ticks`](crate::Options::write_buffer_ticks) of these calls.
    ///
    /// Cost: no chip operation, or that of [`flush`](Self::flush). After an error the next tick
    /// flushes again.
    pub fn tick(&mut self) -> Result<(), WriteError<F::Error>> {
        Ok(self.engine.tick()?)
    }

    /// The least budget with which [`gc_step`](Self::gc_step) makes progress.
    ///
    /// It counts the chip operations to move one page. If power was cut during collection, it
    /// includes the pages that ride with that page.
    pub fn gc_step_least(&self) -> u32 {
        self.engine.gc_step_least()
    }

    /// Does part of the work that is due anyway, with at most `budget` chip operations.
    ///
    /// It rewrites pages that the ECC found weak and pages on bad blocks, collects garbage until
    /// the next block's worth of changes need none, and erases the block that is opened next. Where
    /// the chip [reports corrections](Flash::reports_corrections), it also reads through the valid
    /// pages to check how well they can be read.
    ///
    /// Pending changes stay in the write buffer. Where pages are replaced in place, what is left of
    /// the budget is the device's ([`Flash::idle`]): an FTL converts buffer blocks ahead of need.
    ///
    /// A program or erase that the chip reports as failed, the mount after a device's error, and
    /// the content of the write cache come on top. With a budget below
    /// [`gc_step_least`](Self::gc_step_least) it does nothing. Each page is moved durably, so power
    /// may be cut between and inside steps. As long as no change is made in between, the work comes
    /// to an end: blocks that gain no room are not collected.
    pub fn gc_step(&mut self, budget: u32) -> Result<Idle, WriteError<F::Error>> {
        Ok(self.engine.gc_step(budget)?)
    }

    /// Reads the whole tree and reports each invariant that does not hold.
    ///
    /// Checks the order of keys in and across nodes, that no node is empty, that every referenced
    /// page and no other is counted as valid, the number of records, the number of inner nodes,
    /// that every mapping is one of a node, and that the number of valid pages is within its limit.
    ///
    /// It ends early, with a violation, if more nodes are reached than the valid pages can hold:
    /// two nodes lead to one page, and there may be more paths than time.
    ///
    /// Cost: one read for each node, more where page buffers are few.
    pub fn check(&mut self, mut report: impl FnMut(Violation)) -> Result<(), ReadError<F::Error>> {
        Ok(self.engine.check(&mut report)?)
    }

    fn check_key(&self, key: &[u8]) -> Result<(), (usize, usize)> {
        let expected = self.engine.record_sizes().0;
        if key.len() == expected { Ok(()) } else { Err((expected, key.len())) }
    }
}

const fn key_size<E>((expected, given): (usize, usize)) -> WriteError<E> {
    WriteError::KeySize { expected, given }
}

/// Bytes of the buffer that an index of system `S` needs on such a chip.
///
/// These are its page buffers, three keys, one bit for each page, and for each block half a byte
/// and what [`WearPolicy`](crate::WearPolicy) states; with [`Options::verify`] one page buffer
/// more; the caches and the write buffer that the options request, and what
/// [`GcPolicy`](crate::GcPolicy) states. The index uses no other memory except the struct itself.
///
/// Sizes and counts beyond their ranges are reduced to the largest that is allowed: no index can be
/// opened with them.
pub fn ram_needed<S: System>(geometry: &Geometry, options: &Options) -> usize {
    S::ram_needed(geometry, options)
}

/// Plans an index of system `S` on a chip, for at most `records` records.
///
/// `records` is the most that the index ever holds at once. The plan has room for one more: an
/// insert that a cut or an error of the device ended may have split nodes, up to the root. Of the
/// children of a node, each two neighbours hold more records than fit in one node: where removals
/// have thinned them out more than that, an insert merges two before it makes the tree larger. So
/// the plan holds for every order of inserts and removals.
///
/// The chip operations are bounds for each kind of call. They hold for every state that an index
/// can get into on a chip none of whose blocks fails: full, worn, just mounted. Each block that
/// fails costs one program or erase more, and one page move for each page that it held.
///
/// Fails as [`Index::format`] would. More records than fit are no error: see [`Plan::fits`].
pub fn plan<S: System>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    options: &Options,
    records: u32,
) -> Result<Plan, OpenError<Infallible>> {
    if let Some(missing) = S::DESCRIPTION.needs.missing(capabilities) {
        return Err(OpenError::Unsuited(missing));
    }
    S::plan(geometry, capabilities, options, records)
}
