//! What operations cost, in modelled time: SPI NOR of 4 MiB, 10,000 records of 16 bytes.

use nandina::flash::profile::NOR;
use nandina::store::RosetteNor;
use nandina::{Index, Options, key, ram_needed};
use nandina_sim::Chip;

use crate::model::{OPTIONS, Random, value};

/// Records.
const RECORDS: u32 = 10_000;

/// Milliseconds of the chip's time since `before`, and those without erases.
fn ms(chip: &Chip, before: (u64, u64)) -> (f64, f64) {
    let (all, erases) = (chip.now_ns() - before.0, chip.time().erase_ns - before.1);
    (all as f64 / 1e6, (all - erases) as f64 / 1e6)
}

fn now(chip: &Chip) -> (u64, u64) {
    (chip.now_ns(), chip.time().erase_ns)
}

/// The `at`th key of a row without order.
fn spread(at: u32) -> [u8; 4] {
    key::from_u32((at.wrapping_mul(0x9E37_79B1)).rotate_left(7) ^ 0x5A5A_1234)
}

#[test]
fn costs_of_ten_thousand_records() {
    let options = Options { leaves: Some(180), ..OPTIONS };
    let mut chip = Chip::new(NOR);
    let ram_bytes = ram_needed::<RosetteNor>(&NOR.geometry, &options);
    println!("RAM {ram_bytes} B, struct {}", size_of::<Index<'static, Chip, RosetteNor>>());
    let mut ram = vec![0; ram_bytes];
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &options, &mut ram).unwrap();
    let report = |what: &str, count: u32, index: &Index<'_, &mut Chip, RosetteNor>, before| {
        let (all, without) = ms(index.flash(), before);
        let count = f64::from(count);
        println!("{what}: {:.4} ms, without erases {:.4} ms", all / count, without / count);
    };
    let before = now(index.flash());
    let mut most: f64 = 0.0;
    for at in 0..RECORDS {
        let begun = now(index.flash());
        index.insert(&spread(at), &value(at)).unwrap();
        most = most.max(ms(index.flash(), begun).0);
    }
    report("insert", RECORDS, &index, before);
    println!("longest insert {most:.2} ms, leaves {}", index.statistics().valid_pages / 16);
    let before = now(index.flash());
    for at in 0..RECORDS {
        assert!(index.get(&spread(at)).unwrap().is_some());
    }
    report("lookup", RECORDS, &index, before);
    let before = now(index.flash());
    for at in 0..RECORDS {
        assert!(index.get(&spread(at + 1_000_000)).unwrap().is_none());
    }
    report("absent", RECORDS, &index, before);
    let mut random = Random::new(1);
    let before = now(index.flash());
    for turn in 0..RECORDS {
        index.insert(&spread(random.below(RECORDS)), &value(turn)).unwrap();
    }
    report("update", RECORDS, &index, before);
    let before = now(index.flash());
    for _ in 0..200 {
        let low = spread(random.below(RECORDS));
        let mut range = index.range(&low[..]..).unwrap();
        for _ in 0..100 {
            let _ = range.next().unwrap();
        }
    }
    report("scan of 100", 200, &index, before);
    let before = now(index.flash());
    for at in 0..RECORDS / 10 {
        index.remove(&spread(at * 10)).unwrap();
    }
    report("delete", RECORDS / 10, &index, before);
    for closes in [false, true] {
        if closes {
            index.close();
        }
        let before = now(&chip);
        index = Index::<_, RosetteNor>::open(&mut chip, &options, &mut ram).unwrap();
        report(if closes { "mount after close" } else { "mount after a cut" }, 1, &index, before);
        // So that the session has something to end.
        let before = now(index.flash());
        for at in 0..RECORDS / 10 {
            assert!(index.get(&spread(at * 10 + 1)).unwrap().is_some());
        }
        report("lookups then", RECORDS / 10, &index, before);
    }
}
