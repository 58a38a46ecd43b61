//! Blocks that fail, a device that gives up, bits that flip; and canaries.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nandina::flash::{Flash, PageNumber};
use nandina::log::layout_of;
use nandina_ftl::ftl::FtlError;
use nandina_sim::{Chip, ChipError, Faults};

use crate::cutting::{live, lost};
use crate::host::{Change, Device, Host, Memory, Outcome};
use crate::numbers::Numbers;
use crate::{CHIP, FAILING, seeds};

/// Makes changes on a chip with these faults, and expects no loss.
fn live_with(name: &'static str, seed: u64, faults: Faults) -> Chip {
    let mut memory = Memory::by(seed % 2 == 1, &FAILING, name);
    live(&mut memory, (FAILING, seed, faults), (30, 150), name)
}

#[test]
fn blocks_that_fail_lose_nothing() {
    let faults =
        Faults { program_failures: 120, erase_failures: 40, unstable_pages: 1, ..Faults::NONE };
    let (mut failures, mut marked) = (0, 0);
    for seed in seeds(400, 24) {
        for name in ["page", "compact"] {
            let chip = live_with(name, seed, faults);
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
    let errors: u64 = seeds(300, 12)
        .into_iter()
        .map(|seed| live_with("compact", seed, faults).fault_counters().device_errors)
        .sum();
    println!("{errors} errors");
    assert!(errors > 20, "only {errors} errors");
}

#[test]
fn a_mount_that_the_device_gives_up_forgets_no_block_that_has_failed() {
    // A program fails and its block holds pages that count; then reads of mounts are given up.
    let faults = Faults { program_failures: 60, ..Faults::NONE };
    let mut found = 0;
    for seed in seeds(400, 50) {
        let mut chip = Chip::with_seed(FAILING, seed);
        let mut memory = Memory::by(seed % 2 == 1, &FAILING, "page");
        let mut numbers = Numbers(seed);
        let mut host = Host::new(memory.logical_pages);
        memory.with(&mut chip, true, |_| Ok(())).unwrap();
        chip.set_faults(Faults { device_errors: 150, ..faults });
        let work = |ftl: &mut Device<'_>| -> Outcome<bool> {
            for at in 0..200 {
                let gave_up = match host.change(ftl, &mut numbers) {
                    Err(FtlError::Device(ChipError::GaveUp)) => true,
                    done => done.map(|()| false)?,
                };
                let what = format!("seed {seed}, change {at}");
                // Mounts until one of them is not given up, nor the reads behind it.
                let mut verified = !gave_up;
                while !verified {
                    match host.verify(ftl, &what) {
                        Ok(()) => verified = true,
                        Err(FtlError::Device(ChipError::GaveUp)) => {}
                        Err(error) => return Err(error),
                    }
                }
                if lost(ftl.flash()) > 0 && gave_up {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        found += u32::from(memory.with(&mut chip, false, work).unwrap_or(false));
    }
    println!("{found} chips lost a block, and then gave up an operation");
    assert!(found > 5, "only {found}");
}

#[test]
fn weak_pages_are_written_elsewhere_before_they_cannot_be_read() {
    let mut chip = Chip::new(CHIP);
    chip.set_faults(Faults { disturbing_reads: 12, ..Faults::NONE });
    let (mut memory, mut numbers) = (Memory::new(&CHIP, "page"), Numbers(2));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut Device<'_>| {
        for logical in 0..host.pages.len() as u32 {
            host.make(ftl, Change::Write(logical, logical))?;
        }
        for _ in 0..300 {
            let logical = numbers.below(host.pages.len() as u32);
            ftl.read(logical, &mut [0; 512])?;
            ftl.idle(40)?;
        }
        host.verify(ftl, "after many reads")?;
        Ok(ftl.statistics())
    };
    let done = memory.with(&mut chip, true, work).unwrap();
    println!("{done:?}, {:?}", chip.fault_counters());
    assert!(done.moved > 10 && chip.fault_counters().corrected > 10, "{done:?}");
}

#[test]
fn a_page_that_faded_is_counted_at_the_mount() {
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, "page"));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut Device<'_>| {
        (0..40).try_for_each(|logical| host.make(ftl, Change::Write(logical, 3)))
    };
    memory.with(&mut chip, true, work).unwrap();
    let count = |memory: &mut Memory, chip: &mut Chip| {
        memory.with(chip, false, |ftl| Ok(ftl.statistics().unexplained_blocks)).unwrap()
    };
    assert_eq!(count(&mut memory, &mut chip), 0);
    let layout = layout_of(&CHIP.geometry);
    let mut frame = vec![0; layout.frame_bytes()];
    let faded = (0..CHIP.geometry.pages()).map(PageNumber).find(|&page| {
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(page, main, spare).unwrap();
        layout.open(&frame).is_ok_and(|header| header.records == 11)
    });
    chip.corrupt_page(faded.unwrap(), |main, _| main[100] ^= 1);
    assert_eq!(count(&mut memory, &mut chip), 1);
    assert!(is_caught(&mut memory, &mut chip, &host));
}

