//! Damaged media: whatever bytes stand on the chip, no call panics, loops for ever or reads past a page.

use nandina::flash::PageNumber;
use nandina::node::{HEADER_BYTES, PageLayout};
use nandina::place::Placement;
use nandina::{Index, OpenError};
use nandina_lab::hostile::mount_then_use;
use nandina_sim::Chip;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// Damages pages of a real image, some so that their checksums are right again, and uses what is left.
struct Damaged;

impl Check for Damaged {
    fn run<S: Placement + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL);
        let mut ram = case.ram::<S>();
        let mut image = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut image, &case.options, &mut ram).map_err(text)?;
        for number in 0..900 {
            index.insert(&key(number * 7 % 900), &value(number, 0)).map_err(text)?;
        }
        drop(index);
        let layout = PageLayout::new(512, 64);
        let (mut opened, mut refused) = (0, 0);
        for seed in 0..1_500 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut chip = image.clone();
            for _ in 0..random.random_range(1..40) {
                let page = PageNumber(random.random_range(0..case.profile.geometry.pages()));
                let resealed = random.random_bool(0.7);
                chip.corrupt_page(page, |main, spare| {
                    let mut frame = [&*main, &spare[..HEADER_BYTES]].concat();
                    let header = layout.header(&frame);
                    for _ in 0..random.random_range(1..6) {
                        let at = random.random_range(0..frame.len());
                        frame[at] = random.random();
                    }
                    if resealed {
                        let mut header = header;
                        header.lowest = random.random_range(0..5);
                        layout.seal(&mut frame, &header);
                    }
                    main.copy_from_slice(&frame[..512]);
                    spare[..HEADER_BYTES].copy_from_slice(&frame[512..]);
                });
            }
            let start = chip.counters().operations();
            match Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                Err(OpenError::RamTooSmall { .. } | OpenError::BadOption { .. }) => {
                    return Err("damage was taken for a wrong setting".into());
                }
                Err(_) => refused += 1,
                Ok(mut index) => {
                    opened += 1;
                    for number in (0..900).step_by(97) {
                        let _ = index.get(&key(number));
                        let _ = index.insert(&key(number), &value(number, 1));
                        let _ = index.remove(&key(number + 1));
                    }
                    let _ = index.check(|_| {});
                    if let Ok(mut range) = index.range(..) {
                        while let Ok(Some(_)) = range.next() {}
                    }
                    if let Ok(mut range) = index.range_down(..) {
                        while let Ok(Some(_)) = range.next() {}
                    }
                }
            }
            let took = chip.counters().operations() - start;
            if took > 1_000_000 {
                return Err(format!("seed {seed} took {took} chip operations"));
            }
        }
        if opened == 0 || refused == 0 {
            return Err(format!("{opened} opened and {refused} refused show nothing"));
        }
        Ok(())
    }
}

/// The corpus of the fuzz target, and random changes to it.
#[test]
fn the_fuzz_corpus_and_mutations_of_it_never_panic() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/mount_then_use");
    let mut corpus: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    corpus.sort();
    assert!(corpus.len() > 20, "the corpus is gone");
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let (mut used, mut refused) = (0, 0);
    for turn in 0..30_000 {
        let mut data = corpus[turn % corpus.len()].clone();
        if turn >= corpus.len() {
            for _ in 0..random.random_range(1..8) {
                let at = random.random_range(0..=data.len());
                match random.random_range(0..3) {
                    0 => data.insert(at, random.random()),
                    1 if at < data.len() => drop(data.remove(at)),
                    _ if at < data.len() => data[at] = random.random(),
                    _ => {}
                }
            }
        }
        match mount_then_use(&data) {
            nandina_lab::hostile::Outcome::Used => used += 1,
            nandina_lab::hostile::Outcome::Refused => refused += 1,
        }
    }
    assert!(used > 1_000 && refused > 1_000, "{used} used, {refused} refused");
}

#[test]
fn damaged_media_never_panic() {
    for_every_system(&Damaged);
}
