//! Rule 16, reads of a part of a page: what they return, what they cost, each way to break it.

use nandina::flash::profile::NOR;
use nandina::flash::{BlockNumber, Capabilities, Flash, NorPages, PageNumber, Profile, Reading};
use nandina::store::VmOw;
use nandina::{Index, Options, ram_needed};
use nandina_sim::{Chip, ChipError, Cut, Faults, NorChip, Rule, TINY, Tear};

const PAGE: PageNumber = PageNumber(2);

/// The chip for exhaustive tests, which has an ECC, with such reads.
const PARTLY: Profile =
    Profile { capabilities: Capabilities { part_reads: true, ..TINY.capabilities }, ..TINY };

/// A chip with a page whose bytes are their own place.
fn programmed(profile: Profile) -> (Chip, Vec<u8>) {
    let mut chip = Chip::new(profile);
    let main: Vec<u8> = (0..profile.geometry.page_bytes).map(|at| at as u8).collect();
    chip.program(PAGE, &main, &[]).unwrap();
    (chip, main)
}

#[test]
fn a_part_is_at_its_place_and_costs_its_own_bytes() {
    let (mut chip, main) = programmed(NOR);
    for part in [0..1, 7..25, 0..256, 255..256] {
        let before = chip.clone();
        let mut found = vec![0; 256];
        assert_eq!(chip.read_part(PAGE, part.clone(), &mut found), Ok(Reading::Clean));
        assert_eq!(found[part.clone()], main[part.clone()]);
        // Whoever relies on the others notices.
        let others = found[..part.start].iter().chain(&found[part.end..]);
        assert!(others.copied().all(|byte| byte == 0xA5), "{part:?}");
        let counters = chip.counters() - before.counters();
        assert_eq!((counters.reads, counters.operations()), (1, 1));
        assert_eq!(counters.bytes_read, part.len() as u64);
        let ns = chip.time().read_ns - before.time().read_ns;
        assert_eq!(ns, 500 + 100 * part.len() as u64);
    }
}

#[test]
fn a_chip_without_such_reads_reads_the_page() {
    let (mut chip, main) = programmed(TINY);
    let before = chip.clone();
    let mut found = vec![0; 512];
    chip.read_part(PAGE, 3..9, &mut found).unwrap();
    assert_eq!(found, main);
    assert_eq!((chip.counters() - before.counters()).bytes_read, 512);
    assert_eq!(chip.time().read_ns - before.time().read_ns, TINY.page_read_ns());
}

#[test]
fn each_way_to_break_it_is_told_and_is_not_counted() {
    let (mut chip, _) = programmed(PARTLY);
    let before = chip.counters();
    for (page, start, end, bytes, broken) in [
        (2, 0, 0, 512, Rule::Bounds),
        (2, 9, 3, 512, Rule::Bounds),
        (2, 0, 513, 512, Rule::Bounds),
        (2, 512, 513, 512, Rule::Bounds),
        (32, 0, 1, 512, Rule::Bounds),
        (2, 0, 1, 511, Rule::WholePages),
    ] {
        let read = chip.read_part(PageNumber(page), start..end, &mut vec![0; bytes]);
        match read.unwrap_err() {
            ChipError::Rule { rule, evidence } => {
                assert_eq!(rule, broken, "{page} {start} {end}: {evidence}");
            }
            other => panic!("no rule is broken: {other}"),
        }
    }
    assert_eq!(chip.counters(), before);
    chip.cut_at(0, Cut::Before);
    assert_eq!(chip.read_part(PAGE, 0..1, &mut [0; 512]), Err(ChipError::PowerLost));
}

#[test]
fn it_fails_with_its_page_and_is_unstable_with_it() {
    let (mut chip, _) = programmed(PARTLY);
    chip.corrupt_page(PAGE, |main, _| main[100] ^= 1);
    // A changed cell is content, and no wrong bit that an ECC would notice.
    assert_eq!(chip.read_part(PAGE, 0..1, &mut [0; 512]), Ok(Reading::Clean));
    // Bits of an erase that was cut come and go.
    let (mut chip, _) = programmed(Profile { ecc: NOR.ecc, ..PARTLY });
    chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
    chip.cut_at(0, Cut::Inside(Tear::Mixture));
    chip.erase(BlockNumber(0)).unwrap_err();
    chip.restore_power();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let mut found = [0; 512];
        chip.read_part(PAGE, 0..8, &mut found).unwrap();
        seen.insert(found[..8].to_vec());
    }
    assert!(seen.len() > 1, "{} contents", seen.len());
}

#[test]
fn a_nor_flash_is_read_in_part() {
    let mut pages = NorPages::multiwrite(NorChip::new(Chip::new(NOR)).unwrap(), 256).unwrap();
    assert!(pages.capabilities().part_reads);
    let main: Vec<u8> = (0..=255).collect();
    pages.program(PAGE, &main, &[]).unwrap();
    let mut found = [0; 256];
    pages.read_part(PAGE, 30..35, &mut found).unwrap();
    assert_eq!(found[30..35], [30, 31, 32, 33, 34]);
    assert_eq!((found[29], found[35]), (0, 0), "no more than that is read");
    assert_eq!(pages.into_inner().chip().counters().bytes_read, 5);
}

#[test]
fn an_append_is_read_back_alone() {
    let changed = |part_reads| {
        let capabilities = Capabilities { part_reads, ..NOR.capabilities };
        let mut chip = Chip::new(Profile { capabilities, ..NOR });
        let options = Options::new(4, 4).verify();
        let mut ram = vec![0; ram_needed::<VmOw>(&NOR.geometry, &options)];
        let mut index = Index::<_, VmOw>::format(&mut chip, &options, &mut ram).unwrap();
        for key in 0..200_u32 {
            index.insert(&key.to_be_bytes(), &[7; 4]).unwrap();
        }
        chip.counters()
    };
    let (whole, parts) = (changed(false), changed(true));
    assert!(whole.overwrites > 100, "{whole:?}");
    assert_eq!((parts.reads, parts.overwrites), (whole.reads, whole.overwrites));
    // Of each page that is read back after an append, the append alone.
    let saved = whole.bytes_read - parts.bytes_read;
    assert!(saved > 230 * whole.overwrites, "{saved} bytes, {whole:?}");
}
