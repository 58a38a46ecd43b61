//! What the paper does not show: its smallest buffer in bytes, a far smaller one, and a sync.

use super::count::{Buffer, CleanUp, Counts, Reason, Settings, Tnc, run};
use super::published::{RATIOS, SMALLEST_BYTES, TABLE_2};
use super::{Bound, Experiments, Prepared};
use crate::reproduce::{Experiment, Row};

/// Buffers in bytes, each with the share of the nodes that is to be saved, in per cent.
const BUFFERS: [(u64, f64); 2] = [(SMALLEST_BYTES, 99.5), (107_000, 99.0)];

fn clean_ups() -> impl Iterator<Item = CleanUp> {
    RATIOS.map(CleanUp::Shrink).into_iter().chain([CleanUp::Oldest])
}

/// Runs of the two experiments.
pub fn runs(bounds: usize) -> u64 {
    (BUFFERS.len() * bounds * (TABLE_2.len() - 1) * clean_ups().count() + TABLE_2.len()) as u64
}

/// Nodes saved in few bytes of RAM.
pub fn buffers(
    of: &Experiments,
    prepared: &Prepared,
    progress: &(dyn Fn(u64) + Sync),
) -> Experiment {
    let title = "Beyond the paper: nodes saved in its smallest buffer's bytes, and in far fewer";
    let mut experiment = Experiment::of("buffers", title, Vec::new());
    for (bytes, least) in BUFFERS {
        let bytes = of.scale.share(bytes);
        for bound in &prepared.bounds {
            let mut best = (0.0, String::new());
            for fanout in TABLE_2[1..].iter().map(|row| row.fanout) {
                for clean_up in clean_ups() {
                    let mut settings =
                        Settings { journal_bytes: bound.bytes, ..Settings::unbounded(fanout) };
                    let nodes = (bytes / settings.node_bytes()).max(1);
                    settings.buffer = Some(Buffer { nodes, clean_up });
                    let counts = run(settings, prepared.sample.changes());
                    progress(1);
                    let saved = 100.0 - counts.per_cent();
                    let how = match clean_up {
                        CleanUp::Shrink(per_cent) => format!("{per_cent} %"),
                        CleanUp::Oldest => "oldest first".into(),
                    };
                    let config = format!("{bytes} bytes, fanout {fanout}, {how}, {bound}");
                    let mut row = |metric, ours, unit| {
                        experiment.rows.push(Row::alone("tnc", &config, metric, ours, unit));
                    };
                    row("saved", saved, "%");
                    row("nodes with TNC", counts.written as f64, "nodes");
                    row("nodes loaded", counts.loaded as f64, "nodes");
                    if saved > best.0 {
                        best = (saved, format!("{saved:.3} % at fanout {fanout}, {how}"));
                    }
                }
            }
            let words = format!("saved in {bytes} bytes, {bound}: {}", best.1);
            if of.scale.quick {
                experiment.notes.push(format!("Most {words}."));
            } else {
                let words = format!("at least {least} % {words}");
                experiment.orderings.push((words, best.0 >= least));
            }
        }
    }
    experiment.notes.push(
        "A wandering tree of the same fanout is what is compared with. Oldest first: the least recently used \
         clean nodes leave one by one, and a commit comes only when none can."
            .into(),
    );
    experiment
}

/// The counts if all is synced between unpacking and removing.
pub fn synced(settings: Settings, prepared: &super::sample::Sample) -> Counts {
    let mut tnc = Tnc::new(settings);
    prepared.made.iter().for_each(|change| tnc.change(*change));
    tnc.commit(Reason::Sync);
    prepared.removed.iter().for_each(|change| tnc.change(*change));
    tnc.unmount()
}

/// Nodes saved if every node that outlives unpacking is written.
pub fn sync(prepared: &Prepared, progress: &(dyn Fn(u64) + Sync)) -> Experiment {
    let title = "Beyond the paper: a sync before the removal";
    let mut experiment = Experiment::of("sync", title, Vec::new());
    for fanout in TABLE_2.iter().map(|row| row.fanout) {
        let counts = synced(Settings::unbounded(fanout), &prepared.sample);
        progress(1);
        let config = format!("fanout {fanout}, {}", Bound::NONE);
        let mut row = |metric, ours, unit| {
            experiment.rows.push(Row::alone("tnc", &config, metric, ours, unit));
        };
        row("saved", 100.0 - counts.per_cent(), "%");
        row("nodes with TNC", counts.written as f64, "nodes");
    }
    experiment.notes.push(
        "Every node that outlives a commit is written once, so that a small fanout saves less, whatever the \
         buffer."
            .into(),
    );
    experiment
}
