//! Table 1 and Figure 3: buffers of five sizes, three shrink ratios.

use super::count::{Buffer, CleanUp, Commit, Counts, PAGE_BYTES, Reason, Settings, run};
use super::published::{BUFFERS, RATIOS, TABLE_1};
use super::sample::FANOUT;
use super::{Bound, Experiments, Prepared, mega};
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

/// The counts of Table 1 at one bound of the journal: by ratio, then by buffer.
pub struct Cells {
    /// The bound.
    pub bound: Bound,
    /// The counts.
    pub counts: Vec<Vec<Counts>>,
}

impl Cells {
    /// Cells with more nodes than the paper's and 1 %.
    pub fn over(&self) -> usize {
        let cells = self.counts.iter().flatten().zip(TABLE_1.into_iter().flatten());
        let over = cells.filter(|(counts, (_, paper))| 100 * counts.written > 101 * paper);
        over.count()
    }
}

/// Runs all cells at all bounds.
pub fn cells(of: &Experiments, prepared: &Prepared, progress: &(dyn Fn(u64) + Sync)) -> Vec<Cells> {
    let cell = |bound: &Bound, per_cent, nodes: u64| {
        let nodes = of.scale.share(nodes);
        let buffer = Some(Buffer { nodes, clean_up: CleanUp::Shrink(per_cent) });
        let settings = Settings { fanout: FANOUT, buffer, journal_bytes: bound.bytes };
        let counts = run(settings, prepared.sample.changes());
        progress(1);
        counts
    };
    let cells = |bound: &Bound| {
        let counts = RATIOS.map(|ratio| BUFFERS.map(|nodes| cell(bound, ratio, nodes)).to_vec());
        Cells { bound: *bound, counts: counts.to_vec() }
    };
    prepared.bounds.iter().map(cells).collect()
}

/// The experiment of the cells.
pub fn experiment(of: &Experiments, prepared: &Prepared, all: &[Cells]) -> Experiment {
    let title = "Table 1 and Figure 3: index nodes written, by buffer and shrink ratio, fanout 8";
    let mut experiment = Experiment::of("table1", title, Vec::new());
    let node_bytes = Settings::unbounded(FANOUT).node_bytes();
    for cells in all {
        for (per_cent, (row, paper)) in RATIOS.iter().zip(cells.counts.iter().zip(TABLE_1)) {
            for (nodes, (counts, (without, with))) in BUFFERS.iter().zip(row.iter().zip(paper)) {
                let nodes = of.scale.share(*nodes);
                let config = format!("{nodes} nodes, {per_cent} %, {}", cells.bound);
                let mut beside = |metric, paper: f64, ours: f64, unit| {
                    let row = Row::beside("tnc", &config, metric, paper, ours, unit);
                    experiment.rows.push(row);
                };
                beside("nodes without TNC", without as f64, counts.without as f64, "nodes");
                beside("nodes with TNC", with as f64, counts.written as f64, "nodes");
                let saved = 100.0 - 100.0 * with as f64 / without as f64;
                beside("saved", saved, 100.0 - counts.per_cent(), "%");
                let mut alone = |metric, ours: f64, unit| {
                    experiment.rows.push(Row::alone("tnc", &config, metric, ours, unit));
                };
                alone("flash", mega(counts.written * node_bytes), "MiB");
                alone("pages", counts.pages as f64, "pages");
                if cells.bound.is_fitted {
                    alone("buffer in RAM", mega(nodes * node_bytes), "MiB");
                    alone("pages without TNC", counts.pages_without as f64, "pages");
                    alone("nodes loaded", counts.loaded as f64, "nodes");
                    alone("most dirty", counts.most_dirty as f64, "nodes");
                    alone("commits", counts.commits.len() as f64, "");
                    alone("shrinks", counts.shrinks as f64, "");
                }
            }
        }
        orderings(of, prepared, cells, &mut experiment);
        experiment.figures.push(figure(of, cells));
    }
    experiment.notes.push(format!(
        "A page has {PAGE_BYTES} bytes, and as many nodes of one commit as fit. The column without TNC \
         changes with the buffer, here as in the paper: a range that is removed counts a path for each \
         lowest node that is clean, and each commit makes nodes clean."
    ));
    experiment
}

