//! Parses the values of options that several commands take.

use std::ops::RangeInclusive;

use clap::builder::RangedU64ValueParser;
use nandina::blocks::TRACKED_MAX;
use nandina::{Eviction, GcPolicy, LivenessTracking};

/// Parses a size within a range.
pub fn size(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// Parses how garbage collection chooses a block.
pub fn victims(text: &str) -> Result<GcPolicy, String> {
    let chosen = match text.split_once(':') {
        None if text == "fewest" => Some(GcPolicy::Fewest),
        None if text == "cost-benefit" => Some(GcPolicy::CostBenefit),
        Some(("sampled", draws)) => {
            draws.parse().ok().filter(|&draws| draws > 0).map(GcPolicy::Sampled)
        }
        Some(("tracked", blocks)) => {
            let blocks = blocks.parse().ok();
            blocks.filter(|blocks| (1..=TRACKED_MAX).contains(blocks)).map(GcPolicy::Tracked)
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

/// Parses which changes a full write buffer writes.
pub fn eviction(text: &str) -> Result<Eviction, String> {
    match text {
        "all" => Ok(Eviction::All),
        "ibsf" => Ok(Eviction::Ibsf),
        "mb" => Ok(Eviction::Mb),
        _ => Err("use all, ibsf or mb".to_owned()),
    }
}

/// Parses how valid pages are tracked.
pub fn validity(text: &str) -> Result<LivenessTracking, String> {
    match text {
        "marked" => Ok(LivenessTracking::Marked),
        "searched" => Ok(LivenessTracking::Searched),
        _ => Err("use marked or searched".to_owned()),
    }
}
