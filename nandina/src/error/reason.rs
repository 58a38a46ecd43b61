//! The reasons behind errors. Programs that never print them do not link the texts.

use core::fmt;

/// What is wrong with a damaged page, or with the index that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Damage {
    /// Keys are out of order.
    KeysOutOfOrder,
    /// A node of the checkpoint has more records than fit.
    CheckpointNodeTooFull,
    /// The checkpoint counts fewer nodes than its tree has.
    CheckpointCountsTooFew,
    /// It lacks a node that is referenced.
    LacksNode,
    /// It lacks the value of a record.
    LacksValue,
    /// The checkpoint refers to it and does not count it.
    NotInCheckpoint,
    /// Two nodes refer to it.
    ReferredTwice,
    /// It lacks a node that its header lists.
    LacksNodeOfHeader,
    /// A pointer leads beyond the chip.
    BeyondChip,
    /// No page of the index is readable.
    NoPage,
    /// No root is readable.
    NoRoot,
    /// It is not a root of this index.
    OtherRoot,
    /// It claims more records than the chip holds.
    TooManyRecords,
    /// A node differs from the one seen on the way down.
    NodeChanged,
    /// A node is empty.
    NodeEmpty,
    /// A node has more records than it may.
    NodeTooFull,
    /// It is referenced but is no logical page.
    NoLogicalPage,
    /// Neither of its two shadow pages holds the referenced node.
    NeitherTwin,
    /// The mapping table is too small for the mappings of this index.
    ///
    /// Open it with as many bytes as before.
    TableTooSmall,
    /// Its level is not a level of the tree.
    LevelBeyondTree,
    /// It does not hold the bytes that were written.
    NotAsWritten,
    /// It belongs to another index.
    OtherIndex,
    /// It was written after the root that leads to it.
    AfterRoot,
    /// It is no node.
    NoNode,
    /// It is referenced but erased.
    Erased,
    /// Its checksum does not match.
    Checksum,
    /// It has more wrong bits than the ECC corrects.
    Uncorrectable,
    /// It has another format version.
    OtherVersion,
    /// It belongs to another system.
    OtherSystem,
    /// Its nodes have another fanout.
    ///
    /// Open the index with the same as before.
    OtherFanout,
    /// RAM has too few nodes for the journal.
    ArenaTooSmall,
    /// No room was left for recovery.
    NoRoomToRecover,
    /// No page that can be read owns these keys.
    NoOwner,
    /// There are more leaves than the directory has room for.
    ///
    /// Open the index with as many as before.
    DirectoryTooSmall,
    /// There are more leaves than the chip allows.
    TooManyLeaves,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KeysOutOfOrder => "keys are out of order",
            Self::CheckpointNodeTooFull => "a node of the checkpoint has more records than fit",
            Self::CheckpointCountsTooFew => "the checkpoint counts fewer nodes than its tree has",
            Self::LacksNode => "it lacks a node that is referenced",
            Self::LacksValue => "it lacks the value of a record",
            Self::NotInCheckpoint => "the checkpoint refers to it and does not count it",
            Self::ReferredTwice => "two nodes refer to it",
            Self::LacksNodeOfHeader => "it lacks a node that its header tells of",
            Self::BeyondChip => "a pointer leads beyond the chip",
            Self::NoPage => "no page of the index is readable",
            Self::NoRoot => "no root is readable",
            Self::OtherRoot => "it is not a root of this index",
            Self::TooManyRecords => "it claims more records than the chip holds",
            Self::NodeChanged => "a node is not what it was on the way down",
            Self::NodeEmpty => "a node is empty",
            Self::NodeTooFull => "a node has more records than it may",
            Self::NoLogicalPage => "it is no logical page but referenced",
            Self::NeitherTwin => "neither of its two pages holds the node that is referenced",
            Self::TableTooSmall => "the table of mappings has no room for those of this index: open it with as many bytes as before",
            Self::LevelBeyondTree => "its level is not one of the tree",
            Self::NotAsWritten => "it does not hold what was written",
            Self::OtherIndex => "it belongs to another index",
            Self::AfterRoot => "it was written after the root that leads to it",
            Self::NoNode => "it is no node",
            Self::Erased => "it is erased but referenced",
            Self::Checksum => "its checksum does not match",
            Self::Uncorrectable => "it has more wrong bits than the ECC corrects",
            Self::OtherVersion => "it has another format version",
            Self::OtherSystem => "it belongs to another system",
            Self::OtherFanout => "its nodes have another fanout: open the index with the same as before",
            Self::ArenaTooSmall => "RAM has no room for the nodes that its journal changes: open it with more arena_bytes, at most as many as before",
            Self::NoRoomToRecover => "no room was left for recovery",
            Self::NoOwner => "no page that can be read owns the keys that it may have owned",
            Self::DirectoryTooSmall => "it is one leaf more than there may be: open the index with as many leaves as before",
            Self::TooManyLeaves => "it is one leaf more than the chip allows",
        })
    }
}

