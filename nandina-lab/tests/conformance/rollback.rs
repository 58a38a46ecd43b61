//! The newest roots rot before the next mount.
//!
//! The previous state opens, but the medium has changed since: a record that can no longer be read
//! is an error, never "absent", and the mount reports the damage.

use nandina::flash::{Flash, PageNumber};
use nandina::node::{PageHeader, PageLayout};
use nandina::store::Description;
use nandina::{Index, OpenError, ReadError, System};
use nandina_sim::Chip;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

const KEYS: u32 = 300;

struct Rot;

/// All roots, the newest first.
pub fn newest_first(chip: &Chip) -> Vec<PageNumber> {
    pages_with(chip, |header| header.height > 0)
}

/// All readable pages with such a header, the newest first.
fn pages_with(chip: &Chip, is_wanted: fn(&PageHeader) -> bool) -> Vec<PageNumber> {
    let mut chip = chip.clone();
    let geometry = chip.profile().geometry;
    let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
    let mut pages: Vec<_> = (0..geometry.pages())
        .filter_map(|page| {
            let mut frame = vec![0; layout.frame_bytes()];
            let (main, spare) = frame.split_at_mut(layout.page_bytes());
            chip.read(PageNumber(page), main, spare).ok()?;
            let header = layout.open(&frame).ok()?;
            is_wanted(&header).then_some((header.sequence, PageNumber(page)))
        })
        .collect();
    pages.sort_unstable_by(|a, b| b.cmp(a));
    pages.into_iter().map(|(_, page)| page).collect()
}

impl Check for Rot {
    fn concerns(&self, system: &Description) -> bool {
        // Of two pages that are written in turn, a damaged one looks torn.
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL);
        let mut ram = case.ram::<S>();
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let mut worn = Chip::with_seed(suited::<S>(case.profile), seed());
        let mut index = Index::<_, S>::format(&mut worn, &case.options, &mut ram).map_err(text)?;
        let mut newest = [0; KEYS as usize];
        for turn in 0..4_000u32 {
            let number = if turn < KEYS { turn } else { random.random_range(0..KEYS) };
            newest[number as usize] = turn;
            index.insert(&key(number), &value(number, turn)).map_err(text)?;
        }
        drop(index);
        let pages = newest_first(&worn);
        // Behind the newest root of a journal there may be changes. Then it was not torn.
        let is_last =
            !S::DESCRIPTION.replays() || pages_with(&worn, |_| true).first() == pages.first();
        let block_of = |page: &PageNumber| case.profile.geometry.block_of(*page);
        let (mut stale, mut opened, mut refused) = (0, 0, 0);
        // Where commits are rare, the chip has fewer roots than 20.
        for lost in (1..pages.len()).filter(|lost| *lost < 20 || lost.is_multiple_of(5)) {
            let mut chip = worn.clone();
            for &page in &pages[..lost] {
                chip.corrupt_page(page, |_, spare| spare[9] ^= 4);
            }
            let mut index = match Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                Ok(index) => index,
                Err(OpenError::Corrupt { .. }) => {
                    refused += 1;
                    continue;
                }
                Err(error) => return Err(format!("{lost} roots lost: {error:?}")),
            };
            opened += 1;
            // A cut damages one page of a block at most; an entirely unreadable block is no
            // evidence.
            let last = block_of(&pages[lost]);
            let behind = pages[..lost].iter().filter(|page| block_of(page) == last).count();
            let told = index.statistics().unexplained_pages;
            let can_be_torn = lost == 1 && is_last;
            if (can_be_torn && told > 0) || ((behind > 1 || !is_last) && told == 0) {
                return Err(format!("{lost} roots are lost, {told} were told of"));
            }
            for number in 0..KEYS {
                match index.get(&key(number)) {
                    Ok(Some(found)) if found[..4] == number.to_le_bytes() => {
                        stale += u32::from(found != value(number, newest[number as usize]));
                    }
                    Err(ReadError::Corrupt { .. }) => stale += 1,
                    // Where the root does not commit every change, pages newer than it are as good
                    // as older ones, and their losses are at best reported, not seen.
                    Ok(_) if !S::DESCRIPTION.root_commits() && (told > 0 || behind <= 1) => {
                        stale += 1;
                    }
                    other => return Err(format!("{lost} lost, key {number}: {other:?}")),
                }
            }
        }
        // Behind an older root the journal has every change since, or the mount lacks a page of it.
        let brings_back = S::DESCRIPTION.replays() && opened > 0 && refused > 0;
        if stale > 0 || brings_back { Ok(()) } else { Err("no page was ever written anew".into()) }
    }
}

#[test]
fn what_rotted_is_an_error_and_never_absent() {
    for_every_system(&Rot);
}
