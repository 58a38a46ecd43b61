//! Reports the content of any chip: healthy, torn, damaged, blank or foreign.
//!
//! It works on a copy and never writes. Where the newest tree is broken it continues with whatever
//! can be decoded.

mod header;
mod leaves;
mod packed;
mod pages;
mod reader;
mod walk;

pub use walk::{LevelFacts, Loss, PackedFacts, TreeFacts};

use std::collections::BTreeMap;

use crate::systems::key_of;
use nandina::flash::PageNumber;
use nandina::node::{ONE_BY_ONE, PageFault};
use nandina::{Index, OpenError, System};
use nandina_sim::{Chip, ChipError};
use serde::Serialize;

use crate::LabError;
use crate::opened::{Job, copy_to_look_at, medium_of, with_index};
use crate::wear::Spread;
use header::Header;
pub(crate) use pages::Pages;
use reader::reader_of;
pub(crate) use walk::{Walk, walk};

/// Older roots that are tried when the newest tree is not whole.
const OLDER_ROOTS_MAX: usize = 64;

/// The kind of content of a chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// An index opens, and every node of its tree can be read.
    Whole,
    /// There are pages of an index, but it does not open or its tree is incomplete.
    Damaged,
    /// Every page is erased.
    Blank,
    /// There are bytes, but no readable page of an index.
    Foreign,
    /// There are pages of another format version only.
    OtherVersion,
}

/// The settings of the index that the newest page belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MediumFacts {
    /// Key of the system, if it is known.
    pub system: Option<&'static str>,
    /// Number of the system on the medium.
    pub system_code: u8,
    /// Bytes of a key.
    pub key_bytes: u16,
    /// Bytes of a value.
    pub value_bytes: u16,
    /// Blocks of the chip that it was made for.
    pub blocks: u32,
    /// Pages of a block of that chip.
    pub pages_per_block: u16,
    /// Whether it writes checkpoints.
    pub checkpoints: bool,
    /// Which formatting of the medium it is.
    pub identity: u32,
    /// The highest sequence number: programs over the life of the medium.
    pub sequence: u64,
}

/// Pages by kind. All fields but `total` and `corrected` add up to `total`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PageCounts {
    /// Pages of the chip.
    pub total: u32,
    /// Pages that hold a node of the newest tree.
    pub valid: u32,
    /// Pages that held one, and are superseded.
    pub stale: u32,
    /// Pages of checkpoints, in use or not.
    pub checkpoints: u32,
    /// Pages of a journal that are newer than the newest root; [`Inspection::journal`] has more.
    pub journal: u32,
    /// Written after the newest root, by an operation that was cut.
    pub unfinished: u32,
    /// Of another index: one that was on the chip before.
    pub other_index: u32,
    /// Erased.
    pub erased: u32,
    /// Erased and never programmed, because they share cells with other pages.
    pub skipped: u32,
    /// Pages whose checksum does not match, or that are no page of an index.
    pub damaged: u32,
    /// Pages with more wrong bits than the ECC corrects.
    pub unreadable: u32,
    /// Of another format version.
    pub other_version: u32,
    /// Readable, but the ECC corrected so many bits that they should be written again.
    pub corrected: u32,
}

/// Changes that are newer than the newest root, in pages of a journal.
///
/// A mount reads these pages and makes the changes again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct JournalFacts {
    /// Pages that a mount reads.
    pub pages: u32,
    /// Changes in them.
    pub changes: u64,
    /// Pages of which each change was programmed by itself, into a slot.
    pub pages_of_slots: u32,
    /// Changes in those.
    pub changes_in_slots: u64,
}

/// Decodable pages of the index, by the lowest level in them.
///
/// They count whether the tree is whole or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Decodable {
    /// Lowest level of the nodes in these pages.
    pub level: u8,
    /// Pages, valid or not.
    pub pages: u32,
    /// How many of them hold a root.
    pub roots: u32,
}

