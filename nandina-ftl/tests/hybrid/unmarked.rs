//! A chip without marks for bad blocks, on which the block with a torn page can no more be erased.
//!
//! The page stays unstable, and no later mount knows that the block is bad. All mounts must decide
//! about the page as the first one did.

use nandina_ftl::hybrid::{Bast, Block, Buffer, Fast, Policy, SequentialRule, Transit};

use crate::worn::live;
use crate::{FAILING, Share};

fn live_everywhere<P: Policy + Copy>(name: &str, policy: P) {
    let mut torn = 0;
    for before in Share::one_in(6).of((1..60).collect::<Vec<_>>()) {
        for left in 0..12 {
            for changes in [1, 7, 40] {
                let what = format!("{name}: {before}, {left}, {changes}");
                torn += u32::from(live((&FAILING, policy, before), left, changes, &what));
            }
        }
    }
    assert!(torn > 50, "{name}: {torn} programs were torn");
}

#[test]
fn a_torn_page_of_a_block_that_stays_unmarked_is_decided_on_once() {
    let fast = Fast { log_blocks: 3, sequential: SequentialRule::FirstPage };
    live_everywhere("block", Block);
    live_everywhere("bast", Bast { log_blocks: 3 });
    live_everywhere("fast", fast);
    live_everywhere("transit", Transit { over: Block, buffer: Buffer::as_printed(2) });
}
