//! `tnc`: the tree of UBIFS. Nodes are changed in RAM and written together.
//!
//! A change is a record in the journal, one page, and then a change of nodes in RAM. Now and then a
//! commit writes all changed nodes, children first, several to a page, and the root last. Changes
//! before it write parts of a large commit ahead, so that no change waits for all of it. A mount
//! begins with the tree of the last commit and makes again the changes of the journal that follow
//! it (TNC paper, Havasi, SOFSEM 2011, sections 6 and 7).
//!
//! What holds after any cut: a change that returned `Ok` is there; of those that were not durable
//! yet, a first part is there, in the order in which they were made. The pages of the last commit,
//! and the journal since, are not erased before the next commit is whole. Nothing is replaced in
//! place, and no page of the journal is moved: a commit makes it garbage.
//!
//! The leaves are nodes of the tree like all others. (In UBIFS they stay in the journal.)

mod apply;
mod arena;
mod batch;
mod check;
#[cfg(feature = "checkpoints")]
mod checkpoint;
mod commit;
mod descend;
mod engine;
mod form;
mod format;
mod journal;
mod live;
mod mount;
mod owner;
mod plan;
mod replay;
mod room;
mod scan;

use core::num::NonZeroU16;

use crate::blocks::Wear;
use crate::flash::BlockNumber;
use crate::gc::Collector;
use crate::space::{Absent, BuiltCheckpoints, Kind, ReadCache, Space};

use arena::Arena;
use journal::Group;
use live::Live;
use room::Limits;

/// The checkpoints of this engine, where that feature is on.
type Checkpoints = <Tnc as Kind>::Checkpoints;

/// A tree in RAM and on flash, with a journal.
pub struct Tnc;

impl Kind for Tnc {
    const KEEPS_PAGES: bool = true;
    const WEAR: Wear = Wear::Counted;
    const CHECKPOINTS_END_SESSIONS: bool = true;
    type Checkpoints = BuiltCheckpoints;
    type Cache<'b> = ReadCache<'b>;
    type Memory = Absent;
}

/// Records on a chip `F` in a tree whose changed nodes are in RAM.
///
/// Every operation that fails half way is treated as a cut: the next one mounts again.
pub struct TncIndex<'b, F> {
    space: Space<'b, F, Tnc>,
    arena: Arena<'b>,
    live: Live<'b>,
    /// Changes that wait for their page of the journal.
    group: Group<'b>,
    /// The slot of the root.
    root: u16,
    height: u8,
    records: u32,
    /// What `records` was before the pending changes.
    records_before_group: u32,
    leaves: u32,
    inner_nodes: u32,
    /// Pages of the journal since the last commit, and the most of them.
    journal_pages: u32,
    journal_max: u32,
    /// Blocks written since the last commit, and the newest of them.
    journal_blocks: u32,
    journal_block: BlockNumber,
    /// The number of changes since the last commit; it stops at its maximum.
    changes: u16,
    /// Pages of a commit that the options let a change write.
    commit_step: Option<NonZeroU16>,
    /// Dirty nodes are written in steps now, and collection waits for that.
    drains: bool,
    limits: Limits,
    /// What the limits follow from: height, inner nodes and reliable blocks.
    limits_follow_from: (u8, u32, u32),
    /// The newest page before the mount ended a session: nothing is torn.
    ended: bool,
    /// No page on the chip can read differently from when the index was opened.
    settled: bool,
    /// Idle steps since the last change.
    rests: u8,
    /// An operation failed half way: only the medium shows what is true.
    in_doubt: bool,
    collector: Collector,
    moved_pages: u32,
    unexplained_pages: u32,
}
