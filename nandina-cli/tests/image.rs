//! Images as a user meets them.
//!
//! The tests do whole round trips through the program, and check that each mistake takes one line,
//! the exit codes, the JSON, and that looking changes no byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nandina::store::SYSTEMS;
use serde_json::{Value, json};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the program in this folder.
    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandina"));
        command.current_dir(self.0.path()).args(line.split_whitespace()).output().unwrap()
    }

    /// Its standard output; checks the exit code.
    fn text(&self, code: i32, line: &str) -> String {
        let output = self.run(line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn ok(&self, line: &str) -> String {
        self.text(0, line)
    }

    fn json(&self, code: i32, line: &str) -> Value {
        serde_json::from_str(&self.text(code, &format!("{line} --json"))).unwrap()
    }

    /// The one line on standard error, with exit code 2.
    fn mistake(&self, line: &str) -> String {
        let output = self.run(line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{line}: {text}");
        assert!(output.stdout.is_empty());
        text.trim_start_matches("nandina: ").trim_end().to_string()
    }

    fn create(&self, system: &str, key: &str, value: &str) {
        // Neither are pages replaced on NAND, nor are parts of them programmed.
        let device = match SYSTEMS.iter().find(|it| it.key == system) {
            Some(it) if it.replaces() => "sd",
            Some(it) if it.has_leaf_blocks() => "nor",
            _ => "slc",
        };
        let image = format!("image create a.img --device {device} --blocks 32");
        self.ok(&format!("{image} --system {system} --key {key} --value {value}"));
    }
}

fn state(path: &Path) -> (Vec<u8>, std::time::SystemTime) {
    (fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap())
}

fn systems(folder: &Folder) -> Vec<String> {
    let listed = folder.json(0, "systems");
    let keys = listed.as_array().unwrap().iter().filter(|system| system["of_list"] == true);
    let keys = keys.map(|system| system["key"].as_str().unwrap().to_string());
    // It needs a device that replaces a page as a whole or not at all: no chip of the list does.
    let refused = folder.mistake(
        "image create x.img --device sd --blocks 32 --system wpcb --key i32 --value text:12",
    );
    assert!(refused.contains("as a whole or not at all"), "{refused}");
    keys.filter(|key| key != "wpcb").collect()
}

#[test]
fn records_live_in_an_image_of_every_system() {
    let folder = Folder::new();
    for system in systems(&folder) {
        let _ = fs::remove_file(folder.path("a.img"));
        folder.create(&system, "i32", "text:12");
        assert_eq!(folder.json(0, "image put a.img -5 minus"), json!({ "new": true }));
        assert_eq!(folder.ok("image put a.img 7 seven"), "put\n");
        assert_eq!(folder.ok("image put a.img 7 SEVEN"), "replaced\n");
        assert_eq!(folder.ok("image get a.img 7"), "SEVEN\n");
        assert_eq!(folder.json(0, "image get a.img -5"), json!({ "value": "minus" }));
        assert_eq!(folder.json(1, "image get a.img 8"), json!({ "value": null }));
        assert_eq!(folder.ok("image scan a.img"), "key,value\n-5,minus\n7,SEVEN\n");
        assert_eq!(folder.ok("image remove a.img -5"), "removed\n");
        let before = state(&folder.path("a.img"));
        assert_eq!(folder.json(1, "image remove a.img -5"), json!({ "removed": false }));
        assert_eq!(folder.text(1, "image get a.img -5"), "");
        assert_eq!(state(&folder.path("a.img")), before);

        let rows = (0..3000).map(|row| format!("x,{},\"row, {row}\"\n", row * 7919 % 3001 - 1500));
        let csv = format!("a,id,name\n{}", rows.collect::<String>());
        fs::write(folder.path("rows.csv"), csv).unwrap();
        let loaded = folder.json(0, "image load a.img rows.csv --key id --value name");
        assert_eq!(loaded, json!({ "rows": 3000, "new": 2999, "replaced": 1, "records": 3000 }));
        assert_eq!(folder.ok("image get a.img 1500"), "row, 2272\n".replace("2272", &row_of(1500)));
        let scan = folder.json(0, "image scan a.img --from -3 --to 1");
        let keys: Vec<_> = scan.as_array().unwrap().iter().map(|row| &row["key"]).collect();
        assert_eq!(keys, [-3, -2, -1, 0, 1]);
        let down = folder.ok("image scan a.img --down --to 1 --limit 2");
        assert_eq!(
            down,
            format!("key,value\n1,\"row, {}\"\n0,\"row, {}\"\n", row_of(1), row_of(0))
        );
        assert_eq!(folder.ok("image scan a.img --from 5 --to 4"), "key,value\n");
        assert_eq!(folder.ok("image scan a.img").lines().count(), 3001);

        let inspection = folder.json(0, "inspect a.img");
        assert_eq!(inspection["state"], "whole");
        assert_eq!(inspection["medium"]["system"], system);
        // What was inserted since the last root is in a journal, a record in each page.
        let in_tree = inspection["tree"]["records_reached"].as_u64().unwrap();
        assert_eq!(in_tree + inspection["pages"]["journal"].as_u64().unwrap(), 3000, "{system}");
        let check = folder.json(0, "check a.img");
        assert_eq!((&check["holds"], &check["records"]), (&json!(true), &json!(3000)));
        // A card levels its wear itself: nothing is erased that could be forecast.
        if system == "btree" {
            continue;
        }
        let wear = folder.json(0, "wear a.img");
        assert_eq!(wear["erase_counts"].as_array().unwrap().len(), 32);
        // Three records were inserted, one was removed, 3,000 were loaded.
        assert_eq!(wear["forecast"]["observed"], 3004.0);
        assert!(
            wear["forecast"]["until_mean"].as_f64() >= wear["forecast"]["until_most_worn"].as_f64()
        );
        let days = folder.json(0, "wear a.img --days-observed 0.5");
        assert_eq!(
            (&days["forecast"]["unit"], &days["forecast"]["observed"]),
            (&json!("days"), &json!(0.5))
        );
    }
}

/// The last row of the file above with this key.
fn row_of(key: i32) -> String {
    (0..3000).rfind(|row| row * 7919 % 3001 - 1500 == key).unwrap().to_string()
}

#[test]
fn looking_prints_tables_and_writes_nothing() {
    let folder = Folder::new();
    folder.create("mu", "u64", "hex:4");
    folder.ok("image put a.img 18446744073709551615 00ff7a01");
    let before = state(&folder.path("a.img"));
    let text = folder.ok("inspect a.img");
    for part in ["slc, 32 blocks of 64 pages", "mu, keys of 8 bytes", "| level | nodes |", "erased"]
    {
        assert!(text.contains(part), "{text}");
    }
    assert!(folder.ok("check a.img").contains("every invariant holds: mu, 1 records"));
    assert!(folder.ok("wear a.img").contains("100000 erases of each block are promised"));
    folder.ok("wear a.img --days-observed 30");
    assert_eq!(folder.ok("image scan a.img"), "key,value\n18446744073709551615,00ff7a01\n");
    folder.ok("image get a.img 18446744073709551615");
    assert_eq!(state(&folder.path("a.img")), before, "looking wrote to the image");
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1, "a temporary file is left");
}

#[test]
fn a_damaged_image_is_inspected_and_its_violations_are_listed() {
    let folder = Folder::new();
    folder.create("mu", "u32", "u32");
    let rows: String = (0..2000).map(|row| format!("{row},{row}\n")).collect();
    fs::write(folder.path("rows.csv"), format!("key,value\n{rows}")).unwrap();
    folder.ok("image load a.img rows.csv");
    let whole = folder.json(0, "inspect a.img");
    // Damages pages before the newest root in the file: some of them have leaves that it needs.
    let mut bytes = fs::read(folder.path("a.img")).unwrap();
    let pages_at = bytes.len() - 32 * 64 * (2048 + 64);
    let root = whole["tree"]["root_page"].as_u64().unwrap() as usize;
    for page in root - 200..root {
        bytes[pages_at + page * (2048 + 64) + 100] ^= 1;
    }
    fs::write(folder.path("a.img"), &bytes).unwrap();
    let found = folder.json(0, "inspect a.img");
    assert_eq!((&found["state"], &found["pages"]["damaged"]), (&json!("damaged"), &json!(200)));
    assert!(!found["tree"]["losses"].as_array().unwrap().is_empty());
    assert!(folder.ok("inspect a.img").contains("The index is DAMAGED."));
    let violations = folder.text(1, "check a.img");
    assert!(violations.lines().all(|line| line.starts_with("a.img: ")), "{violations}");
    assert!(violations.contains("its checksum does not match"), "{violations}");
    assert_eq!(folder.json(1, "check a.img")["holds"], json!(false));
    folder.ok("wear a.img");
    assert_eq!(fs::read(folder.path("a.img")).unwrap(), bytes);

    // Only the newest roots are damaged: an older tree replaces them, and the inspector reports it.
    for page in root - 200..root - 2 {
        bytes[pages_at + page * (2048 + 64) + 100] ^= 1;
    }
    bytes[pages_at + root * (2048 + 64) + 100] ^= 1;
    fs::write(folder.path("a.img"), &bytes).unwrap();
    let found = folder.json(0, "inspect a.img");
    assert_eq!((&found["state"], &found["unexplained_pages"]), (&json!("whole"), &json!(3)));
    assert!(folder.ok("inspect a.img").contains("3 damaged pages are newer than the newest root"));
    assert!(folder.text(1, "check a.img").contains("newer changes may be lost"));
}

#[test]
fn mistakes_get_one_line_exit_code_2_and_leave_the_image() {
    let folder = Folder::new();
    folder.create("mu", "u32", "text:4");
    let before = state(&folder.path("a.img"));
    let write = |name: &str, text: &str| fs::write(folder.path(name), text).unwrap();
    write("cell.csv", "id,name\n1,one\n2,toolong\n");
    write("ragged.csv", "id,name\n1,one\n2,two,too\n");
    write("empty.csv", "");
    write("one.csv", "id\n1\n");
    let rows: String = (0..400_000).map(|row| format!("{row},x\n")).collect();
    write("large.csv", &format!("id,name\n{rows}"));
    let create = "image create b.img --device slc --system mu --key u32";
    for (line, parts) in [
        ("image put a.img abc x", &["KEY: 'abc' is not u32", "0 to 4294967295"][..]),
        ("image put a.img 1 toolong", &["VALUE: 'toolong' is not text:4", "at most 4"]),
        ("image get a.img -1", &["KEY: '-1' is not u32"]),
        ("image scan a.img --from x", &["--from: 'x' is not u32"]),
        ("image load a.img cell.csv", &["cell.csv: line 3, column name: 'toolong'", "at most 4"]),
        ("image load a.img ragged.csv", &["ragged.csv: line 3: 3 fields, 2 were expected"]),
        ("image load a.img empty.csv", &["empty.csv: line 1: a header"]),
        ("image load a.img one.csv", &["one.csv: line 1: two columns"]),
        ("image load a.img none.csv", &["none.csv: cannot be read"]),
        ("image load a.img cell.csv --key no", &["cell.csv: there is no column 'no'", "id, name"]),
        ("image load a.img large.csv", &["a.img: at large.csv, line ", "the device is full"]),
        (
            "image create a.img --device slc --system mu --key u32 --value u32",
            &["a.img: there is a file"],
        ),
        (&format!("{create} --value u16"), &["--value u16: choose u32, i32"]),
        (&format!("{create} --value text:4000"), &["can never fit"]),
        (&format!("{create} --value u32 --blocks 2"), &["the chip is too small"]),
        (
            "image create b.img --device slc --system no --key u32 --value u32",
            &["there is no system 'no'"],
        ),
        (
            "image create b.img --device no --system mu --key u32 --value u32",
            &["there is no device 'no'"],
        ),
        (
            "image create b.img --device slc --system mu --key text:65 --value u32",
            &["--key text:65: choose u32", "N being bytes, 1 to 64"],
        ),
        (
            "image create no/b.img --device slc --system mu --key u32 --value u32",
            &["no/b.img: there is no folder 'no': make it first"],
        ),
        ("image get none.img 1", &["none.img: "]),
        ("inspect cell.csv", &["cell.csv: this is no chip image"]),
        ("check none.img", &["none.img: "]),
        ("wear a.img --days-observed 0", &["'0'", "from 0.001 to 100000"]),
        ("wear a.img --days-observed nan", &["'nan'", "from 0.001 to 100000"]),
        ("wear a.img --days-observed 1e300", &["'1e300'", "from 0.001 to 100000"]),
        ("wear a.img --days-observed 1e-320", &["'1e-320'", "from 0.001 to 100000"]),
        ("wear a.img --days-observed -1", &["'-1'", "from 0.001 to 100000"]),
        (
            "image create b.img --device tlc --blocks 43691 --system mu --key u32 --value u32",
            &["--blocks 43691 is too many for tlc: choose 1 to 43690"],
        ),
        (
            "image create b.img --device slc --system mu --key hex:70000 --value u32",
            &["--key hex:70000: choose u32", "1 to 64"],
        ),
    ] {
        let text = folder.mistake(line);
        assert!(parts.iter().all(|part| text.contains(part)), "{line}: {text}");
    }
    assert_eq!(state(&folder.path("a.img")), before);
    assert!(!folder.path("b.img").exists());
    write("cut.img", "");
    fs::write(folder.path("cut.img"), &before.0[..9000]).unwrap();
    assert!(folder.mistake("inspect cut.img").contains("bytes, "));
}

#[test]
fn no_put_of_many_at_once_is_lost() {
    let folder = Folder::new();
    folder.create("mu", "u32", "u32");
    let held = nandina_lab::store::Store::open(&folder.path("a.img")).unwrap();
    let refused = folder.mistake("image put a.img 1 1");
    assert_eq!(refused, "a.img: it is in use by another program: wait until that ends");
    assert!(folder.mistake("image remove a.img 1").contains("in use"));
    for reader in ["image scan a.img", "inspect a.img", "check a.img", "wear a.img"] {
        folder.ok(reader);
    }
    folder.text(1, "image get a.img 1");
    drop(held);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                for key in (0..10).map(|turn| turn * 4 + worker) {
                    loop {
                        let output = folder.run(&format!("image put a.img {key} {key}"));
                        if output.status.success() {
                            break;
                        }
                        let error = String::from_utf8_lossy(&output.stderr);
                        assert!(error.contains("in use"), "{error}");
                    }
                }
            });
        }
    });
    assert_eq!(folder.json(0, "check a.img")["records"], json!(40));
}

