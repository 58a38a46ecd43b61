//! The transit layer: the paper's examples, what a mount leaves alone, its counts; and canaries.

use nandina::flash::{BlockNumber, Geometry, PageNumber, Profile};
use nandina::log::layout_of;
use nandina::node::PageHeader;
use nandina_ftl::ftl::FtlError;
use nandina_ftl::hybrid::{
    Bast, Block, Buffer, Conversions, Fast, Hybrid, Policy, SequentialRule, Transit,
    logical_pages_max, ram_needed, summary_bytes,
};
use nandina_ftl::{LogicalPages, Statistics};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY, Tear};

use crate::host::{Change, Device, Host, Memory, Outcome, Which};
use crate::numbers::Numbers;
use crate::tree::Tree;
use crate::whole_pages::whole_pages;
use crate::{BUFFERED, CHIP};

/// Blocks of 4 pages, as in the paper's figures.
const FIGURES: Profile = Profile { geometry: Geometry { blocks: 24, ..TINY.geometry }, ..TINY };

/// The buffer of 4 blocks of the figures, over FAST.
const PRINTED: Which = Which::OverFast(2, SequentialRule::FirstPage, Buffer::as_printed(4));

/// Whether a page is in a buffer block, as its header says.
pub fn is_buffered(header: &PageHeader) -> bool {
    header.height & 8 != 0
}

/// What was written, and what the FTL says at the end.
type Written = (Vec<u32>, Vec<u32>, Vec<(u32, u32, bool)>, Conversions, Statistics);

/// Writes these pages to an empty FTL. Returns the logical pages on the chip, in the order of their
/// programs, those in buffer blocks apart from the others; and what the FTL says at the end.
fn write(written: &[u32]) -> Written {
    let (mut chip, mut memory) = (Chip::new(FIGURES), Memory::new(&FIGURES, PRINTED));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut dyn Device| {
        for (content, &logical) in written.iter().enumerate() {
            host.make(ftl, Change::Write(logical, content as u32))?;
        }
        host.verify(ftl, "at the end")?;
        Ok((ftl.buffered(), ftl.conversions(), ftl.statistics()))
    };
    let (blocks, conversions, done) = memory.with(&mut chip, true, work).unwrap();
    memory.with(&mut chip, false, |ftl| host.verify(ftl, "after a mount")).unwrap();
    let (mut buffered, mut below) = (Vec::new(), Vec::new());
    for (_, header, _) in whole_pages(&mut chip) {
        let is_host = header.records < memory.logical_pages;
        let list = if is_buffered(&header) { &mut buffered } else { &mut below };
        list.extend(is_host.then_some(header.records));
    }
    (buffered, below, blocks, conversions, done)
}

#[test]
fn figure_5_pages_go_to_the_buffer_block_of_their_logical_block() {
    let (buffered, below, blocks, conversions, done) = write(&[7, 14, 3, 17, 6]);
    // Blocks 1, 3, 0, 4, and 1 again.
    assert_eq!(blocks, [(1, 2, false), (3, 1, false), (0, 1, false), (4, 1, false)]);
    assert_eq!((buffered, below), (vec![7, 14, 3, 17, 6], vec![]));
    let none = Conversions { taken: 5, ..Conversions::default() };
    assert_eq!((conversions, done.programmed, done.erases), (none, 5, 0));
}

#[test]
fn figure_6_the_victim_has_the_fewest_pages_and_its_newest_are_written_in_order() {
    let full = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    let written: Vec<u32> = [1, 0, 1].into_iter().chain(full).chain([16]).collect();
    let (buffered, below, blocks, conversions, done) = write(&written);
    assert_eq!(blocks, [(4, 1, false), (1, 4, false), (2, 4, false), (3, 4, false)]);
    assert_eq!(below, [0, 1]);
    assert_eq!(buffered, [&full[..], &[16]].concat());
    let none = Conversions { taken: written.len() as u64, ..Conversions::default() };
    let one = Conversions { blocks: 1, appended: 3, newest: 2, victims: 1, ..none };
    assert_eq!((conversions, done.moved, done.erases), (one, 2, 1));
}

