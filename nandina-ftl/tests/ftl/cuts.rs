//! Power is cut at every chip operation, and again while the FTL recovers.
//!
//! Torn pages may read differently each time. After a cut each logical page is old or new, and all
//! later mounts and reads agree on which.

use nandina::flash::{Capabilities, Flash, Geometry, Pairing, Profile};
use nandina_ftl::ftl::logical_pages_apart_max;
use nandina_sim::{Chip, Cut, Faults, TINY, Tear};

use crate::cutting::{
    Start, Subject, Within, cut_everywhere, cut_format, cut_in_a_row, cut_what_settles,
    cut_while_blocks_fail, fill, look, operations_of_mount, recover, start, unstable,
};
use crate::host::{Change, Host, Memory};
use crate::numbers::Numbers;
use crate::{CHIP, FAILING, MAPPINGS, Share, is_full, seeds};

/// Changes that power is cut in.
const CHANGES: u32 = 40;

/// Cuts power at a share of the operations of a session, with one open block and with two.
fn cut_both(profile: Profile, name: &'static str, unstable: u32, share: Share) -> usize {
    let fits = logical_pages_apart_max(&profile.geometry, &profile.capabilities) > 0;
    let apart = if fits { &[false, true][..] } else { &[false] };
    let cut = |&apart| cut_with(&mut Memory::by(apart, &profile, name), profile, unstable, share);
    apart.iter().map(cut).sum()
}

/// Cuts power at a share of the operations of a session, and again in the recovery.
pub fn cut_with(memory: &mut Memory, profile: Profile, pages: u32, share: Share) -> usize {
    let begun = start(profile, memory, 11, unstable(pages));
    cut_from(memory, &begun, pages, share)
}

