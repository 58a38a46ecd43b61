//! The counts beside those of UBIFS itself: the head of Linux 6.1's list on pages of 2 KiB.

use super::count::Settings;
use super::sample::Sample;
use super::small::synced;
use crate::LabError;
use crate::reproduce::{Experiment, Row};
use crate::workload::manifest::Entry;

/// Entries that were unpacked.
const ENTRIES: usize = 4_975;

/// By fanout: nodes without TNC, and with it and a sync before the removal, of Linux 6.1's UBIFS.
const MEASURED: [(u64, u64, u64); 4] =
    [(8, 243_484, 4_415), (16, 164_311, 2_300), (32, 146_794, 1_051), (64, 121_144, 531)];

/// The experiment, on a list of Linux 6.1.
pub fn experiment(list: Option<&[Entry]>) -> Result<Experiment, LabError> {
    let title = "Beside UBIFS of Linux 6.1: its first 4,975 entries, synced before the removal";
    let mut experiment = Experiment::of("ubifs", title, Vec::new());
    let Some(head) = list.and_then(|list| list.get(..ENTRIES)) else {
        let why = "the counts are of the list of Linux 6.1: give it as --manifest";
        experiment.refusals.push(why.into());
        return Ok(experiment);
    };
    let sample = Sample::of(head)?;
    let (mut near, mut fewer) = (true, true);
    for (fanout, without, with) in MEASURED {
        let counts = synced(Settings::unbounded(fanout), &sample);
        let config = format!("fanout {fanout}");
        let mut beside = |metric, theirs: u64, ours: u64| {
            let row = Row::beside("tnc", &config, metric, theirs as f64, ours as f64, "nodes");
            experiment.rows.push(row);
        };
        beside("nodes without TNC", without, counts.without);
        beside("nodes with TNC", with, counts.written);
        near &= (counts.without as f64 / without as f64 - 1.0).abs() <= 0.1;
        fewer &= counts.written <= with;
    }
    experiment.orderings = vec![
        ("nodes without TNC within a tenth of UBIFS's".into(), near),
        ("nodes with TNC at most UBIFS's".into(), fewer),
    ];
    Ok(experiment)
}
