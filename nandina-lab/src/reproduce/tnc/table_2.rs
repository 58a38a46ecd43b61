//! Table 2: the fanout, without a bound on the buffer.

use super::count::{Counts, Settings, run};
use super::published::{Fanout, TABLE_2};
use super::{Bound, Experiments, Prepared, mega};
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

/// The counts at one bound of the journal, by fanout.
pub struct Fanouts {
    /// The bound.
    pub bound: Bound,
    /// The counts.
    pub counts: Vec<(Settings, Counts)>,
}

impl Fanouts {
    /// The fanout with the least of something.
    pub fn least(&self, of: impl Fn(&Settings, &Counts) -> u64) -> u64 {
        let least = self.counts.iter().min_by_key(|(settings, counts)| of(settings, counts));
        least.map_or(0, |(settings, _)| settings.fanout)
    }
}

/// Bytes of RAM that the nodes take at most.
pub fn ram(settings: &Settings, counts: &Counts) -> u64 {
    counts.most * settings.node_bytes()
}

/// Bytes that commits write.
pub fn flash(settings: &Settings, counts: &Counts) -> u64 {
    counts.written * settings.node_bytes()
}

/// Runs all fanouts at all bounds.
pub fn fanouts(prepared: &Prepared, progress: &(dyn Fn(u64) + Sync)) -> Vec<Fanouts> {
    let at = |bound: &Bound| {
        let counts = TABLE_2.iter().map(|paper| {
            let settings =
                Settings { journal_bytes: bound.bytes, ..Settings::unbounded(paper.fanout) };
            let counts = run(settings, prepared.sample.changes());
            progress(1);
            (settings, counts)
        });
        Fanouts { bound: *bound, counts: counts.collect() }
    };
    prepared.bounds.iter().map(at).collect()
}

/// The experiment of the fanouts.
pub fn experiment(of: &Experiments, all: &[Fanouts]) -> Experiment {
    let title = "Table 2: the fanout, without a bound on the buffer";
    let mut experiment = Experiment::of("table2", title, Vec::new());
    for fanouts in all {
        for ((settings, counts), paper) in fanouts.counts.iter().zip(&TABLE_2) {
            rows(&mut experiment, &fanouts.bound, settings, counts, paper);
        }
        // Without a bound one node is written, and nothing can be the least.
        if fanouts.bound.bytes.is_some() {
            let least = fanouts.least(flash);
            let words =
                format!("bytes written are least at fanout 32, {}: at {least}", fanouts.bound);
            experiment.orderings.push((words, least == 32));
        }
        let least = fanouts.least(ram);
        let words = format!("bytes of RAM are least at fanout 32, {}: at {least}", fanouts.bound);
        experiment.orderings.push((words, least == 32));
    }
    if let Some(first) = all.first() {
        if !of.scale.quick {
            distances(&mut experiment, first);
        }
        fewer(&mut experiment, first);
    }
    own_columns(&mut experiment);
    experiment.figures = figures(all);
    experiment
}

fn rows(
    experiment: &mut Experiment,
    bound: &Bound,
    settings: &Settings,
    counts: &Counts,
    paper: &Fanout,
) {
    let config = format!("fanout {}, {bound}", settings.fanout);
    let mut beside = |metric, paper: f64, ours: f64, unit| {
        experiment.rows.push(Row::beside("tnc", &config, metric, paper, ours, unit));
    };
    let [without, with, most] = paper.nodes.map(|nodes| nodes as f64);
    beside("nodes without TNC", without, counts.without as f64, "nodes");
    beside("nodes with TNC", with, counts.written as f64, "nodes");
    beside("most nodes", most, counts.most as f64, "nodes");
    beside("RAM", paper.ram, mega(ram(settings, counts)), "MiB");
    let product = mega(paper.nodes[1] * settings.node_bytes());
    beside(
        "flash, the paper's nodes by their bytes",
        product,
        mega(flash(settings, counts)),
        "MiB",
    );
    if (paper.flash - product).abs() > 0.01 {
        beside("flash, as printed", paper.flash, mega(flash(settings, counts)), "MiB");
    }
    let pages = Row::alone("tnc", &config, "pages", counts.pages as f64, "pages");
    experiment.rows.push(pages);
    let without = counts.pages_without as f64;
    experiment.rows.push(Row::alone("tnc", &config, "pages without TNC", without, "pages"));
}

