//! A chip without marks for bad blocks below the FTL.

use crate::unmarked_chip::page::live;
use crate::{FAILING, Share};

#[test]
fn a_torn_page_of_a_block_that_stays_unmarked_is_decided_on_once() {
    live(FAILING, Share::one_in(6).of(1..60));
}
