//! The exact chip operations of systems above FTLs, and what cannot run there.

use expect_test::expect_file;
use nandina::flash::Profile;
use nandina::flash::profile::{MLC, SD, SLC};
use nandina::{Eviction, Options};
use nandina_lab::LabError;
use nandina_lab::layer::Layer;
use nandina_lab::run::{Setup, SystemCost, SystemRun, run};
use nandina_lab::systems::SYSTEMS;
use nandina_lab::work::Work;

/// A chip on which these records make every FTL collect or merge.
const CHIP: Profile = SLC.with_blocks(32);

/// The layer, with few log blocks where it has any.
fn layer(name: &str) -> Layer {
    let layer = Layer::named(name).unwrap();
    if layer.log_blocks().is_some() { layer.with_log_blocks(4).unwrap() } else { layer }
}

/// Records whose leaves and their stale twins take two thirds of the logical pages.
fn filling() -> Work {
    Work::standard(4_000, 4, 120, 7).unwrap()
}

fn cost(system: &str, profile: Profile, layer: Option<Layer>, work: &Work) -> SystemRun {
    cost_with(system, Options::new(4, 4), profile, layer, work)
}

fn cost_with(
    system: &str,
    options: Options,
    profile: Profile,
    layer: Option<Layer>,
    work: &Work,
) -> SystemRun {
    let setup = Setup { profile, options, ram_bytes: None, layer };
    run(system, &setup, work, &|_| {}).unwrap()
}

fn ran(system: &str, name: &str, work: &Work) -> SystemCost {
    cost(system, CHIP, Some(layer(name)), work).cost().unwrap()
}

fn refused(system: &str, profile: Profile, layer: Layer) -> String {
    let work = Work::standard(20, 4, 4, 7).unwrap();
    match cost(system, profile, Some(layer), &work).cost() {
        Err(LabError(reason)) => reason,
        Ok(_) => panic!("{system} over {} is not refused", layer.name()),
    }
}

/// What runs, and how a line names it.
struct Ran {
    system: &'static str,
    with: &'static str,
    options: Options,
    layer: &'static str,
}

/// Systems with other options, and those that are in no list.
fn others() -> Vec<Ran> {
    let plain = Options::new(4, 4);
    let buffered = plain.write_buffer(1).write_buffer_changes(24);
    let evicts = |eviction| Options { eviction, ..buffered };
    let of = |system, with, options, layer| Ran { system, with, options, layer };
    vec![
        of("mu-star", "", plain, "ftl:fast"),
        of("btree", " that rebalances", Options { rebalances: true, ..plain }, "ftl:fast"),
        of("btree", " with IBSF", evicts(Eviction::Ibsf), "ftl:fast"),
        of("btree", " with MB", evicts(Eviction::Mb), "ftl:fast"),
        of("bftl", "", buffered, "ftl:fast"),
        of("la", "", buffered, "ftl:fast"),
        of("mb", "", buffered, "ftl:fast"),
    ]
}

/// Each line is `system layer phase: reads programs erases, moved, merges`.
///
/// `UPDATE_EXPECT=1 cargo test -p nandina-lab --test over` rewrites the table. The mappings are all
/// alike, because the FTL is the same; only two of them are in it.
#[test]
fn chip_operations_below_an_ftl_are_as_pinned() {
    let work = filling();
    let mut table = String::new();
    let names =
        ["ftl:page", "ftl:compact", "ftl:block", "ftl:bast", "ftl:fast", "ftl:ipl", "ftl:dipl"];
    let buffered = [
        "ftl:page with 3 buffer blocks",
        "ftl:page with 3 buffer blocks as printed",
        "ftl:fast with 2 buffer blocks",
        "ftl:block with 2 buffer blocks",
        "ftl:bast with 2 buffer blocks",
        "ftl:fast with 2 buffer blocks as printed",
        "ftl:block with 2 buffer blocks as printed",
        "ftl:bast with 2 buffer blocks as printed",
    ];
    let mut all = Vec::new();
    for layer in names.into_iter().chain(buffered) {
        // Behind a buffer the chip is too small for vm.
        let systems = ["btree", "wpcb", "vm"];
        let systems = if buffered.contains(&layer) { &systems[..2] } else { &systems[..] };
        let options = Options::new(4, 4);
        all.extend(systems.iter().map(|&system| Ran { system, with: "", options, layer }));
    }
    for Ran { system, with, options, layer: name } in all.into_iter().chain(others()) {
        let run = cost_with(system, options, CHIP, Some(layer(name)), &work);
        let cost = run.cost().unwrap();
        for phase in &cost.phases {
            let counters = phase.counters;
            table += &format!(
                "{system}{with} {name} {}: {} {} {}\n",
                phase.phase, counters.reads, counters.programs, counters.erases
            );
        }
        let ftl = cost.ftl.unwrap();
        table += &format!(
            "{system}{with} {name} in all: {} written, {} trimmed, {} moved, {} own, merges {:?}\n",
            ftl.host_writes,
            ftl.host_trims,
            ftl.moved,
            ftl.own,
            ftl.switch_merges.zip(ftl.partial_merges).zip(ftl.full_merges)
        );
    }
    expect_file!["costs.txt"].assert_eq(&table);
}

