//! What `compare` refuses before it makes any work, and what idle steps do.

mod program;

use std::process::Command;

use serde_json::Value;

use program::{json, nandina};

#[test]
fn records_that_cannot_fit_are_refused_before_they_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    let lookups: String = (0..60_000).map(|key| format!("lookup,{key}\n")).collect();
    std::fs::write(&trace, format!("nandina-trace,1,u32,hex:65535\n{lookups}")).unwrap();
    let trace = trace.to_str().unwrap();
    for (line, expected) in [
        (
            "compare --value-size 65535 --records 100000",
            "wandering: a record of 65539 bytes can never fit twice in a leaf of",
        ),
        (
            "compare --records 3000000 --systems mu --device nor",
            "mu: 3000000 records do not fit on nor: a page of this size cannot hold a tree higher than",
        ),
        (
            "compare --records 100000000 --device slc --systems vm",
            "vm: 100000000 records do not fit on slc: 378788 pages would be valid, ",
        ),
        (&format!("compare --trace {trace}"), "line 1: wandering: a record of 65539 bytes"),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        // With 200 MB of memory, which the records alone would take.
        let limited = format!("ulimit -v 200000; exec {} {line}", env!("CARGO_BIN_EXE_nandina"));
        let started = std::time::Instant::now();
        let output = if cfg!(target_os = "linux") {
            Command::new("sh").args(["-c", &limited]).output().unwrap()
        } else {
            nandina(&words)
        };
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains(expected) && text.lines().count() == 1, "{line}: {text}");
        assert!(started.elapsed().as_secs() < 5, "{line}: {:?}", started.elapsed());
    }
}

#[test]
fn an_idle_step_after_each_change_shortens_the_longest() {
    let run = |more: &[&str]| {
        let line =
            ["compare", "--device", "nor", "--systems", "vm-ow", "--records", "2000", "--json"];
        json(&[&line[..], more].concat())
    };
    let (busy, idle) = (run(&[]), run(&["--idle-steps"]));
    assert_eq!(idle["settings"], "an idle step after each change");
    let insert =
        |run: &Value, metric: &str| run["systems"][0]["phases"][0][metric].as_f64().unwrap();
    assert!(insert(&idle, "ms_max") < insert(&busy, "ms_max") / 2.0, "{idle}");
    assert!(insert(&idle, "erases_per_op") > 0.0, "steps are counted");
}
