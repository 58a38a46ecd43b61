//! Pages that fade: what they held is lost or an error, and nothing else is.

use std::collections::HashSet;

use nandina::flash::{Flash, PageNumber, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::FtlError;
use nandina_ftl::logged::Scheme;
use nandina_sim::Chip;

use crate::host::{Device, Host, Memory};
use crate::numbers::Numbers;
use crate::{CHIPS, SCHEMES, Share};

/// Changes before a page fades.
const CHANGES: u32 = 500;

/// A chip after its changes, what it must hold, and all that each of its pages ever held.
struct Used {
    chip: Chip,
    host: Host,
    history: Vec<HashSet<Option<Vec<u8>>>>,
    /// Pages that the last change has programmed.
    newest: Vec<PageNumber>,
}

/// What each page of a chip reads as.
fn contents(chip: &Chip) -> Vec<Vec<u8>> {
    let (mut chip, geometry) = (chip.clone(), chip.geometry());
    let pages = (0..geometry.pages()).map(|page| {
        let mut main = vec![0; geometry.page_bytes as usize];
        let mut spare = vec![0; geometry.spare_bytes as usize];
        chip.read(PageNumber(page), &mut main, &mut spare).unwrap();
        main
    });
    pages.collect()
}

fn used(profile: Profile, scheme: Scheme, seed: u64) -> Used {
    let (mut chip, mut memory) = (Chip::new(profile), Memory::new(&profile, scheme));
    let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(seed));
    let mut history: Vec<HashSet<_>> = host.pages.iter().map(|_| HashSet::from([None])).collect();
    let mut change = |ftl: &mut Device<'_>| {
        host.change(ftl, &mut numbers)?;
        for (known, page) in history.iter_mut().zip(&host.pages) {
            known.insert(page.clone());
        }
        Ok(())
    };
    memory.with(&mut chip, true, |ftl| (1..CHANGES).try_for_each(|_| change(ftl))).unwrap();
    let mut newest = Vec::new();
    // A trim of holes programs nothing.
    while newest.is_empty() {
        let before = contents(&chip);
        memory.with(&mut chip, false, |ftl| change(ftl)).unwrap();
        let both = before.into_iter().zip(contents(&chip)).zip((0..).map(PageNumber));
        newest = both.filter(|((before, now), _)| before != now).map(|(_, page)| page).collect();
    }
    Used { chip, host, history, newest }
}

/// Logical pages that do not read as the host knows them.
fn lost(ftl: &mut Device<'_>, used: &Used, what: &str) -> Vec<usize> {
    let mut bytes = vec![0; ftl.page_bytes()];
    let mut found = Vec::new();
    for (logical, known) in used.host.pages.iter().enumerate() {
        match ftl.read(logical as u32, &mut bytes) {
            Ok(is_there) => {
                let read = is_there.then(|| bytes.clone());
                let was = used.history[logical].contains(&read);
                assert!(was, "{what}: page {logical} reads what it never held");
                if read != *known {
                    found.push(logical);
                }
            }
            Err(FtlError::Corrupt { .. }) => found.push(logical),
            Err(error) => panic!("{what}: page {logical}: {error}"),
        }
    }
    found
}

#[test]
fn a_page_that_fades_takes_one_logical_page_with_it_and_no_other() {
    let (mut tried, mut all_lost) = (0, 0);
    for (at, profile) in CHIPS.into_iter().enumerate() {
        for scheme in SCHEMES {
            let used = used(profile, scheme, 40 + at as u64);
            let pages = (0..profile.geometry.pages()).map(PageNumber);
            let written = pages.filter(|&page| !used.chip.page_is_erased(page));
            let faded: Vec<_> = written.filter(|page| !used.newest.contains(page)).collect();
            assert!(faded.len() > 40, "{scheme:?}: {} pages", faded.len());
            for page in Share::one_in(2).of(faded) {
                let what = format!("{scheme:?}, chip {at}, faded {page}");
                let (mut chip, mut memory) = (used.chip.clone(), Memory::new(&profile, scheme));
                chip.corrupt_page(page, |main, _| main[100] ^= 1);
                let work = |ftl: &mut Device<'_>| {
                    let lost_at_once = lost(ftl, &used, &what);
                    // Settling merges the block, and may take nothing else.
                    let other = (0..used.host.pages.len()).find(|at| !lost_at_once.contains(at));
                    let other = other.unwrap();
                    let content = used.host.pages[other].clone().unwrap_or_default();
                    if content.is_empty() {
                        ftl.trim(other as u32, 1)?;
                    } else {
                        ftl.write(other as u32, &content)?;
                    }
                    Ok((lost_at_once, lost(ftl, &used, &what)))
                };
                let (at_once, later) = memory
                    .with(&mut chip, false, work)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(at_once.len() <= 1 && later.len() <= 1, "{what}: {at_once:?}, {later:?}");
                tried += 1;
                all_lost += at_once.len();
            }
        }
    }
    assert!(tried > 150 && all_lost > tried / 8, "{tried} pages, {all_lost} of them mattered");
}
