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
//! place. Where values are in the leaves, no page of the journal moves: a commit makes it garbage.
//!
//! The leaves are nodes of the tree like all others. The values are in them or, by an option, stay
//! in the journal as they do in UBIFS (`values.rs`): then the pages of the journal to which a leaf
//! points are needed, and garbage collection moves their values.

mod apply;
mod arena;
mod batch;
mod bounds;
mod changes;
mod check;
#[cfg(feature = "checkpoints")]
mod checkpoint;
mod commit;
mod counters;
mod descend;
mod engine;
mod form;
mod format;
mod journal;
mod length;
mod live;
mod mount;
mod opened;
mod owner;
mod plan;
mod replay;
mod room;
mod scan;
mod shrink;
mod slots;
mod state;
mod tree;
mod values;

use core::num::NonZeroU16;

use crate::blocks::WearPolicy;
use crate::engine::UpdateScheme;
use crate::gc::Collector;
use crate::space::{Absent, BuiltCheckpoints, Kind, ReadCache, Space};

use arena::Arena;
use journal::Group;
use length::Length;
use live::Live;
use room::Room;
use shrink::Shrink;
use state::State;
use tree::Tree;

/// The checkpoints of this engine, where that feature is on.
type Checkpoints = <Tnc as Kind>::Checkpoints;

/// A tree in RAM and on flash, with a journal.
pub struct Tnc;

impl Kind for Tnc {
    const UPDATES: UpdateScheme = UpdateScheme::Journal;
    const KEEPS_PAGES: bool = true;
    const WEAR: WearPolicy = WearPolicy::Counted;
    const CHECKPOINTS_END_SESSIONS: bool = true;
    const ONE_BY_ONE: bool = true;
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
    tree: Tree,
    /// How long the journal is.
    journal: Length,
    /// Pages of a commit that the options let a change write.
    commit_step: Option<NonZeroU16>,
    /// The clean-up of the paper.
    shrink: Shrink,
    /// Pages of the journal that a commit may write first, for changes that wait.
    group_pages: u16,
    /// The limits of the tree, and how commits make room.
    room: Room,
    state: State,
    collector: Collector,
}
