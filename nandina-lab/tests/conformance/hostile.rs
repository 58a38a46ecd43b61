//! Damaged media: whatever bytes are on the chip, no call panics, loops for ever or reads past a
//! page.

use nandina::Statistics;
use nandina::flash::{Flash, Geometry, PageNumber, Profile};
use nandina::node::{HEADER_BYTES, NodeMut, PageLayout, Shape};
use nandina::store::Description;
use nandina::{Index, OpenError, Options, ReadError, System};
use nandina_lab::hostile::{mount_then_use, mutated};
use nandina_sim::Chip;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// Damages pages of a real image, some with matching checksums, and uses what is left.
struct Damaged {
    checkpoints: Option<u32>,
}

impl Check for Damaged {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL.with_blocks(28));
        case.options.checkpoints = self.checkpoints;
        let case = case.suited::<S>();
        let mut ram = case.ram::<S>();
        let mut image = Chip::new(suited::<S>(case.profile));
        let mut index = Index::<_, S>::format(&mut image, &case.options, &mut ram).map_err(text)?;
        for number in 0..900 {
            index.insert(&key(number * 7 % 900), &value(number, 0)).map_err(text)?;
        }
        drop(index);
        let layout = PageLayout::new(512, 64);
        let (mut opened, mut refused, mut flagged) = (0, 0, 0);
        for seed in Share::one_in(4).of(0..800) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut chip = image.clone();
            for _ in 0..random.random_range(1..150) {
                let page = PageNumber(random.random_range(0..case.profile.geometry.pages()));
                let resealed = random.random_bool(0.7);
                chip.corrupt_page(page, |main, spare| {
                    let mut frame = [&*main, &spare[..HEADER_BYTES]].concat();
                    let (header, medium) = (layout.header(&frame), layout.medium(&frame));
                    for _ in 0..random.random_range(1..6) {
                        let at = random.random_range(0..frame.len());
                        frame[at] = random.random();
                    }
                    if resealed {
                        let mut header = header;
                        header.lowest = random.random_range(0..5);
                        layout.seal(&mut frame, &medium, &header);
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
                    flagged += u32::from(index.statistics().unexplained_pages > 0);
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
        // Where the newest pages own the keys, most damage is flagged and not refused. A block is not
        // replaced while it is needed, so a damaged one leaves keys without an owner.
        let refuses = S::DESCRIPTION.has_inner_nodes() || S::DESCRIPTION.has_leaf_blocks();
        let noticed = if refuses { refused } else { flagged };
        if opened == 0 || noticed == 0 {
            return Err(format!("{opened} opened, {refused} refused and {flagged} flagged"));
        }
        for page in (0..case.profile.geometry.pages()).map(PageNumber) {
            image.corrupt_page(page, |main, spare| {
                main.fill(0x5A);
                spare.fill(0x5A);
            });
        }
        match Index::<_, S>::open(&mut image, &case.options, &mut ram) {
            Err(_) => Ok(()),
            Ok(_) => Err("it opened without a page that is whole".into()),
        }
    }
}

/// Otherwise a target that refuses each medium of a system would look as if it found nothing.
#[test]
fn the_fuzz_target_opens_the_healthy_media_of_each_system() {
    for system in 0..nandina_lab::systems::SYSTEMS.len() as u8 {
        for medium in [1, WITH_CHECKPOINTS[0], WITH_CHECKPOINTS[1]] {
            let outcome = mount_then_use(&[system, medium]);
            assert_eq!(outcome, nandina_lab::hostile::Outcome::Used, "{system}, {medium}");
        }
    }
}

/// The forms of media of a system that keeps nodes in RAM: bits of the byte that chooses a medium.
const FORMS: [u8; 8] = [0, 4, 8, 12, 0x80, 0x84, 0x88, 0x8C];

/// The number of the system that keeps nodes in RAM and changes in a journal.
fn with_a_journal() -> u8 {
    let systems = nandina_lab::systems::SYSTEMS;
    systems.iter().position(|system| system.has_arena()).unwrap() as u8
}

#[test]
fn the_fuzz_target_opens_media_of_every_form() {
    for form in FORMS {
        for medium in [1, WITH_CHECKPOINTS[0], WITH_CHECKPOINTS[1], 0x11] {
            let outcome = mount_then_use(&[with_a_journal(), medium | form]);
            assert_eq!(outcome, nandina_lab::hostile::Outcome::Used, "{form} {medium}");
        }
    }
}

/// Wrong counts, kinds, slots and numbers in whole pages of a journal, and random changes.
#[test]
fn pages_of_a_journal_that_are_whole_and_say_nonsense_never_panic() {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let share = Share::one_in(4);
    for form in FORMS {
        let (mut used, mut refused) = (0, 0);
        for _ in 0..share.length(5_000) {
            let length = random.random_range(8..160);
            let mut data: Vec<u8> = (0..length).map(|_| random.random()).collect();
            // A healthy medium, few changes, and the first one of a page of the journal.
            (data[0], data[1], data[2]) =
                (with_a_journal(), data[1] & 0x73 | 1 | form, data[2] % 6);
            data[4] |= 0x20;
            match mount_then_use(&data) {
                nandina_lab::hostile::Outcome::Used => used += 1,
                nandina_lab::hostile::Outcome::Refused => refused += 1,
            }
        }
        let least = share.least(400);
        assert!(used > least && refused > least / 20, "{form}: {used} used, {refused} refused");
    }
}

/// Heads, marks and slots of leaves that are blocks, each whole and wrong, and random changes.
#[test]
fn sectors_that_are_whole_and_say_nonsense_never_panic() {
    let systems = nandina_lab::systems::SYSTEMS;
    let system = systems.iter().position(|system| system.has_leaf_blocks()).unwrap() as u8;
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let (mut used, mut refused) = (0, 0);
    let share = Share::one_in(4);
    for _ in 0..share.length(40_000) {
        let mut data: Vec<u8> = (0..random.random_range(8..160)).map(|_| random.random()).collect();
        // A healthy medium, few changes, and the first one of a sector.
        (data[0], data[1], data[2]) = (system, data[1] | 1, data[2] % 6);
        data[4] |= 0x40;
        match mount_then_use(&data) {
            nandina_lab::hostile::Outcome::Used => used += 1,
            nandina_lab::hostile::Outcome::Refused => refused += 1,
        }
    }
    let least = share.least(4_000);
    assert!(used > least && refused > least / 4, "{used} used, {refused} refused");
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
    let share = Share::one_in(4);
    for turn in 0..share.length(30_000) as usize {
        let mut data = corpus[turn % corpus.len()].clone();
        if turn >= corpus.len() {
            data = mutated(&data, &mut random);
        }
        // The corpus mostly has media without checkpoints: half of its mutations get them.
        if turn % 2 == 1 && turn >= corpus.len() && data.len() > 1 {
            data[1] |= 0x40;
        }
        match mount_then_use(&data) {
            nandina_lab::hostile::Outcome::Used => used += 1,
            nandina_lab::hostile::Outcome::Refused => refused += 1,
        }
    }
    let least = share.least(1_000);
    assert!(used > least && refused > least, "{used} used, {refused} refused");
}

/// Healthy media with checkpoints, written a while ago and just now: the byte that chooses one.
const WITH_CHECKPOINTS: [u8; 2] = [0x41, 0x61];

/// Changes the checkpoints' pages one by one, under checksums that are right, on every system.
///
/// `change` is the kind of change and what it needs.
fn with_a_changed_checkpoint(changes: impl Fn() -> Box<dyn Iterator<Item = [u8; 4]>>) {
    const PAGES: u8 = 8;
    let share = Share::one_in(7);
    let (mut used, mut refused) = (0, 0);
    for system in 0..nandina_lab::systems::SYSTEMS.len() as u8 {
        for (medium, page) in WITH_CHECKPOINTS
            .into_iter()
            .flat_map(|medium| (0..PAGES).map(move |page| (medium, page)))
        {
            for [kind, change @ ..] in share.of(changes()) {
                let data = [&[system, medium, 0, page, kind][..], &change].concat();
                match mount_then_use(&data) {
                    nandina_lab::hostile::Outcome::Used => used += 1,
                    nandina_lab::hostile::Outcome::Refused => refused += 1,
                }
            }
        }
    }
    assert!(used > 1_000, "{used} used, {refused} refused");
}

/// Every word about itself or the tree of every page of a checkpoint names each block in turn.
///
/// A list that named an anchor had the mount open that block, and erase it as an anchor afterwards.
#[test]
fn a_checkpoint_that_names_any_block_never_panics() {
    with_a_changed_checkpoint(|| {
        Box::new((0..26).flat_map(|word| (0..16).map(move |block| [0x42, word, block, 0])))
    });
}

/// Every byte at the start of every page of a checkpoint has other values.
#[test]
fn a_checkpoint_with_any_wrong_byte_never_panics() {
    with_a_changed_checkpoint(|| {
        let values = [0, 1, 13, 33, 0x7F, 0xFF];
        Box::new((0..96).flat_map(move |at| values.map(|value| [0x40, at, 0, value])))
    });
}

#[test]
fn damaged_media_never_panic() {
    for checkpoints in [None, Some(2)] {
        for_every_system(&Damaged { checkpoints });
    }
}

/// Changes a pointer of an inner page so that it has as many bits that are 1, and uses what is left.
///
/// The tag of an appended record does not see that.
struct PointersMoved;

impl Check for PointersMoved {
    fn concerns(&self, system: &Description) -> bool {
        system.appends()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL.with_blocks(10));
        case.profile.geometry.pages_per_block = 5;
        case.profile.capabilities.programs_per_page = None;
        case.profile.capabilities.in_order = false;
        let case = case.suited::<S>();
        let mut ram = case.ram::<S>();
        let geometry = case.profile.geometry;
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        let (mut opened, mut refused) = (0, 0);
        for turns in Share::one_in(40).of(0..80) {
            let mut image = Chip::new(case.profile);
            let mut index =
                Index::<_, S>::format(&mut image, &case.options, &mut ram).map_err(text)?;
            let mut records = 0;
            while index.insert(&key(records), &value(records, 0)).is_ok() {
                records += 1;
            }
            for turn in 0..turns {
                let number = turn * 7 % records;
                index.insert(&key(number), &value(number, turn)).map_err(text)?;
            }
            drop(index);
            for page in (0..geometry.pages()).map(PageNumber) {
                let mut frame = vec![0; layout.frame_bytes()];
                let (main, spare) = frame.split_at_mut(geometry.page_bytes as usize);
                image.read(page, main, spare).map_err(text)?;
                if layout.header(&frame).lowest != 2 {
                    continue;
                }
                for at in 0..geometry.page_bytes as usize - 4 {
                    let pointer = u32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
                    if !(1..geometry.pages()).contains(&pointer) {
                        continue;
                    }
                    for other in (0..geometry.pages()).filter(|other| {
                        *other != pointer && other.count_ones() == pointer.count_ones()
                    }) {
                        let mut chip = image.clone();
                        chip.corrupt_page(page, |main, _| {
                            main[at..at + 4].copy_from_slice(&other.to_le_bytes());
                        });
                        let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram)
                        else {
                            refused += 1;
                            continue;
                        };
                        opened += 1;
                        for number in (0..records).step_by(7) {
                            let _ = index.insert(&key(number), &value(number, 1));
                        }
                    }
                }
            }
        }
        if opened == 0 || refused == 0 {
            return Err(format!("{opened} opened and {refused} refused show nothing"));
        }
        Ok(())
    }
}

