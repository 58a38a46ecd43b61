//! What changes cost, counted by hand.

use nandina::flash::profile::SLC;
use nandina::flash::{Capabilities, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::logged::Scheme;
use nandina_sim::Chip;

use crate::host::Memory;

/// Blocks of 64 pages, programmed in any order.
const ANY_ORDER: Profile = Profile {
    capabilities: Capabilities { in_order: false, ..SLC.capabilities },
    ..SLC.with_blocks(12)
};

/// Programs, overwrites among them, and erases of small changes of `pages` full pages in turn.
fn small_changes(scheme: Scheme, pages: u32, changes: u32) -> (u64, u64, u64) {
    let mut chip = Chip::new(ANY_ORDER);
    let mut memory = Memory::new(&ANY_ORDER, scheme);
    let (before, after) = memory
        .with(&mut chip, true, |ftl| {
            let mut page = vec![0; ftl.page_bytes()];
            for logical in 0..pages {
                ftl.write(logical, &page)?;
            }
            let before = ftl.flash().counters();
            for at in 0..changes {
                page[0] = at as u8;
                ftl.write(at % pages, &page)?;
            }
            Ok((before, ftl.flash().counters()))
        })
        .unwrap();
    let done = after - before;
    (done.programs, done.overwrites, done.erases)
}

#[test]
fn ipl_merges_a_block_when_its_sixteen_sectors_are_full() {
    // The first erase of each block of the session is of the new block, the next of the old one.
    for changes in [1u32, 4, 16] {
        let overwrites = u64::from(changes - changes.div_ceil(4));
        assert_eq!(small_changes(Scheme::Ipl, 60, changes), (changes.into(), overwrites, 0));
    }
    let (programs, _, erases) = small_changes(Scheme::Ipl, 60, 17);
    assert_eq!((programs, erases), (16 + 60, 1));
    let (programs, _, erases) = small_changes(Scheme::Ipl, 60, 17 * 6);
    assert_eq!((programs, erases), ((16 + 60) * 6, 6));
}

#[test]
fn dipl_takes_all_pages_that_are_left_for_its_log() {
    let room = 4 * (64 - 40);
    assert_eq!(small_changes(Scheme::Dipl, 40, room).2, 0);
    let (programs, _, erases) = small_changes(Scheme::Dipl, 40, room + 1);
    assert_eq!((programs, erases), (u64::from(room) + 40, 1));
}
