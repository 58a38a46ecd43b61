//! Volatile trims: what they cost, when they are durable, and what a mount may undo.

use nandina::flash::profile::Profile;
use nandina::flash::{Capabilities, Flash, Geometry, PageNumber};
use nandina::log::layout_of;
use nandina_ftl::LogicalPages;
use nandina_sim::{Chip, Cut, Faults};

use crate::faults::is_caught;
use crate::host::{Change, Device, Host, Memory, Outcome, expect_sound};
use crate::numbers::Numbers;
use crate::{CHIP, seeds};

/// Volatile trims of extents that do not touch which wait at most.
const WAITING_MAX: u32 = 16;

/// Extents that grow while they wait.
const GROWN: u32 = 8;

/// A chip with more logical pages than two lists of trims name, and blocks that may fail.
const WIDE: Profile = Profile {
    geometry: Geometry { blocks: 40, pages_per_block: 16, ..CHIP.geometry },
    capabilities: Capabilities { bad_blocks_per_mille: 100, ..CHIP.capabilities },
    ..CHIP
};

/// A chip whose logical pages were written twice, the second time with these contents.
fn written(memory: &mut Memory, profile: Profile) -> (Chip, Host) {
    let (mut chip, mut host) = (Chip::new(profile), Host::new(memory.logical_pages));
    let pages = host.pages.len() as u32;
    let work = |ftl: &mut Device<'_>| {
        (0..2 * pages).try_for_each(|at| host.make(ftl, Change::Write(at % pages, at)))
    };
    memory.with(&mut chip, true, work).unwrap();
    (chip, host)
}

/// Programs and erases of the chip.
fn changes(ftl: &Device<'_>) -> u64 {
    let counters = ftl.flash().counters();
    counters.programs + counters.erases
}

#[test]
fn volatile_trims_program_nothing_and_their_pages_are_garbage_at_once() {
    let mut memory = Memory::apart(&WIDE, "compact");
    let (mut chip, mut host) = written(&mut memory, WIDE);
    let first = host.pages.len() as u32 / 3;
    assert!(first + 3 * WAITING_MAX < host.pages.len() as u32);
    let work = |ftl: &mut Device<'_>| {
        // Makes room, and settles.
        host.make(ftl, Change::Trim(0, first))?;
        ftl.idle(1000)?;
        let (before, trims) = (changes(ftl), ftl.statistics().host_trims);
        for at in 0..WAITING_MAX {
            host.make(ftl, Change::Volatile(first + 3 * at, 1))?;
            // What is a hole already takes no place.
            host.make(ftl, Change::Volatile(first + 3 * at, 1))?;
        }
        for at in 0..GROWN {
            // Nor does what an extent that waits grows by.
            host.make(ftl, Change::Volatile(first + 3 * at + 1, 1))?;
        }
        assert_eq!(changes(ftl), before, "nothing is programmed");
        assert_eq!(ftl.statistics().host_trims - trims, u64::from(WAITING_MAX + GROWN));
        // Pages that are mapped are those that are valid.
        expect_sound(ftl, "holes")?;
        host.make(ftl, Change::Volatile(first + 3 * WAITING_MAX, 1))?;
        assert_eq!(changes(ftl), before + 1, "one list for all of them");
        host.verify(ftl, "holes")
    };
    memory.with(&mut chip, false, work).unwrap();
}

/// What makes volatile trims durable, by name.
type Cause = (&'static str, fn(&mut Device<'_>) -> Outcome<()>);

#[test]
fn volatile_trims_are_undone_by_a_mount_until_something_makes_them_durable() {
    let causes: [Cause; 7] = [
        ("nothing", |_| Ok(())),
        ("a write", |ftl| ftl.write(40, &[1; 512])),
        ("a checkpoint", |ftl| ftl.checkpoint().map(|_| ())),
        ("an idle step", |ftl| ftl.idle(5).map(|_| ())),
        ("a trim of another page", |ftl| ftl.trim(41, 1)),
        ("a trim of a page that is a hole already", |ftl| ftl.trim(12, 1)),
        ("a request", |ftl| ftl.write_pages_atomic(40, &[1; 1024])),
    ];
    for (cause, work) in causes {
        let mut memory = Memory::apart(&CHIP, "page");
        let (mut chip, mut host) = written(&mut memory, CHIP);
        let is_there = |ftl: &mut Device<'_>| ftl.read(12, &mut [0; 512]);
        let trim = |ftl: &mut Device<'_>| {
            host.make(ftl, Change::Trim(0, 8))?;
            host.make(ftl, Change::Volatile(10, 5))?;
            work(ftl)?;
            assert!(!is_there(ftl)?, "{cause}");
            expect_sound(ftl, cause)
        };
        memory.with(&mut chip, false, trim).unwrap();
        let is_undone = memory.with(&mut chip, false, is_there).unwrap();
        assert_eq!(is_undone, matches!(cause, "nothing" | "a write"), "{cause}");
    }
}

