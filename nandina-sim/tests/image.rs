//! A chip loaded from a file is the same chip; a file that is no image is refused.

use std::fs;
use std::path::{Path, PathBuf};

use nandina::flash::profile::{DATAFLASH, MLC, SLC};
use nandina::flash::{BlockNumber, Flash, PageNumber, Profile};
use nandina_sim::{Chip, Cut, Faults, Image, ImageError, ImageErrorKind, TINY, Tear};
use proptest::prelude::*;

const UNLISTED: Profile = Profile { key: "bench", summary: "of my own", ..TINY };

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn reload(chip: &Chip) -> Chip {
    let folder = folder();
    let path = folder.path().join("chip.img");
    chip.save(&path).unwrap();
    Chip::load(&path).unwrap()
}

/// The observable state of a chip, its next faults included.
fn seen(chip: &Chip) -> Vec<String> {
    let mut all = vec![
        format!("{:?}", chip.profile()),
        format!("{:?} {:?} {:?}", chip.counters(), chip.time(), chip.fault_counters()),
        format!("{:?}", chip.erase_counts().collect::<Vec<_>>()),
        format!("{:?}", chip.bad_blocks().collect::<Vec<_>>()),
    ];
    let mut chip = chip.clone();
    chip.restore_power();
    let geometry = chip.geometry();
    for page in (0..geometry.pages()).map(PageNumber) {
        let mut main = vec![0; geometry.page_bytes as usize];
        let mut spare = vec![0; geometry.spare_bytes as usize];
        let answer = chip.read(page, &mut main, &mut spare);
        all.push(format!("{page} {answer:?} {} {main:?} {spare:?}", chip.page_is_erased(page)));
    }
    all
}