#[test]
fn figure_7_a_full_buffer_block_is_converted_erased_and_appended_to() {
    let (buffered, below, blocks, conversions, done) = write(&[0, 1, 1, 2, 3]);
    assert_eq!((buffered, below), (vec![3], vec![0, 1, 2]));
    assert_eq!(blocks, [(0, 1, false)]);
    let none = Conversions { taken: 5, ..Conversions::default() };
    let one = Conversions { blocks: 1, appended: 4, newest: 3, full: 1, ..none };
    assert_eq!((conversions, done.programmed, done.erases), (one, 5 + 3, 1));
}

#[test]
fn a_page_is_read_once_with_the_buffer_as_without() {
    for which in BUFFERED {
        let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
        let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(6));
        let work = |ftl: &mut dyn Device| (0..300).try_for_each(|_| host.change(ftl, &mut numbers));
        memory.with(&mut chip, true, work).unwrap();
        let before = chip.counters().reads;
        memory.with(&mut chip, false, |_| Ok(())).unwrap();
        let mount = chip.counters().reads - before;
        memory.with(&mut chip, false, |ftl| host.verify(ftl, "all")).unwrap();
        let held = host.pages.iter().filter(|page| page.is_some()).count() as u64;
        let reads = chip.counters().reads - before - 2 * mount;
        // A trimmed page may be noted by a page, which is read too.
        assert!((held..=host.pages.len() as u64).contains(&reads), "{which:?}: {reads}, {held}");
    }
}

#[test]
fn a_mount_converts_nothing_and_what_was_begun_before_it_is_not_written_on() {
    let (mut chip, mut memory) = (Chip::new(FIGURES), Memory::new(&FIGURES, PRINTED));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut dyn Device| {
        [7, 14, 3, 17, 6].into_iter().try_for_each(|at| host.make(ftl, Change::Write(at, 1)))
    };
    memory.with(&mut chip, true, work).unwrap();
    let begun: Vec<_> = whole_pages(&mut chip)
        .iter()
        .filter(|(_, header, _)| is_buffered(header))
        .map(|(page, ..)| FIGURES.geometry.block_of(*page))
        .collect();
    let before = chip.counters();
    let mut found = memory.with(&mut chip, false, |ftl| Ok(ftl.buffered())).unwrap();
    found.sort_unstable();
    assert_eq!(found, [(0, 1, true), (1, 2, true), (3, 1, true), (4, 1, true)]);
    let after = chip.counters();
    assert_eq!((after.programs, after.erases), (before.programs, before.erases));
    // Block 1 is converted when a page of it is written, the others stay as they are.
    let written = chip.counters().programs;
    let converted = memory
        .with(&mut chip, false, |ftl| {
            host.make(ftl, Change::Write(5, 2))?;
            host.verify(ftl, "after a write")?;
            Ok((ftl.conversions().blocks, ftl.buffered().iter().filter(|it| it.2).count()))
        })
        .unwrap();
    assert_eq!(converted, (1, 3));
    // Pages 6 and 7 below, a page that holds nothing before them, and page 5.
    assert_eq!(chip.counters().programs - written, 4);
    for (page, header, _) in whole_pages(&mut chip) {
        let is_begun = begun.contains(&FIGURES.geometry.block_of(page));
        assert!(!(is_begun && header.records == 5), "page 5 was appended to a block begun before");
    }
}

