//! Table 4, Figures 8 and 9: the three workloads on both systems. And the slowest operations, wear,
//! and other chips.

use nandina::RelocationMode;

use super::{Caches, NO_CACHE, ONE_PAGE_EACH, SYSTEMS, Scale, chips, setup};
use crate::LabError;
use crate::compare::run_all;
use crate::reproduce::figure::{Bar, Content, Figure};
use crate::reproduce::{Experiment, Row};
use crate::run::{Refusal, SystemCost, SystemRun};
use crate::workload::Workload;

/// Runs of both systems for each workload and chip, with and without caches.
pub const fn runs(scale: Scale) -> u64 {
    2 * chips_of(scale) as u64
}

/// A quick run has the paper's chip alone.
const fn chips_of(scale: Scale) -> usize {
    if scale.quick { 1 } else { 3 }
}

/// Figure 8: the share of the wandering tree's time that μ-Tree saves, in per cent.
///
/// From section 6.3: without cache, and with caches of one page each, in the order of Table 4.
const SAVED: [[f64; 2]; 3] = [[18.0, 51.0], [28.0, 61.0], [20.0, 90.0]];

/// A run of both systems.
struct Pair<'w> {
    workload: &'w str,
    caches: Caches,
    costs: Vec<SystemCost>,
}

impl Pair<'_> {
    fn config(&self) -> String {
        format!("{} {}", self.workload, self.caches.name)
    }

    /// What μ-Tree saves of the wandering tree's time, in per cent.
    fn saved(&self) -> f64 {
        let [wandering, mu] = [0, 1].map(|system| self.costs[system].seconds.total());
        100.0 * (1.0 - mu / wandering)
    }

    /// The wandering tree's extra time, in per cent of μ-Tree's time.
    fn longer(&self) -> f64 {
        let [wandering, mu] = [0, 1].map(|system| self.costs[system].seconds.total());
        100.0 * (wandering / mu - 1.0)
    }
}

/// The counts of our workloads beside the paper's.
///
/// Those of a scaled-down run stand alone.
pub fn table_4(workloads: &[Workload], quick: bool) -> Experiment {
    let mut rows = Vec::new();
    for workload in workloads {
        for count in workload.table_4() {
            let (paper, ours) = (count.paper.unwrap_or_default() as f64, count.ours as f64);
            rows.push(if quick {
                Row::alone("both", workload.name, count.operation, ours, "ops")
            } else {
                Row::beside("both", workload.name, count.operation, paper, ours, "ops")
            });
        }
    }
    let title = "Table 4: tree operations of the workloads";
    Experiment::of("table4", title, rows)
}

