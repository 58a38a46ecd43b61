//! A chip without marks for bad blocks, on which the block with a torn page can no more be erased.
//!
//! The page stays unstable, and no later mount knows that the block is bad. All mounts must decide
//! about the page as the first one did.

use nandina::flash::Flash;
use nandina::store::Description;
use nandina::{Index, System};
use nandina_lab::torture::oracle::contents;

use crate::formats::{Shown, filled};
use crate::harness::*;

struct DecidedOnce;

impl DecidedOnce {
    /// Tears a replacement in one program, and mounts often. Returns whether a page was torn.
    fn live<S: System>(
        case: &Case,
        (records, left): (u32, u32),
        (first, ends): (Shown, bool),
        changes: u32,
        ram: &mut [u8],
    ) -> Result<bool, String> {
        let mut chip = filled::<S>(case, records, ram)?;
        if ends {
            Index::<_, S>::open(&mut chip, &case.options, ram).map_err(text)?.close();
        }
        let mut index = Index::<_, S>::open(&mut chip, &case.options, ram).map_err(text)?;
        let mut model = contents(&mut index).map_err(text)?;
        index.flash().left.set(Some(left));
        let torn = key(records / 2);
        for version in 1..5 {
            if index.insert(&torn, &value(records / 2, version)).is_err() {
                break;
            }
            model.insert(torn.to_vec(), value(records / 2, version).to_vec());
        }
        drop(index);
        chip.left.set(None);
        let Some(page) = chip.hidden else { return Ok(false) };
        let block = chip.geometry().block_of(page).0;
        (chip.worn, chip.shown) = (block..block + 1, first);
        let mut index = Index::<_, S>::open(&mut chip, &case.options, ram).map_err(text)?;
        let seen = index.get(&torn).map_err(text)?.map(<[u8]>::to_vec);
        model.insert(torn.to_vec(), seen.ok_or("the record is gone")?);
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
            let mut index = Index::<_, S>::open(&mut chip, &case.options, ram).map_err(text)?;
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
        Ok(true)
    }
}

impl Check for DecidedOnce {
    fn concerns(&self, system: &Description) -> bool {
        // A system of mappings writes down nowhere what a mount left out: it erases that
        // (docs/RELIABILITY.md, "What is not promised").
        is_log(system) && !system.maps
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG).suited::<S>();
        case.profile.capabilities.bad_blocks_per_mille = 100;
        let mut ram = case.ram::<S>();
        let mut torn = 0;
        for records in Share::one_in(5).of((10..60).collect::<Vec<_>>()) {
            for left in 0..5 {
                for shown in [Shown::Erased, Shown::Both] {
                    for (ends, changes) in [(false, 0), (true, 0), (true, 3), (false, 40)] {
                        let turn = (records, left);
                        let lived = Self::live::<S>(&case, turn, (shown, ends), changes, &mut ram);
                        torn += u32::from(lived.map_err(|what| {
                            let visible = shown == Shown::Both;
                            format!("{turn:?}, visible {visible}, {ends}, {changes}: {what}")
                        })?);
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
