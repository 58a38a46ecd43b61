//! VET in all its ways: Tables 2 to 4, and Figure 14 beside EMT.
//!
//! The paper's times are of a Pentium 4, so ratios are compared: each by the way that the paper
//! prefers, BIS in `myhash`, which is `vet` here.

use super::published::{TABLE_2, TABLE_3, TABLE_4};
use super::{Case, bars};
use crate::LabError;
use crate::reproduce::figure::Bar;
use crate::reproduce::{Experiment, Row};

/// What a time is of.
pub const SIDES: [&str; 2] = ["write", "read"];

/// Table 2.
pub fn table_2(cases: &[Case]) -> Result<Experiment, LabError> {
    let mut rows = Vec::new();
    for (Case { recipe, whole, ways, .. }, [bis, lis]) in cases.iter().zip(TABLE_2) {
        let (measured, dependent) = (whole.of("vet")?, ways.of("vet-pointers")?);
        rows.push(Row::beside("vet", recipe.key, "memory, BIS", bis, measured.mib(), "MB"));
        let ratio =
            |of: &str| Ok::<_, LabError>(ways.of(of)?.used as f64 / ways.of("vet")?.used as f64);
        rows.push(Row::beside(
            "vet-lis",
            recipe.key,
            "memory, LIS by BIS",
            lis / bis,
            ratio("vet-lis")?,
            "",
        ));
        rows.push(Row::alone(
            "vet-pointers",
            recipe.key,
            "memory, PD by PF",
            ratio(dependent.mapping)?,
            "",
        ));
    }
    let title = "Table 2: memory of VET at the end (nodes of 20 bytes), and LIS by BIS in one run";
    Ok(Experiment::of("table2", title, rows))
}

/// Table 3.
pub fn table_3(cases: &[Case]) -> Result<Experiment, LabError> {
    let mut rows = Vec::new();
    for (Case { recipe, ways, .. }, [bis, lis]) in cases.iter().zip(TABLE_3) {
        let (binary, linear) = (ways.of("vet")?, ways.of("vet-lis")?);
        for (at, [time, work]) in [
            ["write, LIS by BIS", "entries of a write, LIS by BIS"],
            ["read, LIS by BIS", "entries of a read, LIS by BIS"],
        ]
        .into_iter()
        .enumerate()
        {
            let ratio = linear.ns[at] / binary.ns[at];
            rows.push(Row::beside("vet-lis", recipe.key, time, lis[at] / bis[at], ratio, ""));
            rows.push(Row::alone(
                "vet-lis",
                recipe.key,
                work,
                linear.work[at] / binary.work[at],
                "",
            ));
        }
        let write_by_read = binary.ns[0] / binary.ns[1];
        rows.push(Row::beside(
            "vet",
            recipe.key,
            "write by read",
            bis[0] / bis[1],
            write_by_read,
            "",
        ));
    }
    let title = "Table 3: times of VET as ratios, and the same of the entries that were touched";
    Ok(Experiment::of("table3", title, rows))
}

/// Our tables in the order of Table 4's first two.
const TABLES: [(&str, usize); 2] = [("vet-cuckoo", 0), ("vet-intrusive", 1)];

/// Table 4.
pub fn table_4(cases: &[Case]) -> Result<Experiment, LabError> {
    let mut rows = Vec::new();
    for (Case { recipe, ways, .. }, paper) in cases.iter().zip(TABLE_4) {
        let chained = ways.of("vet")?;
        let by = |table: &str| -> Result<[f64; 3], LabError> {
            let cost = ways.of(table)?;
            let memory = cost.used as f64 / chained.used as f64;
            Ok([memory, cost.ns[0] / chained.ns[0], cost.ns[1] / chained.ns[1]])
        };
        for (table, row) in TABLES {
            for (at, (metric, ours)) in ["memory by myhash", "write by myhash", "read by myhash"]
                .into_iter()
                .zip(by(table)?)
                .enumerate()
            {
                let paper = paper[row][at] / paper[2][at];
                rows.push(Row::beside(table, recipe.key, metric, paper, ours, ""));
            }
        }
        let metrics = ["memory by myhash", "write by myhash", "read by myhash"];
        let ours = metrics.into_iter().zip(by("vet-hashbrown")?);
        rows.extend(
            ours.map(|(metric, ours)| Row::alone("vet-hashbrown", recipe.key, metric, ours, "")),
        );
    }
    let title = "Table 4: hash tables of VET by the chained one (cuckoo-hash, uthash, and hashbrown, which the paper lacks)";
    Ok(Experiment::of("table4", title, rows))
}

/// Figure 14.
pub fn figure_14(cases: &[Case]) -> Result<Experiment, LabError> {
    let title = "Figure 14: time of VET by that of EMT (the paper: writes up to 10, reads slightly below 1)";
    let (mut rows, mut drawn) = (Vec::new(), Vec::new());
    for Case { recipe, whole, ways, .. } in cases {
        let (vet, emt) = (whole.of("vet")?, whole.of("emt")?);
        for (at, side) in SIDES.into_iter().enumerate() {
            let ratio = vet.ns[at] / emt.ns[at];
            let metrics = [
                ["write, VET by EMT", "read, VET by EMT"],
                ["entries of a write, VET", "entries of a read, VET"],
                ["nodes of a write, EMT", "nodes of a read, EMT"],
            ]
            .map(|of| of[at]);
            rows.push(Row::alone("vet", recipe.key, metrics[0], ratio, ""));
            rows.push(Row::alone("vet", recipe.key, metrics[1], vet.work[at], ""));
            rows.push(Row::alone("emt", recipe.key, metrics[2], emt.work[at], ""));
            drawn.push(Bar { label: format!("{} {side}", recipe.key), parts: vec![ratio] });
        }
        for (at, metric) in
            ["look-up of a mapped unit, VET by EMT", "look-up in a hole, VET by EMT"]
                .into_iter()
                .enumerate()
        {
            let ratio = vet.look_up_ns[at] / emt.look_up_ns[at];
            rows.push(Row::alone("vet", recipe.key, metric, ratio, ""));
        }
        for other in ["emt-btreemap", "emt-yfast"] {
            let (other, emt) = (ways.of(other)?, ways.of("emt")?);
            let metrics = ["write, by EMT", "read, by EMT"].into_iter().zip([0, 1]);
            rows.extend(metrics.map(|(metric, at)| {
                Row::alone(other.mapping, recipe.key, metric, other.ns[at] / emt.ns[at], "")
            }));
        }
        let compact = whole.of("compact")?;
        let metrics = ["write, by EMT", "read, by EMT"].into_iter().zip([0, 1]);
        rows.extend(metrics.map(|(metric, at)| {
            Row::alone("compact", recipe.key, metric, compact.ns[at] / emt.ns[at], "")
        }));
    }
    let figure =
        bars("extents-figure14", title, "trace and side", "VET by EMT", &["VET by EMT"], drawn);
    Ok(Experiment { figures: vec![figure], ..Experiment::of("figure14", title, rows) })
}
