//! An index on a chip whose system is known only at run time.
//!
//! No settings are needed. The chip's own pages state most of them; where an opening is refused
//! because of another one, it is tried again with that one changed.

use crate::systems::{key_of, visit};
use nandina::flash::Geometry;
use nandina::node::Medium;
use nandina::store::Visitor;
use nandina::{
    BadOption, Damage, Index, OpenError, Options, System, identify, ram_needed, ram_to_identify,
};
use nandina_sim::{Chip, ChipError, Faults};

use crate::LabError;

/// Blocks from one checkpoint to the next, where an index in an image has any.
pub const CHECKPOINTS: u32 = 8;

/// A task for an index of any system.
pub trait Job {
    /// The task's result.
    type Output;

    /// Runs the task.
    fn run<S: System>(self, index: &mut Index<'_, &mut Chip, S>) -> Self::Output;
}

/// Copies `chip` for reading without new damage.
///
/// Earlier damage stays visible.
pub fn copy_to_look_at(chip: &Chip) -> Chip {
    let mut copy = chip.clone();
    copy.set_faults(Faults::default());
    copy.restore_power();
    copy
}

/// Returns the settings of the newest index on `chip`. The chip is not changed.
pub fn medium_of(chip: &Chip) -> Result<Medium, OpenError<ChipError>> {
    let mut copy = copy_to_look_at(chip);
    let mut ram = vec![0; ram_to_identify(&chip.profile().geometry)];
    identify(&mut copy, &mut ram)
}

/// Opens the index of `medium` on `chip` and runs `job` on it.
pub fn with_index<J: Job>(chip: &mut Chip, medium: &Medium, job: J) -> Result<J::Output, LabError> {
    With { medium, arena_bytes: None }.run(chip, job)
}

/// What is known of an index before it is opened.
pub struct With<'m> {
    /// What its pages state.
    pub medium: &'m Medium,
    /// Bytes of RAM for nodes, if more or fewer than by default are wanted.
    pub arena_bytes: Option<usize>,
}

impl With<'_> {
    /// Opens the index on `chip` and runs `job` on it.
    pub fn run<J: Job>(&self, chip: &mut Chip, job: J) -> Result<J::Output, LabError> {
        let code = self.medium.system;
        let Some(system) = key_of(code) else {
            return Err(LabError(format!(
                "the index is of system number {code}, which is not known"
            )));
        };
        visit(system, Open { chip, with: self, job })
            .unwrap_or_else(|| Err(LabError::no_system(system)))
    }
}

struct Open<'c, J> {
    chip: &'c mut Chip,
    with: &'c With<'c>,
    job: J,
}

impl<J: Job> Visitor for Open<'_, J> {
    type Output = Result<J::Output, LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let medium = self.with.medium;
        let (key_bytes, value_bytes) = (medium.key_bytes, medium.value_bytes);
        let mut options = Options {
            checkpoints: medium.checkpoints.then_some(CHECKPOINTS),
            arena_bytes: self.with.arena_bytes,
            ..Options::new(key_bytes.into(), value_bytes.into())
        };
        let geometry = self.chip.profile().geometry;
        loop {
            let mut ram = vec![0; ram_needed::<S>(&geometry, &options)];
            let error = match Index::<_, S>::open(&mut *self.chip, &options, &mut ram) {
                Ok(mut index) => {
                    let done = self.job.run(&mut index);
                    index.close();
                    return Ok(done);
                }
                Err(error) => error,
            };
            if !suit::<S>(&mut options, &error, &geometry) {
                return Err(LabError(error.to_string()));
            }
        }
    }
}

/// Bytes of RAM for a part of an index at most.
const RAM_MAX: usize = 1 << 27;

/// Changes a setting because of which an index was not opened. Returns whether there was one.
fn suit<S: System>(
    options: &mut Options,
    error: &OpenError<ChipError>,
    geometry: &Geometry,
) -> bool {
    match *error {
        OpenError::Mismatch { setting: "fanout", found, .. } if options.fanout.is_none() => {
            options.fanout = u16::try_from(found).ok().filter(|&fanout| fanout >= 4);
            options.fanout.is_some()
        }
        OpenError::Mismatch { setting: "values in the journal", found, .. }
            if options.journal_values.is_none() =>
        {
            options.journal_values = Some(found == 1);
            true
        }
        OpenError::Corrupt { reason: Damage::ArenaTooSmall, .. }
        | OpenError::BadOption { reason: BadOption::ArenaTooSmall } => {
            let least = ram_needed::<S>(geometry, options);
            let bytes = options.arena_bytes.unwrap_or(least) * 2;
            options.arena_bytes = Some(bytes);
            bytes <= RAM_MAX
        }
        OpenError::Corrupt { reason: Damage::TableTooSmall, .. } => {
            options.mapping_bytes *= 2;
            options.mapping_bytes <= RAM_MAX
        }
        _ => false,
    }
}
