//! Exact counts of small examples that were computed by hand.

use nandina::flash::{Geometry, Profile};
use nandina_ftl::hybrid::{Merges, SequentialRule};
use nandina_sim::{Chip, TINY};

use crate::BARE;
use crate::host::{Change, Host, Memory, Which};

/// Blocks of 4 pages.
const CHIP: Profile = Profile { geometry: Geometry { blocks: 16, ..TINY.geometry }, ..TINY };

/// Fills logical blocks from the first on, and then writes `pages`.
///
/// Returns programs, erases and merges of all of it.
fn count(which: Which, filled: u32, pages: &[u32]) -> (u64, u64, Merges) {
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
    let mut host = Host::new(memory.logical_pages);
    let all = (0..4 * filled).chain(pages.iter().copied());
    let work = |ftl: &mut dyn crate::host::Device| {
        for (at, logical) in all.enumerate() {
            host.make(ftl, Change::Write(logical, at as u32))?;
        }
        host.verify(ftl, "at the end")?;
        let done = ftl.statistics();
        assert_eq!(done.programmed, done.host_writes + done.moved + done.own);
        Ok((done.programmed, done.erases, ftl.merges()))
    };
    memory.with(&mut chip, true, work).unwrap()
}

const NO_MERGE: Merges =
    Merges { switch: 0, partial: 0, full: 0, partial_buffered: 0, full_buffered: 0 };

#[test]
fn a_switch_merge_costs_an_erase() {
    // 4 pages in place, 4 to the log block, which becomes the data block, and 1 to the next.
    let found = count(Which::Bast(2), 1, &[0, 1, 2, 3, 0]);
    assert_eq!(found, (9, 1, Merges { switch: 1, ..NO_MERGE }));
    let found = count(Which::Fast(2, SequentialRule::FirstPage), 1, &[0, 1, 2, 3, 0]);
    assert_eq!(found, (9, 1, Merges { switch: 1, ..NO_MERGE }));
}

#[test]
fn a_partial_merge_costs_the_pages_that_are_missing_and_an_erase() {
    // 8 pages in place, page 0 to the log block, 3 copies behind it, and 1 to the next.
    let found = count(Which::Bast(1), 2, &[0, 4]);
    assert_eq!(found, (13, 1, Merges { partial: 1, ..NO_MERGE }));
    let found = count(Which::Fast(2, SequentialRule::FirstPage), 2, &[0, 4]);
    assert_eq!(found, (13, 1, Merges { partial: 1, ..NO_MERGE }));
    // The first pages of logical blocks are no sequences there.
    let found = count(Which::Fast(2, SequentialRule::Continues), 2, &[0, 4]);
    assert_eq!(found, (10, 0, NO_MERGE));
    // Page 4 follows page 3, and takes the sequential log block.
    let found = count(Which::Fast(2, SequentialRule::Continues), 2, &[3, 4, 3, 5]);
    assert_eq!(found, (12, 0, NO_MERGE));
}

#[test]
fn a_full_merge_costs_a_copy_of_each_page_and_two_erases() {
    // 8 pages in place, page 2 to the log block, 4 copies, and 1 to the next log block.
    let found = count(Which::Bast(1), 2, &[2, 4]);
    assert_eq!(found, (14, 2, Merges { full: 1, ..NO_MERGE }));
    // 12 in place, 4 to the random log block, 4 copies of each of three blocks, and 1 to the next.
    let found = count(Which::Fast(2, SequentialRule::FirstPage), 3, &[1, 5, 9, 2, 6]);
    assert_eq!(found, (29, 4, Merges { full: 3, ..NO_MERGE }));
    // Without log blocks: 4 in place, and 3 copies beside the page.
    let found = count(Which::Block, 1, &[1]);
    assert_eq!(found, (8, 1, Merges { full: 1, ..NO_MERGE }));
}

#[test]
fn a_page_in_place_costs_a_program_and_one_more_if_its_block_does_not_begin_with_it() {
    // Page 2 begins its block: a page that holds nothing takes the first place. Page 3 follows.
    let found = count(Which::Block, 0, &[2, 3]);
    assert_eq!(found, (3, 0, NO_MERGE));
    // Page 1 is below it: two copies beside it, and a page that holds nothing.
    let found = count(Which::Block, 0, &[2, 3, 1]);
    assert_eq!(found, (7, 1, Merges { full: 1, ..NO_MERGE }));
    let found = count(Which::Bast(1), 0, &[2, 3, 1]);
    assert_eq!(found, (4, 0, NO_MERGE));
}

#[test]
fn writes_in_order_cost_one_program_a_page() {
    for which in BARE {
        let pages = Memory::new(&CHIP, which).logical_pages;
        let rounds: Vec<u32> = (0..5).flat_map(|_| 0..pages).collect();
        let (programs, erases, merges) = count(which, pages / 4, &rounds);
        println!("{which:?}: {programs} programs, {erases} erases, {merges:?}");
        if matches!(which, Which::Block) {
            // Every page copies its block. Wear levelling adds some.
            let least = u64::from(5 * pages);
            assert!((least..least * 6 / 5).contains(&merges.full), "{merges:?}");
        } else {
            assert_eq!(programs, u64::from(6 * pages), "{which:?}");
            assert_eq!((merges.partial, merges.full), (0, 0), "{which:?}");
            assert!(merges.switch >= u64::from(4 * pages / 4), "{which:?}: {merges:?}");
        }
    }
}
