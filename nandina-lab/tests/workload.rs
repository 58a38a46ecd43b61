//! The μ-Tree paper's workloads: their counts, seeds and rules.
//!
//! They have as many tree operations as in Table 4, the same for the same seed, and no more of them
//! than their rules give.

use nandina::flash::profile::MLC;
use nandina::{Options, RelocationMode};
use nandina_lab::run::{Setup, SystemRun, run};
use nandina_lab::work::Operation;
use nandina_lab::workload::filesystem::{Assumptions, Directory, FileSystem};
use nandina_lab::workload::{Counts, TABLE_4, Workload, by_name, kernel_compile, mp3, postmark};

/// The permitted distance of counts from Table 4's.
const DISTANCE: f64 = 0.03;

#[test]
fn full_workloads_have_table_4s_counts() {
    for (name, _) in TABLE_4 {
        let workload = by_name(name, false, 1).unwrap();
        for row in workload.table_4() {
            assert!(
                row.ratio.is_some_and(|ratio| (ratio - 1.0).abs() < DISTANCE),
                "{name}: {row:?}"
            );
        }
    }
}

#[test]
fn quick_workloads_are_about_a_twentieth() {
    for (name, paper) in TABLE_4 {
        let Counts { insertions, deletions, .. } = by_name(name, true, 1).unwrap().counts;
        for (ours, paper) in [(insertions, paper.insertions), (deletions, paper.deletions)] {
            let ratio = ours as f64 * 20.0 / paper as f64;
            assert!((0.9..1.15).contains(&ratio), "{name}: {ratio}");
        }
    }
}

#[test]
fn the_seed_decides_everything() {
    for (name, _) in TABLE_4 {
        let workload = by_name(name, true, 7).unwrap();
        assert_eq!(workload, by_name(name, true, 7).unwrap(), "{name}");
        assert_ne!(workload.work, by_name(name, true, 8).unwrap().work, "{name}");
    }
}

/// Lookups, and all operations, counted from the work itself.
fn asked(workload: &Workload) -> (u64, u64) {
    let operations = || workload.work.phases.iter().flat_map(|phase| &phase.operations);
    let lookups = operations().filter(|operation| matches!(operation, Operation::Lookup(_)));
    (lookups.count() as u64, operations().count() as u64)
}

#[test]
fn counts_are_those_of_the_work() {
    for (name, _) in TABLE_4 {
        let workload = by_name(name, true, 1).unwrap();
        let Counts { retrievals, insertions, deletions } = workload.counts;
        assert_eq!(asked(&workload), (retrievals, retrievals + insertions + deletions), "{name}");
    }
}

#[test]
fn both_systems_run_the_workloads_and_end_with_what_is_left() {
    let setup = Setup {
        profile: MLC.without_pairing(),
        options: Options { moves: RelocationMode::Alone, ..Options::new(1, 0) },
        ram_bytes: None,
        layer: None,
    };
    // After all is removed, only the root directory is left, and PostMark's two.
    for (name, left) in [("kernel-compile", Some(2)), ("postmark", Some(2 + 2 * 3)), ("mp3", None)]
    {
        let workload = by_name(name, true, 1).unwrap();
        for system in ["wandering", "mu"] {
            let cost =
                run(system, &setup, &workload.work, &|_| {}).and_then(SystemRun::cost).unwrap();
            let records = cost.records.unwrap();
            assert!(left.is_none_or(|left| left == records), "{name}: {records}");
            assert!(records > 0);
        }
    }
}

fn recorded(work: impl FnOnce(&mut FileSystem)) -> Counts {
    let assumptions = Assumptions { cached_per_mille: 0, pointers_per_cut: 400 };
    let mut system = FileSystem::new(assumptions, "test", 1);
    work(&mut system);
    let (_, Counts { retrievals, insertions, deletions }) = system.recorder.finish().unwrap();
    // The root's two items are no part of the work.
    Counts { retrievals, insertions: insertions - 2, deletions }
}

#[test]
fn files_take_the_items_that_reiserfs_gives_them() {
    let whole = |bytes: u64, call: u64| {
        let counts = recorded(|system| {
            let mut file = system.create(&Directory::ROOT, "file");
            system.write(&mut file, bytes, call);
            system.delete(file);
        });
        (counts.insertions, counts.deletions)
    };
    // Name and stat data; a direct item; an indirect item; one more append; two items, cut in
    // pieces of 400.
    assert_eq!(whole(0, 4096), (2, 2));
    assert_eq!(whole(3976, 4096), (3, 3));
    assert_eq!(whole(3977, 4096), (3, 3));
    assert_eq!(whole(8192, 4096), (4, 3));
    assert_eq!(whole(8192, 8192), (3, 3));
    assert_eq!(whole(1012 * 4096, 1 << 30), (3, 2 + 3));
    assert_eq!(whole(1012 * 4096 + 1, 1 << 30), (4, 2 + 3 + 1));
}

