//! Chip operations beside those of the published C code of the paper's authors.
//!
//! That code was run and measured: 10,000 random records of 16 bytes, pages of 512 bytes, three
//! page buffers.

use nandina::flash::Profile;
use nandina::flash::profile::{DATAFLASH, SD};

use super::Claims;
use super::case::{Case, Costs};
use super::series::Kind;
use crate::reproduce::{Experiment, Row};

/// Pages of the write buffer.
const LOGS: [usize; 3] = [0, 1, 4];

/// For each system: reads and writes of an insertion, by pages of write buffer.
const INSERTS: [(&str, [(f64, f64); 3]); 3] = [
    ("btree", [(1.72, 1.09), (1.08, 0.97), (0.77, 0.78)]),
    ("vm", [(1.76, 1.12), (1.16, 0.99), (0.84, 0.79)]),
    ("vm-ow", [(1.84, 1.10), (1.22, 0.98), (0.85, 0.79)]),
];

/// Reads of a lookup, and of a scan of a hundred records.
const LOOKUP: f64 = 2.00;
const SCAN: f64 = 11.2;

/// Overwrites of an insertion without a write buffer, of systems that overwrite.
const OVERWRITES: f64 = 1.00;

/// The chips at full size: the code's figures include no cost of collection.
const RUNS: [(&str, Profile); 4] =
    [("btree", SD), ("vm", SD), ("vm", DATAFLASH), ("vm-ow", DATAFLASH)];

fn case(system: &'static str, chip: Profile, pages: usize) -> Case {
    Case::new(system, chip, Kind::Random).buffering(pages)
}

/// The cases of the table.
pub fn cases() -> Vec<Case> {
    let by_log = |(system, chip)| LOGS.map(|pages| case(system, chip, pages));
    RUNS.into_iter().flat_map(by_log).collect()
}

/// The table of this experiment.
pub fn experiment(costs: &Costs) -> Experiment {
    let title = "The published C code's chip operations: 10,000 random records of 16 bytes, pages of 512 bytes, M = 3";
    let mut claims = Claims::new(costs, "published", title, &cases());
    for (system, chip) in RUNS {
        let Some((_, published)) = INSERTS.iter().find(|(key, _)| *key == system) else { continue };
        for (pages, (reads, writes)) in LOGS.into_iter().zip(published) {
            let case = case(system, chip, pages);
            let Some(insert) = costs.mean(&case, "insert") else { continue };
            let config = case.config();
            let mut row = |metric, paper, ours| {
                let row = Row::beside(system, &config, metric, paper, ours, "pages");
                claims.experiment.rows.push(row);
            };
            row("reads_per_insert", *reads, insert.reads);
            row("writes_per_insert", *writes, insert.writes);
            let claim = format!("{system} {config}: an insertion reads no more than in the C code");
            claims.claim(claim, insert.reads <= reads + 0.005);
            let claim =
                format!("{system} {config}: an insertion writes no more than in the C code");
            claims.claim(claim, insert.writes <= writes + 0.005);
            if system == "vm-ow" && pages == 0 {
                let metric = "overwrites_per_insert";
                let row =
                    Row::beside(system, &config, metric, OVERWRITES, insert.overwrites, "pages");
                claims.experiment.rows.push(row);
            }
        }
        let case = case(system, chip, 0);
        let phases = [("query", "reads_per_lookup", LOOKUP), ("scan", "reads_per_scan", SCAN)];
        for (phase, metric, published) in phases {
            let Some(mean) = costs.mean(&case, phase) else { continue };
            let config = case.config();
            let row = Row::beside(system, &config, metric, published, mean.reads, "pages");
            claims.experiment.rows.push(row);
            let claim = format!("{system} {config}: a {phase} reads no more than in the C code");
            claims.claim(claim, mean.reads <= published + 0.005);
        }
    }
    claims.done()
}
