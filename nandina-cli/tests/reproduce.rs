//! The VMTree paper's experiments as a user runs them, without the sensor series.

mod program;

use serde_json::Value;

use program::{json, nandina};

#[test]
fn reproduce_runs_vmtree_beside_the_paper_and_the_published_code() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().to_str().unwrap();
    let nowhere = folder.path().join("nowhere");
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
    let experiments = object["experiments"].as_array().unwrap();
    let experiment = |id: &str| experiments.iter().find(|it| it["id"] == id).unwrap();
    let measured = |id: &str, system: &str, config: &str, metric: &str| {
        let is_it = |row: &&Value| {
            row["system"] == system && row["config"] == config && row["metric"] == metric
        };
        let rows = experiment(id)["rows"].as_array().unwrap();
        rows.iter().find(is_it).unwrap()["measured"].as_f64().unwrap()
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
}
