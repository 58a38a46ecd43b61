//! Every coverage mark of the FTLs is reached: each rare branch is taken by some case here.
//!
//! A mark is noted for a whole process, so this is a program of its own, as that of the library is
//! (`nandina-lab/tests/marks.rs`). Its cases are loops of the other checks, and the same every day.

#[allow(dead_code, reason = "other checks use what is not used here")]
#[path = "../chips/mod.rs"]
mod chips;
#[path = "../cutting/mod.rs"]
mod cutting;
mod directed;
#[path = "../numbers/mod.rs"]
mod numbers;
#[path = "../unmarked/mod.rs"]
mod unmarked;

/// The FTL with a page map or another mapping.
#[allow(dead_code, reason = "other checks use what is not used here")]
#[path = "../ftl/host.rs"]
mod ftl;

#[allow(dead_code, reason = "other checks use what is not used here")]
mod hybrid;
#[allow(dead_code, reason = "other checks use what is not used here")]
mod logged;

use nandina::flash::profile::Profile;
use nandina::flash::{Flash, Geometry, PageNumber};
use nandina_ftl::ftl::FtlError;
use nandina_ftl::hybrid::{Block, Buffer, Fast, SequentialRule, Transit};
use nandina_ftl::marks::{NAMES, REACHED};
use nandina_sim::{Chip, Cut, Faults};

use chips::{CHIP, is_full};
use cutting::{
    Open, Start, Subject, Within, cut_everywhere, cut_format, cut_in_a_row, cut_what_settles,
    cut_while_blocks_fail, expect_cut, fill, live, start, tear_last, unstable,
};
use numbers::Numbers;

/// Cuts power in one of so many operations of a session, and in what settles it.
fn cut<S: Subject>(subject: &mut S, begun: &Start<S::Host>, pages: u32, one_in: u64, name: &str) {
    let work = |subject: &mut S, chip: &mut _, host: &mut S::Host, numbers: &mut Numbers| {
        subject.session(chip, host, numbers, 60)
    };
    let takes = |at: u64| at.is_multiple_of(one_in);
    let cuts = cut_everywhere(subject, begun, pages, &work, &takes, name);
    assert!(cuts.first.len() > 5 && cuts.second > 5, "{name}: {} cuts", cuts.first.len());
}

/// Makes each written page unreadable, or each `row` of them, and uses the FTL.
///
/// A read may return an older page or an error, but the FTL does not stop.
fn fade<S: Subject>(subject: &mut S, begun: &Start<S::Host>, row: u32, name: &str) {
    let pages = (0..begun.chip.geometry().pages()).map(PageNumber);
    for page in pages.filter(|&page| !begun.chip.page_is_erased(page)) {
        let (mut chip, mut host) = (begun.chip.clone(), begun.host.clone());
        for behind in (page.0..page.0 + row).map(PageNumber) {
            if behind.0 < chip.geometry().pages() && !chip.page_is_erased(behind) {
                chip.corrupt_page(behind, |main, _| main[9] ^= 0x55);
            }
        }
        let mut use_it = |open: &mut dyn Open| {
            let mut bytes = vec![0; open.ftl().page_bytes()];
            for logical in 0..open.ftl().logical_pages() {
                let read = open.ftl().read(logical, &mut bytes);
                let is_right = matches!(read, Ok(_) | Err(FtlError::Corrupt { .. }));
                assert!(is_right, "{name}, {page:?}: {read:?}");
            }
            // Whether changes succeed depends on the page.
            let pages = open.ftl().logical_pages();
            for at in 0..24 {
                let _ = open.ftl().write(at % pages, &bytes);
            }
            Ok(())
        };
        // And so does whether it opens.
        let _ = subject.with(&mut chip, &mut host, false, &mut use_it);
    }
}

/// Whether more cases are run: with full effort, or until each mark of that kind of FTL is reached.
fn goes_on(kind: &str) -> bool {
    let reached: Vec<_> = REACHED.among(NAMES).collect();
    is_full() || NAMES.iter().any(|name| name.starts_with(kind) && !reached.contains(name))
}

