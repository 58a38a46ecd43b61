//! What operations cost, in modelled time: SPI NOR of 4 MiB, 10,000 records of 16 bytes.
//!
//! The chip takes 0.5 us and 0.1 us a byte for a read, 30.5 us and 2.6 us a byte for a program, and
//! 45 ms to erase a sector. Every change is durable when it returns.

use nandina::flash::profile::NOR;
use nandina::store::RosetteNor;
use nandina::{Index, Options, key, ram_needed};
use nandina_sim::{Chip, Counters};

use crate::model::{OPTIONS, Random, value};

/// Records.
const RECORDS: u32 = 10_000;

/// Leaves that have room in 4 KiB of RAM.
const OPTIONS_4K: Options = Options { leaves: Some(180), ..OPTIONS };

/// The chip operations of each step: reads, bytes, programs, bytes, erases.
///
/// They follow from the code alone. A change that costs more shows here.
const GOLDEN: &str = include_str!("golden.txt");

/// The `at`th key of a row without order.
fn spread(at: u32) -> [u8; 4] {
    key::from_u32((at.wrapping_mul(0x9E37_79B1)).rotate_left(7) ^ 0x5A5A_1234)
}

/// The counts of steps, and the milliseconds of each.
#[derive(Default)]
struct Report {
    rows: String,
    begun: Option<(Counters, u64, u64)>,
}

impl Report {
    fn begin(&mut self, chip: &Chip) {
        self.begun = Some((chip.counters(), chip.now_ns(), chip.time().erase_ns));
    }

    /// Ends a step of `count` operations. Returns the milliseconds of one, without its erases.
    fn end(&mut self, what: &str, count: u32, chip: &Chip) -> f64 {
        let (before, begun, erasing) = self.begun.take().unwrap();
        let after = chip.counters();
        let (all, erases) = (chip.now_ns() - begun, chip.time().erase_ns - erasing);
        let ms = |ns: u64| ns as f64 / 1e6 / f64::from(count);
        self.rows += &format!(
            "{what}: {} reads of {} bytes, {} programs of {} bytes, {} erases; {:.4} ms, {:.4} \
             without erases\n",
            after.reads - before.reads,
            after.bytes_read - before.bytes_read,
            after.programs - before.programs,
            after.bytes_programmed - before.bytes_programmed,
            after.erases - before.erases,
            ms(all),
            ms(all - erases),
        );
        ms(all - erases)
    }
}

#[test]
fn costs_of_ten_thousand_records_are_those_of_the_golden_table() {
    let mut chip = Chip::new(NOR);
    let ram_bytes = ram_needed::<RosetteNor>(&NOR.geometry, &OPTIONS_4K);
    assert!(ram_bytes <= 4_096, "{ram_bytes} bytes of RAM");
    let mut ram = vec![0; ram_bytes];
    let mut report = Report::default();
    report.begin(&chip);
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS_4K, &mut ram).unwrap();
    report.end("format", 1, index.flash());
    report.begin(index.flash());
    let mut longest = 0;
    for at in 0..RECORDS {
        let begun = index.flash().now_ns();
        index.insert(&spread(at), &value(at)).unwrap();
        longest = longest.max(index.flash().now_ns() - begun);
    }
    let insert = report.end("insert", RECORDS, index.flash());
    report.begin(index.flash());
    for at in 0..RECORDS {
        assert!(index.get(&spread(at)).unwrap().is_some());
    }
    let lookup = report.end("lookup", RECORDS, index.flash());
    report.begin(index.flash());
    for at in 0..RECORDS {
        assert!(index.get(&spread(at + 1_000_000)).unwrap().is_none());
    }
    let absent = report.end("absent", RECORDS, index.flash());
    let mut random = Random::new(1);
    report.begin(index.flash());
    for turn in 0..RECORDS {
        let begun = index.flash().now_ns();
        index.insert(&spread(random.below(RECORDS)), &value(turn)).unwrap();
        longest = longest.max(index.flash().now_ns() - begun);
    }
    let update = report.end("update", RECORDS, index.flash());
    report.begin(index.flash());
    for _ in 0..200 {
        let low = spread(random.below(RECORDS));
        let mut range = index.range(&low[..]..).unwrap();
        for _ in 0..100 {
            let _ = range.next().unwrap();
        }
    }
    let scan = report.end("scan of 100", 200, index.flash());
    report.begin(index.flash());
    for at in 0..RECORDS / 10 {
        index.remove(&spread(at * 10)).unwrap();
    }
    let delete = report.end("delete", RECORDS / 10, index.flash());
    index.close();
    report.begin(&chip);
    let index = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS_4K, &mut ram).unwrap();
    let mount = report.end("mount after a close", 1, index.flash());
    // One that is not closed is as one that was cut.
    let mut index = index;
    index.insert(&spread(1), &value(1)).unwrap();
    report.begin(&chip);
    let mut index = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS_4K, &mut ram).unwrap();
    report.end("mount after a cut", 1, index.flash());
    report.begin(index.flash());
    for at in 0..RECORDS / 10 {
        assert!(index.get(&spread(at * 10 + 1)).unwrap().is_some());
    }
    report.end("lookups after a cut", RECORDS / 10, index.flash());
    println!("RAM {ram_bytes} bytes, longest change {:.1} ms", longest as f64 / 1e6);
    println!("{}", report.rows);
    for (what, ms, most) in [
        ("insert", insert, 0.15),
        ("lookup", lookup, 0.03),
        ("absent", absent, 0.03),
        ("update", update, 0.132),
        ("scan of 100", scan, 0.6),
        ("delete", delete, 0.1),
        ("mount", mount, 8.0),
    ] {
        assert!(ms <= most, "{what}: {ms} ms, at most {most}");
    }
    assert!(longest <= 51_000_000, "longest change {longest} ns");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rosette_nor/golden.txt");
        std::fs::write(path, &report.rows).unwrap();
        return;
    }
    assert_eq!(report.rows, GOLDEN, "UPDATE_EXPECT=1 writes the table");
}
