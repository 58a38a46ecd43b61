//! What a mount costs behind a transit buffer, and what one that converts all of it costs.
//!
//! `transit.rs` checks that it changes nothing.

use nandina::flash::{Flash, Geometry, Profile};
use nandina_ftl::hybrid::{Buffer, SequentialRule};
use nandina_sim::Chip;

use crate::host::{Device, Host, Memory, Which};
use crate::numbers::Numbers;
use crate::transit::is_buffered;
use crate::whole_pages::whole_pages;
use crate::{BUFFERED, CHIP, seeds};

/// What a mount after so many changes reads beyond the FTL itself and a read for each page of the
/// buffer; and these pages.
///
/// What the FTL itself reads is what a mount reads once the buffer blocks are erased.
fn more_reads(profile: &Profile, which: Which, seed: u64, changes: u32) -> (i64, usize) {
    let (mut chip, mut memory) = (Chip::new(*profile), Memory::new(profile, which));
    let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(seed));
    let mut work =
        |ftl: &mut dyn Device| (0..changes).try_for_each(|_| host.change(ftl, &mut numbers));
    memory.with(&mut chip, true, &mut work).unwrap();
    let buffered: Vec<_> = whole_pages(&mut chip)
        .iter()
        .filter(|(_, header, _)| is_buffered(header))
        .map(|(page, ..)| *page)
        .collect();
    let mut reads_of = |mut chip: Chip| {
        let before = chip.counters().reads;
        memory.with(&mut chip, false, |_| Ok(())).unwrap();
        (chip.counters().reads - before) as i64
    };
    let with = reads_of(chip.clone());
    for page in &buffered {
        chip.erase(profile.geometry.block_of(*page)).unwrap();
    }
    let (without, pages) = (reads_of(chip), buffered.len());
    println!("{which:?}, seed {seed}: {with} reads, {without} without its {pages} pages");
    (with - without - pages as i64, pages)
}

#[test]
fn a_mount_reads_each_programmed_page_of_the_buffer_once() {
    let small = Geometry { blocks: 64, pages_per_block: 4, ..CHIP.geometry };
    let longer = Geometry { blocks: 40, pages_per_block: 32, ..CHIP.geometry };
    for geometry in [small, CHIP.geometry, longer] {
        let profile = Profile { geometry, ..CHIP };
        let cases = seeds(160, 8).into_iter().flat_map(|seed| BUFFERED.map(|which| (seed, which)));
        let more: Vec<i64> = cases
            .map(|(seed, which)| {
                more_reads(&profile, which, seed, 4 * geometry.pages() + 37 * seed as u32).0
            })
            .collect();
        println!("more than a read for each page: {more:?}");
        assert!(more.iter().all(|&more| more <= 0), "{more:?}");
    }
}

/// A page of 2 KiB has room for the numbers of the paper's 128 buffer blocks, and for those of 192.
#[test]
fn a_mount_reads_each_page_of_as_many_buffer_blocks_as_the_paper_has_once() {
    let geometry = Geometry { blocks: 500, pages_per_block: 4, page_bytes: 2048, ..CHIP.geometry };
    let profile = Profile { geometry, ..CHIP };
    for blocks in [128, 192] {
        let which = Which::OverFast(4, SequentialRule::FirstPage, Buffer::as_printed(blocks));
        let (more, pages) = more_reads(&profile, which, 5, 3_000);
        assert!(pages > blocks as usize && more <= 0, "{more} more, {pages} pages");
    }
}

/// The page buffer has room for 51 numbers.
#[test]
fn a_mount_reads_each_of_more_buffer_blocks_than_it_keeps_numbers_of_once() {
    let geometry = Geometry { blocks: 200, pages_per_block: 4, ..CHIP.geometry };
    let profile = Profile { geometry, ..CHIP };
    let which = Which::OverFast(2, SequentialRule::FirstPage, Buffer::as_printed(70));
    let (mut chip, mut memory) = (Chip::new(profile), Memory::new(&profile, which));
    let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(9));
    let work = |ftl: &mut dyn Device| {
        (0..2000).try_for_each(|_| host.change(ftl, &mut numbers))?;
        Ok(ftl.buffered())
    };
    let buffered = memory.with(&mut chip, true, work).unwrap();
    assert!(buffered.len() > 60, "{} buffer blocks", buffered.len());
    let before = chip.counters().reads;
    let found = memory.with(&mut chip, false, |ftl| Ok(ftl.buffered())).unwrap();
    let reads = chip.counters().reads - before;
    // Those without a page that counts are none any more.
    assert!(!found.is_empty() && found.len() <= buffered.len(), "{} found", found.len());
    // A page is read once, and some are read to compare those beyond the room.
    let pages = u64::from(geometry.pages());
    println!("{reads} reads of {pages} pages");
    assert!(reads < 2 * pages, "{reads} reads");
    memory.with(&mut chip, false, |ftl| host.verify(ftl, "many")).unwrap();
}

#[test]
fn converting_all_at_a_mount_as_printed_costs_programs_that_a_reading_mount_saves() {
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, BUFFERED[2]));
    let mut costs = [0; 2];
    for (is_printed, cost) in [false, true].into_iter().zip(&mut costs) {
        let mut numbers = Numbers(5);
        memory.with(&mut chip, true, |_| Ok(())).unwrap();
        let mut host = Host::new(memory.logical_pages);
        let before = chip.counters();
        for _ in 0..60 {
            let work = |ftl: &mut dyn Device| {
                if is_printed {
                    ftl.convert_all()?;
                    assert_eq!(ftl.buffered(), []);
                }
                (0..4).try_for_each(|_| host.change(ftl, &mut numbers))?;
                host.verify(ftl, "in a session")
            };
            memory.with(&mut chip, false, work).unwrap();
        }
        let after = chip.counters();
        *cost = after.programs - before.programs;
    }
    println!("{} programs after reading mounts, {} as printed", costs[0], costs[1]);
    assert!(costs[0] < costs[1], "{costs:?}");
}