#[test]
fn a_file_may_be_loaded_by_its_first_two_columns() {
    let folder = Folder::new();
    folder.create("wandering", "text:8", "i64");
    fs::write(folder.path("rows.csv"), "name , n\nzwölf,12\nminus,-1\n\"\",0\n").unwrap();
    folder.ok("image load a.img rows.csv");
    assert_eq!(folder.ok("image scan a.img"), "key,value\n,0\nminus,-1\nzwölf,12\n");
    folder.ok("image load a.img rows.csv --key name --value n");
    fs::write(folder.path("turned.csv"), "n,name\n7,minus\n").unwrap();
    folder.ok("image load a.img turned.csv --value n");
    assert_eq!(folder.ok("image get a.img minus"), "7\n");
}

#[test]
fn settings_of_the_medium_of_tnc_are_given_once() {
    let create = "image create a.img --system tnc --key i32 --value text:12";
    for (device, settings, packed) in [
        ("slc --blocks 32", "", json!([7, false])),
        ("slc --blocks 32", "--fanout 8", json!([58, false])),
        ("mlc --blocks 64", "--fanout 200 --arena-bytes 120000", json!([4, false])),
        ("slc --blocks 32", "--journal-values true", json!([7, true])),
        ("slc --blocks 32", "--fanout 16 --journal-values true --checkpoints", json!([30, true])),
        ("nor --blocks 64", "--fanout 5 --arena-bytes 9000", json!([6, false])),
        ("nor --blocks 64", "--fanout 4 --journal-values true", json!([10, true])),
    ] {
        let folder = Folder::new();
        folder.ok(&format!("{create} --device {device} {settings}"));
        let shape = |object: &Value| {
            let packed = &object["tree"]["packed"];
            json!([packed["nodes_max"], packed["values_in_journal"]])
        };
        assert_eq!(shape(&folder.json(0, "inspect a.img")), packed, "{device} {settings}");
        assert_eq!(folder.ok("image put a.img -5 minus"), "put\n", "{settings}");
        let rows: String = (0..400).map(|row| format!("{row},row {row}\n")).collect();
        fs::write(folder.path("rows.csv"), format!("id,name\n{rows}")).unwrap();
        folder.ok("image load a.img rows.csv");
        assert_eq!(folder.ok("image get a.img 399"), "row 399\n");
        assert_eq!(folder.ok("image remove a.img 7"), "removed\n");
        let scan = folder.ok("image scan a.img --to 8");
        assert_eq!(scan.lines().count(), 10, "{settings}: {scan}");
        let check = folder.json(0, "check a.img");
        assert_eq!((&check["holds"], &check["records"]), (&json!(true), &json!(400)));
        let found = folder.json(0, "inspect a.img");
        assert_eq!((&found["state"], &shape(&found)), (&json!("whole"), &packed), "{settings}");
    }
    let folder = Folder::new();
    for (line, part) in [
        ("mu --fanout 8", "--fanout is for tnc: choose such a system with --system or"),
        ("vm --arena-bytes 9000", "--arena-bytes is for tnc: choose"),
        ("rosette --journal-values false", "--journal-values is for tnc: choose"),
        ("tnc --arena-bytes 900", "tnc: arena_bytes must be at least "),
        ("tnc --fanout 3", "invalid value '3' for '--fanout"),
    ] {
        let create = "image create a.img --device slc --key u32 --value u32 --system";
        let text = folder.mistake(&format!("{create} {line}"));
        assert!(text.contains(part), "{line}: {text}");
        assert!(!folder.path("a.img").exists(), "{line}");
    }
}

