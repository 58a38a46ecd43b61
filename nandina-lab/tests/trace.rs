//! Traces: a written trace is read back as the same work.
//!
//! Each mistake is reported with line and field, and no bytes make the reader panic.

use std::io::Write;
use std::path::Path;

use nandina::Options;
use nandina::flash::profile::SLC;
use nandina_lab::run::{Setup, run};
use nandina_lab::trace::{self, Mistake};
use nandina_lab::work::{Operation, Phase, Work};
use nandina_lab::workload::by_name;
use proptest::prelude::*;

fn text(work: &Work) -> String {
    let mut bytes = Vec::new();
    trace::write(work, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn parse(text: &str) -> Result<Work, Mistake> {
    trace::parse(text.as_bytes())
}

/// The effect of an operation, independent of row numbers.
#[derive(PartialEq, Debug)]
enum Done {
    Put(Vec<u8>, Vec<u8>),
    Lookup(Vec<u8>),
    Scan(Vec<u8>, u16),
    Delete(Vec<u8>),
}

fn done(work: &Work) -> Vec<(String, Vec<Done>)> {
    let one = |operation: &Operation| {
        let key = |row| work.key(row).to_vec();
        match *operation {
            Operation::Insert(row) => Done::Put(key(row), work.value(row).to_vec()),
            Operation::Update(row) => {
                Done::Put(key(row), work.value(row).iter().map(|byte| !byte).collect())
            }
            Operation::Lookup(row) => Done::Lookup(key(row)),
            Operation::Scan { row, records } => Done::Scan(key(row), records),
            Operation::Delete(row) => Done::Delete(key(row)),
        }
    };
    let phase =
        |phase: &Phase| (phase.name.to_string(), phase.operations.iter().map(one).collect());
    work.phases.iter().map(phase).collect()
}

/// Work with few keys and values, so that they repeat in every way.
fn any_work() -> impl Strategy<Value = Work> {
    let operation = (0..5, 0..12u32, 1..=u16::MAX).prop_map(|(kind, row, records)| match kind {
        0 => Operation::Insert(row),
        1 => Operation::Update(row),
        2 => Operation::Lookup(row),
        3 => Operation::Scan { row, records },
        _ => Operation::Delete(row),
    });
    let phase = ("[a-z0-9](([a-z0-9]| |-)*[a-z0-9])?", prop::collection::vec(operation, 0..40));
    let phase = phase.prop_filter("a name of a phase is short", |(name, _)| name.len() <= 60);
    let key = prop_oneof![Just(0u8), Just(1), Just(255)];
    let rows = (1..4usize, 0..3usize).prop_flat_map(move |(key_bytes, value_bytes)| {
        let keys = prop::collection::vec(key.clone(), 12 * key_bytes);
        let values = prop::collection::vec(any::<u8>(), 12 * value_bytes);
        (Just(key_bytes), Just(value_bytes), keys, values)
    });
    (rows, prop::collection::vec(phase, 1..4)).prop_map(|(rows, phases)| {
        let (key_bytes, value_bytes, keys, values) = rows;
        let mut work = Work::from_rows(key_bytes, value_bytes, keys, values).unwrap();
        let phases = phases.into_iter().map(|(name, operations)| Phase::new(name, operations));
        work.phases = phases.collect();
        work.phases[0].operations.push(Operation::Insert(0));
        work
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(work in any_work()) {
        let again = parse(&text(&work)).unwrap();
        prop_assert_eq!((again.key_bytes, again.value_bytes), (work.key_bytes, work.value_bytes));
        prop_assert_eq!(done(&again), done(&work));
        prop_assert_eq!(text(&again), text(&work));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300), mangled in any::<bool>(),
    ) {
        let head = &b"nandina-trace,1,u32,hex:1\n"[..];
        let whole = if mangled { [head, &bytes].concat() } else { bytes };
        if let Err(Mistake { line, what }) = trace::parse(&whole[..]) {
            prop_assert!(line >= 1 && !what.contains('\n'), "{what}");
        }
    }

    #[test]
    fn a_trace_with_a_changed_byte_is_read_or_refused(work in any_work(), at: usize, byte: u8) {
        let mut bytes = text(&work).into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let lines = bytes.split(|&byte| byte == b'\n').count() as u64;
        if let Err(Mistake { line, what }) = trace::parse(&bytes[..]) {
            prop_assert!((1..=lines).contains(&line), "{line}: {what}");
        }
    }
}

#[test]
fn a_workload_costs_the_same_by_its_trace() {
    let made = by_name("postmark", true, 3).unwrap().work;
    let read = parse(&text(&made)).unwrap();
    assert_eq!(read.rows(), made.rows(), "a key that moves between two addresses is one row");
    let setup = Setup { profile: SLC, options: Options::new(1, 0), ram_bytes: None, layer: None };
    for system in ["wandering", "mu"] {
        let cost = |work| run(system, &setup, work, &|_| {}).unwrap().cost().unwrap();
        assert_eq!(cost(&read), cost(&made));
    }
}

#[test]
fn mistakes_are_told_with_line_and_field() {
    for (text, line, what) in [
        ("", 1, "1 fields: 'nandina-trace,1,KEY,VALUE' was expected"),
        ("a,1,u32,u32\n", 1, "field 1: 'a' is no trace: 'nandina-trace,1,KEY,VALUE' was expected"),
        ("nandina-trace,2,u32,u32\n", 1, "field 2, version: '2' cannot be read: 1 was expected"),
        ("nandina-trace,1,u32\n", 1, "3 fields: 'nandina-trace,1,KEY,VALUE' was expected"),
        ("nandina-trace,1,u16,u32\n", 1, "field 3, key: 'u16': u32, i32, u64, i64 or hex:N was"),
        ("nandina-trace,1,hex:65,u32\n", 1, "field 3, key: 'hex:65': u32"),
        ("nandina-trace,1,hex:0,u32\n", 1, "field 3, key: 'hex:0': u32"),
        ("nandina-trace,1,u32,text:4\n", 1, "field 4, value: 'text:4': u32"),
        ("H\n", 1, "no operation follows it"),
        ("H\nphase,a\n", 1, "no operation follows it"),
        (
            "H\n\n# said\ninsert,1,00\nput,1,00\n",
            5,
            "field 1: 'put' is no operation: insert, lookup,",
        ),
        ("H\ninsert,1,00\nlookup,x\n", 3, "field 2, key: 'x' is not u32: a whole number from 0 to"),
        ("H\r\ninsert,1,00\r\ninsert,-1,00\r\n", 3, "field 2, key: '-1' is not u32"),
        ("H\ninsert,1,0g\n", 2, "field 3, value: '0g' is not hex:1: 2 hexadecimal digits were"),
        ("H\ninsert,1\n", 2, "2 fields: insert,KEY,VALUE was expected"),
        ("H\ndelete,1,2\n", 2, "3 fields: delete,KEY was expected"),
        ("H\nlookup\n", 2, "1 fields: lookup,KEY was expected"),
        ("H\nscan,1,2,3\n", 2, "more than 3 fields: scan,KEY,RECORDS was expected"),
        ("H\nscan,1,0\n", 2, "field 3, records: '0': a whole number from 1 to 65535 was expected"),
        ("H\nscan,1,65536\n", 2, "field 3, records: '65536': a whole number"),
        ("H\nphase,\n", 2, "field 2, name: '': a name of 1 to 60 bytes was expected"),
        ("H\nphase, a\n", 2, "field 2, name: ' a': a name"),
        ("H\nphase,a,b\n", 2, "3 fields: phase,NAME was expected"),
    ] {
        let whole = text.replacen('H', "nandina-trace,1,u32,hex:1", 1);
        let mistake = parse(&whole).unwrap_err();
        assert_eq!(mistake.line, line, "{text:?}: {}", mistake.what);
        assert!(mistake.what.starts_with(what), "{text:?}: {}", mistake.what);
    }
    let bytes = b"nandina-trace,1,u32,hex:1\nlookup,1\nlookup,\xFF\n";
    let mistake = trace::parse(&bytes[..]).unwrap_err();
    assert_eq!((mistake.line, &mistake.what[..]), (3, "this is not text"));
    let phases = "phase,a\n".repeat(1001);
    let mistake = parse(&format!("nandina-trace,1,u32,hex:1\n{phases}")).unwrap_err();
    assert_eq!(mistake.line, 1002);
    assert!(mistake.what.starts_with("a trace may have 1000 phases"), "{}", mistake.what);
}

#[test]
fn an_endless_line_is_refused_without_being_read() {
    let head = &b"nandina-trace,1,u32,u32\ninsert,"[..];
    let mistake =
        trace::parse(std::io::BufReader::new(std::io::Read::chain(head, std::io::repeat(b'1'))));
    let Mistake { line, what } = mistake.unwrap_err();
    assert_eq!(line, 2);
    assert!(what.starts_with("the line is longer than 131262 bytes"), "{what}");
}

#[test]
fn numbers_order_as_keys_and_operations_without_a_phase_have_one() {
    let work =
        parse("nandina-trace,1,i32,u64\ninsert,-5,1\ninsert,3,18446744073709551615").unwrap();
    assert!(work.key(0) < work.key(1));
    assert_eq!(work.value(0), 1u64.to_le_bytes());
    assert_eq!((&work.phases[0].name[..], work.operations()), ("trace", 2));
}

#[test]
fn files_may_be_compressed_and_damage_is_named() {
    let plain = b"nandina-trace,1,u32,u32\ninsert,1,2\nlookup,1\n";
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let packed = ruzstd::encoding::compress_to_vec(&plain[..], level);
    let read = |bytes: &[u8]| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let seen = std::cell::Cell::new(0);
        let result = trace::read(file.path(), &|bytes| seen.set(seen.get() + bytes));
        let name = format!("{}: ", file.path().display());
        let result =
            result.map_err(|error| error.to_string().strip_prefix(&name).unwrap().to_string());
        (result, seen.get())
    };
    let (work, seen) = read(&packed);
    assert_eq!(
        (work.unwrap(), seen),
        (parse(std::str::from_utf8(plain).unwrap()).unwrap(), packed.len() as u64)
    );
    let (damaged, _) = read(&packed[..packed.len() - 3]);
    assert!(damaged.unwrap_err().contains("cannot be read"));
    let (twice, _) = read(&[&packed[..], &packed].concat());
    assert!(twice.unwrap_err().starts_with("more data follows its compressed part"));
    let (wrong, _) = read(b"nandina-trace,1,u32,u32\nfind,1\n");
    assert!(wrong.unwrap_err().starts_with("line 2: field 1: 'find' is no operation"));
}

#[test]
fn a_file_that_is_there_is_not_written_over_and_no_half_trace_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("work.csv");
    let mut work = parse("nandina-trace,1,u32,u32\ninsert,1,2\n").unwrap();
    trace::save(&work, &path).unwrap();
    assert_eq!(text(&trace::read(&path, &|_| {}).unwrap()), text(&work));
    let refused = trace::save(&work, &path).unwrap_err().to_string();
    assert_eq!(refused, format!("{} is there already: choose another file", path.display()));
    work.phases[0].name = "a,b".into();
    let other = folder.path().join("other.csv");
    assert!(trace::save(&work, &other).unwrap_err().to_string().contains("'a,b' can be no name"));
    assert!(!other.exists());
}

#[test]
fn the_example_of_the_readme_is_a_trace() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let example = readme.split("```csv\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(parse(example).unwrap().operations(), 5);
}

#[test]
fn the_example_of_the_document_is_read_as_it_says() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/TRACES.md");
    let document = std::fs::read_to_string(document).unwrap();
    let example = document.split("```csv\n").nth(1).unwrap().split("```").next().unwrap();
    let work = parse(example).unwrap();
    let phases: Vec<_> =
        work.phases.iter().map(|phase| (&phase.name[..], phase.operations.len())).collect();
    assert_eq!(phases, [("morning", 4), ("evening", 3)]);
    for system in ["wandering", "mu"] {
        let setup =
            Setup { profile: SLC, options: Options::new(1, 0), ram_bytes: None, layer: None };
        let cost = run(system, &setup, &work, &|_| {}).unwrap().cost().unwrap();
        assert_eq!(cost.records, Some(1), "as the document says");
    }
}