#[test]
fn write_amplification_is_that_of_the_system_times_that_of_the_ftl() {
    let work = Work::standard(3_000, 4, 4, 7).unwrap();
    for name in ["ftl:compact", "ftl:fast"] {
        let cost = ran("btree", name, &work);
        let insert = &cost.phases[0];
        let system = insert.write_amplification_system.unwrap();
        let ftl = insert.write_amplification_ftl.unwrap();
        assert!((system * ftl - insert.write_amplification.unwrap()).abs() < 1e-6);
        // A change writes a page of 2,048 bytes at least, for a record of 8.
        assert!(system >= 256.0, "{system}");
        // The header of 40 bytes in the spare area is programmed with a page.
        assert!(ftl >= 2088.0 / 2048.0, "{ftl}");
        let done = cost.ftl.unwrap();
        let programs: u64 = cost.phases.iter().map(|phase| phase.counters.programs).sum();
        assert_eq!(programs, done.host_writes + done.moved + done.own, "{name}");
        assert_eq!(done.log_blocks.is_some(), name == "ftl:fast");
    }
    // On the chip itself there is no FTL.
    let alone = cost("mu", CHIP, None, &work).cost().unwrap();
    assert_eq!((alone.ftl, alone.phases[0].write_amplification_ftl), (None, None));
}

#[test]
fn every_layer_of_the_list_holds_every_record_of_every_system_that_can() {
    // A run compares every result with a model.
    let work = Work::standard(1_200, 4, 4, 7).unwrap();
    for name in Layer::names() {
        for system in SYSTEMS {
            let programs_parts = system.appends() || system.has_leaf_blocks();
            let system = system.key;
            match cost(system, CHIP, Some(layer(&name)), &work) {
                SystemRun::Ran(cost) => {
                    assert_eq!(cost.records, Some(1_080), "{system} over {name}");
                    assert!(cost.ftl.unwrap().map_bytes > 0, "{system} over {name}");
                }
                SystemRun::Refused(refusal) => {
                    assert!(programs_parts, "{refusal:?}");
                    assert_eq!(refusal.over, Some(name.clone()));
                    assert!(refusal.reason.contains("it programs a page "), "{refusal:?}");
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let fast = layer("ftl:fast");
    assert_eq!(
        refused("btree", SD, fast),
        "btree over ftl:fast: sd replaces pages in place: it needs no FTL"
    );
    let few = refused("btree", SLC.with_blocks(8), fast.with_log_blocks(100).unwrap());
    assert!(
        few.starts_with(
            "btree over ftl:fast: slc has 8 blocks, ftl:fast with 100 log blocks needs 10"
        ) && few.ends_with("at least: choose a larger chip or fewer log blocks"),
        "{few}"
    );
    let tiny = refused("btree", SLC.with_blocks(4), layer("ftl:compact"));
    assert!(tiny.contains("slc has 4 blocks, ftl:compact needs "), "{tiny}");
    let mlc = refused("btree", MLC, layer("ftl:dipl"));
    assert_eq!(
        mlc,
        "btree over ftl:dipl: mlc cannot carry ftl:dipl: it programs a page 2 times between erases, \
         the chip allows 1"
    );
    let much = cost(
        "btree",
        SLC.with_blocks(12),
        Some(layer("ftl:page")),
        &Work::standard(200_000, 4, 4, 7).unwrap(),
    );
    let Err(LabError(reason)) = much.cost() else { panic!("12 blocks are too few") };
    assert!(reason.starts_with("btree over ftl:page: 200000 records do not fit"), "{reason}");

    let unknown = |name| Layer::named(name).unwrap_err().to_string();
    for name in ["ftl:pages", "fast", "ftl:", ""] {
        assert!(unknown(name).starts_with(&format!("there is no layer '{name}'")), "{name}");
    }
    assert!(
        unknown("x").contains("ftl:compact, ftl:block, ftl:bast, ftl:fast"),
        "{}",
        unknown("x")
    );
    let logs = |name: &str, count| layer(name).with_log_blocks(count).unwrap_err().to_string();
    assert_eq!(logs("ftl:fast", 1), "ftl:fast needs 2 log blocks, not 1");
    assert_eq!(logs("ftl:page", 8), "ftl:page has no log blocks");
    assert_eq!(logs("ftl:ipl", 8), "ftl:ipl has no log blocks");
    let buffer = unknown("ftl:dipl with 2 buffer blocks");
    assert_eq!(buffer, "ftl:dipl has no transit buffer: it keeps log records instead");
}

#[test]
fn spare_pages_are_kept_from_the_system() {
    let work = filling();
    let moved = |per_cent| {
        let layer = Layer::named("ftl:page").unwrap().with_over_provisioning(per_cent);
        let cost = cost("btree", CHIP, Some(layer), &work).cost().unwrap().ftl.unwrap();
        assert!(cost.over_provisioning >= f64::from(per_cent), "{cost:?}");
        (cost.logical_pages, cost.moved)
    };
    let (none, few, many) = (moved(0), moved(80), moved(100));
    // Logical pages that were never written are as good as spare ones.
    assert!(few.0 > many.0 && few.1 == many.1 && few.1 > 0, "{few:?} {many:?}");
    // But without a spare block pages that move have none of their own.
    assert!(none.0 > few.0 && none.1 >= few.1, "{none:?} {few:?}");
}
