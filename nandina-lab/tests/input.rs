//! Readers of users' files: what is read, and how each mistake is named.

use std::io::Write;
use std::path::Path;

use nandina_lab::input::{Records, read};

fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn csv(text: &str, key: &str) -> Result<Records, String> {
    refusal_or_records(text.as_bytes(), Some(key), None, None)
}

/// Reads records; a refusal is returned without the file's name, which must open it.
fn refusal_or_records(
    bytes: &[u8],
    key: Option<&str>,
    value: Option<&str>,
    key_bytes: Option<usize>,
) -> Result<Records, String> {
    let file = file(bytes);
    read(file.path(), key, value, key_bytes, None).map_err(|error| {
        let text = error.to_string();
        assert!(!text.contains('\n'), "more than a line: {text}");
        let name = format!("{}: ", file.path().display());
        text.strip_prefix(&name).expect("the refusal names the file").to_string()
    })
}

fn refusal(text: &str, key: &str) -> String {
    csv(text, key).unwrap_err()
}

#[test]
fn csv_columns_are_read_by_name() {
    let records = csv("time,temp,wind\n1,-5,7\n2,30,8\n3,-5,9\n", "temp").unwrap();
    assert_eq!((records.len(), records.distinct_keys), (3, 2));
    assert_eq!((records.key_bytes, records.value_bytes), (4, 4));
    assert_eq!((&records.key_column[..], &records.value_column[..]), ("temp", "time"));
    assert!(records.key(0) < records.key(1), "-5 comes before 30");
    assert_eq!(records.value(1), 2i32.to_le_bytes());
}

#[test]
fn keys_order_as_their_numbers() {
    let numbers = [-9e30, -2.5, -0.0, 1e-300, 2.0, 3.5, 7e200];
    let text = numbers.iter().fold("x\n".to_string(), |text, number| text + &format!("{number}\n"));
    let records = csv(&text, "x").unwrap();
    assert_eq!(records.key_bytes, 8);
    assert!((1..records.len()).all(|row| records.key(row - 1) < records.key(row)));

    let records = csv("x\n-9000000000\n-1\n0\n9000000000\n", "x").unwrap();
    assert_eq!(records.key_bytes, 8);
    assert!((1..records.len()).all(|row| records.key(row - 1) < records.key(row)));
}

#[test]
fn equal_keys_are_kept_by_row_number() {
    let records = csv("a,b\n5,1\n5,2\n4,3\n", "a").unwrap().with_row_numbers();
    assert_eq!((records.key_bytes, records.distinct_keys), (8, 3));
    assert!(records.key(2) < records.key(0) && records.key(0) < records.key(1));
}

#[test]
fn mistakes_in_csv_are_named() {
    assert_eq!(refusal("a,b\n1,2\n", "c"), "there is no column 'c': it has a, b");
    let missing = refusal_or_records(b"a,b\n1,2\n", None, None, None).unwrap_err();
    assert_eq!(missing, "say which column is the key with --key COLUMN: it has a, b");
    assert_eq!(
        refusal("a,b\n1,2\nx7,3\n", "a"),
        "line 3, column a: 'x7' is not a number: mend the cell, or choose another column"
    );
    assert_eq!(
        refusal("a,b\n1,2\n3\n", "a"),
        "line 3: 1 fields where the header has 2: mend the line"
    );
    for (text, line) in [
        ("a\n1\n\n\nx\n", 5),
        ("a\r\n1\r\nx\r\n", 3),
        ("\n\na\n1\n\r\n\r\nx", 7),
        ("a\n\"1\n2\"\n", 2),
    ] {
        let mistake = refusal(text, "a");
        assert!(mistake.starts_with(&format!("line {line}, column a: ")), "{text:?}: {mistake}");
    }
    assert!(refusal("a,b\n\n1,2\r\n\n3\n", "a").starts_with("line 5: 1 fields"));
    assert_eq!(refusal("a,b\n", "a"), "there are no records in it: give a file with at least one");
    let large = refusal_or_records(b"a\n1\n5000000000\n", Some("a"), None, Some(4)).unwrap_err();
    assert_eq!(large, "line 3, column a: 5000000000 does not fit in 4 bytes: choose --key-size 8");
    let odd = refusal_or_records(b"a\n1\n", Some("a"), None, Some(3)).unwrap_err();
    assert!(
        odd.ends_with("--key-size 3 is no size for a number: choose 4, 8, or up to 64"),
        "{odd}"
    );
}

