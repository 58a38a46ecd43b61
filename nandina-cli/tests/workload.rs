//! Workloads and traces as a user meets them.
//!
//! The tests check counts beside the paper's, files that are saved and run, and one line for each
//! mistake.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn nandina(line: &str, paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandina"));
    let mut paths = paths.iter();
    for word in line.split(' ') {
        match word {
            "FILE" => command.arg(paths.next().expect("a path for each FILE")),
            word => command.arg(word),
        };
    }
    command.output().unwrap()
}

fn printed(line: &str, paths: &[&Path]) -> String {
    let output = nandina(line, paths);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(line: &str, paths: &[&Path]) -> Value {
    serde_json::from_str(&printed(line, paths)).unwrap()
}

/// The one line on standard error, with exit code 2.
fn mistake(line: &str, paths: &[&Path]) -> String {
    let output = nandina(line, paths);
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_start_matches("nandina: ").trim_end().to_string()
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn quick_and_other_options_of_compare_are_never_ignored() {
    let file = "is for records of a file: add --input FILE or leave it out";
    let manifest =
        "--manifest is for two workloads: add --workload kernel-compile or ubifs, or leave it out";
    let quick =
        "--quick is a twentieth of the default records or of a --workload: leave out --quick or ";
    let changes =
        "--write-buffer-changes is for a write buffer: add --write-buffer PAGES or leave it out";
    let choose = ": choose such a system with --systems or leave it out";
    for (line, expected) in [
        ("--quick --input a.csv", format!("{quick}--input")),
        ("--quick --input a.csv --key-size 4", format!("{quick}--input")),
        ("--quick --records 50", format!("{quick}--records")),
        ("--quick --trace a.csv", format!("{quick}--trace")),
        ("--manifest a.tsv", manifest.into()),
        ("--manifest a.tsv --records 1000", manifest.into()),
        ("--manifest a.tsv --input a.csv", manifest.into()),
        ("--manifest a.tsv --value-size 0", manifest.into()),
        ("--manifest a.tsv --trace a.csv", manifest.into()),
        ("--manifest a.tsv --workload mp3", manifest.into()),
        // The options of `--input`, without it.
        ("--key a --trace a.csv", format!("--key {file}")),
        ("--value a --workload mp3", format!("--value {file}")),
        ("--duplicates keep", format!("--duplicates {file}")),
        // Settings that no chosen system has.
        ("--systems mu --write-buffer-changes 4", changes.into()),
        ("--systems mu,rosette --arena-bytes 9999", format!("--arena-bytes is for tnc{choose}")),
        ("--systems mu --fanout 5", format!("--fanout is for tnc{choose}")),
        ("--systems vm --journal-pages 3", format!("--journal-pages is for tnc{choose}")),
        ("--systems mu,tnc --leaves 64", format!("--leaves is for rosette, rosette-nor{choose}")),
    ] {
        assert_eq!(mistake(&format!("compare {line}"), &[]), expected, "{line}");
    }
    let line = "plan --device mlc --records 1000 --systems mu --leaves 64";
    assert_eq!(mistake(line, &[]), format!("--leaves is for rosette, rosette-nor{choose}"));
    for line in ["--quick", "--quick --key-size 8 --value-size 0"] {
        let line = format!("compare --json --systems mu {line}");
        assert_eq!(json(&line, &[])["records"], 5_000, "{line}");
    }
}

#[test]
fn a_workload_prints_its_counts_beside_the_papers_in_both_forms() {
    for name in ["postmark", "kernel-compile", "mp3"] {
        let object = json(&format!("workload {name} --quick --seed 2 --json"), &[]);
        assert_eq!((&object["workload"], &object["seed"]), (&name.into(), &2.into()));
        assert_eq!((&object["quick"], &object["trace"]), (&true.into(), &Value::Null));
        assert!(object["parameters"].as_object().unwrap().len() > 4);
        let text = printed(&format!("workload {name} --quick --seed 2"), &[]);
        assert!(text.contains("the ratio to expect is 0.05"), "{text}");
        assert!(text.contains(&format!("{} operations", object["operations"])), "{text}");
        for count in object["counts"].as_array().unwrap() {
            assert!((0.035..0.065).contains(&count["ratio"].as_f64().unwrap()), "{count}");
            for figure in ["paper", "ours"] {
                assert!(text.contains(&count[figure].to_string()), "{text}");
            }
        }
    }
    let text = printed("workload mp3", &[]);
    assert!(!text.contains("twentieth") && text.contains("512986"), "{text}");
}

#[test]
fn the_work_of_ubifs_is_beside_no_counts_and_runs_on_every_index() {
    let object = json("workload ubifs --quick --json", &[]);
    let counts = object["counts"].as_array().unwrap();
    assert!(counts.iter().all(|count| count["paper"].is_null() && count["ratio"].is_null()));
    // Every key but the root's inode is removed.
    assert_eq!(counts[2]["ours"].as_u64().unwrap() + 1, object["keys"].as_u64().unwrap());
    let text = printed("workload ubifs --quick", &[]);
    assert!(text.contains("insertion |       - |") && !text.contains("0.05"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let list = file(&folder, "list.tsv", "d\t0\ta\nf\t9000\ta/b\nf\t0\tc\n");
    let line = "compare --workload ubifs --systems mu --json --manifest FILE";
    let object = json(line, &[&list]);
    let system = &object["systems"][0];
    assert_eq!(system["records"], 1, "{system}");
}

#[test]
fn options_of_the_workloads_reach_them() {
    let of = |line: &str| json(&format!("workload {line} --quick --json"), &[]);
    let insertions = |object: &Value| object["counts"][1]["ours"].as_u64().unwrap();
    let plain = of("postmark");
    for (option, name, value) in [
        ("--files 100", "files", "100"),
        ("--transactions 50", "transactions", "50"),
        ("--smallest 600", "bytes", "[600,10000]"),
        ("--largest 20000", "bytes", "[500,20000]"),
        ("--read-bias 9", "reads_in_ten", "9"),
        ("--create-bias 2", "creates_in_ten", "2"),
        ("--subdirectories 10", "subdirectories", "10"),
        ("--buffer 512", "buffer_bytes", "512"),
    ] {
        let object = of(&format!("postmark {option}"));
        assert_eq!(object["parameters"][name].to_string(), value, "{option}");
        assert_ne!(object["counts"], plain["counts"], "{option}");
    }
    let plain = of("kernel-compile");
    for (option, name) in [("--files 300", "files"), ("--compiled 100", "compiled_per_mille")] {
        let object = of(&format!("kernel-compile {option}"));
        assert!(insertions(&object) < insertions(&plain), "{option}");
        assert_ne!(object["parameters"][name], plain["parameters"][name]);
    }
    let headers = of("kernel-compile --headers 10");
    assert!(headers["counts"][0]["ours"].as_u64() < plain["counts"][0]["ours"].as_u64());
    let plain = of("mp3");
    for option in ["--megabytes 200", "--rounds 1", "--mean-bytes 40000000"] {
        assert!(insertions(&of(&format!("mp3 {option}"))) < insertions(&plain), "{option}");
    }
}

#[test]
fn a_saved_trace_costs_what_the_workload_costs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("postmark.csv");
    let made = json("workload postmark --quick --seed 5 --json -o FILE", &[&path]);
    assert_eq!(made["trace"], path.to_str().unwrap());
    let lines = std::fs::read_to_string(&path).unwrap().lines().count() as u64;
    // The header and three phases.
    assert_eq!(lines, made["operations"].as_u64().unwrap() + 4);
    let traced = json("compare --device slc --json --trace FILE", &[&path]);
    let worked = json("compare --device slc --json --workload postmark --quick --seed 5", &[]);
    assert_eq!(traced["systems"], worked["systems"]);
    assert_eq!((traced.get("seed"), &worked["seed"]), (None, &5.into()));
    let phases = traced["systems"][0]["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
    assert_eq!(names, ["create", "transactions", "delete"]);
    let text = printed("compare --device slc --trace FILE", &[&path]);
    assert!(text.starts_with("On slc: trace postmark.csv: "), "{text}");
    assert!(!text.contains("seed") && !text.contains("a scan reads"), "{text}");
    let worked = printed("compare --device slc --workload postmark --quick --seed 5", &[]);
    assert!(worked.starts_with("On slc, seed 5: workload postmark, a twentieth: "), "{worked}");
    let refused = mistake("workload postmark --quick -o FILE", &[&path]);
    assert!(refused.ends_with("postmark.csv is there already: choose another file"), "{refused}");
}

#[test]
fn a_users_own_trace_runs_and_its_mistakes_are_told_by_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let trace = file(
        &folder,
        "mine.csv",
        "nandina-trace,1,u32,u32\nphase,fill\ninsert,1,10\ninsert,2,20\nphase,look\nscan,1,2\nlookup,3\n",
    );
    let object = json("compare --device slc --systems mu --json --trace FILE", &[&trace]);
    let phases = object["systems"][0]["phases"].as_array().unwrap();
    let ops: Vec<_> = phases.iter().map(|phase| (&phase["phase"], &phase["ops"])).collect();
    assert_eq!(ops, [(&"fill".into(), &2.into()), (&"look".into(), &2.into())]);
    for (text, expected) in [
        (
            "insert,1,x\n",
            "line 2: field 3, value: 'x' is not u32: a whole number from 0 to 4294967295 was",
        ),
        (
            "find,1\n",
            "line 2: field 1: 'find' is no operation: insert, lookup, scan, delete or phase was",
        ),
        ("insert,1\n", "line 2: 2 fields: insert,KEY,VALUE was expected"),
    ] {
        let path = file(&folder, "wrong.csv", &format!("nandina-trace,1,u32,u32\n{text}"));
        let line = mistake("compare --trace FILE", &[&path]);
        assert!(line.starts_with(&format!("{}: {expected}", path.display())), "{line}");
    }
    let line = mistake("compare --trace no-such-trace.csv", &[]);
    assert!(line.starts_with("no-such-trace.csv: cannot be read"), "{line}");
}

#[test]
fn options_that_do_not_go_together_are_told() {
    for line in [
        "--input a.csv",
        "--records 5",
        "--seed 5",
        "--key-size 4",
        "--value-size 4",
        "--workload mp3",
    ] {
        let text = mistake(&format!("compare --trace a.csv {line}"), &[]);
        assert!(text.contains("cannot be used with"), "{text}");
        assert!(text.ends_with("`nandina compare --help` lists what there is"), "{text}");
    }
    for line in ["--input a.csv", "--records 5", "--key-size 4", "--value-size 4"] {
        let text = mistake(&format!("compare --workload mp3 {line}"), &[]);
        assert!(text.contains("cannot be used with"), "{text}");
    }
    assert_eq!(
        mistake("compare --workload fsync", &[]),
        "there is no workload 'fsync': choose from kernel-compile, postmark, mp3, ubifs"
    );
}

#[test]
fn impossible_workloads_are_refused_with_what_to_do() {
    for (line, expected) in [
        (
            "fsync",
            "unrecognized subcommand 'fsync', choose from postmark, kernel-compile, mp3, ubifs",
        ),
        ("postmark --files 0", "0 is not in 1 to 1000000"),
        ("postmark --transactions 10000001", "10000001 is not in 0 to 10000000"),
        ("postmark --smallest 0", "0 is not in 1 to 16777215"),
        ("postmark --largest 1", "1 is not in 2 to 16777216"),
        ("postmark --read-bias 11", "11 is not in 0 to 10"),
        ("postmark --create-bias -1", "unexpected argument '-1' found"),
        ("postmark --subdirectories 100001", "100001 is not in 0 to 100000"),
        ("postmark --buffer 511", "511 is not in 512 to 1048576"),
        ("postmark --smallest 10000", "a largest size above the smallest"),
        ("kernel-compile --files 0", "0 is not in 1 to 1000000"),
        ("kernel-compile --compiled 1001", "1001 is not in 0 to 1000"),
        ("kernel-compile --headers 10001", "10001 is not in 0 to 10000"),
        ("kernel-compile --manifest no-such-list.tsv", "no-such-list.tsv: cannot be read"),
        ("mp3 --megabytes 0", "0 is not in 1 to 1000000"),
        ("mp3 --mean-bytes 4095", "4095 is not in 4096 to 1000000000"),
        ("mp3 --rounds 1001", "1001 is not in 0 to 1000"),
        ("mp3 --megabytes 1 --mean-bytes 2000000", "choose another --megabytes or --mean-bytes"),
    ] {
        let text = mistake(&format!("workload {line}"), &[]);
        assert!(text.contains(expected), "{line}: {text}");
    }
    let text = mistake("workload mp3 --quick -o no-such-folder/a.csv", &[]);
    assert!(text.starts_with("no-such-folder/a.csv cannot be written"), "{text}");
}

#[test]
fn a_list_of_files_is_compiled_and_its_mistakes_are_told_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let list = "d\t0\t.\nd\t0\tinclude\nf\t900\tinclude/a.h\nf\t5000\tmain.c\nf\t70\tREADME\n";
    let path = file(&folder, "list.tsv", list);
    let whole = json("workload kernel-compile --json --manifest FILE", &[&path]);
    let one = json("workload kernel-compile --json --files 1 --manifest FILE", &[&path]);
    assert!(one["operations"].as_u64().unwrap() < whole["operations"].as_u64().unwrap());
    let line = "compare --device slc --json --workload kernel-compile --manifest FILE";
    let cost = json(line, &[&path]);
    let ops = |phase: &Value| phase["ops"].as_u64().unwrap();
    let phases = cost["systems"][0]["phases"].as_array().unwrap();
    assert_eq!(phases.iter().map(ops).sum::<u64>(), whole["operations"].as_u64().unwrap());
    let wrong = file(&folder, "wrong.tsv", &format!("{list}x\t1\tb\n"));
    for line in [
        "workload kernel-compile --manifest FILE",
        "compare --workload kernel-compile --manifest FILE",
    ] {
        let text = mistake(line, &[&wrong]);
        assert_eq!(
            text,
            format!("{}: line 6: the type is 'x': expected f, d or l", wrong.display())
        );
    }
}

#[test]
fn the_list_of_linux_6_1_gives_the_papers_counts_and_a_twentieth() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/linux-6.1-manifest");
    let path = shared.join("linux-source-6.1.192-2.manifest.tsv.zst");
    if !path.exists() {
        // Not by a macro: the test harness would capture it.
        writeln!(std::io::stderr(), "skipped: the list of Linux 6.1 is not beside the project")
            .unwrap();
        return;
    }
    for (quick, low, high) in [("", 0.97, 1.03), (" --quick", 0.047, 0.054)] {
        let line = format!("workload kernel-compile{quick} --json --manifest FILE");
        for count in json(&line, &[&path])["counts"].as_array().unwrap() {
            let ratio = count["ratio"].as_f64().unwrap();
            assert!((low..high).contains(&ratio), "{quick}: {count}");
        }
    }
}
