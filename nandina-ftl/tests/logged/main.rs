//! FTLs with log records against a vector of contents, through cuts and faults; and counts.
//!
//! By default the checks that cut power take a share of their cases. With `NANDINA_EFFORT=full`
//! they take all.

#[path = "../chips/mod.rs"]
mod chips;
mod counts;
mod cuts;
#[path = "../cutting/mod.rs"]
mod cutting;
#[path = "../even_wear/mod.rs"]
mod even_wear;
mod faded;
mod host;
mod kinds;
mod model;
#[path = "../numbers/mod.rs"]
mod numbers;
#[path = "../skewed/mod.rs"]
mod skewed;
mod worst;
#[path = "../zipf/mod.rs"]
mod zipf;

use chips::{Share, is_full, seeds};
use kinds::{CHIPS, FAILING, SCHEMES};
