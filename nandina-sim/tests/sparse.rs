//! A sparse chip does and counts what a chip does that stores everything.

use nandina::flash::profile::{MLC, Profile};
use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber};
use nandina_sim::{Chip, SparseChip, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The same calls on both: results, bytes read, counters, time and wear are equal.
fn compare(profile: Profile, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut chip, mut sparse) = (Chip::new(profile), SparseChip::new(profile));
    let Geometry { page_bytes, spare_bytes, blocks, .. } = profile.geometry;
    let (main_bytes, spare_bytes) = (page_bytes as usize, spare_bytes as usize);
    let (mut refused, mut with_data) = (0, 0);
    for _ in 0..4_000 {
        // Some pages and blocks lie behind the last.
        let page = PageNumber(random.random_range(0..profile.geometry.pages() + 3));
        let block = BlockNumber(random.random_range(0..blocks + 1));
        let spare = random.random_range(0..=spare_bytes);
        match random.random_range(0..12) {
            0..6 => {
                let mut main = vec![0; main_bytes];
                if random.random_range(0..3) == 0 {
                    main[random.random_range(0..main_bytes)] = random.random();
                }
                let spare: Vec<u8> = (0..spare).map(|_| random.random()).collect();
                let done = chip.program(page, &main, &spare);
                refused += u32::from(done.is_err());
                assert_eq!(sparse.program(page, &main, &spare), done);
            }
            6..10 => {
                let (mut main, mut spare) = (vec![1; main_bytes], vec![2; spare]);
                let read = chip.read(page, &mut main, &mut spare);
                let (mut other, mut other_spare) = (vec![3; main_bytes], vec![4; spare.len()]);
                assert_eq!(sparse.read(page, &mut other, &mut other_spare), read);
                if read.is_ok() {
                    assert_eq!((&other, &other_spare), (&main, &spare), "{page}");
                    let pieces: [&[u8]; 2] = [&main, &spare];
                    assert_eq!(sparse.checksum(&pieces), chip.checksum(&pieces));
                }
            }
            10 => assert_eq!(sparse.erase(block), chip.erase(block)),
            _ => assert_eq!(sparse.is_bad(block), chip.is_bad(block)),
        }
        with_data = sparse.pages_with_data().max(with_data);
    }
    assert_eq!(sparse.counters(), chip.counters());
    assert_eq!(sparse.time(), chip.time());
    assert_eq!(sparse.wear(), chip.wear());
    assert!(refused > 100, "no rule was broken");
    assert!(with_data > 0 && with_data < profile.geometry.pages() as usize);
}

#[test]
fn a_sparse_chip_equals_one_that_stores_everything() {
    let once = |geometry: Geometry, capabilities: Capabilities| Profile {
        geometry,
        capabilities: Capabilities { programs_per_page: Some(1), ..capabilities },
        ..MLC
    };
    let header = Geometry { spare_bytes: 40, ..TINY.geometry };
    compare(once(header, TINY.capabilities), 1);
    let no_spare = Geometry { page_bytes: 264, spare_bytes: 0, pages_per_block: 16, blocks: 6 };
    compare(once(no_spare, MLC.capabilities), 2);
    let little = Geometry { page_bytes: 300, spare_bytes: 16, ..no_spare };
    compare(once(little, TINY.capabilities), 3);
}

/// Pages that move, from a buffer that the next page is read into, beside other operations.
#[test]
fn a_copy_of_a_page_is_what_was_read() {
    let geometry = Geometry { spare_bytes: 40, ..TINY.geometry };
    let capabilities = Capabilities { programs_per_page: Some(1), ..TINY.capabilities };
    let profile = Profile { geometry, capabilities, ..MLC };
    let (mut chip, mut sparse) = (Chip::new(profile), SparseChip::new(profile));
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let (mut main, mut other, mut spare) = ([0; 512], [0; 512], [0; 40]);
    let (mut copied, mut with_data) = (0, 0);
    for _ in 0..4_000 {
        let any = |random: &mut ChaCha8Rng| PageNumber(random.random_range(0..geometry.pages()));
        let (of, page) = (any(&mut random), any(&mut random));
        match random.random_range(0..8) {
            0..5 => {
                chip.read(of, &mut main, &mut spare).unwrap();
                sparse.read(of, &mut other, &mut spare).unwrap();
                assert_eq!(other, main, "{of}");
                spare[0] = random.random();
                let done = chip.program_copy(of, page, &main, &spare);
                assert_eq!(sparse.program_copy(of, page, &other, &spare), done);
                copied += u32::from(done.is_ok());
            }
            5 => {
                let data = [random.random_range(0..2); 512];
                assert_eq!(sparse.program(page, &data, &spare), chip.program(page, &data, &spare));
            }
            6 => {
                let block = BlockNumber(random.random_range(0..geometry.blocks));
                assert_eq!(sparse.erase(block), chip.erase(block));
            }
            // Whoever calls a chip changes the buffer only if it is not read to next.
            _ => {
                other.fill(7);
                sparse.program(page, &other, &spare).unwrap_or_default();
                chip.program(page, &other, &spare).unwrap_or_default();
            }
        }
        with_data = sparse.pages_with_data().max(with_data);
    }
    assert_eq!(sparse.counters(), chip.counters());
    assert_eq!(sparse.time(), chip.time());
    assert!(copied > 200 && with_data > 10, "{copied} copies");
}

#[test]
fn a_larger_spare_area_takes_its_time_and_is_not_offered() {
    let (mut chip, mut sparse) = (Chip::new(TINY), SparseChip::new(TINY));
    assert_eq!((TINY.geometry.spare_bytes, sparse.geometry().spare_bytes), (64, 40));
    chip.program(PageNumber(0), &[0; 512], &[7; 40]).unwrap();
    sparse.program(PageNumber(0), SparseChip::zeros(512), &[7; 40]).unwrap();
    assert_eq!(sparse.time(), chip.time());
    assert_eq!(sparse.counters(), chip.counters());
    let (mut main, mut spare) = ([1; 512], [1; 40]);
    sparse.read(PageNumber(0), &mut main, &mut spare).unwrap();
    assert_eq!((main, spare), ([0; 512], [7; 40]));
}

#[test]
fn lengths_of_no_page_are_refused() {
    let mut sparse = SparseChip::new(TINY);
    let (mut main, mut spare) = ([0; 511], [0; 40]);
    let wrong = sparse.read(PageNumber(0), &mut main, &mut spare).unwrap_err();
    assert!(wrong.to_string().contains("511 + 40 bytes were named"), "{wrong}");
    let wrong = sparse.program(PageNumber(0), &[0; 512], &[0; 41]).unwrap_err();
    assert!(wrong.to_string().contains("512 + 41 bytes were named"), "{wrong}");
    assert_eq!(sparse.counters().operations(), 0);
}
