//! Each fault alone, on the chip itself: its effect, its limits, and that the seed decides it.

use nandina::flash::profile::{DATAFLASH, Ecc, MLC, NOR, PROFILES, SD, SLC, TLC};
use nandina::flash::{
    BlockNumber, ErrorKind, Flash, FlashError, Geometry, PageNumber, Profile, Reading,
};
use nandina_sim::{Chip, ChipError, Cut, Faults, Rule, TINY, Tear};

const PAGE: PageNumber = PageNumber(0);

fn read(chip: &mut Chip, page: u32) -> Result<(Reading, Vec<u8>), ChipError> {
    let geometry = chip.geometry();
    let mut main = vec![0; geometry.page_bytes as usize];
    let reading = chip.read(PageNumber(page), &mut main, &mut [])?;
    Ok((reading, main))
}

fn program(chip: &mut Chip, page: u32, byte: u8) -> Result<(), ChipError> {
    let bytes = chip.geometry().page_bytes as usize;
    chip.program(PageNumber(page), &vec![byte; bytes], &[])
}

#[test]
fn rule_10_bad_blocks_are_neither_programmed_nor_erased_but_read() {
    let mut chip = Chip::new(TINY);
    program(&mut chip, 0, 3).unwrap();
    assert!(!chip.is_bad(BlockNumber(0)).unwrap());
    chip.mark_bad(BlockNumber(0)).unwrap();
    assert!(chip.is_bad(BlockNumber(0)).unwrap());
    for error in [program(&mut chip, 1, 3), chip.erase(BlockNumber(0))] {
        assert!(matches!(error, Err(ChipError::Rule { rule: Rule::BadBlocks, .. })), "{error:?}");
    }
    assert_eq!(read(&mut chip, 0).unwrap(), (Reading::Clean, vec![3; 512]));
    // Factory marks come from the seed.
    let spoiled = |seed| {
        let mut chip = Chip::with_seed(SLC, seed);
        chip.spoil_blocks(9);
        chip.bad_blocks().collect::<Vec<_>>()
    };
    assert_eq!((spoiled(1).len(), spoiled(1)), (9, spoiled(1)));
    assert_ne!(spoiled(1), spoiled(2));
}

#[test]
fn rule_11_a_failure_is_reported_and_the_block_fails_for_ever() {
    let mut chip = Chip::new(TINY);
    program(&mut chip, 0, 7).unwrap();
    chip.set_faults(Faults { program_failures: 1, ..Faults::default() });
    let error = program(&mut chip, 1, 7).unwrap_err();
    assert_eq!(
        (error.kind(), &error),
        (ErrorKind::ProgramFailed, &ChipError::ProgramFailed(PageNumber(1)))
    );
    assert_eq!(read(&mut chip, 0).unwrap().1, [7; 512], "what stood in the block is still there");
    chip.set_faults(Faults::default());
    assert_eq!(chip.erase(BlockNumber(0)).unwrap_err().kind(), ErrorKind::EraseFailed);
    assert!(chip.is_lost(BlockNumber(0)) && !chip.is_lost(BlockNumber(1)));
    program(&mut chip, 4, 7).unwrap();
    chip.set_faults(Faults { erase_failures: 1, ..Faults::default() });
    assert_eq!(chip.erase(BlockNumber(1)), Err(ChipError::EraseFailed(BlockNumber(1))));
    let counters = chip.fault_counters();
    assert_eq!((counters.program_failures, counters.erase_failures), (1, 2));
}

