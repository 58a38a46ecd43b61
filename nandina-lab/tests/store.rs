//! Images that the program did not make, or whose labels are wrong.
//!
//! The tests check how their records are shown and what is refused.

use std::path::Path;

use nandina::flash::profile::SLC;
use nandina::store::{Mu, Vm};
use nandina::{Index, OpenError, Options, key, ram_needed};
use nandina_lab::store::{Kind, Rows, ScanRange, Store, look};
use nandina_sim::{Chip, ChipError, Faults, Image, TINY};

/// An image with the records 0 to 9 and these labels, as firmware could have left it.
fn made_elsewhere(path: &Path, labels: &[(&str, &str)]) {
    let mut chip = Chip::new(SLC.with_blocks(16));
    let options = Options::new(4, 2);
    let mut ram = vec![0; ram_needed::<Mu>(&chip.profile().geometry, &options)];
    let mut index = Index::<_, Mu>::format(&mut chip, &options, &mut ram).unwrap();
    for number in 0..10u32 {
        index.insert(&key::from_u32(number), &[number as u8, 0xFF]).unwrap();
    }
    let mut image = Image::create(path, chip).unwrap();
    let labels = labels.iter().map(|(name, text)| (name.to_string(), text.to_string()));
    image.labels = labels.collect();
    image.close().unwrap();
}

#[test]
fn an_image_without_kinds_is_shown_as_digits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chip.img");
    made_elsewhere(&path, &[]);
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.kinds(), (Kind::Hex(4), Kind::Hex(2)));
    assert_eq!(store.get("00000007").unwrap().unwrap().to_string(), "07ff");
    assert!(store.put("0000000a", "beef").unwrap());
    store.close().unwrap();
    let (_, changes) = look(&path).unwrap();
    assert_eq!(changes, None, "what was not counted from the beginning is not counted");
    let mut keys = Vec::new();
    let range = ScanRange { from: Some("00000008"), ..ScanRange::default() };
    let taken = Store::open(&path).unwrap().scan(&range, &mut |key, _| {
        keys.push(key.to_string());
        keys.len() < 2
    });
    assert_eq!((taken, keys.join(" ")), (Ok(2), "00000008 00000009".into()));
}

#[test]
fn kinds_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (label, text) in [("key", "u64"), ("key", "what?"), ("value", "text:9")] {
        let path = folder.path().join("chip.img");
        let _ = std::fs::remove_file(&path);
        made_elsewhere(&path, &[(label, text)]);
        let error = Store::open(&path).err().unwrap().to_string();
        assert!(error.contains(&format!("its label '{label}' is '{text}'")), "{error}");
    }
}

#[test]
fn an_image_with_faults_is_gone_on_with_and_a_store_that_is_dropped_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chip.img");
    made_elsewhere(&path, &[("key", "u32"), ("value", "text:2"), ("changes", "10")]);
    let mut image = Image::open(&path).unwrap();
    // Every block fails sooner or later.
    image.set_faults(Faults { program_failures: 200, ..Faults::default() });
    image.close().unwrap();
    let before = std::fs::read(&path).unwrap();
    let csv = folder.path().join("rows.csv");
    let rows: String = (100..9_000).map(|row| format!("{row},x\n")).collect();
    std::fs::write(&csv, format!("n,text\n{rows}")).unwrap();
    let mut store = Store::open(&path).unwrap();
    let (key, value) = store.kinds();
    let rows = Rows::read(&csv, (None, key), (None, value)).unwrap();
    let error = store.load(&rows, &|_| {}).unwrap_err().to_string();
    assert!(error.contains("rows.csv, line ") && error.contains("worn out"), "{error}");
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let mut store = Store::open(&path).unwrap();
    assert!(store.put("50", "ok").unwrap());
    assert!(store.remove("50").unwrap());
    store.close().unwrap();
    assert_eq!(look(&path).unwrap().1, Some(12));
}

#[test]
fn a_wrong_system_is_named_and_not_numbered() {
    let options = Options::new(4, 8);
    let mut ram = vec![0; 1 << 16];
    let mut chip = Chip::new(TINY);
    Index::<_, Mu>::format(&mut chip, &options, &mut ram).unwrap();
    let error = Index::<_, Vm>::open(&mut chip, &options, &mut ram).map(drop).unwrap_err();
    let named = "the medium was made with system mu, not system vm";
    assert_eq!(error.to_string(), named);
    let OpenError::Mismatch { setting, expected, .. } = error else {
        panic!("{error:?}");
    };
    let unknown = OpenError::<ChipError>::Mismatch { setting, found: 200, expected };
    let numbered = "the medium was made with system number 200, which is not known, not system vm";
    assert_eq!(unknown.to_string(), numbered);
}
