//! The program as a user meets it: tables, JSON, and one line for each mistake.

mod program;

use std::collections::BTreeSet;

use nandina::store::{Description, SYSTEMS};
use nandina_lab::effort::Share;
use serde_json::Value;

use program::{json, nandina};

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
    let refused = object["refused"].as_array().unwrap();
    let keys: BTreeSet<_> =
        systems.iter().chain(refused).map(|system| system["system"].as_str().unwrap()).collect();
    let listed = json(&["systems", "--json"]);
    let listed = listed.as_array().unwrap().iter().filter(|system| system["of_list"] == true);
    let known: BTreeSet<_> = listed.map(|system| system["key"].as_str().unwrap()).collect();
    assert_eq!(keys, known, "compare runs every registered system or says why not");
    assert!(systems.len() > refused.len(), "{refused:?}");
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
    let systems = json(&["systems", "--json"]);
    let runs_on = |key: &str| {
        let found = systems.as_array().unwrap().iter().find(|system| system["key"] == key);
        found.unwrap()["runs_on"].as_str().unwrap().to_owned()
    };
    let found = ["mu", "btree", "wpcb", "bftl", "dipl"].map(runs_on);
    let wpcb = "ftl:fast with 64 buffer blocks, or another FTL";
    assert_eq!(found, ["the chip", "an FTL or a card", wpcb, "an FTL", "ftl:dipl"]);
    let devices = json(&["devices", "--json"]);
    let devices = devices.as_array().unwrap();
    assert_eq!(devices[0]["read_us"], 165.6);
    assert_eq!(devices[1]["program_us"], 252.8);
}

#[test]
fn reproduce_prints_the_paper_beside_ours() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().to_str().unwrap();
    let object = json(&["reproduce", "mu-tree", "--quick", "--json", "--figures", figures]);
    assert_eq!(object["paper"], "mu-tree");
    let experiments = object["experiments"].as_array().unwrap();
    let table = experiments.iter().find(|experiment| experiment["id"] == "table5").unwrap();
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4 * 18);
    let row = |system: &str, metric: &str| {
        let is_it = |row: &&Value| {
            row["system"] == system && row["config"] == "0KB+0KB" && row["metric"] == metric
        };
        rows.iter().find(is_it).unwrap()["measured"].as_f64().unwrap()
    };
    assert_eq!(row("wandering", "reads_per_retrieval"), 3.0);
    assert!((1.0..1.3).contains(&row("mu", "programs_per_insert")));
    assert!((3.0..4.5).contains(&row("wandering", "programs_per_insert")));
    for experiment in experiments {
        for pair in experiment["orderings"].as_array().unwrap() {
            assert_eq!(pair[1], Value::Bool(true), "{}", pair[0]);
        }
    }
    for figure in ["figure7", "figure8", "figure9"] {
        for extension in ["svg", "png"] {
            let drawing = folder.path().join(format!("{figure}.{extension}"));
            let bytes = std::fs::read(&drawing).unwrap();
            assert!(bytes.len() > 5_000, "{} has {} bytes", drawing.display(), bytes.len());
        }
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
        mistake(&["compare", "--systems", "mu,b-tree"]),
        "there is no system 'b-tree': choose from wandering, mu, btree, vm, vm-ow, wpcb, rosette, rosette-nor, tnc, mu-star, \
         bftl, la, mb, ipl, dipl"
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
    let full = mistake(&["compare", "--records", "50000", "--value-size", "500"]);
    assert!(full.contains("is full after") && full.contains("choose a larger --device"), "{full}");
    let short = mistake(&["compare", "--key-size", "1"]);
    assert!(short.contains("choose a larger --key-size"), "{short}");
    let large = mistake(&["compare", "--value-size", "4000"]);
    assert!(large.contains("can never fit"), "{large}");
    let missing = mistake(&["compare", "--input", "no-such-file.csv", "--key", "a"]);
    assert!(missing.starts_with("no-such-file.csv: cannot be read"), "{missing}");
}