/// Which option is out of its range, or does not suit the system or the chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BadOption {
    /// `key_bytes` must be 1 to 64.
    KeyBytes,
    /// `value_bytes` must be at most 65535.
    ValueBytes,
    /// `page_buffers` must be at least what the system needs and at most 16.
    PageBuffers,
    /// A block must have 2 to 4095 pages.
    PagesPerBlock,
    /// A `write_cache` is for systems that write paths.
    NoPaths,
    /// The system has no checkpoints.
    ///
    /// [`Description::checkpoints`](crate::store::Description::checkpoints) says which systems
    /// have them.
    NoCheckpoints,
    /// [`GcPolicy::Tracked`](crate::GcPolicy::Tracked) is for systems that write paths.
    TrackedWithoutPaths,
    /// A `read_cache` needs the feature `read-cache` of this library.
    ReadCacheNotBuilt,
    /// `journal_values` is on, and the feature `journal-values` of this library is off.
    JournalValuesNotBuilt,
    /// Checkpoints need the feature `checkpoints` of this library.
    CheckpointsNotBuilt,
    /// `read_cache` and `write_cache` must be at most 65535 pages.
    CachePages,
    /// A `write_buffer` needs the feature `write-buffer` of this library.
    WriteBufferNotBuilt,
    /// `mapping_bytes` must be at most 2^24.
    MappingBytes,
    /// `mapping_bytes` is too small for the mappings of this index.
    ///
    /// Open it with as many as before.
    TableTooSmall,
    /// A mode that only reproduces a paper needs the feature `paper-modes`.
    ///
    /// These are validity by search, tracked victims, moves alone, other folds than by share, other
    /// evictions than of all changes, removals that rebalance, a share of the nodes that leaves RAM
    /// at once, and other page buffers kept than by default.
    PaperModesNotBuilt,
    /// Validity by search does not suit the other options or the system.
    ///
    /// It excludes logical pages, a write cache, checkpoints and tracked victims.
    NotSearched,
    /// `write_buffer` must be at most 65535 pages.
    WriteBufferPages,
    /// `write_buffer_changes` and `write_buffer_ticks` must be `None` or at least 1.
    WriteBufferBounds,
    /// A change must fit in the write buffer: key, value and one bit.
    WriteBufferTooSmall,
    /// A chip must have fewer than 2^31 pages.
    Pages,
    /// [`GcPolicy::Tracked`](crate::GcPolicy::Tracked) takes 1 to 64 blocks.
    TrackedBlocks,
    /// Checkpoints need blocks whose erases are counted.
    CheckpointsUncounted,
    /// Checkpoints must be `None` or 1 to 12.
    Checkpoints,
    /// This chip cannot have checkpoints.
    ///
    /// One does not fit in 32 blocks, the blocks for them would be more than a quarter of the chip,
    /// or the pages are too small.
    CheckpointTooLarge,
    /// A page must have at least 40 bytes, its spare area included.
    PageBytes,
    /// A chip must have at least one block.
    Blocks,
    /// `leaves` must be `None` or at least 2.
    Leaves,
    /// This index has more leaves than `leaves` allows.
    ///
    /// Open it with as many as before.
    DirectoryTooSmall,
    /// A system with a directory of leaves has no `read_cache` and no `write_buffer`.
    NotBesideDirectory,
    /// The fanout is too small.
    Fanout,
    /// RAM has room for too few nodes.
    ArenaBytes {
        /// The fewest bytes of RAM for nodes.
        needed: usize,
    },
    /// RAM has room for fewer nodes than the journal changes.
    ArenaTooSmall,
    /// The system writes its write buffer as a whole.
    ///
    /// `eviction` is for trees without a journal.
    NoEviction,
    /// Only nodes that are replaced in place are rebalanced.
    ///
    /// And only without a write buffer.
    NoRebalancing,
    /// There is no page for the journal.
    JournalPages,
    /// A step of a commit has no page.
    CommitStep,
    /// The share of the clean nodes that leave RAM is none, or more than all.
    ShrinkPercent,
}

