//! The program as a user meets it: its tables, its JSON, and one line for each mistake.

use std::process::{Command, Output};

use serde_json::Value;

fn nandina(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandina")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = nandina(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The one line on standard error, with exit code 2.
fn mistake(arguments: &[&str]) -> String {
    let output = nandina(arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_start_matches("nandina: ").trim_end().to_string()
}

#[test]
fn compare_prints_a_table_and_json_with_the_same_figures() {
    let arguments = ["compare", "--records", "3000", "--seed", "4"];
    let object = json(&[&arguments[..], &["--json"]].concat());
    assert_eq!(
        (&object["device"], &object["seed"], &object["records"]),
        (&"mlc".into(), &4.into(), &3000.into())
    );
    let systems = object["systems"].as_array().unwrap();
    let keys: Vec<_> = systems.iter().map(|system| system["system"].as_str().unwrap()).collect();
    let listed = json(&["systems", "--json"]);
    let known: Vec<_> =
        listed.as_array().unwrap().iter().map(|system| system["key"].as_str().unwrap()).collect();
    assert_eq!(keys, known, "compare runs every registered system");
    let text = String::from_utf8(nandina(&arguments).stdout).unwrap();
    for system in systems {
        assert!(
            system["ram_bytes"].as_u64().unwrap() > 0 && system["height"].as_u64().unwrap() > 0
        );
        let phases = system["phases"].as_array().unwrap();
        let names: Vec<_> = phases.iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
        assert_eq!(names, ["insert", "lookup", "scan", "update", "delete"]);
        for phase in phases {
            for metric in ["reads_per_op", "programs_per_op", "erases_per_op"] {
                assert!(phase[metric].as_f64().unwrap() >= 0.0);
            }
            let ms = |metric: &str| phase[metric].as_f64().unwrap();
            assert!(ms("ms_mean") > 0.0 && ms("ms_p99") <= ms("ms_max"));
            assert!(text.contains(&format!("{:.3}", ms("ms_mean"))), "{text}");
        }
        assert!(phases[0]["programs_per_op"].as_f64().unwrap() >= 1.0);
        assert_eq!(phases[1]["programs_per_op"].as_f64().unwrap(), 0.0);
    }
    assert_eq!(object, json(&[&arguments[..], &["--json"]].concat()), "same seed, same figures");
}

#[test]
fn lists_name_every_system_and_device() {
    let text = String::from_utf8(nandina(&["systems"]).stdout).unwrap();
    assert!(text.contains("wandering") && text.contains("mu") && text.contains("section 3"));
    let devices = json(&["devices", "--json"]);
    let devices = devices.as_array().unwrap();
    assert_eq!(devices[0]["read_us"], 165.6);
    assert_eq!(devices[1]["program_us"], 252.8);
}

#[test]
fn reproduce_prints_the_paper_beside_ours() {
    let object = json(&["reproduce", "mu-tree", "--quick", "--json"]);
    assert_eq!(object["paper"], "mu-tree");
    let experiments = object["experiments"].as_array().unwrap();
    let table = experiments.iter().find(|experiment| experiment["id"] == "table5").unwrap();
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 18);
    let row = |system: &str, metric: &str| {
        let is_it = |row: &&Value| row["system"] == system && row["metric"] == metric;
        rows.iter().find(is_it).unwrap()["measured"].as_f64().unwrap()
    };
    assert_eq!(row("wandering", "reads_per_retrieval"), 3.0);
    assert!((1.0..1.3).contains(&row("mu", "programs_per_insert")));
    assert!((3.0..4.5).contains(&row("wandering", "programs_per_insert")));
    for (claim, holds) in
        table["orderings"].as_array().unwrap().iter().map(|pair| (&pair[0], &pair[1]))
    {
        assert_eq!(holds, &Value::Bool(true), "{claim}");
    }
}

#[test]
fn a_file_is_compared_and_equal_keys_are_kept_or_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weather.csv");
    let rows = (0..500).map(|row| format!("{row},{}\n", row % 20 - 10));
    std::fs::write(&path, format!("time,temperature\n{}", rows.collect::<String>())).unwrap();
    let path = path.to_str().unwrap();
    let kept = json(&["compare", "--input", path, "--key", "temperature", "--json"]);
    assert!(kept["work"].as_str().unwrap().contains("20 distinct keys: all are kept"));
    assert_eq!(kept["systems"][0]["records"], 450);
    let replaced = json(&[
        "compare",
        "--input",
        path,
        "--key",
        "temperature",
        "--duplicates",
        "replace",
        "--json",
    ]);
    assert!(replaced["systems"][0]["records"].as_u64().unwrap() <= 20);
    assert_eq!(
        mistake(&["compare", "--input", path, "--key", "humidity"]),
        format!("{path}: there is no column 'humidity': it has time, temperature")
    );
}