/// How far the nodes are from the paper's at fanouts 8 to 256.
fn distances(experiment: &mut Experiment, fanouts: &Fanouts) {
    let farthest = |paper: fn(&Fanout) -> u64, ours: fn(&Counts) -> u64, but: u64| {
        let both = fanouts.counts.iter().zip(&TABLE_2).skip(1);
        let off = both.filter(|(_, row)| row.fanout != but).map(|((settings, counts), row)| {
            (ours(counts) as f64 / paper(row) as f64 - 1.0, settings.fanout)
        });
        off.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())).unwrap_or_default()
    };
    let without = |but| farthest(|row| row.nodes[0], |counts| counts.without, but);
    for (words, within, (off, fanout)) in [
        ("nodes without TNC, fanouts 8 to 256", 0.15, without(0)),
        ("nodes without TNC, the same without the row of 64", 0.15, without(64)),
        (
            "most nodes, fanouts 8 to 256",
            0.25,
            farthest(|row| row.nodes[2], |counts| counts.most, 0),
        ),
    ] {
        experiment.orderings.push((
            format!(
                "{words}, {}: within {:.0} % of the paper's: farthest {:+.1} % at {fanout}",
                fanouts.bound,
                100.0 * within,
                100.0 * off
            ),
            off.abs() <= within,
        ));
    }
}

fn fewer(experiment: &mut Experiment, fanouts: &Fanouts) {
    let falls = fanouts.counts.windows(2).all(|pair| pair[1].1.most < pair[0].1.most);
    experiment.orderings.push(("with a larger fanout fewer nodes at most".into(), falls));
}

/// What the paper's own columns say of its rows for fanouts 4, 64 and 256.
fn own_columns(experiment: &mut Experiment) {
    let rises = TABLE_2.windows(2).filter(|pair| pair[1].nodes[0] > pair[0].nodes[0]);
    let rises: Vec<_> =
        rises.map(|pair| format!("{} to {}", pair[0].fanout, pair[1].fanout)).collect();
    experiment.notes.push(format!(
        "A larger fanout cannot make a tree of the same records higher, but the paper's nodes without TNC \
         rise from fanout {}: those rows cannot be of one tree. Its most nodes at 64 are {:.2} of those at \
         32; from 4 to 8 they are {:.2}, from 128 to 256 {:.2}.",
        rises.join(", "),
        TABLE_2[4].nodes[2] as f64 / TABLE_2[3].nodes[2] as f64,
        TABLE_2[1].nodes[2] as f64 / TABLE_2[0].nodes[2] as f64,
        TABLE_2[6].nodes[2] as f64 / TABLE_2[5].nodes[2] as f64,
    ));
}

fn figures(all: &[Fanouts]) -> Vec<Figure> {
    let of = |id: &str, title: &str, bytes: fn(&Settings, &Counts) -> u64, bounded: bool| {
        let shown = all.iter().filter(|fanouts| fanouts.bound.bytes.is_some() == bounded);
        let series = shown.map(|fanouts| Series {
            name: fanouts.bound.to_string(),
            points: fanouts
                .counts
                .iter()
                .map(|(settings, counts)| (settings.fanout as f64, mega(bytes(settings, counts))))
                .collect(),
        });
        Figure {
            id: format!("tnc-table2-{id}"),
            title: title.into(),
            x: "fanout".into(),
            y: "MiB".into(),
            content: Content::Lines { logarithmic: true, series: series.collect() },
        }
    };
    vec![
        of("flash", "Table 2: bytes that commits write", flash, true),
        of("ram", "Table 2: bytes of nodes in RAM at most", ram, false),
    ]
}
