//! No write costs more than is said before: skewed work of small and of large changes.

use nandina::flash::{Geometry, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::logged::{Logged, Scheme, logical_pages_max, ram_needed, write_cost};
use nandina_sim::Chip;

use crate::numbers::Numbers;
use crate::skewed::{Skewed, is_within, operations, since};
use crate::{CHIPS, SCHEMES, is_full, seeds};

/// Writes skewed work in two sessions. Returns the longest write and its bound, in operations.
///
/// The first write after a mount settles, and is not counted.
fn longest(profile: &Profile, scheme: Scheme, seed: u64) -> (u64, u64) {
    let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
    let pages = logical_pages_max(geometry, capabilities, scheme);
    let mut ram = vec![0; ram_needed(geometry, pages)];
    let most = write_cost(geometry, capabilities).total();
    let (mut chip, mut numbers, mut longest) = (Chip::new(*profile), Numbers(seed), 0);
    let mut work = Skewed::new(pages, geometry.pages_per_block);
    for session in 0..2 {
        let make = if session == 0 { Logged::format } else { Logged::open };
        let mut ftl = make(&mut chip, scheme, pages, &mut ram).unwrap();
        let mut bytes = vec![session; ftl.page_bytes()];
        ftl.write(0, &bytes).unwrap();
        for turn in 0..3_000u32 {
            let logical = work.next(&mut numbers);
            // A record has room for the first change, not for the second.
            let changed = if numbers.below(4) > 0 { 8 } else { bytes.len() };
            bytes[..changed].fill(turn as u8);
            let before = ftl.flash().counters();
            ftl.write(logical, &bytes).unwrap();
            let took = since(ftl.flash(), before);
            assert!(
                is_within(took, most),
                "{scheme:?}, session {session}, turn {turn}: {took:?}, at most {most:?}"
            );
            longest = longest.max(operations(took));
        }
    }
    (longest, operations(most))
}

#[test]
fn no_write_costs_more_than_is_said() {
    let longer = Geometry { blocks: 24, pages_per_block: 32, ..CHIPS[0].geometry };
    let longer = Profile { geometry: longer, ..CHIPS[0] };
    for (profile, scheme) in
        CHIPS.into_iter().chain([longer]).flat_map(|chip| SCHEMES.map(|scheme| (chip, scheme)))
    {
        let lives = seeds(4, 2).into_iter().map(|seed| longest(&profile, scheme, seed));
        let (longest, most) = lives.max().unwrap();
        let pages = profile.geometry.pages_per_block;
        println!("{scheme:?}, {pages} pages a block: {longest} operations, at most {most}");
        // Of fewer seeds the longest write may be half as long.
        let times = if is_full() { 2 } else { 4 };
        assert!(most <= times * longest, "{scheme:?}: {longest} of {most} operations");
    }
}
