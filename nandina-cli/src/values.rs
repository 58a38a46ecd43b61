//! Parses the values of options that several commands take.

use std::ops::RangeInclusive;

use clap::builder::RangedU64ValueParser;
use nandina::blocks::TRACKED_MAX;
use nandina::{Validity, Victims};

/// Parses a size within a range.
pub fn size(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// Parses how garbage collection chooses a block.
pub fn victims(text: &str) -> Result<Victims, String> {
    let chosen = match text.split_once(':') {
        None if text == "fewest" => Some(Victims::Fewest),
        None if text == "cost-benefit" => Some(Victims::CostBenefit),
        Some(("sampled", draws)) => {
            draws.parse().ok().filter(|&draws| draws > 0).map(Victims::Sampled)
        }
        Some(("tracked", blocks)) => {
            let blocks = blocks.parse().ok();
            blocks.filter(|blocks| (1..=TRACKED_MAX).contains(blocks)).map(Victims::Tracked)
        }
        _ => None,
    };
    chosen.ok_or_else(|| {
        format!(
            "use fewest, cost-benefit, sampled:N with 1 to 255 blocks, or tracked:N with 1 to \
             {TRACKED_MAX}"
        )
    })
}

/// Parses how valid pages are tracked.
pub fn validity(text: &str) -> Result<Validity, String> {
    match text {
        "marked" => Ok(Validity::Marked),
        "searched" => Ok(Validity::Searched),
        _ => Err("use marked or searched".to_owned()),
    }
}
