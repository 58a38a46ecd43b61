//! Runs and swarms with hardships.
//!
//! These are unstable pages, a write buffer, other options at each opening, a format over the
//! index, and errors of the device.

use nandina_lab::systems::SYSTEMS;
use nandina_lab::torture::{CutRun, Hardships, Mode, Shares, Torture, torture_shares};

use crate::harness::seed;

/// Tortures every system; none may break its promise, and enough must have been done.
fn survive(mode: Mode, run: CutRun, operations: u64, runs_least: u64) {
    let shares = match mode {
        Mode::Exhaustive => Shares::one_in(307, 17),
        Mode::Swarm => Shares::one_in(80, 1),
        Mode::None | Mode::Linear => Shares::one_in(37, 1),
    };
    for system in SYSTEMS {
        let run = CutRun { checkpoints: run.checkpoints.filter(|_| system.checkpoints), ..run };
        let what = Torture { mode, seed: seed(), run, operations };
        let report = torture_shares(system.key, what, shares, &|_| {}).unwrap();
        assert_eq!(report.violations, [], "{}", system.key);
        assert!(
            report.runs >= shares.least(runs_least),
            "{}: only {} runs",
            system.key,
            report.runs
        );
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
    for run in runs(Hardships { formats: true, ..Hardships::NONE }) {
        survive(Mode::Linear, run, 0, 300);
    }
}

#[test]
fn an_error_of_the_device_at_every_operation_is_the_old_or_the_new_state_for_good() {
    for run in runs(Hardships { errors: true, ..Hardships::NONE }) {
        survive(Mode::Linear, run, 0, 300);
    }
}

#[test]
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
fn two_cuts_at_every_operation_with_unstable_pages_leave_what_was_seen() {
    for run in runs(UNSTABLE) {
        survive(Mode::Exhaustive, run, 0, 10_000);
    }
}

/// Cuts of systems whose values can stay in their journal.
#[test]
fn cuts_at_every_operation_are_survived_where_values_stay_in_the_journal() {
    let all = Hardships { unstable: true, journal_values: true, ..Hardships::NONE };
    let hardships = [
        all,
        Hardships { buffered: true, ..all },
        Hardships { buffered: true, changed: true, ..all },
        Hardships { errors: true, ..all },
        Hardships { formats: true, ..all },
    ];
    survive_with_journals(CutRun::SMALL, &hardships);
}

/// A run in which no garbage is collected would be refused, whatever is cut in it.
#[test]
fn each_run_with_values_in_the_journal_collects_garbage() {
    let runs = [false, true].into_iter().flat_map(|buffered| {
        let ways = [false, true].into_iter().flat_map(|lean| [(lean, None), (lean, Some(1))]);
        ways.flat_map(move |(lean, checkpoints)| {
            [CutRun::SMALL, CutRun::LARGE].into_iter().flat_map(move |run| {
                [false, true].map(|changed| {
                    let journal_values = true;
                    let hardships =
                        Hardships { buffered, changed, journal_values, ..Hardships::NONE };
                    CutRun { lean, checkpoints, hardships, ..run }
                })
            })
        })
    });
    for run in runs {
        for system in SYSTEMS.iter().filter(|system| system.has_arena()) {
            let what = Torture { mode: Mode::None, seed: seed(), run, operations: 0 };
            let report = torture_shares(system.key, what, Shares::WHOLE, &|_| {}).unwrap();
            assert_eq!(report.violations, [], "{}, {run:?}", system.key);
        }
    }
}

/// Cuts of systems whose changes are programmed one by one into a page, where a chip allows that.
#[test]
fn cuts_at_every_operation_are_survived_where_changes_are_programmed_one_by_one() {
    let all = Hardships { unstable: true, overwrite: true, ..Hardships::NONE };
    let hardships = [
        all,
        Hardships { changed: true, ..all },
        Hardships { errors: true, ..all },
        Hardships { formats: true, ..all },
        Hardships { journal_values: true, ..all },
    ];
    survive_with_journals(CutRun::OVERWRITE, &hardships);
}

/// One cut everywhere with each of the hardships, and two cuts with the first of them.
///
/// Only systems with a journal are tested.
fn survive_with_journals(run: CutRun, hardships: &[Hardships]) {
    let mut systems = 0;
    for system in SYSTEMS.iter().filter(|system| system.has_arena()) {
        systems += 1;
        let linear = hardships.iter().map(|&hardships| (Mode::Linear, hardships));
        for (mode, hardships) in linear.chain([(Mode::Exhaustive, hardships[0])]) {
            let (shares, least) = match mode {
                Mode::Exhaustive => (Shares::one_in(307, 17), 100_000),
                _ => (Shares::one_in(7, 1), 900),
            };
            let run = CutRun { hardships, ..run };
            let what = Torture { mode, seed: seed(), run, operations: 0 };
            let report = torture_shares(system.key, what, shares, &|_| {}).unwrap();
            assert_eq!(report.violations, [], "{}", system.key);
            let runs = report.runs;
            assert!(runs >= shares.least(least), "{}, {hardships:?}: {runs} runs", system.key);
        }
    }
    assert!(systems > 0);
}

#[test]
fn swarms_with_every_hardship_lose_nothing() {
    let run = CutRun { hardships: Hardships::ALL, ..CutRun::SMALL };
    survive(Mode::Swarm, run, 300_000, 100);
}
