//! The papers' experiments as a user runs them; VMTree's without the sensor series.

mod program;

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use program::{json, nandina};

/// The experiment of a reproduction with this name.
fn experiment<'o>(object: &'o Value, id: &str) -> &'o Value {
    let mut experiments = object["experiments"].as_array().unwrap().iter();
    experiments.find(|it| it["id"] == id).unwrap_or_else(|| panic!("no experiment {id}"))
}

/// A measured figure of an experiment; of any system if `system` is empty.
fn measured(object: &Value, id: &str, system: &str, config: &str, metric: &str) -> f64 {
    let is_it = |row: &&Value| {
        (system.is_empty() || row["system"] == system)
            && row["config"] == config
            && row["metric"] == metric
    };
    let mut rows = experiment(object, id)["rows"].as_array().unwrap().iter();
    let row = rows.find(is_it).unwrap_or_else(|| panic!("{id}: no {metric} of {config}"));
    row["measured"].as_f64().unwrap()
}

#[test]
fn reproduce_runs_vmtree_beside_the_paper_and_the_published_code() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().to_str().unwrap();
    let nowhere = folder.path().join("nowhere");
    std::fs::create_dir(&nowhere).unwrap();
    let sensors = nowhere.to_str().unwrap();
    let object = json(&[
        "reproduce",
        "vmtree",
        "--quick",
        "--json",
        "--figures",
        figures,
        "--sensors",
        sensors,
    ]);
    assert_eq!(object["paper"], "vmtree");
    let experiment = |id: &str| experiment(&object, id);
    let measured = |id: &str, system: &str, config: &str, metric: &str| {
        measured(&object, id, system, config, metric)
    };
    let at = "sd random M3 L0";
    assert!((1.0..1.2).contains(&measured("figure6", "btree", at, "writes_per_insert")));
    assert!((1.0..1.2).contains(&measured("figure6", "vm", at, "writes_per_insert")));
    assert!((1.0..2.1).contains(&measured("published", "vm", at, "reads_per_lookup")));
    let parents = |policy: &str| measured("folds", "vm", policy, "of them parents");
    assert!(parents("twice-the-share") < parents("table-full"));
    assert!(parents("table-full") < parents("2-children"), "a program for every two mappings");
    // A tenth of the writes is not compared with the paper's.
    for (id, metric) in [("section5-4", "writes, all inserts"), ("folds", "writes")] {
        let rows = experiment(id)["rows"].as_array().unwrap();
        let totals: Vec<_> = rows.iter().filter(|row| row["metric"] == metric).collect();
        assert!(!totals.is_empty() && totals.iter().all(|row| row["paper"].is_null()), "{id}");
    }
    // Without the series their parts report it, and no figure is invented in their place.
    let refusals = experiment("figure8")["refusals"].to_string();
    assert!(refusals.contains("nowhere") && refusals.contains("--sensors"), "{refusals}");
    assert!(experiment("figure8")["rows"].as_array().unwrap().is_empty());
    for id in ["figure7", "folds"] {
        for pair in experiment(id)["orderings"].as_array().unwrap() {
            assert_eq!(pair[1], Value::Bool(true), "{}", pair[0]);
        }
    }
    for figure in ["figure6", "figure7", "figure10", "figure11", "section5-4", "folds"] {
        for extension in ["svg", "png"] {
            let drawing = folder.path().join(format!("vmtree-{figure}.{extension}"));
            let bytes = std::fs::read(&drawing).unwrap();
            assert!(bytes.len() > 5_000, "{} has {} bytes", drawing.display(), bytes.len());
        }
    }
}

