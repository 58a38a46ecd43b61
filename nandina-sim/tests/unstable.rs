//! Rule 6, unstable bits: a torn page may read differently each time, by seed.
//!
//! It is stable again once it is erased or rewritten.

use std::collections::BTreeSet;

use nandina::flash::profile::{DATAFLASH, Ecc, NOR};
use nandina::flash::{
    BlockNumber, Capabilities, ErrorKind, Flash, FlashError, PageNumber, Profile, Reading,
};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY, Tear};

const PAGE: PageNumber = PageNumber(0);

/// Torn pages are unstable, all of them.
const UNSTABLE: Faults = Faults { unstable_pages: 1, ..Faults::NONE };

/// The chip for exhaustive tests with pages that may be programmed four times.
const AGAIN: Profile = Profile {
    capabilities: Capabilities { programs_per_page: Some(4), overwrite: true, ..TINY.capabilities },
    ..TINY
};

type Found = Result<(Reading, Vec<u8>), ChipError>;

fn read(chip: &mut Chip, page: u32) -> Found {
    let mut main = vec![0; chip.geometry().page_bytes as usize];
    let reading = chip.read(PageNumber(page), &mut main, &mut [])?;
    Ok((reading, main))
}

fn program(chip: &mut Chip, page: u32, byte: u8) -> Result<(), ChipError> {
    let bytes = chip.geometry().page_bytes as usize;
    chip.program(PageNumber(page), &vec![byte; bytes], &[])
}

fn readings(chip: &mut Chip, page: u32) -> Vec<Found> {
    (0..200).map(|_| read(chip, page)).collect()
}

/// Whether every reading finds these bytes without a correction.
fn are_settled(chip: &mut Chip, page: u32, byte: u8) -> bool {
    let bytes = chip.geometry().page_bytes as usize;
    let settled = Ok((Reading::Clean, vec![byte; bytes]));
    readings(chip, page).into_iter().all(|found| found == settled)
}

/// Counts readings that are all `old`, all `new`, a mixture, uncorrectable, and corrected.
fn kinds(readings: &[Found], old: u8, new: u8) -> [usize; 5] {
    let mut kinds = [0; 5];
    for found in readings {
        match found {
            Ok((reading, main)) => {
                let between = |byte: &u8| byte & !(old | new) == 0 && !byte & old & new == 0;
                assert!(main.iter().all(between));
                let whole = |byte| main.iter().all(|&found| found == byte);
                kinds[if whole(old) {
                    0
                } else if whole(new) {
                    1
                } else {
                    2
                }] += 1;
                kinds[4] += usize::from(*reading == Reading::Corrected);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Uncorrectable);
                kinds[3] += 1;
            }
        }
    }
    kinds
}

/// Asserts that the readings of `page` are old, new and mixed.
fn are_unstable(chip: &mut Chip, page: u32, old: u8, new: u8) {
    let [old, new, mixed, ..] = kinds(&readings(chip, page), old, new);
    assert!(old > 10 && new > 10 && mixed > 10, "{old} old, {new} new, {mixed} mixed");
}

/// Makes a chip whose page 0 was to become 0x3C, torn by `tear`.
fn torn(profile: Profile, seed: u64, tear: Tear) -> Chip {
    let mut chip = Chip::with_seed(profile, seed);
    chip.set_faults(UNSTABLE);
    chip.cut_at(0, Cut::Inside(tear));
    assert_eq!(program(&mut chip, 0, 0x3C), Err(ChipError::PowerLost));
    chip.restore_power();
    chip
}

#[test]
fn a_torn_page_reads_otherwise_each_time_and_the_seed_decides_how() {
    for tear in [Tear::Mixture, Tear::Ones, Tear::Unreadable] {
        let mut chip = torn(TINY, 1, tear);
        let found = readings(&mut chip, 0);
        let [old, new, mixed, failed, corrected] = kinds(&found, 0xFF, 0x3C);
        assert!(old > 10 && new > 10 && mixed > 10 && failed > 5 && corrected > 10, "{found:?}");
        assert_eq!(failed > 60, tear == Tear::Unreadable, "{failed}");
        assert_eq!(chip.fault_counters().unstable, 1);
        assert_eq!(found, readings(&mut torn(TINY, 1, tear), 0), "the same seed");
        assert_ne!(found, readings(&mut torn(TINY, 2, tear), 0));
        // The page beside it is unchanged.
        program(&mut chip, 1, 7).unwrap();
        assert!(are_settled(&mut chip, 1, 7));
    }
    // Without ECC there is nothing to correct.
    let plain = Profile { ecc: Ecc::NONE, ..TINY };
    let found = readings(&mut torn(plain, 1, Tear::Mixture), 0);
    let [old, new, mixed, failed, corrected] = kinds(&found, 0xFF, 0x3C);
    assert!(old > 10 && new > 10 && mixed > 10 && failed + corrected == 0);
}

