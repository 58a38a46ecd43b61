//! Each rule of the media contract, broken: the chip names it and changes no byte.

use nandina::flash::profile::{MLC, SLC};
use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina_sim::{Chip, ChipError, Counters, Cut, Rule, TINY, Tear};

fn rule<T: std::fmt::Debug>(result: Result<T, ChipError>) -> (Rule, String) {
    match result.unwrap_err() {
        ChipError::Rule { rule, evidence } => (rule, evidence),
        other => panic!("no rule is broken: {other}"),
    }
}

fn read(chip: &mut Chip, page: u32) -> Vec<u8> {
    let (mut main, mut spare) = ([0; 512], [0; 64]);
    chip.read(PageNumber(page), &mut main, &mut spare).unwrap();
    [&main[..], &spare[..]].concat()
}

#[test]
fn rule_1_a_page_is_programmed_once_between_erases() {
    let mut chip = Chip::new(TINY);
    chip.program(PageNumber(0), &[1; 512], &[2; 3]).unwrap();
    let before = (chip.counters(), read(&mut chip.clone(), 0));
    let (broken, evidence) = rule(chip.program(PageNumber(0), &[0; 512], &[]));
    assert_eq!(broken, Rule::EraseBeforeProgram);
    assert!(evidence.starts_with("page 0 had 1 of 1 programs"), "{evidence}");
    assert_eq!(before, (chip.counters(), read(&mut chip.clone(), 0)));
    chip.erase(BlockNumber(0)).unwrap();
    assert_eq!(read(&mut chip, 0), [0xFF; 576]);
    chip.program(PageNumber(0), &[0; 512], &[]).unwrap();
}

#[test]
fn rules_1_and_2_partial_programs_clear_bits_up_to_nop() {
    let mut chip = Chip::new(SLC);
    let (mut main, mut spare) = (vec![0xFF; 2048], [0u8; 64]);
    for value in [0xF7, 0xF3, 0xF1, 0xF0] {
        main[0] = value;
        chip.program(PageNumber(0), &main, &[0x0F]).unwrap();
    }
    let mut back = vec![0; 2048];
    chip.read(PageNumber(0), &mut back, &mut spare).unwrap();
    assert_eq!((back[0], back[1], spare[0], spare[1]), (0xF0, 0xFF, 0x0F, 0xFF));
    assert_eq!(rule(chip.program(PageNumber(0), &main, &[])).0, Rule::EraseBeforeProgram);

    chip.program(PageNumber(1), &[0x0F; 2048], &[]).unwrap();
    assert_eq!(rule(chip.program(PageNumber(1), &[0x1F; 2048], &[])).0, Rule::BitsFall);
}

#[test]
fn rule_3_pages_of_a_block_rise() {
    let mut chip = Chip::new(TINY);
    chip.program(PageNumber(2), &[0; 512], &[]).unwrap();
    assert_eq!(rule(chip.program(PageNumber(1), &[0; 512], &[])).0, Rule::Order);
    chip.program(PageNumber(3), &[0; 512], &[]).unwrap();
    chip.program(PageNumber(4), &[0; 512], &[]).unwrap();
}

#[test]
fn rule_4_pages_move_whole() {
    let mut chip = Chip::new(TINY);
    assert_eq!(rule(chip.program(PageNumber(0), &[0; 511], &[])).0, Rule::WholePages);
    assert_eq!(rule(chip.program(PageNumber(0), &[0; 512], &[0; 65])).0, Rule::WholePages);
    assert_eq!(rule(chip.read(PageNumber(0), &mut [0; 513], &mut [])).0, Rule::WholePages);
    assert_eq!(chip.counters(), Counters::default());
}

#[test]
fn rule_5_numbers_lie_on_the_chip() {
    let mut chip = Chip::new(TINY);
    assert_eq!(rule(chip.program(PageNumber(32), &[0; 512], &[])).0, Rule::Bounds);
    assert_eq!(rule(chip.read(PageNumber(u32::MAX), &mut [0; 512], &mut [])).0, Rule::Bounds);
    let error = chip.erase(BlockNumber(8)).unwrap_err();
    assert_eq!(error.to_string(), "rule 5 (bounds): block 8 was named, the chip has 8 blocks");
}