#[test]
fn a_torn_append_never_counts_and_no_other_page_does_in_its_place() {
    for (seed, tear) in (0..12).zip([Tear::Mixture, Tear::Ones, Tear::Unreadable].iter().cycle()) {
        let which = BUFFERED[seed as usize % BUFFERED.len()];
        let (mut chip, mut memory) = (Chip::with_seed(CHIP, seed), Memory::new(&CHIP, which));
        chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
        let mut host = Host::new(memory.logical_pages);
        let work = |ftl: &mut dyn Device| {
            [3, 4, 3].into_iter().try_for_each(|at| host.make(ftl, Change::Write(at, at)))
        };
        memory.with(&mut chip, true, work).unwrap();
        let mut whole = chip.clone();
        memory.with(&mut whole, false, |ftl| host.clone().make(ftl, Change::Write(4, 9))).unwrap();
        let last = whole.counters().operations() - chip.counters().operations() - 1;
        chip.cut_at(last, Cut::Inside(*tear));
        let done = memory.with(&mut chip, false, |ftl| host.make(ftl, Change::Write(4, 9)));
        assert!(matches!(done, Err(FtlError::Device(ChipError::PowerLost))), "{done:?}");
        chip.restore_power();
        for mount in 0..6 {
            let what = format!("{which:?}, {tear:?}, mount {mount}");
            memory.with(&mut chip, false, |ftl| host.verify(ftl, &what)).unwrap();
        }
        let change = |ftl: &mut dyn Device| host.make(ftl, Change::Write(5, 1));
        memory.with(&mut chip, false, change).unwrap();
        memory.with(&mut chip, false, |ftl| host.verify(ftl, "after a change")).unwrap();
    }
}

/// Puts a page back on the chip.
fn put_page(chip: &mut Chip, page: PageNumber, frame: &[u8]) {
    chip.corrupt_page(page, |main, spare| {
        let (from, rest) = frame.split_at(main.len());
        main.copy_from_slice(from);
        spare[..rest.len()].copy_from_slice(rest);
    });
}

/// Whether the host notices what was done to the chip.
fn is_caught(memory: &mut Memory, chip: &mut Chip, host: &Host) -> bool {
    let mut host = host.clone();
    let look = std::panic::AssertUnwindSafe(|| {
        memory.with(chip, false, |ftl| host.verify(ftl, "a canary")).unwrap();
    });
    std::panic::catch_unwind(look).is_err()
}

/// A chip on which FAST has copied a page that the buffer supersedes.
fn superseded(writes: u32) -> (Chip, Memory, Host) {
    // A conversion merges logical blocks of which other buffer blocks have pages.
    let which = Which::OverFast(2, SequentialRule::FirstPage, Buffer::as_printed(3));
    let mut chip = Chip::new(FIGURES);
    let mut memory = Memory::new(&FIGURES, which);
    let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(3));
    let work = |ftl: &mut dyn Device| -> Outcome<()> {
        for at in 0..writes {
            host.make(ftl, Change::Write(numbers.below(24), at))?;
        }
        Ok(())
    };
    memory.with(&mut chip, true, work).unwrap();
    (chip, memory, host)
}

#[test]
fn canary_a_merge_that_makes_old_bytes_new_is_caught() {
    let tried: u32 = (400..440).map(old_copies_that_count_are_caught).sum();
    assert!(tried > 0, "no merge met a page that the buffer supersedes");
}

/// Makes copies count that are labelled as old. Returns how many there were.
fn old_copies_that_count_are_caught(writes: u32) -> u32 {
    let (mut chip, mut memory, host) = superseded(writes);
    assert!(!is_caught(&mut memory, &mut chip.clone(), &host), "nothing is wrong yet");
    let all = whole_pages(&mut chip);
    let mut tried = 0;
    for (page, header, frame) in &all {
        let counts = |it: &&(PageNumber, PageHeader, Vec<u8>)| {
            it.1.records == header.records && it.1.lowest != 4
        };
        let newest = all.iter().filter(counts).max_by_key(|it| it.1.sequence);
        // One that is older than the last page of the buffer block does not count in any case.
        let is_newer = newest.filter(|it| is_buffered(&it.1)).is_some_and(|newest| {
            let block = FIGURES.geometry.block_of(newest.0);
            let mut beside = all.iter().filter(|it| FIGURES.geometry.block_of(it.0) == block);
            beside.all(|it| it.1.sequence < header.sequence)
        });
        if header.lowest != 4 || !is_newer {
            continue;
        }
        let (mut chip, mut frame) = (chip.clone(), frame.clone());
        layout_of(&FIGURES.geometry).reseal(&mut frame, &PageHeader { lowest: 1, ..*header });
        put_page(&mut chip, *page, &frame);
        assert!(is_caught(&mut memory, &mut chip, &host), "{page}, {header:?}");
        tried += 1;
    }
    tried
}

