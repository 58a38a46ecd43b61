//! Full chips, queues, and bounds: H2, H9, H10, and that no plan is exceeded.

use nandina::flash::profile::NOR;
use nandina::store::RosetteNor;
use nandina::{Cost, Index, Inserted, Options, Removed, WriteError, key, plan};
use nandina_sim::{Chip, Counters};

use crate::model::{Model, OPTIONS, Random, SMALL, compare, ram, value};

#[test]
fn h2_a_full_chip_still_replaces_and_removes_and_is_filled_again() {
    for profile in [SMALL, SMALL.with_blocks(30), NOR.with_blocks(32)] {
        let mut chip = Chip::new(profile);
        let mut ram = ram(&profile, &OPTIONS);
        let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
        let (mut model, mut random) = (Model::new(), Random::new(3));
        let mut shares = Vec::new();
        for round in 0..3 {
            let mut refused = 0;
            while refused < 50 {
                let key = key::from_u32(random.next() as u32);
                match index.insert(&key, &value(round)) {
                    Ok(_) => _ = model.insert(key, value(round)),
                    Err(WriteError::Full { .. }) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            let bytes =
                u64::from(profile.geometry.page_bytes) * u64::from(profile.geometry.pages());
            shares.push(model.len() as u64 * 16 * 100 / bytes);
            let keys: Vec<_> = model.keys().copied().collect();
            for turn in 0..2_000 {
                let key = keys[random.below(keys.len() as u32) as usize];
                assert_eq!(index.insert(&key, &value(turn)), Ok(Inserted::Replaced));
                model.insert(key, value(turn));
            }
            compare(&mut index, &model);
            for (at, key) in keys.iter().enumerate() {
                if at % 3 != round as usize {
                    assert_eq!(index.remove(key), Ok(Removed::Found));
                    model.remove(key);
                }
            }
            compare(&mut index, &model);
        }
        println!("{} sectors: {shares:?} % of the bytes are records", profile.geometry.blocks);
        // Three sectors hold no leaf, and in a small one 16 slots of the log take a third.
        let least = if profile.geometry.pages_per_block >= 16 { 65 } else { 45 };
        assert!(shares.iter().all(|&share| share >= least), "{shares:?}");
    }
}

#[test]
fn h9_a_queue_keeps_its_leaves_few() {
    let profile = NOR.with_blocks(128);
    let mut chip = Chip::new(profile);
    let mut ram = ram(&profile, &OPTIONS);
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let pages = profile.geometry.pages_per_block;
    let (mut most, mut begun) = (0, 0);
    for turn in 0..30_000u32 {
        index.insert(&key::from_u32(turn), &value(turn)).unwrap();
        if turn >= 1_000 {
            assert_eq!(index.remove(&key::from_u32(turn - 1_000)), Ok(Removed::Found));
            let leaves = index.statistics().valid_pages / pages;
            most = most.max(leaves);
            if turn == 3_000 {
                begun = index.flash().now_ns();
            }
        }
    }
    let ms = (index.flash().now_ns() - begun) as f64 / 1e6 / (2.0 * 26_999.0);
    println!("a queue of 1,000: {most} leaves, {ms:.3} ms an operation");
    assert_eq!(index.len(), 1_000);
    index.check(|violation| panic!("{violation}")).unwrap();
    assert!(most <= 12, "{most} leaves for 1,000 records");
    assert!(ms < 0.7, "{ms} ms");
}

/// H10: the exact number of records is known after a mount, without a read of all logs.
#[test]
fn h10_a_mount_counts_the_records() {
    let profile = NOR.with_blocks(64);
    let mut chip = Chip::new(profile);
    let mut ram = ram(&profile, &OPTIONS);
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let (mut model, mut random) = (Model::new(), Random::new(4));
    for turn in 0..6_000 {
        let key = key::from_u32(random.below(3_000));
        if turn % 3 < 2 {
            index.insert(&key, &value(turn)).unwrap();
            model.insert(key, value(turn));
        } else {
            index.remove(&key).unwrap();
            model.remove(&key);
        }
    }
    index.close();
    for _ in 0..2 {
        let before = chip.counters();
        let mut index = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
        assert_eq!(index.len() as usize, model.len());
        let after = index.flash().counters();
        let bytes = after.bytes_read - before.bytes_read;
        assert!(bytes < 64 * 1_000, "a mount has read {bytes} bytes of 64 sectors");
        assert_eq!(after.changes(), before.changes(), "a mount after a close has written");
        compare(&mut index, &model);
        index.close();
    }
}

fn cost(before: &Counters, after: &Counters) -> Cost {
    Cost {
        reads: after.reads - before.reads,
        programs: after.programs - before.programs,
        erases: after.erases - before.erases,
    }
}

fn is_within(cost: Cost, bound: Cost) -> bool {
    cost.reads <= bound.reads && cost.programs <= bound.programs && cost.erases <= bound.erases
}

#[test]
fn no_call_costs_more_than_planned() {
    for (profile, options) in [
        (SMALL, OPTIONS),
        (SMALL.with_blocks(24), Options { leaves: Some(8), ..OPTIONS }),
        (NOR.with_blocks(16), Options::new(9, 60)),
        (NOR.with_blocks(16), Options { verify: true, ..Options::new(4, 12) }),
    ] {
        let geometry = profile.geometry;
        let planned = plan::<RosetteNor>(&geometry, &profile.capabilities, &options, 1).unwrap();
        let mut chip = Chip::new(profile);
        let mut ram = vec![0; planned.ram_bytes];
        Index::<_, RosetteNor>::format(&mut chip, &options, &mut ram).unwrap();
        let mut random = Random::new(5);
        let (mut change, get) = (planned.change_after_cuts, planned.get);
        let mut refused = 0;
        for session in 0..30 {
            let before = chip.counters();
            let mut index = Index::<_, RosetteNor>::open(&mut chip, &options, &mut ram).unwrap();
            let opened = cost(&before, &index.flash().counters());
            assert!(is_within(opened, planned.open), "open: {opened:?}, {:?}", planned.open);
            for turn in 0..300u32 {
                let mut key = vec![7; options.key_bytes];
                key[..4].copy_from_slice(&key::from_u32(random.below(1_200)));
                let before = index.flash().counters();
                assert!(index.get(&key).is_ok());
                let read = cost(&before, &index.flash().counters());
                assert!(is_within(read, get), "get: {read:?}, {get:?}");
                let before = index.flash().counters();
                if random.below(10) < if session < 20 { 7 } else { 3 } {
                    match index.insert(&key, &vec![turn as u8; options.value_bytes]) {
                        Ok(_) => {}
                        Err(WriteError::Full { .. }) => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                } else {
                    index.remove(&key).unwrap();
                }
                let changed = cost(&before, &index.flash().counters());
                assert!(is_within(changed, change), "change: {changed:?}, {change:?}");
            }
            if session % 3 == 0 {
                let before = index.flash().counters();
                let chip = index.close();
                let closed = cost(&before, &chip.counters());
                assert!(is_within(closed, planned.close), "close: {closed:?}");
                change = planned.change;
            } else {
                // The next session has to settle.
                change = planned.change_after_cuts;
            }
        }
        assert!(profile.geometry.blocks > 12 || refused > 0, "the chip was never full");
    }
}

/// Each session that was not closed leaves slots that the next one kills once more.
#[test]
fn a_lookup_costs_no_more_than_planned_after_many_sessions_without_an_end() {
    let profile = NOR.with_blocks(16);
    let planned =
        plan::<RosetteNor>(&profile.geometry, &profile.capabilities, &OPTIONS, 1).unwrap();
    let mut chip = Chip::new(profile);
    let mut ram = ram(&profile, &OPTIONS);
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    index.insert(&key::from_u32(7), &value(7)).unwrap();
    let mut most = 0;
    for session in 0..120 {
        let mut index = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
        let before = index.flash().counters();
        assert_eq!(index.get(&key::from_u32(7)).unwrap(), Some(&value(7)[..]));
        let read = cost(&before, &index.flash().counters());
        assert!(is_within(read, planned.get), "session {session}: {read:?}, {:?}", planned.get);
        most = most.max(read.programs);
    }
    assert!(most > 100, "only {most} programs in a lookup");
}

/// 512 KiB, 30 % of whose bytes are records, all erases counted.
#[test]
fn a_chip_that_is_written_round_and_round_keeps_its_speed() {
    let profile = NOR.with_blocks(128);
    let options = Options { leaves: Some(115), ..OPTIONS };
    let mut chip = Chip::new(profile);
    let mut ram = ram(&profile, &options);
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &options, &mut ram).unwrap();
    let mut random = Random::new(7);
    for at in 0..10_000u32 {
        index.insert(&key::from_u32(at.wrapping_mul(0x9E37_79B1)), &value(at)).unwrap();
    }
    let mut most = 0;
    let (begun, erased) = (index.flash().now_ns(), index.flash().counters().erases);
    for turn in 0..30_000 {
        let before = index.flash().now_ns();
        let at = random.below(10_000);
        index.insert(&key::from_u32(at.wrapping_mul(0x9E37_79B1)), &value(turn)).unwrap();
        most = most.max(index.flash().now_ns() - before);
    }
    let mean = (index.flash().now_ns() - begun) as f64 / 30_000e6;
    let erases = index.flash().counters().erases - erased;
    println!(
        "512 KiB: {mean:.3} ms an update, longest {:.1} ms, {erases} erases",
        most as f64 / 1e6
    );
    assert!(mean < 0.6 && most < 52_000_000, "{mean} ms, longest {most} ns");
}

#[test]
fn wear_is_even_where_all_keys_change() {
    let profile = NOR.with_blocks(32);
    let mut chip = Chip::new(profile);
    let mut ram = ram(&profile, &OPTIONS);
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let mut random = Random::new(6);
    for turn in 0..60_000 {
        index.insert(&key::from_u32(random.below(2_000) * 0x10_0001), &value(turn)).unwrap();
    }
    let wear = index.flash().wear();
    let share = f64::from(wear.most) / wear.mean;
    println!("wear: most {} of mean {:.1}, {share:.2}", wear.most, wear.mean);
    assert!(share < 1.5, "{share}");
    assert!(wear.least * 2 > wear.most, "{wear:?}");
}