#[test]
fn a_rest_changes_what_is_read_next_and_torn_pages_are_stable_unless_asked() {
    let mut rested = torn(TINY, 1, Tear::Mixture);
    let mut found = BTreeSet::new();
    for _ in 0..40 {
        rested.rest(0);
        found.insert(format!("{:?}", read(&mut rested.clone(), 0)));
    }
    assert!(found.len() > 10, "{}", found.len());
    let mut chip = Chip::with_seed(TINY, 1);
    chip.cut_at(0, Cut::Inside(Tear::Mixture));
    program(&mut chip, 0, 0x3C).unwrap_err();
    chip.restore_power();
    let found = readings(&mut chip, 0);
    assert!(found.iter().all(|other| *other == found[0]));
    // One of two torn pages, then.
    let unstable = (0..100).filter(|&seed| {
        let mut chip = Chip::with_seed(TINY, seed);
        chip.set_faults(Faults { unstable_pages: 2, ..Faults::NONE });
        chip.cut_at(0, Cut::Inside(Tear::Mixture));
        program(&mut chip, 0, 0x3C).unwrap_err();
        chip.fault_counters().unstable == 1
    });
    assert!((30..70).contains(&unstable.count()));
}

#[test]
fn an_erase_settles_a_page_and_so_does_a_rewrite() {
    let mut chip = torn(TINY, 1, Tear::Unreadable);
    chip.erase(BlockNumber(0)).unwrap();
    assert!(are_settled(&mut chip, 0, 0xFF));
    program(&mut chip, 0, 9).unwrap();
    assert!(are_settled(&mut chip, 0, 9));

    // A rewrite that was cut leaves an unstable page, a complete one a stable page.
    let mut chip = Chip::with_seed(DATAFLASH, 1);
    chip.set_faults(UNSTABLE);
    program(&mut chip, 0, 0x0F).unwrap();
    program(&mut chip, 1, 0x55).unwrap();
    chip.cut_at(0, Cut::Inside(Tear::Mixture));
    assert_eq!(chip.rewrite(PAGE, &[0xF0; 512], &[]), Err(ChipError::PowerLost));
    chip.restore_power();
    are_unstable(&mut chip, 0, 0x0F, 0xF0);
    assert!(are_settled(&mut chip, 1, 0x55));
    chip.rewrite(PAGE, &[0x99; 512], &[]).unwrap();
    assert!(are_settled(&mut chip, 0, 0x99));
}

#[test]
fn rule_7_each_page_of_a_torn_block_is_unstable_for_itself() {
    let mut chip = Chip::with_seed(TINY, 1);
    chip.set_faults(UNSTABLE);
    for page in 0..3 {
        program(&mut chip, page, 0x0F).unwrap();
    }
    chip.cut_at(0, Cut::Inside(Tear::Mixture));
    assert_eq!(chip.erase(BlockNumber(0)), Err(ChipError::PowerLost));
    chip.restore_power();
    let found: Vec<Vec<Found>> = (0..3).map(|page| readings(&mut chip, page)).collect();
    for found in &found {
        let [old, new, mixed, ..] = kinds(found, 0x0F, 0xFF);
        assert!(old > 10 && new > 10 && mixed > 10, "{old} {new} {mixed}");
    }
    assert!(found[0] != found[1] && found[1] != found[2]);
    assert_eq!(chip.fault_counters().unstable, 3, "the fourth page had nothing to lose");
    assert!(program(&mut chip, 3, 1).is_err(), "the block must be erased first");
    chip.erase(BlockNumber(0)).unwrap();
    assert!((0..4).all(|page| are_settled(&mut chip, page, 0xFF)));
}