#[test]
fn series_that_are_not_given_are_said_and_not_looked_for_outside_the_project() {
    let help = String::from_utf8(nandina(&["reproduce", "--help"]).stdout).unwrap();
    assert!(help.contains("github.com/ubco-db/EmbedDB") && !help.contains("../"), "{help}");
    let ignored = nandina(&["reproduce", "mu-tree", "--sensors", "x"]);
    assert_eq!(ignored.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(ignored.stderr).unwrap(),
        "nandina: --sensors is for vmtree: leave it out\n"
    );
    let absent = nandina(&["reproduce", "vmtree", "--sensors", "nowhere"]);
    assert_eq!(absent.status.code(), Some(2));
    let text = String::from_utf8(absent.stderr).unwrap();
    assert_eq!(text, "nandina: --sensors nowhere: there is no such folder\n");
}

#[test]
fn reproduce_runs_extents_with_a_verdict_on_every_claim() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().to_str().unwrap();
    // Beside the samples, two files that two formats fit; one is chosen for the first.
    let recorded = tempfile::tempdir().unwrap();
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/samples");
    for sample in std::fs::read_dir(samples).unwrap().map(Result::unwrap) {
        std::fs::copy(sample.path(), recorded.path().join(sample.file_name())).unwrap();
    }
    for name in ["a.trace", "b.trace"] {
        let text = "0 0 96 8 0\n9000 0 200 16 1\n";
        std::fs::write(recorded.path().join(name), text).unwrap();
    }
    let object = json(&[
        "reproduce",
        "extents",
        "--quick",
        "--json",
        "--figures",
        figures,
        "--traces",
        recorded.path().to_str().unwrap(),
        "--trace-format",
        "a.trace=ssdsim",
    ]);
    assert_eq!((&object["paper"], &object["quick"]), (&"extents".into(), &true.into()));
    let experiment = |id: &str| experiment(&object, id);
    for id in ["table1", "table2", "table3", "table4", "lemmas", "recorded"] {
        assert!(!experiment(id)["rows"].as_array().unwrap().is_empty(), "{id}");
    }
    let rows = |id: &str| experiment(id)["rows"].as_array().unwrap().clone();
    let measured = |id: &str, system: &str, config: &str, metric: &str| {
        measured(&object, id, system, config, metric)
    };
    // Exact on every machine: counts of 60,000 requests, and bytes.
    let mean = measured("table1", "trace", "wsf, synthetic", "mean write");
    assert!((22.0..23.0).contains(&mean), "{mean}");
    assert_eq!(
        measured("figure12", "vet", "homes, synthetic", "canonical extents of a write"),
        1.0
    );
    assert!(
        measured("figure16", "page", "1024 GB, synthetic", "PMT by EMT (paper: up to)") > 100.0
    );
    for system in ["bast", "fast"] {
        // 4 bytes for each of 131,072 blocks, and 660 for each of 16 + 4 + 16 log blocks.
        let bytes = f64::from(4 * 131_072 + 36 * 660);
        let map = measured("figure15", system, "wsf, synthetic", "map, 16 log blocks");
        assert_eq!(map, bytes / f64::from(1 << 20));
        let map = measured(
            "figure16",
            system,
            "1024 GB, synthetic",
            "map, log blocks of 30 % of the space",
        );
        assert!((800.0..820.0).contains(&map), "{system}: {map}");
    }
    assert!(measured("table2", "vet-lis", "wdev, synthetic", "memory, LIS by BIS") > 1.0);
    assert_eq!(measured("recorded", "trace", "requests.csv", "requests"), 400.0);
    assert_eq!(measured("recorded", "trace", "a.trace", "requests"), 2.0);
    let refusals = experiment("recorded")["refusals"].as_array().unwrap().clone();
    let [two_fit, others] = &refusals[..] else { panic!("{refusals:?}") };
    assert!(two_fit.to_string().contains("choose --trace-format b.trace=disksim"), "{two_fit}");
    assert_eq!(*others, "3 files that are no block traces");
    // Recorded traces are beside nothing of the paper, and a quick run has no verdicts on rows.
    assert!(rows("recorded").iter().all(|row| row["paper"].is_null()));
    assert!(rows("figure15").iter().all(|row| row["verdict"].is_null()));
    assert!(experiment("figure13")["refusals"].to_string().contains("a quick run"));
    let claims = experiment("claims")["orderings"].as_array().unwrap();
    let of = |id: &str| {
        let begins = [format!("{id}:"), format!("{id} (")];
        let is_it =
            |pair: &&Value| begins.iter().any(|begin| pair[0].as_str().unwrap().starts_with(begin));
        claims.iter().filter(is_it).map(|pair| pair[1] == true).collect::<Vec<_>>()
    };
    for claim in (1..=21).filter(|claim| ![2, 3].contains(claim)) {
        assert!(!of(&format!("c{claim}")).is_empty(), "c{claim}");
    }
    // Those that follow from counts and bytes alone.
    for claim in ["c1", "c6", "c15", "c16", "c18", "c19", "c20"] {
        assert_eq!(of(claim), [true], "{claim}");
    }
    // Of the page map and the paper's hybrid map; of those of our hybrid FTLs, with 30 % log blocks
    // and with 16 of them.
    assert_eq!(of("c4"), [true, true, false]);
    assert_eq!(of("c17"), [true, false, false]);
    let drawn = [8, 9, 10, 11, 12, 14, 15, 16].map(|figure| format!("extents-figure{figure}"));
    for path in drawn.iter().flat_map(|name| [format!("{name}.svg"), format!("{name}.png")]) {
        let bytes = std::fs::read(folder.path().join(&path)).unwrap();
        assert!(bytes.len() > 5_000, "{path} has {} bytes", bytes.len());
    }
}

