//! Random changes against a vector, with and without mounts, on every kind of chip.

use nandina::flash::Missing;
use nandina::flash::profile::{MLC, NOR, PROFILES, SLC};
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::FtlError;
use nandina_ftl::logged::{Logged, Scheme, logical_pages_max, ram_needed};
use nandina_sim::{Chip, Faults};

use crate::even_wear::{expect_even_wear, fills};
use crate::host::{Change, Host, Memory, expect_sound};
use crate::numbers::Numbers;

use crate::{CHIPS, FAILING, SCHEMES};

#[test]
fn pages_read_as_they_were_written() {
    for profile in CHIPS.into_iter().chain([NOR.with_blocks(12), SLC.with_blocks(12)]) {
        for scheme in SCHEMES {
            let mut memory = Memory::new(&profile, scheme);
            let (mut chip, mut numbers) = (Chip::new(profile), Numbers(5));
            let mut host = Host::new(memory.logical_pages);
            for session in 0..12 {
                let what = format!("{scheme:?} on {}, session {session}", profile.key);
                let done = memory.with(&mut chip, session == 0, |ftl| {
                    host.verify(ftl, &what)?;
                    (0..400).try_for_each(|_| host.change(ftl, &mut numbers))?;
                    expect_sound(ftl, &what)?;
                    host.verify(ftl, &what)
                });
                done.unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            let merges = memory.merges;
            assert!(merges.blocks > 50 && merges.records > 1000, "{scheme:?}: {merges:?}");
            assert_eq!(merges.divisions > 0, scheme == Scheme::Dipl, "{scheme:?}: {merges:?}");
        }
    }
}

#[test]
fn every_logical_page_has_room_again_and_again() {
    for profile in CHIPS {
        for scheme in SCHEMES {
            let mut memory = Memory::new(&profile, scheme);
            let mut chip = Chip::new(profile);
            let mut host = Host::new(memory.logical_pages);
            let pages = memory.logical_pages;
            let done = memory.with(&mut chip, true, |ftl| {
                for round in 0..6u8 {
                    for logical in 0..pages {
                        let logical = if round % 2 == 0 { logical } else { pages - 1 - logical };
                        let page = vec![round ^ logical as u8; ftl.page_bytes()];
                        host.make(ftl, Change::Write(logical, page))?;
                    }
                    host.verify(ftl, "full")?;
                    if round == 2 {
                        host.make(ftl, Change::Trim(0, pages))?;
                        host.verify(ftl, "empty")?;
                    }
                }
                expect_sound(ftl, "full")
            });
            done.unwrap_or_else(|error| panic!("{scheme:?} on {}: {error}", profile.key));
        }
    }
}

#[test]
fn blocks_that_fail_lose_nothing() {
    let mut failed = 0;
    for scheme in SCHEMES {
        for seed in 0..12 {
            let mut memory = Memory::new(&FAILING, scheme);
            let mut chip = Chip::with_seed(FAILING, seed);
            chip.set_faults(Faults {
                program_failures: 2000,
                erase_failures: 300,
                unstable_pages: 1,
                ..Faults::NONE
            });
            let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(seed));
            for session in 0..6 {
                let what = format!("{scheme:?}, seed {seed}, session {session}");
                let done = memory.with(&mut chip, session == 0, |ftl| {
                    host.verify(ftl, &what)?;
                    (0..60).try_for_each(|_| host.change(ftl, &mut numbers))?;
                    host.verify(ftl, &what)
                });
                match done {
                    Ok(()) => {}
                    // More blocks failed than the chip's maker expects.
                    Err(FtlError::WornOut { .. }) => break,
                    Err(error) => panic!("{what}: {error}"),
                }
            }
            let faults = chip.fault_counters();
            failed += faults.program_failures + faults.erase_failures;
        }
    }
    assert!(failed > 10, "{failed} blocks failed");
}

#[test]
fn blocks_wear_alike() {
    for scheme in SCHEMES {
        let profile = CHIPS[0];
        let mut memory = Memory::new(&profile, scheme);
        let mut chip = Chip::new(profile);
        let mut host = Host::new(memory.logical_pages);
        let done = memory.with(&mut chip, true, |ftl| {
            for logical in 0..host.pages.len() as u32 {
                host.make(ftl, Change::Write(logical, vec![1; ftl.page_bytes()]))?;
            }
            for round in 0..9000u32 {
                // Only one page is hot.
                let page = round.to_le_bytes().into_iter().cycle().take(ftl.page_bytes());
                host.make(ftl, Change::Write(0, page.collect()))?;
            }
            host.verify(ftl, "worn")
        });
        done.unwrap();
        let counts = nandina_lab::wear::Spread::of(&chip);
        assert!(counts.most < 2 * counts.mean as u32 + 20, "{scheme:?}: {counts:?}");
    }
}

/// The bound is that of the whole project for wear. Each write makes the whole page new.
#[test]
fn skewed_writes_wear_all_blocks_evenly() {
    let profile = CHIPS[0];
    for scheme in SCHEMES {
        let mut chip = Chip::new(profile);
        let mut memory = Memory::new(&profile, scheme);
        let pages = memory.logical_pages;
        memory
            .with(&mut chip, true, |ftl| {
                (0u32..).zip(fills(pages)).try_for_each(|(round, logical)| {
                    let page = round.to_le_bytes().into_iter().cycle().take(ftl.page_bytes());
                    ftl.write(logical, &page.collect::<Vec<u8>>())
                })
            })
            .unwrap();
        expect_even_wear(&chip, &format!("{scheme:?}, {pages} pages"));
    }
}

#[test]
fn chips_without_partial_programs_are_refused() {
    let mut ram = [0; 100];
    for scheme in SCHEMES {
        let refused = Logged::format(&mut Chip::new(MLC), scheme, 10, &mut ram).err();
        let missing = Missing::Programs { needed: 2, allowed: 1 };
        assert_eq!(refused, Some(FtlError::Chip(missing)));
        for profile in PROFILES {
            let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
            let most = logical_pages_max(geometry, capabilities, scheme);
            assert_eq!(most > 0, capabilities.overwrite, "{}", profile.key);
        }
        let most = logical_pages_max(&SLC.geometry, &SLC.capabilities, scheme);
        let refused = Logged::format(&mut Chip::new(SLC), scheme, most + 1, &mut ram).err();
        assert!(matches!(refused, Some(FtlError::TooFewSpareBlocks { .. })), "{refused:?}");
        let refused = Logged::format(&mut Chip::new(SLC), scheme, most, &mut ram).err();
        let needed = ram_needed(&SLC.geometry, most);
        assert_eq!(refused, Some(FtlError::RamTooSmall { needed, given: 100 }));
    }
}

#[test]
fn another_scheme_and_a_blank_chip_are_refused() {
    let profile = CHIPS[0];
    let mut chip = Chip::new(profile);
    let mut memory = Memory::new(&profile, Scheme::Ipl);
    assert_eq!(memory.with(&mut chip, false, |_| Ok(())), Err(FtlError::Blank));
    memory.with(&mut chip, true, |ftl| ftl.write(3, &[7; 512])).unwrap();
    let mut other = Memory::new(&profile, Scheme::Dipl);
    let opened = other.with(&mut chip, false, |_| Ok(()));
    assert!(matches!(opened, Err(FtlError::OtherContent { .. })), "{opened:?}");
    // A format replaces it.
    other
        .with(&mut chip, true, |ftl| ftl.read(3, &mut [0; 512]).map(|held| assert!(!held)))
        .unwrap();
}
