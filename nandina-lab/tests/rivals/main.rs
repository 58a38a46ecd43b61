//! BFTL, LA-tree and MB-tree: a model, cuts at every chip operation, swarms, and canaries.
//!
//! Full devices, damaged pages, and what a device must have are in modules of their own.

mod common;
#[path = "../example/mod.rs"]
mod example;
mod full;
mod groups;
mod leaves;
mod prefix;
mod worst;

use common::{CHIP, HIGH, Model, chip, contents, golden, key_of, options, with};
use example::{hold_what_a_map_holds, survive_every_cut, survive_swarms};
use expect_test::expect;
use nandina::{Options, System};
use nandina_lab::rivals::{Bftl, LaTree, MbTree};
use nandina_lab::torture::{CutRun, Hardships, Mode, Outcome, cut_everywhere, replay};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Compares an index with a map in which lookups are as frequent as changes.
///
/// Returns the greatest height, and the most pages of buffers of other nodes than the root.
fn hold_what_lookups_find<S: System>(seed: u64, options: Options) -> (u8, usize) {
    let mut chip = chip(512);
    let (mut model, mut random) = (Model::new(), ChaCha8Rng::seed_from_u64(seed));
    let (mut height, mut most) = (0, 0);
    for session in 0..8 {
        let values = options.value_bytes;
        with::<S, _>(&mut chip, &options, session == 0, |index| {
            for turn in 0..1_500u32 {
                let key = key_of(random.random_range(0..1_500), options.key_bytes);
                if random.random_range(0..10) < if session < 5 { 8 } else { 3 } {
                    index.insert(&key, &vec![turn as u8; values]).unwrap();
                    model.insert(key, vec![turn as u8; values]);
                } else {
                    index.remove(&key).unwrap();
                    model.remove(&key);
                }
                let key = key_of(random.random_range(0..1_500), options.key_bytes);
                assert_eq!(index.get(&key).unwrap(), model.get(&key).map(|value| &value[..]));
                height = height.max(index.statistics().height);
            }
            assert_eq!(contents(index), model);
            let low = key_of(700, options.key_bytes);
            let mut down = index.range_down(&low[..]..).unwrap();
            let mut expected = model.range(low.clone()..).rev();
            while let Some((key, value)) = down.next().unwrap() {
                assert_eq!(expected.next(), Some((&key.to_vec(), &value.to_vec())));
            }
            assert_eq!(expected.next(), None);
            index.flush().unwrap();
        })
        .unwrap();
        most = most.max(groups::pages_below_the_root(&mut chip));
        with::<S, _>(&mut chip, &options, false, |index| assert_eq!(contents(index), model))
            .unwrap();
    }
    (height, most)
}

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

#[test]
fn la_holds_what_a_map_holds() {
    for (seed, options) in [(1, options(0)), (2, options(1)), (3, HIGH), (4, HIGH)] {
        let (heights, pages_below) = hold_what_lookups_find::<LaTree>(seed, options);
        let is_high = options.key_bytes == HIGH.key_bytes;
        assert!(heights >= if is_high { 5 } else { 2 }, "height {heights}");
        assert_eq!(pages_below > 20, is_high, "{pages_below} pages of buffers below the root");
    }
}

#[test]
fn a_cut_of_la_at_every_operation_leaves_the_old_or_the_new_state() {
    survive_every_cut::<LaTree>(CutRun { records: 70, value_bytes: 20, ..CutRun::SMALL });
}

#[test]
fn two_cuts_of_la_leave_the_old_or_the_new_state() {
    survive_two_cuts::<LaTree>();
}

#[test]
fn swarms_of_faults_lose_nothing_of_la() {
    survive_swarms::<LaTree>();
}

#[test]
fn la_has_these_chip_operations() {
    expect![[r#"
        buffer 0, format: 1024 reads, 1 writes
        buffer 0, 1,000 inserts: 1024 reads, 1001 writes
        buffer 0, 1,000 lookups: 2114 reads, 1054 writes
        buffer 0, 1,000 removals: 2114 reads, 2054 writes
        buffer 0, mount: 3139 reads, 2054 writes
        buffer 1, format: 1024 reads, 1 writes
        buffer 1, 1,000 inserts: 1024 reads, 37 writes
        buffer 1, 1,000 lookups: 2114 reads, 90 writes
        buffer 1, 1,000 removals: 2114 reads, 127 writes
        buffer 1, mount: 3139 reads, 127 writes
    "#]]
    .assert_eq(&golden::<LaTree>());
}

#[test]
fn mb_holds_what_a_map_holds() {
    assert!(hold_what_a_map_holds::<MbTree>(CHIP).height > 2);
    for (seed, options) in [(1, options(0)), (2, options(1)), (3, HIGH), (4, HIGH)] {
        let (heights, _) = hold_what_lookups_find::<MbTree>(seed, options);
        let is_high = options.key_bytes == HIGH.key_bytes;
        assert!(heights >= if is_high { 5 } else { 3 }, "height {heights}");
    }
}

#[test]
fn a_cut_of_mb_at_every_operation_leaves_the_old_or_the_new_state() {
    survive_every_cut::<MbTree>(CutRun { records: 60, ..CutRun::SMALL });
}

#[test]
fn two_cuts_of_mb_leave_the_old_or_the_new_state() {
    survive_two_cuts::<MbTree>();
}

#[test]
fn swarms_of_faults_lose_nothing_of_mb() {
    survive_swarms::<MbTree>();
}

#[test]
fn mb_has_these_chip_operations() {
    expect![[r#"
        buffer 0, format: 1024 reads, 1 writes
        buffer 0, 1,000 inserts: 2602 reads, 882 writes
        buffer 0, 1,000 lookups: 4282 reads, 882 writes
        buffer 0, 1,000 removals: 5950 reads, 1207 writes
        buffer 0, mount: 6974 reads, 1207 writes
        buffer 1, format: 1024 reads, 1 writes
        buffer 1, 1,000 inserts: 1712 reads, 385 writes
        buffer 1, 1,000 lookups: 3365 reads, 385 writes
        buffer 1, 1,000 removals: 4375 reads, 648 writes
        buffer 1, mount: 5399 reads, 648 writes
    "#]]
    .assert_eq(&golden::<MbTree>());
}

/// The FTL refuses what a full buffer writes, as its chip is worn out: the changes that waited are
/// still there.
#[test]
fn h1_what_waited_before_a_refused_write_waits_again() {
    let lived = replay("swarm/bftl over ftl:fast/seed 4 unstable formats").unwrap();
    assert_eq!(lived, Outcome::Survived);
}

/// Errors of the device lost a change that had returned, before such changes were made again.
#[test]
fn h2_what_waited_before_an_error_of_the_device_waits_again() {
    let lived = replay("swarm/la/seed 1261 unstable changed formats errors").unwrap();
    assert_eq!(lived, Outcome::Survived);
}