#[test]
fn recorded_traces_are_for_extents_and_their_folder_is_named_if_it_is_not_there() {
    let ignored = nandina(&["reproduce", "vmtree", "--traces", "x"]);
    assert_eq!(ignored.status.code(), Some(2));
    let text = String::from_utf8(ignored.stderr).unwrap();
    assert_eq!(text, "nandina: --traces is for extents: leave it out\n");
    let absent = nandina(&["reproduce", "extents", "--traces", "nowhere"]);
    assert_eq!(absent.status.code(), Some(2));
    let text = String::from_utf8(absent.stderr).unwrap();
    assert!(text.contains("nowhere") && text.contains("choose another --traces"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().to_str().unwrap();
    for (chosen, expected) in [
        ("a.trace", "--trace-format a.trace: expected the name of a file, '=' and a format"),
        ("a.trace=spc", "has no file of that name"),
    ] {
        let arguments = ["reproduce", "extents", "--traces", traces, "--trace-format", chosen];
        let refused = nandina(&arguments);
        assert_eq!(refused.status.code(), Some(2));
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(text.contains(expected), "{text}");
    }
    let alone = nandina(&["reproduce", "extents", "--alone", "wsf,vet,reads"]);
    assert_eq!(alone.status.code(), Some(2));
}

#[test]
fn reproduce_runs_wpcb_with_a_word_on_every_claim() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().to_str().unwrap();
    let object = json(&["reproduce", "wpcb", "--quick", "--json", "--figures", figures]);
    assert_eq!((&object["paper"], &object["quick"]), (&"wpcb".into(), &true.into()));
    let experiment = |id: &str| experiment(&object, id);
    let measured = |id: &str, config: &str, metric: &str| measured(&object, id, "", config, metric);
    // Counts of 50,000 inserts, the same on every machine.
    let programs = |side: &str| measured("figure11", &format!("rs 0, FAST N=6{side}"), "programs");
    let (btree, printed, improved) =
        (programs(""), programs(", C=51 as printed"), programs(", C=51"));
    assert!((4.4..4.6).contains(&btree), "{btree}");
    assert!((2.6..2.7).contains(&printed), "{printed}");
    assert!((2.1..2.2).contains(&improved), "{improved}");
    // The trees that are only counted: an insert into dIPL is a sector, and now and then a block.
    let rows = experiment("figure11")["rows"].as_array().unwrap();
    let counted = |system: &str| {
        let mut of =
            rows.iter().filter(|row| row["system"] == system && row["metric"] == "programs");
        of.next().unwrap()["measured"].as_f64().unwrap()
    };
    let (dipl, over_ftl, mu_star) = (counted("dipl"), counted("dipl-ftl"), counted("mu-star"));
    assert!((1.3..1.4).contains(&dipl), "{dipl}");
    assert!((4.9..5.1).contains(&over_ftl), "{over_ftl}");
    assert!((5.4..5.5).contains(&mu_star), "{mu_star}");
    let page_map = measured("log-blocks", "page map, 57 spare blocks", "programs");
    assert!((1.0..1.2).contains(&page_map), "{page_map}");
    // A page map gains nothing by a buffer: as printed each page is programmed almost twice.
    let over = |buffer: &str| {
        measured("page-map", &format!("rs 0, page map, 111 spare blocks{buffer}"), "programs")
    };
    let (bare, printed, improved) = (over(""), over(", C=51 as printed"), over(", C=51"));
    assert!((1.0..1.05).contains(&bare) && (1.65..1.75).contains(&printed), "{bare}, {printed}");
    assert!((bare..1.06).contains(&improved), "{improved}");
    // The tree is as high as the formulas say, and removals write one page.
    let removal = measured("section5", "(4) removals, rs 0, height 3", "writes");
    assert!((1.0..1.01).contains(&removal), "{removal}");
    let notes = experiment("log-blocks")["notes"].as_array().unwrap();
    assert!(notes[0].as_str().unwrap().contains("than B-tree over the N log blocks alone"));
    // Table 2: a word on each of nine trees by eight properties, and what a variant shows.
    let table = experiment("table2");
    let words = table["orderings"].as_array().unwrap();
    assert_eq!(words.len(), 72);
    let said = |tree: &str, column: &str| {
        let is_it =
            |pair: &&Value| pair[0].as_str().unwrap().starts_with(&format!("{tree}, {column}:"));
        words.iter().find(is_it).unwrap().clone()
    };
    for (tree, column, holds) in [
        ("BFTL", "nodes per page", true),
        ("BFTL", "page occupancy", false),
        ("IBSF", "write operations", true),
        ("LA-tree", "resource of buffer", true),
        ("LA-tree", "risk of data loss", false),
        ("MB-tree", "risk of data loss", true),
        ("WPCB", "split operations", true),
    ] {
        let said = said(tree, column);
        assert_eq!(said[1], holds, "{said}");
    }
    let durable = measured("table2", "LA-tree, each change durable", "writes");
    assert!((1.25..1.4).contains(&durable), "{durable}");
    // Each claim has a verdict, and names what shows it.
    let claims = experiment("claims");
    let rows = claims["claims"].as_array().unwrap();
    assert_eq!(rows.len(), 21);
    let verdict = |claim: usize| rows[claim - 1]["verdict"].as_str().unwrap();
    for (claim, row) in (1..).zip(rows) {
        assert_eq!(row["id"], format!("C{claim}"));
        assert!(["holds", "in part", "does not hold"].contains(&verdict(claim)), "{row}");
        assert!(!row["shown_by"].as_str().unwrap().is_empty(), "{row}");
    }
    for claim in [1, 2, 3, 5, 6, 8, 19] {
        assert_eq!(verdict(claim), "holds", "C{claim}");
    }
    // The tables that show what is counted, and why figures do not come out.
    let divided = |system| {
        let config = "50000 ascending keys, height 3";
        crate::measured(&object, "splits", system, config, "leaves divided")
    };
    // 780 leaves, and the first root.
    let found = ["btree-merging", "btree", "wpcb"].map(divided);
    assert_eq!(found, [0.0156, 0.00002, 0.0]);
    for id in ["splits", "c12", "c13", "c15"] {
        for pair in experiment(id)["orderings"].as_array().unwrap() {
            assert_eq!(pair[1], Value::Bool(true), "{id}: {}", pair[0]);
        }
    }
    let drawn = ["figure2", "figure9", "figure10", "figure11-erases", "figure12", "log-blocks"];
    for figure in drawn.into_iter().chain(["figure13", "figure14", "figure15"]) {
        for kind in ["svg", "png"] {
            let path = folder.path().join(format!("wpcb-{figure}.{kind}"));
            let bytes = std::fs::read(&path).unwrap();
            assert!(bytes.len() > 5_000, "{figure}.{kind} has {} bytes", bytes.len());
        }
    }
}

#[test]
fn reproduce_runs_tnc_on_a_tree_made_by_rule_with_a_word_on_every_claim() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().to_str().unwrap();
    let object = json(&["reproduce", "tnc", "--quick", "--json", "--figures", figures]);
    assert_eq!((&object["paper"], &object["quick"]), (&"tnc".into(), &true.into()));
    assert!(object["scale"].as_str().unwrap().contains("SYNTHETIC"));
    let experiment = |id: &str| experiment(&object, id);
    let measured = |id: &str, config: &str, metric: &str| measured(&object, id, "", config, metric);
    // Counts, the same on every machine. Fitted: the nodes, and those written without a shrink.
    let sample = |metric| measured("sample", "unpacked, then removed", metric);
    assert_eq!((sample("most nodes"), sample("changes, unpacking")), (2_315.0, 18_034.0));
    let with = |config| measured("table1", config, "nodes with TNC");
    assert_eq!(with("2500 nodes, 25 %, journal 33.2 MB"), 1_245.0);
    assert_eq!(with("2000 nodes, 75 %, journal 33.2 MB"), 2_003.0);
    assert_eq!(with("500 nodes, 50 %, no journal bound"), 2_762.0);
    for id in ["table2", "table3", "buffers", "sync"] {
        assert!(!experiment(id)["rows"].as_array().unwrap().is_empty(), "{id}");
    }
    assert!(experiment("ubifs")["refusals"].to_string().contains("--manifest"));
    let claims = experiment("claims");
    let orders = claims["orderings"].as_array().unwrap().iter().map(|pair| &pair[0]);
    let said: Vec<&str> = orders
        .chain(claims["notes"].as_array().unwrap())
        .map(|text| text.as_str().unwrap())
        .collect();
    for claim in 1..=14 {
        let of = said.iter().filter(|text| text.starts_with(&format!("c{claim}:")));
        assert_eq!(of.count(), 1, "c{claim}");
    }
    // The store itself: counts of its runs, and a place of `tnc` for each work that can be done.
    let commits = |clean_up: &str| {
        let config = format!("NAND, fanout 8, 4096 bytes, {clean_up}, groups of 1, random");
        measured("sweep", &config, "commits")
    };
    assert_eq!((commits("oldest first"), commits("25 %")), (76.0, 188.0));
    let notes = experiment("which")["notes"].to_string();
    assert!(notes.contains("groups of 64: tnc is the best") && notes.contains("tnc loses"));
    assert!(experiment("nor")["notes"].to_string().contains("at fanout 8"));
    for figure in [
        "figure3-fitted",
        "figure3-no-bound",
        "figure4",
        "table2-flash",
        "table2-ram",
        "sweep-nand-commits",
        "sweep-nor-fanout-64",
    ] {
        for kind in ["svg", "png"] {
            let path = folder.path().join(format!("tnc-{figure}.{kind}"));
            let bytes = std::fs::read(&path).unwrap();
            assert!(bytes.len() > 5_000, "{figure}.{kind} has {} bytes", bytes.len());
        }
    }
}

