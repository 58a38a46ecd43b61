//! The cost of a choice among many blocks.
//!
//! One page becomes garbage and one valid, then the blocks to open and to collect are chosen.

use divan::Bencher;
use divan::counter::ItemsCount;
use nandina::blocks::{Blocks, GcPolicy, LivenessTracking, WearPolicy};
use nandina::flash::{BlockNumber, Geometry, PageNumber};

fn main() {
    divan::main();
}

/// Pages of a block.
const PAGES: u32 = 64;

#[divan::bench(args = [2_048, 4_096, 16_384, 65_536, 1_048_576])]
fn choices(bencher: Bencher<'_, '_>, count: u32) {
    let geometry =
        Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: PAGES, blocks: count };
    let (validity, victims, wear) =
        (LivenessTracking::Marked, GcPolicy::Fewest, WearPolicy::Counted);
    let mut ram = vec![0; Blocks::ram_needed(&geometry, validity, victims, wear)];
    let mut blocks = Blocks::new(&mut ram, &geometry, validity, victims, wear, PAGES);
    // Most blocks hold some pages; one in 64 is free.
    let mut state = 1_u32;
    let mut random = move |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(state) * u64::from(below)) >> 32) as u32
    };
    for block in (0..count).filter(|block| block % 64 > 0) {
        blocks.set_erase_count(BlockNumber(block), random(50));
        for _ in 0..20 {
            blocks.set_valid(PageNumber(block * PAGES + random(PAGES)), true);
        }
    }
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        blocks.set_valid(PageNumber(random(count / 64) * 64 * PAGES + PAGES), true);
        let page = PageNumber(random(count * PAGES));
        let valid = blocks.is_valid(page);
        blocks.set_valid(page, !valid);
        blocks.set_valid(page, valid);
        (blocks.next_free(None, &[]), blocks.victim(None))
    });
}
