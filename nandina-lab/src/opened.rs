//! An index on a chip whose system is known only at run time.
//!
//! No settings are needed: the chip's own pages state them.

use crate::systems::{key_of, visit};
use nandina::node::Medium;
use nandina::store::Visitor;
use nandina::{Index, OpenError, Options, System, identify, ram_needed, ram_to_identify};
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
    let Some(system) = key_of(medium.system) else {
        let what = format!("the index is of system number {}, which is not known", medium.system);
        return Err(LabError(what));
    };
    visit(system, Open { chip, medium, job }).unwrap_or_else(|| Err(LabError::no_system(system)))
}

struct Open<'c, J> {
    chip: &'c mut Chip,
    medium: &'c Medium,
    job: J,
}

impl<J: Job> Visitor for Open<'_, J> {
    type Output = Result<J::Output, LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let (key_bytes, value_bytes) = (self.medium.key_bytes, self.medium.value_bytes);
        let options = Options {
            checkpoints: self.medium.checkpoints.then_some(CHECKPOINTS),
            ..Options::new(key_bytes.into(), value_bytes.into())
        };
        let mut ram = vec![0; ram_needed::<S>(&self.chip.profile().geometry, &options)];
        let mut index = Index::<_, S>::open(self.chip, &options, &mut ram)
            .map_err(|error| LabError(error.to_string()))?;
        let done = self.job.run(&mut index);
        index.close();
        Ok(done)
    }
}
