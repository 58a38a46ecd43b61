//! The most that trees, commits and the journal can be.
//!
//! Computed from the settings; nothing is read or written here.

use core::num::NonZeroU16;

use super::form::Form;
use crate::engine::Options;

/// The most levels of a tree.
pub const HEIGHT_MAX: u8 = 12;

/// Pages that a commit may write even where blocks are smaller.
const COMMIT_PAGES: u32 = 64;

/// The fewest pages of a commit that a change writes, if the options do not say.
const COMMIT_STEP: usize = 4;

/// Steps of the largest commit, if the options do not say how many pages each has.
const STEPS: usize = 32;

/// The fewest steps into which a commit is divided, if the options do not say.
///
/// With fewer steps much is written twice, and little time is saved.
const STEPS_MIN: usize = 16;

/// The fewest steps, if the options say how many pages each has.
const STEPS_CHOSEN: usize = 4;

/// Pages of the journal, if the options do not say.
const JOURNAL_PAGES: u32 = 128;

/// The most changes that wait for their journal pages, in `bytes` of RAM.
pub fn group_max(form: &Form, bytes: usize, options: &Options) -> usize {
    let changes = options.write_buffer_changes.map_or(usize::MAX, |changes| changes as usize);
    (bytes / form.entry_bytes()).min(changes)
}

/// Pages of the journal for the changes that may wait when a commit is due.
///
/// A commit writes them first where leaves point to the journal.
pub fn group_pages(form: &Form, bytes: usize, options: &Options) -> u16 {
    if !form.apart() || bytes == 0 {
        return 0;
    }
    let pages = group_max(form, bytes, options).div_ceil(form.entries().max(1));
    pages.min(u16::MAX.into()) as u16
}

/// The most pages of the journal from one commit to the next.
pub const fn journal_max(options: &Options) -> u32 {
    match options.journal_pages {
        Some(pages) => pages,
        None => JOURNAL_PAGES,
    }
}

/// Pages of a step, as the options set them, but no more than there may be.
pub const fn commit_step(options: &Options) -> Option<NonZeroU16> {
    match options.commit_step {
        None => None,
        Some(pages) if pages < u16::MAX as u32 => NonZeroU16::new(pages as u16),
        Some(_) => Some(NonZeroU16::MAX),
    }
}

/// Nodes that a step of a commit writes, in a tree of `height`.
///
/// `None` if commits of at most `dirty` nodes are not divided into steps. `pages` are those of the
/// options. A step has at least twice as many nodes as a change makes dirty meanwhile.
pub fn step_nodes(
    form: &Form,
    dirty: usize,
    height: u8,
    pages: Option<NonZeroU16>,
) -> Option<usize> {
    let (pages, steps) = match pages {
        Some(pages) => (pages.get().into(), STEPS_CHOSEN),
        None => ((dirty / form.per_page() / STEPS).max(COMMIT_STEP), STEPS_MIN),
    };
    let pages = pages.max((2 * path_nodes(height)).div_ceil(form.per_page()));
    let nodes = pages.saturating_mul(form.per_page());
    (nodes.saturating_mul(steps) <= dirty).then_some(nodes)
}

/// The most nodes that each of many changes makes dirty.
///
/// A single change may split its whole path, but then the path is not full for many changes after
/// it.
pub const fn path_nodes(height: u8) -> usize {
    height as usize + 1
}

/// The highest tree whose longest change finds room in `slots` nodes.
///
/// A change holds its path, splits every node of it, and adds a root. Beside them there is room for
/// another path, so that reading needs no commit.
pub fn height_max(slots: usize) -> u8 {
    (slots.saturating_sub(2) / 3).min(HEIGHT_MAX.into()) as u8
}

/// The most nodes that a change of a tree of `height` makes dirty.
pub const fn change_nodes(height: u8) -> usize {
    2 * height as usize + 1
}

/// The most dirty nodes in a tree of `height`.
///
/// Where RAM has room for more, a commit still writes about a block, or as many pages as a large
/// block has, and no more than a sixteenth of the chip. So little room must be kept for it on the
/// chip.
pub fn dirty_max(form: &Form, slots: usize, height: u8, block_pages: u32) -> usize {
    let pages = block_pages.max(COMMIT_PAGES).min(form.pages / 16) as usize;
    let least = change_nodes(height);
    (pages * form.per_page()).max(least).min(slots.saturating_sub(usize::from(height) + 1))
}

/// The most pages that a commit writes: its nodes, and the first page of a session.
pub const fn commit_pages(form: &Form, dirty: usize) -> u32 {
    dirty.div_ceil(form.per_page()) as u32 + 1
}

/// The largest tree that a number of records can form.
///
/// Neighbours below one parent that fit in one node are merged at once. So any two neighbouring
/// children of a parent hold more records than one node can, and one child may be left over.
pub struct Size {
    pub height: u8,
    pub leaves: u32,
    pub inner_nodes: u32,
    /// No bound was found: nodes are too small.
    pub too_high: bool,
}

impl Size {
    /// Rounds after which the numbers of nodes have converged, or never will.
    const ROUNDS: usize = 48;

    /// The size of the largest tree of `records` records.
    pub fn of(form: &Form, records: u32) -> Self {
        let capacity = |level: u8| form.capacity(level).min(u16::MAX.into()) as u32;
        if records <= capacity(1) {
            return Self { height: 1, leaves: 1, inner_nodes: 0, too_high: false };
        }
        let most = |below: u32, level: u8, above: u32| {
            let pairs = below / (capacity(level) + 1);
            pairs.saturating_mul(2).saturating_add(above)
        };
        for height in 2..=HEIGHT_MAX {
            let mut nodes = [1u32; HEIGHT_MAX as usize + 2];
            let mut settled = false;
            for _ in 0..Self::ROUNDS {
                let before = nodes;
                nodes[1] = most(records, 1, nodes[2]);
                for level in 2..height {
                    let at = usize::from(level);
                    nodes[at] = most(nodes[at - 1], level, nodes[at + 1]);
                }
                settled = nodes == before;
                if settled || nodes[1] > u32::MAX / 8 {
                    break;
                }
            }
            let top = nodes[usize::from(height) - 1];
            if settled && top <= capacity(height) {
                let inner = nodes[2..=usize::from(height)].iter().sum();
                return Self { height, leaves: nodes[1], inner_nodes: inner, too_high: false };
            }
        }
        let leaves = records.div_ceil(capacity(1).max(1));
        Self { height: HEIGHT_MAX, leaves, inner_nodes: 1, too_high: true }
    }
}