#[test]
fn canary_a_buffer_block_that_is_let_go_too_early_is_caught() {
    let (mut chip, mut memory, host) = superseded(400);
    let all = whole_pages(&mut chip);
    let (page, ..) = all.iter().rfind(|(_, header, _)| is_buffered(header)).unwrap();
    let block: BlockNumber = FIGURES.geometry.block_of(*page);
    for place in 0..FIGURES.geometry.pages_per_block {
        chip.corrupt_page(FIGURES.geometry.page_in(block, place), |main, spare| {
            main.fill(0xFF);
            spare.fill(0xFF);
        });
    }
    assert!(is_caught(&mut memory, &mut chip, &host));
}

#[test]
fn canary_a_page_that_does_not_name_the_one_before_it_is_caught_and_counted() {
    let (mut chip, mut memory) = (Chip::new(FIGURES), Memory::new(&FIGURES, PRINTED));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut dyn Device| {
        [1, 1, 2]
            .into_iter()
            .zip(0..)
            .try_for_each(|(at, to)| host.make(ftl, Change::Write(at, to)))
    };
    memory.with(&mut chip, true, work).unwrap();
    let all = whole_pages(&mut chip);
    let (last, header, mut frame) = all.iter().rfind(|it| is_buffered(&it.1)).unwrap().clone();
    let faded = all.iter().rfind(|it| it.1.records == 1).unwrap().0;
    chip.corrupt_page(faded, |main, _| main[100] ^= 1);
    // The block has an older version of page 1, which would count.
    assert_eq!((header.records, header.lowest), (2, 1));
    layout_of(&FIGURES.geometry).reseal(&mut frame, &PageHeader { lowest: 3, ..header });
    put_page(&mut chip, last, &frame);
    let mounted = memory.with(&mut chip.clone(), false, |ftl| {
        Ok((ftl.statistics().unexplained_blocks, ftl.read(1, &mut [0; 512])?))
    });
    assert_eq!(mounted.unwrap(), (1, true));
    assert!(is_caught(&mut memory, &mut chip, &host));
}

/// A chip on which a cut tore an append, and a later session wrote a page of the same group.
///
/// Returns the page that is torn, and as what it would have been whole.
fn torn_append() -> (Chip, Memory, Host, (PageNumber, PageHeader, Vec<u8>)) {
    let shared = Buffer { neighbours: 4, ..Buffer::as_printed(2) };
    let which = Which::OverFast(2, SequentialRule::FirstPage, shared);
    let (mut chip, mut memory) = (Chip::new(FIGURES), Memory::new(&FIGURES, which));
    let mut host = Host::new(memory.logical_pages);
    let mut append = |chip: &mut Chip, is_new, host: &mut Host, content| {
        memory.with(chip, is_new, |ftl| {
            host.make(ftl, Change::Write(1, 0))?;
            host.make(ftl, Change::Write(2, 1))?;
            host.make(ftl, Change::Write(1, content))
        })
    };
    let mut whole = chip.clone();
    append(&mut whole, true, &mut host.clone(), 5).unwrap();
    chip.cut_at(whole.counters().operations() - 1, Cut::Inside(Tear::Mixture));
    let torn = whole_pages(&mut whole).into_iter().max_by_key(|it| it.1.sequence).unwrap();
    let done = append(&mut chip, true, &mut host, 5);
    assert!(matches!(done, Err(FtlError::Device(ChipError::PowerLost))), "{done:?}");
    chip.restore_power();
    let work = |ftl: &mut dyn Device| {
        host.verify(ftl, "after the cut")?;
        host.make(ftl, Change::Write(9, 7))
    };
    memory.with(&mut chip, false, work).unwrap();
    assert!(!is_caught(&mut memory, &mut chip.clone(), &host), "nothing is wrong yet");
    (chip, memory, host, torn)
}