/// What the first operation that fails leaves is drawn apart from the draw that lets it fail.
#[test]
fn rare_failures_leave_old_new_and_mixed_bytes() {
    let seen = |faults: Faults, fails: &dyn Fn(&mut Chip) -> bool| {
        let pages = (0..4_000).filter_map(|seed| {
            let mut chip = Chip::with_seed(TINY, seed);
            program(&mut chip, 0, 0x3C).unwrap();
            chip.set_faults(faults);
            fails(&mut chip).then(|| {
                let unstable = chip.fault_counters().unstable > 0;
                chip.set_faults(Faults::default());
                let main = [0, 1].map(|page| read(&mut chip, page).ok());
                (unstable, main.map(|read| read.map(|(_, main)| main)))
            })
        });
        pages.collect::<std::collections::HashSet<_>>()
    };
    let rare = Faults { unstable_pages: 2, ..Faults::default() };
    let programs = seen(Faults { program_failures: 50, ..rare }, &|chip| {
        program(chip, 1, 7).is_err() // the chip reports it
    });
    let erases = seen(Faults { erase_failures: 50, ..rare }, &|chip| {
        chip.erase(BlockNumber(0)).is_err() // the chip reports it
    });
    let silent = seen(Faults { silent_erases: 50, unstable_pages: 0, ..rare }, &|chip| {
        chip.erase(BlockNumber(0)).unwrap();
        chip.fault_counters().silent > 0
    });
    let is_mixed = |main: &[u8], new: u8| main.contains(&new) && main.iter().any(|&at| at != new);
    for (pages, page, old, new) in
        [(&programs, 1, 0xFF, 7), (&erases, 0, 0x3C, 0xFF), (&silent, 0, 0x3C, 0xFF)]
    {
        let found = |is: &dyn Fn(&[u8]) -> bool| {
            pages.iter().any(|(unstable, main)| {
                !unstable && main[page].as_ref().is_some_and(|main| is(main))
            })
        };
        assert!(found(&|main| main == [old; 512]), "{old:x}: old");
        assert!(found(&|main| main == [new; 512]), "{old:x}: new");
        assert!(found(&|main| is_mixed(main, new)), "{old:x}: mixed");
    }
    for pages in [programs, erases] {
        assert!(pages.iter().any(|page| page.0), "some pages are unstable");
    }
}

#[test]
fn silent_faults_change_nothing_and_say_that_they_did() {
    let mut chip = Chip::with_seed(TINY, 1);
    chip.set_faults(Faults { silent_programs: 1, ..Faults::default() });
    program(&mut chip, 0, 7).unwrap();
    assert_eq!(read(&mut chip, 0).unwrap().1, [0xFF; 512]);
    assert!(program(&mut chip, 0, 7).is_err(), "the program counts all the same");
    chip.set_faults(Faults::default());
    program(&mut chip, 1, 0x3C).unwrap();
    chip.set_faults(Faults { silent_erases: 1, ..Faults::default() });
    chip.erase(BlockNumber(0)).unwrap();
    assert_eq!(read(&mut chip, 1).unwrap().1, [0x3C; 512]);
    // Data programmed into cells that were not erased is combined with their old content.
    chip.set_faults(Faults::default());
    program(&mut chip, 1, 0x0F).unwrap();
    assert_eq!(read(&mut chip, 1).unwrap().1, [0x0C; 512]);
    assert_eq!(chip.fault_counters().silent, 2);
}

/// Reads a page and its neighbours until the result differs from `from`.
///
/// Returns the number of reads.
fn until_changed(chip: &mut Chip, page: u32, from: Result<Reading, ErrorKind>) -> u32 {
    for count in 0..1_000_000 {
        let now = read(chip, page).map(|(reading, _)| reading).map_err(|error| error.kind());
        if now != from {
            return count;
        }
    }
    panic!("nothing ever changed");
}

#[test]
fn rule_12_the_ecc_corrects_asks_for_a_refresh_and_gives_up() {
    let mut chip = Chip::new(TINY);
    program(&mut chip, 0, 0x55).unwrap();
    chip.set_faults(Faults { disturbing_reads: 1, ..Faults::default() });
    // Below the refresh threshold and above it the bytes are those that were programmed.
    until_changed(&mut chip, 0, Ok(Reading::Clean));
    assert_eq!(read(&mut chip, 0).unwrap(), (Reading::Corrected, vec![0x55; 512]));
    until_changed(&mut chip, 0, Ok(Reading::Corrected));
    assert_eq!(read(&mut chip, 0).unwrap_err(), ChipError::Uncorrectable(PAGE));
    let counters = chip.fault_counters();
    assert!(counters.flips >= 5 && counters.corrected > 0 && counters.uncorrectable > 0);
    chip.set_faults(Faults::default());
    chip.erase(BlockNumber(0)).unwrap();
    program(&mut chip, 0, 1).unwrap();
    assert_eq!(read(&mut chip, 0).unwrap(), (Reading::Clean, vec![1; 512]), "an erase heals");
}

#[test]
fn flips_can_be_bounded_by_the_ecc() {
    let mut chip = Chip::new(TINY);
    program(&mut chip, 0, 0).unwrap();
    chip.set_faults(Faults { disturbing_reads: 1, within_ecc: true, ..Faults::default() });
    for _ in 0..20_000 {
        read(&mut chip, 0).unwrap();
    }
    assert_eq!(read(&mut chip, 0).unwrap(), (Reading::Corrected, vec![0; 512]));
}

