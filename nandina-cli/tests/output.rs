//! Output that cannot be written: an error on a full disk, silence on a closed pipe.
#![cfg(unix)]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn nandina(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandina"));
    command.current_dir(folder).args(line.split_whitespace());
    command
}

/// A folder with an image that holds some thousand records, and a block trace.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..2_000).map(|row| format!("{row},v{row}\n")).collect();
    fs::write(folder.path().join("rows.csv"), format!("id,name\n{rows}")).unwrap();
    let requests = "op,start_sectors,length_sectors\nwrite,0,8\nread,4,8\n";
    fs::write(folder.path().join("requests.csv"), requests).unwrap();
    for line in [
        "image create a.img --device slc --blocks 32 --system mu --key u32 --value text:8",
        "image load a.img rows.csv",
    ] {
        assert!(nandina(folder.path(), line).output().unwrap().status.success(), "{line}");
    }
    folder
}

/// Commands that print, each of which takes less than a second or two.
const PRINTING: [&str; 28] = [
    "--help",
    "--version",
    "compare --help",
    "systems",
    "systems --json",
    "devices",
    "devices --json",
    "mappings",
    "mappings --json",
    "trace stats requests.csv",
    "replay requests.csv",
    "replay requests.csv --json",
    "plan --records 1000",
    "plan --records 1000 --json",
    "compare --records 100 --systems mu",
    "compare --records 100 --systems mu --json",
    "workload mp3 --quick --rounds 1",
    "torture --mode none --systems mu",
    "torture --mode none --systems mu --json",
    "torture --case linear/mu/seed\u{a0}1/32\u{a0}x\u{a0}60/100\u{a0}ones",
    "image scan a.img",
    "image scan a.img --json",
    "image scan a.img --from 5000",
    "image get a.img 7",
    "inspect a.img",
    "check a.img",
    "check a.img --json",
    "wear a.img",
];

fn arguments(line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('\u{a0}', " ")).collect()
}

fn run(folder: &Path, line: &str, stdout: impl Into<Stdio>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandina"));
    command.current_dir(folder).args(arguments(line)).stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

/// Checks for exit code 2 and one line on standard error, and returns that line.
fn refused(line: &str, output: &Output) -> String {
    let error = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{line}: {error}");
    assert_eq!(error.lines().count(), 1, "{line}: {error}");
    assert!(error.contains("standard output cannot be written ("), "{line}: {error}");
    error
}

#[test]
fn output_to_a_full_disk_is_an_error_and_never_success() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = folder();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for line in PRINTING {
        refused(line, &run(folder.path(), line, full()));
    }
}

#[test]
fn output_to_a_descriptor_that_cannot_be_written_is_an_error() {
    let folder = folder();
    for line in ["systems", "image scan a.img", "image get a.img 7"] {
        let read_only = File::open("/dev/null").unwrap();
        refused(line, &run(folder.path(), line, read_only));
    }
}

#[test]
fn a_change_whose_answer_cannot_be_printed_is_said_to_be_made() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = folder();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for line in [
        "image put a.img 7 other",
        "image remove a.img 8",
        "image load a.img rows.csv",
        "image create b.img --device slc --blocks 32 --system mu --key u32 --value u32",
    ] {
        let error = refused(line, &run(folder.path(), line, full()));
        assert!(error.contains("the image was changed as asked, but"), "{line}: {error}");
    }
    assert!(nandina(folder.path(), "check b.img").output().unwrap().status.success());
}

#[test]
fn a_closed_pipe_is_quiet() {
    let folder = folder();
    for line in PRINTING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = run(folder.path(), line, writer);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && error.is_empty(), "{line}: {error}");
    }
}

#[test]
fn errors_that_cannot_be_printed_keep_their_exit_code() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = folder();
    for (line, code) in [("image get a.img 5000", 1), ("image get a.img x", 2), ("compare -x", 2)] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let status = nandina(folder.path(), line).stderr(full).status().unwrap();
        assert_eq!(status.code(), Some(code), "{line}");
    }
}

#[test]
fn one_file_of_the_program_writes_to_standard_output() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let writes = ["print!(", "println!(", "stdout(", "io::stderr()"];
        let found = writes.iter().find(|&&call| text.contains(call));
        let may = path.file_name().unwrap() == "output.rs";
        assert!(may || found.is_none(), "{}: {found:?}", path.display());
    }
}
