//! Runs and swarms with hardships: unstable pages, a write buffer, other options at each opening, a format over the
//! index, errors of the device. What the library does not survive yet is ignored, with the reason.

use nandina::place::{Description, SYSTEMS};
use nandina_lab::effort::{Effort, effort};
use nandina_lab::torture::{CutRun, Hardships, Mode, Torture, torture};

use crate::harness::seed;

/// Tortures every system and demands that none breaks its promise and that enough was done.
fn survive(mode: Mode, run: CutRun, operations: u64, runs_least: u64) {
    survive_with(|_| true, mode, run, operations, runs_least);
}

/// The same for the systems that `concerns` names.
fn survive_with(
    concerns: fn(&Description) -> bool,
    mode: Mode,
    run: CutRun,
    operations: u64,
    runs_least: u64,
) {
    for system in SYSTEMS.iter().filter(|system| concerns(system)) {
        let run = CutRun { checkpoints: run.checkpoints.filter(|_| system.writes_paths), ..run };
        let what = Torture { mode, seed: seed(), run, operations };
        let report = torture(system.key, what, &|_| {}).unwrap();
        assert_eq!(report.violations, [], "{}", system.key);
        assert!(report.runs >= runs_least, "{}: only {} runs", system.key, report.runs);
    }
}

/// The small run with these hardships, without checkpoints and with them.
fn runs(hardships: Hardships) -> [CutRun; 2] {
    [None, Some(1)].map(|checkpoints| CutRun { checkpoints, hardships, ..CutRun::SMALL })
}

const UNSTABLE: Hardships = Hardships { unstable: true, ..Hardships::NONE };

#[test]
fn a_cut_at_every_operation_with_a_write_buffer_keeps_what_was_flushed() {
    for run in runs(Hardships { buffered: true, ..Hardships::NONE }) {
        survive(Mode::Linear, run, 0, 300);
    }
}

#[test]
fn a_cut_at_every_operation_is_survived_when_each_opening_has_other_options() {
    for run in runs(Hardships { changed: true, ..Hardships::NONE }) {
        survive(Mode::Linear, run, 0, 300);
    }
}

#[test]
fn a_cut_at_every_operation_of_a_format_leaves_the_old_index_or_none() {
    let [run, _] = runs(Hardships { formats: true, ..Hardships::NONE });
    survive(Mode::Linear, run, 0, 300);
}

#[test]
fn an_error_of_the_device_at_every_operation_is_the_old_or_the_new_state_for_good() {
    for run in runs(Hardships { errors: true, ..Hardships::NONE }) {
        survive(Mode::Linear, run, 0, 300);
    }
}

#[test]
fn twins_that_are_unstable_stay_as_they_were_seen() {
    let in_place = |system: &Description| system.in_place;
    let others = [
        UNSTABLE,
        Hardships { buffered: true, changed: true, ..UNSTABLE },
        Hardships { formats: true, ..UNSTABLE },
        Hardships { errors: true, ..UNSTABLE },
    ];
    for hardships in others {
        survive_with(in_place, Mode::Linear, CutRun { hardships, ..CutRun::SMALL }, 0, 300);
    }
    if effort() == Effort::Full {
        let run = CutRun { hardships: UNSTABLE, ..CutRun::SMALL };
        survive_with(in_place, Mode::Exhaustive, run, 0, 10_000);
    }
    let run = CutRun { hardships: Hardships::ALL, ..CutRun::SMALL };
    survive_with(in_place, Mode::Swarm, run, 300_000, 100);
}

#[test]
#[ignore = "vm and vm-ow are not right yet in every case where torn pages are unstable"]
fn a_cut_at_every_operation_with_unstable_pages_leaves_what_was_seen() {
    for run in runs(UNSTABLE) {
        survive(Mode::Linear, run, 0, 300);
    }
    for run in runs(Hardships { unstable: true, buffered: true, changed: true, ..Hardships::NONE })
    {
        survive(Mode::Linear, run, 0, 300);
    }
}

#[test]
#[ignore = "vm and vm-ow are not right yet in every case where torn pages are unstable"]
fn two_cuts_at_every_operation_with_unstable_pages_leave_what_was_seen() {
    for run in runs(UNSTABLE) {
        survive(Mode::Exhaustive, run, 0, 10_000);
    }
}

#[test]
#[ignore = "vm and vm-ow are not right yet in every case where torn pages are unstable"]
fn swarms_with_every_hardship_lose_nothing() {
    let run = CutRun { hardships: Hardships::ALL, ..CutRun::SMALL };
    survive(Mode::Swarm, run, 300_000, 100);
}
