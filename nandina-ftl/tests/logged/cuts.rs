//! Power is cut at every chip operation, and again while the FTL recovers.
//!
//! Torn sectors and pages may read differently each time. After a cut each logical page is old or
//! new, and all later mounts and reads agree on which.

use nandina::flash::profile::Profile;
use nandina_ftl::logged::{LogMerges, Scheme};
use nandina_sim::{Chip, Faults};

use crate::cutting::{
    Subject, Within, cut_everywhere, cut_format, cut_in_a_row, cut_what_settles,
    cut_while_blocks_fail, fill, start, tear_last, unstable,
};
use crate::host::{Host, Memory};
use crate::numbers::Numbers;
use crate::{CHIPS, FAILING, SCHEMES, Share, is_full, seeds};

/// Changes that power is cut in.
const CHANGES: u32 = 120;

/// Cuts power at a share of the operations of a session, and in each recovery.
fn cut_session(
    profile: Profile,
    scheme: Scheme,
    faults: Faults,
    share: Share,
) -> (usize, u32, LogMerges) {
    let mut memory = Memory::new(&profile, scheme);
    let mut begun = start(profile, &mut memory, 11, Faults::NONE);
    begun.chip.set_faults(faults);
    memory.merges = LogMerges::default();
    let Numbers(seed) = begun.numbers;
    let (mut whole, mut host) = (begun.chip.clone(), begun.host.clone());
    memory.session(&mut whole, &mut host, &mut Numbers(seed), CHANGES).unwrap();
    let merges = memory.merges;
    let work = |memory: &mut Memory, chip: &mut Chip, host: &mut Host, numbers: &mut Numbers| {
        memory.session(chip, host, numbers, CHANGES)
    };
    let (pages, takes) = (faults.unstable_pages, |at| share.takes(at));
    let name = format!("{scheme:?}");
    let cuts = cut_everywhere(&mut memory, &begun, pages, &work, &takes, &name);
    (cuts.first.len(), cuts.second, merges)
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_and_a_second_in_the_recovery() {
    let (mut first, mut second) = (0, 0);
    for profile in CHIPS {
        for scheme in SCHEMES {
            for unstable_pages in [0, 1, 2] {
                let faults = unstable(unstable_pages);
                let cuts = cut_session(profile, scheme, faults, Share::one_in(11));
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
        first += cut_session(FAILING, scheme, faults, Share::one_in(23)).0;
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
        let mut memory = Memory::new(&profile, scheme);
        let mut begun = start(profile, &mut memory, 100 + seed, Faults::NONE);
        begun.chip.set_faults(unstable(unstable_pages));
        // Mostly in what settles; now and then in the work behind it.
        let within: Within = |_, numbers| if numbers.below(3) == 0 { 120 } else { 9 };
        let rounds = if is_full() { 400 } else { 80 };
        let name = format!("{scheme:?}, seed {seed}");
        cut_in_a_row(&mut memory, begun, within, rounds, &name);
    }
}

#[test]
fn cuts_in_a_row_on_a_full_device_never_use_up_the_spare_blocks() {
    for scheme in SCHEMES {
        for pages in [0, 1, 2] {
            let mut memory = Memory::new(&CHIPS[0], scheme);
            let mut begun = start(CHIPS[0], &mut memory, 5, unstable(pages));
            fill(&mut memory, &mut begun);
            let within: Within = |round, _| if round % 3 == 0 { 300 } else { 60 };
            let rounds = if is_full() { 3000 } else { 60 };
            let name = format!("{scheme:?}, unstable {pages}");
            cut_in_a_row(&mut memory, begun, within, rounds, &name);
        }
    }
}

#[test]
fn what_one_mount_decides_about_a_torn_page_every_later_mount_decides() {
    let mut second_cuts = 0;
    for seed in seeds(1200, 24) {
        let (profile, scheme) = (CHIPS[seed as usize % 3], SCHEMES[seed as usize / 3 % 2]);
        let mut memory = Memory::new(&profile, scheme);
        let mut begun = start(profile, &mut memory, 100 + seed, unstable(1));
        let what = format!("{scheme:?}, seed {seed}");
        tear_last(&mut memory, &mut begun, seed, &what);
        second_cuts += cut_what_settles(&mut memory, begun, &what);
    }
    assert!(second_cuts >= 90, "only {second_cuts} second cuts");
}

#[test]
fn cuts_in_a_row_while_blocks_fail_lose_nothing() {
    for scheme in SCHEMES {
        let mut memory = Memory::new(&FAILING, scheme);
        cut_while_blocks_fail(&mut memory, FAILING, seeds(300, 6), &format!("{scheme:?}"));
    }
}

#[test]
fn a_format_that_is_cut_leaves_the_former_pages_or_no_ftl() {
    let (mut former, mut none) = (0, 0);
    for pages in [0, 1] {
        let mut memory = Memory::new(&CHIPS[0], Scheme::Dipl);
        let begun = start(CHIPS[0], &mut memory, 6, unstable(pages));
        let found = cut_format(&mut memory, &begun, &format!("unstable {pages}"));
        (former, none) = (former + found.0, none + found.1);
    }
    assert!(former > 0 && none > 20, "{former} former, {none} without an FTL");
}