#[test]
fn rule_6_a_torn_page_mixes_old_and_new_and_no_other_page_changes() {
    let (new_main, new_spare) = ([0x35; 512], [0x5A; 40]);
    let mut results = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let mut chip = Chip::with_seed(TINY, seed);
        chip.program(PageNumber(0), &[7; 512], &[]).unwrap();
        let mut same = chip.clone();
        for chip in [&mut chip, &mut same] {
            chip.cut_at(0, Cut::Inside(Tear::Mixture));
            assert_eq!(
                chip.program(PageNumber(1), &new_main, &new_spare),
                Err(ChipError::PowerLost)
            );
            chip.restore_power();
        }
        let torn = read(&mut chip, 1);
        assert_eq!(torn, read(&mut same, 1), "the same seed gives the same damage");
        let new = [&new_main[..], &new_spare[..], &[0xFF; 24]].concat();
        assert!(torn.iter().zip(&new).all(|(torn, new)| torn & new == *new));
        assert_eq!(read(&mut chip, 0)[..512], [7; 512]);
        assert!((2..32).all(|page| chip.page_is_erased(PageNumber(page))));
        // The page counts as programmed, however little of it is visible.
        assert_eq!(rule(chip.program(PageNumber(1), &new_main, &[])).0, Rule::EraseBeforeProgram);
        results.insert(torn);
    }
    assert!(results.contains(&vec![0xFF; 576]), "a cut can leave nothing to be seen");
    assert!(results.iter().any(|torn| torn[..512] == new_main && torn[512..552] == new_spare));
    assert!(results.len() > 20);
}

#[test]
fn rule_7_a_torn_erase_leaves_its_block_unusable_and_others_whole() {
    let mut kept = 0;
    for seed in 0..40 {
        let mut chip = Chip::with_seed(TINY, seed);
        for page in 0..8 {
            chip.program(PageNumber(page), &[9; 512], &[]).unwrap();
        }
        chip.cut_at(0, Cut::Inside(Tear::Mixture));
        assert_eq!(chip.erase(BlockNumber(0)), Err(ChipError::PowerLost));
        chip.restore_power();
        kept += (0..4).filter(|&page| read(&mut chip, page)[..512] == [9; 512]).count();
        let (broken, evidence) = rule(chip.program(PageNumber(0), &[0; 512], &[]));
        assert_eq!(broken, Rule::EraseBeforeProgram);
        assert_eq!(evidence, "page 0 lies in block 0, whose erase was cut or failed");
        assert!((4..8).all(|page| read(&mut chip, page)[..512] == [9; 512]));
        assert_eq!(chip.erase_count(BlockNumber(0)), 1);
        chip.erase(BlockNumber(0)).unwrap();
        chip.program(PageNumber(0), &[0; 512], &[]).unwrap();
    }
    assert!(kept > 0 && kept < 160, "{kept} of 160 pages survived a torn erase");
}

#[test]
fn rules_8_and_9_what_returned_is_there_and_nothing_works_without_power() {
    for (cut, programmed) in [(Cut::Before, false), (Cut::After, true)] {
        let mut chip = Chip::new(TINY);
        chip.program(PageNumber(0), &[1; 512], &[]).unwrap();
        chip.cut_at(1, cut);
        chip.read(PageNumber(0), &mut [0; 512], &mut []).unwrap();
        assert_eq!(chip.program(PageNumber(1), &[2; 512], &[]), Err(ChipError::PowerLost));
        assert_eq!(chip.read(PageNumber(0), &mut [0; 512], &mut []), Err(ChipError::PowerLost));
        assert_eq!(chip.erase(BlockNumber(0)), Err(ChipError::PowerLost));
        chip.restore_power();
        assert_eq!(read(&mut chip, 0)[..512], [1; 512]);
        assert_eq!(chip.page_is_erased(PageNumber(1)), !programmed);
    }
}

#[test]
fn counters_and_clock_are_exact() {
    for (profile, ns) in [(MLC, [165_600, 905_800, 1_500_000]), (SLC, [77_800, 252_800, 1_500_000])]
    {
        let mut chip = Chip::new(profile);
        let bytes = profile.geometry.page_bytes as usize;
        chip.read(PageNumber(0), &mut vec![0; bytes], &mut [0; 40]).unwrap();
        assert_eq!(chip.now_ns(), ns[0]);
        chip.program(PageNumber(0), &vec![0; bytes], &[0; 7]).unwrap();
        chip.erase(BlockNumber(0)).unwrap();
        let time = chip.time();
        assert_eq!([time.read_ns, time.program_ns, time.erase_ns], ns);
        let counters = chip.counters();
        assert_eq!((counters.reads, counters.programs, counters.erases), (1, 1, 1));
        assert_eq!(counters.bytes_read, bytes as u64 + 40);
        assert_eq!(counters.bytes_programmed, bytes as u64 + 7);
        assert_eq!((chip.wear().most, chip.wear().least), (1, 0));
    }
}

#[test]
fn clones_live_apart() {
    let mut chip = Chip::new(TINY);
    chip.program(PageNumber(0), &[1; 512], &[]).unwrap();
    let mut clone = chip.clone();
    clone.program(PageNumber(1), &[2; 512], &[]).unwrap();
    chip.erase(BlockNumber(0)).unwrap();
    assert!(chip.page_is_erased(PageNumber(1)));
    assert_eq!(read(&mut clone, 0)[..512], [1; 512]);
    assert_eq!(read(&mut clone, 1)[..512], [2; 512]);
}
