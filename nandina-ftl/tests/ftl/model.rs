//! Random changes without faults, over every mapping.

use nandina::flash::Geometry;
use nandina::flash::profile::Profile;
use nandina_ftl::ftl::FtlError;
use nandina_ftl::mapping::MAPPINGS as ALL;
use nandina_sim::Chip;

use crate::CHIP;
use crate::host::{Change, Host, Memory, expect_sound};
use crate::numbers::Numbers;

#[test]
fn every_mapping_keeps_the_contents_through_changes_and_sessions() {
    for entry in ALL {
        let (mut chip, mut numbers) = (Chip::new(CHIP), Numbers(7));
        let mut memory = Memory::new(&CHIP, entry.name);
        let mut host = Host::new(memory.logical_pages);
        for session in 0..6 {
            let what = format!("{}, session {session}", entry.name);
            memory
                .with(&mut chip, session == 0, |ftl| {
                    host.verify(ftl, &what)?;
                    for _ in 0..250 {
                        host.change(ftl, &mut numbers)?;
                        if numbers.below(20) == 0 {
                            ftl.idle(numbers.below(60))?;
                        }
                    }
                    expect_sound(ftl, &what)?;
                    host.verify(ftl, &what)
                })
                .unwrap();
        }
    }
}

#[test]
fn pages_that_are_read_in_a_row_are_those_that_are_read_one_by_one() {
    // With and without a spare area that holds the header: main data is copied or not.
    for spare_bytes in [CHIP.geometry.spare_bytes, 0] {
        let geometry = Geometry { spare_bytes, ..CHIP.geometry };
        let profile = Profile { geometry, ..CHIP };
        for entry in ALL {
            let (mut chip, mut numbers) = (Chip::new(profile), Numbers(11));
            let mut memory = Memory::new(&profile, entry.name);
            let mut host = Host::new(memory.logical_pages);
            let work = |ftl: &mut crate::host::Device<'_>| {
                for _ in 0..300 {
                    host.change(ftl, &mut numbers)?;
                }
                let (pages, each) = (ftl.logical_pages(), ftl.page_bytes());
                let mut one_by_one = vec![1; pages as usize * each];
                let mut held = Vec::new();
                for (logical, bytes) in (0..).zip(one_by_one.chunks_mut(each)) {
                    held.push(u32::from(ftl.read(logical, bytes)?));
                }
                for _ in 0..20 {
                    let from = numbers.below(pages);
                    let end = from + 1 + numbers.below(pages - from);
                    let row = from as usize..end as usize;
                    let mut bytes = vec![2; row.len() * each];
                    let count = ftl.read_pages(from, &mut bytes)?;
                    assert_eq!(count, held[row.clone()].iter().sum::<u32>(), "{}", entry.name);
                    assert!(bytes == one_by_one[row.start * each..row.end * each]);
                }
                let mut beyond = vec![3; 2 * each];
                let outside = ftl.read_pages(pages - 1, &mut beyond);
                assert!(matches!(outside, Err(FtlError::Outside { .. })), "{outside:?}");
                let part = ftl.read_pages(0, &mut beyond[1..]);
                assert!(matches!(part, Err(FtlError::PageSize { .. })), "{part:?}");
                Ok(held)
            };
            let held = memory.with(&mut chip, true, work).unwrap();
            assert!(held.contains(&0) && held.contains(&1), "{}", entry.name);
        }
    }
}

#[test]
fn a_full_device_takes_writes_for_ever_at_the_stated_write_amplification() {
    let (mut chip, mut numbers) = (Chip::new(CHIP), Numbers(1));
    let mut memory = Memory::new(&CHIP, "page");
    let mut host = Host::new(memory.logical_pages);
    memory
        .with(&mut chip, true, |ftl| {
            for logical in 0..host.pages.len() as u32 {
                host.make(ftl, Change::Write(logical, logical))?;
            }
            for at in 0..5000 {
                let logical = numbers.below(host.pages.len() as u32);
                host.make(ftl, Change::Write(logical, 1000 + at))?;
            }
            host.verify(ftl, "after all")?;
            let done = ftl.statistics();
            assert_eq!(done.host_writes, 5000 + host.pages.len() as u64);
            assert_eq!(done.programmed, done.host_writes + done.moved + done.own);
            let amplification = done.write_amplification_per_mille().unwrap();
            println!("{} of {} pages, {done:?}", host.pages.len(), CHIP.geometry.pages());
            assert!((1000..3000).contains(&amplification), "{amplification}");
            Ok(())
        })
        .unwrap();
    let wear = chip.wear();
    assert!(f64::from(wear.most) <= 1.2 * wear.mean, "{wear:?}");
}