#[test]
fn what_is_newer_than_a_commit_is_counted() {
    for (device, pages, slots, text) in [
        ("nor", 1, 4, "has 4 changes in 1 page, which a mount reads and makes again; 4 of these "),
        ("slc", 4, 0, "has 4 changes in 4 pages, which a mount reads and makes again."),
    ] {
        let folder = Folder::new();
        let create = format!("image create a.img --device {device} --blocks 32 --system tnc");
        folder.ok(&format!("{create} --key u32 --value text:12"));
        let empty = folder.ok("inspect a.img");
        assert!(empty.contains("Nothing is newer: the journal after it is empty."), "{empty}");
        fs::write(folder.path("rows.csv"), "id,name\n1,one\n2,two\n3,three\n4,four\n").unwrap();
        folder.ok("image load a.img rows.csv");
        let found = folder.json(0, "inspect a.img");
        let expected = json!({
            "pages": pages, "changes": 4,
            "pages_of_slots": u32::from(slots > 0), "changes_in_slots": slots,
        });
        assert_eq!(found["journal"], expected, "{device}");
        assert_eq!(found["tree"]["records_reached"], 0);
        let inspected = folder.ok("inspect a.img");
        for part in ["Tree of the last commit", "0 records as of that commit, 0 of them", text] {
            assert!(inspected.contains(part), "{part}: {inspected}");
        }
        let check = folder.json(0, "check a.img");
        assert_eq!((&check["records"], &check["journal"]), (&json!(4), &expected), "{device}");
        assert_eq!(check["mount"]["replayed"], 4, "{device}");
        let checked = folder.ok("check a.img");
        let mount = "; a mount loads 1 node, makes 4 changes again and writes ";
        assert!(checked.contains(mount), "{checked}");
        assert!(checked.contains(", 4 changes newer than the last commit in "), "{checked}");
    }
    let folder = Folder::new();
    folder.create("mu", "u32", "u32");
    assert_eq!(folder.json(0, "inspect a.img")["journal"], Value::Null);
    assert_eq!(folder.json(0, "check a.img")["journal"], Value::Null);
    assert_eq!(folder.json(0, "check a.img")["mount"], Value::Null);
}
