//! A page is lost of a node that is replaced in place, and no cut explains it.
//!
//! The other systems are in `mended.rs`.

use nandina::flash::PageNumber;
use nandina::store::Description;
use nandina::{Index, ReadError, System};
use nandina_sim::Chip;

use crate::harness::*;

const RECORDS: u32 = 900;

/// Records that a leaf has room for: pages have 512 bytes, and a record has 16.
const LEAF: u32 = 31;

/// What lookups of all records find without a page.
#[derive(Default)]
struct Found {
    /// Older values, and records that are not found.
    older: u32,
    missing: u32,
    errors: u32,
}

impl Found {
    fn read<S: System>(
        index: &mut Index<'_, &mut Chip, S>,
        versions: &[Vec<u32>],
    ) -> Result<Self, String> {
        let mut all = Self::default();
        for (number, versions) in (0..).zip(versions) {
            let at = |version: &u32| value(number, *version);
            match index.get(&key(number)) {
                Ok(Some(found)) if versions.last().is_some_and(|it| found == at(it)) => {}
                Ok(Some(found)) if versions.iter().any(|it| found == at(it)) => all.older += 1,
                Ok(Some(found)) => return Err(format!("record {number} was never {found:?}")),
                Ok(None) => all.missing += 1,
                Err(ReadError::Corrupt { .. }) => all.errors += 1,
                Err(error) => return Err(text(error)),
            }
        }
        Ok(all)
    }
}

/// Loses each page in turn, where a node has one page and where it has two.
struct EachNodeLost;

impl EachNodeLost {
    fn run_on<S: System>(atomic_rewrite: bool) -> Outcome {
        let mut case = Case::new(SMALL.with_blocks(40)).suited::<S>();
        case.profile.capabilities.atomic_rewrite = atomic_rewrite;
        let mut ram = case.ram::<S>();
        let mut image = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut image, &case.options, &mut ram).map_err(text)?;
        let mut versions = vec![Vec::new(); RECORDS as usize];
        for turn in 0..2 * RECORDS {
            let number = turn * 7 % RECORDS;
            index.insert(&key(number), &value(number, turn)).map_err(text)?;
            versions[number as usize].push(turn);
        }
        index.close();
        let (mut lost, mut reported, mut silent, mut most) = (0, 0, 0, 0);
        for page in (0..case.profile.geometry.pages()).map(PageNumber) {
            if image.page_is_erased(page) {
                continue;
            }
            for ones in [true, false] {
                let mut chip = image.clone();
                lose_page(&mut chip, page, ones);
                lost += 1;
                let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) else {
                    reported += 1;
                    continue;
                };
                let found = Found::read(&mut index, &versions)?;
                let wrong = found.older + found.missing;
                if atomic_rewrite && wrong > 0 {
                    return Err(format!("without {page} (ones: {ones}) {wrong} records are wrong"));
                }
                reported += u32::from(found.errors > 0);
                silent += u32::from(wrong > 0 && found.errors == 0);
                most = wrong.max(most);
            }
        }
        let counts = format!("{lost} lost, {reported} reported, {silent} silent, {most} wrong");
        println!("{}, atomic {atomic_rewrite}: {counts}", S::DESCRIPTION.key);
        // Of two pages the older one is not needed, and without the newer one a leaf is older.
        let holds = match atomic_rewrite {
            true => reported > 60,
            false => silent > 60 && 2 * silent <= lost && most <= LEAF,
        };
        if holds { Ok(()) } else { Err(counts) }
    }
}

impl Check for EachNodeLost {
    fn concerns(&self, system: &Description) -> bool {
        system.replaces()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        Self::run_on::<S>(true)?;
        if S::DESCRIPTION.needs.atomic_rewrite { Ok(()) } else { Self::run_on::<S>(false) }
    }
}

#[test]
fn the_lost_page_of_a_node_with_one_page_is_an_error_and_with_two_the_state_before_it_is_read() {
    for_every_system(&EachNodeLost);
}
