//! `compare`: the same work on several systems, side by side.

use serde::Serialize;

use crate::LabError;
use crate::run::{Setup, SystemCost, run};
use crate::work::Work;

/// The answer of `compare`, and its JSON form.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Key of the chip.
    pub device: &'static str,
    /// Seed that everything random came from.
    pub seed: u64,
    /// Records put.
    pub records: u64,
    /// What the work was, in words.
    pub work: String,
    /// Each system in order.
    pub systems: Vec<SystemCost>,
}

/// Runs `work` on each of `systems`, two at a time.
pub fn compare(
    systems: &[&str],
    setup: &Setup,
    work: &Work,
    description: String,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Comparison, LabError> {
    let mut costs = Vec::with_capacity(systems.len());
    for pair in systems.chunks(2) {
        let results: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = pair
                .iter()
                .map(|system| scope.spawn(move || run(system, setup, work, progress)))
                .collect();
            runs.into_iter().map(|run| run.join()).collect()
        });
        for result in results {
            costs.push(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
    }
    Ok(Comparison {
        device: setup.profile.key,
        seed,
        records: work.rows() as u64,
        work: description,
        systems: costs,
    })
}
