//! What a run measures: any store of records on a simulated chip.
//!
//! The traits are object safe. So a run is compiled once, not for each system, and stores of other
//! crates fit it as well as the systems of the registry do ([`system`]).

mod system;

pub use system::system;

use nandina::flash::Profile;
use nandina::{NodeCounters, Options};
use nandina_sim::Chip;

use crate::layer::{Bus, FtlWork, Layer, Size};
use crate::systems::usual_layer;

/// The setup of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The chip.
    pub profile: Profile,
    /// Settings of an index. A run sets the sizes of keys and values to those of its work.
    ///
    /// Stores of other crates use only these sizes.
    pub options: Options,
    /// Bytes of RAM to use; `None` for each subject's default.
    pub ram_bytes: Option<usize>,
    /// The FTL between the subject and the chip; `None` for the chip itself.
    pub layer: Option<Layer>,
}

impl Setup {
    /// The same setup for keys and values of these sizes.
    pub(crate) const fn with_sizes(&self, key_bytes: usize, value_bytes: usize) -> Self {
        Self { options: Options { key_bytes, value_bytes, ..self.options }, ..*self }
    }

    /// The same setup with the FTL that the system named `key` usually stands on.
    ///
    /// Only where no FTL is chosen and the chip itself cannot carry the system.
    pub(crate) fn of_system(&self, key: &str) -> Self {
        Self { layer: self.layer.or_else(|| usual_layer(key, &self.profile)), ..*self }
    }

    /// What a subject meets: this setup on its chip, or with the device that the FTL makes of it.
    ///
    /// The error is why there can be no such FTL on the chip.
    pub(crate) fn above(&self) -> Result<(Self, Option<Size>), String> {
        let Some(layer) = self.layer else { return Ok((*self, None)) };
        let size = layer.size(&self.profile)?;
        Ok((Self { profile: size.profile, ..*self }, Some(size)))
    }
}

/// Makes subjects of one kind.
pub trait Maker: Sync {
    /// The name of the kind in reports.
    fn key(&self) -> &'static str;

    /// Bytes of the buffer that [`format`](Self::format) needs.
    ///
    /// An error is the reason why there can be no such subject on the chip, or not in the RAM of
    /// the setup.
    fn ram_bytes(&self, setup: &Setup) -> Result<usize, String>;

    /// Returns why a subject can never hold `records` records, if that is known.
    ///
    /// Default: nothing is known.
    fn refusal(&self, setup: &Setup, records: u32) -> Option<String> {
        let _ = (setup, records);
        None
    }

    /// Whether changes may wait in RAM until a flush.
    ///
    /// A run then flushes after the last change of each phase, so that each phase pays for its own
    /// changes. Default: they never wait.
    fn buffers_changes(&self, setup: &Setup) -> bool {
        let _ = setup;
        false
    }

    /// Makes an empty subject on `chip`, which is new.
    ///
    /// All its memory is `ram` and the subject itself.
    fn format<'c>(
        &self,
        setup: &Setup,
        chip: &'c mut Chip,
        ram: &'c mut [u8],
    ) -> Result<Box<dyn Subject + 'c>, SubjectError>;

    /// Makes an empty subject on `disk`, an FTL on a new chip, which replaces pages in place.
    ///
    /// The setup has its profile. Default: refuses.
    fn format_over<'c>(
        &self,
        setup: &Setup,
        disk: &'c mut (dyn Bus + 'c),
        ram: &'c mut [u8],
    ) -> Result<Box<dyn Subject + 'c>, SubjectError> {
        let _ = (setup, disk, ram);
        Err(SubjectError::Unsuited("it runs on a chip itself, not on an FTL".into()))
    }
}

/// A store of records on a simulated chip.
///
/// Keys and values have the sizes of the setup that it was made with. Keys order as bytes.
pub trait Subject {
    /// Inserts a record or replaces the value of `key`.
    ///
    /// Returns whether the key was new, or `None` if the subject cannot know.
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, SubjectError>;

    /// Removes the record of `key`.
    ///
    /// Returns whether there was one, or `None` if the subject cannot know.
    fn remove(&mut self, key: &[u8]) -> Result<Option<bool>, SubjectError>;

    /// The value of `key`, or `None` if there is no such record.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, SubjectError>;

    /// Calls `each` with the key and the value of `records` records from the key `from` on.
    ///
    /// The keys rise, and `from` need not be one of them. At the end of the keys there are fewer
    /// records.
    fn scan(
        &mut self,
        from: &[u8],
        records: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), SubjectError>;

    /// Makes every change durable.
    ///
    /// Default: does nothing, for subjects whose changes never wait.
    fn flush(&mut self) -> Result<(), SubjectError> {
        Ok(())
    }

    /// Does the least part of the work that is due anyway, as if the device were idle.
    ///
    /// Default: does nothing.
    fn idle_step(&mut self) -> Result<(), SubjectError> {
        Ok(())
    }

    /// What the subject knows of its state. Cost: no chip operation.
    fn counts(&self) -> Counts {
        Counts::default()
    }

    /// The chip with its counters and its clock.
    ///
    /// Some stores give access to their chip only by an exclusive borrow.
    fn chip(&mut self) -> &Chip;

    /// What the FTL below it did so far. Default: there is none.
    fn ftl(&mut self) -> Option<FtlWork> {
        None
    }
}

/// What a subject knows of its state. `None` is what it does not have or does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Height of the tree, 1 for a single leaf.
    pub height: Option<u8>,
    /// Records.
    pub records: Option<u32>,
    /// Pages that it needs.
    pub valid_pages: Option<u32>,
    /// Blocks from which garbage collection moved pages.
    pub collected_blocks: Option<u64>,
    /// Valid pages that garbage collection moved.
    pub moved_pages: Option<u64>,
    /// Nodes that it wrote and loaded.
    pub nodes: Option<NodeCounters>,
}

/// Why a subject did not do what was requested, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubjectError {
    /// It can never do this on the chip with these settings.
    Unsuited(String),
    /// The chip has no room for the change.
    Full(String),
    /// Pages of this size have no room for a tree of this many records.
    TooHigh(String),
    /// The chip failed, or the subject did.
    Failed(String),
}
