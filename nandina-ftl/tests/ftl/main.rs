//! A whole FTL against a vector of contents, through cuts and faults.
//!
//! By default the checks that cut power take a share of their cases. With `NANDINA_EFFORT=full`
//! they take all.

mod buffered;
mod checkpoints;
#[path = "../chips/mod.rs"]
mod chips;
mod cuts;
#[path = "../cutting/mod.rs"]
mod cutting;
mod demand;
mod disk;
#[path = "../even_wear/mod.rs"]
mod even_wear;
mod faults;
mod host;
mod hostile;
mod marks;
mod model;
#[path = "../numbers/mod.rs"]
mod numbers;
mod requests;
#[path = "../skewed/mod.rs"]
mod skewed;
mod small;
mod stripe;
mod unmarked;
#[allow(dead_code, reason = "other checks use what is not used here")]
#[path = "../unmarked/mod.rs"]
mod unmarked_chip;
mod volatile;
#[path = "../whole_pages/mod.rs"]
mod whole_pages;
mod worst;
#[path = "../zipf/mod.rs"]
mod zipf;

use chips::{CHIP, FAILING, Share, is_full, seeds};

/// Mappings that the checks with cuts take.
const MAPPINGS: [&str; 4] = ["page", "compact", "emt", "vet"];
