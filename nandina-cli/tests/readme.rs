//! The commands of the README and the guide, as a newcomer copies them.
//!
//! The files and options that they name exist.

use std::fs;
use std::path::Path;
use std::process::Command;

const RUN: &str = "cargo run --release -- ";

/// Commands that take minutes; only their options are checked.
const LONG: [&str; 3] = ["reproduce", "torture", "workload"];

#[test]
fn every_command_of_the_readme_runs_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let samples = folder.path().join("docs/samples");
    fs::create_dir_all(&samples).unwrap();
    for sample in fs::read_dir(root.join("docs/samples")).unwrap() {
        let sample = sample.unwrap();
        fs::copy(sample.path(), samples.join(sample.file_name())).unwrap();
    }
    let text = ["README.md", "docs/GUIDE.md"]
        .map(|name| fs::read_to_string(root.join(name)).unwrap())
        .concat();
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix(RUN)).collect();
    assert!(lines.len() > 10, "{lines:?}");
    for line in lines {
        let words = line.split('#').next().unwrap().split_whitespace();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandina"));
        command.current_dir(folder.path()).args(words);
        let is_large = line == "compare"
            || line.starts_with("compare  ")
            || ["--records 200000", "--records 150000"].iter().any(|many| line.contains(many));
        if is_large || LONG.iter().any(|long| line.starts_with(long)) {
            command.arg("--help");
        }
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "{line}: {error}");
    }
}

#[test]
fn the_sample_trace_is_the_one_that_the_readme_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let sample = fs::read_to_string(root.join("docs/samples/work.csv")).unwrap();
    assert!(readme.contains(&format!("```csv\n{sample}```")));
}

#[test]
fn the_figures_of_vm_ow_are_those_of_the_commands_beside_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(root.join("docs/FIGURES.md")).unwrap();
    let line = "compare --device nor --systems vm-ow --records 10000 --value-size 12";
    assert!(text.contains(line) && text.contains("with `--idle-steps`"));
    let run = |more: &[&str]| {
        let words = line.split(' ').chain(more.iter().copied()).chain(["--json"]);
        let output = Command::new(env!("CARGO_BIN_EXE_nandina")).args(words).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let (idle, busy) = (run(&["--idle-steps"]), run(&[]));
    // The page gives two digits.
    for (run, phase, metric, written) in [
        (&idle, 0, "ms_mean", 0.34),
        (&idle, 0, "ms_max", 5.3),
        (&busy, 0, "ms_mean", 1.1),
        (&busy, 0, "ms_max", 50.0),
        (&busy, 1, "ms_mean", 0.08),
        (&busy, 2, "ms_mean", 1.4),
    ] {
        let found = run["systems"][0]["phases"][phase][metric].as_f64().unwrap();
        assert!((found / written - 1.0).abs() < 0.05, "{metric}: {found}, not {written}");
        assert!(text.contains(&format!("{written} ms")), "{written}");
    }
}

#[test]
fn commands_that_the_readme_shows_without_cargo_are_on_the_path_by_the_way_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(root.join("README.md")).unwrap();
    let install = text.find("cargo install --path nandina-cli").expect("how to install it");
    let bare = text.find("`nandina compare").expect("a bare command");
    assert!(install < bare, "it is installed before it is used by its name");
    assert!(root.join("nandina-cli/Cargo.toml").exists());
}
