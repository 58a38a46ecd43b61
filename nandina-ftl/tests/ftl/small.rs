//! The smallest chips, and mistakes of the caller: a number, never a hang.

use nandina::flash::profile::{NOR, Profile, SLC};
use nandina::flash::{Capabilities, Geometry, Pairing};
use nandina_ftl::ftl::{
    Ftl, FtlError, blocks_needed, logical_page_bytes, logical_pages_max, ram_needed, space_of,
};
use nandina_ftl::mapping::{Compact, Page, Refusal, emt};
use nandina_sim::{Chip, TINY};

use crate::host::{Change, Host, Memory};
use crate::numbers::Numbers;

/// Writes every page of the chip's whole space many times.
///
/// The chip stops a caller that loops.
fn fill(profile: Profile) {
    let most = logical_pages_max(&profile.geometry, &profile.capabilities);
    let (mut chip, mut numbers) = (Chip::new(profile), Numbers(5));
    chip.limit_operations(Some(400_000));
    let mut memory = Memory::new(&profile, "compact");
    let mut host = Host::new(most);
    memory
        .with(&mut chip, true, |ftl| {
            for logical in 0..most {
                host.make(ftl, Change::Write(logical, logical))?;
            }
            for at in 0..400 {
                host.make(ftl, Change::Write(numbers.below(most), 100 + at))?;
            }
            host.verify(ftl, profile.key)
        })
        .unwrap_or_else(|error| panic!("{:?}, {most} pages: {error}", profile.geometry));
}

#[test]
fn every_small_geometry_progresses_with_its_whole_space_or_is_refused_with_a_number() {
    let mut refused = 0;
    for pages_per_block in [1, 2, 4, 8, 16] {
        for blocks in 1..14 {
            for pairing in [Pairing::None, Pairing::DistanceThree] {
                let geometry = Geometry { blocks, pages_per_block, ..TINY.geometry };
                let capabilities = Capabilities { pairing, ..TINY.capabilities };
                let profile = Profile { geometry, capabilities, ..TINY };
                let most = logical_pages_max(&geometry, &capabilities);
                if most > 0 {
                    fill(profile);
                } else {
                    refused += 1;
                }
                let space = space_of(&geometry, &capabilities, most + 1);
                let (mut ram, mut memory) = ([0; 4096], [0; 4096]);
                let map = Page::new(space, &mut memory).unwrap();
                let found = Ftl::format(Chip::new(profile), map, most + 1, &mut ram).err();
                let needed = blocks_needed(&geometry, &capabilities, most + 1);
                let expected =
                    FtlError::TooFewSpareBlocks { logical_pages_max: most, blocks_needed: needed };
                assert_eq!(found, Some(expected));
                if needed < u32::MAX {
                    let larger = Geometry { blocks: needed, ..geometry };
                    assert!(logical_pages_max(&larger, &capabilities) > most);
                    let smaller = Geometry { blocks: needed - 1, ..geometry };
                    assert!(logical_pages_max(&smaller, &capabilities) <= most);
                }
            }
        }
    }
    assert!(refused > 5, "only {refused} chips were too small");
    println!("tiny: {} logical pages of 32", logical_pages_max(&TINY.geometry, &TINY.capabilities));
    assert!(logical_pages_max(&TINY.geometry, &TINY.capabilities) >= 8);
}

#[test]
fn a_chip_of_512_blocks_has_room_for_93_per_cent_of_its_pages() {
    let (geometry, capabilities) = (SLC.geometry, SLC.capabilities);
    let most = logical_pages_max(&geometry, &capabilities);
    let per_mille = u64::from(most) * 1000 / u64::from(geometry.pages());
    let bytes = ram_needed(&geometry);
    println!("slc: {most} of {} pages, {bytes} bytes of RAM", geometry.pages());
    assert!((930..960).contains(&per_mille), "{per_mille}");
    assert!(bytes < 25 << 9, "{bytes} bytes");
    // Blocks of 32 pages, where a collected block may gain a single page.
    let geometry = Geometry { blocks: 40, pages_per_block: 32, ..TINY.geometry };
    fill(Profile { geometry, ..TINY });
}

#[test]
fn a_chip_without_a_spare_area_keeps_the_header_in_its_pages() {
    let profile = NOR.with_blocks(16);
    assert_eq!(logical_page_bytes(&profile.geometry), 216);
    fill(profile);
}

