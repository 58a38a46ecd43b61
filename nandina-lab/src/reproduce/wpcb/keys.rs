//! The orders in which keys are inserted: the paper's ratio *rs*.
//!
//! The keys are the numbers from 1 on, each once. A share *rs* of them, chosen at random, comes in
//! ascending order, the others in random order (section 6.1).

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How the ascending and the random keys are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Each key is one of the ascending ones with probability *rs*.
    Mixed,
    /// First all ascending keys, then all random ones.
    AscendingFirst,
}

impl Order {
    /// Its name in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::AscendingFirst => "ascending first",
        }
    }
}

/// Keys from 1 to `count`, each once; `per_cent` of them ascend.
pub fn keys(count: u32, per_cent: u32, order: Order, seed: u64) -> Vec<u32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut random: Vec<u32> = (1..=count).collect();
    random.shuffle(&mut rng);
    let ascends = u64::from(count) * u64::from(per_cent) / 100;
    let mut ascending: Vec<u32> = random.drain(..ascends as usize).collect();
    ascending.sort_unstable();
    match order {
        Order::AscendingFirst => [ascending, random].concat(),
        Order::Mixed => {
            let mut keys = Vec::with_capacity(count as usize);
            let (mut ascending, mut random) = (ascending.into_iter(), random.into_iter());
            // A key of either kind with the probability of its share of those that are left.
            while ascending.len() + random.len() > 0 {
                let left = ascending.len() + random.len();
                let next = if rng.random_range(0..left) < ascending.len() {
                    &mut ascending
                } else {
                    &mut random
                };
                keys.extend(next.next());
            }
            keys
        }
    }
}

/// For each insert or removal of these keys, a key that is there after it.
///
/// The last removal leaves none.
pub fn looked_up(keys: &[u32], inserts: bool, seed: u64) -> Vec<u32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x100C);
    let there = |at: usize| if inserts { 0..at + 1 } else { at + 1..keys.len() };
    let there = (0..keys.len()).map(there).filter(|there| !there.is_empty());
    there.map(|there| keys[rng.random_range(there)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_comes_once_and_a_share_of_them_ascends() {
        for order in [Order::Mixed, Order::AscendingFirst] {
            let keys = keys(1_000, 25, order, 7);
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(1..=1_000));
        }
        assert!(keys(100, 100, Order::Mixed, 7).is_sorted());
        assert!(keys(100, 50, Order::AscendingFirst, 7)[..50].is_sorted());
        assert!(!keys(100, 0, Order::Mixed, 7).is_sorted());
    }
}
