//! Rule 15, overwrites: each way to break it, each cut, each fault, its cost.
//!
//! No other byte of the page changes.

use nandina::flash::profile::{DATAFLASH, MLC, NOR, SD};
use nandina::flash::{
    BlockNumber, Capabilities, ErrorKind, Flash, FlashError, NorError, NorLayoutError, NorPages,
    PageNumber, Pairing, Profile,
};
use nandina_sim::{Chip, ChipError, Cut, Faults, NorChip, Rule, TINY, Tear};
use proptest::prelude::*;

const PAGE: PageNumber = PageNumber(0);

/// The chip for exhaustive tests with pages that may be programmed four times.
const AGAIN: Profile = Profile {
    capabilities: Capabilities { programs_per_page: Some(4), overwrite: true, ..TINY.capabilities },
    ..TINY
};

fn rule(result: Result<(), ChipError>) -> (Rule, String) {
    match result.unwrap_err() {
        ChipError::Rule { rule, evidence } => (rule, evidence),
        other => panic!("no rule is broken: {other}"),
    }
}

/// Main data and spare area.
fn read(chip: &mut Chip, page: u32) -> Vec<u8> {
    let geometry = chip.geometry();
    let mut bytes = vec![0; (geometry.page_bytes + geometry.spare_bytes) as usize];
    let (main, spare) = bytes.split_at_mut(geometry.page_bytes as usize);
    chip.read(PageNumber(page), main, spare).unwrap();
    bytes
}

fn program(chip: &mut Chip, page: u32, byte: u8) {
    let bytes = chip.geometry().page_bytes as usize;
    chip.program(PageNumber(page), &vec![byte; bytes], &[]).unwrap();
}

#[test]
fn only_the_bytes_that_are_named_change_and_each_overwrite_is_a_program() {
    let mut chip = Chip::new(AGAIN);
    program(&mut chip, 0, 0xFF);
    let before = chip.clone();
    chip.overwrite(PAGE, 500, &[1, 2, 3]).unwrap();
    chip.overwrite(PAGE, 509, &[9, 8, 7]).unwrap();
    chip.overwrite(PAGE, 500, &[0, 2, 3]).unwrap();
    let mut expected = vec![0xFF; 576];
    expected[500..503].copy_from_slice(&[0, 2, 3]);
    expected[509..512].copy_from_slice(&[9, 8, 7]);
    assert_eq!(read(&mut chip, 0), expected);
    // Each takes a program, and moves its own bytes.
    let counters = chip.counters() - before.counters();
    assert_eq!((counters.programs, counters.overwrites, counters.bytes_programmed), (3, 3, 9));
    assert_eq!(counters.operations(), 4, "three overwrites and a read");
    let timing = AGAIN.timing;
    let ns = 3 * timing.program_ns + 9 * timing.program_byte_ns;
    assert_eq!(chip.time().program_ns - before.time().program_ns, ns);
    // NOP: the first program and three overwrites were four.
    let (broken, evidence) = rule(chip.overwrite(PAGE, 0, &[0]));
    assert_eq!(broken, Rule::EraseBeforeProgram);
    assert!(evidence.starts_with("page 0 had 4 of 4 programs"), "{evidence}");
    chip.erase(BlockNumber(0)).unwrap();
    assert_eq!(read(&mut chip, 0), [0xFF; 576]);
}