#[test]
fn a_wrong_command_line_gets_one_line_that_says_what_to_do() {
    for (line, expected) in [
        ("foo", "unrecognized subcommand 'foo', choose from compare, workload, "),
        ("image pt", "unrecognized subcommand 'pt', choose from create, put, "),
        (
            "compare --sed 1",
            "unexpected argument '--sed' found, tip: a similar argument exists: '--seed'; ",
        ),
        (
            "compare --key-size 65",
            "invalid value '65' for '--key-size <KEY_SIZE>': 65 is not in 1 to 64; ",
        ),
        (
            "torture --mode x",
            "invalid value 'x' for '--mode <MODE>' [possible values: none, linear, ",
        ),
        (
            "image get a.img",
            "the following required arguments were not provided: <KEY>; `nandina image get --help`",
        ),
        (
            "image create a.img --device slc",
            "the following required arguments were not provided: --system ",
        ),
    ] {
        let text = mistake(&line.split(' ').collect::<Vec<_>>());
        assert!(text.starts_with(expected), "{line}: {text}");
        assert!(text.ends_with("--help` lists what there is"), "{text}");
    }
    // A request for help is no mistake, and a call without a command is such a request.
    assert!(nandina(&["plan", "--help"]).status.success());
    assert!(nandina(&["--version"]).status.success());
    assert!(String::from_utf8(nandina(&["image"]).stderr).unwrap().lines().count() > 5);
}

#[test]
fn plan_tells_ram_and_bounds_and_what_does_not_fit() {
    let plans = json(&["plan", "--device", "slc", "--records", "50000", "--json"]);
    let listed = plans["plans"].as_array().unwrap();
    let possible = listed.iter().filter(|plan| plan["fits"].is_boolean());
    assert!(possible.clone().count() > listed.len() / 2);
    for plan in possible {
        assert_eq!(plan["fits"], true);
        let get = &plan["at_most"]["get"];
        // Leaves alone are read where a directory in RAM leads to them.
        let reads = if plan["system"] == "rosette" { &1.into() } else { &plan["height"] };
        assert_eq!(&get["reads"], reads);
        assert!(
            (get["ms"].as_f64().unwrap() / 0.0778 - get["reads"].as_f64().unwrap()).abs() < 1e-6
        );
        let change = |name: &str| plan["at_most"][name]["programs"].as_u64().unwrap();
        assert!(change("change") < change("change_after_cuts"));
    }
    let text = String::from_utf8(nandina(&["plan", "--device", "nor"]).stdout).unwrap();
    assert!(text.contains("NO"), "10,000 records do not fit in a tree of 256-byte pages: {text}");
    assert!(text.contains("NO, tree too high"), "{text}");
    assert!(
        text.contains(
            "Does not fit: mu: a page of this size cannot hold a tree higher than 4: choose"
        ),
        "{text}"
    );
    // Not of `mu`: before its pages are too many, its tree is too high.
    let full = json(&[
        "plan",
        "--device",
        "slc",
        "--records",
        "5000000",
        "--systems",
        "wandering",
        "--json",
    ]);
    assert_eq!(full["plans"].as_array().unwrap().len(), 1);
    let plan = &full["plans"][0];
    assert_eq!((&plan["system"], &plan["fits"]), (&"wandering".into(), &false.into()));
    let reason =
        format!("{} pages would be valid, {} may be", plan["valid_pages"], plan["limit_pages"]);
    assert!(plan["reason"].as_str().unwrap().starts_with(&reason), "{plan}");
    assert!(plans["plans"][0]["reason"].is_null());
    for (option, value, range) in [
        ("--blocks", "4000000000", "is not in 1 to 1048576"),
        ("--blocks", "0", "is not in 1 to 1048576"),
        ("--records", "4294967295", "is not in 0 to 100000000"),
        ("--key-size", "65", "is not in 1 to 64"),
        ("--value-size", "65536", "is not in 0 to 65535"),
        ("--page-buffers", "0", "is not in 1 to 16"),
        ("--systems", "mu,b-tree", "there is no system 'b-tree': choose from "),
    ] {
        assert!(mistake(&["plan", option, value]).contains(range), "{option} {value}");
    }
    // On the largest chip no figure overflows: its limits grow with its blocks.
    let limits = |blocks: &str| -> Vec<(Value, f64)> {
        let line =
            ["plan", "--device", "tlc", "--records", "1000000", "--blocks", blocks, "--json"];
        let plans = json(&line)["plans"].as_array().unwrap().clone();
        let limit = |plan: &Value| Some((plan["system"].clone(), plan["limit_pages"].as_f64()?));
        plans.iter().filter_map(limit).collect()
    };
    // Not every system has room for its tables there.
    let small = limits("1024");
    let large = limits("1048576");
    assert!(large.len() > 4, "{large:?}");
    for (system, large) in large {
        let (_, small) = small.iter().find(|(of, _)| *of == system).unwrap();
        assert!((1024.0..1050.0).contains(&(large / small)), "{system}: {small} {large}");
    }
}

