//! No write costs more than is said before: skewed work, with and without a transit buffer.

use nandina::blocks::GcPolicy;
use nandina::flash::{Geometry, Profile};
use nandina_ftl::ftl::{Choices, Ftl, logical_pages_beside, ram_needed_for, space_of, write_cost};
use nandina_ftl::mapping::Page;
use nandina_ftl::transit::Buffer;
use nandina_sim::{Chip, TINY};

use crate::numbers::Numbers;
use crate::skewed::{Skewed, is_within, operations, since};
use crate::{Share, is_full};

/// Blocks of 4 and of 32 pages. No block is bad.
const CHIPS: [Profile; 2] = [with_blocks(40, 4), with_blocks(60, 32)];

const fn with_blocks(blocks: u32, pages_per_block: u32) -> Profile {
    Profile { geometry: Geometry { blocks, pages_per_block, ..TINY.geometry }, ..TINY }
}

/// A buffer whose idle steps convert ahead of need.
const AHEAD: Buffer = Buffer { ahead: 1, ..Buffer::as_printed(4) };

/// Writes and trims skewed work in two sessions, on a chip of which `percent` is used.
///
/// Returns the longest write and its bound, in operations. The first write after a mount settles,
/// and is not counted. If the host `rests`, idle steps convert all that they can between writes.
fn longest(
    profile: &Profile,
    (buffer, victims): (Buffer, GcPolicy),
    (percent, rests): (u32, bool),
    seed: u64,
) -> (u64, u64) {
    let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
    let choices = Choices { victims, buffer };
    let pages = logical_pages_beside(geometry, capabilities, &buffer) * percent / 100;
    let space = space_of(geometry, capabilities, pages);
    let mut ram = vec![0; ram_needed_for(geometry, capabilities, &choices)];
    let mut map = vec![0; 4 * pages as usize];
    let cost = write_cost(geometry, capabilities, &choices, pages);
    let most = if rests { cost.ahead().expect("idle steps convert all") } else { cost.total() };
    let (mut chip, mut numbers, mut longest) = (Chip::new(*profile), Numbers(seed), 0);
    let mut work = Skewed::new(pages, geometry.pages_per_block);
    // The budget that a step of a conversion needs.
    let step = 8 * geometry.pages_per_block + 24;
    let mut conversions = 0;
    for session in 0..2 {
        let map = Page::new(space, &mut map).unwrap();
        let make = if session == 0 { Ftl::format_with } else { Ftl::open_with };
        let mut ftl = make(&mut chip, map, pages, choices, &mut ram).unwrap();
        let bytes = vec![session; ftl.page_bytes()];
        ftl.write(0, &bytes).unwrap();
        for turn in 0..60 * geometry.pages_per_block + 1000 {
            let logical = work.next(&mut numbers);
            while rests && ftl.idle(step).unwrap().more {}
            if numbers.below(30) == 0 {
                ftl.trim_volatile(numbers.below(pages), 1).unwrap();
            }
            let before = ftl.flash().counters();
            ftl.write(logical, &bytes).unwrap();
            let took = since(ftl.flash(), before);
            let what = format!("{buffer:?}, {victims:?}, {percent} %, rests: {rests}");
            assert!(
                is_within(took, most),
                "{what}, session {session}, turn {turn}: {took:?}, at most {most:?}"
            );
            longest = longest.max(operations(took));
        }
        conversions += ftl.conversions().blocks;
    }
    assert!(conversions > 0 || buffer.blocks == 0);
    (longest, operations(most))
}

/// The same for both chips, full and half full; the bound is no more than `times` the longest.
fn check(choices: (Buffer, GcPolicy), rests: bool, times: u64) {
    for profile in CHIPS {
        for percent in [50, 100] {
            let seeds = Share::one_in(2).of([1, 2]).into_iter();
            let lives = seeds.map(|seed| longest(&profile, choices, (percent, rests), seed));
            let (longest, most) = lives.max().unwrap();
            println!(
                "{choices:?}, {} pages a block, {percent} %, rests: {rests}: {longest} operations, at most {most}",
                profile.geometry.pages_per_block
            );
            // Of fewer seeds the longest write may be half as long.
            let times = if is_full() { times } else { 2 * times };
            assert!(most <= times * longest, "{longest} of {most} operations");
        }
    }
}

