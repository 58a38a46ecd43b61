//! Pages of buffer blocks that fade: errors, and never an older version.
//!
//! Each set of one, two or three pages of a few buffer blocks fades. A page reads as the host knows
//! it or is an error, before and after a conversion that is cut anywhere, until it is written again.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::log::layout_of;
use nandina::node::PageHeader;
use nandina_ftl::ftl::FtlError;
use nandina_ftl::hybrid::{Buffer, SequentialRule};
use nandina_sim::{Chip, Cut, Faults};

use crate::cuts::{RESTING, pass_after_rest};
use crate::host::{Change, Device, Host, Memory, Outcome, Which};
use crate::numbers::Numbers;
use crate::{BUFFERED, CHIP, Share, is_full};

/// The pages of a chip that can be read, and their headers.
fn headers(chip: &mut Chip) -> Vec<(PageNumber, PageHeader)> {
    let layout = layout_of(&CHIP.geometry);
    let mut read = |page| {
        let mut frame = vec![0; layout.frame_bytes()];
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(page, main, spare).unwrap();
        Some((page, layout.open(&frame).ok()?))
    };
    (0..CHIP.geometry.pages()).map(PageNumber).filter_map(&mut read).collect()
}

/// Whether a page was appended to a buffer block.
const fn is_buffered(header: &PageHeader) -> bool {
    header.height & 8 != 0
}

/// The logical pages of the pages of a chip that are in buffer blocks, by block.
fn buffered(chip: &mut Chip) -> Vec<(BlockNumber, Vec<(PageNumber, u32)>)> {
    let mut found: Vec<(BlockNumber, Vec<_>)> = Vec::new();
    for (page, header) in headers(chip).into_iter().filter(|(_, header)| is_buffered(header)) {
        let block = CHIP.geometry.block_of(page);
        if found.last().is_none_or(|(last, _)| *last != block) {
            found.push((block, Vec::new()));
        }
        found.last_mut().unwrap().1.push((page, header.records));
    }
    found
}

/// Reads every page: each is as the host knows it, or an error that names a page.
///
/// Returns the pages that are errors.
fn errors(memory: &mut Memory, chip: &mut Chip, host: &Host, what: &str) -> Vec<u32> {
    memory.with(chip, false, |ftl| Ok(errors_of(ftl, host, what))).unwrap()
}

fn errors_of(ftl: &mut dyn Device, host: &Host, what: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for logical in 0..host.pages.len() as u32 {
        match ftl.read(logical, &mut vec![0; ftl.page_bytes()]) {
            Err(FtlError::Corrupt { .. }) => found.push(logical),
            Err(error) => panic!("{what}: page {logical}: {error}"),
            Ok(_) => host.expect(ftl, logical, what),
        }
    }
    found
}

/// Fades pages, and looks before and after a mount, a conversion that is cut, and a write.
fn fade(which: Which, used: &Chip, host: &Host, faded: &[(PageNumber, u32)], most: usize) -> usize {
    let what = format!("{which:?}, faded {faded:?}");
    let (mut chip, mut memory) = (used.clone(), Memory::new(&CHIP, which));
    for (page, _) in faded {
        chip.corrupt_page(*page, |main, _| main[100] ^= 1);
    }
    let mounted = memory.with(&mut chip, false, |ftl| Ok(ftl.statistics().unexplained_blocks));
    assert_eq!(mounted.unwrap(), 1, "{what}");
    let lost = errors(&mut memory, &mut chip, host, &what);
    assert!(lost.len() <= most, "{what}: {lost:?}");
    // A conversion keeps the errors, wherever it is cut.
    let work = |ftl: &mut dyn Device| ftl.convert_all();
    let mut converted = chip.clone();
    memory.with(&mut converted, false, work).unwrap();
    let all = converted.counters().operations() - chip.counters().operations();
    for at in Share::one_in(131).of(0..all) {
        let mut chip = chip.clone();
        chip.cut_at(at, Cut::ALL[at as usize % Cut::ALL.len()]);
        assert!(memory.with(&mut chip, false, work).is_err(), "{what}");
        chip.restore_power();
        let what = format!("{what}, cut at {at}");
        assert_eq!(errors(&mut memory, &mut chip, host, &what), lost, "{what}");
        memory.with(&mut chip, false, work).unwrap();
        assert_eq!(errors(&mut memory, &mut chip, host, &what), lost, "{what}");
    }
    for mut chip in [chip, converted] {
        assert_eq!(errors(&mut memory, &mut chip, host, &what), lost, "{what}");
        // Whatever is written elsewhere, they stay errors until they are written or trimmed.
        let (mut numbers, mut host) = (Numbers(4), host.clone());
        let mut left = lost.clone();
        let work = |ftl: &mut dyn Device| -> Outcome<()> {
            for at in 0..300 {
                let logical = numbers.below(host.pages.len() as u32);
                if !left.contains(&logical) {
                    host.make(ftl, Change::Write(logical, 5000 + at))?;
                }
            }
            assert_eq!(errors_of(ftl, &host, &what), left, "{what}");
            while let Some(logical) = left.pop() {
                let change = match left.len() % 2 {
                    0 => Change::Write(logical, 6000),
                    _ => Change::Trim(logical, 1),
                };
                host.make(ftl, change)?;
                assert_eq!(errors_of(ftl, &host, &what), left, "{what}");
            }
            host.verify(ftl, &what)
        };
        memory.with(&mut chip, false, work).unwrap_or_else(|error| panic!("{what}: {error}"));
        let verified = memory.with(&mut chip, false, |ftl| host.verify(ftl, &what));
        verified.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    lost.len()
}

/// A chip with pages in buffer blocks that have older versions elsewhere.
fn used(which: Which, seed: u64) -> (Chip, Host) {
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
    let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(seed));
    let work = |ftl: &mut dyn Device| (0..180).try_for_each(|_| host.change(ftl, &mut numbers));
    memory.with(&mut chip, true, work).unwrap();
    (chip, host)
}