#[test]
fn each_way_to_break_it_is_told_and_changes_nothing() {
    let mut chip = Chip::new(AGAIN);
    for (page, byte) in [(0, 0xF0), (1, 0xF0), (5, 0xF0)] {
        program(&mut chip, page, byte);
    }
    chip.mark_bad(BlockNumber(1)).unwrap();
    chip.cut_at(0, Cut::Inside(Tear::Mixture));
    chip.erase(BlockNumber(2)).unwrap_err();
    chip.restore_power();
    let seen = |chip: &Chip| {
        let mut clone = chip.clone();
        (chip.counters(), (0..8).map(|page| read(&mut clone, page)).collect::<Vec<_>>())
    };
    let before = seen(&chip);
    for (page, offset, bytes, broken) in [
        (32, 0, &[0; 1][..], Rule::Bounds),
        (1, 0, &[], Rule::Bounds),
        (1, 511, &[0; 2], Rule::Bounds),
        (1, 512, &[0; 1], Rule::Bounds),
        (1, u32::MAX, &[0; 2], Rule::Bounds),
        (1, 0, &[0; 513], Rule::Bounds),
        (1, 7, &[0xF1], Rule::BitsFall),
        (1, 6, &[0x70, 0x08], Rule::BitsFall),
        (0, 0, &[0], Rule::Order),
        (2, 0, &[0], Rule::Overwrite),
        (12, 0, &[0], Rule::Overwrite),
        (5, 0, &[0], Rule::BadBlocks),
        (8, 0, &[0], Rule::EraseBeforeProgram),
    ] {
        let (found, evidence) = rule(chip.overwrite(PageNumber(page), offset, bytes));
        assert_eq!(found, broken, "page {page}, byte {offset}: {evidence}");
        let named =
            if broken == Rule::BadBlocks { "block 1".into() } else { format!("page {page}") };
        assert!(evidence.contains(&named), "{evidence}");
    }
    assert_eq!(seen(&chip), before);
    for profile in [TINY, MLC, SD] {
        let mut chip = Chip::new(profile);
        program(&mut chip, 0, 1);
        let error = chip.overwrite(PAGE, 0, &[0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Other);
        let text = "rule 15 (overwrite): page 0 was to be overwritten, this chip cannot";
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn chips_that_are_programmed_in_any_order_are_overwritten_in_any_order() {
    for profile in [NOR, DATAFLASH] {
        let mut chip = Chip::new(profile);
        program(&mut chip, 0, 0xFF);
        program(&mut chip, 1, 0xFF);
        for count in 0..200u32 {
            chip.overwrite(PageNumber(count % 2), count, &[count as u8]).unwrap();
        }
        let main = read(&mut chip, 1);
        assert!((0..200).all(|at| main[at] == if at % 2 == 1 { at as u8 } else { 0xFF }));
    }
    // Such a program can also be the first one of its page.
    let mut chip = Chip::new(NOR);
    chip.overwrite(PageNumber(7), 9, &[0x3C]).unwrap();
    let main = read(&mut chip, 7);
    assert!((0..256).all(|at| main[at] == if at == 9 { 0x3C } else { 0xFF }));
    // 30 us and a byte of command, and 2.6 us for each byte.
    let mut chip = Chip::new(NOR);
    program(&mut chip, 0, 0xFF);
    let before = chip.time().program_ns;
    chip.overwrite(PAGE, 3, &[0; 10]).unwrap();
    assert_eq!(chip.time().program_ns - before, 30_500 + 10 * 2_600);
}

/// Makes a page of 0xFE between two others, and overwrites its bytes 100 to 109 by 0x0E.
///
/// `prepare` runs before the overwrite.
fn overwritten(seed: u64, prepare: impl Fn(&mut Chip)) -> (Chip, Result<(), ChipError>) {
    let mut chip = Chip::with_seed(AGAIN, seed);
    for page in [0, 2, 4] {
        program(&mut chip, page, 0xFE);
    }
    prepare(&mut chip);
    let done = chip.overwrite(PageNumber(2), 100, &[0x0E; 10]);
    chip.restore_power();
    chip.set_faults(Faults::NONE);
    (chip, done)
}

/// The overwritten bytes. All others must be whole, and the page readable.
fn torn_bytes(chip: &mut Chip) -> Vec<u8> {
    for page in [0, 4] {
        assert_eq!(read(chip, page)[..512], [0xFE; 512]);
    }
    assert!([1, 3, 5].into_iter().all(|page| chip.page_is_erased(PageNumber(page))));
    let bytes = read(chip, 2);
    let beside = [&bytes[..100], &bytes[110..512]].concat();
    assert!(beside.iter().all(|&byte| byte == 0xFE) && bytes[512..] == [0xFF; 64]);
    bytes[100..110].to_vec()
}

#[test]
fn a_cut_leaves_a_mixture_in_those_bytes_and_a_page_that_can_be_read() {
    for cut in Cut::ALL {
        let mut found = std::collections::BTreeSet::new();
        for seed in 0..60 {
            let (mut chip, done) = overwritten(seed, |chip| chip.cut_at(0, cut));
            assert_eq!(done, Err(ChipError::PowerLost));
            let bytes = torn_bytes(&mut chip);
            assert!(bytes.iter().all(|byte| byte & 0x0E == 0x0E && byte & !0xFE == 0));
            assert_eq!(chip.fault_counters().torn, u64::from(matches!(cut, Cut::Inside(_))));
            let (mut same, _) = overwritten(seed, |chip| chip.cut_at(0, cut));
            assert_eq!(torn_bytes(&mut same), bytes, "the same seed gives the same damage");
            // The cut overwrite counts as a program, whatever is visible of it: two more, and NOP
            // is reached.
            if cut != Cut::Before {
                chip.overwrite(PageNumber(2), 100, &[0x0E; 10]).unwrap();
                chip.overwrite(PageNumber(2), 100, &[0x0E; 10]).unwrap();
                let again = chip.overwrite(PageNumber(2), 100, &[0x0E; 10]);
                assert_eq!(rule(again).0, Rule::EraseBeforeProgram);
                assert_eq!(torn_bytes(&mut chip), [0x0E; 10]);
            }
            found.insert(bytes);
        }
        let (old, new) = (vec![0xFE; 10], vec![0x0E; 10]);
        match cut {
            Cut::Before | Cut::Inside(Tear::Ones) => assert_eq!(found, [old].into()),
            Cut::After => assert_eq!(found, [new].into()),
            Cut::Inside(Tear::Mixture) => {
                assert!(found.contains(&old) && found.contains(&new) && found.len() > 20);
            }
            Cut::Inside(Tear::Unreadable) => assert!(found.len() > 50),
        }
    }
}

#[test]
fn a_failure_is_reported_leaves_a_mixture_and_the_block_fails_for_ever() {
    let failing = |chip: &mut Chip| {
        chip.set_faults(Faults { program_failures: 1, ..Faults::NONE });
    };
    let mut partly = 0;
    for seed in 0..60 {
        let (mut chip, done) = overwritten(seed, failing);
        assert_eq!(done, Err(ChipError::ProgramFailed(PageNumber(2))));
        let bytes = torn_bytes(&mut chip);
        assert!(bytes.iter().all(|byte| byte & 0x0E == 0x0E && byte & !0xFE == 0));
        partly += u32::from(bytes != [0xFE; 10] && bytes != [0x0E; 10]);
        let counters = chip.fault_counters();
        assert_eq!((counters.program_failures, counters.torn), (1, 0));
        assert!(chip.is_lost(BlockNumber(0)) && !chip.is_lost(BlockNumber(1)));
        assert!(chip.overwrite(PageNumber(2), 100, &[0x0E; 10]).is_err(), "the block has failed");
        chip.overwrite(PageNumber(4), 100, &[0x0E; 10]).unwrap();
    }
    assert!(partly > 20, "only {partly} overwrites were done in part");
}

#[test]
fn a_silent_failure_changes_nothing_and_counts() {
    let silent = |chip: &mut Chip| {
        chip.set_faults(Faults { silent_programs: 1, ..Faults::NONE });
    };
    let (mut chip, done) = overwritten(1, silent);
    assert_eq!((done, chip.fault_counters().silent), (Ok(()), 1));
    assert_eq!(torn_bytes(&mut chip), [0xFE; 10]);
    assert_eq!(chip.counters().overwrites, 1);
    // A page whose first program silently failed: a caller that relies on it breaks no rule.
    let mut chip = Chip::new(AGAIN);
    program(&mut chip, 0, 0x0F);
    chip.set_faults(Faults { silent_erases: 1, ..Faults::NONE });
    chip.erase(BlockNumber(0)).unwrap();
    chip.set_faults(Faults::NONE);
    program(&mut chip, 0, 0xFF);
    chip.overwrite(PAGE, 0, &[0x3C]).unwrap();
    assert_eq!(read(&mut chip, 0)[..2], [0x0C, 0x0F]);
}

#[test]
fn a_cut_in_a_page_that_shares_cells_may_damage_its_partner() {
    let capabilities = Capabilities { pairing: Pairing::WordLines(2), ..AGAIN.capabilities };
    let mut damaged = 0;
    for seed in 0..20 {
        let mut chip = Chip::with_seed(Profile { capabilities, ..AGAIN }, seed);
        program(&mut chip, 0, 0xFE);
        program(&mut chip, 1, 0xFE);
        chip.cut_at(0, Cut::Inside(Tear::Mixture));
        chip.overwrite(PageNumber(1), 0, &[0]).unwrap_err();
        chip.restore_power();
        damaged += u32::from(read(&mut chip, 0)[..512] != [0xFE; 512]);
        assert_eq!(read(&mut chip, 1)[1..512], [0xFE; 511]);
    }
    assert!((2..20).contains(&damaged), "{damaged}");
}

#[test]
fn a_multiwrite_nor_flash_is_overwritten_and_a_plain_one_is_not() {
    let nor = || NorChip::new(Chip::new(NOR)).unwrap();
    let mut pages = NorPages::multiwrite(nor(), 256).unwrap();
    let capabilities = pages.capabilities();
    assert!(capabilities.overwrite && capabilities.programs_per_page.is_none());
    pages.program(PageNumber(3), &[0xFF; 256], &[]).unwrap();
    pages.overwrite(PageNumber(3), 250, &[1, 2, 3]).unwrap();
    let mut main = [0; 256];
    pages.read(PageNumber(3), &mut main, &mut []).unwrap();
    assert_eq!((&main[..250], &main[250..]), (&[0xFF; 250][..], &[1, 2, 3, 0xFF, 0xFF, 0xFF][..]));
    let mut chip = pages.into_inner().chip().clone();
    assert_eq!((chip.counters().programs, chip.counters().overwrites), (2, 1));
    assert_eq!(chip.counters().bytes_programmed, 259);
    assert_eq!(read(&mut chip, 3), main);

    let mut pages = NorPages::new(nor(), 256).unwrap();
    assert!(!pages.capabilities().overwrite);
    pages.program(PageNumber(3), &[0xFF; 256], &[]).unwrap();
    let error = pages.overwrite(PageNumber(3), 0, &[0]).unwrap_err();
    assert_eq!((error.clone(), error.kind()), (NorError::NoOverwrite, ErrorKind::Other));
    let refused = NorLayoutError::Overwrite { unit_bytes: 4 };
    let text = "overwriting takes single bytes, the flash writes 4 at once";
    assert_eq!(refused.to_string(), text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is overwritten, cut or failing, the chip equals a vector.
    ///
    /// The vector sees the same calls, and bytes outside the range never change.
    #[test]
    fn no_byte_outside_the_range_ever_changes(
        seed: u64,
        first in prop::collection::vec(any::<u8>(), 512),
        steps in prop::collection::vec(
            (0..512u32, prop::collection::vec(any::<u8>(), 1..40), 0..8usize),
            1..12,
        ),
    ) {
        let mut chip = Chip::with_seed(Profile { capabilities: NOR.capabilities, ..AGAIN }, seed);
        chip.program(PAGE, &first, &[3; 9]).unwrap();
        let mut model = read(&mut chip, 0);
        for (offset, bytes, end) in steps {
            let bytes = &bytes[..bytes.len().min(512 - offset as usize)];
            let range = offset as usize..offset as usize + bytes.len();
            let falling: Vec<u8> =
                bytes.iter().zip(&model[range.clone()]).map(|(new, old)| new & old).collect();
            if falling != bytes {
                prop_assert_eq!(rule(chip.overwrite(PAGE, offset, bytes)).0, Rule::BitsFall);
            }
            if let Some(&cut) = Cut::ALL.get(end) {
                chip.cut_at(0, cut);
            }
            let done = chip.overwrite(PAGE, offset, &falling);
            chip.restore_power();
            let after = read(&mut chip, 0);
            prop_assert_eq!(&after[..range.start], &model[..range.start]);
            prop_assert_eq!(&after[range.end..], &model[range.end..]);
            if done.is_ok() {
                prop_assert_eq!(&after[range], &falling);
            } else {
                let between = |(at, new): (usize, &u8)| {
                    after[at] & new == *new && after[at] & !model[at] == 0
                };
                prop_assert!(range.zip(&falling).all(between));
            }
            model = after;
        }
    }
}
