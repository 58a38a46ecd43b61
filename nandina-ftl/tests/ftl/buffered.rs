//! The page map below a transit buffer: cuts, faults, faded pages, what it costs; and canaries.

use nandina::flash::{BlockNumber, Flash as _, Geometry, PageNumber, Profile};
use nandina::log::layout_of;
use nandina::node::PageHeader;
use nandina_ftl::ftl::{
    Choices, Ftl, FtlError, logical_pages_beside, logical_pages_max, ram_needed, ram_needed_for,
    space_of,
};
use nandina_ftl::mapping::Page;
use nandina_ftl::transit::{Buffer, Conversions};
use nandina_sim::{Chip, Faults, TINY};

use crate::cuts::{cut_from, cut_with};
use crate::cutting::{
    Subject, Within, cut_format, cut_in_a_row, cut_what_settles, cut_while_blocks_fail, fill,
    start, tear_last, unstable,
};
use crate::even_wear::{expect_even_wear, fills};
use crate::host::{Change, Device, Host, Memory, Outcome, expect_sound};
use crate::numbers::Numbers;
use crate::whole_pages::whole_pages;

use crate::{CHIP, FAILING, Share, is_full, seeds};

/// The buffer with all improvements, whatever the sizes.
const IMPROVED: Buffer = Buffer {
    blocks: 2,
    neighbours: 3,
    completes_from: 3,
    passes_from: 4,
    reads_newest_only: true,
    drops_superseded: true,
    ahead: 1,
};

/// The buffers that are tested.
const BUFFERS: [Buffer; 4] = [
    Buffer::as_printed(1),
    Buffer::as_printed(3),
    IMPROVED,
    Buffer { neighbours: 2, ..Buffer::as_printed(2) },
];

/// The same chip with more blocks, for the buffer's.
fn with_more(profile: Profile, blocks: u32) -> Profile {
    let geometry = Geometry { blocks: profile.geometry.blocks + blocks, ..profile.geometry };
    Profile { geometry, ..profile }
}

