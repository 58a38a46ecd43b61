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

#[test]
fn systems_are_compared_over_ftls_with_the_write_amplification_of_both_apart() {
    let line = ["compare", "--device", "slc", "--systems", "btree,mu", "--records", "1000"];
    let more = ["--over", "none,ftl:compact,ftl:fast", "--log-blocks", "8", "--op", "10"];
    let run = json(&[&line[..], &more, &["--json"]].concat());
    let names = |of: &Value| {
        let rows = of.as_array().unwrap().iter();
        rows.map(|row| (row["system"].clone(), row["ftl"]["layer"].clone())).collect::<Vec<_>>()
    };
    let row = |system: &str, layer: Option<&str>| (Value::from(system), Value::from(layer));
    let expected = [
        row("mu", None),
        row("btree", Some("ftl:compact")),
        row("mu", Some("ftl:compact")),
        row("btree", Some("ftl:fast")),
        row("mu", Some("ftl:fast")),
    ];
    assert_eq!(names(&run["systems"]), expected);
    assert_eq!(run["refused"][0]["system"], "btree");
    let fast = &run["systems"][3];
    assert_eq!(fast["ftl"]["log_blocks"], 8);
    assert!(fast["ftl"]["over_provisioning"].as_f64().unwrap() >= 10.0);
    let insert = &fast["phases"][0];
    let factor = |name: &str| insert[name].as_f64().unwrap();
    let both = factor("write_amplification_system") * factor("write_amplification_ftl");
    assert!((both - factor("write_amplification")).abs() < 1e-6, "{insert}");

    let text = nandina(&[&line[..], &more].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["btree over ftl:compact", "of the FTL", "merges: switch", "Cannot run: btree: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_b_tree_on_an_ftl_of_its_own_is_compared_by_its_name() {
    let line = ["compare", "--device", "slc", "--systems", "btree,dipl", "--records", "1000"];
    let run = json(&[&line[..], &["--over", "ftl:fast", "--json"]].concat());
    let rows = run["systems"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| (&row["system"], &row["ftl"]["layer"])).collect();
    let (btree, fast, dipl) = ("btree".into(), "ftl:fast".into(), "ftl:dipl".into());
    assert_eq!(names, [(&btree, &fast), (&btree, &dipl)]);
    let alone =
        json(&["compare", "--device", "slc", "--systems", "ipl", "--records", "500", "--json"]);
    assert_eq!(alone["systems"].as_array().unwrap().len(), 1);
    assert_eq!(alone["systems"][0]["ftl"]["layer"], "ftl:ipl");
    let torture = ["torture", "--systems", "dipl", "--mode", "none", "--json"];
    assert_eq!(json(&torture)[0]["system"], "btree over ftl:dipl");
}

#[test]
fn the_usual_ftl_of_a_system_takes_the_settings_of_an_ftl() {
    let line = ["compare", "--device", "slc", "--systems", "mu,wpcb", "--records", "1000"];
    let more = ["--log-blocks", "5", "--transit", "3", "--op", "20", "--json"];
    let rows = &json(&[&line[..], &more].concat())["systems"];
    assert_eq!(rows[0]["ftl"], Value::Null);
    assert_eq!(rows[1]["ftl"]["layer"], "ftl:fast with 3 buffer blocks");
    assert_eq!(rows[1]["ftl"]["log_blocks"], 5);
    assert!(rows[1]["ftl"]["over_provisioning"].as_f64().unwrap() >= 20.0);
    let usual = &json(&[&line[..], &["--json"]].concat())["systems"][1]["ftl"];
    assert_eq!(usual["layer"], "ftl:fast with 64 buffer blocks");
}

/// Equal flash in one run: log blocks for the one, and as many buffer blocks for the other.
#[test]
fn a_layer_says_by_its_name_how_many_blocks_it_has() {
    let layers = ["ftl:fast with 12 log blocks", "ftl:fast with 4 log blocks and 8 buffer blocks"];
    let over = layers.join(",");
    let line = ["compare", "--device", "slc", "--systems", "wpcb", "--records", "2000"];
    let run = json(&[&line[..], &["--over", &over, "--json"]].concat());
    let rows = run["systems"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for ((row, layer), log_blocks) in rows.iter().zip(layers).zip([12, 4]) {
        assert_eq!(
            (&row["ftl"]["layer"], &row["ftl"]["log_blocks"]),
            (&layer.into(), &log_blocks.into())
        );
    }
    let both = [&line[..], &["--over", "none,ftl:fast", "--transit", "4", "--json"]].concat();
    assert_eq!(json(&both)["systems"].as_array().unwrap().len(), 1, "the usual FTL is the same");
    for (over, more, expected) in [
        (layers[0], ["--log-blocks", "4"], "'ftl:fast with 12 log blocks' says how many: leave"),
        (layers[1], ["--transit", "4"], "says how many: leave --transit out"),
        ("ftl:fast with 4 log", ["--seed", "1"], "an FTL has no '4 log': write it as in 'ftl:"),
        ("ftl:page with 4 log blocks", ["--seed", "1"], "ftl:page has no log blocks"),
        ("ftl:fast with 1 log block", ["--seed", "1"], "ftl:fast needs 2 log blocks, not 1"),
    ] {
        let output = nandina(&[&line[..], &["--over", over], &more].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{over}: {text}");
        assert!(text.contains(expected), "{over}: {text}");
    }
}

#[test]
fn layers_that_cannot_be_are_refused_in_a_line() {
    for (line, expected) in [
        ("compare --over ftl:pages", "there is no layer 'ftl:pages': choose from ftl:page, "),
        ("compare --systems mu --log-blocks 4", "--log-blocks is for bast and fast"),
        ("compare --over ftl:page --log-blocks 4", "--log-blocks is for bast and fast"),
        ("compare --systems mu --op 4", "--op is for an FTL: choose one by --over"),
        ("compare --over ftl:fast --log-blocks 1", "ftl:fast needs 2 log blocks, not 1"),
        ("compare --over ftl:fast --log-blocks 600 --device slc", "slc has 512 blocks, ftl:fast"),
        ("compare --over ftl:fast --systems ipl", "ipl has an FTL of its own: leave --over out"),
        ("torture --narrow --systems dipl", "--narrow is for a chip without an FTL"),
        ("compare --over ftl:page --device sd", "sd replaces pages in place: it needs no FTL"),
        ("torture --over ftl:fats", "there is no layer 'ftl:fats'"),
        ("torture --mode swarm --over ftl:fast --systems vm-ow", "it programs a page 2"),
        ("torture --over ftl:fast --systems rosette-nor", "it programs a page anew"),
        ("torture --mode swarm --narrow --over ftl:fast", "--narrow is for a chip without an FTL"),
        ("torture --narrow", "--narrow is for a swarm, or for systems that write checkpoints"),
        ("torture --narrow --checkpoints 1 --systems mu,btree", "--narrow is for a swarm, or"),
        ("torture --narrow --checkpoints 1 --systems mu,tnc", "--narrow is not for tnc where"),
        ("torture --systems tnc --journal-values --narrow --checkpoints 1", "--narrow is not for"),
        ("torture --systems mu --journal-values", "--journal-values is for tnc, whose leaves"),
        ("torture --systems tnc,mu --journal-values", "--journal-values is for tnc, whose leaves"),
        ("torture --journal-values", "--journal-values is for tnc, whose leaves"),
        ("torture --systems pages --over ftl:fast", "pages is for a swarm: choose --mode swarm"),
        ("torture --mode swarm --systems pages", "pages are those of an FTL: choose one by --over"),
        ("torture --over ftl:page --systems vm-ow", "vm-ow over ftl:page: it programs a page 2"),
    ] {
        let output = nandina(&line.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains(expected), "{line}: {text}");
    }
}

#[test]
fn torture_over_ftls_names_them_in_its_table() {
    let line = ["torture", "--mode", "none", "--systems", "btree,vm"];
    let run = json(&[&line[..], &["--over", "none,ftl:compact,ftl:fast", "--json"]].concat());
    let names = run.as_array().unwrap().iter().map(|row| row["system"].clone());
    let names: Vec<_> = names.collect();
    let expected = ["btree", "vm"].map(Value::from).into_iter().chain(
        ["ftl:compact", "ftl:fast"]
            .iter()
            .flat_map(|ftl| ["btree", "vm"].map(|it| Value::from(format!("{it} over {ftl}")))),
    );
    assert_eq!(names, expected.collect::<Vec<_>>());
    // Without a choice, four systems over FTLs follow those of the list.
    let all = json(&["torture", "--mode", "none", "--json"]);
    let last = all.as_array().unwrap().last().unwrap();
    assert_eq!(last["system"], "wpcb over ftl:fast with 2 buffer blocks");
    assert_eq!(last["violations"], Value::Array(Vec::new()));
    // Systems that cannot run over an FTL are left out, unless they are named.
    let above = json(&["torture", "--mode", "none", "--over", "ftl:page", "--json"]);
    let names = above.as_array().unwrap().iter().map(|row| row["system"].as_str().unwrap());
    let names: Vec<_> = names.collect();
    assert!(names.contains(&"vm over ftl:page") && !names.contains(&"vm-ow over ftl:page"));
    // On its own the WPCB-tree has no buffer, so that it is tortured above two as well.
    let wpcb = json(&["torture", "--mode", "none", "--systems", "wpcb", "--json"]);
    assert_eq!(wpcb.as_array().unwrap().len(), 3);
}
