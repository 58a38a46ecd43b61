//! Power is cut at every chip operation, and again while the FTL recovers.
//!
//! Torn sectors and pages may read differently each time. After a cut each logical page is old or
//! new, and all later mounts and reads agree on which.

use nandina::flash::profile::Profile;
use nandina_ftl::ftl::FtlError;
use nandina_ftl::logged::{LogMerges, Scheme};
use nandina_sim::{Chip, ChipError, Cut, Faults};

use crate::host::{Host, Memory, expect_sound};
use crate::numbers::Numbers;
use crate::{CHIPS, FAILING, SCHEMES, Share, is_full, seeds};

/// Changes before the first cut, and those that power is cut in.
const BEFORE: u32 = 250;
const CHANGES: u32 = 120;

/// Changes after each recovery.
const AFTER: u32 = 12;

struct Start {
    chip: Chip,
    host: Host,
    numbers: Numbers,
}

fn start(profile: Profile, memory: &mut Memory, seed: u64, faults: Faults) -> Start {
    let mut chip = Chip::with_seed(profile, seed);
    let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(seed));
    let work = |chip: &mut Chip, host: &mut Host, numbers: &mut Numbers, memory: &mut Memory| {
        memory.with(chip, true, |ftl| (0..BEFORE).try_for_each(|_| host.change(ftl, numbers)))
    };
    work(&mut chip, &mut host, &mut numbers, memory).unwrap();
    chip.set_faults(faults);
    Start { chip, host, numbers }
}

fn session(
    memory: &mut Memory,
    chip: &mut Chip,
    host: &mut Host,
    numbers: &mut Numbers,
    changes: u32,
) -> Result<(), FtlError<ChipError>> {
    memory.with(chip, false, |ftl| (0..changes).try_for_each(|_| host.change(ftl, numbers)))
}

fn operations(chip: &Chip, work: impl FnOnce(&mut Chip)) -> u64 {
    let mut whole = chip.clone();
    work(&mut whole);
    whole.counters().operations() - chip.counters().operations()
}