#[test]
fn canary_a_torn_append_that_counts_is_caught() {
    let (mut chip, mut memory, host, (page, header, mut frame)) = torn_append();
    // What settled the cut has erased its block. With a higher number it counts again.
    let all = whole_pages(&mut chip);
    let newest = all.iter().map(|it| it.1.sequence).max().unwrap();
    let header = PageHeader { sequence: newest + 1, ..header };
    layout_of(&FIGURES.geometry).reseal(&mut frame, &header);
    put_page(&mut chip, page, &frame);
    assert!(is_caught(&mut memory, &mut chip, &host));
}

#[test]
fn canary_a_block_that_is_written_on_after_a_mount_is_caught() {
    let (mut chip, mut memory, host, (torn, ..)) = torn_append();
    let all = whole_pages(&mut chip);
    let (page, header, mut frame) = all.iter().rfind(|it| it.1.records == 9).unwrap().clone();
    chip.corrupt_page(page, |main, spare| {
        main.fill(0xFF);
        spare.fill(0xFF);
    });
    // Behind the torn page it is lost, or the torn one is taken for a page that has faded.
    layout_of(&FIGURES.geometry).reseal(&mut frame, &PageHeader { lowest: 1, ..header });
    put_page(&mut chip, PageNumber(torn.0 + 1), &frame);
    assert!(is_caught(&mut memory, &mut chip, &host));
}

#[test]
fn idle_steps_convert_ahead_of_need_in_small_parts() {
    let fast = |buffer| Which::OverFast(2, SequentialRule::FirstPage, buffer);
    let ahead = Buffer { ahead: 1, ..Buffer::as_printed(2) };
    for which in [fast(ahead), Which::OverBlock(ahead), Which::OverBast(2, ahead), BUFFERED[3]] {
        let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
        let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(1));
        let pages = memory.logical_pages;
        // What a step takes at most: the smallest budget that converts.
        let budget = 8 * CHIP.geometry.pages_per_block + 24;
        let work = |ftl: &mut dyn Device| {
            let mut steps = 0;
            for at in 0..1000 {
                host.make(ftl, Change::Write(numbers.below(pages), at))?;
                let before = ftl.conversions();
                let none = ftl.idle(budget - 1)?;
                assert!(none.operations < budget && ftl.conversions() == before, "{none:?}");
                // Now and then the host writes in the middle of a conversion.
                for _ in 0..if at % 3 == 0 { 1 } else { 1000 } {
                    let idle = ftl.idle(budget)?;
                    assert!(idle.operations <= budget, "{idle:?}");
                    steps += 1;
                    if !idle.more {
                        break;
                    }
                }
            }
            host.verify(ftl, "at the end")?;
            Ok((steps, ftl.conversions()))
        };
        let (steps, done) = memory.with(&mut chip, true, work).unwrap();
        println!("{which:?}: {steps} steps, {done:?}");
        assert!(done.ahead > 50 && steps > 1100, "{which:?}: {steps}, {done:?}");
        let verified = memory.with(&mut chip, false, |ftl| host.verify(ftl, "after a mount"));
        verified.unwrap();
    }
}