#[test]
fn pages_that_move_in_logical_order_leave_fewer_runs_and_take_a_read_more() {
    let measured = [0, 16].map(|sorted| {
        let (mut chip, mut numbers) = (Chip::new(CHIP), Numbers(1));
        let mut memory = Memory::new(&CHIP, "page");
        memory.order = vec![0; sorted];
        let mut host = Host::new(memory.logical_pages);
        let (mut runs, pages) = (0, host.pages.len() as u32);
        let work = |ftl: &mut crate::host::Device<'_>| {
            for at in 0..20 * pages {
                let logical = if at < pages { at } else { numbers.below(pages / 4) };
                host.make(ftl, Change::Write(logical, at))?;
                if at >= 10 * pages {
                    ftl.mapping().walk(&mut |_| runs += 1);
                }
            }
            host.verify(ftl, "after all")?;
            Ok(ftl.statistics().moved)
        };
        let moved = memory.with(&mut chip, true, work).unwrap();
        (runs, moved, chip.counters().reads)
    });
    println!("runs, moved pages, reads by pages sorted at a time: {measured:?}");
    let [written, sorted] = measured;
    assert!(sorted.0 < written.0 * 9 / 10, "{measured:?}");
    // A read for each page moved, or two; and a few of pages of the FTL's own.
    assert!(written.2 < written.1 * 11 / 10 && sorted.2 < sorted.1 * 21 / 10, "{measured:?}");
}

#[test]
fn a_mount_reads_what_it_says() {
    let (mut chip, mut numbers) = (Chip::new(CHIP), Numbers(3));
    let mut memory = Memory::new(&CHIP, "compact");
    let mut host = Host::new(memory.logical_pages);
    let mut reads = |chip: &mut Chip, ends: bool| {
        let before = chip.counters();
        let work = |ftl: &mut crate::host::Device<'_>| {
            for _ in 0..300 {
                host.change(ftl, &mut numbers)?;
            }
            Ok(())
        };
        memory.with(chip, before.programs == 0, work).unwrap();
        if ends {
            let mut map = vec![0; 4096];
            let space = nandina_ftl::ftl::space_of(
                &CHIP.geometry,
                &CHIP.capabilities,
                memory.logical_pages,
            );
            let map = nandina_ftl::mapping::Compact::new(space, &mut map).unwrap();
            let mut ram = vec![0; 4096];
            let mut ftl =
                nandina_ftl::ftl::Ftl::open(&mut *chip, map, memory.logical_pages, &mut ram)
                    .unwrap();
            host.make(&mut ftl, Change::Write(0, 1 << 18)).unwrap();
            ftl.close().unwrap();
        }
        let before = chip.counters();
        memory.with(chip, false, |_| Ok(())).unwrap();
        let after = chip.counters();
        assert_eq!(after.programs + after.erases, before.programs + before.erases);
        after.reads - before.reads
    };
    let geometry = CHIP.geometry;
    // Each written page once, its older copy once more; seven reads a block; 24 of the newest; the
    // list of trims, the session page, and two reads of each page that was trimmed.
    let most = u64::from(2 * geometry.pages() + 7 * geometry.blocks + 24 + 4 + geometry.pages());
    for ends in [false, true, false, true] {
        let reads = reads(&mut chip, ends);
        println!("a mount of {} pages reads {reads}, at most {most}", geometry.pages());
        assert!(reads <= most && reads >= u64::from(geometry.pages() / 2), "{reads}");
    }
}