#[test]
fn different_whole_numbers_never_become_one_key() {
    // Numbers above 64 bits, and numbers beside decimals, were rounded once.
    for text in [
        "t,v\n18446744073709551615,1\n18446744073709551616,2\n",
        "t,v\n-9223372036854775809,1\n-9223372036854775808,2\n",
        "t,v\n9223372036854775807,1\n9223372036854775808,2\n",
        "t,v\n-170141183460469231731687303715884105728,1\n0,2\n170141183460469231731687303715884105727,3\n",
    ] {
        let records = csv(text, "t").unwrap();
        assert_eq!(records.distinct_keys, records.len(), "{text}");
        assert!((1..records.len()).all(|row| records.key(row - 1) < records.key(row)), "{text}");
    }
    let unsigned = csv("t,v\n18446744073709551615,1\n0,18446744073709551615\n", "t").unwrap();
    assert_eq!((unsigned.key_bytes, unsigned.value_bytes), (8, 8));
    assert_eq!(unsigned.value(1), u64::MAX.to_le_bytes());
    let wide = csv("t,v\n18446744073709551616,-1\n0,18446744073709551616\n", "t").unwrap();
    assert_eq!((wide.key_bytes, wide.value_bytes), (16, 16));
    assert_eq!(wide.value(0), (-1i128).to_le_bytes());

    let text = b"t\n1\n18446744073709551616\n";
    for size in [4, 8] {
        let small = refusal_or_records(text, Some("t"), None, Some(size)).unwrap_err();
        let expected = format!(
            "line 3, column t: 18446744073709551616 does not fit in {size} bytes: choose --key-size 16"
        );
        assert_eq!(small, expected);
    }
    let what = "loses digits as a decimal of 8 bytes: round it, or choose another column";
    for (text, line, cell) in [
        ("t,v\n9007199254740992,1\n1.5,2\n9007199254740993,3\n", 4, "9007199254740993"),
        ("v,t\n9007199254740993,1\n1.5,2\n", 2, "9007199254740993"),
        (
            "t,v\n1,1\n170141183460469231731687303715884105728,2\n",
            3,
            "170141183460469231731687303715",
        ),
    ] {
        let column = if text.starts_with('t') { "t" } else { "v" };
        let expected = format!("line {line}, column {column}: '{cell}' {what}");
        assert_eq!(refusal(text, "t"), expected);
    }
}

#[test]
fn different_decimals_never_become_one_key() {
    assert_eq!(
        refusal("t,v\n0.1,1\n0.3,2\n0.10000000000000000001,3\n", "t"),
        "line 4, column t: '0.10000000000000000001' becomes the same decimal of 8 bytes as the other number in \
         line 2: round both, or choose another column"
    );
    assert!(
        refusal("t,v\n0.0,1\n1e-400,2\n", "t").starts_with("line 3, column t: '1e-400' becomes")
    );
    assert!(
        refusal("t,v\n0.5,1\n1e400,2\n", "t")
            .contains("'1e400' is too large for a decimal of 8 bytes: mend")
    );
    for word in ["inf", "NaN", "infinity", "-nan"] {
        let said = refusal(&format!("t,v\n0.5,1\n{word},2\n"), "t");
        assert!(said.contains("is not a number: mend the cell"), "{said}");
    }
    for cell in
        ["00.0e9223372036854775807", "0.01e-9223372036854775808", "0.0e-99999999999999999999"]
    {
        let records = csv(&format!("t,v\n{cell},1\n0.5,2\n{cell},3\n"), "t").unwrap();
        assert_eq!(records.distinct_keys, 2, "{cell}");
    }
    // The same number, written in several ways, is one key; as a value it may be rounded.
    let records = csv("t,v\n0.5,0.1\n5e-1,0.10000000000000000001\n.50,1\n-0,1\n0,1\n", "t");
    assert_eq!(records.unwrap().distinct_keys, 2);
}

