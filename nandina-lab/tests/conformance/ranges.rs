//! Ranges in both directions, with bounds below, inside, between and above the records of any leaf.

use nandina::System;
use std::ops::Bound;

use crate::harness::*;

struct EveryRange;

/// Records have even numbers from 100 up, so that odd numbers fall between them.
const RECORDS: u32 = 150;

impl Check for EveryRange {
    fn run<S: System + 'static>(&self) -> Outcome {
        with_index::<S, _>(&Case::new(SMALL), |index| {
            let mut model = Model::new();
            // The log of a block has room for all records once.
            let turns = if S::DESCRIPTION.has_leaf_blocks() { 3 * RECORDS } else { RECORDS };
            for number in (0..turns).map(|turn| 100 + turn * 7 % RECORDS * 2) {
                index.insert(&key(number), &value(number, 0)).map_err(text)?;
                model.insert(key(number).to_vec(), value(number, 0).to_vec());
            }
            if index.statistics().height < 2 {
                return Err("the tree is too low to have leaf boundaries".into());
            }
            let edges = [0, 99, 100, 101, 130, 131, 163, 200, 311, 398, 399, 400, u32::MAX];
            for low in edges {
                for high in edges.into_iter().filter(|&high| high > low) {
                    self.compare_bounds(index, &model, low, high)?;
                }
            }
            // Every record as the one edge of a range crosses every boundary between leaves.
            for number in Share::one_in(5).of(99..400) {
                self.compare_bounds(index, &model, number, 400)?;
                self.compare_bounds(index, &model, 0, number)?;
            }
            let count = index.range(&key(100)..&key(200)).map_err(text)?.count().map_err(text)?;
            if count != 50 {
                return Err(format!("50 records counted as {count}"));
            }
            let error = index.range(&b"long"[..1]..).map(|_| ()).map_err(text);
            if error != Err("KeySize { expected: 4, given: 1 }".into()) {
                return Err(format!("a bound of a wrong size gave {error:?}"));
            }
            Ok(())
        })
    }
}

impl EveryRange {
    fn compare_bounds<F: nandina::flash::Flash, S: System>(
        &self,
        index: &mut nandina::Index<'_, F, S>,
        model: &Model,
        low: u32,
        high: u32,
    ) -> Outcome {
        let (low, high) = (key(low), key(high));
        let lows = [Bound::Unbounded, Bound::Included(&low[..]), Bound::Excluded(&low[..])];
        let highs = [Bound::Unbounded, Bound::Included(&high[..]), Bound::Excluded(&high[..])];
        for bounds in lows.into_iter().flat_map(|low| highs.map(|high| (low, high))) {
            let expected: Vec<_> = model.range::<[u8], _>(bounds).collect();
            let mut range = index.range(bounds).map_err(text)?;
            for (key, value) in &expected {
                if range.next().map_err(text)? != Some((&key[..], &value[..])) {
                    return Err(format!("upwards in {bounds:02x?}: not at {key:02x?}"));
                }
            }
            for _ in 0..2 {
                if range.next().map_err(text)?.is_some() {
                    return Err(format!("upwards in {bounds:02x?}: beyond the end"));
                }
            }
            let mut range = index.range_down(bounds).map_err(text)?;
            for (key, value) in expected.iter().rev() {
                if range.next().map_err(text)? != Some((&key[..], &value[..])) {
                    return Err(format!("downwards in {bounds:02x?}: not at {key:02x?}"));
                }
            }
            if range.next().map_err(text)?.is_some() {
                return Err(format!("downwards in {bounds:02x?}: beyond the end"));
            }
        }
        Ok(())
    }
}

#[test]
fn ranges_equal_those_of_a_btree_map() {
    for_every_system(&EveryRange);
}
