//! Skewed work of 200 fills, and how evenly it has to wear a chip, for every FTL.

use nandina_sim::Chip;

use crate::numbers::Numbers;
use crate::zipf::Zipf;

/// The pages of 200 fills of a device with so many.
pub fn fills(pages: u32) -> impl Iterator<Item = u32> {
    let (law, mut numbers) = (Zipf::new(pages), Numbers(1));
    (0..200 * pages).map(move |_| law.draw(&mut numbers))
}

/// Expects that 200 fills have worn all blocks alike: the bound is that of the whole project.
pub fn expect_even_wear(chip: &Chip, what: &str) {
    let wear = chip.wear();
    println!("{what}: {wear:?}");
    assert!(wear.mean > 100.0, "{what}: {wear:?}");
    assert!(f64::from(wear.most) <= 1.2 * wear.mean, "{what}: {wear:?}");
}
