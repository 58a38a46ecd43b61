//! Power is cut at every chip operation, and again while the FTL recovers.
//!
//! Torn pages may read differently each time. After a cut each logical page is old or new, and all
//! later mounts and reads agree on which.

use nandina::flash::{Capabilities, Geometry, Pairing, Profile};
use nandina_ftl::ftl::{FtlError, logical_pages_apart_max};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY, Tear};

use crate::host::{Change, Host, Memory, Outcome, expect_sound};
use crate::numbers::Numbers;
use crate::{CHIP, FAILING, MAPPINGS, Share, is_full, seeds};

/// Changes before the first cut, and those that power is cut in.
const BEFORE: u32 = 250;
const CHANGES: u32 = 40;

/// Changes after each recovery.
const AFTER: u32 = 12;

/// A chip in use, and what its host knows.
pub struct Start {
    pub chip: Chip,
    pub host: Host,
    pub numbers: Numbers,
}

pub fn start(profile: Profile, memory: &mut Memory, seed: u64, unstable: u32) -> Start {
    let mut chip = Chip::with_seed(profile, seed);
    chip.set_faults(Faults { unstable_pages: unstable, ..Faults::NONE });
    let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(seed));
    host.checkpoints = memory.checkpoints;
    (host.requests, host.forgets_marks) = (memory.requests, memory.forgets_marks);
    let work = |ftl: &mut crate::host::Device<'_>| {
        for _ in 0..BEFORE {
            host.change(ftl, &mut numbers)?;
        }
        Ok(())
    };
    memory.with(&mut chip, true, work).unwrap();
    Start { chip, host, numbers }
}