const MORE: u32 = 8;

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_and_a_second_in_the_recovery() {
    let profile = with_more(CHIP, MORE);
    let (mut cuts, mut conversions) = (0, 0);
    for (at, buffer) in BUFFERS.into_iter().enumerate() {
        for (pages, apart) in [(0, false), (1, true), (2, false), (1, false)] {
            let name = ["page", "compact", "emt", "vet"][(at + pages as usize) % 4];
            let mut memory = Memory::behind(buffer, apart, &profile, name);
            memory.checkpoints = if name == "vet" { 12 } else { 0 };
            memory.requests = if apart { 3 } else { 0 };
            cuts += cut_with(&mut memory, profile, pages, Share::one_in(17));
            conversions += memory.conversions;
        }
    }
    println!("{cuts} first cuts, {conversions} conversions");
    assert!(cuts > 100 && conversions > 1000, "{cuts} cuts, {conversions} conversions");
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_where_a_block_fails() {
    let profile = with_more(FAILING, MORE);
    let (mut cuts, mut failures) = (0, 0);
    for (buffer, seed) in BUFFERS.into_iter().zip(21..) {
        let mut memory = Memory::behind(buffer, seed % 2 == 0, &profile, "page");
        let mut begun = start(profile, &mut memory, seed, unstable(1));
        let failing = Faults { program_failures: 60, erase_failures: 60, ..Faults::NONE };
        begun.chip.set_faults(Faults { unstable_pages: 1, ..failing });
        let (mut whole, mut host) = (begun.chip.clone(), begun.host.clone());
        let Numbers(seed) = begun.numbers;
        memory.session(&mut whole, &mut host, &mut Numbers(seed), 40).unwrap();
        failures += whole.fault_counters().program_failures + whole.fault_counters().erase_failures;
        cuts += cut_from(&mut memory, &begun, 1, Share::one_in(17));
    }
    println!("{cuts} first cuts, {failures} blocks failed");
    assert!(cuts > 40 && failures >= 2, "{cuts} cuts, {failures} failures");
}

#[test]
fn what_one_mount_decides_about_a_torn_page_every_later_mount_decides() {
    let profile = with_more(CHIP, MORE);
    let mut second_cuts = 0;
    for seed in seeds(3000, 60) {
        let buffer = BUFFERS[seed as usize % 4];
        let mut memory = Memory::behind(buffer, seed % 8 > 3, &profile, "page");
        let mut begun = start(profile, &mut memory, 100 + seed, unstable(1));
        let what = format!("seed {seed}");
        tear_last(&mut memory, &mut begun, seed, &what);
        second_cuts += cut_what_settles(&mut memory, begun, &what);
    }
    assert!(second_cuts >= 240, "only {second_cuts} second cuts");
}

#[test]
fn cuts_in_a_row_never_use_up_the_reserve() {
    let profile = with_more(CHIP, MORE);
    for (at, buffer) in BUFFERS.into_iter().enumerate() {
        for apart in [false, true] {
            let mut memory = Memory::behind(buffer, apart, &profile, "page");
            let mut begun = start(profile, &mut memory, 5, unstable(at as u32 % 3));
            fill(&mut memory, &mut begun);
            let within: Within = |round, _| if round % 3 == 0 { 450 } else { 110 };
            let rounds = if is_full() { 2000 } else { 120 };
            cut_in_a_row(&mut memory, begun, within, rounds, &format!("{buffer:?}, {apart}"));
        }
    }
}

#[test]
fn cuts_in_a_row_while_blocks_fail_lose_nothing() {
    let profile = with_more(FAILING, MORE);
    for (at, buffer) in BUFFERS.into_iter().enumerate() {
        let mut memory = Memory::behind(buffer, at % 2 == 1, &profile, "page");
        cut_while_blocks_fail(&mut memory, profile, seeds(300, 6), &format!("{buffer:?}"));
    }
}

#[test]
fn a_format_that_is_cut_leaves_the_former_pages_or_no_ftl() {
    let profile = with_more(CHIP, MORE);
    let mut memory = Memory::behind(BUFFERS[1], false, &profile, "page");
    let begun = start(profile, &mut memory, 6, unstable(1));
    let (former, none) = cut_format(&mut memory, &begun, "buffered");
    assert!(former > 0 && none > 20, "{former} former, {none} without an FTL");
}

/// Whether a page is in a buffer block, as its header says.
fn is_buffered(header: &PageHeader) -> bool {
    matches!(header.lowest, 4 | 5)
}

/// Blocks of 4 pages, as in the paper's figures.
const FIGURES: Profile = Profile { geometry: Geometry { blocks: 24, ..TINY.geometry }, ..TINY };

/// Writes these pages to an empty FTL, one by one.
fn write(chip: &mut Chip, memory: &mut Memory, written: &[u32]) -> Host {
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut Device<'_>| {
        for (content, &logical) in written.iter().enumerate() {
            host.make(ftl, Change::Write(logical, content as u32))?;
        }
        host.verify(ftl, "at the end")
    };
    memory.with(chip, true, work).unwrap();
    host
}

