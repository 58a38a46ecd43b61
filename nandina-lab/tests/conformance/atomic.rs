//! Nodes of one page, on devices that replace a page as a whole or not at all.

use nandina::flash::{Capabilities, Flash, PageNumber};
use nandina::store::{BTree, Description, Wpcb};
use nandina::{OpenError, System};
use nandina_lab::hand_on;
use nandina_sim::{Chip, ChipError};

use crate::harness::*;

/// A chip that promises whole pages or not, whatever it is, and destroys what is discarded.
struct Promises<'c> {
    chip: &'c mut Chip,
    atomic: bool,
    discards: u32,
}

impl Bus for Promises<'_> {
    fn simulated(&self) -> &Chip {
        self.chip
    }
}

impl Flash for Promises<'_> {
    type Error = ChipError;

    hand_on!(chip: geometry, read, program, erase, overwrite, is_bad, mark_bad);

    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic_rewrite: self.atomic, ..self.chip.capabilities() }
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.chip.rewrite(page, main, spare)
    }

    fn discard(&mut self, page: PageNumber) -> Result<(), ChipError> {
        self.discards += 1;
        let geometry = self.chip.geometry();
        let main = vec![0x5A; geometry.page_bytes as usize];
        self.chip.rewrite(page, &main, &[])
    }
}

fn promising(atomic: bool, chip: &mut Chip) -> Promises<'_> {
    Promises { chip, atomic, discards: 0 }
}

/// Systems that replace pages, and run where these are torn as well.
const fn replaces(system: &Description) -> bool {
    system.needs.rewrite && !system.needs.atomic_rewrite
}

/// Inserts records until the index is full. Returns how many there were.
fn fill<S: System>(case: &Case, atomic: bool) -> Result<u32, String> {
    let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
    let mut device = promising(atomic, &mut chip);
    let mut index = format_on::<S>(&mut device, &case.options, &mut ram).map_err(text)?;
    let mut number: u32 = 0;
    while index.insert(&key(number.wrapping_mul(0x9E37_79B1)), &value(number, 0)).is_ok() {
        number += 1;
    }
    Ok(number)
}

struct OnePage;

impl Check for OnePage {
    fn concerns(&self, system: &Description) -> bool {
        replaces(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL).suited::<S>();
        let (pairs, single) = (fill::<S>(&case, false)?, fill::<S>(&case, true)?);
        if single < 2 * pairs {
            return Err(format!("{single} records, {pairs} with shadow pages"));
        }
        let plan = |atomic_rewrite| {
            let capabilities = Capabilities { atomic_rewrite, ..case.profile.capabilities };
            nandina::plan::<S>(&case.profile.geometry, &capabilities, &case.options, 100)
                .map(|plan| plan.limit_pages)
                .map_err(text)
        };
        let (pages, pairs) = (plan(true)?, plan(false)?);
        if pages != case.profile.geometry.pages() || pairs != pages / 2 - 1 {
            return Err(format!("{pages} pages are allowed, and {pairs} logical pages"));
        }
        Ok(())
    }
}

#[test]
fn a_node_has_one_page_where_pages_are_replaced_as_a_whole() {
    for_every_system(&OnePage);
}

/// An index is opened on a device that promises more, or less, than that on which it was made.
struct MadeElsewhere;

