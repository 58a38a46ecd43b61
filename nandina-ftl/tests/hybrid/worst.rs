//! No write costs more than is said before: skewed work, with and without idle steps.

use nandina::flash::{Geometry, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::hybrid::{
    Bast, Block, Buffer, Fast, Hybrid, Policy, SequentialRule, Transit, logical_pages_max,
    ram_needed, write_cost,
};
use nandina_sim::Chip;

use crate::numbers::Numbers;
use crate::skewed::{Skewed, is_within, operations, since};
use crate::{CHIP, Share, is_full};

/// Blocks of more pages, so that a conversion sets off more merges.
const LONGER: Profile =
    Profile { geometry: Geometry { blocks: 40, pages_per_block: 32, ..CHIP.geometry }, ..CHIP };

/// A buffer whose idle steps convert ahead of need.
const AHEAD: Buffer = Buffer { ahead: 1, ..Buffer::as_printed(4) };

/// How the host works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// It writes only.
    Writes,
    /// It lets idle steps convert all that they can between two writes.
    Rests,
    /// It does so, and no block is emptied for wear: what is left is the page itself.
    RestsAlone,
}

/// Writes skewed work in two sessions. Returns the longest write and its bound, in operations.
///
/// The first write after a mount settles, and is not counted.
fn longest<P: Policy>(profile: &Profile, policy: P, mode: Mode, seed: u64) -> (u64, u64) {
    let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
    let pages = logical_pages_max(geometry, capabilities, &policy);
    let mut ram = vec![0; ram_needed(geometry, capabilities, &policy, pages)];
    let cost = write_cost(geometry, capabilities, &policy, pages);
    let most = match mode {
        Mode::Writes => cost.total(),
        Mode::Rests => cost.ahead().expect("idle steps convert all"),
        Mode::RestsAlone => cost.page,
    };
    let (mut chip, mut numbers, mut longest) = (Chip::new(*profile), Numbers(seed), 0);
    let mut work = Skewed::new(pages, geometry.pages_per_block);
    // The budget that a step of a conversion needs.
    let step = 8 * geometry.pages_per_block + 24;
    for session in 0..2 {
        let make = if session == 0 { Hybrid::format } else { Hybrid::open };
        let mut ftl = make(&mut chip, policy, pages, &mut ram).unwrap();
        ftl.set_wear_levelling(mode != Mode::RestsAlone);
        let bytes = vec![session; ftl.page_bytes()];
        ftl.write(0, &bytes).unwrap();
        for turn in 0..1_500 {
            let logical = work.next(&mut numbers);
            while mode != Mode::Writes && ftl.idle(step).unwrap().more {}
            let before = ftl.flash().counters();
            ftl.write(logical, &bytes).unwrap();
            let took = since(ftl.flash(), before);
            assert!(
                is_within(took, most),
                "{mode:?}, session {session}, turn {turn}: {took:?}, at most {most:?}"
            );
            longest = longest.max(operations(took));
        }
    }
    (longest, operations(most))
}

/// The same for chips of both kinds; the bound is no more than `times` the longest write.
fn check<P: Policy>(policy: P, modes: &[Mode], times: u64) {
    for profile in [CHIP, LONGER] {
        for &mode in modes {
            let seeds = Share::one_in(2).of([1, 2]).into_iter();
            let lives = seeds.map(|seed| longest(&profile, policy, mode, seed));
            let (longest, most) = lives.max().unwrap();
            println!(
                "{}, {} pages a block, {mode:?}: {longest} operations, at most {most}",
                std::any::type_name::<P>(),
                profile.geometry.pages_per_block
            );
            // Of fewer seeds the longest write may be half as long.
            let times = if is_full() { times } else { 2 * times };
            assert!(most <= times * longest, "{mode:?}: {longest} of {most} operations");
        }
    }
}

const FAST: Fast = Fast { log_blocks: 3, sequential: SequentialRule::FirstPage };
const CONTINUES: Fast = Fast { log_blocks: 2, sequential: SequentialRule::Continues };

#[test]
fn no_write_costs_more_than_is_said() {
    let alone = [Mode::Writes, Mode::RestsAlone];
    check(Block, &alone, 8);
    check(Bast { log_blocks: 3 }, &alone, 8);
    check(FAST, &alone, 8);
    check(CONTINUES, &alone, 8);
}

#[test]
fn no_write_that_converts_a_buffer_block_costs_more_than_is_said() {
    let over = |buffer| Transit { over: FAST, buffer };
    check(over(Buffer::as_printed(3)), &[Mode::Writes], 8);
    check(over(Buffer::improved(3, 200, 8)), &[Mode::Writes], 16);
    check(Transit { over: CONTINUES, buffer: Buffer::as_printed(2) }, &[Mode::Writes], 8);
    check(Transit { over: Bast { log_blocks: 3 }, buffer: AHEAD }, &[Mode::Writes], 16);
    check(Transit { over: Block, buffer: AHEAD }, &[Mode::Writes], 8);
}