#[test]
fn the_papers_figures_are_the_same_over_the_page_map() {
    let full = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    let figure_6: Vec<u32> = [1, 0, 1].into_iter().chain(full).chain([16]).collect();
    type Written<'a> = &'a [u32];
    let none = Conversions::default();
    let one = Conversions { blocks: 1, ..none };
    let cases: [(Written<'_>, Written<'_>, Conversions); 3] = [
        // Figure 5: blocks 1, 3, 0, 4, and 1 again.
        (&[7, 14, 3, 17, 6], &[], none),
        // Figure 6: the victim is that of block 0, and its newest pages are written in order.
        (&figure_6, &[0, 1], Conversions { appended: 3, newest: 2, victims: 1, ..one }),
        // Figure 7: a full buffer block is converted and let go.
        (&[0, 1, 1, 2, 3], &[0, 1, 2], Conversions { appended: 4, newest: 3, full: 1, ..one }),
    ];
    for (written, expected, done) in cases {
        let mut chip = Chip::new(FIGURES);
        let mut memory = Memory::behind(Buffer::as_printed(4), false, &FIGURES, "page");
        let mut host = Host::new(memory.logical_pages);
        let work = |ftl: &mut Device<'_>| {
            for (content, &logical) in written.iter().enumerate() {
                host.make(ftl, Change::Write(logical, content as u32))?;
            }
            Ok((ftl.conversions(), ftl.statistics().moved))
        };
        let (found, moved) = memory.with(&mut chip, true, work).unwrap();
        let done = Conversions { taken: written.len() as u64, ..done };
        assert_eq!((found, moved), (done, done.newest), "{written:?}");
        let all = whole_pages(&mut chip);
        let host_pages = all.iter().filter(|(_, header, _)| header.records < memory.logical_pages);
        let (buffered, below): (Vec<_>, Vec<_>) = host_pages.map(|it| it.1).partition(is_buffered);
        // Figure 7's block was not erased yet.
        let buffered: Vec<u32> = buffered.iter().map(|it| it.records).collect();
        let below: Vec<u32> = below.iter().map(|it| it.records).collect();
        assert_eq!((buffered.as_slice(), below.as_slice()), (written, expected), "{written:?}");
    }
}

#[test]
fn a_page_is_read_once_and_a_mount_reads_only() {
    for buffer in BUFFERS {
        let profile = with_more(CHIP, MORE);
        let mut memory = Memory::behind(buffer, false, &profile, "page");
        let begun = start(profile, &mut memory, 6, Faults::NONE);
        let (mut chip, mut host) = (begun.chip, begun.host);
        memory.with(&mut chip, false, |ftl| host.verify(ftl, "a mount")).unwrap();
        let before = chip.counters();
        let blocks = memory.with(&mut chip, false, |ftl| Ok(ftl.buffer_blocks().count())).unwrap();
        assert_eq!(blocks, 0);
        let mount = chip.counters().reads - before.reads;
        memory.with(&mut chip, false, |ftl| host.verify(ftl, "all")).unwrap();
        let held = host.pages.iter().filter(|page| page.is_some()).count() as u64;
        let after = chip.counters();
        assert_eq!(after.reads - before.reads - 2 * mount, held, "{buffer:?}");
        assert_eq!((after.programs, after.erases), (before.programs, before.erases));
    }
}

/// What the FTL itself reads is what a mount reads once the buffer blocks are erased.
#[test]
fn a_mount_reads_each_programmed_page_of_the_buffer_once() {
    let mut more = Vec::new();
    for (seed, buffer) in seeds(160, 8).into_iter().flat_map(|seed| BUFFERS.map(|it| (seed, it))) {
        let profile = with_more(CHIP, MORE);
        let mut memory = Memory::behind(buffer, false, &profile, "page");
        let (mut chip, mut numbers) = (Chip::new(profile), Numbers(seed));
        let mut host = Host::new(memory.logical_pages);
        let changes = 4 * profile.geometry.pages() + 37 * seed as u32;
        let mut work =
            |ftl: &mut Device<'_>| (0..changes).try_for_each(|_| host.change(ftl, &mut numbers));
        memory.with(&mut chip, true, &mut work).unwrap();
        let all = whole_pages(&mut chip);
        let pages = all.iter().filter(|(_, header, _)| is_buffered(header));
        let pages: Vec<_> = pages.map(|(page, ..)| *page).collect();
        let mut reads_of = |mut chip: Chip| {
            let before = chip.counters().reads;
            memory.with(&mut chip, false, |_| Ok(())).unwrap();
            (chip.counters().reads - before) as i64
        };
        let with = reads_of(chip.clone());
        for page in &pages {
            chip.erase(profile.geometry.block_of(*page)).unwrap();
        }
        more.push(with - reads_of(chip) - pages.len() as i64);
    }
    println!("more than a read for each page: {more:?}");
    assert!(more.iter().all(|&more| more <= 0), "{more:?}");
}

