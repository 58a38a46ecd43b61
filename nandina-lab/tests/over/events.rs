//! What an FTL below an index meets while power is cut: a torture that meets too little says so.
//!
//! With full effort every operation is cut, so that the torture itself demands every event.

use nandina_lab::torture::{CutRun, Events, Mode, Shares};

use crate::cuts::survive;

/// Every map, without a buffer, with the improved one, and as printed.
const MAPS: [&str; 4] = ["ftl:page", "ftl:block", "ftl:bast", "ftl:fast"];
const BUFFERS: [&str; 3] = ["", " with 2 buffer blocks", " with 2 buffer blocks as printed"];

#[test]
fn a_torture_over_each_map_meets_all_that_its_ftl_does() {
    let mut all = Events::default();
    for map in MAPS {
        for buffer in BUFFERS {
            let system = if buffer.is_empty() { "btree" } else { "wpcb" };
            let pair = format!("{system} over {map}{buffer}");
            let report = survive(&pair, Mode::Linear, CutRun::SMALL, Shares::one_in(5, 1));
            all.add(&report.met);
            println!("{pair}: {} runs, {:?}", report.runs, report.met);
        }
    }
    for (event, count) in all.all() {
        assert!(count > 100, "{event}: {all:?}");
    }
}
