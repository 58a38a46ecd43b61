//! BFTL and LA-tree: a model, cuts at every chip operation, swarms, full devices, and canaries.

mod common;
#[path = "../example/mod.rs"]
mod example;
mod full;
mod groups;
mod prefix;

use common::{CHIP, golden};
use example::{hold_what_a_map_holds, survive_every_cut, survive_swarms};
use expect_test::expect;
use nandina::System;
use nandina_lab::rivals::Bftl;
use nandina_lab::torture::{CutRun, Hardships, Mode, cut_everywhere};

/// Runs whose every cut is followed by each cut of the recovery and of the changes after it.
fn survive_two_cuts<S: System>() {
    let small = CutRun { records: 24, ..CutRun::SMALL };
    let errors = Hardships { errors: true, buffered: true, ..Hardships::NONE };
    for hardships in [Hardships::NONE, Hardships { narrow: false, ..Hardships::ALL }, errors] {
        let run = CutRun { hardships, ..small };
        let mode = if hardships.any() { Mode::Linear } else { Mode::Exhaustive };
        let report = cut_everywhere::<S, _>(run.chip::<S>(1), run, mode, 1, &|_| {});
        assert_eq!(report.violations, []);
        assert!(report.runs > 100, "{hardships:?}: only {} runs", report.runs);
    }
}

#[test]
fn bftl_holds_what_a_map_holds() {
    let statistics = hold_what_a_map_holds::<Bftl>(CHIP);
    assert!(statistics.height > 2, "{statistics:?}");
}

#[test]
fn a_cut_of_bftl_at_every_operation_leaves_the_old_or_the_new_state() {
    survive_every_cut::<Bftl>(CutRun { records: 40, ..CutRun::SMALL });
}

#[test]
fn two_cuts_of_bftl_leave_the_old_or_the_new_state() {
    survive_two_cuts::<Bftl>();
}

#[test]
fn swarms_of_faults_lose_nothing_of_bftl() {
    survive_swarms::<Bftl>();
}

#[test]
fn bftl_has_these_chip_operations() {
    expect![[r#"
        buffer 0, format: 1024 reads, 1 writes
        buffer 0, 1,000 inserts: 3915 reads, 1189 writes
        buffer 0, 1,000 lookups: 6502 reads, 1189 writes
        buffer 0, 1,000 removals: 9180 reads, 1609 writes
        buffer 0, mount: 10207 reads, 1609 writes
        buffer 1, format: 1024 reads, 1 writes
        buffer 1, 1,000 inserts: 3827 reads, 273 writes
        buffer 1, 1,000 lookups: 6356 reads, 273 writes
        buffer 1, 1,000 removals: 9026 reads, 361 writes
        buffer 1, mount: 10053 reads, 361 writes
    "#]]
    .assert_eq(&golden::<Bftl>());
}