/// The page buffer has room for 51 numbers.
#[test]
fn a_mount_reads_each_of_more_buffer_blocks_than_it_keeps_numbers_of_once() {
    let geometry = Geometry { blocks: 200, pages_per_block: 4, ..CHIP.geometry };
    let profile = Profile { geometry, ..CHIP };
    let mut memory = Memory::behind(Buffer::as_printed(70), false, &profile, "page");
    let (mut chip, mut numbers) = (Chip::new(profile), Numbers(9));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut Device<'_>| {
        (0..2000).try_for_each(|_| host.change(ftl, &mut numbers))?;
        Ok(ftl.buffer_blocks().count())
    };
    let buffered = memory.with(&mut chip, true, work).unwrap();
    assert!(buffered > 60, "{buffered} buffer blocks");
    let all = whole_pages(&mut chip);
    let blocks = all.iter().filter(|(_, header, _)| is_buffered(header));
    let blocks: std::collections::BTreeSet<_> =
        blocks.map(|(page, ..)| geometry.block_of(*page)).collect();
    let found = memory.with(&mut chip, false, |ftl| Ok(ftl.conversions().found)).unwrap();
    assert_eq!(found, blocks.len() as u64);
    memory.with(&mut chip, false, |ftl| host.verify(ftl, "many")).unwrap();
}

#[test]
fn a_block_with_many_newest_pages_stays_where_it_is() {
    // The fifth page converts a full block, of which all pages or one are newest.
    for (written, completed, moved) in [([0, 1, 2, 3, 0], 1, 0), ([0, 0, 0, 0, 1], 0, 1)] {
        let buffer = Buffer { completes_from: 2, ..Buffer::as_printed(1) };
        let mut memory = Memory::behind(buffer, false, &FIGURES, "page");
        let mut chip = Chip::new(FIGURES);
        let mut host = write(&mut chip, &mut memory, &written[..4]);
        memory.with(&mut chip, false, |ftl| host.verify(ftl, "four")).unwrap();
        let work = |ftl: &mut Device<'_>| {
            for (content, &logical) in written.iter().enumerate() {
                host.make(ftl, Change::Write(logical, 10 + content as u32))?;
            }
            host.verify(ftl, "five")?;
            expect_sound(ftl, "five")?;
            Ok((ftl.conversions().completed, ftl.conversions().blocks, ftl.statistics().moved))
        };
        let found = memory.with(&mut chip, true, work).unwrap();
        assert_eq!(found, (completed, 1, moved), "{written:?}");
    }
}

#[test]
fn a_run_passes_the_buffer_and_single_pages_do_not() {
    let buffer = Buffer { passes_from: 4, ..Buffer::as_printed(4) };
    let mut memory = Memory::behind(buffer, false, &FIGURES, "page");
    let mut chip = Chip::new(FIGURES);
    let work = |ftl: &mut Device<'_>| {
        ftl.write_pages(8, &[3; 4 * 512])?;
        assert_eq!(ftl.buffer_blocks().count(), 0);
        ftl.write_pages(8, &[4; 3 * 512])?;
        let blocks = |ftl: &Device<'_>| -> Vec<_> {
            ftl.buffer_blocks().map(|it| (it.logical_block, it.pages, it.is_closed)).collect()
        };
        assert_eq!(blocks(ftl), [(2, 3, false)]);
        ftl.write_pages(8, &[5; 4 * 512])?;
        assert_eq!(blocks(ftl), [(2, 3, true)]);
        let mut page = [0; 512];
        (8..12).try_for_each(|logical| {
            assert!(ftl.read(logical, &mut page)? && page == [5; 512], "{logical}");
            Ok(())
        })
    };
    memory.with(&mut chip, true, work).unwrap();
}

