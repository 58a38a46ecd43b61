//! The smallest chips, mistakes of the caller, and the RAM of the maps.

use nandina::flash::profile::{NOR, Profile, SLC};
use nandina::flash::{Capabilities, Geometry, Pairing};
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::FtlError;
use nandina_ftl::hybrid::{
    Bast, Block, Buffer, Conversions, Fast, Hybrid, Policy, SequentialRule, Transit, blocks_needed,
    logical_pages_max, map_bytes, ram_needed,
};
use nandina_sim::{Chip, TINY};

use crate::host::{Change, Device, Host, Memory, Which};
use crate::numbers::Numbers;

/// A chip of which the host uses a part.
const PART: Profile = TINY.with_blocks(48);

const FAST: Fast = Fast { log_blocks: 2, sequential: SequentialRule::FirstPage };

/// Writes every page of the chip's whole space many times.
///
/// The chip stops a caller that loops.
fn fill(profile: Profile, which: Which) {
    let (mut chip, mut numbers) = (Chip::new(profile), Numbers(5));
    chip.limit_operations(Some(1_000_000));
    let mut memory = Memory::new(&profile, which);
    let most = memory.logical_pages;
    let mut host = Host::new(most);
    memory
        .with(&mut chip, true, |ftl| {
            for logical in 0..most {
                host.make(ftl, Change::Write(logical, logical))?;
            }
            for at in 0..200 {
                host.make(ftl, Change::Write(numbers.below(most), 100 + at))?;
            }
            host.verify(ftl, profile.key)
        })
        .unwrap_or_else(|error| panic!("{:?}, {which:?}, {most}: {error}", profile.geometry));
}

/// Fills a chip, or expects a refusal with the number of blocks that are needed.
fn fill_or_refuse<P: Policy>(profile: Profile, policy: P, which: Which) -> bool {
    let (geometry, capabilities) = (profile.geometry, profile.capabilities);
    let most = logical_pages_max(&geometry, &capabilities, &policy);
    if most > 0 {
        fill(profile, which);
    }
    let found = Hybrid::format(Chip::new(profile), policy, most + 1, &mut [0; 1 << 16]).err();
    let needed = blocks_needed(&geometry, &capabilities, &policy, most + 1);
    let expected = FtlError::TooFewSpareBlocks { logical_pages_max: most, blocks_needed: needed };
    assert_eq!(found, Some(expected));
    let most_with =
        |blocks| logical_pages_max(&Geometry { blocks, ..geometry }, &capabilities, &policy);
    assert!(most_with(needed) > most && most_with(needed - 1) <= most);
    most > 0
}

#[test]
fn every_small_geometry_progresses_with_its_whole_space_or_is_refused_with_a_number() {
    let (mut filled, mut refused) = (0, 0);
    let shared = Buffer { ahead: 1, ..Buffer::improved(1, 24, 4) };
    let over_block = Transit { over: Block, buffer: Buffer::as_printed(1) };
    let over_bast = Transit { over: Bast { log_blocks: 1 }, buffer: shared };
    let over_fast = Transit { over: FAST, buffer: shared };
    let over = |buffer| Which::OverFast(2, FAST.sequential, buffer);
    for pages_per_block in [1, 2, 4, 8, 16] {
        for blocks in (1..12).chain([16, 64]) {
            for pairing in [Pairing::None, Pairing::DistanceThree, Pairing::WordLines(3)] {
                let geometry = Geometry { blocks, pages_per_block, ..TINY.geometry };
                let capabilities = Capabilities { pairing, ..TINY.capabilities };
                let profile = Profile { geometry, capabilities, ..TINY };
                for progresses in [
                    fill_or_refuse(profile, Block, Which::Block),
                    fill_or_refuse(profile, Bast { log_blocks: 1 }, Which::Bast(1)),
                    fill_or_refuse(profile, FAST, Which::Fast(2, FAST.sequential)),
                    fill_or_refuse(profile, over_block, Which::OverBlock(over_block.buffer)),
                    fill_or_refuse(profile, over_bast, Which::OverBast(1, shared)),
                    fill_or_refuse(profile, over_fast, over(shared)),
                ] {
                    filled += u32::from(progresses);
                    refused += u32::from(!progresses);
                }
            }
        }
    }
    println!("{filled} filled, {refused} refused");
    assert!(filled > 100 && refused > 50, "{filled} filled, {refused} refused");
    let most = logical_pages_max(&TINY.geometry, &TINY.capabilities, &FAST);
    assert_eq!(most, 12, "of the 32 pages of the smallest chip");
}

#[test]
fn a_chip_without_a_spare_area_keeps_the_header_in_its_pages() {
    let printed = Which::OverFast(2, FAST.sequential, Buffer::as_printed(2));
    let fast = Which::Fast(3, SequentialRule::Continues);
    for which in [Which::Block, Which::Bast(2), fast, printed] {
        fill(NOR.with_blocks(16), which);
    }
}