#[test]
fn mistakes_are_refused_before_anything_is_programmed() {
    let most = logical_pages_max(&TINY.geometry, &TINY.capabilities);
    let mut chip = Chip::new(TINY);
    let (mut ram, mut memory) = ([0; 2048], [0; 2048]);
    fn map(memory: &mut [u8]) -> Compact<'_> {
        let most = logical_pages_max(&TINY.geometry, &TINY.capabilities);
        Compact::new(space_of(&TINY.geometry, &TINY.capabilities, most), memory).unwrap()
    }

    let needed = ram_needed(&TINY.geometry);
    let found = Ftl::format(&mut chip, map(&mut memory), most, &mut ram[..needed - 1]).err();
    assert_eq!(found, Some(FtlError::RamTooSmall { needed, given: needed - 1 }));
    let found = Ftl::open(&mut chip, map(&mut memory), most, &mut ram).err();
    assert_eq!(found, Some(FtlError::Blank));
    let (expected, given) = (
        space_of(&TINY.geometry, &TINY.capabilities, most - 1),
        space_of(&TINY.geometry, &TINY.capabilities, most),
    );
    let found = Ftl::format(&mut chip, map(&mut memory), most - 1, &mut ram).err();
    assert_eq!(found, Some(FtlError::OtherSpace { expected, given }));
    assert_eq!(chip.counters().programs, 0);

    let mut ftl = Ftl::format(&mut chip, map(&mut memory), most, &mut ram[..needed]).unwrap();
    let outside = || Err(FtlError::Outside { logical_pages: most });
    assert_eq!(ftl.write(most, &[0; 512]), outside());
    assert_eq!(ftl.read(most, &mut [0; 512]).map(drop), outside());
    assert_eq!((ftl.trim(0, 0), ftl.trim(1, most)), (outside(), outside()));
    assert_eq!(ftl.trim(2, u32::MAX), outside());
    let size = || Err(FtlError::PageSize { expected: 512, given: 511 });
    assert_eq!(ftl.write(0, &[0; 511]), size());
    assert_eq!(ftl.read(0, &mut [0; 511]).map(drop), size());
    ftl.write(most - 1, &[7; 512]).unwrap();

    let fewer =
        Page::new(space_of(&TINY.geometry, &TINY.capabilities, most - 1), &mut memory).unwrap();
    let found = Ftl::open(&mut chip, fewer, most - 1, &mut ram).err();
    assert_eq!(found, Some(FtlError::LogicalPages { found: most - 1, given: most - 1 }));

    // An index on the chip is not overwritten by an open, and is by a format.
    use nandina::store::Wandering;
    let options = nandina::Options::new(4, 4);
    let mut index_ram = [0; 8192];
    nandina::Index::<_, Wandering>::format(&mut chip, &options, &mut index_ram).unwrap();
    let before = chip.counters().programs;
    let found = Ftl::open(&mut chip, map(&mut memory), most, &mut ram).err();
    assert!(matches!(found, Some(FtlError::OtherContent { .. })), "{found:?}");
    assert_eq!(chip.counters().programs, before);
    Ftl::format(&mut chip, map(&mut memory), most, &mut ram).unwrap();
    Ftl::open(&mut chip, map(&mut memory), most, &mut ram).unwrap();
}

#[test]
fn a_mapping_whose_memory_is_full_refuses_and_nothing_is_programmed() {
    let most = logical_pages_max(&TINY.geometry, &TINY.capabilities);
    let mut chip = Chip::new(TINY);
    let (mut ram, mut memory) = ([0; 2048], [0; 3 * emt::Arena::NODE]);
    let space = space_of(&TINY.geometry, &TINY.capabilities, most);
    let map = emt::Emt::new(space, emt::Arena::new(&mut memory));
    let mut ftl = Ftl::format(&mut chip, map, most, &mut ram).unwrap();
    let refused = loop {
        let done = ftl.statistics();
        assert!(done.host_writes < 32, "it was never refused");
        // Logical pages that are no neighbours are extents of their own.
        let logical = (done.host_writes as u32 * 2) % most;
        if let Err(error) = ftl.write(logical, &[done.host_writes as u8; 512]) {
            assert_eq!(ftl.statistics(), done, "something was programmed");
            break error;
        }
    };
    assert!(matches!(refused, FtlError::Mapping(Refusal::Full { .. })), "{refused}");
    let written = ftl.statistics().host_writes as u32;
    let mut page = [0; 512];
    for at in 0..written {
        assert!(ftl.read(at * 2, &mut page).unwrap());
        assert_eq!(page, [at as u8; 512]);
    }
    // What is there can be replaced, and a neighbour joins an extent only where pages are in a row.
    ftl.trim(0, 1).unwrap();
    assert!(!ftl.read(0, &mut page).unwrap());
}
