//! The speed of simulated inserts, and where the time goes: `cargo bench -p nandina-lab`.
//!
//! `insert` counts inserts a second of each system, into an index of 200,000 records. `checksum`
//! measures a part: an insert of wandering reads and programs three pages of 4 KiB, one of μ-Tree
//! reads three and programs one. The simulator's share is measured by `cargo bench -p nandina-sim
//! --bench pages`. `hit` and `insert_cached` count lookups whose pages are all in the read cache,
//! and inserts of which most are, in caches of several sizes.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use nandina::flash::profile::MLC;
use nandina::node::{Medium, PageHeader, PageLayout};
use nandina::store::{Mu, Wandering};
use nandina::{Index, Options, System, key, ram_needed};
use nandina_sim::Chip;

fn main() {
    divan::main();
}

const INSERTS: u32 = 10_000;

#[divan::bench(types = [Wandering, Mu], sample_count = 10)]
fn insert<S: System>(bencher: Bencher<'_, '_>) {
    let options = Options::new(4, 4);
    let mut ram = vec![0; ram_needed::<S>(&MLC.geometry, &options)];
    let mut chip = Chip::new(MLC);
    let mut index = Index::<_, S>::format(&mut chip, &options, &mut ram).unwrap();
    // An odd factor spreads the numbers over all keys without a repetition.
    let mut number = 0u32;
    let mut put = move || {
        number += 1;
        index.insert(&key::from_u32(number.wrapping_mul(2_654_435_761)), &[1; 4]).unwrap();
    };
    (0..200_000).for_each(|_| put());
    bencher.counter(ItemsCount::new(INSERTS)).bench_local(|| (0..INSERTS).for_each(|_| put()));
}

/// Makes bytes that stay in place when the index is moved.
fn leaked(bytes: usize) -> &'static mut [u8] {
    Vec::leak(vec![0; bytes])
}

/// Makes an index of μ-Tree with `records` and these options.
fn filled(options: &Options, records: u32) -> Index<'static, Chip, Mu> {
    let ram = leaked(ram_needed::<Mu>(&MLC.geometry, options));
    let mut index = Index::format(Chip::new(MLC), options, ram).unwrap();
    for number in 0..records {
        index.insert(&key_of(number), &[1; 4]).unwrap();
    }
    index
}

/// Spreads the numbers over all keys without a repetition.
fn key_of(number: u32) -> [u8; 4] {
    key::from_u32(number.wrapping_mul(2_654_435_761))
}

const LOOKUPS: u32 = 1000;

/// The same index in each cache: 20,000 records take fewer pages than the least.
#[divan::bench(args = [256, 2048, 16_384], sample_count = 40)]
fn hit(bencher: Bencher<'_, '_>, read_cache: usize) {
    hits(bencher, read_cache, 20_000);
}

/// An index that fills its cache.
#[divan::bench(args = [256, 2048], sample_count = 40)]
fn hit_full(bencher: Bencher<'_, '_>, read_cache: usize) {
    // Random inserts fill two thirds of a page of 256 records.
    hits(bencher, read_cache, read_cache as u32 * 140);
}

fn hits(bencher: Bencher<'_, '_>, read_cache: usize, records: u32) {
    let mut index = filled(&Options { read_cache, ..Options::new(4, 4) }, records);
    let mut number = 0u32;
    let mut get = move || {
        number = (number + 7919) % records;
        assert!(index.get(&key_of(number)).unwrap().is_some());
    };
    (0..records).for_each(|_| get());
    bencher.counter(ItemsCount::new(LOOKUPS)).bench_local(|| (0..LOOKUPS).for_each(|_| get()));
}

#[divan::bench(args = [256, 2048], sample_count = 10)]
fn insert_cached(bencher: Bencher<'_, '_>, pages: usize) {
    let options = Options { read_cache: pages, write_cache: pages, ..Options::new(4, 4) };
    let mut index = filled(&options, 200_000);
    let mut number = 200_000;
    let mut put = move || {
        number += 1;
        index.insert(&key_of(number), &[1; 4]).unwrap();
    };
    bencher.counter(ItemsCount::new(LOOKUPS)).bench_local(|| (0..LOOKUPS).for_each(|_| put()));
}

const PAGE: usize = 4096;

#[divan::bench]
fn checksum(bencher: Bencher<'_, '_>) {
    let layout = PageLayout::new(PAGE, 128);
    let mut frame = vec![7; layout.frame_bytes()];
    let medium = Medium {
        system: 1,
        key_bytes: 4,
        value_bytes: 4,
        blocks: 128,
        pages_per_block: 128,
        checkpoints: false,
        appended: false,
        replaced: false,
        atomic: false,
    };
    let (identity, sequence) = (1, 1);
    let header = PageHeader {
        identity,
        sequence,
        lowest: 1,
        height: 3,
        erase_count: 0,
        records: 1,
        settling: false,
        tag: 0,
    };
    bencher
        .counter(BytesCount::new(PAGE))
        .bench_local(|| layout.seal(divan::black_box(&mut frame), &medium, &header));
}
