//! Hybrid FTLs against a vector of contents, through cuts and faults; and counts.
//!
//! By default the checks that cut power take a share of their cases. With `NANDINA_EFFORT=full`
//! they take all.

#[path = "../chips/mod.rs"]
mod chips;
mod counts;
mod cuts;
mod disk;
mod faults;
mod host;
mod model;
#[path = "../numbers/mod.rs"]
mod numbers;
mod small;

use chips::{CHIP, FAILING, is_full};

use nandina_ftl::hybrid::SequentialRule;

use host::Which;

/// All that is tested.
const ALL: [Which; 4] = [
    Which::Block,
    Which::Bast(3),
    Which::Fast(3, SequentialRule::FirstPage),
    Which::Fast(4, SequentialRule::Continues),
];
