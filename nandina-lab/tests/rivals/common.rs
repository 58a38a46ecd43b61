//! The device and the work of these tests.

use std::collections::BTreeMap;
use std::fmt::Write;

use nandina::flash::{Capabilities, Flash, Geometry, Profile};
use nandina::{Index, OpenError, Options, System, key, ram_needed};
use nandina_sim::{Chip, ChipError, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A small device whose pages are replaced as a whole.
pub const CHIP: Profile = Profile {
    geometry: Geometry { blocks: 256, ..TINY.geometry },
    capabilities: Capabilities {
        rewrite: true,
        atomic_rewrite: true,
        bad_blocks_per_mille: 0,
        ..TINY.capabilities
    },
    ..TINY
};

pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Options with a write buffer of so many pages.
pub const fn options(write_buffer: usize) -> Options {
    Options { write_buffer, ..Options::new(4, 12) }
}

/// Options with long keys: nodes have few entries, and trees become high.
pub const HIGH: Options = Options { write_buffer: 1, ..Options::new(64, 4) };

/// The key of a number in keys of so many bytes.
pub fn key_of(number: u32, key_bytes: usize) -> Vec<u8> {
    let mut key = key::from_u32(number).to_vec();
    key.resize(key_bytes, 0);
    key
}

/// The device with so many blocks.
pub fn chip(blocks: u32) -> Chip {
    Chip::new(CHIP.with_blocks(blocks))
}

/// Opens or formats an index of `S`, and does `work` with it.
pub fn with<S: System, T>(
    chip: &mut Chip,
    options: &Options,
    formats: bool,
    work: impl FnOnce(&mut Index<'_, &mut Chip, S>) -> T,
) -> Result<T, OpenError<ChipError>> {
    let mut ram = vec![0xA5; ram_needed::<S>(&chip.geometry(), options)];
    let mut index = match formats {
        true => Index::<_, S>::format(chip, options, &mut ram)?,
        false => Index::<_, S>::open(chip, options, &mut ram)?,
    };
    Ok(work(&mut index))
}

/// All records of an index, which keeps every invariant.
pub fn contents<S: System>(index: &mut Index<'_, &mut Chip, S>) -> Model {
    index.check(|violation| panic!("{violation}")).unwrap();
    let mut found = Model::new();
    let mut range = index.range(..).unwrap();
    while let Some((key, value)) = range.next().unwrap() {
        found.insert(key.to_vec(), value.to_vec());
    }
    assert_eq!(index.len() as usize, found.len());
    found
}

/// The chip operations of fixed work, with and without a write buffer.
pub fn golden<S: System>() -> String {
    let mut lines = String::new();
    for write_buffer in [0, 1] {
        let mut chip = chip(256);
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let options = options(write_buffer);
        let mut line = |what: &str, chip: &Chip| {
            let counters = chip.counters();
            let (reads, writes) = (counters.reads, counters.rewrites);
            writeln!(lines, "buffer {write_buffer}, {what}: {reads} reads, {writes} writes")
                .unwrap();
        };
        with::<S, _>(&mut chip, &options, true, |index| {
            line("format", index.flash());
            for _ in 0..1_000 {
                index.insert(&key::from_u32(random.random_range(0..2_000)), &[1; 12]).unwrap();
            }
            index.flush().unwrap();
            line("1,000 inserts", index.flash());
            for _ in 0..1_000 {
                index.get(&key::from_u32(random.random_range(0..2_000))).unwrap();
            }
            line("1,000 lookups", index.flash());
            for _ in 0..1_000 {
                index.remove(&key::from_u32(random.random_range(0..2_000))).unwrap();
            }
            index.flush().unwrap();
            line("1,000 removals", index.flash());
        })
        .unwrap();
        with::<S, _>(&mut chip, &options, false, |index| line("mount", index.flash())).unwrap();
    }
    lines
}