/// Fills `per_cent` of the space, and then replaces pages at random for several times that.
fn fill_in_part(which: Which, per_cent: u32) -> Conversions {
    let (mut chip, mut numbers) = (Chip::new(PART), Numbers(7));
    chip.limit_operations(Some(10_000_000));
    let mut memory = Memory::new(&PART, which);
    let pages = memory.logical_pages * per_cent / 100;
    let mut host = Host::new(memory.logical_pages);
    let what = format!("{which:?}, {pages} of {} pages", memory.logical_pages);
    let work = |ftl: &mut dyn Device| {
        for at in 0..6 * pages {
            let logical = if at < pages { at } else { numbers.below(pages) };
            host.make(ftl, Change::Write(logical, at))?;
            if at % 5 == 0 {
                ftl.idle(200)?;
            }
        }
        host.verify(ftl, &what)?;
        Ok(ftl.conversions())
    };
    memory.with(&mut chip, true, work).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Nothing is lost, and conversions and merges never wait for each other, however full it is.
#[test]
fn nothing_is_lost_at_60_to_100_per_cent() {
    let rule = SequentialRule::FirstPage;
    let printed = Buffer::as_printed(3);
    // In blocks of four pages each page would be a run.
    let improved = Buffer::improved(3, 128, PART.geometry.pages_per_block);
    let improved = Buffer { passes_from: printed.passes_from, ..improved };
    for buffer in [printed, improved] {
        for which in [
            Which::OverBlock(buffer),
            Which::OverBast(2, buffer),
            Which::OverFast(2, rule, buffer),
            Which::OverFast(3, SequentialRule::Continues, buffer),
        ] {
            for per_cent in [60, 70, 80, 90, 100] {
                let conversions = fill_in_part(which, per_cent);
                assert!(conversions.blocks > 50, "{which:?}, {per_cent} %: {conversions:?}");
            }
        }
    }
}

#[test]
fn mistakes_are_refused_before_anything_is_programmed() {
    let most = logical_pages_max(&TINY.geometry, &TINY.capabilities, &FAST);
    let needed = ram_needed(&TINY.geometry, &TINY.capabilities, &FAST, most);
    let (mut chip, mut ram) = (Chip::new(TINY), vec![0; needed]);

    let found = Hybrid::format(&mut chip, FAST, most, &mut ram[..needed - 1]).err();
    assert_eq!(found, Some(FtlError::RamTooSmall { needed, given: needed - 1 }));
    let few = Fast { log_blocks: 1, ..FAST };
    let found = Hybrid::format(&mut chip, few, most, &mut ram).err();
    assert_eq!(found, Some(FtlError::LogBlocks { needed: 2, given: 1 }));
    let found = Hybrid::format(&mut chip, Bast { log_blocks: 0 }, most, &mut ram).err();
    assert_eq!(found, Some(FtlError::LogBlocks { needed: 1, given: 0 }));
    assert_eq!(Hybrid::open(&mut chip, FAST, most, &mut ram).err(), Some(FtlError::Blank));
    assert_eq!(chip.counters().programs, 0);

    let mut ftl = Hybrid::format(&mut chip, FAST, most, &mut ram).unwrap();
    let outside = || Err(FtlError::Outside { logical_pages: most });
    assert_eq!(ftl.write(most, &[0; 512]), outside());
    assert_eq!(ftl.read(most, &mut [0; 512]).map(drop), outside());
    assert_eq!((ftl.trim(0, 0), ftl.trim(1, most), ftl.trim(2, u32::MAX)), {
        (outside(), outside(), outside())
    });
    let size = || Err(FtlError::PageSize { expected: 512, given: 511 });
    assert_eq!(ftl.write(0, &[0; 511]), size());
    assert_eq!(ftl.read(0, &mut [0; 511]).map(drop), size());
    ftl.write(most - 1, &[7; 512]).unwrap();

    let found = Hybrid::open(&mut chip, FAST, most - 4, &mut ram).err();
    assert_eq!(found, Some(FtlError::LogicalPages { found: most - 1, given: most - 4 }));
    // Another policy reads nothing of it.
    let found = Hybrid::open(&mut chip, Bast { log_blocks: 2 }, most, &mut ram).err();
    assert_eq!(found, Some(FtlError::OtherContent { system: 67 }));
    let mut ftl = Hybrid::open(&mut chip, FAST, most, &mut ram).unwrap();
    assert!(ftl.read(most - 1, &mut [0; 512]).unwrap());
}

#[test]
fn hybrid_maps_are_a_fraction_of_a_page_map() {
    let geometry = Geometry { blocks: 8192, ..SLC.geometry };
    let capabilities = SLC.capabilities;
    let of_page_map = |bytes: usize| bytes as f64 / (4.0 * f64::from(geometry.pages()));
    let mut before = 0.0;
    for log_blocks in [0, 4, 16, 64, 512] {
        let bytes = match log_blocks {
            0 => {
                let most = logical_pages_max(&geometry, &capabilities, &Block);
                map_bytes(&geometry, &capabilities, &Block, most)
            }
            _ => {
                let policy = Fast { log_blocks, ..FAST };
                let most = logical_pages_max(&geometry, &capabilities, &policy);
                map_bytes(&geometry, &capabilities, &policy, most)
            }
        };
        let share = of_page_map(bytes);
        println!("{log_blocks} log blocks: {bytes} bytes, {:.3} of a page map", share);
        assert!(share > before && share < 0.437, "{log_blocks}: {share}");
        before = share;
    }
}
