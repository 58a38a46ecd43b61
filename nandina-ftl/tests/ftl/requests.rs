//! Requests of several pages that are written as a whole: cuts, failing blocks, costs, canaries.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nandina::flash::{Capabilities, Geometry, Pairing, Profile};
use nandina_ftl::ftl::{FtlError, logical_pages_apart_max, logical_pages_max, request_pages_max};
use nandina_sim::{Chip, ChipError, Cut, Faults};

use crate::cuts::cut_with;
use crate::host::{Change, Device, Host, Memory, expect_sound};
use crate::numbers::Numbers;
use crate::{CHIP, FAILING, MAPPINGS, Share, seeds};

/// Memory for as many logical pages as leave room for requests of `pages` pages.
///
/// With `apart`, pages that collection moves have a block of their own.
fn memory_if(apart: bool, profile: &Profile, name: &'static str, pages: u32) -> Memory {
    let Profile { geometry, capabilities, .. } = profile;
    let most = match apart {
        true => logical_pages_apart_max(geometry, capabilities),
        false => logical_pages_max(geometry, capabilities),
    };
    let largest = |logical| request_pages_max(geometry, capabilities, logical);
    let logical_pages = (1..=most).rev().find(|&logical| largest(logical) >= pages).unwrap();
    let mut memory = Memory::with_pages(profile, name, logical_pages);
    memory.requests = pages;
    memory
}

fn memory(profile: &Profile, name: &'static str, pages: u32) -> Memory {
    memory_if(false, profile, name, pages)
}

#[test]
fn all_pages_of_a_request_are_old_or_new_after_a_cut_and_a_second_in_the_recovery() {
    let mut cuts = 0;
    let (share, wide) = (Share::one_in(23), Share::one_in(37));
    for name in MAPPINGS {
        for unstable in [0, 1, 2] {
            for apart in [false, true] {
                let memory = &mut memory_if(apart, &CHIP, name, 8);
                cuts += cut_with(memory, CHIP, unstable, share);
            }
        }
    }
    // Pages that share cells, no spare area, and requests of a few pages in larger blocks.
    let pairing = Pairing::DistanceThree;
    let shared = Capabilities { pairing, ..CHIP.capabilities };
    let no_spare = Geometry { spare_bytes: 0, ..CHIP.geometry };
    let large = Geometry { pages_per_block: 32, ..CHIP.geometry };
    for (profile, pages) in [
        (Profile { capabilities: shared, ..CHIP }, 4),
        (Profile { geometry: no_spare, ..CHIP }, 7),
        (Profile { geometry: large, ..CHIP }, 30),
    ] {
        for unstable in [0, 1] {
            for apart in [false, true] {
                let memory = &mut memory_if(apart, &profile, "compact", pages);
                cuts += cut_with(memory, profile, unstable, wide);
            }
        }
    }
    println!("{cuts} first cuts");
    assert!(cuts > 100, "only {cuts} cuts");
}

#[test]
fn a_request_that_commits_without_a_mark_is_caught() {
    let mut memory = memory(&CHIP, "page", 8);
    memory.forgets_marks = true;
    let caught =
        catch_unwind(AssertUnwindSafe(|| cut_with(&mut memory, CHIP, 0, Share::one_in(5))));
    let message = *caught.expect_err("it was not caught").downcast::<String>().unwrap();
    assert!(message.contains("pages of the request are old"), "{message}");
}

/// A device whose pages are all written, and what its host knows.
fn full(memory: &mut Memory) -> (Chip, Host) {
    let (mut chip, mut host) = (Chip::new(CHIP), Host::new(memory.logical_pages));
    let work = |ftl: &mut Device<'_>| {
        (0..host.pages.len() as u32).try_for_each(|at| host.make(ftl, Change::Write(at, at)))
    };
    memory.with(&mut chip, true, work).unwrap();
    (chip, host)
}