#[test]
fn a_close_makes_volatile_trims_durable() {
    let mut memory = Memory::apart(&CHIP, "page");
    let (mut chip, _) = written(&mut memory, CHIP);
    for closes in [false, true] {
        let (mut ram, mut map) = (vec![0; 4096], vec![0; 4096]);
        let pages = memory.logical_pages;
        let space =
            nandina_ftl::ftl::space_of(&CHIP.geometry, &CHIP.capabilities, memory.logical_pages);
        let map = nandina_ftl::mapping::Compact::new(space, &mut map).unwrap();
        let mut ftl = nandina_ftl::ftl::Ftl::open(&mut chip, map, pages, &mut ram).unwrap();
        ftl.write(3, &[3; 512]).unwrap();
        LogicalPages::trim_volatile(&mut ftl, 3, 1).unwrap();
        if closes {
            ftl.close().unwrap();
        }
        let is_there = memory.with(&mut chip, false, |ftl| ftl.read(3, &mut [0; 512])).unwrap();
        assert_eq!(is_there, !closes);
    }
}

/// Pages of the chip that say that a logical page was trimmed: it did not fit in the list.
fn holes(chip: &mut Chip) -> usize {
    let layout = layout_of(&WIDE.geometry);
    let mut frame = vec![0; layout.frame_bytes()];
    let is_hole = |page: &PageNumber| {
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        let read = chip.read(*page, main, spare);
        read.is_ok() && layout.open(&frame).is_ok_and(|header| header.lowest == 2)
    };
    (0..WIDE.geometry.pages()).map(PageNumber).filter(is_hole).count()
}

#[test]
fn a_list_of_trims_has_room_for_whatever_waits_through_cuts_and_blocks_that_fail() {
    let (mut undone, mut alone, mut failures) = (0, 0, 0);
    for seed in seeds(400, 20) {
        let name = ["page", "compact"][seed as usize / 2 % 2];
        let mut memory = Memory::by(seed % 2 == 0, &WIDE, name);
        let (mut chip, mut numbers) = (Chip::with_seed(WIDE, seed), Numbers(seed));
        let (mut host, pages) = (Host::new(memory.logical_pages), memory.logical_pages);
        let fill = |ftl: &mut Device<'_>| host.make(ftl, Change::Row(0, pages, 1));
        memory.with(&mut chip, true, fill).unwrap();
        for session in 0..6 {
            let what = format!("seed {seed}, session {session}");
            let program_failures = if session == 1 { 150 } else { 0 };
            chip.set_faults(Faults { program_failures, unstable_pages: 1, ..Faults::NONE });
            chip.cut_at(1500 + u64::from(numbers.below(2500)), Cut::ALL[session % 5]);
            let work = |ftl: &mut Device<'_>| -> Outcome<()> {
                (0..4000).try_for_each(|at| {
                    // Pages here and there, so that the list is full of short extents.
                    let page = numbers.below(if session % 2 == 0 { pages } else { pages / 8 });
                    host.make(
                        ftl,
                        match numbers.below(8) {
                            0 => Change::Trim(page, 1),
                            1..4 => Change::Volatile(page, 1 + u32::from(page + 1 < pages)),
                            _ => Change::Write(page, 1 << 10 | at),
                        },
                    )
                })
            };
            assert!(memory.with(&mut chip, false, work).is_err(), "{what}");
            chip.restore_power();
            chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
            let (before, pending) = (host.pages.clone(), host.pending);
            let look = |ftl: &mut Device<'_>| {
                host.verify(ftl, &what)?;
                expect_sound(ftl, &what)
            };
            memory.with(&mut chip, false, look).unwrap_or_else(|error| panic!("{what}: {error}"));
            let is_back = |&logical: &u32| {
                let (old, new) = (before[logical as usize], host.pages[logical as usize]);
                old.is_none() && new.is_some() && pending.is_none_or(|it| it.of(logical).is_none())
            };
            undone += (0..pages).filter(is_back).count();
            memory.with(&mut chip, false, |ftl| host.verify(ftl, &what)).unwrap();
            alone += u32::from(holes(&mut chip) > 0);
        }
        failures += chip.fault_counters().program_failures;
    }
    println!("{undone} pages came back, full lists before {alone}, {failures} failures");
    assert!(undone > 2 && alone > 10 && failures > 5, "{undone}, {alone}, {failures}");
}

