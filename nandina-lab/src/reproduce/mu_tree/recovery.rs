//! Section 5.2: the reads of a mount.
//!
//! They depend on the size of the chip and on what was written since the last checkpoint. The paper
//! describes checkpoints and gives no figures.

use crate::systems::visit;
use nandina::flash::profile::MLC;
use nandina::store::Visitor;
use nandina::{Index, Options, System, key, ram_needed};
use nandina_sim::Chip;

use super::SYSTEMS;
use crate::LabError;
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

/// Bytes of a value: at most ten records fill a page, so a tree soon spans the chip.
const VALUE_BYTES: usize = 400;

/// Blocks opened from one checkpoint to the next.
const EVERY: u32 = 12;

/// Records for each block of the chip.
const FILLED: u32 = 300;

/// Blocks of the largest chip.
const LARGEST: u32 = 2048;

/// Chips of one size, two, four... up to the largest; quick runs end earlier.
fn sizes(quick: bool) -> Vec<u32> {
    let most = if quick { LARGEST / 8 } else { LARGEST };
    (0..).map(|power| 32 << power).take_while(|&blocks| blocks <= most).collect()
}

/// Changes of all runs.
pub fn operations(quick: bool) -> u64 {
    let records: u64 = sizes(quick).into_iter().map(records).sum();
    2 * SYSTEMS.len() as u64 * records
}

fn records(blocks: u32) -> u64 {
    u64::from(blocks * FILLED)
}

/// The reads of mounts of one index.
struct Mounts {
    /// Points of pages programmed and mount reads.
    ///
    /// The pages are those since the last checkpoint or since the index was filled.
    points: Vec<(f64, f64)>,
}

struct Measure<'m> {
    blocks: u32,
    checkpoints: Option<u32>,
    progress: &'m (dyn Fn(u64) + Sync),
}

impl Visitor for Measure<'_> {
    type Output = Result<Mounts, LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let failed =
            |error: &dyn std::fmt::Display| LabError(format!("{}: {error}", S::DESCRIPTION.key));
        let profile = MLC.without_pairing().with_blocks(self.blocks);
        let options = Options { checkpoints: self.checkpoints, ..Options::new(4, VALUE_BYTES) };
        let mut chip = Chip::new(profile);
        let mut ram = vec![0; ram_needed::<S>(&profile.geometry, &options)];
        let mut index =
            Index::<_, S>::format(&mut chip, &options, &mut ram).map_err(|error| failed(&error))?;
        let records = records(self.blocks) as u32;
        let mut value = [0; VALUE_BYTES];
        for number in 0..records {
            value[..4].copy_from_slice(&number.to_le_bytes());
            index.insert(&key::from_u32(number), &value).map_err(|error| failed(&error))?;
            if number % 1024 == 1023 {
                (self.progress)(1024);
            }
        }
        (self.progress)(u64::from(records % 1024));
        index.checkpoint().map_err(|error| failed(&error))?;
        let mut mounts = Mounts { points: Vec::new() };
        let (mut since, mut updated) = (index.flash().counters().programs, 0u32);
        drop(index);
        // Between one checkpoint and the next, and a block further.
        for _ in 0..=EVERY {
            let before = chip.counters();
            let mut index = Index::<_, S>::open(&mut chip, &options, &mut ram)
                .map_err(|error| failed(&error))?;
            let reads = index.flash().counters().reads - before.reads;
            if self.checkpoints.is_some() && !index.statistics().from_checkpoint {
                since = before.programs;
            }
            mounts.points.push(((before.programs - since) as f64, reads as f64));
            let goal = before.programs + 120;
            while index.flash().counters().programs < goal {
                // Far from each other, so that many nodes change.
                let number = updated.wrapping_mul(0x9E37_79B1) % records;
                updated += 1;
                value[4..8].copy_from_slice(&updated.to_le_bytes());
                index.insert(&key::from_u32(number), &value).map_err(|error| failed(&error))?;
            }
        }
        Ok(mounts)
    }
}

/// Mount reads by size and by distance.
pub fn experiment(quick: bool, progress: &(dyn Fn(u64) + Sync)) -> Result<Experiment, LabError> {
    let (mut rows, mut by_size, mut by_distance) = (Vec::new(), Vec::new(), Vec::new());
    let mut orderings = Vec::new();
    for system in SYSTEMS {
        let mut last = [0.0; 2];
        for (way, checkpoints) in [None, Some(EVERY)].into_iter().enumerate() {
            let name = ["every block", "checkpoint"][way];
            let mut points = Vec::new();
            for blocks in sizes(quick) {
                let measure = Measure { blocks, checkpoints, progress };
                let mounts = visit(system, measure)
                    .unwrap_or_else(|| Err(LabError::no_system(system)))?
                    .points;
                let most = mounts.iter().map(|point| point.1).fold(0.0, f64::max);
                let config = format!("{blocks} blocks, {name}");
                last[way] = most;
                if let (Some(_), [first, later, ..]) = (checkpoints, &mounts[..]) {
                    rows.push(Row::alone(system, &config, "reads at once", first.1, "pages"));
                    rows.push(Row::alone(system, &config, "reads a block later", later.1, "pages"));
                    last[way] = first.1;
                }
                rows.push(Row::alone(system, &config, "reads at most", most, "pages"));
                let ms = most * MLC.page_read_ns() as f64 / 1e6;
                rows.push(Row::alone(system, &config, "longest mount", ms, "ms"));
                points.push((f64::from(blocks), most));
                if checkpoints.is_some() && (blocks == 128 || Some(&blocks) == sizes(quick).last())
                {
                    by_distance.push(Series {
                        name: format!("{system}, {blocks} blocks"),
                        points: mounts,
                    });
                }
            }
            by_size.push(Series { name: format!("{system}, {name}"), points });
        }
        orderings.push((
            format!(
                "{system}: on the largest chip a mount right after a checkpoint reads less than a tenth"
            ),
            10.0 * last[1] < last[0],
        ));
    }
    let lines = |series| Content::Lines { logarithmic: false, series };
    let figures = vec![
        Figure {
            id: "mount-by-size".into(),
            title: "Longest mount by size of the chip (128 pages of 4 KiB in a block)".into(),
            x: "blocks".into(),
            y: "page reads".into(),
            content: lines(by_size),
        },
        Figure {
            id: "mount-by-distance".into(),
            title: "Mount by what was written since the checkpoint".into(),
            x: "pages programmed since".into(),
            y: "page reads".into(),
            content: lines(by_distance),
        },
    ];
    let title = "Section 5.2: what a mount reads, without and with checkpoints (every 12 blocks)";
    Ok(Experiment { orderings, figures, ..Experiment::of("recovery", title, rows) })
}
