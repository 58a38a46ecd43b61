//! Tries every system on an MTD device and compares it with a model.
//!
//! Records are inserted, replaced, removed, read, scanned both ways, reopened and checked. All data
//! on the device is lost; no other device is touched.
//!
//! `mtd_trial DEVICE [WORD...]`; `mtd_trial systems` lists the systems. A system that needs what
//! the device lacks is skipped, by name and with the reason. Exit code 1 if anything is wrong, 3 if
//! no system could run. Words: `only=SYSTEM`; `spare`: with the spare area; `mark`: mark an erased
//! block as bad half way; `worn`: blocks of the device are known to fail, and must be detected and
//! marked; `flips`: reads are known to flip bits, and some must be reported; `uncorrectable=PAGE`:
//! no system, but a page that is known to be unreadable must be reported so. With MTD_TRIAL_LIES in
//! the environment the trial expects a record that was never written, and must fail.

mod support;

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;

use nandina::flash::{BlockNumber, ErrorKind, Flash, FlashError, PageNumber};
use nandina::store::{SYSTEMS, Visitor, visit};
use nandina::{Index, Options, Removed, System, ram_needed};
use nandina_mtd::Mtd;

use support::{Counted, FAILED, Outcome, PASSED, SKIPPED};

const KEY_BYTES: usize = 4;
const VALUE_BYTES: usize = 12;
const ROUNDS: u32 = 3;

type Model = BTreeMap<[u8; KEY_BYTES], [u8; VALUE_BYTES]>;

struct Trial<'a> {
    device: &'a str,
    words: &'a [String],
}

impl Trial<'_> {
    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|given| given == word)
    }

    fn open(&self) -> Result<Mtd, Box<dyn Error>> {
        let mtd = Mtd::open(self.device)?;
        Ok(if self.has("spare") { mtd.with_spare()? } else { mtd })
    }

    /// Blocks that the kernel reports as bad now.
    fn bad_blocks(&self) -> Result<u32, Box<dyn Error>> {
        let mut mtd = Mtd::open_read_only(self.device)?;
        let mut bad = 0;
        for block in 0..mtd.geometry().blocks {
            bad += u32::from(mtd.is_bad(BlockNumber(block))?);
        }
        Ok(bad)
    }
}

impl Visitor for Trial<'_> {
    type Output = Result<Outcome, Box<dyn Error>>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let bad_before = self.bad_blocks()?;
        let mtd = Counted::new(self.open()?);
        if let Some(missing) = S::DESCRIPTION.needs.missing(&mtd.capabilities()) {
            return Ok(Outcome::Skipped(missing.to_string()));
        }
        let geometry = mtd.geometry();
        let options = Options::new(KEY_BYTES, VALUE_BYTES);
        let mut ram = vec![0; ram_needed::<S>(&geometry, &options)];
        let mut model = Model::new();
        let mut index = Index::<_, S>::format(mtd, &options, &mut ram)?;
        for round in 0..ROUNDS {
            change(&mut index, &mut model, round)?;
            compare(&mut index, &model)?;
            let mut mtd = index.close();
            if self.has("mark") && round == 1 {
                support::mark_an_erased_block(&mut mtd)?;
            }
            // Open again, so that no state of the last round is left in RAM.
            let mtd = Counted { chip: self.open()?, ..mtd };
            index = Index::<_, S>::open(mtd, &options, &mut ram)?;
            compare(&mut index, &model)?;
        }
        if std::env::var_os("MTD_TRIAL_LIES").is_some() {
            model.insert([0xFF; KEY_BYTES], [0; VALUE_BYTES]);
            compare(&mut index, &model)?;
        }
        let statistics = index.statistics();
        let mtd = index.close();
        let (bad_after, counts) = (self.bad_blocks()?, mtd.counts);
        if statistics.bad_blocks != bad_after {
            let told = statistics.bad_blocks;
            return Err(format!("the index knows {told} bad blocks, the kernel {bad_after}").into());
        }
        let marked = bad_after - bad_before;
        let expected = u32::from(self.has("mark")) + counts.failed_blocks();
        if marked != expected || (self.has("worn") && counts.failed_blocks() == 0) {
            return Err(format!("{marked} blocks were marked, not {expected}: {counts}").into());
        }
        if self.has("flips") && counts.corrected == 0 {
            return Err("no read told of flipped bits".into());
        }
        Ok(Outcome::Passed(format!(
            "{} records, height {}, pages of {} + {} bytes, {} blocks, {bad_before} bad before, {bad_after} \
             after; {counts}",
            statistics.records,
            statistics.height,
            geometry.page_bytes,
            geometry.spare_bytes,
            geometry.blocks,
        )))
    }
}

