//! `spew`: writes of multiples of 8 KB up to 1 MB anywhere in a space of 16 GB to 1 TB (§6.3.2).
//!
//! The paper prints mean sizes of 83.8 KB at 16 GB and 376.8 KB at 1 TB; a uniform draw would give
//! 516 KB at each. Here sizes are geometric, cut off at 1 MB, with the mean that lies between the
//! two in proportion to a power of the space. The distribution is an assumption.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Sectors of the smallest write, of which all are multiples: 8 KB.
const STEP: u64 = 16;
/// Steps of the largest write: 1 MB.
const STEPS: u32 = 128;
/// Spaces in GiB, with the mean size of a write in KiB (Table 1).
const LEAST: (f64, f64) = (16.0, 83.8);
const MOST: (f64, f64) = (1024.0, 376.8);

/// The mean size of a write in KiB, for a space in GiB.
pub fn mean_kib(space_gib: u64) -> f64 {
    let power = (MOST.1 / LEAST.1).ln() / (MOST.0 / LEAST.0).ln();
    LEAST.1 * (space_gib as f64 / LEAST.0).powf(power)
}

/// The writes.
pub struct Spew {
    steps: u64,
    /// For each size in steps, the share of writes up to it.
    up_to: Vec<f64>,
    random: ChaCha8Rng,
}

impl Spew {
    /// Writes in a space of this many GiB, 16 to 1,024.
    pub fn new(space_gib: u64, seed: u64) -> Self {
        let mean = mean_kib(space_gib) / 8.0;
        // The mean rises with the ratio of a size's share to that of the size below it.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if mean_of(middle) < mean { low = middle } else { high = middle }
        }
        let all: f64 = (0..STEPS).map(|size| low.powi(size as i32)).sum();
        let mut sum = 0.0;
        let share = |size: u32| {
            sum += low.powi(size as i32) / all;
            sum
        };
        let up_to = (0..STEPS).map(share).collect();
        let steps = space_gib * ((1 << 30) / 512 / STEP);
        Self { steps, up_to, random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// A write: its first sector and its sectors.
    pub fn write(&mut self) -> (u64, u64) {
        let place: f64 = self.random.random();
        let below = self.up_to.partition_point(|&up_to| up_to <= place);
        let steps = (below as u64 + 1).min(u64::from(STEPS));
        let start = self.random.random_range(0..=self.steps - steps);
        (start * STEP, steps * STEP)
    }
}

/// The mean of 1 to [`STEPS`] where each is `ratio` times as frequent as the one below.
fn mean_of(ratio: f64) -> f64 {
    let (mut all, mut sum) = (0.0, 0.0);
    for size in 0..STEPS {
        let share = f64::powi(ratio, size as i32);
        all += share;
        sum += share * f64::from(size + 1);
    }
    sum / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_printed_means_and_are_multiples_of_8_kib() {
        for (space, mean) in [(16, 83.8), (1024, 376.8)] {
            assert!((mean_kib(space) - mean).abs() < 1e-9);
            let mut spew = Spew::new(space, 7);
            let (mut sum, mut largest) = (0, 0);
            for _ in 0..50_000 {
                let (start, length) = spew.write();
                assert!(start % 16 == 0 && length % 16 == 0 && (16..=2048).contains(&length));
                assert!(start + length <= space << 21);
                sum += length;
                largest = largest.max(length);
            }
            let measured = sum as f64 / 2.0 / 50_000.0;
            assert!((measured / mean - 1.0).abs() < 0.015, "{space} GiB: {measured} KiB");
            assert!(largest > 1_500, "{largest} sectors at most");
        }
    }
}