#[derive(Clone, Debug)]
enum Step {
    Program(u32, u8),
    Rewrite(u32, u8),
    Overwrite(u32, u8),
    Erase(u32),
    Mark(u32),
    Cut(u64, Cut),
    Rest(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let cut = prop::sample::select(Cut::ALL.to_vec());
    prop_oneof![
        8 => (0..32u32, any::<u8>()).prop_map(|(page, byte)| Step::Program(page, byte)),
        1 => (0..32u32, any::<u8>()).prop_map(|(page, byte)| Step::Rewrite(page, byte)),
        1 => (0..32u32, any::<u8>()).prop_map(|(page, byte)| Step::Overwrite(page, byte)),
        4 => (0..8u32).prop_map(Step::Erase),
        1 => (0..8u32).prop_map(Step::Mark),
        1 => (0..3u64, cut).prop_map(|(operation, cut)| Step::Cut(operation, cut)),
        1 => (1..60u32).prop_map(Step::Rest),
    ]
}

fn act(chip: &mut Chip, step: &Step) -> String {
    chip.restore_power();
    let (main, spare) = (chip.geometry().page_bytes, chip.geometry().spare_bytes);
    let bytes = |byte, count: u32| vec![byte; count as usize];
    match *step {
        Step::Program(page, byte) => {
            let done = chip.program(PageNumber(page), &bytes(byte, main), &bytes(byte, spare));
            format!("{done:?}")
        }
        Step::Rewrite(page, byte) => {
            format!("{:?}", chip.rewrite(PageNumber(page), &bytes(byte, main), &[]))
        }
        Step::Overwrite(page, byte) => {
            format!("{:?}", chip.overwrite(PageNumber(page), byte.into(), &[byte, 0]))
        }
        Step::Erase(block) => format!("{:?}", chip.erase(BlockNumber(block))),
        Step::Mark(block) => format!("{:?}", chip.mark_bad(BlockNumber(block))),
        Step::Cut(operation, cut) => {
            chip.cut_at(operation, cut);
            let mut page = bytes(0, main);
            (0..4)
                .map(|block| {
                    let erased = chip.erase(BlockNumber(block));
                    format!("{erased:?} {:?}", chip.read(PageNumber(9), &mut page, &mut []))
                })
                .collect()
        }
        Step::Rest(days) => format!("{:?}", chip.rest(days)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A chip that was renewed is a new chip, whatever was done to it or to what it shares.
    #[test]
    fn a_renewed_chip_is_a_new_one(
        seed: u64,
        profile in prop::sample::select(vec![TINY, UNLISTED, DATAFLASH.with_blocks(8)]),
        shared: bool,
        before in prop::collection::vec(step(), 0..60),
        after in prop::collection::vec(step(), 0..30),
    ) {
        let mut chip = Chip::with_seed(profile, seed);
        chip.spoil_blocks(1);
        chip.set_faults(Faults { program_failures: 9, unstable_pages: 2, ..Faults::default() });
        for step in &before {
            act(&mut chip, step);
        }
        let shares = shared.then(|| (chip.clone(), seen(&chip)));
        chip.renew();
        let mut new = Chip::with_seed(profile, seed);
        prop_assert_eq!(seen(&chip), seen(&new));
        for step in &after {
            prop_assert_eq!(act(&mut chip, step), act(&mut new, step));
        }
        prop_assert_eq!(seen(&chip), seen(&new));
        if let Some((other, before)) = shares {
            prop_assert_eq!(seen(&other), before);
        }
    }

    /// A chip loaded from its file continues as it would have.
    ///
    /// This holds whatever was done to it, and with any faults.
    #[test]
    fn a_chip_goes_on_as_if_it_had_not_been_in_a_file(
        seed: u64,
        profile in prop::sample::select(vec![TINY, UNLISTED, DATAFLASH.with_blocks(8)]),
        faulty: bool,
        before in prop::collection::vec(step(), 0..60),
        after in prop::collection::vec(step(), 0..30),
    ) {
        let mut chip = Chip::with_seed(profile, seed);
        if faulty {
            chip.spoil_blocks(1);
            chip.set_faults(Faults {
                program_failures: 9,
                erase_failures: 9,
                silent_programs: 9,
                silent_erases: 9,
                rewrite_failures: 9,
                silent_rewrites: 9,
                unstable_pages: 2,
                device_errors: 40,
                disturbing_reads: 3,
                retention_days: 20,
                within_ecc: seed % 2 == 0,
                wear_out: true,
            });
        }
        for step in &before {
            act(&mut chip, step);
        }
        chip.restore_power();
        let mut loaded = reload(&chip);
        prop_assert_eq!(seen(&loaded), seen(&chip));
        for step in &after {
            prop_assert_eq!(act(&mut loaded, step), act(&mut chip, step));
        }
        prop_assert_eq!(seen(&loaded), seen(&chip));
    }
}

/// An image with pages, holes, damage and labels, and its bytes.
fn sample(folder: &Path) -> (PathBuf, Vec<u8>) {
    let path = folder.join("sample.img");
    let mut image = Image::create(&path, Chip::with_seed(UNLISTED, 5)).unwrap();
    for block in [1, 3, 6].map(BlockNumber) {
        image.erase(block).unwrap();
        let page = image.geometry().page_in(block, 0);
        image.program(page, &[block.0 as u8; 512], &[7; 40]).unwrap();
    }
    image.cut_at(0, Cut::Inside(Tear::Unreadable));
    image.erase(BlockNumber(6)).unwrap_err();
    image.restore_power();
    image.labels.insert("key".into(), "u32".into());
    image.close().unwrap();
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

fn refusal(path: &Path, bytes: &[u8]) -> ImageErrorKind {
    fs::write(path, bytes).unwrap();
    let error = Chip::load(path).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&path.display().to_string()) && text.lines().count() == 1, "{text}");
    error.kind
}

/// The bytes of an image whose description is another one, with a right checksum.
fn described(bytes: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let mut description: serde_json::Value =
        serde_json::from_slice(&bytes[20..20 + length]).unwrap();
    change(&mut description);
    let description = description.to_string().into_bytes();
    let checksum = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&description);
    let mut new = bytes[..12].to_vec();
    new.extend((description.len() as u32).to_le_bytes());
    new.extend(checksum.to_le_bytes());
    new.extend(&description);
    new.resize(new.len().next_multiple_of(4096), 0);
    new.extend(&bytes[(20 + length).next_multiple_of(4096)..]);
    new
}

#[test]
fn each_kind_of_wrong_file_is_told_from_the_others() {
    let folder = folder();
    let (path, bytes) = sample(folder.path());
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] ^= byte;
        bytes
    };
    assert!(matches!(refusal(&path, b""), ImageErrorKind::NotAnImage));
    assert!(matches!(refusal(&path, b"time,temperature\n1,20\n"), ImageErrorKind::NotAnImage));
    assert!(matches!(refusal(&path, &with(0, 1)), ImageErrorKind::NotAnImage));
    assert!(matches!(
        refusal(&path, &with(8, 3)),
        ImageErrorKind::Version { expected: 1, found: 2 }
    ));
    for length in [8, 19, 25, 5000, bytes.len() - 1, bytes.len() + 1] {
        let mut bytes = bytes.clone();
        bytes.resize(length, 0);
        let kind = refusal(&path, &bytes);
        assert!(matches!(kind, ImageErrorKind::Length { found, .. } if found == length as u64));
    }
    assert!(matches!(refusal(&path, &with(15, 0x7F)), ImageErrorKind::Length { .. }));
    assert!(matches!(refusal(&path, &with(30, 1)), ImageErrorKind::Checksum { .. }));
    assert!(matches!(refusal(&path, &with(17, 1)), ImageErrorKind::Checksum { .. }));
    let kind = refusal(&path, &described(&bytes, |description| description["colour"] = 7.into()));
    assert!(matches!(kind, ImageErrorKind::Description(what) if what.contains("colour")));
    assert!(matches!(Chip::load(folder.path()).unwrap_err().kind, ImageErrorKind::Io(_)));
    assert!(matches!(
        Chip::load(folder.path().join("none")).unwrap_err().kind,
        ImageErrorKind::Io(_)
    ));
}