#[test]
fn a_plan_above_a_hybrid_ftl_has_what_its_merges_and_conversions_cost() {
    let line = ["plan", "--device", "slc", "--blocks", "256", "--over", "ftl:fast", "--json"];
    let programs = |plans: &Value, part: &str| {
        let parts = plans["over"]["write_at_most"].as_array().unwrap();
        let part = parts.iter().find(|it| it["part"] == part);
        part.map(|part| part["programs"].as_u64().unwrap())
    };
    let bare = json(&line);
    let buffered = json(&[&line[..], &["--transit", "16"]].concat());
    for plans in [&bare, &buffered] {
        let listed = plans["plans"].as_array().unwrap();
        let systems: Vec<_> = listed.iter().map(|plan| plan["system"].as_str().unwrap()).collect();
        let in_place = SYSTEMS.iter().filter(|system| system.replaces());
        assert_eq!(systems, in_place.map(|system| system.key).collect::<Vec<_>>());
        let all = programs(plans, "all").unwrap();
        for plan in listed {
            let change = plan["at_most"]["change"]["programs"].as_u64().unwrap();
            assert!(change > all && change.is_multiple_of(all), "{change} programs, {all} a write");
            // Here neighbours share buffer blocks, and none is converted for 64 pages of a change.
            let late = (change / all).saturating_sub(64);
            let rested = plan["at_most"]["change_after_idle_steps"]["programs"].as_u64();
            let ahead = programs(plans, "all, after idle steps");
            assert_eq!(rested, ahead.map(|it| it * (change / all - late) + all * late));
            assert!(rested.is_none_or(|rested| rested < change));
            assert!(plan["at_most"]["open"].is_null());
        }
    }
    // A random log block has pages of as many logical blocks as it has pages, 64.
    assert_eq!(programs(&bare, "the page and what makes room for it"), Some(65 * 64 + 2));
    assert_eq!(programs(&bare, "a conversion before it"), None);
    assert_eq!(programs(&bare, "all, after idle steps"), None);
    assert!(programs(&buffered, "all, after idle steps") < programs(&buffered, "all"));
    let printed = json(&[&line[..], &["--transit", "16", "--as-printed"]].concat());
    assert_eq!(programs(&printed, "all, after idle steps"), None);
    assert!(programs(&bare, "all") < programs(&buffered, "all"));
    assert!(programs(&buffered, "a conversion before it") > Some(64));
    // A page map merges nothing; a conversion moves a block of pages, and room for them is gained.
    let line = ["plan", "--device", "slc", "--blocks", "256", "--over", "ftl:page", "--json"];
    let mapped = json(&[&line[..], &["--transit", "16"]].concat());
    assert!(programs(&mapped, "a conversion before it") > Some(64));
    assert!(programs(&json(&line), "all") < programs(&bare, "all"));
    assert!(programs(&mapped, "all") < programs(&buffered, "all"));
    // Each page of a block is copied, and the same again for wear.
    let logged = json(&["plan", "--device", "slc", "--systems", "dipl", "--json"]);
    assert_eq!(programs(&logged, "all"), Some(2 * 64));
    assert_eq!(logged["over"]["layer"], "ftl:dipl");
    let usual = ["plan", "--device", "slc", "--systems", "wpcb", "--transit", "1", "--json"];
    assert_eq!(json(&usual)["over"]["layer"], "ftl:fast with 1 buffer block");
    let rivals =
        ["plan", "--device", "slc", "--systems", "bftl,la,mb", "--over", "ftl:page", "--json"];
    let rivals = json(&[&rivals[..], &["--records", "60000"]].concat());
    let plans = rivals["plans"].as_array().unwrap();
    assert!(plans.len() == 3 && plans.iter().all(|plan| plan["fits"] == true), "{plans:?}");
    // A node of BFTL has four pages, and one of MB-tree has one.
    let get = |at: usize| &plans[at]["at_most"]["get"];
    let reads = |at: usize| get(at)["reads"].as_u64().unwrap();
    assert_eq!(reads(0), 4 * plans[0]["height"].as_u64().unwrap());
    assert_eq!(reads(2), plans[2]["height"].as_u64().unwrap());
    assert!([0, 2].iter().all(|&at| get(at)["programs"] == 0), "{plans:?}");
    // Each block that a system erases is trimmed.
    let star = ["plan", "--device", "slc", "--systems", "mu-star", "--over", "ftl:fast", "--json"];
    let star = json(&star);
    let change = &star["plans"][0]["at_most"]["change"];
    assert!(change["programs"].as_u64() > programs(&star, "all"), "{star}");
    assert_eq!(star["plans"][0]["fits"], true);
    for (line, what) in [
        (&["plan", "--systems", "ipl,mu"][..], "ipl has an FTL of its own: plan it alone"),
        (
            &["plan", "--over", "ftl:fast", "--systems", "rosette-nor"],
            "--over is for systems that can run over an FTL, not rosette-nor",
        ),
        (&["plan", "--transit", "4"], "--log-blocks and --transit are for an FTL: choose one by"),
    ] {
        assert!(mistake(line).starts_with(what), "{line:?}");
    }
}