impl fmt::Display for BadOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KeyBytes => "key_bytes must be 1 to 64",
            Self::ValueBytes => "value_bytes must be at most 65535",
            Self::PageBuffers => "page_buffers must be at least what the system needs, at most 16",
            Self::PagesPerBlock => "a block must have 2 to 4095 pages",
            Self::NoPaths => "write_cache is for systems that write paths",
            Self::NoCheckpoints => "this system has no checkpoints",
            Self::TrackedWithoutPaths => "victims kept count of are for systems that write paths",
            Self::CheckpointsNotBuilt => "checkpoints need the feature checkpoints of this library",
            Self::JournalValuesNotBuilt => {
                "journal_values need the feature journal-values of this library"
            }
            Self::ReadCacheNotBuilt => "a read_cache needs the feature read-cache of this library",
            Self::CachePages => "read_cache and write_cache must be at most 65535 pages",
            Self::WriteBufferNotBuilt => "a write_buffer needs the feature write-buffer of this library",
            Self::MappingBytes => "mapping_bytes must be at most 2^24",
            Self::TableTooSmall => {
                "mapping_bytes have no room for the mappings of this index: open it with as many as before"
            }
            Self::PaperModesNotBuilt => {
                "validity by search, tracked victims, moves alone, other folds, other evictions, removals that rebalance, a shrink_percent, and other pages kept need the \
                 feature paper-modes of this library"
            }
            Self::NotSearched => {
                "validity by search is not for logical pages, a write cache, checkpoints or victims kept count of"
            }
            Self::WriteBufferPages => "write_buffer must be at most 65535 pages",
            Self::WriteBufferBounds => "write_buffer_changes and write_buffer_ticks must be None or at least 1",
            Self::WriteBufferTooSmall => "a change must fit in the write buffer: key, value and one bit",
            Self::Pages => "a chip must have fewer than 2^31 pages",
            Self::TrackedBlocks => "victims must keep count of 1 to 64 blocks",
            Self::CheckpointsUncounted => "checkpoints are for blocks whose erases are counted",
            Self::Checkpoints => "checkpoints must be None or 1 to 12",
            Self::CheckpointTooLarge => "no checkpoints on this chip: one does not fit in 32 blocks and an eighth of the chip, or the pages are too small",
            Self::PageBytes => "a page must have at least 40 bytes, its spare area included",
            Self::NoEviction => "eviction is for trees without a journal, which write the whole buffer at once",
            Self::NoRebalancing => "rebalances is for nodes that are replaced in place, without a write_buffer",
            Self::Fanout => "fanout must be at least 4",
            Self::ArenaBytes { needed } => {
                return write!(f, "arena_bytes must be at least {needed}, for 11 nodes");
            }
            Self::ArenaTooSmall => {
                "arena_bytes have no room for the tree and the journal of this index: open it with more, at most as many as before"
            }
            Self::JournalPages => "journal_pages must be None or at least 1",
            Self::ShrinkPercent => "shrink_percent must be None or 1 to 100",
            Self::CommitStep => "commit_step must be None or at least 1",
            Self::Blocks => "a chip must have at least one block",
            Self::Leaves => "leaves must be None or at least 2",
            Self::DirectoryTooSmall => "this index has more leaves than leaves allows: open it with as many as before",
            Self::NotBesideDirectory => "a system with a directory of leaves has no read_cache and no write_buffer",
        })
    }
}
