//! How much of an expensive check runs: all of it, or a different share each day.
//!
//! Only this file reads the environment for it.
//!
//! - `NANDINA_EFFORT` is `quick`, the default, or `full`. With `full` every case is checked. With
//!   `quick` a check takes a [`Share`] of its cases.
//! - `NANDINA_SAMPLE`, a whole number, chooses the share; default: `NANDINA_SEED`, or else the days
//!   since 1970. A share of one case in N takes every case once in N days. A check that takes a
//!   share prints the number that chose it.
//!
//! Every share is a part of what `full` checks: a case that passes there passes on every day.

use std::env;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// A share of each expensive check.
    Quick,
    /// Everything.
    Full,
}

/// The effort that the environment requests; `Quick` by default.
///
/// # Panics
///
/// If `NANDINA_EFFORT` is neither `quick` nor `full`.
pub fn effort() -> Effort {
    static EFFORT: OnceLock<Effort> = OnceLock::new();
    *EFFORT.get_or_init(|| match env::var("NANDINA_EFFORT").as_deref() {
        Err(_) | Ok("" | "quick") => Effort::Quick,
        Ok("full") => Effort::Full,
        Ok(other) => panic!("NANDINA_EFFORT is '{other}', not 'quick' or 'full'"),
    })
}

/// The number that chooses shares.
///
/// # Panics
///
/// If `NANDINA_SAMPLE` or `NANDINA_SEED` is not a whole number.
pub fn sample() -> u64 {
    static SAMPLE: OnceLock<u64> = OnceLock::new();
    *SAMPLE.get_or_init(|| {
        let named = |name| {
            let number = env::var(name).ok().filter(|number| !number.is_empty())?;
            Some(number.parse().unwrap_or_else(|_| panic!("{name} is '{number}', no whole number")))
        };
        named("NANDINA_SAMPLE").or_else(|| named("NANDINA_SEED")).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.map_or(0, |since| since.as_secs() / (24 * 60 * 60))
        })
    })
}

/// The cases of a check that run: one in `one_in`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    one_in: u64,
    sample: u64,
}

impl Share {
    /// Every case, whatever the environment says.
    pub const WHOLE: Self = Self { one_in: 1, sample: 0 };

    /// Takes one case in `one_in`, chosen by [`sample`].
    ///
    /// With [`Effort::Full`] it takes every case.
    ///
    /// Prints the sample.
    pub fn one_in(one_in: u64) -> Self {
        if effort() == Effort::Full || one_in <= 1 {
            return Self::WHOLE;
        }
        println!("one case in {one_in}, NANDINA_SAMPLE={}", sample());
        Self { one_in, sample: sample() }
    }

    /// Takes one case in `one_in`, chosen by `sample`.
    #[cfg(test)]
    pub(crate) const fn chosen_by(sample: u64, one_in: u64) -> Self {
        Self { one_in, sample }
    }

    /// Whether the case with this number is taken.
    pub fn takes(&self, number: u64) -> bool {
        number.wrapping_add(self.sample).is_multiple_of(self.one_in)
    }

    /// The cases that are taken, in their order; at least one of them.
    pub fn of<T>(&self, cases: impl IntoIterator<Item = T>) -> Vec<T> {
        let cases: Vec<T> = cases.into_iter().collect();
        let share = Self { one_in: self.one_in.min(cases.len() as u64).max(1), ..*self };
        let numbered = cases.into_iter().zip(0..);
        numbered.filter(|(_, number)| share.takes(*number)).map(|(case, _)| case).collect()
    }

    /// The length of a run whose whole has length `whole`: its beginning, at least 1.
    pub fn length(&self, whole: u32) -> u32 {
        whole.div_ceil(u32::try_from(self.one_in).unwrap_or(u32::MAX))
    }

    /// The seed of random work of which a part is done: `whole` for all of it, else another one for
    /// each sample.
    pub const fn seed(&self, whole: u64) -> u64 {
        if self.one_in == 1 { whole } else { whole.wrapping_add(self.sample) }
    }

    /// The least count that a share must show where the whole must show `whole`.
    ///
    /// It is half of the share, because shares differ.
    pub fn least(&self, whole: u64) -> u64 {
        if self.one_in == 1 { whole } else { whole / self.one_in / 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_taken_once_in_as_many_days_as_cases_share_a_turn() {
        for (one_in, cases) in [(1, 5), (3, 9), (3, 10), (4, 3), (7, 1)] {
            let mut taken = vec![0; cases];
            let days = one_in.min(cases as u64);
            for sample in 20_000..20_000 + days {
                let share = Share { one_in, sample };
                let of_day = share.of(0..cases);
                assert!(!of_day.is_empty(), "one in {one_in} of {cases} on day {sample}");
                of_day.into_iter().for_each(|case| taken[case] += 1);
            }
            assert_eq!(taken, vec![1; cases], "one in {one_in} of {cases}");
        }
    }

    #[test]
    fn the_whole_is_every_case_and_its_bounds_are_unchanged() {
        assert_eq!(Share::WHOLE.of(0..4), [0, 1, 2, 3]);
        assert_eq!((Share::WHOLE.length(60), Share::WHOLE.least(7)), (60, 7));
        assert_eq!((Share::WHOLE.seed(1), Share::chosen_by(20_000, 8).seed(1)), (1, 20_001));
        let share = Share { one_in: 8, sample: 3 };
        assert_eq!((share.length(60), share.length(1), share.least(800)), (8, 1, 50));
    }
}