#[test]
fn no_write_costs_more_than_is_said() {
    check((Buffer::NONE, GcPolicy::Fewest), false, 8);
    check((Buffer::NONE, GcPolicy::CostBenefit), false, 16);
}

#[test]
fn no_write_that_converts_a_buffer_block_costs_more_than_is_said() {
    check((Buffer::as_printed(3), GcPolicy::Fewest), false, 32);
    check((Buffer::improved(3, 200, 8), GcPolicy::Fewest), false, 32);
    check((AHEAD, GcPolicy::CostBenefit), false, 32);
}

/// Writes skewed work in bursts. Before each burst it rests, then no write of it converts anything.
///
/// Returns how many pages passed the buffer for that, and the conversions in writes that came too
/// many in a row.
fn bursts(profile: &Profile, choices: Choices, percent: u32, seed: u64) -> (u64, u64) {
    let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
    let pages = logical_pages_beside(geometry, capabilities, &choices.buffer) * percent / 100;
    let space = space_of(geometry, capabilities, pages);
    let mut ram = vec![0; ram_needed_for(geometry, capabilities, &choices)];
    let mut map = vec![0; 4 * pages as usize];
    let most = write_cost(geometry, capabilities, &choices, pages).ahead().unwrap();
    let (mut chip, mut numbers) = (Chip::new(*profile), Numbers(seed));
    let mut work = Skewed::new(pages, geometry.pages_per_block);
    let step = 8 * geometry.pages_per_block + 24;
    let (mut passed, mut late) = (0, 0);
    for session in 0..2 {
        let map = Page::new(space, &mut map).unwrap();
        let make = if session == 0 { Ftl::format_with } else { Ftl::open_with };
        let mut ftl = make(&mut chip, map, pages, choices, &mut ram).unwrap();
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
                    ftl.trim_volatile(numbers.below(pages), 1).unwrap();
                }
                let (before, converted) = (ftl.flash().counters(), ftl.conversions().blocks);
                ftl.write(work.next(&mut numbers), &bytes).unwrap();
                let took = since(ftl.flash(), before);
                let converted = ftl.conversions().blocks - converted;
                if at >= Buffer::RESTED_WRITES {
                    late += converted;
                    continue;
                }
                let what = format!("{choices:?}, {percent} %, turn {turn}, write {at} of {burst}");
                assert!(is_within(took, most), "{what}: {took:?}, at most {most:?}");
                assert_eq!(converted, 0, "{what}");
            }
        }
        passed += ftl.conversions().passed;
    }
    (passed, late)
}

/// Also where neighbours share buffer blocks, and where there are too few for all.
#[test]
fn page_writes_in_a_row_after_idle_steps_wait_for_no_conversion() {
    let shared = Buffer { neighbours: 2, ..AHEAD };
    for (profile, percent) in CHIPS.iter().flat_map(|it| [(it, 50), (it, 100)]) {
        let block_pages = profile.geometry.pages_per_block;
        let improved =
            Buffer { passes_from: 5, ..Buffer::improved(4, 40 * block_pages, block_pages) };
        for buffer in [AHEAD, shared, Buffer { blocks: 1, ..shared }, improved] {
            let choices = Choices { victims: GcPolicy::Fewest, buffer };
            for seed in Share::one_in(2).of([1, 2]) {
                let (passed, late) = bursts(profile, choices, percent, seed);
                println!("{buffer:?}, {percent} %: {passed} passed, {late} conversions later");
                assert!(passed > 20 && late > 20, "{buffer:?}: {passed} passed, {late} later");
            }
        }
    }
}

/// A conversion takes none of the time of a write if idle steps made it before.
#[test]
fn after_idle_steps_no_write_waits_for_a_conversion() {
    check((AHEAD, GcPolicy::Fewest), true, u64::MAX / 1_000_000);
    let profile = &CHIPS[0];
    let ahead = |buffer: Buffer| {
        let choices = Choices { victims: GcPolicy::Fewest, buffer };
        write_cost(&profile.geometry, &profile.capabilities, &choices, 40).ahead()
    };
    assert!(ahead(AHEAD).is_some());
    assert_eq!(ahead(Buffer::as_printed(4)), None);
}
