//! Hybrid FTLs against a vector of contents, through cuts and faults; and counts.
//!
//! By default the checks that cut power take a share of their cases. With `NANDINA_EFFORT=full`
//! they take all.

#[path = "../chips/mod.rs"]
mod chips;
mod conversions;
mod counts;
mod crc_unit;
mod cuts;
#[path = "../cutting/mod.rs"]
mod cutting;
mod disk;
#[path = "../even_wear/mod.rs"]
mod even_wear;
mod faded;
mod faults;
mod host;
mod kinds;
mod model;
#[path = "../numbers/mod.rs"]
mod numbers;
#[path = "../skewed/mod.rs"]
mod skewed;
mod small;
mod transit;
mod transit_mounts;
mod transit_wear;
#[path = "../tree/mod.rs"]
mod tree;
mod unmarked;
#[allow(dead_code, reason = "other checks use what is not used here")]
#[path = "../unmarked/mod.rs"]
mod unmarked_chip;
#[path = "../whole_pages/mod.rs"]
mod whole_pages;
mod worst;
#[path = "../zipf/mod.rs"]
mod zipf;

use chips::{CHIP, FAILING, Share, is_full, seeds};
use kinds::{ALL, BARE, BUFFERED};