/// The same from `begun` on. Returns how many first cuts there were.
pub fn cut_from(memory: &mut Memory, begun: &Start<Host>, unstable: u32, share: Share) -> usize {
    let name = format!("{}, {} pages", memory.name, begun.chip.geometry().pages());
    let work = |memory: &mut Memory, chip: &mut Chip, host: &mut Host, numbers: &mut Numbers| {
        memory.session(chip, host, numbers, CHANGES)
    };
    let takes = |at| share.takes(at);
    cut_everywhere(memory, begun, unstable, &work, &takes, &name).first.len()
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_and_a_second_in_the_recovery() {
    let mut cuts = 0;
    for name in MAPPINGS {
        for unstable in [0, 1, 2] {
            cuts += cut_both(CHIP, name, unstable, Share::one_in(17));
        }
    }
    // The smallest chip, one whose pages share cells, and one without a spare area.
    let pairing = Pairing::DistanceThree;
    let capabilities = Capabilities { pairing, ..CHIP.capabilities };
    let no_spare = Geometry { spare_bytes: 0, ..CHIP.geometry };
    for profile in [TINY, Profile { capabilities, ..CHIP }, Profile { geometry: no_spare, ..CHIP }]
    {
        for unstable in [0, 1] {
            cuts += cut_both(profile, "compact", unstable, Share::one_in(11));
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
        let mut begun = start(FAILING, &mut memory, seed, unstable(1));
        let failing = Faults { program_failures: 200, erase_failures: 200, ..Faults::NONE };
        begun.chip.set_faults(Faults { unstable_pages: 1, ..failing });
        let (mut whole, mut host) = (begun.chip.clone(), begun.host.clone());
        let Numbers(seed) = begun.numbers;
        memory.session(&mut whole, &mut host, &mut Numbers(seed), CHANGES).unwrap();
        failures += whole.fault_counters().program_failures + whole.fault_counters().erase_failures;
        cuts += cut_from(&mut memory, &begun, 1, Share::one_in(17));
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
    let mut cut = |memory: &mut Memory, begun: Start<Host>, unstable| {
        cuts += cut_from(memory, &begun, unstable, Share::one_in(17)) as u32;
        used += memory.from_checkpoint;
    };
    let kinds =
        [("compact", true, 8), ("vet", false, 12), ("compact", false, 24), ("emt", true, 40)];
    for (name, apart, every) in kinds {
        for (pages, closes) in [(0, true), (1, false), (1, true), (2, true)] {
            let (profile, mut memory) = with_room(CHIP, name, apart);
            (memory.checkpoints, memory.closes) = (every, closes);
            let begun = start(profile, &mut memory, 31 + u64::from(pages), unstable(pages));
            cut(&mut memory, begun, pages);
        }
    }
    for seed in 21..25 {
        let (profile, mut memory) = with_room(FAILING, "compact", seed % 2 == 0);
        memory.checkpoints = 12;
        let mut begun = start(profile, &mut memory, seed, unstable(1));
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
        let pages = u32::from(seed != 11);
        let mut memory = Memory::by(apart, &profile, "compact");
        let Start { chip, host, numbers: Numbers(next) } =
            start(profile, &mut memory, seed, unstable(pages));
        // The session settles behind its mount.
        let mount = operations_of_mount(&mut memory, &chip);
        for at in mount..mount + 20 {
            let (mut chip, mut host) = (chip.clone(), host.clone());
            chip.cut_at(at, Cut::Inside(Tear::Mixture));
            let cut = memory.session(&mut chip, &mut host, &mut Numbers(next), CHANGES);
            assert!(cut.is_err(), "a session of {at} operations");
            chip.restore_power();
            let what = format!("seed {seed}, apart {apart}, at {at}");
            recover(&mut memory, &mut chip, &mut host, &mut Numbers(1), &what);
            cuts += 1;
        }
    }
    assert_eq!(cuts, 80);
}

#[test]
fn what_one_mount_decides_about_a_torn_page_every_later_mount_decides() {
    let mut second_cuts = 0;
    for seed in seeds(3000, 60) {
        let mut memory = Memory::by(seed % 4 > 1, &CHIP, "page");
        let Start { mut chip, mut host, mut numbers } =
            start(CHIP, &mut memory, 100 + seed, unstable(1));
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
        let begun = Start { chip, host, numbers };
        second_cuts += cut_what_settles(&mut memory, begun, &what);
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
        let Start { mut chip, mut host, mut numbers } =
            start(CHIP, &mut memory, 500 + seed, unstable(1));
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
    fill_and_cut_in_a_row(CHIP, if is_full() { 5000 } else { 150 });
    // Here a collected block may gain a single page.
    let geometry = Geometry { blocks: 24, pages_per_block: 32, ..CHIP.geometry };
    fill_and_cut_in_a_row(Profile { geometry, ..CHIP }, if is_full() { 1000 } else { 15 });
}

/// Cuts power again and again on a full device.
fn fill_and_cut_in_a_row(profile: Profile, rounds: u32) {
    for (pages, apart) in [(0, false), (0, true), (1, false), (1, true), (2, false), (2, true)] {
        let mut memory = Memory::by(apart, &profile, "page");
        let mut begun = start(profile, &mut memory, 5, unstable(pages));
        fill(&mut memory, &mut begun);
        // Shortly after the mount, so that most cuts are in what settles, or just behind.
        let within: Within = |round, _| if round % 3 == 0 { 450 } else { 210 };
        cut_in_a_row(
            &mut memory,
            begun,
            within,
            rounds,
            &format!("unstable {pages}, apart {apart}"),
        );
    }
}

/// The erase of a suspect once failed, and its torn page counted again before it was marked.
///
/// With seed 85 power was cut there.
#[test]
fn cuts_in_a_row_while_blocks_fail_lose_nothing() {
    for apart in [false, true] {
        let seeds = seeds(300, 6).into_iter().chain([85]);
        let mut memory = Memory::by(apart, &FAILING, "page");
        cut_while_blocks_fail(&mut memory, FAILING, seeds, &format!("apart {apart}"));
    }
}

#[test]
fn a_format_that_is_cut_leaves_the_former_pages_or_no_ftl() {
    let (mut former, mut none) = (0, 0);
    for pages in [0, 1] {
        let mut memory = Memory::new(&CHIP, "page");
        let begun = start(CHIP, &mut memory, 6, unstable(pages));
        let found = cut_format(&mut memory, &begun, &format!("unstable {pages}"));
        (former, none) = (former + found.0, none + found.1);
    }
    println!("{former} former, {none} without an FTL");
    assert!(former > 0 && none > 20, "{former} former, {none} without an FTL");
}
