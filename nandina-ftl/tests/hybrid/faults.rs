//! Blocks that fail, a device that gives up, flipped bits, damage; and canaries.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use nandina::log::layout_of;
use nandina::node::PageHeader;
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::FtlError;
use nandina_ftl::hybrid::{Bast, Hybrid, logical_pages_max, ram_needed};
use nandina_sim::{Chip, ChipError, Faults};

use crate::cutting::live;
use crate::host::{Change, Device, Host, Memory, Which};
use crate::numbers::Numbers;
use crate::{ALL, CHIP, FAILING, seeds};

/// Makes changes on a chip with these faults, and expects no loss.
fn live_with(which: Which, seed: u64, faults: Faults) -> Chip {
    let mut memory = Memory::new(&FAILING, which);
    live(&mut memory, (FAILING, seed, faults), (10, 80), &format!("{which:?}"))
}

#[test]
fn blocks_that_fail_lose_nothing() {
    let faults =
        Faults { program_failures: 150, erase_failures: 40, unstable_pages: 1, ..Faults::NONE };
    let (mut failures, mut marked) = (0, 0);
    for seed in seeds(400, 20) {
        for which in ALL {
            let chip = live_with(which, seed, faults);
            failures += chip.fault_counters().program_failures;
            failures += chip.fault_counters().erase_failures;
            marked += chip.bad_blocks().count();
        }
    }
    println!("{failures} failures, {marked} blocks marked as bad");
    assert!(failures > 40 && marked > 30, "{failures} failures, {marked} blocks marked");
}

#[test]
fn an_operation_that_the_device_gives_up_is_as_a_cut() {
    let faults = Faults { device_errors: 900, unstable_pages: 1, ..Faults::NONE };
    let mut errors = 0;
    for seed in seeds(300, 6) {
        for which in ALL {
            errors += live_with(which, seed, faults).fault_counters().device_errors;
        }
    }
    println!("{errors} errors");
    assert!(errors > 20, "only {errors} errors");
}

#[test]
fn weak_pages_are_written_elsewhere_before_they_cannot_be_read() {
    for which in ALL {
        let mut chip = Chip::new(CHIP);
        chip.set_faults(Faults { disturbing_reads: 40, ..Faults::NONE });
        let (mut memory, mut numbers) = (Memory::new(&CHIP, which), Numbers(2));
        let mut host = Host::new(memory.logical_pages);
        let work = |ftl: &mut dyn Device| {
            for logical in 0..host.pages.len() as u32 {
                host.make(ftl, Change::Write(logical, logical))?;
            }
            for _ in 0..600 {
                let logical = numbers.below(host.pages.len() as u32);
                ftl.read(logical, &mut [0; 512])?;
                ftl.idle(100)?;
                ftl.idle(8)?;
            }
            host.verify(ftl, "after many reads")?;
            Ok(ftl.statistics())
        };
        let done = memory.with(&mut chip, true, work).unwrap();
        println!("{which:?}: {done:?}, {:?}", chip.fault_counters());
        assert!(done.moved > 10 && chip.fault_counters().corrected > 10, "{done:?}");
    }
}

/// The page of the chip whose header `is_meant` selects, and its bytes.
fn find_page(
    chip: &mut Chip,
    is_meant: impl Fn(&PageHeader) -> bool,
) -> Option<(PageNumber, PageHeader, Vec<u8>)> {
    let layout = layout_of(&CHIP.geometry);
    (0..CHIP.geometry.pages()).map(PageNumber).find_map(|page| {
        let mut frame = vec![0; layout.frame_bytes()];
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(page, main, spare).unwrap();
        let header = layout.open(&frame).ok().filter(&is_meant)?;
        Some((page, header, frame))
    })
}

fn put_page(chip: &mut Chip, page: PageNumber, frame: &[u8]) {
    chip.corrupt_page(page, |main, spare| {
        let (from, rest) = frame.split_at(main.len());
        main.copy_from_slice(from);
        spare[..rest.len()].copy_from_slice(rest);
    });
}

#[test]
fn a_page_that_faded_is_counted_at_a_mount() {
    for which in ALL {
        let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
        let mut host = Host::new(memory.logical_pages);
        let mut fill = |ftl: &mut dyn Device| {
            (0..40).try_for_each(|logical| host.make(ftl, Change::Write(logical, 3)))
        };
        memory.with(&mut chip, true, &mut fill).unwrap();
        let (faded, ..) = find_page(&mut chip, |header| header.records == 11).unwrap();
        chip.corrupt_page(faded, |main, _| main[100] ^= 1);
        let mounted = memory.with(&mut chip.clone(), false, |ftl| Ok(ftl.statistics()));
        assert_eq!(mounted.unwrap().unexplained_blocks, 1, "{which:?}");
        assert!(is_caught(&mut memory, &mut chip, &host), "{which:?}");
    }
}

