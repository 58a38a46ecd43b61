//! Cuts, errors of the device and unstable pages below an index above an FTL.
//!
//! With full effort every system that can is cut at every operation above every kind of FTL.

use nandina_ftl::ftl::DISK;
use nandina_lab::effort::{Effort, Share, effort};
use nandina_lab::layer::Layer;
use nandina_lab::layer::name_of;
use nandina_lab::rivals;
use nandina_lab::systems::SYSTEMS;
use nandina_lab::torture::{
    CutRun, Hardships, Mode, Outcome, Report, Shares, Torture, replay, torture, torture_shares,
};

/// FTLs that differ in how they place pages. Mappings differ in RAM only.
const KINDS: [&str; 7] =
    ["ftl:page", "ftl:compact", "ftl:block", "ftl:bast", "ftl:fast", "ftl:ipl", "ftl:dipl"];

/// The pairs that are tortured on every day.
const ALWAYS: [&str; 7] = [
    "btree over ftl:page",
    "btree over ftl:compact",
    "btree over ftl:fast",
    "btree over ftl:ipl",
    "btree over ftl:dipl",
    "btree over ftl:page with 2 buffer blocks",
    "wpcb over ftl:fast with 2 buffer blocks",
];

/// Systems over FTLs: those of `ALWAYS`, and of the others a share.
fn pairs() -> Vec<String> {
    let all = SYSTEMS.iter().chain(rivals::SYSTEMS);
    let can = all.filter(|system| system.needs.missing(&DISK).is_none());
    let pairs = can.flat_map(|system| {
        KINDS.map(|kind| name_of(system.key, Some(Layer::named(kind).unwrap())))
    });
    let others = pairs.filter(|pair| !ALWAYS.contains(&&pair[..])).collect::<Vec<_>>();
    let others = Share::one_in(8).of(others);
    ALWAYS.iter().map(ToString::to_string).chain(others).collect()
}

/// Tortures a pair; nothing that was acknowledged may be lost.
pub fn survive(pair: &str, mode: Mode, run: CutRun, shares: Shares) -> Report {
    let what = Torture { mode, seed: 1, run, operations: 0 };
    let report = torture_shares(pair, what, shares, &|_| {}).unwrap();
    assert_eq!(report.violations, [], "{pair}");
    assert_eq!(report.system, pair);
    report
}

#[test]
fn a_cut_at_every_operation_of_the_chip_loses_nothing() {
    for pair in pairs() {
        let shares = Shares::one_in(5, 1);
        let report = survive(&pair, Mode::Linear, CutRun::SMALL, shares);
        assert!(report.cuts >= shares.least(1_000), "{report:?}");
        assert!(report.torn >= shares.least(300), "{report:?}");
    }
}

#[test]
fn a_second_cut_in_the_recovery_of_both_loses_nothing() {
    for pair in pairs() {
        let shares = Shares::one_in(211, 23);
        let report = survive(&pair, Mode::Exhaustive, CutRun::SMALL, shares);
        assert!(report.cuts >= shares.least(100_000), "{report:?}");
    }
}

#[test]
fn hardships_below_an_ftl_lose_nothing() {
    let none = Hardships::NONE;
    for hardships in [
        Hardships { unstable: true, ..none },
        Hardships { errors: true, ..none },
        Hardships { formats: true, ..none },
        Hardships::ALL,
    ] {
        let run = CutRun { hardships, ..CutRun::SMALL };
        for pair in if effort() == Effort::Full { pairs() } else { ALWAYS.map(Into::into).into() } {
            let shares = Shares::one_in(41, 1);
            let report = survive(&pair, Mode::Linear, run, shares);
            assert!(report.runs >= shares.least(900), "{report:?}");
            let stops = if hardships.errors { report.faults } else { report.cuts };
            assert!(stops >= shares.least(900), "{report:?}");
        }
    }
}

#[test]
fn swarms_of_faults_below_an_ftl_lose_nothing() {
    let run = CutRun { hardships: Hardships::ALL, ..CutRun::SMALL };
    let operations = if effort() == Effort::Full { 200_000 } else { 4_000 };
    for kind in KINDS {
        let what = Torture { mode: Mode::Swarm, seed: 1, run, operations };
        let report = torture(&format!("btree over {kind}"), what, &|_| {}).unwrap();
        assert_eq!(report.violations, [], "{kind}");
        assert!(report.operations >= operations && report.cuts > 100, "{report:?}");
    }
    let lived = replay("swarm/btree over ftl:fast/seed 2 unstable changed formats errors");
    assert_eq!(lived, Ok(Outcome::Survived));
    // More blocks fail than the chips promise: an FTL then refuses changes.
    for case in [
        "btree over ftl:compact/seed 4400000014",
        "btree over ftl:fast/seed 4400000014",
        "btree over ftl:block/seed 4400000014",
        "btree over ftl:block/seed 4400000074",
        // These mounts write, and are refused as well.
        "rosette over ftl:compact/seed 5300000010",
        "mu over ftl:fast/seed 5300000036",
        "vm over ftl:compact/seed 5300000037",
    ] {
        let lived = replay(&format!("swarm/{case} unstable errors"));
        assert_eq!(lived, Ok(Outcome::Survived), "{case}");
    }
}

#[test]
fn a_case_over_an_ftl_has_a_name_that_replays_it() {
    let name = "exhaustive/btree over ftl:fast/seed 1/36 x 60/400 mixture/60 after";
    assert_eq!(replay(name), Ok(Outcome::Survived));
    let late = "linear/btree over ftl:compact/seed 1/36 x 60/100000 before";
    assert_eq!(replay(late), Ok(Outcome::NotReached));
    let wrong = replay("linear/btree over ftl:fats/seed 1/36 x 60/4 before").unwrap_err();
    assert!(wrong.to_string().starts_with("there is no layer 'ftl:fats'"), "{wrong}");
    let what = Torture { mode: Mode::Linear, seed: 1, run: CutRun::SMALL, operations: 0 };
    let unsuited = replay("swarm/vm-ow over ftl:fast/seed 1").unwrap_err().to_string();
    assert!(unsuited.starts_with("vm-ow over ftl:fast: it programs a page"), "{unsuited}");
    let refused = torture("vm-ow over ftl:page", what, &|_| {}).unwrap_err().to_string();
    assert!(refused.starts_with("vm-ow over ftl:page: it programs a page 2 times"), "{refused}");
}