/// A conversion takes none of the time of a write if idle steps made it before.
#[test]
fn after_idle_steps_no_write_waits_for_a_conversion() {
    let modes = [Mode::Rests, Mode::RestsAlone];
    check(Transit { over: FAST, buffer: AHEAD }, &modes, u64::MAX / 1_000_000);
    check(Transit { over: Bast { log_blocks: 3 }, buffer: AHEAD }, &modes, u64::MAX / 1_000_000);
    check(Transit { over: Block, buffer: AHEAD }, &modes, u64::MAX / 1_000_000);
    let printed = Transit { over: FAST, buffer: Buffer::as_printed(4) };
    assert_eq!(write_cost(&CHIP.geometry, &CHIP.capabilities, &printed, 64).ahead(), None);
}

/// What page writes met that came in a row after idle steps.
#[derive(Clone, Copy, Default, Debug)]
struct Bursts {
    /// Those that passed the buffer so that nothing was converted for them.
    passed: u64,
    /// Conversions in writes that came too many in a row.
    late: u64,
    /// The most operations of one that was not too late.
    longest: u64,
}

/// Writes skewed work in bursts to a full device, in two sessions. Before each burst it rests.
///
/// No block is emptied for wear if `is_alone`: then what a write may cost is the page itself, and
/// nothing is converted.
fn bursts<P: Policy>(profile: &Profile, policy: P, is_alone: bool, seed: u64) -> Bursts {
    let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
    let pages = logical_pages_max(geometry, capabilities, &policy);
    let mut ram = vec![0; ram_needed(geometry, capabilities, &policy, pages)];
    let cost = write_cost(geometry, capabilities, &policy, pages);
    let ahead = cost.ahead().expect("idle steps convert");
    let most = if is_alone { cost.page } else { ahead };
    let (mut chip, mut numbers, mut all) = (Chip::new(*profile), Numbers(seed), Bursts::default());
    let mut work = Skewed::new(pages, geometry.pages_per_block);
    let step = 8 * geometry.pages_per_block + 24;
    for session in 0..2 {
        let make = if session == 0 { Hybrid::format } else { Hybrid::open };
        let mut ftl = make(&mut chip, policy, pages, &mut ram).unwrap();
        ftl.set_wear_levelling(!is_alone);
        let bytes = vec![session; ftl.page_bytes()];
        (0..pages).for_each(|logical| ftl.write(logical, &bytes).unwrap());
        for turn in 0..100 {
            while ftl.idle(step).unwrap().more {}
            let burst = match numbers.below(4) {
                0 => 3 * Buffer::RESTED_WRITES,
                1 => Buffer::RESTED_WRITES,
                _ => 1 + numbers.below(8),
            };
            for at in 0..burst {
                if numbers.below(30) == 0 {
                    ftl.trim(numbers.below(pages), 1).unwrap();
                }
                let (before, converted) = (ftl.flash().counters(), ftl.conversions().blocks);
                ftl.write(work.next(&mut numbers), &bytes).unwrap();
                let took = since(ftl.flash(), before);
                let converted = ftl.conversions().blocks - converted;
                if at >= Buffer::RESTED_WRITES {
                    all.late += converted;
                    continue;
                }
                let what = format!("session {session}, turn {turn}, write {at} of {burst}");
                assert!(is_within(took, most), "{what}: {took:?}, at most {most:?}");
                assert!(!is_alone || converted == 0, "{what}: {converted} conversions");
                all.longest = all.longest.max(operations(took));
            }
        }
        all.passed += ftl.conversions().passed;
    }
    all
}

/// Also where neighbours share buffer blocks, and where there are too few for all.
#[test]
fn page_writes_in_a_row_after_idle_steps_wait_for_no_conversion() {
    fn check<P: Policy>(over: P) {
        let shared = Buffer { neighbours: 2, ..AHEAD };
        for (profile, buffer) in [CHIP, LONGER].into_iter().flat_map(|profile| {
            let block_pages = profile.geometry.pages_per_block;
            let pages = 30 * block_pages;
            let all = [AHEAD, shared, Buffer { blocks: 1, ..shared }];
            let improved = [3, 6].map(|blocks| Buffer::improved(blocks, pages, block_pages));
            all.into_iter().chain(improved).map(move |buffer| (profile, buffer))
        }) {
            for (is_alone, seed) in Share::one_in(2).of([(true, 1), (false, 2)]) {
                let policy = Transit { over, buffer };
                let met = bursts(&profile, policy, is_alone, seed);
                println!("{}, {buffer:?}: {met:?}", std::any::type_name::<P>());
                assert!(met.passed > 20 && met.late > 20, "{buffer:?}: {met:?}");
            }
        }
    }
    check(FAST);
    check(CONTINUES);
    check(Bast { log_blocks: 3 });
    check(Block);
}