#[test]
fn figures_of_several_seeds_are_means() {
    let object = json(&["reproduce", "tnc", "--quick", "--json", "--seed", "3", "--seeds", "2"]);
    assert_eq!((&object["seed"], &object["seeds"]), (&3.into(), &2.into()));
    assert!(object["experiments"].as_array().unwrap().len() > 3);
    let none = nandina(&["reproduce", "tnc", "--seeds", "0"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8(none.stderr).unwrap().contains("0 is not in 1 to 100"));
}

#[test]
fn reproduce_runs_rosette_beside_its_prototype() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().to_str().unwrap();
    let object = json(&["reproduce", "rosette", "--quick", "--json", "--figures", figures]);
    assert_eq!((&object["paper"], &object["quick"]), (&"rosette".into(), &true.into()));
    let experiment = |id: &str| experiment(&object, id);
    let measured = |id: &str, config: &str, metric: &str| measured(&object, id, "", config, metric);
    // Counts, the same on every machine.
    assert_eq!(measured("uniform", "lookup", "reads"), 0.995_3);
    assert_eq!(measured("uniform", "update", "programs"), 1.011_4);
    assert_eq!(measured("uniform", "insert", "programs"), 1.014);
    assert_eq!(measured("uniform", "delete", "programs"), 1.015_2);
    assert_eq!(measured("orders", "inserts, 64 in a row", "programs"), 1.158_1);
    assert_eq!(measured("orders", "queue of 1,000 records", "valid pages"), 3.0);
    let half_full = measured("full", "50 % leaves, uniform", "programs");
    assert!((1.5..1.6).contains(&half_full), "{half_full}");
    assert!(experiment("full")["refusals"].to_string().contains("90 % leaves, uniform"));
    let reads = |way: &str| measured("mounts", &format!("12 MiB, {way}"), "reads, mean");
    assert!(reads("checkpoint for each block") < reads("checkpoint every 8 blocks"));
    assert!(reads("checkpoint every 8 blocks") < reads("bare pages"));
    for kind in ["svg", "png"] {
        let bytes = std::fs::read(folder.path().join(format!("rosette-full.{kind}"))).unwrap();
        assert!(bytes.len() > 5_000, "{kind} has {} bytes", bytes.len());
    }
}

