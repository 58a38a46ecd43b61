//! Counts what a mapping holds: tests and examples share it.

use nandina_ftl::mapping::{Mapping, Run};

/// The least runs that hold the content, those of a walk joined; and their units.
pub fn least_runs(map: &dyn Mapping) -> (usize, u64) {
    let (mut runs, mut units, mut last) = (0, 0, None::<Run>);
    map.walk(&mut |run| {
        runs += usize::from(!last.is_some_and(|last| last.continues_to(&run)));
        units += u64::from(run.length);
        last = Some(run);
    });
    (runs, units)
}