#[test]
fn rule_11_what_failed_or_was_given_up_is_unstable_too() {
    let mut chip = Chip::with_seed(TINY, 1);
    program(&mut chip, 4, 0x0F).unwrap();
    chip.set_faults(Faults { program_failures: 1, erase_failures: 1, ..UNSTABLE });
    assert_eq!(program(&mut chip, 0, 0x3C), Err(ChipError::ProgramFailed(PAGE)));
    assert_eq!(chip.erase(BlockNumber(1)), Err(ChipError::EraseFailed(BlockNumber(1))));
    are_unstable(&mut chip, 0, 0xFF, 0x3C);
    are_unstable(&mut chip, 4, 0x0F, 0xFF);

    let mut chip = Chip::with_seed(DATAFLASH, 1);
    chip.set_faults(Faults { rewrite_failures: 1, ..UNSTABLE });
    program(&mut chip, 0, 0x0F).unwrap();
    assert_eq!(chip.rewrite(PAGE, &[0xF0; 512], &[]), Err(ChipError::ProgramFailed(PAGE)));
    are_unstable(&mut chip, 0, 0x0F, 0xF0);

    let mut chip = Chip::with_seed(TINY, 1);
    chip.set_faults(UNSTABLE);
    chip.give_up_at(0, Cut::Inside(Tear::Mixture));
    assert_eq!(program(&mut chip, 0, 0x3C), Err(ChipError::GaveUp));
    are_unstable(&mut chip, 0, 0xFF, 0x3C);
}

/// A page of 0xFE whose bytes 100 to 109 were to become 0x0E.
fn overwritten(profile: Profile) -> Chip {
    let mut chip = Chip::with_seed(profile, 1);
    chip.set_faults(UNSTABLE);
    program(&mut chip, 0, 0xFE).unwrap();
    chip.cut_at(0, Cut::Inside(Tear::Mixture));
    assert_eq!(chip.overwrite(PAGE, 100, &[0x0E; 10]), Err(ChipError::PowerLost));
    chip.restore_power();
    chip
}

#[test]
fn rule_15_only_bytes_that_were_overwritten_are_unstable_and_no_read_fails_twice() {
    for (profile, fails) in [(AGAIN, true), (NOR, false)] {
        let mut chip = overwritten(profile);
        let found = readings(&mut chip, 0);
        let mut bytes = BTreeSet::new();
        for (_, main) in found.iter().flatten() {
            assert!(main[..100].iter().chain(&main[110..]).all(|&byte| byte == 0xFE));
            assert!(main[100..110].iter().all(|byte| byte & 0x0E == 0x0E && byte & !0xFE == 0));
            bytes.insert(main[100..110].to_vec());
        }
        assert!(bytes.contains(&vec![0xFE; 10]) && bytes.contains(&vec![0x0E; 10]));
        assert!(bytes.len() > 20, "{}", bytes.len());
        assert_eq!(found.iter().any(Result::is_err), fails);
        assert!(found.windows(2).all(|two| two.iter().any(Result::is_ok)));
    }
}

#[test]
fn bits_that_a_later_program_lets_fall_are_0_from_then_on() {
    for profile in [AGAIN, NOR] {
        let mut chip = overwritten(profile);
        chip.overwrite(PAGE, 104, &[0x02; 3]).unwrap();
        let mut seen = BTreeSet::new();
        for (_, main) in readings(&mut chip, 0).into_iter().flatten() {
            assert_eq!(main[104..107], [0x02; 3]);
            seen.insert(main[100]);
        }
        assert!(seen.len() > 2, "the others go on: {seen:?}");
        // No caller can know whether a bit is 1, so programming 1 where the last reading found 0
        // breaks no rule.
        chip.overwrite(PAGE, 100, &[0xFE; 4]).unwrap();
    }
    // A program of the whole page, on a chip that allows it.
    let mut chip = torn(NOR, 1, Tear::Mixture);
    program(&mut chip, 0, 0x0F).unwrap();
    are_unstable(&mut chip, 0, 0x0F, 0x0C);
}

#[test]
fn a_clone_and_an_image_go_on_with_the_same_readings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chip.img");
    let chips = [torn(TINY, 1, Tear::Mixture), torn(TINY, 1, Tear::Unreadable), overwritten(AGAIN)];
    for mut chip in chips {
        readings(&mut chip, 0);
        chip.save(&path).unwrap();
        let mut loaded = Chip::load(&path).unwrap();
        let mut cloned = chip.clone();
        let found = readings(&mut chip, 0);
        assert_eq!(readings(&mut loaded, 0), found);
        assert_eq!(readings(&mut cloned, 0), found);
        assert_eq!(loaded.fault_counters(), chip.fault_counters());
        // Changes to one clone are not visible in the other.
        cloned.erase(BlockNumber(0)).unwrap();
        assert!(readings(&mut chip, 0).windows(2).any(|two| two[0] != two[1]));
    }
    // Without unstable pages the description is the same as before that feature existed.
    Chip::new(TINY).save(&path).unwrap();
    assert!(!String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains("unstable"));
}

