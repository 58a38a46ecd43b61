//! An index in place (`btree`) on an FTL on raw NAND, through cuts.

use std::collections::BTreeMap;

use nandina::flash::{Flash, Geometry, PageNumber, Profile};
use nandina::store::BTree;
use nandina::{Index, Options, key, ram_needed as index_ram_needed};
use nandina_ftl::ftl::{BadGroups, Disk, Ftl, logical_pages_max, ram_needed, space_of};
use nandina_ftl::mapping::Compact;
use nandina_sim::{Chip, Cut, Faults, TINY};

use crate::is_full;
use crate::numbers::Numbers;

const NAND: Profile =
    Profile { geometry: Geometry { blocks: 32, pages_per_block: 16, ..TINY.geometry }, ..TINY };

const GROUP: u32 = 16;

type Content = BTreeMap<u32, u64>;

/// Opens the disk on the chip and calls `work`, which ends if power does.
fn with_disk<T>(
    chip: &mut Chip,
    is_new: bool,
    work: impl FnOnce(&mut Disk<Ftl<'_, &mut Chip, Compact<'_>>>) -> Option<T>,
) -> Option<T> {
    let pages = logical_pages_max(&NAND.geometry, &NAND.capabilities);
    let space = space_of(&NAND.geometry, &NAND.capabilities, pages);
    let mut memory = vec![0; Compact::bytes_for(space, pages as usize)];
    let mut ram = vec![0; ram_needed(&NAND.geometry)];
    let map = Compact::new(space, &mut memory).unwrap();
    let make = if is_new { Ftl::format } else { Ftl::open };
    let ftl = make(chip, map, pages, &mut ram).ok()?;
    work(&mut Disk::new(ftl, GROUP).unwrap())
}

/// Changes the index and `content`, until power fails.
///
/// Returns the change that did not return.
fn change(
    chip: &mut Chip,
    content: &mut Content,
    numbers: &mut Numbers,
    most: u32,
) -> Option<(u32, Option<u64>)> {
    let options = Options::new(4, 8);
    let mut pending = None;
    with_disk(chip, false, |disk| {
        let mut ram = vec![0; index_ram_needed::<BTree>(&disk.geometry(), &options)];
        let mut index = Index::<_, BTree>::open(disk, &options, &mut ram).ok()?;
        for _ in 0..most {
            let (number, value) = (numbers.below(900), u64::from(numbers.below(1 << 30)));
            let value = (numbers.below(4) > 0).then_some(value);
            pending = Some((number, value));
            match value {
                Some(value) => {
                    index.insert(&key::from_u32(number), &value.to_le_bytes()).ok()?;
                    content.insert(number, value);
                }
                None => {
                    index.remove(&key::from_u32(number)).ok()?;
                    content.remove(&number);
                }
            }
            pending = None;
        }
        Some(())
    });
    pending
}

/// Expects the content in the index, where one record may be as `pending` makes it.
fn expect_content(
    chip: &mut Chip,
    content: &mut Content,
    pending: Option<(u32, Option<u64>)>,
    what: &str,
) {
    let options = Options::new(4, 8);
    let found = with_disk(chip, false, |disk| {
        let mut ram = vec![0; index_ram_needed::<BTree>(&disk.geometry(), &options)];
        let mut index = Index::<_, BTree>::open(&mut *disk, &options, &mut ram).unwrap();
        let mut found = Content::new();
        let mut range = index.range(..).unwrap();
        while let Some((key, value)) = range.next().unwrap() {
            let number = u32::from_be_bytes(key.try_into().unwrap());
            found.insert(number, u64::from_le_bytes(value.try_into().unwrap()));
        }
        assert_eq!(disk.ftl().check().unwrap(), Ok(()), "{what}");
        Some(found)
    });
    let found = found.unwrap_or_else(|| panic!("{what}: the FTL cannot be opened"));
    if found != *content
        && let Some((number, value)) = pending
    {
        match value {
            Some(value) => content.insert(number, value),
            None => content.remove(&number),
        };
    }
    assert!(found == *content, "{what}: {} records, {} expected", found.len(), content.len());
}

#[test]
fn an_index_in_place_works_on_an_ftl_on_raw_nand_through_cuts() {
    let (mut chip, mut numbers) = (Chip::with_seed(NAND, 3), Numbers(9));
    chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
    let options = Options::new(4, 8);
    with_disk(&mut chip, true, |disk| {
        let mut ram = vec![0; index_ram_needed::<BTree>(&disk.geometry(), &options)];
        Index::<_, BTree>::format(disk, &options, &mut ram).unwrap();
        Some(())
    })
    .unwrap();
    let mut content = Content::new();
    assert_eq!(change(&mut chip, &mut content, &mut numbers, 2500), None);
    expect_content(&mut chip, &mut content, None, "before any cut");
    assert!(content.len() > 500, "{} records", content.len());
    let mut cuts = 0;
    for round in 0..if is_full() { 3000 } else { 60 } {
        let at = 700 + u64::from(numbers.below(2500));
        let cut = Cut::ALL[numbers.below(5) as usize];
        chip.cut_at(at, cut);
        let pending = change(&mut chip, &mut content, &mut numbers, 1000);
        cuts += u32::from(!chip.has_power());
        chip.restore_power();
        let what = format!("round {round}, {cut:?} at {at}");
        expect_content(&mut chip, &mut content, pending, &what);
    }
    println!("{cuts} cuts, {} records, {:?}", content.len(), chip.counters());
    assert!(cuts > 30, "only {cuts} cuts");
}

#[test]
fn a_disk_reads_ones_where_nothing_was_written_and_replaces_any_page() {
    let mut chip = Chip::new(NAND);
    with_disk(&mut chip, true, |disk| {
        let geometry = disk.geometry();
        assert_eq!((geometry.page_bytes, geometry.spare_bytes), (512, 0));
        assert_eq!(disk.capabilities().bad_blocks_max(geometry.blocks), 0);
        let (page, mut bytes) = (PageNumber(GROUP + 3), [0; 512]);
        disk.read(page, &mut bytes, &mut []).unwrap();
        assert_eq!(bytes, [0xFF; 512]);
        disk.program(page, &[1; 512], &[]).unwrap();
        disk.rewrite(page, &[2; 512], &[]).unwrap();
        disk.read(page, &mut bytes, &mut []).unwrap();
        assert_eq!(bytes, [2; 512]);
        disk.erase(geometry.block_of(page)).unwrap();
        disk.read(page, &mut bytes, &mut []).unwrap();
        assert_eq!(bytes, [0xFF; 512]);
        Some(())
    })
    .unwrap();
    let logical_pages = logical_pages_max(&NAND.geometry, &NAND.capabilities);
    let (mut memory, mut ram) = ([0; 4096], [0; 4096]);
    for group in [0, logical_pages + 1] {
        let map =
            Compact::new(space_of(&NAND.geometry, &NAND.capabilities, logical_pages), &mut memory)
                .unwrap();
        let ftl = Ftl::open(&mut chip, map, logical_pages, &mut ram).unwrap();
        assert_eq!(Disk::new(ftl, group).err(), Some(BadGroups { logical_pages }));
    }
}