#[test]
fn mistakes_get_one_line_and_exit_code_2() {
    assert_eq!(
        mistake(&["compare", "--systems", "mu,btree"]),
        "there is no system 'btree': choose from wandering, mu"
    );
    assert_eq!(
        mistake(&["compare", "--device", "floppy"]),
        "there is no device 'floppy': choose from mlc, slc, tlc, nand-2k, nor, dataflash, dataflash-264, \
         sd, sd-2k"
    );
    let ram = mistake(&["compare", "--ram", "4096"]);
    assert!(
        ram.contains("4096 bytes of RAM are too few, it needs ") && ram.contains("raise --ram"),
        "{ram}"
    );
    let full = mistake(&["compare", "--records", "200000", "--value-size", "500"]);
    assert!(full.contains("is full after") && full.contains("choose a larger --device"), "{full}");
    let short = mistake(&["compare", "--key-size", "1"]);
    assert!(short.contains("choose a larger --key-size"), "{short}");
    let large = mistake(&["compare", "--value-size", "4000"]);
    assert!(large.contains("can never fit"), "{large}");
    let missing = mistake(&["compare", "--input", "no-such-file.csv", "--key", "a"]);
    assert!(missing.starts_with("no-such-file.csv: cannot be read"), "{missing}");
}

#[test]
fn plan_tells_ram_and_bounds_and_what_does_not_fit() {
    let plans = json(&["plan", "--device", "slc", "--records", "50000", "--json"]);
    for plan in plans["plans"].as_array().unwrap() {
        assert_eq!(plan["fits"], true);
        let get = &plan["at_most"]["get"];
        assert_eq!(get["reads"], plan["height"]);
        assert!(
            (get["ms"].as_f64().unwrap() / 0.0778 - get["reads"].as_f64().unwrap()).abs() < 1e-6
        );
        let change = |name: &str| plan["at_most"][name]["programs"].as_u64().unwrap();
        assert!(change("change") < change("change_after_cuts"));
    }
    let text = String::from_utf8(nandina(&["plan", "--device", "nor"]).stdout).unwrap();
    assert!(text.contains("NO"), "10,000 records do not fit in a tree of 256-byte pages: {text}");
    assert!(mistake(&["plan", "--key-size", "65"]).ends_with("key_bytes must be 1 to 64"));
}

#[test]
fn torture_counts_what_it_did_and_replays_cases_by_name() {
    let reports = json(&["torture", "--mode", "linear", "--json"]);
    for report in reports.as_array().unwrap() {
        assert!(report["cuts"].as_u64().unwrap() > 500);
        assert!(report["violations"].as_array().unwrap().is_empty());
    }
    let case = "exhaustive/mu/seed 1/32 x 60/100 ones/40 mixture";
    let output = nandina(&["torture", "--case", case]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{case}: survived\n"));
    assert!(mistake(&["torture", "--case", "mu/1"]).starts_with("'mu/1' is no name of a case"));
    assert!(
        mistake(&["torture", "--systems", "b-tree"]).starts_with("there is no system 'b-tree'")
    );
}

#[test]
fn compare_lists_the_systems_that_cannot_run_and_why() {
    let arguments = ["compare", "--device", "nor", "--records", "3000"];
    let object = json(&[&arguments[..], &["--json"]].concat());
    let refused = object["refused"].as_array().unwrap();
    assert_eq!(refused[0]["system"], "mu");
    let reason = refused[0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("cannot hold a tree higher than 4: choose a --device with larger pages")
    );
    assert_eq!(object["systems"].as_array().unwrap().len(), 1, "the others run all the same");
    let text = String::from_utf8(nandina(&arguments).stdout).unwrap();
    assert!(text.contains(&format!("Cannot run: mu: {reason}")), "{text}");
    // If none can, that is the answer.
    let none = mistake(&["compare", "--device", "nor", "--value-size", "200"]);
    assert!(none.contains("can never fit twice in a leaf"), "{none}");
}
