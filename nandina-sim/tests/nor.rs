//! The simulated NOR chip as a `NorFlash`.
//!
//! The tests cover its semantics, an index on it, and another crate's store on it.

use embedded_storage::nor_flash::{NorFlash, NorFlashErrorKind, ReadNorFlash};
use nandina::flash::NorPages;
use nandina::flash::profile::{MLC, NOR};
use nandina::store::{Mu, Wandering};
use nandina::{Index, OpenError, Options, System, WriteError, key, ram_needed};
use nandina_sim::{Chip, ChipError, Cut, Faults, NorChip, NorChipError, Tear};

fn nor(blocks: u32) -> NorChip {
    NorChip::new(Chip::new(NOR.with_blocks(blocks))).unwrap()
}

#[test]
fn bytes_are_written_across_pages_and_bits_only_fall() {
    let mut nor = nor(4);
    nor.write(250, &[0xF0; 20]).unwrap();
    nor.write(255, &[0x3F; 2]).unwrap();
    let mut back = [0; 22];
    nor.read(249, &mut back).unwrap();
    assert_eq!(back[..8], [0xFF, 0xF0, 0xF0, 0xF0, 0xF0, 0xF0, 0x30, 0x30]);
    assert_eq!(back[20..], [0xF0, 0xFF]);
    // Two writes, each over two pages, and one read over two: 22 bytes each way.
    let (counters, time) = (nor.chip().counters(), nor.chip().time());
    assert_eq!((counters.programs, counters.bytes_programmed), (4, 22));
    assert_eq!((counters.reads, counters.bytes_read), (2, 22));
    assert_eq!(time.program_ns, 4 * 30_500 + 22 * 2_600);
    assert_eq!(time.read_ns, 2 * 500 + 22 * 100);
    nor.erase(0, 4096).unwrap();
    nor.read(249, &mut back).unwrap();
    assert_eq!(back, [0xFF; 22]);
}

#[test]
fn calls_beyond_the_chip_are_refused_and_other_chips_are_not_nor() {
    let mut nor = nor(4);
    let out = Err(NorChipError::Call(NorFlashErrorKind::OutOfBounds));
    assert_eq!(nor.write(4 * 4096 - 1, &[0; 2]), out);
    assert_eq!(nor.read(4 * 4096, &mut [0; 1]), out);
    assert_eq!(nor.erase(0, 5 * 4096), out);
    assert_eq!(nor.erase(1, 4096), Err(NorChipError::Call(NorFlashErrorKind::NotAligned)));
    assert!(NorChip::new(Chip::new(MLC)).is_none());
    nor.chip_mut().cut_at(0, Cut::Before);
    assert_eq!(nor.write(0, &[0]), Err(NorChipError::Chip(ChipError::PowerLost)));
}

fn an_index_survives_cuts<S: System>() {
    let options = Options::new(4, 12);
    let mut nor = nor(40);
    let mut pages = NorPages::new(&mut nor, 1024).unwrap();
    let geometry = nandina::flash::Flash::geometry(&pages);
    let mut ram = vec![0; ram_needed::<S>(&geometry, &options)];
    drop(Index::<_, S>::format(&mut pages, &options, &mut ram).unwrap());
    let mut acknowledged = 0u32;
    for session in 0..60 {
        nor.chip_mut().cut_at(400 + 37 * session, Cut::Inside(Tear::Mixture));
        let pages = NorPages::new(&mut nor, 1024).unwrap();
        let mut next = acknowledged;
        // A mount writes as well, and may be cut.
        if let Ok(mut index) = Index::<_, S>::open(pages, &options, &mut ram) {
            while index.insert(&key::from_u32(next), &[session as u8; 12]).is_ok() {
                next += 1;
            }
        }
        nor.chip_mut().restore_power();
        let pages = NorPages::new(&mut nor, 1024).unwrap();
        let mut index = Index::<_, S>::open(pages, &options, &mut ram).unwrap();
        // The record that was cut may be there.
        let length = index.len();
        assert!(length == next || length == next + 1, "{length} records, {next} acknowledged");
        let mut range = index.range(..).unwrap();
        for number in 0..length {
            assert_eq!(range.next().unwrap().unwrap().0, key::from_u32(number));
        }
        acknowledged = length;
    }
    assert!(acknowledged > 500, "only {acknowledged} records");
}

