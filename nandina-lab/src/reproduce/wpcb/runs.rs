//! The runs that the experiments need, each once, two at a time.

use std::cmp::Reverse;

use super::below::{Below, replay};
use super::cost::Costs;
use super::growth::{Grown, Growth, Tally};
use super::rivals;
use super::tree::grow;
use crate::{LabError, parallel};

/// An index on an FTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// What the index does.
    pub growth: Growth,
    /// The FTL.
    pub below: Below,
}

/// The results of all cases.
pub struct Runs {
    grown: Vec<(Growth, Grown)>,
    costs: Vec<(Case, Costs)>,
    /// Of indexes that are counted without an FTL.
    tallies: Vec<(Growth, Tally)>,
}

/// Each different item once, in the order in which they are first named.
fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}

/// Each different index once, those with the most operations first: no long one ends last.
fn long_first(growths: impl IntoIterator<Item = Growth>) -> Vec<Growth> {
    let mut growths = distinct(growths);
    growths.sort_by_key(|growth| Reverse(growth.operations()));
    growths
}

/// Calls `run` for each item, two at a time. Each result is beside its item.
pub fn each<T: Copy + Send + Sync, R: Send>(
    items: &[T],
    run: impl Fn(&T) -> Result<R, LabError> + Sync,
) -> Result<Vec<(T, R)>, LabError> {
    parallel::each(items, |item| Ok((*item, run(item)?)))
}

impl Runs {
    /// Operations of all these runs.
    ///
    /// Of the cases, each index runs once by itself and once on each FTL.
    pub fn operations(cases: &[Case], counted: &[Growth]) -> u64 {
        let cases = distinct(cases.iter().copied());
        let growths = distinct(cases.iter().map(|case| case.growth));
        let alone: u64 = growths.iter().map(Growth::operations).sum();
        let counted = distinct(counted.iter().copied());
        let alone = alone + counted.iter().map(Growth::operations).sum::<u64>();
        alone + cases.iter().map(|case| case.growth.operations()).sum::<u64>()
    }

    /// Does the runs. `progress` is called with the number of operations done since its last call.
    pub fn run(
        cases: &[Case],
        counted: &[Growth],
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Self, LabError> {
        let live = |growth: &Growth| {
            rivals::grow(growth, progress).unwrap_or_else(|| grow(growth, progress))
        };
        let mut cases = distinct(cases.iter().copied());
        cases.sort_by_key(|case| (Reverse(case.growth.operations()), case.below.map.log_blocks()));
        let replayed = long_first(cases.iter().map(|case| case.growth));
        // In one list, so that nothing waits for the last of the others.
        let counted = long_first(counted.iter().copied()).into_iter().map(|growth| (growth, false));
        let all: Vec<_> =
            counted.chain(replayed.into_iter().map(|growth| (growth, true))).collect();
        let live = each(&all, |(growth, is_replayed)| {
            let grown = live(growth)?;
            // Otherwise its page writes are not kept.
            Ok(if *is_replayed { Ok(grown) } else { Err(grown.tally) })
        })?;
        let (mut grown, mut tallies) = (Vec::new(), Vec::new());
        for ((growth, _), live) in live {
            match live {
                Ok(live) => grown.push((growth, live)),
                Err(tally) => tallies.push((growth, tally)),
            }
        }
        let costs = each(&cases, |case| {
            let (_, grown) = grown
                .iter()
                .find(|(growth, _)| *growth == case.growth)
                .ok_or_else(|| LabError("an index was not run".into()))?;
            let costs = replay(&case.below, grown)?;
            progress(case.growth.operations());
            Ok(costs)
        })?;
        Ok(Self { grown, costs, tallies })
    }

    /// What an index did. The growth is of one of the cases.
    pub fn grown(&self, growth: &Growth) -> Result<&Grown, LabError> {
        let found = self.grown.iter().find(|(of, _)| of == growth);
        found.map(|(_, grown)| grown).ok_or_else(|| LabError(format!("{growth:?} was not run")))
    }

    /// The counts of an index that was only counted.
    pub fn tally(&self, growth: &Growth) -> Result<&Tally, LabError> {
        let found = self.tallies.iter().find(|(of, _)| of == growth);
        found.map(|(_, tally)| tally).ok_or_else(|| LabError(format!("{growth:?} was not counted")))
    }

    /// What a case cost.
    pub fn costs(&self, case: &Case) -> Result<&Costs, LabError> {
        let found = self.costs.iter().find(|(of, _)| of == case);
        found.map(|(_, costs)| costs).ok_or_else(|| LabError(format!("{case:?} was not run")))
    }
}
