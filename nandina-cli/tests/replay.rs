//! Block traces as a user meets them: `trace stats`, `replay` and `mappings`.

mod program;

use std::path::{Path, PathBuf};

use serde_json::Value;

use program::{json, nandina};

fn sample() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf();
    root.join("docs/samples/requests.csv").display().to_string()
}

/// The one line on standard error, with exit code 2.
fn mistake(arguments: &[&str]) -> String {
    let output = nandina(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_start_matches("nandina: ").trim_end().to_string()
}

fn text(arguments: &[&str]) -> String {
    let output = nandina(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The cells of a row of a table.
fn row<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let begins = format!("| {name} ");
    let line = text.lines().find(|line| line.starts_with(&begins)).unwrap();
    line.trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn mappings_are_listed_and_all_of_them_run() {
    let listed = json(&["mappings", "--json"]);
    let keys: Vec<_> =
        listed.as_array().unwrap().iter().map(|entry| entry["key"].as_str().unwrap()).collect();
    let table = text(&["mappings"]);
    for entry in listed.as_array().unwrap() {
        let cells = row(&table, entry["key"].as_str().unwrap());
        assert_eq!(
            (cells[1], cells[3]),
            (entry["summary"].as_str().unwrap(), entry["section"].as_str().unwrap())
        );
        assert_eq!(cells[2] == "heap", entry["needs_heap"].as_bool().unwrap());
    }
    let report = json(&["replay", &sample(), "--json"]);
    let ran: Vec<_> = report["mappings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cost| cost["mapping"].as_str().unwrap())
        .collect();
    assert_eq!(ran, keys);
}

#[test]
fn statistics_are_the_same_in_the_table_and_in_json() {
    let path = sample();
    let stats = json(&["trace", "stats", &path, "--json"]);
    let table = text(&["trace", "stats", &path]);
    let account = &stats["account"];
    assert_eq!((&stats["format"], &account["requests"]), (&"csv".into(), &400.into()));
    let kinds = ["reads", "writes", "trims", "flushes"];
    let sum: u64 = kinds.iter().map(|kind| account[kind].as_u64().unwrap()).sum();
    assert_eq!(sum, 400, "none is refused");
    for kind in ["writes", "reads", "trims"] {
        let cells = row(&table, kind);
        assert_eq!(cells[1], stats[kind]["requests"].to_string());
        assert_eq!(cells[4], format!("{:.2}", stats[kind]["canonical"].as_f64().unwrap()));
    }
    for histogram in ["sizes", "addresses"] {
        let writes =
            stats[histogram].as_array().unwrap().iter().map(|row| row["writes"].as_u64().unwrap());
        assert_eq!(writes.sum::<u64>(), account["writes"].as_u64().unwrap(), "{histogram}");
    }
    let runs = format!("in {} runs at least", stats["content"]["least_runs"]);
    assert!(table.contains(&runs), "{table}");
}

#[test]
fn a_replay_prints_the_same_figures_as_a_table_and_as_json() {
    let path = sample();
    let line = [
        "replay",
        &path,
        "--ftl",
        "none",
        "--map",
        "compact,emt,demand",
        "--unit",
        "page",
        "--passes",
        "2",
    ];
    let report = json(&[&line[..], &["--json"]].concat());
    let table = text(&line);
    let account = &report["account"];
    let used = ["reads", "writes", "trims"]
        .iter()
        .map(|kind| account[kind].as_u64().unwrap())
        .sum::<u64>();
    assert_eq!(report["replayed"], 2 * used);
    let costs = report["mappings"].as_array().unwrap();
    let names: Vec<_> = costs.iter().map(|cost| cost["mapping"].as_str().unwrap()).collect();
    assert_eq!(names, ["page", "page-2", "emt", "demand", "compact"]);
    for cost in costs {
        let cells = row(&table, cost["mapping"].as_str().unwrap());
        assert_eq!(cells[2], cost["bytes_used"].to_string());
        assert_eq!(cells[5], format!("{:.2}", cost["bytes_per_run"].as_f64().unwrap()));
        let share =
            100.0 * cost["bytes_used"].as_f64().unwrap() / costs[0]["bytes_used"].as_f64().unwrap();
        assert!((cost["percent_of_page"].as_f64().unwrap() - share).abs() < 1e-9);
        assert!(cost["ns_per_request"].as_f64().unwrap() > 0.0);
        // The second table has the work.
        let (_, work) = table.split_once("Work of a request").unwrap();
        let cells = row(work, cost["mapping"].as_str().unwrap());
        for (cell, key) in [(4, "flash_reads_per_request"), (5, "flash_writes_per_request")] {
            assert_eq!(cells[cell], format!("{:.3}", cost[key].as_f64().unwrap()));
        }
    }
    // All but times are the same each time.
    let without_times = |mut report: Value| {
        for cost in report["mappings"].as_array_mut().unwrap() {
            let cost = cost.as_object_mut().unwrap();
            cost.remove("ns_per_request").unwrap();
            cost.remove("time_by_page").unwrap();
        }
        report
    };
    let again = json(&[&line[..], &["--json"]].concat());
    assert_eq!(without_times(again), without_times(report));
}

#[test]
fn a_replay_on_a_chip_prints_the_same_figures_as_a_table_and_as_json() {
    let path = sample();
    let line = ["replay", &path, "--ftl", "page", "--device", "slc", "--map", "compact"];
    let report = json(&[&line[..], &["--json"]].concat());
    let table = text(&line);
    let work = &report["device_work"];
    assert_eq!(row(&table, "page programs")[1], work["programs"].to_string());
    assert_eq!(row(&table, "pages written by requests")[1], work["host_writes"].to_string());
    let (_, memory) = table.split_once("\nMemory\n").unwrap();
    let mappings = report["mappings"].as_array().unwrap();
    let names: Vec<_> = mappings.iter().map(|row| row["mapping"].as_str().unwrap()).collect();
    assert_eq!(names, ["page", "page-2", "compact"]);
    for mapping in mappings {
        let cells = row(memory, mapping["mapping"].as_str().unwrap());
        assert_eq!(cells[2], mapping["bytes_used"].to_string());
    }
    assert_eq!(mappings[0]["time_by_page"], 1.0);
    assert!(mappings[0]["requests_per_second"].as_f64().unwrap() > 0.0);
}

#[test]
fn mistakes_get_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let path = sample();
    for (arguments, expected) in [
        (
            vec!["replay", &path, "--map", "page,tree"],
            "there is no mapping 'tree': choose from page, page-2, vet",
        ),
        (
            vec!["replay", &path, "--ftl", "fats"],
            "invalid value 'fats' for '--ftl <FTL>' [possible values: none, page, block, bast, fast]",
        ),
        (
            vec!["replay", &path, "--ftl", "page", "--device", "zip"],
            "there is no device 'zip': choose from mlc, slc",
        ),
        (
            vec!["replay", &path, "--ftl", "page", "--device", "sd"],
            "sd replaces pages in place: it needs no FTL",
        ),
        (
            vec!["replay", &path, "--ftl", "page", "--unit", "page"],
            "--unit is for --ftl none: an FTL maps pages of its chip",
        ),
        (
            vec!["replay", &path, "--op", "7"],
            "--device, --chips, --op, --log-blocks and --transit are for an FTL: choose one by --ftl",
        ),
        (
            vec!["replay", &path, "--footprint"],
            "--footprint, --sort-moves, --victims and --trims are for an FTL: choose one by --ftl",
        ),
        (
            vec!["replay", &path, "--ftl", "fast", "--sort-moves"],
            "--sort-moves is for --ftl page: a hybrid FTL merges pages at their places",
        ),
        (
            vec!["replay", &path, "--ftl", "bast", "--victims", "fewest"],
            "--victims is for --ftl page: a hybrid FTL merges blocks in turn",
        ),
        (
            vec!["replay", &path, "--ftl", "page", "--victims", "tracked:8"],
            "--victims tracked:N is for indexes, not for an FTL",
        ),
        (
            vec!["replay", &path, "--ftl", "fast", "--trims", "volatile"],
            "--trims volatile is for --ftl page: trims of a hybrid FTL are durable",
        ),
        (
            vec!["replay", &path, "--trims", "durable"],
            "--footprint, --sort-moves, --victims and --trims are for an FTL: choose one by --ftl",
        ),
        (
            vec!["replay", &path, "--ftl", "fast", "--map", "compact"],
            "--map is for --ftl page: a hybrid FTL has maps of its own",
        ),
        (
            vec!["replay", &path, "--ftl", "page", "--log-blocks", "4"],
            "--log-blocks is for bast and fast: choose one of them",
        ),
        (
            vec!["replay", &path, "--ftl", "fast", "--log-blocks", "1"],
            "ftl:fast needs 2 log blocks, not 1",
        ),
        (
            vec!["replay", &path, "--unit", "1000"],
            "use sector, page, or a power of two in bytes, 512 to 1048576",
        ),
        (vec!["replay", &path, "--passes", "0"], "is not in 1 to 1000"),
        (
            vec!["trace", "stats", &path, "--format", "spc"],
            "line 1: 4 fields: ASU,sector,bytes,r or w,time in s was expected",
        ),
        (vec!["trace", "stats", &path, "--volume", "sda"], "no request is to the volume 'sda'"),
        (vec!["trace", "stats", "absent.csv"], "absent.csv: cannot be read"),
    ] {
        let text = mistake(&arguments);
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    let two = file("two.trace", "1000 0 8 8 1\n");
    let text = mistake(&["replay", two.to_str().unwrap()]);
    assert!(
        text.contains(
            "more than one format fits its first lines: choose --format disksim (time-in-ms"
        ),
        "{text}"
    );
    let bad = file("bad.csv", "op,start_sectors,length_sectors\nwrite,0,8\nwrite,x,8\n");
    assert_eq!(
        mistake(&["replay", bad.to_str().unwrap()]),
        format!(
            "{}: line 3: field 2, start: 'x': a whole number of sectors of 512 bytes, 0 to 2^44, was expected",
            bad.display()
        )
    );
}

#[test]
fn a_trace_is_made_labelled_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.csv");
    let file = path.to_str().unwrap();
    let made = ["trace", "make", "wdev", "--requests", "5000"];
    let shown = text(&made);
    assert!(shown.starts_with("# synthetic: nandina trace make wdev, seed 1"), "{shown}");
    assert!(text(&[&made[..], &["-o", file]].concat()).is_empty());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), shown);
    let stats = json(&["trace", "stats", file, "--json"]);
    assert_eq!(stats["account"]["requests"], 5000);
    assert_eq!(stats["trace"], "made.csv, synthetic");
    assert_eq!(stats["address_space_bytes"], 51_u64 << 30);
    let again = mistake(&[&made[..], &["-o", file]].concat());
    assert!(again.ends_with("is there already: choose another file"), "{again}");
    let space = mistake(&["trace", "make", "homes", "--space-gib", "16"]);
    assert_eq!(space, "homes has 542 GiB: leave --space-gib out");
}

#[test]
fn a_trace_is_replayed_on_each_hybrid_ftl() {
    let path = sample();
    for (ftl, log_blocks) in [("block", None), ("bast", Some("4")), ("fast", Some("4"))] {
        let mut line = vec!["replay", &path, "--ftl", ftl, "--device", "slc"];
        line.extend(log_blocks.iter().flat_map(|count| ["--log-blocks", *count]));
        let report = json(&[&line[..], &["--json"]].concat());
        assert_eq!(report["ftl"], format!("ftl:{ftl}"));
        let work = &report["device_work"];
        let count = |name: &str| work[name].as_u64().unwrap();
        assert_eq!(count("programs"), count("host_writes") + count("moved") + count("own"));
        let merges = ["switch_merges", "partial_merges", "full_merges"].map(count);
        // The sample's few pages all fit in the log blocks of FAST, which any page may take.
        assert_eq!(ftl != "fast", merges.iter().sum::<u64>() > 0, "{ftl}: {merges:?}");
        assert!(ftl != "block" || merges[..2] == [0, 0], "{merges:?}");
        let page = json(&["replay", &path, "--ftl", "page", "--device", "slc", "--json"]);
        assert_eq!(count("host_writes"), page["device_work"]["host_writes"]);
        let text = text(&line);
        assert!(text.contains("full merges") && text.contains("% of a page map"), "{text}");
        assert!(!text.contains("mapping"), "{text}");
        // It is its map, so that either option names it.
        line[2] = "--map";
        assert_eq!(json(&[&line[..], &["--json"]].concat()), report);
        line.extend(["--ftl", ftl]);
        assert_eq!(json(&[&line[..], &["--json"]].concat()), report);
    }
}