#[test]
fn two_columns_of_one_name_are_refused() {
    assert_eq!(refusal("t,t\n1,2\n", "t"), "there are two columns 't': rename one");
}

fn sensor_page(records: &[(u32, [i32; 3])]) -> Vec<u8> {
    let mut page = vec![0xAD; 512];
    page[4..6].copy_from_slice(&(records.len() as u16).to_le_bytes());
    for (index, (key, values)) in records.iter().enumerate() {
        let at = 16 + index * 16;
        page[at..at + 4].copy_from_slice(&key.to_le_bytes());
        for (column, value) in values.iter().enumerate() {
            let at = at + 4 + column * 4;
            page[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    page
}

#[test]
fn sensor_pages_are_read_and_damage_is_named() {
    let mut bytes = sensor_page(&[(7, [-1, 2, 3]), (8, [4, 5, 6])]);
    bytes.extend(sensor_page(&[(9, [0, 0, -7])]));
    let records = refusal_or_records(&bytes, Some("v3"), Some("key"), None).unwrap();
    assert_eq!(records.len(), 3);
    assert!(records.key(2) < records.key(0));
    assert_eq!(records.value(2), 9i32.to_le_bytes());
    let records = refusal_or_records(&bytes, Some("v1"), None, None).unwrap();
    assert_eq!(&records.value_column[..], "v2");

    let column = refusal_or_records(&bytes, Some("temp"), None, None).unwrap_err();
    assert_eq!(column, "there is no column 'temp': it has key, v1, v2, v3");
    bytes[512 + 4] = 32;
    let count = refusal_or_records(&bytes, None, None, None).unwrap_err();
    assert_eq!(
        count,
        "page 1 (byte 512): its header says 32 records, a page has room for 31: this is no sensor page"
    );
    let other = refusal_or_records(&[0xC3; 700], None, None, None).unwrap_err();
    assert!(other.starts_with("this is neither CSV text nor 512-byte sensor pages"), "{other}");
}

#[test]
fn zstd_is_undone_and_its_damage_named() {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let mut packed = ruzstd::encoding::compress_to_vec(&b"a,b\n1,2\n"[..], level);
    assert_eq!(refusal_or_records(&packed, Some("a"), None, None).unwrap().len(), 1);
    packed.truncate(packed.len() - 4);
    let damage = refusal_or_records(&packed, Some("a"), None, None).unwrap_err();
    assert!(damage.starts_with("its zstd compression is damaged"), "{damage}");
}

#[test]
fn no_bytes_make_a_reader_panic() {
    for seed in 0..400u32 {
        let length = (seed * 37 % 1024) as usize;
        let mut state = seed;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8 & if seed % 2 == 0 { 0x7F } else { 0xFF }
        })
        .take(length)
        .collect();
        let _ = refusal_or_records(&bytes, Some("a"), None, None);
        let _ = refusal_or_records(
            &[&0xFD2F_B528u32.to_le_bytes()[..], &bytes].concat(),
            None,
            None,
            None,
        );
    }
}

#[test]
fn a_real_sensor_series_is_read_whole() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/embeddb-sensors");
    let path = shared.join("uwa500K_only_100K.bin.zst");
    if !path.exists() {
        // Not by a macro: the test harness would capture it.
        let skipped = "skipped: the sensor series are not beside the project";
        writeln!(std::io::stderr(), "{skipped}").unwrap();
        return;
    }
    let records = read(&path, Some("v1"), None, None, None).unwrap();
    assert_eq!((records.len(), records.distinct_keys), (100_000, 288));
}