fn orderings(of: &Experiments, prepared: &Prepared, cells: &Cells, experiment: &mut Experiment) {
    let bound = &cells.bound;
    if !of.scale.quick {
        let over = cells.over();
        experiment.orderings.push((
            format!(
                "at most the paper's nodes + 1 % in every cell, {bound} ({over} cells have more)"
            ),
            over == 0,
        ));
    }
    for (per_cent, row) in RATIOS.iter().zip(&cells.counts) {
        let breaks = breaks(of, row);
        let written: Vec<_> = row.iter().map(|counts| counts.written.to_string()).collect();
        experiment.orderings.push((
            format!(
                "a larger buffer writes fewer nodes, {per_cent} %, {bound}: {}",
                written.join(", ")
            ),
            breaks.is_empty(),
        ));
        for (nodes, smaller, larger) in breaks {
            experiment.notes.push(format!(
                "{nodes} nodes, {per_cent} %, {bound}: {}; with the next smaller buffer {}. Unpacking \
                 ends after change {}; a node that is removed before a commit comes is never written.",
                last(larger),
                last(smaller),
                prepared.sample.made.len()
            ));
        }
    }
    let (points, nodes) = spread(of, cells);
    experiment.orderings.push((
        format!(
            "the shrink ratio changes the share by at most 0.32 points as in the paper, {bound}: by \
             {points:.2} at {nodes} nodes"
        ),
        points <= 0.325,
    ));
}

/// The largest difference that the ratio makes, in points of the share, and at which buffer.
pub fn spread(of: &Experiments, cells: &Cells) -> (f64, u64) {
    let of_buffer = |at: usize| {
        let shares = || cells.counts.iter().map(|row| row[at].per_cent());
        let (least, most) = (shares().fold(f64::MAX, f64::min), shares().fold(0.0, f64::max));
        (most - least, of.scale.share(BUFFERS[at]))
    };
    (0..BUFFERS.len()).map(of_buffer).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}

/// The buffers that write more nodes than the next smaller one, with the counts of both.
pub fn breaks<'c>(of: &Experiments, row: &'c [Counts]) -> Vec<(u64, &'c Counts, &'c Counts)> {
    let pairs = row.windows(2).zip(&BUFFERS[1..]);
    let more = pairs.filter(|(pair, _)| pair[1].written > pair[0].written);
    more.map(|(pair, nodes)| (of.scale.share(*nodes), &pair[0], &pair[1])).collect()
}

/// The last commit before the unmount.
pub fn last_commit(counts: &Counts) -> Option<&Commit> {
    counts.commits.iter().rev().find(|commit| commit.reason != Reason::Unmount)
}

fn last(counts: &Counts) -> String {
    let Some(Commit { after, nodes, reason }) = last_commit(counts) else {
        return "there is no commit before the unmount".into();
    };
    let why = match reason {
        Reason::Buffer => "a full buffer",
        Reason::Journal => "the journal's bound",
        Reason::Sync | Reason::Unmount => "a sync",
    };
    format!("the last commit is that of {why} after change {after}, of {nodes} nodes")
}

fn figure(of: &Experiments, cells: &Cells) -> Figure {
    let series = |name: String, share: &dyn Fn(usize) -> f64| {
        let points = BUFFERS.iter().enumerate();
        let points = points.map(|(at, nodes)| (of.scale.share(*nodes) as f64, share(at)));
        Series { name, points: points.collect() }
    };
    let mut all = Vec::new();
    for (per_cent, (row, paper)) in RATIOS.iter().zip(cells.counts.iter().zip(TABLE_1)) {
        all.push(series(format!("{per_cent} %"), &|at| row[at].per_cent()));
        let share = |at: usize| 100.0 * paper[at].1 as f64 / paper[at].0 as f64;
        all.push(series(format!("{per_cent} %, paper"), &share));
    }
    Figure {
        id: format!("tnc-figure3-{}", cells.bound.key()),
        title: format!("Figure 3: nodes with TNC by nodes without, {}", cells.bound),
        x: "buffer (nodes)".into(),
        y: "nodes written (%)".into(),
        content: Content::Lines { logarithmic: false, series: all },
    }
}
