//! Replays: every mapping gets every request, and the figures are those of the mappings.

use std::path::Path;

use nandina_lab::LabError;
use nandina_lab::block_trace::{BlockTrace, Choices};
use nandina_lab::replay::{MAPPINGS, MappingCost, Report, Setup, Unit, replay};

fn setup() -> Setup {
    Setup { mappings: Vec::new(), unit: Unit::SECTOR, space_bytes: None, passes: 1 }
}

fn run(text: &str, setup: &Setup) -> Result<Report, LabError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, text).unwrap();
    replay(&BlockTrace::open(&path, Choices::default()).unwrap(), setup, &|_| {})
}

fn cost<'r>(report: &'r Report, name: &str) -> &'r MappingCost {
    report.mappings.iter().find(|cost| cost.mapping == name).unwrap()
}

const TEXT: &str = "op,start_sectors,length_sectors\nwrite,0,16\nwrite,4,8\nread,0,20\ntrim,14,4\nflush,0,0\nread,3,1\n";

#[test]
fn a_replay_on_every_mapping_agrees_and_counts_its_work() {
    let report = run(TEXT, &setup()).unwrap();
    let names: Vec<_> = report.mappings.iter().map(|cost| cost.mapping).collect();
    let known: Vec<_> = MAPPINGS.iter().map(|entry| entry.name).collect();
    assert_eq!(names, known);
    assert!(report.left_out.is_empty() && report.not_replayed.is_empty());
    assert_eq!((report.logical_units, report.physical_units), (20, (1 << 28) - 1));
    // 0 to 4 at 0, 4 to 12 at 16, 12 to 14 at 12.
    assert_eq!((report.replayed, report.written_units, report.least_runs), (5, 14, 3));
    let page = cost(&report, "page");
    assert_eq!((page.bytes_used, page.bytes_peak, page.entries), (80, 80, 14));
    // 16 + 8 + 20 + 4 + 1 units in five requests.
    assert_eq!(page.probes_per_request, 49.0 / 5.0);
    assert_eq!((page.percent_of_page, page.time_by_page), (100.0, Some(1.0)));
    assert_eq!(cost(&report, "page-2").percent_of_page_2, Some(100.0));
    let emt = cost(&report, "emt-btreemap");
    assert_eq!((emt.entries, emt.bytes_used, emt.bytes_per_run), (3, 36, Some(12.0)));
    assert_eq!(emt.percent_of_page, 45.0);
    assert!(
        report.mappings.iter().all(|cost| cost.refused == 0 && cost.bytes_used <= cost.bytes_peak)
    );
}

#[test]
fn flash_that_a_mapping_needs_for_itself_is_counted() {
    // 200 pages in a row twice, in a space of 2,048: a cache of 64 entries holds none of them then.
    let pages: String = (0..400).map(|at| format!("write,{},8\n", at % 200 * 8)).collect();
    let text = format!("op,start_sectors,length_sectors\n{pages}read,16376,8\n");
    let setup = Setup { unit: Unit::PAGE, mappings: vec!["demand".into()], ..setup() };
    let report = run(&text, &setup).unwrap();
    let demand = cost(&report, "demand");
    // Each 64 writes the oldest entry leaves, and its translation page is written, first at the 65th
    // write. Each later write reads what it supersedes; that page need not be read to be written.
    let per = |pages: f64| pages / 401.0;
    assert_eq!(demand.flash_writes_per_request, per(6.0));
    assert_eq!(demand.flash_reads_per_request, per(335.0));
    let others = report.mappings.iter().filter(|cost| cost.mapping != "demand");
    assert!(others.clone().count() == 2);
    for cost in others {
        assert_eq!((cost.flash_reads_per_request, cost.flash_writes_per_request), (0.0, 0.0));
    }
}

#[test]
fn units_space_and_passes_are_as_chosen() {
    let page = Setup { unit: Unit::PAGE, ..setup() };
    let report = run(TEXT, &page).unwrap();
    // A write of 4 to 12 takes two pages; a trim of 14 to 18 covers none.
    assert_eq!((report.logical_units, report.written_units, report.least_runs), (3, 2, 1));
    assert_eq!(report.not_replayed[0].reason, "trims of no whole unit");
    let small = Setup { space_bytes: Some(16 * 512), ..setup() };
    let report = run(TEXT, &small).unwrap();
    assert_eq!(
        (report.not_replayed[0].reason, report.not_replayed[0].requests),
        ("behind the space", 2)
    );
    assert_eq!((report.replayed, report.written_units), (3, 16));
    let thrice = run(TEXT, &Setup { passes: 3, ..setup() }).unwrap();
    assert_eq!((thrice.replayed, thrice.written_units, thrice.least_runs), (15, 14, 3));
    let some = Setup { mappings: vec!["compact".into()], ..setup() };
    let names: Vec<_> =
        run(TEXT, &some).unwrap().mappings.iter().map(|cost| cost.mapping).collect();
    assert_eq!(names, ["page", "page-2", "compact"]);
}

#[test]
fn what_cannot_run_is_refused_or_left_out_with_the_reason() {
    let unknown = Setup { mappings: vec!["compcat".into()], ..setup() };
    let error = run(TEXT, &unknown).unwrap_err().to_string();
    assert!(
        error.starts_with("there is no mapping 'compcat': choose from page, page-2, vet"),
        "{error}"
    );
    let far = "op,start_sectors,length_sectors\nwrite,4294967295,1\n";
    assert_eq!(
        run(far, &setup()).unwrap_err().to_string(),
        "4294967296 units of 512 bytes: a mapping holds 4294967294: choose a larger --unit, or one --volume"
    );
    // A flat table of 2 GiB is not made, and the others run.
    let large = "op,start_sectors,length_sectors\nwrite,536870911,1\nread,0,9\n";
    let report = run(large, &Setup { mappings: vec!["emt".into()], ..setup() }).unwrap();
    let reasons: Vec<_> =
        report.left_out.iter().map(|left| (left.mapping, &left.reason[..])).collect();
    assert_eq!(reasons[0], ("page", "it needs 2048 MiB: choose a larger --unit"));
    assert_eq!(cost(&report, "emt").time_by_page, None);
    assert!(cost(&report, "emt").percent_of_page < 1e-4);
}

#[test]
fn compact_keeps_its_bounds_on_a_real_trace() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/cloudphysics-sample");
    let path = folder.join("cloudPhysicsIO.csv.zst");
    if !path.exists() {
        println!("skipped: cloudPhysicsIO.csv.zst is not there");
        return;
    }
    let trace = BlockTrace::open(&path, Choices::default()).unwrap();
    let maps = ["vet", "emt", "emt-btreemap", "compact"].map(String::from).to_vec();
    let setup = Setup { mappings: maps, unit: Unit::PAGE, ..setup() };
    let report = replay(&trace, &setup, &|_| {}).unwrap();
    assert_eq!((report.replayed, report.least_runs), (113_872, 21_730));
    let (compact, emt) = (cost(&report, "compact"), cost(&report, "emt"));
    assert!(compact.bytes_per_run.unwrap() <= 6.5, "{compact:?}");
    assert!(compact.bytes_used as f64 <= 0.3 * emt.bytes_used as f64, "{compact:?}");
    assert!(report.mappings.iter().all(|cost| cost.refused == 0));
}