#[test]
fn a_merge_whose_last_page_faded_keeps_the_other_pages_and_is_counted() {
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, ALL[1]));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut dyn Device| {
        (0..32).try_for_each(|logical| host.make(ftl, Change::Write(logical, 3)))?;
        // Three log blocks, and a fourth for which the first is merged.
        [2, 10, 18, 26].into_iter().try_for_each(|at| host.make(ftl, Change::Write(at, 4)))
    };
    memory.with(&mut chip, true, work).unwrap();
    assert_eq!(memory.merges.full, 1);
    let (last, ..) =
        find_page(&mut chip, |header| header.records == 7 && header.height == 3).unwrap();
    chip.corrupt_page(last, |main, _| main[100] ^= 1);
    host.pages[7] = None;
    let look = |ftl: &mut dyn Device| {
        host.verify(ftl, "without page 7")?;
        Ok(ftl.statistics().unexplained_blocks)
    };
    assert_eq!(memory.with(&mut chip, false, look).unwrap(), 1);
}

/// A chip that can be tampered with while an FTL has it.
struct Shared<'c>(&'c RefCell<Chip>);

impl Flash for Shared<'_> {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        CHIP.geometry
    }

    fn capabilities(&self) -> Capabilities {
        CHIP.capabilities
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.0.borrow_mut().read(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.0.borrow_mut().program(page, main, spare)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.0.borrow_mut().erase(block)
    }
}

#[test]
fn a_page_that_faded_stays_an_error_after_a_merge_and_a_mount_until_it_is_written() {
    let chip = RefCell::new(Chip::new(CHIP));
    let policy = Bast { log_blocks: 1 };
    let pages = logical_pages_max(&CHIP.geometry, &CHIP.capabilities, &policy);
    let mut ram = vec![0; ram_needed(&CHIP.geometry, &CHIP.capabilities, &policy, pages)];
    let mut ftl = Hybrid::format(Shared(&chip), policy, pages, &mut ram).unwrap();
    for logical in 0..16 {
        ftl.write(logical, &[1; 512]).unwrap();
    }
    let (faded, ..) = find_page(&mut chip.borrow_mut(), |header| header.records == 3).unwrap();
    chip.borrow_mut().corrupt_page(faded, |main, _| main[100] ^= 1);
    // Pages 2 and 9 are of two logical blocks: the first one is merged for the second.
    ftl.write(2, &[2; 512]).unwrap();
    ftl.write(9, &[2; 512]).unwrap();
    assert_eq!(ftl.merges().full, 1);
    let expect_error = |ftl: &mut Hybrid<'_, Shared<'_>, Bast>| {
        let found = ftl.read(3, &mut [0; 512]);
        assert!(matches!(found, Err(FtlError::Corrupt { .. })), "{found:?}");
        assert!(ftl.read(2, &mut [0; 512]).unwrap());
    };
    expect_error(&mut ftl);
    let mut ftl = Hybrid::open(Shared(&chip), policy, pages, &mut ram).unwrap();
    expect_error(&mut ftl);
    ftl.write(3, &[5; 512]).unwrap();
    let mut page = [0; 512];
    assert!(ftl.read(3, &mut page).unwrap());
    assert_eq!(page, [5; 512]);
}

/// What the host says of a chip that was tampered with.
fn is_caught(memory: &mut Memory, chip: &mut Chip, host: &Host) -> bool {
    let look = AssertUnwindSafe(|| {
        memory.with(chip, false, |ftl| host.clone().verify(ftl, "a canary")).unwrap();
    });
    catch_unwind(look).is_err()
}

#[test]
fn canary_a_merge_that_makes_old_bytes_new_is_caught() {
    for which in ALL {
        let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
        let mut host = Host::new(memory.logical_pages);
        let work = |ftl: &mut dyn Device| {
            // Page 5 is written twice, and only its old copy stays readable in the first block.
            (0..8).try_for_each(|logical| host.make(ftl, Change::Write(logical, 1)))
        };
        memory.with(&mut chip, true, work).unwrap();
        let (_, stale, mut old) = find_page(&mut chip, |header| header.records == 5).unwrap();
        memory.with(&mut chip, false, |ftl| host.make(ftl, Change::Write(5, 2))).unwrap();
        assert!(!is_caught(&mut memory, &mut chip.clone(), &host), "nothing is wrong yet");
        // As if a merge had copied what does not count.
        let sequence = stale.sequence + 1000;
        layout_of(&CHIP.geometry)
            .reseal(&mut old, &PageHeader { sequence, height: 3, lowest: 1, ..stale });
        let last = PageNumber(CHIP.geometry.pages() - CHIP.geometry.pages_per_block);
        assert!(chip.page_is_erased(last));
        put_page(&mut chip, last, &old);
        assert!(is_caught(&mut memory, &mut chip, &host), "{which:?}");
    }
}

