//! Checkpoints of the mapping: what a mount reads with one, and when there is none.

use nandina::flash::profile::Profile;
use nandina::flash::{Flash, Geometry, PageNumber};
use nandina_ftl::ftl::FtlError;
use nandina_sim::Chip;

use crate::CHIP;
use crate::faults::is_caught;
use crate::host::{Change, Host, Memory, expect_sound};
use crate::numbers::Numbers;

const LARGE: Profile =
    Profile { geometry: Geometry { blocks: 96, pages_per_block: 32, ..CHIP.geometry }, ..CHIP };

/// A device that is two thirds full, and was written for a while.
fn used(profile: Profile, memory: &mut Memory) -> (Chip, Host) {
    let (mut chip, mut host) = (Chip::new(profile), Host::new(memory.logical_pages));
    let mut numbers = Numbers(5);
    let work = |ftl: &mut crate::host::Device<'_>| {
        for at in 0..4 * host.pages.len() as u32 {
            let logical = numbers.below(host.pages.len() as u32 * 2 / 3);
            host.make(ftl, Change::Write(logical, at))?;
        }
        Ok(())
    };
    memory.with(&mut chip, true, work).unwrap();
    (chip, host)
}

/// Mounts, expects the known contents, and returns the reads of the mount.
fn mount(memory: &mut Memory, chip: &mut Chip, host: &mut Host, what: &str) -> u64 {
    let before = chip.counters().reads;
    let mut reads = 0;
    let work = |ftl: &mut crate::host::Device<'_>| {
        reads = ftl.flash().counters().reads - before;
        host.verify(ftl, what)?;
        expect_sound(ftl, what)
    };
    memory.with(chip, false, work).unwrap();
    reads
}

#[test]
fn a_mount_reads_the_checkpoint_and_the_blocks_opened_since() {
    let mut memory = Memory::apart(&LARGE, "compact");
    let (mut chip, mut host) = used(LARGE, &mut memory);
    let without = mount(&mut memory, &mut chip, &mut host, "without");
    let mut numbers = Numbers(9);
    for changes in [0, 40, 160, 640] {
        let (mut parts, mut opened) = (0, 0);
        let work = |ftl: &mut crate::host::Device<'_>| {
            let before = ftl.flash().counters();
            assert!(ftl.checkpoint()?, "it was written");
            let after = ftl.flash().counters();
            parts = after.programs - before.programs;
            for at in 0..changes {
                let logical = numbers.below(host.pages.len() as u32 * 2 / 3);
                host.make(ftl, Change::Write(logical, 1 << 18 | at))?;
                if at % 8 == 7 {
                    host.make(ftl, Change::Trim(logical / 2, 3))?;
                }
            }
            opened = ftl.flash().counters().erases - after.erases;
            Ok(())
        };
        memory.with(&mut chip, false, work).unwrap();
        let reads = mount(&mut memory, &mut chip, &mut host, "with a checkpoint");
        let geometry = LARGE.geometry;
        // Both anchors and the directory, the first pages of listed blocks, those opened since with
        // the blank pages behind the last, the looks at the newest page, the parts, the list of
        // trims, the session page, and the pages in the extents of that list.
        let most = 3
            + 2 * opened.max(16)
            + opened * u64::from(geometry.pages_per_block)
            + 24
            + parts
            + 6
            + 2 * u64::from(changes);
        println!(
            "{changes} changes after {parts} pages: {reads} reads, at most {most}; {without} without"
        );
        assert!(reads <= most && reads < without, "{reads} of {most}, {without} without");
    }
}

#[test]
fn a_mount_reads_every_page_where_a_part_of_the_checkpoint_is_damaged() {
    let mut memory = Memory::apart(&LARGE, "compact");
    let (mut chip, mut host) = used(LARGE, &mut memory);
    let mut first = chip.clone();
    let work = |ftl: &mut crate::host::Device<'_>| {
        assert!(ftl.checkpoint()?, "it was written");
        Ok(())
    };
    memory.with(&mut chip, false, work).unwrap();
    let reads = mount(&mut memory, &mut chip, &mut host, "whole");
    let mut damaged = 0;
    for page in (0..LARGE.geometry.pages()).map(PageNumber) {
        let (mut chip, mut before) = (chip.clone(), [0; 512]);
        let mut after = before;
        first.read(page, &mut before, &mut [0; 64]).unwrap();
        chip.read(page, &mut after, &mut [0; 64]).unwrap();
        if before == after || chip.page_is_erased(page) {
            continue;
        }
        chip.corrupt_page(page, |main, _| main[40] ^= 0x10);
        let mut host = host.clone();
        let before = chip.counters().reads;
        let work = |ftl: &mut crate::host::Device<'_>| {
            let reads = ftl.flash().counters().reads - before;
            host.verify(ftl, "damaged")?;
            Ok(reads)
        };
        match memory.with(&mut chip, false, work) {
            Ok(all) => damaged += u32::from(all > 2 * reads),
            Err(FtlError::Corrupt { .. }) => {}
            Err(error) => panic!("{page}: {error}"),
        }
    }
    assert!(damaged > 2, "{damaged} pages of the checkpoint");
}