#[test]
fn canary_an_older_copy_than_the_one_that_was_trimmed_is_caught() {
    let mut memory = Memory::apart(&CHIP, "page");
    let (mut chip, mut host) = (Chip::new(CHIP), Host::new(memory.logical_pages));
    let work = |ftl: &mut Device<'_>| {
        host.make(ftl, Change::Write(5, 1))?;
        host.make(ftl, Change::Write(5, 2))?;
        host.make(ftl, Change::Write(6, 1))?;
        host.make(ftl, Change::Volatile(5, 1))
    };
    memory.with(&mut chip, true, work).unwrap();
    assert!(!is_caught(&mut memory, &mut chip.clone(), &host), "nothing is wrong yet");
    // As if the block of the newest copy had been erased.
    let mut copies = (0..CHIP.geometry.pages()).map(PageNumber).filter(|&page| {
        let mut main = [0; 512];
        chip.read(page, &mut main, &mut [0; 64]).unwrap();
        main[..4] == (5u32 << 20 ^ 2).to_le_bytes()
    });
    let newest = copies.next().unwrap();
    assert_eq!(copies.next(), None);
    chip.corrupt_page(newest, |main, spare| {
        main.fill(0xFF);
        spare.fill(0xFF);
    });
    assert!(is_caught(&mut memory, &mut chip, &host));
}

/// `compact` passes a hole in pieces, one for each of its leaves.
#[test]
fn a_hole_that_a_mapping_divides_takes_one_place_in_the_list_of_trims() {
    let geometry = Geometry { blocks: 256, pages_per_block: 16, ..CHIP.geometry };
    let profile = Profile { geometry, ..CHIP };
    let mut memory = Memory::with_pages(&profile, "compact", 2400);
    let (mut chip, mut host) = (Chip::new(profile), Host::new(2400));
    let mut numbers = Numbers(3);
    let work = |ftl: &mut Device<'_>| {
        // Places in no order, so that leaves are flat.
        for at in 0..8000 {
            host.make(ftl, Change::Write(numbers.below(2400), at))?;
        }
        for logical in 0..2400 {
            host.make(ftl, Change::Write(logical * 7 % 2400, 8000 + logical))?;
        }
        // All but one of the places of the list.
        let places = (ftl.page_bytes() as u32 - 12) / 8;
        for at in 0..places - 1 {
            host.make(ftl, Change::Trim(2 * at, 1))?;
        }
        for start in (200..2000).step_by(170) {
            // More pages than a leaf has.
            host.make(ftl, Change::Volatile(start, 300))?;
            ftl.idle(1000)?;
            host.verify(ftl, "a divided hole")?;
            host.make(ftl, Change::Write(start, start))?;
            for logical in start..start + 300 {
                host.make(ftl, Change::Write(logical, logical))?;
            }
        }
        Ok(())
    };
    memory.with(&mut chip, true, work).unwrap();
    assert_eq!(holes(&mut chip), 0, "the list had room for all of them");
}

/// An idle step leaves the block of new pages parked. Pages in it are trimmed then.
#[test]
fn a_block_that_is_emptied_while_it_is_parked_is_not_free_before_the_list() {
    let mut memory = Memory::apart(&CHIP, "page");
    let (mut chip, mut host) = written(&mut memory, CHIP);
    let pages = host.pages.len() as u32;
    let mut content = 1 << 16;
    for (round, before) in (0..40).flat_map(|round| (0..8).map(move |before| (round, before))) {
        let first = (round * 11 + before * 5) % (pages - 24);
        let work = |ftl: &mut Device<'_>| {
            let mut write = |ftl: &mut Device<'_>, host: &mut Host, logical: u32| {
                content += 1;
                host.make(ftl, Change::Write(logical % pages, content))
            };
            for at in 0..before {
                write(ftl, &mut host, first + 16 + at)?;
            }
            for at in 0..8 {
                write(ftl, &mut host, first + at)?;
            }
            ftl.idle(6 + 6 * (round % 4))?;
            host.make(ftl, Change::Volatile(first, 8))?;
            for at in 0..8 + round % 24 {
                write(ftl, &mut host, first + 30 + at)?;
            }
            Ok(())
        };
        memory.with(&mut chip, false, work).unwrap();
        // The power is gone: what waits is undone.
        let what = format!("round {round}, {before} pages before");
        memory.with(&mut chip, false, |ftl| host.verify(ftl, &what)).unwrap();
    }
}
