//! Figures 10 and 11: how cost is distributed over the requests of a trace.
//!
//! The paper draws times of a Pentium 4, and says little of them in words. Here are the entries
//! that a request touches, which are exact, and times as multiples of their mean.

use nandina_ftl::mapping::registry::by_name;

use super::Case;
use super::counts::Counts;
use super::measured::actions;
use super::vet::SIDES;
use crate::LabError;
use crate::block_trace::make::Synthetic;
use crate::replay::{Action, clock};
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

/// The share of requests that a value is at least as large as, in per cent, and its name.
const RANKS: [(f64, &str, &str); 4] = [
    (50.0, "entries, median", "time by mean, median"),
    (99.0, "entries, p99", "time by mean, p99"),
    (99.9, "entries, p99.9", "time by mean, p99.9"),
    (100.0, "entries, most", "time by mean, most"),
];

/// Entries and nanoseconds of each request of one side.
type Costs = (Vec<u64>, Vec<u64>);

/// Writes (side 0) or reads (side 1) of a trace on `vet`, each by itself.
fn costs(made: Synthetic, most: u64, side: usize) -> Result<Costs, LabError> {
    let (mut actions, space) = actions(&made)?;
    let entry = by_name("vet").ok_or_else(|| LabError("no mapping 'vet'".into()))?;
    let mut memory = vec![0; (entry.memory)(space, 2 * most as usize + 1000)];
    let map = (entry.build)(space, &mut memory);
    let mut map = map.map_err(|refusal| LabError(refusal.to_string()))?;
    let (mut entries, mut times) = (Vec::new(), Vec::new());
    for request in made {
        let Some(action) = actions.of(&request).ok().flatten() else { continue };
        let of_side = usize::from(matches!(action, Action::Read(_))) == side;
        let begin = (map.work().probes, if of_side { clock::nanoseconds() } else { 0 });
        let done = match action {
            Action::Write(extent, physical) => map.update(extent, physical, &mut |_| {}),
            Action::Read(extent) => map.look_up(extent, &mut |_| {}),
            Action::Trim(extent) => map.remove(extent, &mut |_| {}),
        };
        if let Err(refusal) = done {
            return Err(LabError(format!("vet: {refusal}")));
        }
        if of_side {
            times.push(clock::nanoseconds() - begin.1);
            entries.push(map.work().probes - begin.0);
        }
    }
    entries.sort_unstable();
    times.sort_unstable();
    Ok((entries, times))
}

/// The value that so many per cent of the sorted values do not exceed.
fn at(sorted: &[u64], percent: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).map_or(0.0, |&value| value as f64)
}

/// Requests of a trace whose costs are kept, at most.
pub const REQUESTS: u64 = 500_000;

/// Figure 10 (side 0) or 11 (side 1).
pub fn experiment(
    id: &'static str,
    side: usize,
    cases: &[Case],
    trace: impl Fn(&str) -> Result<Synthetic, LabError>,
) -> Result<Experiment, LabError> {
    let name = SIDES[side];
    let (title, number) = match side {
        0 => ("Figure 10: the cost of each write in VET", 10),
        _ => ("Figure 11: the cost of each read in VET", 11),
    };
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for case in cases {
        let key = case.recipe.key;
        let most = Counts::of(trace(key)?, &|_| {}).most;
        let (entries, times) = costs(trace(key)?, most, side)?;
        let mean = times.iter().sum::<u64>() as f64 / times.len().max(1) as f64;
        for (percent, metric, timed) in RANKS {
            rows.push(Row::alone("vet", key, metric, at(&entries, percent), "entries"));
            rows.push(Row::alone("vet", key, timed, at(&times, percent) / mean.max(1.0), ""));
        }
        let points =
            (0..=100).map(|percent| (f64::from(percent), at(&entries, f64::from(percent))));
        series.push(Series { name: key.into(), points: points.collect() });
    }
    let figure = Figure {
        id: format!("extents-figure{number}"),
        title: title.into(),
        x: format!("per cent of the {name}s"),
        y: format!("entries that a {name} touches, at most"),
        content: Content::Lines { logarithmic: false, series },
    };
    Ok(Experiment { figures: vec![figure], ..Experiment::of(id, title, rows) })
}