/// What the host says of a chip that was tampered with.
pub fn is_caught(memory: &mut Memory, chip: &mut Chip, host: &Host) -> bool {
    let look = AssertUnwindSafe(|| {
        memory.with(chip, false, |ftl| host.clone().verify(ftl, "a canary")).unwrap();
    });
    catch_unwind(look).is_err()
}

#[test]
fn canary_a_stale_copy_that_takes_a_new_sequence_number_is_caught() {
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, "page"));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut Device<'_>| {
        (0..3).try_for_each(|content| host.make(ftl, Change::Write(5, content)))
    };
    memory.with(&mut chip, true, work).unwrap();
    assert!(!is_caught(&mut memory, &mut chip.clone(), &host), "nothing is wrong yet");
    let layout = layout_of(&CHIP.geometry);
    let mut frame = vec![0; layout.frame_bytes()];
    let mut read = |chip: &mut Chip, page| {
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(page, main, spare).unwrap();
        layout.open(&frame).ok().map(|header| (header, frame.clone()))
    };
    let pages = (0..CHIP.geometry.pages()).map(PageNumber);
    let (stale, mut bytes) = pages
        .filter_map(|page| read(&mut chip, page))
        .find(|(header, _)| header.records == 5)
        .unwrap();
    // As if garbage collection moved a copy that does not count: it becomes the newest.
    let header = nandina::node::PageHeader { sequence: stale.sequence + 50, ..stale };
    layout.reseal(&mut bytes, &header);
    let last = PageNumber(CHIP.geometry.pages() - CHIP.geometry.pages_per_block);
    assert!(chip.page_is_erased(last));
    chip.corrupt_page(last, |main, spare| {
        let (from, rest) = bytes.split_at(main.len());
        main.copy_from_slice(from);
        spare[..rest.len()].copy_from_slice(rest);
    });
    assert!(is_caught(&mut memory, &mut chip, &host));
}

#[test]
fn canary_a_trim_that_a_mount_undoes_is_caught() {
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, "page"));
    let mut host = Host::new(memory.logical_pages);
    let work = |ftl: &mut Device<'_>| {
        host.make(ftl, Change::Write(5, 1))?;
        host.make(ftl, Change::Trim(5, 1))
    };
    memory.with(&mut chip, true, work).unwrap();
    assert!(!is_caught(&mut memory, &mut chip.clone(), &host), "nothing is wrong yet");
    // As if the mount did not see what says that the page was trimmed.
    let layout = layout_of(&CHIP.geometry);
    let mut newest = None;
    for page in (0..CHIP.geometry.pages()).map(PageNumber) {
        let mut frame = vec![0; layout.frame_bytes()];
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(page, main, spare).unwrap();
        newest = newest.max(layout.open(&frame).ok().map(|header| (header.sequence, page.0)));
    }
    let (_, trim) = newest.unwrap();
    chip.corrupt_page(PageNumber(trim), |main, spare| {
        main.fill(0xFF);
        spare.fill(0xFF);
    });
    assert!(is_caught(&mut memory, &mut chip, &host));
}

#[test]
fn canary_a_chip_that_forgets_programs_is_caught() {
    let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, "page"));
    let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(4));
    memory.with(&mut chip, true, |_| Ok(())).unwrap();
    chip.set_faults(Faults { silent_programs: 20, ..Faults::NONE });
    let work = |ftl: &mut Device<'_>| (0..60).try_for_each(|_| host.change(ftl, &mut numbers));
    let worked = memory.with(&mut chip, false, work);
    assert!(chip.fault_counters().silent > 0);
    // Collection may have found a page that is not there.
    assert!(worked.is_err() || is_caught(&mut memory, &mut chip, &host));
}
