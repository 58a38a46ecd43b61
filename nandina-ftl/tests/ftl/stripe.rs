//! Several chips as one: which chip does what, cuts of one of them, bad blocks, an FTL over them.

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Pairing, Profile};
use nandina_ftl::ftl::{Ftl, FtlError, logical_pages_max, ram_needed, space_of};
use nandina_ftl::mapping::{Compact, Mapping};
use nandina_ftl::{BadStripe, Stripe};
use nandina_sim::{Chip, ChipError, Cut, Faults, Rule};

use crate::host::{Change, Host};
use crate::numbers::Numbers;
use crate::{CHIP, FAILING as ONE_FAILING, Share, seeds};

/// A chip a tenth of whose blocks may go bad.
const FAILING: Profile = Profile {
    geometry: Geometry { blocks: 30, ..ONE_FAILING.geometry },
    capabilities: Capabilities { bad_blocks_per_mille: 100, ..ONE_FAILING.capabilities },
    ..ONE_FAILING
};

type Striped<'a> = Ftl<'a, Stripe<'a, Chip>, Compact<'a>>;

/// Calls `work` with an FTL over a stripe, formatted or opened.
fn with<T>(
    chips: &mut [Chip],
    is_new: bool,
    work: impl FnOnce(&mut Striped<'_>) -> Result<T, FtlError<ChipError>>,
) -> Result<T, FtlError<ChipError>> {
    let stripe = Stripe::new(chips).unwrap();
    let (geometry, capabilities) = (stripe.geometry(), stripe.capabilities());
    let pages = logical_pages_max(&geometry, &capabilities);
    let (mut ram, mut memory) = (vec![0; ram_needed(&geometry)], vec![0; 1 << 14]);
    let map = Compact::new(space_of(&geometry, &capabilities, pages), &mut memory)?;
    let make = if is_new { Ftl::format } else { Ftl::open };
    work(&mut make(stripe, map, pages, &mut ram)?)
}

fn chips(profile: Profile, count: u64) -> Vec<Chip> {
    (0..count).map(|seed| Chip::with_seed(profile, seed)).collect()
}

#[test]
fn a_sequential_write_goes_to_all_chips_in_turn_and_is_one_extent() {
    let pairing = Pairing::DistanceThree;
    let shared = Profile { capabilities: Capabilities { pairing, ..CHIP.capabilities }, ..CHIP };
    // A block of the stripe has 32 pages, or 16; so the pages go on in another block.
    for profile in [CHIP, shared] {
        let mut chips = chips(profile, 4);
        with(&mut chips, true, |ftl| {
            let erases = ftl.flash().chips().iter().map(|chip| chip.counters().erases);
            // Every block by the format, and one more for the session page, which is page 0.
            assert!(erases.eq([17; 4]));
            for page in 0..38 {
                ftl.write(page, &[page as u8; 512])?;
            }
            let mut runs = 0;
            ftl.mapping().walk(&mut |_| runs += 1);
            assert_eq!(runs, 1, "across blocks, too");
            Ok(())
        })
        .unwrap();
        let programs = chips.iter().map(|chip| chip.counters().programs);
        assert!(programs.eq([10, 10, 10, 9]), "39 pages");
    }
}

#[test]
fn page_numbers_are_those_of_the_chips_by_hand() {
    let pairing = Pairing::DistanceThree;
    let shared = Profile { capabilities: Capabilities { pairing, ..CHIP.capabilities }, ..CHIP };
    let mut chips = chips(shared, 3);
    let mut stripe = Stripe::new(&mut chips).unwrap();
    // The safe pages of a block of eight are 0, 1, 3 and 5, and those of three chips make twelve.
    assert_eq!(stripe.geometry(), Geometry { pages_per_block: 12, ..CHIP.geometry });
    assert_eq!(stripe.capabilities().pairing, Pairing::None);
    stripe.erase(BlockNumber(2)).unwrap();
    for page in 24..36 {
        stripe.program(PageNumber(page), &[page as u8; 512], &[]).unwrap();
    }
    for (number, chip) in (0..).zip(&mut chips) {
        for (place, index) in [0, 1, 3, 5].into_iter().enumerate() {
            let mut main = [0; 512];
            chip.read(PageNumber(16 + index), &mut main, &mut []).unwrap();
            assert_eq!(main, [24 + 3 * place as u8 + number; 512]);
        }
        for index in [2, 4, 6, 7] {
            assert!(chip.page_is_erased(PageNumber(16 + index)));
        }
    }
}

#[test]
fn a_cut_tears_one_page_of_one_chip_and_leaves_an_erase_half_done() {
    let start = || {
        let mut chips = chips(CHIP, 3);
        let mut stripe = Stripe::new(&mut chips).unwrap();
        stripe.erase(BlockNumber(0)).unwrap();
        for page in 0..8 {
            stripe.program(PageNumber(page), &[page as u8; 512], &[]).unwrap();
        }
        chips
    };
    for cut in Cut::ALL {
        // The next program is that of page 8, on the last chip.
        let mut chips = start();
        chips[2].cut_at(0, cut);
        let mut stripe = Stripe::new(&mut chips).unwrap();
        assert_eq!(stripe.program(PageNumber(8), &[8; 512], &[]), Err(ChipError::PowerLost));
        chips[2].restore_power();
        let mut stripe = Stripe::new(&mut chips).unwrap();
        for page in 0..8 {
            let mut main = [0; 512];
            stripe.read(PageNumber(page), &mut main, &mut []).unwrap();
            assert_eq!(main, [page as u8; 512], "{cut:?}: page {page}");
        }
        if cut != Cut::Before {
            // Rule 1 holds across the stripe: a program that was cut counts.
            let again = stripe.program(PageNumber(8), &[8; 512], &[]);
            assert!(matches!(again, Err(ChipError::Rule { rule: Rule::EraseBeforeProgram, .. })));
        }
        // An erase that is cut on the second chip: the first is erased, the third as it was.
        let mut chips = start();
        chips[1].cut_at(0, cut);
        let mut stripe = Stripe::new(&mut chips).unwrap();
        assert_eq!(stripe.erase(BlockNumber(0)), Err(ChipError::PowerLost));
        chips[1].restore_power();
        let mut stripe = Stripe::new(&mut chips).unwrap();
        for page in [0, 3, 6] {
            let mut main = [0; 512];
            stripe.read(PageNumber(page), &mut main, &mut []).unwrap();
            assert_eq!(main, [0xFF; 512], "{cut:?}: page {page}");
        }
        for page in [2, 5] {
            let mut main = [0; 512];
            stripe.read(PageNumber(page), &mut main, &mut []).unwrap();
            assert_eq!(main, [page as u8; 512], "{cut:?}: page {page}");
        }
        stripe.erase(BlockNumber(0)).unwrap();
        (0..24).for_each(|page| stripe.program(PageNumber(page), &[7; 512], &[]).unwrap());
    }
}

#[test]
fn a_block_is_bad_if_that_of_one_chip_is() {
    let mut chips = chips(FAILING, 2);
    chips[1].mark_bad(BlockNumber(3)).unwrap();
    let mut stripe = Stripe::new(&mut chips).unwrap();
    let each = FAILING.capabilities.bad_blocks_max(FAILING.geometry.blocks);
    assert!(stripe.capabilities().bad_blocks_max(FAILING.geometry.blocks) >= 2 * each);
    assert_eq!(
        (stripe.is_bad(BlockNumber(3)), stripe.is_bad(BlockNumber(4))),
        (Ok(true), Ok(false))
    );
    stripe.mark_bad(BlockNumber(4)).unwrap();
    assert_eq!(stripe.is_bad(BlockNumber(4)), Ok(true));
    assert!(chips.iter().all(|chip| chip.bad_blocks().any(|block| block.0 == 4)));
    let mut none: [Chip; 0] = [];
    assert_eq!(Stripe::new(&mut none).err(), Some(BadStripe::NoChip));
    let mut two = [Chip::new(CHIP), Chip::new(FAILING)];
    assert_eq!(Stripe::new(&mut two).err(), Some(BadStripe::Unequal { chip: 1 }));
    let mut three = self::chips(FAILING, 3);
    let refused = BadStripe::BadBlocks { most: 255, given: 300 };
    assert_eq!(Stripe::new(&mut three).err(), Some(refused));
    let mut many = self::chips(CHIP, 512);
    let refused = BadStripe::BlockPages { most: 4095, given: 4096 };
    assert_eq!(Stripe::new(&mut many).err(), Some(refused));
}

/// A short session of changes.
fn session(
    chips: &mut [Chip],
    host: &mut Host,
    numbers: &mut Numbers,
    changes: u32,
) -> Result<(), FtlError<ChipError>> {
    with(chips, false, |ftl| (0..changes).try_for_each(|_| host.change(ftl, numbers)))
}

#[test]
fn an_ftl_over_two_chips_loses_nothing_by_a_cut_anywhere_and_a_second_in_the_recovery() {
    let mut cuts = 0;
    for unstable in [0, 1] {
        let mut chips = chips(
            Profile { geometry: Geometry { pages_per_block: 4, ..CHIP.geometry }, ..CHIP },
            2,
        );
        chips.iter_mut().for_each(|chip| {
            chip.set_faults(Faults { unstable_pages: unstable, ..Faults::NONE });
        });
        let pages = with(&mut chips, true, |ftl| Ok(ftl.logical_pages())).unwrap();
        let (mut host, mut numbers) = (Host::new(pages), Numbers(4));
        session(&mut chips, &mut host, &mut numbers, 300).unwrap();
        let Numbers(seed) = numbers;
        let mut whole = chips.clone();
        session(&mut whole, &mut host.clone(), &mut Numbers(seed), 40).unwrap();
        let mut choice = Numbers(6);
        for cut_chip in [0, 1] {
            let done = |chips: &[Chip]| chips[cut_chip].counters().operations();
            let operations = done(&whole) - done(&chips);
            for at in Share::one_in(9).of(0..operations) {
                let cut = Cut::ALL[choice.below(5) as usize];
                let what = format!("chip {cut_chip}, {unstable}: {cut:?} at {at}");
                let (mut chips, mut host) = (chips.clone(), host.clone());
                chips[cut_chip].cut_at(at, cut);
                let ended = session(&mut chips, &mut host, &mut Numbers(seed), 40);
                assert_eq!(ended, Err(FtlError::Device(ChipError::PowerLost)), "{what}");
                chips[cut_chip].restore_power();
                // Another cut of any chip, in what follows.
                let second = choice.below(2) as usize;
                chips[second].cut_at(choice.below(400).into(), Cut::ALL[choice.below(5) as usize]);
                let verified = with(&mut chips, false, |ftl| {
                    host.verify(ftl, &what)?;
                    (0..8).try_for_each(|_| host.change(ftl, &mut Numbers(at)))
                });
                let is_known =
                    matches!(verified, Ok(()) | Err(FtlError::Device(ChipError::PowerLost)));
                assert!(is_known, "{what}: {verified:?}");
                chips[second].restore_power();
                for _ in 0..2 {
                    let verified = with(&mut chips, false, |ftl| {
                        host.verify(ftl, &what)?;
                        assert_eq!(ftl.check()?, Ok(()), "{what}");
                        host.make(ftl, Change::Write(0, 1 << 18))?;
                        host.verify(ftl, &what)
                    });
                    verified.unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                cuts += 1;
            }
        }
    }
    println!("{cuts} first cuts");
    assert!(cuts > 60, "only {cuts} cuts");
}

#[test]
fn blocks_that_fail_on_either_chip_lose_nothing() {
    let faults = Faults { program_failures: 250, erase_failures: 100, ..Faults::NONE };
    let mut failures = 0;
    for seed in seeds(200, 8) {
        let mut chips: Vec<Chip> =
            (0..2).map(|chip| Chip::with_seed(FAILING, 2 * seed + chip)).collect();
        let pages = with(&mut chips, true, |ftl| Ok(ftl.logical_pages())).unwrap();
        let (mut host, mut numbers) = (Host::new(pages), Numbers(seed));
        let most = FAILING.capabilities.bad_blocks_max(FAILING.geometry.blocks);
        for round in 0..6 {
            for chip in &mut chips {
                let lost =
                    (0..FAILING.geometry.blocks).filter(|&block| chip.is_lost(BlockNumber(block)));
                let fails = (lost.count() as u32) < most;
                chip.set_faults(if fails { faults } else { Faults::NONE });
            }
            let what = format!("seed {seed}, round {round}");
            let done = with(&mut chips, false, |ftl| {
                (0..30).try_for_each(|_| host.change(ftl, &mut numbers))?;
                host.verify(ftl, &what)?;
                assert_eq!(ftl.check()?, Ok(()), "{what}");
                Ok(())
            });
            match done {
                Err(FtlError::WornOut { .. }) => break,
                done => done.unwrap_or_else(|error| panic!("{what}: {error}")),
            }
        }
        failures += chips.iter().map(|chip| chip.fault_counters().program_failures).sum::<u64>();
        failures += chips.iter().map(|chip| chip.fault_counters().erase_failures).sum::<u64>();
    }
    println!("{failures} failures");
    assert!(failures > 10, "only {failures}");
}