/// The content of a chip.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Inspection {
    /// Key of the chip's profile.
    pub device: &'static str,
    /// Bytes of main data in a page.
    pub page_bytes: u32,
    /// Bytes of spare area beside it.
    pub spare_bytes: u32,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// Blocks of the chip.
    pub blocks: u32,
    /// The kind of its content.
    pub state: State,
    /// The reason why the index does not open.
    pub refusal: Option<String>,
    /// The index of the newest page.
    pub medium: Option<MediumFacts>,
    /// The tree below the newest root.
    pub tree: Option<TreeFacts>,
    /// Changes that are newer than that root, if the system has a journal.
    pub journal: Option<JournalFacts>,
    /// If the index opens: damaged pages newer than its root that no cut explains.
    ///
    /// If there are any, newer roots may have been damaged later, and the changes that they
    /// committed are lost.
    pub unexplained_pages: Option<u32>,
    /// If that tree is not whole: the newest older one that is.
    ///
    /// If there is none, the one with the most records.
    pub older_tree: Option<TreeFacts>,
    /// Pages by kind.
    pub pages: PageCounts,
    /// Pages of the index by level, the highest first.
    pub decodable: Vec<Decodable>,
    /// Blocks that are marked as bad.
    pub bad_blocks: Vec<u32>,
    /// Erase counts of the blocks.
    pub wear: Spread,
}

/// Inspects `chip` without changing it.
pub fn inspect(chip: &Chip) -> Result<Inspection, LabError> {
    let mut pages = Pages::read(chip)?;
    let newest = pages.newest();
    let roots = newest.map_or_else(Vec::new, |newest| pages.roots(&newest));
    let mut newest_walk = None;
    let mut older_tree = None;
    let mut journal = None;
    if let Some((&root, older)) = roots.split_first() {
        let tree = walk(&mut pages, root)?;
        if !tree.facts.losses.is_empty() {
            older_tree = best_of(&mut pages, older)?;
        }
        newest_walk = Some(tree);
        journal = pages.journal_behind(root)?;
    }
    let opened = open_copy(chip);
    let whole = newest_walk.as_ref().is_some_and(|walk| walk.facts.losses.is_empty());
    let counts = count(chip, &pages, newest.as_ref(), newest_walk.as_ref());
    let state = match newest {
        Some(_) if whole && opened.is_ok() => State::Whole,
        Some(_) => State::Damaged,
        _ if counts.erased + counts.skipped == counts.total => State::Blank,
        _ if counts.other_version > 0 => State::OtherVersion,
        _ => State::Foreign,
    };
    let geometry = chip.profile().geometry;
    Ok(Inspection {
        device: chip.profile().key,
        page_bytes: geometry.page_bytes,
        spare_bytes: geometry.spare_bytes,
        pages_per_block: geometry.pages_per_block,
        blocks: geometry.blocks,
        state,
        unexplained_pages: opened.as_ref().ok().copied(),
        refusal: opened.err(),
        medium: newest.map(|newest| facts_of(&newest)),
        tree: newest_walk.map(|walk| walk.facts),
        journal,
        older_tree,
        pages: counts,
        decodable: newest.map_or_else(Vec::new, |newest| decodable(&pages, &newest)),
        bad_blocks: chip.bad_blocks().map(|block| block.0).collect(),
        wear: Spread::of(chip),
    })
}

/// The first whole tree below `roots`, else the one with the most records.
fn best_of(pages: &mut Pages, roots: &[PageNumber]) -> Result<Option<TreeFacts>, LabError> {
    let mut best: Option<TreeFacts> = None;
    for &root in roots.iter().take(OLDER_ROOTS_MAX) {
        let facts = walk(pages, root)?.facts;
        if facts.losses.is_empty() {
            return Ok(Some(facts));
        }
        if best.as_ref().is_none_or(|best| facts.records_reached > best.records_reached) {
            best = Some(facts);
        }
    }
    Ok(best)
}

/// Opens the index on a copy of `chip`.
///
/// Returns its damaged pages that no cut explains, or why it does not open.
fn open_copy(chip: &Chip) -> Result<u32, String> {
    struct Unexplained;
    impl Job for Unexplained {
        type Output = u32;
        fn run<S: System>(self, index: &mut Index<'_, &mut Chip, S>) -> u32 {
            index.statistics().unexplained_pages
        }
    }
    let medium = medium_of(chip).map_err(|error: OpenError<ChipError>| error.to_string())?;
    with_index(&mut copy_to_look_at(chip), &medium, Unexplained).map_err(|error| error.0)
}