#[test]
fn torture_counts_what_it_did_and_replays_cases_by_name() {
    let systems = Share::one_in(4).of(SYSTEMS.iter().map(|system| system.key)).join(",");
    let reports = json(&["torture", "--mode", "linear", "--systems", &systems, "--json"]);
    for report in reports.as_array().unwrap() {
        assert!(report["cuts"].as_u64().unwrap() > 500);
        assert!(report["violations"].as_array().unwrap().is_empty());
    }
    let case = "exhaustive/mu/seed 1/32 x 60/100 ones/40 mixture";
    let output = nandina(&["torture", "--case", case]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{case}: survived\n"));
    let unreached = "linear/mu/seed 1/32 x 60/99999 ones";
    let output = nandina(&["torture", "--case", unreached]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(&format!("{unreached}: a cut was never reached")), "{text}");
    let object = json(&["torture", "--case", case, "--json"]);
    assert_eq!((&object["case"], &object["outcome"]), (&case.into(), &"survived".into()));
    for (name, reason) in [
        ("mu/1", "'mu/1' is no name of a case"),
        ("swarm/mu/seed 1/9 ones", "'swarm/mu/seed 1/9 ones' is no name of a case"),
        ("swarm/b-tree/seed 1", "there is no system 'b-tree': choose from wandering, mu"),
        ("linear/mu/seed 1/32 x 70000/9 ones", "mu: value_bytes must be at most 65535"),
        ("linear/mu/seed 1/32 x 5000/9 ones", "mu: a record of 5004 bytes can never fit"),
    ] {
        let text = mistake(&["torture", "--case", name]);
        assert!(text.starts_with(reason), "{text}");
    }
    for option in
        ["--mode=linear", "--systems=mu", "--seed=1", "--operations=9", "--large", "--lean"]
    {
        let text = mistake(&["torture", "--case", case, option]);
        assert!(text.contains("'--case <NAME>' cannot be used with"), "{option}: {text}");
    }
    for report in json(&["torture", "--mode", "none", "--json"]).as_array().unwrap() {
        // 36 puts, 12 again, 36 removals; more rounds where only leaves fill the chip. Above a hybrid
        // FTL 12 more records, and a record of each of 8 leaves in order, twice.
        let mut only_leaves = SYSTEMS.iter().filter(|system| !system.has_inner_nodes());
        let has_only_leaves = only_leaves.any(|system| report["system"] == system.key);
        let is_over_fast = report["system"].as_str().unwrap().contains("ftl:fast");
        let others = if is_over_fast { 124 } else { 84 };
        let operations = if has_only_leaves { 144 } else { others };
        assert_eq!(report["operations"], operations, "{}", report["system"]);
    }
    assert!(
        mistake(&["torture", "--systems", "b-tree"]).starts_with("there is no system 'b-tree'")
    );
}

#[test]
fn rivals_run_by_name_on_an_ftl_and_are_tormented() {
    let arguments = ["compare", "--systems", "btree,bftl,la,mb", "--device", "slc"];
    let work = ["--over", "ftl:page", "--records", "3000", "--write-buffer", "1", "--json"];
    let object = json(&[&arguments[..], &work].concat());
    let systems = object["systems"].as_array().unwrap();
    let names: Vec<_> = systems.iter().map(|system| system["system"].as_str().unwrap()).collect();
    assert_eq!(names, ["btree", "bftl", "la", "mb"], "{object}");
    let refused = mistake(&["compare", "--systems", "la", "--device", "slc", "--records", "30"]);
    assert!(
        refused.starts_with("la: ") && refused.ends_with("such as ftl:fast, it runs there"),
        "{refused}"
    );
    let torture = ["torture", "--systems", "bftl,la,mb", "--mode", "linear", "--json"];
    for report in json(&torture).as_array().unwrap() {
        assert!(report["violations"].as_array().unwrap().is_empty(), "{report}");
        assert!(report["cuts"].as_u64().unwrap() > 300, "{report}");
    }
}

#[test]
fn compare_lists_the_systems_that_cannot_run_and_why() {
    let arguments = ["compare", "--device", "nor", "--records", "3000"];
    let object = json(&[&arguments[..], &["--json"]].concat());
    let refused = object["refused"].as_array().unwrap();
    assert_eq!(refused[0]["system"], "mu");
    let reason = refused[0]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with(
            "3000 records do not fit on nor: a page of this size cannot hold a tree higher than 4: choose a \
             --device with larger pages"
        ),
        "it is known before the run: {reason}"
    );
    assert_eq!(object["systems"].as_array().unwrap().len(), 7, "the others run all the same");
    assert!(refused[1]["reason"].as_str().unwrap().contains("the chip cannot"), "{refused:?}");
    let text = String::from_utf8(nandina(&arguments).stdout).unwrap();
    assert!(text.contains(&format!("Cannot run: mu: {reason}")), "{text}");
    // If none can, that is the error.
    let none = mistake(&["compare", "--device", "nor", "--value-size", "200"]);
    assert!(none.contains("can never fit twice in a leaf"), "{none}");
}

