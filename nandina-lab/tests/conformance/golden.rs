//! The exact chip operations of small fixed workloads.
//!
//! A change of cost shows as a difference here, and is reviewed. `UPDATE_EXPECT=1 cargo test -p
//! nandina-lab --test conformance golden` rewrites the table.

use expect_test::expect_file;
use nandina::flash::profile::{DATAFLASH, MLC, NOR, SD, SLC};
use nandina_lab::run::{Setup, run};
use nandina_lab::systems::{SYSTEMS, is_own};
use nandina_lab::work::Work;

/// The table of exact chip operations.
///
/// Each line is `system device phase: reads programs erases`, for 20,000 random records of 4 + 4
/// bytes, seed 7.
#[test]
fn chip_operations_are_as_pinned() {
    let work = Work::standard(20_000, 4, 4, 7).unwrap();
    // Stores of one's own have a table of theirs, beside their file.
    let (mut table, mut own) = (String::new(), String::new());
    for profile in [MLC.with_blocks(12), SLC.with_blocks(20), NOR, DATAFLASH, SD] {
        let options = nandina::Options::new(4, 4);
        let setup = Setup { profile, options, ram_bytes: None, layer: None };
        for system in SYSTEMS {
            if system.needs.missing(&profile.capabilities).is_some() {
                continue;
            }
            let table = if is_own(system) { &mut own } else { &mut table };
            let Ok(cost) = run(system.key, &setup, &work, &|_| {}).unwrap().cost() else {
                *table += &format!("{} {}: refused\n", system.key, profile.key);
                continue;
            };
            for phase in &cost.phases {
                let counters = phase.counters;
                *table += &format!(
                    "{} {} {}: {} {} {}\n",
                    system.key,
                    profile.key,
                    phase.phase,
                    counters.reads,
                    counters.programs + counters.rewrites,
                    counters.erases
                );
            }
        }
    }
    expect_file!["golden.txt"].assert_eq(&table);
    if !own.is_empty() {
        expect_file!["../../own/golden.txt"].assert_eq(&own);
    }
}