/// What every FTL of a kind lives through.
fn live_through<S: Subject>(subject: &mut S, profile: Profile, kind: &str, name: &str) {
    let one_in = one_in();
    for pages in [0, 1] {
        if !goes_on(kind) {
            return;
        }
        let begun = start(profile, subject, 11, unstable(pages));
        cut(subject, &begun, pages, one_in, name);
        cut_format(subject, &begun, name);
        fade(subject, &begun, 1, name);
        fade(subject, &begun, 2, name);
        if !goes_on(kind) {
            return;
        }
        for seed in 0..if is_full() { 60 } else { 6 } {
            let mut begun = start(profile, subject, 100 + seed, unstable(pages));
            tear_last(subject, &mut begun, seed, name);
            cut_what_settles(subject, begun, name);
        }
        if !goes_on(kind) {
            return;
        }
        let rounds = |quick| if is_full() { 2000 } else { quick };
        let mut full = start(profile, subject, 5, unstable(pages));
        fill(subject, &mut full);
        let within: Within = |round, _| if round % 3 == 0 { 250 } else { 60 };
        cut_in_a_row(subject, full, within, rounds(150), name);
        let begun = start(profile, subject, 7, unstable(pages));
        let within: Within = |_, numbers| if numbers.below(6) == 0 { 120 } else { 7 };
        cut_in_a_row(subject, begun, within, rounds(400), name);
    }
}

/// Cuts power in a row on a chip of which few pages were written.
///
/// So torn pages are the first of their logical pages.
fn cut_while_pages_are_new<S: Subject>(subject: &mut S, profile: Profile, seeds: u64, name: &str) {
    for seed in 0..if is_full() { 20 * seeds } else { seeds } {
        let (mut chip, mut host) = (Chip::with_seed(profile, seed), subject.new_host());
        chip.set_faults(unstable(1 + seed as u32 % 2));
        subject.with(&mut chip, &mut host, true, &mut |_| Ok(())).unwrap();
        let mut numbers = Numbers(seed);
        for round in 0..24 {
            chip.cut_at_change(numbers.below(6).into(), Cut::ALL[numbers.below(5) as usize]);
            let what = format!("{name}, seed {seed}, round {round}");
            expect_cut(subject.session(&mut chip, &mut host, &mut numbers, 400), &what);
            chip.restore_power();
            subject.verify(&mut chip, &mut host, &what);
        }
    }
}

/// What it lives through on a chip whose blocks fail.
fn live_with_failures<S: Subject>(subject: &mut S, profile: Profile, kind: &str, name: &str) {
    if !goes_on(kind) {
        return;
    }
    let failing = Faults { program_failures: 300, erase_failures: 200, ..unstable(1) };
    for seed in 0..if is_full() { 60 } else { 20 } {
        live(subject, (profile, seed, failing), (20, 80), name);
        live(subject, (profile, seed, Faults { device_errors: 300, ..failing }), (20, 80), name);
    }
    if !goes_on(kind) {
        return;
    }
    cut_while_blocks_fail(subject, profile, 0..if is_full() { 240 } else { 12 }, name);
    for seed in 0..4 {
        let mut begun = start(profile, subject, 40 + seed, unstable(1));
        begun.chip.set_faults(failing);
        cut(subject, &begun, 1, 4 * one_in(), name);
    }
}

/// Of the operations of a session, one in so many is cut.
fn one_in() -> u64 {
    if is_full() { 3 } else { 31 }
}