#[test]
fn impossible_chips_and_states_are_refused() {
    let folder = folder();
    let (path, bytes) = sample(folder.path());
    for (at, value, geometry) in [
        ("/profile/geometry/page_bytes", 0u64, true),
        ("/profile/geometry/page_bytes", 4_000_000_000, true),
        ("/profile/geometry/pages_per_block", 0, true),
        ("/profile/geometry/pages_per_block", 4_000_000_000, true),
        ("/profile/geometry/blocks", 0, true),
        ("/profile/geometry/blocks", 4_000_000_000, true),
        ("/profile/capabilities/programs_per_page", 0, true),
        ("/profile/ecc/codeword_bytes", 0, true),
        ("/profile/timing/read_ns", u64::MAX, true),
        ("/counters/reads", u64::MAX, false),
        ("/time/erase_ns", u64::MAX, false),
        ("/next_read", 99, false),
        ("/blocks/0/block", 99, false),
        ("/blocks/1/block", 1, false),
        ("/blocks/0/erase_count", 4_000_000_000, false),
        ("/blocks/0/next_in_order", 5, false),
        ("/blocks/0/programs/0/0", 4_000_000_000, false),
        ("/blocks/0/written/0/0", 0, false),
        ("/blocks/0/damage", 9, false),
    ] {
        let bytes = described(&bytes, |description| {
            let place = description.pointer_mut(at).unwrap_or_else(|| panic!("no {at}"));
            *place = match at {
                "/blocks/0/damage" => serde_json::json!({"9": {"unreadable": true, "flips": []}}),
                _ => value.into(),
            };
        });
        let kind = refusal(&path, &bytes);
        let right = match kind {
            ImageErrorKind::Geometry(_) => geometry,
            ImageErrorKind::State(_) => !geometry,
            _ => false,
        };
        assert!(right, "{at} = {value}: {kind:?}");
    }
    let other_size = described(&bytes, |description| {
        description["profile"]["geometry"]["blocks"] = 9.into();
    });
    assert!(matches!(refusal(&path, &other_size), ImageErrorKind::Length { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_images_are_refused_or_give_a_chip(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..8),
        resealed: bool,
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let folder = folder();
        let (path, mut bytes) = sample(folder.path());
        let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        for (at, byte, early) in changes {
            let count = if early { 20 + length } else { bytes.len() };
            let at = at.index(count);
            // Replacing a digit by a digit often gives another description that can be read.
            bytes[at] = if bytes[at].is_ascii_digit() { b'0' + byte % 10 } else { byte };
        }
        if resealed {
            let checksum = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&bytes[20..20 + length]);
            bytes[16..20].copy_from_slice(&checksum.to_le_bytes());
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&path, &bytes).unwrap();
        if let Ok(mut chip) = Chip::load(&path) {
            seen(&chip);
            for block in 0..chip.geometry().blocks {
                let _ = chip.erase(BlockNumber(block));
                let page = chip.geometry().page_in(BlockNumber(block), 0);
                let _ = chip.program(page, &vec![1; chip.geometry().page_bytes as usize], &[]);
            }
            chip.rest(1);
        }
    }
}

#[test]
fn an_image_changes_when_it_is_closed_and_only_then() {
    let folder = folder();
    let (path, bytes) = sample(folder.path());
    let mut image = Image::open(&path).unwrap();
    image.erase(BlockNumber(0)).unwrap();
    image.labels.clear();
    drop(image);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let mut image = Image::open(&path).unwrap();
    assert_eq!(image.labels["key"], "u32");
    assert_eq!(image.profile().summary, "of my own");
    image.erase(BlockNumber(0)).unwrap();
    image.close().unwrap();
    assert_eq!(Chip::load(&path).unwrap().erase_count(BlockNumber(0)), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    let error = Image::create(&path, Chip::new(TINY)).unwrap_err();
    assert!(matches!(error.kind, ImageErrorKind::Exists));

    let late = folder.path().join("late.img");
    let image = Image::create(&late, Chip::new(TINY)).unwrap();
    fs::write(&late, "taken meanwhile").unwrap();
    assert!(matches!(image.close().unwrap_err().kind, ImageErrorKind::Exists));
    assert_eq!(fs::read(&late).unwrap(), b"taken meanwhile");
    let error = Chip::new(TINY).save(folder.path().join("no folder/chip.img")).unwrap_err();
    assert!(matches!(error.kind, ImageErrorKind::NoFolder(_)));
    assert!(error.to_string().ends_with("no folder': make it first"), "{error}");
    let error = Image::create(folder.path().join("no/a.img"), Chip::new(TINY)).unwrap_err();
    assert!(matches!(error.kind, ImageErrorKind::NoFolder(_)));
}

#[test]
fn an_image_that_is_open_to_be_changed_is_changed_by_nobody_else() {
    let folder = folder();
    let (path, bytes) = sample(folder.path());
    let image = Image::open(&path).unwrap();
    let in_use = |error: ImageError| matches!(error.kind, ImageErrorKind::InUse);
    assert!(in_use(Image::open(&path).unwrap_err()));
    assert!(in_use(Chip::new(TINY).save(&path).unwrap_err()));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let looked = Image::look(&path).unwrap();
    image.close().unwrap();
    assert!(matches!(looked.close().unwrap_err().kind, ImageErrorKind::LookedAt));
    drop(Image::open(&path).unwrap());
    Chip::new(TINY).save(&path).unwrap();

    // Closing does not overwrite a file that replaced the opened one.
    let image = Image::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(matches!(image.close().unwrap_err().kind, ImageErrorKind::Replaced));
    assert!(!path.exists());
    Chip::new(TINY).save(&path).unwrap();
    let image = Image::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "another").unwrap();
    assert!(matches!(image.close().unwrap_err().kind, ImageErrorKind::Replaced));
    assert_eq!(fs::read(&path).unwrap(), b"another");
}

#[cfg(target_os = "linux")]
#[test]
fn erased_pages_take_no_room() {
    use std::os::unix::fs::MetadataExt;
    let folder = folder();
    let path = folder.path().join("mlc.img");
    let mut chip = Chip::new(MLC);
    chip.erase(BlockNumber(9)).unwrap();
    chip.program(PageNumber(9 * 128), &[0; 4096], &[]).unwrap();
    chip.save(&path).unwrap();
    let file = fs::metadata(&path).unwrap();
    assert!(file.len() > 64 << 20);
    assert!(file.blocks() * 512 < 64 << 10, "{} bytes are taken", file.blocks() * 512);
}

#[cfg(unix)]
#[test]
fn images_from_before_overwriting_are_read() {
    let folder = folder();
    let (path, bytes) = sample(folder.path());
    let bytes = described(&bytes, |description| {
        for (member, of) in [("overwrites", "/counters"), ("overwrite", "/profile/capabilities")] {
            description.pointer_mut(of).unwrap().as_object_mut().unwrap().remove(member).unwrap();
        }
    });
    fs::write(&path, bytes).unwrap();
    assert_eq!(Chip::load(&path).unwrap().counters().overwrites, 0);
}

#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder();
    let (path, link) = (folder.path().join("chip.img"), folder.path().join("link.img"));
    Chip::new(SLC.with_blocks(4)).save(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&path, &link).unwrap();
    Image::open(&link).unwrap().close().unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}