#[test]
fn an_unstable_page_that_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chip.img");
    torn(TINY, 1, Tear::Mixture).save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let description: serde_json::Value = serde_json::from_slice(&bytes[20..20 + length]).unwrap();
    for (member, value) in [("new", "3c3c"), ("new", "3"), ("old", "x0"), ("page", "")] {
        let mut changed = description.clone();
        let unstable = &mut changed["blocks"][0]["unstable"];
        if member == "page" {
            *unstable = serde_json::json!({"3": unstable["0"]});
        } else {
            unstable["0"][member] = value.into();
        }
        let changed = serde_json::to_vec(&changed).unwrap();
        let checksum = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&changed);
        let mut file = bytes[..12].to_vec();
        file.extend((changed.len() as u32).to_le_bytes());
        file.extend(checksum.to_le_bytes());
        file.extend(&changed);
        let pages = |length: usize| (20 + length).next_multiple_of(4096);
        file.resize(pages(changed.len()), 0);
        file.extend(&bytes[pages(length)..]);
        std::fs::write(&path, &file).unwrap();
        let error = Chip::load(&path).unwrap_err().to_string();
        assert!(error.contains("is unstable"), "{member} {value}: {error}");
    }
}

#[test]
fn what_a_device_gives_up_is_not_done_torn_or_done_and_power_stays() {
    let mut ends = BTreeSet::new();
    for seed in 0..60 {
        let mut chip = Chip::with_seed(TINY, seed);
        chip.set_faults(Faults { device_errors: 1, ..Faults::NONE });
        let error = program(&mut chip, 0, 0x3C).unwrap_err();
        assert_eq!((error.kind(), &error), (ErrorKind::Other, &ChipError::GaveUp));
        assert_eq!(read(&mut chip, 0), Err(ChipError::GaveUp));
        assert_eq!(chip.fault_counters().device_errors, 2);
        chip.set_faults(Faults::NONE);
        assert!(!chip.is_lost(BlockNumber(0)));
        ends.insert(match read(&mut chip, 0) {
            Err(_) => "unreadable",
            Ok((_, main)) if main == [0xFF; 512] => "old",
            Ok((_, main)) if main == [0x3C; 512] => "new",
            Ok(_) => "mixed",
        });
        program(&mut chip, 4, 0x3C).unwrap();
    }
    assert_eq!(ends.len(), 4, "{ends:?}");
    for cut in Cut::ALL {
        let mut chip = Chip::new(TINY);
        chip.give_up_at(1, cut);
        program(&mut chip, 0, 1).unwrap();
        assert_eq!(chip.erase(BlockNumber(0)), Err(ChipError::GaveUp));
        chip.erase(BlockNumber(0)).unwrap();
        let torn = u64::from(matches!(cut, Cut::Inside(_)));
        assert_eq!((chip.fault_counters().cuts, chip.fault_counters().torn), (0, torn));
    }
    let marked: BTreeSet<bool> = (0..40)
        .map(|seed| {
            let mut chip = Chip::with_seed(TINY, seed);
            chip.set_faults(Faults { device_errors: 1, ..Faults::NONE });
            assert_eq!(chip.mark_bad(BlockNumber(0)), Err(ChipError::GaveUp));
            chip.is_bad(BlockNumber(0)).unwrap()
        })
        .collect();
    assert_eq!(marked.len(), 2);
}

#[test]
fn a_chip_that_is_driven_without_end_says_so() {
    let mut chip = Chip::new(TINY);
    chip.limit_operations(Some(2));
    program(&mut chip, 0, 1).unwrap();
    read(&mut chip, 0).unwrap();
    let error = read(&mut chip, 0).unwrap_err();
    assert_eq!((error.kind(), &error), (ErrorKind::Other, &ChipError::TooMany { allowed: 2 }));
    assert_eq!(error.to_string(), "more than 2 operations were asked of the chip");
    assert_eq!(chip.erase(BlockNumber(0)), Err(error));
    assert_eq!(chip.counters().operations(), 2);
    chip.limit_operations(None);
    chip.erase(BlockNumber(0)).unwrap();
}
