//! The share of a torture's cuts and episodes that is done, where not all are.

use crate::effort::Share;

/// Shares of a torture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    first: Share,
    second: Share,
}

impl Shares {
    /// Every cut, every episode.
    pub const WHOLE: Self = Self { first: Share::WHOLE, second: Share::WHOLE };

    /// Cuts at one chip operation in `first`, or does one episode in `first`.
    ///
    /// After each such cut, second cuts are at one operation in `second`. The two numbers have no
    /// common divisor, so that every pair of cuts has its day. With full effort all of them are
    /// done.
    pub fn one_in(first: u64, second: u64) -> Self {
        Self { first: Share::one_in(first), second: Share::one_in(second) }
    }

    /// Whether the first cut is made at this chip operation, or this episode done.
    pub(super) fn takes(&self, number: u64) -> bool {
        self.first.takes(number)
    }

    /// The operations after the mount at which power is cut again, after a cut at `first`.
    ///
    /// `operations` counts the chip operations from the mount to that second cut.
    pub(super) fn seconds(&self, first: u64, operations: u64) -> impl Iterator<Item = u64> + use<> {
        let second = self.second;
        (0..operations).filter(move |&operation| second.takes(first.wrapping_add(operation)))
    }

    /// The least count that the share must show where the whole must show `whole`.
    pub fn least(&self, whole: u64) -> u64 {
        self.second.least(self.first.least(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_cuts_has_its_day() {
        let (first, second) = (7, 3);
        let mut taken = vec![0; 40 * 11];
        for sample in 20_000..20_000 + first * second {
            let shares = Shares {
                first: Share::chosen_by(sample, first),
                second: Share::chosen_by(sample, second),
            };
            for cut in (0..40).filter(|&cut| shares.takes(cut)) {
                for again in shares.seconds(cut, 11) {
                    taken[(cut * 11 + again) as usize] += 1;
                }
            }
        }
        assert_eq!(taken, vec![1; 40 * 11]);
    }
}