/// Figures 8 and 9, and what they do not show.
pub fn experiments(
    scale: Scale,
    workloads: &[Workload],
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Experiment>, LabError> {
    let mut beyond = Vec::new();
    let (mut paper_runs, mut refusals) = (Vec::new(), Vec::new());
    for (chip, profile) in chips().into_iter().enumerate().take(chips_of(scale)) {
        for workload in workloads {
            for caches in [NO_CACHE, ONE_PAGE_EACH] {
                let setup = setup(profile, caches, RelocationMode::Alone);
                let config = format!("{} {} {}", profile.key, workload.name, caches.name);
                let runs = run_all(&SYSTEMS, &setup, &workload.work, progress)?;
                let refused = runs.iter().find_map(|run| match run {
                    SystemRun::Refused(refusal) if chip > 0 => Some(refusal),
                    _ => None,
                });
                if let Some(Refusal { system, reason, .. }) = refused {
                    refusals.push(format!("{config}: {system}: {reason}"));
                    continue;
                }
                let costs = runs.into_iter().map(SystemRun::cost).collect::<Result<_, _>>()?;
                let pair = Pair { workload: workload.name, caches, costs };
                beyond.extend(not_shown(&config, &pair, chip > 0));
                if chip == 0 {
                    paper_runs.push(pair);
                }
            }
        }
    }
    Ok(vec![
        figure_8(&paper_runs),
        figure_9(&paper_runs),
        Experiment {
            refusals,
            ..Experiment::of(
                "traces-beyond",
                "What Figures 8 and 9 do not show: the slowest operations, wear, and chips with other \
                 pages, with caches of one page each or none",
                beyond,
            )
        },
    ])
}

fn figure_8(pairs: &[Pair<'_>]) -> Experiment {
    let (mut rows, mut bars, mut orderings) = (Vec::new(), Vec::new(), Vec::new());
    let saved = SAVED.as_flattened();
    for (pair, paper) in pairs.iter().zip(saved) {
        let config = pair.config();
        for (system, cost) in SYSTEMS.into_iter().zip(&pair.costs) {
            let parts = [cost.seconds.read, cost.seconds.program, cost.seconds.erase];
            for (metric, part) in ["reads", "programs", "erases"].into_iter().zip(parts) {
                rows.push(Row::alone(system, &config, metric, part, "s"));
            }
            let height = cost.height_most.map(f64::from);
            rows.extend(height.map(|most| Row::alone(system, &config, "height", most, "levels")));
            bars.push(Bar { label: format!("{config} {system}"), parts: parts.into() });
        }
        rows.push(Row::beside("mu", &config, "time saved", *paper, pair.saved(), "%"));
        rows.push(Row::alone("wandering", &config, "longer than mu", pair.longer(), "%"));
        orderings.push((format!("{config}: μ-Tree takes less time"), pair.saved() > 0.0));
    }
    for pair in pairs.chunks(2) {
        if let [without, with] = pair {
            let claim = format!("{}: a cache of a page each makes its lead larger", with.workload);
            orderings.push((claim, with.saved() > without.saved()));
        }
    }
    let figure = Figure {
        id: "figure8".into(),
        title: "Time to replay the traces".into(),
        x: "workload, with read cache + write cache".into(),
        y: "seconds".into(),
        content: Content::Bars {
            parts: ["read", "program", "erase"].map(String::from).into(),
            bars,
        },
    };
    let title = "Figure 8: time to replay the traces, split by chip operation";
    Experiment { orderings, figures: vec![figure], ..Experiment::of("figure8", title, rows) }
}

fn figure_9(pairs: &[Pair<'_>]) -> Experiment {
    let (mut rows, mut bars, mut orderings) = (Vec::new(), Vec::new(), Vec::new());
    for pair in pairs.iter().filter(|pair| pair.caches == NO_CACHE) {
        let runs = [0, 1].map(|system| pair.costs[system].reclaimed_blocks as f64);
        for ((system, runs), cost) in SYSTEMS.into_iter().zip(runs).zip(&pair.costs) {
            rows.push(Row::alone(system, pair.workload, "reclaimed", runs, "blocks"));
            let moved = cost.moved_pages.map(|pages| pages as f64);
            let row = |pages| Row::alone(system, pair.workload, "moved for it", pages, "pages");
            rows.extend(moved.map(row));
            bars.push(Bar { label: format!("{} {system}", pair.workload), parts: vec![runs] });
        }
        let claim = format!("{}: the wandering tree collects more often", pair.workload);
        orderings.push((claim, runs[0] > runs[1]));
    }
    let figure = Figure {
        id: "figure9".into(),
        title: "Garbage collections without cache".into(),
        x: "workload".into(),
        y: "blocks reclaimed".into(),
        content: Content::Bars { parts: vec!["reclaimed".into()], bars },
    };
    let title = "Figure 9: garbage collections without cache";
    Experiment { orderings, figures: vec![figure], ..Experiment::of("figure9", title, rows) }
}

fn not_shown(config: &str, pair: &Pair<'_>, time_too: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (system, cost) in SYSTEMS.into_iter().zip(&pair.costs) {
        if time_too {
            rows.push(Row::alone(system, config, "time", cost.seconds.total(), "s"));
        }
        for kind in &cost.kinds {
            let [p99, max] = match kind.kind {
                "lookup" => ["ms_p99_of_retrievals", "ms_max_of_retrievals"],
                "insert" => ["ms_p99_of_inserts", "ms_max_of_inserts"],
                _ => ["ms_p99_of_deletes", "ms_max_of_deletes"],
            };
            rows.push(Row::alone(system, config, p99, kind.ms_p99, "ms"));
            rows.push(Row::alone(system, config, max, kind.ms_max, "ms"));
        }
        let wear = cost.wear_max_by_mean;
        rows.push(Row::alone(system, config, "erases_most_by_mean", wear, "ratio"));
    }
    if time_too {
        rows.push(Row::alone("mu", config, "time saved", pair.saved(), "%"));
    }
    rows
}