#[test]
fn idle_steps_convert_ahead_of_need_within_their_budget() {
    let profile = with_more(CHIP, MORE);
    for buffer in [Buffer { ahead: 1, ..Buffer::as_printed(2) }, IMPROVED] {
        // A full device has no room for work ahead of need.
        let mut memory = Memory::behind(buffer, false, &profile, "page");
        memory.logical_pages /= 2;
        let (mut chip, mut numbers) = (Chip::new(profile), Numbers(1));
        let mut host = Host::new(memory.logical_pages);
        let work = |ftl: &mut Device<'_>| {
            for _ in 0..1000 {
                host.change(ftl, &mut numbers)?;
                let idle = ftl.idle(30)?;
                assert!(idle.operations <= 30, "{idle:?}");
            }
            host.verify(ftl, "at the end")?;
            expect_sound(ftl, "at the end")?;
            Ok(ftl.conversions())
        };
        let done = memory.with(&mut chip, true, work).unwrap();
        assert!(done.ahead > 50, "{buffer:?}: {done:?}");
        memory.with(&mut chip, false, |ftl| host.verify(ftl, "after a mount")).unwrap();
    }
}

/// What reads as an error; every other page is as the host knows it.
fn errors(ftl: &mut Device<'_>, host: &Host, what: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let mut bytes = vec![0; ftl.page_bytes()];
    for logical in 0..host.pages.len() as u32 {
        match ftl.read(logical, &mut bytes) {
            Err(FtlError::Corrupt { .. }) => found.push(logical),
            Err(error) => panic!("{what}: page {logical}: {error}"),
            Ok(is_there) => {
                let number = is_there.then(|| u32::from_le_bytes(bytes[..4].try_into().unwrap()));
                let known = host.pages[logical as usize].map(|content| logical << 20 ^ content);
                assert_eq!(number, known, "{what}: page {logical}");
            }
        }
    }
    found
}

#[test]
fn a_faded_page_of_a_buffer_block_is_an_error_and_never_an_older_version() {
    let profile = with_more(CHIP, MORE);
    let (mut lost, mut tried) = (0, 0);
    for (buffer, seed) in BUFFERS.into_iter().zip(0..) {
        let mut memory = Memory::behind(buffer, seed % 2 == 0, &profile, "page");
        let begun = start(profile, &mut memory, 60 + seed, Faults::NONE);
        let (used, mut host) = (begun.chip, begun.host);
        memory.with(&mut used.clone(), false, |ftl| host.verify(ftl, "before")).unwrap();
        let all = whole_pages(&mut used.clone());
        let buffered: Vec<_> = all.iter().filter(|(_, header, _)| is_buffered(header)).collect();
        for (page, header, _) in &buffered {
            let block = profile.geometry.block_of(*page);
            let is_last = |it: &&&(PageNumber, PageHeader, Vec<u8>)| {
                profile.geometry.block_of(it.0) == block && it.0 > *page
            };
            if !buffered.iter().any(|it| is_last(&it)) {
                continue;
            }
            tried += 1;
            let what = format!("{buffer:?}, {page:?}, logical {}", header.records);
            let mut chip = used.clone();
            chip.corrupt_page(*page, |main, _| main[100] ^= 1);
            let work = |ftl: &mut Device<'_>| Ok(errors(ftl, &host, &what));
            let found = memory.with(&mut chip, false, work).unwrap();
            assert!(found.iter().all(|&logical| logical == header.records), "{what}: {found:?}");
            lost += found.len();
            // Whatever is written elsewhere, it stays an error until it is written.
            let (mut numbers, mut host) = (Numbers(4), host.clone());
            let work = |ftl: &mut Device<'_>| -> Outcome<()> {
                for at in 0..150 {
                    let logical = numbers.below(host.pages.len() as u32);
                    if !found.contains(&logical) {
                        host.make(ftl, Change::Write(logical, 5000 + at))?;
                    }
                }
                assert_eq!(errors(ftl, &host, &what), found, "{what}");
                Ok(())
            };
            memory.with(&mut chip, false, work).unwrap_or_else(|error| panic!("{what}: {error}"));
            let work = |ftl: &mut Device<'_>| -> Outcome<()> {
                assert_eq!(errors(ftl, &host, &what), found, "{what}");
                found.iter().try_for_each(|&it| host.make(ftl, Change::Write(it, 7)))?;
                host.verify(ftl, &what)
            };
            memory.with(&mut chip, false, work).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
    println!("{tried} pages faded, {lost} of them counted");
    assert!(tried > 40 && lost > 10, "{tried} pages faded, {lost} of them counted");
}