#[test]
fn a_checkpoint_gives_way_to_logical_pages() {
    let mut memory = Memory::new(&CHIP, "compact");
    let (mut chip, mut host) = (Chip::new(CHIP), Host::new(memory.logical_pages));
    let pages = host.pages.len() as u32;
    let work = |ftl: &mut crate::host::Device<'_>| {
        let mut written = 0;
        for logical in 0..pages {
            host.make(ftl, Change::Write(logical, logical))?;
            written += u32::from(ftl.checkpoint()?);
            expect_sound(ftl, "filling")?;
        }
        assert!((1..pages).contains(&written), "{written} checkpoints");
        let mut numbers = Numbers(2);
        for at in 0..2000 {
            host.make(ftl, Change::Write(numbers.below(pages), 1 << 18 | at))?;
        }
        assert!(!ftl.checkpoint()?, "there is no room for one");
        host.verify(ftl, "full")?;
        expect_sound(ftl, "full")
    };
    memory.with(&mut chip, true, work).unwrap();
    mount(&mut memory, &mut chip, &mut host, "at the end");
}

#[test]
fn pages_trimmed_after_a_checkpoint_stay_holes_when_their_blocks_are_used_again() {
    let mut memory = Memory::apart(&LARGE, "compact");
    let (mut chip, mut host) = used(LARGE, &mut memory);
    let pages = host.pages.len() as u32;
    let work = |ftl: &mut crate::host::Device<'_>| {
        assert!(ftl.checkpoint()?, "it was written");
        for logical in (0..pages / 2).step_by(8) {
            host.make(ftl, Change::Trim(logical, 5))?;
        }
        // The places of the trimmed pages are written anew.
        let erases = ftl.statistics().erases;
        let mut at = 0;
        while ftl.statistics().erases < erases + u64::from(LARGE.geometry.blocks) / 2 {
            host.make(ftl, Change::Write(pages / 2 + at % 100, 1 << 18 | at))?;
            at += 1;
        }
        Ok(())
    };
    memory.with(&mut chip, false, work).unwrap();
    mount(&mut memory, &mut chip, &mut host, "after the trims");
}

/// The anchor that shows a directory: the other one is blank.
fn shown(chip: &Chip) -> Option<PageNumber> {
    let firsts = [0, LARGE.geometry.pages_per_block].map(PageNumber);
    let mut written = firsts.into_iter().filter(|&page| !chip.page_is_erased(page));
    written.next().filter(|_| written.next().is_none())
}

#[test]
fn directories_that_list_more_blocks_are_few_and_the_checkpoint_lasts() {
    let mut memory = Memory::apart(&LARGE, "compact");
    let (mut chip, mut host) = used(LARGE, &mut memory);
    let mut numbers = Numbers(4);
    let (mut moved, mut at) = (0, None);
    let work = |ftl: &mut crate::host::Device<'_>| {
        assert!(ftl.checkpoint()?, "it was written");
        for change in 0..6000 {
            let logical = numbers.below(host.pages.len() as u32 * 2 / 3);
            host.make(ftl, Change::Write(logical, 1 << 18 | change))?;
            assert!(ftl.has_checkpoint(), "change {change}");
            let shows = shown(ftl.flash());
            assert!(shows.is_some(), "change {change}: one anchor shows a directory");
            moved += u32::from(at.replace(shows).is_some_and(|before| before != shows));
        }
        expect_sound(ftl, "at the end")
    };
    memory.with(&mut chip, false, work).unwrap();
    println!("{moved} more directories");
    // 16 blocks are listed first, and twice as many each time.
    assert!((2..=3).contains(&moved), "{moved} more directories for 96 blocks");
    mount(&mut memory, &mut chip, &mut host, "at the end");
}

/// The tests see what a directory would do that misses a block which was opened after it.
#[test]
fn canary_a_directory_that_misses_a_block_is_caught() {
    let mut memory = Memory::apart(&LARGE, "compact");
    let (mut chip, mut host) = used(LARGE, &mut memory);
    let mut numbers = Numbers(7);
    let mut first = None;
    let work = |ftl: &mut crate::host::Device<'_>| {
        assert!(ftl.checkpoint()?, "it was written");
        first = shown(ftl.flash()).map(|page| (page, Chip::clone(ftl.flash())));
        for change in 0..700 {
            let logical = numbers.below(host.pages.len() as u32 * 2 / 3);
            host.make(ftl, Change::Write(logical, 1 << 18 | change))?;
        }
        Ok(())
    };
    memory.with(&mut chip, false, work).unwrap();
    mount(&mut memory, &mut chip, &mut host, "nothing is wrong yet");
    // As if the first directory were never erased, and the others not written.
    let (page, mut before) = first.unwrap();
    let (mut main, mut spare) = ([0; 512], [0; 64]);
    before.read(page, &mut main, &mut spare).unwrap();
    for page in [0, LARGE.geometry.pages_per_block].map(PageNumber) {
        chip.corrupt_page(page, |main, spare| {
            main.fill(0xFF);
            spare.fill(0xFF);
        });
    }
    chip.corrupt_page(page, |to, beside| {
        to.copy_from_slice(&main);
        beside.copy_from_slice(&spare[..beside.len()]);
    });
    assert!(is_caught(&mut memory, &mut chip, &host));
}