#[test]
fn a_list_of_files_is_for_tnc_and_is_named_if_it_is_not_there() {
    let ignored = nandina(&["reproduce", "wpcb", "--manifest", "x"]);
    assert_eq!(ignored.status.code(), Some(2));
    let text = String::from_utf8(ignored.stderr).unwrap();
    assert_eq!(text, "nandina: --manifest is for tnc: leave it out\n");
    let absent = nandina(&["reproduce", "tnc", "--manifest", "nowhere.tsv"]);
    assert_eq!(absent.status.code(), Some(2));
    let text = String::from_utf8(absent.stderr).unwrap();
    assert!(text.starts_with("nandina: nowhere.tsv: cannot be read"), "{text}");
}

#[test]
fn the_list_of_linux_6_1_gives_the_nodes_of_its_ubifs() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/linux-6.1-manifest");
    let path = shared.join("linux-source-6.1.192-2.manifest.tsv.zst");
    if !path.exists() {
        // Not by a macro: the test harness would capture it.
        writeln!(std::io::stderr(), "skipped: the list of Linux 6.1 is not beside the project")
            .unwrap();
        return;
    }
    let path = path.to_str().unwrap();
    let object = json(&["reproduce", "tnc", "--quick", "--json", "--manifest", path]);
    let experiment = experiment(&object, "ubifs");
    let measured: Vec<f64> = experiment["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["measured"].as_f64().unwrap())
        .collect();
    assert_eq!(
        measured,
        [234_603.0, 3_100.0, 163_056.0, 1_464.0, 144_522.0, 733.0, 120_069.0, 368.0]
    );
    let orderings = experiment["orderings"].as_array().unwrap();
    assert!(orderings.len() == 2 && orderings.iter().all(|pair| pair[1] == true), "{orderings:?}");
}
