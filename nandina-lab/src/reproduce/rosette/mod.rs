//! The figures of `rosette`: those of its prototype and of the review of it, beside ours.
//!
//! `rosette` comes from no paper. Its design was tried as a prototype, whose figures are the first
//! column here; the second run of them, by others, is preferred where the two differ.

mod full;
mod mounts;
mod nand;

use nandina::Options;
use nandina::flash::Profile;

use super::Reproduction;
use crate::LabError;
use crate::run::{PhaseCost, Setup, SystemCost};

/// The system.
const SYSTEM: &str = "rosette";

/// How much of the work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    records: u32,
    operations: u32,
    /// The divisor of the blocks of a chip.
    blocks_by: u32,
    quick: bool,
    words: &'static str,
}

impl Scale {
    /// As for the prototype.
    pub const FULL: Self =
        Self { records: 1_000_000, operations: 100_000, blocks_by: 1, quick: false, words: "full" };
    /// Takes seconds.
    pub const QUICK: Self = Self {
        records: 100_000,
        operations: 10_000,
        blocks_by: 10,
        quick: true,
        words: "quick: a tenth of the records, on a tenth of the chip",
    };
}

/// The experiments to run.
pub struct Experiments {
    scale: Scale,
    seed: u64,
}

impl Experiments {
    /// Nothing is made yet.
    pub const fn new(scale: Scale, seed: u64) -> Self {
        Self { scale, seed }
    }

    /// Operations of all runs.
    pub fn total(&self) -> u64 {
        nand::operations(self.scale) + full::operations(self.scale) + mounts::operations(self.scale)
    }

    /// Runs everything. `progress` is called with the number of operations done since its last
    /// call.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Reproduction, LabError> {
        let mut experiments = vec![
            nand::uniform(self.scale, self.seed, progress)?,
            nand::other_orders(self.scale, self.seed, progress)?,
            full::experiment(self.scale, self.seed, progress)?,
            mounts::experiment(self.scale, self.seed, progress)?,
        ];
        if self.scale.quick {
            // A tenth of the leaves, and a chip whose reserve is a larger part of it.
            for row in experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
                (row.ratio, row.verdict) = (None, None);
            }
        }
        Ok(Reproduction {
            quick: self.scale.quick,
            paper: "rosette",
            seed: self.seed,
            seeds: 1,
            scale: self.scale.words,
            experiments,
        })
    }
}

/// An index with room for `leaves` leaves on a chip.
fn setup(profile: Profile, leaves: u32, checkpoints: Option<u32>) -> Setup {
    let options = Options { leaves: Some(leaves), checkpoints, ..Options::new(4, 4) };
    Setup { profile, options, ram_bytes: None, layer: None }
}

fn find<'c>(cost: &'c SystemCost, name: &str) -> Result<&'c PhaseCost, LabError> {
    let mut phases = cost.phases.iter();
    phases
        .find(|phase| phase.phase == name)
        .ok_or_else(|| LabError(format!("the run has no phase '{name}'")))
}
