//! Pages that are drawn by Zipf's law, the same on every machine.

use crate::numbers::Numbers;

/// Zipf's law over pages whose ranks are scattered over the device.
pub struct Zipf {
    /// The sum of the weights up to each rank.
    sums: Vec<f64>,
}

impl Zipf {
    /// The law with the exponent 0.99.
    pub fn new(pages: u32) -> Self {
        let mut sum = 0.0;
        let weights = (1..=pages).map(|rank| f64::from(rank).powf(-0.99));
        Self {
            sums: weights
                .map(|weight| {
                    sum += weight;
                    sum
                })
                .collect(),
        }
    }

    /// The page of the next rank that is drawn.
    pub fn draw(&self, numbers: &mut Numbers) -> u32 {
        let pages = self.sums.len() as u64;
        let part = f64::from(numbers.below(u32::MAX)) / f64::from(u32::MAX);
        let sought = part * self.sums[self.sums.len() - 1];
        let rank = self.sums.partition_point(|&sum| sum < sought) as u64 % pages;
        // A prime that divides no number of pages here.
        (rank * 2_654_435_761 % pages) as u32
    }
}