#[test]
fn settings_of_one_system_are_given_and_named() {
    let arguments = ["compare", "--systems", "tnc", "--device", "slc", "--records", "20000"];
    let report = |more: &[&str]| {
        let report = json(&[&arguments[..], more, &["--json"]].concat());
        let insert = &report["systems"][0]["phases"][0];
        let settings = report["settings"].as_str().unwrap_or_default().to_owned();
        (insert["programs_per_op"].as_f64().unwrap(), settings)
    };
    let group = ["--write-buffer", "1", "--write-buffer-changes", "16"];
    let (alone, settings) = report(&[]);
    assert_eq!(settings, "");
    let (grouped, settings) = report(&group);
    assert!(grouped < alone && settings.contains("flushed after 16 changes"), "{settings}");
    let large = ["--arena-bytes", "200000", "--fanout", "64", "--journal-pages", "256"];
    let (in_ram, settings) = report(&[&group[..], &large].concat());
    assert!(in_ram < grouped, "{in_ram} and {grouped} programs an insert");
    for part in ["200000 bytes for nodes", "64 children of a node", "256 pages of a journal"] {
        assert!(settings.contains(part), "{settings}");
    }
    let plan = |more: &[&str]| {
        let plan = ["plan", "--systems", "rosette", "--device", "slc", "--json"];
        json(&[&plan[..], more].concat())["plans"][0]["ram_bytes"].as_u64().unwrap()
    };
    assert!(plan(&["--leaves", "1000"]) < plan(&[]), "a directory of fewer leaves");
    for (flag, wrong) in [("--fanout", "3"), ("--journal-pages", "0"), ("--leaves", "1")] {
        assert!(mistake(&["plan", flag, wrong]).contains(wrong));
    }
}