fn facts_of(newest: &Header) -> MediumFacts {
    let medium = &newest.medium;
    MediumFacts {
        system: key_of(medium.system),
        system_code: medium.system,
        key_bytes: medium.key_bytes,
        value_bytes: medium.value_bytes,
        blocks: medium.blocks,
        pages_per_block: medium.pages_per_block,
        checkpoints: medium.checkpoints,
        identity: newest.identity,
        sequence: newest.sequence,
    }
}

fn count(chip: &Chip, pages: &Pages, newest: Option<&Header>, tree: Option<&Walk>) -> PageCounts {
    let is_journal = newest
        .and_then(|newest| reader_of(newest.medium.system)?.packed)
        .map(|packed| packed.is_journal);
    let has_leaf_blocks = newest
        .and_then(|newest| reader_of(newest.medium.system))
        .is_some_and(|reader| reader.system.has_leaf_blocks());
    let geometry = chip.profile().geometry;
    let pairing = chip.profile().capabilities.pairing;
    let in_block = geometry.pages_per_block;
    let safe: Vec<u32> =
        (0..pairing.safe_pages(in_block)).map(|place| pairing.safe_page(place)).collect();
    let mut counts =
        PageCounts { total: geometry.pages(), corrected: pages.corrected, ..PageCounts::default() };
    for (page, found) in (0u32..).zip(&pages.found) {
        let counter = match found {
            Err(PageFault::Erased) if safe.binary_search(&(page % in_block)).is_err() => {
                &mut counts.skipped
            }
            Err(PageFault::Erased) => &mut counts.erased,
            // Only the first page of a leaf that is a block has a header, and loses it at the end.
            Err(_) if tree.is_some_and(|tree| tree.valid.contains(&page)) => &mut counts.valid,
            Err(PageFault::Damaged | PageFault::Appended) if has_leaf_blocks => &mut counts.stale,
            // (The inspector's layout reads pages of every system.)
            Err(PageFault::Damaged | PageFault::Appended) => &mut counts.damaged,
            Err(PageFault::Unreadable) => &mut counts.unreadable,
            Err(PageFault::Version(_)) => &mut counts.other_version,
            Ok(_) if tree.is_some_and(|tree| tree.valid.contains(&page)) => &mut counts.valid,
            Ok(header) if newest.is_none_or(|newest| header.identity != newest.identity) => {
                &mut counts.other_index
            }
            Ok(header) if header.lowest == 0 || header.is_of_checkpoint() => {
                &mut counts.checkpoints
            }
            Ok(header) if tree.is_none_or(|tree| header.sequence > tree.facts.sequence) => {
                match is_journal {
                    Some(is_journal) if is_journal(header) => &mut counts.journal,
                    // It ends or begins a session.
                    Some(_) if header.height == 0 && header.tag == 0 => &mut counts.stale,
                    _ => &mut counts.unfinished,
                }
            }
            Ok(_) => &mut counts.stale,
        };
        *counter += 1;
    }
    counts
}

fn decodable(pages: &Pages, newest: &Header) -> Vec<Decodable> {
    let mut levels = BTreeMap::new();
    let of_index = |header: &Header| header.identity == newest.identity && header.lowest > 0;
    let system = reader_of(newest.medium.system).map(|reader| reader.system);
    let has_leaves_only = system.is_some_and(|system| system.has_directory());
    for (_, header) in pages.readable().filter(|(_, header)| of_index(header)) {
        // Changes of leaves; and a page of an index of leaves may carry the mark of a batch.
        let is_level = header.lowest != ONE_BY_ONE && !has_leaves_only;
        let lowest = if is_level { header.lowest } else { 1 };
        let level = levels.entry(lowest).or_insert(Decodable { level: lowest, pages: 0, roots: 0 });
        level.pages += 1;
        level.roots += u32::from(header.height > 0);
    }
    levels.into_values().rev().collect()
}
