//! How a transit buffer wears a chip, and what levelling that costs.
//!
//! `model.rs` holds the bound on wear under skewed updates.

use nandina::flash::Flash;
use nandina_ftl::hybrid::{
    Buffer, Fast, Hybrid, SequentialRule, Transit, logical_pages_max, ram_needed,
};
use nandina_ftl::{LogicalPages, Statistics};
use nandina_sim::Chip;

use crate::CHIP;
use crate::numbers::Numbers;

/// Writes all pages once, then `count` at random: those below `below`, or any.
///
/// The buffer has `blocks` blocks. Returns the chip, and what was counted.
fn worn(blocks: u32, levels: bool, (count, below): (u32, Option<u32>)) -> (Chip, Statistics, u64) {
    let over = Fast { log_blocks: 4, sequential: SequentialRule::FirstPage };
    let policy = Transit { over, buffer: Buffer::as_printed(blocks) };
    let mut chip = Chip::new(CHIP.with_blocks(40));
    let (geometry, capabilities) = (chip.geometry(), chip.capabilities());
    let most = logical_pages_max(&geometry, &capabilities, &policy);
    let mut ram = vec![0; ram_needed(&geometry, &capabilities, &policy, most)];
    let mut ftl = Hybrid::format(&mut chip, policy, most, &mut ram).unwrap();
    ftl.set_wear_levelling(levels);
    let mut numbers = Numbers(1);
    (0..most).for_each(|page| ftl.write(page, &[0; 512]).unwrap());
    let below = below.unwrap_or(most);
    (0..count).for_each(|_| ftl.write(numbers.below(below), &[0; 512]).unwrap());
    let (statistics, conversions) = (ftl.statistics(), ftl.conversions());
    (chip, statistics, conversions.blocks)
}

/// Section 3.2 of the paper of the WPCB-tree: a buffer wears its blocks more than others.
///
/// The FTL gives it the least worn of its free blocks each time. Nothing else levels wear here. Had
/// the buffer eight blocks of its own, each would be erased for an eighth of the conversions.
#[test]
fn the_least_worn_block_for_each_buffer_block_eases_its_wear() {
    let blocks = 8;
    let (chip, _, conversions) = worn(blocks, false, (40_000, None));
    let wear = chip.wear();
    let own = conversions as f64 / f64::from(blocks) / wear.mean;
    let shared = f64::from(wear.most) / wear.mean;
    println!("most by mean: {shared:.3}, with blocks of its own {own:.3}; {wear:?}");
    assert!(shared < 1.2 && own > 1.5 * shared, "{shared}, {own}");
}

#[test]
fn wear_levelling_is_a_part_of_what_few_buffer_blocks_cost() {
    let [few, many] = [2, 8].map(|blocks| {
        // All pages once, then those of eight logical blocks.
        let [with, without] =
            [true, false].map(|levels| worn(blocks, levels, (20_000, Some(64))).1);
        println!("{blocks} buffer blocks: with {with:?}, without {without:?}");
        with.programmed as f64 / without.programmed as f64
    });
    // Few blocks are converted after a few pages, and their erases set off moves of cold data.
    assert!(few > 1.02 && few - 1.0 > 1.5 * (many - 1.0), "{few}, {many}");
}
