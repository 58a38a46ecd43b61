//! A chip without marks for bad blocks below the hybrid FTLs.

use nandina_ftl::hybrid::{Bast, Block, Buffer, Fast, Policy, SequentialRule, Transit};

use crate::unmarked_chip::hybrid;
use crate::{FAILING, Share};

fn live<P: Policy + Copy>(name: &str, policy: P) {
    hybrid::live(name, policy, &FAILING, Share::one_in(6).of(1..60));
}

#[test]
fn a_torn_page_of_a_block_that_stays_unmarked_is_decided_on_once() {
    live("block", Block);
    live("bast", Bast { log_blocks: 3 });
    live("fast", Fast { log_blocks: 3, sequential: SequentialRule::FirstPage });
    live("transit", Transit { over: Block, buffer: Buffer::as_printed(2) });
}