#[test]
fn its_last_page_commits_it_and_nothing_before() {
    let mut memory = memory(&CHIP, "compact", 8);
    let (chip, host) = full(&mut memory);
    for start in 0..8 {
        let request = Change::Request(start, 8, 1 << 18);
        let mut whole = chip.clone();
        let mut opened = chip.clone();
        memory.with(&mut opened, false, |_| Ok(())).unwrap();
        // Something else comes first, so that the request begins anywhere in a block.
        let before = |ftl: &mut Device<'_>, host: &mut Host| {
            (0..=start).try_for_each(|at| host.make(ftl, Change::Write(at, 1 << 17)))
        };
        let work = |ftl: &mut Device<'_>| {
            let mut host = host.clone();
            before(ftl, &mut host)?;
            let programs = ftl.flash().counters().programs;
            let done = ftl.statistics();
            host.make(ftl, request)?;
            let moved = ftl.statistics().moved - done.moved;
            assert_eq!(ftl.statistics().host_writes - done.host_writes, 8);
            assert_eq!(ftl.flash().counters().programs - programs, 8 + moved, "a page each");
            Ok(())
        };
        memory.with(&mut whole, false, work).unwrap();
        let operations = whole.counters().operations() - chip.counters().operations();
        for (back, is_new) in [(1, false), (0, true)] {
            let (mut chip, mut host) = (chip.clone(), host.clone());
            // Behind the last program nothing is cut any more.
            chip.cut_at(operations - back, Cut::Before);
            let work = |ftl: &mut Device<'_>| {
                before(ftl, &mut host)?;
                host.make(ftl, request)?;
                host.make(ftl, Change::Write(20, 1 << 19))
            };
            let done = memory.with(&mut chip, false, work);
            assert!(matches!(done, Err(FtlError::Device(ChipError::PowerLost))), "{done:?}");
            chip.restore_power();
            let what = format!("from {start}, {back} before the end");
            memory.with(&mut chip, false, |ftl| host.verify(ftl, &what)).unwrap();
            let expected = Some(if is_new { 1 << 18 } else { 1 << 17 });
            assert_eq!(host.pages[start as usize], expected, "{what}");
        }
    }
}

#[test]
fn a_complete_request_needs_none_of_its_pages_later() {
    // Whichever of its pages is superseded, and its block erased: the others stay new.
    let mut memory = memory(&CHIP, "page", 8);
    let (chip, host) = full(&mut memory);
    for rewritten in 0..8 {
        let (mut chip, mut host) = (chip.clone(), host.clone());
        let erases = chip.erase_counts().collect::<Vec<_>>();
        let work = |ftl: &mut Device<'_>| {
            host.make(ftl, Change::Request(3, 8, 1 << 18))?;
            for at in 0..300 {
                let logical = if at % 2 == 0 { 3 + rewritten } else { 20 + at % 7 };
                host.make(ftl, Change::Write(logical, at))?;
            }
            Ok(())
        };
        memory.with(&mut chip, false, work).unwrap();
        assert!(
            chip.erase_counts().zip(erases).filter(|(after, before)| after > before).count() > 4
        );
        memory.with(&mut chip, false, |ftl| host.verify(ftl, "later")).unwrap();
    }
}

#[test]
fn blocks_that_fail_and_devices_that_give_up_leave_requests_whole() {
    let faults =
        Faults { program_failures: 150, device_errors: 700, unstable_pages: 1, ..Faults::NONE };
    let (mut failures, mut errors) = (0, 0);
    let most = FAILING.capabilities.bad_blocks_max(FAILING.geometry.blocks) as usize;
    for seed in seeds(600, 60) {
        let mut memory = memory(&FAILING, "compact", 8);
        let (mut chip, mut numbers) = (Chip::with_seed(FAILING, seed), Numbers(seed));
        let mut host = Host::new(memory.logical_pages);
        (host.requests, host.checkpoints) = (8, 8);
        memory.with(&mut chip, true, |_| Ok(())).unwrap();
        for session in 0..5 {
            let what = format!("seed {seed}, session {session}");
            let fails = chip.bad_blocks().count() + 1 < most;
            let limited = Faults { program_failures: 0, ..faults };
            chip.set_faults(if fails { faults } else { limited });
            chip.cut_at(300 + u64::from(numbers.below(700)), Cut::ALL[session % 5]);
            let work = |ftl: &mut Device<'_>| {
                for _ in 0..if fails { 25 } else { 100 } {
                    match host.change(ftl, &mut numbers) {
                        Err(FtlError::Device(ChipError::GaveUp)) => host.verify(ftl, &what)?,
                        done => done?,
                    }
                }
                Ok(())
            };
            match memory.with(&mut chip, false, work) {
                Ok(()) | Err(FtlError::Device(ChipError::PowerLost | ChipError::GaveUp)) => {}
                Err(FtlError::WornOut { .. }) => break,
                Err(error) => panic!("{what}: {error}"),
            }
            chip.restore_power();
            chip.set_faults(Faults { device_errors: 0, ..limited });
            let work = |ftl: &mut Device<'_>| {
                host.verify(ftl, &what)?;
                expect_sound(ftl, &what)
            };
            memory.with(&mut chip, false, work).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        failures += chip.fault_counters().program_failures;
        errors += chip.fault_counters().device_errors;
    }
    println!("{failures} failed programs, {errors} errors");
    assert!(failures > 15 && errors > 15, "{failures} failed programs, {errors} errors");
}