/// Whether the host notices what was done to the chip.
fn is_caught(memory: &mut Memory, chip: &mut Chip, host: &Host) -> bool {
    let mut host = host.clone();
    let look = std::panic::AssertUnwindSafe(|| {
        memory.with(chip, false, |ftl| host.verify(ftl, "a canary")).unwrap();
    });
    std::panic::catch_unwind(look).is_err()
}

/// Puts a page back on the chip.
fn put_page(chip: &mut Chip, page: PageNumber, frame: &[u8]) {
    chip.corrupt_page(page, |main, spare| {
        let (from, rest) = frame.split_at(main.len());
        main.copy_from_slice(from);
        spare[..rest.len()].copy_from_slice(rest);
    });
}

#[test]
fn canary_a_page_that_does_not_name_the_one_before_it_is_caught() {
    let mut memory = Memory::behind(Buffer::as_printed(4), false, &FIGURES, "page");
    let mut chip = Chip::new(FIGURES);
    let host = write(&mut chip, &mut memory, &[1, 1, 2]);
    let all = whole_pages(&mut chip);
    let (last, header, mut frame) = all.iter().rfind(|it| is_buffered(&it.1)).unwrap().clone();
    let faded = all.iter().rfind(|it| it.1.records == 1).unwrap().0;
    chip.corrupt_page(faded, |main, _| main[100] ^= 1);
    assert_eq!((header.records, header.lowest, header.height), (2, 4, 1));
    let mut honest = chip.clone();
    let read = memory.with(&mut honest, false, |ftl| ftl.read(1, &mut [0; 512]));
    assert!(matches!(read, Err(FtlError::Corrupt { page, .. }) if page == faded), "{read:?}");
    // The block has an older version of page 1, which counts if nothing names the faded one.
    layout_of(&FIGURES.geometry).reseal(&mut frame, &PageHeader { height: 0, ..header });
    put_page(&mut chip, last, &frame);
    let mounted = memory.with(&mut chip.clone(), false, |ftl| {
        Ok((ftl.statistics().unexplained_blocks, ftl.read(1, &mut [0; 512])?))
    });
    assert_eq!(mounted.unwrap(), (1, true));
    assert!(is_caught(&mut memory, &mut chip, &host));
}

#[test]
fn canary_a_buffer_block_that_is_let_go_too_early_is_caught() {
    let profile = with_more(CHIP, MORE);
    let mut memory = Memory::behind(Buffer::as_printed(3), false, &profile, "page");
    let begun = start(profile, &mut memory, 9, Faults::NONE);
    let (mut chip, mut host) = (begun.chip, begun.host);
    memory.with(&mut chip, false, |ftl| host.verify(ftl, "before")).unwrap();
    let all = whole_pages(&mut chip);
    let (page, ..) = all.iter().rfind(|(_, header, _)| is_buffered(header)).unwrap();
    let block: BlockNumber = profile.geometry.block_of(*page);
    for place in 0..profile.geometry.pages_per_block {
        chip.corrupt_page(profile.geometry.page_in(block, place), |main, spare| {
            main.fill(0xFF);
            spare.fill(0xFF);
        });
    }
    assert!(is_caught(&mut memory, &mut chip, &host));
}

