//! What every engine under an index does.
//!
//! An engine stores records on a chip and finds them again after any cut. The tree with its stores
//! is one; another one may keep its nodes otherwise, or have none. An engine never checks the sizes
//! of keys and values: [`Index`](crate::Index) does that for all of them.

mod batch;
mod chip;
mod counters;
mod cursor;
mod description;
mod options;
mod options_for;
mod outcome;
mod plan;
mod report;
mod worst;

pub use batch::{Batches, Change};
pub(crate) use chip::CHIP_PAGES_MAX;
pub use chip::{bounded, unusable};
pub use counters::NodeCounters;
pub(crate) use cursor::Cursor;
pub use description::{
    Description, LeafRange, NodeArea, NodeRange, Nodes, Packed, RecordAt, RecordSizes,
};
pub(crate) use options::{CHECKPOINTS_MAX, PAGE_BUFFERS_MAX, checkpoints_refused, path_options};
pub use options::{Eviction, Folds, Options};
pub use options_for::{Chosen, OptionsFor};
pub use outcome::{Inserted, Removed};
pub use plan::{Cost, Plan};
pub use report::{Statistics, Violation};
pub(crate) use worst::{WorstChange, ending_cost};

use core::convert::Infallible;
use core::ops::Bound;

use crate::error::{BadOption, Fault, OpenError};
use crate::flash::{Capabilities, Flash, Geometry};
use crate::gc::Idle;
pub use crate::node::{PageSharing, SplitCommit, UpdateScheme};

/// Bytes of the longest key.
pub const KEY_BYTES_MAX: usize = 64;

/// The size of a key or value that no index can have, if there is one.
pub fn unusable_sizes(options: &Options) -> Option<BadOption> {
    if !(1..=KEY_BYTES_MAX).contains(&options.key_bytes) {
        return Some(BadOption::KeyBytes);
    }
    (options.value_bytes > u16::MAX.into()).then_some(BadOption::ValueBytes)
}

/// A system: a way to keep an index on a chip.
///
/// It is a type parameter of [`Index`](crate::Index).
///
/// Every `Placement`, a way to store the tree, is one: its engine is the tree.
pub trait System {
    /// What the registry records about the system.
    const DESCRIPTION: Description;

    /// Where the nodes are in its pages; `None` if an inspector cannot read them.
    const NODES: Option<Nodes> = None;

    /// How several nodes lie in a page; `None` if each has a page, or its path has.
    const PACKED: Option<Packed> = None;

    /// What stores the records.
    type Engine<'b, F: Flash>: Engine<'b, F>;

    /// Bytes of the buffer that an index needs; see `nandina::ram_needed`.
    fn ram_needed(geometry: &Geometry, options: &Options) -> usize;

    /// Plans an index for at most `records` records; see `nandina::plan`.
    fn plan(
        geometry: &Geometry,
        capabilities: &Capabilities,
        options: &Options,
        records: u32,
    ) -> Result<Plan, OpenError<Infallible>>;
}

/// Why an engine could not do what was requested of it on a chip `F`.
pub type EngineFault<F> = Fault<<F as Flash>::Error>;

/// A lower and an upper bound of keys. Each may be shorter than a key.
///
/// A short bound comes before all keys that begin with it.
pub type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// A key and its value.
pub type Record<'r> = (&'r [u8], &'r [u8]);

/// Records on a chip, in the order of their keys, durable.
///
/// Each function does what that of [`Index`](crate::Index) with its name promises. Keys and values
/// have the sizes of the options.
pub trait Engine<'b, F: Flash>: Sized {
    /// How far a scan over a range of keys has come.
    type Scan<'k>: Copy;

    /// Checks that there can be such an index on the chip, in this RAM.
    fn check_options(flash: &F, options: &Options, ram: &[u8]) -> Result<(), OpenError<F::Error>>;

    /// An index that is neither formatted nor opened yet; its options were checked.
    fn new(flash: F, options: &Options, ram: &'b mut [u8]) -> Self;

    /// Makes it an empty index, in place of an older one on the chip.
    fn format(&mut self) -> Result<(), OpenError<F::Error>>;

    /// Makes it the index that the chip holds.
    fn open(&mut self) -> Result<(), OpenError<F::Error>>;

    /// Ends the session and returns the chip.
    fn close(self) -> F;

    /// The chip.
    fn flash(&self) -> &F;

    /// Bytes of a key and bytes of a value.
    fn record_sizes(&self) -> (usize, usize);

    /// Records in the index, without pending changes.
    fn records(&self) -> u32;

    /// Counts and sizes.
    fn statistics(&self) -> Statistics;

    /// Counts of nodes. Default: none, for engines that keep no nodes in RAM.
    fn node_counters(&self) -> Option<NodeCounters> {
        None
    }

    /// Whether pages must be rewritten before more of their bits fade.
    fn refresh_due(&self) -> bool;

    /// The value of `key`.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, EngineFault<F>>;

    /// Inserts a record or replaces the value of `key`.
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, EngineFault<F>>;

    /// Removes the record of `key`.
    fn remove(&mut self, key: &[u8]) -> Result<Removed, EngineFault<F>>;

    /// Begins a scan of the records between `bounds`, upwards or downwards.
    fn scan<'k>(
        &mut self,
        bounds: Bounds<'k>,
        downwards: bool,
    ) -> Result<Self::Scan<'k>, EngineFault<F>>;

    /// The next record of `scan`, or `None` at its end and after an error.
    ///
    /// Nothing was changed since the scan began.
    fn next(&mut self, scan: &mut Self::Scan<'_>) -> Result<Option<Record<'_>>, EngineFault<F>>;

    /// Makes every change durable.
    fn flush(&mut self) -> Result<(), EngineFault<F>>;

    /// Advances the clock of pending changes.
    fn tick(&mut self) -> Result<(), EngineFault<F>>;

    /// Makes every change durable and writes a checkpoint.
    ///
    /// Returns whether there was one to write.
    fn checkpoint(&mut self) -> Result<bool, EngineFault<F>>;

    /// The least budget with which [`gc_step`](Self::gc_step) makes progress.
    fn gc_step_least(&self) -> u32;

    /// Does part of the work that is due, with at most `budget` chip operations.
    fn gc_step(&mut self, budget: u32) -> Result<Idle, EngineFault<F>>;

    /// Reports each invariant that does not hold.
    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>>;
}
