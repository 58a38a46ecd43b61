//! The time at which mappings are flushed into parents does not change the index.
//!
//! A cut loses no record, and the table never holds more than its size.

use nandina::store::Description;
use nandina::{Folds, GcPolicy, RelocationMode, System};

use crate::harness::*;
use crate::victims::{case, cut_anywhere};

const FOLDS: [Folds; 4] =
    [Folds::Full, Folds::Children(0), Folds::Children(2), Folds::Children(u8::MAX)];

struct CutAnywhere;

impl Check for CutAnywhere {
    fn concerns(&self, system: &Description) -> bool {
        system.has_mapping_table()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for folds in Share::one_in(4).of(FOLDS) {
            let mut case = case(GcPolicy::Fewest, 64, RelocationMode::Together);
            case.options.folds = folds;
            // The table is full before the chip is.
            case.options.mapping_bytes = 64;
            cut_anywhere::<S>(&case).map_err(|what| format!("{folds:?}: {what}"))?;
        }
        Ok(())
    }
}

#[test]
fn whenever_mappings_are_folded_a_cut_leaves_the_old_or_the_new_state() {
    for_every_system(&CutAnywhere);
}

struct FewerParents;

impl Check for FewerParents {
    fn concerns(&self, system: &Description) -> bool {
        system.has_mapping_table()
    }

    /// Programs of the same updates, by when mappings are flushed.
    fn run<S: System + 'static>(&self) -> Outcome {
        let programs = |folds, mapping_bytes| {
            let mut case = Case::new(LONG);
            (case.options.folds, case.options.mapping_bytes) = (folds, mapping_bytes);
            with_index::<S, _>(&case, |index| {
                for turn in 0..4000u32 {
                    let number = turn.wrapping_mul(0x9E37_79B9) >> 22;
                    index.insert(&key(number), &value(number, turn)).map_err(text)?;
                    let statistics = index.statistics();
                    if statistics.mappings > statistics.mappings_max {
                        return Err(format!("{statistics:?}"));
                    }
                }
                Ok(index.flash().counters().programs)
            })
        };
        let [share, full, two, always] =
            [Folds::Share, Folds::Full, Folds::Children(2), Folds::Children(0)]
                .map(|folds| programs(folds, 128));
        let (share, full, two, always) = (share?, full?, two?, always?);
        let roomy = programs(Folds::Full, 1024)?;
        let text = format!("{roomy} {share} {full} {two} {always}");
        let rises = roomy < share && share <= full && full < two && two < always;
        if rises { Ok(()) } else { Err(text) }
    }
}

#[test]
fn a_fuller_parent_frees_more_mappings_for_each_program() {
    for_every_system(&FewerParents);
}