#[test]
fn victims_and_checkpoints_are_chosen_by_name_and_number() {
    let plan = json(&["plan", "--device", "mlc", "--checkpoints", "4", "--json"]);
    let without = json(&["plan", "--device", "mlc", "--json"]);
    let limit = |plan: &Value| plan["plans"][0]["limit_pages"].as_u64().unwrap();
    assert!(limit(&plan) < limit(&without), "four blocks are kept for checkpoints");
    let reads = |victims: &str| {
        let work = ["compare", "--systems", "wandering", "--records", "300000", "--json"];
        let report = json(&[&work[..], &["--victims", victims]].concat());
        report["systems"][0]["phases"][0]["reads_per_op"].as_f64().unwrap()
    };
    assert!(reads("tracked:8") > reads("fewest"), "pages are looked up by hints");
    for wrong in
        ["most", "tracked:0", "tracked:65", "tracked:", "sampled:0", "sampled:256", "fewest:1"]
    {
        let text = mistake(&["compare", "--victims", wrong]);
        assert!(text.contains("fewest, cost-benefit, sampled:N"), "{text}");
    }
}

#[test]
fn a_write_buffer_takes_its_pages_and_spares_programs() {
    let run = |command: &str, pages: &str| {
        json(&[command, "--device", "slc", "--records", "2000", "--write-buffer", pages, "--json"])
    };
    let (without, with) = (run("compare", "0"), run("compare", "2"));
    assert_eq!(with["settings"], "a write buffer of 2 pages");
    let systems = |object: &Value, name: &str| object[name].as_array().unwrap().clone();
    for with in &systems(&with, "systems") {
        let all = systems(&without, "systems");
        let without = all.iter().find(|system| system["system"] == with["system"]).unwrap();
        let ram = |system: &Value| system["ram_bytes"].as_u64().unwrap();
        assert_eq!(ram(with), ram(without) + 2 * 2048);
        let programs = |system: &Value| system["phases"][0]["programs_per_op"].as_f64().unwrap();
        assert!(programs(with) < programs(without) / 2.0, "{with}");
        assert_eq!(with["records"], without["records"]);
    }
    let (without, with) = (run("plan", "0"), run("plan", "2"));
    for (without, with) in systems(&without, "plans").iter().zip(&systems(&with, "plans")) {
        let of = |system: &&Description| with["system"] == system.key;
        let system = SYSTEMS.iter().find(of).unwrap();
        // A system with a directory has no write buffer.
        if !system.has_inner_nodes() {
            let is_refused = with["at_most"].is_null();
            assert!(is_refused, "{with}");
            assert!(!without["at_most"].is_null() || system.has_leaf_blocks(), "{without}");
            continue;
        }
        let programs = |plan: &Value| plan["at_most"]["change"]["programs"].as_u64().unwrap_or(0);
        // Behind a journal only pages of changes are written together.
        if system.replays() {
            // Records of 4 + 4 bytes and their kind, behind the two bytes of their count.
            let pages = (2 * 2048u64 / 9).div_ceil((2048 - 2) / 9);
            assert_eq!(programs(with), programs(without) + pages - 1);
            continue;
        }
        // Records of 4 + 4 bytes and a bit.
        assert_eq!(programs(with), programs(without) * (2 * 2048 * 8 / 65 + 1));
    }
    assert!(mistake(&["compare", "--write-buffer", "65536"]).contains("65535"));
}
