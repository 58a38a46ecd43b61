//! Exact counts of the model, of a tree made by rule and of a head of Linux 6.1's list.

use std::io::Write;
use std::path::Path;

use super::count::{Buffer, CleanUp, Settings, run};
use super::sample::Sample;
use crate::workload::manifest::{self, Entry};

/// Fanout, slots, and nodes without TNC, with it, loaded, the most, and commits.
type Golden = (u64, Option<u64>, [u64; 5]);

const BY_RULE: [Golden; 12] = [
    (8, Some(20), [22_021, 1_803, 719, 25, 144]),
    (16, Some(20), [16_567, 805, 346, 25, 70]),
    (32, Some(20), [13_404, 334, 150, 22, 31]),
    (64, Some(20), [9_544, 146, 70, 21, 15]),
    (8, Some(100), [21_881, 672, 425, 102, 18]),
    (16, Some(100), [16_495, 272, 150, 102, 7]),
    (32, Some(100), [13_365, 102, 25, 101, 2]),
    (64, Some(100), [9_484, 1, 0, 62, 1]),
    (8, None, [20_881, 1, 0, 452, 1]),
    (16, None, [16_079, 1, 0, 224, 1]),
    (32, None, [13_227, 1, 0, 112, 1]),
    (64, None, [9_484, 1, 0, 62, 1]),
];

/// The head of 50 MB.
const LISTED: [Golden; 12] = [
    (8, Some(100), [549_970, 18_046, 9_678, 104, 388]),
    (16, Some(100), [433_546, 7_214, 4_101, 104, 165]),
    (32, Some(100), [351_301, 2_727, 1_750, 102, 71]),
    (64, Some(100), [274_911, 1_106, 800, 102, 33]),
    (8, Some(1_000), [547_714, 7_604, 6_250, 1_002, 26]),
    (16, Some(1_000), [432_771, 3_431, 2_500, 1_002, 11]),
    (32, Some(1_000), [351_117, 1_527, 750, 1_001, 4]),
    (64, Some(1_000), [274_749, 1, 0, 878, 1]),
    (8, None, [542_410, 1, 0, 7_163, 1]),
    (16, None, [430_944, 1, 0, 3_443, 1]),
    (32, None, [350_657, 1, 0, 1_728, 1]),
    (64, None, [274_749, 1, 0, 878, 1]),
];

fn check(list: &[Entry], golden: [Golden; 12]) {
    let sample = Sample::of(list).unwrap();
    let counted = golden.map(|(fanout, nodes, _)| {
        let buffer = nodes.map(|nodes| Buffer { nodes, clean_up: CleanUp::Shrink(25) });
        let settings = Settings { buffer, ..Settings::unbounded(fanout) };
        let counts = run(settings, sample.changes());
        let commits = counts.commits.len() as u64;
        let counts = [counts.without, counts.written, counts.loaded, counts.most, commits];
        (fanout, buffer.map(|buffer| buffer.nodes), counts)
    });
    assert_eq!(counted, golden);
}

#[test]
fn a_tree_made_by_rule_has_exact_counts() {
    check(&manifest::by_rule(400, 1), BY_RULE);
}

#[test]
fn fifty_megabytes_of_linux_6_1_have_exact_counts() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/linux-6.1-manifest");
    let path = shared.join("linux-source-6.1.192-2.manifest.tsv.zst");
    if !path.exists() {
        // Not by a macro: the test harness would capture it.
        writeln!(std::io::stderr(), "skipped: the list of Linux 6.1 is not beside the project")
            .unwrap();
        return;
    }
    let list = manifest::read(&path).unwrap();
    let mut bytes = 0;
    let head = list.iter().take_while(|entry| {
        let more = bytes < 50_000_000;
        bytes += entry.bytes;
        more
    });
    check(&list[..head.count()], LISTED);
}
