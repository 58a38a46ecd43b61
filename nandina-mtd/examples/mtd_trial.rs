//! Puts every system of the registry on an MTD device and holds it against a model: records put, replaced,
//! removed, read, scanned, reopened, checked. All that was on the device is lost.
//!
//! `mtd_trial DEVICE [bad]`: with `bad` a block is marked as bad half way. Exit code 1 if anything is wrong.

use std::collections::BTreeMap;
use std::process::ExitCode;

use nandina::flash::{BlockNumber, Flash};
use nandina::place::{Placement, SYSTEMS, Visitor, visit};
use nandina::{Index, Options, ram_needed};
use nandina_mtd::Mtd;

type Outcome = Result<String, Box<dyn std::error::Error>>;

const KEY_BYTES: usize = 4;
const VALUE_BYTES: usize = 12;

struct Trial<'a> {
    device: &'a str,
    marks_bad: bool,
    /// Set in the environment to see that a wrong answer fails the trial.
    lies: bool,
}

impl Visitor for Trial<'_> {
    type Output = Outcome;

    fn visit<S: Placement + 'static>(self) -> Outcome {
        let mut mtd = Mtd::open(self.device)?;
        let geometry = mtd.geometry();
        let blocks = (0..geometry.blocks).map(BlockNumber);
        let bad = blocks.filter(|&block| mtd.is_bad(block).unwrap_or(true)).count();
        let options = Options::new(KEY_BYTES, VALUE_BYTES);
        let mut ram = vec![0; ram_needed::<S>(&geometry, &options)];
        let mut model = BTreeMap::new();
        let mut index = Index::<_, S>::format(mtd, &options, &mut ram)?;
        for round in 0..3u32 {
            for turn in 0..4_000u32 {
                let number = turn.wrapping_mul(2_654_435_761) % 3_000;
                let key = number.to_be_bytes();
                if turn % 5 == 4 {
                    if index.remove(&key)? != model.remove(&key).is_some() {
                        return Err(format!("remove of {number} answered wrongly").into());
                    }
                } else {
                    let mut value = [round as u8; VALUE_BYTES];
                    value[..4].copy_from_slice(&turn.to_le_bytes());
                    index.insert(&key, &value)?;
                    model.insert(key, value);
                }
            }
            compare(&mut index, &model)?;
            let mut mtd = index.close();
            if self.marks_bad && round == 1 {
                // A block that goes bad while it holds data: what it holds can still be read.
                let good = (0..geometry.blocks).map(BlockNumber);
                if let Some(block) = good.rev().find(|&block| !mtd.is_bad(block).unwrap_or(true)) {
                    mtd.mark_bad(block)?;
                }
            }
            index = Index::<_, S>::open(mtd, &options, &mut ram)?;
            compare(&mut index, &model)?;
        }
        if self.lies {
            model.insert([0xFF; KEY_BYTES], [0; VALUE_BYTES]);
            compare(&mut index, &model)?;
        }
        let statistics = index.statistics();
        Ok(format!(
            "{} records, height {}, pages of {} + {} bytes, {} blocks, {bad} bad before, {} after",
            statistics.records,
            statistics.height,
            geometry.page_bytes,
            geometry.spare_bytes,
            geometry.blocks,
            statistics.bad_blocks
        ))
    }
}

fn compare<S: Placement>(
    index: &mut Index<'_, Mtd, S>,
    model: &BTreeMap<[u8; KEY_BYTES], [u8; VALUE_BYTES]>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut violations = Vec::new();
    index.check(|violation| violations.push(violation.to_string()))?;
    if !violations.is_empty() {
        return Err(violations.join("; ").into());
    }
    let mut range = index.range(..)?;
    for (key, value) in model {
        if range.next()? != Some((&key[..], &value[..])) {
            return Err(format!("the scan differs at {key:02x?}").into());
        }
    }
    if range.next()?.is_some() {
        return Err("the scan goes on after the last record".into());
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let (Some(device), extra) = (arguments.get(1), arguments.get(2).map(String::as_str)) else {
        eprintln!("mtd_trial: name a device: mtd_trial /dev/mtdN [bad]");
        return ExitCode::from(2);
    };
    let mut failed = false;
    for system in SYSTEMS {
        let marks_bad = extra == Some("bad");
        let lies = std::env::var_os("MTD_TRIAL_LIES").is_some();
        match visit(system.key, Trial { device, marks_bad, lies }) {
            Some(Ok(what)) => println!("PASS {device} {}: {what}", system.key),
            Some(Err(error)) => {
                println!("FAIL {device} {}: {error}", system.key);
                failed = true;
            }
            None => failed = true,
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