#[test]
fn a_faded_page_of_a_buffer_block_is_an_error_and_never_an_older_version() {
    let (mut single, mut lost) = (0, 0);
    for which in BUFFERED {
        for seed in 1..1 + if is_full() { 4 } else { 1 } {
            let (chip, host) = used(which, seed);
            let (tried, found) = fade_each(which, chip, &host);
            (single, lost) = (single + tried, lost + found);
        }
    }
    println!("{single} pages faded one by one, of which {lost} counted");
    assert!(single > 30 && lost > 15, "{single}, {lost}");
}

/// Fades each page of the buffer blocks alone, but the last ones. Returns these, and the errors.
fn fade_each(which: Which, mut chip: Chip, host: &Host) -> (usize, usize) {
    let (mut single, mut lost) = (0, 0);
    for (_, pages) in buffered(&mut chip) {
        let live = live_pages(which, &chip, &pages);
        // A block without pages that count is free.
        let places = if live.is_empty() { 0 } else { pages.len() - 1 };
        for place in 0..places {
            // A page that was superseded, in its block or below, is no loss.
            let is_live = live.contains(&pages[place].0);
            let found = fade(which, &chip, host, &pages[place..=place], 1);
            assert_eq!(found == 1, is_live, "{which:?}, place {place}");
            (single, lost) = (single + 1, lost + found);
        }
    }
    (single, lost)
}

/// Where newer pages of their logical blocks have passed the buffer, too.
#[test]
fn a_faded_page_stays_an_error_behind_pages_that_passed_after_idle_steps() {
    let (mut single, mut lost) = (0, 0);
    for which in RESTING {
        let (mut chip, mut host) = used(which, 7);
        let (mut memory, mut numbers) = (Memory::new(&CHIP, which), Numbers(8));
        let work = |ftl: &mut dyn Device| pass_after_rest(ftl, &mut host, &mut numbers);
        memory.with(&mut chip, false, work).unwrap();
        let (tried, found) = fade_each(which, chip, &host);
        (single, lost) = (single + tried, lost + found);
    }
    println!("{single} pages faded one by one, of which {lost} counted");
    assert!(single > 15 && lost > 5, "{single}, {lost}");
}

/// Those of the pages of a buffer block that count.
///
/// They have the highest number of all copies, and were not trimmed.
fn live_pages(which: Which, chip: &Chip, pages: &[(PageNumber, u32)]) -> Vec<PageNumber> {
    let (mut chip, mut memory) = (chip.clone(), Memory::new(&CHIP, which));
    // A copy of what the buffer supersedes is labelled as old: it never counts.
    let counts = |header: &PageHeader| is_buffered(header) || header.lowest != 4;
    let all = headers(&mut chip);
    let mut is_live = |&&(page, logical): &&(PageNumber, u32)| {
        let copies = all.iter().filter(|(_, it)| it.records == logical && counts(it));
        let newest = copies.max_by_key(|(_, header)| header.sequence);
        let read = |ftl: &mut dyn Device| ftl.read(logical, &mut [0; 512]);
        newest.is_some_and(|(newest, _)| *newest == page)
            && memory.with(&mut chip, false, read).unwrap()
    };
    pages.iter().filter(&mut is_live).map(|&(page, _)| page).collect()
}

