//! Damaged bytes, and pages that are sealed and say nonsense.
//!
//! They give errors, never a panic or an endless loop.

use nandina::flash::{Flash, PageNumber};
use nandina::log::layout_of;
use nandina::node::PageHeader;
use nandina_sim::{Chip, ChipError};

use crate::cuts::with_room;
use crate::host::{Change, Host};
use crate::numbers::Numbers;
use crate::{CHIP, seeds};
use nandina_ftl::ftl::FtlError;

/// Numbers of the pages that say something, and numbers beside them.
const RECORDS: [u32; 11] = [
    0,
    1,
    77,
    u32::MAX,
    u32::MAX - 1,
    u32::MAX - 2,
    u32::MAX - 3,
    u32::MAX - 4,
    u32::MAX - 5,
    u32::MAX - 6,
    u32::MAX - 7,
];

/// Damages a page: random bytes, or a sealed page that was never written.
fn damage(chip: &mut Chip, numbers: &mut Numbers) {
    let layout = layout_of(&CHIP.geometry);
    // Every fourth time one that a directory may be in.
    let pages = if numbers.below(4) == 0 { 16 } else { chip.profile().geometry.pages() };
    let page = PageNumber(numbers.below(pages));
    let mut frame = vec![0; layout.frame_bytes()];
    let (main, spare) = frame.split_at_mut(layout.page_bytes());
    chip.read(page, main, spare).unwrap();
    match layout.open(&frame) {
        Ok(header) if numbers.below(4) > 0 => {
            let sequence = match numbers.below(3) {
                0 => header.sequence,
                1 => header.sequence + u64::from(numbers.below(600)),
                _ => u64::from(numbers.below(600)),
            };
            let medium = layout.medium(&frame);
            let records = RECORDS[numbers.below(RECORDS.len() as u32) as usize];
            let lowest = numbers.below(3) as u8;
            for _ in 0..numbers.below(20) {
                let most = if numbers.below(2) == 0 { 40 } else { 512 };
                let at = numbers.below(most);
                frame[at as usize] = numbers.below(256) as u8;
            }
            let header = PageHeader { sequence, records, lowest, ..header };
            layout.seal(&mut frame, &medium, &header);
        }
        _ => {
            for _ in 0..=numbers.below(8) {
                let at = numbers.below(frame.len() as u32);
                frame[at as usize] = numbers.below(256) as u8;
            }
        }
    }
    chip.corrupt_page(page, |main, spare| {
        let (from, rest) = frame.split_at(main.len());
        main.copy_from_slice(from);
        spare[..rest.len()].copy_from_slice(rest);
    });
}

#[test]
fn damaged_chips_give_errors_and_never_a_panic_or_an_endless_loop() {
    let (profile, mut memory) = with_room(CHIP, "compact", false);
    let mut host = Host::new(memory.logical_pages);
    host.checkpoints = 8;
    let (mut used, mut numbers) = (Chip::new(profile), Numbers(8));
    let work = |ftl: &mut crate::host::Device<'_>| {
        (0..200).try_for_each(|_| host.change(ftl, &mut numbers))?;
        assert!(ftl.has_checkpoint());
        Ok(())
    };
    memory.with(&mut used, true, work).unwrap();
    let (mut opened, mut refused) = (0, 0);
    for seed in seeds(20_000, 1000) {
        let (mut chip, mut numbers) = (used.clone(), Numbers(seed));
        for _ in 0..=numbers.below(16) {
            damage(&mut chip, &mut numbers);
        }
        chip.limit_operations(Some(60_000));
        let pages = memory.logical_pages;
        let looked = memory.with(&mut chip, false, |ftl| {
            let mut bytes = [0; 512];
            let ended = |error: Option<FtlError<ChipError>>| {
                let error = error
                    .filter(|error| matches!(error, FtlError::Device(ChipError::TooMany { .. })));
                assert_eq!(error, None, "seed {seed}");
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
            ended(ftl.checkpoint().err());
            ended(ftl.idle(40).err());
            ended(ftl.check().err());
            Ok(())
        });
        match looked {
            Ok(()) => opened += 1,
            Err(error) => {
                let loops = matches!(error, FtlError::Device(ChipError::TooMany { .. }));
                assert!(!loops, "seed {seed}");
                refused += 1;
            }
        }
    }
    println!("{opened} opened, {refused} refused");
    assert!(opened > 100 && refused > 100, "{opened} opened, {refused} refused");
}