/// What the page writes of a tree cost: programs, erases, reads, and full merges.
fn grow<P: Policy>(policy: P, inserts: u32) -> (u64, u64, u64, u64) {
    let profile =
        Profile { geometry: Geometry { blocks: 70, pages_per_block: 8, ..TINY.geometry }, ..TINY };
    let (geometry, capabilities) = (profile.geometry, profile.capabilities);
    let most = logical_pages_max(&geometry, &capabilities, &policy);
    let mut ram = vec![0; ram_needed(&geometry, &capabilities, &policy, most)];
    let mut chip = Chip::new(profile);
    let mut ftl = Hybrid::format(&mut chip, policy, most, &mut ram).unwrap();
    let (mut tree, mut numbers) = (Tree::new(), Numbers(1));
    for _ in 0..inserts {
        tree.insert(numbers.below(1 << 31), &mut |page| ftl.write(page, &[0; 512]).unwrap());
    }
    assert!(tree.pages() / 8 > 12, "{} nodes", tree.pages());
    let (done, full) = (ftl.statistics(), ftl.merges().full);
    (done.programmed, done.erases, chip.counters().reads, full)
}

/// Microseconds of these programs, erases and reads.
fn time((programs, erases, reads, _): (u64, u64, u64, u64)) -> u64 {
    200 * programs + 1500 * erases + 25 * reads
}

#[test]
fn each_improvement_lowers_what_it_is_for() {
    let over = Fast { log_blocks: 4, sequential: SequentialRule::FirstPage };
    let printed = Buffer::as_printed(4);
    let cost = |buffer| grow(Transit { over, buffer }, 12_000);
    let bare = cost(Buffer::NONE);
    let few = cost(printed);
    let newest = cost(Buffer { reads_newest_only: true, ..printed });
    assert!(newest.2 < few.2 && (newest.0, newest.1) == (few.0, few.1), "{newest:?}, {few:?}");
    let dropped = cost(Buffer { drops_superseded: true, ..printed });
    assert!(dropped.0 < few.0, "{dropped:?}, {few:?}");
    let shared = cost(Buffer { neighbours: 6, ..printed });
    assert!(time(shared) < time(few) && shared.1 < few.1, "{shared:?}, {few:?}");
    // With a buffer block for each logical block.
    let many = cost(Buffer::as_printed(24));
    let completed = cost(Buffer { completes_from: 2, ..Buffer::as_printed(24) });
    assert!(time(completed) < time(many), "{completed:?}, {many:?}");
    println!("{bare:?} without, {few:?} few, {newest:?}, {dropped:?}, {shared:?}");
    println!("{many:?} many, {completed:?} completed");
    assert!(time(many) < time(bare), "{many:?}, {bare:?}");
}

#[test]
fn neighbours_share_only_when_too_few_buffer_blocks_are_left() {
    // Four logical blocks are written, and there are four buffer blocks, or two.
    for (blocks, expected) in [(4, 4), (2, 2)] {
        let buffer = Buffer { neighbours: 2, ..Buffer::as_printed(blocks) };
        let which = Which::OverFast(2, SequentialRule::FirstPage, buffer);
        let (mut chip, mut memory) = (Chip::new(FIGURES), Memory::new(&FIGURES, which));
        let mut host = Host::new(memory.logical_pages);
        let work = |ftl: &mut dyn Device| {
            [0, 8, 4, 12].into_iter().try_for_each(|at| host.make(ftl, Change::Write(at, 1)))?;
            host.verify(ftl, "shared")?;
            Ok((ftl.buffered(), ftl.conversions().blocks))
        };
        let (found, converted) = memory.with(&mut chip, true, work).unwrap();
        assert_eq!((found.len(), converted), (expected, 0), "{found:?}");
        let each = 4 / expected as u32;
        assert!(found.iter().all(|it| it.1 == each), "{found:?}");
    }
}

