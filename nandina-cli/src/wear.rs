//! `nandina wear`: erases of each block, and how long the chip of an image will last.
//!
//! It does not write the image and computes no figure.

use std::path::PathBuf;

use clap::Args;
use nandina_lab::LabError;
use nandina_lab::store::look;
use nandina_lab::wear::{Observed, Spread, wear};

use crate::output::{print, print_json};
use crate::tables::table;

/// Blocks in a row of the table of erase counts.
const ROW: usize = 16;

#[derive(Args)]
pub struct Wear {
    /// The image
    image: PathBuf,
    /// Days over which the chip was worn, 0.001 to 100,000; without it, the changes that this
    /// program made are counted
    #[arg(long, value_name = "DAYS", value_parser = days, allow_negative_numbers = true)]
    days_observed: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses a minute to centuries: other times would make a forecast noise, or no number.
fn days(text: &str) -> Result<f64, &'static str> {
    let days = text.parse().ok().filter(|days| (0.001..=100_000.0).contains(days));
    days.ok_or("a number of days from 0.001 to 100000 was expected")
}

impl Wear {
    pub fn run(&self) -> Result<(), LabError> {
        let (chip, changes) = look(&self.image)?;
        let observed = match self.days_observed {
            Some(days) => Some(Observed::Days(days)),
            None => changes.map(Observed::Changes),
        };
        let found = wear(&chip, observed);
        if self.json {
            return print_json(&found);
        }
        let promised = match found.endurance {
            Some(erases) => format!("{erases} erases of each block are promised"),
            None => "no number of erases is promised".into(),
        };
        let mut text = format!(
            "{}: {}, {promised}\n\nErases of each block",
            self.image.display(),
            found.device
        );
        for (row, counts) in found.erase_counts.chunks(ROW).enumerate() {
            let counts: Vec<_> = counts.iter().map(u32::to_string).collect();
            text += &format!("\nfrom block {}: {}", row * ROW, counts.join(" "));
        }
        text += &format!("\n\n{}", histogram(&found.spread));
        text += &format!(
            "\n{} blocks are bad, the maker lets {} become so",
            found.bad_blocks.len(),
            found.bad_blocks_max
        );
        text += &match (&found.forecast, found.no_forecast) {
            (Some(forecast), _) => format!(
                "\n\nForecast, if it goes on as in the {} {} observed: {:.4} erases for each\n\
                 until the most worn block reaches what is promised: {:.0} {}\n\
                 until the mean block does: {:.0} {}",
                forecast.observed,
                forecast.unit,
                forecast.erases_per_unit,
                forecast.until_most_worn,
                forecast.unit,
                forecast.until_mean,
                forecast.unit
            ),
            (None, Some(reason)) => format!("\n\nNo forecast: {reason}"),
            (None, None) => String::new(),
        };
        print(&text)
    }
}

/// A histogram of the erase counts.
pub fn histogram(spread: &Spread) -> String {
    let mut rows = table(&["erases", "blocks"], 0);
    for bucket in &spread.histogram {
        let range = match bucket.from == bucket.to {
            true => bucket.from.to_string(),
            false => format!("{} to {}", bucket.from, bucket.to),
        };
        rows.add_row([range, bucket.blocks.to_string()]);
    }
    format!(
        "least {}, mean {:.2}, most {}, standard deviation {:.2}\n{rows}",
        spread.least, spread.mean, spread.most, spread.deviation
    )
}