/// Opens the FTL and makes changes: what power is cut in.
pub fn session(
    memory: &mut Memory,
    chip: &mut Chip,
    host: &mut Host,
    numbers: &mut Numbers,
    changes: u32,
) -> Outcome<()> {
    // Where sessions end, they are short.
    let (each, often) = if memory.closes { (6, 4) } else { (changes, 16) };
    for from in (0..changes).step_by(each as usize) {
        memory.with(chip, false, |ftl| {
            for at in from..changes.min(from + each) {
                host.change(ftl, numbers)?;
                if at % often == often - 1 {
                    ftl.idle(20)?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Expects after cuts that nothing is lost, and that all mounts agree.
pub fn recover(
    memory: &mut Memory,
    chip: &mut Chip,
    host: &mut Host,
    numbers: &mut Numbers,
    what: &str,
) {
    chip.limit_operations(Some(100_000));
    let mut reopened = |work: &mut dyn FnMut(&mut crate::host::Device<'_>) -> Outcome<()>| {
        memory.with(chip, false, |ftl| work(ftl)).unwrap_or_else(|error| panic!("{what}: {error}"));
    };
    reopened(&mut |ftl| {
        host.verify(ftl, what)?;
        assert_eq!(ftl.statistics().unexplained_blocks, 0, "{what}");
        expect_sound(ftl, what)
    });
    // Nothing was written: another mount sees the same. The first change settles.
    reopened(&mut |ftl| {
        host.verify(ftl, what)?;
        host.change(ftl, numbers)?;
        host.verify(ftl, what)?;
        for _ in 0..AFTER {
            host.change(ftl, numbers)?;
        }
        host.verify(ftl, what)?;
        expect_sound(ftl, what)
    });
    reopened(&mut |ftl| host.verify(ftl, what));
}

fn cut_everywhere(profile: Profile, name: &'static str, unstable: u32, share: Share) -> u32 {
    let fits = logical_pages_apart_max(&profile.geometry, &profile.capabilities) > 0;
    let apart = if fits { &[false, true][..] } else { &[false] };
    let cut = |&apart| cut_with(&mut Memory::by(apart, &profile, name), profile, unstable, share);
    apart.iter().map(cut).sum()
}

/// Cuts power at a share of the operations of a session, and again in the recovery.
pub fn cut_with(memory: &mut Memory, profile: Profile, unstable: u32, share: Share) -> u32 {
    let begun = start(profile, memory, 11, unstable);
    cut_from(memory, begun, unstable, share).0
}

/// The same from `begun` on. After the first cut no block fails any more.
///
/// Returns how many cuts there were, and after how many of them a checkpoint was used.
fn cut_from(memory: &mut Memory, begun: Start, unstable: u32, share: Share) -> (u32, u32) {
    let name = memory.name;
    let Start { chip, host, numbers: Numbers(seed) } = begun;
    let profile = chip.profile();
    let mut whole = chip.clone();
    session(memory, &mut whole, &mut host.clone(), &mut Numbers(seed), CHANGES).unwrap();
    let operations = whole.counters().operations() - chip.counters().operations();
    let (mut cuts, mut used) = (0, 0);
    let mut choice = Numbers(unstable.into());
    // The mount only reads: of its operations a few suffice.
    let mut opened = chip.clone();
    memory.with(&mut opened, false, |_| Ok(())).unwrap();
    let mount = opened.counters().operations() - chip.counters().operations();
    let tried = |at: u64| if at < mount { at.is_multiple_of(64) } else { share.takes(at) };
    for operation in (0..operations).filter(|&at| tried(at)) {
        let kinds = if is_full() { &Cut::ALL[..] } else { &[Cut::ALL[choice.below(5) as usize]] };
        for &cut in kinds {
            let pages = profile.geometry.pages();
            let what = format!("{name}, {pages} pages, {unstable}: {cut:?} at {operation}");
            let (mut chip, mut host) = (chip.clone(), host.clone());
            let mut numbers = Numbers(seed);
            chip.cut_at(operation, cut);
            let cut_short = session(memory, &mut chip, &mut host, &mut numbers, CHANGES);
            assert!(cut_short.is_err(), "{what}");
            chip.restore_power();
            chip.set_faults(Faults { unstable_pages: unstable, ..Faults::NONE });
            cuts += 1;
            // The second cut is anywhere in the mount, or in the change that settles.
            let (mut again, mut after) = (chip.clone(), host.clone());
            recover(memory, &mut chip, &mut host, &mut Numbers(1), &what);
            let mut until = again.clone();
            memory.with(&mut until, false, |ftl| after.clone().verify(ftl, &what)).unwrap();
            let verified = memory.with(&mut again, false, |ftl| {
                after.verify(ftl, &what)?;
                Ok(ftl.has_checkpoint())
            });
            used += u32::from(verified.unwrap());
            let mut whole = again.clone();
            session(memory, &mut whole, &mut after.clone(), &mut Numbers(2), 1).unwrap();
            let most = whole.counters().operations() - again.counters().operations();
            // Most operations are the reads of the mount; what settles comes last.
            let at = most - 1 - u64::from(choice.below(most.min(200) as u32));
            let second = Cut::ALL[choice.below(5) as usize];
            again.cut_at(at, second);
            let what = format!("{what}, then {second:?} at {at}");
            let cut_short = session(memory, &mut again, &mut after, &mut Numbers(2), 1);
            assert!(cut_short.is_err(), "{what}");
            again.restore_power();
            recover(memory, &mut again, &mut after, &mut Numbers(3), &what);
        }
    }
    (cuts, used)
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_and_a_second_in_the_recovery() {
    let mut cuts = 0;
    for name in MAPPINGS {
        for unstable in [0, 1, 2] {
            cuts += cut_everywhere(CHIP, name, unstable, Share::one_in(17));
        }
    }
    // The smallest chip, one whose pages share cells, and one without a spare area.
    let pairing = Pairing::DistanceThree;
    let capabilities = Capabilities { pairing, ..CHIP.capabilities };
    let no_spare = Geometry { spare_bytes: 0, ..CHIP.geometry };
    for profile in [TINY, Profile { capabilities, ..CHIP }, Profile { geometry: no_spare, ..CHIP }]
    {
        for unstable in [0, 1] {
            cuts += cut_everywhere(profile, "compact", unstable, Share::one_in(11));
        }
    }
    println!("{cuts} first cuts");
    assert!(cuts > 100, "only {cuts} cuts");
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_where_a_block_fails() {
    let (mut cuts, mut failures) = (0, 0);
    for (name, seed) in MAPPINGS.into_iter().flat_map(|name| [(name, 21), (name, 22)]) {
        let mut memory = Memory::by(seed == 22, &FAILING, name);
        let mut begun = start(FAILING, &mut memory, seed, 1);
        let failing = Faults { program_failures: 200, erase_failures: 200, ..Faults::NONE };
        begun.chip.set_faults(Faults { unstable_pages: 1, ..failing });
        let (mut whole, mut host) = (begun.chip.clone(), begun.host.clone());
        let Numbers(seed) = begun.numbers;
        session(&mut memory, &mut whole, &mut host, &mut Numbers(seed), CHANGES).unwrap();
        failures += whole.fault_counters().program_failures + whole.fault_counters().erase_failures;
        cuts += cut_from(&mut memory, begun, 1, Share::one_in(17)).0;
    }
    println!("{cuts} first cuts, {failures} blocks failed");
    assert!(cuts > 50 && failures >= 4, "{cuts} cuts, {failures} failures");
}

/// A chip with room for checkpoints, and an FTL that leaves it.
///
/// Every other chip has more free blocks than a checkpoint lists.
pub fn with_room(profile: Profile, name: &'static str, apart: bool) -> (Profile, Memory) {
    let geometry = Geometry { blocks: profile.geometry.blocks + 16, ..profile.geometry };
    let many = Geometry { blocks: geometry.blocks + 16, ..geometry };
    let chip = Profile { geometry, ..profile };
    let Memory { logical_pages, .. } = Memory::by(apart, &chip, name);
    let held = 5 * geometry.pages_per_block;
    let chip = Profile { geometry: if apart { many } else { geometry }, ..profile };
    (chip, Memory::with_pages(&chip, name, logical_pages - held))
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_beside_a_checkpoint() {
    let (mut cuts, mut used) = (0, 0);
    let mut cut = |memory: &mut Memory, begun, unstable| {
        let (first, from_checkpoint) = cut_from(memory, begun, unstable, Share::one_in(17));
        (cuts, used) = (cuts + first, used + from_checkpoint);
    };
    let kinds =
        [("compact", true, 8), ("vet", false, 12), ("compact", false, 24), ("emt", true, 40)];
    for (name, apart, every) in kinds {
        for (unstable, closes) in [(0, true), (1, false), (1, true), (2, true)] {
            let (profile, mut memory) = with_room(CHIP, name, apart);
            (memory.checkpoints, memory.closes) = (every, closes);
            let begun = start(profile, &mut memory, 31 + u64::from(unstable), unstable);
            cut(&mut memory, begun, unstable);
        }
    }
    for seed in 21..25 {
        let (profile, mut memory) = with_room(FAILING, "compact", seed % 2 == 0);
        memory.checkpoints = 12;
        let mut begun = start(profile, &mut memory, seed, 1);
        let failing = Faults { program_failures: 200, erase_failures: 200, ..Faults::NONE };
        begun.chip.set_faults(Faults { unstable_pages: 1, ..failing });
        cut(&mut memory, begun, 1);
    }
    println!("{cuts} first cuts, {used} mounts from a checkpoint after them");
    assert!(cuts > 100 && 4 * used > cuts, "{cuts} cuts, {used} mounts from a checkpoint");
}

/// A checkpoint that a session gave up is found by the next mount if its directory survives.
#[test]
fn the_directory_of_a_checkpoint_in_a_block_whose_erase_was_cut_is_no_damage() {
    let mut cuts = 0;
    for (apart, seed) in [(false, 11), (true, 11), (false, 21), (true, 22)] {
        let profile = if seed == 11 { CHIP } else { FAILING };
        let unstable = u32::from(seed != 11);
        let mut memory = Memory::by(apart, &profile, "compact");
        let Start { chip, host, numbers: Numbers(next) } =
            start(profile, &mut memory, seed, unstable);
        // The session settles behind its mount.
        let mut opened = chip.clone();
        memory.with(&mut opened, false, |_| Ok(())).unwrap();
        let mount = opened.counters().operations() - chip.counters().operations();
        for at in mount..mount + 20 {
            let (mut chip, mut host) = (chip.clone(), host.clone());
            chip.cut_at(at, Cut::Inside(Tear::Mixture));
            let cut = session(&mut memory, &mut chip, &mut host, &mut Numbers(next), CHANGES);
            assert!(cut.is_err(), "a session of {at} operations");
            chip.restore_power();
            let what = format!("seed {seed}, apart {apart}, at {at}");
            recover(&mut memory, &mut chip, &mut host, &mut Numbers(1), &what);
            cuts += 1;
        }
    }
    assert_eq!(cuts, 80);
}

/// Mounts as often as said and expects the same pages each time.
fn look(memory: &mut Memory, chip: &mut Chip, host: &mut Host, times: u32, what: &str) {
    for mount in 0..times {
        let what = format!("{what}, mount {mount}");
        let verified = memory.with(chip, false, |ftl| host.verify(ftl, &what));
        verified.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

#[test]
fn what_one_mount_decides_about_a_torn_page_every_later_mount_decides() {
    let mut second_cuts = 0;
    for seed in seeds(3000, 60) {
        let mut memory = Memory::by(seed % 4 > 1, &CHIP, "page");
        let Start { mut chip, mut host, mut numbers } = start(CHIP, &mut memory, 100 + seed, 1);
        // The last program of a change. For every other seed that change begins a block.
        let begins_block = seed % 2 == 0;
        let changes = 1 + numbers.below(30);
        let mut tried = chip.clone();
        let (mut as_tried, mut choice) = (host.clone(), Numbers(seed));
        let work = |ftl: &mut crate::host::Device<'_>| {
            for _ in 0..changes {
                as_tried.change(ftl, &mut choice)?;
            }
            let erases = ftl.statistics().erases;
            while begins_block && ftl.statistics().erases == erases {
                as_tried.change(ftl, &mut choice)?;
            }
            Ok(())
        };
        memory.with(&mut tried, false, work).unwrap();
        let last = tried.counters().operations() - chip.counters().operations() - 1;
        let tear = [Tear::Mixture, Tear::Ones, Tear::Unreadable][seed as usize % 3];
        chip.cut_at(last, Cut::Inside(tear));
        let mut choice = Numbers(seed);
        let work = |ftl: &mut crate::host::Device<'_>| {
            (0..1000).try_for_each(|_| host.change(ftl, &mut choice))
        };
        assert!(memory.with(&mut chip, false, work).is_err(), "seed {seed}");
        chip.restore_power();
        let what = format!("seed {seed}, {tear:?} at {last}");
        look(&mut memory, &mut chip, &mut host, 1, &what);
        // Another page is written, which settles. Power is cut before one of the last operations.
        let other = Change::Write(host.pages.len() as u32 - 1, 1 << 19);
        let (mut settled, mut after) = (chip.clone(), host.clone());
        memory.with(&mut settled, false, |ftl| after.make(ftl, other)).unwrap();
        let all = settled.counters().operations() - chip.counters().operations();
        for _ in 0..4 {
            let (mut chip, mut host) = (chip.clone(), host.clone());
            let at = all - 1 - u64::from(numbers.below(all.min(24) as u32));
            chip.cut_at(at, Cut::Before);
            assert!(memory.with(&mut chip, false, |ftl| host.make(ftl, other)).is_err());
            chip.restore_power();
            look(&mut memory, &mut chip, &mut host, 4, &format!("{what}, again at {at}"));
            second_cuts += 1;
        }
        look(&mut memory, &mut settled, &mut after, 4, &format!("{what}, settled"));
    }
    println!("{second_cuts} second cuts");
    assert!(second_cuts >= 240, "only {second_cuts} second cuts");
}

/// Two sessions behind the same end may give their first pages one number.
#[test]
fn the_first_page_of_a_session_that_was_cut_never_wins_over_one_of_the_next() {
    let mut torn = 0;
    for seed in seeds(2000, 100) {
        let mut memory = Memory::by(seed % 2 == 1, &CHIP, "page");
        let Start { mut chip, mut host, mut numbers } = start(CHIP, &mut memory, 500 + seed, 1);
        let what = format!("seed {seed}");
        // A write settles, and the session ends.
        memory.closes = true;
        memory.with(&mut chip, false, |ftl| host.change(ftl, &mut numbers)).unwrap();
        memory.closes = false;
        let logical = numbers.below(host.pages.len() as u32);
        chip.cut_at_change(1, Cut::Inside(Tear::Mixture));
        let write = Change::Write(logical, 1 << 18);
        if memory.with(&mut chip, false, |ftl| host.make(ftl, write)).is_ok() {
            continue;
        }
        torn += 1;
        chip.restore_power();
        look(&mut memory, &mut chip, &mut host, 1, &what);
        let write = Change::Write(logical, 1 << 19);
        memory.with(&mut chip, false, |ftl| host.make(ftl, write)).unwrap();
        look(&mut memory, &mut chip, &mut host, 12, &what);
    }
    assert!(torn >= 50, "only {torn} pages were torn");
}

#[test]
fn cuts_in_a_row_never_use_up_the_reserve() {
    cut_in_a_row(CHIP, if is_full() { 5000 } else { 150 });
    // Here a collected block may gain a single page.
    let geometry = Geometry { blocks: 24, pages_per_block: 32, ..CHIP.geometry };
    cut_in_a_row(Profile { geometry, ..CHIP }, if is_full() { 1000 } else { 15 });
}

/// Cuts power again and again on a full device.
fn cut_in_a_row(profile: Profile, rounds: u32) {
    for (unstable, apart) in [(0, false), (0, true), (1, false), (1, true), (2, false), (2, true)] {
        let mut memory = Memory::by(apart, &profile, "page");
        let Start { mut chip, mut host, mut numbers } = start(profile, &mut memory, 5, unstable);
        // The device is full.
        memory
            .with(&mut chip, false, |ftl| {
                for logical in 0..host.pages.len() as u32 {
                    host.make(ftl, Change::Write(logical, 1 << 18))?;
                }
                Ok(())
            })
            .unwrap();
        for round in 0..rounds {
            let what = format!("unstable {unstable}, apart {apart}, round {round}");
            // Shortly after the mount, so that most cuts are in what settles, or just behind.
            let mut opened = chip.clone();
            memory.with(&mut opened, false, |_| Ok(())).unwrap();
            let mount = opened.counters().operations() - chip.counters().operations();
            let at = mount + u64::from(numbers.below(if round % 3 == 0 { 900 } else { 420 }));
            chip.cut_at(at, Cut::ALL[numbers.below(5) as usize]);
            let done = session(&mut memory, &mut chip, &mut host, &mut numbers, 400);
            let is_cut = matches!(done, Err(FtlError::Device(ChipError::PowerLost)));
            assert!(is_cut, "{what}: {done:?}");
            chip.restore_power();
            let verified = memory.with(&mut chip, false, |ftl| host.verify(ftl, &what));
            verified.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        recover(&mut memory, &mut chip, &mut host, &mut numbers, "after all rounds");
    }
}

#[test]
fn a_format_that_is_cut_leaves_the_former_pages_or_no_ftl() {
    let (mut former, mut none) = (0, 0);
    for unstable in [0, 1] {
        let mut memory = Memory::new(&CHIP, "page");
        let Start { chip, host, .. } = start(CHIP, &mut memory, 6, unstable);
        let written = host.pages.iter().position(Option::is_some).unwrap();
        let mut whole = chip.clone();
        memory.with(&mut whole, true, |_| Ok(())).unwrap();
        let operations = whole.counters().operations() - chip.counters().operations();
        // What is before are the reads of the mount.
        for operation in (0..operations).rev().take(24) {
            for cut in Cut::ALL {
                let what = format!("{cut:?} at {operation}");
                let mut chip = chip.clone();
                chip.cut_at(operation, cut);
                assert!(memory.with(&mut chip, true, |_| Ok(())).is_err(), "{what}");
                chip.restore_power();
                let empty = Host::new(memory.logical_pages);
                let opened = memory.with(&mut chip, false, |ftl| {
                    let is_former = ftl.read(written as u32, &mut [0; 512])?;
                    let mut host = if is_former { host.clone() } else { empty.clone() };
                    host.verify(ftl, &what)?;
                    Ok(is_former)
                });
                match opened {
                    Ok(is_former) => former += u32::from(is_former),
                    Err(FtlError::Blank) => none += 1,
                    Err(error) => panic!("{what}: {error}"),
                }
                // It can be formatted now, and is empty.
                let mut empty = empty.clone();
                memory.with(&mut chip, true, |ftl| empty.verify(ftl, &what)).unwrap();
                memory.with(&mut chip, false, |ftl| empty.verify(ftl, &what)).unwrap();
            }
        }
    }
    println!("{former} former, {none} without an FTL");
    assert!(former > 0 && none > 20, "{former} former, {none} without an FTL");
}