/// Expects after cuts that nothing is lost, and that all mounts agree.
fn recover(
    memory: &mut Memory,
    chip: &mut Chip,
    host: &mut Host,
    numbers: &mut Numbers,
    what: &str,
) {
    chip.limit_operations(Some(200_000));
    for round in 0..3 {
        let what = &format!("{what}, mount {round}");
        let done = memory.with(chip, false, |ftl| {
            host.verify(ftl, what)?;
            expect_sound(ftl, what)?;
            if round != 1 {
                return Ok(());
            }
            host.change(ftl, numbers)?;
            host.verify(ftl, what)?;
            (0..AFTER).try_for_each(|_| host.change(ftl, numbers))?;
            host.verify(ftl, what)?;
            expect_sound(ftl, what)
        });
        done.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// Cuts power at a share of the operations of a session, and in each recovery.
fn cut_everywhere(
    profile: Profile,
    scheme: Scheme,
    faults: Faults,
    share: Share,
) -> (u32, u32, LogMerges) {
    let mut memory = Memory::new(&profile, scheme);
    let Start { chip, host, numbers: Numbers(seed) } = start(profile, &mut memory, 11, faults);
    memory.merges = LogMerges::default();
    let all = operations(&chip, |chip| {
        session(&mut memory, chip, &mut host.clone(), &mut Numbers(seed), CHANGES).unwrap();
    });
    let merges = memory.merges;
    let mount = operations(&chip, |chip| memory.with(chip, false, |_| Ok(())).unwrap());
    let quiet = Faults { unstable_pages: faults.unstable_pages, ..Faults::NONE };
    let mut choice = Numbers(faults.unstable_pages.into());
    let (mut first, mut second) = (0, 0);
    let tried = |at: u64| at < mount && at.is_multiple_of(64) || at >= mount && share.takes(at);
    for operation in (0..all).filter(|&at| tried(at)) {
        let kinds = if is_full() { &Cut::ALL[..] } else { &[Cut::ALL[choice.below(5) as usize]] };
        for &cut in kinds {
            let what =
                format!("{scheme:?}, unstable {}, {cut:?} at {operation}", faults.unstable_pages);
            let (mut cut_chip, mut after) = (chip.clone(), host.clone());
            cut_chip.cut_at(operation, cut);
            let done = session(&mut memory, &mut cut_chip, &mut after, &mut Numbers(seed), CHANGES);
            let is_cut = matches!(done, Err(FtlError::Device(ChipError::PowerLost)));
            assert!(is_cut, "{what}: {done:?}");
            cut_chip.restore_power();
            cut_chip.set_faults(quiet);
            first += 1;
            let (mut chip, mut host) = (cut_chip.clone(), after.clone());
            recover(&mut memory, &mut chip, &mut host, &mut Numbers(operation), &what);
            // Second cuts, in what settles the first one: a program or an erase each.
            let begun = cut_chip.counters().changes();
            let mut whole = cut_chip.clone();
            session(&mut memory, &mut whole, &mut after.clone(), &mut Numbers(2), 1).unwrap();
            let changes = whole.counters().changes() - begun;
            for _ in 0..if is_full() { 4 } else { 1 } {
                let (mut again, mut after) = (cut_chip.clone(), after.clone());
                // What the mount before it found is what every later one finds.
                let mut seen = cut_chip.clone();
                let verified = memory.with(&mut seen, false, |ftl| after.verify(ftl, &what));
                verified.unwrap_or_else(|error| panic!("{what}: {error}"));
                let (at, cut) = (choice.below(changes as u32), Cut::ALL[choice.below(5) as usize]);
                again.cut_at_change(at.into(), cut);
                let what = format!("{what}, then {cut:?} at {at} of {changes}");
                let short = session(&mut memory, &mut again, &mut after, &mut Numbers(2), 1);
                assert!(short.is_err(), "{what}");
                again.restore_power();
                second += 1;
                recover(&mut memory, &mut again, &mut after, &mut Numbers(3), &what);
            }
        }
    }
    (first, second, merges)
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_and_a_second_in_the_recovery() {
    let (mut first, mut second) = (0, 0);
    for profile in CHIPS {
        for scheme in SCHEMES {
            for unstable_pages in [0, 1, 2] {
                let faults = Faults { unstable_pages, ..Faults::NONE };
                let cuts = cut_everywhere(profile, scheme, faults, Share::one_in(11));
                (first, second) = (first + cuts.0, second + cuts.1);
                let merges = cuts.2;
                assert!(merges.blocks > 0 && merges.records > 30, "{scheme:?}: {merges:?}");
            }
        }
    }
    println!("{first} first cuts, {second} second ones");
    assert!(first > 400 && second > 400, "{first}, {second}");
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_where_a_block_fails() {
    let mut first = 0;
    for scheme in SCHEMES {
        let (program_failures, erase_failures) = (400, 200);
        let faults = Faults { program_failures, erase_failures, unstable_pages: 1, ..Faults::NONE };
        first += cut_everywhere(FAILING, scheme, faults, Share::one_in(23)).0;
    }
    assert!(first > 40, "{first} cuts");
}

/// Cuts power again and again in the first changes of sessions, so that one finds what several
/// left.
#[test]
fn cut_after_cut_without_rest() {
    for seed in seeds(120, 12) {
        let (profile, scheme) = (CHIPS[seed as usize % 3], SCHEMES[seed as usize / 3 % 2]);
        let unstable_pages = (seed % 5).min(2) as u32;
        let faults = Faults { unstable_pages, ..Faults::NONE };
        let mut memory = Memory::new(&profile, scheme);
        let Start { mut chip, mut host, mut numbers } =
            start(profile, &mut memory, 100 + seed, faults);
        for round in 0..if is_full() { 400 } else { 80 } {
            let what = format!("{scheme:?}, seed {seed}, round {round}");
            // Mostly in what settles; now and then in the work behind it.
            let within = if numbers.below(3) == 0 { 120 } else { 9 };
            chip.cut_at_change(numbers.below(within).into(), Cut::ALL[numbers.below(5) as usize]);
            let done = session(&mut memory, &mut chip, &mut host, &mut numbers, 2000);
            let is_cut = matches!(done, Err(FtlError::Device(ChipError::PowerLost)));
            assert!(is_cut, "{what}: {done:?}");
            chip.restore_power();
            for mount in 0..2 {
                let what = format!("{what}, mount {mount}");
                let verified = memory.with(&mut chip, false, |ftl| host.verify(ftl, &what));
                verified.unwrap_or_else(|error| panic!("{what}: {error}"));
            }
        }
        recover(&mut memory, &mut chip, &mut host, &mut numbers, "after all rounds");
    }
}

#[test]
fn a_format_that_is_cut_leaves_the_former_pages_or_no_ftl() {
    let (mut former, mut none) = (0, 0);
    for unstable_pages in [0, 1] {
        let faults = Faults { unstable_pages, ..Faults::NONE };
        let mut memory = Memory::new(&CHIPS[0], Scheme::Dipl);
        let Start { chip, host, .. } = start(CHIPS[0], &mut memory, 6, faults);
        let mut whole = chip.clone();
        memory.with(&mut whole, true, |_| Ok(())).unwrap();
        for at in 0..whole.counters().changes() - chip.counters().changes() {
            for cut in Cut::ALL {
                let what = format!("{cut:?} at {at}, unstable {unstable_pages}");
                let mut chip = chip.clone();
                chip.cut_at_change(at, cut);
                assert!(memory.with(&mut chip, true, |_| Ok(())).is_err(), "{what}");
                chip.restore_power();
                let mut empty = Host::new(memory.logical_pages);
                let opened = memory.with(&mut chip, false, |ftl| {
                    let mut page = [0; 512];
                    let mut held = 0;
                    for logical in 0..memory_pages(&host) {
                        held +=
                            u32::from(nandina_ftl::LogicalPages::read(ftl, logical, &mut page)?);
                    }
                    let mut host = if held > 0 { host.clone() } else { empty.clone() };
                    host.verify(ftl, &what)?;
                    Ok(held > 0)
                });
                match opened {
                    Ok(is_former) => former += u32::from(is_former),
                    Err(FtlError::Blank) => none += 1,
                    Err(error) => panic!("{what}: {error}"),
                }
                // It can be formatted now, and is empty.
                memory.with(&mut chip, true, |ftl| empty.verify(ftl, &what)).unwrap();
                memory.with(&mut chip, false, |ftl| empty.verify(ftl, &what)).unwrap();
            }
        }
    }
    assert!(former > 0 && none > 20, "{former} former, {none} without an FTL");
}

fn memory_pages(host: &Host) -> u32 {
    host.pages.len() as u32
}
