//! How worn a chip is, and how long it will last.
//!
//! The forecast is a straight line through what was observed; it knows no future work and does not
//! touch the chip.

use nandina_sim::Chip;
use serde::Serialize;

/// Rows of the histogram.
const BUCKETS: u32 = 8;

/// Blocks whose erase counts lie close together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Bucket {
    /// Least erase count of the bucket.
    pub from: u32,
    /// Highest erase count of the bucket.
    pub to: u32,
    /// Blocks with an erase count between these, both included.
    pub blocks: u32,
}

/// How evenly the blocks that are not bad were erased.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Erase count of the least erased block.
    pub least: u32,
    /// Mean erase count.
    pub mean: f64,
    /// Erase count of the most erased block.
    pub most: u32,
    /// Standard deviation of the erase counts.
    pub deviation: f64,
    /// At most eight buckets of equal width from the least to the most.
    pub histogram: Vec<Bucket>,
}

impl Spread {
    /// The spread of the blocks of `chip`.
    pub fn of(chip: &Chip) -> Self {
        let bad: Vec<usize> = chip.bad_blocks().map(|block| block.0 as usize).collect();
        let counts: Vec<u32> = chip
            .erase_counts()
            .enumerate()
            .filter(|(block, _)| bad.binary_search(block).is_err())
            .map(|(_, count)| count)
            .collect();
        let (least, most) =
            (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
        let blocks = counts.len().max(1) as f64;
        let mean = counts.iter().map(|&count| f64::from(count)).sum::<f64>() / blocks;
        let squares = counts.iter().map(|&count| (f64::from(count) - mean).powi(2)).sum::<f64>();
        let width = (most - least) / BUCKETS + 1;
        let buckets = (0..BUCKETS).map(|bucket| least + bucket * width);
        let histogram = buckets
            .filter(|&from| from <= most && !counts.is_empty())
            .map(|from| {
                let to = (from + width - 1).min(most);
                let blocks = counts.iter().filter(|&&count| (from..=to).contains(&count)).count();
                Bucket { from, to, blocks: blocks as u32 }
            })
            .collect();
        Self { least, mean, most, deviation: (squares / blocks).sqrt(), histogram }
    }
}

/// The cause of a chip's wear.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Observed {
    /// This many records were inserted, replaced or removed.
    Changes(u64),
    /// This many days passed.
    Days(f64),
}

/// How much more of the observed use a chip endures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Forecast {
    /// The unit: `changes` (records inserted, replaced or removed) or `days`.
    pub unit: &'static str,
    /// Units observed so far.
    pub observed: f64,
    /// Block erases for each unit.
    pub erases_per_unit: f64,
    /// Units until the most worn block reaches the promised erases.
    ///
    /// It assumes that this block stays the most worn: a pessimistic figure. 0: it has reached them
    /// already.
    pub until_most_worn: f64,
    /// Units until the mean erase count reaches them.
    ///
    /// This is the figure if wear is even from now on.
    pub until_mean: f64,
}

/// How worn a chip is.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Wear {
    /// Key of the chip's profile.
    pub device: &'static str,
    /// Erases of a block that the maker promises; absent where there is no promise.
    pub endurance: Option<u32>,
    /// Erases of each block, by its number.
    pub erase_counts: Vec<u32>,
    /// Blocks that are marked as bad.
    pub bad_blocks: Vec<u32>,
    /// Blocks that the maker lets go bad over the chip's life.
    pub bad_blocks_max: u32,
    /// The spread of the blocks that are not bad.
    pub spread: Spread,
    /// How long the chip will last.
    pub forecast: Option<Forecast>,
    /// Why there is no forecast.
    pub no_forecast: Option<&'static str>,
}

/// Returns how worn `chip` is and how long it lasts.
///
/// `observed` is its use since it was new.
pub fn wear(chip: &Chip, observed: Option<Observed>) -> Wear {
    let profile = chip.profile();
    let endurance = (profile.endurance < u32::MAX).then_some(profile.endurance);
    let spread = Spread::of(chip);
    let forecast = forecast(chip, &spread, endurance, observed);
    Wear {
        device: profile.key,
        endurance,
        erase_counts: chip.erase_counts().collect(),
        bad_blocks: chip.bad_blocks().map(|block| block.0).collect(),
        bad_blocks_max: profile.capabilities.bad_blocks_max(profile.geometry.blocks),
        no_forecast: forecast.as_ref().err().copied(),
        forecast: forecast.ok(),
        spread,
    }
}

fn forecast(
    chip: &Chip,
    spread: &Spread,
    endurance: Option<u32>,
    observed: Option<Observed>,
) -> Result<Forecast, &'static str> {
    let endurance = endurance.ok_or("the maker promises no number of erases")?;
    let (unit, amount) = match observed {
        None => return Err("it is not known how many records were put: give --days-observed"),
        Some(Observed::Changes(changes)) => ("changes", changes as f64),
        Some(Observed::Days(days)) => ("days", days),
    };
    if amount <= 0.0 || spread.most == 0 {
        return Err("nothing was observed yet: the chip is as good as new");
    }
    let erases: u64 = chip.erase_counts().map(u64::from).sum();
    let until = |count: f64| (f64::from(endurance) - count).max(0.0) / (count / amount);
    Ok(Forecast {
        unit,
        observed: amount,
        erases_per_unit: erases as f64 / amount,
        until_most_worn: until(f64::from(spread.most)),
        until_mean: until(spread.mean),
    })
}
