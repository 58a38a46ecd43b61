//! An index on a chip whose system is known only when the chip is looked at. No setting is asked
//! for: the chip's own pages say them.

use nandina::node::Medium;
use nandina::place::{Placement, Visitor, key_of, visit};
use nandina::{Index, OpenError, Options, identify, ram_needed, ram_to_identify};
use nandina_sim::{Chip, ChipError, Faults};

use crate::LabError;

/// Blocks from one checkpoint to the next, where an index in an image has any.
pub const CHECKPOINTS: u32 = 8;

/// Something to do with an index, whatever its system.
pub trait Job {
    /// What it answers.
    type Output;

    /// Does it.
    fn run<S: Placement>(self, index: &mut Index<'_, &mut Chip, S>) -> Self::Output;
}

/// A copy of `chip` that can be read without any new damage; what was done to `chip` can still be
/// seen.
pub fn copy_to_look_at(chip: &Chip) -> Chip {
    let mut copy = chip.clone();
    copy.set_faults(Faults::default());
    copy.restore_power();
    copy
}

/// What the newest index on `chip` is made for. The chip is not touched.
pub fn medium_of(chip: &Chip) -> Result<Medium, OpenError<ChipError>> {
    let mut copy = copy_to_look_at(chip);
    let mut ram = vec![0; ram_to_identify(&chip.profile().geometry)];
    identify(&mut copy, &mut ram)
}

/// Opens the index of `medium` on `chip` and does `job` with it.
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

    fn visit<S: Placement + 'static>(self) -> Self::Output {
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