#[test]
fn requests_of_the_largest_size_fit_for_ever_and_larger_ones_are_refused() {
    for geometry in [
        CHIP.geometry,
        Geometry { pages_per_block: 32, blocks: 24, ..CHIP.geometry },
        Geometry { pages_per_block: 512, blocks: 18, ..CHIP.geometry },
    ] {
        let profile = Profile { geometry, ..CHIP };
        let capabilities = &profile.capabilities;
        let full = logical_pages_max(&geometry, capabilities);
        assert!(request_pages_max(&geometry, capabilities, full) >= 1, "{geometry:?}");
        assert_eq!(request_pages_max(&geometry, capabilities, full + 1), 0, "{geometry:?}");
        let largest = geometry.pages_per_block.min(256);
        for pages in [2, largest / 2, largest] {
            let mut memory = memory(&profile, "page", pages);
            let most = request_pages_max(&geometry, capabilities, memory.logical_pages);
            assert!(most >= pages && most <= memory.logical_pages);
            let (mut chip, mut numbers) = (Chip::new(profile), Numbers(3));
            let mut host = Host::new(memory.logical_pages);
            let work = |ftl: &mut Device<'_>| {
                let logical_pages = host.pages.len() as u32;
                for at in 0..logical_pages {
                    host.make(ftl, Change::Write(at, at))?;
                }
                for at in 0..3 * geometry.pages() / most {
                    let from = numbers.below(logical_pages - most + 1);
                    host.make(ftl, Change::Request(from, most, 1 << 18 | at))?;
                }
                host.verify(ftl, "full")?;
                expect_sound(ftl, "full")?;
                let before = ftl.flash().counters().programs;
                let bytes = vec![0; (most as usize + 1) * ftl.page_bytes()];
                let refused = ftl.write_pages_atomic(0, &bytes);
                assert_eq!(refused, Err(FtlError::RequestPages { most, given: most + 1 }));
                assert_eq!(ftl.flash().counters().programs, before);
                Ok(())
            };
            let done = memory.with(&mut chip, true, work);
            done.unwrap_or_else(|error| panic!("{geometry:?}, {most} pages: {error}"));
        }
    }
}

#[test]
fn a_request_as_a_whole_costs_no_more_than_its_pages_one_by_one() {
    let geometry = Geometry { pages_per_block: 32, blocks: 64, ..CHIP.geometry };
    let profile = Profile { geometry, ..CHIP };
    for pages in [2, 8, 32] {
        let memory = || memory(&profile, "page", 32);
        let programs = [Change::Row, Change::Request].map(|change| {
            let (mut memory, mut numbers) = (memory(), Numbers(8));
            let (mut chip, mut host) = (Chip::new(profile), Host::new(memory.logical_pages));
            let work = |ftl: &mut Device<'_>| {
                let last = host.pages.len() as u32 / pages;
                for at in 0..6 * last {
                    let place = if at < last { at } else { numbers.below(last) };
                    host.make(ftl, change(place * pages, pages, at))?;
                }
                Ok(ftl.statistics().programmed)
            };
            memory.with(&mut chip, true, work).unwrap()
        });
        println!("{pages} pages: one by one {}, as a whole {} programs", programs[0], programs[1]);
        assert!(programs[1] <= programs[0], "{programs:?}");
    }
}