#[test]
fn a_file_that_outgrows_its_direct_item_changes_to_an_indirect_one() {
    let append = |first: u64, more: u64| {
        let counts = recorded(|system| {
            let mut file = system.create(&Directory::ROOT, "file");
            system.write(&mut file, first, 4096);
            system.write(&mut file, more, 4096);
        });
        // Without name, stat data and the first item.
        (counts.insertions - 3, counts.deletions)
    };
    assert_eq!(append(1000, 1000), (1, 0), "an append to the direct item");
    assert_eq!(append(1000, 3000), (1, 1), "an indirect item for the direct one");
    assert_eq!(append(1000, 4096), (2, 1), "and one more block");
    assert_eq!(append(4000, 96), (0, 0), "the last block has room");
    assert_eq!(append(4096, 1), (1, 0), "a new block");
}

#[test]
fn a_name_is_found_by_its_path_and_caches_spare_the_search() {
    let stat = |cached_per_mille| {
        let assumptions = Assumptions { cached_per_mille, pointers_per_cut: 1 };
        let mut system = FileSystem::new(assumptions, "test", 1);
        let outer = system.make_directory(&Directory::ROOT, "outer");
        let inner = system.make_directory(&outer, "inner");
        let file = system.create(&inner, "file");
        let searches = |system: &FileSystem| system.recorder.counts().retrievals;
        let before = searches(&system);
        system.stat(&file);
        searches(&system) - before
    };
    assert_eq!(stat(0), 6, "three names, and what each names");
    assert_eq!(stat(1000), 0);
}

#[test]
fn impossible_parameters_are_refused_with_what_to_do() {
    let refused = |result: Result<Workload, nandina_lab::LabError>| result.unwrap_err().to_string();
    let none = postmark::Parameters { files: 0, ..postmark::Parameters::QUICK };
    assert!(refused(postmark::workload(&none, 1)).contains("--files"));
    let small = mp3::Parameters { storage_bytes: 10, ..mp3::Parameters::QUICK };
    assert!(refused(mp3::workload(&small, 1)).contains("--megabytes"));
    assert!(
        refused(kernel_compile::workload(&kernel_compile::Parameters::QUICK, Some(&[]), 1))
            .contains("files")
    );
    assert!(refused(by_name("fsync", true, 1)).contains("postmark"));
}

#[test]
fn postmark_spreads_files_over_subdirectories_and_removes_them() {
    let plain = postmark::workload(&postmark::Parameters::QUICK, 1).unwrap();
    let one = postmark::Parameters { subdirectories: 1, ..postmark::Parameters::QUICK };
    assert_eq!(postmark::workload(&one, 1).unwrap(), plain, "one is none");
    let many = postmark::Parameters { subdirectories: 10, ..postmark::Parameters::QUICK };
    let workload = postmark::workload(&many, 1).unwrap();
    assert_ne!(workload.work, plain.work);
    let mut there = std::collections::HashSet::new();
    for &operation in workload.work.phases.iter().flat_map(|phase| &phase.operations) {
        match operation {
            Operation::Insert(row) | Operation::Update(row) => there.insert(row),
            Operation::Delete(row) => there.remove(&row),
            Operation::Lookup(_) | Operation::Scan { .. } => false,
        };
    }
    assert_eq!(there.len(), 2 + 2 * 3, "the root's two items and three of each other directory");
    let of = |name: &[u8]| {
        let objects = workload.work.phases[0].operations.iter().filter_map(|operation| {
            let Operation::Insert(row) = *operation else { return None };
            let key = workload.work.key(row);
            // Stat data of the objects made in a directory.
            (key[8..] == [0; 8]).then(|| key[..4].to_vec())
        });
        objects.filter(|directory| directory == name).count()
    };
    // The root is object 2, `mail` 3, `postmark` 4, then the ten.
    assert_eq!(of(&4u32.to_be_bytes()), 10, "what is made beside them is the ten themselves");
    for object in 5..15u32 {
        assert!((40..120).contains(&of(&object.to_be_bytes())), "750 files over ten");
    }
}

#[test]
fn a_list_is_thinned_to_the_files_that_the_parameters_say() {
    use nandina_lab::workload::manifest;
    let list = manifest::by_rule(2_480, 1);
    let parameters = kernel_compile::Parameters::of(true, true);
    assert_eq!(parameters.files, 1_280);
    let thinned = kernel_compile::workload(&parameters, Some(&list), 1).unwrap();
    let by_hand = manifest::thin(&list, parameters.files);
    assert_eq!(thinned, kernel_compile::workload(&parameters, Some(&by_hand), 1).unwrap());
    for row in thinned.table_4() {
        assert!(
            row.ratio.is_some_and(|ratio| (0.035..0.065).contains(&ratio)),
            "about a twentieth: {row:?}"
        );
    }
}

#[test]
fn a_workload_of_too_many_operations_is_refused_and_stops_asking() {
    use nandina_lab::workload::Recorder;
    let mut recorder = Recorder::new(1);
    recorder.phase("test");
    for _ in 0..20_000_000 {
        recorder.search([0; 16]);
    }
    assert!(!recorder.is_full());
    recorder.search([0; 16]);
    assert!(recorder.is_full());
    let refused = recorder.finish().unwrap_err().to_string();
    assert_eq!(
        refused,
        "the workload has more than 20000000 operations: choose fewer or smaller files"
    );
}

#[test]
fn postmark_stops_where_it_is_out_of_files() {
    let parameters =
        postmark::Parameters { creates_in_ten: 0, files: 10, ..postmark::Parameters::QUICK };
    let workload = postmark::workload(&parameters, 1).unwrap();
    assert!(workload.counts.deletions < 60, "{:?}", workload.counts);
}