impl Check for MadeElsewhere {
    fn concerns(&self, system: &Description) -> bool {
        replaces(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL).suited::<S>();
        for made in [false, true] {
            let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
            let mut device = promising(made, &mut chip);
            let mut index = format_on::<S>(&mut device, &case.options, &mut ram).map_err(text)?;
            for number in 0..100 {
                index.insert(&key(number), &value(number, 0)).map_err(text)?;
            }
            drop(index);
            let mut device = promising(!made, &mut chip);
            let opened = open_on::<S>(&mut device, &case.options, &mut ram);
            if made {
                match opened {
                    Err(OpenError::Mismatch { setting: "atomic replacement", .. }) => continue,
                    Err(error) => return Err(format!("refused with {error}")),
                    Ok(_) => return Err("one page a node where pages can be torn".into()),
                }
            }
            let mut index = opened.map_err(text)?;
            for number in 100..150 {
                index.insert(&key(number), &value(number, 0)).map_err(text)?;
            }
            drop(index);
            // It stays as it was made, and the first device can still use it.
            let mut device = promising(made, &mut chip);
            let mut index = open_on::<S>(&mut device, &case.options, &mut ram).map_err(text)?;
            for number in 0..150 {
                let found = index.get(&key(number)).map_err(text)?;
                if found != Some(&value(number, 0)[..]) {
                    return Err(format!("record {number} is {found:?}"));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn the_medium_says_how_many_pages_a_node_has() {
    for_every_system(&MadeElsewhere);
}

/// Removes most of many records, on a device that destroys what is discarded.
fn discards<S: System>() -> Result<u32, String> {
    let case = Case::new(SMALL).suited::<S>();
    let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
    let mut device = promising(true, &mut chip);
    let mut index = format_on::<S>(&mut device, &case.options, &mut ram).map_err(text)?;
    for number in 0..600 {
        index.insert(&key(number), &value(number, 0)).map_err(text)?;
    }
    for number in 20..580 {
        index.remove(&key(number)).map_err(text)?;
        if number % 50 == 0 {
            let mut wrong = 0;
            index.check(|_| wrong += 1).map_err(text)?;
            if wrong > 0 {
                return Err(format!("{wrong} violations after {number} removals"));
            }
        }
    }
    drop(index);
    let discards = device.discards;
    let mut device = promising(true, &mut chip);
    let mut index = open_on::<S>(&mut device, &case.options, &mut ram).map_err(text)?;
    for number in (0..20).chain(580..600) {
        let found = index.get(&key(number)).map_err(text)?;
        if found != Some(&value(number, 0)[..]) {
            return Err(format!("record {number} is {found:?}"));
        }
    }
    Ok(discards)
}

#[test]
fn pages_of_removed_nodes_are_discarded() {
    for discards in [discards::<BTree>(), discards::<Wpcb>()] {
        assert!(matches!(discards, Ok(15..)), "{discards:?}");
    }
}

/// Inserts ascending keys behind a full leaf that is not the last one.
///
/// Returns the pages that each of them wrote, and the nodes in the end.
fn ascend<S: System>() -> Result<(Vec<u64>, u32), String> {
    with_index::<S, _>(&Case::new(SMALL), |index| {
        // The last leaf stays full where keys ascend, and a high key opens another one.
        for number in (0..93).chain([1_000_000]) {
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        let mut written = Vec::new();
        for number in 0..300 {
            let before = index.flash().counters().rewrites;
            index.insert(&key(1_000 + 3 * number), &value(number, 0)).map_err(text)?;
            written.push(index.flash().counters().rewrites - before);
        }
        Ok((written, index.statistics().valid_pages))
    })
}

#[test]
fn a_leaf_that_ascending_keys_filled_is_not_split() {
    // Figure 8 of the WPCB-tree paper: two pages are written, the new leaf and its parent; and
    // there is one new leaf for each 31 keys.
    let (written, full) = ascend::<Wpcb>().unwrap();
    let opened: Vec<_> = (0..300).filter(|&number| written[number] > 1).collect();
    assert!(opened.iter().all(|&number| written[number] == 2), "{written:?}");
    assert!(opened.windows(2).all(|pair| pair[1] - pair[0] == 31), "{opened:?}");
    assert!(opened.len() >= 9, "{opened:?}");
    // Where leaves are split in the middle, they stay half full.
    let (_, half) = ascend::<BTree>().unwrap();
    assert!(10 * full < 7 * half, "{full} pages, {half} where leaves are split in the middle");
}