#[test]
fn every_rare_branch_is_reached() {
    directed::fade_before_the_first_change();
    directed::trimmed_page_that_comes_and_goes();
    directed::fade_in_a_buffer_block();
    directed::fade_a_directory();
    directed::fill_the_lists_of_trims();
    directed::fill_a_mapping();
    directed::return_after_fading();
    directed::give_up_while_trims_wait();
    directed::break_requests();
    directed::cut_requests();
    directed::trim_in_a_block_that_failed();
    directed::fail_beside_a_checkpoint();
    directed::fail_first_programs();

    let befores = [7, 23, 41];
    let fast = Fast { log_blocks: 3, sequential: SequentialRule::FirstPage };
    unmarked::hybrid::live("fast", fast, &chips::FAILING, befores);
    let transit = Transit { over: Block, buffer: Buffer::as_printed(2) };
    unmarked::hybrid::live("transit", transit, &chips::FAILING, befores);
    unmarked::page::live(chips::FAILING, befores);

    let (of_ftl, of_hybrid, of_logged) = ("ftl: ", "hybrid: ", "logged: ");
    for name in ["page", "compact"] {
        for apart in [false, true] {
            let memory = &mut ftl::Memory::by(apart, &CHIP, name);
            live_through(memory, CHIP, of_ftl, name);
            let memory = &mut ftl::Memory::by(apart, &chips::FAILING, name);
            live_with_failures(memory, chips::FAILING, of_ftl, name);
        }
    }
    // Below a transit buffer.
    for (buffer, seed) in [(Buffer::as_printed(3), 0), (Buffer::improved(2, 64, 8), 1)] {
        let more = |profile: Profile| {
            let geometry = Geometry { blocks: profile.geometry.blocks + 8, ..profile.geometry };
            Profile { geometry, ..profile }
        };
        let (profile, failing) = (more(CHIP), more(chips::FAILING));
        let memory = &mut ftl::Memory::behind(buffer, seed == 1, &profile, "page");
        live_through(memory, profile, of_ftl, "below a buffer");
        let memory = &mut ftl::Memory::behind(buffer, seed == 1, &failing, "page");
        live_with_failures(memory, failing, of_ftl, "below a buffer");
    }
    // Beside a checkpoint, with requests, and with sessions that end.
    for (name, seed) in [("compact", 1), ("vet", 2), ("emt", 3)] {
        let geometry = Geometry { blocks: CHIP.geometry.blocks + 16, ..CHIP.geometry };
        for profile in [Profile { geometry, ..CHIP }, Profile { geometry, ..chips::FAILING }] {
            if !goes_on(of_ftl) {
                break;
            }
            let memory = &mut ftl::Memory::by(seed % 2 == 0, &profile, name);
            memory.logical_pages -= 5 * geometry.pages_per_block;
            (memory.checkpoints, memory.requests, memory.closes) = (24, 4, seed == 1);
            let begun = start(profile, memory, 30 + seed, unstable(1));
            cut(memory, &begun, 1, one_in(), name);
            let failing = Faults { program_failures: 300, erase_failures: 200, ..unstable(1) };
            for seed in 0..6 {
                live(memory, (profile, seed, failing), (20, 80), name);
            }
        }
    }
    // Those with more mechanisms first.
    for which in hybrid::kinds::ALL.into_iter().rev() {
        let name = format!("{which:?}");
        let memory = &mut hybrid::host::Memory::new(&CHIP, which);
        live_through(memory, CHIP, of_hybrid, &name);
        let memory = &mut hybrid::host::Memory::new(&chips::FAILING, which);
        live_with_failures(memory, chips::FAILING, of_hybrid, &name);
    }
    for scheme in logged::kinds::SCHEMES {
        let name = format!("{scheme:?}");
        let failing = logged::kinds::FAILING;
        let memory = &mut logged::host::Memory::new(&failing, scheme);
        live_with_failures(memory, failing, of_logged, &name);
        let within: Within = |_, numbers| if numbers.below(3) == 0 { 120 } else { 9 };
        for (seed, profile) in (0..24).zip(logged::kinds::CHIPS.into_iter().cycle()) {
            if goes_on(of_logged) {
                let memory = &mut logged::host::Memory::new(&profile, scheme);
                let begun = start(profile, memory, 100 + seed, unstable(1 + seed as u32 % 2));
                cut_in_a_row(memory, begun, within, 200, &name);
            }
        }
        for profile in logged::kinds::CHIPS {
            let memory = &mut logged::host::Memory::new(&profile, scheme);
            if goes_on(of_logged) {
                cut_while_pages_are_new(memory, profile, 40, &name);
            }
            live_through(memory, profile, of_logged, &name);
        }
    }

    let reached: Vec<_> = REACHED.among(NAMES).collect();
    let missing: Vec<_> = NAMES.iter().filter(|name| !reached.contains(*name)).collect();
    assert!(missing.is_empty(), "not reached: {missing:#?}");
    println!("reached: {} of {}", reached.len(), NAMES.len());
}
