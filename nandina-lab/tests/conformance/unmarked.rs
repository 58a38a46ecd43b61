//! A chip without marks for bad blocks, on which the block with a torn page can no more be erased.
//!
//! The page stays unstable, and no later mount knows that the block is bad. All mounts must decide
//! about the page as the first one did.

use std::ops::Range;

use nandina::System;
use nandina::flash::Flash;
use nandina::store::Description;
use nandina_lab::torn::{Shown, Torn};
use nandina_lab::torture::oracle::contents;

use crate::formats::filled;
use crate::harness::*;

/// Replaces the record of `number` until a program is torn, the one after `left` others.
///
/// `model` follows as far as the replacements were made. Returns the key.
fn tear<S: System>(
    index: &mut OnBus<'_, S>,
    model: &mut Model,
    number: u32,
    left: u32,
) -> [u8; KEY_BYTES] {
    device_of::<Torn, S>(index).left.set(Some(left));
    for version in 1..5 {
        if index.insert(&key(number), &value(number, version)).is_err() {
            break;
        }
        model.insert(key(number).to_vec(), value(number, version).to_vec());
    }
    key(number)
}

/// What a mount finds of a record whose replacement was torn; `model` follows.
fn see<S: System>(index: &mut OnBus<'_, S>, model: &mut Model, torn: &[u8]) -> Outcome {
    let seen = index.get(torn).map_err(text)?.map(<[u8]>::to_vec);
    model.insert(torn.to_vec(), seen.ok_or("the record is gone")?);
    Ok(())
}

struct DecidedOnce;

impl DecidedOnce {
    /// Tears a replacement in one program of `chip`. The session before may end by `close`.
    ///
    /// Returns the model and the key, or `None` if no page was torn.
    fn torn<S: System>(
        case: &Case,
        chip: &mut Torn,
        (records, left): (u32, u32),
        ends: bool,
        ram: &mut [u8],
    ) -> Result<Option<(Model, [u8; KEY_BYTES])>, String> {
        if ends {
            open_on::<S>(chip, &case.options, ram).map_err(text)?.close();
        }
        let mut index = open_on::<S>(chip, &case.options, ram).map_err(text)?;
        let mut model = contents(&mut index).map_err(text)?;
        let torn = tear(&mut index, &mut model, records / 2, left);
        drop(index);
        chip.left.set(None);
        Ok(chip.hidden.map(|_| (model, torn)))
    }

    /// Mounts a chip with a torn page often.
    fn live<S: System>(
        case: &Case,
        mut chip: Torn,
        (mut model, torn): (Model, [u8; KEY_BYTES]),
        (records, first, changes): (u32, Shown, u32),
        ram: &mut [u8],
    ) -> Outcome {
        let page = chip.hidden.ok_or("no page is torn")?;
        let block = chip.geometry().block_of(page).0;
        (chip.worn, chip.shown) = (block..block + 1, first);
        let mut index = open_on::<S>(&mut chip, &case.options, ram).map_err(text)?;
        see(&mut index, &mut model, &torn)?;
        if contents(&mut index).map_err(text)? != model {
            return Err("the first mount: the records are others".into());
        }
        for turn in 0..changes {
            let number = (records / 2 + 1 + turn) % records;
            if number != records / 2 {
                index.insert(&key(number), &value(number, 100 + turn)).map_err(text)?;
                model.insert(key(number).to_vec(), value(number, 100 + turn).to_vec());
            }
        }
        drop(index);
        for (at, shown) in
            [Shown::Both, Shown::Written, Shown::Erased, Shown::Both].into_iter().enumerate()
        {
            chip.shown = shown;
            let mut index = open_on::<S>(&mut chip, &case.options, ram).map_err(text)?;
            if contents(&mut index).map_err(text)? != model {
                return Err(format!("a later mount ({at}): the records are others"));
            }
            let mut found = Vec::new();
            index.check(|violation| found.push(violation.to_string())).map_err(text)?;
            if !found.is_empty() {
                return Err(format!("a later mount ({at}): {found:?}"));
            }
            index.close();
        }
        Ok(())
    }
}

impl Check for DecidedOnce {
    fn concerns(&self, system: &Description) -> bool {
        // A system of mappings writes down nowhere what a mount left out: it erases that
        // (docs/RELIABILITY.md, "What is not promised").
        is_log(system) && !system.has_mapping_table()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG).suited::<S>();
        case.profile.capabilities.bad_blocks_per_mille = 100;
        let mut ram = case.ram::<S>();
        let mut torn = 0;
        for records in Share::one_in(10).of((10..60).collect::<Vec<_>>()) {
            let filled = filled::<S>(&case, records, &mut ram)?;
            for left in 0..5 {
                for ends in [false, true] {
                    let (mut chip, turn) = (filled.clone(), (records, left));
                    let Some((model, key)) =
                        Self::torn::<S>(&case, &mut chip, turn, ends, &mut ram)?
                    else {
                        continue;
                    };
                    for shown in [Shown::Erased, Shown::Both] {
                        for changes in if ends { [0, 3] } else { [0, 40] } {
                            let (chip, seen) = (chip.clone(), (model.clone(), key));
                            let how = (records, shown, changes);
                            Self::live::<S>(&case, chip, seen, how, &mut ram).map_err(|what| {
                                let visible = shown == Shown::Both;
                                format!("{turn:?}, visible {visible}, {ends}, {changes}: {what}")
                            })?;
                            torn += 1;
                        }
                    }
                }
            }
        }
        if torn == 0 { Err("nothing was torn".into()) } else { Ok(()) }
    }
}

