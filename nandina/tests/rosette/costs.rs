//! What trails cost, and what a mount reads with them.

use nandina::flash::{Geometry, Profile, profile::MLC};
use nandina::store::{Rosette, Way};
use nandina::{Index, Options, key, plan, ram_needed};
use nandina_sim::{Chip, Cut};

use crate::ways::{found, ram};

/// Pages of 4 KiB, of which a trail tells of 32.
const LARGE: Profile = MLC.without_pairing().with_blocks(64);

/// Records of an index whose keys are in no order.
const RECORDS: u32 = 40_000;

fn spread(number: u32) -> [u8; 4] {
    key::from_u32(number.wrapping_mul(0x9E37_79B1))
}

#[test]
fn a_mount_after_a_cut_reads_a_page_of_each_33_and_what_divides_ranges() {
    let options = Options { checkpoints: Some(8), ..Options::new(4, 4) };
    let mut chip = Chip::with_seed(LARGE, 1);
    let mut memory = ram(&chip, &options);
    let mut index = Index::<_, Rosette>::format(&mut chip, &options, &mut memory).unwrap();
    for number in 0..RECORDS {
        index.insert(&spread(number), &[0; 4]).unwrap();
    }
    let plan = plan::<Rosette>(&LARGE.geometry, &LARGE.capabilities, &options, RECORDS).unwrap();
    let (mut by_trails, mut by_all, mut changed) = (Vec::new(), Vec::new(), 0u32);
    for cut in 0..16 {
        chip.cut_at_change(300 + 61 * cut, Cut::ALL[cut as usize % Cut::ALL.len()]);
        let mut index = Index::<_, Rosette>::open(&mut chip, &options, &mut memory).unwrap();
        loop {
            changed += 1;
            if index.insert(&spread(changed.wrapping_mul(0x85EB_CA6B) % RECORDS), &[1; 4]).is_err()
            {
                break;
            }
        }
        chip.restore_power();
        let (trails, few) = found(&chip, &options, Way::Trails).unwrap();
        let (read, many) = found(&chip, &options, Way::Checkpoint).unwrap();
        assert!(trails.is_some() && trails == read);
        assert!(few <= plan.open.reads, "{few} reads, planned {}", plan.open.reads);
        by_trails.push(few);
        by_all.push(many);
    }
    println!("{by_trails:?}\n{by_all:?}");
    let sum = |reads: &[u64]| reads.iter().sum::<u64>();
    assert!(by_trails.iter().max() <= Some(&140), "{by_trails:?}");
    assert!(5 * sum(&by_trails) < sum(&by_all), "{by_trails:?} {by_all:?}");
}

#[test]
fn trails_cost_two_bytes_for_each_page_they_tell_of_and_a_fiftieth_of_the_records() {
    for (page_bytes, told) in [(512, 4), (2048, 16), (4096, 32), (16_384, 128)] {
        let geometry = Geometry { page_bytes, spare_bytes: 64, ..LARGE.geometry };
        let options = Options { leaves: Some(100), ..Options::new(4, 4) };
        let with = Options { checkpoints: Some(8), ..options };
        let more =
            ram_needed::<Rosette>(&geometry, &with) - ram_needed::<Rosette>(&geometry, &options);
        assert_eq!(more, 2 * told, "pages of {page_bytes} bytes");
        // The most records of one leaf.
        let most = |options: &Options| {
            let leaves = |records| {
                plan::<Rosette>(&geometry, &LARGE.capabilities, options, records)
                    .unwrap()
                    .valid_pages
            };
            (0..).find(|&records| leaves(records) > 1).unwrap()
        };
        let (less, records) = (most(&with), most(&options));
        assert!(less < records && 50 * (records - less) <= records + 50, "{less} of {records}");
    }
}

#[test]
fn a_session_that_follows_a_close_writes_checkpoints() {
    let profile = Profile {
        geometry: Geometry { blocks: 40, ..nandina_sim::TINY.geometry },
        ..nandina_sim::TINY
    };
    let options = Options { checkpoints: Some(2), ..Options::new(4, 60) };
    let mut chip = Chip::with_seed(profile, 1);
    let mut memory = ram(&chip, &options);
    let mut index = Index::<_, Rosette>::format(&mut chip, &options, &mut memory).unwrap();
    for number in 0..100 {
        index.insert(&spread(number), &[1; 60]).unwrap();
    }
    index.close();
    let mut index = Index::<_, Rosette>::open(&mut chip, &options, &mut memory).unwrap();
    for number in 0..300 {
        index.insert(&spread(number % 100), &[number as u8; 60]).unwrap();
    }
    let index = Index::<_, Rosette>::open(&mut chip, &options, &mut memory).unwrap();
    assert!(index.statistics().from_checkpoint);
}
