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
use crate::{CHIP, Share};

/// Blocks of more pages, so that a conversion sets off more merges.
const LONGER: Profile =
    Profile { geometry: Geometry { blocks: 40, pages_per_block: 32, ..CHIP.geometry }, ..CHIP };

/// A buffer whose idle steps can convert all ahead of need.
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
    let shared = Transit { over: FAST, buffer: Buffer { neighbours: 2, ..AHEAD } };
    assert_eq!(write_cost(&CHIP.geometry, &CHIP.capabilities, &shared, 64).ahead(), None);
    let printed = Transit { over: FAST, buffer: Buffer::as_printed(4) };
    assert_eq!(write_cost(&CHIP.geometry, &CHIP.capabilities, &printed, 64).ahead(), None);
}
