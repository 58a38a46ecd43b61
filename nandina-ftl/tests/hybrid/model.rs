//! Random changes without faults, for every policy.

use nandina_sim::Chip;

use crate::even_wear::{expect_even_wear, fills};
use crate::host::{Change, Device, Host, Memory, expect_sound};
use crate::numbers::Numbers;

use crate::{ALL, BARE, CHIP};

#[test]
fn every_policy_keeps_the_contents_through_changes_and_sessions() {
    for which in ALL {
        let (mut chip, mut numbers) = (Chip::new(CHIP), Numbers(7));
        let mut memory = Memory::new(&CHIP, which);
        let mut host = Host::new(memory.logical_pages);
        for session in 0..8 {
            let what = format!("{which:?}, session {session}");
            memory
                .with(&mut chip, session == 0, |ftl| {
                    host.verify(ftl, &what)?;
                    for _ in 0..400 {
                        host.change(ftl, &mut numbers)?;
                        if numbers.below(40) == 0 {
                            expect_sound(ftl, &what)?;
                        }
                    }
                    host.verify(ftl, &what)
                })
                .unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        println!("{which:?}: {} pages, {:?}", memory.logical_pages, memory.merges);
        let merges = memory.merges;
        assert!(merges.full > 0, "{which:?}: {merges:?}");
        assert_eq!(memory.conversions > 0, which.is_buffered(), "{which:?}");
        if which.merges_in_parts() {
            assert!(merges.switch > 0 && merges.partial > 0, "{which:?}: {merges:?}");
        }
    }
}

#[test]
fn a_full_device_takes_writes_for_ever_and_wears_evenly() {
    for which in ALL {
        let (mut chip, mut numbers) = (Chip::new(CHIP), Numbers(1));
        let mut memory = Memory::new(&CHIP, which);
        let mut host = Host::new(memory.logical_pages);
        memory
            .with(&mut chip, true, |ftl| {
                for logical in 0..host.pages.len() as u32 {
                    host.make(ftl, Change::Write(logical, logical))?;
                }
                for at in 0..4000 {
                    // All but a few go to a quarter of the pages.
                    let pages = host.pages.len() as u32;
                    let most = if at % 64 == 0 { pages } else { pages / 4 };
                    host.make(ftl, Change::Write(numbers.below(most), 1000 + at))?;
                }
                host.verify(ftl, "after all")?;
                let done = ftl.statistics();
                assert_eq!(done.host_writes, 4000 + host.pages.len() as u64);
                println!("{which:?}: {done:?}, {:?}", ftl.merges());
                Ok(())
            })
            .unwrap();
        let wear = chip.wear();
        println!("{which:?}: {wear:?}");
        assert!(f64::from(wear.most) <= 1.2 * wear.mean, "{which:?}: {wear:?}");
    }
}

/// The bound is that of the whole project for wear. Buffer blocks are among the blocks.
#[test]
fn skewed_writes_wear_all_blocks_evenly_behind_a_buffer_as_without() {
    for which in ALL {
        let mut chip = Chip::new(CHIP);
        let mut memory = Memory::new(&CHIP, which);
        let pages = memory.logical_pages;
        memory
            .with(&mut chip, true, |ftl| {
                let bytes = vec![0; ftl.page_bytes()];
                fills(pages).try_for_each(|page| ftl.write(page, &bytes))
            })
            .unwrap();
        expect_even_wear(&chip, &format!("{which:?}, {pages} pages"));
    }
}

#[test]
fn a_mount_reads_what_it_says_and_writes_nothing() {
    for which in ALL {
        let (mut chip, mut numbers) = (Chip::new(CHIP), Numbers(3));
        let mut memory = Memory::new(&CHIP, which);
        let mut host = Host::new(memory.logical_pages);
        for round in 0..4 {
            let work =
                |ftl: &mut dyn Device| (0..200).try_for_each(|_| host.change(ftl, &mut numbers));
            memory.with(&mut chip, round == 0, work).unwrap();
            let before = chip.counters();
            memory.with(&mut chip, false, |_| Ok(())).unwrap();
            let after = chip.counters();
            assert_eq!(after.programs + after.erases, before.programs + before.erases);
            // Three reads a block; each page, its older copy, each trimmed page; 24 of the newest;
            // and twice the page with suspects and trims.
            let geometry = CHIP.geometry;
            let most = u64::from(3 * geometry.blocks + 3 * geometry.pages() + 24 + 2);
            let reads = after.reads - before.reads;
            println!("{which:?}: a mount of {} pages reads {reads}", geometry.pages());
            assert!(reads <= most && reads >= u64::from(geometry.pages() / 2), "{reads}");
        }
    }
}

#[test]
fn trimmed_blocks_are_free_at_once_and_written_in_place_again() {
    for which in BARE {
        let (mut chip, mut memory) = (Chip::new(CHIP), Memory::new(&CHIP, which));
        let mut host = Host::new(memory.logical_pages);
        let work = |ftl: &mut dyn Device| {
            for round in 0..3 {
                for logical in 0..16 {
                    host.make(ftl, Change::Write(logical, round))?;
                }
                host.make(ftl, Change::Trim(0, 16))?;
            }
            host.verify(ftl, "after the trims")?;
            let done = ftl.statistics();
            assert_eq!((done.programmed, done.host_trims), (3 * 16 + 3, 3 * 16), "{which:?}");
            assert_eq!((done.own, done.moved, done.erases), (3, 0, 6), "{which:?}");
            Ok(())
        };
        memory.with(&mut chip, true, work).unwrap();
        memory.with(&mut chip, false, |ftl| host.verify(ftl, "after a mount")).unwrap();
    }
}