#[test]
fn a_run_passes_the_buffer_and_single_pages_do_not() {
    let buffer = Buffer { passes_from: 4, ..Buffer::as_printed(4) };
    let which = Which::OverFast(2, SequentialRule::FirstPage, buffer);
    let (mut chip, mut memory) = (Chip::new(FIGURES), Memory::new(&FIGURES, which));
    let work = |ftl: &mut dyn Device| {
        // As many pages as a block has, twice: in place, and then switched.
        for _ in 0..3 {
            ftl.write_pages(8, &[3; 4 * 512])?;
        }
        let (passed, found) = (ftl.statistics(), ftl.buffered());
        assert_eq!((passed.programmed, passed.moved, found), (12, 0, vec![]));
        // Three pages are too few.
        ftl.write_pages(8, &[4; 3 * 512])?;
        assert_eq!(ftl.buffered(), [(2, 3, false)]);
        ftl.write_pages(8, &[5; 4 * 512])?;
        // The block is not written on any more, and nothing in it counts.
        assert_eq!(ftl.buffered(), [(2, 3, true)]);
        for logical in 8..12 {
            let mut page = [0; 512];
            assert!(ftl.read(logical, &mut page)? && page == [5; 512], "{logical}");
        }
        Ok(ftl.merges())
    };
    let merges = memory.with(&mut chip, true, work).unwrap();
    assert!(merges.switch >= 2 && merges.partial + merges.full == 0, "{merges:?}");
    for logical in 8..12 {
        let mut page = [0; 512];
        memory.with(&mut chip, false, |ftl| ftl.read(logical, &mut page)).unwrap();
        assert_eq!(page, [5; 512], "{logical} after a mount");
    }
}

#[test]
fn the_summary_table_takes_ten_bytes_a_block_and_one_a_page() {
    let (geometry, capabilities) = (CHIP.geometry, CHIP.capabilities);
    for blocks in [1, 4] {
        let policy = Transit { over: Bast { log_blocks: 1 }, buffer: Buffer::as_printed(blocks) };
        assert_eq!(summary_bytes(&geometry, &capabilities, &policy), blocks as usize * 18);
    }
    assert_eq!(summary_bytes(&geometry, &capabilities, &Block), 0);
}

#[test]
fn what_the_buffer_cannot_work_with_is_refused() {
    let policy = Transit { over: Block, buffer: Buffer::as_printed(2) };
    let bare = logical_pages_max(&CHIP.geometry, &CHIP.capabilities, &Block);
    let most = logical_pages_max(&CHIP.geometry, &CHIP.capabilities, &policy);
    assert_eq!(bare - most, 2 * CHIP.geometry.pages_per_block);
    let (mut chip, mut ram) = (Chip::new(CHIP), vec![0; 8192]);
    let found = Hybrid::format(&mut chip, policy, bare, &mut ram).err();
    assert!(matches!(found, Some(FtlError::TooFewSpareBlocks { .. })), "{found:?}");
    let mut ftl = Hybrid::format(&mut chip, policy, most, &mut ram).unwrap();
    ftl.write(0, &[1; 512]).unwrap();
    // Without a buffer, or with other neighbours, its pages would mean something else.
    let found = Hybrid::open(&mut chip, Block, most, &mut ram).err();
    assert_eq!(found, Some(FtlError::OtherContent { system: 68 }));
    let other = Buffer { neighbours: 2, ..policy.buffer };
    let found = Hybrid::open(&mut chip, Transit { buffer: other, ..policy }, most, &mut ram).err();
    assert_eq!(found, Some(FtlError::OtherContent { system: 68 }));
    let wide = Geometry { pages_per_block: 512, ..CHIP.geometry };
    let mut chip = Chip::new(Profile { geometry: wide, ..CHIP });
    let found = Hybrid::format(&mut chip, policy, 8, &mut vec![0; 1 << 17]).err();
    assert_eq!(found, Some(FtlError::BufferPages { most: 256, given: 512 }));
}