fn change<S: System>(
    index: &mut Index<'_, Counted, S>,
    model: &mut Model,
    round: u32,
) -> Result<(), Box<dyn Error>> {
    for turn in 0..4_000u32 {
        let number = turn.wrapping_mul(2_654_435_761) % 3_000;
        let key = number.to_be_bytes();
        if turn % 5 == 4 {
            if (index.remove(&key)? == Removed::Found) != model.remove(&key).is_some() {
                return Err(format!("remove of {number} answered wrongly").into());
            }
        } else {
            let mut value = [round as u8; VALUE_BYTES];
            value[..4].copy_from_slice(&turn.to_le_bytes());
            index.insert(&key, &value)?;
            model.insert(key, value);
        }
        if index.get(&key)? != model.get(&key).map(|value| &value[..]) {
            return Err(format!("get of {number} answered wrongly").into());
        }
    }
    Ok(())
}

fn compare<S: System>(
    index: &mut Index<'_, Counted, S>,
    model: &Model,
) -> Result<(), Box<dyn Error>> {
    let mut violations = Vec::new();
    index.check(|violation| violations.push(violation.to_string()))?;
    if !violations.is_empty() {
        return Err(violations.join("; ").into());
    }
    let mut up = index.range(..)?;
    for (key, value) in model {
        if up.next()? != Some((&key[..], &value[..])) {
            return Err(format!("the scan differs at {key:02x?}").into());
        }
    }
    if up.next()?.is_some() {
        return Err("the scan goes on after the last record".into());
    }
    let mut down = index.range_down(..)?;
    for (key, value) in model.iter().rev() {
        if down.next()? != Some((&key[..], &value[..])) {
            return Err(format!("the scan down differs at {key:02x?}").into());
        }
    }
    if down.next()?.is_some() {
        return Err("the scan down goes on after the first record".into());
    }
    Ok(())
}

/// Checks that a page known to be unreadable gives that error and no bytes.
fn unreadable(device: &str, page: &str) -> Result<Outcome, Box<dyn Error>> {
    let (mut mtd, page) = (Mtd::open(device)?, PageNumber(page.parse()?));
    let geometry = mtd.geometry();
    let mut main = vec![0x5A; geometry.page_bytes as usize];
    mtd.erase(geometry.block_of(page))?;
    mtd.program(page, &main, &[])?;
    match mtd.read(page, &mut main, &mut []) {
        Err(error) if error.kind() == ErrorKind::Uncorrectable => {
            Ok(Outcome::Passed(error.to_string()))
        }
        other => Err(format!("{page} answered {other:?}").into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((device, words)) = arguments.split_first() else {
        eprintln!("mtd_trial: name a device: mtd_trial /dev/mtdN [WORD...]");
        return ExitCode::from(2);
    };
    if device == "systems" {
        SYSTEMS.iter().for_each(|system| println!("{}", system.key));
        return ExitCode::SUCCESS;
    }
    let value = |name| words.iter().find_map(|word| word.strip_prefix(name));
    if let Some(page) = value("uncorrectable=") {
        return ExitCode::from(support::tell(device, "uncorrectable", unreadable(device, page)));
    }
    let only = value("only=");
    let (mut named, mut codes) = (false, Vec::new());
    for system in SYSTEMS.iter().filter(|system| only.is_none_or(|only| only == system.key)) {
        named = true;
        let outcome = visit(system.key, Trial { device, words });
        let outcome = outcome.unwrap_or_else(|| Err("no such system".into()));
        codes.push(support::tell(device, system.key, outcome));
    }
    match named {
        false => ExitCode::from(2),
        true if codes.contains(&FAILED) => ExitCode::from(FAILED),
        true if codes.contains(&PASSED) => ExitCode::from(PASSED),
        true => ExitCode::from(SKIPPED),
    }
}