#[test]
fn pointers_with_moved_bits_never_panic() {
    for_every_system(&PointersMoved);
}

/// A tree of four or more levels in which all children of an inner node are the same.
///
/// A checkpoint makes it look valid. It has more ways to its only leaf than can be walked in any
/// practical time.
struct ManyWays;

const PAGE: usize = 2048;
const KEY: usize = 48;
const VALUE: usize = 200;

impl Check for ManyWays {
    fn concerns(&self, system: &Description) -> bool {
        // The trees lie in a checkpoint.
        system.root_commits()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let geometry = Geometry {
            page_bytes: PAGE as u32,
            pages_per_block: 32,
            blocks: 600,
            ..SMALL.geometry
        };
        let mut profile = Profile { geometry, ..SMALL };
        profile.ecc.codeword_bytes = 512;
        let mut options = Options::new(KEY, VALUE);
        options.checkpoints = Some(4);
        // With the fewest buffers each way is read from the chip.
        options.page_buffers = Some(S::DESCRIPTION.buffers_min);
        let case = Case { profile, options }.suited::<S>();
        let options = case.options;
        let key = |number: u32| [&number.to_be_bytes()[..], &[7; KEY - 4]].concat();
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut chip, &options, &mut ram).map_err(text)?;
        let mut number = 0;
        while index.statistics().height < 4 || number % 100 > 0 {
            index.insert(&key(number), &[0; VALUE]).map_err(text)?;
            number += 1;
        }
        index.checkpoint().map_err(text)?;
        let Statistics { height, records, valid_pages, .. } = index.statistics();
        drop(index);
        let layout = PageLayout::new(PAGE, 64);
        for page in (0..geometry.pages())
            .map(PageNumber)
            .filter(|&page| !chip.page_is_erased(page))
            .collect::<Vec<_>>()
        {
            chip.corrupt_page(page, |main, spare| {
                let mut frame = [&*main, &spare[..HEADER_BYTES]].concat();
                let header = layout.header(&frame);
                for level in header.lowest.max(2)..=if header.lowest > 0 { height } else { 0 } {
                    let extent = extent_in::<S>(&layout, &frame, level, height);
                    let room = extent.len();
                    let Some(mut node) = NodeMut::parse(&mut frame[extent], Shape::inner(KEY))
                    else {
                        continue;
                    };
                    // As many children as fit, all equal.
                    let first = node.as_node().pointer(0).to_le_bytes();
                    while node.count() > 0 {
                        node.remove(0);
                    }
                    for slot in 0..Shape::inner(KEY).capacity(room) {
                        node.insert(slot, &key(slot as u32), &first);
                    }
                }
                layout.reseal(&mut frame, &header);
                main.copy_from_slice(&frame[..PAGE]);
                spare[..HEADER_BYTES].copy_from_slice(&frame[PAGE..]);
            });
        }
        let mut index = Index::<_, S>::open(&mut chip, &options, &mut ram).map_err(text)?;
        if !index.statistics().from_checkpoint {
            return Err("the tree was walked by the mount".into());
        }
        let most = u64::from(valid_pages) * u64::from(height) * u64::from(height);
        let mut ended = false;
        let start = index.flash().counters().operations();
        let checked = index.check(|violation| ended |= violation.what.starts_with("more nodes"));
        let check = index.flash().counters().operations() - start;
        let ways: u64 = (2..=height)
            .map(|level| {
                let blank = vec![0xFF; layout.frame_bytes()];
                extent_in::<S>(&layout, &blank, level, height).len()
            })
            .map(|room| Shape::inner(KEY).capacity(room) as u64)
            .product();
        if ways > u64::from(valid_pages) * u64::from(height) && checked.is_ok() && !ended {
            return Err("the check went every way".into());
        }
        let up = index.range(..).and_then(|range| range.count());
        let down = index.range_down(..).and_then(|range| range.count());
        let scans = index.flash().counters().operations() - start - check;
        for scan in [&up, &down] {
            if !matches!(scan, Err(ReadError::Corrupt { .. })) {
                return Err(format!("a scan answers {scan:?}"));
            }
        }
        println!(
            "{}: {records} records, height {height}, {valid_pages} valid pages, {ways} ways: check {check} chip operations, \
             scans {scans}",
            S::DESCRIPTION.key
        );
        if check > most || scans > most {
            return Err(format!("check {check}, scans {scans} chip operations, {most} are plenty"));
        }
        for number in (0..records).step_by(500) {
            let _ = index.insert(&key(number), &[1; VALUE]);
            let _ = index.remove(&key(number));
            let _ = index.gc_step(500);
        }
        let took = index.flash().counters().operations() - start;
        if took > 1_000_000 { Err(format!("{took} chip operations")) } else { Ok(()) }
    }
}

#[test]
fn a_tree_with_more_ways_than_time_is_scanned_and_checked_in_bounds() {
    for_every_system(&ManyWays);
}