#[test]
fn an_index_stands_on_any_nor_flash() {
    an_index_survives_cuts::<Wandering>();
    an_index_survives_cuts::<Mu>();
    assert!(NorPages::new(nor(4), 1000).is_err());
    assert!(NorPages::new(nor(4), 4096).is_err());
}

fn pages(nor: &mut NorChip) -> NorPages<&mut NorChip> {
    NorPages::new(nor, 1024).unwrap().with_bad_blocks_per_mille(250)
}

fn failing_sectors_are_left_behind<S: System>() {
    let options = Options::new(4, 12);
    let mut nor = nor(40);
    let mut ram =
        vec![0; ram_needed::<S>(&nandina::flash::Flash::geometry(&pages(&mut nor)), &options)];
    let mut index = Index::<_, S>::format(pages(&mut nor), &options, &mut ram).unwrap();
    for number in 0..300u32 {
        index.insert(&key::from_u32(number), &[1; 12]).unwrap();
    }
    drop(index);
    nor.chip_mut().set_faults(Faults {
        program_failures: 5_000,
        erase_failures: 5_000,
        ..Faults::default()
    });
    let mut index = Index::<_, S>::open(pages(&mut nor), &options, &mut ram).unwrap();
    for turn in 0..2_000u32 {
        index.insert(&key::from_u32(turn % 300), &[turn as u8; 12]).unwrap();
    }
    let bad = index.statistics().bad_blocks;
    assert!((1..8).contains(&bad), "{bad} blocks are bad");
    // A bus that is down is no worn sector: the change fails, and no block is given up for it.
    drop(index);
    nor.chip_mut().set_faults(Faults { program_failures: 1, ..Faults::default() });
    // The mount already writes.
    match Index::<_, S>::open(pages(&mut nor), &options, &mut ram) {
        Ok(mut index) => {
            let refused = index.insert(&key::from_u32(7), &[77; 12]);
            assert!(matches!(refused, Err(WriteError::Device(_))), "{refused:?}, {bad} were bad");
        }
        Err(OpenError::Device(_)) => {}
        Err(error) => panic!("{error:?}, {bad} were bad"),
    }
    nor.chip_mut().set_faults(Faults::default());
    let mut index = Index::<_, S>::open(pages(&mut nor), &options, &mut ram).unwrap();
    // These sectors did fail: each attempt leaves a quarter of the blocks behind at most.
    assert!((0..3).any(|_| index.insert(&key::from_u32(7), &[77; 12]).is_ok()));
    assert_eq!((index.len(), index.get(&key::from_u32(7)).unwrap()), (300, Some(&[77; 12][..])));
    assert_eq!(index.range(..).unwrap().count().unwrap(), 300);
}

#[test]
fn worn_sectors_of_a_nor_flash_are_left_behind() {
    failing_sectors_are_left_behind::<Wandering>();
    failing_sectors_are_left_behind::<Mu>();
}

/// The blocking chip as the asynchronous trait of the same family.
struct Ready(NorChip);

impl embedded_storage_async::nor_flash::ErrorType for Ready {
    type Error = NorChipError;
}

impl embedded_storage_async::nor_flash::ReadNorFlash for Ready {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorChipError> {
        self.0.read(offset, bytes)
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl embedded_storage_async::nor_flash::NorFlash for Ready {
    const WRITE_SIZE: usize = 1;
    const ERASE_SIZE: usize = 4096;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), NorChipError> {
        self.0.erase(from, to)
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorChipError> {
        self.0.write(offset, bytes)
    }
}

impl embedded_storage_async::nor_flash::MultiwriteNorFlash for Ready {}

#[test]
fn another_crates_store_runs_on_the_simulated_chip() {
    use sequential_storage::cache::Cache;
    use sequential_storage::map::{MapConfig, MapStorage};
    let config = MapConfig::new(0..4 * 4096);
    let mut storage = MapStorage::<u32, _, _>::new(Ready(nor(4)), config, Cache::new_uncached());
    let mut buffer = [0; 128];
    embassy_futures::block_on(async {
        for turn in 0..2_000u32 {
            storage.store_item(&mut buffer, &(turn % 50), &(turn * 3)).await.unwrap();
        }
        for number in 0..50u32 {
            let found = storage.fetch_item::<u32>(&mut buffer, &number).await.unwrap();
            assert_eq!(found, Some((1_950 + number) * 3));
        }
    });
    let (flash, _) = storage.destroy();
    let counters = flash.0.chip().counters();
    assert!(counters.programs > 2_000 && counters.erases > 0, "{counters:?}");
}