#[test]
fn without_ecc_wrong_bits_are_read_as_they_are() {
    let mut chip = Chip::new(Profile { ecc: Ecc::NONE, ..TINY });
    program(&mut chip, 0, 0).unwrap();
    chip.set_faults(Faults { disturbing_reads: 1, ..Faults::default() });
    let wrong = (0..200).find_map(|_| {
        let (_, main) = read(&mut chip, 0).unwrap();
        main.iter().any(|&byte| byte != 0).then_some(main)
    });
    assert_eq!(wrong.unwrap().iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
}

#[test]
fn resting_pages_lose_bits_as_the_days_go_by() {
    let flips = |days, times| {
        let mut chip = Chip::new(SLC);
        chip.set_faults(Faults { retention_days: 100, ..Faults::default() });
        for page in 0..64 {
            program(&mut chip, page, 0).unwrap();
        }
        for _ in 0..times {
            chip.rest(days);
        }
        chip.fault_counters().flips
    };
    assert_eq!(flips(0, 5), 0);
    // 64 pages, ten times their mean time: 640 bits, give or take.
    assert!((560..720).contains(&flips(1_000, 1)), "{}", flips(1_000, 1));
    assert!((540..740).contains(&flips(10, 100)), "{}", flips(10, 100));
}

#[test]
fn blocks_wear_out_at_their_endurance_and_not_before() {
    let mut chip = Chip::new(Profile { endurance: 50, ..TINY });
    chip.set_faults(Faults { wear_out: true, ..Faults::default() });
    let lasted: Vec<u32> = (0..8)
        .map(|block| (0..).find(|_| chip.erase(BlockNumber(block)).is_err()).unwrap())
        .collect();
    assert!(lasted.iter().all(|&erases| (50..100).contains(&erases)), "{lasted:?}");
    assert!(lasted.iter().any(|&erases| erases != lasted[0]), "all at once: {lasted:?}");
}

#[test]
fn rule_13_a_cut_in_an_upper_page_damages_its_lower_page_and_no_other() {
    for (profile, upper, lower) in [(MLC, 6, 3..4), (TLC, 5, 3..5)] {
        let geometry = Geometry { page_bytes: 512, spare_bytes: 64, blocks: 2, ..profile.geometry };
        let profile = Profile { geometry, ..profile };
        assert_eq!(profile.capabilities.pairing.endangers(upper, geometry.pages_per_block), lower);
        let mut damaged = 0;
        for seed in 0..20 {
            let mut chip = Chip::with_seed(profile, seed);
            for page in 0..upper {
                program(&mut chip, page, page as u8).unwrap();
            }
            chip.cut_at(
                0,
                Cut::Inside(if seed % 2 == 0 { Tear::Mixture } else { Tear::Unreadable }),
            );
            assert_eq!(program(&mut chip, upper, 9), Err(ChipError::PowerLost));
            chip.restore_power();
            for page in 0..upper {
                let whole = read(&mut chip, page).is_ok_and(|(_, main)| main == [page as u8; 512]);
                if lower.contains(&page) {
                    damaged += u32::from(!whole);
                } else {
                    assert!(whole, "{page} shares no cells with {upper}");
                }
            }
        }
        assert!(damaged >= 10, "{}: only {damaged} lower pages were damaged", profile.key);
    }
}

#[test]
fn a_cut_at_a_change_lets_reads_pass() {
    let mut chip = Chip::new(DATAFLASH);
    chip.cut_at_change(2, Cut::Inside(Tear::Unreadable));
    program(&mut chip, 0, 1).unwrap();
    (0..5).for_each(|_| drop(read(&mut chip, 0).unwrap()));
    chip.rewrite(PageNumber(0), &[2; 512], &[]).unwrap();
    read(&mut chip, 0).unwrap();
    assert_eq!(chip.erase(BlockNumber(1)), Err(ChipError::PowerLost));
    assert_eq!((chip.fault_counters().cuts, chip.fault_counters().torn), (1, 1));
    chip.restore_power();
    // Power that is restored disarms the cut.
    chip.erase(BlockNumber(1)).unwrap();
}

#[test]
fn rule_14_pages_are_rewritten_where_the_chip_can() {
    let mut chip = Chip::new(DATAFLASH);
    program(&mut chip, 0, 0x0F).unwrap();
    chip.rewrite(PAGE, &[0xF0; 512], &[1; 16]).unwrap();
    assert_eq!(read(&mut chip, 0).unwrap().1, [0xF0; 512]);
    // Erase-then-write of 512 bytes at 35 KiB/s, read at 475 KiB/s (VMTree paper, Figure 4).
    assert_eq!((chip.counters().rewrites, chip.counters().programs), (1, 1));
    assert_eq!(chip.time().program_ns, 3_000_000 + 512 * 1_000_000_000 / (35 * 1024));
    let error = Chip::new(SLC).rewrite(PAGE, &[0; 2048], &[]).unwrap_err();
    assert!(matches!(error, ChipError::Rule { rule: Rule::Rewrite, .. }));
    chip.cut_at(0, Cut::Inside(Tear::Unreadable));
    assert_eq!(chip.rewrite(PAGE, &[0; 512], &[]), Err(ChipError::PowerLost));
    chip.restore_power();
    assert_eq!(read(&mut chip, 0).unwrap_err().kind(), ErrorKind::Uncorrectable);
    chip.rewrite(PAGE, &[5; 512], &[]).unwrap();
    assert_eq!(read(&mut chip, 0).unwrap().1, [5; 512]);
}

/// Makes a chip whose pages hold 0x0F, prepares it, and rewrites its page 1 to 0xF0.
fn rewritten(seed: u64, prepare: impl Fn(&mut Chip)) -> (Chip, Result<(), ChipError>) {
    let mut chip = Chip::with_seed(DATAFLASH, seed);
    for page in 0..3 {
        program(&mut chip, page, 0x0F).unwrap();
    }
    prepare(&mut chip);
    let rewritten = chip.rewrite(PageNumber(1), &[0xF0; 512], &[]);
    chip.set_faults(Faults::default());
    chip.restore_power();
    for page in [0, 2] {
        assert_eq!(read(&mut chip, page).unwrap().1, [0x0F; 512], "{page} was not rewritten");
    }
    (chip, rewritten)
}

/// Over many seeds a page whose rewrite failed is old, erased, new or mixed.
fn is_old_erased_new_and_mixed(prepare: impl Fn(&mut Chip), result: &Result<(), ChipError>) {
    let (mut old, mut erased, mut new, mut mixed) = (0, 0, 0, 0);
    for seed in 0..300 {
        let (mut chip, done) = rewritten(seed, &prepare);
        assert_eq!(&done, result);
        let left = read(&mut chip, 1).unwrap().1;
        assert_eq!(left, read(&mut rewritten(seed, &prepare).0, 1).unwrap().1, "seed {seed}");
        let whole = |byte| left.iter().all(|&left| left == byte);
        old += u32::from(whole(0x0F));
        erased += u32::from(whole(0xFF));
        new += u32::from(whole(0xF0));
        mixed += u32::from(!whole(0x0F) && !whole(0xFF) && !whole(0xF0));
    }
    assert!(old > 5 && erased > 5 && new > 5 && mixed > 100, "{old} {erased} {new} {mixed}");
}

#[test]
fn rule_14_a_torn_rewrite_leaves_its_page_old_erased_or_mixed_and_no_other() {
    let cut = |cut| move |chip: &mut Chip| chip.cut_at(0, cut);
    is_old_erased_new_and_mixed(cut(Cut::Inside(Tear::Mixture)), &Err(ChipError::PowerLost));
    for (at, left) in [(Cut::Before, 0x0F), (Cut::Inside(Tear::Ones), 0xFF), (Cut::After, 0xF0)] {
        let (mut chip, done) = rewritten(7, cut(at));
        assert_eq!(done, Err(ChipError::PowerLost));
        assert_eq!(read(&mut chip, 1).unwrap().1, [left; 512], "{at:?}");
        assert_eq!(chip.fault_counters().torn, u64::from(matches!(at, Cut::Inside(_))));
    }
}

#[test]
fn rule_14_a_rewrite_that_fails_is_reported_and_the_block_fails_for_ever() {
    let failing = |chip: &mut Chip| {
        chip.set_faults(Faults { rewrite_failures: 1, ..Faults::default() });
    };
    let error = ChipError::ProgramFailed(PageNumber(1));
    assert_eq!(error.kind(), ErrorKind::ProgramFailed);
    let failed = Err(error);
    is_old_erased_new_and_mixed(failing, &failed);
    let (mut chip, _) = rewritten(0, failing);
    assert_eq!((chip.fault_counters().rewrite_failures, chip.fault_counters().injected()), (1, 1));
    assert!(chip.is_lost(BlockNumber(0)) && !chip.is_lost(BlockNumber(1)));
    assert!(chip.rewrite(PAGE, &[1; 512], &[]).is_err(), "the block has failed");
    chip.rewrite(PageNumber(8), &[1; 512], &[]).unwrap();
}

#[test]
fn a_page_of_a_torn_block_whose_rewrite_is_torn_can_still_be_rewritten() {
    for seed in 0..20 {
        let mut chip = Chip::with_seed(DATAFLASH, seed);
        chip.cut_at(0, Cut::Inside(Tear::Mixture));
        assert_eq!(chip.erase(BlockNumber(0)), Err(ChipError::PowerLost));
        chip.restore_power();
        chip.cut_at(0, Cut::Inside(Tear::Mixture));
        assert_eq!(chip.rewrite(PAGE, &[9; 512], &[]), Err(ChipError::PowerLost));
        chip.restore_power();
        chip.rewrite(PAGE, &[9; 512], &[]).unwrap();
        assert_eq!(read(&mut chip, 0).unwrap().1, [9; 512]);
    }
}

#[test]
fn silent_rewrites_leave_a_torn_page_and_say_that_they_are_done() {
    let silent = |chip: &mut Chip| {
        chip.set_faults(Faults { silent_rewrites: 1, ..Faults::default() });
    };
    is_old_erased_new_and_mixed(silent, &Ok(()));
    let (mut chip, _) = rewritten(0, silent);
    assert_eq!((chip.fault_counters().silent, chip.fault_counters().injected()), (1, 1));
    assert!(!chip.is_lost(BlockNumber(0)));
    chip.rewrite(PageNumber(1), &[5; 512], &[]).unwrap();
    assert_eq!(read(&mut chip, 1).unwrap().1, [5; 512]);
}

#[test]
fn a_torn_or_failed_overwrite_of_nor_lets_bits_fall_and_raises_none() {
    let mut partly = 0;
    for seed in 0..60 {
        for fails in [false, true] {
            let mut chip = Chip::with_seed(NOR, seed);
            program(&mut chip, 0, 0xFC).unwrap();
            if fails {
                chip.set_faults(Faults { program_failures: 1, ..Faults::default() });
            } else {
                chip.cut_at(0, Cut::Inside(Tear::Mixture));
            }
            assert!(program(&mut chip, 0, 0x0C).is_err());
            chip.restore_power();
            let left = read(&mut chip, 0).unwrap().1;
            assert!(left.iter().all(|&byte| byte & 0x0C == 0x0C && byte & !0xFC == 0), "{left:?}");
            partly += u32::from(left != [0xFC; 256] && left != [0x0C; 256]);
        }
    }
    assert!(partly > 30, "only {partly} pages were overwritten in part");
}

#[test]
fn nor_is_programmed_bit_by_bit_and_in_any_order() {
    let mut chip = Chip::new(NOR);
    for (page, byte) in [(9, 0xFE), (2, 0x70), (9, 0xFC), (9, 0xF8), (9, 0)] {
        program(&mut chip, page, byte).unwrap();
    }
    assert_eq!(read(&mut chip, 9).unwrap().1, [0; 256]);
    assert!(program(&mut chip, 2, 0x71).is_err(), "no bit rises");
}

#[test]
fn cards_are_slower_at_random_places() {
    let mut chip = Chip::new(SD);
    let time = |chip: &mut Chip, page| {
        let before = chip.time().program_ns;
        program(chip, page, 1).unwrap();
        chip.time().program_ns - before
    };
    let (first, next, far) = (time(&mut chip, 0), time(&mut chip, 1), time(&mut chip, 700));
    // 500 KiB/s in order, 215 KiB/s at random (VMTree paper, Figure 4).
    assert_eq!((first, next), (1_000_000, 1_000_000));
    assert_eq!(far, 512 * 1_000_000_000 / (215 * 1024));
}

#[test]
fn profiles_are_whole() {
    for profile in PROFILES {
        assert!(!profile.source.is_empty() && profile.endurance > 0, "{}", profile.key);
        assert!(profile.ecc.refresh_bits <= profile.ecc.bits, "{}", profile.key);
        assert!(profile.geometry.blocks >= 64 && profile.page_program_ns() > 0, "{}", profile.key);
    }
}