#[test]
fn faded_pages_in_a_row_cost_their_group_at_most_and_are_never_older() {
    let (mut tried, mut lost) = (0, 0);
    for which in BUFFERED {
        let (Which::OverBlock(Buffer { neighbours, .. })
        | Which::OverBast(_, Buffer { neighbours, .. })
        | Which::OverFast(_, _, Buffer { neighbours, .. })) = which
        else {
            continue;
        };
        let group = (neighbours * CHIP.geometry.pages_per_block) as usize;
        for seed in 1..1 + if is_full() { 4 } else { 1 } {
            let (mut chip, host) = used(which, seed);
            for (_, pages) in buffered(&mut chip) {
                let live = live_pages(which, &chip, &pages);
                // With all that is behind them trimmed or converted, nothing says that they count.
                for count in 2..=3usize {
                    for place in 0..pages.len().saturating_sub(count) {
                        let is_seen = pages[place + count..].iter().any(|it| live.contains(&it.0));
                        if is_seen {
                            lost += fade(which, &chip, &host, &pages[place..place + count], group);
                            tried += 1;
                        }
                    }
                }
                // Two at the end: only the last of them can be torn.
                if let [before @ .., _, _] = &pages[..]
                    && before.iter().any(|it| live.contains(&it.0))
                {
                    fade(which, &chip, &host, &pages[before.len()..], group);
                    tried += 1;
                }
            }
        }
    }
    println!("{tried} rows of pages faded, {lost} pages are errors");
    assert!(tried > 20 && lost > 100, "{tried}, {lost}");
}

#[test]
fn a_page_that_faded_in_the_paper_s_figure_is_an_error_until_it_is_written() {
    let which = Which::OverFast(2, SequentialRule::FirstPage, Buffer::as_printed(4));
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
    chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
    let mut host = Host::new(memory.logical_pages);
    // Page 1 has an older version below, in its data block, and one in its buffer block.
    let work = |ftl: &mut dyn Device| {
        (0..8).try_for_each(|at| host.make(ftl, Change::Write(at, 1)))?;
        ftl.convert_all()?;
        [0, 1, 1, 2].into_iter().try_for_each(|at| host.make(ftl, Change::Write(at, 2)))
    };
    memory.with(&mut chip, true, work).unwrap();
    let (_, pages) = buffered(&mut chip).into_iter().next().unwrap();
    chip.corrupt_page(pages[2].0, |main, _| main[100] ^= 1);
    let found = memory.with(&mut chip, false, |ftl| ftl.read(1, &mut [0; 512]).map(drop));
    assert!(
        matches!(found, Err(FtlError::Corrupt { page, .. }) if page == pages[2].0),
        "{found:?}"
    );
    memory.with(&mut chip, false, |ftl| host.make(ftl, Change::Write(1, 3))).unwrap();
    memory.with(&mut chip, false, |ftl| host.verify(ftl, "written again")).unwrap();
}

#[test]
fn a_faded_page_does_not_hide_a_newer_copy_that_passed_the_buffer() {
    let which = BUFFERED[3];
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
    let mut host = Host::new(memory.logical_pages);
    // Page 2 is in a buffer block, then a run passes it, and a neighbour's page is appended.
    let work = |ftl: &mut dyn Device| {
        (0..24).try_for_each(|at| host.make(ftl, Change::Write(at, 1)))?;
        ftl.convert_all()?;
        host.make(ftl, Change::Write(2, 2))?;
        (0..8).try_for_each(|at| host.make(ftl, Change::Write(at, 3)))?;
        [9, 17, 12].into_iter().try_for_each(|at| host.make(ftl, Change::Write(at, 4)))
    };
    memory.with(&mut chip, true, work).unwrap();
    let all: Vec<_> = buffered(&mut chip).into_iter().flat_map(|(_, pages)| pages).collect();
    let faded = all.iter().find(|(_, logical)| *logical == 2).unwrap().0;
    chip.corrupt_page(faded, |main, _| main[100] ^= 1);
    memory.with(&mut chip, false, |ftl| host.verify(ftl, "superseded before it faded")).unwrap();
}