#[test]
fn any_ftl_opens_what_one_with_another_buffer_leaves() {
    let profile = with_more(CHIP, MORE);
    let mut memory = Memory::behind(BUFFERS[1], false, &profile, "page");
    let begun = start(profile, &mut memory, 8, Faults::NONE);
    let (mut chip, mut host, mut numbers) = (begun.chip, begun.host, begun.numbers);
    for buffer in [Buffer::NONE, IMPROVED, BUFFERS[3], Buffer::NONE, BUFFERS[0]] {
        let mut other = Memory::behind(buffer, false, &profile, "page");
        other.logical_pages = memory.logical_pages;
        let work = |ftl: &mut Device<'_>| {
            host.verify(ftl, "opened")?;
            (0..60).try_for_each(|_| host.change(ftl, &mut numbers))?;
            host.verify(ftl, "changed")
        };
        other.with(&mut chip, false, work).unwrap_or_else(|error| panic!("{buffer:?}: {error}"));
    }
}

#[test]
fn a_buffer_takes_its_blocks_and_three_more_and_the_ram_that_is_said() {
    let (geometry, capabilities) = (FIGURES.geometry, FIGURES.capabilities);
    let bare = logical_pages_max(&geometry, &capabilities);
    let mut last = bare;
    for blocks in 1..6 {
        let buffer = Buffer::as_printed(blocks);
        let most = logical_pages_beside(&geometry, &capabilities, &buffer);
        let less = Geometry { blocks: geometry.blocks - blocks - 3, ..geometry };
        assert_eq!(most, logical_pages_max(&less, &capabilities), "{blocks}");
        assert!(most < last);
        last = most;
        let ram = ram_needed_for(&geometry, &capabilities, &Choices::from(buffer));
        let table = blocks as usize * (10 + geometry.pages_per_block as usize);
        assert_eq!(ram, ram_needed(&geometry) + geometry.blocks as usize / 8 + table, "{blocks}");
        let space = space_of(&geometry, &capabilities, most + 1);
        let (mut chip, mut ram, mut memory) = (Chip::new(FIGURES), vec![0; ram], vec![0; 4096]);
        let map = Page::new(space, &mut memory).unwrap();
        let found = Ftl::format_with(&mut chip, map, most + 1, buffer, &mut ram).err();
        let refused = matches!(found, Some(FtlError::TooFewSpareBlocks { logical_pages_max, .. })
            if logical_pages_max == most);
        assert!(refused, "{blocks}: {found:?}");
    }
}

#[test]
fn the_smallest_geometry_with_one_buffer_block_loses_nothing() {
    // 16 blocks of 4 pages.
    let profile = Profile { geometry: Geometry { blocks: 16, ..TINY.geometry }, ..TINY };
    let mut cuts = 0;
    for pages in [0, 1, 2] {
        let mut memory = Memory::behind(Buffer::as_printed(1), false, &profile, "page");
        cuts += cut_with(&mut memory, profile, pages, Share::one_in(11));
        assert!(memory.conversions > 0);
    }
    assert!(cuts > 20, "{cuts} cuts");
}

/// The bound is that of the whole project for wear. Buffer blocks are among the blocks.
#[test]
fn skewed_writes_wear_all_blocks_evenly_behind_a_buffer() {
    let profile = with_more(CHIP, MORE);
    for buffer in BUFFERS {
        let mut chip = Chip::new(profile);
        let mut memory = Memory::behind(buffer, false, &profile, "page");
        let pages = memory.logical_pages;
        memory
            .with(&mut chip, true, |ftl| {
                let bytes = vec![0; ftl.page_bytes()];
                fills(pages).try_for_each(|page| ftl.write(page, &bytes))
            })
            .unwrap();
        expect_even_wear(&chip, &format!("{buffer:?}, {pages} pages"));
    }
}
