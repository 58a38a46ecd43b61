//! What a mount after a cut reads: of bare pages, and from a checkpoint.

use nandina::flash::Profile;
use nandina::flash::profile::MLC;
use nandina::store::Visitor;
use nandina::{Index, Options, System, WriteError, key, ram_needed};
use nandina_sim::{Chip, Cut};

use super::{SYSTEM, Scale};
use crate::LabError;
use crate::reproduce::{Experiment, Row};
use crate::systems::visit;

/// Cuts of each index.
const CUTS: u32 = 20;

/// Half of the chip operations from one cut to the next, at least.
const CHANGES: u32 = 997;

/// Blocks opened from one checkpoint to the next; none where a mount reads bare pages.
const WAYS: [Option<u32>; 3] = [Some(1), Some(8), None];

/// Chip operations by which each such distance is longer than the one before.
const STEP: u32 = 106;

/// Changes without a cut, before the first: what checkpoints cost.
const UNCUT: u32 = 20_000;

/// Blocks of the chips, of 512 KiB each.
const CHIPS: [u32; 2] = [128, 2_048];

/// The most reads of a mount of the prototype with a checkpoint every 8 blocks.
///
/// Its mounts settle nothing; ours move what is valid in the block that was written last.
const PROTOTYPE: f64 = 49.0;

/// Operations of all runs.
pub fn operations(scale: Scale) -> u64 {
    (WAYS.len() * CHIPS.len()) as u64 * u64::from(scale.records + UNCUT + CUTS * CHANGES)
}

struct Measure<'m> {
    profile: Profile,
    checkpoints: Option<u32>,
    records: u32,
    seed: u64,
    progress: &'m (dyn Fn(u64) + Sync),
}

impl Visitor for Measure<'_> {
    /// The reads of each mount, and programs a change.
    type Output = Result<(Vec<u64>, f64), LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let failed =
            |error: &dyn std::fmt::Display| LabError(format!("{}: {error}", S::DESCRIPTION.key));
        let leaves = Some(self.records / 1_000 * 4 + 50);
        let options = Options { checkpoints: self.checkpoints, leaves, ..Options::new(4, 4) };
        let mut chip = Chip::with_seed(self.profile, self.seed);
        let mut ram = vec![0; ram_needed::<S>(&self.profile.geometry, &options)];
        let mut index =
            Index::<_, S>::format(&mut chip, &options, &mut ram).map_err(|error| failed(&error))?;
        // An odd factor orders all keys anew.
        let spread = |number: u32| key::from_u32(number.wrapping_mul(0x9E37_79B1));
        for number in 0..self.records {
            index.insert(&spread(number), &[0; 4]).map_err(|error| failed(&error))?;
            if number % 1024 == 1023 {
                (self.progress)(1024);
            }
        }
        (self.progress)(u64::from(self.records % 1024));
        let before = index.flash().counters().programs;
        for number in 0..UNCUT {
            let at = number.wrapping_mul(0x85EB_CA6B) % self.records;
            let value = (number + CUTS + 1).to_le_bytes();
            index.insert(&spread(at), &value).map_err(|error| failed(&error))?;
        }
        (self.progress)(u64::from(UNCUT));
        let programs = index.flash().counters().programs - before;
        let programs = programs as f64 / f64::from(UNCUT);
        drop(index);
        let mut reads = Vec::new();
        let mut changed = 0u32;
        for cut in 0..CUTS {
            // In a change, or in what a change makes necessary: the mount takes about as long as the
            // one before.
            let kind = Cut::ALL[cut as usize % Cut::ALL.len()];
            let mount =
                reads.last().copied().unwrap_or_else(|| self.profile.geometry.pages().into());
            // The distances grow, so that cuts fall anywhere between two checkpoints.
            chip.cut_at(mount + u64::from(2 * CHANGES + STEP * cut), kind);
            let mut index = Index::<_, S>::open(&mut chip, &options, &mut ram)
                .map_err(|error| failed(&error))?;
            loop {
                changed = changed.wrapping_add(0x85EB_CA6B);
                let number = changed % self.records;
                match index.insert(&spread(number), &(cut + 1).to_le_bytes()) {
                    Ok(_) => {}
                    Err(WriteError::Device(_)) => break,
                    Err(error) => return Err(failed(&error)),
                }
            }
            drop(index);
            chip.restore_power();
            (self.progress)(u64::from(CHANGES));
            let before = chip.counters().reads;
            let index = Index::<_, S>::open(&mut chip, &options, &mut ram)
                .map_err(|error| failed(&error))?;
            reads.push(index.flash().counters().reads - before);
        }
        Ok((reads, programs))
    }
}

/// Mount reads after a cut.
pub fn experiment(
    scale: Scale,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let (mut rows, mut orderings) = (Vec::new(), Vec::new());
    for blocks in CHIPS {
        for checkpoints in WAYS {
            let blocks = (blocks / scale.blocks_by).max(24);
            let size = format!("{} MiB", blocks / 2);
            let profile = MLC.without_pairing().with_blocks(blocks);
            let records = scale.records;
            let measure = Measure { profile, checkpoints, records, seed, progress };
            let (reads, programs) =
                visit(SYSTEM, measure).unwrap_or_else(|| Err(LabError::no_system(SYSTEM)))?;
            let most = reads.iter().copied().max().unwrap_or(0) as f64;
            let mean = reads.iter().sum::<u64>() as f64 / reads.len().max(1) as f64;
            let way = match checkpoints {
                Some(1) => "checkpoint for each block".into(),
                Some(every) => format!("checkpoint every {every} blocks"),
                None => "bare pages".into(),
            };
            let config = format!("{size}, {way}");
            rows.push(Row::alone(SYSTEM, &config, "programs a change", programs, "pages"));
            rows.push(Row::alone(SYSTEM, &config, "reads, mean", mean, "pages"));
            rows.push(match checkpoints {
                Some(8) => Row::beside(SYSTEM, &config, "reads, most", PROTOTYPE, most, "pages"),
                _ => Row::alone(SYSTEM, &config, "reads, most", most, "pages"),
            });
            if checkpoints.is_some() {
                let most_blocks = 3 * profile.geometry.pages_per_block;
                orderings.push((
                    format!(
                        "{size}, {way}: a mount after a cut reads at most the pages of 3 blocks"
                    ),
                    most <= f64::from(most_blocks),
                ));
            }
        }
    }
    let title = "What a mount after a cut reads";
    Ok(Experiment { orderings, ..Experiment::of("mounts", title, rows) })
}
