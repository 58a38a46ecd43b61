//! Sums over units, by which mappings are compared however finely they divide their runs.

use nandina_ftl::mapping::{Mapping, Piece, Run};

/// Units that were passed, and a sum over their pairs of logical and physical numbers.
///
/// The sum is of products, of a logical number and the way to its physical one, so it differs where
/// numbers are paired otherwise.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    pub units: u64,
    sum: u64,
}

impl Tally {
    /// Adds every unit of a run, as if each were a run of its own.
    pub fn add(&mut self, run: Run) {
        let (logical, physical) = (u64::from(run.logical), u64::from(run.physical));
        let units = u64::from(run.length);
        // Logical numbers of the run, summed. The shift is the same for each of them.
        let numbers = (units * logical).wrapping_add(units * units.saturating_sub(1) / 2);
        let shift = physical.wrapping_sub(logical);
        self.units += units;
        self.sum = self.sum.wrapping_add(shift.wrapping_mul(numbers));
    }

    /// Adds the units of a piece that is no hole.
    pub fn add_piece(&mut self, piece: Piece) {
        if let Some(run) = piece.run() {
            self.add(run);
        }
    }
}

/// The content of a mapping: its units, and the least runs that hold them.
///
/// Neighbouring runs that continue one another are one.
pub fn content(map: &dyn Mapping) -> (Tally, u64) {
    let (mut tally, mut runs, mut last) = (Tally::default(), 0, None::<Run>);
    map.walk(&mut |run| {
        runs += u64::from(!last.is_some_and(|last| last.continues_to(&run)));
        tally.add(run);
        last = Some(run);
    });
    (tally, runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_divided_run_has_the_same_tally_and_another_pairing_a_different_one() {
        let run = Run { logical: 7, length: 9, physical: 1000 };
        let (mut whole, mut parts, mut other) =
            (Tally::default(), Tally::default(), Tally::default());
        whole.add(run);
        for at in 0..9 {
            parts.add(Run { logical: 7 + at, length: 1, physical: 1000 + at });
            other.add(Run { logical: 7 + at, length: 1, physical: 1008 - at });
        }
        assert_eq!(whole, parts);
        assert_eq!(whole.units, other.units);
        assert_ne!(whole, other);
    }
}