#[test]
fn canary_a_log_block_erased_before_its_merge_ended_is_caught() {
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, ALL[1]));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut dyn Device| {
        for content in 1..3 {
            (0..8).try_for_each(|logical| host.make(ftl, Change::Write(logical, content)))?;
        }
        host.make(ftl, Change::Write(4, 3))
    };
    memory.with(&mut chip, true, work).unwrap();
    let newest = find_page(&mut chip, |header| header.records == 4 && header.sequence > 17);
    let (page, ..) = newest.unwrap();
    chip.corrupt_page(page, |main, spare| {
        main.fill(0xFF);
        spare.fill(0xFF);
    });
    assert!(is_caught(&mut memory, &mut chip, &host));
}

#[test]
fn canary_a_chip_that_forgets_programs_is_caught() {
    for which in ALL {
        let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
        let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(4));
        memory.with(&mut chip, true, |_| Ok(())).unwrap();
        chip.set_faults(Faults { silent_programs: 12, ..Faults::NONE });
        let work = |ftl: &mut dyn Device| (0..60).try_for_each(|_| host.change(ftl, &mut numbers));
        // A page about the FTL itself may be among them, and then a change notices.
        let noticed = memory.with(&mut chip, false, work).is_err();
        assert!(chip.fault_counters().silent > 0);
        assert!(noticed || is_caught(&mut memory, &mut chip, &host), "{which:?}");
    }
}

/// Numbers of the pages that say something, and numbers beside them.
const RECORDS: [u32; 8] =
    [0, 1, 77, u32::MAX, u32::MAX - 1, u32::MAX - 2, u32::MAX - 3, u32::MAX - 5];

/// Damages a page: random bytes, or a sealed page that was never written.
fn damage(chip: &mut Chip, numbers: &mut Numbers) {
    let layout = layout_of(&CHIP.geometry);
    let page = PageNumber(numbers.below(CHIP.geometry.pages()));
    let mut frame = vec![0; layout.frame_bytes()];
    let (main, spare) = frame.split_at_mut(layout.page_bytes());
    chip.read(page, main, spare).unwrap();
    match layout.open(&frame) {
        Ok(header) if numbers.below(4) > 0 => {
            let sequence = match numbers.below(3) {
                0 => header.sequence,
                1 => header.sequence + u64::from(numbers.below(900)),
                _ => u64::from(numbers.below(900)),
            };
            let medium = layout.medium(&frame);
            let records = RECORDS[numbers.below(RECORDS.len() as u32) as usize];
            let (lowest, height) = (numbers.below(4) as u8, numbers.below(8) as u8);
            for _ in 0..numbers.below(20) {
                let most = if numbers.below(2) == 0 { 120 } else { 512 };
                frame[numbers.below(most) as usize] = numbers.below(256) as u8;
            }
            let header = PageHeader { sequence, records, lowest, height, ..header };
            layout.seal(&mut frame, &medium, &header);
        }
        _ => {
            for _ in 0..=numbers.below(8) {
                let at = numbers.below(frame.len() as u32);
                frame[at as usize] = numbers.below(256) as u8;
            }
        }
    }
    put_page(chip, page, &frame);
}

#[test]
fn damaged_chips_give_errors_and_never_a_panic_or_an_endless_loop() {
    let (mut opened, mut refused) = (0, 0);
    for which in ALL {
        let mut memory = Memory::new(&CHIP, which);
        let mut host = Host::new(memory.logical_pages);
        let (mut used, mut numbers) = (Chip::new(CHIP), Numbers(8));
        let work = |ftl: &mut dyn Device| (0..200).try_for_each(|_| host.change(ftl, &mut numbers));
        memory.with(&mut used, true, work).unwrap();
        for seed in seeds(10_000, 250) {
            let (mut chip, mut numbers) = (used.clone(), Numbers(seed));
            for _ in 0..=numbers.below(6) {
                damage(&mut chip, &mut numbers);
            }
            chip.limit_operations(Some(60_000));
            let pages = memory.logical_pages;
            let looked = memory.with(&mut chip, false, |ftl| {
                let mut bytes = [0; 512];
                let ended = |error: Option<FtlError<ChipError>>| {
                    let is_endless =
                        matches!(error, Some(FtlError::Device(ChipError::TooMany { .. })));
                    assert!(!is_endless, "{which:?}, seed {seed}");
                };
                for logical in 0..pages {
                    ended(ftl.read(logical, &mut bytes).err());
                }
                let mut host = Host::new(pages);
                for at in 0..12 {
                    let logical = numbers.below(pages);
                    ended(host.make(ftl, Change::Write(logical, at)).err());
                    ended(ftl.trim(numbers.below(pages), 1).err());
                }
                ended(ftl.idle(100).err());
                ended(ftl.check().err());
                Ok(())
            });
            match looked {
                Ok(()) => opened += 1,
                Err(error) => {
                    let loops = matches!(error, FtlError::Device(ChipError::TooMany { .. }));
                    assert!(!loops, "{which:?}, seed {seed}");
                    refused += 1;
                }
            }
        }
    }
    println!("{opened} opened, {refused} refused");
    assert!(opened > 100 && refused > 100, "{opened} opened, {refused} refused");
}