#[test]
fn a_torn_page_of_a_block_that_stays_unmarked_is_decided_on_once() {
    for_every_system(&DecidedOnce);
}

/// Anchors can no more be erased, and a checkpoint is to be made void.
///
/// The first page of a session, which was torn, shows one mount that the checkpoint is outdated.
/// The next one does not see it.
struct WornAnchors;

impl WornAnchors {
    /// Makes a chip whose last session ended with a checkpoint.
    fn checkpointed<S: System>(case: &Case, records: u32, ram: &mut [u8]) -> Result<Torn, String> {
        let mut chip = filled::<S>(case, records, ram)?;
        let mut index = open_on::<S>(&mut chip, &case.options, ram).map_err(text)?;
        index.insert(&key(0), &value(0, 1)).map_err(text)?;
        index.checkpoint().map_err(text)?;
        end(index);
        Ok(chip)
    }

    /// Tears a page behind the checkpoint of `chip`.
    ///
    /// Returns the model and the key, or `None` if no page was torn.
    fn torn<S: System>(
        case: &Case,
        chip: &mut Torn,
        (records, left): (u32, u32),
        ram: &mut [u8],
    ) -> Result<Option<(Model, [u8; KEY_BYTES])>, String> {
        let mut index = open_on::<S>(chip, &case.options, ram).map_err(text)?;
        if !index.statistics().from_checkpoint {
            return Err("no checkpoint was written".into());
        }
        let mut model = contents(&mut index).map_err(text)?;
        let torn = tear(&mut index, &mut model, records / 2, left);
        drop(index);
        chip.left.set(None);
        Ok(chip.hidden.map(|_| (model, torn)))
    }

    /// Mounts a chip with a page torn behind a checkpoint, and changes the index in between.
    fn live<S: System>(
        case: &Case,
        mut chip: Torn,
        (mut model, torn): (Model, [u8; KEY_BYTES]),
        (records, first, changes): (u32, Shown, u32),
        worn: Range<u32>,
        ram: &mut [u8],
    ) -> Outcome {
        (chip.worn, chip.shown) = (worn.clone(), first);
        for (turn, shown) in [Shown::Erased, Shown::Written, Shown::Both].into_iter().enumerate() {
            let mut index = open_on::<S>(&mut chip, &case.options, ram).map_err(text)?;
            if turn == 0 {
                see(&mut index, &mut model, &torn)?;
            }
            if contents(&mut index).map_err(text)? != model {
                return Err(format!("mount {turn}: the records are others"));
            }
            for at in 0..changes {
                let (number, version) = ((records / 2 + 1 + at) % records, 100 * turn as u32 + at);
                index.insert(&key(number), &value(number, version)).map_err(text)?;
                model.insert(key(number).to_vec(), value(number, version).to_vec());
            }
            drop(index);
            chip.shown = shown;
        }
        // The anchor that is left leads to the next checkpoint, and the other one is passed over.
        let mut index = open_on::<S>(&mut chip, &case.options, ram).map_err(text)?;
        index.insert(&key(0), &value(0, 1000)).map_err(text)?;
        model.insert(key(0).to_vec(), value(0, 1000).to_vec());
        index.checkpoint().map_err(text)?;
        end(index);
        let mut index = open_on::<S>(&mut chip, &case.options, ram).map_err(text)?;
        if contents(&mut index).map_err(text)? != model {
            return Err("the last mount: the records are others".into());
        }
        if index.statistics().from_checkpoint != (worn.len() == 1) {
            return Err(format!("the last mount: {:?}", index.statistics()));
        }
        Ok(())
    }
}

impl Check for WornAnchors {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints && system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG).suited::<S>();
        case.profile.capabilities.bad_blocks_per_mille = 100;
        case.options.checkpoints = Some(2);
        let mut ram = case.ram::<S>();
        let mut torn = 0;
        for records in Share::one_in(17).of((10..60).collect::<Vec<_>>()) {
            let checkpointed = Self::checkpointed::<S>(&case, records, &mut ram)?;
            for left in 0..4 {
                let (mut chip, turn) = (checkpointed.clone(), (records, left));
                let Some((model, key)) = Self::torn::<S>(&case, &mut chip, turn, &mut ram)? else {
                    continue;
                };
                for shown in [Shown::Written, Shown::Both, Shown::Erased] {
                    for changes in [0, 1, 3, 40, 150] {
                        // The anchors are blocks 0 and 1.
                        for worn in [0..2, 0..1, 1..2] {
                            let (chip, seen) = (chip.clone(), (model.clone(), key));
                            let how = (records, shown, changes);
                            Self::live::<S>(&case, chip, seen, how, worn.clone(), &mut ram)
                                .map_err(|what| {
                                    let visible = shown == Shown::Written;
                                    format!("{turn:?}, {visible}, {changes}, {worn:?}: {what}")
                                })?;
                            torn += 1;
                        }
                    }
                }
            }
        }
        if torn == 0 { Err("nothing was torn".into()) } else { Ok(()) }
    }
}

#[test]
fn a_checkpoint_whose_anchors_can_no_more_be_erased_hides_no_change() {
    for_one_system_in(2, &WornAnchors);
}
